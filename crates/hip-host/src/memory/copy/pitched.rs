//! Copies of rows and slices. There are not arrays: a description that names one is `hipErrorNotSupported`.

use std::ffi::c_void;
use std::ptr::null_mut;

use hip_sys::{
    HIP_MEMCPY3D, hip_Memcpy2D, hipError_t, hipExtent, hipMemcpy3DParms, hipMemcpyKind, hipMemoryType, hipPitchedPtr,
    hipPos, hipStream_t,
};

use super::shape::Layout;
use super::{Return, Shape, Transfer, copy};
use crate::error::{Result, entry};
use crate::stream;

macro_rules! rows {
    ($($function:ident $name:literal ($($stream:ident)?) $chosen:expr, $when:expr;)*) => {$(
        #[allow(clippy::too_many_arguments, reason = "the C signature")]
        pub(crate) unsafe extern "C" fn $function(
            to: *mut c_void,
            to_pitch: usize,
            from: *const c_void,
            from_pitch: usize,
            width: usize,
            height: usize,
            kind: hipMemcpyKind,
            $($stream: hipStream_t,)?
        ) -> hipError_t {
            entry($name, || {
                super::stated(kind)?;
                let shape = Shape::rows(width, height, to_pitch, from_pitch)?;
                let (to, from) = (to as usize, from as usize);
                copy($name, Transfer { to, from, shape, kind }, $chosen, $when)
            })
        }
    )*};
}

rows! {
    memcpy_2d "hipMemcpy2D" () null_mut(), Return::Done;
    memcpy_2d_async "hipMemcpy2DAsync" (stream) stream, Return::Queued;
    memcpy_2d_spt "hipMemcpy2D_spt" () stream::own(null_mut()), Return::Done;
    memcpy_2d_async_spt "hipMemcpy2DAsync_spt" (stream) stream::own(stream), Return::Queued;
}

/// One side of a copy as described.
struct CopyEnd {
    base: usize,
    layout: Layout,
    /// Of the first byte: in the row, and how many rows and slices before it.
    start: [usize; 3],
}

