//! Other devices' access to one allocation.

use std::alloc::Layout;
use std::ffi::c_void;
use std::ptr::null_mut;

use hsa_sys::{hsa_agent_t, hsa_amd_pointer_info_t, hsa_status_t};
use parking_lot::Mutex;

use super::{BusAddress, Hsa, SUCCESS};
use crate::Residency;

/// The list of those with access is read, and written whole. It belongs to the runtime, which is the process's.
static LISTS: Mutex<()> = Mutex::new(());

impl Hsa {
    /// Lets kernels of the device at `peer` reach the allocation that `ptr` lies in, besides those that already may: a
    /// device that is not on the list loses its access (hsa_ext_amd.h, `hsa_amd_agents_allow_access`).
    pub(crate) fn allow(&self, ptr: *const c_void, peer: &hip::PciAddress) -> Result<(), String> {
        let Some(allow) = self.0.hsa_amd_agents_allow_access else {
            return Err("hsa_amd_agents_allow_access is missing".into());
        };
        let Some(located) = self.locate(ptr) else {
            return Err(format!("the HSA runtime knows no memory at {ptr:p}"));
        };
        let peer = self
            .gpu_at(peer)
            .ok_or_else(|| format!("the HSA runtime knows no GPU at {peer}"))?;
        let _alone = LISTS.lock();
        let mut agents = self.accessible(ptr)?;
        if !agents.iter().any(|agent| agent.handle == peer.handle) {
            agents.push(peer);
        }
        let base = std::ptr::with_exposed_provenance(located.base);
        let count = u32::try_from(agents.len()).unwrap_or(u32::MAX);
        // SAFETY: as many agents as are counted; the flags must be null; the address is looked up only.
        let status = unsafe { allow(count, agents.as_ptr(), std::ptr::null(), base) };
        if status == SUCCESS {
            return Ok(());
        }
        Err(format!(
            "hsa_amd_agents_allow_access({base:p}) returned {:#x}",
            status.0
        ))
    }

    /// Who may use the allocation already, its owner included.
    ///
    /// # Errors
    /// The runtime does not say. A list without them would take their access away.
    fn accessible(&self, ptr: *const c_void) -> Result<Vec<hsa_agent_t>, String> {
        let Some(pointer_info) = self.0.hsa_amd_pointer_info else {
            return Err("hsa_amd_pointer_info is missing".into());
        };
        let mut info = hsa_amd_pointer_info_t {
            size: u32::try_from(size_of::<hsa_amd_pointer_info_t>()).unwrap_or(0),
            ..Default::default()
        };
        let (mut count, mut list) = (0, null_mut::<hsa_agent_t>());
        // SAFETY: the places are valid, and the structure's size is filled in; the allocator gives what it is asked
        // for.
        let status = unsafe { pointer_info(ptr, &raw mut info, Some(allocate), &raw mut count, &raw mut list) };
        if status != SUCCESS || list.is_null() {
            return Err(format!(
                "hsa_amd_pointer_info({ptr:p}) answered {:#x} and does not say who has access",
                status.0
            ));
        }
        // SAFETY: the runtime wrote as many agents there, in memory of `allocate`, which is freed once, here.
        unsafe {
            let agents = std::slice::from_raw_parts(list, count as usize).to_vec();
            std::alloc::dealloc(list.cast::<u8>().sub(HEAD), layout_of(list));
            Ok(agents)
        }
    }

    fn gpu_at(&self, wanted: &hip::PciAddress) -> Option<hsa_agent_t> {
        let iterate = self.0.hsa_iterate_agents?;
        let mut agents: Vec<hsa_agent_t> = Vec::new();
        // SAFETY: `collect` gets the list that it expects, which outlives the call.
        let status = unsafe { iterate(Some(collect), (&raw mut agents).cast()) };
        if status != SUCCESS {
            return None;
        }
        agents.into_iter().find(|&agent| {
            self.kind(agent) == Residency::Vram && self.place(agent).is_some_and(|place: BusAddress| place.is(wanted))
        })
    }
}

unsafe extern "C" fn collect(agent: hsa_agent_t, list: *mut c_void) -> hsa_status_t {
    // SAFETY: `gpu_at` gave its list, which nothing else uses meanwhile.
    unsafe { &mut *list.cast::<Vec<hsa_agent_t>>() }.push(agent);
    SUCCESS
}

/// Before the memory that [`allocate`] returns: its size.
const HEAD: usize = 16;

unsafe extern "C" fn allocate(bytes: usize) -> *mut c_void {
    let whole = bytes.checked_add(HEAD);
    let layout = whole.and_then(|whole| Layout::from_size_align(whole, HEAD).ok());
    let Some(layout) = layout else {
        return null_mut();
    };
    // SAFETY: the layout is not empty; the size goes where there is room for it.
    unsafe {
        let start = std::alloc::alloc(layout);
        if start.is_null() {
            return null_mut();
        }
        start.cast::<usize>().write(layout.size());
        start.add(HEAD).cast()
    }
}

/// # Safety
/// `list` came from [`allocate`].
unsafe fn layout_of(list: *mut hsa_agent_t) -> Layout {
    // SAFETY: `allocate` wrote the size there, of a layout that is one.
    unsafe {
        let size = list.cast::<u8>().sub(HEAD).cast::<usize>().read();
        Layout::from_size_align_unchecked(size, HEAD)
    }
}
