//! Memory that Vulkan allocates and exports, with a buffer over all of it.

use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;

use ash::vk;

use super::Error;
use super::device::Device;
use crate::error::vulkan::call;

const KIND: vk::ExternalMemoryHandleTypeFlags = vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD;

pub(super) struct Memory {
    device: Arc<Device>,
    pub(super) buffer: vk::Buffer,
    pub(super) raw: vk::DeviceMemory,
    /// Of the allocation, which may be larger than the buffer.
    pub(super) bytes: u64,
    pub(super) dedicated: bool,
}

impl Memory {
    /// Device memory with room for `bytes` bytes.
    pub(super) fn new(device: &Arc<Device>, bytes: u64, usage: vk::BufferUsageFlags) -> Result<Self, Error> {
        let usage = usage | vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
        let dedicated_only = exportable(device, usage)?;
        let raw = &device.raw;
        let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(KIND);
        let info = vk::BufferCreateInfo::default()
            .size(bytes)
            .usage(usage)
            .sharing_mode(vk::SharingMode::EXCLUSIVE)
            .push_next(&mut external);
        // SAFETY: a living device and a filled description; destroyed in `Drop`.
        let buffer = unsafe { raw.create_buffer(&info, None) }
            .map_err(call(format!("vkCreateBuffer({bytes} bytes, exportable)")))?;
        // From here on the destructor cleans up; null memory is free to free.
        let mut memory = Self {
            device: Arc::clone(device),
            buffer,
            raw: vk::DeviceMemory::null(),
            bytes: 0,
            dedicated: false,
        };
        let mut asks = vk::MemoryDedicatedRequirements::default();
        let mut needs = vk::MemoryRequirements2::default().push_next(&mut asks);
        let which = vk::BufferMemoryRequirementsInfo2::default().buffer(buffer);
        // SAFETY: a living buffer of the device.
        unsafe { raw.get_buffer_memory_requirements2(&which, &mut needs) };
        let needs = needs.memory_requirements;
        memory.bytes = needs.size;
        memory.dedicated = dedicated_only
            || asks.requires_dedicated_allocation == vk::TRUE
            || asks.prefers_dedicated_allocation == vk::TRUE;
        let mut export = vk::ExportMemoryAllocateInfo::default().handle_types(KIND);
        let mut dedicated = vk::MemoryDedicatedAllocateInfo::default().buffer(buffer);
        let mut info = vk::MemoryAllocateInfo::default()
            .allocation_size(needs.size)
            .memory_type_index(on_device(device, needs.memory_type_bits)?)
            .push_next(&mut export);
        if memory.dedicated {
            info = info.push_next(&mut dedicated);
        }
        // SAFETY: a type of the device that the buffer takes; freed in `Drop`.
        memory.raw = unsafe { raw.allocate_memory(&info, None) }
            .map_err(call(format!("vkAllocateMemory({} bytes, exportable)", needs.size)))?;
        // SAFETY: both are new, of one device, and suit each other.
        unsafe { raw.bind_buffer_memory(buffer, memory.raw, 0) }.map_err(call("vkBindBufferMemory"))?;
        Ok(memory)
    }

    /// A descriptor of the allocation, which the caller owns. It keeps the memory.
    pub(super) fn export(&self) -> Result<OwnedFd, Error> {
        let info = vk::MemoryGetFdInfoKHR::default().memory(self.raw).handle_type(KIND);
        // SAFETY: living memory that was allocated for this kind of export.
        let fd = unsafe { self.device.memory_fd.get_memory_fd(&info) }.map_err(call("vkGetMemoryFdKHR(opaque fd)"))?;
        // SAFETY: the driver gave the descriptor to the caller.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: created here; the submitters of work with the buffer have waited for it.
        unsafe {
            self.device.raw.destroy_buffer(self.buffer, None);
            self.device.raw.free_memory(self.raw, None);
        }
    }
}

/// Whether such a buffer can be exported by opaque descriptor, and whether only from an allocation
/// of its own.
fn exportable(device: &Device, usage: vk::BufferUsageFlags) -> Result<bool, Error> {
    let info = vk::PhysicalDeviceExternalBufferInfo::default()
        .usage(usage)
        .handle_type(KIND);
    let mut found = vk::ExternalBufferProperties::default();
    // SAFETY: a living instance of Vulkan 1.1 or later and a device of its own.
    unsafe {
        device
            .instance
            .get_physical_device_external_buffer_properties(device.physical, &info, &mut found);
    }
    let features = found.external_memory_properties.external_memory_features;
    if !features.contains(vk::ExternalMemoryFeatureFlags::EXPORTABLE) {
        return Err(device.lacks(format!(
            "cannot export a buffer for usages {:#x} by opaque file descriptor; request fewer",
            usage.as_raw()
        )));
    }
    Ok(features.contains(vk::ExternalMemoryFeatureFlags::DEDICATED_ONLY))
}

/// The first type of memory among `allowed` that lies on the device.
fn on_device(device: &Device, allowed: u32) -> Result<u32, Error> {
    // SAFETY: a living instance and a device of its own.
    let all = unsafe { device.instance.get_physical_device_memory_properties(device.physical) };
    let wanted = vk::MemoryPropertyFlags::DEVICE_LOCAL;
    (0..all.memory_type_count)
        .find(|&index| allowed & (1 << index) != 0 && all.memory_types[index as usize].property_flags.contains(wanted))
        .ok_or_else(|| device.lacks("has no exportable device memory"))
}
