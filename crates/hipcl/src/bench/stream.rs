//! Blocks that arrive like a network's: through pinned memory into an OpenCL stage and a HIP stage, and only a small
//! result out.
//!
//! First as fast as the stages take them, by number of slots. Then at four fifths of that, from a sender that does not
//! wait: a block that finds the receiver's ring full is lost, and counted.

use std::sync::mpsc::{self, TrySendError};
use std::time::{Duration, Instant};

use super::line::{Better, Line};
use super::stages::{BYTES, Run, Source, Stages};
use super::{Figures, Setup};
use crate::Result;

const SLOTS: [usize; 4] = [1, 2, 4, 8];
/// Blocks that the receiver holds before one is lost.
const RING: usize = 4;
const RUNS: usize = 5;
const ON_HOST: usize = 16;
const ON_A_CARD: usize = 400;

pub(super) fn measure(setup: &Setup) -> Result<Figures> {
    let stages = Stages::new(&setup.bridge)?;
    let on_host = setup.bridge.report().platform.facts().is_model;
    let blocks = if on_host { ON_HOST } else { ON_A_CARD };
    let limit = stages.upload_limit()?;
    let mut found = Figures::default();
    let (mut best, mut best_slots) = (0.0, 1);
    for slots in SLOTS {
        let mut rates = Vec::new();
        for _ in 0..RUNS {
            let places = stages.places(slots, Source::Host)?;
            let run = stages.run(places, Source::Host, &mut (0..blocks))?;
            rates.push(rate(&run));
        }
        let line = Line::of(format!("{slots} slots, sustained"), "GB/s", Better::Higher, rates)
            .against(limit, "upload from pinned memory alone");
        if line.value > best {
            (best, best_slots) = (line.value, slots);
        }
        found.lines.push(line);
    }
    let asked = 0.8 * best;
    let (mut rates, mut sent, mut lost) = (Vec::new(), 0, 0);
    for _ in 0..RUNS {
        let (run, missed) = run_paced(&stages, best_slots, blocks, asked)?;
        rates.push(rate(&run));
        sent += blocks as u64;
        lost += missed;
    }
    found.lines.push(
        Line::of(
            format!("{best_slots} slots, from a sender that does not wait"),
            "GB/s",
            Better::Higher,
            rates,
        )
        .against(asked, "what was sent"),
    );
    found.notes.push(format!(
        "{lost} of {sent} blocks of {} MiB lost at {asked:.1} GB/s, with {RING} blocks between sender and pipeline; every block that came through was checked on the device",
        BYTES >> 20
    ));
    Ok(found)
}

fn rate(run: &Run) -> f64 {
    run.right as f64 * BYTES as f64 / run.elapsed.as_secs_f64() / 1e9
}

/// Blocks from a sender that sends at a fixed pace, whether or not there is room; and how many found none.
fn run_paced(stages: &Stages, slots: usize, blocks: usize, gb_s: f64) -> Result<(Run, u64)> {
    let places = stages.places(slots, Source::Host)?;
    let interval = Duration::from_secs_f64(BYTES as f64 / gb_s / 1e9);
    let (sender, receiver) = mpsc::sync_channel(RING);
    std::thread::scope(|scope| {
        let sending = scope.spawn(move || {
            let (begin, mut lost) = (Instant::now(), 0);
            for number in 0..blocks {
                let due = begin + interval * number as u32;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                match sender.try_send(number) {
                    Ok(()) => {}
                    Err(TrySendError::Full(_)) => lost += 1,
                    Err(TrySendError::Disconnected(_)) => break,
                }
            }
            lost
        });
        let run = stages.run(places, Source::Host, &mut receiver.into_iter());
        // A sender whose receiver is gone ends by itself.
        let lost = sending.join().unwrap_or(0);
        Ok((run?, lost))
    })
}
