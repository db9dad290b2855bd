//! rocBLAS and rocSOLVER of the host platform against plain loops in double precision.

mod functions;
mod level1;
mod memory;
mod number;
