//! Filling memory.

use std::ffi::{c_int, c_uchar, c_ushort, c_void};

use hip_sys::{hipDeviceptr_t, hipError_t, hipStream_t};

use super::registry::{self, Kind};
use crate::error::{Result, entry};
use crate::launch::pool;
use crate::log;
use crate::stream;

/// Elements of one piece when several threads share a fill.
const PIECE: usize = 1 << 20;

fn fill<T: Copy + Send + Sync + 'static>(
    call: &'static str,
    to: *mut c_void,
    value: T,
    count: usize,
    stream: hipStream_t,
    waits: bool,
) -> Result {
    let stream = stream::find(stream)?;
    if count == 0 {
        return Ok(());
    }
    let address = to as usize;
    let bytes = count
        .checked_mul(size_of::<T>())
        .ok_or(hipError_t::hipErrorInvalidValue)?;
    let Ok(allocation) = registry::device_range(address, bytes) else {
        log::refused(
            call,
            format_args!(
                "{bytes} bytes at {to:p} are not device memory, or out of bounds, or freed"
            ),
        );
        return Err(hipError_t::hipErrorInvalidValue);
    };
    if allocation.kind == Kind::ForeignVram {
        // A CPU loop through the PCI window on ROCm, or a crash (rocclr/device/rocm/rocblit.cpp, `fillBuffer`).
        log::refused(
            call,
            format_args!("{to:p} belongs to OpenCL's device memory; fill it with a kernel"),
        );
        return Err(hipError_t::hipErrorInvalidValue);
    }
    if !address.is_multiple_of(align_of::<T>()) {
        return Err(hipError_t::hipErrorInvalidValue);
    }
    // Filling device memory does not wait for the host's sake; filling host memory by a blocking call does.
    let waits = waits && allocation.kind != Kind::Device;
    let mark = stream.submit(
        call,
        Vec::new(),
        Box::new(move || {
            pool::for_each(count.div_ceil(PIECE) as u64, 1, &|pieces| {
                let start = pieces.start as usize * PIECE;
                let end = (pieces.end as usize * PIECE).min(count);
                // SAFETY: a part of `count` elements that were checked to lie in `allocation`, which is held; parts do
                // not overlap; the address is aligned for `T`.
                let part = unsafe {
                    std::slice::from_raw_parts_mut(
                        (address as *mut T)
                            .add(start)
                            .cast::<std::mem::MaybeUninit<T>>(),
                        end - start,
                    )
                };
                part.fill(std::mem::MaybeUninit::new(value));
            });
            drop(allocation);
            Ok(())
        }),
    )?;
    if waits {
        mark.wait();
        return mark.take_error();
    }
    Ok(())
}

pub(crate) unsafe extern "C" fn memset(to: *mut c_void, value: c_int, bytes: usize) -> hipError_t {
    entry("hipMemset", || {
        fill(
            "hipMemset",
            to,
            value as u8,
            bytes,
            std::ptr::null_mut(),
            true,
        )
    })
}

pub(crate) unsafe extern "C" fn memset_async(
    to: *mut c_void,
    value: c_int,
    bytes: usize,
    stream: hipStream_t,
) -> hipError_t {
    entry("hipMemsetAsync", || {
        fill("hipMemsetAsync", to, value as u8, bytes, stream, false)
    })
}

macro_rules! fills {
    ($($now:ident $now_name:literal, $queued:ident $queued_name:literal: $given:ty as $element:ty;)*) => {$(
        pub(crate) unsafe extern "C" fn $now(to: hipDeviceptr_t, value: $given, count: usize) -> hipError_t {
            entry($now_name, || fill($now_name, to, value as $element, count, std::ptr::null_mut(), true))
        }

        pub(crate) unsafe extern "C" fn $queued(to: hipDeviceptr_t, value: $given, count: usize, stream: hipStream_t) -> hipError_t {
            entry($queued_name, || fill($queued_name, to, value as $element, count, stream, false))
        }
    )*};
}

fills! {
    memset_d8 "hipMemsetD8", memset_d8_async "hipMemsetD8Async": c_uchar as u8;
    memset_d16 "hipMemsetD16", memset_d16_async "hipMemsetD16Async": c_ushort as u16;
    memset_d32 "hipMemsetD32", memset_d32_async "hipMemsetD32Async": c_int as u32;
}
