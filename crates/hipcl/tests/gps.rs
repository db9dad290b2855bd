//! GPS acquisition on the devices: over many generated skies, against the reference, and on a real recording.
//!
//! The limits checked here are the ones that the documentation of `jobs::gps` states.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::OnceLock;

use hipcl::C32;
use hipcl::jobs::gps::detect::{Detector, Peak};
use hipcl::jobs::gps::geometry::{Geometry, Parameters};
use hipcl::jobs::gps::scene::{Scene, Transmitter};
use hipcl::jobs::gps::search::Search;
use hipcl::jobs::gps::truth::Verdict;
use hipcl::jobs::gps::{self, TOLERANCE, ca_code, reference};
use hipcl::jobs::{Common, Kernels, Launch, Waits};
use hipcl::timing::{ApiName, StageTimer};
use interop::{Bridge, Route};
use platform::Platform;

const PFA: f64 = 1e-3;

/// Two million samples per second: the fewest that the search takes with ease, so the worst between two samples.
fn parameters() -> Parameters {
    Parameters {
        rate_hz: 2e6,
        doppler_max_hz: 5000.0,
        doppler_step_hz: 500.0,
        blocks: 10,
        sub: 5,
    }
}

/// One bridge for all tests; without devices the test named is skipped.
fn bridge(test: &str) -> Option<&'static Bridge> {
    static BRIDGE: OnceLock<Result<Bridge, String>> = OnceLock::new();
    match BRIDGE.get_or_init(|| open(None)) {
        Ok(bridge) => Some(bridge),
        Err(reason) => {
            skip(test, reason);
            None
        }
    }
}

fn open(route: Option<Route>) -> Result<Bridge, String> {
    let selection = platform::select().map_err(|error| error.to_string())?;
    let options = interop::Options {
        route,
        ..Default::default()
    };
    Bridge::open(&selection, &options).map_err(|error| error.to_string())
}

struct Bench {
    geometry: Geometry,
    search: Search<'static>,
}

impl Bench {
    fn new(bridge: &Bridge, parameters: &Parameters) -> Self {
        Self::as_for(bridge.report().platform, bridge, parameters, Kernels::Stream)
    }

    fn on(bridge: &Bridge, parameters: &Parameters, kernels: Kernels) -> Self {
        Self::as_for(bridge.report().platform, bridge, parameters, kernels)
    }

    fn as_for(platform: Platform, bridge: &Bridge, parameters: &Parameters, kernels: Kernels) -> Self {
        let geometry = Geometry::new(parameters).unwrap();
        Self {
            search: Search::as_for(platform, bridge, &geometry, kernels, None).unwrap(),
            geometry,
        }
    }

    fn peaks(&mut self, samples: &[C32]) -> Vec<Peak> {
        self.peaks_with(samples, Waits::Stage)
    }

    fn peaks_with(&mut self, samples: &[C32], waits: Waits) -> Vec<Peak> {
        self.search.load(samples).unwrap();
        let mut timer = StageTimer::new(1, 0);
        self.search.run(&mut timer, waits).unwrap();
        self.search.peaks().unwrap()
    }

    fn verdict(&mut self, scene: &Scene) -> Verdict {
        let peaks = self.peaks(&scene.samples(self.geometry.samples()).unwrap());
        let detector = Detector::new(&self.geometry, PFA);
        Verdict::new(scene, &self.geometry, &detector, &detector.satellites(&peaks))
    }
}

/// A bound that a count of independent events of this probability exceeds in fewer than one of a thousand tests.
fn most_events(trials: usize, probability: f64) -> usize {
    let mean = trials as f64 * probability;
    (mean + 3.1 * mean.sqrt() + 1.0).floor() as usize
}

