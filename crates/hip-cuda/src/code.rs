//! The driver's codes as HIP's.
//!
//! HIP took most numbers over from CUDA, but not all: a code without a HIP number becomes the one with the same meaning
//! to a caller, and never another code's number by accident.

use cudarc::driver::sys::CUresult as Cu;
use hip_sys::hipError_t as Hip;

use crate::log;

/// Every driver code that HIP's documentation defines.
const CODES: &[(Cu, Hip)] = &[
    (Cu::CUDA_ERROR_INVALID_VALUE, Hip::hipErrorInvalidValue),
    (Cu::CUDA_ERROR_OUT_OF_MEMORY, Hip::hipErrorOutOfMemory),
    (Cu::CUDA_ERROR_NOT_INITIALIZED, Hip::hipErrorNotInitialized),
    (Cu::CUDA_ERROR_DEINITIALIZED, Hip::hipErrorDeinitialized),
    (Cu::CUDA_ERROR_STUB_LIBRARY, Hip::hipErrorInsufficientDriver),
    (Cu::CUDA_ERROR_DEVICE_UNAVAILABLE, Hip::hipErrorNoDevice),
    (Cu::CUDA_ERROR_NO_DEVICE, Hip::hipErrorNoDevice),
    (Cu::CUDA_ERROR_INVALID_DEVICE, Hip::hipErrorInvalidDevice),
    (Cu::CUDA_ERROR_INVALID_IMAGE, Hip::hipErrorInvalidImage),
    (Cu::CUDA_ERROR_INVALID_CONTEXT, Hip::hipErrorInvalidContext),
    (
        Cu::CUDA_ERROR_CONTEXT_ALREADY_CURRENT,
        Hip::hipErrorContextAlreadyCurrent,
    ),
    (Cu::CUDA_ERROR_MAP_FAILED, Hip::hipErrorMapFailed),
    (Cu::CUDA_ERROR_UNMAP_FAILED, Hip::hipErrorUnmapFailed),
    (Cu::CUDA_ERROR_ARRAY_IS_MAPPED, Hip::hipErrorArrayIsMapped),
    (Cu::CUDA_ERROR_ALREADY_MAPPED, Hip::hipErrorAlreadyMapped),
    (Cu::CUDA_ERROR_NO_BINARY_FOR_GPU, Hip::hipErrorNoBinaryForGpu),
    (Cu::CUDA_ERROR_ALREADY_ACQUIRED, Hip::hipErrorAlreadyAcquired),
    (Cu::CUDA_ERROR_NOT_MAPPED, Hip::hipErrorNotMapped),
    (Cu::CUDA_ERROR_NOT_MAPPED_AS_ARRAY, Hip::hipErrorNotMappedAsArray),
    (Cu::CUDA_ERROR_NOT_MAPPED_AS_POINTER, Hip::hipErrorNotMappedAsPointer),
    (Cu::CUDA_ERROR_ECC_UNCORRECTABLE, Hip::hipErrorECCNotCorrectable),
    (Cu::CUDA_ERROR_UNSUPPORTED_LIMIT, Hip::hipErrorUnsupportedLimit),
    (Cu::CUDA_ERROR_CONTEXT_ALREADY_IN_USE, Hip::hipErrorContextAlreadyInUse),
    (
        Cu::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
        Hip::hipErrorPeerAccessUnsupported,
    ),
    (Cu::CUDA_ERROR_INVALID_PTX, Hip::hipErrorInvalidKernelFile),
    // Code for a newer compiler than the driver's is code that this device cannot run.
    (Cu::CUDA_ERROR_UNSUPPORTED_PTX_VERSION, Hip::hipErrorNoBinaryForGpu),
    (Cu::CUDA_ERROR_JIT_COMPILER_NOT_FOUND, Hip::hipErrorNoBinaryForGpu),
    (Cu::CUDA_ERROR_INVALID_SOURCE, Hip::hipErrorInvalidSource),
    (Cu::CUDA_ERROR_FILE_NOT_FOUND, Hip::hipErrorFileNotFound),
    (
        Cu::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND,
        Hip::hipErrorSharedObjectSymbolNotFound,
    ),
    (
        Cu::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED,
        Hip::hipErrorSharedObjectInitFailed,
    ),
    (Cu::CUDA_ERROR_OPERATING_SYSTEM, Hip::hipErrorOperatingSystem),
    (Cu::CUDA_ERROR_INVALID_HANDLE, Hip::hipErrorInvalidHandle),
    (Cu::CUDA_ERROR_ILLEGAL_STATE, Hip::hipErrorIllegalState),
    (Cu::CUDA_ERROR_NOT_FOUND, Hip::hipErrorNotFound),
    (Cu::CUDA_ERROR_NOT_READY, Hip::hipErrorNotReady),
    (Cu::CUDA_ERROR_ILLEGAL_ADDRESS, Hip::hipErrorIllegalAddress),
    (
        Cu::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
        Hip::hipErrorLaunchOutOfResources,
    ),
    (Cu::CUDA_ERROR_LAUNCH_TIMEOUT, Hip::hipErrorLaunchTimeOut),
    (
        Cu::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
        Hip::hipErrorPeerAccessAlreadyEnabled,
    ),
    (
        Cu::CUDA_ERROR_PEER_ACCESS_NOT_ENABLED,
        Hip::hipErrorPeerAccessNotEnabled,
    ),
    (Cu::CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, Hip::hipErrorSetOnActiveProcess),
    (Cu::CUDA_ERROR_CONTEXT_IS_DESTROYED, Hip::hipErrorContextIsDestroyed),
    (Cu::CUDA_ERROR_ASSERT, Hip::hipErrorAssert),
    (
        Cu::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
        Hip::hipErrorHostMemoryAlreadyRegistered,
    ),
    (
        Cu::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
        Hip::hipErrorHostMemoryNotRegistered,
    ),
    (Cu::CUDA_ERROR_HARDWARE_STACK_ERROR, Hip::hipErrorLaunchFailure),
    (Cu::CUDA_ERROR_ILLEGAL_INSTRUCTION, Hip::hipErrorLaunchFailure),
    // AMD's hardware reports a misaligned access as any other bad one.
    (Cu::CUDA_ERROR_MISALIGNED_ADDRESS, Hip::hipErrorIllegalAddress),
    (Cu::CUDA_ERROR_INVALID_ADDRESS_SPACE, Hip::hipErrorIllegalAddress),
    (Cu::CUDA_ERROR_INVALID_PC, Hip::hipErrorLaunchFailure),
    (Cu::CUDA_ERROR_LAUNCH_FAILED, Hip::hipErrorLaunchFailure),
    (
        Cu::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
        Hip::hipErrorCooperativeLaunchTooLarge,
    ),
    (Cu::CUDA_ERROR_NOT_PERMITTED, Hip::hipErrorNotSupported),
    (Cu::CUDA_ERROR_NOT_SUPPORTED, Hip::hipErrorNotSupported),
    (
        Cu::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        Hip::hipErrorStreamCaptureUnsupported,
    ),
    (
        Cu::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
        Hip::hipErrorStreamCaptureInvalidated,
    ),
    (Cu::CUDA_ERROR_STREAM_CAPTURE_MERGE, Hip::hipErrorStreamCaptureMerge),
    (
        Cu::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
        Hip::hipErrorStreamCaptureUnmatched,
    ),
    (
        Cu::CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
        Hip::hipErrorStreamCaptureUnjoined,
    ),
    (
        Cu::CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
        Hip::hipErrorStreamCaptureIsolation,
    ),
    (
        Cu::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
        Hip::hipErrorStreamCaptureImplicit,
    ),
    (Cu::CUDA_ERROR_CAPTURED_EVENT, Hip::hipErrorCapturedEvent),
    (
        Cu::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
        Hip::hipErrorStreamCaptureWrongThread,
    ),
    (
        Cu::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
        Hip::hipErrorGraphExecUpdateFailure,
    ),
];

