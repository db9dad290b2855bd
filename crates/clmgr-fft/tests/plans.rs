//! Plans with options against rustfft in double precision.

#[path = "../../clmgr/tests/common/mod.rs"]
mod common;

use std::sync::OnceLock;

use clmgr::{Context, ProgramCache, Queue, RegularBuffer};
use clmgr_fft::{Builder, Direction, Kind, Layout, Number, Plan, Side, Way};
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustfft::num_complex::Complex;

type C64 = Complex<f64>;

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

/// What the plan is told, for the reference.
#[derive(Clone, Debug)]
struct Case {
    len: usize,
    batch: usize,
    kind: Kind,
    input_len: Option<usize>,
    input: Option<Layout>,
    output: Option<Layout>,
    window: bool,
    input_scale: f32,
    output_scale: f32,
    way: Option<Way>,
}

impl Case {
    fn new(len: usize, batch: usize) -> Self {
        Self {
            len,
            batch,
            kind: Kind::Complex,
            input_len: None,
            input: None,
            output: None,
            window: false,
            input_scale: 1.0,
            output_scale: 1.0,
            way: None,
        }
    }

    fn by(way: Option<Way>, len: usize, batch: usize) -> Self {
        Self {
            way,
            ..Self::new(len, batch)
        }
    }

    /// Neither 0 nor 1 anywhere.
    fn factors(&self, len: usize) -> Vec<f32> {
        (0..len).map(|i| 0.25 + (i * 13 % 32) as f32 / 16.0).collect()
    }

    fn builder(&self) -> Builder {
        let mut builder = Plan::builder(self.len)
            .batch(self.batch)
            .kind(self.kind)
            .scale_input(self.input_scale)
            .scale_output(self.output_scale);
        if let Some(len) = self.input_len {
            builder = builder.input_len(len);
        }
        if let Some(layout) = self.input {
            builder = builder.input(layout);
        }
        if let Some(layout) = self.output {
            builder = builder.output(layout);
        }
        if self.window {
            builder = builder.window(&self.factors(self.row()));
        }
        if let Some(way) = self.way {
            builder = builder.way(way);
        }
        builder
    }

    fn row(&self) -> usize {
        self.input_len.unwrap_or(match self.kind {
            Kind::ComplexToReal => self.len / 2 + 1,
            _ => self.len,
        })
    }

    /// What becomes of a row.
    fn exact(&self, direction: Direction, row: &[C64]) -> Vec<C64> {
        let window = self.factors(row.len());
        let scale = f64::from(self.input_scale);
        let mut values: Vec<C64> = row
            .iter()
            .zip(&window)
            .map(|(value, factor)| value * scale * if self.window { f64::from(*factor) } else { 1.0 })
            .collect();
        if self.kind == Kind::ComplexToReal {
            values.resize(self.len / 2 + 1, C64::default());
            values[0].im = 0.0;
            if self.len.is_multiple_of(2) {
                values[self.len / 2].im = 0.0;
            }
            let mirrored: Vec<C64> = (values.len()..self.len).map(|k| values[self.len - k].conj()).collect();
            values.extend(mirrored);
        }
        values.resize(self.len, C64::default());
        let mut planner = rustfft::FftPlannerScalar::new();
        let fft = match direction {
            Direction::Forward => planner.plan_fft_forward(self.len),
            Direction::Inverse => planner.plan_fft_inverse(self.len),
        };
        fft.process(&mut values);
        if self.kind == Kind::RealToComplex {
            values.truncate(self.len / 2 + 1);
        }
        values
            .iter()
            .map(|value| value * f64::from(self.output_scale))
            .collect()
    }
}

const fn width(number: Number) -> usize {
    number.bytes() / size_of::<f32>()
}

/// The floats of a side's numbers, by row.
fn floats(side: Side, batch: usize) -> impl Iterator<Item = Vec<usize>> {
    let (width, Layout { stride, distance }) = (width(side.number), side.layout);
    (0..batch).map(move |row| {
        let numbers = (0..side.len).map(move |i| (row * distance + i * stride) * width);
        numbers.flat_map(|first| first..first + width).collect()
    })
}

