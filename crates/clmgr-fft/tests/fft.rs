//! The FFT against rustfft in double precision.

#[path = "../../clmgr/tests/common/mod.rs"]
mod common;

use std::sync::OnceLock;

use clmgr::{C32, Context, Error, ProgramCache, Queue, RegularBuffer, SvmBuffer, SvmCapabilities};
use clmgr_fft::{Direction, Plan, Tuning, Way};
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustfft::num_complex::Complex;

struct Bench {
    context: Context,
    programs: ProgramCache,
    queue: Queue,
}

/// One for all tests, so that a kernel is compiled once.
fn bench() -> &'static Bench {
    static BENCH: OnceLock<Bench> = OnceLock::new();
    BENCH.get_or_init(|| {
        let context = common::context();
        Bench {
            programs: ProgramCache::in_memory(&context),
            queue: context.queue().unwrap(),
            context,
        }
    })
}

impl Bench {
    fn plan(&self, len: usize, batch: usize, way: Option<Way>) -> Plan {
        self.try_plan(len, batch, way).unwrap()
    }

    fn try_plan(&self, len: usize, batch: usize, way: Option<Way>) -> clmgr_fft::Result<Plan> {
        match way {
            None => Plan::new(&self.context, &self.programs, len, batch),
            Some(way) => Plan::builder(len)
                .batch(batch)
                .way(way)
                .build(&self.context, &self.programs),
        }
    }

    /// Transforms through regular buffers; the guard rows behind the data must stay as they are.
    fn run(&self, plan: &Plan, direction: Direction, in_place: bool, data: &[C32]) -> Vec<C32> {
        const GUARD: usize = 64;
        let guard = C32::new(7.5, -3.25);
        let mut padded = data.to_vec();
        padded.resize(data.len() + GUARD, guard);
        let mut input = RegularBuffer::new(&self.context, padded.len()).unwrap();
        input.write(&self.queue, &padded).unwrap();
        let mut output = RegularBuffer::new(&self.context, padded.len()).unwrap();
        output.write(&self.queue, &vec![guard; padded.len()]).unwrap();
        let target = if in_place { &input } else { &output };
        // SAFETY: both buffers hold at least the plan's data and are used by nothing else.
        unsafe { plan.enqueue(&self.queue, direction, input.arg(), target.arg()) }.unwrap();
        let mut result = vec![C32::default(); padded.len()];
        target.read(&self.queue, &mut result).unwrap();
        assert!(
            result[data.len()..].iter().all(|&z| z == guard),
            "wrote behind the data"
        );
        if !in_place {
            let mut unchanged = vec![C32::default(); padded.len()];
            input.read(&self.queue, &mut unchanged).unwrap();
            assert!(unchanged == padded, "changed its input");
        }
        result.truncate(data.len());
        result
    }
}

fn noise(seed: u64, len: usize) -> Vec<C32> {
    let mut rng = StdRng::seed_from_u64(seed);
    (0..len)
        .map(|_| C32::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0)))
        .collect()
}

fn reference(len: usize, direction: Direction, data: &[C32]) -> Vec<Complex<f64>> {
    let mut planner = rustfft::FftPlannerScalar::new();
    let fft = match direction {
        Direction::Forward => planner.plan_fft_forward(len),
        Direction::Inverse => planner.plan_fft_inverse(len),
    };
    let mut exact: Vec<_> = data
        .iter()
        .map(|z| Complex::new(f64::from(z.re), f64::from(z.im)))
        .collect();
    fft.process(&mut exact);
    exact
}

/// The largest error of a row, as a part of the row's largest value.
fn error(len: usize, direction: Direction, data: &[C32], result: &[C32]) -> f64 {
    let exact = reference(len, direction, data);
    exact
        .chunks(len)
        .zip(result.chunks(len))
        .map(|(exact, result)| {
            let largest = exact.iter().map(|z| z.norm()).fold(0.0, f64::max);
            let off = exact
                .iter()
                .zip(result)
                .map(|(e, r)| (e - Complex::new(f64::from(r.re), f64::from(r.im))).norm())
                .fold(0.0, f64::max);
            off / largest
        })
        .fold(0.0, f64::max)
}

