//! Allocation in stream order.

use std::ptr::{self, NonNull};

use bytemuck::Pod;

use super::{Backing, DeviceBuffer, MemPool};
use crate::call::call;
use crate::layout::{aligned, byte_size, not_null};
use crate::stream::Uses;
use crate::{Result, Stream};

impl Stream {
    /// Memory for `len` elements with unspecified contents, from the device's pool, in order of this stream. The host
    /// does not wait, neither here nor when it is dropped. No call is made for 0 bytes.
    ///
    /// # Errors
    ///
    /// Out of memory, or the device has no pools.
    #[doc(alias("hipMallocAsync", "hipFreeAsync"))]
    pub fn alloc<T: Pod>(&self, len: usize) -> Result<DeviceBuffer<T>> {
        alloc(self, len, None)
    }
}

impl MemPool {
    /// Memory for `len` elements with unspecified contents, in order of `stream`. The host does not wait, neither here
    /// nor when it is dropped. No call is made for 0 bytes.
    ///
    /// # Errors
    ///
    /// Out of memory, or a stream of another device.
    #[doc(alias = "hipMallocFromPoolAsync")]
    pub fn alloc<T: Pod>(&self, stream: &Stream, len: usize) -> Result<DeviceBuffer<T>> {
        self.device().check_same(stream.device(), "MemPool::alloc", "stream")?;
        alloc(stream, len, Some(self))
    }
}

fn alloc<T: Pod>(home: &Stream, len: usize, pool: Option<&MemPool>) -> Result<DeviceBuffer<T>> {
    let bytes = byte_size::<T>(len)?;
    let device = home.device();
    if bytes == 0 {
        // SAFETY: nothing has to be behind a dangling pointer for 0 bytes, and nothing is given back.
        return Ok(unsafe {
            DeviceBuffer::from_backing(device, NonNull::dangling(), len, Uses::default(), Backing::Device)
        });
    }
    home.not_capturing("allocation in stream order")?;
    device.make_current()?;
    let mut raw = ptr::null_mut();
    // SAFETY: writes one pointer to the address given; stream and pool are alive and of one device.
    unsafe {
        match pool {
            None => call!(
                device.runtime(),
                hipMallocAsync(&mut raw, bytes, home.raw()),
                "hipMallocAsync({bytes} bytes)"
            )?,
            Some(pool) => call!(
                device.runtime(),
                hipMallocFromPoolAsync(&mut raw, bytes, pool.raw(), home.raw()),
                "hipMallocFromPoolAsync({bytes} bytes)"
            )?,
        }
    }
    let pointer = not_null(raw, "hipMallocAsync")?;
    let backing = Backing::Ordered {
        home: home.clone(),
        pool: pool.cloned(),
    };
    // SAFETY: just allocated with this size; there once `home` gets here, which the uses say; any bytes are plain data.
    let buffer = unsafe { DeviceBuffer::from_backing(device, pointer, len, Uses::since(home), backing) };
    aligned(pointer, "hipMallocAsync")?;
    Ok(buffer)
}
