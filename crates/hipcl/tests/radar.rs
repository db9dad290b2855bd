//! The radar finds what was generated, to the stated accuracy, however it is launched.

mod common;

use std::sync::LazyLock;

use common::{open, skip};
use hipcl::jobs::radar::job::Search;
use hipcl::jobs::radar::peaks::{self, Found};
use hipcl::jobs::radar::reference::Reference;
use hipcl::jobs::radar::scene::{Echo, Scene};
use hipcl::jobs::radar::{self, Shape, TOLERANCE};
use hipcl::jobs::{Common, Kernels, Launch, Waits};
use hipcl::timing::{ApiName, StageTimer};
use interop::{Bridge, Route};

static BRIDGE: LazyLock<Result<Bridge, String>> = LazyLock::new(|| open(None));

fn bridge(test: &str) -> Option<&'static Bridge> {
    BRIDGE.as_ref().map_err(|reason| skip(test, reason)).ok()
}

fn shape() -> Shape {
    Shape {
        blocks: 4,
        samples: 1200,
        pulse: 256,
        ..Shape::default()
    }
}

struct Bench {
    shape: Shape,
    scene: Scene,
    search: Search<'static>,
    waits: Waits,
}

impl Bench {
    fn new(bridge: &Bridge, kernels: Kernels, shape: &Shape, scene: Scene) -> Self {
        Self {
            search: Search::new(bridge, kernels, shape, &scene.skew, 5).unwrap(),
            shape: shape.clone(),
            scene,
            waits: Waits::Stage,
        }
    }

    fn find(&mut self, batch: u64) -> (Found, Vec<f32>) {
        self.search.load(&self.scene.batch(&self.shape, batch)).unwrap();
        self.search.run(&mut StageTimer::new(1, 0), self.waits).unwrap();
        (self.search.found().unwrap(), self.search.map().unwrap())
    }

    /// What is wrong with what was found, and its error against the reference.
    fn judge(&mut self, batch: u64) -> (Vec<String>, f64) {
        let (found, map) = self.find(batch);
        let samples = self.scene.batch(&self.shape, batch);
        let reference = Reference::new(&self.shape, &samples, &self.scene.skew);
        let error = reference.map_error(&map).max(reference.target_error(&found));
        let targets = found.targets(&self.shape);
        (peaks::compare(&self.shape, &self.scene.echoes, &targets, 5), error)
    }
}

#[test]
fn the_echoes_of_every_scene_are_found_and_the_numbers_are_the_references() {
    let Some(bridge) = bridge("the_echoes_of_every_scene_are_found_and_the_numbers_are_the_references") else {
        return;
    };
    for seed in 0..8 {
        let shape = match seed % 4 {
            0 => shape(),
            // the widest band, where the cubic between samples is worst
            1 => Shape {
                bandwidth: 8e6,
                ..shape()
            },
            2 => Shape {
                blocks: 1,
                samples: 1001,
                ..shape()
            },
            _ => Shape {
                channels: 5,
                beams: 27,
                ..shape()
            },
        };
        let scene = Scene::random(&shape, seed);
        let mut bench = Bench::new(bridge, Kernels::Stream, &shape, scene);
        let (complaints, error) = bench.judge(seed);
        assert_eq!(complaints, [""; 0], "seed {seed}");
        println!("largest error {error:.1e}");
        assert!(error <= 0.1 * TOLERANCE, "seed {seed}: {error}");
    }
}

#[test]
fn noise_alone_gives_no_target() {
    let Some(bridge) = bridge("noise_alone_gives_no_target") else {
        return;
    };
    let scene = Scene {
        echoes: Vec::new(),
        ..Scene::random(&shape(), 1)
    };
    let mut bench = Bench::new(bridge, Kernels::Stream, &shape(), scene);
    for batch in 0..20 {
        let (found, _) = bench.find(batch);
        assert_eq!(found.peaks.len(), 5);
        assert_eq!(found.targets(&shape()), [], "batch {batch}");
        let expected = found.noise / bench_noise();
        assert!((0.85..1.05).contains(&expected), "noise {expected} of what it is");
    }
}

