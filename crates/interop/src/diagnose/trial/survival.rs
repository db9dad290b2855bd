use std::sync::Arc;

use crate::core::Core;
use crate::handoff;
use crate::{Result, Route, Shared};

/// More streams than a device has hardware queues, so some are made after the export.
const STREAMS: usize = 9;
const BYTES: usize = 1 << 20;
/// What the streams write of it: an emulated device writes a byte in a microsecond.
const WRITTEN: usize = 4 << 10;

/// Does what programs do after an export: allocates, makes streams and works on them, while the memory is exported and
/// after.
pub(super) fn exercise(core: &Arc<Core>) -> Result<()> {
    let exported = Shared::<u8>::on_route(core, &handoff::by_host(), Route::DmaBuf, BYTES)?;
    work(core)?;
    drop(exported);
    work(core)
}

fn work(core: &Core) -> Result<()> {
    let streams: Vec<hip::Stream> = (0..STREAMS)
        .map(|_| core.hip_device.stream())
        .collect::<hip::Result<_>>()?;
    for stream in &streams {
        let mut memory = core.hip_device.alloc::<u8>(BYTES)?;
        memory.on_mut(stream)?.slice_mut(..WRITTEN)?.fill_zero()?;
        stream.synchronize()?;
    }
    Ok(())
}