fn numbers(number: Number, floats: impl Iterator<Item = f32>) -> Vec<C64> {
    let floats: Vec<f64> = floats.map(f64::from).collect();
    match number {
        Number::Real => floats.into_iter().map(|re| C64::new(re, 0.0)).collect(),
        Number::Complex => floats.chunks(2).map(|part| C64::new(part[0], part[1])).collect(),
    }
}

/// No result of a transform.
const UNTOUCHED: f32 = 1.25e30;
const GUARD: usize = 64;

/// Transforms, and returns the largest error of a row: the norm of the difference, as a part of the row's norm.
///
/// What is not input is NaN, which would show in the result. Nothing but the output may be written.
fn run(case: &Case, direction: Direction, in_place: bool, seed: u64) -> f64 {
    let bench = bench();
    let plan = case.builder().build(&bench.context, &bench.programs);
    let plan = plan.unwrap_or_else(|error| panic!("{case:?}: {error}"));
    let (input, output) = (plan.input(), plan.output());
    let mut rng = StdRng::seed_from_u64(seed);
    let mut data = vec![f32::NAN; input.extent * width(input.number)];
    let places: Vec<Vec<usize>> = floats(input, case.batch).collect();
    for &place in places.iter().flatten() {
        data[place] = rng.random_range(-1.0..1.0);
    }
    let mut before = match in_place {
        true => data.clone(),
        false => vec![UNTOUCHED; output.extent * width(output.number)],
    };
    before.resize(before.len().max(output.extent * width(output.number)), UNTOUCHED);
    before.extend([UNTOUCHED; GUARD]);

    let mut from = RegularBuffer::new(&bench.context, data.len()).unwrap();
    from.write(&bench.queue, &data).unwrap();
    let mut to = RegularBuffer::new(&bench.context, before.len()).unwrap();
    to.write(&bench.queue, &before).unwrap();
    let source = if in_place { to.arg() } else { from.arg() };
    // SAFETY: both hold the plan's numbers and are used by nothing else.
    unsafe { plan.enqueue(&bench.queue, direction, source, to.arg()) }
        .unwrap_or_else(|error| panic!("{case:?}: {error}"));
    let mut result = vec![0.0; before.len()];
    to.read(&bench.queue, &mut result).unwrap();
    let mut unchanged = vec![0.0; data.len()];
    from.read(&bench.queue, &mut unchanged).unwrap();
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert!(bits(&unchanged) == bits(&data), "changed its input: {case:?}");

    let mut worst: f64 = 0.0;
    let mut rest = bits(&result);
    for (from, to) in places.iter().zip(floats(output, case.batch)) {
        let row = numbers(input.number, from.iter().map(|&place| data[place]));
        let exact = case.exact(direction, &row);
        let found = numbers(output.number, to.iter().map(|&place| result[place]));
        assert_eq!(exact.len(), found.len());
        let norm = |values: &mut dyn Iterator<Item = C64>| values.map(|value| value.norm_sqr()).sum::<f64>().sqrt();
        let off = norm(&mut exact.iter().zip(&found).map(|(exact, found)| exact - found));
        let error = off / norm(&mut exact.iter().copied());
        assert!(
            !error.is_nan(),
            "read beside its input, or wrote nothing: {case:?}, {direction:?}"
        );
        worst = worst.max(error);
        for place in to {
            rest[place] = before[place].to_bits();
        }
    }
    assert!(
        rest == bits(&before),
        "wrote beside its output: {case:?}, {direction:?}, in place {in_place}"
    );
    worst
}

/// Half the distance from 1 to the next number.
const UNIT: f64 = f32::EPSILON as f64 / 2.0;

/// A real transform has one direction. Of a complex one either is tried: to compile both takes twice as long.
fn direction(case: &Case) -> Direction {
    match case.kind {
        Kind::RealToComplex => Direction::Forward,
        Kind::ComplexToReal => Direction::Inverse,
        _ if (case.len / 2 + case.batch).is_multiple_of(2) => Direction::Forward,
        _ => Direction::Inverse,
    }
}

