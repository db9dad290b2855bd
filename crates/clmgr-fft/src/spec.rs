//! What a plan transforms. All checks of its options are here.

use std::fmt;
use std::sync::Arc;

use bytemuck::Pod;
use clmgr::C32;

use crate::Direction;
use crate::error::{Error, Result};

/// What a plan reads and what it writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// `len` complex numbers to `len` complex numbers, in both directions.
    #[default]
    Complex,
    /// `len` real numbers to the first half of their spectrum: `len / 2 + 1` complex numbers. Forward.
    RealToComplex,
    /// The first half of a spectrum, `len / 2 + 1` complex numbers, to `len` real numbers. Inverse.
    ComplexToReal,
}

/// A type of numbers, in single precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Number {
    /// `f32`.
    Real,
    /// [`C32`]: real part, imaginary part.
    Complex,
}

/// Where the numbers of a batch are: number `i` of row `b` is number `b * distance + i * stride` of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// From a number of a row to the next.
    pub stride: usize,
    /// From the first number of a row to the first one of the next row.
    pub distance: usize,
}

/// The input or the output of a plan: rows of `len` numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Side {
    /// The type of its numbers.
    pub number: Number,
    /// The numbers of a row.
    pub len: usize,
    /// Where they are.
    pub layout: Layout,
    /// The numbers from the first to the last one of the batch, gaps included: the memory holds at least as many.
    pub extent: usize,
}

/// What is asked for: the builder's options, not yet checked.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub len: usize,
    pub batch: usize,
    pub kind: Kind,
    pub input_len: Option<usize>,
    pub input: Option<Layout>,
    pub output: Option<Layout>,
    pub window: Option<Arc<[f32]>>,
    pub input_scale: f32,
    pub output_scale: f32,
}

/// The checked options of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub len: usize,
    pub batch: usize,
    pub kind: Kind,
    pub input: Side,
    pub output: Side,
    pub window: Option<Arc<[f32]>>,
    pub input_scale: f32,
    pub output_scale: f32,
}

impl Kind {
    /// The numbers of a whole input row, of a transform of this length.
    #[must_use]
    pub const fn input_len(self, len: usize) -> usize {
        match self {
            Self::Complex | Self::RealToComplex => len,
            Self::ComplexToReal => len / 2 + 1,
        }
    }

    /// The numbers of an output row.
    #[must_use]
    pub const fn output_len(self, len: usize) -> usize {
        match self {
            Self::Complex | Self::ComplexToReal => len,
            Self::RealToComplex => len / 2 + 1,
        }
    }

    /// The types of input and output.
    const fn numbers(self) -> (Number, Number) {
        match self {
            Self::Complex => (Number::Complex, Number::Complex),
            Self::RealToComplex => (Number::Real, Number::Complex),
            Self::ComplexToReal => (Number::Complex, Number::Real),
        }
    }
}

impl Number {
    /// The bytes of a number, of which its address is a multiple.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Real => size_of::<f32>(),
            Self::Complex => size_of::<C32>(),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Real => "real",
            Self::Complex => "complex",
        })
    }
}

/// A Rust type of a plan's numbers: [`f32`] or [`C32`].
pub trait Sample: Pod + sealed::Sealed {
    /// Its name at run time.
    const NUMBER: Number;
}

impl Sample for f32 {
    const NUMBER: Number = Number::Real;
}

impl Sample for C32 {
    const NUMBER: Number = Number::Complex;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for super::C32 {}
}

impl Layout {
    /// Rows one behind the other, each begins `distance` numbers after the one before.
    #[must_use]
    pub const fn rows(distance: usize) -> Self {
        Self { stride: 1, distance }
    }

    /// The columns of a matrix whose rows have `width` numbers: transforms along a column.
    #[must_use]
    pub const fn columns(width: usize) -> Self {
        Self {
            stride: width,
            distance: 1,
        }
    }
}

impl Side {
    fn new(number: Number, len: usize, layout: Option<Layout>, batch: usize, option: &'static str) -> Result<Self> {
        let layout = layout.unwrap_or(Layout::rows(len));
        if layout.stride == 0 || layout.distance == 0 {
            return Err(refused(
                option,
                "a stride or distance of 0 puts several numbers in one place; use at least 1".to_owned(),
            ));
        }
        let steps = |count: usize, by: usize| (count - 1).checked_mul(by);
        let extent = steps(batch, layout.distance)
            .zip(steps(len, layout.stride))
            .and_then(|(rows, row)| rows.checked_add(row)?.checked_add(1));
        let bytes = extent.and_then(|extent| extent.checked_mul(number.bytes()));
        match extent.zip(bytes) {
            Some((extent, bytes)) if isize::try_from(bytes).is_ok() => Ok(Self {
                number,
                len,
                layout,
                extent,
            }),
            _ => Err(too_large(
                "the data of an FFT",
                format!("{batch} x {len} {number} numbers"),
                isize::MAX as u64,
            )),
        }
    }

