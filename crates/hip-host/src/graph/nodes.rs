//! Graphs: nodes and the order between them.

use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use hip_sys::{hipError_t, hipGraph_t, hipGraphNode_t, hipKernelNodeParams};
use parking_lot::Mutex;

use super::object::Objects;
use super::operation::Operation;
use crate::error::Result;
use crate::handles::{self, Handles};

const INVALID: hipError_t = hipError_t::hipErrorInvalidValue;

static GRAPHS: Handles<Graph> = Handles::new();
static NODES: Handles<Node> = Handles::new();

/// Nodes in the order they were added, and which waits for which.
pub(crate) struct Graph {
    pub(super) token: usize,
    parts: Mutex<Parts>,
    /// Memory returned to a caller that queried a node's parameters.
    reported: Mutex<Vec<ReportedParams>>,
    /// Whether something was made ready from it, which a graph with memory of its own allows once.
    was_made_ready: AtomicBool,
    /// Kept alive for the program as long as the graph or what was made ready from it.
    pub(super) objects: Mutex<Objects>,
}

#[derive(Default)]
struct Parts {
    nodes: Vec<Arc<Node>>,
    /// Tokens: the second waits for the first.
    edges: Vec<(usize, usize)>,
}

/// One step of a graph.
pub(crate) struct Node {
    pub(super) token: usize,
    graph: Weak<Graph>,
    pub(super) operation: Mutex<Operation>,
    /// In a clone, the node it was made from.
    original: Option<usize>,
}

/// The list of addresses that `hipGraphKernelNodeGetParams` points to, and the operation whose values they are.
struct ReportedParams {
    _addresses: Box<[usize]>,
    _operation: Operation,
}

impl Node {
    pub(super) fn find(node: hipGraphNode_t) -> Result<Arc<Self>> {
        NODES.get(node as usize).ok_or(INVALID)
    }

    pub(super) fn handle(&self) -> hipGraphNode_t {
        self.token as hipGraphNode_t
    }

    pub(super) fn graph(&self) -> Result<Arc<Graph>> {
        self.graph.upgrade().ok_or(INVALID)
    }

    /// Ends the node's handle, and its child graph's.
    fn forget(&self) {
        NODES.remove(self.token);
        if let Operation::Child(child) = &*self.operation.lock() {
            child.destroy();
        }
    }

    pub(super) fn operation(&self) -> Operation {
        self.operation.lock().clone()
    }

    /// Puts another operation of the same kind in the place of this node's.
    pub(super) fn replace(&self, operation: Operation) -> Result {
        let mut now = self.operation.lock();
        if now.kind() != operation.kind() {
            return Err(INVALID);
        }
        *now = operation;
        Ok(())
    }
}

impl Graph {
    /// A new graph, which has a handle.
    pub(super) fn publish() -> Arc<Self> {
        let graph = Arc::new(Self {
            token: handles::fresh(),
            parts: Mutex::default(),
            reported: Mutex::default(),
            was_made_ready: AtomicBool::new(false),
            objects: Mutex::default(),
        });
        GRAPHS.insert_as(graph.token, graph.clone());
        graph
    }

    pub(super) fn find(graph: hipGraph_t) -> Result<Arc<Self>> {
        GRAPHS.get(graph as usize).ok_or(INVALID)
    }

    pub(super) fn handle(&self) -> hipGraph_t {
        self.token as hipGraph_t
    }

    /// Forgets the graph and its nodes; what was made from it stays.
    pub(super) fn destroy(&self) {
        GRAPHS.remove(self.token);
        let nodes = std::mem::take(&mut self.parts.lock().nodes);
        nodes.iter().for_each(|node| node.forget());
        let objects = std::mem::take(&mut *self.objects.lock());
        // What ends with its last reference is the program's, and may take its time.
        drop(objects);
    }

    /// Adds a node that waits for `after`, which must be nodes of this graph, each once.
    pub(super) fn add(self: &Arc<Self>, operation: Operation, after: &[usize]) -> Result<Arc<Node>> {
        let mut parts = self.parts.lock();
        let mut seen = HashSet::new();
        for token in after {
            if !seen.insert(token) || !parts.has(*token) {
                return Err(INVALID);
            }
        }
        let node = Arc::new(Node {
            token: handles::fresh(),
            graph: Arc::downgrade(self),
            operation: Mutex::new(operation),
            original: None,
        });
        NODES.insert_as(node.token, node.clone());
        parts.nodes.push(node.clone());
        let edges = after.iter().map(|&before| (before, node.token));
        parts.edges.extend(edges);
        Ok(node)
    }

    pub(super) fn remove(&self, token: usize) {
        let mut parts = self.parts.lock();
        let gone = parts.nodes.iter().position(|node| node.token == token);
        let gone = gone.map(|at| parts.nodes.remove(at));
        parts.edges.retain(|&(before, after)| before != token && after != token);
        drop(parts);
        if let Some(node) = gone {
            node.forget();
        }
    }

    /// Adds edges; one that is there already, or that leads to a node itself, is an error.
    pub(super) fn connect(&self, edges: &[(usize, usize)]) -> Result {
        let mut parts = self.parts.lock();
        let mut all = parts.edges.clone();
        for &(before, after) in edges {
            let known = parts.has(before) && parts.has(after);
            if !known || before == after || all.contains(&(before, after)) {
                return Err(INVALID);
            }
            all.push((before, after));
        }
        parts.edges = all;
        Ok(())
    }

