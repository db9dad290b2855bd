//! Memory that belongs to a graph: nodes that allocate it, and nodes that release it.
//!
//! A node's address is known when the node is made, so others can use it (hipamd/src/hip_graph.cpp,
//! `hipGraphAddMemAllocNode`). The memory is there from then on, as on ROCm without virtual memory in pools, until
//! neither the graph nor anything made ready from it is left. What a launch allocated and nothing released is the
//! program's to free, and outlives the graph; until it is freed the graph cannot be launched again
//! (hipamd/src/hip_graph_internal.cpp, `GraphExec::Run`).

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use hip_sys::{
    hipDeviceptr_t, hipError_t, hipGraph_t, hipGraphMemAttributeType as Attribute, hipGraphNode_t, hipMemAccessDesc,
    hipMemAllocNodeParams, hipMemAllocationType,
};
use parking_lot::Mutex;

use super::build::add;
use super::nodes::Node;
use super::operation::Operation;
use crate::error::{Result, entry, store};
use crate::memory::registry::{self, Allocation, Kind};
use crate::memory::{Pool, pool_of_location};
use crate::work::Task;
use crate::{device, log, stream};

const INVALID: hipError_t = hipError_t::hipErrorInvalidValue;

/// What a node allocates.
pub(crate) struct GraphMemory {
    base: usize,
    allocation: Weak<Allocation>,
    /// As the node was described; the list of access is ours.
    params: Params,
    /// Allocated by a launch and not released since, as launches are queued.
    live: AtomicBool,
}

struct Params {
    given: hipMemAllocNodeParams,
    access: Vec<hipMemAccessDesc>,
}

// SAFETY: the pointers in the description are null or to the list beside it, which is not written.
unsafe impl Send for Params {}
// SAFETY: as above.
unsafe impl Sync for Params {}

/// By first address.
static ALL: LazyLock<Mutex<HashMap<usize, Weak<GraphMemory>>>> = LazyLock::new(Mutex::default);

fn find(base: usize) -> Option<Arc<GraphMemory>> {
    ALL.lock().get(&base)?.upgrade()
}

impl GraphMemory {
    /// Takes memory from a pool.
    pub(crate) fn new(
        call: &'static str,
        pool: &Arc<Pool>,
        given: hipMemAllocNodeParams,
        access: Vec<hipMemAccessDesc>,
    ) -> Result<Arc<Self>> {
        let mut ptr = std::ptr::null_mut();
        pool.allocate(call, &mut ptr, given.bytesize)?;
        let base = ptr as usize;
        let allocation = registry::find(base).ok_or(hipError_t::hipErrorOutOfMemory)?;
        let devices = access
            .iter()
            .filter(|desc| desc.flags.0 != 0)
            .fold(0, |all, desc| all | 1u64 << desc.location.id);
        allocation.allow(devices);
        let given = hipMemAllocNodeParams { dptr: ptr, ..given };
        let memory = Arc::new(Self {
            base,
            allocation: Arc::downgrade(&allocation),
            params: Params { given, access },
            live: AtomicBool::new(false),
        });
        ALL.lock().insert(base, Arc::downgrade(&memory));
        Ok(memory)
    }

    pub(crate) fn base(&self) -> usize {
        self.base
    }

    /// The memory, unless the device was reset since.
    fn allocation(&self) -> Result<Arc<Allocation>> {
        let allocation = self.allocation.upgrade().ok_or(INVALID)?;
        let there = registry::find(self.base).ok_or(INVALID)?;
        Arc::ptr_eq(&there, &allocation).then_some(allocation).ok_or(INVALID)
    }

    pub(super) fn check(&self) -> Result {
        self.allocation().map(|_| ())
    }

    pub(super) fn is_live(&self) -> bool {
        self.live.load(Ordering::Acquire)
    }

    /// Releases it as a launch with `hipGraphInstantiateFlagAutoFreeOnLaunch` does before it allocates again.
    pub(super) fn release(&self) -> bool {
        let was_live = self.live.swap(false, Ordering::AcqRel);
        if was_live {
            self.account().remove(self.params.given.bytesize);
        }
        was_live
    }

    /// Of the device on which the memory was requested.
    fn account(&self) -> &'static Account {
        let ordinal = self.params.given.poolProps.location.id;
        &accounts()[usize::try_from(ordinal).unwrap_or(0)]
    }

    /// The work of the allocating node: what was there before is not to be relied on.
    pub(super) fn allocate(&self) -> Result<Task> {
        let allocation = self.allocation()?;
        if !self.live.swap(true, Ordering::AcqRel) {
            self.account().add(self.params.given.bytesize);
        }
        Ok(Arc::new(move || {
            allocation.poison();
            Ok(())
        }))
    }
}

