//! `cargo xtask setup`: provides what the demo and the tests need from the machine.
//!
//! Two things: a C++ compiler (the host platform compiles HIP kernels with it) and an OpenCL runtime with
//! a device. It searches for a runtime first; only without one is a CPU runtime put into `target/`, where `hipcl` and
//! the tests find it. Nothing is written outside of `target/`, and nothing needs root.

pub mod clfft;
mod compiler;
mod debian;
mod download;
mod index;
mod install;
mod opencl;
mod pip;
pub mod probe;
mod vulkan;
mod wheels;

use std::ffi::OsString;
use std::path::PathBuf;

pub use debian::download as download_packages;
pub use install::remove as remove_folder;
pub use vulkan::Software as SoftwareVulkan;

use crate::error::Result;
use crate::workspace::{Workspace, step};

/// What to do about OpenCL.
#[derive(Clone, Copy)]
enum Wish {
    /// Use an existing runtime; install only when there is none.
    Any,
    /// A runtime in `target/`, whatever the system has.
    Local,
    /// This runtime in `target/`.
    Named(&'static opencl::Source),
}

/// One of these at most.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub struct Options {
    /// Install a runtime even if the system has one
    #[arg(long)]
    force_local: bool,
    /// Install Mesa's software Vulkan driver into target/, for the tests of interop::vulkan
    #[arg(long)]
    vulkan: bool,
    /// Install clFFT into target/, for the examples with it
    #[arg(long)]
    clfft: bool,
    /// Install this runtime
    #[arg(long, value_name = "RUNTIME", value_parser = RUNTIMES)]
    with: Option<String>,
}

/// The names of the runtimes that can be installed.
pub const RUNTIMES: [&str; 2] = ["intel", "pocl"];

/// The task with its options.
pub fn main(workspace: &Workspace, options: &Options) -> Result<()> {
    let wish = match options {
        Options { vulkan: true, .. } => return vulkan::ensure(workspace),
        Options { clfft: true, .. } => return clfft::ensure(workspace),
        Options { with: Some(name), .. } => Wish::Named(opencl::source(name)?),
        Options { force_local: true, .. } => Wish::Local,
        _ => Wish::Any,
    };
    ensure(workspace, wish)
}

/// Finds or installs what is needed; a second call finds what the first one installed.
pub fn run(workspace: &Workspace) -> Result<()> {
    ensure(workspace, Wish::Any)
}

/// The driver of the named runtime, installed beside the one that programs find.
pub fn runtime(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    let source = opencl::source(name)?;
    step("set-up", || {
        let compiler = compiler::find(workspace)?;
        let machine = Machine { workspace, compiler };
        opencl::beside(&machine, source)
    })
}

fn ensure(workspace: &Workspace, wish: Wish) -> Result<()> {
    step("set-up", || {
        let machine = Machine {
            workspace,
            compiler: compiler::find(workspace)?,
        };
        opencl::ensure(&machine, wish)
    })
}

/// What an installation can build on.
struct Machine<'a> {
    workspace: &'a Workspace,
    compiler: OsString,
}
