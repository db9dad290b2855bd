//! Named values, and the types of OpenCL and HIP as their headers declare them.

use interop::{Grade, Policy, Residency, Route};

use crate::call::one_of;
use crate::failure::Failure;

/// OpenCL's platform.
pub enum _cl_platform_id {}
/// OpenCL's device.
pub enum _cl_device_id {}
/// OpenCL's context.
pub enum _cl_context {}
/// OpenCL's command queue.
pub enum _cl_command_queue {}
/// OpenCL's memory object.
pub enum _cl_mem {}
/// OpenCL's event.
pub enum _cl_event {}
/// HIP's stream.
pub enum ihipStream_t {}

/// A way for both APIs to reach the same memory: one of HIPCL_ROUTE_...
pub type hipcl_route = i32;
/// The best route that works.
pub const HIPCL_ROUTE_AUTO: hipcl_route = 0;
/// Coarse-grain SVM of OpenCL: device memory, one address for both APIs.
pub const HIPCL_ROUTE_SVM_COARSE: hipcl_route = 1;
/// A plain cl_mem; HIP uses its device address.
pub const HIPCL_ROUTE_GPU_VA: hipcl_route = 2;
/// HIP memory whose descriptor OpenCL imports.
pub const HIPCL_ROUTE_EXTERNAL_FD: hipcl_route = 3;
/// OpenCL memory that HIP imports as a dma-buf.
pub const HIPCL_ROUTE_DMA_BUF: hipcl_route = 4;
/// HIP memory that OpenCL kernels get as a pointer.
pub const HIPCL_ROUTE_HIP_POINTER: hipcl_route = 5;
/// Host memory that both APIs reach.
pub const HIPCL_ROUTE_HOST_PINNED: hipcl_route = 6;
/// Fine-grain SVM: host memory on a discrete GPU. Only if named.
pub const HIPCL_ROUTE_SVM_FINE: hipcl_route = 7;
/// HIP managed memory. Only if named.
pub const HIPCL_ROUTE_MANAGED: hipcl_route = 8;
/// Two allocations, and a copy at each change of side. Only if named, or by the policy.
pub const HIPCL_ROUTE_STAGING: hipcl_route = 9;

/// What may be done where no direct route works: one of HIPCL_POLICY_...
pub type hipcl_policy = i32;
/// Never copy: an error instead.
pub const HIPCL_POLICY_DIRECT_ONLY: hipcl_policy = 0;
/// Copy if no direct route works between the two devices.
pub const HIPCL_POLICY_PREFER_DIRECT: hipcl_policy = 1;
/// As HIPCL_POLICY_PREFER_DIRECT, and also when every direct route fails at run time.
pub const HIPCL_POLICY_ALLOW_COPY: hipcl_policy = 2;

/// How work of one API is ordered after work of the other: one of HIPCL_GRADE_...
pub type hipcl_grade = i32;
/// HIPCL_GRADE_HOST if it was proven, else HIPCL_GRADE_CALLBACK.
pub const HIPCL_GRADE_AUTO: hipcl_grade = 0;
/// The calling thread waits.
pub const HIPCL_GRADE_HOST: hipcl_grade = 1;
/// Threads of the drivers hand over; the calling thread goes on.
pub const HIPCL_GRADE_CALLBACK: hipcl_grade = 2;
/// The device hands over. Experimental.
pub const HIPCL_GRADE_DEVICE: hipcl_grade = 3;

/// Where memory lies: one of HIPCL_RESIDENCY_...
pub type hipcl_residency = i32;
/// No API says.
pub const HIPCL_RESIDENCY_UNKNOWN: hipcl_residency = 0;
/// Device memory.
pub const HIPCL_RESIDENCY_VRAM: hipcl_residency = 1;
/// Host memory that the device reads over its link.
pub const HIPCL_RESIDENCY_HOST_PINNED: hipcl_residency = 2;
/// Managed memory, which moves.
pub const HIPCL_RESIDENCY_MANAGED: hipcl_residency = 3;

/// The form of a report: one of HIPCL_FORMAT_...
pub type hipcl_format = i32;
/// Lines to read.
pub const HIPCL_FORMAT_TEXT: hipcl_format = 0;
/// JSON.
pub const HIPCL_FORMAT_JSON: hipcl_format = 1;

