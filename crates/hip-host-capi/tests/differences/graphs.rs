//! Graphs and captures.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use hip_sys::{
    hipError_t, hipGraphExecUpdateResult, hipGraphNode_t, hipGraphNodeType, hipHostNodeParams, hipMemAllocNodeParams,
    hipMemAllocationType, hipMemLocationType, hipMemcpyKind, hipMemsetParams, hipStreamCaptureMode,
    hipStreamCaptureStatus, hipUserObject_t,
};

use crate::world::{Kind, World, call, pick, slot};

unsafe extern "C" fn nothing(_user: *mut c_void) {}

pub fn step(w: &mut World) {
    match w.random.below(30) {
        0..=1 => create(w),
        2..=9 => add(w),
        10 => connect(w),
        11..=12 => ask(w),
        13 => clone(w),
        14 => destroy_node(w),
        15..=17 => instantiate(w),
        18..=19 => launch(w),
        20 => set(w),
        21 => set_ready(w),
        22 => enable(w),
        23 => update(w),
        24 => destroy(w),
        25 => objects(w),
        26 => graph_memory(w),
        _ => capture(w),
    }
}

fn create(w: &mut World) {
    let mut graph = null_mut();
    let flags = w.random.of(&[0, 0, 0, 0, 1]);
    w.about("hipGraphCreate", flags);
    let code = call!(w.hipGraphCreate(&mut graph, flags));
    w.answered(code);
    let mut new = slot(graph, 0);
    new.gone = graph.is_null();
    w.graphs.push(new);
}

/// A living graph: ROCm follows the address of one that was destroyed.
fn graph(w: &mut World) -> Option<usize> {
    pick(&mut w.random, &w.graphs, false)
}

/// Another graph: ROCm frees one that is its own child twice.
fn graph_but(w: &mut World, not: usize) -> Option<usize> {
    graph(w).filter(|&at| at != not)
}

fn named(w: &World, at: usize) -> String {
    let gone = if w.graphs[at].gone { ":gone" } else { "" };
    format!("g{at}{gone}")
}

/// Nodes of a graph, but for once in a while of another.
fn node_of(w: &mut World, graph: usize) -> Option<usize> {
    let other = w.random.once_in(15);
    let places: Vec<usize> = (0..w.nodes.len())
        .filter(|&at| !w.nodes[at].gone && (other || w.nodes[at].note == graph))
        .collect();
    (!places.is_empty()).then(|| w.random.of(&places))
}

fn any_node(w: &mut World) -> Option<usize> {
    pick(&mut w.random, &w.nodes, false)
}

fn named_node(w: &World, at: usize) -> String {
    format!("n{at}:g{}", w.nodes[at].note)
}

fn device_memory(w: &mut World, kinds: &[Kind]) -> Option<(*mut c_void, usize, String)> {
    let at = w.memory(|m| kinds.contains(&m.kind) && m.bytes >= 64, false)?;
    Some((w.memories[at].address, w.memories[at].bytes, w.named(at)))
}

