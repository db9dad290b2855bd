//! Kernels: their code, and running them.
//!
//! | file | what |
//! |---|---|
//! | this one | a launch as requested: its checks, its packed parameters, and its blocks over threads |
//! | `container`, `elf`, `image` | the code object, what the library in it says of itself, and the library loaded |
//! | `abi` | what a compiled kernel and the model know of each other |
//! | `function` | the kernels that have handles |
//! | `blocks`, `stacks`, `cooperative` | running blocks: as loops, as coroutines, all at once |
//! | `occupancy` | how many blocks a unit holds |

pub(crate) mod abi;
mod blocks;
pub(crate) mod container;
mod cooperative;
mod dynamic;
pub(crate) mod elf;
pub(crate) mod function;
mod image;
pub(crate) mod occupancy;
mod stacks;

use std::ffi::c_void;
use std::sync::Arc;

use abi::{Launch, Parameter};
use function::Function;
use hip_sys::{hipError_t, hipFunction_t};
pub(crate) use image::{Image, LoadError};
use parking_lot::Mutex;

use crate::device::{self, Device, MAX_GRID, MAX_SHARED_BYTES, MAX_THREADS_PER_BLOCK};
use crate::ending::COMMANDS;
use crate::error::Result;
use crate::memory::{reach, registry};
use crate::work::Task;
use crate::{log, workers};

/// `HIP_LAUNCH_PARAM_BUFFER_POINTER`, `..._BUFFER_SIZE` and `..._END`: keys of the `extra` form.
const EXTRA_POINTER: usize = 1;
const EXTRA_SIZE: usize = 2;
const EXTRA_END: usize = 3;

/// GPU threads worth handing to another operating-system thread.
const CHUNK_THREADS: u64 = 16 << 10;
/// Chunks for each operating-system thread, so an uneven kernel is shared evenly.
const CHUNKS_PER_THREAD: u64 = 8;

/// Parameters packed as the kernel's module expects them, aligned for any type.
struct Arguments(Vec<u128>);

impl Arguments {
    fn new(parameters: &[Parameter]) -> Self {
        let bytes = parameters
            .iter()
            .map(|p| p.offset as usize + p.bytes as usize)
            .max()
            .unwrap_or(0);
        Self(vec![0; bytes.div_ceil(size_of::<u128>())])
    }

    /// # Safety
    /// `from` is readable for the parameter's size.
    unsafe fn put(&mut self, parameter: &Parameter, from: *const c_void) {
        // SAFETY: `new` made room for every parameter's offset and size; the caller vouches for `from`.
        unsafe {
            let to = self.0.as_mut_ptr().cast::<u8>().add(parameter.offset as usize);
            std::ptr::copy_nonoverlapping(from.cast::<u8>(), to, parameter.bytes as usize);
        }
    }

    /// The parameter's value, if it may be an address.
    fn address(&self, parameter: &Parameter) -> Option<usize> {
        let (offset, bytes) = (parameter.offset as usize, parameter.bytes as usize);
        if bytes != size_of::<usize>() {
            return None;
        }
        // SAFETY: `new` made room for every parameter's offset and size.
        Some(unsafe {
            self.0
                .as_ptr()
                .cast::<u8>()
                .add(offset)
                .cast::<usize>()
                .read_unaligned()
        })
    }

    /// Reads `void* kernelParams[]`.
    ///
    /// # Safety
    /// `params` holds one pointer to a value for each parameter, as HIP requires of the caller.
    unsafe fn from_params(parameters: &[Parameter], params: *mut *mut c_void) -> Result<Self> {
        let mut packed = Self::new(parameters);
        for (index, parameter) in parameters.iter().enumerate() {
            // SAFETY: by this function's contract there is a pointer at each index.
            let value = unsafe { *params.add(index) };
            if value.is_null() {
                return Err(hipError_t::hipErrorInvalidValue);
            }
            // SAFETY: by this function's contract it points to a value of the parameter's type.
            unsafe { packed.put(parameter, value) };
        }
        Ok(packed)
    }

