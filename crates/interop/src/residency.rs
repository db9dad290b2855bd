use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

/// Where an allocation's bytes live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Residency {
    /// Device memory.
    Vram,
    /// Host memory that the device reads over its link.
    HostPinned,
    /// Managed memory, which moves.
    Managed,
    /// Nobody could tell.
    Unknown,
}

impl fmt::Display for Residency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vram => "vram",
            Self::HostPinned => "host-pinned",
            Self::Managed => "managed",
            Self::Unknown => "unknown",
        })
    }
}

/// The HSA runtime, kept initialised.
///
/// HIP has initialised it already on real hardware; its calls are counted, so that one more pair
/// is harmless, and without it the queries would depend on what HIP does inside itself.
pub(crate) struct Hsa(Arc<hsa_sys::Api>);

impl Hsa {
    /// `None` if the runtime lacks what is needed or does not start: residency is then unknown.
    pub(crate) fn start(api: Arc<hsa_sys::Api>) -> Option<Self> {
        let (init, _) = (api.hsa_init?, api.hsa_shut_down?);
        // SAFETY: takes no arguments, may be called at any time, balanced by the drop.
        let status = unsafe { init() };
        (status == hsa_sys::hsa_status_t::HSA_STATUS_SUCCESS).then_some(Self(api))
    }

    /// Asks which agent owns the memory at `ptr`.
    ///
    /// `hsa_amd_pointer_info` is the only query that tells device memory from host memory for
    /// allocations of either API; HIP's own pointer query answers "device" for both.
    pub(crate) fn residency(&self, ptr: *const c_void) -> Residency {
        self.owner(ptr)
            .map_or(Residency::Unknown, |owner| self.kind(owner))
    }

    fn owner(&self, ptr: *const c_void) -> Option<hsa_sys::hsa_agent_t> {
        let pointer_info = self.0.hsa_amd_pointer_info?;
        let mut info = hsa_sys::hsa_amd_pointer_info_t {
            size: u32::try_from(size_of::<hsa_sys::hsa_amd_pointer_info_t>()).ok()?,
            ..Default::default()
        };
        // SAFETY: `info` is a valid place with its size filled in; the accessible-agents list is
        // not asked for, so allocator and list may be null.
        let status = unsafe {
            pointer_info(
                ptr,
                &mut info,
                None,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        };
        let unknown = hsa_sys::hsa_amd_pointer_type_t::HSA_EXT_POINTER_TYPE_UNKNOWN;
        (status == hsa_sys::hsa_status_t::HSA_STATUS_SUCCESS && info.type_ != unknown)
            .then_some(info.agentOwner)
    }

    fn kind(&self, agent: hsa_sys::hsa_agent_t) -> Residency {
        let Some(agent_get_info) = self.0.hsa_agent_get_info else {
            return Residency::Unknown;
        };
        let mut kind = hsa_sys::hsa_device_type_t::HSA_DEVICE_TYPE_DSP;
        // SAFETY: HSA_AGENT_INFO_DEVICE writes one hsa_device_type_t.
        let status = unsafe {
            agent_get_info(
                agent,
                hsa_sys::hsa_agent_info_t::HSA_AGENT_INFO_DEVICE,
                std::ptr::from_mut(&mut kind).cast(),
            )
        };
        match kind {
            _ if status != hsa_sys::hsa_status_t::HSA_STATUS_SUCCESS => Residency::Unknown,
            hsa_sys::hsa_device_type_t::HSA_DEVICE_TYPE_GPU => Residency::Vram,
            hsa_sys::hsa_device_type_t::HSA_DEVICE_TYPE_CPU => Residency::HostPinned,
            _ => Residency::Unknown,
        }
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