fn check(case: &Case) {
    let bench = bench();
    let plan = match case.builder().build(&bench.context, &bench.programs) {
        Ok(plan) => plan,
        Err(clmgr_fft::Error::Cl(clmgr::Error::NotSupported { reason, .. })) if reason.contains("; the device ") => {
            return common::skipped(&format!("{case:?}: {reason}"));
        }
        Err(error) => panic!("{case:?}: {error}"),
    };
    let direction = direction(case);
    let same_layout = case.input == case.output && (case.input.is_some() || case.input_len.is_none());
    for in_place in [false, true] {
        if in_place && !(case.kind == Kind::Complex && same_layout) {
            continue;
        }
        let error = run(case, direction, in_place, (case.len * 7 + case.batch) as u64);
        let bound = plan.error_bound();
        println!(
            "{} x {} by {}, {:?}: {:.2} units, {:.2} of the bound",
            case.len,
            case.batch,
            plan.way(),
            case.kind,
            error / UNIT,
            error / bound
        );
        assert!(error < bound, "{case:?}, {direction:?}, in place {in_place}: {error:e}");
    }
}

/// A length and a batch for each way, with a rest in every vector and work-group.
fn ways() -> Vec<Case> {
    let split = Way::Split { height: 40, width: 25 };
    let stages = Way::Stages { height: 12, width: 15 };
    [
        (None, 1, 3),
        (None, 2, 5),
        (Some(Way::Rows), 200, 7),
        (Some(Way::Rows), 2400, 2),
        (Some(Way::Columns), 45, 13),
        (Some(Way::Local), 90, 5),
        (Some(Way::Registers), 120, 5),
        (Some(split), 1000, 3),
        (Some(stages), 180, 5),
        (Some(Way::Passes), 16, 4),
        (Some(Way::Passes), 48, 7),
        (Some(Way::Passes), 3600, 3),
    ]
    .map(|(way, len, batch)| Case::by(way, len, batch))
    .into()
}

#[test]
fn a_short_row_counts_as_padded_with_zeros_that_are_not_read() {
    for case in ways() {
        for input_len in [1, case.len - case.len.min(2) / 2] {
            check(&Case {
                input_len: Some(input_len),
                ..case.clone()
            });
        }
    }
}

#[test]
fn a_short_row_is_padded_in_place_too() {
    for case in ways().into_iter().filter(|case| case.len > 1) {
        let layout = Some(Layout::rows(case.len));
        check(&Case {
            input_len: Some(case.len / 2),
            input: layout,
            output: layout,
            ..case
        });
    }
}

#[test]
fn window_and_scales_are_factors() {
    for case in ways() {
        for (window, input_scale, output_scale) in [(false, 3.0, 1.0), (false, 1.0, -0.125), (true, 1e-3, 500.0)] {
            check(&Case {
                window,
                input_scale,
                output_scale,
                ..case.clone()
            });
        }
    }
}

#[test]
fn numbers_beside_the_rows_are_neither_read_nor_written() {
    for case in ways() {
        let (len, batch) = (case.len, case.batch);
        for (input, output) in [
            (Layout::rows(len + 3), Layout::rows(len + 3)),
            (Layout::columns(batch + 2), Layout::rows(len + 1)),
            (Layout::columns(batch), Layout::columns(batch)),
            (
                Layout {
                    stride: 3,
                    distance: 3 * len + 5,
                },
                Layout {
                    stride: 2,
                    distance: 2 * len + 1,
                },
            ),
        ] {
            check(&Case {
                input: Some(input),
                output: Some(output),
                ..case.clone()
            });
        }
    }
}

#[test]
fn rows_of_the_input_may_overlap() {
    for case in ways().into_iter().filter(|case| case.len > 1) {
        check(&Case {
            input: Some(Layout::rows(case.len / 2)),
            window: true,
            ..case
        });
    }
}