impl Drop for GraphMemory {
    fn drop(&mut self) {
        let mut all = ALL.lock();
        // A later one may have the address.
        if all.get(&self.base).is_some_and(|there| there.strong_count() == 0) {
            all.remove(&self.base);
        }
        drop(all);
        // Memory that a launch left is the program's from here on.
        if self.release() {
            return;
        }
        if let Ok(allocation) = self.allocation() {
            stream::drain_device(allocation.device);
            registry::remove(self.base);
        }
    }
}

/// The memory of graphs that launches allocated and nothing released, and the most there was.
#[derive(Default)]
struct Account {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Account {
    fn add(&self, bytes: usize) {
        let now = self.now.fetch_add(bytes, Ordering::AcqRel) + bytes;
        self.most.fetch_max(now, Ordering::AcqRel);
    }

    fn remove(&self, bytes: usize) {
        self.now.fetch_sub(bytes, Ordering::AcqRel);
    }
}

/// By device.
fn accounts() -> &'static [Account] {
    static ALL: LazyLock<Vec<Account>> = LazyLock::new(|| device::all().iter().map(|_| Account::default()).collect());
    &ALL
}

fn account_of(ordinal: c_int) -> Result<&'static Account> {
    Ok(&accounts()[device::by_ordinal(ordinal)?.ordinal])
}

pub(crate) unsafe extern "C" fn device_get_graph_mem_attribute(
    ordinal: c_int,
    attribute: Attribute,
    out: *mut c_void,
) -> hipError_t {
    entry("hipDeviceGetGraphMemAttribute", || {
        let account = account_of(ordinal)?;
        // Nothing is set aside, so what is reserved is what is used.
        let value = match attribute {
            Attribute::hipGraphMemAttrUsedMemCurrent | Attribute::hipGraphMemAttrReservedMemCurrent => &account.now,
            Attribute::hipGraphMemAttrUsedMemHigh | Attribute::hipGraphMemAttrReservedMemHigh => &account.most,
            _ => return Err(INVALID),
        };
        // SAFETY: null is refused by `store`; otherwise room for a 64-bit number by the C caller's promise.
        unsafe { store(out.cast(), value.load(Ordering::Acquire) as u64) }
    })
}

