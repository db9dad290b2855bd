use std::fmt;

use super::abi::sealed::Deleter;
use super::abi::{Device, DeviceType, Form, Tensor};
use super::{Element, Layout, device_id, device_type, refused};
use crate::values::Access;
use crate::{Bridge, Category, Error, Residency, Result, Route, Shared};

/// A tensor of another library as a shared buffer.
#[derive(Debug)]
#[non_exhaustive]
pub struct Taken<T: Element> {
    /// From the tensor's first element to its last. Dropping it calls the deleter, after all work on
    /// it has ended.
    pub shared: Shared<T>,
    /// Where the elements lie in it; the offset is 0.
    pub layout: Layout,
    /// Whether the elements were copied to the bridge's own memory. Writes to it do not reach the tensor, whose deleter
    /// was called already.
    pub is_copy: bool,
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

impl<F: Form> Owner<F> {
    /// # Safety
    /// The tensor is alive and given away.
    unsafe fn of(tensor: *mut F) -> Self {
        Self {
            tensor,
            // SAFETY: the caller's promise.
            deleter: unsafe { (*tensor).deleter() },
        }
    }
}

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
    /// Takes a tensor of either form. `ready` is the stream on which the producer has made the data ready: the one
    /// named to it.
    ///
    /// Device memory is taken in place ([`Route::HipPointer`]) as by [`adopt_hip`](Self::adopt_hip); a read-only tensor
    /// then yields a buffer that refuses writes. Host memory (`kDLCPU`, `kDLROCMHost`, `kDLCUDAHost`), and device
    /// memory that OpenCL cannot use (nvidia), is copied to the bridge's own memory if the [`Policy`](crate::Policy)
    /// permits copies, that is, if [`permitted`](Self::permitted) has [`Route::Staging`]. The copy counts as one of the
    /// data set, waits for `ready`, and is a buffer like any other ([`Taken::is_copy`]).
    ///
    /// # Errors
    /// Another element type, device or major version, strides that go backwards, no elements, memory
    /// that no runtime knows, or a copy that is not permitted. The caller then still owns the tensor and calls its
    /// deleter, as the specification requires for an unknown version.
    ///
    /// # Safety
    /// * `tensor` is a living tensor that the caller owns. On success ownership passes on: its deleter is called when
    ///   the buffer is dropped, on whichever thread that is.
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
                "the tensor has the unknown major version {major}; have the producer export version 1"
            ))
        })?;
        let core = self.core();
        let kind = device_type(core, Residency::Vram)?;
        let here = Device {
            device_type: kind,
            device_id: device_id(core, kind),
        };
        let is_on_host = is_on_host(described.device);
        if described.device != here && !is_on_host {
            return Err(refused(format!(
                "the tensor is on {:?}, not on {here:?}; move it there with the library that produced it",
                described.device
            )));
        }
        // SAFETY: the caller's promise.
        let layout = unsafe { check::<T>(described) }?;
        let len = layout.reach()?;
        let offset = usize::try_from(described.byte_offset).map_err(|_| refused("the byte offset overflows"))?;
        let first = described.data.wrapping_byte_add(offset).cast::<T>();
        if is_on_host {
            self.check_copies("host memory")?;
            // SAFETY: the caller's promise: the elements of the layout are there.
            return unsafe { self.copied_from_host(tensor, first, layout, ready) };
        }
        // SAFETY: the caller's promise. The owner is without a deleter until nothing can fail any more.
        let (deleter, read_only) = unsafe { ((*tensor).deleter(), (*tensor).is_read_only()) };
        let pending = std::sync::Arc::new(parking_lot::Mutex::new(Owner { tensor, deleter: None }));
        // SAFETY: the memory lives until the deleter is called, which the owner does.
        let adopted = unsafe { self.adopt_hip(first, len, std::sync::Arc::clone(&pending)) };
        let mut shared = match adopted {
            // Whether the memory is HIP's is not in doubt here, but what OpenCL can do with it.
            Err(Error::Unsupported { .. }) if self.check_copies("").is_ok() => {
                // SAFETY: the caller's promise: the device memory has as many elements.
                return unsafe { self.copied_on_device(tensor, first, layout, ready) };
            }
            adopted => adopted?,
        };
        let bytes = 0..len * size_of::<T>();
        shared.allocation().grant_hip(ready, Access::Write, &bytes)??;
        if read_only {
            shared.forbid_writing();
        }
        pending.lock().deleter = deleter;
        Ok(Taken {
            shared,
            layout,
            is_copy: false,
        })
    }

    fn check_copies(&self, of: &str) -> Result<()> {
        match self.permitted().contains(&Route::Staging) {
            true => Ok(()),
            false => Err(refused(format!(
                "a tensor in {of} needs a copy, which the policy does not permit; use Policy::AllowCopy, or move it to the device with the library that produced it"
            ))),
        }
    }

    /// # Safety
    /// The elements of `layout` are in host memory from `first` on; the tensor is given away on success.
    unsafe fn copied_from_host<T: Element, F: Form>(
        &self,
        tensor: *mut F,
        first: *const T,
        layout: Layout,
        ready: &hip::Stream,
    ) -> Result<Taken<T>> {
        // Pinned memory may still be written by the device.
        ready.synchronize()?;
        let mut data = vec![T::zeroed(); layout.reach()?];
        layout.for_each(|place| {
            // SAFETY: an element of the tensor by the caller's promise, at any alignment.
            data[place] = unsafe { first.add(place).read_unaligned() };
        });
        let mut shared = self.alloc::<T>(data.len())?;
        shared.write_as(Category::DataSet, "copy of a tensor", &data)?;
        // SAFETY: given away by the caller, and nothing can fail any more.
        drop(unsafe { Owner::of(tensor) });
        Ok(Taken {
            shared,
            layout,
            is_copy: true,
        })
    }

    /// On the first permitted route whose memory HIP's own copies accept.
    fn alloc_for_hips_copies<T: Element>(&self, len: usize) -> Result<Shared<T>> {
        let mut tried = Vec::new();
        for &route in self.permitted() {
            match self.alloc_on::<T>(route, len) {
                Ok(shared) if shared.backing().is_known_to_hip() => return Ok(shared),
                Ok(_) => tried.push((route, "HIP cannot copy to its memory".to_owned())),
                Err(error) => tried.push((route, error.to_string())),
            }
        }
        Err(Error::Failed { tried })
    }

    /// # Safety
    /// As many elements as the layout reaches to are in HIP's device memory from `first` on; the tensor
    /// is given away on success.
    unsafe fn copied_on_device<T: Element, F: Form>(
        &self,
        tensor: *mut F,
        first: *const T,
        layout: Layout,
        ready: &hip::Stream,
    ) -> Result<Taken<T>> {
        let len = layout.reach()?;
        let mut shared = self.alloc_for_hips_copies::<T>(len)?;
        {
            let _scope = self.core().meter.scope(Category::DataSet);
            // SAFETY: the caller's promise.
            let from = unsafe { hip::DeviceSlice::from_hip_raw_parts(first, len, ready) };
            shared.hip_mut(ready)?.slice_mut().copy_from(from)?;
        }
        // The deleter may free what is copied.
        ready.synchronize()?;
        // SAFETY: given away by the caller, and nothing can fail any more.
        drop(unsafe { Owner::of(tensor) });
        Ok(Taken {
            shared,
            layout,
            is_copy: true,
        })
    }
}