    pub(super) fn disconnect(&self, edges: &[(usize, usize)]) -> Result {
        let mut parts = self.parts.lock();
        if edges.iter().any(|edge| !parts.edges.contains(edge)) {
            return Err(INVALID);
        }
        parts.edges.retain(|edge| !edges.contains(edge));
        Ok(())
    }

    pub(super) fn nodes(&self) -> Vec<Arc<Node>> {
        self.parts.lock().nodes.clone()
    }

    pub(super) fn edges(&self) -> Vec<(usize, usize)> {
        self.parts.lock().edges.clone()
    }

    /// The nodes so that each comes after all it waits for, in the order they were added where that leaves a choice;
    /// each with the indices of those it waits for.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` if nodes wait for each other in a circle.
    pub(super) fn sorted(&self) -> Result<Vec<(Arc<Node>, Vec<usize>)>> {
        let parts = self.parts.lock();
        let mut open: HashMap<usize, usize> = parts.nodes.iter().map(|n| (n.token, 0)).collect();
        for (_, after) in &parts.edges {
            *open.entry(*after).or_default() += 1;
        }
        let mut sorted = Vec::with_capacity(parts.nodes.len());
        let mut waiting = parts.nodes.clone();
        while !waiting.is_empty() {
            let ready = waiting.iter().position(|node| open[&node.token] == 0).ok_or(INVALID)?;
            let node = waiting.remove(ready);
            for (_, after) in parts.edges.iter().filter(|edge| edge.0 == node.token) {
                *open.entry(*after).or_default() -= 1;
            }
            sorted.push(node);
        }
        let place: HashMap<usize, usize> = sorted
            .iter()
            .enumerate()
            .map(|(index, node)| (node.token, index))
            .collect();
        let after = |node: &Arc<Node>| {
            let edges = parts.edges.iter().filter(|edge| edge.1 == node.token);
            edges.map(|edge| place[&edge.0]).collect()
        };
        Ok(sorted.into_iter().map(|node| (node.clone(), after(&node))).collect())
    }

    /// A graph like this one, child graphs included.
    pub(super) fn duplicate(&self) -> Arc<Self> {
        let copy = Self::publish();
        *copy.objects.lock() = self.objects.lock().share();
        let parts = self.parts.lock();
        let mut names = HashMap::new();
        let mut copied = copy.parts.lock();
        for node in &parts.nodes {
            let operation = match node.operation() {
                Operation::Child(child) => Operation::Child(child.duplicate()),
                other => other,
            };
            let twin = Arc::new(Node {
                token: handles::fresh(),
                graph: Arc::downgrade(&copy),
                operation: Mutex::new(operation),
                original: Some(node.token),
            });
            names.insert(node.token, twin.token);
            NODES.insert_as(twin.token, twin.clone());
            copied.nodes.push(twin);
        }
        let edges = parts.edges.iter();
        copied.edges = edges.map(|(before, after)| (names[before], names[after])).collect();
        drop(copied);
        copy
    }

    /// Whether nodes of it allocate or release memory; those of child graphs do not count.
    pub(super) fn has_memory(&self) -> bool {
        let nodes = self.nodes();
        nodes.iter().any(|node| node.operation().is_of_memory())
    }

    /// Something is made ready from the graph.
    ///
    /// # Errors
    /// `hipErrorNotSupported` if something was before, and the graph has memory of its own.
    pub(super) fn make_ready(&self) -> Result {
        let again = self.was_made_ready.swap(true, Ordering::AcqRel);
        if again && self.has_memory() {
            return Err(hipError_t::hipErrorNotSupported);
        }
        Ok(())
    }

    /// In a clone, the node made from `original`.
    pub(super) fn twin_of(&self, original: usize) -> Option<Arc<Node>> {
        let parts = self.parts.lock();
        let twin = parts.nodes.iter().find(|node| node.original == Some(original));
        twin.cloned()
    }

    /// A kernel node's parameters; the addresses in them are valid as long as the graph.
    pub(super) fn tell_kernel(&self, operation: Operation) -> Result<hipKernelNodeParams> {
        let kernel = match &operation {
            Operation::Kernel(kernel) => kernel,
            // On ROCm it tells the library's own kernel, of which there is none here.
            Operation::Routine(_) => return Err(hipError_t::hipErrorNotSupported),
            _ => return Err(INVALID),
        };
        let mut addresses = kernel.parameter_addresses()?.into_boxed_slice();
        let size = |[x, y, z]: [u32; 3]| hip_sys::dim3 { x, y, z };
        let params = hipKernelNodeParams {
            blockDim: size(kernel.block),
            extra: std::ptr::null_mut(),
            func: kernel.function as *mut c_void,
            gridDim: size(kernel.grid),
            kernelParams: addresses.as_mut_ptr().cast(),
            sharedMemBytes: kernel.shared_bytes,
        };
        self.reported.lock().push(ReportedParams {
            _addresses: addresses,
            _operation: operation,
        });
        Ok(params)
    }
}

impl Parts {
    fn has(&self, token: usize) -> bool {
        self.nodes.iter().any(|node| node.token == token)
    }
}
