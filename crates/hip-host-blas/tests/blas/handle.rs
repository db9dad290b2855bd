//! Handles, their modes, and the calls that describe the library.

use std::ffi::{CStr, c_char};
use std::ptr::{null, null_mut};

use hip_sys::hipStream_t;
use rocblas_sys::{rocblas_atomics_mode, rocblas_handle, rocblas_operation, rocblas_pointer_mode, rocblas_status};

use crate::device::{Buffer, Handle, SUCCESS, Stream, slot};

const INVALID_HANDLE: rocblas_status = rocblas_status::rocblas_status_invalid_handle;
const INVALID_VALUE: rocblas_status = rocblas_status::rocblas_status_invalid_value;
const INVALID_SIZE: rocblas_status = rocblas_status::rocblas_status_invalid_size;
const INVALID_POINTER: rocblas_status = rocblas_status::rocblas_status_invalid_pointer;

/// `C := 2 C` of one element, on the handle's stream.
fn double(handle: rocblas_handle, c: &Buffer<f32>) -> rocblas_status {
    let none = rocblas_operation::rocblas_operation_none;
    let two = 2.0f32;
    // SAFETY: with k == 0 neither alpha, nor A, nor B is looked at.
    unsafe {
        slot!(hip_host_blas::rocblas_api(), rocblas_sgemm)(
            handle,
            none,
            none,
            1,
            1,
            0,
            null(),
            null(),
            1,
            null(),
            1,
            &two,
            c.ptr(),
            1,
        )
    }
}

#[test]
fn a_destroyed_handle_is_refused_everywhere() {
    let api = hip_host_blas::rocblas_api();
    let handle = Handle::new();
    let c = Buffer::new(&[1.0f32]);
    assert_eq!(double(handle.0, &c), SUCCESS);
    // SAFETY: wrong handles must be found by their value alone.
    unsafe {
        assert_eq!(slot!(api, rocblas_destroy_handle)(handle.0), SUCCESS);
        assert_eq!(slot!(api, rocblas_destroy_handle)(handle.0), INVALID_HANDLE);
        assert_eq!(slot!(api, rocblas_destroy_handle)(null_mut()), INVALID_HANDLE);
        assert_eq!(slot!(api, rocblas_create_handle)(null_mut()), INVALID_HANDLE);
        assert_eq!(slot!(api, rocblas_set_stream)(handle.0, null_mut()), INVALID_HANDLE);
    }
    let newer = Handle::new();
    assert_ne!(newer.0, handle.0, "a handle's value came back to life");
    assert_eq!(double(handle.0, &c), INVALID_HANDLE);
    assert_eq!(c.read(), [2.0]);
}

#[test]
fn destroying_a_handle_waits_for_its_work() {
    let handle = Handle::new();
    let stream = Stream::new();
    let c = Buffer::new(&[1.0f32]);
    let api = hip_host_blas::rocblas_api();
    // SAFETY: live objects.
    unsafe {
        assert_eq!(slot!(api, rocblas_set_stream)(handle.0, stream.0), SUCCESS);
        for _ in 0..10 {
            assert_eq!(double(handle.0, &c), SUCCESS);
        }
        assert_eq!(slot!(api, rocblas_destroy_handle)(handle.0), SUCCESS);
        let query = slot!(hip_host::hip_api(), hipStreamQuery)(stream.0);
        assert_eq!(query, hip_sys::hipError_t::hipSuccess);
    }
    assert_eq!(c.read(), [1024.0]);
}

#[test]
fn stream_and_modes_are_what_was_set() {
    let api = hip_host_blas::rocblas_api();
    let handle = Handle::new();
    let stream = Stream::new();
    // SAFETY: live objects and valid places to write to, except where a check must find otherwise.
    unsafe {
        let mut got: hipStream_t = stream.0;
        assert_eq!(slot!(api, rocblas_get_stream)(handle.0, &mut got), SUCCESS);
        assert!(got.is_null());
        assert_eq!(slot!(api, rocblas_set_stream)(handle.0, stream.0), SUCCESS);
        assert_eq!(slot!(api, rocblas_get_stream)(handle.0, &mut got), SUCCESS);
        assert_eq!(got, stream.0);
        assert_eq!(slot!(api, rocblas_get_stream)(handle.0, null_mut()), INVALID_POINTER);
        let gone = Stream::new().0;
        assert_eq!(slot!(api, rocblas_set_stream)(handle.0, gone), INVALID_VALUE);
        assert_eq!(slot!(api, rocblas_get_stream)(handle.0, &mut got), SUCCESS);
        assert_eq!(got, stream.0, "a refused stream was stored");

        let mut pointers = rocblas_pointer_mode(9);
        let host = rocblas_pointer_mode::rocblas_pointer_mode_host;
        assert_eq!(slot!(api, rocblas_get_pointer_mode)(handle.0, &mut pointers), SUCCESS);
        assert_eq!(pointers, host);
        let wrong = rocblas_pointer_mode(2);
        assert_eq!(slot!(api, rocblas_set_pointer_mode)(handle.0, wrong), INVALID_VALUE);

        let mut atomics = rocblas_atomics_mode(9);
        assert_eq!(slot!(api, rocblas_get_atomics_mode)(handle.0, &mut atomics), SUCCESS);
        assert_eq!(atomics, rocblas_atomics_mode::rocblas_atomics_allowed);
        let off = rocblas_atomics_mode::rocblas_atomics_not_allowed;
        assert_eq!(slot!(api, rocblas_set_atomics_mode)(handle.0, off), SUCCESS);
        assert_eq!(slot!(api, rocblas_get_atomics_mode)(handle.0, &mut atomics), SUCCESS);
        assert_eq!(atomics, off);
    }
}

