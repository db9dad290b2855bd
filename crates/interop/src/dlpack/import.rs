use super::abi::sealed::Deleter;
use super::abi::{Device, Form, Tensor};
use super::{Element, Layout, device_id, device_type, refused};
use crate::uses::Access;
use crate::{Bridge, Error, Residency, Result, Shared};
use std::fmt;

/// A tensor of another library as a shared buffer.
#[derive(Debug)]
#[non_exhaustive]
pub struct Taken<T: Element> {
    /// From the tensor's first element to its last. Dropping it calls the deleter, after all work on
    /// it has ended.
    pub shared: Shared<T>,
    /// Where the elements lie in it; the offset is 0.
    pub layout: Layout,
}

/// Calls the deleter when the buffer is gone.
struct Owner<F: Form> {
    tensor: *mut F,
    deleter: Option<Deleter<F>>,
}

// SAFETY: nothing is done with the tensor but calling its deleter, once, which any thread may.
unsafe impl<F: Form> Send for Owner<F> {}
// SAFETY: a shared reference to it gives access to nothing.
unsafe impl<F: Form> Sync for Owner<F> {}

impl<F: Form> Drop for Owner<F> {
    fn drop(&mut self) {
        if let Some(delete) = self.deleter {
            // SAFETY: the caller of `from_dlpack` gave the tensor away, and this is the one call.
            unsafe { delete(self.tensor) };
        }
    }
}

impl<F: Form> fmt::Debug for Owner<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Owner").field(&self.tensor).finish()
    }
}

/// Tensors of other libraries, see [`dlpack`](crate::dlpack).
impl Bridge {
    /// Takes a tensor in device memory that HIP allocated ([`Route::HipPointer`](crate::Route)), of
    /// either form. `ready` is the stream that the producer has made the data ready on: the one that
    /// was named to it. A tensor that is marked as read-only gives a buffer that refuses to be
    /// written.
    ///
    /// # Errors
    /// Another element type, device or major version, strides that go backwards, no elements, memory
    /// that HIP does not know, or a platform where OpenCL takes no pointers of HIP's (nvidia). The
    /// tensor is then still the caller's, who calls its deleter, as the specification wants it for an
    /// unknown version.
    ///
    /// # Safety
    /// * `tensor` is a living tensor that the caller owns. On success it is given away: its deleter is
    ///   called when the buffer is dropped, on whichever thread that is.
    /// * As [`adopt_hip`](Self::adopt_hip) about other uses of the memory. The producer's own work on it
    ///   comes before what `ready` has.
    pub unsafe fn from_dlpack<T: Element, F: Form + 'static>(
        &self,
        tensor: *mut F,
        ready: &hip::Stream,
    ) -> Result<Taken<T>> {
        if tensor.is_null() {
            return Err(refused("the tensor is a null pointer"));
        }
        // SAFETY: the caller's promise.
        let described = unsafe { F::tensor(tensor) }.map_err(|major| {
            refused(format!(
                "the tensor is of major version {major}, of which nothing is known; ask the producer for version 1"
            ))
        })?;
        let core = self.core();
        let kind = device_type(core, Residency::Vram)?;
        let here = Device {
            device_type: kind,
            device_id: device_id(core, kind),
        };
        // SAFETY: the caller's promise.
        let layout = unsafe { check::<T>(described, here) }?;
        let len = layout.reach()?;
        let offset = usize::try_from(described.byte_offset)
            .map_err(|_| refused("the byte offset overflows"))?;
        let first = described.data.wrapping_byte_add(offset).cast::<T>();
        // SAFETY: the caller's promise. The owner is without a deleter until nothing can fail any more.
        let (deleter, read_only) = unsafe { ((*tensor).deleter(), (*tensor).is_read_only()) };
        let pending = std::sync::Arc::new(parking_lot::Mutex::new(Owner {
            tensor,
            deleter: None,
        }));
        // SAFETY: the memory lives until the deleter is called, which the owner does.
        let mut shared = unsafe { self.adopt_hip(first, len, std::sync::Arc::clone(&pending)) }?;
        let bytes = 0..len * size_of::<T>();
        shared.place().grant_hip(ready, Access::Write, &bytes)??;
        if read_only {
            shared.forbid_writing();
        }
        pending.lock().deleter = deleter;
        Ok(Taken { shared, layout })
    }
}

/// The tensor's layout, if it is one of these elements on this device.
///
/// # Safety
/// The tensor is alive, with `ndim` entries of shape and, if there are any, strides.
unsafe fn check<T: Element>(tensor: &Tensor, here: Device) -> Result<Layout, Error> {
    if tensor.dtype != T::DATA_TYPE {
        return Err(refused(format!(
            "the elements are {:?}, not {:?}; take them as what they are",
            tensor.dtype,
            T::DATA_TYPE
        )));
    }
    if tensor.device != here {
        return Err(refused(format!(
            "the tensor is on {:?}, not on {here:?}; have its library move it there",
            tensor.device
        )));
    }
    let dimensions = usize::try_from(tensor.ndim)
        .map_err(|_| refused(format!("the tensor has {} dimensions", tensor.ndim)))?;
    if dimensions > 0 && tensor.shape.is_null() {
        return Err(refused("the tensor has no shape"));
    }
    let entry = |from: *const i64, dimension: usize| {
        // SAFETY: the caller's promise; it was seen not to be null.
        let value = unsafe { *from.add(dimension) };
        usize::try_from(value).map_err(|_| {
            refused(format!(
                "dimension {dimension} has a size or stride of {value}; have its library make it contiguous"
            ))
        })
    };
    let all = |from: *const i64| -> Result<Vec<usize>> {
        (0..dimensions)
            .map(|dimension| entry(from, dimension))
            .collect()
    };
    let shape = all(tensor.shape)?;
    let strides = if tensor.strides.is_null() {
        // Before version 1.2: row-major without gaps.
        let mut strides = vec![1_usize; dimensions];
        for dimension in (1..dimensions).rev() {
            let more = strides[dimension].checked_mul(shape[dimension]);
            strides[dimension - 1] = more.ok_or_else(|| refused("the shape overflows"))?;
        }
        strides
    } else {
        all(tensor.strides)?
    };
    let layout = Layout {
        shape,
        strides,
        offset: 0,
    };
    match layout.is_empty() || tensor.data.is_null() {
        true => Err(Error::Empty),
        false => Ok(layout),
    }
}
