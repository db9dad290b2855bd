//! The public methods of every type over a buffer object, as a macro: each type has documentation of
//! its own for them.

/// The methods that the types over an [`Object`](super::Object) have in common.
macro_rules! object_methods {
    ($buffer:ident $(, $field:tt)?) => {
        impl<T: Pod> $buffer<T> {
            /// Copies the whole buffer into `out`, which has its length. It waits for the copy, and
            /// for kernels on other queues that use the buffer.
            ///
            /// # Errors
            ///
            /// [`Error::LengthMismatch`](crate::Error::LengthMismatch), or an error from
            /// `clEnqueueReadBuffer`.
            #[doc(alias = "clEnqueueReadBuffer")]
            pub fn read(&self, queue: &Queue, out: &mut [T]) -> Result<()> {
                self.object().read(queue, out)
            }

            /// Copies the elements from `offset` on into `out`, and waits as [`read`](Self::read).
            ///
            /// # Errors
            ///
            /// [`Error::OutOfRange`](crate::Error::OutOfRange), or an error from
            /// `clEnqueueReadBuffer`.
            pub fn read_at(&self, queue: &Queue, offset: usize, out: &mut [T]) -> Result<()> {
                self.object().read_at(queue, offset, out)
            }

            /// Copies `data`, which has the buffer's length, into the buffer, and waits as
            /// [`read`](Self::read).
            ///
            /// # Errors
            ///
            /// [`Error::LengthMismatch`](crate::Error::LengthMismatch), or an error from
            /// `clEnqueueWriteBuffer`.
            #[doc(alias = "clEnqueueWriteBuffer")]
            pub fn write(&mut self, queue: &Queue, data: &[T]) -> Result<()> {
                self.object_mut().write(queue, data)
            }

            /// Copies `data` into the buffer from `offset` on, and waits as [`read`](Self::read).
            ///
            /// # Errors
            ///
            /// [`Error::OutOfRange`](crate::Error::OutOfRange), or an error from
            /// `clEnqueueWriteBuffer`.
            pub fn write_at(&mut self, queue: &Queue, offset: usize, data: &[T]) -> Result<()> {
                self.object_mut().write_at(queue, offset, data)
            }

            /// Enqueues a copy of the elements from `offset` on into `out`, as many as it holds, and
            /// returns `out` when the copy has ended. The copy is ordered by `queue`, after a
            /// wait for other queues that use the buffer.
            ///
            /// # Errors
            ///
            /// [`Error::OutOfRange`](crate::Error::OutOfRange),
            /// [`Error::Access`](crate::Error::Access), or an error from `clEnqueueReadBuffer`.
            pub fn read_async(
                &self,
                queue: &Queue,
                offset: usize,
                out: Vec<T>,
            ) -> Result<Pending<T>> {
                self.object().read_async(queue, offset, out)
            }

            /// Enqueues a copy of `data` into the buffer from `offset` on, and returns `data` when
            /// the copy has ended. It is ordered as [`read_async`](Self::read_async).
            ///
            /// # Errors
            ///
            /// [`Error::OutOfRange`](crate::Error::OutOfRange),
            /// [`Error::Access`](crate::Error::Access), or an error from `clEnqueueWriteBuffer`.
            pub fn write_async(
                &mut self,
                queue: &Queue,
                offset: usize,
                data: Vec<T>,
            ) -> Result<Pending<T>> {
                self.object_mut().write_async(queue, offset, data)
            }

            /// Enqueues a write of `value` to `count` elements from `offset` on, ordered as
            /// [`read_async`](Self::read_async).
            ///
            /// # Errors
            ///
            /// [`Error::OutOfRange`](crate::Error::OutOfRange), [`Error::TooLarge`](crate::Error::TooLarge) for an
            /// element whose size is not a power of two up to 128 bytes, or an error from `clEnqueueFillBuffer`.
            #[doc(alias = "clEnqueueFillBuffer")]
            pub fn fill(
                &mut self,
                queue: &Queue,
                offset: usize,
                count: usize,
                value: T,
            ) -> Result<Event> {
                self.object_mut().fill(queue, offset, count, value)
            }

            /// Enqueues a copy of `count` elements of `source` from `from` on, to `to` in this
            /// buffer, ordered as [`read_async`](Self::read_async) for both.
            ///
            /// # Errors
            ///
            /// [`Error::OutOfRange`](crate::Error::OutOfRange),
            /// [`Error::ContextMismatch`](crate::Error::ContextMismatch), or an error from
            /// `clEnqueueCopyBuffer`.
            #[doc(alias = "clEnqueueCopyBuffer")]
            pub fn copy_from<'a>(
                &mut self,
                queue: &Queue,
                to: usize,
                source: impl Into<MemRef<'a, T>>,
                from: usize,
                count: usize,
            ) -> Result<Event>
            where
                T: 'a,
            {
                self.object_mut()
                    .copy_from(queue, to, source.into(), from, count)
            }

            /// Copies the box of `extent` (x, y, z) at `here` in the buffer to `there` in `out`, and waits as
            /// [`read`](Self::read). All sizes are in elements. NVIDIA's OpenCL (driver 580) also requires the last
            /// row's whole pitch to lie in the buffer.
            ///
            /// # Errors
            ///
            /// [`Error::Region`](crate::Error::Region), [`Error::Zero`](crate::Error::Zero),
            /// [`Error::Access`](crate::Error::Access), or an error from `clEnqueueReadBufferRect`.
            #[doc(alias = "clEnqueueReadBufferRect")]
            pub fn read_box(
                &self,
                queue: &Queue,
                extent: [usize; 3],
                here: BoxLayout,
                out: &mut [T],
                there: BoxLayout,
            ) -> Result<()> {
                self.object().read_box(queue, extent, here, out, there)
            }

            /// Copies the box of `extent` (x, y, z) at `there` in `data` to `here` in the buffer, and waits as
            /// [`read`](Self::read). All sizes are in elements.
            ///
            /// # Errors
            ///
            /// As [`read_box`](Self::read_box), with `clEnqueueWriteBufferRect`.
            #[doc(alias = "clEnqueueWriteBufferRect")]
            pub fn write_box(
                &mut self,
                queue: &Queue,
                extent: [usize; 3],
                here: BoxLayout,
                data: &[T],
                there: BoxLayout,
            ) -> Result<()> {
                self.object_mut()
                    .write_box(queue, extent, here, data, there)
            }

            /// Enqueues a copy of the box of `extent` (x, y, z) at `from` in `source`, to `to` in this buffer, ordered
            /// as [`copy_from`](Self::copy_from).
            ///
            /// # Errors
            ///
            /// [`Error::Region`](crate::Error::Region), [`Error::Zero`](crate::Error::Zero),
            /// [`Error::ContextMismatch`](crate::Error::ContextMismatch), or an error from
            /// `clEnqueueCopyBufferRect`.
            #[doc(alias = "clEnqueueCopyBufferRect")]
            pub fn copy_box_from<'a>(
                &mut self,
                queue: &Queue,
                extent: [usize; 3],
                to: BoxLayout,
                source: impl Into<MemRef<'a, T>>,
                from: BoxLayout,
            ) -> Result<Event>
            where
                T: 'a,
            {
                self.object_mut()
                    .copy_box_from(queue, extent, to, source.into(), from)
            }

            /// The elements `range` as a buffer object of their own, for kernels and reads.
            ///
            /// # Errors
            ///
            /// [`Error::OutOfRange`](crate::Error::OutOfRange), [`Error::Zero`](crate::Error::Zero),
            /// [`Error::Region`](crate::Error::Region) if the start is not a multiple of
            /// [`Device::sub_buffer_alignment`](crate::Device::sub_buffer_alignment), or an error from
            /// `clCreateSubBuffer`.
            #[doc(alias = "clCreateSubBuffer")]
            pub fn part(&self, range: Range<usize>) -> Result<SubBuffer<'_, T>> {
                self.object().part(range)
            }

            /// As [`part`](Self::part), and the part may also be written.
            ///
            /// # Errors
            ///
            /// As [`part`](Self::part).
            pub fn part_mut(&mut self, range: Range<usize>) -> Result<SubBufferMut<'_, T>> {
                self.object_mut().part_mut(range)
            }

            /// Maps the buffer for the host to read, after everything enqueued that uses it. The
            /// end of the map is ordered by `queue`.
            ///
            /// # Errors
            ///
            /// An error from `clEnqueueMapBuffer`.
            #[doc(alias = "clEnqueueMapBuffer")]
            pub fn map(&self, queue: &Queue) -> Result<ClMap<'_, T>> {
                self.object().map(queue)
            }

            /// Maps the buffer for the host to read and write, as [`map`](Self::map).
            ///
            /// # Errors
            ///
            /// An error from `clEnqueueMapBuffer`.
            pub fn map_mut(&mut self, queue: &Queue) -> Result<ClMapMut<'_, T>> {
                self.object_mut().map_mut(queue)
            }

            /// Records that a command that uses the buffer was enqueued on `queue` through raw handles, so a read on
            /// another queue, or the buffer's drop, waits for it.
            pub fn note_use(&self, queue: &Queue) {
                self.object().note_use(queue);
            }
        }

        impl<T> $buffer<T> {
            pub(crate) fn object(&self) -> &Object<T> {
                $crate::buffer::object_field!(self $(, $field)?)
            }

            pub(crate) fn object_mut(&mut self) -> &mut Object<T> {
                $crate::buffer::object_field!(mut self $(, $field)?)
            }

            /// The number of elements; never zero.
            #[must_use]
            #[allow(clippy::len_without_is_empty)]
            pub fn len(&self) -> usize {
                self.object().len()
            }

            /// The size in bytes.
            #[must_use]
            pub fn bytes(&self) -> usize {
                self.object().bytes()
            }

            /// The buffer as a kernel's argument.
            #[must_use]
            pub fn arg(&self) -> Arg<'_> {
                Arg::Mem(self.raw())
            }

            /// The buffer's handle, valid for as long as the buffer lives.
            #[must_use]
            pub fn raw(&self) -> cl_mem {
                self.object().raw()
            }

            /// The buffer's context.
            #[must_use]
            pub fn context(&self) -> &Context {
                self.object().context()
            }

            /// What kernels and the host may do with the buffer.
            #[must_use]
            pub fn access(&self) -> BufferAccess {
                self.object().access()
            }
        }

        impl<'a, T> From<&'a mut $buffer<T>> for $crate::buffer::MemMut<'a, T> {
            fn from(buffer: &'a mut $buffer<T>) -> Self {
                Self(buffer.object_mut())
            }
        }

        impl<'a, T> From<&'a $buffer<T>> for MemRef<'a, T> {
            fn from(buffer: &'a $buffer<T>) -> Self {
                Self(buffer.object())
            }
        }

        impl<T> fmt::Debug for $buffer<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($buffer))
                    .field("len", &self.len())
                    .finish_non_exhaustive()
            }
        }
    };
}

/// The [`Object`](super::Object) in a buffer.
macro_rules! object_field {
    ($self:ident) => {
        &$self.0
    };
    (mut $self:ident) => {
        &mut $self.0
    };
    ($self:ident, $field:tt) => {
        &$self.$field
    };
    (mut $self:ident, $field:tt) => {
        &mut $self.$field
    };
}
pub(crate) use object_field;
pub(crate) use object_methods;
