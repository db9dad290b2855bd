//! HIP's functions.
#![allow(non_snake_case, reason = "C names")]

use hip_sys::*;

use crate::export;

static TABLE: Api = model::hip_api();

hip_sys::for_each_function!(export);
