//! HIP memory as an OpenCL buffer object.

use interop::HostPtrProof;
use platform::Selection;
use serde::{Deserialize, Serialize};

use super::answer::tell;
use crate::error::one_line;

/// What a child found.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::doctor) struct HostPtrTried {
    /// The text of the proof.
    pub(in crate::doctor) proof: Option<String>,
    /// Why there is none.
    pub(in crate::doctor) reason: Option<String>,
    /// OpenCL does not reach HIP memory between these two devices at all.
    pub(in crate::doctor) impossible: bool,
}

impl HostPtrTried {
    /// Nothing to examine it with.
    pub(super) fn not_begun(reason: &str) -> Self {
        Self {
            proof: None,
            reason: Some(one_line(reason)),
            impossible: false,
        }
    }
}

pub(super) fn look(selection: &Selection) -> HostPtrTried {
    match HostPtrProof::seek(selection, &interop::Options::default(), tell) {
        Ok(proof) => HostPtrTried {
            proof: Some(proof.to_string()),
            reason: None,
            impossible: false,
        },
        Err(error) => HostPtrTried {
            proof: None,
            reason: Some(one_line(&error.to_string())),
            impossible: error.is_impossible(),
        },
    }
}
