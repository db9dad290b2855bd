//! OpenCL whose shared virtual memory lies in files, so that a model of HSA can export it as ROCm
//! exports device memory: from a block in which the memory does not begin at the first byte.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::os::fd::OwnedFd;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clmgr::opencl_sys::{
    CL_INVALID_VALUE, CL_SUCCESS, cl_context, cl_int, cl_kernel, cl_kernel_exec_info, cl_svm_mem_flags, cl_uint,
};
use platform::{ForeignHooks, ForeignKind};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

const PAGE: usize = 4096;
/// Where the memory begins in its file.
const LEAD: usize = 16 * PAGE;

struct Block {
    file: OwnedFd,
    bytes: usize,
}

/// By first address.
static BLOCKS: Mutex<BTreeMap<usize, Block>> = Mutex::new(BTreeMap::new());

fn blocks() -> MutexGuard<'static, BTreeMap<usize, Block>> {
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many allocations live.
pub fn living() -> usize {
    blocks().len()
}

pub fn wrap(api: &mut clmgr::Api) {
    api.clSVMAlloc = Some(alloc);
    api.clSVMFree = Some(free);
    api.clSetKernelExecInfo = Some(exec_info);
}

/// The driver behind would refuse pointers that are not its own.
unsafe extern "C" fn exec_info(_: cl_kernel, _: cl_kernel_exec_info, size: usize, list: *const c_void) -> cl_int {
    let blocks = blocks();
    let known = (0..size / size_of::<usize>()).all(|index| {
        // SAFETY: the caller gives a list of this size.
        let address = unsafe { list.cast::<usize>().add(index).read_unaligned() };
        blocks.contains_key(&address)
    });
    if known { CL_SUCCESS } else { CL_INVALID_VALUE }
}

unsafe extern "C" fn alloc(_: cl_context, _: cl_svm_mem_flags, bytes: usize, _: cl_uint) -> *mut c_void {
    let Some(whole) = bytes.checked_next_multiple_of(PAGE) else {
        return null_mut();
    };
    let file = memfd_create("opencl memory", MemfdFlags::CLOEXEC).expect("a file");
    if ftruncate(&file, (LEAD + whole) as u64).is_err() {
        return null_mut();
    }
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping wherever the system likes.
    let start = unsafe { mmap(null_mut(), whole, access, MapFlags::SHARED, &file, LEAD as u64) };
    let Ok(start) = start else { return null_mut() };
    let block = Block { file, bytes: whole };
    blocks().insert(start.addr(), block);
    start
}

unsafe extern "C" fn free(_: cl_context, start: *mut c_void) {
    if let Some(block) = blocks().remove(&start.addr()) {
        // SAFETY: mapped by `alloc` with this size, and freed by its owner.
        unsafe { munmap(start, block.bytes) }.expect("it was mapped");
    }
}

/// Tells the model of the file that memory lies in.
pub const HOOKS: ForeignHooks = ForeignHooks {
    adopt,
    release,
    reaches_hip: || true,
    launch: hip_host::foreign::launch,
    end: hip_host::foreign::end,
};

unsafe fn adopt(ptr: *mut c_void, bytes: usize, kind: ForeignKind, ordinal: usize) -> Result<(), String> {
    use hip_host::foreign;
    let found = {
        let blocks = blocks();
        let below = blocks.range(..=ptr.addr()).next_back();
        below
            .filter(|(start, block)| ptr.addr() - **start < block.bytes)
            .map(|(start, block)| (block.file.try_clone(), LEAD + ptr.addr() - start))
    };
    let told = match (kind, found) {
        (ForeignKind::Vram, Some((file, offset))) => {
            let file = file.map_err(|error| error.to_string())?;
            // SAFETY: the caller keeps the memory, which is this part of the file.
            unsafe { foreign::adopt_in_file(ptr, bytes, ordinal, file, offset) }
        }
        // SAFETY: the caller keeps the memory.
        (ForeignKind::Vram, None) => unsafe { foreign::adopt_on(ptr, bytes, foreign::ForeignKind::Vram, ordinal) },
        // SAFETY: the caller keeps the memory.
        (ForeignKind::HostFine, _) => unsafe { foreign::adopt_on(ptr, bytes, foreign::ForeignKind::HostFine, ordinal) },
    };
    told.map_err(|error| error.to_string())
}

fn release(ptr: *mut c_void) -> Result<(), String> {
    hip_host::foreign::release(ptr).map_err(|error| error.to_string())
}