/// The HIP code for the driver's `code`; `hipErrorUnknown` where HIP has none.
pub(crate) fn of(code: u32) -> Hip {
    if code == 0 {
        return Hip::hipSuccess;
    }
    let found = CODES.iter().find(|(cu, _)| *cu as u32 == code);
    found.map_or(Hip::hipErrorUnknown, |(_, hip)| *hip)
}

/// The driver's answer to `function` as a result.
#[inline]
pub(crate) fn check(code: u32, function: &'static str) -> Result<(), Hip> {
    if code == 0 { Ok(()) } else { Err(failed(code, function)) }
}

#[cold]
fn failed(code: u32, function: &'static str) -> Hip {
    let hip = of(code);
    if hip != Hip::hipErrorNotReady {
        log::driver(function, format_args!("CUDA error {code}, for HIP {hip:?}"));
    }
    hip
}

/// The error for a function that this driver is too old for.
#[cold]
pub(crate) fn missing(function: &'static str) -> Hip {
    log::driver(function, format_args!("the installed driver does not have it"));
    Hip::hipErrorNotSupported
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_hip_took_over_keep_their_number() {
        for (cu, hip) in CODES {
            let same = *cu as u32 == hip.0;
            let translated = matches!(
                *cu,
                Cu::CUDA_ERROR_STUB_LIBRARY
                    | Cu::CUDA_ERROR_DEVICE_UNAVAILABLE
                    | Cu::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
                    | Cu::CUDA_ERROR_JIT_COMPILER_NOT_FOUND
                    | Cu::CUDA_ERROR_HARDWARE_STACK_ERROR
                    | Cu::CUDA_ERROR_ILLEGAL_INSTRUCTION
                    | Cu::CUDA_ERROR_MISALIGNED_ADDRESS
                    | Cu::CUDA_ERROR_INVALID_ADDRESS_SPACE
                    | Cu::CUDA_ERROR_INVALID_PC
                    | Cu::CUDA_ERROR_NOT_PERMITTED
            );
            assert!(same != translated, "{cu:?} became {hip:?}");
        }
    }

    #[test]
    fn success_and_a_code_of_tomorrow() {
        assert_eq!(of(0), Hip::hipSuccess);
        assert_eq!(of(4711), Hip::hipErrorUnknown);
    }
}
