//! A handle's memory for intermediate results, and the query how much calls would need.
//!
//! cuBLAS has no such query. Its routines use less where there is less, so none *needs* any, and those of rocSOLVER get
//! theirs in stream order from a pool, not from the user's memory: the result is 0.

use std::ffi::{c_int, c_void};

use rocblas_sys::{rocblas_handle, rocblas_status as Status};

use super::handle::{Handle, Raw, cublas, put};
use super::{Result, check, entry, from_hip, library};
use crate::cuda::{Symbol, c_name};

/// What a handle knows about its memory.
#[derive(Default)]
pub(super) struct Workspace {
    /// Bytes of the user's memory, if any was set.
    users: Option<usize>,
    /// Between the start and the stop of a query: calls compute nothing.
    pub(super) asked_for: bool,
}

cublas!(cublasSetStream_v2(handle: Raw, stream: hip_sys::hipStream_t));
cublas!(cublasSetWorkspace_v2(handle: Raw, workspace: *mut c_void, bytes: usize));

/// cuBLAS requires 256-byte alignment and refuses less; null and 0 bytes give the handle its own memory back, which
/// cuBLAS does when the stream is set.
unsafe extern "C" fn rocblas_set_workspace(handle: rocblas_handle, at: *mut c_void, bytes: usize) -> Status {
    entry(|| {
        // SAFETY: as the C caller promises.
        let handle = unsafe { Handle::of(handle) }?;
        if at.is_null() != (bytes == 0) {
            return Err(Status::rocblas_status_invalid_pointer);
        }
        if at.is_null() {
            // SAFETY: a live handle and the stream that it has.
            unsafe { cublasSetStream_v2(handle.raw(), handle.stream()) }?;
        } else {
            // SAFETY: a live handle; the C caller keeps the memory as long as it is set.
            unsafe { cublasSetWorkspace_v2(handle.raw(), at, bytes) }?;
        }
        handle.workspace.lock().users = (bytes > 0).then_some(bytes);
        Ok(())
    })
}

/// Bytes that cuBLAS allocates for a handle by default, by the major version of the device's architecture (cuBLAS'
/// documentation of `cublasSetWorkspace`).
const fn own_workspace(major: c_int) -> usize {
    match major {
        9..=11 => 32 << 20,
        12 => 12 << 20,
        _ => 4 << 20,
    }
}

/// The user's memory, or what cuBLAS documents as its own. (`CUBLAS_WORKSPACE_CONFIG` may change that unseen.)
unsafe extern "C" fn rocblas_get_device_memory_size(handle: rocblas_handle, out: *mut usize) -> Status {
    entry(|| {
        // SAFETY: as the C caller promises.
        let handle = unsafe { Handle::of(handle) }?;
        let users = handle.workspace.lock().users;
        let bytes = match users {
            Some(bytes) => bytes,
            None => own_workspace(handle.device().capability().map_err(from_hip)?.0),
        };
        // SAFETY: as the C caller promises.
        unsafe { put(out, bytes) }
    })
}

unsafe extern "C" fn rocblas_is_managing_device_memory(handle: rocblas_handle) -> bool {
    // SAFETY: as the C caller promises.
    unsafe { Handle::of(handle) }.is_ok_and(|handle| handle.workspace.lock().users.is_none())
}

unsafe extern "C" fn rocblas_is_user_managing_device_memory(handle: rocblas_handle) -> bool {
    // SAFETY: as the C caller promises.
    unsafe { Handle::of(handle) }.is_ok_and(|handle| handle.workspace.lock().users.is_some())
}

/// # Safety
/// As [`Handle::of`].
unsafe fn ask(handle: rocblas_handle, begin: bool) -> Result {
    // SAFETY: the caller's promise.
    let mut workspace = unsafe { Handle::of(handle) }?.workspace.lock();
    if workspace.asked_for == begin {
        return Err(Status::rocblas_status_size_query_mismatch);
    }
    workspace.asked_for = begin;
    Ok(())
}

unsafe extern "C" fn rocblas_start_device_memory_size_query(handle: rocblas_handle) -> Status {
    // SAFETY: as the C caller promises.
    entry(|| unsafe { ask(handle, true) })
}

unsafe extern "C" fn rocblas_stop_device_memory_size_query(handle: rocblas_handle, out: *mut usize) -> Status {
    // SAFETY: as the C caller promises.
    entry(|| unsafe {
        ask(handle, false)?;
        put(out, 0)
    })
}

unsafe extern "C" fn rocblas_is_device_memory_size_query(handle: rocblas_handle) -> bool {
    // SAFETY: as the C caller promises.
    unsafe { Handle::of(handle) }.is_ok_and(|handle| handle.workspace.lock().asked_for)
}

/// The slots of this file.
pub(super) const fn fill(api: &mut rocblas_sys::Api) {
    api.rocblas_set_workspace = Some(rocblas_set_workspace);
    api.rocblas_get_device_memory_size = Some(rocblas_get_device_memory_size);
    api.rocblas_is_managing_device_memory = Some(rocblas_is_managing_device_memory);
    api.rocblas_is_user_managing_device_memory = Some(rocblas_is_user_managing_device_memory);
    api.rocblas_start_device_memory_size_query = Some(rocblas_start_device_memory_size_query);
    api.rocblas_stop_device_memory_size_query = Some(rocblas_stop_device_memory_size_query);
    api.rocblas_is_device_memory_size_query = Some(rocblas_is_device_memory_size_query);
}
