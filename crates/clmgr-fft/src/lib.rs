//! Batched complex and real FFT in single precision, of any length.
//!
//! Lengths 2<sup>a</sup> 3<sup>b</sup> 5<sup>c</sup> 7<sup>d</sup> are transformed as they are, others as a convolution.
//!
//! | way | when | how |
//! |---|---|---|
//! | rows | on a CPU, length a multiple of 8, 72 to 16384 | a work-item transforms one row at a time; vectors run along the row |
//! | columns | on a CPU, other lengths up to 4096 | a work-item transforms eight rows at once, one per vector lane |
//! | split | on a CPU, longer | the row as a matrix: columns, factors, transposition, columns |
//! | registers | on a GPU, powers of two from 128 on and other lengths of 375 to 4096, if they fit | work-groups hold rows in registers |
//! | local | on a GPU, other lengths, if a row fits into local memory | a work-group per row, or per few short rows |
//! | stages | on a GPU, longer, if there are two factors that work-groups can hold | the row as a matrix: columns in registers, twice |
//! | passes | all other lengths with the factors 2, 3, 5 and 7 | a launch per radix, in global memory |
//! | bluestein | all else | a convolution: two transforms of at least twice the length, with scratch memory between them |
//!
//! Neither direction is scaled: forward and then inverse gives `len` times the input. Twiddle
//! factors come from the host in double precision.
//!
//! ```
//! use clmgr::{C32, Context, Manager, ProgramCache, RegularBuffer};
//! use clmgr_fft::{Direction, Plan};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let context = Context::new(&Manager::load()?.devices().remove(0))?;
//! let queue = context.queue()?;
//! let plan = Plan::new(&context, &ProgramCache::in_memory(&context), 1000, 1)?;
//!
//! let mut data = RegularBuffer::new(&context, 1000)?;
//! data.write(&queue, &[C32::new(1.0, 0.0); 1000])?;
//! // SAFETY: the buffer holds the plan's 1000 numbers, and nothing else uses it.
//! unsafe { plan.enqueue(&queue, Direction::Forward, data.arg(), data.arg())? };
//! let mut spectrum = [C32::default(); 1000];
//! data.read(&queue, &mut spectrum)?;
//! assert!((spectrum[0].re - 1000.0).abs() < 1e-2 && spectrum[1].norm() < 1e-2);
//! # Ok(())
//! # }
//! ```
//!
//! [`Plan::builder`] has the options: short rows padded with zeros, windows, scales, strides and distances. They are part
//! of the kernels that read the input and write the output, and cost no pass over memory.
//!
//! # Real transforms
//!
//! | | input row | output row | direction |
//! |---|---|---|---|
//! | [`real_to_complex`](Builder::real_to_complex) | `len` × `f32` | `len / 2 + 1` × [`C32`](clmgr::C32) | [`Forward`](Direction::Forward) |
//! | [`complex_to_real`](Builder::complex_to_real) | `len / 2 + 1` × [`C32`](clmgr::C32) | `len` × `f32` | [`Inverse`](Direction::Inverse) |
//!
//! An even length takes the complex transform of half the length. From real to complex a further kernel completes the
//! spectrum in the output; from complex to real the first kernel reads each number of the spectrum twice instead. An odd
//! length takes the complex transform of that length, without a pass more. Input and output are different memory.
//!
//! # What it does not do
//!
//! It has no double precision. It launches on OpenCL queues alone; [`Plan::schedule`] gives its
//! launches to code that runs OpenCL kernels elsewhere, as `interop` does on HIP streams.

// The README's program is compiled and run like any other.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod builder;
mod chirp;
mod ends;
mod error;
mod factor;
mod memory;
mod plan;
mod recipe;
mod route;
mod schedule;
mod scratch;
mod source;
mod spec;
mod steps;
mod tables;
mod tile;
mod tuning;
mod way;

pub use builder::Builder;
pub use error::{Error, Result};
pub use plan::Plan;
pub use schedule::{Launch, Operand, Schedule};
pub use spec::{Kind, Layout, Number, Sample, Side};
pub use tuning::Tuning;
pub use way::Way;

/// The sign of the exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// exp(−2πi k n / len).
    Forward,
    /// exp(+2πi k n / len).
    Inverse,
}
