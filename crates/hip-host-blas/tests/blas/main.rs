//! The rocBLAS of the host platform, through its function table.

mod device;
mod errors;
mod gemm;
mod handle;
mod syrk;