#[test]
fn satellites_are_found_with_a_bit_edge_anywhere_and_no_absent_one_is_reported() {
    let Some(bridge) = bridge("satellites_are_found_with_a_bit_edge_anywhere_and_no_absent_one_is_reported") else {
        return;
    };
    const SEEDS: usize = 100;
    let mut bench = Bench::new(bridge, &parameters());
    let strengths = [50.0, 49.0, 48.5, 48.0, 47.5, 42.0];
    let (mut missed, mut false_alarms, mut weak_found, mut certain) = (0, 0, 0, 0);
    for seed in 0..SEEDS {
        let mut scene = Scene::random(seed as u64, 2e6, 5000.0, 10, &strengths);
        for (index, transmitter) in scene.transmitters.iter_mut().enumerate() {
            transmitter.bit_edge = Some((seed + index) % 10);
        }
        let verdict = bench.verdict(&scene);
        missed += verdict.missed.len();
        false_alarms += verdict.false_alarms.len();
        weak_found += 1 - verdict.too_weak.len();
        certain += strengths.len() - 1;
    }
    println!(
        "{missed} of {certain} missed, {false_alarms} false alarms in {SEEDS} searches, {weak_found} weak ones found"
    );
    assert!(missed <= most_events(certain, 0.01), "{missed} of {certain} missed");
    assert!(
        false_alarms <= most_events(SEEDS, PFA),
        "{false_alarms} false alarms in {SEEDS} searches"
    );
    // the limit is for the worst case; at 42 dB-Hz in this company most are found
    assert!(weak_found >= 80, "{weak_found} of {SEEDS} weak ones found");
}

#[test]
fn a_satellite_at_the_limit_is_found_in_the_worst_place_with_a_bit_edge_at_every_block() {
    let Some(bridge) = bridge("a_satellite_at_the_limit_is_found_in_the_worst_place_with_a_bit_edge_at_every_block")
    else {
        return;
    };
    const SEEDS: usize = 40;
    let mut bench = Bench::new(bridge, &parameters());
    let limit = Detector::new(&bench.geometry, PFA).weakest_cn0_db_hz(&[]);
    assert!(limit < 44.5, "the documentation states 44 dB-Hz, the limit is {limit}");
    let mut missed = 0;
    for seed in 0..SEEDS {
        // half a sample from any delay, half a row from any row, and as far from a coarse bin as can be
        let coarse = (seed % 21) as f64 - 10.0;
        let transmitter = Transmitter {
            prn: (seed % 32) as u8 + 1,
            doppler_hz: coarse * 500.0 + 250.0,
            code_phase_samples: (seed * 397 % 2000) as f64 + 0.5,
            carrier_phase_cycles: 0.0,
            cn0_db_hz: limit,
            bit_edge: Some(seed % 10),
        };
        let verdict = bench.verdict(&Scene {
            rate_hz: 2e6,
            seed: seed as u64,
            transmitters: vec![transmitter],
        });
        missed += verdict.missed.len();
        assert!(verdict.false_alarms.is_empty(), "seed {seed}: {verdict:?}");
    }
    println!("{missed} of {SEEDS} missed at {limit:.1} dB-Hz");
    assert!(missed <= most_events(SEEDS, 0.01), "{missed} of {SEEDS} missed");
}

#[test]
fn a_strong_satellite_neither_hides_a_weak_one_nor_raises_a_false_alarm() {
    let Some(bridge) = bridge("a_strong_satellite_neither_hides_a_weak_one_nor_raises_a_false_alarm") else {
        return;
    };
    let mut bench = Bench::new(bridge, &parameters());
    for strong in [55.0, 60.0] {
        let weak = Detector::new(&bench.geometry, PFA).weakest_cn0_db_hz(&[strong]);
        assert!(weak <= strong - 7.0, "beside {strong} dB-Hz the limit is {weak}");
        let (mut missed, mut false_alarms) = (0, 0);
        for seed in 0..25 {
            let verdict = bench.verdict(&Scene::random(1000 + seed, 2e6, 5000.0, 10, &[strong, weak]));
            missed += verdict.missed.len();
            false_alarms += verdict.false_alarms.len();
        }
        println!("{missed} of 50 missed, {false_alarms} false alarms; {weak:.1} beside {strong} dB-Hz");
        assert!(
            missed <= most_events(50, 0.01),
            "{missed} of 50 missed beside {strong} dB-Hz"
        );
        assert!(
            false_alarms <= most_events(25, PFA),
            "{false_alarms} false alarms beside {strong} dB-Hz"
        );
    }
}