fn limit(len: usize) -> f64 {
    1e-6 * (len as f64).log2().max(1.0)
}

fn check(bench: &Bench, len: usize, batch: usize, way: Option<Way>, runs: &[(Direction, bool)]) {
    // A plan builds its kernels when it first transforms.
    let try_plan = |way| match bench.try_plan(len, batch, Some(way)) {
        Ok(plan) => plan.prepare(Direction::Forward),
        Err(clmgr_fft::Error::Cl(error)) => Err(error),
        Err(_) => Ok(()),
    };
    if let Some(way) = way
        && let Err(error) = try_plan(way)
        && let Some(reason) = too_small(&error)
    {
        return common::skipped(&format!("{len} x {batch} by {way}: {reason}"));
    }
    check_plan(bench, &bench.plan(len, batch, way), runs);
}

/// What a device lacks for a length: ROCm's OpenCL has work-groups of 256, and 128 KiB of private memory.
fn too_small(error: &Error) -> Option<&str> {
    match error {
        Error::NotSupported { reason, .. } => reason.contains("; the device ").then_some(reason),
        Error::Build(failure) => failure
            .log
            .contains("stack frame size")
            .then_some("it needs more private memory than the device has"),
        _ => None,
    }
}

fn check_plan(bench: &Bench, plan: &Plan, runs: &[(Direction, bool)]) {
    let (len, batch) = (plan.len(), plan.batch());
    let data = noise((len * 31 + batch) as u64, len * batch);
    for &(direction, in_place) in runs {
        let result = bench.run(plan, direction, in_place, &data);
        let error = error(len, direction, &data, &result);
        assert!(
            error < limit(len),
            "{len} x {batch} by {}, {direction:?}, in place {in_place}: error {error:e}",
            plan.way()
        );
    }
}

const FORWARD: &[(Direction, bool)] = &[(Direction::Forward, false), (Direction::Forward, true)];
const ALL: &[(Direction, bool)] = &[
    (Direction::Forward, false),
    (Direction::Forward, true),
    (Direction::Inverse, false),
    (Direction::Inverse, true),
];

#[test]
fn every_way_agrees_with_double_precision() {
    let bench = bench();
    let split = |height, width| Way::Split { height, width };
    for way in [Way::Rows, Way::Columns, Way::Local, Way::Passes, split(80, 50)] {
        check(bench, 4000, 3, Some(way), ALL);
    }
    for way in [Way::Rows, Way::Columns, Way::Local, Way::Passes, split(8, 9)] {
        check(bench, 72, 17, Some(way), FORWARD);
    }
    for (len, batch, way) in [
        (64, 5, Way::Rows),
        (1000, 3, Way::Rows),
        (2000, 2, Way::Rows),
        (4096, 2, Way::Rows),
        (16384, 1, Way::Rows),
        (3125, 9, Way::Columns),
        (4096, 2, Way::Local),
        (3125, 2, Way::Local),
        (15, 1001, Way::Local),
        (4096, 2, split(64, 64)),
        (1000, 2, split(40, 25)),
    ] {
        check(bench, len, batch, Some(way), FORWARD);
    }
}

const fn stages(height: usize, width: usize) -> Way {
    Way::Stages { height, width }
}

#[test]
fn rows_in_registers_agree_with_double_precision() {
    let bench = bench();
    for (len, batch, runs) in [
        (2, 33, FORWARD),
        (64, 21, ALL),
        (200, 5, FORWARD),
        (2048, 3, FORWARD),
        (4000, 2, ALL),
        (4096, 3, ALL),
    ] {
        check(bench, len, batch, Some(Way::Registers), runs);
    }
}