    /// The bytes from the first to the last number of the batch.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.extent * self.number.bytes()
    }

    /// Whether the rows are one behind the other without gaps.
    pub fn is_dense(&self, batch: usize) -> bool {
        (self.layout.stride == 1 || self.len == 1) && (self.layout.distance == self.len || batch == 1)
    }

    /// The rows of two numbers that are one, if there are such.
    fn shared(&self, batch: usize) -> Option<(usize, usize)> {
        let Layout { stride, distance } = self.layout;
        let common = gcd(stride, distance);
        let (rows, numbers) = (stride / common, distance / common);
        (rows < batch && numbers < self.len).then_some((0, rows))
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Spec {
    pub fn new(options: &Options) -> Result<Self> {
        let &Options { len, batch, kind, .. } = options;
        if len == 0 {
            return Err(zero("the length of an FFT"));
        }
        if batch == 0 {
            return Err(zero("the number of transforms"));
        }
        if u32::try_from(len).is_err() {
            return Err(too_large("the length of an FFT", len.to_string(), u32::MAX.into()));
        }
        let (reads, writes) = kind.numbers();
        let (most, result) = (kind.input_len(len), kind.output_len(len));
        let input_len = options.input_len.unwrap_or(most);
        if input_len == 0 {
            return Err(zero("the length of an input row"));
        }
        if input_len > most {
            return Err(refused(
                "input_len",
                format!(
                    "a row of {input_len} numbers is longer than the {most} that the transform takes; shorten the row or plan a longer transform"
                ),
            ));
        }
        let input = Side::new(reads, input_len, options.input, batch, "input")?;
        let output = Side::new(writes, result, options.output, batch, "output")?;
        if let Some((one, other)) = output.shared(batch) {
            let Layout { stride, distance } = output.layout;
            return Err(refused(
                "output",
                format!(
                    "with stride {stride} and distance {distance}, rows {one} and {other} of {result} numbers write to the same place; use a distance of at least {} or a stride of at least {}",
                    (result - 1).saturating_mul(stride).saturating_add(1),
                    (batch - 1).saturating_mul(distance).saturating_add(1),
                ),
            ));
        }
        if let Some(window) = &options.window {
            if window.len() != input_len {
                return Err(refused(
                    "window",
                    format!(
                        "it has {} factors, but an input row has {input_len} numbers; give one for each",
                        window.len()
                    ),
                ));
            }
            if let Some(at) = window.iter().position(|factor| !factor.is_finite()) {
                return Err(refused(
                    "window",
                    format!("factor {at} is {}; use finite factors", window[at]),
                ));
            }
        }
        for (option, scale) in [
            ("scale_input", options.input_scale),
            ("scale_output", options.output_scale),
        ] {
            if !scale.is_finite() {
                return Err(refused(option, format!("it is {scale}; use a finite factor")));
            }
        }
        Ok(Self {
            len,
            batch,
            kind,
            input,
            output,
            window: options.window.clone(),
            input_scale: options.input_scale,
            output_scale: options.output_scale,
        })
    }

    /// Whether a real transform's numbers can be paired.
    pub fn is_even(&self) -> bool {
        self.len.is_multiple_of(2)
    }

    /// The length of the complex transform that makes this one: real numbers of an even count are its complex numbers.
    pub fn transform(&self) -> usize {
        match self.kind {
            Kind::Complex => self.len,
            Kind::RealToComplex | Kind::ComplexToReal if self.is_even() => self.len / 2,
            Kind::RealToComplex | Kind::ComplexToReal => self.len,
        }
    }

    /// The numbers of an input row that the transform takes.
    pub fn most(&self) -> usize {
        self.kind.input_len(self.len)
    }

    /// Why the plan does not transform in this direction.
    pub fn wrong_direction(&self, direction: Direction) -> Option<&'static str> {
        match (self.kind, direction) {
            (Kind::RealToComplex, Direction::Inverse) => {
                Some("real to complex is a forward transform; plan complex to real for the inverse")
            }
            (Kind::ComplexToReal, Direction::Forward) => {
                Some("complex to real is an inverse transform; plan real to complex for the forward one")
            }
            _ => None,
        }
    }

    /// Why the plan does not transform in place.
    pub fn not_in_place(&self) -> Option<String> {
        let (from, to) = (self.input.layout, self.output.layout);
        if self.kind != Kind::Complex {
            return Some("input and output of a real transform must be different memory".to_owned());
        }
        let same = (from.stride == to.stride || self.len == 1) && (from.distance == to.distance || self.batch == 1);
        (!same).then(|| {
            format!(
                "in place, input and output need the same layout; the plan has strides {} and {}, distances {} and {}",
                from.stride, to.stride, from.distance, to.distance
            )
        })
    }
}

fn zero(what: &'static str) -> Error {
    clmgr::Error::Zero { what }.into()
}

pub(crate) fn too_large(what: &'static str, got: String, limit: u64) -> Error {
    clmgr::Error::TooLarge { what, got, limit }.into()
}

fn refused(option: &'static str, reason: String) -> Error {
    Error::Option { option, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against all pairs of numbers.
    #[test]
    fn rows_that_share_a_place_are_found_exactly() {
        for (stride, distance, len, batch) in
            (1..6).flat_map(|s| (1..9).flat_map(move |d| (1..5).flat_map(move |n| (1..5).map(move |b| (s, d, n, b)))))
        {
            let layout = Layout { stride, distance };
            let side = Side::new(Number::Complex, len, Some(layout), batch, "output").unwrap();
            let mut places: Vec<usize> = (0..batch)
                .flat_map(|b| (0..len).map(move |i| b * distance + i * stride))
                .collect();
            assert_eq!(places.iter().max(), Some(&(side.extent - 1)));
            places.sort_unstable();
            let distinct = places.windows(2).all(|pair| pair[0] != pair[1]);
            assert_eq!(side.shared(batch).is_none(), distinct, "{layout:?}, {batch} x {len}");
        }
    }
}
