//! Vulkan's commands as work of a HIP stream.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::os::fd::AsFd;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use ash::vk;
use parking_lot::Mutex;

use super::Error;
use super::device::Device;
use super::lanes::Lanes;
use super::memory::Memory;
use super::semaphore::Semaphore;
use crate::Result;
use crate::core::Core;
use crate::error::vulkan::call;

/// How a stream and Vulkan's queue wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mechanism {
    /// By semaphores, on the device; the calling thread goes on.
    Semaphores,
    /// The calling thread waits for the stream, and then for Vulkan's fence.
    Host,
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Semaphores => "semaphores",
            Self::Host => "host",
        })
    }
}

/// A semaphore that Vulkan and HIP both know.
struct Both {
    // The import is released before what it imports.
    hip: hip::ExternalSemaphore,
    vulkan: Semaphore,
}

impl Both {
    fn new(core: &Core, device: &Arc<Device>) -> Result<Self> {
        let vulkan = Semaphore::new(device)?;
        let fd = vulkan.export()?;
        // HIP leaves the descriptor with the caller, and the import outlives it.
        let hip = core.hip_device.import_semaphore(fd.as_fd())?;
        Ok(Self { vulkan, hip })
    }
}

/// A pair for each stream: its order lets each semaphore be signalled again only after it was
/// waited for.
struct Lane {
    to_vulkan: Both,
    to_hip: Both,
    /// The number of the flight that used it last.
    last: u64,
    // A driver's semaphore may remember its stream, which must not be gone first.
    stream: hip::Stream,
}

/// Tells when the work of one flight is done.
struct Fence {
    raw: vk::Fence,
    device: Arc<Device>,
}

impl Fence {
    fn new(device: &Arc<Device>) -> Result<Arc<Self>, Error> {
        // SAFETY: a living device; destroyed in `Drop`.
        let raw = unsafe { device.raw.create_fence(&vk::FenceCreateInfo::default(), None) };
        Ok(Arc::new(Self {
            raw: raw.map_err(call("vkCreateFence"))?,
            device: Arc::clone(device),
        }))
    }

    fn is_signalled(&self) -> bool {
        // SAFETY: a living fence of the device.
        let signalled = unsafe { self.device.raw.get_fence_status(self.raw) };
        signalled == Ok(true)
    }

