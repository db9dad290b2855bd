//! `hipGetDeviceProperties`.

use std::ffi::{c_char, c_int};

use hip_sys::{hipDeviceAttribute_t as A, hipDeviceProp_tR0600};

use super::Device;
use crate::error::Result;

impl Device {
    pub(super) fn properties(&self) -> Result<hipDeviceProp_tR0600> {
        let mut p = hipDeviceProp_tR0600::default();
        let size = |attribute: A| -> Result<usize> { Ok(usize::try_from(self.attribute(attribute)?).unwrap_or(0)) };
        put_text(&mut p.name, &self.name()?);
        put_text(&mut p.gcnArchName, &self.architecture()?);
        p.uuid.bytes = self.uuid()?.map(|byte| byte as c_char);
        p.totalGlobalMem = self.total_bytes()?;
        p.sharedMemPerBlock = size(A::hipDeviceAttributeMaxSharedMemoryPerBlock)?;
        p.sharedMemPerBlockOptin = size(A::hipDeviceAttributeSharedMemPerBlockOptin)?;
        p.sharedMemPerMultiprocessor = size(A::hipDeviceAttributeSharedMemPerMultiprocessor)?;
        p.maxSharedMemoryPerMultiProcessor = p.sharedMemPerMultiprocessor;
        p.totalConstMem = size(A::hipDeviceAttributeTotalConstantMemory)?;
        p.memPitch = size(A::hipDeviceAttributeMaxPitch)?;
        p.textureAlignment = size(A::hipDeviceAttributeTextureAlignment)?;
        p.texturePitchAlignment = size(A::hipDeviceAttributeTexturePitchAlignment)?;
        p.surfaceAlignment = size(A::hipDeviceAttributeSurfaceAlignment)?;
        p.reservedSharedMemPerBlock = size(A::hipDeviceAttributeReservedSharedMemPerBlock)?;
        p.maxThreadsDim = [
            self.attribute(A::hipDeviceAttributeMaxBlockDimX)?,
            self.attribute(A::hipDeviceAttributeMaxBlockDimY)?,
            self.attribute(A::hipDeviceAttributeMaxBlockDimZ)?,
        ];
        p.maxGridSize = [
            self.attribute(A::hipDeviceAttributeMaxGridDimX)?,
            self.attribute(A::hipDeviceAttributeMaxGridDimY)?,
            self.attribute(A::hipDeviceAttributeMaxGridDimZ)?,
        ];
        (p.major, p.minor) = self.capability()?;
        let plain: [(&mut c_int, A); 30] = [
            (&mut p.regsPerBlock, A::hipDeviceAttributeMaxRegistersPerBlock),
            (
                &mut p.regsPerMultiprocessor,
                A::hipDeviceAttributeMaxRegistersPerMultiprocessor,
            ),
            (&mut p.warpSize, A::hipDeviceAttributeWarpSize),
            (&mut p.maxThreadsPerBlock, A::hipDeviceAttributeMaxThreadsPerBlock),
            (&mut p.clockRate, A::hipDeviceAttributeClockRate),
            (&mut p.memoryClockRate, A::hipDeviceAttributeMemoryClockRate),
            (&mut p.memoryBusWidth, A::hipDeviceAttributeMemoryBusWidth),
            (&mut p.l2CacheSize, A::hipDeviceAttributeL2CacheSize),
            (&mut p.multiProcessorCount, A::hipDeviceAttributeMultiprocessorCount),
            (
                &mut p.maxThreadsPerMultiProcessor,
                A::hipDeviceAttributeMaxThreadsPerMultiProcessor,
            ),
            (
                &mut p.maxBlocksPerMultiProcessor,
                A::hipDeviceAttributeMaxBlocksPerMultiProcessor,
            ),
            (&mut p.kernelExecTimeoutEnabled, A::hipDeviceAttributeKernelExecTimeout),
            (&mut p.integrated, A::hipDeviceAttributeIntegrated),
            (&mut p.canMapHostMemory, A::hipDeviceAttributeCanMapHostMemory),
            (&mut p.computeMode, A::hipDeviceAttributeComputeMode),
            (&mut p.concurrentKernels, A::hipDeviceAttributeConcurrentKernels),
            (&mut p.ECCEnabled, A::hipDeviceAttributeEccEnabled),
            (&mut p.pciBusID, A::hipDeviceAttributePciBusId),
            (&mut p.pciDeviceID, A::hipDeviceAttributePciDeviceId),
            (&mut p.pciDomainID, A::hipDeviceAttributePciDomainID),
            (&mut p.tccDriver, A::hipDeviceAttributeTccDriver),
            (&mut p.asyncEngineCount, A::hipDeviceAttributeAsyncEngineCount),
            (&mut p.unifiedAddressing, A::hipDeviceAttributeUnifiedAddressing),
            (
                &mut p.streamPrioritiesSupported,
                A::hipDeviceAttributeStreamPrioritiesSupported,
            ),
            (&mut p.managedMemory, A::hipDeviceAttributeManagedMemory),
            (&mut p.isMultiGpuBoard, A::hipDeviceAttributeIsMultiGpuBoard),
            (&mut p.pageableMemoryAccess, A::hipDeviceAttributePageableMemoryAccess),
            (
                &mut p.concurrentManagedAccess,
                A::hipDeviceAttributeConcurrentManagedAccess,
            ),
            (&mut p.cooperativeLaunch, A::hipDeviceAttributeCooperativeLaunch),
            (&mut p.memoryPoolsSupported, A::hipDeviceAttributeMemoryPoolsSupported),
        ];
        for (field, attribute) in plain {
            *field = self.attribute(attribute)?;
        }
        p.hostRegisterSupported = self.attribute(A::hipDeviceAttributeHostRegisterSupported)?;
        Ok(p)
    }
}

fn put_text(field: &mut [c_char], text: &str) {
    let room = field.len() - 1;
    for (slot, byte) in field.iter_mut().zip(text.bytes().take(room)) {
        *slot = byte as c_char;
    }
}
