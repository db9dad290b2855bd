//! Semaphores that both APIs can use, where they exist.

use crate::core::Core;

/// Why no semaphore hands over here. ROCm's OpenCL has none in any release, and its HIP none on
/// Linux (rocclr/device/rocm/rocdevice.hpp, `importExtSemaphore`).
pub(super) fn why_not(core: &Core) -> &'static str {
    let has = |extension| core.context.device().has_extension(extension);
    match has("cl_khr_semaphore") && has("cl_khr_external_semaphore_opaque_fd") {
        true => "semaphores for both come from Vulkan: see Bridge::with_semaphores, with the feature `vulkan`",
        false => "the OpenCL device has no semaphores to share (cl_khr_external_semaphore_opaque_fd)",
    }
}
