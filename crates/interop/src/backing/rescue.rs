//! The bytes of memory that has no transfers of its own, or none that work: a kernel copies them to or
//! from memory that has.

use clmgr::{NdRange, RegularBuffer};

use super::Backing;
use crate::Result;
use crate::core::Core;
use crate::values::{Access, Side};

/// The API that did not fail.
pub(crate) fn other(side: Side) -> Side {
    match side {
        Side::Cl => Side::Hip,
        Side::Hip => Side::Cl,
    }
}

/// Reads all bytes by this API's kernel; complete when it returns. Its user on the bridge's own queue
/// or stream was admitted as a reader.
pub(crate) fn read_by_kernel(core: &Core, backing: &dyn Backing, side: Side, data: &mut [u8]) -> Result<()> {
    match side {
        Side::Cl => by_opencl(core, backing, data),
        Side::Hip => read_by_hip_kernel(core, backing, 0, data),
    }
}

fn by_opencl(core: &Core, backing: &dyn Backing, data: &mut [u8]) -> Result<()> {
    let queue = &core.queue;
    backing.bring_to_cl(core, queue, Access::Read, &(0..data.len()))?;
    let program = core.programs.get(include_str!("../../kernels/copy.cl"), "")?;
    let copy = program.kernel("copy_bytes")?;
    let to = RegularBuffer::<u8>::new(&core.context, data.len())?;
    let args = [backing.cl_arg(), to.arg()];
    // SAFETY: `copy_bytes` takes two buffers, and reads and writes one byte for each work-item; both
    // have as many.
    unsafe { copy.launch(queue, NdRange::d1(data.len()), &args) }?;
    Ok(to.read(queue, data)?)
}

/// Reads bytes from `begin` on by a HIP kernel; complete when it returns. Its user on the bridge's own stream was admitted
/// as a reader.
pub(super) fn read_by_hip_kernel(core: &Core, backing: &dyn Backing, begin: usize, data: &mut [u8]) -> Result<()> {
    core.check_stream_runs()?;
    let stream = &core.stream;
    backing.bring_to_hip(core, Access::Read, &(begin..begin + data.len()))?;
    let mut to = core.hip_device.alloc::<u8>(data.len())?;
    let place = backing.hip_ptr().wrapping_add(begin);
    // SAFETY: the backing has as many bytes there, which the stream was admitted to read, and lives until
    // the wait below.
    let from = unsafe { hip::DeviceSlice::<u8>::from_raw_parts(place, data.len(), stream) };
    copy_by_hip(core, from, to.on_mut(stream)?)?;
    Ok(to.copy_to_slice(stream, data)?)
}

/// Writes bytes from `begin` on by a HIP kernel; complete when it returns. Its user on the bridge's own stream
/// was admitted as the only one.
pub(super) fn write_by_kernel(core: &Core, backing: &dyn Backing, begin: usize, data: &[u8]) -> Result<()> {
    core.check_stream_runs()?;
    let stream = &core.stream;
    let from = core.hip_device.alloc_from(stream, data)?;
    let place = backing.hip_ptr().wrapping_add(begin);
    // SAFETY: the backing has as many bytes there, which the stream was admitted to write, and lives until
    // the wait below.
    let to = unsafe { hip::DeviceSliceMut::<u8>::from_raw_parts(place, data.len(), stream) };
    copy_by_hip(core, from.on(stream)?, to)?;
    Ok(stream.synchronize()?)
}

/// Enqueues a copy between memories of one size.
fn copy_by_hip(core: &Core, from: hip::DeviceSlice<'_, u8>, to: hip::DeviceSliceMut<'_, u8>) -> Result<()> {
    let copy = hip::rtc::Program::new(include_str!("../../kernels/copy.hip"))
        .name("copy.hip")
        .compile(&core.hip_device)?
        .function("copy_bytes")?;
    let config = hip::LaunchConfig::linear(from.len(), 256)?;
    let len = from.len() as u64;
    // SAFETY: `copy_bytes` takes two pointers and a length, below which it stays; both have as many
    // bytes.
    unsafe { copy.launch(&core.stream, config, &[&from, &to, &len]) }?;
    Ok(())
}
