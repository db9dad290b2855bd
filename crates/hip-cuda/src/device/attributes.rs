//! HIP's attributes as the driver's.

use std::ffi::c_int;

use cudarc::driver::sys::CUdevice_attribute as Cu;
use hip_sys::hipDeviceAttribute_t as Hip;

use super::Device;
use crate::error::{INVALID, Result};

/// The attributes that mean the same on both sides. HIP's numbers are its own.
const SAME: &[(Hip, Cu)] = &[
    (Hip::hipDeviceAttributeEccEnabled, Cu::CU_DEVICE_ATTRIBUTE_ECC_ENABLED),
    (
        Hip::hipDeviceAttributeAccessPolicyMaxWindowSize,
        Cu::CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE,
    ),
    (
        Hip::hipDeviceAttributeAsyncEngineCount,
        Cu::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT,
    ),
    (
        Hip::hipDeviceAttributeCanMapHostMemory,
        Cu::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY,
    ),
    (
        Hip::hipDeviceAttributeCanUseHostPointerForRegisteredMem,
        Cu::CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
    ),
    (Hip::hipDeviceAttributeClockRate, Cu::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
    (Hip::hipDeviceAttributeComputeMode, Cu::CU_DEVICE_ATTRIBUTE_COMPUTE_MODE),
    (
        Hip::hipDeviceAttributeComputePreemptionSupported,
        Cu::CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED,
    ),
    (
        Hip::hipDeviceAttributeConcurrentKernels,
        Cu::CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS,
    ),
    (
        Hip::hipDeviceAttributeConcurrentManagedAccess,
        Cu::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
    ),
    (
        Hip::hipDeviceAttributeCooperativeLaunch,
        Cu::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH,
    ),
    (
        Hip::hipDeviceAttributeDeviceOverlap,
        Cu::CU_DEVICE_ATTRIBUTE_GPU_OVERLAP,
    ),
    (
        Hip::hipDeviceAttributeDirectManagedMemAccessFromHost,
        Cu::CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,
    ),
    (
        Hip::hipDeviceAttributeGlobalL1CacheSupported,
        Cu::CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED,
    ),
    (
        Hip::hipDeviceAttributeHostNativeAtomicSupported,
        Cu::CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED,
    ),
    (Hip::hipDeviceAttributeIntegrated, Cu::CU_DEVICE_ATTRIBUTE_INTEGRATED),
    (
        Hip::hipDeviceAttributeIsMultiGpuBoard,
        Cu::CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD,
    ),
    (
        Hip::hipDeviceAttributeKernelExecTimeout,
        Cu::CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT,
    ),
    (
        Hip::hipDeviceAttributeL2CacheSize,
        Cu::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
    ),
    (
        Hip::hipDeviceAttributeLocalL1CacheSupported,
        Cu::CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED,
    ),
    (
        Hip::hipDeviceAttributeComputeCapabilityMajor,
        Cu::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
    ),
    (
        Hip::hipDeviceAttributeComputeCapabilityMinor,
        Cu::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    ),
    (
        Hip::hipDeviceAttributeManagedMemory,
        Cu::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY,
    ),
    (
        Hip::hipDeviceAttributeMaxBlocksPerMultiProcessor,
        Cu::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,
    ),
    (
        Hip::hipDeviceAttributeMaxBlockDimX,
        Cu::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
    ),
    (
        Hip::hipDeviceAttributeMaxBlockDimY,
        Cu::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
    ),
    (
        Hip::hipDeviceAttributeMaxBlockDimZ,
        Cu::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
    ),
    (
        Hip::hipDeviceAttributeMaxGridDimX,
        Cu::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
    ),
    (
        Hip::hipDeviceAttributeMaxGridDimY,
        Cu::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
    ),
    (
        Hip::hipDeviceAttributeMaxGridDimZ,
        Cu::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
    ),
    (
        Hip::hipDeviceAttributeMaxThreadsPerBlock,
        Cu::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
    ),
    (
        Hip::hipDeviceAttributeMaxThreadsPerMultiProcessor,
        Cu::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
    ),
    (Hip::hipDeviceAttributeMaxPitch, Cu::CU_DEVICE_ATTRIBUTE_MAX_PITCH),
    (
        Hip::hipDeviceAttributeMemoryBusWidth,
        Cu::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,
    ),
    (
        Hip::hipDeviceAttributeMemoryClockRate,
        Cu::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,
    ),
    (
        Hip::hipDeviceAttributeMultiGpuBoardGroupID,
        Cu::CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID,
    ),
    (
        Hip::hipDeviceAttributeMultiprocessorCount,
        Cu::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
    ),
    (
        Hip::hipDeviceAttributePhysicalMultiProcessorCount,
        Cu::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
    ),
    (
        Hip::hipDeviceAttributePageableMemoryAccess,
        Cu::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
    ),
    (
        Hip::hipDeviceAttributePageableMemoryAccessUsesHostPageTables,
        Cu::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
    ),
    (Hip::hipDeviceAttributePciBusId, Cu::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
    (
        Hip::hipDeviceAttributePciDeviceId,
        Cu::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID,
    ),
    (
        Hip::hipDeviceAttributePciDomainID,
        Cu::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID,
    ),
    (
        Hip::hipDeviceAttributePersistingL2CacheMaxSize,
        Cu::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE,
    ),
    (
        Hip::hipDeviceAttributeMaxRegistersPerBlock,
        Cu::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK,
    ),
    (
        Hip::hipDeviceAttributeMaxRegistersPerMultiprocessor,
        Cu::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,
    ),
    (
        Hip::hipDeviceAttributeReservedSharedMemPerBlock,
        Cu::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,
    ),
    // HIP's kernels may use what the device has without asking first; a launch asks for them.
    (
        Hip::hipDeviceAttributeMaxSharedMemoryPerBlock,
        Cu::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
    ),
    (
        Hip::hipDeviceAttributeSharedMemPerBlockOptin,
        Cu::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
    ),
    (
        Hip::hipDeviceAttributeSharedMemPerMultiprocessor,
        Cu::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
    ),
    (
        Hip::hipDeviceAttributeMaxSharedMemoryPerMultiprocessor,
        Cu::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
    ),
    (
        Hip::hipDeviceAttributeSingleToDoublePrecisionPerfRatio,
        Cu::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO,
    ),
    (
        Hip::hipDeviceAttributeStreamPrioritiesSupported,
        Cu::CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED,
    ),
    (
        Hip::hipDeviceAttributeSurfaceAlignment,
        Cu::CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT,
    ),
    (Hip::hipDeviceAttributeTccDriver, Cu::CU_DEVICE_ATTRIBUTE_TCC_DRIVER),
    (
        Hip::hipDeviceAttributeTextureAlignment,
        Cu::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT,
    ),
    (
        Hip::hipDeviceAttributeTexturePitchAlignment,
        Cu::CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT,
    ),
    (
        Hip::hipDeviceAttributeTotalConstantMemory,
        Cu::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY,
    ),
    (
        Hip::hipDeviceAttributeUnifiedAddressing,
        Cu::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING,
    ),
    (Hip::hipDeviceAttributeWarpSize, Cu::CU_DEVICE_ATTRIBUTE_WARP_SIZE),
    (
        Hip::hipDeviceAttributeMemoryPoolsSupported,
        Cu::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
    ),
    (
        Hip::hipDeviceAttributeVirtualMemoryManagementSupported,
        Cu::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
    ),
    (
        Hip::hipDeviceAttributeHostRegisterSupported,
        Cu::CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED,
    ),
    (
        Hip::hipDeviceAttributeMemoryPoolSupportedHandleTypes,
        Cu::CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES,
    ),
    (Hip::hipDeviceAttributeHostNumaId, Cu::CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID),
];

impl Device {
    pub(super) fn attribute(&self, attribute: Hip) -> Result<c_int> {
        if let Some((_, cu)) = SAME.iter().find(|(hip, _)| *hip == attribute) {
            return self.cuda_attribute(*cu);
        }
        match attribute {
            // The stream memory operations are in every driver since CUDA 12.
            Hip::hipDeviceAttributeCanUseStreamWaitValue => Ok(1),
            // AMD's: all of a card's memory in one window for the processor, memory the host and device both see in
            // order.
            Hip::hipDeviceAttributeIsLargeBar
            | Hip::hipDeviceAttributeFineGrainSupport
            | Hip::hipDeviceAttributeImageSupport
            | Hip::hipDeviceAttributeAsicRevision
            | Hip::hipDeviceAttributeCooperativeMultiDeviceLaunch => Ok(0),
            Hip::hipDeviceAttributeTotalGlobalMem => Ok(c_int::try_from(self.total_bytes()?).unwrap_or(c_int::MAX)),
            Hip::hipDeviceAttributeMaxThreadsDim => self.cuda_attribute(Cu::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
            _ => Err(INVALID),
        }
    }

    pub(crate) fn capability(&self) -> Result<(c_int, c_int)> {
        Ok((
            self.cuda_attribute(Cu::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            self.cuda_attribute(Cu::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ))
    }

    /// The counterpart of a gfx name: the compiler's name for this device's machine code, e.g. `sm_90`.
    pub(crate) fn architecture(&self) -> Result<String> {
        let (major, minor) = self.capability()?;
        Ok(format!("sm_{major}{minor}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_attribute_of_hip_is_translated_twice() {
        for (at, (hip, _)) in SAME.iter().enumerate() {
            assert!(SAME[at + 1..].iter().all(|(other, _)| other != hip), "{hip:?}");
        }
    }
}
