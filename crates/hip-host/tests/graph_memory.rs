//! Memory that belongs to a graph: captured from streams, and made by hand.

mod common;

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use common::*;
use hip_sys::{
    hipError_t, hipGraph_t, hipGraphExec_t, hipGraphNode_t, hipGraphNodeType, hipMemAllocNodeParams,
    hipMemAllocationType, hipMemLocation, hipMemLocationType, hipMemPoolProps, hipMemcpyKind, hipMemsetParams,
    hipStream_t, hipStreamCaptureMode,
};

const INVALID: hipError_t = hipError_t::hipErrorInvalidValue;
const AUTO_FREE: u64 = 1;

fn begin(stream: hipStream_t) {
    // A stricter capture would end where another test, on its own thread, allocates.
    let mode = hipStreamCaptureMode::hipStreamCaptureModeRelaxed;
    ok!(hipStreamBeginCapture(stream, mode));
}

fn end(stream: hipStream_t) -> hipGraph_t {
    let mut graph = null_mut();
    ok!(hipStreamEndCapture(stream, &mut graph));
    graph
}

fn ready(graph: hipGraph_t, flags: u64) -> hipGraphExec_t {
    let mut exec = null_mut();
    ok!(hipGraphInstantiateWithFlags(&mut exec, graph, flags));
    exec
}

fn allocate_in(stream: hipStream_t, bytes: usize) -> *mut c_void {
    let mut ptr = null_mut();
    ok!(hipMallocAsync(&mut ptr, bytes, stream));
    ptr
}

fn kinds(graph: hipGraph_t) -> Vec<hipGraphNodeType> {
    let mut nodes = [null_mut(); 8];
    let mut count = nodes.len();
    ok!(hipGraphGetNodes(graph, nodes.as_mut_ptr(), &mut count));
    let kind = |&node: &hipGraphNode_t| {
        let mut kind = hipGraphNodeType::hipGraphNodeTypeEmpty;
        ok!(hipGraphNodeGetType(node, &mut kind));
        kind
    };
    nodes[..count].iter().map(kind).collect()
}

#[test]
fn a_captured_allocation_serves_each_launch_and_ends_with_the_graph() {
    let (stream, out) = (stream(), malloc(4096));
    let mode = hipMemcpyKind::hipMemcpyDeviceToDevice;
    begin(stream);
    let scratch = allocate_in(stream, 4096);
    ok!(hipMemsetD32Async(scratch, 7, 1024, stream));
    ok!(hipMemcpyAsync(out, scratch, 4096, mode, stream));
    ok!(hipFreeAsync(scratch, stream));
    let graph = end(stream);
    assert_eq!(
        kinds(graph),
        [
            hipGraphNodeType::hipGraphNodeTypeMemAlloc,
            hipGraphNodeType::hipGraphNodeTypeMemset,
            hipGraphNodeType::hipGraphNodeTypeMemcpy,
            hipGraphNodeType::hipGraphNodeTypeMemFree,
        ]
    );
    let exec = ready(graph, 0);
    for _ in 0..3 {
        ok!(hipMemsetD32Async(out, 0, 1024, stream));
        ok!(hipGraphLaunch(exec, stream));
        ok!(hipStreamSynchronize(stream));
        assert_eq!(download::<u32>(out, 1024), [7; 1024]);
    }
    ok!(hipGraphDestroy(graph));
    ok!(hipGraphLaunch(exec, stream));
    ok!(hipGraphExecDestroy(exec));
    assert_eq!(hip!(hipMemset(scratch, 0, 4096)), INVALID);
}

#[test]
fn what_a_launch_allocated_is_the_programs_until_it_frees_it() {
    let stream = stream();
    begin(stream);
    let kept = allocate_in(stream, 64);
    ok!(hipMemsetD32Async(kept, 5, 16, stream));
    let graph = end(stream);
    let exec = ready(graph, 0);
    // Nothing allocated it yet.
    assert_eq!(hip!(hipFree(kept)), INVALID);
    ok!(hipGraphLaunch(exec, stream));
    ok!(hipStreamSynchronize(stream));
    assert_eq!(download::<u32>(kept, 16), [5; 16]);
    assert_eq!(hip!(hipGraphLaunch(exec, stream)), INVALID);
    ok!(hipFreeAsync(kept, stream));
    assert_eq!(hip!(hipFreeAsync(kept, stream)), INVALID);
    ok!(hipGraphLaunch(exec, stream));
    ok!(hipGraphExecDestroy(exec));
    ok!(hipGraphDestroy(graph));
    // It outlives the graph.
    ok!(hipStreamSynchronize(stream));
    assert_eq!(download::<u32>(kept, 16), [5; 16]);
    ok!(hipFree(kept));
    assert_eq!(hip!(hipFree(kept)), INVALID);
}

