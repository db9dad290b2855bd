//! The platform on a real GPU. Without NVIDIA's driver every test skips, unless `HIPCL_PLATFORM=nvidia` promised one.

mod blas;
mod collectives;
mod common;
mod memory;
mod solver;
