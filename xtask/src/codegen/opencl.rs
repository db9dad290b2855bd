//! OpenCL's functions: the pinned package with Khronos' headers and, with the parser, what is generated from it.

use std::fs;
use std::path::Path;

use xshell::{Shell, cmd};

use super::Result;
use super::archive::Archive;
use super::releases::Package;

#[cfg(feature = "codegen")]
mod table;
#[cfg(feature = "codegen")]
pub use table::generate;

/// Names this set of headers among the releases of ROCm.
pub const NAME: &str = "opencl";

/// Debian's stable suite, the one that also has the headers of ROCm 5.7.
const SUITE: &str = "trixie";

const PACKAGE: Package = Package {
    name: "opencl-c-headers",
    version: "3.0~2024.10.24-2",
    sha256: &["ccff8d4172284039730f510ef7bf928c0c1ef976848d98c30b1cffbd8c45e3c2"],
};

/// Fetches the headers, unless they are here already, and unpacks them below `work`.
pub fn unpack(shell: &Shell, work: &Path) -> Result<()> {
    let files = Archive::new(shell, work, SUITE).fetch(&[PACKAGE])?;
    let tree = work.join("headers").join(NAME);
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    fs::create_dir_all(&tree)?;
    for file in files {
        cmd!(shell, "dpkg-deb -x {file} {tree}").quiet().run()?;
    }
    Ok(())
}

/// Their `usr/include`.
#[cfg(feature = "codegen")]
fn folder(work: &Path) -> std::path::PathBuf {
    work.join("headers").join(NAME).join("usr/include")
}
