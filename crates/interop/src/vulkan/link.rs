//! A bridge and a Vulkan device that are the same hardware.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ash::vk;
use bytemuck::Pod;

use super::buffer::Buffer;
use super::choose::{Identity, Match};
use super::device::{Device, Objects};
use super::memory::Memory;
use super::semaphore::{NO_RESCUE, Semaphore};
use super::turns::{Mechanism, Turns};
use super::{Error, proof};
use crate::backing::{self, Backing, Exported, ExternalFd, Imported};
use crate::memory::bytes_of;
use crate::{Bridge, Result, Route};

/// Long enough for work that is meant to end.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// What a link found when it was opened.
#[derive(Clone, Debug)]
pub struct LinkReport {
    /// The Vulkan device.
    pub device: Identity,
    /// Why it was taken for the bridge's hardware; the patterns agreed.
    pub matched: Match,
    /// Whether the driver requires exported memory to be allocated for one buffer alone.
    pub dedicated: bool,
    /// Where the memory begins in the file behind a software driver's descriptor; 0 on hardware.
    pub displacement: usize,
    /// How OpenCL and HIP reach the memory: the route of its buffers.
    pub route: Route,
    /// Whether semaphores order Vulkan and HIP, or why not.
    pub semaphores: std::result::Result<(), String>,
}

impl fmt::Display for LinkReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dedicated = match self.dedicated {
            true => ", dedicated",
            false => "",
        };
        write!(
            f,
            "{}, matched by {}; memory by {}{dedicated}; ",
            self.device, self.matched, self.route
        )?;
        match &self.semaphores {
            Ok(()) => f.write_str("ordered by semaphores"),
            Err(reason) => write!(f, "ordered by the host, without semaphores: {reason}"),
        }
    }
}

/// Joins a [`Bridge`] with a Vulkan device that is the same hardware.
pub struct Link {
    // Dropped first: it waits for the queue.
    turns: Turns,
    bridge: Bridge,
    device: Arc<Device>,
    report: LinkReport,
}

impl Link {
    /// A link with its own Vulkan device on the bridge's hardware, by PCI address, proven by patterns that crossed
    /// between Vulkan, HIP and OpenCL.
    ///
    /// # Errors
    /// [`Error::Vulkan`](crate::Error::Vulkan): no loader, no device that is the hardware, or one
    /// that exports no memory; errors of HIP and OpenCL if they do not import it.
    pub fn open(bridge: &Bridge) -> Result<Self> {
        Self::prove(bridge, Device::open(bridge.core())?)
    }

    /// As [`open`](Self::open), with objects that other code created.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    ///
    /// # Safety
    /// * The objects are alive until `owner` is dropped, belong together, and have the extensions
    ///   enabled that they say.
    /// * While a method of the link or of a [`Buffer`] runs, nothing else uses the queue.
    pub unsafe fn adopt(bridge: &Bridge, objects: Objects) -> Result<Self> {
        Self::prove(bridge, Device::of(bridge.core(), objects)?)
    }

    fn prove(bridge: &Bridge, device: Arc<Device>) -> Result<Self> {
        let core = bridge.core();
        let mut link = Self {
            turns: Turns::new(core, &device, proof::LIMIT)?,
            bridge: bridge.clone(),
            report: LinkReport {
                device: device.identity.clone(),
                matched: device.matched,
                dedicated: false,
                displacement: 0,
                route: Route::ExternalFd,
                semaphores: Err("not looked at".into()),
            },
            device,
        };
        link.report.displacement = proof::displacement(&link)?;
        link.report.dedicated = proof::memory(&link)?;
        link.report.semaphores = link
            .turns
            .try_semaphores()
            .and_then(|()| proof::semaphores(&link))
            .map_err(|error| error.to_string());
        link.turns.set_patience(LIMIT);
        Ok(link)
    }

    /// What was found.
    #[must_use]
    pub fn report(&self) -> &LinkReport {
        &self.report
    }

    /// The bridge.
    #[must_use]
    pub fn bridge(&self) -> &Bridge {
        &self.bridge
    }

    /// Vulkan's instance; not to be destroyed.
    #[must_use]
    pub fn instance(&self) -> &ash::Instance {
        &self.device.instance
    }

    /// Vulkan's device; not to be destroyed.
    #[must_use]
    pub fn device(&self) -> &ash::Device {
        &self.device.raw
    }

    /// The hardware.
    #[must_use]
    pub fn physical_device(&self) -> vk::PhysicalDevice {
        self.device.physical
    }

