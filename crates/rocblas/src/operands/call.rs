//! A call on its way to the library: it takes the memory of its operands, and checks what it got.

use std::ops::Range;
use std::sync::Arc;

use hip::{DeviceMemory, DeviceMemoryMut, DeviceSlice, DeviceSliceMut, Stream};

use super::addresses::Addresses;
use crate::{Error, Result};

/// Operands and scalars of the call with the most: `gemm_ex_into`.
const MOST: usize = 6;

/// What a call has taken so far, on its stream.
///
/// All calls take their memory here, so that all checks are here: that an operand fits its memory, that the memory is on
/// the call's stream, and that an output shares no byte with another operand.
#[derive(Debug)]
pub struct Call<'h> {
    name: &'static str,
    stream: &'h Stream,
    taken: [Option<Argument>; MOST],
}

/// How an operand's elements lie in its memory.
pub(crate) trait Shape: Copy {
    /// The same for memory that has `len` elements from the operand's first on, if the sizes are valid.
    fn checked(self, len: usize) -> Result<Self>;

    /// Elements from the first to the last; `usize::MAX`, which no memory has, if an address space has fewer.
    fn span(self) -> usize;

    /// That an operand that is written has no element twice.
    fn check_distinct(self) -> Result<()>;

    /// For messages.
    fn describe(self) -> String;
}

/// An operand of one memory.
pub(crate) trait Operand {
    type Memory;
    type Shape: Shape;

    /// The memory, the operand's first element in it, and its shape from there on.
    fn into_parts(self) -> (Self::Memory, usize, Self::Shape);
}

/// An operand whose memory the call took: exactly the elements that it spans.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken<D, S> {
    pub(crate) data: D,
    pub(crate) shape: S,
}

impl<T, S: Copy> Taken<DeviceSliceMut<'_, T>, S> {
    /// The same to read, for as long as this one is not used otherwise.
    pub(crate) fn as_read(&self) -> Taken<DeviceSlice<'_, T>, S> {
        Taken {
            data: self.data.as_slice(),
            shape: self.shape,
        }
    }
}

#[derive(Debug)]
struct Argument {
    name: &'static str,
    is_written: bool,
    place: Place,
}

/// Where an operand lies.
#[derive(Debug)]
pub(crate) enum Place {
    Stretch(Range<usize>),
    Matrices(Arc<Addresses>),
}

impl<'h> Call<'h> {
    pub(crate) fn new(stream: &'h Stream, name: &'static str) -> Self {
        Self {
            name,
            stream,
            taken: [const { None }; MOST],
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn stream(&self) -> &'h Stream {
        self.stream
    }

    /// Takes an operand to be read.
    pub(crate) fn read<'s, O, M>(
        &mut self,
        argument: &'static str,
        operand: O,
    ) -> Result<Taken<DeviceSlice<'s, M::Element>, O::Shape>>
    where
        'h: 's,
        O: Operand<Memory = M>,
        M: DeviceMemory + 's,
    {
        let (memory, first, shape) = operand.into_parts();
        let shape = fitting(shape, memory.len(), first).map_err(|cause| self.misfit(argument, cause))?;
        let slice = self.read_all(argument, memory)?;
        // The memory's own word for its length is not to be relied on; this is.
        let data = slice
            .slice(first..first.saturating_add(shape.span()))
            .map_err(|cause| self.misfit(argument, cause.into()))?;
        self.note(argument, false, Place::of(&data))?;
        Ok(Taken { data, shape })
    }

