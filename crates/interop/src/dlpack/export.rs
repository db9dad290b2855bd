use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::abi::{Device, Form, Tensor};
use super::{Element, Layout, device_id, device_type, refused};
use crate::values::Access;
use crate::{Error, Result, Shared};

/// A tensor that no consumer has taken yet. Dropping it ends the loan.
pub struct Lent<F: Form>(NonNull<F>);

// SAFETY: the one owner of a buffer that may be used and dropped on any thread; its deleter may be
// called there.
unsafe impl<F: Form> Send for Lent<F> {}

impl<F: Form> Lent<F> {
    /// The tensor to read.
    #[must_use]
    pub fn as_ptr(&self) -> *const F {
        self.0.as_ptr()
    }

    /// The tensor for the consumer, who calls its deleter exactly once, from any thread.
    #[must_use = "the buffer comes back only when the deleter is called"]
    pub fn into_raw(self) -> *mut F {
        std::mem::ManuallyDrop::new(self).0.as_ptr()
    }
}

impl<F: Form> Drop for Lent<F> {
    fn drop(&mut self) {
        // SAFETY: the tensor is alive, since it had no other holder.
        if let Some(delete) = unsafe { self.0.as_ref() }.deleter() {
            // SAFETY: called once: `into_raw` ends this value without a drop.
            unsafe { delete(self.0.as_ptr()) };
        }
    }
}

impl<F: Form> fmt::Debug for Lent<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lent").field(&self.0).finish()
    }
}

/// The right to a buffer that was lent out. If the loan is dropped, the deleter drops the buffer.
pub struct Loan<T: Element> {
    slot: Arc<Slot<T>>,
}

struct Slot<T: Element> {
    returned: Mutex<Option<Shared<T>>>,
    changed: Condvar,
}

impl<T: Element> Loan<T> {
    /// The buffer, if the consumer has returned it.
    ///
    /// # Errors
    /// The loan itself while the consumer has the tensor.
    pub fn try_take(self) -> Result<Shared<T>, Self> {
        let returned = self.slot.returned.lock().take();
        returned.ok_or(self)
    }

    /// Waits until the consumer has returned the buffer.
    ///
    /// # Errors
    /// The loan itself, if the consumer still has the tensor after `limit`.
    pub fn wait(self, limit: Duration) -> Result<Shared<T>, Self> {
        let mut returned = self.slot.returned.lock();
        let is_out = |returned: &mut Option<Shared<T>>| returned.is_none();
        self.slot.changed.wait_while_for(&mut returned, is_out, limit);
        let shared = returned.take();
        drop(returned);
        shared.ok_or(self)
    }
}

impl<T: Element> fmt::Debug for Loan<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loan")
            .field("returned", &self.slot.returned.lock().is_some())
            .finish()
    }
}

/// What a tensor's `manager_ctx` points to: the tensor itself, and what it shows.
struct Context<T: Element, F> {
    form: Option<F>,
    shape: Box<[i64]>,
    strides: Box<[i64]>,
    shared: Shared<T>,
    /// The consumer has its handle, and may queue more.
    _stream: hip::Stream,
    slot: Weak<Slot<T>>,
}

