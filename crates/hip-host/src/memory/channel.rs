//! Formats of array elements, which HIP only puts together.

use std::ffi::c_int;

use hip_sys::{hipChannelFormatDesc, hipChannelFormatKind};

pub(crate) unsafe extern "C" fn create_channel_desc(
    x: c_int,
    y: c_int,
    z: c_int,
    w: c_int,
    f: hipChannelFormatKind,
) -> hipChannelFormatDesc {
    hipChannelFormatDesc { x, y, z, w, f }
}
