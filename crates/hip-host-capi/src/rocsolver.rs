//! rocSOLVER's functions.
#![allow(non_snake_case, reason = "C names")]

use hip_sys::hipStream_t;
use rocblas_sys::*;
use rocsolver_sys::*;

use crate::export;

static TABLE: rocsolver_sys::Api = hip_host_blas::rocsolver_api();

rocsolver_sys::for_each_function!(export);
