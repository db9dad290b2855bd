//! Blocks: as plain loops where threads never wait for each other, as coroutines where they may.

use std::cell::RefCell;
use std::ffi::c_void;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use hip_sys::hipError_t;

use super::abi::{Entry, Launch, Stop, Surroundings};
use super::cooperative::GridBarrier;
use super::stacks::Stacks;
use crate::device::{MAX_THREADS_PER_BLOCK, WARP};
use crate::error::Result;
use crate::sanitizer;

/// What an operating-system thread keeps between blocks.
#[derive(Default)]
struct Workbench {
    shared: Vec<u128>,
    exchange: Vec<u128>,
}

thread_local! {
    static WORKBENCH: RefCell<Workbench> = RefCell::default();
}

fn with_workbench<R>(body: impl FnOnce(&mut Workbench) -> R) -> R {
    // Taken rather than borrowed: a failure inside then costs the kept memory, not the next launch.
    let mut bench = WORKBENCH.take();
    let result = body(&mut bench);
    WORKBENCH.set(bench);
    result
}

impl Workbench {
    fn shared(&mut self, bytes: u32) -> *mut c_void {
        let slots = (bytes as usize).div_ceil(size_of::<u128>());
        let sanitizer = sanitizer::runtime();
        if let Some(sanitizer) = sanitizer {
            let (start, end) = self.shared_range();
            sanitizer.allow(start, end);
        }
        if self.shared.len() < slots {
            self.shared.resize(slots, 0);
        }
        if let Some(sanitizer) = sanitizer {
            // What an earlier launch with more shared memory left behind is not this one's.
            let (start, end) = self.shared_range();
            sanitizer.forbid(start + bytes as usize, end);
        }
        self.shared.as_mut_ptr().cast()
    }

    fn shared_range(&self) -> (usize, usize) {
        let range = self.shared.as_ptr_range();
        (range.start as usize, range.end as usize)
    }
}

/// Runs the blocks of `blocks`, each as a loop over its threads.
pub(super) fn run_plain(
    entry: &Entry,
    launch: &Launch,
    shared_bytes: u32,
    blocks: std::ops::Range<u64>,
    cooperative: bool,
) -> Result {
    with_workbench(|bench| {
        let mut here = Surroundings {
            shared: bench.shared(shared_bytes),
            stop: None,
            exchange: std::ptr::null_mut(),
            lanes: 0,
            missed_barrier: 0,
            cooperative: u32::from(cooperative),
        };
        // SAFETY: the entry comes from a module of ours that the caller keeps loaded; `launch` and `here` are laid out
        // as the module declares and live through the call.
        unsafe { (entry.run_blocks)(launch, &mut here, blocks.start, blocks.end) };
        if here.missed_barrier != 0 {
            crate::log::warn("a kernel reached a barrier that its source did not show; its results are wrong");
            return Err(hipError_t::hipErrorLaunchFailure);
        }
        Ok(())
    })
}

