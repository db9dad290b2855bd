//! The second branch of a graph runs in a helper; the stream of the launch tells what went wrong there. Alone in its
//! program, since the error is also the device's.

#[path = "../../hip-host/tests/common/mod.rs"]
mod common;

use std::ffi::c_void;
use std::ptr::null_mut;

use common::*;
use hip_sys::{hipError_t, hipStreamCaptureMode};

#[test]
fn an_error_in_a_branch_is_told_by_the_stream_of_the_launch() {
    let stream = stream();
    let mut handle = null_mut();
    let rocblas = hip_host_blas::rocblas_api();
    let (matrix, array) = (upload(&[1f32]), upload(&[null_mut::<c_void>()]));
    let (one, zero) = (1f32, 0f32);
    let none = rocblas_sys::rocblas_operation::rocblas_operation_none;
    let mode = hipStreamCaptureMode::hipStreamCaptureModeRelaxed;
    let mut fork = null_mut();
    ok!(hipEventCreate(&mut fork));
    let branch = self::stream();
    ok!(hipStreamBeginCapture(stream, mode));
    ok!(hipEventRecord(fork, stream));
    ok!(hipStreamWaitEvent(branch, fork, 0));
    ok!(hipMemsetD32Async(matrix, 0, 1, stream));
    // SAFETY: memory of the sizes that are told; the null in the array is what the call is to find.
    unsafe {
        let done = rocblas_sys::rocblas_status::rocblas_status_success;
        assert_eq!(rocblas.rocblas_create_handle.unwrap()(&mut handle), done);
        assert_eq!(rocblas.rocblas_set_stream.unwrap()(handle, branch), done);
        let gemm = rocblas.rocblas_sgemm_batched.unwrap();
        let (a, c) = (array.cast(), array.cast());
        let status = gemm(handle, none, none, 1, 1, 1, &one, a, 1, a, 1, &zero, c, 1, 1);
        assert_eq!(status, done);
    }
    ok!(hipEventRecord(fork, branch));
    ok!(hipStreamWaitEvent(stream, fork, 0));
    let mut graph = null_mut();
    ok!(hipStreamEndCapture(stream, &mut graph));
    let mut exec = null_mut();
    ok!(hipGraphInstantiateWithFlags(&mut exec, graph, 0));
    ok!(hipGraphLaunch(exec, stream));
    assert_eq!(hip!(hipStreamSynchronize(stream)), hipError_t::hipErrorLaunchFailure);
}