/// Noise power of a cell by the two windows' definition.
fn bench_noise() -> f32 {
    let window = |count: usize| -> f64 {
        let weight = |n: usize| 0.54 - 0.46 * (std::f64::consts::TAU * n as f64 / (count - 1) as f64).cos();
        let sum: f64 = (0..count).map(weight).sum();
        (0..count).map(|n| weight(n).powi(2)).sum::<f64>() / (sum * sum)
    };
    (window(256) * window(8)) as f32
}

#[test]
fn the_delay_of_a_channel_is_taken_out() {
    let Some(bridge) = bridge("the_delay_of_a_channel_is_taken_out") else {
        return;
    };
    let echo = Echo {
        delay: 301.37,
        sine: 0.21,
        amplitude: 2.0,
    };
    let scene = |skew: [f64; 8]| Scene {
        echoes: vec![echo.clone()],
        skew: skew.to_vec(),
        seed: 9,
    };
    let skew = [0.5, -0.5, 2.25, -1.75, 0.1, 0.0, -3.9, 7.6];
    let mut bench = Bench::new(bridge, Kernels::Stream, &shape(), scene(skew));
    let (complaints, _) = bench.judge(0);
    assert_eq!(complaints, [""; 0]);
    // a search that knows nothing of the delays sees the echo blurred
    let samples = scene(skew).batch(&shape(), 0);
    let mut blind = Bench::new(bridge, Kernels::Stream, &shape(), scene([0.0; 8]));
    blind.search.load(&samples).unwrap();
    blind.search.run(&mut StageTimer::new(1, 0), Waits::Stage).unwrap();
    let targets = blind.search.found().unwrap().targets(&shape());
    assert!(!peaks::compare(&shape(), std::slice::from_ref(&echo), &targets, 5).is_empty());
}

#[test]
fn a_search_gives_the_same_bits_on_a_queue_on_a_stream_and_as_a_graph() {
    let Some(bridge) = bridge("a_search_gives_the_same_bits_on_a_queue_on_a_stream_and_as_a_graph") else {
        return;
    };
    let scene = Scene::random(&shape(), 5);
    let mut queue = Bench::new(bridge, Kernels::Queue, &shape(), scene.clone());
    let (first, second) = (queue.find(0), queue.find(1));
    assert_ne!(first, second);
    assert_eq!(queue.find(0), first);
    for waits in [Waits::Stage, Waits::Side, Waits::Iteration] {
        let mut stream = Bench::new(bridge, Kernels::Stream, &shape(), scene.clone());
        stream.waits = waits;
        assert!(stream.find(0) == first && stream.find(1) == second, "{waits:?}");
    }
    let mut graph = Bench::new(bridge, Kernels::Stream, &shape(), scene);
    graph.search.record().unwrap();
    assert!(graph.find(1) == second && graph.find(0) == first);
}

#[test]
fn a_wrong_cell_a_moved_peak_and_a_missing_one_are_seen() {
    let Some(bridge) = bridge("a_wrong_cell_a_moved_peak_and_a_missing_one_are_seen") else {
        return;
    };
    let scene = Scene::random(&shape(), 2);
    let samples = scene.batch(&shape(), 0);
    let reference = Reference::new(&shape(), &samples, &scene.skew);
    let mut bench = Bench::new(bridge, Kernels::Stream, &shape(), scene);
    let (found, mut map) = bench.find(0);
    assert!(reference.target_error(&found) <= TOLERANCE && found.targets(&shape()).len() >= 3);
    let spoil: [fn(&mut Found); 6] = [
        |found| found.peaks[0].power *= 1.01,
        |found| found.peaks[1].delay += 1,
        |found| found.peaks[1].beam = 1000,
        |found| found.peaks[2].later *= 1.1,
        |found| found.peaks[2].above = f32::NAN,
        |found| {
            found.peaks.remove(1);
        },
    ];
    for (number, spoil) in spoil.into_iter().enumerate() {
        let mut wrong = found.clone();
        spoil(&mut wrong);
        assert!(reference.target_error(&wrong) > TOLERANCE, "{number}");
    }
    let last = map.len() - 1;
    map[last] += 3e-4 * found.peaks[0].power;
    assert!(reference.map_error(&map) > TOLERANCE);
    assert_eq!(reference.map_error(&map[1..]), f64::INFINITY);
}

