//! The parameters of nodes: queried, and set anew.

use std::ffi::c_void;

use hip_sys::{
    hipError_t, hipEvent_t, hipGraph_t, hipGraphNode_t, hipHostNodeParams, hipKernelNodeParams, hipMemcpy3DParms,
    hipMemcpyKind, hipMemsetParams,
};

use super::nodes::Node;
use super::operation::{Operation, copy_params, set_params};
use crate::error::{Result, entry, store};

const INVALID: hipError_t = hipError_t::hipErrorInvalidValue;

/// Stores what `tell` makes of a node's operation at `out`.
///
/// # Safety
/// `out` is null or has room for a `T`.
unsafe fn tell<T>(
    call: &'static str,
    node: hipGraphNode_t,
    out: *mut T,
    tell: impl FnOnce(&Node, Operation) -> Result<T>,
) -> hipError_t {
    entry(call, || {
        let node = Node::find(node)?;
        if out.is_null() {
            return Err(INVALID);
        }
        let answer = tell(&node, node.operation())?;
        // SAFETY: not null, so room for the answer by this function's contract.
        unsafe { store(out, answer) }
    })
}

/// Puts `operation` in the place of the node's, if it could be done and is of the same kind.
fn put(call: &'static str, node: hipGraphNode_t, operation: impl FnOnce() -> Result<Operation>) -> hipError_t {
    entry(call, || {
        let node = Node::find(node)?;
        let operation = operation()?;
        operation.check(call)?;
        node.replace(operation)
    })
}

macro_rules! told {
    ($($function:ident $name:literal $ty:ty, |$node:ident, $operation:ident| $answer:expr;)*) => {$(
        pub(crate) unsafe extern "C" fn $function(node: hipGraphNode_t, out: *mut $ty) -> hipError_t {
            // SAFETY: the C caller promises room for the answer.
            unsafe { tell($name, node, out, |$node, $operation| $answer) }
        }
    )*};
}

told! {
    graph_kernel_node_get_params "hipGraphKernelNodeGetParams" hipKernelNodeParams,
        |node, operation| node.graph()?.tell_kernel(operation);
    graph_memcpy_node_get_params "hipGraphMemcpyNodeGetParams" hipMemcpy3DParms, |_node, operation| match operation {
        Operation::Copy(transfer) => Ok(copy_params(&transfer)),
        _ => Err(INVALID),
    };
    graph_memset_node_get_params "hipGraphMemsetNodeGetParams" hipMemsetParams, |_node, operation| match operation {
        Operation::Set(filling) => set_params(&filling),
        _ => Err(INVALID),
    };
    graph_host_node_get_params "hipGraphHostNodeGetParams" hipHostNodeParams, |_node, operation| match operation {
        Operation::Host(host) => Ok(hipHostNodeParams { fn_: Some(host.function), userData: host.user.get() }),
        _ => Err(INVALID),
    };
    graph_event_record_node_get_event "hipGraphEventRecordNodeGetEvent" hipEvent_t, |_node, operation| match operation {
        Operation::Record(event) => Ok(event as hipEvent_t),
        _ => Err(INVALID),
    };
    graph_event_wait_node_get_event "hipGraphEventWaitNodeGetEvent" hipEvent_t, |_node, operation| match operation {
        Operation::Wait(event) => Ok(event as hipEvent_t),
        _ => Err(INVALID),
    };
    graph_child_graph_node_get_graph "hipGraphChildGraphNodeGetGraph" hipGraph_t, |_node, operation| match operation {
        Operation::Child(child) => Ok(child.handle()),
        _ => Err(INVALID),
    };
}

macro_rules! set {
    ($($function:ident $name:literal ($($argument:ident: $ty:ty),*) $operation:expr;)*) => {$(
        pub(crate) unsafe extern "C" fn $function(node: hipGraphNode_t, $($argument: $ty),*) -> hipError_t {
            #[allow(unused_unsafe, reason = "not every operation reads a description")]
            // SAFETY: the C caller promises a description it has filled.
            put($name, node, || unsafe { $operation })
        }
    )*};
}

set! {
    graph_kernel_node_set_params "hipGraphKernelNodeSetParams" (params: *const hipKernelNodeParams) Operation::kernel(params);
    graph_memcpy_node_set_params "hipGraphMemcpyNodeSetParams" (params: *const hipMemcpy3DParms) Operation::copy(params);
    graph_memcpy_node_set_params_1d "hipGraphMemcpyNodeSetParams1D"
        (to: *mut c_void, from: *const c_void, bytes: usize, kind: hipMemcpyKind)
        Operation::changed_row(to, from, bytes, kind);
    graph_memset_node_set_params "hipGraphMemsetNodeSetParams" (params: *const hipMemsetParams) Operation::set(params);
    graph_host_node_set_params "hipGraphHostNodeSetParams" (params: *const hipHostNodeParams) Operation::host(params);
    graph_event_record_node_set_event "hipGraphEventRecordNodeSetEvent" (event: hipEvent_t) Operation::of_event(event, true);
    graph_event_wait_node_set_event "hipGraphEventWaitNodeSetEvent" (event: hipEvent_t) Operation::of_event(event, false);
}
