//! The tables of hip-host, compiled in.

use std::ffi::c_void;
use std::sync::Arc;

use crate::select::Extent;
use crate::{ForeignHooks, ForeignKind, LibraryReport, LibraryState, Tables};

pub(in crate::platforms) fn tables(extent: Extent) -> (Tables, Vec<LibraryReport>) {
    let hip = hip_host::hip_api();
    let rtc = hip_host::rtc_api();
    let rocblas = hip_host_blas::rocblas_api();
    let rocsolver = hip_host_blas::rocsolver_api();
    let hsa = hip_host::hsa_api();
    let math = |functions| match extent.left_out() {
        Some(reason) => (LibraryState::Missing(reason), 0),
        None => (LibraryState::BuiltIn, functions),
    };
    let libraries = [
        ("HIP", (LibraryState::BuiltIn, hip.present().count())),
        ("HIPRTC", (LibraryState::BuiltIn, rtc.present().count())),
        ("rocBLAS", math(rocblas.present().count())),
        ("rocSOLVER", math(rocsolver.present().count())),
        ("HSA", (LibraryState::BuiltIn, hsa.present().count())),
    ]
    .map(|(name, (state, functions))| LibraryReport {
        name,
        state,
        functions,
        release: None,
    });
    let has_math = extent == Extent::All;
    let tables = Tables {
        hip: Arc::new(hip),
        rtc: Some(Arc::new(rtc)),
        rocblas: has_math.then(|| Arc::new(rocblas)),
        rocsolver: has_math.then(|| Arc::new(rocsolver)),
        hsa: Some(Arc::new(hsa)),
        foreign: Some(ForeignHooks {
            adopt,
            release,
            reaches_hip: hip_host::foreign::reaches_hip,
            end: hip_host::foreign::end,
            launch: hip_host::foreign::launch,
        }),
    };
    (tables, libraries.into())
}

/// # Safety
/// As [`hip_host::foreign::adopt_on`]: the range is valid until it is released.
unsafe fn adopt(ptr: *mut c_void, bytes: usize, kind: ForeignKind, ordinal: usize) -> Result<(), String> {
    let kind = match kind {
        ForeignKind::Vram => hip_host::foreign::ForeignKind::Vram,
        ForeignKind::HostFine => hip_host::foreign::ForeignKind::HostFine,
    };
    // SAFETY: the caller keeps the range valid until it is released.
    unsafe { hip_host::foreign::adopt_on(ptr, bytes, kind, ordinal) }.map_err(|error| error.to_string())
}

fn release(ptr: *mut c_void) -> Result<(), String> {
    hip_host::foreign::release(ptr).map_err(|error| error.to_string())
}
