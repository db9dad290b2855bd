//! What ROCm 7.2.4 answers about graphs, asked of the real library on an emulated card.

mod common;

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::*;
use hip_sys::{
    HIP_MEMCPY3D, hipError_t, hipGraph_t, hipGraphExec_t, hipGraphExecUpdateResult, hipGraphMemAttributeType,
    hipGraphNode_t, hipGraphNodeParams, hipGraphNodeType, hipMemAllocNodeParams, hipMemAllocationType,
    hipMemLocationType, hipMemcpy3DParms, hipMemcpyKind, hipMemoryType, hipPitchedPtr, hipUserObject_t,
};

const INVALID: hipError_t = hipError_t::hipErrorInvalidValue;
const NOT_SUPPORTED: hipError_t = hipError_t::hipErrorNotSupported;
const TO_DEVICE: hipMemcpyKind = hipMemcpyKind::hipMemcpyHostToDevice;
const TO_HOST: hipMemcpyKind = hipMemcpyKind::hipMemcpyDeviceToHost;
const ON_DEVICE: hipMemcpyKind = hipMemcpyKind::hipMemcpyDeviceToDevice;

fn graph() -> hipGraph_t {
    let mut graph = null_mut();
    ok!(hipGraphCreate(&mut graph, 0));
    graph
}

fn empty(graph: hipGraph_t, after: &[hipGraphNode_t]) -> hipGraphNode_t {
    let mut node = null_mut();
    ok!(hipGraphAddEmptyNode(&mut node, graph, after.as_ptr(), after.len()));
    node
}

fn ready(graph: hipGraph_t) -> hipGraphExec_t {
    let mut exec = null_mut();
    ok!(hipGraphInstantiateWithFlags(&mut exec, graph, 0));
    exec
}

fn copy(graph: hipGraph_t, to: *mut c_void, from: *mut c_void, kind: hipMemcpyKind) -> hipGraphNode_t {
    let mut node = null_mut();
    ok!(hipGraphAddMemcpyNode1D(&mut node, graph, null(), 0, to, from, 64, kind));
    node
}

fn pinned() -> *mut c_void {
    let mut ptr = null_mut();
    ok!(hipHostMalloc(&mut ptr, 4096, 0));
    ptr
}

fn allocation() -> hipMemAllocNodeParams {
    let mut params = hipMemAllocNodeParams {
        bytesize: 4096,
        ..hipMemAllocNodeParams::default()
    };
    params.poolProps.allocType = hipMemAllocationType::hipMemAllocationTypePinned;
    params.poolProps.location.type_ = hipMemLocationType::hipMemLocationTypeDevice;
    params
}

#[test]
fn a_graph_may_be_its_own_child_as_it_is_now() {
    let graph = graph();
    empty(graph, &[]);
    let (mut node, mut child, mut count) = (null_mut(), null_mut(), 0);
    ok!(hipGraphAddChildGraphNode(&mut node, graph, null(), 0, graph));
    ok!(hipGraphChildGraphNodeGetGraph(node, &mut child));
    ok!(hipGraphGetNodes(child, null_mut(), &mut count));
    assert_eq!(count, 1);
    ok!(hipGraphExecDestroy(ready(graph)));
    ok!(hipGraphDestroy(graph));
}