#[test]
fn what_a_single_live_channel_shows_in_every_beam_is_as_the_reference_has_it() {
    const TEST: &str = "what_a_single_live_channel_shows_in_every_beam_is_as_the_reference_has_it";
    let Some(bridge) = bridge(TEST) else { return };
    let shape = shape();
    let scene = Scene::random(&shape, 6);
    for live in [0, 3] {
        let mut samples = scene.batch(&shape, 0);
        for (row, samples) in samples.chunks_exact_mut(shape.samples).enumerate() {
            if row % shape.channels != live {
                samples.fill(hipcl::C32::ZERO);
            }
        }
        let mut bench = Bench::new(bridge, Kernels::Stream, &shape, scene.clone());
        bench.search.load(&samples).unwrap();
        bench.search.run(&mut StageTimer::new(1, 0), Waits::Stage).unwrap();
        let (found, map) = (bench.search.found().unwrap(), bench.search.map().unwrap());
        assert!(!found.targets(&shape).is_empty(), "channel {live}");
        let reference = Reference::new(&shape, &samples, &scene.skew);
        let error = reference.map_error(&map).max(reference.target_error(&found));
        assert!(error <= TOLERANCE, "channel {live}: {error}");
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

#[test]
fn nothing_is_copied_on_a_direct_route_and_what_is_planted_is_seen() {
    let Some(bridge) = bridge("nothing_is_copied_on_a_direct_route_and_what_is_planted_is_seen") else {
        return;
    };
    let options = radar::Options {
        shape: shape(),
        ..radar::Options::default()
    };
    let outcome = radar::run(bridge, &common(None), &options).unwrap();
    assert_eq!(outcome.copies.data_set, 0, "{:?}", outcome.copies.calls);
    assert_eq!(outcome.truth_ok, Some(true), "{:?}", outcome.notes);
    assert!(outcome.verified());
    for api in [ApiName::OpenCl, ApiName::Hip] {
        let outcome = radar::run(bridge, &common(Some(api)), &options).unwrap();
        assert!(outcome.copies.data_set > 0 && !outcome.verified());
    }
    let staging = open(Some(Route::Staging)).unwrap();
    let options = radar::Options {
        launch: Launch {
            kernels: Some(Kernels::Queue),
            ..Launch::default()
        },
        ..options
    };
    let outcome = radar::run(&staging, &common(None), &options).unwrap();
    // two iterations, two copies of 8 bytes for each of the padded samples
    assert_eq!(outcome.copies.data_set, 2 * 2 * 8 * 4 * 8 * 2048);
    assert!(outcome.verified());
}

#[test]
fn a_batch_of_another_size_is_refused_and_the_search_still_works() {
    let Some(bridge) = bridge("a_batch_of_another_size_is_refused_and_the_search_still_works") else {
        return;
    };
    let scene = Scene::random(&shape(), 4);
    let samples = scene.batch(&shape(), 0);
    let mut bench = Bench::new(bridge, Kernels::Stream, &shape(), scene.clone());
    assert!(bench.search.load(&samples[1..]).is_err());
    assert!(Search::new(bridge, Kernels::Stream, &shape(), &scene.skew[1..], 5).is_err());
    let (complaints, _) = bench.judge(0);
    assert_eq!(complaints, [""; 0]);
}
