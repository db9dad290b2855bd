//! Graphs made ready: launched, changed in place, updated from another graph.

use std::ffi::{c_char, c_uint, c_ulonglong, c_void};
use std::sync::Arc;

use hip_sys::{
    hipError_t, hipEvent_t, hipGraph_t, hipGraphExec_t, hipGraphExecUpdateResult as Update, hipGraphNode_t,
    hipGraphNodeType, hipHostNodeParams, hipKernelNodeParams, hipMemcpy3DParms, hipMemcpyKind, hipMemsetParams,
    hipStream_t,
};
use parking_lot::Mutex;

use super::build::child_of;
use super::memory::refuse_live;
use super::nodes::{Graph, Node};
use super::object::Objects;
use super::operation::Operation;
use super::plan::Plan;
use crate::error::{Result, entry, store};
use crate::handles::Handles;
use crate::stream;

const INVALID: hipError_t = hipError_t::hipErrorInvalidValue;

static EXECS: Handles<Exec> = Handles::new();

/// A graph's operations in an order that keeps all waits, independent of later changes to the graph.
struct Exec {
    parts: Mutex<Parts>,
    flags: c_ulonglong,
    _objects: Objects,
}

struct Parts {
    steps: Vec<Step>,
    /// The steps dealt out to lanes; made by the first launch after a change.
    plan: Option<Arc<Plan>>,
}

impl Parts {
    fn plan(&mut self) -> Arc<Plan> {
        let steps = &self.steps;
        let plan = self.plan.get_or_insert_with(|| {
            let operation = |step: &Step| match step.enabled {
                true => step.operation.clone(),
                false => Operation::Empty,
            };
            let steps = steps.iter().map(|step| (operation(step), step.after.clone()));
            Arc::new(Plan::new(steps.collect()))
        });
        plan.clone()
    }
}

struct Step {
    /// The graph's node.
    node: usize,
    operation: Operation,
    enabled: bool,
    /// The indices of the steps it waits for.
    after: Vec<usize>,
}

/// `hipGraphInstantiateFlagAutoFreeOnLaunch`.
const AUTO_FREE: c_ulonglong = 1;

fn find(exec: hipGraphExec_t) -> Result<Arc<Exec>> {
    EXECS.get(exec as usize).ok_or(INVALID)
}

fn steps(graph: &Graph) -> Result<Vec<Step>> {
    let step = |(node, after): (Arc<Node>, Vec<usize>)| {
        Ok(Step {
            node: node.token,
            operation: node.operation().frozen()?,
            enabled: true,
            after,
        })
    };
    graph.sorted()?.into_iter().map(step).collect()
}

fn instantiate(out: *mut hipGraphExec_t, graph: hipGraph_t, flags: c_ulonglong) -> Result {
    // Free memory on launch, launch from the device, use the nodes' priorities; uploading (2) is no flag of this call.
    const KNOWN: c_ulonglong = 0xd;
    if out.is_null() || graph.is_null() || flags & !KNOWN != 0 {
        return Err(INVALID);
    }
    let graph = Graph::find(graph)?;
    let steps = steps(&graph)?;
    graph.make_ready()?;
    let objects = graph.objects.lock().share();
    let exec = Exec {
        parts: Mutex::new(Parts { steps, plan: None }),
        flags,
        _objects: objects,
    };
    // SAFETY: not null; room for a handle by the C caller's promise.
    unsafe { store(out, EXECS.insert(Arc::new(exec)) as hipGraphExec_t) }
}

pub(crate) unsafe extern "C" fn graph_instantiate(
    out: *mut hipGraphExec_t,
    graph: hipGraph_t,
    error_node: *mut hipGraphNode_t,
    log: *mut c_char,
    log_bytes: usize,
) -> hipError_t {
    entry("hipGraphInstantiate", || {
        // SAFETY: each pointer is null and skipped, or has room by the C caller's promise.
        unsafe {
            if !error_node.is_null() {
                store(error_node, std::ptr::null_mut())?;
            }
            if !log.is_null() && log_bytes > 0 {
                store(log, 0)?;
            }
        }
        instantiate(out, graph, 0)
    })
}

pub(crate) unsafe extern "C" fn graph_instantiate_with_flags(
    out: *mut hipGraphExec_t,
    graph: hipGraph_t,
    flags: c_ulonglong,
) -> hipError_t {
    entry("hipGraphInstantiateWithFlags", || instantiate(out, graph, flags))
}

pub(crate) unsafe extern "C" fn graph_exec_destroy(exec: hipGraphExec_t) -> hipError_t {
    // Launches that are under way have all they need.
    entry("hipGraphExecDestroy", || {
        EXECS.remove(exec as usize).map(|_| ()).ok_or(INVALID)
    })
}