/// A GPU's or a CPU's scratch memory takes such a batch in several chunks.
#[test]
fn every_chunk_of_a_batch_is_read_and_written_in_its_place() {
    for (way, len, batch) in [
        (Way::Passes, 480, 2500),
        (Way::Split { height: 64, width: 64 }, 4096, 300),
    ] {
        check(&Case {
            input_len: Some(len - 7),
            input: Some(Layout::rows(len)),
            output: Some(Layout::rows(len + 2)),
            window: true,
            output_scale: 0.5,
            ..Case::by(Some(way), len, batch)
        });
    }
}

/// Real transforms whose complex one goes each way, and odd lengths.
fn real_ways() -> Vec<Case> {
    let doubled = ways().into_iter().map(|case| Case {
        len: 2 * case.len,
        ..case
    });
    let odd = [
        (None, 1, 4),
        (None, 3, 5),
        (Some(Way::Columns), 45, 9),
        (Some(Way::Passes), 375, 3),
        (Some(Way::Local), 75, 4),
    ];
    let odd = odd.map(|(way, len, batch)| Case::by(way, len, batch));
    doubled.chain(odd).collect()
}

const REAL: [Kind; 2] = [Kind::RealToComplex, Kind::ComplexToReal];

#[test]
fn real_transforms_agree_with_double_precision() {
    for case in real_ways() {
        for kind in REAL {
            check(&Case { kind, ..case.clone() });
        }
    }
}

#[test]
fn real_transforms_take_all_options() {
    for case in real_ways() {
        for kind in REAL {
            let case = Case { kind, ..case.clone() };
            let (row, result) = match kind {
                Kind::RealToComplex => (case.len, case.len / 2 + 1),
                _ => (case.len / 2 + 1, case.len),
            };
            // An odd distance: no row but the first begins where a complex number could.
            let input = Layout::rows(row + 1 + row % 2);
            let output = Layout {
                stride: 3,
                distance: 3 * result,
            };
            let short = Some(row - row / 3);
            let options = Case {
                input_len: short,
                window: true,
                output_scale: 0.5,
                ..case.clone()
            };
            check(&Case {
                input: Some(input),
                ..options.clone()
            });
            check(&Case {
                output: Some(output),
                input: Some(Layout::columns(case.batch)),
                ..options
            });
            check(&Case {
                output: Some(Layout::rows(result + 2 - result % 2)),
                input_scale: 0.25,
                ..case
            });
        }
    }
}

#[test]
fn sevens_go_every_way() {
    let split = Way::Split { height: 56, width: 49 };
    let stages = Way::Stages { height: 14, width: 21 };
    for (way, len, batch) in [
        (None, 7, 5),
        (Some(Way::Rows), 392, 3),
        (Some(Way::Columns), 98, 9),
        (Some(split), 56 * 49, 2),
        (Some(Way::Local), 63, 5),
        (Some(Way::Registers), 84, 5),
        (Some(stages), 14 * 21, 3),
        (Some(Way::Passes), 343, 4),
    ] {
        check(&Case::by(way, len, batch));
    }
}

/// Prime lengths, and twice, and squares of primes. Those of real transforms are also pairs of them.
#[test]
fn lengths_with_any_factor_agree_with_double_precision() {
    for (len, batch) in [
        (11, 13),
        (13, 1),
        (22, 5),
        (121, 3),
        (127, 9),
        (257, 2),
        (1009, 3),
        (2 * 2003, 2),
        (10_007, 1),
    ] {
        check(&Case::new(len, batch));
    }
    for (len, batch) in [(13, 1), (22, 5), (127, 9), (2 * 2003, 2)] {
        for kind in [Kind::RealToComplex, Kind::ComplexToReal] {
            check(&Case {
                kind,
                ..Case::new(len, batch)
            });
        }
    }
}

#[test]
fn long_rows_keep_to_the_bound() {
    for (len, batch) in [(1 << 14, 3), (1 << 16, 1), (120_000, 1), (117_649, 1), (1 << 20, 1)] {
        check(&Case {
            window: true,
            ..Case::new(len, batch)
        });
    }
}

#[test]
fn a_large_prime_length_is_as_exact() {
    check(&Case::new(100_003, 1));
    check(&Case {
        kind: Kind::RealToComplex,
        ..Case::new(2 * 99_991, 1)
    });
}

