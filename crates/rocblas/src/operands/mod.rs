//! What the calls work on: vectors, matrices and batches in device memory, and the scalars beside them.

mod batch;
mod factor;
mod matrix;
mod pointer_array;
mod pointer_batch;
mod triangular;
mod vector;

pub use batch::{Batch, BatchMut};
pub use factor::Factor;
pub(crate) use factor::{Fetch, check_alpha, check_pair};
pub use matrix::{Matrix, MatrixMut};
pub use pointer_array::PointerArray;
pub use pointer_batch::{PointerBatch, PointerBatchMut};
pub use triangular::{Diag, Side, Triangle};
pub use vector::{Vector, VectorMut};
