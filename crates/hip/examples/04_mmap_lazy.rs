//! A file of 256 MB that is mapped, and never read as a whole: the device reads chosen bytes of it.
//!
//! Three ways, each with a cold and a warm page cache, as far as the machine has them:
//! the mapping's own pointer where the device can fault (`PageableMemoryAccess`), the mapping page-locked
//! (`hipHostRegister`), and, where pages of a file cannot be page-locked, `pread` into a ring of page-locked buffers.
//!
//! `cargo run -p hipcl-hip --example 04_mmap_lazy`

mod common;

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use hip::param::{In, InOut};
use hip::{Device, DeviceBuffer, DeviceSlice, Kernel, LaunchConfig, Registered, Stream};
use rustix::fs::{Advice, fadvise};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

const BYTES: usize = 256 << 20;
const SAMPLES: usize = 4096;
const CHUNK: usize = 8 << 20;
const RING: usize = 3;

type Sample = Kernel<(InOut<u8>, In<u8>, In<u64>, u32)>;

/// What the file holds at `position`.
fn expected(position: u64) -> u8 {
    (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Where to look: all over the file, sorted.
fn positions() -> Vec<u64> {
    let mut at: Vec<u64> = (0..SAMPLES as u64)
        .map(|i| i.wrapping_mul(0xd134_2543_de82_ef95) % BYTES as u64)
        .collect();
    at.sort_unstable();
    at
}

/// A file of our own, mapped as it is. A private mapping would be copied whole when its pages are locked for writing.
struct Mapping {
    address: *mut u8,
}

impl Mapping {
    fn new(file: &File) -> Result<Self, Box<dyn Error>> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place of the system's choice.
        let address = unsafe { mmap(std::ptr::null_mut(), BYTES, protection, MapFlags::SHARED, file, 0) }?;
        Ok(Self {
            address: address.cast(),
        })
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: mapped for as long as `self`; nothing writes or cuts the temporary file meanwhile.
        unsafe { std::slice::from_raw_parts_mut(self.address, BYTES) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped with this size, and no longer borrowed.
        if let Err(error) = unsafe { munmap(self.address.cast(), BYTES) } {
            eprintln!("munmap failed: {error}");
        }
    }
}

struct Task {
    device: Device,
    stream: Stream,
    sample: Sample,
    at: Vec<u64>,
}

impl Task {
    /// Queues the kernel for `at`, which index into `bytes`.
    fn look(&self, out: &mut DeviceBuffer<u8>, bytes: DeviceSlice<'_, u8>, at: &[u64]) -> hip::Result<Vec<u8>> {
        let at = self.device.alloc_from(&self.stream, at)?;
        let count = at.len();
        let config = LaunchConfig::linear(count, 256)?;
        let args = (out.on_mut(&self.stream)?, bytes, at.on(&self.stream)?, count as u32);
        // SAFETY: every position lies in `bytes`, and `out` has room for as many.
        unsafe { self.sample.launch(&self.stream, config, args)? };
        let mut seen = vec![0; count];
        out.on(&self.stream)?.slice(..count)?.copy_to_slice(&mut seen)?;
        Ok(seen)
    }

    fn check(&self, way: &str, cache: &str, seen: &[u8], time: Duration) -> Result<(), Box<dyn Error>> {
        let mut both = self.at.iter().zip(seen);
        if let Some((at, seen)) = both.find(|(at, seen)| expected(**at) != **seen) {
            return Err(format!("{way}: byte {at} is {seen}, not {}", expected(*at)).into());
        }
        if seen.len() != self.at.len() {
            return Err(format!("{way}: {} of {} bytes", seen.len(), self.at.len()).into());
        }
        println!("{way}, page cache {cache}: {} bytes are right, in {time:?}", seen.len());
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let wanted = common::check_xnack();
    let device = common::device()?;
    common::explain_xnack(&device, wanted)?;
    let stream = device.stream()?;
    let module = hip::rtc::Program::new(include_str!("../kernels/sample.hip"))
        .name("sample.hip")
        .compile(&device)?;
    // SAFETY: these are the kernel's parameters.
    let sample = unsafe { module.function("sample")?.typed() };
    let task = Task {
        device,
        stream,
        sample,
        at: positions(),
    };
    let file = write_file()?;
    let ways: [(&str, Way); 3] = [
        ("mapped pointer", raw_pointer),
        ("page-locked mapping", registered),
        ("pread into a page-locked ring", ring),
    ];
    for (way, run) in ways {
        for cache in ["cold", "warm"] {
            if cache == "cold" {
                file.sync_all()?;
                // A hint; the system may keep what it likes.
                fadvise(&file, 0, None, Advice::DontNeed)?;
            }
            let begin = Instant::now();
            match run(&task, &file)? {
                Ok(seen) => task.check(way, cache, &seen, begin.elapsed())?,
                Err(reason) => {
                    println!("{way}: not here, {reason}");
                    break;
                }
            }
        }
    }
    Ok(())
}

type Way = fn(&Task, &File) -> Outcome;

/// The bytes, or why this way does not exist here.
type Outcome = Result<Result<Vec<u8>, String>, Box<dyn Error>>;

/// A temporary file that has no name any more.
fn write_file() -> Result<File, Box<dyn Error>> {
    let file = tempfile::tempfile()?;
    let mut writer = BufWriter::with_capacity(1 << 20, &file);
    for position in 0..BYTES as u64 {
        writer.write_all(&[expected(position)])?;
    }
    writer.flush()?;
    drop(writer);
    Ok(file)
}

fn raw_pointer(task: &Task, file: &File) -> Outcome {
    let attribute = hip_sys::hipDeviceAttribute_t::hipDeviceAttributePageableMemoryAccess;
    if task.device.attribute(attribute)? == 0 {
        return Ok(Err("PageableMemoryAccess is 0: the device cannot fault".to_owned()));
    }
    let mapping = Mapping::new(file)?;
    let mut out = task.device.alloc::<u8>(SAMPLES)?;
    // SAFETY: the device reads pageable memory; mapped until after `look`, which waits, and never written.
    let bytes = unsafe { DeviceSlice::from_raw_parts(mapping.address, BYTES, &task.stream) };
    Ok(Ok(task.look(&mut out, bytes, &task.at)?))
}

fn registered(task: &Task, file: &File) -> Outcome {
    let mut mapping = Mapping::new(file)?;
    // SAFETY: dropped before the mapping, at the end of this function.
    let registered = match unsafe { Registered::new(&task.device, mapping.bytes()) } {
        Ok(registered) => registered,
        Err(error) => {
            return Ok(Err(format!(
                "pages of a file cannot be page-locked ({error}); the ring below is the way"
            )));
        }
    };
    let mut out = task.device.alloc::<u8>(SAMPLES)?;
    let bytes = registered.on(&task.stream)?;
    Ok(Ok(task.look(&mut out, bytes, &task.at)?))
}

/// Reads only the chunks that somebody looks into.
fn ring(task: &Task, file: &File) -> Outcome {
    let mut ring = (0..RING)
        .map(|_| task.device.alloc_pinned::<u8>(CHUNK))
        .collect::<hip::Result<Vec<_>>>()?;
    let mut out = task.device.alloc::<u8>(SAMPLES)?;
    let mut seen = Vec::with_capacity(SAMPLES);
    let mut rest = &task.at[..];
    for turn in 0.. {
        let Some(first) = rest.first() else { break };
        let start = first / CHUNK as u64 * CHUNK as u64;
        let inside = rest.partition_point(|at| *at < start + CHUNK as u64);
        let local: Vec<u64> = rest[..inside].iter().map(|at| at - start).collect();
        // Waits for the device to be done with what this buffer held before.
        let buffer = &mut ring[turn % RING];
        file.read_exact_at(buffer.host_mut()?, start)?;
        seen.extend(task.look(&mut out, buffer.on(&task.stream)?, &local)?);
        rest = &rest[inside..];
    }
    Ok(Ok(seen))
}