/// Convolutions that go each way which the device chooses, and with more room than they need.
#[test]
fn a_convolution_may_be_of_any_length_and_way() {
    for (len, convolution, batch) in [
        (1, 1, 3),
        (5, 9, 4),
        (12, 23 + 2, 9),
        (17, 49, 20),
        (100, 256, 5),
        (300, 1000, 3),
        (7000, 15_625, 2),
        (9000, 20_480, 1),
    ] {
        let case = Case::by(Some(Way::Bluestein { convolution }), len, batch);
        check(&case);
        check(&Case {
            kind: Kind::ComplexToReal,
            ..Case { len: 2 * len, ..case }
        });
    }
}

#[test]
fn any_length_takes_all_options() {
    for (len, batch) in [(19, 9), (2 * 61, 3), (1009, 150)] {
        for kind in [Kind::Complex, Kind::RealToComplex, Kind::ComplexToReal] {
            let (row, result) = match kind {
                Kind::RealToComplex => (len, len / 2 + 1),
                Kind::ComplexToReal => (len / 2 + 1, len),
                _ => (len, len),
            };
            let case = Case {
                kind,
                window: true,
                input_scale: 2.0,
                output_scale: 0.5,
                ..Case::new(len, batch)
            };
            let short = Some(row - row / 4);
            check(&Case {
                input_len: short,
                input: Some(Layout::rows(row)),
                output: Some(Layout::rows(result + 1)),
                ..case.clone()
            });
            check(&Case {
                input: Some(Layout::columns(batch + 1)),
                output: Some(Layout {
                    stride: 2,
                    distance: 2 * result,
                }),
                ..case
            });
        }
    }
    let layout = Some(Layout::rows(143 + 1));
    check(&Case {
        input: layout,
        output: layout,
        input_len: Some(100),
        ..Case::new(143, 5)
    });
}

#[test]
fn a_way_that_does_not_take_a_length_says_why() {
    for (builder, words) in [
        (
            Plan::builder(22).way(Way::Passes),
            "the length 22 has another prime factor than 2, 3, 5 and 7; leave the way out",
        ),
        (Plan::builder(15).way(Way::Rows), "multiple of 8"),
        (
            Plan::builder(22).way(Way::Bluestein { convolution: 42 }),
            "from 43 to 4294967295",
        ),
        (
            Plan::builder(22).way(Way::Bluestein { convolution: 44 }),
            "the length 44 has another prime factor",
        ),
        (
            Plan::builder((1 << 31) + 11),
            "factors than 2, 3, 5 and 7 is 2147483659, more than the limit of 2147483648",
        ),
    ] {
        let text = refusal(&builder);
        assert!(text.contains(words), "{text}");
    }
}

/// What a plan of any length owns: a convolution's row between its two transforms, for the rows that are done at once.
#[test]
fn the_scratch_memory_of_a_convolution_is_stated() {
    let bench = bench();
    let plan = Plan::builder(1009).batch(2).way(Way::Bluestein { convolution: 2048 });
    let plan = plan.build(&bench.context, &bench.programs).unwrap();
    let parts = plan.scratch_bytes(false) / (2 * 2048 * 8);
    assert!(parts >= 1 && plan.scratch_bytes(false) == parts * 2 * 2048 * 8);
    let schedule = plan.schedule(Direction::Forward, false).unwrap();
    assert_eq!(schedule.scratch * 8, plan.scratch_bytes(false));
    assert_eq!(
        Plan::builder(64)
            .build(&bench.context, &bench.programs)
            .unwrap()
            .scratch_bytes(true),
        0
    );
}

#[test]
fn a_real_transform_has_one_direction_and_its_own_memory() {
    let bench = bench();
    for (kind, wrong, right) in [
        (Kind::RealToComplex, Direction::Inverse, Direction::Forward),
        (Kind::ComplexToReal, Direction::Forward, Direction::Inverse),
    ] {
        let plan = Plan::builder(60)
            .kind(kind)
            .build(&bench.context, &bench.programs)
            .unwrap();
        assert!(launch_refusal(&plan, wrong, false).contains("plan "));
        assert!(plan.prepare(wrong).is_err());
        assert!(launch_refusal(&plan, right, true).contains("different memory"));
    }
}