    /// Reads the packed buffer that `void* extra[]` describes.
    ///
    /// # Safety
    /// `extra` is a list of key and value pairs ended by `HIP_LAUNCH_PARAM_END`, as HIP requires of the caller.
    unsafe fn from_extra(parameters: &[Parameter], extra: *mut *mut c_void) -> Result<Self> {
        let (mut buffer, mut bytes) = (std::ptr::null_mut(), None);
        for pair in 0..=2 {
            // SAFETY: by this function's contract a pair or the end stands here; the loop stops at the end.
            let key = unsafe { *extra.add(2 * pair) } as usize;
            if key == EXTRA_END {
                break;
            }
            // SAFETY: a key that is not the end is followed by a value.
            let value = unsafe { *extra.add(2 * pair + 1) };
            match key {
                EXTRA_POINTER => buffer = value,
                // SAFETY: the size's value is a pointer to a size.
                EXTRA_SIZE if !value.is_null() => bytes = Some(unsafe { *value.cast::<usize>() }),
                _ => return Err(hipError_t::hipErrorInvalidValue),
            }
        }
        let (false, Some(bytes)) = (buffer.is_null(), bytes) else {
            return Err(hipError_t::hipErrorInvalidValue);
        };
        let mut packed = Self::new(parameters);
        for parameter in parameters {
            if parameter.offset as usize + parameter.bytes as usize > bytes {
                return Err(hipError_t::hipErrorInvalidValue);
            }
            // SAFETY: the buffer holds `bytes` bytes by the caller's word, and the parameter lies within.
            unsafe { packed.put(parameter, buffer.cast::<u8>().add(parameter.offset as usize).cast()) };
        }
        Ok(packed)
    }
}

/// Sizes that a launch may have.
fn check(grid: [u32; 3], block: [u32; 3], shared_bytes: u32) -> Result {
    let refuse = |reason: &str| {
        log::refused(
            "hipModuleLaunchKernel",
            format_args!("grid {grid:?}, block {block:?}, {shared_bytes} shared bytes: {reason}"),
        );
        Err(hipError_t::hipErrorInvalidValue)
    };
    if grid.contains(&0) || block.contains(&0) {
        return refuse("a dimension is zero");
    }
    if grid.iter().zip(MAX_GRID).any(|(&size, limit)| size > limit) {
        return refuse("the grid is too large");
    }
    // A dispatch packet counts work-items in 32 bits (hipamd/src/hip_module.cpp, `hipModuleLaunchKernel`).
    if grid
        .iter()
        .zip(block)
        .any(|(&g, b)| u64::from(g) * u64::from(b) > u64::from(u32::MAX))
    {
        return refuse("more than 2^32 - 1 threads in one dimension");
    }
    let threads = block.iter().try_fold(1u32, |product, &size| product.checked_mul(size));
    if threads.is_none_or(|threads| threads > MAX_THREADS_PER_BLOCK) {
        return refuse("more than 1024 threads in a block");
    }
    if shared_bytes > MAX_SHARED_BYTES {
        return refuse("more shared memory than a block has");
    }
    Ok(())
}

/// Runs a whole launch on the calling thread and the pool.
fn run(function: &Function, grid: [u32; 3], block: [u32; 3], shared_bytes: u32, arguments: &Arguments) -> Result {
    let launch = Launch {
        grid,
        block,
        arguments: arguments.0.as_ptr().cast(),
    };
    let launch = Shared(&launch);
    let kernel = function.entry();
    let blocks: u64 = grid.iter().map(|&size| u64::from(size)).product();
    let threads: u64 = block.iter().map(|&size| u64::from(size)).product();
    let waits = kernel.has_barrier != 0 && threads > 1;
    let least = if waits { 1 } else { CHUNK_THREADS.div_ceil(threads) };
    let grain = least.max(blocks / (workers::width() as u64 * CHUNKS_PER_THREAD));
    let outcome = Mutex::new(Ok(()));
    workers::for_each(blocks, grain, &|range| {
        COMMANDS.leave_if_ended();
        let launch = launch.get();
        let result = if waits {
            blocks::run_with_barriers(kernel, launch, shared_bytes, range, None)
        } else {
            blocks::run_plain(kernel, launch, shared_bytes, range, false)
        };
        if result.is_err() {
            *outcome.lock() = result;
        }
    });
    outcome.into_inner()
}