const ROUTES: [(hipcl_route, Option<Route>); 10] = [
    (HIPCL_ROUTE_AUTO, None),
    (HIPCL_ROUTE_SVM_COARSE, Some(Route::SvmCoarse)),
    (HIPCL_ROUTE_GPU_VA, Some(Route::GpuVa)),
    (HIPCL_ROUTE_EXTERNAL_FD, Some(Route::ExternalFd)),
    (HIPCL_ROUTE_DMA_BUF, Some(Route::DmaBuf)),
    (HIPCL_ROUTE_HIP_POINTER, Some(Route::HipPointer)),
    (HIPCL_ROUTE_HOST_PINNED, Some(Route::HostPinned)),
    (HIPCL_ROUTE_SVM_FINE, Some(Route::SvmFine)),
    (HIPCL_ROUTE_MANAGED, Some(Route::Managed)),
    (HIPCL_ROUTE_STAGING, Some(Route::Staging)),
];

const GRADES: [(hipcl_grade, Option<Grade>); 4] = [
    (HIPCL_GRADE_AUTO, None),
    (HIPCL_GRADE_HOST, Some(Grade::Host)),
    (HIPCL_GRADE_CALLBACK, Some(Grade::Callback)),
    (HIPCL_GRADE_DEVICE, Some(Grade::Device)),
];

const POLICIES: [(hipcl_policy, Policy); 3] = [
    (HIPCL_POLICY_DIRECT_ONLY, Policy::DirectOnly),
    (HIPCL_POLICY_PREFER_DIRECT, Policy::PreferDirect),
    (HIPCL_POLICY_ALLOW_COPY, Policy::AllowCopy),
];

const FORMATS: [(hipcl_format, Format); 2] = [(HIPCL_FORMAT_TEXT, Format::Text), (HIPCL_FORMAT_JSON, Format::Json)];

/// The form of a report.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
}

pub(crate) fn route(value: hipcl_route, argument: &str) -> Result<Option<Route>, Failure> {
    one_of(value, &ROUTES, argument, "HIPCL_ROUTE_...")
}

pub(crate) fn grade(value: hipcl_grade, argument: &str) -> Result<Option<Grade>, Failure> {
    one_of(value, &GRADES, argument, "HIPCL_GRADE_...")
}

pub(crate) fn policy(value: hipcl_policy, argument: &str) -> Result<Policy, Failure> {
    one_of(value, &POLICIES, argument, "HIPCL_POLICY_...")
}

pub(crate) fn format(value: hipcl_format) -> Result<Format, Failure> {
    one_of(value, &FORMATS, "format", "HIPCL_FORMAT_...")
}

/// The number of a value in one of the lists; -1 if the list lacks it, which a test excludes.
fn number<T: PartialEq>(value: T, list: &[(i32, T)]) -> i32 {
    let found = list.iter().find(|(_, known)| *known == value);
    found.map_or(-1, |(number, _)| *number)
}

pub(crate) fn route_number(route: Route) -> hipcl_route {
    number(Some(route), &ROUTES)
}

pub(crate) fn grade_number(grade: Grade) -> hipcl_grade {
    number(Some(grade), &GRADES)
}

pub(crate) fn residency_number(residency: Residency) -> hipcl_residency {
    match residency {
        Residency::Vram => HIPCL_RESIDENCY_VRAM,
        Residency::HostPinned => HIPCL_RESIDENCY_HOST_PINNED,
        Residency::Managed => HIPCL_RESIDENCY_MANAGED,
        _ => HIPCL_RESIDENCY_UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_and_grade_has_a_number_and_no_two_share_one() {
        for known in Route::ALL {
            assert_eq!(route(route_number(known), "x").ok(), Some(Some(known)));
        }
        for known in Grade::ALL {
            assert_eq!(grade(grade_number(known), "x").ok(), Some(Some(known)));
        }
        assert!(route(-1, "x").is_err() && route(10, "x").is_err());
        assert!(policy(3, "x").is_err() && format(2).is_err() && grade(4, "x").is_err());
    }
}