#[test]
fn a_copy_node_is_never_empty_and_becomes_no_copy_onto_itself() {
    let (graph, a, b, host) = (graph(), malloc(4096), malloc(4096), pinned());
    let mut node = null_mut();
    let add = |to, from, bytes, kind| {
        let mut node = null_mut();
        hip!(hipGraphAddMemcpyNode1D(
            &mut node,
            graph,
            null(),
            0,
            to,
            from,
            bytes,
            kind
        ))
    };
    assert_eq!(add(a, b, 0, ON_DEVICE), INVALID);
    assert_eq!(add(a, a, 64, ON_DEVICE), OK);
    assert_eq!(add(a, b, 8192, ON_DEVICE), INVALID);
    ok!(hipGraphAddMemcpyNode1D(
        &mut node,
        graph,
        null(),
        0,
        a,
        host,
        64,
        TO_DEVICE
    ));
    let set = |to, from, bytes, kind| hip!(hipGraphMemcpyNodeSetParams1D(node, to, from, bytes, kind));
    assert_eq!(set(a, host, 0, TO_DEVICE), INVALID);
    assert_eq!(set(a, a, 64, ON_DEVICE), INVALID);
    // A node changes its direction, what was made ready does not.
    assert_eq!(set(host, a, 64, TO_HOST), OK);
    assert_eq!(set(a, b, 64, ON_DEVICE), OK);
    assert_eq!(set(a, host, 64, TO_DEVICE), OK);
    let exec = ready(graph);
    let set = |to, from, bytes, kind| hip!(hipGraphExecMemcpyNodeSetParams1D(exec, node, to, from, bytes, kind));
    assert_eq!(set(a, host, 0, TO_DEVICE), INVALID);
    assert_eq!(set(host, a, 64, TO_HOST), INVALID);
    assert_eq!(set(a, b, 64, ON_DEVICE), INVALID);
    assert_eq!(set(b, host, 64, hipMemcpyKind::hipMemcpyDefault), INVALID);
    assert_eq!(set(b, host, 64, TO_DEVICE), OK);
    ok!(hipGraphExecDestroy(exec));
    ok!(hipGraphDestroy(graph));
    ok!(hipFree(a));
    ok!(hipFree(b));
    ok!(hipHostFree(host));
}

#[test]
fn a_bad_pitch_is_a_code_of_its_own_for_nodes_and_invalid_once_made_ready() {
    let (graph, a, host) = (graph(), malloc(4096), pinned());
    let node = copy(graph, a, host, TO_DEVICE);
    let exec = ready(graph);
    let params = |to: *mut c_void, pitch, from: *mut c_void, kind| {
        let mut params = hipMemcpy3DParms {
            dstPtr: hipPitchedPtr {
                ptr: to,
                pitch,
                xsize: 64,
                ysize: 4,
            },
            srcPtr: hipPitchedPtr {
                ptr: from,
                pitch: 64,
                xsize: 64,
                ysize: 4,
            },
            kind,
            ..hipMemcpy3DParms::default()
        };
        (params.extent.width, params.extent.height, params.extent.depth) = (64, 4, 1);
        params
    };
    let mut bad = params(a, 32, host, TO_DEVICE);
    assert_eq!(hip!(hipGraphExecMemcpyNodeSetParams(exec, node, &mut bad)), INVALID);
    let code = hip!(hipGraphMemcpyNodeSetParams(node, &bad));
    assert_eq!(code, hipError_t::hipErrorInvalidPitchValue);
    let mut back = params(host, 64, a, TO_HOST);
    assert_eq!(hip!(hipGraphExecMemcpyNodeSetParams(exec, node, &mut back)), INVALID);
    ok!(hipGraphMemcpyNodeSetParams(node, &back));
    let mut good = params(a, 64, host, TO_DEVICE);
    ok!(hipGraphExecMemcpyNodeSetParams(exec, node, &mut good));
    ok!(hipGraphExecDestroy(exec));
    ok!(hipGraphDestroy(graph));
    ok!(hipFree(a));
    ok!(hipHostFree(host));
}

#[test]
fn an_update_names_the_node_that_differs_and_none_where_the_shape_does() {
    let (base, a, host) = (graph(), malloc(4096), pinned());
    copy(base, a, host, TO_DEVICE);
    let exec = ready(base);
    let update = |graph| {
        let (mut node, mut result) = (5 as hipGraphNode_t, hipGraphExecUpdateResult(77));
        let code = hip!(hipGraphExecUpdate(exec, graph, &mut node, &mut result));
        (code, result.0, node)
    };
    let failed = hipError_t::hipErrorGraphExecUpdateFailure;
    let other = graph();
    let back = copy(other, host, a, TO_HOST);
    assert_eq!(update(other), (failed, 5, back));
    let more = empty(other, &[back]);
    assert_eq!(update(other), (failed, 2, null_mut()));
    ok!(hipGraphDestroyNode(back));
    assert_eq!(update(other), (failed, 3, more));
    let nothing = graph();
    assert_eq!(update(nothing), (failed, 2, null_mut()));
    assert_eq!(update(base), (OK, 0, null_mut()));
    ok!(hipGraphExecDestroy(exec));
    for graph in [base, other, nothing] {
        ok!(hipGraphDestroy(graph));
    }
    ok!(hipFree(a));
    ok!(hipHostFree(host));
}