/// A launch's description, which all threads read and none writes.
struct Shared<'a>(&'a Launch);
// SAFETY: the description and the parameters it points to are not written while the launch runs.
unsafe impl Sync for Shared<'_> {}

impl<'a> Shared<'a> {
    fn get(&self) -> &'a Launch {
        self.0
    }
}

/// A launch as requested: checked, its parameters copied. It can run any number of times.
#[derive(Clone)]
pub(crate) struct Kernel {
    pub(crate) function: usize,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
    /// Whether all blocks run at once and may wait for each other.
    cooperative: bool,
    arguments: Arc<Arguments>,
}

impl Kernel {
    /// # Safety
    /// `params` is null or holds a pointer to a value for each parameter; `extra` is null or an ended list of pairs.
    pub(crate) unsafe fn read(
        handle: hipFunction_t,
        (grid, block): ([u32; 3], [u32; 3]),
        shared_bytes: u32,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> Result<Self> {
        if handle.is_null() {
            return Err(hipError_t::hipErrorInvalidImage);
        }
        let function: Arc<Function> = function::find(handle)?;
        check(grid, block, shared_bytes)?;
        let parameters = function.parameters();
        let arguments = match (params.is_null(), extra.is_null()) {
            (false, false) => return Err(hipError_t::hipErrorInvalidValue),
            // SAFETY: not null, so as this function's contract says.
            (false, true) => unsafe { Arguments::from_params(parameters, params) }?,
            // SAFETY: as above.
            (true, false) => unsafe { Arguments::from_extra(parameters, extra) }?,
            (true, true) if parameters.is_empty() => Arguments::new(parameters),
            (true, true) => return Err(hipError_t::hipErrorInvalidValue),
        };
        Ok(Self {
            function: handle as usize,
            grid,
            block,
            shared_bytes,
            cooperative: false,
            arguments: Arc::new(arguments),
        })
    }

    /// That `device` reaches the memory that the parameters point to. On a GPU the kernel would fault. A pointer inside a
    /// structure or in memory is not looked at.
    pub(crate) fn check_reach(&self, device: &Device) -> Result {
        // One device reaches all there is.
        if device::all().len() < 2 {
            return Ok(());
        }
        let function = function::find(self.function as hipFunction_t)?;
        let addresses = function
            .parameters()
            .iter()
            .filter_map(|parameter| self.arguments.address(parameter));
        for address in addresses {
            if let Some(memory) = registry::find(address).filter(|memory| !reach::reaches(device, memory)) {
                log::refused(
                    "hipModuleLaunchKernel",
                    format_args!(
                        "device {} has no access to {address:#x}, memory of device {}: let it in by \
                         hipDeviceEnablePeerAccess, or for mapped memory by hipMemSetAccess",
                        device.ordinal, memory.device.ordinal
                    ),
                );
                return Err(hipError_t::hipErrorIllegalAddress);
            }
        }
        Ok(())
    }

    /// The work, if the function's module is still loaded.
    pub(crate) fn task(&self) -> Result<Task> {
        let function = function::find(self.function as hipFunction_t)?;
        let kernel = self.clone();
        let run = if self.cooperative { cooperative::run } else { run };
        Ok(Arc::new(move || {
            run(
                &function,
                kernel.grid,
                kernel.block,
                kernel.shared_bytes,
                &kernel.arguments,
            )
        }))
    }

    /// Where the copies of the parameters lie, which live as long as any copy of this value.
    pub(crate) fn parameter_addresses(&self) -> Result<Vec<usize>> {
        let function = function::find(self.function as hipFunction_t)?;
        let start = self.arguments.0.as_ptr() as usize;
        let parameters = function.parameters().iter();
        Ok(parameters.map(|p| start + p.offset as usize).collect())
    }
}
