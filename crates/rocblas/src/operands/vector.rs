use hip::{DeviceSlice, DeviceSliceMut, Stream};

use crate::size::{long, size};
use crate::{Error, Result};

/// A vector in device memory, to be read: `n` elements, `inc` apart.
///
/// With a positive increment element i is at `i * inc`; with a negative one the vector runs backwards, as in BLAS:
/// element i is at `(n - 1 - i) * -inc`. Either way the slice starts with the vector's lowest element.
///
/// A slice converts into the vector of all its elements.
#[derive(Debug)]
#[doc(alias("incx", "incy"))]
pub struct Vector<'a, T> {
    pub(crate) data: DeviceSlice<'a, T>,
    shape: Shape,
}

/// A vector in device memory, to be read and written: `n` elements, `inc` apart. See [`Vector`].
///
/// An output is borrowed exclusively, so it cannot be an input too:
///
/// ```compile_fail,E0502
/// # use rocblas::{Handle, Result};
/// fn twice(blas: &Handle, buffer: &mut hip::DeviceBuffer<f32>, stream: &hip::Stream) -> Result<()> {
///     let x = buffer.on(stream)?;
///     let y = buffer.on_mut(stream)?;
///     blas.axpy(1.0, x.into(), y.into())
/// }
/// ```
#[derive(Debug)]
pub struct VectorMut<'a, T> {
    pub(crate) data: DeviceSliceMut<'a, T>,
    shape: Shape,
}

/// Length and increment that were checked: both fit 64 bits, and the increment is not 0.
#[derive(Debug, Clone, Copy)]
struct Shape {
    n: usize,
    inc: isize,
}

impl<T> Clone for Vector<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Vector<'_, T> {}

impl Shape {
    fn new(n: usize, inc: isize, len: usize) -> Result<Self> {
        size("vector length", n)?;
        if inc == 0 {
            return Err(Error::Increment);
        }
        let needed = match n {
            0 => 0,
            // `usize::MAX` is more than a slice can have.
            n => inc.unsigned_abs().saturating_mul(n - 1).saturating_add(1),
        };
        if needed > len {
            return Err(Error::TooShort {
                what: format!("a vector of {n} elements with increment {inc}"),
                needed,
                len,
            });
        }
        Ok(Self { n, inc })
    }
}

impl<'a, T> Vector<'a, T> {
    /// `n` elements, `inc` apart. The slice needs `|inc| * (n - 1) + 1` elements, or none if `n` is 0; it may have
    /// more.
    ///
    /// # Errors
    ///
    /// The increment is 0, the slice is too short, or a size does not fit 64 bits.
    pub fn new(data: DeviceSlice<'a, T>, n: usize, inc: isize) -> Result<Self> {
        let shape = Shape::new(n, inc, data.len())?;
        Ok(Self { data, shape })
    }
}

impl<'a, T> VectorMut<'a, T> {
    /// `n` elements, `inc` apart. The slice needs `|inc| * (n - 1) + 1` elements, or none if `n` is 0; it may have
    /// more. What lies between the elements is not touched.
    ///
    /// # Errors
    ///
    /// The increment is 0, the slice is too short, or a size does not fit 64 bits.
    pub fn new(data: DeviceSliceMut<'a, T>, n: usize, inc: isize) -> Result<Self> {
        let shape = Shape::new(n, inc, data.len())?;
        Ok(Self { data, shape })
    }

    /// The same vector to read, for as long as this one is not used otherwise.
    #[must_use]
    pub fn as_vector(&self) -> Vector<'_, T> {
        Vector {
            data: self.data.as_slice(),
            shape: self.shape,
        }
    }

    /// The same vector for a shorter time, to pass on without losing this one.
    #[must_use]
    pub fn reborrow(&mut self) -> VectorMut<'_, T> {
        VectorMut {
            data: self.data.reborrow(),
            shape: self.shape,
        }
    }
}

/// The getters of both kinds of vector.
macro_rules! describe {
    ($vector:ident from $slice:ident) => {
        impl<T> $vector<'_, T> {
            /// Number of elements.
            #[must_use]
            pub fn len(&self) -> usize {
                self.shape.n
            }

            /// Whether there are no elements.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.shape.n == 0
            }

            /// Elements of the slice from one element to the next; negative if the vector runs backwards.
            #[must_use]
            pub fn inc(&self) -> isize {
                self.shape.inc
            }

            pub(crate) fn stream(&self) -> &Stream {
                self.data.stream()
            }

            /// Length and increment as the library takes them.
            pub(crate) fn shape(&self) -> [i64; 2] {
                [long(self.shape.n), self.shape.inc as i64]
            }

            /// The same with a positive increment, for routines that ignore the order: in BLAS they do nothing at all
            /// with a negative one.
            pub(crate) fn shape_in_any_order(&self) -> [i64; 2] {
                // An increment without a positive counterpart only occurs with one element or none.
                let inc = (self.shape.inc as i64).checked_abs().unwrap_or(1);
                [long(self.shape.n), inc]
            }

            pub(crate) fn check_len(&self, call: &'static str, argument: &'static str, n: usize) -> Result<()> {
                if self.shape.n == n {
                    return Ok(());
                }
                Err(Error::Shape {
                    call,
                    argument,
                    found: format!("a vector of {}", self.shape.n),
                    expected: format!("one of {n}"),
                })
            }
        }

        impl<'a, T> From<$slice<'a, T>> for $vector<'a, T> {
            fn from(data: $slice<'a, T>) -> Self {
                let shape = Shape {
                    n: data.len(),
                    inc: 1,
                };
                Self { data, shape }
            }
        }
    };
}
describe!(Vector from DeviceSlice);
describe!(VectorMut from DeviceSliceMut);