#[test]
fn noise_raises_false_alarms_as_often_as_asked_for_at_most() {
    let Some(bridge) = bridge("noise_raises_false_alarms_as_often_as_asked_for_at_most") else {
        return;
    };
    const SEEDS: usize = 100;
    let mut bench = Bench::new(bridge, &parameters());
    let (mut seldom, mut often) = (0, 0);
    for seed in 0..SEEDS {
        let noise = Scene {
            rate_hz: 2e6,
            seed: 5000 + seed as u64,
            transmitters: Vec::new(),
        };
        let peaks = bench.peaks(&noise.samples(20_000).unwrap());
        seldom += usize::from(!Detector::new(&bench.geometry, PFA).satellites(&peaks).is_empty());
        often += usize::from(!Detector::new(&bench.geometry, 0.5).satellites(&peaks).is_empty());
    }
    println!("{seldom} of {SEEDS} with {PFA}, {often} with 0.5");
    assert!(seldom <= most_events(SEEDS, PFA), "{seldom} of {SEEDS} with {PFA}");
    assert!(often <= most_events(SEEDS, 0.5), "{often} of {SEEDS} with 0.5");
    // a threshold far too high would pass everything above
    assert!(often >= SEEDS / 10, "{often} of {SEEDS} with 0.5");
}

#[test]
fn power_map_agrees_with_the_reference_for_any_shape_of_search() {
    let Some(bridge) = bridge("power_map_agrees_with_the_reference_for_any_shape_of_search") else {
        return;
    };
    let shapes = [
        parameters(),
        Parameters {
            rate_hz: 2.025e6,
            doppler_max_hz: 1000.0,
            doppler_step_hz: 400.0,
            blocks: 6,
            sub: 2,
        },
        Parameters {
            rate_hz: 5e6,
            doppler_max_hz: 700.0,
            doppler_step_hz: 1000.0,
            blocks: 4,
            sub: 1,
        },
        Parameters {
            rate_hz: 1.024e6,
            doppler_max_hz: 0.0,
            doppler_step_hz: 250.0,
            blocks: 20,
            sub: 10,
        },
    ];
    for (number, parameters) in shapes.into_iter().enumerate() {
        let mut bench = Bench::new(bridge, &parameters);
        let samples = Scene::random(11, parameters.rate_hz, 1000.0, 4, &[50.0, 45.0, 40.0])
            .samples(bench.geometry.samples())
            .unwrap();
        // Any gain of the receiver: it scales the whole search, so one shape shows it.
        let gains: &[f32] = if number == 0 { &[1.0, 1e-9, 3e7] } else { &[1.0] };
        for gain in gains {
            let samples: Vec<C32> = samples.iter().map(|x| *x * *gain).collect();
            let peaks = bench.peaks(&samples);
            let mut map = bench.search.power_map().unwrap();
            let error = reference::max_rel_error(&parameters, &samples, &map);
            println!("largest relative error {error:.1e}");
            assert!(error <= 0.1 * TOLERANCE, "{error} with {parameters:?}");
            let error = |peaks: &[Peak]| reference::max_peak_error(&bench.geometry, &map, peaks);
            assert_eq!(error(&peaks), 0.0);
            let spoil: [fn(&mut Peak); 6] = [
                |peak| peak.power *= 1.01,
                |peak| peak.delay += 1,
                |peak| peak.row = 1000,
                |peak| peak.beside[1] = f32::NAN,
                |peak| peak.around.reverse(),
                |peak| peak.median *= 1.001,
            ];
            for (which, spoil) in spoil.into_iter().enumerate() {
                let mut wrong = peaks.clone();
                // The last satellite that is not at both edges or at none.
                let one = wrong.iter_mut().rev().find(|it| it.around[0] != it.around[1]);
                spoil(one.expect("a peak with neighbours"));
                assert!(error(&wrong) > TOLERANCE, "{which}");
            }

            let largest = map.iter().copied().fold(0.0, f32::max);
            let last = map.len() - 1;
            map[last] += 3e-4 * largest;
            assert!(
                reference::max_rel_error(&parameters, &samples, &map) > TOLERANCE,
                "a wrong cell has to be seen"
            );
        }
    }
}

fn common(plant_copy: Option<ApiName>) -> Common<'static> {
    Common {
        iterations: Some(2),
        seed: 1,
        plant_copy,
        ..Common::default()
    }
}

fn small() -> gps::Options {
    gps::Options {
        rate: Some(2e6),
        ..Default::default()
    }
}

fn launched(kernels: Option<Kernels>, graph: bool, waits: Waits) -> gps::Options {
    gps::Options {
        launch: Launch { kernels, graph, waits },
        ..small()
    }
}

