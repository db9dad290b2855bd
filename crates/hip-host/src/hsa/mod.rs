//! The used part of HSA: the agents, and the owner of an address.
//!
//! Agent 1 is the host, agent 2 + n is HIP device n.

mod dma_buf;

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use hsa_sys::{
    hsa_agent_info_t, hsa_agent_t, hsa_amd_agent_info_s as AmdInfo, hsa_amd_memory_pool_global_flag_s as PoolFlag,
    hsa_amd_pointer_info_t, hsa_amd_pointer_type_t, hsa_device_type_t, hsa_status_t,
};

use crate::device::{self, Device};
use crate::frame::run as entry;
use crate::memory::registry::{self, Kind};

type Result<T = ()> = std::result::Result<T, hsa_status_t>;

const HOST: u64 = 1;
const FIRST_DEVICE: u64 = 2;

static USERS: AtomicU32 = AtomicU32::new(0);

/// All calls but `hsa_init` and `hsa_status_string` need an initialised runtime.
fn initialised() -> Result {
    if USERS.load(Ordering::Acquire) == 0 {
        Err(hsa_status_t::HSA_STATUS_ERROR_NOT_INITIALIZED)
    } else {
        Ok(())
    }
}

unsafe extern "C" fn init() -> hsa_status_t {
    entry("hsa_init", || {
        // Counted: every user calls it once (runtime/hsa-runtime/core/runtime/runtime.cpp, `Runtime::Acquire`).
        let counted = USERS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |users| users.checked_add(1));
        counted
            .map(|_| ())
            .map_err(|_| hsa_status_t::HSA_STATUS_ERROR_REFCOUNT_OVERFLOW)
    })
}

unsafe extern "C" fn shut_down() -> hsa_status_t {
    entry("hsa_shut_down", || {
        let counted = USERS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |users| users.checked_sub(1));
        counted
            .map(|_| ())
            .map_err(|_| hsa_status_t::HSA_STATUS_ERROR_NOT_INITIALIZED)
    })
}

unsafe extern "C" fn iterate_agents(
    callback: Option<unsafe extern "C" fn(hsa_agent_t, *mut c_void) -> hsa_status_t>,
    data: *mut c_void,
) -> hsa_status_t {
    entry("hsa_iterate_agents", || {
        initialised()?;
        let callback = callback.ok_or(hsa_status_t::HSA_STATUS_ERROR_INVALID_ARGUMENT)?;
        for handle in HOST..FIRST_DEVICE + device::all().len() as u64 {
            // SAFETY: the C caller promises a function that takes an agent and its own data pointer.
            let status = unsafe { callback(hsa_agent_t { handle }, data) };
            // Anything but success ends the walk and is what the walk returns.
            if status != hsa_status_t::HSA_STATUS_SUCCESS {
                return Err(status);
            }
        }
        Ok(())
    })
}

