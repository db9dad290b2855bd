//! The kernels that have handles.

use std::sync::Arc;

use hip_sys::{hipError_t, hipFunction_t};

use super::Image;
use super::abi::{Entry, Parameter};
use crate::error::Result;
use crate::handles::Handles;

static FUNCTIONS: Handles<Function> = Handles::new();

/// One kernel of a module.
pub(crate) struct Function {
    image: Arc<Image>,
    index: usize,
}

impl Function {
    pub(crate) fn entry(&self) -> &Entry {
        &self.image.entries()[self.index]
    }

    pub(crate) fn parameters(&self) -> &[Parameter] {
        let entry = self.entry();
        // SAFETY: the module's table states the count of its constant parameter list, which lives as long as the image.
        unsafe { std::slice::from_raw_parts(entry.parameters, entry.parameter_count as usize) }
    }
}

/// A handle for the kernel at `index` of `image`.
pub(crate) fn publish(image: Arc<Image>, index: usize) -> usize {
    FUNCTIONS.insert(Arc::new(Function { image, index }))
}

/// Ends a handle; what was looked up by it stays.
pub(crate) fn retire(token: usize) {
    FUNCTIONS.remove(token);
}

/// The kernel a handle names.
pub(crate) fn find(handle: hipFunction_t) -> Result<Arc<Function>> {
    FUNCTIONS.get(handle as usize).ok_or(hipError_t::hipErrorInvalidHandle)
}
