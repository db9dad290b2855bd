//! Streams that wait for a word in memory, or write one.

use std::ffi::{c_uint, c_void};

use hip_sys::{hipStream_t, hipStreamWaitValueAnd, hipStreamWaitValueEq, hipStreamWaitValueGte, hipStreamWaitValueNor};

use crate::device::here;
use crate::error::{INVALID, Result, UNSUPPORTED, calls, not_null};
use crate::memory::address;

/// The comparison, whose numbers both APIs share. CUDA has no mask: a wait with one is refused unless it is all ones.
fn condition(flags: c_uint, mask_is_whole: bool) -> Result<c_uint> {
    let known = [
        hipStreamWaitValueGte,
        hipStreamWaitValueEq,
        hipStreamWaitValueAnd,
        hipStreamWaitValueNor,
    ];
    match known.contains(&flags) {
        true if mask_is_whole => Ok(flags),
        true => Err(UNSUPPORTED),
        false => Err(INVALID),
    }
}

/// A write has no flags in HIP.
fn no_flags(flags: c_uint) -> Result {
    if flags == 0 { Ok(()) } else { Err(INVALID) }
}

calls! {
    pub(crate) fn fill;

    fn hipStreamWaitValue32(stream: hipStream_t, at: *mut c_void, value: u32, flags: c_uint, mask: u32) {
        not_null!(at);
        here()?.cuStreamWaitValue32_v2(stream, address(at), value, condition(flags, mask == u32::MAX)?)
    }
    fn hipStreamWaitValue64(stream: hipStream_t, at: *mut c_void, value: u64, flags: c_uint, mask: u64) {
        not_null!(at);
        here()?.cuStreamWaitValue64_v2(stream, address(at), value, condition(flags, mask == u64::MAX)?)
    }
    fn hipStreamWriteValue32(stream: hipStream_t, at: *mut c_void, value: u32, flags: c_uint) {
        not_null!(at);
        no_flags(flags)?;
        here()?.cuStreamWriteValue32_v2(stream, address(at), value, 0)
    }
    fn hipStreamWriteValue64(stream: hipStream_t, at: *mut c_void, value: u64, flags: c_uint) {
        not_null!(at);
        no_flags(flags)?;
        here()?.cuStreamWriteValue64_v2(stream, address(at), value, 0)
    }
}

#[cfg(test)]
mod tests {
    use cudarc::driver::sys::CUstreamWaitValue_flags as Cu;

    use super::*;

    #[test]
    fn comparisons_have_cudas_numbers_and_masks_are_refused() {
        for (hip, cu) in [
            (hipStreamWaitValueGte, Cu::CU_STREAM_WAIT_VALUE_GEQ),
            (hipStreamWaitValueEq, Cu::CU_STREAM_WAIT_VALUE_EQ),
            (hipStreamWaitValueAnd, Cu::CU_STREAM_WAIT_VALUE_AND),
            (hipStreamWaitValueNor, Cu::CU_STREAM_WAIT_VALUE_NOR),
        ] {
            assert_eq!(condition(hip, true), Ok(cu as c_uint));
            assert_eq!(condition(hip, false), Err(UNSUPPORTED));
        }
        assert_eq!(condition(4, true), Err(INVALID));
    }
}
