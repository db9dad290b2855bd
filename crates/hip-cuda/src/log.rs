//! What `HIP_CUDA_LOG=1` prints: why a call was refused, in CUDA's own words.

use std::fmt::Display;
use std::sync::OnceLock;

fn wanted() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    *WANTED.get_or_init(|| std::env::var_os("HIP_CUDA_LOG").is_some_and(|value| !value.is_empty() && value != "0"))
}

/// One line about a function of the NVIDIA libraries.
pub(crate) fn driver(function: &'static str, reason: impl Display) {
    if wanted() {
        eprintln!("hip-cuda: {function}: {reason}");
    }
}
