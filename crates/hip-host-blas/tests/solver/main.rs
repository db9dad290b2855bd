//! The rocSOLVER of the host platform, through its function table.

// Shared with the tests of rocBLAS, which use more of it.
#[allow(dead_code)]
#[path = "../blas/device.rs"]
mod device;
mod errors;
mod positive_definite;