fn add(w: &mut World) {
    let Some(at) = graph(w) else {
        return create(w);
    };
    let graph = w.graphs[at].handle;
    let mut after = Vec::new();
    let mut names = Vec::new();
    for _ in 0..w.random.below(3) {
        if let Some(node) = node_of(w, at) {
            after.push(w.nodes[node].handle);
            names.push(named_node(w, node));
        }
    }
    let (list, count) = (after.as_ptr(), after.len());
    let mut node: hipGraphNode_t = null_mut();
    let head = format!("{}, after [{}]", named(w, at), names.join(" "));
    let code = match w.random.below(10) {
        0..=1 => {
            w.about("hipGraphAddEmptyNode", head);
            call!(w.hipGraphAddEmptyNode(&mut node, graph, list, count))
        }
        2..=3 => {
            let Some((to, bytes, to_name)) = device_memory(w, &[Kind::Device]) else {
                return crate::memory::step(w);
            };
            let kinds = [Kind::Device, Kind::Pinned, Kind::Pinned];
            let Some((from, from_bytes, from_name)) = device_memory(w, &kinds) else {
                return;
            };
            let bytes = bytes.min(from_bytes);
            let bytes = w.random.of(&[bytes, bytes / 2, 64, 0]);
            let right = if from_name.contains("Device") { 3 } else { 1 };
            let kind = w.random.of(&[right, right, right, right, 4, 2]);
            w.about(
                "hipGraphAddMemcpyNode1D",
                format!("{head}, {to_name}, {from_name}, {bytes}, {kind}"),
            );
            let kind = hipMemcpyKind(kind);
            call!(w.hipGraphAddMemcpyNode1D(&mut node, graph, list, count, to, from, bytes, kind))
        }
        4..=5 => {
            let Some((to, _, name)) = device_memory(w, &[Kind::Device, Kind::Managed]) else {
                return crate::memory::step(w);
            };
            let params = set_params(w, to);
            w.about(
                "hipGraphAddMemsetNode",
                format!(
                    "{head}, {name}, {}, {}, {}, {}",
                    params.elementSize, params.width, params.height, params.pitch
                ),
            );
            call!(w.hipGraphAddMemsetNode(&mut node, graph, list, count, &params))
        }
        6 => {
            let none = w.random.once_in(6);
            let params = hipHostNodeParams {
                fn_: (!none).then_some(nothing),
                userData: null_mut(),
            };
            w.about(
                "hipGraphAddHostNode",
                format!("{head}{}", if none { ", null" } else { "" }),
            );
            call!(w.hipGraphAddHostNode(&mut node, graph, list, count, &params))
        }
        7 => {
            let Some(event) = pick(&mut w.random, &w.events, false) else {
                return crate::streams::create_event(w);
            };
            let event = w.events[event].handle;
            if w.random.once_in(2) {
                w.about("hipGraphAddEventRecordNode", head);
                call!(w.hipGraphAddEventRecordNode(&mut node, graph, list, count, event))
            } else {
                w.about("hipGraphAddEventWaitNode", head);
                call!(w.hipGraphAddEventWaitNode(&mut node, graph, list, count, event))
            }
        }
        8 => {
            let Some(child) = graph_but(w, at) else {
                return;
            };
            w.about("hipGraphAddChildGraphNode", format!("{head}, {}", named(w, child)));
            let child = w.graphs[child].handle;
            call!(w.hipGraphAddChildGraphNode(&mut node, graph, list, count, child))
        }
        _ => {
            if !w.random.once_in(3) {
                return;
            }
            let mut params = hipMemAllocNodeParams {
                bytesize: w.random.of(&[4096, 64, 0]),
                ..hipMemAllocNodeParams::default()
            };
            params.poolProps.allocType = hipMemAllocationType(w.random.of(&[1, 1, 1, 0]));
            params.poolProps.location.type_ = hipMemLocationType::hipMemLocationTypeDevice;
            w.about(
                "hipGraphAddMemAllocNode",
                format!("{head}, {}, {}", params.bytesize, params.poolProps.allocType.0),
            );
            call!(w.hipGraphAddMemAllocNode(&mut node, graph, list, count, &mut params))
        }
    };
    w.answered(code);
    let made = code == hipError_t::hipSuccess && !node.is_null();
    let mut new = slot(if made { node } else { null_mut() }, at);
    new.gone = !made;
    w.nodes.push(new);
}

fn set_params(w: &mut World, to: *mut c_void) -> hipMemsetParams {
    hipMemsetParams {
        dst: to,
        elementSize: w.random.of(&[1, 2, 4, 4, 3, 8]),
        height: w.random.of(&[1, 1, 2, 0]),
        pitch: w.random.of(&[16, 16, 4]),
        value: 7,
        width: w.random.of(&[1, 4, 4, 0]),
    }
}