#[test]
fn a_child_that_was_made_ready_keeps_its_shape() {
    let (child, parent) = (graph(), graph());
    let first = empty(child, &[]);
    let mut node = null_mut();
    ok!(hipGraphAddChildGraphNode(&mut node, parent, null(), 0, child));
    let exec = ready(parent);
    let set = |node, child| hip!(hipGraphExecChildGraphNodeSetParams(exec, node, child));
    assert_eq!(set(node, child), OK);
    let unknown = hipError_t::hipErrorUnknown;
    assert_eq!(set(node, parent), unknown);
    empty(child, &[first]);
    assert_eq!(set(node, child), unknown);
    assert_eq!(set(node, null_mut()), INVALID);
    assert_eq!(set(first, child), INVALID);
    ok!(hipGraphExecDestroy(exec));
    ok!(hipGraphDestroy(child));
    ok!(hipGraphDestroy(parent));
}

#[test]
fn a_graph_with_memory_is_made_ready_once_and_not_cloned() {
    let graph = graph();
    let (mut node, mut params) = (null_mut(), allocation());
    ok!(hipGraphAddMemAllocNode(&mut node, graph, null(), 0, &mut params));
    let exec = ready(graph);
    let again = || {
        let mut exec = null_mut();
        hip!(hipGraphInstantiateWithFlags(&mut exec, graph, 0))
    };
    assert_eq!(again(), NOT_SUPPORTED);
    ok!(hipGraphExecDestroy(exec));
    assert_eq!(again(), NOT_SUPPORTED);
    let mut clone = null_mut();
    assert_eq!(hip!(hipGraphClone(&mut clone, graph)), NOT_SUPPORTED);
    // As a child it is part of another, which has no memory of its own.
    let parent = self::graph();
    ok!(hipGraphAddChildGraphNode(&mut node, parent, null(), 0, graph));
    ok!(hipGraphExecDestroy(ready(parent)));
    ok!(hipGraphClone(&mut clone, parent));
    for graph in [clone, parent, graph] {
        ok!(hipGraphDestroy(graph));
    }
}

#[test]
fn the_memory_of_graphs_is_counted_while_launches_hold_it() {
    let ask = |device, which| {
        let mut value = 9u64;
        let out = (&raw mut value).cast();
        let which = hipGraphMemAttributeType(which);
        (hip!(hipDeviceGetGraphMemAttribute(device, which, out)), value)
    };
    let set = |which, mut value: u64| {
        let value = (&raw mut value).cast();
        hip!(hipDeviceSetGraphMemAttribute(0, hipGraphMemAttributeType(which), value))
    };
    for which in 0..4 {
        assert_eq!(ask(0, which), (OK, 0));
    }
    assert_eq!(ask(0, 4).0, INVALID);
    assert_eq!(ask(7, 0).0, hipError_t::hipErrorInvalidDevice);
    // The marks are set back, to nothing but zero.
    for (which, value, code) in [
        (0, 0, INVALID),
        (1, 0, OK),
        (2, 0, INVALID),
        (3, 0, OK),
        (1, 5, INVALID),
        (4, 0, INVALID),
    ] {
        assert_eq!(set(which, value), code, "{which}");
    }
    let graph = graph();
    let (mut node, mut params) = (null_mut(), allocation());
    ok!(hipGraphAddMemAllocNode(&mut node, graph, null(), 0, &mut params));
    let exec = ready(graph);
    assert_eq!(ask(0, 0), (OK, 0));
    ok!(hipGraphLaunch(exec, null_mut()));
    ok!(hipDeviceSynchronize());
    assert_eq!((ask(0, 0), ask(0, 1)), ((OK, 4096), (OK, 4096)));
    ok!(hipFree(params.dptr));
    assert_eq!((ask(0, 0), ask(0, 1)), ((OK, 0), (OK, 4096)));
    assert_eq!(set(1, 0), OK);
    assert_eq!(ask(0, 1), (OK, 0));
    ok!(hipDeviceGraphMemTrim(0));
    assert_eq!(hip!(hipDeviceGraphMemTrim(-1)), hipError_t::hipErrorInvalidDevice);
    ok!(hipGraphExecDestroy(exec));
    ok!(hipGraphDestroy(graph));
}

extern "C" fn count(ended: *mut c_void) {
    // SAFETY: the test gives a counter that outlives the object.
    unsafe { &*ended.cast::<AtomicUsize>() }.fetch_add(1, Ordering::AcqRel);
}

