//! What a machine can do, found by trying it.
//!
//! | module | what it finds |
//! |---|---|
//! | [`trial`] | whether one route, grade, carrier, allocation or stream works, for a process that may not survive it |
//! | [`host_ptr`] | whether OpenCL takes HIP's memory as a buffer object |
//! | [`allocation`] | where the memory of each allocating call lies, and who can use it |
//! | [`measure`] | what hand-offs and launches cost, and how fast memory and arithmetic are |
//! | [`warm_up`] | what first calls cost |

mod allocation;
mod host_ptr;
pub mod measure;
mod trial;
mod warm_up;

pub use allocation::{Allocation, UnknownAllocation, Whereabouts, Witness};
pub use host_ptr::HostPtrProof;
pub use trial::{AllocationTrial, CarrierTrial, Extent, Figures, GradeTrial, Step, StreamTrial, Trial};
