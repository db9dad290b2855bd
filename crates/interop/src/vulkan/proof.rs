//! Patterns between Vulkan and the other two.
//!
//! Vulkan writes by `vkCmdUpdateBuffer`, whose data lie in the commands, and reads by copying to a
//! buffer that HIP is known to see by then.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use ash::vk;

use super::Error;
use super::buffer::Buffer;
use super::link::Link;
use super::turns::Mechanism;
use crate::bridge::probe::{WORDS, pattern};
use crate::error::vulkan::call;
use crate::{Category, Result};

/// The most that one `vkCmdUpdateBuffer` takes.
const UPDATE: usize = 65536;
const BYTES: usize = WORDS * size_of::<u32>();
/// Patterns take milliseconds.
pub(super) const LIMIT: Duration = Duration::from_secs(5);

/// Commands in a pool of their own.
struct Commands<'a> {
    link: &'a Link,
    pool: vk::CommandPool,
    raw: vk::CommandBuffer,
}

impl<'a> Commands<'a> {
    fn record(link: &'a Link, work: impl FnOnce(&ash::Device, vk::CommandBuffer)) -> Result<Self, Error> {
        let device = &link.vulkan().raw;
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(link.vulkan().queue_family);
        // SAFETY: a living device and its family; destroyed in `Drop`.
        let pool = unsafe { device.create_command_pool(&info, None) }.map_err(call("vkCreateCommandPool"))?;
        let mut commands = Self {
            link,
            pool,
            raw: vk::CommandBuffer::null(),
        };
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(pool)
            .level(vk::CommandBufferLevel::PRIMARY)
            .command_buffer_count(1);
        let begin = vk::CommandBufferBeginInfo::default();
        // SAFETY: the pool is this thread's; `work` records copies between living buffers.
        unsafe {
            commands.raw = device
                .allocate_command_buffers(&info)
                .map_err(call("vkAllocateCommandBuffers"))?[0];
            device
                .begin_command_buffer(commands.raw, &begin)
                .map_err(call("vkBeginCommandBuffer"))?;
            work(device, commands.raw);
            device
                .end_command_buffer(commands.raw)
                .map_err(call("vkEndCommandBuffer"))?;
        }
        Ok(commands)
    }

    fn update(link: &'a Link, buffer: vk::Buffer, seed: u32) -> Result<Self, Error> {
        let words: Vec<u32> = (0..WORDS).map(|place| pattern(place, seed)).collect();
        Self::record(link, |device, commands| {
            let bytes: &[u8] = bytemuck::cast_slice(&words);
            for (index, part) in bytes.chunks(UPDATE).enumerate() {
                // SAFETY: inside the buffer, in multiples of four bytes; commands that record.
                unsafe {
                    device.cmd_update_buffer(commands, buffer, (index * UPDATE) as u64, part);
                }
            }
        })
    }

    fn copy(link: &'a Link, from: vk::Buffer, to: vk::Buffer) -> Result<Self, Error> {
        Self::record(link, |device, commands| {
            let all = vk::BufferCopy::default().size(BYTES as u64);
            // SAFETY: both buffers have as many bytes; commands that record.
            unsafe { device.cmd_copy_buffer(commands, from, to, &[all]) };
        })
    }

    /// As [`Link::enqueue`], by a mechanism that may be on trial.
    fn run(&self, mechanism: Mechanism, buffers: &[vk::Buffer]) -> Result<()> {
        let stream = self.link.bridge().main_stream();
        // SAFETY: recorded above; this value keeps them until the queue is idle, and the callers
        // their buffers. The link is not yet anyone else's.
        unsafe { self.link.turns().take(mechanism, stream, &[self.raw], buffers, LIMIT) }
    }
}

impl Drop for Commands<'_> {
    fn drop(&mut self) {
        // A queue that never ends keeps its commands.
        if self.link.turns().finish(LIMIT).is_ok() {
            // SAFETY: nothing of the pool is in use.
            unsafe { self.link.vulkan().raw.destroy_command_pool(self.pool, None) };
        }
    }
}

fn agree(link: &Link, writer: &'static str, reader: &'static str, mismatches: usize) -> Result<()> {
    if mismatches == 0 {
        return Ok(());
    }
    Err(Error::Pattern {
        device: link.vulkan().identity.to_string(),
        writer,
        reader,
        mismatches,
        words: WORDS,
    }
    .into())
}

