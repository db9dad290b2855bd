//! Copies of rectangles and boxes. Arrays of textures are not built.

use std::ffi::c_void;

use cudarc::driver::sys::{CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUmemorytype};
use hip_sys::{hipMemcpy3DParms, hipMemcpyKind, hipStream_t};

use super::address;
use super::copy::check_kind;
use super::info::{Place, place};
use crate::device::here;
use crate::error::{INVALID, Result, UNSUPPORTED, calls, not_null};

/// The driver's memory type for an address. Memory that it does not know belongs to the host.
fn kind_of(at: *const c_void) -> Result<CUmemorytype> {
    Ok(match place(at)? {
        Place::Unknown | Place::Host => CUmemorytype::CU_MEMORYTYPE_HOST,
        Place::Device | Place::Managed => CUmemorytype::CU_MEMORYTYPE_DEVICE,
    })
}

/// A rectangle of bytes, by HIP's arguments.
struct Rectangle {
    to: *mut c_void,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    height: usize,
}

impl Rectangle {
    /// # Safety
    /// Both rectangles are valid memory until the stream has passed the copy.
    unsafe fn queue(&self, kind: hipMemcpyKind, stream: hipStream_t) -> Result {
        check_kind(kind)?;
        let driver = here()?;
        if self.width == 0 || self.height == 0 {
            return Ok(());
        }
        if self.to.is_null() || self.from.is_null() {
            return Err(INVALID);
        }
        if self.width > self.to_pitch || self.width > self.from_pitch {
            return Err(hip_sys::hipError_t::hipErrorInvalidPitchValue);
        }
        let copy = CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: kind_of(self.from)?,
            srcHost: self.from,
            srcDevice: address(self.from),
            srcArray: std::ptr::null_mut(),
            srcPitch: self.from_pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: kind_of(self.to)?,
            dstHost: self.to,
            dstDevice: address(self.to),
            dstArray: std::ptr::null_mut(),
            dstPitch: self.to_pitch,
            WidthInBytes: self.width,
            Height: self.height,
        };
        // SAFETY: the caller's promise; the description outlives the call.
        unsafe { driver.cuMemcpy2DAsync_v2(&copy, stream) }
    }
}

/// # Safety
/// As `hipMemcpy3DAsync`.
unsafe fn queue_box(parameters: *const hipMemcpy3DParms, stream: hipStream_t) -> Result {
    not_null!(parameters);
    // SAFETY: not null; filled by the C caller's promise.
    let p = unsafe { parameters.read_unaligned() };
    check_kind(p.kind)?;
    let driver = here()?;
    if !p.srcArray.is_null() || !p.dstArray.is_null() {
        return Err(UNSUPPORTED);
    }
    if p.extent.width == 0 || p.extent.height == 0 || p.extent.depth == 0 {
        return Ok(());
    }
    not_null!(p.srcPtr.ptr, p.dstPtr.ptr);
    let copy = CUDA_MEMCPY3D {
        srcXInBytes: p.srcPos.x,
        srcY: p.srcPos.y,
        srcZ: p.srcPos.z,
        srcLOD: 0,
        srcMemoryType: kind_of(p.srcPtr.ptr)?,
        srcHost: p.srcPtr.ptr,
        srcDevice: address(p.srcPtr.ptr),
        srcArray: std::ptr::null_mut(),
        reserved0: std::ptr::null_mut(),
        srcPitch: p.srcPtr.pitch,
        srcHeight: p.srcPtr.ysize,
        dstXInBytes: p.dstPos.x,
        dstY: p.dstPos.y,
        dstZ: p.dstPos.z,
        dstLOD: 0,
        dstMemoryType: kind_of(p.dstPtr.ptr)?,
        dstHost: p.dstPtr.ptr,
        dstDevice: address(p.dstPtr.ptr),
        dstArray: std::ptr::null_mut(),
        reserved1: std::ptr::null_mut(),
        dstPitch: p.dstPtr.pitch,
        dstHeight: p.dstPtr.ysize,
        WidthInBytes: p.extent.width,
        Height: p.extent.height,
        Depth: p.extent.depth,
    };
    // SAFETY: the caller's promise; the description outlives the call.
    unsafe { driver.cuMemcpy3DAsync_v2(&copy, stream) }
}

const NULL: hipStream_t = std::ptr::null_mut();

calls! {
    pub(crate) fn fill;

    fn hipMemcpy2D(
        to: *mut c_void, to_pitch: usize, from: *const c_void, from_pitch: usize,
        width: usize, height: usize, kind: hipMemcpyKind,
    ) {
        Rectangle { to, to_pitch, from, from_pitch, width, height }.queue(kind, NULL)?;
        here()?.cuStreamSynchronize(NULL)
    }
    fn hipMemcpy2DAsync(
        to: *mut c_void, to_pitch: usize, from: *const c_void, from_pitch: usize,
        width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t,
    ) {
        Rectangle { to, to_pitch, from, from_pitch, width, height }.queue(kind, stream)
    }
    fn hipMemcpy3D(parameters: *const hipMemcpy3DParms) {
        queue_box(parameters, NULL)?;
        here()?.cuStreamSynchronize(NULL)
    }
    fn hipMemcpy3DAsync(parameters: *const hipMemcpy3DParms, stream: hipStream_t) {
        queue_box(parameters, stream)
    }
}