#[test]
fn the_bytes_that_a_plan_moves_are_those_of_its_rows() {
    let bench = bench();
    let plan = |builder: Builder| builder.way(Way::Passes).build(&bench.context, &bench.programs).unwrap();
    let complex = plan(Plan::builder(256).batch(3));
    assert_eq!((complex.passes(), complex.bytes_moved()), (2, 3 * 2 * 256 * 8));
    assert_eq!(complex.traffic(), 2 * complex.bytes_moved());
    let short = plan(Plan::builder(256).batch(3).input_len(100));
    assert_eq!(short.bytes_moved(), 3 * (100 + 256) * 8);
    assert_eq!(short.traffic(), 3 * (100 + 256 + 256 + 256) * 8);
    // The real transform's complex one has half its length, and a kernel completes it in the output.
    let real = plan(Plan::builder(512).batch(3).real_to_complex());
    assert_eq!((real.passes(), real.bytes_moved()), (3, 3 * (512 * 4 + 257 * 8)));
    assert_eq!(real.traffic(), 3 * (512 * 4 + 2 * 256 * 8 + 3 * 257 * 8));
    assert_eq!(real.scratch_bytes(false), 3 * 256 * 8);
}

fn refusal(builder: &Builder) -> String {
    let bench = bench();
    let error = builder
        .build(&bench.context, &bench.programs)
        .expect_err("it is refused");
    let text = error.to_string();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn what_does_not_fit_is_refused_by_name_with_a_remedy() {
    let plan = || Plan::builder(60).batch(4);
    let layout = |stride, distance| Layout { stride, distance };
    for (builder, words) in [
        (Plan::builder(0), "the length of an FFT must not be zero"),
        (plan().batch(0), "the number of transforms must not be zero"),
        (plan().input_len(0), "the length of an input row must not be zero"),
        (
            plan().input_len(61),
            "`input_len`: a row of 61 numbers is longer than the 60",
        ),
        (plan().complex_to_real().input_len(32), "longer than the 31"),
        (plan().input(layout(0, 1)), "`input`: a stride or distance of 0"),
        (plan().output(layout(1, 0)), "`output`: a stride or distance of 0"),
        (
            plan().output(layout(1, 59)),
            "rows 0 and 1 of 60 numbers write to the same place; use a distance of at least 60 or a stride of at least 178",
        ),
        (plan().output(layout(3, 1)), "rows 0 and 3 of 60 numbers"),
        (
            plan().window(&[1.0; 59]),
            "`window`: it has 59 factors, but an input row has 60 numbers",
        ),
        (plan().input_len(20).window(&[1.0; 60]), "an input row has 20 numbers"),
        (plan().window(&[f32::NAN; 60]), "`window`: factor 0 is NaN"),
        (
            plan().scale_input(f32::INFINITY),
            "`scale_input`: it is inf; use a finite factor",
        ),
        (plan().scale_output(f32::NAN), "`scale_output`: it is NaN"),
        (
            plan().input(layout(usize::MAX, 1)),
            "the data of an FFT is 4 x 60 complex numbers",
        ),
        (
            plan().output(layout(1, usize::MAX / 3)),
            "the data of an FFT is 4 x 60 complex numbers",
        ),
        (Plan::builder(1 << 20).batch(usize::MAX / 2), "the data of an FFT is"),
        // Fits into the address space, but into no device's memory.
        (
            Plan::builder(32768).batch(1 << 40),
            "the data of an FFT is 1099511627776 x 32768 complex numbers, 288230376151711744 bytes, more than",
        ),
        (
            Plan::builder(1 << 33),
            "the length of an FFT is 8589934592, more than the limit of 4294967295",
        ),
    ] {
        let text = refusal(&builder);
        assert!(text.contains(words), "{text}");
    }
}

fn launch_refusal(plan: &Plan, direction: Direction, in_place: bool) -> String {
    let bench = bench();
    let len = plan.input().bytes().max(plan.output().bytes());
    let [from, to] = [(); 2].map(|()| RegularBuffer::<u8>::new(&bench.context, len).unwrap());
    let to = if in_place { &from } else { &to };
    // SAFETY: both hold the plan's numbers.
    let refused = unsafe { plan.enqueue(&bench.queue, direction, from.arg(), to.arg()) };
    let text = refused.expect_err("it is refused").to_string();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn layouts_that_differ_are_refused_in_place() {
    let bench = bench();
    let plan = Plan::builder(60).batch(4).input_len(50);
    let plan = plan.build(&bench.context, &bench.programs).unwrap();
    let text = launch_refusal(&plan, Direction::Forward, true);
    assert!(
        text.contains("same layout") && text.contains("distances 50 and 60"),
        "{text}"
    );
    assert!(plan.schedule(Direction::Forward, true).is_err());
}

#[test]
fn memory_that_overlaps_is_refused() {
    let bench = bench();
    let plan = Plan::builder(16)
        .batch(2)
        .build(&bench.context, &bench.programs)
        .unwrap();
    let (data, bytes) = (0x1000, 2 * 16 * 8);
    for out in [data, data + bytes, data - bytes] {
        plan.check_apart(data, out).unwrap();
    }
    for out in [data + bytes - 8, data - bytes + 8, data + 8] {
        let text = plan.check_apart(data, out).unwrap_err().to_string();
        assert!(
            text.contains("256 bytes of data") && text.contains("separate memory"),
            "{text}"
        );
    }
    if common::has(&bench.context, clmgr::SvmCapabilities::COARSE) {
        let memory = clmgr::SvmBuffer::<f32>::coarse(&bench.context, 200).unwrap();
        let clmgr::Arg::Svm(first) = memory.arg() else {
            panic!("not a pointer")
        };
        let second = clmgr::Arg::Svm(first.wrapping_byte_add(64));
        // SAFETY: it is refused.
        let refused = unsafe { plan.enqueue(&bench.queue, Direction::Forward, memory.arg(), second) };
        assert!(refused.unwrap_err().to_string().contains("overlap"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_options_agree_with_double_precision(case in cases()) {
        check(&case);
    }
}

/// Lengths that the kernels take, batches, and layouts with gaps.
fn cases() -> impl Strategy<Value = Case> {
    let smooth = (0u32..7, 0u32..3, 0u32..2, 0u32..2).prop_map(|(twos, threes, fives, sevens)| {
        2usize.pow(twos) * 3usize.pow(threes) * 5usize.pow(fives) * 7usize.pow(sevens)
    });
    let len = prop_oneof![smooth, 1usize..3000];
    let kind = prop_oneof![
        Just(Kind::Complex),
        Just(Kind::RealToComplex),
        Just(Kind::ComplexToReal)
    ];
    (
        len,
        1usize..9,
        kind,
        any::<[bool; 4]>(),
        0.0..1.0f64,
        1usize..4,
        1usize..4,
    )
        .prop_map(
            |(len, batch, kind, [window, scaled, columns, gaps], part, in_stride, out_stride)| {
                let mut case = Case {
                    kind,
                    window,
                    ..Case::new(len, batch)
                };
                let (row, result) = match kind {
                    Kind::Complex => (len, len),
                    Kind::RealToComplex => (len, len / 2 + 1),
                    _ => (len / 2 + 1, len),
                };
                case.input_len = Some(1 + (part * row as f64) as usize).filter(|&short| short < row);
                if scaled {
                    (case.input_scale, case.output_scale) = (0.75, 1.0 / len as f32);
                }
                if gaps {
                    case.input = Some(match columns {
                        true => Layout::columns(batch + in_stride),
                        false => Layout {
                            stride: in_stride,
                            distance: in_stride * row + 1,
                        },
                    });
                    case.output = Some(Layout {
                        stride: out_stride,
                        distance: out_stride * result + in_stride - 1,
                    });
                }
                case
            },
        )
}