/// Where Vulkan's memory begins behind its descriptor. On hardware at the beginning. A software
/// driver may keep records of its own in front, and its descriptor is a file, where the pattern is
/// looked for (Mesa: src/util/os_memory_fd.c).
pub(super) fn displacement(link: &Link) -> Result<usize> {
    if !link.bridge().core().platform.facts().is_model {
        return Ok(0);
    }
    let memory = link.memory(BYTES, vk::BufferUsageFlags::empty())?;
    let seed = 0x7EA_5E7;
    Commands::update(link, memory.buffer, seed)?.run(Mechanism::Host, &[memory.buffer])?;
    let file = File::from(memory.export()?);
    let refused = |error: std::io::Error| {
        link.vulkan()
            .lacks(format!("exports file descriptors that are not files: {error}"))
    };
    let size = file.metadata().map_err(refused)?.len();
    let slack = size.checked_sub(memory.bytes).ok_or_else(|| {
        link.vulkan()
            .lacks("exports file descriptors that are not files of the memory's size")
    })?;
    let mut data = vec![0_u8; BYTES];
    let words: Vec<u32> = (0..WORDS).map(|place| pattern(place, seed)).collect();
    let wanted: &[u8] = bytemuck::cast_slice(&words);
    // The least alignment of memory for buffers that drivers give.
    for start in (0..=slack).step_by(16) {
        let head = 64;
        file.read_exact_at(&mut data[..head], start).map_err(refused)?;
        if data[..head] == wanted[..head] {
            file.read_exact_at(&mut data, start).map_err(refused)?;
            if data == wanted {
                return Ok(usize::try_from(start).unwrap_or(usize::MAX));
            }
        }
    }
    agree(link, "Vulkan", "the file behind its descriptor", WORDS)?;
    Ok(0)
}

/// That Vulkan, HIP and OpenCL see the same bytes, the host waiting at each step. Says whether the
/// memory is dedicated.
pub(super) fn memory(link: &Link) -> Result<bool> {
    let (core, probe) = (link.bridge().core(), link.bridge().probe());
    let _scope = core.meter.scope(Category::Control);
    let none = vk::BufferUsageFlags::empty();
    let mut first: Buffer<u32> = link.alloc(WORDS, none)?;
    let mut second: Buffer<u32> = link.alloc(WORDS, none)?;
    let (a, b) = (first.raw(), second.raw());
    let write = |seed| Commands::update(link, a, seed)?.run(Mechanism::Host, &[a]);
    let copy = || Commands::copy(link, a, b)?.run(Mechanism::Host, &[a, b]);
    let stream = link.bridge().main_stream();

    // For HIP's sake no less than for OpenCL's: a guard brings the memory to the side that uses it.
    drop(first.hip_mut(stream)?);
    write(0x0ACE_0001)?;
    agree(
        link,
        "Vulkan",
        "HIP",
        probe.hip_check(core, &first, 0x0ACE_0001)? as usize,
    )?;
    probe.hip_fill(core, first.shared_mut(), 0x0ACE_0002)?;
    drop(second.hip_mut(stream)?);
    copy()?;
    agree(
        link,
        "HIP",
        "Vulkan",
        probe.hip_check(core, &second, 0x0ACE_0002)? as usize,
    )?;

    drop(first.hip_mut(stream)?);
    write(0x0ACE_0003)?;
    agree(
        link,
        "Vulkan",
        "OpenCL",
        probe.cl_check(core, &first, 0x0ACE_0003)? as usize,
    )?;
    probe.cl_fill(core, first.shared_mut(), 0x0ACE_0004)?;
    drop((first.hip_mut(stream)?, second.hip_mut(stream)?));
    copy()?;
    agree(
        link,
        "OpenCL",
        "Vulkan",
        probe.hip_check(core, &second, 0x0ACE_0004)? as usize,
    )?;
    Ok(first.is_dedicated())
}

/// That semaphores keep HIP's kernels and Vulkan's copies in order, without a host wait in between.
pub(super) fn semaphores(link: &Link) -> Result<()> {
    let (core, probe) = (link.bridge().core(), link.bridge().probe());
    let _scope = core.meter.scope(Category::Control);
    let none = vk::BufferUsageFlags::empty();
    let mut first: Buffer<u32> = link.alloc(WORDS, none)?;
    let mut second: Buffer<u32> = link.alloc(WORDS, none)?;
    let (a, b) = (first.raw(), second.raw());
    let copy = Commands::copy(link, a, b)?;
    let stream = link.bridge().main_stream();
    for seed in [0x0BEE_0001, 0x0BEE_0002, 0x0BEE_0003] {
        probe.hip_fill(core, first.shared_mut(), seed)?;
        drop(second.hip_mut(stream)?);
        copy.run(Mechanism::Semaphores, &[a, b])?;
        // A semaphore that never comes must not hang the caller: Vulkan's fence has a limit, and
        // HIP's wait comes after it.
        link.turns().finish(LIMIT)?;
        agree(link, "HIP", "Vulkan", probe.hip_check(core, &second, seed)? as usize)?;
    }
    Ok(())
}
