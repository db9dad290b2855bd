//! The guards of mapped shared virtual memory.

use std::fmt;
use std::ops::{Deref, DerefMut};

use bytemuck::Pod;

use super::SvmBuffer;
use crate::error::Result;
use crate::queue::Queue;

/// Shared virtual memory that the host may read.
pub struct SvmMap<'a, T: Pod> {
    pub(super) buffer: &'a SvmBuffer<T>,
    pub(super) queue: Queue,
}

/// Shared virtual memory that the host may read and write.
pub struct SvmMapMut<'a, T: Pod> {
    pub(super) buffer: &'a mut SvmBuffer<T>,
    pub(super) queue: Queue,
}

macro_rules! guard {
    ($guard:ident, $writes:literal) => {
        impl<T: Pod> $guard<'_, T> {
            /// Ends the map and returns the error that a drop would keep for the queue's next
            /// [`finish`](Queue::finish).
            ///
            /// # Errors
            ///
            /// An error from `clEnqueueSVMUnmap`.
            pub fn unmap(self) -> Result<()> {
                let guard = std::mem::ManuallyDrop::new(self);
                let ended = guard.buffer.allocation().end_map(&guard.queue, $writes);
                // SAFETY: the guard is not used or dropped again, and the queue is its only part
                // that needs a drop.
                drop(unsafe { std::ptr::read(&raw const guard.queue) });
                ended
            }
        }

        impl<T: Pod> Deref for $guard<'_, T> {
            type Target = [T];

            fn deref(&self) -> &[T] {
                // SAFETY: the memory is alive, aligned, which the map has checked, of this length and, if coarse,
                // mapped for as long as the guard lives; `T: Pod` takes any bytes. The device does not write meanwhile:
                // earlier commands have ended, and `Kernel::launch` makes its caller promise it for later ones.
                unsafe { std::slice::from_raw_parts(self.buffer.as_ptr(), self.buffer.len()) }
            }
        }

        impl<T: Pod> fmt::Debug for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($guard))
                    .field("len", &self.len())
                    .finish_non_exhaustive()
            }
        }

        impl<T: Pod> Drop for $guard<'_, T> {
            fn drop(&mut self) {
                if let Err(error) = self.buffer.allocation().end_map(&self.queue, $writes) {
                    self.queue.defer(error);
                }
            }
        }
    };
}

guard!(SvmMap, false);
guard!(SvmMapMut, true);

impl<T: Pod> DerefMut for SvmMapMut<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; the buffer is borrowed exclusively, so this is the only
        // guard.
        unsafe { std::slice::from_raw_parts_mut(self.buffer.as_ptr(), self.buffer.len()) }
    }
}