    /// Takes an operand to be read and written.
    pub(crate) fn write<'s, O, M>(
        &mut self,
        argument: &'static str,
        operand: O,
    ) -> Result<Taken<DeviceSliceMut<'s, M::Element>, O::Shape>>
    where
        'h: 's,
        O: Operand<Memory = M>,
        M: DeviceMemoryMut + 's,
    {
        let (memory, first, shape) = operand.into_parts();
        let shape = fitting(shape, memory.len(), first)
            .and_then(|shape| shape.check_distinct().map(|()| shape))
            .map_err(|cause| self.misfit(argument, cause))?;
        let slice = self.write_all(argument, memory)?;
        let data = slice
            .split_at_mut(first)
            .and_then(|(_, from)| from.split_at_mut(shape.span()))
            .map_err(|cause| self.misfit(argument, cause.into()))?
            .0;
        self.note(argument, true, Place::of(&data.as_slice()))?;
        Ok(Taken { data, shape })
    }

    /// Takes memory of exactly one element, to be written.
    pub(crate) fn write_element<'s, M>(
        &mut self,
        argument: &'static str,
        memory: M,
    ) -> Result<DeviceSliceMut<'s, M::Element>>
    where
        'h: 's,
        M: DeviceMemoryMut + 's,
    {
        self.one_element(argument, memory.len())?;
        let slice = self.write_all(argument, memory)?;
        self.one_element(argument, slice.len())?;
        self.note(argument, true, Place::of(&slice.as_slice()))?;
        Ok(slice)
    }

    /// Takes memory of exactly one element, to be read.
    pub(crate) fn read_element<'s, M>(
        &mut self,
        argument: &'static str,
        memory: M,
    ) -> Result<DeviceSlice<'s, M::Element>>
    where
        'h: 's,
        M: DeviceMemory + 's,
    {
        self.one_element(argument, memory.len())?;
        let slice = self.read_all(argument, memory)?;
        self.one_element(argument, slice.len())?;
        self.note(argument, false, Place::of(&slice))?;
        Ok(slice)
    }

    /// All elements of a memory, to be read.
    pub(crate) fn read_all<'s, M>(&self, argument: &'static str, memory: M) -> Result<DeviceSlice<'s, M::Element>>
    where
        'h: 's,
        M: DeviceMemory + 's,
    {
        let slice = memory
            .read_on(self.stream)
            .map_err(|error| self.refused(argument, error))?;
        self.check_stream(argument, slice.stream())?;
        self.check_aligned(argument, &slice)?;
        Ok(slice)
    }

    /// All elements of a memory, to be written.
    pub(crate) fn write_all<'s, M>(&self, argument: &'static str, memory: M) -> Result<DeviceSliceMut<'s, M::Element>>
    where
        'h: 's,
        M: DeviceMemoryMut + 's,
    {
        let slice = memory
            .write_on(self.stream)
            .map_err(|error| self.refused(argument, error))?;
        self.check_stream(argument, slice.stream())?;
        self.check_aligned(argument, &slice.as_slice())?;
        Ok(slice)
    }

    /// Notes where an operand lies. Refuses an output that lies where another operand does: borrows exclude that for
    /// one buffer, but memory of other code may be known by two.
    pub(crate) fn note(&mut self, name: &'static str, is_written: bool, place: Place) -> Result<()> {
        for other in self.taken.iter().flatten() {
            if (is_written || other.is_written) && place.meets(&other.place) {
                let (output, input) = if is_written {
                    (name, other.name)
                } else {
                    (other.name, name)
                };
                return Err(Error::OperandsOverlap {
                    call: self.name,
                    output,
                    input,
                });
            }
        }
        let room = self.taken.iter_mut().find(|room| room.is_none());
        *room.expect("no call has more operands") = Some(Argument {
            name,
            is_written,
            place,
        });
        Ok(())
    }

    /// Refuses elements that lie less aligned than they are large: kernels load a complex number at once, which Rust's
    /// type does not ask for.
    fn check_aligned<T>(&self, argument: &'static str, slice: &DeviceSlice<'_, T>) -> Result<()> {
        let (needed, first) = (size_of::<T>().max(1), slice.as_ptr());
        // No elements lie nowhere.
        if slice.is_empty() || first.addr().is_multiple_of(needed) {
            return Ok(());
        }
        Err(Error::Operand {
            call: self.name,
            argument,
            cause: Box::new(Error::Alignment {
                address: first.addr(),
                needed,
            }),
        })
    }

    /// Refuses an argument that was taken for another stream.
    pub(crate) fn check_stream(&self, argument: &'static str, stream: &Stream) -> Result<()> {
        if *stream == *self.stream {
            return Ok(());
        }
        Err(self.wrong_stream(argument))
    }

    /// An argument that does not fit its memory.
    pub(crate) fn misfit(&self, argument: &'static str, cause: Error) -> Error {
        Error::Operand {
            call: self.name,
            argument,
            cause: Box::new(cause),
        }
    }

    fn one_element(&self, argument: &'static str, len: usize) -> Result<()> {
        if len == 1 {
            return Ok(());
        }
        Err(Error::Shape {
            call: self.name,
            argument,
            found: format!("memory of {len} elements"),
            expected: "one element".to_owned(),
        })
    }

    fn refused(&self, argument: &'static str, error: hip::Error) -> Error {
        match error {
            hip::Error::WrongStream { .. } => self.wrong_stream(argument),
            error => error.into(),
        }
    }

    fn wrong_stream(&self, argument: &'static str) -> Error {
        Error::WrongStream {
            call: self.name,
            argument,
        }
    }
}

/// The shape of an operand that begins `first` elements into a memory of `len`, if it lies in it.
fn fitting<S: Shape>(shape: S, len: usize, first: usize) -> Result<S> {
    let shape = shape.checked(len.saturating_sub(first))?;
    let needed = first.saturating_add(shape.span());
    if needed <= len {
        return Ok(shape);
    }
    let mut what = shape.describe();
    if first > 0 {
        what += &format!(" from element {first} on");
    }
    Err(Error::TooShort { what, needed, len })
}

impl Place {
    pub(crate) fn of<T>(slice: &DeviceSlice<'_, T>) -> Self {
        let begin = slice.as_ptr().addr();
        // What a slice holds does not wrap.
        Self::Stretch(begin..begin + slice.len() * size_of::<T>())
    }

    fn stretches(&self) -> &[Range<usize>] {
        match self {
            Self::Stretch(bytes) => std::slice::from_ref(bytes),
            Self::Matrices(addresses) => addresses.stretches(),
        }
    }

    /// Whether the two share a byte. Stretches are in ascending order.
    fn meets(&self, other: &Self) -> bool {
        let (mut these, mut those) = (self.stretches(), other.stretches());
        while let ([this, rest @ ..], [that, others @ ..]) = (these, those) {
            // An operand without elements lies nowhere.
            if this.is_empty() || this.end <= that.start {
                these = rest;
            } else if that.is_empty() || that.end <= this.start {
                those = others;
            } else {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(begin: usize, bytes: usize) -> Place {
        Place::Stretch(begin..begin + bytes)
    }

    #[test]
    fn operands_that_share_no_byte_are_apart() {
        let output = at(0x100, 16);
        for input in [at(0x110, 16), at(0xF0, 16), at(0x104, 0)] {
            assert!(!output.meets(&input) && !input.meets(&output), "{input:?}");
        }
        for input in [at(0x10F, 4), at(0xF0, 17), at(0x104, 1), at(0, 0x1000)] {
            assert!(output.meets(&input) && input.meets(&output), "{input:?}");
        }
        assert!(!at(0, 0).meets(&at(0, 1)));
    }
}
