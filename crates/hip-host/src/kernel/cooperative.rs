//! Cooperative launches: all blocks run at once and may wait for each other.
//!
//! Each block has its own operating-system thread, so blocks may also wait for words that others write.

use std::ops::Range;

use hip_sys::{hipError_t, hipFunction_t};
use parking_lot::{Condvar, Mutex};

use super::abi::Launch;
use super::occupancy::blocks_of_a_unit;
use super::{Arguments, Function, Kernel, Shared, blocks, function, stacks};
use crate::error::Result;
use crate::workers;

/// Where the blocks of a grid wait for each other. No block waits for one that has ended.
pub(super) struct GridBarrier {
    state: Mutex<State>,
    all_here: Condvar,
}

struct State {
    blocks: u64,
    waiting: u64,
    round: u64,
}

impl GridBarrier {
    fn new(blocks: u64) -> Self {
        Self {
            state: Mutex::new(State {
                blocks,
                waiting: 0,
                round: 0,
            }),
            all_here: Condvar::new(),
        }
    }

    pub(super) fn wait(&self) {
        let mut state = self.state.lock();
        let round = state.round;
        state.waiting += 1;
        self.go_on_if_all_are_here(&mut state);
        while state.round == round {
            self.all_here.wait(&mut state);
        }
    }

    fn leave(&self) {
        let mut state = self.state.lock();
        state.blocks -= 1;
        self.go_on_if_all_are_here(&mut state);
    }

    fn go_on_if_all_are_here(&self, state: &mut State) {
        if state.waiting == state.blocks {
            state.waiting = 0;
            state.round += 1;
            self.all_here.notify_all();
        }
    }
}

/// A block that is there until this goes, whatever ends it.
struct Attendance<'a>(&'a GridBarrier);

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Runs a whole launch, a thread for each block.
pub(super) fn run(
    function: &Function,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    arguments: &Arguments,
) -> Result {
    let launch = Launch {
        grid,
        block,
        arguments: arguments.0.as_ptr().cast(),
    };
    let launch = Shared(&launch);
    let kernel = function.entry();
    let count: u64 = grid.iter().map(|&size| u64::from(size)).product();
    let meeting = GridBarrier::new(count);
    let one = |range: Range<u64>| {
        let _here = Attendance(&meeting);
        if kernel.has_barrier != 0 {
            blocks::run_with_barriers(kernel, launch.get(), shared_bytes, range, Some(&meeting))
        } else {
            blocks::run_plain(kernel, launch.get(), shared_bytes, range, true)
        }
    };
    let one = &one;
    std::thread::scope(|scope| {
        let mut result = Ok(());
        let mut running = Vec::new();
        for index in 0..count {
            let started = std::thread::Builder::new()
                .name("hip-host block".to_owned())
                .spawn_scoped(scope, move || one(index..index + 1));
            match started {
                Ok(thread) => running.push(thread),
                Err(_) => {
                    // The blocks that do run must not wait for it.
                    meeting.leave();
                    result = Err(hipError_t::hipErrorLaunchOutOfResources);
                }
            }
        }
        for thread in running {
            let ended = thread.join();
            result = result.and(ended.unwrap_or(Err(hipError_t::hipErrorLaunchFailure)));
        }
        result
    })
}

/// Whether all blocks can be there at once.
fn check(kernel: &Kernel) -> Result {
    let threads = kernel.block.iter().product::<u32>() as usize;
    let blocks: u64 = kernel.grid.iter().map(|&size| u64::from(size)).product();
    let at_once = blocks_of_a_unit(threads, kernel.shared_bytes as usize) * workers::width();
    let function = function::find(kernel.function as hipFunction_t)?;
    let stacks = if function.entry().has_barrier != 0 {
        blocks.saturating_mul(threads as u64)
    } else {
        0
    };
    if blocks > at_once as u64 || stacks > stacks::LIMIT as u64 {
        return Err(hipError_t::hipErrorCooperativeLaunchTooLarge);
    }
    Ok(())
}

impl Kernel {
    /// The same launch with all blocks at once.
    ///
    /// # Errors
    /// `hipErrorCooperativeLaunchTooLarge` if they cannot all be there.
    pub(crate) fn into_cooperative(self) -> Result<Self> {
        check(&self)?;
        Ok(Self {
            cooperative: true,
            ..self
        })
    }
}
