//! Order among kernels that share only memory which OpenCL did not allocate.
//!
//! ROCm's OpenCL starts a dispatch without a barrier unless it uses memory that an earlier one in the queue uses too,
//! and it looks only at its own memory (clr: rocclr/device/rocm/rocvirtual.cpp, `MemoryDependency::validate` and
//! `processMemObjects`). Pointers that a kernel is told to use beside its arguments count as written, so an OpenCL
//! allocation among them brings the barrier back.

use std::sync::atomic::Ordering;

use super::{Arg, Object};
use crate::api::slot;
use crate::context::Context;
use crate::error::{Result, check};

/// Whether the platform would not order a kernel with these arguments.
pub(super) fn loses_order(context: &Context, args: &[Arg<'_>]) -> bool {
    let is_foreign =
        |arg: &Arg<'_>| matches!(arg, Arg::Svm(pointer) if context.registry().of_address(pointer.addr()).is_none());
    context.device().platform_version().contains("AMD-APP") && args.iter().any(is_foreign)
}

impl Object {
    /// Names the context's token as memory that the kernel writes; false if there is none. The
    /// caller holds the object's lock.
    pub(super) fn take_token(&self, context: &Context) -> Result<bool> {
        if self.has_token.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let Some(token) = context.order_token() else {
            return Ok(false);
        };
        let set = slot!(self.api, clSetKernelExecInfo)?;
        let list = [token.0];
        // SAFETY: the kernel is alive and locked; the list holds one pointer into shared virtual
        // memory of its context, and OpenCL copies it.
        let code = unsafe {
            set(
                self.raw.0,
                opencl_sys::CL_KERNEL_EXEC_INFO_SVM_PTRS,
                size_of_val(&list),
                list.as_ptr().cast(),
            )
        };
        check(code, || "clSetKernelExecInfo(1 pointer)".to_owned())?;
        self.has_token.store(true, Ordering::Relaxed);
        Ok(true)
    }
}
