//! Copies through pinned host memory.

use std::sync::Arc;

use bytemuck::Pod;

use super::copy::BridgeCopy;
use crate::buffer::Object;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::handle::Handle;
use crate::queue::Queue;

/// One piece is read while the other is written.
pub(super) const PIECES: usize = 2;

/// Pinned memory of the source's context, mapped for as long as it lives.
pub(super) struct Staging {
    pieces: [Piece; PIECES],
    pub bytes: usize,
}

struct Piece {
    start: Handle,
    /// Its drop ends the map and releases the memory.
    _memory: Object<u8>,
}

impl Staging {
    pub fn new(queue: &Queue, bytes: usize) -> Result<Self> {
        let piece = || -> Result<Piece> {
            let flags = opencl_sys::CL_MEM_READ_WRITE | opencl_sys::CL_MEM_ALLOC_HOST_PTR;
            // SAFETY: there is no host memory.
            let memory = unsafe { Object::create(queue.context(), flags, bytes, std::ptr::null_mut()) }?;
            let flags = opencl_sys::CL_MAP_READ | opencl_sys::CL_MAP_WRITE;
            let start = memory.map_raw(queue, flags, true)?;
            Ok(Piece { start, _memory: memory })
        };
        Ok(Self {
            pieces: [piece()?, piece()?],
            bytes,
        })
    }

    /// The number of elements that a piece holds.
    fn step<T>(&self) -> Result<usize> {
        match self.bytes / size_of::<T>() {
            0 => Err(Error::TooLarge {
                what: "the element size of a bridge",
                got: format!("{} bytes", size_of::<T>()),
                limit: self.bytes as u64,
            }),
            step => Ok(step),
        }
    }

    /// Copies `count` elements, piece by piece, and waits: this thread hands each piece on, which
    /// takes no callback. The caller enqueues no other copy of this memory meanwhile.
    pub fn copy<T: Pod>(
        self: &Arc<Self>,
        (from, source, source_at): (&Queue, &Object<T>, usize),
        (to, target, target_at): (&Queue, &mut Object<T>, usize),
        count: usize,
    ) -> Result<()> {
        let step = self.step::<T>()?;
        let len = |done: usize| step.min(count - done);
        let place = |done: usize| self.pieces[(done / step) % PIECES].start.0;
        // An early return waits for what is enqueued; the end of a copy keeps what has not ended.
        let mut copy = BridgeCopy::staged(self.clone());
        let read = |done: usize, copy: &mut BridgeCopy| -> Result<Event> {
            // SAFETY: the piece holds `len` elements and is kept until every event has ended; the
            // write that last used it has ended.
            let read = unsafe { source.read_into(from, source_at + done, len(done), place(done)) }?;
            copy.push(read.clone());
            from.flush()?;
            Ok(read)
        };
        // An asynchronous copy may still write from the pieces.
        to.record()?.wait()?;
        let mut under_way = if count > 0 { Some(read(0, &mut copy)?) } else { None };
        let mut written: Option<Event> = None;
        let mut done = 0;
        while let Some(arrived) = under_way.take() {
            arrived.wait()?;
            // SAFETY: as for the read, which has ended.
            let write = unsafe { target.write_from(to, target_at + done, len(done), place(done)) }?;
            copy.push(write.clone());
            to.flush()?;
            let next = done + len(done);
            // The other piece is free when its write has ended.
            if let Some(earlier) = written.replace(write) {
                earlier.wait()?;
            }
            if next < count {
                under_way = Some(read(next, &mut copy)?);
                done = next;
            }
        }
        copy.wait()
    }

    /// Enqueues the copy of `count` elements, piece by piece: callbacks hand the pieces on. The
    /// caller enqueues no other copy of this memory meanwhile.
    pub fn copy_async<T: Pod>(
        self: &Arc<Self>,
        (from, source, source_at): (&Queue, &Object<T>, usize),
        (to, target, target_at): (&Queue, &mut Object<T>, usize),
        count: usize,
    ) -> Result<BridgeCopy> {
        let step = self.step::<T>()?;
        // The staging memory may still be written from by an earlier copy.
        from.wait_for_queue(to)?;
        let mut copy = BridgeCopy::staged(self.clone());
        let mut written: [Option<Event>; PIECES] = [const { None }; PIECES];
        let mut done = 0;
        while done < count {
            let len = step.min(count - done);
            let slot = (done / step) % PIECES;
            let place = self.pieces[slot].start.0;
            if let Some(earlier) = written[slot].take() {
                from.wait_for_any(&earlier)?;
            }
            // SAFETY: the piece holds `len` elements and is kept until every event has ended; the
            // write that last used it has ended before.
            let read = unsafe { source.read_into(from, source_at + done, len, place) }?;
            copy.push(read.clone());
            to.wait_for_any(&read)?;
            // SAFETY: as for the read, which ends before.
            let write = unsafe { target.write_from(to, target_at + done, len, place) }?;
            copy.push(write.clone());
            written[slot] = Some(write);
            done += len;
        }
        from.flush()?;
        to.flush()?;
        Ok(copy)
    }
}
