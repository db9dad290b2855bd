//! What the calls work on: vectors, matrices and batches in some memory, and the scalars beside them.

mod addresses;
mod batch;
mod call;
mod factor;
mod matrix;
mod pointers;
mod triangular;
mod vector;

pub use batch::Batch;
pub(crate) use batch::BatchShape;
pub(crate) use call::{Call, Place, Taken};
pub use factor::{Factor, OnDevice};
pub(crate) use factor::{Fetch, Number};
pub use matrix::Matrix;
pub(crate) use pointers::TakenPointers;
pub use pointers::{PointerArray, Pointers};
pub use triangular::{Diag, Side, Triangle};
pub use vector::Vector;