fn connect(w: &mut World) {
    let Some(at) = graph(w) else {
        return;
    };
    let (Some(from), Some(to)) = (node_of(w, at), node_of(w, at)) else {
        return;
    };
    let names = format!("{}, {}, {}", named(w, at), named_node(w, from), named_node(w, to));
    let graph = w.graphs[at].handle;
    let (from, to) = (w.nodes[from].handle, w.nodes[to].handle);
    let code = if w.random.once_in(3) {
        w.about("hipGraphRemoveDependencies", names);
        call!(w.hipGraphRemoveDependencies(graph, &from, &to, 1))
    } else {
        w.about("hipGraphAddDependencies", names);
        call!(w.hipGraphAddDependencies(graph, &from, &to, 1))
    };
    w.answered(code);
}

fn ask(w: &mut World) {
    let Some(at) = graph(w) else {
        return;
    };
    let graph = w.graphs[at].handle;
    let mut count = 0;
    match w.random.below(6) {
        0 => {
            w.about("hipGraphGetNodes", named(w, at));
            let code = call!(w.hipGraphGetNodes(graph, null_mut(), &mut count));
            w.told(code, count);
        }
        1 => {
            w.about("hipGraphGetRootNodes", named(w, at));
            let code = call!(w.hipGraphGetRootNodes(graph, null_mut(), &mut count));
            w.told(code, count);
        }
        2 => {
            w.about("hipGraphGetEdges", named(w, at));
            let code = call!(w.hipGraphGetEdges(graph, null_mut(), null_mut(), &mut count));
            w.told(code, count);
        }
        asked => {
            let Some(node) = any_node(w) else {
                return;
            };
            let handle = w.nodes[node].handle;
            let name = named_node(w, node);
            match asked {
                3 => {
                    let mut kind = hipGraphNodeType(77);
                    w.about("hipGraphNodeGetType", name);
                    let code = call!(w.hipGraphNodeGetType(handle, &mut kind));
                    w.told(code, kind.0);
                }
                4 => {
                    w.about("hipGraphNodeGetDependencies", name);
                    let code = call!(w.hipGraphNodeGetDependencies(handle, null_mut(), &mut count));
                    w.told(code, count);
                }
                _ => {
                    w.about("hipGraphNodeGetDependentNodes", name);
                    let code = call!(w.hipGraphNodeGetDependentNodes(handle, null_mut(), &mut count));
                    w.told(code, count);
                }
            }
        }
    }
}

fn clone(w: &mut World) {
    let Some(at) = graph(w) else {
        return;
    };
    let mut copy = null_mut();
    w.about("hipGraphClone", named(w, at));
    let code = call!(w.hipGraphClone(&mut copy, w.graphs[at].handle));
    w.answered(code);
    let mut new = slot(copy, 0);
    new.gone = copy.is_null() || code != hipError_t::hipSuccess;
    w.graphs.push(new);
    let (Some(node), true) = (node_of(w, at), code == hipError_t::hipSuccess) else {
        return;
    };
    let mut twin = null_mut();
    let copied = w.graphs.len() - 1;
    w.about(
        "hipGraphNodeFindInClone",
        format!("{}, {} of {}", named_node(w, node), named(w, copied), named(w, at)),
    );
    let code = call!(w.hipGraphNodeFindInClone(&mut twin, w.nodes[node].handle, copy));
    w.answered(code);
}

fn destroy_node(w: &mut World) {
    let Some(at) = any_node(w) else {
        return;
    };
    w.about("hipGraphDestroyNode", named_node(w, at));
    let code = call!(w.hipGraphDestroyNode(w.nodes[at].handle));
    w.answered(code);
    w.nodes[at].gone = true;
}