pub(crate) unsafe extern "C" fn graph_exec_get_flags(exec: hipGraphExec_t, out: *mut c_ulonglong) -> hipError_t {
    entry("hipGraphExecGetFlags", || {
        let flags = find(exec)?.flags;
        // SAFETY: null is refused by `store`; otherwise room for the flags by the C caller's promise.
        unsafe { store(out, flags) }
    })
}

fn launch(call: &'static str, exec: hipGraphExec_t, stream: hipStream_t) -> hipError_t {
    entry(call, || {
        let exec = find(exec)?;
        let stream = stream::find(stream)?;
        // Held over the submission, so two launches do not mix.
        let mut parts = exec.parts.lock();
        // In a capture, a launched graph becomes a node.
        let whole = Operation::Frozen(parts.plan());
        // A step that cannot be done is found before the first is queued.
        whole.check(call)?;
        let frees = exec.flags & AUTO_FREE != 0;
        for memory in parts.plan().operations().filter_map(Operation::allocates) {
            if memory.is_live() && !(frees && memory.release()) {
                return Err(refuse_live(call, memory));
            }
        }
        stream.issue(call, whole).map(|_| ())
    })
}

pub(crate) unsafe extern "C" fn graph_launch(exec: hipGraphExec_t, stream: hipStream_t) -> hipError_t {
    launch("hipGraphLaunch", exec, stream)
}

pub(crate) unsafe extern "C" fn graph_launch_spt(exec: hipGraphExec_t, stream: hipStream_t) -> hipError_t {
    launch("hipGraphLaunch_spt", exec, stream::own(stream))
}

pub(crate) unsafe extern "C" fn graph_upload(exec: hipGraphExec_t, stream: hipStream_t) -> hipError_t {
    // There is nothing to bring anywhere before a launch.
    entry("hipGraphUpload", || {
        find(exec)?;
        stream::find(stream).map(|_| ())
    })
}

/// Changes the step of a node.
fn change(exec: hipGraphExec_t, node: hipGraphNode_t, change: impl FnOnce(&mut Step) -> Result) -> Result {
    let exec = find(exec)?;
    let mut parts = exec.parts.lock();
    parts.plan = None;
    let mut steps = parts.steps.iter_mut();
    let step = steps.find(|step| step.node == node as usize);
    change(step.ok_or(INVALID)?)
}

fn put(
    call: &'static str,
    exec: hipGraphExec_t,
    node: hipGraphNode_t,
    operation: impl FnOnce() -> Result<Operation>,
) -> hipError_t {
    entry(call, || {
        let operation = operation()?.frozen()?;
        operation.check(call)?;
        change(exec, node, |step| {
            if !step.operation.can_become(&operation) {
                return Err(INVALID);
            }
            step.operation = operation;
            Ok(())
        })
    })
}

macro_rules! set {
    ($($function:ident $name:literal ($($argument:ident: $ty:ty),*) $operation:expr;)*) => {$(
        pub(crate) unsafe extern "C" fn $function(
            exec: hipGraphExec_t,
            node: hipGraphNode_t,
            $($argument: $ty),*
        ) -> hipError_t {
            #[allow(unused_unsafe, reason = "not every operation reads a description")]
            // SAFETY: the C caller promises a description it has filled.
            put($name, exec, node, || unsafe { $operation })
        }
    )*};
}

set! {
    graph_exec_kernel_node_set_params "hipGraphExecKernelNodeSetParams" (params: *const hipKernelNodeParams)
        Operation::kernel(params);
    graph_exec_memcpy_node_set_params "hipGraphExecMemcpyNodeSetParams" (params: *mut hipMemcpy3DParms)
        Operation::copy(params).map_err(|code| match code {
            // Here a pitch is an argument like another.
            hipError_t::hipErrorInvalidPitchValue => INVALID,
            code => code,
        });
    graph_exec_memcpy_node_set_params_1d "hipGraphExecMemcpyNodeSetParams1D"
        (to: *mut c_void, from: *const c_void, bytes: usize, kind: hipMemcpyKind)
        Operation::changed_row(to, from, bytes, kind);
    graph_exec_memset_node_set_params "hipGraphExecMemsetNodeSetParams" (params: *const hipMemsetParams)
        Operation::set(params);
    graph_exec_host_node_set_params "hipGraphExecHostNodeSetParams" (params: *const hipHostNodeParams)
        Operation::host(params);
    graph_exec_event_record_node_set_event "hipGraphExecEventRecordNodeSetEvent" (event: hipEvent_t)
        Operation::of_event(event, true);
    graph_exec_event_wait_node_set_event "hipGraphExecEventWaitNodeSetEvent" (event: hipEvent_t)
        Operation::of_event(event, false);
}

