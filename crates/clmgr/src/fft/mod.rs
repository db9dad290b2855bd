//! Batched complex FFT in single precision, of any length 2<sup>a</sup> 3<sup>b</sup> 5<sup>c</sup>.
//!
//! | way | when | how |
//! |---|---|---|
//! | rows | on a CPU, length a multiple of 8, 72 to 16384 | a work-item transforms one row at a time; vectors run along the row |
//! | columns | on a CPU, other lengths up to 4096 | a work-item transforms eight rows at once, one per vector lane |
//! | split | on a CPU, longer | the row as a matrix: columns, factors, transposition, columns |
//! | registers | on a GPU, powers of two from 128 on and other lengths of 375 to 4096, if they fit | work-groups hold rows in registers |
//! | local | on a GPU, other lengths, if a row fits into local memory | a work-group per row, or per few short rows |
//! | stages | on a GPU, longer, if there are two factors that work-groups can hold | the row as a matrix: columns in registers, twice |
//! | passes | all else | a launch per radix, in global memory |
//!
//! Neither direction is scaled: forward and then inverse gives `len` times the input. Twiddle
//! factors come from the host in double precision.

mod factor;
mod memory;
mod plan;
mod route;
mod schedule;
mod scratch;
mod source;
mod steps;
mod tables;
mod tile;
mod tuning;
mod way;

pub use plan::Plan;
pub use schedule::{Launch, Operand, Schedule};
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
