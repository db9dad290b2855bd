//! What a device reports about itself.

use std::ffi::{c_char, c_int};

use hip_sys::{hipDeviceAttribute_t as Attribute, hipDeviceProp_tR0000, hipDeviceProp_tR0600};

use super::{
    CAPABILITY, Device, MAX_GRID, MAX_SHARED_BYTES, MAX_THREADS_PER_BLOCK, PCI_DOMAIN, ROW_ALIGNMENT, WARP,
    architecture,
};

/// `wall_clock64` counts in kernels as many thousand ticks a second, as on AMD's cards.
const CLOCK_KHZ: c_int = 100_000;

impl Device {
    pub(super) fn attribute(&self, attribute: Attribute) -> Option<c_int> {
        let capped = |bytes: usize| c_int::try_from(bytes).unwrap_or(c_int::MAX);
        Some(match attribute {
            Attribute::hipDeviceAttributeMaxThreadsPerBlock
            | Attribute::hipDeviceAttributeMaxBlockDimX
            | Attribute::hipDeviceAttributeMaxBlockDimY
            | Attribute::hipDeviceAttributeMaxBlockDimZ => MAX_THREADS_PER_BLOCK as c_int,
            Attribute::hipDeviceAttributeMaxGridDimX => MAX_GRID[0] as c_int,
            Attribute::hipDeviceAttributeMaxGridDimY => MAX_GRID[1] as c_int,
            Attribute::hipDeviceAttributeMaxGridDimZ => MAX_GRID[2] as c_int,
            Attribute::hipDeviceAttributeMaxSharedMemoryPerBlock
            | Attribute::hipDeviceAttributeSharedMemPerBlockOptin
            | Attribute::hipDeviceAttributeSharedMemPerMultiprocessor
            | Attribute::hipDeviceAttributeMaxSharedMemoryPerMultiprocessor => MAX_SHARED_BYTES as c_int,
            Attribute::hipDeviceAttributeWarpSize => WARP as c_int,
            Attribute::hipDeviceAttributeMultiprocessorCount
            | Attribute::hipDeviceAttributePhysicalMultiProcessorCount => capped(crate::workers::width()),
            Attribute::hipDeviceAttributeMaxThreadsPerMultiProcessor => 2048,
            Attribute::hipDeviceAttributeMaxBlocksPerMultiProcessor => 2,
            Attribute::hipDeviceAttributeMaxRegistersPerBlock
            | Attribute::hipDeviceAttributeMaxRegistersPerMultiprocessor => 65536,
            Attribute::hipDeviceAttributeTotalConstantMemory => 64 * 1024,
            Attribute::hipDeviceAttributeTotalGlobalMem => capped(self.total_bytes),
            Attribute::hipDeviceAttributeMaxPitch => c_int::MAX,
            Attribute::hipDeviceAttributeComputeCapabilityMajor => CAPABILITY.0,
            Attribute::hipDeviceAttributeComputeCapabilityMinor => CAPABILITY.1,
            Attribute::hipDeviceAttributePciDomainID => c_int::from(PCI_DOMAIN),
            Attribute::hipDeviceAttributePciBusId => self.ordinal as c_int,
            Attribute::hipDeviceAttributeCanMapHostMemory
            | Attribute::hipDeviceAttributeHostRegisterSupported
            | Attribute::hipDeviceAttributeUnifiedAddressing
            | Attribute::hipDeviceAttributeManagedMemory
            | Attribute::hipDeviceAttributeConcurrentKernels
            | Attribute::hipDeviceAttributeStreamPrioritiesSupported
            | Attribute::hipDeviceAttributeMemoryPoolsSupported
            | Attribute::hipDeviceAttributeVirtualMemoryManagementSupported
            | Attribute::hipDeviceAttributeCanUseStreamWaitValue
            | Attribute::hipDeviceAttributeCooperativeLaunch => 1,
            // What a discrete card without XNACK and large BAR answers, or what the model does not offer.
            Attribute::hipDeviceAttributePciDeviceId
            | Attribute::hipDeviceAttributeIntegrated
            | Attribute::hipDeviceAttributeIsLargeBar
            | Attribute::hipDeviceAttributePageableMemoryAccess
            | Attribute::hipDeviceAttributePageableMemoryAccessUsesHostPageTables
            | Attribute::hipDeviceAttributeConcurrentManagedAccess
            | Attribute::hipDeviceAttributeDirectManagedMemAccessFromHost
            | Attribute::hipDeviceAttributeCanUseHostPointerForRegisteredMem
            | Attribute::hipDeviceAttributeHostNativeAtomicSupported
            | Attribute::hipDeviceAttributeCooperativeMultiDeviceLaunch
            | Attribute::hipDeviceAttributeMemoryPoolSupportedHandleTypes
            | Attribute::hipDeviceAttributeImageSupport
            | Attribute::hipDeviceAttributeAsyncEngineCount
            | Attribute::hipDeviceAttributeDeviceOverlap
            | Attribute::hipDeviceAttributeEccEnabled
            | Attribute::hipDeviceAttributeComputeMode
            | Attribute::hipDeviceAttributeKernelExecTimeout
            | Attribute::hipDeviceAttributeClockRate
            | Attribute::hipDeviceAttributeMemoryClockRate
            | Attribute::hipDeviceAttributeMemoryBusWidth
            | Attribute::hipDeviceAttributeL2CacheSize
            | Attribute::hipDeviceAttributeIsMultiGpuBoard
            | Attribute::hipDeviceAttributeAccessPolicyMaxWindowSize
            | Attribute::hipDeviceAttributeComputePreemptionSupported
            | Attribute::hipDeviceAttributeLuidDeviceNodeMask
            | Attribute::hipDeviceAttributeMultiGpuBoardGroupID
            | Attribute::hipDeviceAttributePersistingL2CacheMaxSize
            | Attribute::hipDeviceAttributeReservedSharedMemPerBlock
            | Attribute::hipDeviceAttributeHostNumaId
            | Attribute::hipDeviceAttributeMaxTextureCubemap
            | Attribute::hipDeviceAttributeHdpMemFlushCntl
            | Attribute::hipDeviceAttributeHdpRegFlushCntl
            | Attribute::hipDeviceAttributePciChipId
            | Attribute::hipDeviceAttributeAsicRevision => 0,
            Attribute::hipDeviceAttributeGlobalL1CacheSupported
            | Attribute::hipDeviceAttributeLocalL1CacheSupported
            | Attribute::hipDeviceAttributeCooperativeMultiDeviceUnmatchedFunc
            | Attribute::hipDeviceAttributeCooperativeMultiDeviceUnmatchedGridDim
            | Attribute::hipDeviceAttributeCooperativeMultiDeviceUnmatchedBlockDim
            | Attribute::hipDeviceAttributeCooperativeMultiDeviceUnmatchedSharedMem
            | Attribute::hipDeviceAttributeNumberOfXccs => 1,
            // The limits of images stand for gfx9's; `ImageSupport` says that there are none here.
            Attribute::hipDeviceAttributeMaxSurface1D
            | Attribute::hipDeviceAttributeMaxTexture1DWidth
            | Attribute::hipDeviceAttributeMaxTexture2DWidth
            | Attribute::hipDeviceAttributeMaxTexture2DHeight
            | Attribute::hipDeviceAttributeMaxTexture3DWidth
            | Attribute::hipDeviceAttributeMaxTexture3DHeight => 16384,
            Attribute::hipDeviceAttributeMaxTexture3DDepth => 8192,
            Attribute::hipDeviceAttributeMaxTexture1DLinear | Attribute::hipDeviceAttributeMaxTexture1DMipmap => {
                c_int::MAX
            }
            Attribute::hipDeviceAttributeSurfaceAlignment
            | Attribute::hipDeviceAttributeTextureAlignment
            | Attribute::hipDeviceAttributeTexturePitchAlignment => ROW_ALIGNMENT as c_int,
            Attribute::hipDeviceAttributeWallClockRate => CLOCK_KHZ,
            Attribute::hipDeviceAttributeMaxAvailableVgprsPerThread => 256,
            Attribute::hipDeviceAttributeFineGrainSupport => 1,
            _ => return None,
        })
    }

