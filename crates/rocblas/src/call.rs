//! One way to call rocBLAS and rocSOLVER, so that all failures read the same.

use rocblas_sys::rocblas_status;

use crate::{Error, Result, report};

/// What the library did with an accepted call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// Its work is queued.
    Queued,
    /// Nothing: the call only reported its workspace size.
    Sized,
}

/// Turns a status into a result. The text is only formatted on failure.
#[inline]
pub(crate) fn check(status: rocblas_status, call: impl FnOnce() -> String) -> Result<()> {
    match status {
        rocblas_status::rocblas_status_success => {
            report::accepted(call);
            Ok(())
        }
        status => Err(Error::Status {
            call: call(),
            name: status.name().unwrap_or("rocblas_status of a newer release"),
            code: status.0,
            remedy: remedy(status),
        }),
    }
}

fn remedy(status: rocblas_status) -> &'static str {
    match status {
        rocblas_status::rocblas_status_memory_error => {
            "; device memory is exhausted: free some, or use smaller matrices"
        }
        rocblas_status::rocblas_status_invalid_handle => {
            "; the device may be lost: see the first error of this process"
        }
        rocblas_status::rocblas_status_internal_error => {
            "; a HIP call inside failed: see earlier errors of this stream"
        }
        rocblas_status::rocblas_status_size_increased | rocblas_status::rocblas_status_size_unchanged => {
            "; nothing was computed, because a size query is open on the handle: end it if it was begun on the raw handle; \
             if `Handle::workspace_needed` could not end its own, use a new handle"
        }
        rocblas_status::rocblas_status_not_implemented => "; this platform does not have it",
        rocblas_status::rocblas_status_arch_mismatch => "; this rocBLAS was not built for the device",
        rocblas_status::rocblas_status_excluded_from_build => "; this rocBLAS was built without it",
        _ => "",
    }
}

/// The function in a slot, or the error that names it.
pub(crate) fn slot<F>(function: Option<F>, symbol: &'static str) -> Result<F> {
    let library = if symbol.starts_with("rocsolver_") {
        "rocSOLVER"
    } else {
        "rocBLAS"
    };
    function.ok_or(Error::MissingSymbol { symbol, library })
}
