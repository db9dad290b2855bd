//! The stage clock: wall time of every stage of every iteration, and the copies counted meanwhile.

use std::ops::AddAssign;
use std::time::{Duration, Instant};

use interop::{Bridge, Counts};
use serde::Serialize;

use crate::Result;
use crate::jobs::Plant;

/// Which of the two APIs did a stage's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ApiName {
    /// OpenCL.
    OpenCl,
    /// HIP, rocBLAS or rocSOLVER.
    Hip,
}

impl std::fmt::Display for ApiName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::OpenCl => "opencl",
            Self::Hip => "hip",
        })
    }
}

/// One stage of a pipeline as it is reported.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stage {
    /// What the stage does.
    pub name: String,
    /// The API that does it.
    pub api: ApiName,
    /// Median wall time of the stage, its wait at the end included, in microseconds.
    pub median_us: f64,
    /// Memory traffic of the stage's algorithm (one read and one write of what it touches) per second, in 10^9 bytes.
    pub gb_s: f64,
    /// What the limit is a limit of.
    pub limit: Limit,
    /// The time that the limit leaves for the stage, as a percentage of `median_us`.
    pub percent_of_limit: f64,
}

/// The lower bound on a stage's time: of its memory traffic and its operations, each at the measured rate, the one that
/// takes longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// The memory's bandwidth.
    Memory,
    /// The rate of a large complex product.
    Arithmetic,
}

/// Rates measured on the device that the stages ran on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// Memory traffic in 10^9 bytes a second.
    pub gb_s: f64,
    /// Operations of a large complex product in 10^9 a second; `None` where no stage counts any.
    pub gflop_s: Option<f64>,
}

/// The work that a stage's algorithm requires.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// Memory traffic: one read and one write of whatever is touched.
    pub bytes: u64,
    /// Additions and multiplications of real numbers; 0 where the traffic always takes longer.
    pub operations: u64,
}

impl From<u64> for Work {
    fn from(bytes: u64) -> Self {
        Self { bytes, operations: 0 }
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, more: Self) {
        self.bytes += more.bytes;
        self.operations += more.operations;
    }
}

#[derive(Clone, Debug)]
struct Samples {
    name: String,
    api: ApiName,
    work: Work,
    times: Vec<Duration>,
}

/// Times the stages of a loop. The first iterations warm up (kernels get compiled, pages get touched) and are not kept.
#[derive(Clone, Debug)]
pub struct StageTimer {
    iterations: usize,
    warmup: usize,
    /// Iterations that a call of the body makes.
    at_once: u32,
    done: usize,
    stages: Vec<Samples>,
    whole: Vec<Duration>,
    started: Instant,
    plant: Option<ApiName>,
}

impl StageTimer {
    /// A clock for `warmup` iterations that are forgotten and then `iterations` (at least one) that are kept.
    pub fn new(iterations: usize, warmup: usize) -> Self {
        Self {
            iterations: iterations.max(1),
            warmup,
            at_once: 1,
            done: 0,
            stages: Vec::new(),
            whole: Vec::new(),
            started: Instant::now(),
            plant: None,
        }
    }

    /// Lets [`run`](Self::run) copy a little memory through `api` in every iteration, to show that the counters see it.
    #[must_use]
    pub fn plant(mut self, api: Option<ApiName>) -> Self {
        self.plant = api;
        self
    }

    /// For a body that makes `count` iterations a call (at least one): times are kept as those of one iteration, and
    /// the number of iterations is rounded up to whole calls.
    #[must_use]
    pub fn at_once(mut self, count: u32) -> Self {
        self.at_once = count.max(1);
        self.iterations = self.iterations.div_ceil(self.at_once as usize);
        self
    }

    /// How many iterations are kept.
    pub fn iterations(&self) -> usize {
        self.iterations * self.at_once as usize
    }

    /// How many iterations were made so far, those to warm up included.
    pub fn steps(&self) -> usize {
        self.done * self.at_once as usize
    }