#[test]
fn a_graph_made_ready_to_free_by_itself_can_be_launched_again() {
    let stream = stream();
    begin(stream);
    let memory = allocate_in(stream, 64);
    ok!(hipMemsetD32Async(memory, 5, 8, stream));
    let exec = ready(end(stream), AUTO_FREE);
    for _ in 0..2 {
        ok!(hipGraphLaunch(exec, stream));
    }
    ok!(hipStreamSynchronize(stream));
    // What no node wrote is not what an earlier launch left there.
    let words = download::<u32>(memory, 16);
    assert_eq!(words[..8], [5; 8]);
    assert_eq!(words[8..], [0xa5a5_a5a5; 8]);
}

fn description(bytes: usize) -> hipMemAllocNodeParams {
    hipMemAllocNodeParams {
        poolProps: hipMemPoolProps {
            allocType: hipMemAllocationType::hipMemAllocationTypePinned,
            location: hipMemLocation {
                type_: hipMemLocationType::hipMemLocationTypeDevice,
                id: 0,
            },
            ..hipMemPoolProps::default()
        },
        bytesize: bytes,
        ..hipMemAllocNodeParams::default()
    }
}

#[test]
fn nodes_made_by_hand_tell_their_address_and_use_it() {
    let (mut graph, stream) = (null_mut(), stream());
    ok!(hipGraphCreate(&mut graph, 0));
    let mut given = description(256);
    let (mut allocates, mut fills, mut frees) = (null_mut(), null_mut(), null_mut());
    ok!(hipGraphAddMemAllocNode(&mut allocates, graph, null(), 0, &mut given));
    assert!(!given.dptr.is_null());
    let mut told = hipMemAllocNodeParams::default();
    ok!(hipGraphMemAllocNodeGetParams(allocates, &mut told));
    assert_eq!((told.dptr, told.bytesize), (given.dptr, 256));
    let filling = hipMemsetParams {
        dst: given.dptr,
        elementSize: 1,
        width: 256,
        height: 1,
        pitch: 256,
        value: 9,
    };
    ok!(hipGraphAddMemsetNode(&mut fills, graph, &allocates, 1, &filling));
    ok!(hipGraphAddMemFreeNode(&mut frees, graph, &fills, 1, given.dptr));
    let mut freed: *mut c_void = null_mut();
    ok!(hipGraphMemFreeNodeGetParams(frees, (&raw mut freed).cast()));
    assert_eq!(freed, given.dptr);
    assert_eq!(hip!(hipGraphMemAllocNodeGetParams(frees, &mut told)), INVALID);
    let exec = ready(graph, 0);
    for _ in 0..2 {
        ok!(hipGraphLaunch(exec, stream));
    }
    ok!(hipStreamSynchronize(stream));
}

#[test]
fn nodes_that_cannot_be_are_refused() {
    let mut graph = null_mut();
    ok!(hipGraphCreate(&mut graph, 0));
    let mut node = null_mut();
    let mut add =
        |mut params: hipMemAllocNodeParams| hip!(hipGraphAddMemAllocNode(&mut node, graph, null(), 0, &mut params));
    assert_eq!(add(description(0)), INVALID);
    let mut elsewhere = description(64);
    elsewhere.poolProps.location.id = 99;
    assert_eq!(add(elsewhere), INVALID);
    let mut managed = description(64);
    managed.poolProps.allocType = hipMemAllocationType::hipMemAllocationTypeInvalid;
    assert_eq!(add(managed), INVALID);
    let mut word = 0u32;
    let host = (&raw mut word).cast();
    for pointer in [null_mut(), host] {
        assert_eq!(
            hip!(hipGraphAddMemFreeNode(&mut node, graph, null(), 0, pointer)),
            INVALID
        );
    }
    assert_eq!(kinds(graph), []);
}
