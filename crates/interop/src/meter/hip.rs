//! The copy calls of HIP.

use super::ledger::Ledger;
use super::slots::{self, Lease, Outcome, Slot, counted_table};
use hip_sys::{Api, hipDeviceptr_t, hipError_t, hipMemcpyKind, hipStream_t};
use std::ffi::c_void;
use std::sync::Arc;

impl Outcome for hipError_t {
    const MISSING: Self = Self::hipErrorNotSupported;

    fn is_success(&self) -> bool {
        *self == Self::hipSuccess
    }
}

counted_table! {
    32 slots: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31;

    hipMemcpy(dst: *mut c_void, src: *const c_void, bytes: usize, kind: hipMemcpyKind) -> hipError_t, bytes;
    hipMemcpyAsync(dst: *mut c_void, src: *const c_void, bytes: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t, bytes;
    hipMemcpyWithStream(dst: *mut c_void, src: *const c_void, bytes: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t, bytes;
    hipMemcpyHtoD(dst: hipDeviceptr_t, src: *const c_void, bytes: usize) -> hipError_t, bytes;
    hipMemcpyHtoDAsync(dst: hipDeviceptr_t, src: *const c_void, bytes: usize, stream: hipStream_t) -> hipError_t, bytes;
    hipMemcpyDtoH(dst: *mut c_void, src: hipDeviceptr_t, bytes: usize) -> hipError_t, bytes;
    hipMemcpyDtoHAsync(dst: *mut c_void, src: hipDeviceptr_t, bytes: usize, stream: hipStream_t) -> hipError_t, bytes;
    hipMemcpyDtoD(dst: hipDeviceptr_t, src: hipDeviceptr_t, bytes: usize) -> hipError_t, bytes;
    hipMemcpyDtoDAsync(dst: hipDeviceptr_t, src: hipDeviceptr_t, bytes: usize, stream: hipStream_t) -> hipError_t, bytes;
    hipMemcpyPeer(dst: *mut c_void, to: i32, src: *const c_void, from: i32, bytes: usize) -> hipError_t, bytes;
    hipMemcpyPeerAsync(dst: *mut c_void, to: i32, src: *const c_void, from: i32, bytes: usize, stream: hipStream_t) -> hipError_t, bytes;
    hipMemcpy2D(dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind) -> hipError_t, width * height;
    hipMemcpy2DAsync(dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t, width * height;
    hipMemcpy_spt(dst: *mut c_void, src: *const c_void, bytes: usize, kind: hipMemcpyKind) -> hipError_t, bytes;
    hipMemcpyAsync_spt(dst: *mut c_void, src: *const c_void, bytes: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t, bytes;
    hipMemPrefetchAsync(ptr: *const c_void, bytes: usize, device: i32, stream: hipStream_t) -> hipError_t, bytes;
    hipMemcpyToSymbol(symbol: *const c_void, src: *const c_void, bytes: usize, offset: usize, kind: hipMemcpyKind) -> hipError_t, bytes;
    hipMemcpyFromSymbol(dst: *mut c_void, symbol: *const c_void, bytes: usize, offset: usize, kind: hipMemcpyKind) -> hipError_t, bytes;
}
