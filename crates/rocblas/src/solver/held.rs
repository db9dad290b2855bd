use hip::{DeviceSlice, DeviceSliceMut, Stream};

use crate::Result;
use crate::functions::solver::{Form, Operand};
use crate::operands::{BatchShape, Place, Taken, TakenPointers};
use crate::size::{Layout, int, stride};

/// The in-place operand of a solver call, whose memory it holds: for the call, or for as long as factors are in it.
#[derive(Debug)]
pub struct Held<'h, T> {
    memory: Memory<'h, T>,
    /// The sizes of pointers have no stride.
    shape: BatchShape,
    form: Form,
}

#[derive(Debug)]
enum Memory<'h, T> {
    Elements(DeviceSliceMut<'h, T>),
    Pointers(TakenPointers<'h, T>),
}

impl<'h, T> Held<'h, T> {
    pub(super) fn matrix(Taken { data, shape }: Taken<DeviceSliceMut<'h, T>, Layout>) -> Self {
        Self {
            memory: Memory::Elements(data),
            shape: BatchShape {
                layout: shape,
                stride: 0,
                count: 1,
            },
            form: Form::Single,
        }
    }

    pub(super) fn batch(Taken { data, shape }: Taken<DeviceSliceMut<'h, T>, BatchShape>) -> Self {
        Self {
            memory: Memory::Elements(data),
            shape,
            form: Form::Strided,
        }
    }

    pub(super) fn pointers(matrices: TakenPointers<'h, T>) -> Self {
        Self {
            shape: BatchShape {
                layout: matrices.layout(),
                stride: 0,
                count: matrices.count(),
            },
            memory: Memory::Pointers(matrices),
            form: Form::Batched,
        }
    }

    pub(super) fn layout(&self) -> Layout {
        self.shape.layout
    }

    pub(super) fn count(&self) -> usize {
        self.shape.count
    }

    pub(super) fn is_batch(&self) -> bool {
        self.form != Form::Single
    }

    pub(super) fn is_by_pointers(&self) -> bool {
        self.form == Form::Batched
    }

    pub(super) fn stream(&self) -> &'h Stream {
        match &self.memory {
            Memory::Elements(elements) => elements.stream(),
            Memory::Pointers(matrices) => matrices.stream(),
        }
    }

    pub(super) fn place(&self) -> Place {
        match &self.memory {
            Memory::Elements(elements) => Place::of(&elements.as_slice()),
            Memory::Pointers(matrices) => matrices.place(),
        }
    }

    /// All that it spans. Not for pointers.
    pub(super) fn elements(&self) -> DeviceSlice<'_, T> {
        match &self.memory {
            Memory::Elements(elements) => elements.as_slice(),
            Memory::Pointers(_) => unreachable!("only matrices of another form are asked for their elements"),
        }
    }

    /// As the C functions take it. They may write: it is held exclusively.
    ///
    /// rocSOLVER computes `row + column * ld` in the type of its sizes, so that a matrix of more elements than that type
    /// counts would be written outside of its memory. Between the matrices of a batch it counts in 64 bits.
    pub(super) fn operand(&self) -> Result<Operand> {
        int("the span of a matrix in elements", self.shape.layout.span())?;
        let address = match &self.memory {
            Memory::Elements(elements) => elements.as_slice().as_ptr().cast_mut().cast(),
            Memory::Pointers(matrices) => matrices.array()?.cast_mut().cast(),
        };
        Ok(Operand {
            form: self.form,
            address,
            ld: int("leading dimension", self.shape.layout.ld)?,
            stride: stride(self.shape.stride)?,
        })
    }
}