fn destroy(w: &mut World) {
    let Some(at) = graph(w) else {
        return;
    };
    w.about("hipGraphDestroy", named(w, at));
    let code = call!(w.hipGraphDestroy(w.graphs[at].handle));
    w.answered(code);
    w.graphs[at].gone = true;
    for node in &mut w.nodes {
        node.gone |= node.note == at;
    }
}

fn instantiate(w: &mut World) {
    let Some(at) = graph(w) else {
        return;
    };
    let mut exec = null_mut();
    let graph = w.graphs[at].handle;
    let code = if w.random.once_in(2) {
        w.about("hipGraphInstantiate", named(w, at));
        call!(w.hipGraphInstantiate(&mut exec, graph, null_mut(), null_mut(), 0))
    } else {
        let flags = w.random.of(&[0, 0, 1, 2, 8, 16]);
        w.about("hipGraphInstantiateWithFlags", format!("{}, {flags}", named(w, at)));
        call!(w.hipGraphInstantiateWithFlags(&mut exec, graph, flags))
    };
    w.answered(code);
    let made = code == hipError_t::hipSuccess;
    let mut new = slot(if made { exec } else { null_mut() }, at);
    new.gone = !made;
    w.execs.push(new);
}

fn launch(w: &mut World) {
    let Some(at) = pick(&mut w.random, &w.execs, true) else {
        return;
    };
    let exec = w.execs[at].handle;
    if exec.is_null() {
        return;
    }
    let name = format!("x{at}{}", if w.execs[at].gone { ":gone" } else { "" });
    if w.random.once_in(4) {
        w.about("hipGraphExecDestroy", name);
        let code = call!(w.hipGraphExecDestroy(exec));
        w.answered(code);
        w.execs[at].gone = true;
        return;
    }
    let (_, stream, stream_name) = w.stream();
    w.about("hipGraphLaunch", format!("{name}, {stream_name}"));
    let code = call!(w.hipGraphLaunch(exec, stream));
    w.answered(code);
    if !w.is_capturing() {
        w.about("hipStreamSynchronize", stream_name);
        let code = call!(w.hipStreamSynchronize(stream));
        w.answered(code);
    }
}

fn set(w: &mut World) {
    let Some(at) = any_node(w) else {
        return;
    };
    let (node, name) = (w.nodes[at].handle, named_node(w, at));
    let Some((to, bytes, to_name)) = device_memory(w, &[Kind::Device]) else {
        return;
    };
    if w.random.once_in(2) {
        let params = set_params(w, to);
        w.about(
            "hipGraphMemsetNodeSetParams",
            format!(
                "{name}, {to_name}, {}, {}, {}, {}",
                params.elementSize, params.width, params.height, params.pitch
            ),
        );
        let code = call!(w.hipGraphMemsetNodeSetParams(node, &params));
        return w.answered(code);
    }
    let Some((from, from_bytes, from_name)) = device_memory(w, &[Kind::Device, Kind::Pinned]) else {
        return;
    };
    let bytes = w.random.of(&[64, bytes.min(from_bytes), 0]);
    let kind = if from_name.contains("Device") { 3 } else { 1 };
    w.about(
        "hipGraphMemcpyNodeSetParams1D",
        format!("{name}, {to_name}, {from_name}, {bytes}, {kind}"),
    );
    let kind = hipMemcpyKind(kind);
    let code = call!(w.hipGraphMemcpyNodeSetParams1D(node, to, from, bytes, kind));
    w.answered(code);
}

