//! Calls of rocBLAS and rocSOLVER in a capture, where they are kernels like others.

#[path = "../../hip-host/tests/common/mod.rs"]
mod common;

use std::ffi::c_void;
use std::ptr::null_mut;

use common::*;
use hip_sys::{hipError_t, hipGraph_t, hipGraphExec_t, hipGraphNodeType, hipStream_t, hipStreamCaptureMode};
use rocblas_sys::{rocblas_handle, rocblas_pointer_mode, rocblas_status};

const DONE: rocblas_status = rocblas_status::rocblas_status_success;

/// Calls a rocBLAS function.
macro_rules! blas {
    ($function:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: the test passes arguments the function's contract allows, or ones it promises to refuse.
        unsafe { (hip_host_blas::rocblas_api().$function.expect(stringify!($function)))($($argument),*) }
    };
}

struct Capturing {
    stream: hipStream_t,
    handle: rocblas_handle,
}

impl Capturing {
    fn begin() -> Self {
        let stream = stream();
        let mut handle = null_mut();
        assert_eq!(blas!(rocblas_create_handle(&mut handle)), DONE);
        assert_eq!(blas!(rocblas_set_stream(handle, stream)), DONE);
        ok!(hipStreamBeginCapture(
            stream,
            hipStreamCaptureMode::hipStreamCaptureModeRelaxed
        ));
        Self { stream, handle }
    }

    fn scale(&self, by: *const f32, x: *mut c_void) -> rocblas_status {
        blas!(rocblas_sscal(self.handle, 4, by, x.cast(), 1))
    }

    fn end(&self) -> hipGraph_t {
        let mut graph = null_mut();
        ok!(hipStreamEndCapture(self.stream, &mut graph));
        graph
    }

    fn launch(&self, exec: hipGraphExec_t) {
        ok!(hipGraphLaunch(exec, self.stream));
        ok!(hipStreamSynchronize(self.stream));
    }
}

fn ready(graph: hipGraph_t) -> hipGraphExec_t {
    let mut exec = null_mut();
    ok!(hipGraphInstantiate(&mut exec, graph, null_mut(), null_mut(), 0));
    exec
}

#[test]
fn a_captured_call_runs_at_each_launch_with_the_host_scalars_it_was_given() {
    let x = upload(&[1f32, 2.0, 3.0, 4.0]);
    let capturing = Capturing::begin();
    let mut factor = 2f32;
    assert_eq!(capturing.scale(&factor, x), DONE);
    factor = 100.0;
    assert_eq!(capturing.scale(&(factor / 50.0), x), DONE);
    let graph = capturing.end();
    assert_eq!(download::<f32>(x, 4), [1.0, 2.0, 3.0, 4.0]);
    let mut nodes = [null_mut(); 3];
    let mut count = nodes.len();
    ok!(hipGraphGetNodes(graph, nodes.as_mut_ptr(), &mut count));
    assert_eq!(count, 2);
    let mut kind = hipGraphNodeType::hipGraphNodeTypeEmpty;
    ok!(hipGraphNodeGetType(nodes[0], &mut kind));
    assert_eq!(kind, hipGraphNodeType::hipGraphNodeTypeKernel);
    let exec = ready(graph);
    capturing.launch(exec);
    capturing.launch(exec);
    assert_eq!(download::<f32>(x, 4), [16.0, 32.0, 48.0, 64.0]);
}

#[test]
fn device_scalars_are_read_at_each_launch() {
    let (x, factor) = (upload(&[1f32; 4]), upload(&[2f32]));
    let capturing = Capturing::begin();
    let mode = rocblas_pointer_mode::rocblas_pointer_mode_device;
    assert_eq!(blas!(rocblas_set_pointer_mode(capturing.handle, mode)), DONE);
    assert_eq!(capturing.scale(factor.cast(), x), DONE);
    let exec = ready(capturing.end());
    capturing.launch(exec);
    ok!(hipMemsetD32(factor, 5f32.to_bits() as i32, 1));
    ok!(hipDeviceSynchronize());
    capturing.launch(exec);
    assert_eq!(download::<f32>(x, 4), [10.0; 4]);
}

#[test]
fn a_factorisation_and_a_solution_are_captured_in_their_order() {
    let a = upload(&[4f32, 2.0, 2.0, 5.0]);
    let (b, x) = (upload(&[8f32, 12.0]), malloc(8));
    let info = upload(&[-1i32]);
    let capturing = Capturing::begin();
    let (stream, handle) = (capturing.stream, capturing.handle);
    let kind = hip_sys::hipMemcpyKind::hipMemcpyDeviceToDevice;
    ok!(hipMemcpyAsync(x, b, 8, kind, stream));
    let lower = rocblas_sys::rocblas_fill::rocblas_fill_lower;
    let solver = hip_host_blas::rocsolver_api();
    // SAFETY: device memory of the sizes that are told.
    unsafe {
        let potrf = solver.rocsolver_spotrf.unwrap();
        assert_eq!(potrf(handle, lower, 2, a.cast(), 2, info.cast()), DONE);
        let potrs = solver.rocsolver_spotrs.unwrap();
        assert_eq!(potrs(handle, lower, 2, 1, a.cast(), 2, x.cast(), 2), DONE);
    }
    let exec = ready(capturing.end());
    assert_eq!(download::<i32>(info, 1), [-1]);
    capturing.launch(exec);
    assert_eq!(download::<i32>(info, 1), [0]);
    let solution = download::<f32>(x, 2);
    assert!((solution[0] - 1.0).abs() < 1e-6 && (solution[1] - 2.0).abs() < 1e-6);
}

/// rocBLAS waits for the stream to hand a result over, which no capture can hold.
#[test]
fn a_result_for_the_host_ends_the_capture() {
    let x = upload(&[1f32; 4]);
    let capturing = Capturing::begin();
    let mut result = 0f32;
    let status = blas!(rocblas_sdot(capturing.handle, 4, x.cast(), 1, x.cast(), 1, &mut result));
    assert_eq!(status, rocblas_status::rocblas_status_internal_error);
    let mut graph = null_mut();
    assert_eq!(
        hip!(hipStreamEndCapture(capturing.stream, &mut graph)),
        hipError_t::hipErrorStreamCaptureInvalidated
    );
    assert!(graph.is_null());
}

#[test]
fn a_launch_is_refused_when_a_calls_memory_was_freed() {
    let x = upload(&[1f32; 4]);
    let capturing = Capturing::begin();
    assert_eq!(capturing.scale(&2.0, x), DONE);
    let exec = ready(capturing.end());
    capturing.launch(exec);
    ok!(hipFree(x));
    assert_eq!(
        hip!(hipGraphLaunch(exec, capturing.stream)),
        hipError_t::hipErrorInvalidValue
    );
}