    /// The family of the link's queue. It draws where the device can.
    #[must_use]
    pub fn queue_family(&self) -> u32 {
        self.device.queue_family
    }

    /// A buffer of `len` elements in Vulkan memory, for these usages and for transfers. Its
    /// contents are unspecified.
    ///
    /// # Errors
    /// If the length is zero or too large, Vulkan has no memory or exports none for these usages, or
    /// another API does not import it.
    pub fn alloc<T: Pod>(&self, len: usize, usage: vk::BufferUsageFlags) -> Result<Buffer<T>> {
        let bytes = bytes_of::<T>(len)?;
        let memory = self.memory(bytes, usage)?;
        let shared = self.bridge.share(self.import(&memory, bytes)?, true)?;
        Ok(Buffer::new(shared, memory))
    }

    /// Puts Vulkan commands after all work on `stream` so far, and before all later work on it. Returns how.
    ///
    /// `buffers` are the shared buffers that the commands use; hold a guard of each, for this stream, from before the
    /// call on. Vulkan acquires them before the commands and releases them after. With [`Mechanism::Host`] the commands
    /// have ended when this returns; with [`Mechanism::Semaphores`] the stream waits for them.
    ///
    /// # Errors
    /// If the stream's earlier work failed, or a call of either API; the commands may or may not have run then.
    /// [`Error::Late`](super::Error::Late) if the queue does not end; the stream then waits for the commands.
    ///
    /// # Safety
    /// * The commands are recorded and can be submitted to a queue of
    ///   [`queue_family`](Self::queue_family); they, and all that they use, live unchanged until
    ///   the stream, or [`finish`](Self::finish), has been waited for.
    /// * Of shared buffers they use only these, and write only those with a write guard.
    pub unsafe fn enqueue(
        &self,
        stream: &hip::Stream,
        commands: &[vk::CommandBuffer],
        buffers: &[vk::Buffer],
    ) -> Result<Mechanism> {
        let mechanism = self.mechanism();
        // SAFETY: the caller's promise.
        unsafe { self.turns.take(mechanism, stream, commands, buffers, LIMIT) }?;
        Ok(mechanism)
    }

    /// How [`enqueue`](Self::enqueue) keeps the order.
    #[must_use]
    pub fn mechanism(&self) -> Mechanism {
        match self.report.semaphores {
            Ok(()) => Mechanism::Semaphores,
            Err(_) => Mechanism::Host,
        }
    }

    /// Waits until Vulkan has done all enqueued work.
    ///
    /// # Errors
    /// [`Error::Late`](super::Error::Late), or a lost device.
    pub fn finish(&self) -> Result<()> {
        Ok(self.turns.finish(LIMIT)?)
    }

    pub(crate) fn semaphore(&self) -> Result<Semaphore> {
        Ok(Semaphore::new(&self.device)?)
    }

    /// That a side which does not end can be stood in for.
    pub(super) fn check_rescue(&self) -> Result<(), Error> {
        match self.device.rescue {
            Some(_) => Ok(()),
            None => Err(self.device.lacks(NO_RESCUE)),
        }
    }

    pub(super) fn turns(&self) -> &Turns {
        &self.turns
    }

    pub(super) fn vulkan(&self) -> &Arc<Device> {
        &self.device
    }

    /// Memory that commands keep which are enqueued with its buffer.
    pub(super) fn memory(&self, bytes: usize, usage: vk::BufferUsageFlags) -> Result<Arc<Memory>, Error> {
        let memory = Arc::new(Memory::new(&self.device, bytes as u64, usage)?);
        self.turns.know(&memory);
        Ok(memory)
    }

    fn import(&self, memory: &Arc<Memory>, bytes: usize) -> Result<Box<dyn Backing>> {
        let core = self.bridge.core();
        let displacement = self.report.displacement;
        let exported = Exported {
            fd: memory.export()?,
            bytes: displacement + usize::try_from(memory.bytes).unwrap_or(usize::MAX),
            route: Route::ExternalFd,
            dedicated: memory.dedicated,
            owner: Some(Box::new(Arc::clone(memory))),
        };
        // SAFETY: the size is that of Vulkan's allocation, which has room for the buffer.
        Ok(unsafe {
            match backing::gate(core, Route::HipPointer) {
                Ok(()) => Box::new(Imported::of(core, exported, displacement, bytes)?) as Box<dyn Backing>,
                // OpenCL has addresses of its own.
                Err(_) => Box::new(ExternalFd::of(core, exported, bytes)?),
            }
        })
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}
