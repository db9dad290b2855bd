//! The HIP copy calls, and the calls that decide what a graph copies.
//!
//! A captured copy moves nothing: it becomes part of the graph, in the category in which it was captured, and counts
//! each time the graph runs.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::sync::Arc;

use hip_sys::*;

use super::ledger::{Copied, Ledger};
use super::slots::{self, Call, Lease, Outcome, Slot, counted_table};

impl Outcome for hipError_t {
    const MISSING: Self = Self::hipErrorNotSupported;

    fn is_success(&self) -> bool {
        *self == Self::hipSuccess
    }
}

counted_table! {
    32 slots: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31;

    copies {
        hipDrvMemcpy2DUnaligned(p_copy: *const hip_Memcpy2D) -> hipError_t,
            // SAFETY: HIP accepted the call, so it was given what it reads.
            |it| it.copied(unsafe { of_2d(p_copy) });
        hipDrvMemcpy3D(p_copy: *const HIP_MEMCPY3D) -> hipError_t,
            // SAFETY: HIP accepted the call, so it was given what it reads.
            |it| it.copied(unsafe { of_driver_3d(p_copy) });
        hipDrvMemcpy3DAsync(p_copy: *const HIP_MEMCPY3D, stream: hipStream_t) -> hipError_t,
            // SAFETY: HIP accepted the call, so it was given what it reads.
            |it| it.queued(stream, unsafe { of_driver_3d(p_copy) });
        hipDrvMemcpy3DAsync_until_5(p_copy: *const HIP_MEMCPY3D_until_5, stream: hipStream_t) -> hipError_t,
            // SAFETY: HIP accepted the call, so it was given what it reads.
            |it| it.queued(stream, unsafe { of_old_driver_3d(p_copy) });
        hipDrvMemcpy3D_until_5(p_copy: *const HIP_MEMCPY3D_until_5) -> hipError_t,
            // SAFETY: HIP accepted the call, so it was given what it reads.
            |it| it.copied(unsafe { of_old_driver_3d(p_copy) });
        hipMemPrefetchAsync(dev_ptr: *const c_void, count: usize, device: c_int, stream: hipStream_t) -> hipError_t, |it| it.queued(stream, count);
        hipMemPrefetchAsync_v2(dev_ptr: *const c_void, count: usize, location: hipMemLocation, flags: c_uint, stream: hipStream_t) -> hipError_t, |it| it.queued(stream, count);
        hipMemPrefetchBatchAsync(dev_ptrs: *mut *mut c_void, sizes: *mut usize, count: usize, prefetch_locs: *mut hipMemLocation, prefetch_loc_idxs: *mut usize, num_prefetch_locs: usize, flags: c_ulonglong, stream: hipStream_t) -> hipError_t,
            // SAFETY: HIP accepted the call, so it was given what it reads.
            |it| it.queued(stream, unsafe { total(sizes, count) });
        hipMemcpy(dst: *mut c_void, src: *const c_void, size_bytes: usize, kind: hipMemcpyKind) -> hipError_t, |it| it.copied(size_bytes);
        hipMemcpy2D(dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind) -> hipError_t, |it| it.copied(area(width, height));
        hipMemcpy2DArrayToArray(dst: hipArray_t, w_offset_dst: usize, h_offset_dst: usize, src: hipArray_const_t, w_offset_src: usize, h_offset_src: usize, width: usize, height: usize, kind: hipMemcpyKind) -> hipError_t, |it| it.copied(area(width, height));
        hipMemcpy2DAsync(dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t, |it| it.queued(stream, area(width, height));
        hipMemcpy2DAsync_spt(dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t, |it| it.queued(own(stream), area(width, height));
        hipMemcpy2DFromArray(dst: *mut c_void, dpitch: usize, src: hipArray_const_t, w_offset: usize, h_offset: usize, width: usize, height: usize, kind: hipMemcpyKind) -> hipError_t, |it| it.copied(area(width, height));
        hipMemcpy2DFromArrayAsync(dst: *mut c_void, dpitch: usize, src: hipArray_const_t, w_offset: usize, h_offset: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t, |it| it.queued(stream, area(width, height));
        hipMemcpy2DFromArrayAsync_spt(dst: *mut c_void, dpitch: usize, src: hipArray_const_t, w_offset_src: usize, h_offset_src: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t, |it| it.queued(own(stream), area(width, height));
        hipMemcpy2DFromArray_spt(dst: *mut c_void, dpitch: usize, src: hipArray_const_t, w_offset: usize, h_offset: usize, width: usize, height: usize, kind: hipMemcpyKind) -> hipError_t, |it| it.copied(area(width, height));
        hipMemcpy2DToArray(dst: hipArray_t, w_offset: usize, h_offset: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind) -> hipError_t, |it| it.copied(area(width, height));
        hipMemcpy2DToArrayAsync(dst: hipArray_t, w_offset: usize, h_offset: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t, |it| it.queued(stream, area(width, height));
        hipMemcpy2DToArrayAsync_spt(dst: hipArray_t, w_offset: usize, h_offset: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t, |it| it.queued(own(stream), area(width, height));
        hipMemcpy2DToArray_spt(dst: hipArray_t, w_offset: usize, h_offset: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind) -> hipError_t, |it| it.copied(area(width, height));
        hipMemcpy2D_spt(dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind) -> hipError_t, |it| it.copied(area(width, height));
        hipMemcpy3D(p: *const hipMemcpy3DParms) -> hipError_t,
            // SAFETY: HIP accepted the call, so it was given what it reads.
            |it| it.copied(unsafe { it.of_3d(p) });
        hipMemcpy3DAsync(p: *const hipMemcpy3DParms, stream: hipStream_t) -> hipError_t,
            // SAFETY: HIP accepted the call, so it was given what it reads.
            |it| it.queued(stream, unsafe { it.of_3d(p) });
        hipMemcpy3DAsync_spt(p: *const hipMemcpy3DParms, stream: hipStream_t) -> hipError_t,
            // SAFETY: HIP accepted the call, so it was given what it reads.
            |it| it.queued(own(stream), unsafe { it.of_3d(p) });
        hipMemcpy3DBatchAsync(num_ops: usize, op_list: *mut hipMemcpy3DBatchOp, fail_idx: *mut usize, flags: c_ulonglong, stream: hipStream_t) -> hipError_t,
            // SAFETY: HIP accepted the call, so it was given what it reads.
            |it| it.queued(stream, unsafe { it.of_batch(op_list, num_ops) });
        hipMemcpy3DPeer(p: *mut hipMemcpy3DPeerParms) -> hipError_t,
            // SAFETY: HIP accepted the call, so it was given what it reads.
            |it| it.copied(unsafe { it.of_3d_peer(p) });
        hipMemcpy3DPeerAsync(p: *mut hipMemcpy3DPeerParms, stream: hipStream_t) -> hipError_t,
            // SAFETY: HIP accepted the call, so it was given what it reads.
            |it| it.queued(stream, unsafe { it.of_3d_peer(p) });
        hipMemcpy3D_spt(p: *const hipMemcpy3DParms) -> hipError_t,
            // SAFETY: HIP accepted the call, so it was given what it reads.
            |it| it.copied(unsafe { it.of_3d(p) });
        hipMemcpyAsync(dst: *mut c_void, src: *const c_void, size_bytes: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t, |it| it.queued(stream, size_bytes);
        hipMemcpyAsync_spt(dst: *mut c_void, src: *const c_void, size_bytes: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t, |it| it.queued(own(stream), size_bytes);
        hipMemcpyAtoA(dst_array: hipArray_t, dst_offset: usize, src_array: hipArray_t, src_offset: usize, byte_count: usize) -> hipError_t, |it| it.copied(byte_count);
        hipMemcpyAtoD(dst_device: hipDeviceptr_t, src_array: hipArray_t, src_offset: usize, byte_count: usize) -> hipError_t, |it| it.copied(byte_count);
        hipMemcpyAtoH(dst: *mut c_void, src_array: hipArray_t, src_offset: usize, count: usize) -> hipError_t, |it| it.copied(count);
        hipMemcpyAtoHAsync(dst_host: *mut c_void, src_array: hipArray_t, src_offset: usize, byte_count: usize, stream: hipStream_t) -> hipError_t, |it| it.queued(stream, byte_count);
        hipMemcpyBatchAsync(dsts: *mut *mut c_void, srcs: *mut *mut c_void, sizes: *mut usize, count: usize, attrs: *mut hipMemcpyAttributes, attrs_idxs: *mut usize, num_attrs: usize, fail_idx: *mut usize, stream: hipStream_t) -> hipError_t,
            // SAFETY: HIP accepted the call, so it was given what it reads.
            |it| it.queued(stream, unsafe { total(sizes, count) });
        hipMemcpyDtoA(dst_array: hipArray_t, dst_offset: usize, src_device: hipDeviceptr_t, byte_count: usize) -> hipError_t, |it| it.copied(byte_count);
        hipMemcpyDtoD(dst: hipDeviceptr_t, src: hipDeviceptr_t, size_bytes: usize) -> hipError_t, |it| it.copied(size_bytes);
        hipMemcpyDtoDAsync(dst: hipDeviceptr_t, src: hipDeviceptr_t, size_bytes: usize, stream: hipStream_t) -> hipError_t, |it| it.queued(stream, size_bytes);
        hipMemcpyDtoH(dst: *mut c_void, src: hipDeviceptr_t, size_bytes: usize) -> hipError_t, |it| it.copied(size_bytes);
        hipMemcpyDtoHAsync(dst: *mut c_void, src: hipDeviceptr_t, size_bytes: usize, stream: hipStream_t) -> hipError_t, |it| it.queued(stream, size_bytes);
        hipMemcpyFromArray(dst: *mut c_void, src_array: hipArray_const_t, w_offset: usize, h_offset: usize, count: usize, kind: hipMemcpyKind) -> hipError_t, |it| it.copied(count);
        hipMemcpyFromArray_spt(dst: *mut c_void, src: hipArray_const_t, w_offset_src: usize, h_offset: usize, count: usize, kind: hipMemcpyKind) -> hipError_t, |it| it.copied(count);
        hipMemcpyFromSymbol(dst: *mut c_void, symbol: *const c_void, size_bytes: usize, offset: usize, kind: hipMemcpyKind) -> hipError_t, |it| it.copied(size_bytes);
        hipMemcpyFromSymbolAsync(dst: *mut c_void, symbol: *const c_void, size_bytes: usize, offset: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t, |it| it.queued(stream, size_bytes);
        hipMemcpyFromSymbolAsync_spt(dst: *mut c_void, symbol: *const c_void, size_bytes: usize, offset: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t, |it| it.queued(own(stream), size_bytes);
        hipMemcpyFromSymbol_spt(dst: *mut c_void, symbol: *const c_void, size_bytes: usize, offset: usize, kind: hipMemcpyKind) -> hipError_t, |it| it.copied(size_bytes);
        hipMemcpyHtoA(dst_array: hipArray_t, dst_offset: usize, src_host: *const c_void, count: usize) -> hipError_t, |it| it.copied(count);
        hipMemcpyHtoAAsync(dst_array: hipArray_t, dst_offset: usize, src_host: *const c_void, byte_count: usize, stream: hipStream_t) -> hipError_t, |it| it.queued(stream, byte_count);
        hipMemcpyHtoD(dst: hipDeviceptr_t, src: *const c_void, size_bytes: usize) -> hipError_t, |it| it.copied(size_bytes);
        hipMemcpyHtoDAsync(dst: hipDeviceptr_t, src: *const c_void, size_bytes: usize, stream: hipStream_t) -> hipError_t, |it| it.queued(stream, size_bytes);
        hipMemcpyParam2D(p_copy: *const hip_Memcpy2D) -> hipError_t,
            // SAFETY: HIP accepted the call, so it was given what it reads.
            |it| it.copied(unsafe { of_2d(p_copy) });
        hipMemcpyParam2DAsync(p_copy: *const hip_Memcpy2D, stream: hipStream_t) -> hipError_t,
            // SAFETY: HIP accepted the call, so it was given what it reads.
            |it| it.queued(stream, unsafe { of_2d(p_copy) });
        hipMemcpyPeer(dst: *mut c_void, dst_device_id: c_int, src: *const c_void, src_device_id: c_int, size_bytes: usize) -> hipError_t, |it| it.copied(size_bytes);
        hipMemcpyPeerAsync(dst: *mut c_void, dst_device_id: c_int, src: *const c_void, src_device: c_int, size_bytes: usize, stream: hipStream_t) -> hipError_t, |it| it.queued(stream, size_bytes);
        hipMemcpyToArray(dst: hipArray_t, w_offset: usize, h_offset: usize, src: *const c_void, count: usize, kind: hipMemcpyKind) -> hipError_t, |it| it.copied(count);
        hipMemcpyToSymbol(symbol: *const c_void, src: *const c_void, size_bytes: usize, offset: usize, kind: hipMemcpyKind) -> hipError_t, |it| it.copied(size_bytes);
        hipMemcpyToSymbolAsync(symbol: *const c_void, src: *const c_void, size_bytes: usize, offset: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t, |it| it.queued(stream, size_bytes);
        hipMemcpyToSymbolAsync_spt(symbol: *const c_void, src: *const c_void, size_bytes: usize, offset: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t, |it| it.queued(own(stream), size_bytes);
        hipMemcpyToSymbol_spt(symbol: *const c_void, src: *const c_void, size_bytes: usize, offset: usize, kind: hipMemcpyKind) -> hipError_t, |it| it.copied(size_bytes);
        hipMemcpyWithStream(dst: *mut c_void, src: *const c_void, size_bytes: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t, |it| it.queued(stream, size_bytes);
        hipMemcpy_spt(dst: *mut c_void, src: *const c_void, size_bytes: usize, kind: hipMemcpyKind) -> hipError_t, |it| it.copied(size_bytes);
    }

    watched {
        hipStreamBeginCapture(stream: hipStream_t, mode: hipStreamCaptureMode) -> hipError_t,
            |it, call| it.after(call(), || it.captures(stream, true));
        hipStreamBeginCapture_spt(stream: hipStream_t, mode: hipStreamCaptureMode) -> hipError_t,
            |it, call| it.after(call(), || it.captures(own(stream), true));
        hipStreamBeginCaptureToGraph(stream: hipStream_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, data: *const hipGraphEdgeData, count: usize, mode: hipStreamCaptureMode) -> hipError_t,
            |it, call| it.after(call(), || it.captures(stream, false));
        hipStreamEndCapture(stream: hipStream_t, graph: *mut hipGraph_t) -> hipError_t,
            |it, call| it.after(call(), || it.ledger.graphs.capture_ended(stream as usize));
        hipStreamEndCapture_spt(stream: hipStream_t, graph: *mut hipGraph_t) -> hipError_t,
            |it, call| it.after(call(), || it.ledger.graphs.capture_ended(own(stream) as usize));

        hipGraphCreate(graph: *mut hipGraph_t, flags: c_uint) -> hipError_t, |it, call| it.after(call(), || {
            // SAFETY: HIP has stored the handle.
            it.ledger.graphs.began(unsafe { graph.read_unaligned() } as usize);
        });
        hipGraphClone(clone: *mut hipGraph_t, graph: hipGraph_t) -> hipError_t, |it, call| it.after(call(), || {
            // SAFETY: HIP has stored the handle.
            it.ledger.graphs.cloned(unsafe { clone.read_unaligned() } as usize, graph as usize);
        });
        hipGraphDestroy(graph: hipGraph_t) -> hipError_t, |it, call| {
            // Before another graph can reuse the handle.
            let content = it.ledger.graphs.take_graph(graph as usize);
            let status = call();
            if !status.is_success() {
                it.ledger.graphs.give_graph(graph as usize, content);
            }
            status
        };
        hipGraphAddMemcpyNode(node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, count: usize, p: *const hipMemcpy3DParms) -> hipError_t,
            |it, call| it.after(call(), || {
                // SAFETY: HIP accepted the call, so it was given what it reads, and has stored the node.
                let (node, bytes) = unsafe { (node.read_unaligned(), it.of_3d(p)) };
                it.added(graph, node, bytes);
            });
        hipGraphAddMemcpyNode1D(node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, count: usize, dst: *mut c_void, src: *const c_void, bytes: usize, kind: hipMemcpyKind) -> hipError_t,
            // SAFETY: HIP has stored the node.
            |it, call| it.after(call(), || it.added(graph, unsafe { node.read_unaligned() }, bytes));
        hipGraphAddMemcpyNodeFromSymbol(node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, count: usize, dst: *mut c_void, symbol: *const c_void, bytes: usize, offset: usize, kind: hipMemcpyKind) -> hipError_t,
            // SAFETY: HIP has stored the node.
            |it, call| it.after(call(), || it.added(graph, unsafe { node.read_unaligned() }, bytes));
        hipGraphAddMemcpyNodeToSymbol(node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, count: usize, symbol: *const c_void, src: *const c_void, bytes: usize, offset: usize, kind: hipMemcpyKind) -> hipError_t,
            // SAFETY: HIP has stored the node.
            |it, call| it.after(call(), || it.added(graph, unsafe { node.read_unaligned() }, bytes));
        hipDrvGraphAddMemcpyNode(node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, count: usize, p: *const HIP_MEMCPY3D, context: hipCtx_t) -> hipError_t,
            |it, call| it.after(call(), || {
                // SAFETY: HIP accepted the call, so it was given what it reads, and has stored the node.
                let (node, bytes) = unsafe { (node.read_unaligned(), of_driver_3d(p)) };
                it.added(graph, node, bytes);
            });
        hipGraphAddChildGraphNode(node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, count: usize, child: hipGraph_t) -> hipError_t,
            |it, call| it.after(call(), || {
                let copies = it.ledger.graphs.of_graph(child as usize);
                // SAFETY: HIP has stored the node.
                it.ledger.graphs.add(graph as usize, unsafe { node.read_unaligned() } as usize, copies);
            });
        hipGraphAddNode(node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, count: usize, params: *mut hipGraphNodeParams) -> hipError_t,
            |it, call| it.after(call(), || {
                // SAFETY: HIP accepted the call, so it was given what it reads, and has stored the node.
                let (copies, node) = unsafe { (it.of_node(params), node.read_unaligned()) };
                if let Some(copies) = copies {
                    it.ledger.graphs.add(graph as usize, node as usize, copies);
                }
            });
        hipGraphDestroyNode(node: hipGraphNode_t) -> hipError_t, |it, call| {
            // Before another node can reuse the handle. A node that HIP refuses to destroy was not a
            // node.
            it.ledger.graphs.forget_node(node as usize);
            call()
        };
        hipGraphMemcpyNodeSetParams(node: hipGraphNode_t, p: *const hipMemcpy3DParms) -> hipError_t,
            // SAFETY: HIP accepted the call, so it was given what it reads.
            |it, call| it.after(call(), || it.changed(node, unsafe { it.of_3d(p) }));
        hipGraphMemcpyNodeSetParams1D(node: hipGraphNode_t, dst: *mut c_void, src: *const c_void, bytes: usize, kind: hipMemcpyKind) -> hipError_t,
            |it, call| it.after(call(), || it.changed(node, bytes));
        hipGraphMemcpyNodeSetParamsFromSymbol(node: hipGraphNode_t, dst: *mut c_void, symbol: *const c_void, bytes: usize, offset: usize, kind: hipMemcpyKind) -> hipError_t,
            |it, call| it.after(call(), || it.changed(node, bytes));
        hipGraphMemcpyNodeSetParamsToSymbol(node: hipGraphNode_t, symbol: *const c_void, src: *const c_void, bytes: usize, offset: usize, kind: hipMemcpyKind) -> hipError_t,
            |it, call| it.after(call(), || it.changed(node, bytes));
        hipDrvGraphMemcpyNodeSetParams(node: hipGraphNode_t, p: *const HIP_MEMCPY3D) -> hipError_t,
            // SAFETY: HIP accepted the call, so it was given what it reads.
            |it, call| it.after(call(), || it.changed(node, unsafe { of_driver_3d(p) }));
        hipGraphNodeSetParams(node: hipGraphNode_t, params: *mut hipGraphNodeParams) -> hipError_t,
            |it, call| it.after(call(), || {
                // SAFETY: HIP accepted the call, so it was given what it reads.
                if let Some(copies) = unsafe { it.of_node(params) } {
                    it.ledger.graphs.change(node as usize, &copies);
                }
            });

        hipGraphInstantiate(exec: *mut hipGraphExec_t, graph: hipGraph_t, node: *mut hipGraphNode_t, log: *mut std::ffi::c_char, bytes: usize) -> hipError_t,
            // SAFETY: HIP has stored the handle.
            |it, call| it.after(call(), || it.ledger.graphs.instantiated(unsafe { exec.read_unaligned() } as usize, graph as usize));
        hipGraphInstantiateWithFlags(exec: *mut hipGraphExec_t, graph: hipGraph_t, flags: c_ulonglong) -> hipError_t,
            // SAFETY: HIP has stored the handle.
            |it, call| it.after(call(), || it.ledger.graphs.instantiated(unsafe { exec.read_unaligned() } as usize, graph as usize));
        hipGraphInstantiateWithParams(exec: *mut hipGraphExec_t, graph: hipGraph_t, params: *mut hipGraphInstantiateParams) -> hipError_t,
            // SAFETY: HIP has stored the handle.
            |it, call| it.after(call(), || it.ledger.graphs.instantiated(unsafe { exec.read_unaligned() } as usize, graph as usize));
        hipGraphExecUpdate(exec: hipGraphExec_t, graph: hipGraph_t, node: *mut hipGraphNode_t, result: *mut hipGraphExecUpdateResult) -> hipError_t,
            |it, call| it.after(call(), || it.ledger.graphs.instantiated(exec as usize, graph as usize));
        hipGraphExecDestroy(exec: hipGraphExec_t) -> hipError_t, |it, call| {
            // Before another graph can reuse the handle.
            let content = it.ledger.graphs.take_exec(exec as usize);
            let status = call();
            if !status.is_success() {
                it.ledger.graphs.give_exec(exec as usize, content);
            }
            status
        };
        hipGraphExecMemcpyNodeSetParams(exec: hipGraphExec_t, node: hipGraphNode_t, p: *mut hipMemcpy3DParms) -> hipError_t,
            // SAFETY: HIP accepted the call, so it was given what it reads.
            |it, call| it.after(call(), || it.exec_changed(exec, node, unsafe { it.of_3d(p) }));
        hipGraphExecMemcpyNodeSetParams1D(exec: hipGraphExec_t, node: hipGraphNode_t, dst: *mut c_void, src: *const c_void, bytes: usize, kind: hipMemcpyKind) -> hipError_t,
            |it, call| it.after(call(), || it.exec_changed(exec, node, bytes));
        hipGraphExecMemcpyNodeSetParamsFromSymbol(exec: hipGraphExec_t, node: hipGraphNode_t, dst: *mut c_void, symbol: *const c_void, bytes: usize, offset: usize, kind: hipMemcpyKind) -> hipError_t,
            |it, call| it.after(call(), || it.exec_changed(exec, node, bytes));
        hipGraphExecMemcpyNodeSetParamsToSymbol(exec: hipGraphExec_t, node: hipGraphNode_t, symbol: *const c_void, src: *const c_void, bytes: usize, offset: usize, kind: hipMemcpyKind) -> hipError_t,
            |it, call| it.after(call(), || it.exec_changed(exec, node, bytes));
        hipDrvGraphExecMemcpyNodeSetParams(exec: hipGraphExec_t, node: hipGraphNode_t, p: *const HIP_MEMCPY3D, context: hipCtx_t) -> hipError_t,
            // SAFETY: HIP accepted the call, so it was given what it reads.
            |it, call| it.after(call(), || it.exec_changed(exec, node, unsafe { of_driver_3d(p) }));
        hipGraphExecChildGraphNodeSetParams(exec: hipGraphExec_t, node: hipGraphNode_t, child: hipGraph_t) -> hipError_t,
            |it, call| it.after(call(), || {
                let copies = it.ledger.graphs.of_graph(child as usize);
                it.ledger.graphs.change_exec(exec as usize, node as usize, copies);
            });
        hipGraphExecNodeSetParams(exec: hipGraphExec_t, node: hipGraphNode_t, params: *mut hipGraphNodeParams) -> hipError_t,
            |it, call| it.after(call(), || {
                // SAFETY: HIP accepted the call, so it was given what it reads.
                if let Some(copies) = unsafe { it.of_node(params) } {
                    it.ledger.graphs.change_exec(exec as usize, node as usize, copies);
                }
            });
        hipGraphNodeSetEnabled(exec: hipGraphExec_t, node: hipGraphNode_t, enabled: c_uint) -> hipError_t,
            |it, call| it.after(call(), || it.ledger.graphs.enable(exec as usize, node as usize, enabled != 0));
        hipGraphLaunch(exec: hipGraphExec_t, stream: hipStream_t) -> hipError_t, |it, call| {
            // Before another thread can change it.
            let copies = it.ledger.graphs.of_exec(exec as usize);
            it.after(call(), || it.deliver(stream, copies))
        };
        hipGraphLaunch_spt(exec: hipGraphExec_t, stream: hipStream_t) -> hipError_t, |it, call| {
            let copies = it.ledger.graphs.of_exec(exec as usize);
            it.after(call(), || it.deliver(own(stream), copies))
        };
    }

    /// What moves data, or seems to, and is not counted.
    excluded {
        hipMemset hipMemset_spt hipMemsetAsync hipMemsetAsync_spt hipMemset2D hipMemset2D_spt hipMemset2DAsync hipMemset2DAsync_spt
        hipMemset3D hipMemset3D_spt hipMemset3DAsync hipMemset3DAsync_spt hipMemsetD8 hipMemsetD8Async hipMemsetD16 hipMemsetD16Async
        hipMemsetD32 hipMemsetD32Async hipMemsetD2D8 hipMemsetD2D8Async hipMemsetD2D16 hipMemsetD2D16Async hipMemsetD2D32 hipMemsetD2D32Async
        hipGraphAddMemsetNode hipGraphMemsetNodeSetParams hipGraphMemsetNodeGetParams hipGraphExecMemsetNodeSetParams
        hipDrvGraphAddMemsetNode hipDrvGraphAddMemsetNode_until_6 hipDrvGraphExecMemsetNodeSetParams hipDrvGraphExecMemsetNodeSetParams_until_6:
            "a fill writes a constant and reads no data";
        hipMemAdvise hipMemAdvise_v2 hipStreamAttachMemAsync:
            "a hint: pages move on access, which no call in the table shows";
        hipMemDiscardAndPrefetchBatchAsync hipDrvMemDiscardAndPrefetchBatchAsync:
            "the contents are given up first, so that none move";
        hipStreamBatchMemOp hipGraphAddBatchMemOpNode hipGraphBatchMemOpNodeGetParams hipGraphBatchMemOpNodeSetParams
        hipGraphExecBatchMemOpNodeSetParams:
            "words that order work, not data";
        hipGraphUpload: "the graph itself goes to the device";
        hipGraphKernelNodeCopyAttributes hipStreamCopyAttributes: "settings, not data";
        hipGraphMemcpyNodeGetParams hipDrvGraphMemcpyNodeGetParams hipTexRefGetMipMappedArray: "a question";
        hipGraphChildGraphNodeGetGraph: "a question; a change of the graph that it answers with is a change of a child that has been counted";
        hipGraphicsMapResources hipGraphicsUnmapResources hipGraphicsResourceGetMappedPointer hipGraphicsSubResourceGetMappedArray
        hipExternalMemoryGetMappedBuffer hipExternalMemoryGetMappedMipmappedArray:
            "another API's memory, used in place";
    }
}

/// The stream as seen by the functions that end in `_spt`.
fn own(stream: hipStream_t) -> hipStream_t {
    match stream.is_null() {
        true => hipStreamPerThread,
        false => stream,
    }
}

fn area(width: usize, height: usize) -> usize {
    width.saturating_mul(height)
}

/// # Safety
/// `sizes` points to `count` numbers.
unsafe fn total(sizes: *const usize, count: usize) -> usize {
    // SAFETY: this function's contract.
    let size = |index| unsafe { sizes.add(index).read_unaligned() };
    (0..count).map(size).fold(0, usize::saturating_add)
}

/// # Safety
/// `p` points to a description.
unsafe fn of_2d(p: *const hip_Memcpy2D) -> usize {
    // SAFETY: this function's contract.
    let p = unsafe { p.read_unaligned() };
    area(p.WidthInBytes, p.Height)
}

/// # Safety
/// `p` points to a description.
unsafe fn of_driver_3d(p: *const HIP_MEMCPY3D) -> usize {
    // SAFETY: this function's contract.
    let p = unsafe { p.read_unaligned() };
    area(p.WidthInBytes, p.Height).saturating_mul(p.Depth)
}

/// # Safety
/// `p` points to a description.
unsafe fn of_old_driver_3d(p: *const HIP_MEMCPY3D_until_5) -> usize {
    // SAFETY: this function's contract.
    let p = unsafe { p.read_unaligned() };
    area(p.WidthInBytes as usize, p.Height as usize).saturating_mul(p.Depth as usize)
}

impl Call<'_, Api> {
    /// A copy that was made.
    fn copied(&self, bytes: usize) {
        self.ledger.add(&Copied::now(self.function, bytes));
    }

    /// A copy that the stream runs or captures.
    fn queued(&self, stream: hipStream_t, bytes: usize) {
        self.deliver(stream, vec![Copied::now(self.function, bytes)]);
    }

    fn deliver(&self, stream: hipStream_t, copies: Vec<Copied>) {
        if copies.is_empty() {
            return;
        }
        match self.capturing(stream) {
            Some((graph, node)) => self.ledger.graphs.add(graph, node, copies),
            None => copies.iter().for_each(|copy| self.ledger.add(copy)),
        }
    }

    /// The graph that the stream captures into, and the last node added to it.
    fn capturing(&self, stream: hipStream_t) -> Option<(usize, usize)> {
        // The null stream cannot capture.
        if stream.is_null() || !self.ledger.graphs.is_capturing() {
            return None;
        }
        let ask = self.table.hipStreamGetCaptureInfo_v2?;
        let mut status = hipStreamCaptureStatus::hipStreamCaptureStatusNone;
        let (mut id, mut graph) = (0, std::ptr::null_mut());
        let (mut nodes, mut count) = (std::ptr::null(), 0_usize);
        // SAFETY: the stream is one that the caller has just used; there is room for each answer.
        let answer = unsafe { ask(stream, &mut status, &mut id, &mut graph, &mut nodes, &mut count) };
        let active = status == hipStreamCaptureStatus::hipStreamCaptureStatusActive;
        if !answer.is_success() || !active || graph.is_null() {
            return None;
        }
        let node = match count.checked_sub(1) {
            // SAFETY: HIP answered with as many nodes, and this thread has called nothing since.
            Some(last) => unsafe { nodes.add(last).read_unaligned() as usize },
            None => 0,
        };
        Some((graph as usize, node))
    }

    /// The stream captures, into its own graph or an existing one.
    fn captures(&self, stream: hipStream_t, new: bool) {
        self.ledger.graphs.capture_began(stream as usize);
        if new && let Some((graph, _)) = self.capturing(stream) {
            self.ledger.graphs.began(graph);
        }
    }

    fn added(&self, graph: hipGraph_t, node: hipGraphNode_t, bytes: usize) {
        let copies = vec![Copied::now(self.function, bytes)];
        self.ledger.graphs.add(graph as usize, node as usize, copies);
    }

    fn changed(&self, node: hipGraphNode_t, bytes: usize) {
        let copies = [Copied::now(self.function, bytes)];
        self.ledger.graphs.change(node as usize, &copies);
    }

    fn exec_changed(&self, exec: hipGraphExec_t, node: hipGraphNode_t, bytes: usize) {
        let copies = vec![Copied::now(self.function, bytes)];
        let graphs = &self.ledger.graphs;
        graphs.change_exec(exec as usize, node as usize, copies);
    }

    /// What a node with these parameters copies; `None` if it is of another kind.
    ///
    /// # Safety
    /// `params` points to parameters.
    unsafe fn of_node(&self, params: *const hipGraphNodeParams) -> Option<Vec<Copied>> {
        // SAFETY: this function's contract.
        let params = unsafe { params.read_unaligned() };
        match params.type_ {
            hipGraphNodeType::hipGraphNodeTypeMemcpy => {
                // SAFETY: the type says so.
                let copy = unsafe { params.__bindgen_anon_1.memcpy.copyParams };
                // SAFETY: a description.
                let bytes = unsafe { self.of_3d(&copy) };
                Some(vec![Copied::now(self.function, bytes)])
            }
            hipGraphNodeType::hipGraphNodeTypeGraph => {
                // SAFETY: the type says so.
                let child = unsafe { params.__bindgen_anon_1.graph.graph };
                Some(self.ledger.graphs.of_graph(child as usize))
            }
            _ => None,
        }
    }

    /// # Safety
    /// `p` points to a description.
    unsafe fn of_3d(&self, p: *const hipMemcpy3DParms) -> usize {
        // SAFETY: this function's contract.
        let p = unsafe { p.read_unaligned() };
        self.volume(p.extent, [p.srcArray, p.dstArray])
    }

    /// # Safety
    /// `p` points to a description.
    unsafe fn of_3d_peer(&self, p: *const hipMemcpy3DPeerParms) -> usize {
        // SAFETY: this function's contract.
        let p = unsafe { p.read_unaligned() };
        self.volume(p.extent, [p.srcArray, p.dstArray])
    }

    /// # Safety
    /// `list` points to `count` descriptions.
    unsafe fn of_batch(&self, list: *const hipMemcpy3DBatchOp, count: usize) -> usize {
        let array = |operand: &hipMemcpy3DOperand| match operand.type_ {
            // SAFETY: the type says so.
            hipMemcpy3DOperandType::hipMemcpyOperandTypeArray => unsafe { operand.op.array.array },
            _ => std::ptr::null_mut(),
        };
        let bytes = |index| {
            // SAFETY: this function's contract.
            let copy = unsafe { list.add(index).read_unaligned() };
            self.volume(copy.extent, [array(&copy.src), array(&copy.dst)])
        };
        (0..count).map(bytes).fold(0, usize::saturating_add)
    }

    /// The width is in bytes, or in elements if an array is involved.
    fn volume(&self, extent: hipExtent, arrays: [hipArray_t; 2]) -> usize {
        let element = arrays
            .into_iter()
            .find(|array| !array.is_null())
            .map_or(1, |array| self.element_bytes(array));
        area(extent.width, extent.height)
            .saturating_mul(extent.depth)
            .saturating_mul(element)
    }

    fn element_bytes(&self, array: hipArray_t) -> usize {
        /// Of the widest element: overcounting beats undercounting.
        const WIDEST: usize = 16;
        let Some(ask) = self.table.hipArrayGetInfo else {
            return WIDEST;
        };
        let mut format = hipChannelFormatDesc::default();
        let (mut extent, mut flags) = (hipExtent::default(), 0);
        // SAFETY: an array that HIP has just copied from or to; there is room for each answer.
        let answer = unsafe { ask(&mut format, &mut extent, &mut flags, array) };
        let bits = [format.x, format.y, format.z, format.w].map(i32::unsigned_abs);
        match usize::try_from(bits.iter().sum::<u32>() / 8) {
            Ok(bytes) if answer.is_success() && bytes > 0 => bytes,
            _ => WIDEST,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_that_copies_is_counted_or_excluded_with_a_reason() {
        const MOVES: [&str; 14] = [
            "cpy",
            "Copy",
            "Prefetch",
            "Memset",
            "Advise",
            "Attach",
            "BatchMemOp",
            "Upload",
            "GraphLaunch",
            "Mapped",
            "MapResources",
            "Migrate",
            "Fill",
            "ChildGraph",
        ];
        const GRAPHS: [&str; 7] = [
            "BeginCapture",
            "EndCapture",
            "GraphInstantiate",
            "GraphExecUpdate",
            "GraphClone",
            "GraphAddNode",
            "NodeSetEnabled",
        ];
        let moves = |symbol: &str| {
            MOVES.iter().chain(&GRAPHS).any(|word| symbol.contains(word))
                || ["hipGraphNodeSetParams", "hipGraphExecNodeSetParams"].contains(&symbol)
        };
        slots::check_lists(Api::SYMBOLS, COUNTED, EXCLUDED, moves);
    }
}
