//! How much of a measurement a device has time for: an emulated one is ten thousand times slower than a card.

use std::time::{Duration, Instant};

use crate::Result;

/// Time budget for the samples of one figure. A card and a CPU need less for all of them.
const SAMPLING: Duration = Duration::from_millis(400);
/// The fewest samples, also on a slow device.
const FEWEST: usize = 3;

/// The largest of the sizes `least`, 8 * `least`, ... and `most` whose `runs` runs `budget` allows.
///
/// `once` does the work of one size. Each size is done twice, and the second is timed, as the first may load what it
/// needs.
pub(super) fn affordable(
    budget: Duration,
    least: usize,
    most: usize,
    runs: usize,
    mut once: impl FnMut(usize) -> Result<()>,
) -> Result<usize> {
    let mut size = least.min(most);
    while size < most {
        once(size)?;
        let start = Instant::now();
        once(size)?;
        let next = most.min(8 * size);
        let expected = start.elapsed().as_secs_f64() * (next as f64 / size as f64) * runs as f64;
        if expected > budget.as_secs_f64() {
            break;
        }
        size = next;
    }
    Ok(size)
}

/// Samples to take, each `true` if it counts: `warm_up` that do not, then `count`, or fewer once the budget is spent.
pub(super) fn samples(warm_up: usize, count: usize) -> Samples {
    Samples {
        warm_up,
        counted: 0,
        count,
        until: Instant::now() + SAMPLING,
    }
}

pub(super) struct Samples {
    /// Those to come that do not count.
    warm_up: usize,
    counted: usize,
    count: usize,
    until: Instant,
}

impl Iterator for Samples {
    type Item = bool;

    fn next(&mut self) -> Option<bool> {
        let is_late = Instant::now() >= self.until;
        if self.warm_up > 0 && !is_late {
            self.warm_up -= 1;
            return Some(false);
        }
        if self.counted >= self.count || (is_late && self.counted >= FEWEST) {
            return None;
        }
        self.counted += 1;
        Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_grows_while_its_runs_fit_the_budget() {
        let sizes = |budget: Duration, per_unit: Duration| {
            let mut seen = Vec::new();
            let size = affordable(budget, 1, 100, 10, |size| {
                seen.push(size);
                let end = Instant::now() + per_unit * size as u32;
                while Instant::now() < end {}
                Ok(())
            });
            (size.expect("no failure"), seen)
        };
        let (hour, ms) = (Duration::from_secs(3600), Duration::from_millis(1));
        assert_eq!(sizes(hour, Duration::ZERO), (100, vec![1, 1, 8, 8, 64, 64]));
        // 10 runs of 8 units are 80 ms at least.
        assert_eq!(sizes(79 * ms, ms), (1, vec![1, 1]));
        let unused = affordable(Duration::ZERO, 8, 5, 10, |_| unreachable!("nothing to grow"));
        assert_eq!(unused.expect("no failure"), 5);
    }

    #[test]
    fn a_slow_device_takes_fewer_samples_and_no_warm_up_that_takes_them_all() {
        let usual: Vec<bool> = samples(2, 4).collect();
        assert_eq!(usual, [false, false, true, true, true, true]);
        let late = Samples {
            warm_up: 5,
            counted: 0,
            count: 100,
            until: Instant::now(),
        };
        assert_eq!(late.collect::<Vec<_>>(), [true; FEWEST]);
        let few = Samples {
            warm_up: 0,
            counted: 0,
            count: 1,
            until: Instant::now(),
        };
        assert_eq!(few.count(), 1);
    }
}
