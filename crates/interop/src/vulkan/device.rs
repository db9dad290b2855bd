//! A Vulkan device with one queue, our own or foreign.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use ash::vk;
use parking_lot::Mutex;

use super::choose::{self, Identity, Match, has_extension};
use super::{Error, loader};
use crate::Result;
use crate::core::Core;
use crate::error::vulkan::call;

/// Vulkan objects of other code.
#[derive(Clone)]
pub struct Objects {
    /// Of Vulkan 1.1 or later.
    pub instance: ash::Instance,
    /// The hardware.
    pub physical_device: vk::PhysicalDevice,
    /// With `VK_KHR_external_memory_fd` enabled.
    pub device: ash::Device,
    /// Of the queue; it can do transfers.
    pub queue_family: u32,
    /// The queue that a [`Link`](super::Link) submits to.
    pub queue: vk::Queue,
    /// Another queue of the device, of any family, that nothing else uses while the link lives. It signals in the place
    /// of a side that does not end; a queue with work of its own might never get to that; without it
    /// [`Bridge::with_semaphores`](crate::Bridge::with_semaphores) is refused.
    pub rescue: Option<vk::Queue>,
    /// Whether `VK_KHR_external_semaphore_fd` is enabled.
    pub has_semaphores: bool,
    /// Kept as long as the link and its buffers: the value that destroys the device and the instance, or one that keeps
    /// it alive.
    pub owner: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects")
            .field("physical_device", &self.physical_device)
            .field("queue_family", &self.queue_family)
            .field("rescue", &self.rescue)
            .field("has_semaphores", &self.has_semaphores)
            .finish_non_exhaustive()
    }
}

pub(super) struct Device {
    pub(super) raw: ash::Device,
    pub(super) instance: ash::Instance,
    pub(super) physical: vk::PhysicalDevice,
    pub(super) identity: Identity,
    pub(super) matched: Match,
    pub(super) memory_fd: ash::khr::external_memory_fd::Device,
    pub(super) semaphore_fd: Option<ash::khr::external_semaphore_fd::Device>,
    pub(super) queue_family: u32,
    /// A queue is for one thread at a time.
    pub(super) queue: Mutex<vk::Queue>,
    /// For signals that must wait behind nothing.
    pub(super) rescue: Option<Mutex<vk::Queue>>,
    pub(super) _owner: Arc<dyn Any + Send + Sync>,
}

/// Destroys what [`Device::open`] made.
struct Own {
    instance: ash::Instance,
    device: Option<ash::Device>,
}

impl Drop for Own {
    fn drop(&mut self) {
        // SAFETY: created by us, and the last user of either is gone with the last owner.
        unsafe {
            if let Some(device) = &self.device {
                // An error at the device's end has no receiver, and changes nothing here.
                let _ = device.device_wait_idle();
                device.destroy_device(None);
            }
            self.instance.destroy_instance(None);
        }
    }
}

