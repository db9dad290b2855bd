use std::ffi::c_uint;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::{fmt, ptr};

use hip_sys::{
    hipError_t, hipExternalSemaphore_t, hipExternalSemaphoreHandleDesc, hipExternalSemaphoreHandleType,
    hipExternalSemaphoreSignalParams, hipExternalSemaphoreWaitParams,
};

use crate::call::{call, code};
use crate::{Device, Error, Result, Stream};

const NONE: Error = Error::NotSupported {
    what: "an external semaphore",
    reason: "ROCm does not support them on Linux; order the work with events, flags or host functions",
};

/// A semaphore of another API, imported by a file descriptor.
///
/// ROCm on Linux has none. Importing is [`Error::NotSupported`] there. Should a release accept the import, signal and
/// wait are still refused: they are queued and do nothing (rocclr/device/rocm/rocvirtual.hpp,
/// `submitExternalSemaphoreCmd`), so what should wait would not. Only where HIP stands for CUDA, whose devices are
/// called `sm_…`, they go through.
///
/// Streams that signal it or wait for it keep it alive, so it can be dropped at any time: it is destroyed once they
/// have been waited for. (CUDA, `cuDestroyExternalSemaphore`: "Any outstanding signals or waits must have completed on
/// the semaphore".)
#[doc(alias = "hipExternalSemaphore_t")]
pub struct ExternalSemaphore {
    core: Arc<Core>,
}

/// The semaphore. Its last owner destroys it; queued signals and waits are owners.
struct Core {
    device: Device,
    raw: hipExternalSemaphore_t,
    /// Whether signal and wait have an effect.
    effective: bool,
}

// SAFETY: a handle without thread affinity, used on streams, which are used from any thread.
unsafe impl Send for Core {}
// SAFETY: as for `Send`.
unsafe impl Sync for Core {}

impl Device {
    /// Imports an opaque descriptor of a semaphore.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] on ROCm for Linux, or the platform refused the descriptor.
    #[doc(alias = "hipImportExternalSemaphore")]
    pub fn import_semaphore(&self, fd: BorrowedFd<'_>) -> Result<ExternalSemaphore> {
        let effective = self.arch()?.starts_with("sm_");
        self.make_current()?;
        let mut desc = hipExternalSemaphoreHandleDesc {
            type_: hipExternalSemaphoreHandleType::hipExternalSemaphoreHandleTypeOpaqueFd,
            ..hipExternalSemaphoreHandleDesc::default()
        };
        desc.handle.fd = fd.as_raw_fd();
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle to the address given; the description is filled and the descriptor open.
        match unsafe { code!(self.runtime(), hipImportExternalSemaphore(&mut raw, &desc)) } {
            Ok(hipError_t::hipSuccess) => Ok(ExternalSemaphore {
                core: Arc::new(Core {
                    device: self.clone(),
                    raw,
                    effective,
                }),
            }),
            Ok(hipError_t::hipErrorNotSupported) | Err(Error::MissingSymbol { .. }) => Err(NONE),
            Ok(code) => {
                let call = format!("hipImportExternalSemaphore(fd {})", fd.as_raw_fd());
                Err(self.runtime().failure(code, call))
            }
            Err(error) => Err(error),
        }
    }
}

impl ExternalSemaphore {
    /// Signals it once the work queued on `stream` so far is done; `value` counts for timeline semaphores.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] where it would do nothing, a stream of another device, or HIP refused it.
    #[doc(alias = "hipSignalExternalSemaphoresAsync")]
    pub fn signal(&self, stream: &Stream, value: u64) -> Result<()> {
        self.check(stream, "ExternalSemaphore::signal")?;
        let mut params = hipExternalSemaphoreSignalParams::default();
        params.params.fence.value = value;
        let count: c_uint = 1;
        stream.queue_with(&self.core, || {
            // SAFETY: one semaphore, which the stream keeps alive, with its parameters, which are copied; the stream is
            // alive.
            unsafe {
                call!(
                    self.core.device.runtime(),
                    hipSignalExternalSemaphoresAsync(&self.core.raw, &params, count, stream.raw_uncaptured()?),
                    "hipSignalExternalSemaphoresAsync({value})"
                )
            }
        })
    }

    /// Work queued on `stream` from now on waits for it; `value` counts for timeline semaphores.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] where it would do nothing, a stream of another device, or HIP refused it.
    #[doc(alias = "hipWaitExternalSemaphoresAsync")]
    pub fn wait(&self, stream: &Stream, value: u64) -> Result<()> {
        self.check(stream, "ExternalSemaphore::wait")?;
        let mut params = hipExternalSemaphoreWaitParams::default();
        params.params.fence.value = value;
        let count: c_uint = 1;
        stream.queue_with(&self.core, || {
            // SAFETY: as in `signal`.
            unsafe {
                call!(
                    self.core.device.runtime(),
                    hipWaitExternalSemaphoresAsync(&self.core.raw, &params, count, stream.raw_uncaptured()?),
                    "hipWaitExternalSemaphoresAsync({value})"
                )
            }
        })
    }

    fn check(&self, stream: &Stream, call: &'static str) -> Result<()> {
        let device = &self.core.device;
        device.check_same(stream.device(), call, "stream")?;
        if !self.core.effective {
            return Err(NONE);
        }
        stream.not_recording("a semaphore")?;
        device.make_current()
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        let destroyed = self.device.make_current().and_then(|()| {
            // SAFETY: the handle is alive, and this is its last use; no stream uses it, for each that may is an owner.
            unsafe {
                call!(
                    self.device.runtime(),
                    hipDestroyExternalSemaphore(self.raw),
                    "hipDestroyExternalSemaphore()"
                )
            }
        });
        if let Err(error) = destroyed {
            self.device.runtime().defer(error);
        }
    }
}

impl fmt::Debug for ExternalSemaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalSemaphore")
            .field("device", &self.core.device.ordinal())
            .finish_non_exhaustive()
    }
}
