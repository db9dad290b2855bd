//! Filling memory.

use std::ffi::{c_int, c_uchar, c_ushort, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use hip_sys::{hipDeviceptr_t, hipError_t, hipExtent, hipPitchedPtr, hipStream_t};

use super::registry::{self, Kind};
use crate::error::{Result, entry};
use crate::graph::{Operation, capture};
use crate::work::Task;
use crate::{log, stream, workers};

/// Elements of one piece when several threads share a fill.
const PIECE: usize = 1 << 20;

/// An element's value: what it fills with, and how wide it is.
#[derive(Clone, Copy)]
pub(crate) enum Value {
    Byte(u8),
    Half(u16),
    Word(u32),
}

impl Value {
    fn bytes(self) -> usize {
        match self {
            Self::Byte(_) => 1,
            Self::Half(_) => 2,
            Self::Word(_) => 4,
        }
    }

    /// # Safety
    /// `count` elements at `address` are valid for writing, and the address is aligned for them.
    unsafe fn fill(self, address: usize, count: usize) {
        // SAFETY: the caller's word.
        unsafe {
            match self {
                Self::Byte(value) => fill(address, count, value),
                Self::Half(value) => fill(address, count, value),
                Self::Word(value) => fill(address, count, value),
            }
        }
    }
}

/// # Safety
/// `count` elements at `address` are valid for writing, and the address is aligned for them.
unsafe fn fill<T: Copy + Send + Sync>(address: usize, count: usize, value: T) {
    workers::for_each(count.div_ceil(PIECE) as u64, 1, &|pieces| {
        let start = pieces.start as usize * PIECE;
        let end = (pieces.end as usize * PIECE).min(count);
        // SAFETY: a part of the elements the caller vouches for; parts do not overlap.
        let part = unsafe {
            std::slice::from_raw_parts_mut(
                (address as *mut T).add(start).cast::<std::mem::MaybeUninit<T>>(),
                end - start,
            )
        };
        part.fill(std::mem::MaybeUninit::new(value));
    });
}

/// What is to be filled: `depth` slices of `height` rows of `width` elements; pitch and slice are bytes.
#[derive(Clone, Copy)]
pub(crate) struct Filling {
    pub(crate) to: usize,
    pub(crate) value: Value,
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
    pub(crate) pitch: usize,
    pub(crate) slice: usize,
}

impl Filling {
    fn row(to: *mut c_void, value: Value, count: usize) -> Self {
        Self {
            to: to as usize,
            value,
            width: count,
            height: 1,
            depth: 1,
            pitch: 0,
            slice: 0,
        }
    }

    /// Checks the memory; `None` if there is nothing to fill, else the work and whether the memory is a device's.
    pub(crate) fn prepare(&self, call: &'static str) -> Result<Option<(Task, bool)>> {
        let filling = *self;
        let invalid = hipError_t::hipErrorInvalidValue;
        if filling.width == 0 || filling.height == 0 || filling.depth == 0 {
            return Ok(None);
        }
        let width = filling.width.checked_mul(filling.value.bytes()).ok_or(invalid)?;
        let rows = (filling.height - 1).checked_mul(filling.pitch);
        let slices = (filling.depth - 1).checked_mul(filling.slice);
        let bytes = rows
            .zip(slices)
            .and_then(|(rows, slices)| rows.checked_add(slices)?.checked_add(width))
            .ok_or(invalid)?;
        let Ok(allocation) = registry::device_range(filling.to, bytes) else {
            log::refused(
                call,
                format_args!(
                    "{bytes} bytes at {:#x} are not device memory, out of bounds or freed",
                    filling.to
                ),
            );
            return Err(invalid);
        };
        if allocation.kind == Kind::ForeignVram {
            // A CPU loop through the PCI window on ROCm, or a crash (rocclr/device/rocm/rocblit.cpp, `fillBuffer`).
            log::refused(
                call,
                format_args!("{:#x} is OpenCL device memory; fill it with a kernel", filling.to),
            );
            return Err(invalid);
        }
        let alignment = filling.value.bytes();
        if !allocation.is_writable() {
            return Err(invalid);
        }
        if [filling.to, filling.pitch, filling.slice]
            .iter()
            .any(|distance| !distance.is_multiple_of(alignment))
        {
            return Err(invalid);
        }
        let on_device = allocation.kind.is_device();
        let task: Task = Arc::new(move || {
            let _alive = &allocation;
            for slice in 0..filling.depth {
                for row in 0..filling.height {
                    let address = filling.to + slice * filling.slice + row * filling.pitch;
                    // SAFETY: the row lies in the extent that was checked to lie in the allocation, which is held; the
                    // address and the distances are aligned for the element.
                    unsafe { filling.value.fill(address, filling.width) };
                }
            }
            Ok(())
        });
        Ok(Some((task, on_device)))
    }
}

fn set(call: &'static str, filling: Filling, stream: hipStream_t, waits: bool) -> Result {
    let stream = stream::find(stream)?;
    if waits {
        capture::forbid(call)?;
    }
    let Some((task, on_device)) = filling.prepare(call)? else {
        return Ok(());
    };
    let captured = || Operation::Set(filling);
    let Some(mark) = stream.issue_task(call, task, captured)? else {
        return Ok(());
    };
    // Filling device memory does not wait for the host's sake; filling host memory by a blocking call does.
    if waits && !on_device {
        mark.wait();
        return mark.outcome();
    }
    Ok(())
}

macro_rules! bytes {
    ($($function:ident $name:literal ($($stream:ident)?) $chosen:expr, $waits:literal;)*) => {$(
        pub(crate) unsafe extern "C" fn $function(to: *mut c_void, value: c_int, bytes: usize, $($stream: hipStream_t)?) -> hipError_t {
            entry($name, || set($name, Filling::row(to, Value::Byte(value as u8), bytes), $chosen, $waits))
        }
    )*};
}

bytes! {
    memset "hipMemset" () null_mut(), true;
    memset_async "hipMemsetAsync" (stream) stream, false;
    memset_spt "hipMemset_spt" () stream::own(null_mut()), true;
    memset_async_spt "hipMemsetAsync_spt" (stream) stream::own(stream), false;
}

macro_rules! elements {
    ($($now:ident $now_name:literal, $queued:ident $queued_name:literal: $given:ty as $element:ty, $value:path;)*) => {$(
        pub(crate) unsafe extern "C" fn $now(to: hipDeviceptr_t, value: $given, count: usize) -> hipError_t {
            entry($now_name, || set($now_name, Filling::row(to, $value(value as $element), count), null_mut(), true))
        }

        pub(crate) unsafe extern "C" fn $queued(to: hipDeviceptr_t, value: $given, count: usize, stream: hipStream_t) -> hipError_t {
            entry($queued_name, || set($queued_name, Filling::row(to, $value(value as $element), count), stream, false))
        }
    )*};
}

elements! {
    memset_d8 "hipMemsetD8", memset_d8_async "hipMemsetD8Async": c_uchar as u8, Value::Byte;
    memset_d16 "hipMemsetD16", memset_d16_async "hipMemsetD16Async": c_ushort as u16, Value::Half;
    memset_d32 "hipMemsetD32", memset_d32_async "hipMemsetD32Async": c_int as u32, Value::Word;
}

/// # Errors
/// `hipErrorInvalidValue` if a row does not fit its pitch, or the rows of a slice the slice.
fn slices(to: hipPitchedPtr, value: c_int, extent: hipExtent) -> Result<Filling> {
    let hipExtent { width, height, depth } = extent;
    let empty = width == 0 || height == 0 || depth == 0;
    if !empty && (width > to.pitch || (depth > 1 && height > to.ysize)) {
        return Err(hipError_t::hipErrorInvalidValue);
    }
    let slice = to.pitch.checked_mul(to.ysize).ok_or(hipError_t::hipErrorInvalidValue)?;
    Ok(Filling {
        to: to.ptr as usize,
        value: Value::Byte(value as u8),
        width,
        height,
        depth,
        pitch: to.pitch,
        slice,
    })
}

macro_rules! rows {
    ($($function:ident $name:literal ($($stream:ident)?) $chosen:expr, $waits:literal;)*) => {$(
        pub(crate) unsafe extern "C" fn $function(
            to: *mut c_void,
            pitch: usize,
            value: c_int,
            width: usize,
            height: usize,
            $($stream: hipStream_t)?
        ) -> hipError_t {
            entry($name, || {
                let to = hipPitchedPtr { ptr: to, pitch, xsize: width, ysize: height };
                let filling = slices(to, value, hipExtent { width, height, depth: 1 })?;
                set($name, filling, $chosen, $waits)
            })
        }
    )*};
}

rows! {
    memset_2d "hipMemset2D" () null_mut(), true;
    memset_2d_async "hipMemset2DAsync" (stream) stream, false;
    memset_2d_spt "hipMemset2D_spt" () stream::own(null_mut()), true;
    memset_2d_async_spt "hipMemset2DAsync_spt" (stream) stream::own(stream), false;
}

macro_rules! volumes {
    ($($function:ident $name:literal ($($stream:ident)?) $chosen:expr, $waits:literal;)*) => {$(
        pub(crate) unsafe extern "C" fn $function(
            to: hipPitchedPtr,
            value: c_int,
            extent: hipExtent,
            $($stream: hipStream_t)?
        ) -> hipError_t {
            entry($name, || set($name, slices(to, value, extent)?, $chosen, $waits))
        }
    )*};
}

volumes! {
    memset_3d "hipMemset3D" () null_mut(), true;
    memset_3d_async "hipMemset3DAsync" (stream) stream, false;
    memset_3d_spt "hipMemset3D_spt" () stream::own(null_mut()), true;
    memset_3d_async_spt "hipMemset3DAsync_spt" (stream) stream::own(stream), false;
}