#[test]
fn stages_agree_with_double_precision() {
    let bench = bench();
    for (height, width, batch, runs) in [
        (2, 2, 3, FORWARD),
        (8, 4, 5, FORWARD),
        (50, 80, 3, ALL),
        (25, 125, 2, FORWARD),
        (256, 128, 3, ALL),
        (2048, 1024, 1, FORWARD),
    ] {
        let way = stages(height, width);
        check(bench, height * width, batch, Some(way), runs);
    }
}

#[test]
fn every_shape_of_a_work_group_gives_the_same_transform() {
    let bench = bench();
    for (values, columns, whole) in [(4, 8, false), (8, 1, true), (16, 6, false), (32, 32, true)] {
        let mut tuning = Tuning::default();
        tuning.values = Some(values);
        tuning.columns = Some(columns);
        tuning.whole = Some(whole);
        for (len, way) in [
            (120, Way::Registers),
            (32 * 64, stages(32, 64)),
            (60 * 18, stages(60, 18)),
        ] {
            let (context, programs) = (&bench.context, &bench.programs);
            let plan = Plan::builder(len).batch(7).way(way).tuning(tuning.clone());
            match plan.build(context, programs) {
                Ok(plan) => check_plan(bench, &plan, FORWARD),
                // AMD's OpenCL has work-groups of 256.
                Err(clmgr_fft::Error::Cl(Error::NotSupported { reason, .. }))
                    if reason.contains("the device allows") =>
                {
                    common::skipped(&format!("{values} x {columns}: {reason}"));
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn a_shape_that_no_work_group_has_is_refused_by_name() {
    let bench = bench();
    for (values, columns, reason) in [
        (Some(0), None, "2 to 32 numbers"),
        (Some(1), None, "2 to 32 numbers"),
        (Some(33), None, "2 to 32 numbers"),
        (None, Some(0), "1 to 32 transforms"),
        (None, Some(33), "1 to 32 transforms"),
    ] {
        let mut tuning = Tuning::default();
        tuning.values = values;
        tuning.columns = columns;
        for (len, way) in [(120, Way::Registers), (32 * 64, stages(32, 64))] {
            let (context, programs) = (&bench.context, &bench.programs);
            let refused = Plan::builder(len)
                .way(way)
                .tuning(tuning.clone())
                .build(context, programs);
            let error = refused.err().unwrap_or_else(|| panic!("{tuning:?} by {way}"));
            assert!(
                matches!(&error, clmgr_fft::Error::Cl(Error::NotSupported { reason: why, .. }) if why.contains(reason)),
                "{tuning:?} by {way}: {error}"
            );
        }
    }
}

#[test]
fn the_chosen_way_is_right_for_small_lengths_of_all_kinds() {
    let bench = bench();
    for (index, len) in [1, 2, 3, 4, 5, 6, 9, 12, 15, 25, 30, 32, 45, 80, 81, 125, 625]
        .into_iter()
        .enumerate()
    {
        check(bench, len, [1, 8, 13][index % 3], None, FORWARD);
    }
}

#[test]
fn the_chosen_way_is_right_for_large_lengths() {
    let bench = bench();
    for (len, batch) in [(20480, 3), (59049, 1), (15625, 2), (1_000_000, 1)] {
        check(bench, len, batch, None, &ALL[1..2]);
    }
    check(bench, 1 << 17, 2, None, ALL);
}

#[test]
fn a_batch_of_several_chunks_of_scratch_memory_is_right() {
    let bench = bench();
    check(bench, 1 << 16, 11, None, FORWARD);
    check(bench, 3125, 211, Some(Way::Passes), FORWARD);
    check(bench, 480, 1201, Some(Way::Passes), FORWARD);
}

#[test]
fn shared_virtual_memory_and_buffer_objects_give_the_same_bits() {
    let bench = bench();
    if !common::has(&bench.context, SvmCapabilities::COARSE) {
        return;
    }
    for (len, way) in [
        (4000, Some(Way::Rows)),
        (60, Some(Way::Columns)),
        (40000, None),
        (240, Some(Way::Local)),
        (2187, Some(Way::Passes)),
    ] {
        let plan = bench.plan(len, 5, way);
        let data = noise(5, len * 5);
        let expected = bench.run(&plan, Direction::Forward, true, &data);
        let mut shared = SvmBuffer::coarse(&bench.context, data.len()).unwrap();
        shared.write(&bench.queue, &data).unwrap();
        // SAFETY: the buffer holds the plan's data and is used by nothing else.
        unsafe { plan.enqueue(&bench.queue, Direction::Forward, shared.arg(), shared.arg()) }.unwrap();
        let mut result = vec![C32::default(); data.len()];
        shared.read(&bench.queue, &mut result).unwrap();
        assert!(result == expected, "{len}");
    }
}

#[test]
fn one_plan_serves_several_threads_on_their_own_and_on_one_queue() {
    let bench = bench();
    for (len, way) in [
        (2000, None),
        (5120, Some(Way::Split { height: 80, width: 64 })),
        (1000, Some(Way::Passes)),
    ] {
        let plan = bench.plan(len, 7, way);
        std::thread::scope(|scope| {
            for seed in 0..6 {
                let (plan, context) = (&plan, &bench.context);
                scope.spawn(move || {
                    let queue = match seed % 2 {
                        0 => bench.queue.clone(),
                        _ => context.queue().unwrap(),
                    };
                    let data = noise(seed, len * 7);
                    let mut buffer = RegularBuffer::new(context, data.len()).unwrap();
                    let mut result = vec![C32::default(); data.len()];
                    for _ in 0..5 {
                        buffer.write(&queue, &data).unwrap();
                        // SAFETY: the buffer holds the plan's data and is this thread's own.
                        unsafe { plan.enqueue(&queue, Direction::Forward, buffer.arg(), buffer.arg()) }.unwrap();
                        buffer.read(&queue, &mut result).unwrap();
                        assert!(error(len, Direction::Forward, &data, &result) < limit(len));
                    }
                });
            }
        });
    }
}

#[test]
fn a_mix_of_a_buffer_and_a_pointer_is_refused() {
    let bench = bench();
    if !common::has(&bench.context, SvmCapabilities::COARSE) {
        return;
    }
    let plan = bench.plan(8, 1, None);
    let regular = RegularBuffer::<C32>::new(&bench.context, 8).unwrap();
    let shared = SvmBuffer::<C32>::coarse(&bench.context, 8).unwrap();
    // SAFETY: both hold the plan's data.
    let refused = unsafe { plan.enqueue(&bench.queue, Direction::Forward, regular.arg(), shared.arg()) };
    assert!(matches!(refused, Err(Error::Launch { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn transforms_are_linear_invertible_and_keep_energy(
        twos in 0u32..8, threes in 0u32..4, fives in 0u32..3, batch in 1usize..20, seed: u64,
    ) {
        let len = 2usize.pow(twos) * 3usize.pow(threes) * 5usize.pow(fives);
        let bench = bench();
        let plan = bench.plan(len, batch, None);
        let data = noise(seed, len * batch);
        let spectrum = bench.run(&plan, Direction::Forward, false, &data);
        prop_assert!(error(len, Direction::Forward, &data, &spectrum) < limit(len));
        let back = bench.run(&plan, Direction::Inverse, true, &spectrum);
        for (original, returned) in data.iter().zip(&back) {
            prop_assert!((original * len as f32 - returned).norm() < 1e-5 * len as f32);
        }
        let energy = |row: &[C32]| row.iter().map(|z| f64::from(z.norm_sqr())).sum::<f64>();
        for (row, line) in data.chunks(len).zip(spectrum.chunks(len)) {
            let (before, after) = (energy(row) * len as f64, energy(line));
            prop_assert!((before - after).abs() <= 1e-5 * before);
        }
    }
}