#[test]
fn a_direct_route_copies_nothing_and_verifies_until_a_copy_is_planted() {
    let Some(bridge) = bridge("a_direct_route_copies_nothing_and_verifies_until_a_copy_is_planted") else {
        return;
    };
    let outcome = gps::run(bridge, &common(None), &small()).unwrap();
    assert_eq!(outcome.copies.data_set, 0, "{:?}", outcome.copies.calls);
    assert_eq!(
        (outcome.expected_copies_bytes, outcome.truth_ok),
        (0, Some(true)),
        "{:?}",
        outcome.notes
    );
    assert!(outcome.verified());
    for api in [ApiName::OpenCl, ApiName::Hip] {
        let outcome = gps::run(bridge, &common(Some(api)), &small()).unwrap();
        assert!(outcome.copies.data_set > 0);
        assert!(!outcome.verified());
    }
}

#[test]
fn staging_copies_the_correlations_out_of_opencl_and_into_hip() {
    if bridge("staging_copies_the_correlations_out_of_opencl_and_into_hip").is_none() {
        return;
    }
    let staging = open(Some(Route::Staging)).unwrap();
    let options = launched(Some(Kernels::Queue), false, Waits::Stage);
    let outcome = gps::run(&staging, &common(None), &options).unwrap();
    let correlations = Geometry::new(&parameters()).unwrap().correlations() as u64;
    assert_eq!(
        outcome.copies.data_set,
        2 * 2 * 8 * correlations,
        "two iterations, two copies, 8 bytes a value"
    );
    assert!(outcome.verified());
}

#[test]
fn the_shapes_that_suit_a_card_give_the_same_peaks_and_medians() {
    let Some(bridge) = bridge("the_shapes_that_suit_a_card_give_the_same_peaks_and_medians") else {
        return;
    };
    for (blocks, sub) in [(10, 5), (6, 2)] {
        let parameters = Parameters {
            rate_hz: 2.025e6,
            doppler_max_hz: 900.0,
            blocks,
            sub,
            ..parameters()
        };
        let mut bench = Bench::as_for(Platform::Nvidia, bridge, &parameters, Kernels::Stream);
        let samples = Scene::random(5, parameters.rate_hz, 900.0, blocks, &[50.0, 45.0])
            .samples(bench.geometry.samples())
            .unwrap();
        let peaks = bench.peaks(&samples);
        let map = bench.search.power_map().unwrap();
        let error = reference::max_rel_error(&parameters, &samples, &map);
        assert!(error <= 0.1 * TOLERANCE, "{error} with {parameters:?}");
        assert_eq!(reference::max_peak_error(&bench.geometry, &map, &peaks), 0.0);
    }
}

#[test]
fn a_search_gives_the_same_bits_again() {
    let Some(bridge) = bridge("a_search_gives_the_same_bits_again") else {
        return;
    };
    let mut bench = Bench::new(bridge, &parameters());
    let samples = Scene::random(3, 2e6, 5000.0, 10, &[50.0, 45.0])
        .samples(20_000)
        .unwrap();
    let first = bench.peaks(&samples);
    let other = Scene::random(4, 2e6, 5000.0, 10, &[50.0, 45.0])
        .samples(20_000)
        .unwrap();
    assert_ne!(bench.peaks(&other), first);
    assert_eq!(bench.peaks(&samples), first);
}

#[test]
fn a_search_gives_the_same_bits_on_a_queue_and_on_a_stream_however_it_is_waited_for() {
    const TEST: &str = "a_search_gives_the_same_bits_on_a_queue_and_on_a_stream_however_it_is_waited_for";
    let Some(bridge) = bridge(TEST) else { return };
    let samples = Scene::random(3, 2e6, 5000.0, 10, &[50.0, 45.0])
        .samples(20_000)
        .unwrap();
    let mut queue = Bench::on(bridge, &parameters(), Kernels::Queue);
    let expected = queue.peaks(&samples);
    let map = queue.search.power_map().unwrap();
    let mut stream = Bench::on(bridge, &parameters(), Kernels::Stream);
    for waits in [Waits::Stage, Waits::Side, Waits::Iteration] {
        let peaks = stream.peaks_with(&samples, waits);
        assert_eq!(peaks, expected, "{waits:?}");
        assert_eq!(stream.search.power_map().unwrap(), map, "{waits:?}");
    }
}