fn object(ended: &AtomicUsize, references: u32) -> hipUserObject_t {
    let mut object = null_mut();
    let user = (&raw const *ended).cast_mut().cast();
    ok!(hipUserObjectCreate(&mut object, user, Some(count), references, 1));
    object
}

#[test]
fn an_object_ends_with_its_last_reference() {
    let ended = AtomicUsize::new(0);
    let create = |out, end, references, flags| hip!(hipUserObjectCreate(out, null_mut(), end, references, flags));
    let mut none = null_mut();
    let end: hip_sys::hipHostFn_t = Some(count);
    assert_eq!(create(null_mut(), end, 1, 1), INVALID);
    assert_eq!(create(&mut none, None, 1, 1), INVALID);
    assert_eq!(create(&mut none, end, 0, 1), INVALID);
    assert_eq!(create(&mut none, end, 1, 0), INVALID);
    assert_eq!(create(&mut none, end, 1 << 31, 1), INVALID);
    let object = object(&ended, 1);
    for count in [0, 1 << 31] {
        assert_eq!(hip!(hipUserObjectRetain(object, count)), INVALID);
        assert_eq!(hip!(hipUserObjectRelease(object, count)), INVALID);
    }
    ok!(hipUserObjectRetain(object, 1));
    ok!(hipUserObjectRelease(object, 1));
    // More than there are change nothing.
    ok!(hipUserObjectRelease(object, 3));
    assert_eq!(ended.load(Ordering::Acquire), 0);
    ok!(hipUserObjectRelease(object, 1));
    assert_eq!(ended.load(Ordering::Acquire), 1);
    assert_eq!(hip!(hipUserObjectRelease(object, 1)), INVALID);
}

#[test]
fn a_graph_its_clone_and_what_was_made_ready_keep_an_object() {
    let ended = AtomicUsize::new(0);
    let is_over = || ended.load(Ordering::Acquire) > 0;
    let graph = graph();
    let object = object(&ended, 1);
    let retain = |object, count, flags| hip!(hipGraphRetainUserObject(graph, object, count, flags));
    assert_eq!(retain(object, 0, 0), INVALID);
    assert_eq!(retain(object, 1, 2), INVALID);
    assert_eq!(retain(null_mut(), 1, 0), INVALID);
    // Moved: the program's reference is the graph's now.
    assert_eq!(retain(object, 1, 1), OK);
    let mut clone = null_mut();
    ok!(hipGraphClone(&mut clone, graph));
    let exec = ready(graph);
    ok!(hipGraphDestroy(graph));
    ok!(hipGraphDestroy(clone));
    ok!(hipGraphLaunch(exec, null_mut()));
    ok!(hipDeviceSynchronize());
    assert!(!is_over());
    ok!(hipGraphExecDestroy(exec));
    assert!(is_over());
}

#[test]
fn a_graph_releases_what_it_holds() {
    let ended = AtomicUsize::new(0);
    let (holder, other) = (graph(), graph());
    let object = object(&ended, 1);
    let release = |graph, count| hip!(hipGraphReleaseUserObject(graph, object, count));
    ok!(hipGraphRetainUserObject(holder, object, 1, 0));
    assert_eq!(release(other, 1), OK);
    assert_eq!(release(holder, 0), INVALID);
    assert_eq!(release(holder, 5), OK);
    ok!(hipUserObjectRelease(object, 1));
    assert_eq!(ended.load(Ordering::Acquire), 0);
    assert_eq!(release(holder, 1), OK);
    assert_eq!(ended.load(Ordering::Acquire), 1);
    ok!(hipGraphDestroy(holder));
    ok!(hipGraphDestroy(other));
    assert_eq!(ended.load(Ordering::Acquire), 1);
}

