//! Work as a graph, by capture. Nodes made by hand are not built.

use std::ffi::c_char;

use hip_sys::{
    hipGraph_t, hipGraphExec_t, hipGraphNode_t, hipGraphNodeType, hipStream_t, hipStreamCaptureMode,
    hipStreamCaptureStatus,
};

use crate::device::here;
use crate::error::{INVALID, Result, calls, not_null};

/// The flags that both APIs have: free on launch (1), upload (2), device launch (4), node priorities (8).
const SHARED_FLAGS: u64 = 0xf;

fn instantiate(out: *mut hipGraphExec_t, graph: hipGraph_t, flags: u64) -> Result {
    not_null!(out, graph);
    if flags & !SHARED_FLAGS != 0 {
        return Err(INVALID);
    }
    // SAFETY: not null; the C caller gives a live graph and room for a handle.
    unsafe { here()?.cuGraphInstantiateWithFlags(out, graph, flags) }
}

calls! {
    pub(crate) fn fill;

    fn hipStreamBeginCapture(stream: hipStream_t, mode: hipStreamCaptureMode) {
        here()?.cuStreamBeginCapture_v2(stream, mode.0)
    }
    fn hipStreamEndCapture(stream: hipStream_t, out: *mut hipGraph_t) {
        not_null!(out);
        here()?.cuStreamEndCapture(stream, out)
    }
    fn hipStreamIsCapturing(stream: hipStream_t, out: *mut hipStreamCaptureStatus) {
        not_null!(out);
        here()?.cuStreamIsCapturing(stream, out.cast())
    }
    fn hipThreadExchangeStreamCaptureMode(mode: *mut hipStreamCaptureMode) {
        not_null!(mode);
        here()?.cuThreadExchangeStreamCaptureMode(mode.cast())
    }
    fn hipGraphCreate(out: *mut hipGraph_t, flags: u32) {
        not_null!(out);
        here()?.cuGraphCreate(out, flags)
    }
    fn hipGraphDestroy(graph: hipGraph_t) {
        not_null!(graph);
        here()?.cuGraphDestroy(graph)
    }
    fn hipGraphClone(out: *mut hipGraph_t, graph: hipGraph_t) {
        not_null!(out, graph);
        here()?.cuGraphClone(out, graph)
    }
    fn hipGraphGetNodes(graph: hipGraph_t, nodes: *mut hipGraphNode_t, count: *mut usize) {
        not_null!(graph, count);
        here()?.cuGraphGetNodes(graph, nodes, count)
    }
    fn hipGraphGetRootNodes(graph: hipGraph_t, nodes: *mut hipGraphNode_t, count: *mut usize) {
        not_null!(graph, count);
        here()?.cuGraphGetRootNodes(graph, nodes, count)
    }
    fn hipGraphNodeGetType(node: hipGraphNode_t, out: *mut hipGraphNodeType) {
        not_null!(node, out);
        here()?.cuGraphNodeGetType(node, out.cast())
    }
    /// CUDA 12 and later name no node and write no log; the code is all there is.
    fn hipGraphInstantiate(
        out: *mut hipGraphExec_t, graph: hipGraph_t, node: *mut hipGraphNode_t, log: *mut c_char, log_bytes: usize,
    ) {
        if !node.is_null() {
            node.write_unaligned(std::ptr::null_mut());
        }
        if !log.is_null() && log_bytes > 0 {
            log.write(0);
        }
        instantiate(out, graph, 0)
    }
    fn hipGraphInstantiateWithFlags(out: *mut hipGraphExec_t, graph: hipGraph_t, flags: u64) {
        instantiate(out, graph, flags)
    }
    fn hipGraphLaunch(exec: hipGraphExec_t, stream: hipStream_t) {
        not_null!(exec);
        here()?.cuGraphLaunch(exec, stream)
    }
    fn hipGraphUpload(exec: hipGraphExec_t, stream: hipStream_t) {
        not_null!(exec);
        here()?.cuGraphUpload(exec, stream)
    }
    fn hipGraphExecDestroy(exec: hipGraphExec_t) {
        not_null!(exec);
        here()?.cuGraphExecDestroy(exec)
    }
}
