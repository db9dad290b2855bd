//! Binary semaphores that Vulkan exports.

use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;

use ash::vk;

use super::Error;
use super::device::Device;
use crate::error::vulkan::call;

const KIND: vk::ExternalSemaphoreHandleTypeFlags = vk::ExternalSemaphoreHandleTypeFlags::OPAQUE_FD;

/// Of a device with one queue.
pub(super) const NO_RESCUE: &str = "has only one queue, so a signal for a side that never ends could be stuck behind its work; pass Link::adopt a second queue in Objects::rescue";

pub(crate) struct Semaphore {
    device: Arc<Device>,
    pub(super) raw: vk::Semaphore,
}

impl Semaphore {
    /// # Errors
    /// [`Error::Lacks`] if the driver exports none, or Vulkan's error.
    pub(super) fn new(device: &Arc<Device>) -> Result<Self, Error> {
        let info = vk::PhysicalDeviceExternalSemaphoreInfo::default().handle_type(KIND);
        let mut found = vk::ExternalSemaphoreProperties::default();
        // SAFETY: a living instance of Vulkan 1.1 or later and a device of its own.
        unsafe {
            device
                .instance
                .get_physical_device_external_semaphore_properties(device.physical, &info, &mut found);
        }
        let exportable = vk::ExternalSemaphoreFeatureFlags::EXPORTABLE;
        if device.semaphore_fd.is_none() || !found.external_semaphore_features.contains(exportable) {
            return Err(
                device.lacks("cannot export semaphores by opaque file descriptor (no VK_KHR_external_semaphore_fd)")
            );
        }
        let mut export = vk::ExportSemaphoreCreateInfo::default().handle_types(KIND);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut export);
        // SAFETY: a living device and a filled description; destroyed in `Drop`.
        let raw = unsafe { device.raw.create_semaphore(&info, None) }.map_err(call("vkCreateSemaphore(exportable)"))?;
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
            return Err(self.device.lacks("cannot export semaphores"));
        };
        // SAFETY: a living semaphore that was created for this kind of export.
        let fd = unsafe { functions.get_semaphore_fd(&info) }.map_err(call("vkGetSemaphoreFdKHR(opaque fd)"))?;
        // SAFETY: the driver gave the descriptor to the caller.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Signals it from Vulkan's side, at once: for waiters on a signal that will not come. What the link's queue
    /// has to do does not come first: that may wait for the very same.
    pub(crate) fn force(&self) -> Result<(), Error> {
        let Some(queue) = &self.device.rescue else {
            return Err(self.device.lacks(NO_RESCUE));
        };
        let signals = [self.raw];
        let submit = vk::SubmitInfo::default().signal_semaphores(&signals);
        let queue = queue.lock();
        // SAFETY: the queue is locked; the semaphore is alive and kept by its user until the device
        // is idle.
        unsafe { self.device.raw.queue_submit(*queue, &[submit], vk::Fence::null()) }
            .map_err(call("vkQueueSubmit(a signal)"))
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // SAFETY: created here; its user has waited for what uses it.
        unsafe { self.device.raw.destroy_semaphore(self.raw, None) };
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::{CStr, c_char, c_void};
    use std::ptr::null;

    use ash::vk::Handle as _;
    use parking_lot::Mutex;

    use super::*;
    use crate::vulkan::{Identity, Match};

    /// Where a signal was submitted.
    static SUBMITTED: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

    unsafe extern "system" fn submit(
        queue: vk::Queue,
        count: u32,
        submits: *const vk::SubmitInfo<'_>,
        _: vk::Fence,
    ) -> vk::Result {
        assert_eq!(count, 1);
        // SAFETY: one description, of one semaphore to signal.
        let signalled = unsafe {
            assert_eq!((*submits).signal_semaphore_count, 1);
            *(*submits).p_signal_semaphores
        };
        SUBMITTED.lock().push((queue.as_raw(), signalled.as_raw()));
        vk::Result::SUCCESS
    }

    unsafe extern "system" fn destroy(_: vk::Device, _: vk::Semaphore, _: *const vk::AllocationCallbacks<'_>) {}

    unsafe extern "system" fn lacks(_: vk::Device, _: *const c_char) -> vk::PFN_vkVoidFunction {
        None
    }

    /// A driver that signals, and has no other function.
    fn device(rescue: Option<vk::Queue>) -> Arc<Device> {
        let none = |_: &CStr| null::<c_void>();
        let mut functions = ash::DeviceFnV1_0::load(none);
        functions.queue_submit = submit;
        functions.destroy_semaphore = destroy;
        let raw = ash::Device::from_parts_1_3(
            vk::Device::null(),
            functions,
            ash::DeviceFnV1_1::load(none),
            ash::DeviceFnV1_2::load(none),
            ash::DeviceFnV1_3::load(none),
        );
        let mut functions = ash::InstanceFnV1_0::load(none);
        functions.get_device_proc_addr = lacks;
        let instance = ash::Instance::from_parts_1_3(
            vk::Instance::null(),
            functions,
            ash::InstanceFnV1_1::load(none),
            ash::InstanceFnV1_3::load(none),
        );
        Arc::new(Device {
            memory_fd: ash::khr::external_memory_fd::Device::new(&instance, &raw),
            raw,
            instance,
            physical: vk::PhysicalDevice::null(),
            identity: Identity {
                name: "card".into(),
                pci: None,
                uuid: [0; vk::UUID_SIZE],
                is_cpu: false,
            },
            matched: Match::Pci,
            semaphore_fd: None,
            queue_family: 0,
            queue: Mutex::new(vk::Queue::from_raw(1)),
            rescue: rescue.map(Mutex::new),
            _owner: Arc::new(()),
        })
    }

    #[test]
    fn a_signal_for_a_stuck_side_waits_behind_nothing_of_the_links_own() {
        let (rescue, raw) = (vk::Queue::from_raw(2), vk::Semaphore::from_raw(7));
        let device = device(Some(rescue));
        let semaphore = Semaphore { device, raw };
        semaphore.force().expect("signalled");
        assert_eq!(*SUBMITTED.lock(), [(2, 7)]);
    }

    #[test]
    fn without_a_queue_for_it_no_signal_is_promised() {
        let semaphore = Semaphore {
            device: device(None),
            raw: vk::Semaphore::from_raw(8),
        };
        let text = semaphore.force().expect_err("one queue").to_string();
        assert!(text.contains("Objects::rescue"), "{text}");
    }
}
