//! Direction finding over many random scenes, against its stated limits for misses and false alarms.

mod common;

use hipcl::jobs::Common;
use hipcl::jobs::capon::{self, Options, detect, scene};

#[derive(Default)]
struct Tally {
    emitters: usize,
    missed: usize,
    invented: usize,
    off: usize,
}

/// Runs the pipeline on the scenes of these seeds.
fn tally(bridge: &interop::Bridge, options: &Options, seeds: std::ops::Range<u64>) -> Tally {
    let shape = scene::Shape {
        elements: options.elements,
        segments: options.segments,
        channels: options.channels,
    };
    let mut tally = Tally::default();
    for seed in seeds {
        let common = Common {
            iterations: Some(1),
            seed,
            ..Common::default()
        };
        let outcome = capon::run(bridge, &common, options).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(
            outcome.max_rel_error <= outcome.tolerance,
            "seed {seed}: error {:e}",
            outcome.max_rel_error
        );
        assert_eq!(outcome.copies.data_set, outcome.expected_copies_bytes, "seed {seed}");

        let truth = scene::generate(shape, options.channel, seed).emitters;
        let tops: Vec<(f64, f64)> = outcome
            .emitters
            .iter()
            .flatten()
            .map(|found| (found.angle_deg.to_radians().sin(), 10f64.powf(found.power_db / 10.0)))
            .collect();
        let complaints = capon::compare(&truth, &tops, shape, options.loading.into());
        assert_eq!(outcome.truth_ok, Some(complaints.is_empty()), "seed {seed}");
        tally.emitters += truth.len();
        for complaint in complaints {
            println!("seed {seed}: {complaint}");
            match complaint {
                text if text.contains("missed") => tally.missed += 1,
                text if text.contains("no emitter") => tally.invented += 1,
                _ => tally.off += 1,
            }
        }
    }
    tally
}

/// At most 1 % missed or misplaced, and as many false alarms as 1 scene in 1000 makes likely.
#[track_caller]
fn assert_within_limits(tally: &Tally) {
    let Tally {
        emitters,
        missed,
        invented,
        off,
    } = tally;
    println!("{emitters} emitters: {missed} missed, {off} misplaced, {invented} invented");
    assert!(missed + off <= emitters / 100);
    assert!(*invented <= 1);
}

#[test]
fn a_hundred_scenes_are_found_within_the_limits() {
    let bridge = match common::open(None) {
        Ok(bridge) => bridge,
        Err(_) => {
            return assert!(!common::ready("a_hundred_scenes_are_found_within_the_limits"));
        }
    };
    let options = Options {
        elements: 32,
        segments: 256,
        channels: 8,
        channel: 3,
        ..Options::default()
    };
    let tally = tally(&bridge, &options, 1000..1120);
    assert!(tally.emitters >= 4 * 100, "the scenes are as rich as they should be");
    assert_within_limits(&tally);
}

#[test]
fn loading_finds_the_emitters_from_fewer_snapshots_than_elements() {
    let bridge = match common::open(None) {
        Ok(bridge) => bridge,
        Err(_) => {
            return assert!(!common::ready(
                "loading_finds_the_emitters_from_fewer_snapshots_than_elements"
            ));
        }
    };
    let options = Options {
        elements: 64,
        segments: 48,
        channels: 8,
        channel: 3,
        loading: 0.05,
        ..Options::default()
    };
    let tally = tally(&bridge, &options, 0..10);
    // too few snapshots for the stated limits, which are those without loading
    assert!(tally.missed + tally.off + tally.invented <= tally.emitters / 5);
}

#[test]
fn scenes_of_the_full_array_are_found_within_the_limits() {
    let bridge = match common::open(None) {
        Ok(bridge) => bridge,
        Err(_) => {
            return assert!(!common::ready("scenes_of_the_full_array_are_found_within_the_limits"));
        }
    };
    assert_within_limits(&tally(&bridge, &Options::default(), 0..3));
}

#[test]
fn noise_alone_gives_no_emitter() {
    // the statistics of the threshold, by the reference: no device is needed
    let shape = scene::Shape {
        elements: 24,
        segments: 96,
        channels: 4,
    };
    let grid = detect::coarse_grid(0.2);
    let threshold = detect::threshold(shape.elements, shape.segments, grid.len());
    let alarms = (0..200)
        .filter(|&seed| {
            let scene = scene::noise_only(shape, 1, seed);
            let reference = capon::reference::Reference::new(&scene.samples, shape, 1, 0.0).expect("regular");
            let power: Vec<f32> = grid.iter().map(|&sine| reference.power(sine) as f32).collect();
            !detect::peaks(&power, threshold * detect::floor(&power)).is_empty()
        })
        .count();
    // one scene in 1000 is allowed; three of 200 would be a threshold that is too low
    assert!(alarms < 3, "{alarms} false alarms");
}

#[test]
fn a_covariance_made_in_parts_gives_the_same_emitters() {
    let bridge = match common::open(None) {
        Ok(bridge) => bridge,
        Err(reason) => return common::skip("a covariance in parts", &reason),
    };
    let options = Options {
        elements: 65,
        segments: 240,
        channels: 8,
        channel: 3,
        ..Options::default()
    };
    let common = Common {
        iterations: Some(1),
        ..Common::default()
    };
    let card = platform::Platform::Nvidia;
    let outcome = capon::run_as_for(card, &bridge, &common, &options).unwrap();
    assert!(outcome.verified(), "error {:e}", outcome.max_rel_error);
}