fn set_ready(w: &mut World) {
    let Some(at) = pick(&mut w.random, &w.execs, false) else {
        return;
    };
    let exec = w.execs[at].handle;
    let graph = w.execs[at].note;
    let Some(node) = node_of(w, graph) else {
        return;
    };
    let (node, name) = (w.nodes[node].handle, named_node(w, node));
    let Some((to, bytes, to_name)) = device_memory(w, &[Kind::Device]) else {
        return;
    };
    if w.random.once_in(2) {
        let params = set_params(w, to);
        w.about(
            "hipGraphExecMemsetNodeSetParams",
            format!(
                "x{at}, {name}, {to_name}, {}, {}, {}, {}",
                params.elementSize, params.width, params.height, params.pitch
            ),
        );
        let code = call!(w.hipGraphExecMemsetNodeSetParams(exec, node, &params));
        return w.answered(code);
    }
    let Some((from, from_bytes, from_name)) = device_memory(w, &[Kind::Device, Kind::Pinned]) else {
        return;
    };
    let bytes = w.random.of(&[64, bytes.min(from_bytes), 0]);
    let kind = if from_name.contains("Device") { 3 } else { 1 };
    w.about(
        "hipGraphExecMemcpyNodeSetParams1D",
        format!("x{at}, {name}, {to_name}, {from_name}, {bytes}, {kind}"),
    );
    let kind = hipMemcpyKind(kind);
    let code = call!(w.hipGraphExecMemcpyNodeSetParams1D(exec, node, to, from, bytes, kind));
    w.answered(code);
}

fn enable(w: &mut World) {
    let Some(at) = pick(&mut w.random, &w.execs, false) else {
        return;
    };
    let graph = w.execs[at].note;
    let Some(node) = node_of(w, graph) else {
        return;
    };
    let (exec, name) = (w.execs[at].handle, named_node(w, node));
    let node = w.nodes[node].handle;
    if w.random.once_in(2) {
        let enabled = w.random.of(&[0, 1, 2]);
        w.about("hipGraphNodeSetEnabled", format!("x{at}, {name}, {enabled}"));
        let code = call!(w.hipGraphNodeSetEnabled(exec, node, enabled));
        return w.answered(code);
    }
    let mut enabled = 77;
    w.about("hipGraphNodeGetEnabled", format!("x{at}, {name}"));
    let code = call!(w.hipGraphNodeGetEnabled(exec, node, &mut enabled));
    w.told(code, enabled);
}

fn update(w: &mut World) {
    let Some(at) = pick(&mut w.random, &w.execs, false) else {
        return;
    };
    let Some(graph) = pick(&mut w.random, &w.graphs, false) else {
        return;
    };
    let mut node = null_mut();
    let mut result = hipGraphExecUpdateResult(77);
    w.about(
        "hipGraphExecUpdate",
        format!("x{at} of g{}, {}", w.execs[at].note, named(w, graph)),
    );
    let code = call!(w.hipGraphExecUpdate(w.execs[at].handle, w.graphs[graph].handle, &mut node, &mut result));
    // What the call tells of a failure is part of its answer.
    let told = format!("{} {}", result.0, if node.is_null() { "no node" } else { "a node" });
    if code == hipError_t::hipErrorGraphExecUpdateFailure {
        w.told(hipError_t::hipSuccess, format!("910 {told}"));
    } else {
        w.told(code, told);
    }
}

fn objects(w: &mut World) {
    let count = w.random.of(&[1, 1, 2, 0]);
    let Some(at) = pick(&mut w.random, &w.objects, false) else {
        let mut object: hipUserObject_t = null_mut();
        let count = w.random.of(&[8, 8, 0]);
        let flags = w.random.of(&[1, 1, 1, 0]);
        w.about("hipUserObjectCreate", format!("{count}, {flags}"));
        let code = call!(w.hipUserObjectCreate(&mut object, null_mut(), Some(nothing), count, flags));
        w.answered(code);
        let mut new = slot(object, 0);
        new.gone = object.is_null() || code != hipError_t::hipSuccess;
        w.objects.push(new);
        return;
    };
    // Few enough are released that the object lives to the end: ROCm follows the address of one that ended.
    let object = w.objects[at].handle;
    w.objects[at].note += 1;
    if w.objects[at].note > 3 {
        return;
    }
    match w.random.below(4) {
        0 => {
            w.about("hipUserObjectRetain", count);
            let code = call!(w.hipUserObjectRetain(object, count));
            w.answered(code);
        }
        1 => {
            w.about("hipUserObjectRelease", count);
            let code = call!(w.hipUserObjectRelease(object, count));
            w.answered(code);
        }
        which => {
            let Some(graph) = graph(w) else {
                return;
            };
            let handle = w.graphs[graph].handle;
            if which == 2 {
                let flags = w.random.of(&[0, 0, 2]);
                w.about(
                    "hipGraphRetainUserObject",
                    format!("{}, {count}, {flags}", named(w, graph)),
                );
                let code = call!(w.hipGraphRetainUserObject(handle, object, count, flags));
                return w.answered(code);
            }
            w.about("hipGraphReleaseUserObject", format!("{}, {count}", named(w, graph)));
            let code = call!(w.hipGraphReleaseUserObject(handle, object, count));
            w.answered(code);
        }
    }
}

