use std::sync::Arc;

use hip::{DeviceBuffer, DeviceSlice, Stream};
use parking_lot::Mutex;

use crate::Result;

/// Integers in device memory that a solver call writes: pivots, or one result for each matrix. They return to their
/// pool.
pub(crate) struct Integers {
    /// `None` while they return. Shared with the graphs whose calls read them.
    values: Option<Arc<DeviceBuffer<i32>>>,
    len: usize,
    stream: Stream,
    pool: InfoPool,
}

/// Integers that no call uses any more, for the next one: allocating device memory is slow, and freeing it waits for
/// the device.
///
/// Reuse is safe while the last call still runs, because the buffers order their own uses.
#[derive(Clone, Default)]
pub(crate) struct InfoPool {
    free: Arc<Mutex<Vec<Arc<DeviceBuffer<i32>>>>>,
}

impl InfoPool {
    /// More are freed: a handle that once had many calls in flight should not keep their memory for ever.
    const MOST: usize = 16;

    /// `len` integers, more than 0, for calls on `stream`.
    pub(crate) fn lease(&self, stream: &Stream, len: usize) -> Result<Integers> {
        let mut free = self.free.lock();
        // The smallest that fits: one result does not take the room of many pivots.
        let fitting = (0..free.len())
            .filter(|&index| free[index].len() >= len)
            .min_by_key(|&index| free[index].len());
        let reused = fitting.map(|index| free.swap_remove(index));
        drop(free);
        let values = match reused {
            Some(values) => values,
            None => Arc::new(stream.device().alloc(len)?),
        };
        Ok(Integers {
            values: Some(values),
            len,
            stream: stream.clone(),
            pool: self.clone(),
        })
    }

    fn put_back(&self, values: Arc<DeviceBuffer<i32>>) {
        let mut free = self.free.lock();
        if free.len() < Self::MOST {
            free.push(values);
        }
        // Otherwise it is dropped, which waits: not under the lock.
    }
}

impl Integers {
    /// To be read on the stream they were leased for. A graph that records the read keeps them.
    pub(crate) fn slice(&self) -> Result<DeviceSlice<'_, i32>> {
        let values = self.values.as_ref().expect("only `drop` takes them");
        self.stream.keep_if_recording(values);
        Ok(values.on(&self.stream)?.slice(..self.len)?)
    }

    /// Their address, for a call on the stream that writes them.
    pub(crate) fn address_mut(&mut self) -> Result<*mut i32> {
        let stream = self.stream.clone();
        Ok(self.values_mut().on_mut(&stream)?.as_mut_ptr())
    }

    /// Waits for the stream and copies them.
    pub(crate) fn to_vec(&self) -> Result<Vec<i32>> {
        let mut found = vec![0; self.len];
        let values = self.slice()?;
        hip::control(|| values.copy_to_slice(&mut found))?;
        Ok(found)
    }

    /// Waits for the stream and replaces them.
    pub(crate) fn copy_from_slice(&mut self, source: &[i32]) -> Result<()> {
        let (len, stream) = (self.len, self.stream.clone());
        let mut slice = self.values_mut().on_mut(&stream)?;
        let mut slice = slice.slice_mut(..len)?;
        Ok(hip::control(|| slice.copy_from_slice(source))?)
    }

    fn values_mut(&mut self) -> &mut DeviceBuffer<i32> {
        let values = self.values.as_mut().and_then(Arc::get_mut);
        values.expect("they are written before a graph can read them, and only `drop` takes them")
    }
}

impl Drop for Integers {
    fn drop(&mut self) {
        // The next call would write what a graph still reads.
        if let Some(mut values) = self.values.take()
            && Arc::get_mut(&mut values).is_some()
        {
            self.pool.put_back(values);
        }
    }
}