/// Lending to tensor libraries, see [`dlpack`](crate::dlpack).
impl<T: Element> Shared<T> {
    /// Lends the elements of `layout` to a consumer who uses them on `stream`; [`Lent::into_raw`] is
    /// what it takes. The form is [`ManagedTensorVersioned`](super::abi::ManagedTensorVersioned), or
    /// [`ManagedTensor`](super::abi::ManagedTensor) for consumers that know no versions. With
    /// `read_only` the consumer must not write, and no other reader waits for it.
    ///
    /// The [`Loan`] returns the buffer when the consumer calls the deleter; the buffer's next user waits for what the
    /// consumer has queued on `stream` by then.
    ///
    /// # Errors
    /// With the unchanged buffer: the layout reaches beyond its end; it is read-only and `read_only` is not set; the
    /// form without a version is to be read-only; the place of the memory is not known; or the guard for `stream` could
    /// not be taken.
    #[expect(
        clippy::result_large_err,
        reason = "the owner comes back, and is as large as an owner is"
    )]
    pub fn to_dlpack<F: Form>(
        self,
        layout: &Layout,
        stream: &hip::Stream,
        read_only: bool,
    ) -> Result<(Lent<F>, Loan<T>), (Error, Self)> {
        let device = match self.check_loan(layout, stream, read_only) {
            Ok(device) => device,
            Err(error) => return Err((error, self)),
        };
        let slot = Arc::new(Slot {
            returned: Mutex::default(),
            changed: Condvar::new(),
        });
        // What fits the buffer fits 63 bits.
        let numbers = |all: &[usize]| all.iter().map(|&n| n as i64).collect::<Box<[i64]>>();
        let context = Box::into_raw(Box::new(Context::<T, F> {
            form: None,
            shape: numbers(&layout.shape),
            strides: numbers(&layout.strides),
            shared: self,
            _stream: stream.clone(),
            slot: Arc::downgrade(&slot),
        }));
        // SAFETY: no other code knows the allocation yet.
        let place = unsafe { &mut *context };
        let empty = layout.is_empty();
        let tensor = Tensor {
            data: match empty {
                true => std::ptr::null_mut(),
                false => place.shared.backing().hip_ptr().cast(),
            },
            device,
            ndim: layout.shape.len() as i32,
            dtype: T::DATA_TYPE,
            shape: place.shape.as_mut_ptr(),
            strides: place.strides.as_mut_ptr(),
            byte_offset: match empty {
                true => 0,
                false => (layout.offset * size_of::<T>()) as u64,
            },
        };
        let form = F::new(tensor, context.cast(), take_back::<T, F>, read_only);
        match form {
            Some(form) => {
                let form = NonNull::from(place.form.insert(form));
                Ok((Lent(form), Loan { slot }))
            }
            None => {
                // SAFETY: the allocation of above, which no other code has seen.
                let context = unsafe { Box::from_raw(context) };
                Err((
                    refused("a tensor without a version cannot be marked read-only; use ManagedTensorVersioned"),
                    context.shared,
                ))
            }
        }
    }

    fn check_loan(&self, layout: &Layout, stream: &hip::Stream, read_only: bool) -> Result<Device> {
        let reach = layout.reach()?;
        if reach > self.len() {
            return Err(refused(format!(
                "the layout extends to element {reach} of a buffer of {} elements",
                self.len()
            )));
        }
        if i32::try_from(layout.shape.len()).is_err() {
            return Err(refused("the tensor has too many dimensions"));
        }
        let device_type = device_type(self.core(), self.residency())?;
        let access = match read_only {
            true => Access::Read,
            false => {
                self.check_writable()?;
                Access::Write
            }
        };
        let place = self.allocation();
        place
            .grant_hip(stream, access, &place.bytes())?
            .map_err(|error| place.under_reader("loan of a tensor", error))?;
        Ok(Device {
            device_type,
            device_id: device_id(self.core(), device_type),
        })
    }
}

/// The deleter.
///
/// # Safety
/// `tensor` is null or one of [`Shared::to_dlpack`] with these types, and this is the first call.
unsafe extern "C" fn take_back<T: Element, F: Form>(tensor: *mut F) {
    // SAFETY: the caller's promise.
    let Some(tensor) = (unsafe { tensor.as_ref() }) else {
        return;
    };
    // SAFETY: `to_dlpack` made the context by `Box::into_raw`, and this is the one who takes it back.
    let context = unsafe { Box::from_raw(tensor.context().cast::<Context<T, F>>()) };
    let Context { shared, slot, .. } = *context;
    // If nothing waits for it, the buffer is dropped here.
    if let Some(slot) = slot.upgrade() {
        *slot.returned.lock() = Some(shared);
        slot.changed.notify_all();
    }
}
