//! Making graphs, and querying their contents.

use std::ffi::{CStr, c_char, c_uint, c_void};
use std::fmt::Write;

use hip_sys::{
    hipError_t, hipEvent_t, hipGraph_t, hipGraphNode_t, hipGraphNodeType, hipHostNodeParams, hipKernelNodeParams,
    hipMemcpy3DParms, hipMemcpyKind, hipMemsetParams,
};

use super::nodes::{Graph, Node};
use super::operation::Operation;
use crate::error::{Result, entry, store};

const INVALID: hipError_t = hipError_t::hipErrorInvalidValue;

/// The tokens of a list of nodes.
///
/// # Safety
/// `list` is null or holds `count` handles.
pub(super) unsafe fn tokens(list: *const hipGraphNode_t, count: usize) -> Result<Vec<usize>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if list.is_null() {
        return Err(INVALID);
    }
    let at = |index| {
        // SAFETY: not null, so `count` handles by this function's contract.
        let node = unsafe { list.add(index).read_unaligned() };
        Node::find(node).map(|node| node.token)
    };
    (0..count).map(at).collect()
}

/// Writes a list as HIP does: with no room to write to, only the count; else at most the room, rest null.
///
/// # Safety
/// `count` is null or points to a count; `out` is null or has room for that many handles.
unsafe fn write_list(out: *mut hipGraphNode_t, count: *mut usize, list: &[hipGraphNode_t]) -> Result {
    if count.is_null() {
        return Err(INVALID);
    }
    // SAFETY: `count` is not null; `out` has room for as many handles as it says, by this function's contract.
    unsafe {
        if !out.is_null() {
            let room = count.read_unaligned();
            for index in 0..room {
                let node = list.get(index).copied().unwrap_or(std::ptr::null_mut());
                store(out.add(index), node)?;
            }
        }
        store(count, list.len())
    }
}

pub(crate) unsafe extern "C" fn graph_create(out: *mut hipGraph_t, flags: c_uint) -> hipError_t {
    entry("hipGraphCreate", || {
        if out.is_null() || flags != 0 {
            return Err(INVALID);
        }
        // SAFETY: not null; room for a handle by the C caller's promise.
        unsafe { store(out, Graph::publish().handle()) }
    })
}