pub(crate) unsafe extern "C" fn graph_exec_child_graph_node_set_params(
    exec: hipGraphExec_t,
    node: hipGraphNode_t,
    child: hipGraph_t,
) -> hipError_t {
    entry("hipGraphExecChildGraphNodeSetParams", || {
        let operation = frozen_child(child)?;
        change(exec, node, |step| {
            if step.operation.kind() != operation.kind() {
                return Err(INVALID);
            }
            // Nodes and waits must be those the graph was made ready with; ROCm's word for it is this one.
            if !step.operation.is_alike(&operation) {
                return Err(hipError_t::hipErrorUnknown);
            }
            step.operation = operation;
            Ok(())
        })
    })
}

/// The operations of a graph as they are now; its handle is not kept.
fn frozen_child(child: hipGraph_t) -> Result<Operation> {
    let copy = child_of(child)?;
    let frozen = Operation::Child(copy.clone()).frozen();
    copy.destroy();
    frozen
}

pub(crate) unsafe extern "C" fn graph_node_set_enabled(
    exec: hipGraphExec_t,
    node: hipGraphNode_t,
    enabled: c_uint,
) -> hipError_t {
    entry("hipGraphNodeSetEnabled", || {
        change(exec, node, |step| {
            can_be_disabled(step)?;
            step.enabled = enabled != 0;
            Ok(())
        })
    })
}

pub(crate) unsafe extern "C" fn graph_node_get_enabled(
    exec: hipGraphExec_t,
    node: hipGraphNode_t,
    out: *mut c_uint,
) -> hipError_t {
    entry("hipGraphNodeGetEnabled", || {
        change(exec, node, |step| {
            can_be_disabled(step)?;
            // SAFETY: null is refused by `store`; otherwise room for the answer by the C caller's promise.
            unsafe { store(out, c_uint::from(step.enabled)) }
        })
    })
}

/// Kernels, copies and fills only (hipamd/src/hip_graph.cpp, `hipGraphNodeSetEnabled`).
fn can_be_disabled(step: &Step) -> Result {
    match step.operation.kind() {
        hipGraphNodeType::hipGraphNodeTypeKernel
        | hipGraphNodeType::hipGraphNodeTypeMemcpy
        | hipGraphNodeType::hipGraphNodeTypeMemset => Ok(()),
        _ => Err(INVALID),
    }
}

pub(crate) unsafe extern "C" fn graph_exec_update(
    exec: hipGraphExec_t,
    graph: hipGraph_t,
    error_node: *mut hipGraphNode_t,
    result: *mut Update,
) -> hipError_t {
    entry("hipGraphExecUpdate", || {
        if error_node.is_null() || result.is_null() {
            return Err(INVALID);
        }
        let exec = find(exec)?;
        let fresh = steps(&*Graph::find(graph)?)?;
        let mut parts = exec.parts.lock();
        parts.plan = None;
        let old = &mut parts.steps;
        let differs = |(old, new): &(&Step, &Step)| old.operation.kind() != new.operation.kind();
        let is_changed = |(old, new): &(&Step, &Step)| !old.operation.can_become(&new.operation);
        let is_shaped = |(old, new): (&Step, &Step)| old.after == new.after;
        let same_shape = old.len() == fresh.len() && old.iter().zip(&fresh).all(is_shaped);
        let (node, outcome) = if !same_shape {
            (0, Update::hipGraphExecUpdateErrorTopologyChanged)
        } else if let Some((_, new)) = old.iter().zip(&fresh).find(differs) {
            (new.node, Update::hipGraphExecUpdateErrorNodeTypeChanged)
        } else if let Some((_, new)) = old.iter().zip(&fresh).find(is_changed) {
            (new.node, Update::hipGraphExecUpdateErrorParametersChanged)
        } else {
            (0, Update::hipGraphExecUpdateSuccess)
        };
        // SAFETY: neither is null; room for a handle and a result by the C caller's promise.
        unsafe {
            store(error_node, node as hipGraphNode_t)?;
            store(result, outcome)?;
        }
        if outcome != Update::hipGraphExecUpdateSuccess {
            return Err(hipError_t::hipErrorGraphExecUpdateFailure);
        }
        // The steps go on belonging to the nodes the graph was first made ready from.
        for (old, new) in old.iter_mut().zip(fresh) {
            old.operation = new.operation;
        }
        Ok(())
    })
}
