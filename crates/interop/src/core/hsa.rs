//! The runtime below HIP and AMD's OpenCL: the owner of an address, and memory as a descriptor.

mod access;

use std::ffi::c_void;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;

use hsa_sys::{hsa_agent_info_t, hsa_agent_t, hsa_amd_agent_info_s, hsa_status_t};

use crate::Residency;

/// The HSA runtime, kept initialised.
///
/// HIP has initialised it already on real hardware; its calls are counted, so one more pair is harmless, and without it
/// the queries would depend on what HIP does inside itself.
pub(crate) struct Hsa(Arc<hsa_sys::Api>);

/// The allocation that an address lies in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Located {
    pub(crate) base: usize,
    pub(crate) bytes: usize,
    pub(crate) residency: Residency,
    /// Bus, device and function of the owner, and its domain where the runtime reports it.
    pub(crate) owner: Option<BusAddress>,
}

/// A place on the PCI bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BusAddress {
    domain: Option<u32>,
    bus: u32,
    device: u32,
    function: u32,
}

impl BusAddress {
    /// Whether the two may be one place; a domain that is not known is any.
    pub(crate) fn is(&self, other: &hip::PciAddress) -> bool {
        (self.bus, self.device, self.function) == (other.bus, other.device, other.function)
            && self.domain.is_none_or(|domain| domain == other.domain)
    }
}

impl std::fmt::Display for BusAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.domain {
            Some(domain) => write!(f, "{domain:04x}")?,
            None => f.write_str("????")?,
        }
        write!(f, ":{:02x}:{:02x}.{:x}", self.bus, self.device, self.function)
    }
}

/// Device memory as a descriptor.
pub(crate) struct DmaBuf {
    pub(crate) fd: OwnedFd,
    /// Where the memory begins: small allocations are cut from larger blocks, and the block is what
    /// is exported (runtime/hsa-runtime/core/inc/amd_memory_region.h).
    pub(crate) offset: usize,
}

const SUCCESS: hsa_status_t = hsa_status_t::HSA_STATUS_SUCCESS;

impl Hsa {
    /// `None` if the runtime lacks what is needed or does not start: residency is then unknown.
    pub(crate) fn start(api: Arc<hsa_sys::Api>) -> Option<Self> {
        let (init, _) = (api.hsa_init?, api.hsa_shut_down?);
        // SAFETY: takes no arguments, may be called at any time, balanced by the drop.
        let status = unsafe { init() };
        (status == SUCCESS).then_some(Self(api))
    }

    /// What the runtime knows about an address, which is not dereferenced.
    ///
    /// `hsa_amd_pointer_info` is the only query that distinguishes device memory from host memory
    /// for allocations of either API; HIP's own pointer query answers "device" for both.
    pub(crate) fn locate(&self, ptr: *const c_void) -> Option<Located> {
        let pointer_info = self.0.hsa_amd_pointer_info?;
        let mut info = hsa_sys::hsa_amd_pointer_info_t {
            size: u32::try_from(size_of::<hsa_sys::hsa_amd_pointer_info_t>()).ok()?,
            ..Default::default()
        };
        // SAFETY: `info` is a valid place with its size filled in; the accessible-agents list is
        // not asked for, so allocator and list may be null.
        let status = unsafe { pointer_info(ptr, &mut info, None, std::ptr::null_mut(), std::ptr::null_mut()) };
        let unknown = hsa_sys::hsa_amd_pointer_type_t::HSA_EXT_POINTER_TYPE_UNKNOWN;
        if status != SUCCESS || info.type_ == unknown {
            return None;
        }
        let residency = self.kind(info.agentOwner);
        Some(Located {
            base: info.agentBaseAddress.addr(),
            bytes: info.sizeInBytes,
            residency,
            owner: match residency {
                Residency::Vram => self.place(info.agentOwner),
                _ => None,
            },
        })
    }

