//! Structures that HIP took over from CUDA are passed on unchanged. This file checks both against each other, at
//! compile time.

use std::mem::{offset_of, size_of};

use cudarc::driver::sys as cu;

macro_rules! same {
    ($hip:ty, $cu:ty $(, $($hip_field:ident).+ = $($cu_field:ident).+)*) => {
        const _: () = {
            assert!(size_of::<$hip>() == size_of::<$cu>());
            $(assert!(offset_of!($hip, $($hip_field).+) == offset_of!($cu, $($cu_field).+));)*
        };
    };
}

same!(
    hip_sys::hipMemAllocationProp,
    cu::CUmemAllocationProp,
    type_ = type_,
    __bindgen_anon_1 = requestedHandleTypes,
    location.type_ = location.type_,
    location.id = location.id,
    win32HandleMetaData = win32HandleMetaData,
    allocFlags.compressionType = allocFlags.compressionType,
    allocFlags.gpuDirectRDMACapable = allocFlags.gpuDirectRDMACapable,
    allocFlags.usage = allocFlags.usage
);
const _: () = assert!(size_of::<cu::CUmemAllocationProp>() == size_of::<crate::cuda::driver::AllocationProp>());
same!(
    hip_sys::hipMemAccessDesc,
    cu::CUmemAccessDesc,
    location.type_ = location.type_,
    location.id = location.id,
    flags = flags
);
same!(hip_sys::hipMemLocation, cu::CUmemLocation, type_ = type_, id = id);
same!(
    hip_sys::hipMemPoolProps,
    cu::CUmemPoolProps,
    allocType = allocType,
    handleTypes = handleTypes,
    location.id = location.id,
    win32SecurityAttributes = win32SecurityAttributes,
    maxSize = maxSize
);
same!(
    hip_sys::hipExternalMemoryHandleDesc,
    cu::CUDA_EXTERNAL_MEMORY_HANDLE_DESC,
    type_ = type_,
    handle = handle,
    size = size,
    flags = flags
);
same!(
    hip_sys::hipExternalMemoryBufferDesc,
    cu::CUDA_EXTERNAL_MEMORY_BUFFER_DESC,
    offset = offset,
    size = size,
    flags = flags
);
same!(
    hip_sys::hipExternalSemaphoreHandleDesc,
    cu::CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
    type_ = type_,
    handle = handle,
    flags = flags
);
same!(
    hip_sys::hipExternalSemaphoreSignalParams,
    cu::CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
    params = params,
    flags = flags
);
same!(
    hip_sys::hipExternalSemaphoreWaitParams,
    cu::CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
    params = params,
    flags = flags
);
same!(hip_sys::hipIpcMemHandle_t, cu::CUipcMemHandle);
same!(hip_sys::hipIpcEventHandle_t, cu::CUipcEventHandle);

/// Numbers that are passed on unchanged.
const _: () = {
    use hip_sys::*;
    assert!(
        hipMemAllocationHandleType::hipMemHandleTypePosixFileDescriptor.0
            == cu::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0
    );
    assert!(
        hipMemLocationType::hipMemLocationTypeDevice.0 == cu::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE as u32
    );
    assert!(
        hipMemAccessFlags::hipMemAccessFlagsProtReadWrite.0
            == cu::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE as u32
    );
    assert!(
        hipExternalMemoryHandleType::hipExternalMemoryHandleTypeOpaqueFd.0
            == cu::CUexternalMemoryHandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD as u32
    );
    assert!(
        hipStreamCaptureMode::hipStreamCaptureModeRelaxed.0
            == cu::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED as u32
    );
    assert!(
        hipMemPoolAttr::hipMemPoolAttrUsedMemHigh.0 == cu::CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH as u32
    );
};