/// One GPU thread: what it sees, and how it yields.
#[repr(C)]
struct Lane {
    here: Surroundings,
    yielder: *const Yielder<(), Stop>,
    state: LaneState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LaneState {
    Ready,
    Waiting(Stop),
    Done,
}

/// Called by the kernel on a lane's own stack.
unsafe extern "C" fn stop(here: *mut Surroundings, kind: Stop) {
    // SAFETY: the pointer is the one this lane was started with, so it is the first field of a `Lane`; the yielder is
    // that of the coroutine we are in, set before the kernel began.
    let yielder = unsafe { &*(*here.cast::<Lane>()).yielder };
    yielder.suspend(kind);
}

/// Runs the blocks of `blocks`, each with its threads as coroutines; `grid` is where the blocks of a cooperative launch
/// meet.
///
/// # Errors
/// `hipErrorLaunchFailure` if a thread waited for the grid in a launch that is not cooperative.
pub(super) fn run_with_barriers(
    entry: &Entry,
    launch: &Launch,
    shared_bytes: u32,
    blocks: std::ops::Range<u64>,
    grid: Option<&GridBarrier>,
) -> Result {
    let threads = launch.block.iter().product::<u32>() as usize;
    let mut stacks = Stacks::take(threads)?;
    with_workbench(|bench| {
        let shared = bench.shared(shared_bytes);
        bench.exchange.resize(MAX_THREADS_PER_BLOCK as usize, 0);
        let exchange: *mut c_void = bench.exchange.as_mut_ptr().cast();
        let [gx, gy, _] = launch.grid.map(u64::from);
        for index in blocks {
            let block = [(index % gx) as u32, (index / gx % gy) as u32, (index / gx / gy) as u32];
            let memory = (shared, exchange);
            run_block(entry, launch, block, memory, &mut stacks, grid)?;
        }
        Ok(())
    })
}

type Thread = Coroutine<(), Stop, (), DefaultStack>;

/// Runs one block. `stacks` holds one for each of its threads.
fn run_block(
    entry: &Entry,
    launch: &Launch,
    block: [u32; 3],
    (shared, exchange): (*mut c_void, *mut c_void),
    stacks: &mut Stacks,
    grid: Option<&GridBarrier>,
) -> Result {
    let mut missed = false;
    let [bx, by, bz] = launch.block;
    let count = (bx * by * bz) as usize;
    let mut lanes: Vec<Lane> = (0..count)
        .map(|_| Lane {
            here: Surroundings {
                shared,
                stop: Some(stop),
                exchange,
                lanes: 0,
                missed_barrier: 0,
                cooperative: u32::from(grid.is_some()),
            },
            yielder: std::ptr::null(),
            state: LaneState::Ready,
        })
        .collect();
    // From here on the lanes are reached through this pointer only: kernels hold it across suspensions.
    let first: *mut Lane = lanes.as_mut_ptr();
    let run_thread = entry.run_thread;
    let launch: *const Launch = launch;
    let mut threads: Vec<Option<Thread>> = (0..count)
        .map(|index| {
            let linear = index as u32;
            let position = [linear % bx, linear / bx % by, linear / bx / by];
            let stack = stacks.pop()?;
            Some(Coroutine::with_stack(stack, move |yielder: &Yielder<(), Stop>, ()| {
                // SAFETY: `first` points to `count` lanes that outlive all coroutines of the block, and only this one
                // and the scheduler, never at the same time, touch this lane.
                let lane = unsafe { first.add(index) };
                // SAFETY: as above.
                unsafe { (*lane).yielder = yielder };
                // SAFETY: the entry's module stays loaded; `launch`, the lane and the two positions outlive the call.
                unsafe { run_thread(launch, lane.cast(), block.as_ptr(), position.as_ptr()) };
            }))
        })
        .collect();
    loop {
        let mut waiting = false;
        for (index, slot) in threads.iter_mut().enumerate() {
            // SAFETY: `index < count`; no coroutine runs while we do.
            let state = unsafe { &mut (*first.add(index)).state };
            if *state == LaneState::Ready
                && let Some(thread) = slot
            {
                match thread.resume(()) {
                    CoroutineResult::Yield(kind) => *state = LaneState::Waiting(kind),
                    CoroutineResult::Return(()) => {
                        *state = LaneState::Done;
                        if let Some(thread) = slot.take() {
                            stacks.put_back(thread.into_stack());
                        }
                    }
                }
            }
            waiting |= *state != LaneState::Done;
        }
        if !waiting {
            break;
        }
        // SAFETY: `count` lanes live behind `first`, and no coroutine runs while we do.
        let lanes = unsafe { std::slice::from_raw_parts_mut(first, count) };
        if release(lanes) {
            continue;
        }
        // All that is left waits for the grid.
        match grid {
            Some(grid) => grid.wait(),
            None => missed = true,
        }
        for lane in lanes {
            if lane.state == LaneState::Waiting(Stop::Grid) {
                lane.state = LaneState::Ready;
            }
        }
    }
    if missed {
        crate::log::warn("a kernel waited for its grid in a launch that is not cooperative; its results are wrong");
        return Err(hipError_t::hipErrorLaunchFailure);
    }
    Ok(())
}

/// Resumes every lane that can go on. Every lane is waiting or done, and no lane waits for a done one, so a block whose
/// threads part at a barrier still ends: those at a warp stop go on as one group, and those at the block's barrier when
/// no other is left. False if all that wait do so for the grid.
fn release(lanes: &mut [Lane]) -> bool {
    let mut any_warp = false;
    for warp in lanes.chunks_mut(WARP as usize) {
        let at_warp = LaneState::Waiting(Stop::Warp);
        let group = warp
            .iter()
            .enumerate()
            .filter(|(_, lane)| lane.state == at_warp)
            .fold(0u64, |mask, (i, _)| mask | 1 << i);
        for lane in warp.iter_mut().filter(|lane| lane.state == at_warp) {
            lane.here.lanes = group;
            lane.state = LaneState::Ready;
            any_warp = true;
        }
    }
    if any_warp {
        return true;
    }
    let mut any = false;
    for lane in lanes {
        if lane.state == LaneState::Waiting(Stop::Block) {
            lane.state = LaneState::Ready;
            any = true;
        }
    }
    any
}