    /// Runs the whole loop: `warmup` calls of `body`, then the timed ones; returns what was copied during the timed
    /// ones.
    ///
    /// # Errors
    /// The first error of `body`.
    pub fn run(&mut self, bridge: &Bridge, mut body: impl FnMut(&mut Self) -> Result<()>) -> Result<Counts> {
        self.run_while(bridge, |timer| body(timer).map(|()| true))
    }

    /// As [`run`](Self::run), but ends where `body` returns false, having done nothing: the number of iterations is
    /// then that of those before.
    ///
    /// # Errors
    /// The first error of `body`.
    pub fn run_while(&mut self, bridge: &Bridge, mut body: impl FnMut(&mut Self) -> Result<bool>) -> Result<Counts> {
        let plant = self.plant.map(|api| Plant::new(bridge, api)).transpose()?;
        for _ in 0..self.warmup {
            if !body(self)? {
                break;
            }
            self.iteration_done();
        }
        let before = bridge.meter().snapshot();
        for done in 0..self.iterations {
            self.begin();
            if !body(self)? {
                self.iterations = done;
                break;
            }
            self.iteration_done();
            if let Some(plant) = &plant {
                plant.copy()?;
            }
        }
        Ok(bridge.meter().snapshot().since(&before))
    }

    /// Begins the iteration now: what it waited for before is no part of it.
    pub fn begin(&mut self) {
        self.started = Instant::now();
    }

    /// Time since the iteration began.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Keeps the wall time of a stage. `work` is what its algorithm has to do; a number is its memory traffic in bytes.
    pub(crate) fn keep(&mut self, name: &str, api: ApiName, work: impl Into<Work>, elapsed: Duration) {
        if self.done < self.warmup {
            return;
        }
        let elapsed = elapsed / self.at_once;
        match self
            .stages
            .iter_mut()
            .find(|stage| stage.name == name && stage.api == api)
        {
            Some(stage) => stage.times.push(elapsed),
            None => self.stages.push(Samples {
                name: name.to_owned(),
                api,
                work: work.into(),
                times: vec![elapsed],
            }),
        }
    }

    /// Marks the end of an iteration ([`run`](Self::run) does it by itself).
    pub fn iteration_done(&mut self) {
        if self.done >= self.warmup {
            self.whole.push(self.started.elapsed() / self.at_once);
        }
        self.done += 1;
        self.started = Instant::now();
    }

    /// Whether a stage counts operations, so their rate is a limit.
    pub fn counts_operations(&self) -> bool {
        self.stages.iter().any(|stage| stage.work.operations > 0)
    }

    /// The stages in the order in which they first ran, against the rates measured where they did.
    pub fn stages(&self, rates: Rates) -> Vec<Stage> {
        // 10^9 a second is 10^3 a microsecond; a rate that is not known leaves no time
        let at_least_us = |amount: u64, rate: f64| {
            if rate > 0.0 { amount as f64 / rate / 1e3 } else { 0.0 }
        };
        self.stages
            .iter()
            .map(|stage| {
                let median_us = median_us(&stage.times);
                let memory_us = at_least_us(stage.work.bytes, rates.gb_s);
                let arithmetic_us = at_least_us(stage.work.operations, rates.gflop_s.unwrap_or(0.0));
                let of = |amount: f64| {
                    if median_us > 0.0 { amount / median_us } else { 0.0 }
                };
                Stage {
                    name: stage.name.clone(),
                    api: stage.api,
                    median_us,
                    gb_s: of(stage.work.bytes as f64 / 1e3),
                    limit: if arithmetic_us > memory_us {
                        Limit::Arithmetic
                    } else {
                        Limit::Memory
                    },
                    percent_of_limit: 100.0 * of(memory_us.max(arithmetic_us)),
                }
            })
            .collect()
    }