#[test]
fn samples_that_do_not_fit_are_refused() {
    let Some(bridge) = bridge("samples_that_do_not_fit_are_refused") else {
        return;
    };
    let mut bench = Bench::new(bridge, &parameters());
    for samples in [
        vec![C32::ONE; 19_999],
        vec![C32::ZERO; 20_000],
        vec![C32::new(f32::NAN, 0.0); 20_000],
        Vec::new(),
    ] {
        assert!(bench.search.load(&samples).is_err());
    }
    // and the search still works
    let verdict = bench.verdict(&Scene::random(3, 2e6, 5000.0, 10, &[50.0]));
    assert_eq!(verdict, Verdict::default());
}

#[test]
fn every_prn_is_found_as_itself() {
    let Some(bridge) = bridge("every_prn_is_found_as_itself") else {
        return;
    };
    let mut bench = Bench::new(bridge, &parameters());
    for prn in 1..=ca_code::PRNS as u8 {
        let transmitter = Transmitter {
            prn,
            doppler_hz: 311.0 * f64::from(prn) - 5000.0,
            code_phase_samples: 61.3 * f64::from(prn),
            carrier_phase_cycles: 0.1,
            cn0_db_hz: 55.0,
            bit_edge: None,
        };
        let scene = Scene {
            rate_hz: 2e6,
            seed: prn.into(),
            transmitters: vec![transmitter],
        };
        let verdict = bench.verdict(&scene);
        assert_eq!(verdict, Verdict::default(), "PRN {prn}");
    }
}

#[test]
fn the_recording_gives_its_satellites_and_no_other() {
    const TEST: &str = "the_recording_gives_its_satellites_and_no_other";
    let Some(bridge) = bridge(TEST) else { return };
    let Some(path) = recording(TEST) else { return };
    let options = gps::Options {
        input: Some(path),
        rate: Some(4e6),
        ..Default::default()
    };
    let outcome = gps::run(bridge, &common(None), &options).unwrap();
    assert!(
        outcome.verified(),
        "error {}, copies {:?}",
        outcome.max_rel_error,
        outcome.copies
    );
    assert_eq!(outcome.truth_ok, None);
    let satellites = outcome.satellites.unwrap();
    let mut found: Vec<u8> = satellites.iter().map(|satellite| satellite.prn).collect();
    found.sort_unstable();
    // 7 and 29 are there, but weak
    found.retain(|prn| ![7, 29].contains(prn));
    assert_eq!(found, [2, 11, 12, 22, 25, 31, 32]);
    // Doppler in Hz and code phase in samples of an independent double-precision search
    for (prn, doppler_hz, code_phase) in [
        (32, 900.0, 1339.0),
        (12, -200.0, 3408.0),
        (31, 5000.0, 1812.0),
        (2, 1700.0, 1033.0),
    ] {
        let satellite = satellites.iter().find(|satellite| satellite.prn == prn).unwrap();
        assert!((satellite.doppler_hz - doppler_hz).abs() <= 60.0, "{satellite:?}");
        assert!(
            (satellite.code_phase_samples - code_phase).abs() <= 1.0,
            "{satellite:?}"
        );
    }
}

#[test]
fn the_recording_read_at_a_wrong_rate_is_refused_with_the_right_one() {
    const TEST: &str = "the_recording_read_at_a_wrong_rate_is_refused_with_the_right_one";
    let Some(bridge) = bridge(TEST) else { return };
    let Some(path) = recording(TEST) else { return };
    for rate in [2e6, 2.5e6, 3.2e6] {
        let options = gps::Options {
            input: Some(path.clone()),
            rate: Some(rate),
            ..Default::default()
        };
        let error = gps::run(bridge, &common(None), &options).err().unwrap();
        assert!(error.to_string().ends_with("use --rate 4000000"), "{rate}: {error}");
    }
}

/// The real recording; without it the test named is skipped.
fn recording(test: &str) -> Option<PathBuf> {
    let Some(data) = std::env::var_os("HIPCL_TEST_DATA") else {
        skip(test, "HIPCL_TEST_DATA names no folder of test data");
        return None;
    };
    let path = PathBuf::from(data).join("gps-l1/gps_l1_4msps_10ms.cf32");
    if !path.exists() {
        skip(test, "the folder of HIPCL_TEST_DATA holds no gps-l1 recording");
        return None;
    }
    Some(path)
}

fn skip(test: &str, reason: &str) {
    println!("skipped: {test}: {reason}");
    if let Some(log) = std::env::var_os("HIPCL_SKIP_LOG") {
        let mut log = OpenOptions::new().create(true).append(true).open(log).unwrap();
        log.write_all(format!("{test}: {reason}\n").as_bytes()).unwrap();
    }
}
