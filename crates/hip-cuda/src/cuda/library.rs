//! NVIDIA's libraries: found at run time, opened once, never closed.

use std::error::Error;
use std::ffi::CStr;
use std::path::PathBuf;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// A library with its file names, newest first.
pub(crate) struct Names {
    pub(crate) title: &'static str,
    pub(crate) files: &'static [&'static str],
}

/// The driver comes with the kernel module, so it has one name for all releases.
pub(crate) const DRIVER: Names = Names {
    title: "the CUDA driver",
    files: &["libcuda.so.1"],
};
pub(crate) const NVRTC: Names = Names {
    title: "NVRTC",
    files: &["libnvrtc.so.13", "libnvrtc.so.12"],
};
pub(crate) const CUBLAS: Names = Names {
    title: "cuBLAS",
    files: &["libcublas.so.13", "libcublas.so.12"],
};
/// One number behind the toolkit's: 12 belongs to CUDA 13.
pub(crate) const CUSOLVER: Names = Names {
    title: "cuSOLVER",
    files: &["libcusolver.so.12", "libcusolver.so.11"],
};
/// As for cuSOLVER. No table slot uses it; it serves for comparison in measurements.
pub(crate) const CUFFT: Names = Names {
    title: "cuFFT",
    files: &["libcufft.so.12", "libcufft.so.11"],
};

/// A library that stays open for the rest of the process.
pub(crate) struct Opened {
    library: Library,
    /// The name or path that it was opened by.
    pub(crate) path: PathBuf,
}

impl Opened {
    /// Tries every name in the linker's own search path, then in the toolkit's usual folders.
    ///
    /// The error names every place that was tried.
    pub(crate) fn find(names: &Names) -> Result<Self, String> {
        let bare = names.files.iter().map(PathBuf::from);
        let mut candidates: Vec<PathBuf> = Vec::new();
        let given = variable_folders();
        candidates.extend(in_folders(&given, names));
        candidates.extend(bare);
        candidates.extend(in_folders(&toolkit_folders(), names));
        let mut tried = Vec::new();
        for path in candidates {
            // SAFETY: NVIDIA's libraries run initialisers that any program linked with them runs too.
            match unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) } {
                Ok(library) => return Ok(Self { library, path }),
                Err(error) => {
                    // The linker's own words are in the source. That there is no such file is said by the list itself.
                    let words = error.source().map_or_else(String::new, ToString::to_string);
                    let path = path.display();
                    tried.push(if words.is_empty() || words.contains("No such file") {
                        path.to_string()
                    } else {
                        format!("{path} ({})", words.replace('\n', " "))
                    });
                }
            }
        }
        Err(format!(
            "{} was not found; tried {}; install it, or set HIPCL_CUDA_LIBRARIES to its folder",
            names.title,
            tried.join(", ")
        ))
    }

    /// The address of a symbol.
    pub(crate) fn symbol(&self, name: &CStr) -> Option<*mut std::ffi::c_void> {
        // SAFETY: only the address is read; the code that gives it a type answers for the type.
        let found = unsafe { self.library.get::<*mut std::ffi::c_void>(name.to_bytes_with_nul()) };
        found.ok().map(|symbol| symbol.into_raw().cast())
    }
}

fn in_folders<'a>(folders: &'a [PathBuf], names: &'a Names) -> impl Iterator<Item = PathBuf> + use<'a> {
    folders
        .iter()
        .flat_map(|folder| names.files.iter().map(move |file| folder.join(file)))
}

/// The folders that the user names, in order.
fn variable_folders() -> Vec<PathBuf> {
    std::env::var_os("HIPCL_CUDA_LIBRARIES")
        .map(|list| std::env::split_paths(&list).collect())
        .unwrap_or_default()
}

/// Where toolkits put their libraries.
fn toolkit_folders() -> Vec<PathBuf> {
    let roots = ["CUDA_HOME", "CUDA_PATH"]
        .into_iter()
        .filter_map(std::env::var_os)
        .map(PathBuf::from)
        .chain(["/usr/local/cuda", "/opt/cuda"].map(PathBuf::from));
    roots
        .flat_map(|root| ["lib64", "targets/x86_64-linux/lib", "lib"].map(|folder| root.join(folder)))
        .filter(|folder| folder.is_dir())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_nowhere_is_an_error_with_every_place_and_a_remedy() {
        let names = Names {
            title: "the test's library",
            files: &["libhipcl-no-such-thing.so.2", "libhipcl-no-such-thing.so.1"],
        };
        let error = Opened::find(&names).err().expect("there is none");
        for part in ["the test's library", "so.2", "so.1", "HIPCL_CUDA_LIBRARIES"] {
            assert!(error.contains(part), "{error}");
        }
        assert!(!error.contains('\n'), "{error}");
    }
}