impl CopyEnd {
    /// The address of the first byte.
    fn first(&self) -> Result<usize> {
        let [x, y, z] = self.start;
        let rows = y.checked_mul(self.layout.pitch);
        let slices = z.checked_mul(self.layout.slice);
        if self.base == 0 {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        rows.zip(slices)
            .and_then(|(rows, slices)| rows.checked_add(slices)?.checked_add(x))
            .and_then(|offset| self.base.checked_add(offset))
            .ok_or(hipError_t::hipErrorInvalidValue)
    }

    /// Whether `extent` fits the rows and slices of this side.
    fn check(&self, extent: [usize; 3]) -> Result {
        let [x, y, _] = self.start;
        let ends = x.checked_add(extent[0]).zip(y.checked_add(extent[1]));
        let Some((row, column)) = ends else {
            return Err(hipError_t::hipErrorInvalidValue);
        };
        if row > self.layout.pitch {
            return Err(hipError_t::hipErrorInvalidPitchValue);
        }
        let slice_rows = self.layout.slice / self.layout.pitch.max(1);
        if extent[2] > 1 && column > slice_rows {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        Ok(())
    }
}

fn transfer(to: &CopyEnd, from: &CopyEnd, extent: [usize; 3], kind: hipMemcpyKind) -> Result<Transfer> {
    let [width, height, depth] = extent;
    let shape = Shape {
        width,
        height,
        depth,
        to: to.layout,
        from: from.layout,
    };
    if shape.is_empty() {
        return Ok(Transfer {
            to: 0,
            from: 0,
            shape,
            kind,
        });
    }
    to.check(extent)?;
    from.check(extent)?;
    Ok(Transfer {
        to: to.first()?,
        from: from.first()?,
        shape,
        kind,
    })
}

fn described(ptr: hipPitchedPtr, position: hipPos) -> Result<CopyEnd> {
    let slice = ptr
        .pitch
        .checked_mul(ptr.ysize)
        .ok_or(hipError_t::hipErrorInvalidValue)?;
    Ok(CopyEnd {
        base: ptr.ptr as usize,
        layout: Layout {
            pitch: ptr.pitch,
            slice,
        },
        start: [position.x, position.y, position.z],
    })
}

/// The parameters of `hipMemcpy3D` as a copy.
///
/// # Safety
/// `params` is null or readable.
pub(crate) unsafe fn from_3d_params(params: *const hipMemcpy3DParms) -> Result<Transfer> {
    if params.is_null() {
        return Err(hipError_t::hipErrorInvalidValue);
    }
    // SAFETY: not null; readable by this function's contract.
    let p = unsafe { params.read_unaligned() };
    // Exactly one of array and pointer on each side (hipamd/src/hip_memory.cpp, `ihipMemcpy3D_validate`).
    if (!p.srcArray.is_null() && !p.srcPtr.ptr.is_null()) || (!p.dstArray.is_null() && !p.dstPtr.ptr.is_null()) {
        return Err(hipError_t::hipErrorInvalidValue);
    }
    if !p.srcArray.is_null() || !p.dstArray.is_null() {
        return Err(hipError_t::hipErrorNotSupported);
    }
    let hipExtent { width, height, depth } = p.extent;
    transfer(
        &described(p.dstPtr, p.dstPos)?,
        &described(p.srcPtr, p.srcPos)?,
        [width, height, depth],
        p.kind,
    )
}

/// The address that a description names by memory type, and whether it is the host's.
fn by_type(kind: hipMemoryType, host: *const c_void, device: *const c_void) -> Result<(usize, Option<bool>)> {
    match kind {
        hipMemoryType::hipMemoryTypeHost => Ok((host as usize, Some(true))),
        hipMemoryType::hipMemoryTypeDevice => Ok((device as usize, Some(false))),
        // Its address stands in the device's field.
        hipMemoryType::hipMemoryTypeUnified | hipMemoryType::hipMemoryTypeManaged => Ok((device as usize, None)),
        hipMemoryType::hipMemoryTypeArray => Err(hipError_t::hipErrorNotSupported),
        _ => Err(hipError_t::hipErrorInvalidValue),
    }
}

fn direction(to_host: Option<bool>, from_host: Option<bool>) -> hipMemcpyKind {
    match (to_host, from_host) {
        (Some(true), Some(true)) => hipMemcpyKind::hipMemcpyHostToHost,
        (Some(true), Some(false)) => hipMemcpyKind::hipMemcpyDeviceToHost,
        (Some(false), Some(true)) => hipMemcpyKind::hipMemcpyHostToDevice,
        (Some(false), Some(false)) => hipMemcpyKind::hipMemcpyDeviceToDevice,
        _ => hipMemcpyKind::hipMemcpyDefault,
    }
}

/// The parameters of `hipDrvMemcpy3D` as a copy.
///
/// # Safety
/// `params` is null or readable.
pub(crate) unsafe fn from_driver_params(params: *const HIP_MEMCPY3D) -> Result<Transfer> {
    if params.is_null() {
        return Err(hipError_t::hipErrorInvalidValue);
    }
    // SAFETY: not null; readable by this function's contract.
    let p = unsafe { params.read_unaligned() };
    let extent = [p.WidthInBytes, p.Height, p.Depth];
    let side = |base, pitch: usize, height: usize, start: [usize; 3]| -> Result<CopyEnd> {
        // Zero means: as wide and high as the copy.
        let pitch = if pitch == 0 {
            start[0].saturating_add(extent[0])
        } else {
            pitch
        };
        let height = if height == 0 {
            start[1].saturating_add(extent[1])
        } else {
            height
        };
        Ok(CopyEnd {
            base,
            layout: Layout {
                pitch,
                slice: pitch.checked_mul(height).ok_or(hipError_t::hipErrorInvalidValue)?,
            },
            start,
        })
    };
    let (to, to_host) = by_type(p.dstMemoryType, p.dstHost, p.dstDevice)?;
    let (from, from_host) = by_type(p.srcMemoryType, p.srcHost, p.srcDevice)?;
    transfer(
        &side(to, p.dstPitch, p.dstHeight, [p.dstXInBytes, p.dstY, p.dstZ])?,
        &side(from, p.srcPitch, p.srcHeight, [p.srcXInBytes, p.srcY, p.srcZ])?,
        extent,
        direction(to_host, from_host),
    )
}

/// The parameters of `hipMemcpyParam2D` as a copy.
///
/// # Safety
/// `params` is null or readable.
unsafe fn from_2d_params(params: *const hip_Memcpy2D) -> Result<Transfer> {
    if params.is_null() {
        return Err(hipError_t::hipErrorInvalidValue);
    }
    // SAFETY: not null; readable by this function's contract.
    let p = unsafe { params.read_unaligned() };
    let side = |base, pitch, start| CopyEnd {
        base,
        layout: Layout { pitch, slice: 0 },
        start,
    };
    let (to, to_host) = by_type(p.dstMemoryType, p.dstHost, p.dstDevice)?;
    let (from, from_host) = by_type(p.srcMemoryType, p.srcHost, p.srcDevice)?;
    transfer(
        &side(to, p.dstPitch, [p.dstXInBytes, p.dstY, 0]),
        &side(from, p.srcPitch, [p.srcXInBytes, p.srcY, 0]),
        [p.WidthInBytes, p.Height, 1],
        direction(to_host, from_host),
    )
}

macro_rules! described_copies {
    ($($function:ident $name:literal ($params:ty) $read:ident ($($stream:ident)?) $chosen:expr, $when:expr;)*) => {$(
        pub(crate) unsafe extern "C" fn $function(params: *const $params, $($stream: hipStream_t)?) -> hipError_t {
            entry($name, || {
                // SAFETY: null is refused; otherwise the C caller promises a description it has filled.
                let transfer = unsafe { $read(params) }?;
                copy($name, transfer, $chosen, $when)
            })
        }
    )*};
}

described_copies! {
    memcpy_3d "hipMemcpy3D" (hipMemcpy3DParms) from_3d_params () null_mut(), Return::Done;
    memcpy_3d_async "hipMemcpy3DAsync" (hipMemcpy3DParms) from_3d_params (stream) stream, Return::Queued;
    memcpy_3d_spt "hipMemcpy3D_spt" (hipMemcpy3DParms) from_3d_params () stream::own(null_mut()), Return::Done;
    memcpy_3d_async_spt "hipMemcpy3DAsync_spt" (hipMemcpy3DParms) from_3d_params (stream) stream::own(stream), Return::Queued;
    drv_memcpy_3d "hipDrvMemcpy3D" (HIP_MEMCPY3D) from_driver_params () null_mut(), Return::Done;
    drv_memcpy_3d_async "hipDrvMemcpy3DAsync" (HIP_MEMCPY3D) from_driver_params (stream) stream, Return::Queued;
    memcpy_param_2d "hipMemcpyParam2D" (hip_Memcpy2D) from_2d_params () null_mut(), Return::Done;
    memcpy_param_2d_async "hipMemcpyParam2DAsync" (hip_Memcpy2D) from_2d_params (stream) stream, Return::Queued;
    drv_memcpy_2d_unaligned "hipDrvMemcpy2DUnaligned" (hip_Memcpy2D) from_2d_params () null_mut(), Return::Done;
}