    pub(super) fn properties(&self) -> hipDeviceProp_tR0600 {
        let mut p = hipDeviceProp_tR0600::default();
        put_text(&mut p.name, &self.name());
        // The model is not an AMD chip, and code that reads a chip's name from here must be able to tell.
        put_text(&mut p.gcnArchName, architecture());
        p.uuid.bytes = self.uuid().map(|byte| byte as c_char);
        p.totalGlobalMem = self.total_bytes;
        p.sharedMemPerBlock = MAX_SHARED_BYTES as usize;
        p.sharedMemPerMultiprocessor = MAX_SHARED_BYTES as usize;
        p.sharedMemPerBlockOptin = MAX_SHARED_BYTES as usize;
        p.maxSharedMemoryPerMultiProcessor = MAX_SHARED_BYTES as usize;
        p.regsPerBlock = 65536;
        p.regsPerMultiprocessor = 65536;
        p.warpSize = WARP as c_int;
        p.memPitch = c_int::MAX as usize;
        p.maxThreadsPerBlock = MAX_THREADS_PER_BLOCK as c_int;
        p.maxThreadsDim = [MAX_THREADS_PER_BLOCK as c_int; 3];
        p.maxGridSize = MAX_GRID.map(|limit| limit as c_int);
        p.totalConstMem = 64 * 1024;
        (p.major, p.minor) = CAPABILITY;
        p.multiProcessorCount = c_int::try_from(crate::workers::width()).unwrap_or(c_int::MAX);
        p.maxThreadsPerMultiProcessor = 2048;
        p.maxBlocksPerMultiProcessor = 2;
        p.canMapHostMemory = 1;
        p.hostRegisterSupported = 1;
        p.unifiedAddressing = 1;
        p.managedMemory = 1;
        p.concurrentKernels = 1;
        p.streamPrioritiesSupported = 1;
        p.memoryPoolsSupported = 1;
        p.cooperativeLaunch = 1;
        p.pciDomainID = c_int::from(PCI_DOMAIN);
        p.pciBusID = self.ordinal as c_int;
        p
    }
}

