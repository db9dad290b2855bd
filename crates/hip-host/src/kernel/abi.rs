//! The interface between a compiled kernel and the model. `kernels/prelude.hpp` declares the same.

use std::ffi::c_void;

/// Changes whenever the declarations below or the prelude's do.
pub(crate) const VERSION: u32 = 2;

/// One launch, the same for all its blocks.
#[repr(C)]
pub(crate) struct Launch {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    /// The packed parameters.
    pub(crate) arguments: *const u8,
}

/// What a thread stops for.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Stop {
    Block = 0,
    Warp = 1,
    Grid = 2,
}

/// A block's surroundings on the thread that runs it.
#[repr(C)]
pub(crate) struct Surroundings {
    /// The dynamic shared memory.
    pub(crate) shared: *mut c_void,
    /// Suspends the calling GPU thread until its warp, block or grid has reached the same point; null where blocks run
    /// as plain loops.
    pub(crate) stop: Option<unsafe extern "C" fn(surroundings: *mut Surroundings, kind: Stop)>,
    /// One 16-byte slot for each thread of the block, for shuffles.
    pub(crate) exchange: *mut c_void,
    /// The lanes that took part in the last warp stop.
    pub(crate) lanes: u64,
    /// Set where a plain loop met a barrier, or a launch that is not cooperative met the grid's.
    pub(crate) missed_barrier: u32,
    /// Whether all blocks of the grid run at once.
    pub(crate) cooperative: u32,
}

/// One kernel, as the compiled module's table lists it.
#[repr(C)]
pub(crate) struct Entry {
    /// The kernel's own address, by which its name is found.
    pub(crate) kernel: *const c_void,
    /// Runs the blocks `first..last`, counted with x fastest, each as a plain loop over its threads.
    pub(crate) run_blocks:
        unsafe extern "C" fn(launch: *const Launch, surroundings: *mut Surroundings, first: u64, last: u64),
    /// Runs one thread of one block.
    pub(crate) run_thread: unsafe extern "C" fn(
        launch: *const Launch,
        surroundings: *mut Surroundings,
        block: *const u32,
        thread: *const u32,
    ),
    pub(crate) parameters: *const Parameter,
    pub(crate) parameter_count: u32,
    /// Whether threads of a block may wait for each other.
    pub(crate) has_barrier: u32,
}

// SAFETY: constant data of a loaded module, never written.
unsafe impl Sync for Entry {}

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Parameter {
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

/// The compiled module's table.
#[repr(C)]
pub(crate) struct Table {
    pub(crate) version: u32,
    pub(crate) count: u32,
    pub(crate) entries: *const Entry,
}