pub(crate) unsafe extern "C" fn device_set_graph_mem_attribute(
    ordinal: c_int,
    attribute: Attribute,
    value: *mut c_void,
) -> hipError_t {
    entry("hipDeviceSetGraphMemAttribute", || {
        let account = account_of(ordinal)?;
        let is_mark = matches!(
            attribute,
            Attribute::hipGraphMemAttrUsedMemHigh | Attribute::hipGraphMemAttrReservedMemHigh
        );
        // SAFETY: null is refused first; otherwise a 64-bit number by the C caller's promise.
        if value.is_null() || !is_mark || unsafe { value.cast::<u64>().read_unaligned() } != 0 {
            return Err(INVALID);
        }
        let now = account.now.load(Ordering::Acquire);
        account.most.store(now, Ordering::Release);
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn device_graph_mem_trim(ordinal: c_int) -> hipError_t {
    // Nothing is set aside, so there is nothing to give back.
    entry("hipDeviceGraphMemTrim", || account_of(ordinal).map(|_| ()))
}

/// Whether memory that begins at `base` is a graph's.
pub(crate) fn is_of_graph(base: usize) -> bool {
    find(base).is_some()
}

/// Frees a graph's memory on behalf of the program.
///
/// # Errors
/// `hipErrorInvalidValue` if no launch allocated it, or it was freed already.
pub(crate) fn free_for_program(base: usize) -> Result {
    match find(base) {
        Some(memory) if memory.release() => Ok(()),
        _ => Err(INVALID),
    }
}

/// Whether `base` is memory that a node may release.
pub(super) fn check_release(base: usize) -> Result {
    let is_ours = |allocation: &Arc<Allocation>| {
        allocation.base == base && allocation.kind == Kind::Device && allocation.is_owned()
    };
    registry::find(base).filter(is_ours).map(|_| ()).ok_or(INVALID)
}

/// The work of a releasing node.
pub(super) fn release(base: usize) -> Result<Task> {
    check_release(base)?;
    if let Some(memory) = find(base) {
        memory.release();
        return Ok(Arc::new(|| Ok(())));
    }
    // Not a graph's: as `hipFreeAsync`.
    let allocation = registry::find(base).ok_or(INVALID)?;
    Ok(Arc::new(move || {
        if registry::find(base).is_some_and(|there| Arc::ptr_eq(&there, &allocation)) {
            registry::remove(base);
        }
        Ok(())
    }))
}

/// # Safety
/// `params` is null or readable, and so is its list.
unsafe fn read(params: *mut hipMemAllocNodeParams) -> Result<Params> {
    if params.is_null() {
        return Err(INVALID);
    }
    // SAFETY: not null, so readable by this function's contract.
    let given = unsafe { params.read_unaligned() };
    let pinned = hipMemAllocationType::hipMemAllocationTypePinned;
    let count = given.accessDescCount;
    if given.poolProps.allocType != pinned || given.bytesize == 0 || (given.accessDescs.is_null() && count > 0) {
        return Err(INVALID);
    }
    // SAFETY: not null where there are any; `count` descriptions by this function's contract.
    let access = (0..count).map(|index| unsafe { given.accessDescs.add(index).read_unaligned() });
    let access: Vec<hipMemAccessDesc> = access.collect();
    for desc in &access {
        pool_of_location(&desc.location)?;
    }
    Ok(Params { given, access })
}

/// An allocation as described; its address is stored in the description.
///
/// # Safety
/// `params` is null, or readable with its list and writable.
pub(super) unsafe fn allocation(call: &'static str, params: *mut hipMemAllocNodeParams) -> Result<Operation> {
    // SAFETY: this function's contract.
    let Params { given, access } = unsafe { read(params) }?;
    let pool = pool_of_location(&given.poolProps.location)?;
    let memory = GraphMemory::new(call, &pool, given, access)?;
    // SAFETY: `read` refused null; writable by this function's contract.
    unsafe { (&raw mut (*params).dptr).write_unaligned(memory.base as *mut c_void) };
    Ok(Operation::Allocate(memory))
}

pub(crate) unsafe extern "C" fn graph_add_mem_alloc_node(
    out: *mut hipGraphNode_t,
    graph: hipGraph_t,
    after: *const hipGraphNode_t,
    count: usize,
    params: *mut hipMemAllocNodeParams,
) -> hipError_t {
    const CALL: &str = "hipGraphAddMemAllocNode";
    // SAFETY: the C caller promises a description it has filled, in which the address can be stored.
    let operation = || unsafe { allocation(CALL, params) };
    // SAFETY: the C caller promises room for a handle and the list of nodes.
    unsafe { add(CALL, out, graph, (after, count), operation) }
}

macro_rules! releasing {
    ($($function:ident $name:literal;)*) => {$(
        pub(crate) unsafe extern "C" fn $function(
            out: *mut hipGraphNode_t,
            graph: hipGraph_t,
            after: *const hipGraphNode_t,
            count: usize,
            ptr: hipDeviceptr_t,
        ) -> hipError_t {
            let operation = || Ok(Operation::Release(ptr as usize));
            // SAFETY: the C caller promises room for a handle and the list of nodes.
            unsafe { add($name, out, graph, (after, count), operation) }
        }
    )*};
}

releasing! {
    graph_add_mem_free_node "hipGraphAddMemFreeNode";
    drv_graph_add_mem_free_node "hipDrvGraphAddMemFreeNode";
}

pub(crate) unsafe extern "C" fn graph_mem_alloc_node_get_params(
    node: hipGraphNode_t,
    out: *mut hipMemAllocNodeParams,
) -> hipError_t {
    entry("hipGraphMemAllocNodeGetParams", || {
        let Operation::Allocate(memory) = Node::find(node)?.operation() else {
            return Err(INVALID);
        };
        let Params { given, access } = &memory.params;
        // The list lives as long as the node.
        let answer = hipMemAllocNodeParams {
            accessDescs: if access.is_empty() {
                std::ptr::null()
            } else {
                access.as_ptr()
            },
            ..*given
        };
        // SAFETY: null is refused by `store`; otherwise room for a description by the C caller's promise.
        unsafe { store(out, answer) }
    })
}

pub(crate) unsafe extern "C" fn graph_mem_free_node_get_params(node: hipGraphNode_t, out: *mut c_void) -> hipError_t {
    entry("hipGraphMemFreeNodeGetParams", || {
        let Operation::Release(base) = Node::find(node)?.operation() else {
            return Err(INVALID);
        };
        // SAFETY: null is refused by `store`; otherwise room for a pointer by the C caller's promise.
        unsafe { store(out.cast::<*mut c_void>(), base as *mut c_void) }
    })
}

/// Reports why a launch is impossible: memory of the last one was not released.
pub(super) fn refuse_live(call: &str, memory: &GraphMemory) -> hipError_t {
    log::refused(
        call,
        format_args!("the memory at {:#x} of the last launch was not freed", memory.base),
    );
    INVALID
}
