//! What a program would do without a launch: run constructors and destructors of its module, or write where its assembly
//! says when it is linked in the process.
//!
//! OpenCL C has neither, but drivers whose compiler is Clang take the attributes. Intel's CPU driver and ROCm run a
//! constructor when the first kernel is created; ROCm runs a destructor when the program is released. A launch is
//! `unsafe` because its author answers for the kernel. This code has no such author, so a build refuses it.

use super::Program;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::pocl;

/// Names of what a binary runs unlaunched: LLVM's tables, the sections that they become, and the kernels that AMD's
/// compiler makes of them. No identifier of OpenCL C contains a dot, so that only a string can be mistaken for one.
const MARKS: [&str; 9] = [
    "llvm.global_ctors",
    "llvm.global_dtors",
    ".preinit_array",
    ".init_array",
    ".fini_array",
    ".ctors",
    ".dtors",
    "amdgcn.device.init",
    "amdgcn.device.fini",
];

/// The platform of Intel's CPU driver.
pub(crate) const INTEL: &str = "Intel(R) OpenCL";

/// Intel's CPU driver links in the process. It takes the places that assembly names for relocations unchecked, and reads
/// some sections, such as that of unwind tables, by lengths in them: a build would write or read anywhere.
fn links_in_the_process(device: &Device) -> bool {
    device.platform_name() == INTEL
}

/// What stands before each source. Clang refuses a poisoned word also where a macro of the source makes it, but not in
/// the text of a module that a source builds.
pub(crate) fn before(device: &Device) -> &'static str {
    match links_in_the_process(device) {
        true => "#pragma GCC poison asm __asm __asm__ section __section__ module\n#line 1\n",
        false => "",
    }
}

/// Whether options bring in what [`before`] does not see, since it comes before that: a macro for a poisoned word, or a
/// file.
pub(super) fn go_before(device: &Device, options: &str) -> bool {
    // The driver may split quoted and escaped words in another way: no folder is exempt where there are any.
    let is_plain = !options.contains(['"', '\'', '\\']);
    let unquoted = options.replace(['"', '\'', '\\'], "");
    let brings = |word: &str| {
        let is_folder = is_plain && (word.starts_with("-I") || word.starts_with('/'));
        let is_file = word.starts_with("-include") || word.starts_with("-imacros");
        is_file || (!is_folder && ["asm", "section"].iter().any(|poisoned| word.contains(poisoned)))
    };
    links_in_the_process(device) && unquoted.split_whitespace().any(brings)
}

/// # Errors
/// [`Error::Unlaunched`], or that the driver does not tell the program's code.
pub(super) fn look(program: &Program) -> Result<()> {
    // PoCL tells no code, and opens a kernel's at its first launch, whose author answers for it.
    if pocl::drives(program.context().device()) {
        return Ok(());
    }
    refuse(&program.binary()?)
}

/// # Errors
/// [`Error::Unlaunched`].
pub(crate) fn refuse(binary: &[u8]) -> Result<()> {
    match mark(binary) {
        Some(mark) => Err(Error::Unlaunched { mark }),
        None => Ok(()),
    }
}

fn mark(binary: &[u8]) -> Option<&'static str> {
    MARKS.into_iter().find(|mark| contains(binary, mark.as_bytes()))
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_wherever_it_stands() {
        assert_eq!(mark(b""), None);
        assert_eq!(mark(b".init_arra"), None);
        assert_eq!(mark(b"\x7fELF constructors, .init"), None);
        for known in MARKS {
            for text in [format!("{known}\0.text"), format!("\0.text\0{known}"), known.to_owned()] {
                assert!(mark(text.as_bytes()).is_some(), "{text:?}");
            }
        }
    }
}
