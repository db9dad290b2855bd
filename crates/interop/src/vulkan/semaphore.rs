//! Binary semaphores that Vulkan exports.

use super::Error;
use super::device::Device;
use super::error::call;
use ash::vk;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;

const KIND: vk::ExternalSemaphoreHandleTypeFlags = vk::ExternalSemaphoreHandleTypeFlags::OPAQUE_FD;

pub(crate) struct Semaphore {
    device: Arc<Device>,
    pub(super) raw: vk::Semaphore,
}

impl Semaphore {
    /// # Errors
    /// [`Error::Lacks`] if the driver exports none, or what Vulkan answers.
    pub(super) fn new(device: &Arc<Device>) -> Result<Self, Error> {
        let info = vk::PhysicalDeviceExternalSemaphoreInfo::default().handle_type(KIND);
        let mut found = vk::ExternalSemaphoreProperties::default();
        // SAFETY: a living instance of Vulkan 1.1 or later and a device of its own.
        unsafe {
            device
                .instance
                .get_physical_device_external_semaphore_properties(
                    device.physical,
                    &info,
                    &mut found,
                );
        }
        let exportable = vk::ExternalSemaphoreFeatureFlags::EXPORTABLE;
        if device.semaphore_fd.is_none() || !found.external_semaphore_features.contains(exportable)
        {
            return Err(device.lacks(
                "exports no semaphores by opaque descriptor (VK_KHR_external_semaphore_fd)",
            ));
        }
        let mut export = vk::ExportSemaphoreCreateInfo::default().handle_types(KIND);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut export);
        // SAFETY: a living device and a filled description; destroyed in `Drop`.
        let raw = unsafe { device.raw.create_semaphore(&info, None) }
            .map_err(call("vkCreateSemaphore(exportable)"))?;
        Ok(Self {
            device: Arc::clone(device),
            raw,
        })
    }

    /// A descriptor of the semaphore, which the caller owns. Each import shares its state.
    pub(crate) fn export(&self) -> Result<OwnedFd, Error> {
        let info = vk::SemaphoreGetFdInfoKHR::default()
            .semaphore(self.raw)
            .handle_type(KIND);
        let Some(functions) = &self.device.semaphore_fd else {
            return Err(self.device.lacks("exports no semaphores"));
        };
        // SAFETY: a living semaphore that was created for this kind of export.
        let fd = unsafe { functions.get_semaphore_fd(&info) }
            .map_err(call("vkGetSemaphoreFdKHR(opaque fd)"))?;
        // SAFETY: the driver gave the descriptor to the caller.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Signals it from Vulkan's side, at once: for whoever waits for a signal that will not come.
    pub(crate) fn force(&self) -> Result<(), Error> {
        let signals = [self.raw];
        let submit = vk::SubmitInfo::default().signal_semaphores(&signals);
        let queue = self.device.queue.lock();
        // SAFETY: the queue is locked; the semaphore is alive and kept by its user until the device
        // is idle.
        unsafe {
            self.device
                .raw
                .queue_submit(*queue, &[submit], vk::Fence::null())
        }
        .map_err(call("vkQueueSubmit(a signal)"))
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // SAFETY: created here; its user has waited for what uses it.
        unsafe { self.device.raw.destroy_semaphore(self.raw, None) };
    }
}