#[test]
fn a_call_runs_after_what_its_stream_was_given_before() {
    let hip = hip_host::hip_api();
    let (handle, stream) = (Handle::new(), Stream::new());
    let values: Vec<f32> = vec![3.0; 1 << 20];
    let (from, to) = (Buffer::new(&values), Buffer::new(&vec![0.0f32; values.len()]));
    // SAFETY: live objects, buffers of that size.
    unsafe {
        let status = slot!(hip_host_blas::rocblas_api(), rocblas_set_stream)(handle.0, stream.0);
        assert_eq!(status, SUCCESS);
        let kind = hip_sys::hipMemcpyKind::hipMemcpyDeviceToDevice;
        let bytes = values.len() * 4;
        for _ in 0..20 {
            let code = slot!(hip, hipMemcpyAsync)(to.ptr().cast(), from.ptr().cast(), bytes, kind, stream.0);
            assert_eq!(code, hip_sys::hipError_t::hipSuccess);
            assert_eq!(double(handle.0, &to), SUCCESS);
            // The factor was taken at the call; it is not alive any more when the product runs.
        }
    }
    assert_eq!(stream.synchronize(), hip_sys::hipError_t::hipSuccess);
    let after = to.read();
    assert_eq!((after[0], after[1]), (6.0, 3.0));
}

#[test]
fn a_size_query_computes_nothing() {
    let api = hip_host_blas::rocblas_api();
    let handle = Handle::new();
    let c = Buffer::new(&[1.0f32]);
    let mismatch = rocblas_status::rocblas_status_size_query_mismatch;
    let mut size = 1;
    // SAFETY: live objects and valid places to write to.
    unsafe {
        let stop = slot!(api, rocblas_stop_device_memory_size_query);
        let start = slot!(api, rocblas_start_device_memory_size_query);
        assert_eq!(stop(handle.0, &mut size), mismatch);
        assert_eq!(start(handle.0), SUCCESS);
        assert_eq!(start(handle.0), mismatch);
        assert_eq!(double(handle.0, &c), rocblas_status::rocblas_status_size_unchanged);
        assert_eq!(stop(handle.0, &mut size), SUCCESS);
    }
    assert_eq!(size, 0);
    assert_eq!(c.read(), [1.0]);
    assert_eq!(double(handle.0, &c), SUCCESS);
    assert_eq!(c.read(), [2.0]);
}

#[test]
fn a_workspace_must_be_device_memory() {
    let api = hip_host_blas::rocblas_api();
    let handle = Handle::new();
    let memory = Buffer::new(&[0u8; 1024]);
    let mut on_host = [0u8; 1024];
    // SAFETY: live objects; the host memory must be refused.
    unsafe {
        let set = slot!(api, rocblas_set_workspace);
        let is_user = slot!(api, rocblas_is_user_managing_device_memory);
        assert!(!is_user(handle.0));
        assert_eq!(set(handle.0, on_host.as_mut_ptr().cast(), 1024), INVALID_POINTER);
        assert_eq!(set(handle.0, memory.ptr().cast(), 1025), INVALID_POINTER);
        assert_eq!(set(handle.0, memory.ptr().cast(), 1024), SUCCESS);
        assert!(is_user(handle.0));
        let mut size = 0;
        assert_eq!(slot!(api, rocblas_get_device_memory_size)(handle.0, &mut size), SUCCESS);
        assert_eq!(size, 1024);
        assert_eq!(set(handle.0, null_mut(), 0), SUCCESS);
        assert!(!is_user(handle.0));
        assert_eq!(slot!(api, rocblas_get_device_memory_size)(handle.0, &mut size), SUCCESS);
        assert_eq!(size, 0, "allocated again when a call needs it");
    }
}

#[test]
fn the_version_fits_its_announced_size_and_nothing_smaller() {
    let api = hip_host_blas::rocblas_api();
    let mut size = 0;
    // SAFETY: valid places to write to, of the given length.
    unsafe {
        assert_eq!(slot!(api, rocblas_get_version_string_size)(&mut size), SUCCESS);
        let mut text = vec![0x7f as c_char; size + 1];
        let get = slot!(api, rocblas_get_version_string);
        assert_eq!(get(text.as_mut_ptr(), size - 1), INVALID_SIZE);
        assert_eq!(get(null_mut(), size), INVALID_POINTER);
        assert_eq!(get(text.as_mut_ptr(), size), SUCCESS);
        let version = CStr::from_ptr(text.as_ptr()).to_str().unwrap();
        assert_eq!(version.len() + 1, size);
        let numbers: Vec<_> = version.split('.').collect();
        assert!(numbers[..3].iter().all(|n| n.parse::<u32>().is_ok()), "{version}");
    }
}

#[test]
fn every_status_has_its_own_name() {
    let name = |status| {
        // SAFETY: the function returns a constant string.
        unsafe {
            let text = slot!(hip_host_blas::rocblas_api(), rocblas_status_to_string)(status);
            CStr::from_ptr(text).to_str().unwrap()
        }
    };
    assert_eq!(name(rocblas_status::rocblas_status_success), "rocblas_status_success");
    assert_eq!(name(rocblas_status(15)), "rocblas_status_arch_mismatch");
    let names: std::collections::HashSet<_> = (0..16).map(|code| name(rocblas_status(code))).collect();
    assert_eq!(names.len(), 16);
    assert_eq!(name(rocblas_status(99)), "<undefined rocblas_status value>");
}
