//! cuSOLVER, and its handle for a rocBLAS handle.

use std::ffi::{c_uint, c_void};

use hip_sys::hipStream_t;
use rocblas_sys::rocblas_status as Status;

use super::Result;
use super::handle::{Handle, Raw};
use crate::cuda::library::Opened;
use crate::cuda::{Symbol, c_name, opened_cusolver};
use crate::log;

pub(crate) fn library() -> Result<&'static Opened> {
    opened_cusolver().map_err(|cause| {
        log::driver("rocsolver", cause);
        Status::rocblas_status_not_implemented
    })
}

/// cuSOLVER's answer as a result (cusolver_common.h).
pub(crate) fn check(code: u32, function: &'static str) -> Result {
    if code == 0 {
        return Ok(());
    }
    log::driver(function, format_args!("cuSOLVER status {code}"));
    Err(match code {
        1 => Status::rocblas_status_invalid_handle,
        2 => Status::rocblas_status_memory_error,
        3 => Status::rocblas_status_invalid_size,
        4 => Status::rocblas_status_arch_mismatch,
        9 => Status::rocblas_status_not_implemented,
        _ => Status::rocblas_status_internal_error,
    })
}

/// A function of cuSOLVER (or cuBLAS) as a typed pointer.
macro_rules! typed {
    ($library:expr, $symbol:expr, fn($($ty:ty),* $(,)?)) => {{
        let found = $symbol
            .in_library($library)
            .ok_or(rocblas_sys::rocblas_status::rocblas_status_not_implemented)?;
        // SAFETY: the address of the function of the symbol's name, whose C signature is the one given.
        unsafe {
            std::mem::transmute::<*mut std::ffi::c_void, unsafe extern "C" fn($($ty),*) -> std::ffi::c_uint>(found)
        }
    }};
}
pub(crate) use typed;

/// cuSOLVER's handle, made when a routine first needs it.
pub(crate) struct Solver(Raw);

// SAFETY: a handle that belongs to no thread; rocBLAS' handle, which owns it, is used by one thread at a time.
unsafe impl Send for Solver {}
// SAFETY: as for `Send`.
unsafe impl Sync for Solver {}

impl Solver {
    fn create(stream: hipStream_t) -> Result<Self> {
        static CREATE: Symbol = Symbol::new(c_name("cusolverDnCreate\0"));
        let create = typed!(library()?, CREATE, fn(*mut Raw));
        let mut raw = std::ptr::null_mut();
        // SAFETY: writes one handle to the address given.
        check(unsafe { create(&mut raw) }, "cusolverDnCreate")?;
        let solver = Self(raw);
        solver.set_stream(stream)?;
        Ok(solver)
    }

    pub(crate) fn set_stream(&self, stream: hipStream_t) -> Result {
        static SET: Symbol = Symbol::new(c_name("cusolverDnSetStream\0"));
        let set = typed!(library()?, SET, fn(Raw, hipStream_t));
        // SAFETY: a live handle; the caller keeps the stream as long as it is set.
        check(unsafe { set(self.0, stream) }, "cusolverDnSetStream")
    }
}

impl Drop for Solver {
    fn drop(&mut self) {
        static DESTROY: Symbol = Symbol::new(c_name("cusolverDnDestroy\0"));
        if let Ok(library) = library()
            && let Some(found) = DESTROY.in_library(library)
        {
            // SAFETY: the address of the function of this name and signature (cusolverDn.h).
            let destroy = unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Raw) -> c_uint>(found) };
            // SAFETY: destroyed once. A failure leaves nothing to do.
            let _ = unsafe { destroy(self.0) };
        }
    }
}

/// cuSOLVER's handle of a rocBLAS handle.
pub(crate) fn solver(handle: &Handle) -> Result<Raw> {
    if let Some(solver) = handle.solver.get() {
        return Ok(solver.0);
    }
    let solver = Solver::create(handle.stream())?;
    Ok(handle.solver.get_or_init(|| solver).0)
}