fn is_on_host(device: Device) -> bool {
    [DeviceType::CPU, DeviceType::CUDA_HOST, DeviceType::ROCM_HOST].contains(&device.device_type)
}

/// The tensor's layout, if it is one of these elements.
///
/// # Safety
/// The tensor is alive, with `ndim` entries of shape and, if there are any, strides.
unsafe fn check<T: Element>(tensor: &Tensor) -> Result<Layout, Error> {
    if tensor.dtype != T::DATA_TYPE {
        return Err(refused(format!(
            "the elements are {:?}, not {:?}; import them as their own type",
            tensor.dtype,
            T::DATA_TYPE
        )));
    }
    let dimensions =
        usize::try_from(tensor.ndim).map_err(|_| refused(format!("the tensor has {} dimensions", tensor.ndim)))?;
    if dimensions > 0 && tensor.shape.is_null() {
        return Err(refused("the tensor has no shape"));
    }
    let entry = |from: *const i64, dimension: usize| {
        // SAFETY: the caller's promise; it was seen not to be null.
        let value = unsafe { *from.add(dimension) };
        usize::try_from(value).map_err(|_| {
            refused(format!(
                "dimension {dimension} has a size or stride of {value}; make the tensor contiguous with the library that produced it"
            ))
        })
    };
    let all =
        |from: *const i64| -> Result<Vec<usize>> { (0..dimensions).map(|dimension| entry(from, dimension)).collect() };
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