    /// The memory's descriptor. Only memory that the device owns has one, and an address that was
    /// itself imported must not be exported: the runtime then follows a null region
    /// (runtime/hsa-runtime/core/runtime/runtime.cpp, `DmaBufExport`).
    pub(crate) fn export(&self, ptr: *const c_void, bytes: usize) -> Result<DmaBuf, String> {
        let (Some(export), Some(close)) = (
            self.0.hsa_amd_portable_export_dmabuf,
            self.0.hsa_amd_portable_close_dmabuf,
        ) else {
            return Err("hsa_amd_portable_export_dmabuf is missing; ROCm 5.6 introduced it".into());
        };
        let (mut fd, mut offset) = (-1, 0);
        // SAFETY: only looked up in the runtime's table of allocations; both places are valid.
        let status = unsafe { export(ptr, bytes, &mut fd, &mut offset) };
        if status != SUCCESS {
            return Err(format!(
                "hsa_amd_portable_export_dmabuf({ptr:p}, {bytes} bytes) returned {:#x}{}",
                status.0,
                remedy(status)
            ));
        }
        let Ok(offset) = usize::try_from(offset) else {
            // SAFETY: the descriptor that the export gave.
            let _ = unsafe { close(fd) };
            return Err(format!("the offset {offset} of the export exceeds the address space"));
        };
        // SAFETY: a new descriptor that is the caller's; `hsa_amd_portable_close_dmabuf` closes it
        // and does nothing else (runtime.cpp, `DmaBufClose`), so dropping it will do.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(DmaBuf { fd, offset })
    }

    fn kind(&self, agent: hsa_agent_t) -> Residency {
        let kind = self.ask(
            agent,
            hsa_agent_info_t::HSA_AGENT_INFO_DEVICE,
            hsa_sys::hsa_device_type_t::HSA_DEVICE_TYPE_DSP,
        );
        match kind {
            Some(hsa_sys::hsa_device_type_t::HSA_DEVICE_TYPE_GPU) => Residency::Vram,
            Some(hsa_sys::hsa_device_type_t::HSA_DEVICE_TYPE_CPU) => Residency::HostPinned,
            _ => Residency::Unknown,
        }
    }

    fn place(&self, agent: hsa_agent_t) -> Option<BusAddress> {
        let ask = |what| self.ask(agent, hsa_agent_info_t(what), 0_u32);
        // Bus, then five bits of device and three of function (hsa_ext_amd.h).
        let bdf = ask(hsa_amd_agent_info_s::HSA_AMD_AGENT_INFO_BDFID.0)?;
        Some(BusAddress {
            domain: ask(hsa_amd_agent_info_s::HSA_AMD_AGENT_INFO_DOMAIN.0),
            bus: bdf >> 8,
            device: bdf >> 3 & 0x1F,
            function: bdf & 7,
        })
    }

    /// An attribute whose type is that of `value`.
    fn ask<V: Copy>(&self, agent: hsa_agent_t, what: hsa_agent_info_t, mut value: V) -> Option<V> {
        let get = self.0.hsa_agent_get_info?;
        // SAFETY: the callers pass a value of the attribute's type.
        let status = unsafe { get(agent, what, (&raw mut value).cast()) };
        (status == SUCCESS).then_some(value)
    }
}

fn remedy(status: hsa_status_t) -> &'static str {
    match status {
        hsa_status_t::HSA_STATUS_ERROR_INVALID_AGENT => " (invalid agent): host memory has no dma-buf",
        hsa_status_t::HSA_STATUS_ERROR_INVALID_ALLOCATION => {
            " (invalid allocation): the runtime knows no such device memory"
        }
        hsa_status_t::HSA_STATUS_ERROR_OUT_OF_RESOURCES => {
            " (out of resources): the kernel needs CONFIG_DMABUF and CONFIG_PCI_P2PDMA"
        }
        _ => "",
    }
}

impl Drop for Hsa {
    fn drop(&mut self) {
        if let Some(shut_down) = self.0.hsa_shut_down {
            // SAFETY: takes no arguments; balances the call in `start`.
            let _ = unsafe { shut_down() };
        }
    }
}
