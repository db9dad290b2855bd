//! Nodes of any kind by one call, and nodes in the terms of the driver's interface.

use std::ffi::c_void;

use hip_sys::{
    HIP_MEMCPY3D, hipCtx_t, hipError_t, hipGraph_t, hipGraphNode_t, hipGraphNodeParams, hipGraphNodeType as Type,
};

use super::build::{add, child_of};
use super::memory::allocation;
use super::operation::Operation;
use crate::device;
use crate::error::Result;
use crate::memory::copy::from_driver_params;

const INVALID: hipError_t = hipError_t::hipErrorInvalidValue;

/// The operation that a description of any kind requests.
///
/// # Safety
/// `params` is null, or a description of the kind that it says, writable.
unsafe fn operation(call: &'static str, params: *mut hipGraphNodeParams) -> Result<Operation> {
    if params.is_null() {
        return Err(INVALID);
    }
    // SAFETY: not null, so as this function's contract says; each field is read as the kind that the description
    // states.
    unsafe {
        let what = &raw mut (*params).__bindgen_anon_1;
        match (&raw const (*params).type_).read_unaligned() {
            Type::hipGraphNodeTypeKernel => Operation::kernel(&raw const (*what).kernel),
            Type::hipGraphNodeTypeMemcpy => Operation::copy(&raw const (*what).memcpy.copyParams),
            Type::hipGraphNodeTypeMemset => Operation::set(&raw const (*what).memset),
            Type::hipGraphNodeTypeHost => Operation::host(&raw const (*what).host),
            Type::hipGraphNodeTypeGraph => child_of((*what).graph.graph).map(Operation::Child),
            Type::hipGraphNodeTypeWaitEvent => Operation::of_event((*what).eventWait.event, false),
            Type::hipGraphNodeTypeEventRecord => Operation::of_event((*what).eventRecord.event, true),
            Type::hipGraphNodeTypeMemAlloc => allocation(call, &raw mut (*what).alloc),
            Type::hipGraphNodeTypeMemFree => {
                let base: *mut c_void = (*what).free.dptr;
                Ok(Operation::Release(base as usize))
            }
            Type::hipGraphNodeTypeExtSemaphoreSignal | Type::hipGraphNodeTypeExtSemaphoreWait => {
                Err(hipError_t::hipErrorNotSupported)
            }
            // An empty node too (hipamd/src/hip_graph.cpp, `hipGraphAddNode`).
            _ => Err(INVALID),
        }
    }
}

pub(crate) unsafe extern "C" fn graph_add_node(
    out: *mut hipGraphNode_t,
    graph: hipGraph_t,
    after: *const hipGraphNode_t,
    count: usize,
    params: *mut hipGraphNodeParams,
) -> hipError_t {
    const CALL: &str = "hipGraphAddNode";
    // SAFETY: the C caller promises room for a handle, the list of nodes, and a description it has filled.
    unsafe { add(CALL, out, graph, (after, count), || operation(CALL, params)) }
}

pub(crate) unsafe extern "C" fn drv_graph_add_memcpy_node(
    out: *mut hipGraphNode_t,
    graph: hipGraph_t,
    after: *const hipGraphNode_t,
    count: usize,
    params: *const HIP_MEMCPY3D,
    context: hipCtx_t,
) -> hipError_t {
    let operation = || {
        device::check_context(context)?;
        // SAFETY: the C caller promises a description it has filled.
        let transfer = unsafe { from_driver_params(params) }?;
        if transfer.shape.is_empty() {
            return Err(INVALID);
        }
        Ok(Operation::Copy(transfer))
    };
    // SAFETY: the C caller promises room for a handle and the list of nodes.
    unsafe { add("hipDrvGraphAddMemcpyNode", out, graph, (after, count), operation) }
}
