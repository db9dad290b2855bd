//! HIPRTC's functions.
#![allow(non_snake_case, reason = "C names")]

use hip_sys::*;

use crate::export;

static TABLE: RtcApi = model::rtc_api();

hip_sys::for_each_rtc_function!(export);
