use super::call::{Call, Operand, Shape, Taken};
use crate::size::{long, size};
use crate::{Error, Result};

/// A vector in some memory: `n` elements, `inc` apart.
///
/// With a positive increment element i is at `i * inc`; with a negative one the vector runs backwards, as in BLAS:
/// element i is at `(n - 1 - i) * -inc`. Either way the vector's lowest element is the memory's first, or
/// [the one named](Self::at).
///
/// Memory converts into the vector of all its elements. As with a [`Matrix`](super::Matrix), the call takes the memory,
/// and an output is borrowed exclusively:
///
/// ```compile_fail,E0502
/// # use rocblas::{Handle, Result, Vector};
/// fn twice(blas: &Handle, buffer: &mut hip::DeviceBuffer<f32>) -> Result<()> {
///     let x = Vector::from(&*buffer);
///     let y = Vector::from(buffer);
///     blas.axpy(1.0, x, y)
/// }
/// ```
#[derive(Debug, Clone, Copy)]
#[doc(alias("incx", "incy"))]
pub struct Vector<M> {
    memory: M,
    first: usize,
    shape: VectorShape,
}

/// Length and increment of a vector.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VectorShape {
    /// `None` for all elements of the memory, until it is taken.
    n: Option<usize>,
    inc: isize,
}

impl<M> Vector<M> {
    /// `n` elements, `inc` apart (not 0). The memory needs `|inc| * (n - 1) + 1` elements, or none if `n` is 0; it may
    /// have more. What lies between the elements is not touched.
    #[must_use]
    pub fn new(memory: M, n: usize, inc: isize) -> Self {
        Self {
            memory,
            first: 0,
            shape: VectorShape { n: Some(n), inc },
        }
    }

    /// The same, from element `first` of the memory on.
    #[must_use]
    pub fn at(self, first: usize) -> Self {
        Self { first, ..self }
    }
}

impl<M> From<M> for Vector<M> {
    fn from(memory: M) -> Self {
        Self {
            memory,
            first: 0,
            shape: VectorShape { n: None, inc: 1 },
        }
    }
}

impl<M> Operand for Vector<M> {
    type Memory = M;
    type Shape = VectorShape;

    fn into_parts(self) -> (M, usize, VectorShape) {
        (self.memory, self.first, self.shape)
    }
}

impl VectorShape {
    fn n(self) -> usize {
        self.n.unwrap_or(0)
    }
}

impl Shape for VectorShape {
    fn checked(self, len: usize) -> Result<Self> {
        let n = self.n.unwrap_or(len);
        size("vector length", n)?;
        if self.inc == 0 {
            return Err(Error::Increment);
        }
        Ok(Self { n: Some(n), ..self })
    }

    fn span(self) -> usize {
        match self.n() {
            0 => 0,
            n => self.inc.unsigned_abs().saturating_mul(n - 1).saturating_add(1),
        }
    }

    fn check_distinct(self) -> Result<()> {
        Ok(())
    }

    fn describe(self) -> String {
        format!("a vector of {} elements with increment {}", self.n(), self.inc)
    }
}

impl<D> Taken<D, VectorShape> {
    /// Length and increment as the library takes them.
    pub(crate) fn sizes(&self) -> [i64; 2] {
        [long(self.shape.n()), self.shape.inc as i64]
    }

    /// The same with a positive increment, for routines that ignore the order: in BLAS they do nothing at all with a
    /// negative one.
    pub(crate) fn sizes_in_any_order(&self) -> [i64; 2] {
        // An increment without a positive counterpart only occurs with one element or none.
        let inc = (self.shape.inc as i64).checked_abs().unwrap_or(1);
        [long(self.shape.n()), inc]
    }

    pub(crate) fn check_len(&self, call: &Call<'_>, argument: &'static str, n: i64) -> Result<()> {
        let found = long(self.shape.n());
        if found == n {
            return Ok(());
        }
        Err(Error::Shape {
            call: call.name(),
            argument,
            found: format!("a vector of {found}"),
            expected: format!("one of {n}"),
        })
    }
}