pub(crate) unsafe extern "C" fn graph_destroy(graph: hipGraph_t) -> hipError_t {
    entry("hipGraphDestroy", || {
        if graph.is_null() {
            return Err(INVALID);
        }
        let found = Graph::find(graph).map_err(|_| hipError_t::hipErrorIllegalState)?;
        found.destroy();
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn graph_clone(out: *mut hipGraph_t, original: hipGraph_t) -> hipError_t {
    entry("hipGraphClone", || {
        let original = Graph::find(original)?;
        if out.is_null() {
            return Err(INVALID);
        }
        if original.has_memory() {
            return Err(hipError_t::hipErrorNotSupported);
        }
        // SAFETY: not null; room for a handle by the C caller's promise.
        unsafe { store(out, original.duplicate().handle()) }
    })
}

pub(crate) unsafe extern "C" fn graph_node_find_in_clone(
    out: *mut hipGraphNode_t,
    original: hipGraphNode_t,
    clone: hipGraph_t,
) -> hipError_t {
    entry("hipGraphNodeFindInClone", || {
        let clone = Graph::find(clone)?;
        let twin = clone.twin_of(original as usize).ok_or(INVALID)?;
        // SAFETY: null is refused by `store`; otherwise room for a handle by the C caller's promise.
        unsafe { store(out, twin.handle()) }
    })
}

/// Adds a node, if its operation could be done.
///
/// # Safety
/// `out` is null or has room for a handle; `after` is null or holds `count` handles.
pub(super) unsafe fn add(
    call: &'static str,
    out: *mut hipGraphNode_t,
    graph: hipGraph_t,
    (after, count): (*const hipGraphNode_t, usize),
    operation: impl FnOnce() -> Result<Operation>,
) -> hipError_t {
    entry(call, || {
        if out.is_null() || graph.is_null() {
            return Err(INVALID);
        }
        let graph = Graph::find(graph)?;
        // SAFETY: this function's contract.
        let after = unsafe { tokens(after, count) }?;
        let operation = operation()?;
        operation.check(call)?;
        let node = graph.add(operation, &after)?;
        // SAFETY: not null, so room for a handle by this function's contract.
        unsafe { store(out, node.handle()) }
    })
}

macro_rules! nodes {
    ($($function:ident $name:literal ($($argument:ident: $ty:ty),*) $operation:expr;)*) => {$(
        #[allow(clippy::too_many_arguments, reason = "the C signature")]
        pub(crate) unsafe extern "C" fn $function(
            out: *mut hipGraphNode_t,
            graph: hipGraph_t,
            after: *const hipGraphNode_t,
            count: usize,
            $($argument: $ty),*
        ) -> hipError_t {
            // SAFETY: the C caller promises room for a handle, the list of nodes, and a description it has filled.
            unsafe { add($name, out, graph, (after, count), || $operation) }
        }
    )*};
}

nodes! {
    graph_add_empty_node "hipGraphAddEmptyNode" () Ok(Operation::Empty);
    graph_add_kernel_node "hipGraphAddKernelNode" (params: *const hipKernelNodeParams) Operation::kernel(params);
    graph_add_memcpy_node "hipGraphAddMemcpyNode" (params: *const hipMemcpy3DParms) Operation::copy(params);
    graph_add_memcpy_node_1d "hipGraphAddMemcpyNode1D"
        (to: *mut c_void, from: *const c_void, bytes: usize, kind: hipMemcpyKind)
        Operation::row(to, from, bytes, kind);
    graph_add_memset_node "hipGraphAddMemsetNode" (params: *const hipMemsetParams) Operation::set(params);
    graph_add_host_node "hipGraphAddHostNode" (params: *const hipHostNodeParams) Operation::host(params);
    graph_add_event_record_node "hipGraphAddEventRecordNode" (event: hipEvent_t) Operation::of_event(event, true);
    graph_add_event_wait_node "hipGraphAddEventWaitNode" (event: hipEvent_t) Operation::of_event(event, false);
}

pub(crate) unsafe extern "C" fn graph_add_child_graph_node(
    out: *mut hipGraphNode_t,
    graph: hipGraph_t,
    after: *const hipGraphNode_t,
    count: usize,
    child: hipGraph_t,
) -> hipError_t {
    let operation = || child_of(child).map(Operation::Child);
    // SAFETY: the C caller promises room for a handle and the list of nodes.
    unsafe { add("hipGraphAddChildGraphNode", out, graph, (after, count), operation) }
}

/// A copy of `child` as it is now, which is what the node holds; so a graph may be its own child.
pub(super) fn child_of(child: hipGraph_t) -> Result<std::sync::Arc<Graph>> {
    Ok(Graph::find(child)?.duplicate())
}

pub(crate) unsafe extern "C" fn graph_destroy_node(node: hipGraphNode_t) -> hipError_t {
    entry("hipGraphDestroyNode", || {
        let node = Node::find(node)?;
        if node.operation().is_of_memory() {
            return Err(hipError_t::hipErrorNotSupported);
        }
        node.graph()?.remove(node.token);
        Ok(())
    })
}

/// # Safety
/// Each list is null or holds `count` handles.
unsafe fn edges(from: *const hipGraphNode_t, to: *const hipGraphNode_t, count: usize) -> Result<Vec<(usize, usize)>> {
    // SAFETY: this function's contract.
    let (from, to) = unsafe { (tokens(from, count)?, tokens(to, count)?) };
    Ok(from.into_iter().zip(to).collect())
}

pub(crate) unsafe extern "C" fn graph_add_dependencies(
    graph: hipGraph_t,
    from: *const hipGraphNode_t,
    to: *const hipGraphNode_t,
    count: usize,
) -> hipError_t {
    entry("hipGraphAddDependencies", || {
        let graph = Graph::find(graph)?;
        // SAFETY: the C caller promises `count` handles in each list.
        graph.connect(&unsafe { edges(from, to, count) }?)
    })
}

pub(crate) unsafe extern "C" fn graph_remove_dependencies(
    graph: hipGraph_t,
    from: *const hipGraphNode_t,
    to: *const hipGraphNode_t,
    count: usize,
) -> hipError_t {
    entry("hipGraphRemoveDependencies", || {
        let graph = Graph::find(graph)?;
        // SAFETY: as in `graph_add_dependencies`.
        graph.disconnect(&unsafe { edges(from, to, count) }?)
    })
}

pub(crate) unsafe extern "C" fn graph_get_nodes(
    graph: hipGraph_t,
    out: *mut hipGraphNode_t,
    count: *mut usize,
) -> hipError_t {
    entry("hipGraphGetNodes", || {
        let nodes = Graph::find(graph)?.nodes();
        let list: Vec<_> = nodes.iter().map(|node| node.handle()).collect();
        // SAFETY: the C caller promises a count, and room for that many handles.
        unsafe { write_list(out, count, &list) }
    })
}

pub(crate) unsafe extern "C" fn graph_get_root_nodes(
    graph: hipGraph_t,
    out: *mut hipGraphNode_t,
    count: *mut usize,
) -> hipError_t {
    entry("hipGraphGetRootNodes", || {
        let graph = Graph::find(graph)?;
        let edges = graph.edges();
        let mut roots = graph.nodes();
        roots.retain(|node| edges.iter().all(|&(_, after)| after != node.token));
        let list: Vec<_> = roots.iter().map(|node| node.handle()).collect();
        // SAFETY: as in `graph_get_nodes`.
        unsafe { write_list(out, count, &list) }
    })
}

pub(crate) unsafe extern "C" fn graph_get_edges(
    graph: hipGraph_t,
    from: *mut hipGraphNode_t,
    to: *mut hipGraphNode_t,
    count: *mut usize,
) -> hipError_t {
    entry("hipGraphGetEdges", || {
        let edges = Graph::find(graph)?.edges();
        // Both lists or none.
        if count.is_null() || from.is_null() != to.is_null() {
            return Err(INVALID);
        }
        let before: Vec<_> = edges.iter().map(|edge| edge.0 as hipGraphNode_t).collect();
        let after: Vec<_> = edges.iter().map(|edge| edge.1 as hipGraphNode_t).collect();
        // SAFETY: not null; a count by the C caller's promise, and room for that many handles in each list.
        unsafe {
            let mut room = count.read_unaligned();
            write_list(from, &mut room, &before)?;
            write_list(to, count, &after)
        }
    })
}

/// The neighbours of a node in one direction.
fn neighbours(node: hipGraphNode_t, before: bool) -> Result<Vec<hipGraphNode_t>> {
    let node = Node::find(node)?;
    let edges = node.graph()?.edges();
    let neighbour = |(from, to): (usize, usize)| match before {
        true => (to == node.token).then_some(from as hipGraphNode_t),
        false => (from == node.token).then_some(to as hipGraphNode_t),
    };
    Ok(edges.into_iter().filter_map(neighbour).collect())
}

pub(crate) unsafe extern "C" fn graph_node_get_dependencies(
    node: hipGraphNode_t,
    out: *mut hipGraphNode_t,
    count: *mut usize,
) -> hipError_t {
    // SAFETY: as in `graph_get_nodes`.
    entry("hipGraphNodeGetDependencies", || unsafe {
        write_list(out, count, &neighbours(node, true)?)
    })
}

pub(crate) unsafe extern "C" fn graph_node_get_dependent_nodes(
    node: hipGraphNode_t,
    out: *mut hipGraphNode_t,
    count: *mut usize,
) -> hipError_t {
    // SAFETY: as in `graph_get_nodes`.
    entry("hipGraphNodeGetDependentNodes", || unsafe {
        write_list(out, count, &neighbours(node, false)?)
    })
}

pub(crate) unsafe extern "C" fn graph_node_get_type(node: hipGraphNode_t, out: *mut hipGraphNodeType) -> hipError_t {
    entry("hipGraphNodeGetType", || {
        let kind = Node::find(node)?.operation().kind();
        // SAFETY: null is refused by `store`; otherwise room for the type by the C caller's promise.
        unsafe { store(out, kind) }
    })
}

pub(crate) unsafe extern "C" fn graph_debug_dot_print(
    graph: hipGraph_t,
    path: *const c_char,
    _flags: c_uint,
) -> hipError_t {
    entry("hipGraphDebugDotPrint", || {
        let graph = Graph::find(graph)?;
        if path.is_null() {
            return Err(INVALID);
        }
        // SAFETY: not null; the C caller promises a terminated string.
        let path = unsafe { CStr::from_ptr(path) }.to_string_lossy();
        let mut text = String::from("digraph graph {\n");
        for node in graph.nodes() {
            let kind = node.operation().kind();
            let kind = kind.name().unwrap_or_default();
            let _ = writeln!(text, "  n{:x} [label=\"{kind}\"];", node.token);
        }
        for (before, after) in graph.edges() {
            let _ = writeln!(text, "  n{before:x} -> n{after:x};");
        }
        text.push_str("}\n");
        // The code for a file that cannot be written: hipamd/src/hip_graph.cpp, `hipGraphDebugDotPrint`.
        std::fs::write(&*path, text).map_err(|_| hipError_t::hipErrorOperatingSystem)
    })
}
