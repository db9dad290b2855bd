//! Two devices: whose memory a call may use.

#[path = "../../hip-host/tests/common/mod.rs"]
mod common;

use std::ffi::c_void;
use std::ptr::null_mut;

use common::*;
use hip_sys::{hipError_t, hipMemAccessDesc, hipMemAccessFlags, hipMemLocation, hipMemLocationType, hipMemcpyKind};
use rocblas_sys::{rocblas_handle, rocblas_status};

const N: usize = 1000;
const DONE: rocblas_status = rocblas_status::rocblas_status_success;
const REFUSED: rocblas_status = rocblas_status::rocblas_status_invalid_pointer;

/// Calls a rocBLAS function.
macro_rules! blas {
    ($function:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: the test passes arguments the function's contract allows, or ones it promises to refuse.
        unsafe { (hip_host_blas::rocblas_api().$function.expect(stringify!($function)))($($argument),*) }
    };
}

/// Runs the test in a process with two devices; true in that process.
fn with_two_devices(test: &str) -> bool {
    if is_child() {
        return true;
    }
    let output = run_child(test, &[("HIP_HOST_DEVICES", "2")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    false
}

fn on(device: i32) {
    ok!(hipSetDevice(device));
}

fn handle() -> rocblas_handle {
    let mut handle = null_mut();
    assert_eq!(blas!(rocblas_create_handle(&mut handle)), DONE);
    handle
}

fn scale(handle: rocblas_handle, x: *mut c_void) -> rocblas_status {
    blas!(rocblas_sscal(handle, N as i32, &2.0, x.cast(), 1))
}

#[test]
fn library_calls_reach_another_devices_memory_only_with_access() {
    if !with_two_devices("library_calls_reach_another_devices_memory_only_with_access") {
        return;
    }
    on(1);
    let there = upload(&[1f32; N]);
    on(0);
    let here = upload(&[1f32; N]);
    let handle = handle();
    assert_eq!(scale(handle, here), DONE);
    assert_eq!(scale(handle, there), REFUSED);
    // The way back does not help: device 1 may use device 0's memory.
    on(1);
    ok!(hipDeviceEnablePeerAccess(0, 0));
    on(0);
    assert_eq!(scale(handle, there), REFUSED);
    ok!(hipDeviceEnablePeerAccess(1, 0));
    assert_eq!(scale(handle, there), DONE);
    ok!(hipDeviceDisablePeerAccess(1));
    assert_eq!(scale(handle, there), REFUSED);
    assert_eq!(download::<f32>(there, N), [2.0; N]);
    assert_eq!(download::<f32>(here, N), [2.0; N]);
}

#[test]
fn the_device_is_that_of_the_handles_stream() {
    if !with_two_devices("the_device_is_that_of_the_handles_stream") {
        return;
    }
    let handle = handle();
    let here = upload(&[1f32; N]);
    on(1);
    let there = upload(&[1f32; N]);
    assert_eq!(blas!(rocblas_set_stream(handle, stream())), DONE);
    on(0);
    assert_eq!(scale(handle, there), DONE);
    assert_eq!(scale(handle, here), REFUSED);
    ok!(hipDeviceSynchronize());
    on(1);
    ok!(hipDeviceSynchronize());
    assert_eq!(download::<f32>(there, N), [2.0; N]);
}

#[test]
fn matrices_named_by_an_array_are_checked_for_the_streams_device() {
    if !with_two_devices("matrices_named_by_an_array_are_checked_for_the_streams_device") {
        return;
    }
    on(1);
    let there = upload(&[1f32; 4]);
    on(0);
    let here = upload(&[1f32; 4]);
    let handle = handle();
    let gemm = |matrix: *mut c_void| {
        let array = upload(&[matrix]);
        let [one, zero] = [1f32, 0.0];
        let none = rocblas_sys::rocblas_operation::rocblas_operation_none;
        let result = upload(&[malloc(16)]);
        blas!(rocblas_sgemm_batched(
            handle,
            none,
            none,
            2,
            2,
            2,
            &one,
            array.cast(),
            2,
            array.cast(),
            2,
            &zero,
            result.cast(),
            2,
            1
        ))
    };
    assert_eq!(gemm(here), DONE);
    assert_eq!(hip!(hipDeviceSynchronize()), OK);
    // What the array names is known in stream order only; on a card the kernel would fault.
    assert_eq!(gemm(there), DONE);
    assert_eq!(hip!(hipDeviceSynchronize()), hipError_t::hipErrorLaunchFailure);
}

#[test]
fn memory_of_the_host_and_of_opened_pools_is_reached_by_all_devices() {
    if !with_two_devices("memory_of_the_host_and_of_opened_pools_is_reached_by_all_devices") {
        return;
    }
    on(1);
    let bytes = 4 * N;
    let (mut pinned, mut managed, mut pooled) = (null_mut(), null_mut(), null_mut());
    ok!(hipHostMalloc(&mut pinned, bytes, 0));
    ok!(hipMallocManaged(&mut managed, bytes, 1));
    ok!(hipMallocAsync(&mut pooled, bytes, null_mut()));
    for memory in [pinned, managed, pooled] {
        ok!(hipMemset(memory, 0, bytes));
    }
    ok!(hipDeviceSynchronize());
    on(0);
    let handle = handle();
    assert_eq!(scale(handle, pinned), DONE);
    assert_eq!(scale(handle, managed), DONE);
    assert_eq!(scale(handle, pooled), REFUSED);
    let mut pool = null_mut();
    ok!(hipDeviceGetMemPool(&mut pool, 1));
    let access = hipMemAccessDesc {
        location: hipMemLocation {
            type_: hipMemLocationType::hipMemLocationTypeDevice,
            id: 0,
        },
        flags: hipMemAccessFlags::hipMemAccessFlagsProtReadWrite,
    };
    ok!(hipMemPoolSetAccess(pool, &access, 1));
    assert_eq!(scale(handle, pooled), DONE);
    ok!(hipDeviceSynchronize());
}

/// On ROCm they go by the memory's own device, or through the host.
#[test]
fn copies_and_fills_need_no_access() {
    if !with_two_devices("copies_and_fills_need_no_access") {
        return;
    }
    on(1);
    let there = upload(&[7u32; N]);
    on(0);
    let (here, bytes) = (malloc(4 * N), 4 * N);
    let kind = hipMemcpyKind::hipMemcpyDeviceToDevice;
    ok!(hipMemcpy(here, there, bytes, kind));
    ok!(hipDeviceSynchronize());
    assert_eq!(download::<u32>(here, N), [7; N]);
    ok!(hipMemcpyPeer(there, 1, here, 0, bytes / 2));
    ok!(hipMemsetD32(there, 9, N / 2));
    ok!(hipDeviceSynchronize());
    let mut expected = [7; N];
    expected[..N / 2].fill(9);
    assert_eq!(download::<u32>(there, N), expected);
}

/// A word that a stream waits for or writes is touched by a kernel of the stream's device.
#[test]
fn a_streams_words_lie_where_its_device_reaches() {
    if !with_two_devices("a_streams_words_lie_where_its_device_reaches") {
        return;
    }
    on(1);
    let there = upload(&[0u32; 1]);
    on(0);
    let stream = stream();
    let refused = hipError_t::hipErrorInvalidValue;
    assert_eq!(hip!(hipStreamWriteValue32(stream, there, 1, 0)), refused);
    assert_eq!(hip!(hipStreamWaitValue32(stream, there, 1, 0, u32::MAX)), refused);
    ok!(hipDeviceEnablePeerAccess(1, 0));
    ok!(hipStreamWriteValue32(stream, there, 1, 0));
    ok!(hipStreamWaitValue32(stream, there, 1, 0, u32::MAX));
    ok!(hipStreamSynchronize(stream));
    assert_eq!(download::<u32>(there, 1), [1]);
}
