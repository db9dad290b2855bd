//! Configurations. The model knows one attribute: whether calls wait.

use std::ffi::{c_int, c_uint};
use std::mem::offset_of;
use std::ptr;

use rccl_sys::ncclConfig_t;

use crate::status::{Failure, Outcome};

/// What `NCCL_CONFIG_INITIALIZER` writes (nccl.h).
const MAGIC: c_uint = 0xcafe_beef;
const UNDEFINED: c_int = c_int::MIN;

/// Whether calls wait; `None` where it is left to the library, or to the parent of a split.
///
/// # Safety
/// `config` is null, or as many bytes as it says are readable.
pub(crate) unsafe fn blocking(call: &str, config: *const ncclConfig_t) -> Outcome<Option<bool>> {
    if config.is_null() {
        return Ok(None);
    }
    let wrong = |what: String| Err(Failure::argument(format!("{call}: the configuration {what}")));
    // SAFETY: not null, so at least its size can be read.
    let size = unsafe { ptr::read_unaligned(config.cast::<usize>()) };
    let least = offset_of!(ncclConfig_t, blocking) + size_of::<c_int>();
    if size < least {
        return wrong(format!("has {size} bytes, fewer than {least}"));
    }
    // One of an older or newer release ends elsewhere.
    let mut read = undefined();
    // SAFETY: as many bytes as both have; any bytes are numbers and pointers, which are only compared.
    unsafe {
        ptr::copy_nonoverlapping(
            config.cast::<u8>(),
            (&raw mut read).cast(),
            size.min(size_of_val(&read)),
        )
    };
    if read.magic != MAGIC {
        return wrong("was not made by NCCL_CONFIG_INITIALIZER".to_owned());
    }
    let others = [
        read.cgaClusterSize,
        read.minCTAs,
        read.maxCTAs,
        read.splitShare,
        read.trafficClass,
        read.collnetEnable,
        read.CTAPolicy,
        read.shrinkShare,
        read.nvlsCTAs,
    ];
    if others != [UNDEFINED; 9] || !read.netName.is_null() || !read.commName.is_null() {
        return wrong("has an attribute that the model lacks; it has `blocking` only".to_owned());
    }
    match read.blocking {
        UNDEFINED => Ok(None),
        0 => Ok(Some(false)),
        1 => Ok(Some(true)),
        other => wrong(format!("says {other} for `blocking`")),
    }
}

fn undefined() -> ncclConfig_t {
    ncclConfig_t {
        blocking: UNDEFINED,
        cgaClusterSize: UNDEFINED,
        minCTAs: UNDEFINED,
        maxCTAs: UNDEFINED,
        splitShare: UNDEFINED,
        trafficClass: UNDEFINED,
        collnetEnable: UNDEFINED,
        CTAPolicy: UNDEFINED,
        shrinkShare: UNDEFINED,
        nvlsCTAs: UNDEFINED,
        ..ncclConfig_t::default()
    }
}
