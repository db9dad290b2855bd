//! Maps of a buffer object and their guards.

use std::fmt;
use std::ops::{Deref, DerefMut};

use bytemuck::Pod;

use super::{Object, Wish};
use crate::api::slot;
use crate::buffer::mapped::Mapped;
use crate::error::{Error, Result, check, check_taken};
use crate::handle::Handle;
use crate::queue::Queue;

impl<T> Object<T> {
    pub(super) fn unmap(&self, map: &Mapped) -> Result<()> {
        let unmap = slot!(self.context().api(), clEnqueueUnmapMemObject)?;
        // SAFETY: the pointer is one that a map of this object gave and that was not undone yet; the
        // object is this one or a part of it that was not released, since a part undoes its maps before.
        let code = unsafe {
            unmap(
                map.queue.raw(),
                map.object.0,
                map.pointer.0,
                0,
                std::ptr::null(),
                std::ptr::null_mut(),
            )
        };
        check_taken(code, || "clEnqueueUnmapMemObject".to_owned())?;
        self.note_use(&map.queue);
        Ok(())
    }

    pub fn map(&self, queue: &Queue) -> Result<ClMap<'_, T>>
    where
        T: Pod,
    {
        self.allow(Wish::Read)?;
        self.settle(queue, false)?;
        let pointer = self.map_raw(queue, opencl_sys::CL_MAP_READ, false)?;
        Ok(ClMap {
            object: self,
            queue: queue.clone(),
            pointer,
        })
    }

    pub fn map_mut(&mut self, queue: &Queue) -> Result<ClMapMut<'_, T>>
    where
        T: Pod,
    {
        self.allow(Wish::Read)?;
        self.allow(Wish::Write)?;
        self.settle(queue, true)?;
        let pointer = self.map_raw(queue, opencl_sys::CL_MAP_READ | opencl_sys::CL_MAP_WRITE, true)?;
        Ok(ClMapMut {
            object: self,
            queue: queue.clone(),
            pointer,
        })
    }

    pub(crate) fn map_raw(&self, queue: &Queue, flags: u64, writes: bool) -> Result<Handle> {
        let map = slot!(self.context().api(), clEnqueueMapBuffer)?;
        let bytes = self.bytes();
        let before = queue.enqueued();
        let mut code = 0;
        // SAFETY: queue and buffer are alive and of one context; the range is the whole buffer;
        // `code` is a valid place. The call blocks, so the pointer may be used at once.
        let pointer = unsafe {
            map(
                queue.raw(),
                self.raw(),
                opencl_sys::CL_TRUE,
                flags,
                0,
                bytes,
                0,
                std::ptr::null(),
                std::ptr::null_mut(),
                &raw mut code,
            )
        };
        check(code, || format!("clEnqueueMapBuffer({bytes} bytes)"))?;
        queue.mark_ended(before);
        let pointer = Handle(pointer);
        let mapped = Mapped {
            queue: queue.clone(),
            object: self.handle(),
            pointer,
            writes,
        };
        self.maps().add(mapped.clone());
        if pointer.0.is_null() || !pointer.0.cast::<T>().is_aligned() {
            self.maps().end(mapped, |map| self.unmap(map))?;
            return Err(Error::NotSupported {
                what: "mapping a buffer".to_owned(),
                device: self.context().device().name().to_owned(),
                reason: format!(
                    "the mapping at {:p} is not aligned for the element type; read or write the buffer instead",
                    pointer.0
                ),
            });
        }
        Ok(pointer)
    }

    /// Undoes the map of a guard.
    fn end_map(&self, queue: &Queue, pointer: Handle, writes: bool) -> Result<()> {
        let map = Mapped {
            queue: queue.clone(),
            object: self.handle(),
            pointer,
            writes,
        };
        self.maps().end(map, |map| self.unmap(map))
    }
}

/// A buffer object mapped for the host to read.
pub struct ClMap<'a, T: Pod> {
    object: &'a Object<T>,
    queue: Queue,
    pointer: Handle,
}

/// A buffer object mapped for the host to read and write.
pub struct ClMapMut<'a, T: Pod> {
    object: &'a mut Object<T>,
    queue: Queue,
    pointer: Handle,
}

macro_rules! guard {
    ($guard:ident, $writes:literal) => {
        impl<T: Pod> $guard<'_, T> {
            /// Ends the map and returns the error that a drop would keep for the queue's next
            /// [`finish`](Queue::finish).
            ///
            /// # Errors
            ///
            /// An error from `clEnqueueUnmapMemObject`.
            pub fn unmap(self) -> Result<()> {
                let guard = std::mem::ManuallyDrop::new(self);
                let ended = guard.object.end_map(&guard.queue, guard.pointer, $writes);
                // SAFETY: the guard is not used or dropped again, and the queue is its only part
                // that needs a drop.
                drop(unsafe { std::ptr::read(&raw const guard.queue) });
                ended
            }
        }

        impl<T: Pod> Deref for $guard<'_, T> {
            type Target = [T];

            fn deref(&self) -> &[T] {
                // SAFETY: the map gave an aligned pointer to the whole buffer, which stays mapped
                // for as long as the guard lives; `T: Pod` takes any bytes. The device does not
                // write meanwhile: earlier commands have ended, and `Kernel::launch` makes its
                // caller promise it for later ones.
                unsafe { std::slice::from_raw_parts(self.pointer.0.cast(), self.object.len()) }
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
                if let Err(error) = self.object.end_map(&self.queue, self.pointer, $writes) {
                    self.queue.defer(error);
                }
            }
        }
    };
}

guard!(ClMap, false);
guard!(ClMapMut, true);

impl<T: Pod> DerefMut for ClMapMut<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; the buffer is borrowed exclusively, so this is the only map.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.0.cast(), self.object.len()) }
    }
}
