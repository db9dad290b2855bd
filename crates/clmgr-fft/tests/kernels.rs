//! Every kernel on small data, for devices that check each access, as `cargo xtask oclgrind` has.

#[path = "../../clmgr/tests/common/mod.rs"]
mod common;

use clmgr::{C32, Context, ProgramCache, Queue, RegularBuffer};
use clmgr_fft::{Builder, Direction, Layout, Number, Plan, Side, Way};
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
    let plan = Plan::builder(len).batch(batch).way(way);
    let plan = plan.build(&bench.context, &bench.programs).unwrap();
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

/// The places of a side's floats, by row.
fn floats(side: Side, batch: usize) -> Vec<usize> {
    let width = side.number.bytes() / size_of::<f32>();
    let Layout { stride, distance } = side.layout;
    let numbers = (0..batch).flat_map(|row| (0..side.len).map(move |i| (row * distance + i * stride) * width));
    numbers.flat_map(|first| first..first + width).collect()
}

/// There and back through buffers of exactly the plans' extents: what comes back is what went in.
fn check_and_back(bench: &Bench, there: &Builder, back: &Builder) {
    let plan = |builder: &Builder| builder.build(&bench.context, &bench.programs).unwrap();
    let (there, back) = (plan(there), plan(back));
    let buffer = |side: Side| RegularBuffer::<f32>::new(&bench.context, side.bytes() / size_of::<f32>()).unwrap();
    let (mut from, mut between, to) = (buffer(there.input()), buffer(there.output()), buffer(back.output()));
    assert_eq!(there.output(), back.input());
    let data: Vec<f32> = (0..from.len()).map(|i| (i * 7 % 11) as f32 - 5.0).collect();
    from.write(&bench.queue, &data).unwrap();
    between.write(&bench.queue, &vec![f32::NAN; between.len()]).unwrap();
    // SAFETY: the buffers have the plans' extents and are used by nothing else.
    unsafe {
        there
            .enqueue(&bench.queue, Direction::Forward, from.arg(), between.arg())
            .unwrap();
        back.enqueue(&bench.queue, Direction::Inverse, between.arg(), to.arg())
            .unwrap();
    }
    let mut result = vec![0.0; to.len()];
    to.read(&bench.queue, &mut result).unwrap();
    let (batch, input, output) = (there.batch(), there.input(), back.output());
    let (given, found) = (floats(input, batch), floats(output, batch));
    let (row, longer) = (given.len() / batch, found.len() / batch);
    for (i, &place) in found.iter().enumerate() {
        let (b, i) = (i / longer, i % longer);
        let expected = if i < row { data[given[b * row + i]] } else { 0.0 };
        let off = (result[place] - expected).abs();
        assert!(
            off < 1e-4,
            "{there:?}, {back:?}: {} for {expected} at {i} of row {b}",
            result[place]
        );
    }
}

fn gaps(numbers: usize) -> Layout {
    Layout {
        stride: 2,
        distance: 2 * numbers + 1,
    }
}

#[test]
fn short_rows_with_gaps_stay_in_their_memory() {
    let bench = open();
    for (len, batch, way) in [
        (72, 2, Way::Rows),
        (12, 9, Way::Columns),
        (30, 3, Way::Local),
        (60, 3, Way::Registers),
        (72, 2, Way::Split { height: 8, width: 9 }),
        (60, 2, Way::Stages { height: 10, width: 6 }),
        (60, 2, Way::Passes),
        (11, 3, Way::Bluestein { convolution: 21 }),
        (22, 9, Way::Bluestein { convolution: 64 }),
    ] {
        let plan = || Plan::builder(len).batch(batch).way(way);
        let there = plan().input_len(len - 3).output(gaps(len));
        let back = plan()
            .input(gaps(len))
            .output(Layout::rows(len + 1))
            .scale_output(1.0 / len as f32);
        check_and_back(&bench, &there, &back);
    }
}

#[test]
fn real_numbers_stay_in_their_memory() {
    let bench = open();
    for (len, batch) in [(1, 2), (2, 3), (9, 5), (30, 9), (22, 3), (13, 2), (128, 2)] {
        let half = gaps(len / 2 + 1);
        let plan = || Plan::builder(len).batch(batch);
        let there = plan().real_to_complex().input_len(len.div_ceil(2)).output(half);
        let back = plan().complex_to_real().input(half).scale_output(1.0 / len as f32);
        check_and_back(&bench, &there, &back);
        assert_eq!(
            there.build(&bench.context, &bench.programs).unwrap().input().number,
            Number::Real
        );
    }
}