fn graph_memory(w: &mut World) {
    let attribute = w.random.of(&[0, 1, 2, 3, 4]);
    let device = w.random.of(&[0, 0, 0, 3]);
    let attribute = hip_sys::hipGraphMemAttributeType(attribute);
    let mut value = w.random.of(&[0u64, 0, 5]);
    let pointer = (&raw mut value).cast();
    match w.random.below(3) {
        0 => {
            w.about("hipDeviceGetGraphMemAttribute", format!("{device}, {}", attribute.0));
            let code = call!(w.hipDeviceGetGraphMemAttribute(device, attribute, pointer));
            w.answered(code);
        }
        1 => {
            w.about(
                "hipDeviceSetGraphMemAttribute",
                format!("{device}, {}, {value}", attribute.0),
            );
            let code = call!(w.hipDeviceSetGraphMemAttribute(device, attribute, pointer));
            w.answered(code);
        }
        _ => {
            w.about("hipDeviceGraphMemTrim", device);
            let code = call!(w.hipDeviceGraphMemTrim(device));
            w.answered(code);
        }
    }
}

fn capture(w: &mut World) {
    let (at, stream, name) = w.stream();
    match w.random.below(6) {
        0..=1 => {
            let mode = w.random.of(&[0, 0, 1, 2, 2, 3]);
            w.about("hipStreamBeginCapture", format!("{name}, {mode}"));
            let code = call!(w.hipStreamBeginCapture(stream, hipStreamCaptureMode(mode)));
            w.answered(code);
            if let (Some(at), hipError_t::hipSuccess) = (at, code) {
                w.capturing.push(at);
            }
        }
        2..=3 => {
            let mut graph = null_mut();
            // A capture that began is ended rather than an idle stream asked.
            let (at, stream, name) = match w.capturing.first().copied() {
                Some(at) => (Some(at), w.streams[at].handle, format!("s{at}:capturing")),
                None => (at, stream, name),
            };
            w.about("hipStreamEndCapture", name);
            let code = call!(w.hipStreamEndCapture(stream, &mut graph));
            w.answered(code);
            w.capturing.retain(|&other| Some(other) != at);
            let mut new = slot(graph, 0);
            new.gone = graph.is_null() || code != hipError_t::hipSuccess;
            w.graphs.push(new);
        }
        4 => {
            let mut status = hipStreamCaptureStatus(77);
            w.about("hipStreamIsCapturing", name);
            let code = call!(w.hipStreamIsCapturing(stream, &mut status));
            w.told(code, status.0);
        }
        _ => {
            let mut status = hipStreamCaptureStatus(77);
            let (mut id, mut graph, mut nodes, mut count) = (0, null_mut(), null(), 77);
            w.about("hipStreamGetCaptureInfo_v2", name);
            let code =
                call!(w.hipStreamGetCaptureInfo_v2(stream, &mut status, &mut id, &mut graph, &mut nodes, &mut count));
            w.told(code, format!("{} {count}", status.0));
        }
    }
}