#[test]
fn one_call_adds_nodes_of_every_kind_but_empty_ones() {
    let (graph, a, b) = (graph(), malloc(4096), malloc(4096));
    let child = self::graph();
    empty(child, &[]);
    let mut event = null_mut();
    ok!(hipEventCreate(&mut event));
    let add = |params: &mut hipGraphNodeParams| {
        let mut node = null_mut();
        let code = hip!(hipGraphAddNode(&mut node, graph, null(), 0, params));
        let mut kind = hipGraphNodeType(99);
        if code == OK {
            ok!(hipGraphNodeGetType(node, &mut kind));
        }
        (code, kind)
    };
    let params = |kind| hipGraphNodeParams {
        type_: kind,
        ..hipGraphNodeParams::default()
    };
    let made = |kind| (OK, kind);

    let mut set = params(hipGraphNodeType::hipGraphNodeTypeMemset);
    set.__bindgen_anon_1.memset = hip_sys::hipMemsetParams {
        dst: a,
        elementSize: 1,
        height: 1,
        pitch: 0,
        value: 5,
        width: 16,
    };
    assert_eq!(add(&mut set), made(set.type_));
    let mut host = params(hipGraphNodeType::hipGraphNodeTypeHost);
    assert_eq!(add(&mut host).0, INVALID);
    host.__bindgen_anon_1.host.fn_ = Some(count);
    assert_eq!(add(&mut host), made(host.type_));
    let mut inner = params(hipGraphNodeType::hipGraphNodeTypeGraph);
    inner.__bindgen_anon_1.graph.graph = child;
    assert_eq!(add(&mut inner), made(inner.type_));
    let mut wait = params(hipGraphNodeType::hipGraphNodeTypeWaitEvent);
    wait.__bindgen_anon_1.eventWait.event = event;
    assert_eq!(add(&mut wait), made(wait.type_));
    let mut record = params(hipGraphNodeType::hipGraphNodeTypeEventRecord);
    record.__bindgen_anon_1.eventRecord.event = event;
    assert_eq!(add(&mut record), made(record.type_));
    let mut alloc = params(hipGraphNodeType::hipGraphNodeTypeMemAlloc);
    alloc.__bindgen_anon_1.alloc = allocation();
    assert_eq!(add(&mut alloc), made(alloc.type_));
    // SAFETY: the kind that the call wrote to.
    let memory = unsafe { alloc.__bindgen_anon_1.alloc.dptr };
    assert!(!memory.is_null());
    let mut free = params(hipGraphNodeType::hipGraphNodeTypeMemFree);
    free.__bindgen_anon_1.free.dptr = memory;
    assert_eq!(add(&mut free), made(free.type_));
    for (kind, code) in [
        (5, INVALID),
        (8, NOT_SUPPORTED),
        (9, NOT_SUPPORTED),
        (12, INVALID),
        (99, INVALID),
    ] {
        assert_eq!(add(&mut params(hipGraphNodeType(kind))).0, code, "{kind}");
    }
    let mut node = null_mut();
    assert_eq!(hip!(hipGraphAddNode(&mut node, graph, null(), 0, null_mut())), INVALID);
    assert_eq!(
        hip!(hipGraphAddNode(&mut node, null_mut(), null(), 0, &mut set)),
        INVALID
    );
    ok!(hipGraphDestroy(graph));
    ok!(hipGraphDestroy(child));
    ok!(hipEventDestroy(event));
    ok!(hipFree(a));
    ok!(hipFree(b));
}

#[test]
fn a_copy_in_the_drivers_words_becomes_a_node_of_a_context() {
    let (graph, a, b) = (graph(), malloc(4096), upload(&[7u8; 4096]));
    let mut context = null_mut();
    ok!(hipCtxGetCurrent(&mut context));
    let device = hipMemoryType::hipMemoryTypeDevice;
    let params = |width| HIP_MEMCPY3D {
        srcMemoryType: device,
        srcDevice: b,
        srcPitch: 64,
        dstMemoryType: device,
        dstDevice: a,
        dstPitch: 64,
        WidthInBytes: width,
        Height: 1,
        Depth: 1,
        ..HIP_MEMCPY3D::default()
    };
    let mut node = null_mut();
    let mut add = |params: *const HIP_MEMCPY3D, context| {
        hip!(hipDrvGraphAddMemcpyNode(&mut node, graph, null(), 0, params, context))
    };
    assert_eq!(add(&params(64), null_mut()), INVALID);
    assert_eq!(add(null(), context), INVALID);
    assert_eq!(add(&params(0), context), INVALID);
    assert_eq!(add(&params(64), context), OK);
    let exec = ready(graph);
    ok!(hipGraphLaunch(exec, null_mut()));
    ok!(hipDeviceSynchronize());
    assert_eq!(download::<u8>(a, 64), [7; 64]);
    ok!(hipGraphExecDestroy(exec));
    ok!(hipGraphDestroy(graph));
    ok!(hipFree(a));
    ok!(hipFree(b));
}
