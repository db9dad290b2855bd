//! rocBLAS's functions.
#![allow(non_snake_case, reason = "C names")]

use hip_sys::{hipEvent_t, hipStream_t};
use rocblas_sys::*;

use crate::export;

static TABLE: Api = hip_host_blas::rocblas_api();

rocblas_sys::for_each_function!(export);