    /// Wall time of each whole iteration in microseconds, in the order of the loop.
    pub fn iterations_us(&self) -> impl Iterator<Item = f64> + '_ {
        self.whole.iter().map(|time| time.as_secs_f64() * 1e6)
    }

    /// Median wall time of a whole iteration in microseconds: the stages, and the hand-offs between them.
    pub fn iteration_median_us(&self) -> f64 {
        median_us(&self.whole)
    }

    /// The stages' memory traffic in one iteration.
    pub fn iteration_bytes(&self) -> u64 {
        self.stages
            .iter()
            .map(|stage| stage.work.bytes * stage.times.len() as u64)
            .sum::<u64>()
            / self.whole.len().max(1) as u64
    }
}

/// The median in microseconds: the middle value, or the mean of the two middle ones; 0 without values.
fn median_us(times: &[Duration]) -> f64 {
    let mut sorted: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e6).collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[middle],
        _ => 0.5 * (sorted[middle - 1] + sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_ignores_order_and_outliers() {
        let times = [900, 1, 3, 2, 4].map(Duration::from_micros);
        assert!((median_us(&times) - 3.0).abs() < 1e-9);
        assert!((median_us(&times[..2]) - 450.5).abs() < 1e-9);
        assert_eq!(median_us(&[]), 0.0);
    }

    #[test]
    fn a_stage_is_held_against_what_takes_longer() {
        let mut timer = StageTimer::new(1, 0);
        let work = |operations| Work {
            bytes: 4_000_000,
            operations,
        };
        for (name, operations) in [("little", 5_000_000), ("much", 40_000_000)] {
            timer.keep(name, ApiName::Hip, work(operations), Duration::ZERO);
        }
        timer
            .stages
            .iter_mut()
            .for_each(|stage| stage.times = vec![Duration::from_micros(8000)]);
        assert!(timer.counts_operations());
        // 2 ms of traffic; 1 and 8 ms of operations
        let both = Rates {
            gb_s: 2.0,
            gflop_s: Some(5.0),
        };
        let found: Vec<_> = timer
            .stages(both)
            .iter()
            .map(|s| (s.limit, s.percent_of_limit.round()))
            .collect();
        assert_eq!(found, [(Limit::Memory, 25.0), (Limit::Arithmetic, 100.0)]);
        assert_eq!(timer.stages(both)[0].gb_s, 0.5);
        let memory = Rates { gflop_s: None, ..both };
        assert!(
            timer
                .stages(memory)
                .iter()
                .all(|s| s.limit == Limit::Memory && s.percent_of_limit.round() == 25.0)
        );
        assert!(timer.stages(Rates::default()).iter().all(|s| s.percent_of_limit == 0.0));
    }

    #[test]
    fn warm_up_iterations_are_not_kept() {
        let mut timer = StageTimer::new(2, 1);
        for _ in 0..3 {
            timer.keep("work", ApiName::Hip, 8_u64, Duration::ZERO);
            timer.iteration_done();
        }
        assert_eq!(timer.stages[0].times.len(), 2);
        assert_eq!(timer.whole.len(), 2);
        assert_eq!(timer.iteration_bytes(), 8);
    }

    #[test]
    fn two_iterations_at_once_count_as_two_of_half_the_time() {
        let mut timer = StageTimer::new(3, 1).at_once(2);
        assert_eq!((timer.iterations(), timer.steps()), (4, 0));
        for _ in 0..3 {
            timer.started = Instant::now() - Duration::from_secs(20);
            timer.keep("work", ApiName::Hip, 8_u64, Duration::ZERO);
            timer.iteration_done();
        }
        assert_eq!((timer.iteration_bytes(), timer.steps()), (8, 6));
        let half = Duration::from_secs(10)..Duration::from_secs(20);
        assert!(timer.whole.iter().all(|time| half.contains(time)));
    }

    #[test]
    fn a_stage_that_runs_twice_an_iteration_counts_twice_in_the_traffic() {
        let mut timer = StageTimer::new(2, 0);
        for _ in 0..2 {
            for _ in 0..2 {
                timer.keep("work", ApiName::OpenCl, 8_u64, Duration::ZERO);
            }
            timer.iteration_done();
        }
        assert_eq!(timer.iteration_bytes(), 16);
    }
}
