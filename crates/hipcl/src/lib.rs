//! The `hipcl` command as a library, so everything can be called and tested.
//!
//! | module | purpose |
//! |---|---|
//! | [`cli`] | the command line: what it accepts and what it returns to the shell |
//! | [`pipeline`] | one run of a job: open the bridge, run, verify, report, plot |
//! | [`jobs`] | the four jobs: `gps`, `capon`, `radar`, `note` |
//! | [`input`] | sample files |
//! | [`mod@bench`] | figures of this machine, each compared with its limit |
//! | [`doctor`] | examination of this machine: libraries, devices, routes |
//! | [`progress`] | what the command says while it works |
//! | [`chart`] | bars as SVG or PNG, and what all pictures have in common |
//! | [`report`], [`timing`], [`outcome`], [`plot`], [`output`] | the report as a table and as JSON, the stage timer, the result of a job, plots, output files |
//!
//! `doctor`, `bench` and the jobs are modules of one crate, because they are one program with one command line and one
//! way to write results, and nothing else uses them. They stay apart: `doctor` needs neither of the others, and the jobs
//! do not need `bench`; `cargo xtask tidy` checks it.

pub mod bench;
pub mod chart;
mod chosen;
pub mod cli;
mod columns;
pub mod doctor;
pub mod error;
pub mod input;
pub mod jobs;
mod npy;
pub mod outcome;
pub mod output;
pub mod pipeline;
pub mod plot;
pub mod progress;
pub mod report;
mod route;
pub mod timing;

pub use error::{Error, Result};

/// A complex sample as both APIs see it: two `f32`, real part first.
pub type C32 = num_complex::Complex<f32>;
/// A complex number of the double-precision references.
pub type C64 = num_complex::Complex<f64>;

// The README's program is compiled and run like any other.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
