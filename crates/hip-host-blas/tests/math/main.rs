//! rocBLAS and rocSOLVER of the host platform against plain loops in double precision.

mod functions;
mod gemm_ex;
mod level1;
mod level2;
mod matrix;
mod memory;
mod number;
mod solver;
mod triangular;