enum Agent {
    Host,
    Device(&'static Device),
}

fn find(agent: hsa_agent_t) -> Result<Agent> {
    if agent.handle == HOST {
        return Ok(Agent::Host);
    }
    let index = agent
        .handle
        .checked_sub(FIRST_DEVICE)
        .and_then(|index| usize::try_from(index).ok());
    index
        .and_then(|index| device::all().get(index))
        .map(Agent::Device)
        .ok_or(hsa_status_t::HSA_STATUS_ERROR_INVALID_AGENT)
}

fn agent_of(device: &Device) -> hsa_agent_t {
    hsa_agent_t {
        handle: FIRST_DEVICE + device.ordinal as u64,
    }
}

/// Fixed-size text, as HSA has it.
fn text<const N: usize>(value: &str) -> [u8; N] {
    let mut field = [0; N];
    let length = value.len().min(N - 1);
    field[..length].copy_from_slice(&value.as_bytes()[..length]);
    field
}

unsafe extern "C" fn agent_get_info(
    agent: hsa_agent_t,
    attribute: hsa_agent_info_t,
    value: *mut c_void,
) -> hsa_status_t {
    entry("hsa_agent_get_info", || {
        initialised()?;
        let found = find(agent)?;
        if value.is_null() {
            return Err(hsa_status_t::HSA_STATUS_ERROR_INVALID_ARGUMENT);
        }
        let (device, uuid, name) = match &found {
            Agent::Host => (None, "CPU-XX".to_owned(), "host processor".to_owned()),
            Agent::Device(device) => (
                Some(*device),
                format!("GPU-{}", String::from_utf8_lossy(&device.uuid())),
                device.name(),
            ),
        };
        let ordinal = device.map_or(0, |device| device.ordinal as u32);
        // SAFETY: the C caller promises room for the attribute's type, which HSA's documentation gives and each arm
        // writes; unaligned writes ask nothing more.
        unsafe {
            match attribute.0 {
                id if id == hsa_agent_info_t::HSA_AGENT_INFO_NAME.0 => {
                    // Without the features, which HIP appends to its own name.
                    let chip = device::architecture().split(':').next();
                    let short = if device.is_some() { chip } else { None }.unwrap_or("CPU");
                    value.cast::<[u8; 64]>().write_unaligned(text(short));
                }
                id if id == hsa_agent_info_t::HSA_AGENT_INFO_VENDOR_NAME.0 => {
                    value.cast::<[u8; 64]>().write_unaligned(text("hipcl"))
                }
                id if id == hsa_agent_info_t::HSA_AGENT_INFO_DEVICE.0 => {
                    let kind = if device.is_some() {
                        hsa_device_type_t::HSA_DEVICE_TYPE_GPU
                    } else {
                        hsa_device_type_t::HSA_DEVICE_TYPE_CPU
                    };
                    value.cast::<hsa_device_type_t>().write_unaligned(kind);
                }
                id if id == hsa_agent_info_t::HSA_AGENT_INFO_NODE.0
                    || id == AmdInfo::HSA_AMD_AGENT_INFO_DRIVER_NODE_ID.0 =>
                {
                    value
                        .cast::<u32>()
                        .write_unaligned(if device.is_some() { ordinal + 1 } else { 0 });
                }
                id if id == hsa_agent_info_t::HSA_AGENT_INFO_WAVEFRONT_SIZE.0 => {
                    value
                        .cast::<u32>()
                        .write_unaligned(if device.is_some() { device::WARP } else { 0 });
                }
                // Bus in the upper byte, device and function below; the host has none.
                id if id == AmdInfo::HSA_AMD_AGENT_INFO_BDFID.0 => value
                    .cast::<u32>()
                    .write_unaligned(if device.is_some() { ordinal << 8 } else { 0 }),
                id if id == AmdInfo::HSA_AMD_AGENT_INFO_DOMAIN.0 => {
                    value.cast::<u32>().write_unaligned(if device.is_some() {
                        u32::from(device::PCI_DOMAIN)
                    } else {
                        0
                    });
                }
                id if id == AmdInfo::HSA_AMD_AGENT_INFO_PRODUCT_NAME.0 => {
                    value.cast::<[u8; 64]>().write_unaligned(text(&name))
                }
                // At most "GPU-", sixteen digits and the terminator.
                id if id == AmdInfo::HSA_AMD_AGENT_INFO_UUID.0 => value.cast::<[u8; 21]>().write_unaligned(text(&uuid)),
                id if id == AmdInfo::HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT.0 => {
                    value.cast::<u32>().write_unaligned(crate::workers::width() as u32);
                }
                id if id == AmdInfo::HSA_AMD_AGENT_INFO_CHIP_ID.0 => value.cast::<u32>().write_unaligned(0),
                _ => return Err(hsa_status_t::HSA_STATUS_ERROR_INVALID_ARGUMENT),
            }
        }
        Ok(())
    })
}

type Allocator = Option<unsafe extern "C" fn(usize) -> *mut c_void>;

unsafe extern "C" fn pointer_info(
    ptr: *const c_void,
    info: *mut hsa_amd_pointer_info_t,
    alloc: Allocator,
    count: *mut u32,
    accessible: *mut *mut hsa_agent_t,
) -> hsa_status_t {
    entry("hsa_amd_pointer_info", || {
        initialised()?;
        if ptr.is_null() || info.is_null() {
            return Err(hsa_status_t::HSA_STATUS_ERROR_INVALID_ARGUMENT);
        }
        // SAFETY: not null; the C caller promises at least the size field, which it has set.
        let room = unsafe { std::ptr::addr_of!((*info).size).read_unaligned() } as usize;
        if room == 0 {
            return Err(hsa_status_t::HSA_STATUS_ERROR_INVALID_ARGUMENT);
        }
        let host = hsa_agent_t { handle: HOST };
        let mut answer = hsa_amd_pointer_info_t {
            size: size_of::<hsa_amd_pointer_info_t>() as u32,
            ..Default::default()
        };
        let mut agents = Vec::new();
        // Where the kernel has the SVM interface, ROCr's thunk registers memory by it and makes no object to tell of
        // (seen with ROCm 7.2.4 on an emulated GPU); elsewhere the memory is locked.
        let known = registry::find(ptr as usize).filter(|it| it.kind != Kind::Registered);
        match known {
            None => answer.type_ = hsa_amd_pointer_type_t::HSA_EXT_POINTER_TYPE_UNKNOWN,
            Some(allocation) => {
                let base = allocation.base as *mut c_void;
                let on_device = allocation.kind.is_device() || allocation.kind == Kind::ForeignVram;
                answer.type_ = hsa_amd_pointer_type_t::HSA_EXT_POINTER_TYPE_HSA;
                answer.agentBaseAddress = base;
                answer.hostBaseAddress = if on_device { std::ptr::null_mut() } else { base };
                answer.sizeInBytes = allocation.bytes;
                answer.agentOwner = if on_device { agent_of(allocation.device) } else { host };
                answer.global_flags = if on_device {
                    PoolFlag::HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED.0
                } else {
                    PoolFlag::HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED.0
                };
                if on_device {
                    agents.push(answer.agentOwner);
                    let others = device::all().iter().filter(|device| {
                        device.ordinal != allocation.device.ordinal && allocation.is_allowed(device.ordinal)
                    });
                    agents.extend(others.map(agent_of));
                } else {
                    agents.push(host);
                    agents.extend(device::all().iter().map(agent_of));
                }
            }
        }
        // SAFETY: the C caller promises `room` bytes at `info`; room for a count and a pointer, where those are not
        // null; and an allocator whose memory holds the bytes asked for.
        unsafe {
            std::ptr::copy_nonoverlapping(
                (&raw const answer).cast::<u8>(),
                info.cast::<u8>(),
                room.min(size_of_val(&answer)),
            );
            if let (Some(alloc), false, false) = (alloc, count.is_null(), accessible.is_null()) {
                let list = if agents.is_empty() {
                    std::ptr::null_mut()
                } else {
                    alloc(agents.len() * size_of::<hsa_agent_t>()).cast::<hsa_agent_t>()
                };
                if list.is_null() && !agents.is_empty() {
                    return Err(hsa_status_t::HSA_STATUS_ERROR_OUT_OF_RESOURCES);
                }
                if !agents.is_empty() {
                    std::ptr::copy_nonoverlapping(agents.as_ptr(), list, agents.len());
                }
                count.write_unaligned(agents.len() as u32);
                accessible.write_unaligned(list);
            }
        }
        Ok(())
    })
}

unsafe extern "C" fn status_string(status: hsa_status_t, out: *mut *const c_char) -> hsa_status_t {
    entry("hsa_status_string", || {
        let text = match status {
            hsa_status_t::HSA_STATUS_SUCCESS => c"HSA_STATUS_SUCCESS: The function has been executed successfully.",
            hsa_status_t::HSA_STATUS_INFO_BREAK => {
                c"HSA_STATUS_INFO_BREAK: A traversal has been ended by the application before its end."
            }
            hsa_status_t::HSA_STATUS_ERROR => c"HSA_STATUS_ERROR: A generic error has occurred.",
            hsa_status_t::HSA_STATUS_ERROR_INVALID_ARGUMENT => {
                c"HSA_STATUS_ERROR_INVALID_ARGUMENT: An argument does not satisfy the function's conditions."
            }
            hsa_status_t::HSA_STATUS_ERROR_INVALID_ALLOCATION => {
                c"HSA_STATUS_ERROR_INVALID_ALLOCATION: The requested allocation is not valid."
            }
            hsa_status_t::HSA_STATUS_ERROR_INVALID_AGENT => c"HSA_STATUS_ERROR_INVALID_AGENT: The agent is invalid.",
            hsa_status_t::HSA_STATUS_ERROR_OUT_OF_RESOURCES => {
                c"HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime could not allocate what it needs."
            }
            hsa_status_t::HSA_STATUS_ERROR_NOT_INITIALIZED => {
                c"HSA_STATUS_ERROR_NOT_INITIALIZED: A call was made before the runtime was initialised."
            }
            hsa_status_t::HSA_STATUS_ERROR_REFCOUNT_OVERFLOW => {
                c"HSA_STATUS_ERROR_REFCOUNT_OVERFLOW: The largest reference count has been reached."
            }
            _ => return Err(hsa_status_t::HSA_STATUS_ERROR_INVALID_ARGUMENT),
        };
        if out.is_null() {
            return Err(hsa_status_t::HSA_STATUS_ERROR_INVALID_ARGUMENT);
        }
        // SAFETY: not null; room for a pointer by the C caller's promise.
        unsafe { out.write_unaligned(text.as_ptr()) };
        Ok(())
    })
}

/// The table of the HSA functions that are built.
pub(crate) const fn api() -> hsa_sys::Api {
    hsa_sys::Api {
        hsa_init: Some(init),
        hsa_shut_down: Some(shut_down),
        hsa_iterate_agents: Some(iterate_agents),
        hsa_agent_get_info: Some(agent_get_info),
        hsa_amd_pointer_info: Some(pointer_info),
        hsa_amd_portable_export_dmabuf: Some(dma_buf::export),
        hsa_amd_portable_close_dmabuf: Some(dma_buf::close),
        hsa_amd_agents_allow_access: Some(dma_buf::allow_access),
        hsa_status_string: Some(status_string),
        ..hsa_sys::Api::EMPTY
    }
}