impl Device {
    /// An instance and a device of our own, on the bridge's hardware.
    pub(super) fn open(core: &Core) -> Result<Arc<Self>> {
        let entry = loader::entry()?;
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_1);
        let info = vk::InstanceCreateInfo::default().application_info(&application);
        // SAFETY: a loaded entry and a filled description; destroyed by `Own`.
        let instance = unsafe { entry.create_instance(&info, None) };
        let instance = instance.map_err(|code| match code {
            // What the loader says if no driver comes up.
            vk::Result::ERROR_INCOMPATIBLE_DRIVER => Error::NoDevice {
                hip: choose::describe(core),
                reason: "the loader found no driver that starts; set VK_LOADER_DEBUG=all to see which it tried, and VK_DRIVER_FILES to name one"
                    .into(),
            },
            code => call("vkCreateInstance")(code),
        })?;
        let mut own = Own {
            instance: instance.clone(),
            device: None,
        };
        // SAFETY: a living instance.
        let all = unsafe { instance.enumerate_physical_devices() }.map_err(call("vkEnumeratePhysicalDevices"))?;
        let mut seen = Vec::new();
        for physical in all {
            // SAFETY: as above.
            let version = unsafe { instance.get_physical_device_properties(physical) }.api_version;
            if version < vk::API_VERSION_1_1 {
                seen.push("one of Vulkan 1.0".to_owned());
                continue;
            }
            let identity = Identity::of(&instance, physical)?;
            if identity.matches(core)?.is_none() {
                seen.push(identity.to_string());
                continue;
            }
            let (device, queues, has_semaphores) = create(&instance, physical, &identity)?;
            own.device = Some(device.clone());
            // SAFETY: created with these queues.
            let queue = |(family, index)| unsafe { device.get_device_queue(family, index) };
            let rescue = queues.rescue.map(queue);
            let (queue_family, queue) = (queues.family, queue((queues.family, 0)));
            let objects = Objects {
                instance,
                physical_device: physical,
                device,
                queue_family,
                queue,
                rescue,
                has_semaphores,
                owner: Arc::new(own),
            };
            return Self::of(core, objects);
        }
        Err(Error::NoDevice {
            hip: choose::describe(core),
            reason: match seen.is_empty() {
                true => "the loader reports no device; install a driver, or set VK_DRIVER_FILES to its file".into(),
                false => format!(
                    "found {}; set VK_DRIVER_FILES to the driver of that hardware",
                    seen.join(", ")
                ),
            },
        }
        .into())
    }

    /// Objects of other code.
    pub(super) fn of(core: &Core, objects: Objects) -> Result<Arc<Self>> {
        let (instance, physical) = (objects.instance, objects.physical_device);
        let identity = Identity::of(&instance, physical)?;
        let Some(matched) = identity.matches(core)? else {
            return Err(Error::NoDevice {
                hip: choose::describe(core),
                reason: format!("the device is {identity}; open one on the bridge's hardware"),
            }
            .into());
        };
        Ok(Arc::new(Self {
            memory_fd: ash::khr::external_memory_fd::Device::new(&instance, &objects.device),
            semaphore_fd: objects
                .has_semaphores
                .then(|| ash::khr::external_semaphore_fd::Device::new(&instance, &objects.device)),
            raw: objects.device,
            instance,
            physical,
            identity,
            matched,
            queue_family: objects.queue_family,
            queue: Mutex::new(objects.queue),
            rescue: objects.rescue.map(Mutex::new),
            _owner: objects.owner,
        }))
    }

    pub(super) fn lacks(&self, lacks: impl Into<String>) -> Error {
        Error::Lacks {
            device: self.identity.to_string(),
            lacks: lacks.into(),
        }
    }
}

/// Which queues a device was created with.
struct Queues {
    /// Of the first queue, which works.
    family: u32,
    /// Family and index of the second, if the device has one.
    rescue: Option<(u32, u32)>,
}

/// A device with a queue that draws, if there is one, and can copy; and with another one, if there is.
fn create(
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
    identity: &Identity,
) -> Result<(ash::Device, Queues, bool)> {
    if !has_extension(instance, physical, ash::khr::external_memory_fd::NAME)? {
        return Err(Error::Lacks {
            device: identity.to_string(),
            lacks: "cannot export memory (no VK_KHR_external_memory_fd); use a newer driver".into(),
        }
        .into());
    }
    let has_semaphores = has_extension(instance, physical, ash::khr::external_semaphore_fd::NAME)?;
    let mut extensions = vec![ash::khr::external_memory_fd::NAME.as_ptr()];
    if has_semaphores {
        extensions.push(ash::khr::external_semaphore_fd::NAME.as_ptr());
    }
    // SAFETY: a living instance and a device of its own.
    let families = unsafe { instance.get_physical_device_queue_family_properties(physical) };
    let (draws, computes) = (vk::QueueFlags::GRAPHICS, vk::QueueFlags::COMPUTE);
    // Both kinds can copy.
    let with = |flags| families.iter().position(|family| family.queue_flags.contains(flags));
    let family = with(draws | computes)
        .or_else(|| with(computes))
        .ok_or_else(|| Error::Lacks {
            device: identity.to_string(),
            lacks: "has no queue for graphics or compute".into(),
        })?;
    let second = match families[family].queue_count {
        0 | 1 => families
            .iter()
            .enumerate()
            .position(|(other, properties)| other != family && properties.queue_count > 0)
            .map(|other| (other, 0)),
        _ => Some((family, 1)),
    };
    let index = |family| u32::try_from(family).unwrap_or(u32::MAX);
    let queues = Queues {
        family: index(family),
        rescue: second.map(|(family, place)| (index(family), place)),
    };
    let of = |family| vk::DeviceQueueCreateInfo::default().queue_family_index(family);
    let asked = match queues.rescue {
        Some((other, 0)) => vec![
            of(queues.family).queue_priorities(&[1.0]),
            of(other).queue_priorities(&[1.0]),
        ],
        Some(_) => vec![of(queues.family).queue_priorities(&[1.0, 1.0])],
        None => vec![of(queues.family).queue_priorities(&[1.0])],
    };
    let info = vk::DeviceCreateInfo::default()
        .queue_create_infos(&asked)
        .enabled_extension_names(&extensions);
    // SAFETY: families, as many queues of each and extensions as the device has; destroyed by `Own`.
    let device = unsafe { instance.create_device(physical, &info, None) }.map_err(call("vkCreateDevice"))?;
    Ok((device, queues, has_semaphores))
}
