//! A copy behind the pipeline's back, for the test that the counters see it.

use clmgr::RegularBuffer;
use hip::DeviceBuffer;
use interop::Bridge;

use crate::Result;
use crate::timing::ApiName;

/// Length in bytes of the planted copy.
const BYTES: usize = 4096;

/// Device memory to copy from, with no label that would excuse the copy as input or result.
pub(crate) enum Plant {
    OpenCl(clmgr::Queue, RegularBuffer<u8>),
    Hip(hip::Stream, DeviceBuffer<u8>),
}

impl Plant {
    pub(crate) fn new(bridge: &Bridge, api: ApiName) -> Result<Self> {
        Ok(match api {
            ApiName::OpenCl => Self::OpenCl(bridge.queue()?, RegularBuffer::new(bridge.cl_context(), BYTES)?),
            ApiName::Hip => Self::Hip(bridge.stream()?, bridge.hip_device().alloc(BYTES)?),
        })
    }

    pub(crate) fn copy(&self) -> Result<()> {
        let mut bytes = [0; BYTES];
        match self {
            Self::OpenCl(queue, buffer) => buffer.read(queue, &mut bytes)?,
            Self::Hip(stream, buffer) => buffer.copy_to_slice(stream, &mut bytes)?,
        }
        Ok(())
    }
}