impl Device {
    /// The properties in the layout of HIP 5.
    pub(super) fn old_properties(&self) -> hipDeviceProp_tR0000 {
        let new = self.properties();
        hipDeviceProp_tR0000 {
            name: new.name,
            totalGlobalMem: new.totalGlobalMem,
            sharedMemPerBlock: new.sharedMemPerBlock,
            regsPerBlock: new.regsPerBlock,
            warpSize: new.warpSize,
            maxThreadsPerBlock: new.maxThreadsPerBlock,
            maxThreadsDim: new.maxThreadsDim,
            maxGridSize: new.maxGridSize,
            totalConstMem: new.totalConstMem,
            major: new.major,
            minor: new.minor,
            multiProcessorCount: new.multiProcessorCount,
            maxThreadsPerMultiProcessor: new.maxThreadsPerMultiProcessor,
            clockInstructionRate: CLOCK_KHZ,
            concurrentKernels: new.concurrentKernels,
            pciDomainID: new.pciDomainID,
            pciBusID: new.pciBusID,
            pciDeviceID: new.pciDeviceID,
            maxSharedMemoryPerMultiProcessor: new.maxSharedMemoryPerMultiProcessor,
            canMapHostMemory: new.canMapHostMemory,
            gcnArchName: new.gcnArchName,
            cooperativeLaunch: new.cooperativeLaunch,
            memPitch: new.memPitch,
            textureAlignment: ROW_ALIGNMENT,
            texturePitchAlignment: ROW_ALIGNMENT,
            managedMemory: new.managedMemory,
            ..hipDeviceProp_tR0000::default()
        }
    }
}

fn put_text(field: &mut [c_char], text: &str) {
    let room = field.len() - 1;
    for (slot, byte) in field.iter_mut().zip(text.bytes().take(room)) {
        *slot = byte as c_char;
    }
}
