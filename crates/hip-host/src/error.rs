//! Error codes, the calling thread's last error, and the frame every HIP entry point runs in.

use std::cell::Cell;
use std::ffi::{CStr, c_char};

use hip_sys::hipError_t;

use crate::{frame, log};

/// What the bodies of entry points return.
pub(crate) type Result<T = ()> = std::result::Result<T, hipError_t>;

thread_local! {
    static LAST: Cell<hipError_t> = const { Cell::new(hipError_t::hipSuccess) };
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// Runs the body of one HIP entry point: injected faults first, no panic across the C boundary, and the thread's last
/// error set.
///
/// HIP 6 stores the result of *every* call as the last error, a success included (hipamd/src/hip_internal.hpp,
/// `HIP_RETURN`); that only changed with HIP 7. The model's version is 6.4, so it does the same.
pub(crate) fn entry(call: &'static str, body: impl FnOnce() -> Result) -> hipError_t {
    let code = outcome(call, body);
    LAST.set(code);
    code
}

/// As [`entry`], for the calls that leave the last error alone.
pub(crate) fn outcome(call: &'static str, body: impl FnOnce() -> Result) -> hipError_t {
    frame::run(call, || {
        if IN_CALLBACK.get() {
            // hipLaunchHostFunc's documentation forbids HIP calls in the function; ROCm does not check and may
            // deadlock.
            log::refused(
                call,
                format_args!("called from a host function of a stream, which must not call HIP"),
            );
            return Err(hipError_t::hipErrorIllegalState);
        }
        body()
    })
}

/// Marks this thread as running a user's host function until `body` returns.
pub(crate) fn in_callback(body: impl FnOnce()) {
    IN_CALLBACK.set(true);
    body();
    IN_CALLBACK.set(false);
}

pub(crate) unsafe extern "C" fn get_last_error() -> hipError_t {
    LAST.replace(hipError_t::hipSuccess)
}

pub(crate) unsafe extern "C" fn peek_at_last_error() -> hipError_t {
    LAST.get()
}

/// The result of the last call, a success included: what `hipGetLastError` gives before HIP 7 only.
pub(crate) unsafe extern "C" fn ext_get_last_error() -> hipError_t {
    LAST.replace(hipError_t::hipSuccess)
}

macro_rules! codes {
    ($($name:ident $text:literal,)*) => {
        fn describe(code: hipError_t) -> Option<(&'static CStr, &'static CStr)> {
            $(if code == hipError_t::$name {
                const NAME: &str = concat!(stringify!($name), "\0");
                const TEXT: &str = concat!($text, "\0");
                return match (CStr::from_bytes_with_nul(NAME.as_bytes()), CStr::from_bytes_with_nul(TEXT.as_bytes())) {
                    (Ok(name), Ok(text)) => Some((name, text)),
                    _ => None,
                };
            })*
            None
        }
    };
}

codes! {
    hipSuccess "no error",
    hipErrorInvalidValue "invalid argument",
    hipErrorOutOfMemory "out of memory",
    hipErrorNotInitialized "initialization error",
    hipErrorDeinitialized "driver shutting down",
    hipErrorProfilerDisabled "profiler disabled while using external profiling tool",
    hipErrorProfilerNotInitialized "profiler is not initialized",
    hipErrorProfilerAlreadyStarted "profiler already started",
    hipErrorProfilerAlreadyStopped "profiler already stopped",
    hipErrorInvalidConfiguration "invalid configuration argument",
    hipErrorInvalidPitchValue "invalid pitch argument",
    hipErrorInvalidSymbol "invalid device symbol",
    hipErrorInvalidDevicePointer "invalid device pointer",
    hipErrorInvalidMemcpyDirection "invalid copy direction for memcpy",
    hipErrorInsufficientDriver "driver version is insufficient for runtime version",
    hipErrorMissingConfiguration "__global__ function call is not configured",
    hipErrorPriorLaunchFailure "unspecified launch failure in prior launch",
    hipErrorInvalidDeviceFunction "invalid device function",
    hipErrorNoDevice "no ROCm-capable device is detected",
    hipErrorInvalidDevice "invalid device ordinal",
    hipErrorInvalidImage "device kernel image is invalid",
    hipErrorInvalidContext "invalid device context",
    hipErrorContextAlreadyCurrent "context is already current context",
    hipErrorMapFailed "mapping of buffer object failed",
    hipErrorUnmapFailed "unmapping of buffer object failed",
    hipErrorArrayIsMapped "array is mapped",
    hipErrorAlreadyMapped "resource already mapped",
    hipErrorNoBinaryForGpu "no kernel image is available for execution on the device",
    hipErrorAlreadyAcquired "resource already acquired",
    hipErrorNotMapped "resource not mapped",
    hipErrorNotMappedAsArray "resource not mapped as array",
    hipErrorNotMappedAsPointer "resource not mapped as pointer",
    hipErrorECCNotCorrectable "uncorrectable ECC error encountered",
    hipErrorUnsupportedLimit "limit is not supported on this architecture",
    hipErrorContextAlreadyInUse "exclusive-thread device already in use by a different thread",
    hipErrorPeerAccessUnsupported "peer access is not supported between these two devices",
    hipErrorInvalidKernelFile "invalid kernel file",
    hipErrorInvalidGraphicsContext "invalid OpenGL or DirectX context",
    hipErrorInvalidSource "device kernel image is invalid",
    hipErrorFileNotFound "file not found",
    hipErrorSharedObjectSymbolNotFound "shared object symbol not found",
    hipErrorSharedObjectInitFailed "shared object initialization failed",
    hipErrorOperatingSystem "OS call failed or operation not supported on this OS",
    hipErrorInvalidHandle "invalid resource handle",
    hipErrorIllegalState "the operation cannot be performed in the present state",
    hipErrorNotFound "named symbol not found",
    hipErrorNotReady "device not ready",
    hipErrorIllegalAddress "an illegal memory access was encountered",
    hipErrorLaunchOutOfResources "too many resources requested for launch",
    hipErrorLaunchTimeOut "the launch timed out and was terminated",
    hipErrorPeerAccessAlreadyEnabled "peer access is already enabled",
    hipErrorPeerAccessNotEnabled "peer access has not been enabled",
    hipErrorSetOnActiveProcess "cannot set while device is active in this process",
    hipErrorContextIsDestroyed "context is destroyed",
    hipErrorAssert "device-side assert triggered",
    hipErrorHostMemoryAlreadyRegistered "part or all of the requested memory range is already mapped",
    hipErrorHostMemoryNotRegistered "pointer does not correspond to a registered memory region",
    hipErrorLaunchFailure "unspecified launch failure",
    hipErrorCooperativeLaunchTooLarge "too many blocks in cooperative launch",
    hipErrorNotSupported "operation not supported",
    hipErrorStreamCaptureUnsupported "operation not permitted when stream is capturing",
    hipErrorStreamCaptureInvalidated "operation failed due to a previous error during capture",
    hipErrorStreamCaptureMerge "operation would result in a merge of separate capture sequences",
    hipErrorStreamCaptureUnmatched "capture was not ended in the same stream as it began",
    hipErrorStreamCaptureUnjoined "capturing stream has unjoined work",
    hipErrorStreamCaptureIsolation "dependency created on uncaptured work in another stream",
    hipErrorStreamCaptureImplicit "operation would make the legacy stream depend on a capturing blocking stream",
    hipErrorCapturedEvent "operation not permitted on an event last recorded in a capturing stream",
    hipErrorStreamCaptureWrongThread "attempt to terminate a thread-local capture sequence from another thread",
    hipErrorGraphExecUpdateFailure "the graph update was not performed because it included changes which violated constraints",
    hipErrorInvalidChannelDescriptor "invalid channel descriptor",
    hipErrorInvalidTexture "invalid texture",
    hipErrorInvalidResourceType "invalid resource type",
    hipErrorInvalidResourceConfiguration "invalid resource configuration",
    hipErrorStreamDetached "stream is detached",
    hipErrorUnknown "unknown error",
    hipErrorRuntimeMemory "runtime memory call returned error",
    hipErrorRuntimeOther "runtime call other than memory returned error",
    hipErrorInvalidClusterSize "invalid cluster size",
    hipErrorTbd "unknown error",
}

pub(crate) unsafe extern "C" fn get_error_name(code: hipError_t) -> *const c_char {
    describe(code).map_or(c"hipErrorUnknown", |(name, _)| name).as_ptr()
}

pub(crate) unsafe extern "C" fn get_error_string(code: hipError_t) -> *const c_char {
    describe(code).map_or(c"unknown error", |(_, text)| text).as_ptr()
}

/// Writes one of the two texts for the `hipDrv` forms, which refuse a code they do not know and then store null.
fn drv_text(
    call: &'static str,
    code: hipError_t,
    out: *mut *const c_char,
    pick: fn((&'static CStr, &'static CStr)) -> &'static CStr,
) -> hipError_t {
    entry(call, || {
        if out.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let text = describe(code).map(pick);
        // SAFETY: `out` is not null, and the caller of the C function promises room for one pointer there.
        unsafe { out.write(text.map_or(std::ptr::null(), CStr::as_ptr)) };
        text.map(|_| ()).ok_or(hipError_t::hipErrorInvalidValue)
    })
}

pub(crate) unsafe extern "C" fn drv_get_error_name(code: hipError_t, out: *mut *const c_char) -> hipError_t {
    drv_text("hipDrvGetErrorName", code, out, |(name, _)| name)
}

pub(crate) unsafe extern "C" fn drv_get_error_string(code: hipError_t, out: *mut *const c_char) -> hipError_t {
    drv_text("hipDrvGetErrorString", code, out, |(_, text)| text)
}

/// Stores a result at the C caller's pointer, refusing null.
///
/// # Safety
/// `out` is null or valid for writing one `T`.
pub(crate) unsafe fn store<T>(out: *mut T, value: T) -> Result {
    if out.is_null() {
        return Err(hipError_t::hipErrorInvalidValue);
    }
    // SAFETY: not null, so by this function's contract valid for a write; unaligned because C callers may pack.
    unsafe { out.write_unaligned(value) };
    Ok(())
}
