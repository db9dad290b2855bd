//! Scalars and results by the handle's pointer mode, for the calls that the device runs without
//! the host's help.
//!
//! | mode | alpha, beta | result of a reduction |
//! |---|---|---|
//! | host | read at the call | written before the call returns, which therefore waits |
//! | device | read in stream order | written in stream order |
//!
//! A stream that captures records a call with what the scalars are at that moment in host mode; a result for the host
//! ends the capture, because its call waits.
//!
//! (The level-3 calls of [`arguments::scalar`](super::arguments::scalar) fetch theirs to the host,
//! as rocBLAS does for Tensile: library/src/blas3/rocblas_gemm.hpp.)

use std::sync::mpsc::sync_channel;

use rocblas_sys::{rocblas_pointer_mode, rocblas_status};

use super::arguments::{Carried, check_aligned, check_range, enqueue, enqueue_awaited, fail_in_stream};
use super::handle::Handle;
use super::status::Outcome;

fn on_host(handle: &Handle) -> bool {
    handle.pointer_mode == rocblas_pointer_mode::rocblas_pointer_mode_host
}

/// Runs `work` in stream order with the scalars that `pointers` point at.
///
/// `check` sees the scalars and decides whether there is work (`Ok(false)` is a quick return) and
/// whether its memory may be touched. In host mode that happens at the call; in device mode the
/// scalars are known only in stream order, and what `check` refuses there is the stream's
/// asynchronous error, as a fault on the device would be.
///
/// # Safety
/// In host mode the pointers that are not null are readable. `work` may be called if `check` succeeded.
pub(crate) unsafe fn with_scalars<T: Copy + Send + Sync + 'static, const N: usize>(
    handle: &Handle,
    call: &'static str,
    pointers: [*const T; N],
    check: impl Fn([T; N]) -> Outcome<bool> + Send + Sync + 'static,
    work: impl Fn([T; N]) + Send + Sync + 'static,
) -> Outcome {
    if pointers.iter().any(|pointer| pointer.is_null()) {
        return Err(rocblas_status::rocblas_status_invalid_pointer);
    }
    if on_host(handle) {
        // SAFETY: not null, and the caller's promise; C does not promise an alignment to Rust.
        let scalars = pointers.map(|pointer| unsafe { pointer.read_unaligned() });
        if check(scalars)? {
            enqueue(handle, call, move || work(scalars))?;
        }
        return Ok(());
    }
    for pointer in pointers {
        check_aligned(call, "alpha or beta", pointer)?;
        check_range(call, "alpha or beta", pointer.cast(), size_of::<T>())?;
    }
    let pointers = pointers.map(Carried);
    enqueue(handle, call, move || {
        // SAFETY: the ranges were checked, and freeing device memory waits for the stream.
        let scalars = pointers.map(|pointer| unsafe { pointer.get().read() });
        match check(scalars) {
            Ok(true) => work(scalars),
            Ok(false) => {}
            Err(status) => fail_in_stream(format!("{call}: {status:?}")),
        }
    })
}

/// Stores what `work` computes, in stream order, at `result`.
///
/// # Safety
/// In host mode `result` is null or writable.
pub(crate) unsafe fn deliver<R: Copy + Send + 'static>(
    handle: &Handle,
    call: &'static str,
    result: *mut R,
    work: impl Fn() -> R + Send + Sync + 'static,
) -> Outcome {
    if result.is_null() {
        return Err(rocblas_status::rocblas_status_invalid_pointer);
    }
    if on_host(handle) {
        let (send, receive) = sync_channel(1);
        enqueue_awaited(handle, call, move || {
            // The receiver waits below until this is sent.
            let _ = send.send(work());
        })?;
        let value = receive
            .recv()
            .map_err(|_| rocblas_status::rocblas_status_internal_error)?;
        // SAFETY: not null, and the caller's promise; C does not promise an alignment to Rust.
        unsafe { result.write_unaligned(value) };
        return Ok(());
    }
    check_aligned(call, "result", result)?;
    check_range(call, "result", result.cast_const().cast(), size_of::<R>())?;
    let result = Carried(result);
    enqueue(handle, call, move || {
        // SAFETY: the range was checked, and freeing device memory waits for the stream.
        unsafe { result.get().write(work()) };
    })
}
