//! Every kernel on small data, for devices that check each access, as `cargo xtask oclgrind` has.

mod common;

use clmgr::fft::{Direction, Plan, Way};
use clmgr::{Arg, C32, Context, NdRange, Program, ProgramCache, Queue, RegularBuffer};
use rustfft::FftPlannerScalar;
use rustfft::num_complex::Complex;

struct Bench {
    context: Context,
    programs: ProgramCache,
    queue: Queue,
}

fn open() -> Bench {
    let context = common::context();
    Bench {
        programs: ProgramCache::in_memory(&context),
        queue: context.queue().unwrap(),
        context,
    }
}

fn input(len: usize) -> Vec<C32> {
    (0..len)
        .map(|i| C32::new((i * 7 % 11) as f32 - 5.0, (i * 5 % 13) as f32 - 6.0))
        .collect()
}

/// The buffers have exactly the plan's size, so that a step beside it is a step outside.
fn check(bench: &Bench, len: usize, batch: usize, way: Way) {
    let plan = Plan::with_way(&bench.context, &bench.programs, len, batch, way).unwrap();
    let data = input(len * batch);
    for (direction, in_place) in [
        (Direction::Forward, false),
        (Direction::Forward, true),
        (Direction::Inverse, false),
    ] {
        let mut from = RegularBuffer::new(&bench.context, data.len()).unwrap();
        let to = RegularBuffer::<C32>::new(&bench.context, data.len()).unwrap();
        from.write(&bench.queue, &data).unwrap();
        let target = if in_place { &from } else { &to };
        // SAFETY: both buffers have the plan's size and are used by nothing else.
        unsafe { plan.enqueue(&bench.queue, direction, from.arg(), target.arg()) }.unwrap();
        let mut result = vec![C32::default(); data.len()];
        target.read(&bench.queue, &mut result).unwrap();

        let mut planner = FftPlannerScalar::<f64>::new();
        let exact = match direction {
            Direction::Forward => planner.plan_fft_forward(len),
            Direction::Inverse => planner.plan_fft_inverse(len),
        };
        let mut expected: Vec<Complex<f64>> = data.iter().map(|z| Complex::new(z.re.into(), z.im.into())).collect();
        exact.process(&mut expected);
        for (index, (got, expected)) in result.iter().zip(&expected).enumerate() {
            let off = (Complex::new(f64::from(got.re), f64::from(got.im)) - expected).norm();
            assert!(
                off < 1e-5 * (10 * len) as f64,
                "{len} x {batch} by {way}, {direction:?}, in place {in_place}: {got} for {expected} at {index}"
            );
        }
    }
}

#[test]
fn rows_stay_in_their_memory() {
    let bench = open();
    for (len, batch) in [(64, 3), (72, 2), (120, 1)] {
        check(&bench, len, batch, Way::Rows);
    }
}

#[test]
fn columns_stay_in_their_memory() {
    let bench = open();
    // Batches that fill the eight lanes, and such that do not.
    for (len, batch) in [(2, 8), (5, 3), (12, 9), (25, 17)] {
        check(&bench, len, batch, Way::Columns);
    }
}

#[test]
fn splits_stay_in_their_memory() {
    let bench = open();
    for (height, width, batch) in [(8, 9, 2), (16, 8, 1)] {
        check(&bench, height * width, batch, Way::Split { height, width });
    }
}

#[test]
fn work_groups_share_local_memory_without_a_race() {
    let bench = open();
    for (len, batch) in [(2, 5), (15, 33), (30, 3), (128, 2)] {
        check(&bench, len, batch, Way::Local);
    }
}

#[test]
fn registers_are_exchanged_without_a_race() {
    let bench = open();
    // Rows that fill a work-group and such that do not, and lengths that leave work-items idle.
    for (len, batch) in [(2, 5), (64, 5), (60, 3), (128, 17), (256, 2)] {
        check(&bench, len, batch, Way::Registers);
    }
}

#[test]
fn stages_stay_in_their_memory_without_a_race() {
    let bench = open();
    // Matrices whose columns fill the last work-group, and such that do not.
    for (height, width, batch) in [(4, 8, 2), (16, 8, 1), (10, 6, 2), (32, 16, 1), (150, 2, 1)] {
        check(&bench, height * width, batch, Way::Stages { height, width });
    }
}

#[test]
fn passes_stay_in_their_memory() {
    let bench = open();
    for (len, batch) in [(1, 3), (6, 2), (60, 2), (128, 1)] {
        check(&bench, len, batch, Way::Passes);
    }
}

/// The kernels of a bridge between contexts, here within one.
#[test]
fn a_bridges_copies_stay_in_their_memory() {
    let bench = open();
    let source = include_str!("../kernels/bridge.cl");
    let program = Program::build(&bench.context, source, "").unwrap();
    let data: Vec<u8> = (0..112u8).collect();
    for (name, unit, from_at, to_at, count) in [
        ("copy_16", 16, 1u64, 2u64, 5),
        ("copy_4", 4, 3, 1, 25),
        ("copy_1", 1, 3, 5, 100),
    ] {
        let mut from = RegularBuffer::new(&bench.context, data.len()).unwrap();
        from.write(&bench.queue, &data).unwrap();
        let end = (to_at as usize + count) * unit;
        let mut to = RegularBuffer::<u8>::new(&bench.context, end).unwrap();
        to.write(&bench.queue, &vec![255; end]).unwrap();
        let places = [from_at, to_at];
        let args = [from.arg(), Arg::scalar(&places[0]), to.arg(), Arg::scalar(&places[1])];
        let kernel = program.kernel(name).unwrap();
        // SAFETY: the ranges lie in the buffers, which nothing else uses.
        unsafe { kernel.launch(&bench.queue, NdRange::d1(count), &args) }.unwrap();
        let mut got = vec![0; end];
        to.read(&bench.queue, &mut got).unwrap();
        let (before, copied) = got.split_at(to_at as usize * unit);
        assert!(before.iter().all(|&byte| byte == 255), "{name}");
        assert_eq!(copied, &data[from_at as usize * unit..][..count * unit]);
    }
}

#[test]
#[ignore = "run by `cargo xtask oclgrind`, which wants to see the report"]
fn a_kernel_that_leaves_its_buffer_is_reported() {
    let bench = open();
    let platform = bench.context.device().platform_name();
    assert_eq!(platform, "Oclgrind", "other devices would do the write");
    let source = "kernel void beyond(global uint *x) { x[get_global_id(0) + 1] = 1; }";
    let program = Program::build(&bench.context, source, "").unwrap();
    let buffer = RegularBuffer::<u32>::new(&bench.context, 4).unwrap();
    let kernel = program.kernel("beyond").unwrap();
    // SAFETY: the device checks every access and makes none outside of a buffer.
    unsafe { kernel.launch(&bench.queue, NdRange::d1(4), &[buffer.arg()]) }.unwrap();
    bench.queue.finish().unwrap();
}