    /// At most as long as the limit.
    fn wait(&self, limit: Duration) -> Result<(), Error> {
        match self.wait_nanoseconds(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX)) {
            Err(vk::Result::TIMEOUT) => Err(Error::Late { limit }),
            outcome => outcome.map_err(call("vkWaitForFences")),
        }
    }

    fn wait_nanoseconds(&self, limit: u64) -> std::result::Result<(), vk::Result> {
        // SAFETY: a living fence of the device.
        unsafe { self.device.raw.wait_for_fences(&[self.raw], true, limit) }
    }

    /// Only a device that is lost does no more work; any other error is the wait's own.
    fn wait_for_ever(&self) {
        loop {
            match self.wait_nanoseconds(u64::MAX) {
                Ok(()) | Err(vk::Result::ERROR_DEVICE_LOST) => return,
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// As [`wait`](Self::wait). If the work is late, `stream` waits for it, as its order demands: the bytes' next users
    /// wait for the stream.
    fn wait_for(self: &Arc<Self>, stream: &hip::Stream, limit: Duration) -> Result<()> {
        let Err(error) = self.wait(limit) else {
            return Ok(());
        };
        let fence = Arc::clone(self);
        stream.host_function(move || fence.wait_for_ever())?;
        Err(error.into())
    }
}

impl Drop for Fence {
    fn drop(&mut self) {
        // SAFETY: never submitted, or done; nothing waits for it. A flight that is not done is leaked.
        unsafe { self.device.raw.destroy_fence(self.raw, None) };
    }
}

/// Work submitted to Vulkan, until its fence says that it is done.
struct Flight {
    fence: Arc<Fence>,
    barriers: [vk::CommandBuffer; 2],
    /// Freed no earlier, whatever becomes of the buffers over it.
    _memories: Vec<Arc<Memory>>,
}

#[derive(Default)]
struct State {
    lanes: Lanes<Lane>,
    /// Of which it is unknown whether a signal is pending.
    broken: Vec<Lane>,
    flights: VecDeque<Flight>,
    /// How many flights there were, and how many of them are over.
    submitted: u64,
    ended: u64,
}

impl State {
    /// Gives the flight its number.
    fn push(&mut self, flight: Flight) -> u64 {
        self.flights.push_back(flight);
        self.submitted += 1;
        self.submitted
    }
}

pub(super) struct Turns {
    core: Arc<Core>,
    device: Arc<Device>,
    pool: vk::CommandPool,
    state: Mutex<State>,
    /// Memory that was exported, by the buffer over it.
    memories: Mutex<HashMap<vk::Buffer, Weak<Memory>>>,
    /// How long the drop waits for the queue.
    patience: Duration,
}

impl Turns {
    /// `patience` is how long the drop waits for the queue.
    pub(super) fn new(core: &Arc<Core>, device: &Arc<Device>, patience: Duration) -> Result<Self, Error> {
        let info = vk::CommandPoolCreateInfo::default()
            .queue_family_index(device.queue_family)
            .flags(vk::CommandPoolCreateFlags::TRANSIENT);
        // SAFETY: a living device and its family; destroyed in `Drop`.
        let pool = unsafe { device.raw.create_command_pool(&info, None) }.map_err(call("vkCreateCommandPool"))?;
        Ok(Self {
            core: Arc::clone(core),
            device: Arc::clone(device),
            pool,
            state: Mutex::default(),
            memories: Mutex::default(),
            patience,
        })
    }

    pub(super) fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// From now on commands that use the memory's buffer keep the memory until they have ended.
    pub(super) fn know(&self, memory: &Arc<Memory>) {
        let mut memories = self.memories.lock();
        memories.retain(|_, known| known.strong_count() > 0);
        memories.insert(memory.buffer, Arc::downgrade(memory));
    }

    /// Whether semaphores are available, not yet whether they keep an order.
    pub(super) fn try_semaphores(&self) -> Result<()> {
        Both::new(&self.core, &self.device).map(drop)
    }

    /// See [`Link::enqueue`](super::Link::enqueue).
    ///
    /// # Safety
    /// As there.
    pub(super) unsafe fn take(
        &self,
        mechanism: Mechanism,
        stream: &hip::Stream,
        commands: &[vk::CommandBuffer],
        buffers: &[vk::Buffer],
        limit: Duration,
    ) -> Result<()> {
        let state = &mut *self.state.lock();
        self.retire(state);
        let flight = self.record(buffers)?;
        let barriers = flight.barriers;
        let all: Vec<_> = [&barriers[..1], commands, &barriers[1..]].concat();
        let fence = Arc::clone(&flight.fence);
        if mechanism == Mechanism::Host {
            let submitted = stream.synchronize().map_err(crate::Error::from);
            // SAFETY: the caller's promise, and barriers that were just recorded.
            let submitted = submitted.and_then(|()| unsafe { self.submit(&all, None, fence.raw) });
            if let Err(error) = submitted {
                self.free(&flight);
                return Err(error);
            }
            state.push(flight);
            return fence.wait_for(stream, limit);
        }
        let key = stream.raw().addr();
        let mut lane = match state.lanes.take(key) {
            Some(lane) => lane,
            None => {
                let ended = state.ended;
                // Vulkan has signalled, and HIP has waited.
                let is_spare = |lane: &Lane| lane.last <= ended && lane.stream.is_idle().unwrap_or(false);
                drop(state.lanes.spare(is_spare));
                self.lane(stream).inspect_err(|_| self.free(&flight))?
            }
        };
        if let Err(error) = lane.to_vulkan.hip.signal(stream, 0) {
            self.free(&flight);
            state.broken.push(lane);
            return Err(error.into());
        }
        // SAFETY: as above; HIP's signal is on its way, and the one for HIP was waited for, since
        // the stream that does so comes first.
        if let Err(error) = unsafe { self.submit(&all, Some(&lane), fence.raw) } {
            self.free(&flight);
            state.broken.push(lane);
            return Err(error);
        }
        lane.last = state.push(flight);
        if let Err(error) = lane.to_hip.hip.wait(stream, 0) {
            state.broken.push(lane);
            // The stream goes on without, so Vulkan must be done first.
            fence.wait_for(stream, limit)?;
            return Err(error.into());
        }
        state.lanes.put(key, lane);
        Ok(())
    }

    /// Waits for everything that was submitted, in all no longer than the limit.
    pub(super) fn finish(&self, limit: Duration) -> Result<(), Error> {
        let deadline = crate::values::deadline::after(limit);
        let state = &mut *self.state.lock();
        for flight in &state.flights {
            let left = deadline.saturating_duration_since(Instant::now());
            flight.fence.wait(left).map_err(|error| match error {
                Error::Late { .. } => Error::Late { limit },
                other => other,
            })?;
        }
        self.retire(state);
        Ok(())
    }

    fn lane(&self, stream: &hip::Stream) -> Result<Lane> {
        Ok(Lane {
            stream: stream.clone(),
            to_vulkan: Both::new(&self.core, &self.device)?,
            to_hip: Both::new(&self.core, &self.device)?,
            last: 0,
        })
    }

    /// # Safety
    /// The commands can be submitted to the queue. A lane's semaphores are in turn.
    unsafe fn submit(&self, commands: &[vk::CommandBuffer], lane: Option<&Lane>, fence: vk::Fence) -> Result<()> {
        let waits = lane.map(|lane| lane.to_vulkan.vulkan.raw);
        let signals = lane.map(|lane| lane.to_hip.vulkan.raw);
        let stages = [vk::PipelineStageFlags::ALL_COMMANDS];
        let mut info = vk::SubmitInfo::default().command_buffers(commands);
        if lane.is_some() {
            info = info
                .wait_semaphores(waits.as_slice())
                .wait_dst_stage_mask(&stages)
                .signal_semaphores(signals.as_slice());
        }
        let queue = self.device.queue.lock();
        // SAFETY: the caller's promise; the queue is locked; the fence is unsignalled.
        unsafe { self.device.raw.queue_submit(*queue, &[info], fence) }
            .map_err(|code| call("vkQueueSubmit")(code).into())
    }

    /// What takes the buffers over from HIP and hands them back.
    fn record(&self, buffers: &[vk::Buffer]) -> Result<Flight, Error> {
        let raw = &self.device.raw;
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.pool)
            .level(vk::CommandBufferLevel::PRIMARY)
            .command_buffer_count(2);
        // SAFETY: the pool is ours, and used under the state's lock alone.
        let two = unsafe { raw.allocate_command_buffers(&info) }.map_err(call("vkAllocateCommandBuffers"))?;
        let barriers = [two[0], two[1]];
        let fence = Fence::new(&self.device).inspect_err(|_| {
            // SAFETY: allocated above and not submitted.
            unsafe { raw.free_command_buffers(self.pool, &barriers) };
        })?;
        let memories = self.memories.lock();
        let of = |buffer| memories.get(buffer).and_then(Weak::upgrade);
        let flight = Flight {
            fence,
            barriers,
            _memories: buffers.iter().filter_map(of).collect(),
        };
        drop(memories);
        let (own, external) = (self.device.queue_family, vk::QUEUE_FAMILY_EXTERNAL);
        let turns = [(barriers[0], external, own), (barriers[1], own, external)];
        for (commands, from, to) in turns {
            let all = vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE;
            let of = |&buffer: &vk::Buffer| {
                vk::BufferMemoryBarrier::default()
                    .src_access_mask(all)
                    .dst_access_mask(all)
                    .src_queue_family_index(from)
                    .dst_queue_family_index(to)
                    .buffer(buffer)
                    .size(vk::WHOLE_SIZE)
            };
            let list: Vec<_> = buffers.iter().map(of).collect();
            let begin = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
            let stage = vk::PipelineStageFlags::ALL_COMMANDS;
            // SAFETY: a new command buffer; buffers of the device, by the caller's promise.
            let recorded = unsafe {
                raw.begin_command_buffer(commands, &begin)
                    .map(|()| {
                        let none = vk::DependencyFlags::empty();
                        raw.cmd_pipeline_barrier(commands, stage, stage, none, &[], &list, &[]);
                    })
                    .and_then(|()| raw.end_command_buffer(commands))
            };
            if let Err(code) = recorded {
                self.free(&flight);
                return Err(call("recording barriers")(code));
            }
        }
        Ok(flight)
    }

    /// Frees what is done, oldest first.
    fn retire(&self, state: &mut State) {
        while let Some(flight) = state.flights.front()
            && flight.fence.is_signalled()
        {
            self.free(flight);
            state.flights.pop_front();
            state.ended += 1;
        }
    }

    fn free(&self, flight: &Flight) {
        // SAFETY: not submitted, or done; the pool is used under the state's lock alone.
        unsafe {
            self.device.raw.free_command_buffers(self.pool, &flight.barriers);
        }
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        let finished = self.finish(self.patience);
        let state = self.state.get_mut();
        let flights = std::mem::take(&mut state.flights);
        let lanes = state.lanes.drain();
        let lanes: Vec<_> = lanes.chain(state.broken.drain(..)).collect();
        if let Err(error) = finished {
            // Freeing what the device still uses would be worse than keeping it.
            std::mem::forget((flights, lanes, Arc::clone(&self.device)));
            self.core.defer(error.into());
            return;
        }
        for lane in lanes {
            // A wait for Vulkan may be queued, though what it waits for has come.
            match lane.stream.synchronize() {
                Ok(()) => drop(lane),
                Err(error) => {
                    self.core.defer(error.into());
                    std::mem::forget(lane);
                }
            }
        }
        // SAFETY: nothing of it is in use.
        unsafe { self.device.raw.destroy_command_pool(self.pool, None) };
    }
}
