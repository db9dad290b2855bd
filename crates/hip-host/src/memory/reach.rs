//! Which device's kernels can reach which memory.
//!
//! | memory | reached by |
//! |---|---|
//! | of the host: pinned, registered, managed, OpenCL's fine-grain | every device |
//! | `hipMalloc`'s, imported or opened | its own device, and those that enabled access to it (`hipDeviceEnablePeerAccess`) |
//! | from a pool | as above, and those that `hipMemPoolSetAccess` names |
//! | mapped with `hipMemMap` | those that `hipMemSetAccess` names |
//! | OpenCL's device memory | its own device, and those that HSA lets reach it (`hsa_amd_agents_allow_access`) |
//!
//! On ROCm another device's kernel faults and ends the process. Copies and fills go by the memory's own device instead,
//! or through the host (hipamd/src/hip_memory.cpp, `ihipMemcpyCommand`), and so reach everything.

use super::registry::{Allocation, Kind};
use super::{pool, virtual_memory};
use crate::device::{Device, enabled_peer};

/// Whether a kernel on `device` may touch the memory.
pub(crate) fn reaches(device: &Device, allocation: &Allocation) -> bool {
    let own = allocation.device.ordinal == device.ordinal;
    let named = || allocation.is_allowed(device.ordinal);
    match allocation.kind {
        Kind::Pinned | Kind::Registered | Kind::Managed | Kind::ForeignHost => true,
        Kind::Virtual => virtual_memory::grants(allocation, device),
        Kind::ForeignVram => own || named(),
        Kind::Device | Kind::Imported | Kind::Opened => {
            own || enabled_peer(device, allocation.device) || pool::grants(allocation, device) || named()
        }
    }
}
