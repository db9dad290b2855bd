//! What one bridge's graphs copy each time they run.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;

use super::ledger::Copied;

/// Keyed by HIP handles. A graph without copies has no entry.
#[derive(Default)]
pub(super) struct Graphs(Mutex<State>);

#[derive(Default)]
struct State {
    /// Streams that have begun a capture.
    capturing: HashSet<usize>,
    graphs: HashMap<usize, Content>,
    /// Executable graphs. Their nodes are named like the graph's nodes.
    execs: HashMap<usize, Content>,
    /// How many copies had no node name.
    unnamed: usize,
}

/// The nodes that copy.
#[derive(Clone, Default)]
pub(super) struct Content(HashMap<Name, Node>);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Name {
    Handle(usize),
    /// Not reported by HIP.
    Unnamed(usize),
}

#[derive(Clone)]
struct Node {
    copies: Vec<Copied>,
    is_enabled: bool,
}

impl Node {
    fn new(copies: Vec<Copied>) -> Self {
        Self {
            copies,
            is_enabled: true,
        }
    }
}

impl Content {
    fn copies(&self) -> Vec<Copied> {
        let enabled = self.0.values().filter(|node| node.is_enabled);
        enabled.flat_map(|node| node.copies.clone()).collect()
    }
}

impl Graphs {
    pub(super) fn capture_began(&self, stream: usize) {
        self.0.lock().capturing.insert(stream);
    }

    pub(super) fn capture_ended(&self, stream: usize) {
        self.0.lock().capturing.remove(&stream);
    }

    pub(super) fn is_capturing(&self) -> bool {
        !self.0.lock().capturing.is_empty()
    }

    /// A new graph, which may reuse an earlier graph's handle.
    pub(super) fn began(&self, graph: usize) {
        self.0.lock().graphs.remove(&graph);
    }

    /// A node of the graph copies this; 0 is a node without a name.
    pub(super) fn add(&self, graph: usize, node: usize, copies: Vec<Copied>) {
        let mut state = self.0.lock();
        let name = match node {
            0 => {
                state.unnamed += 1;
                Name::Unnamed(state.unnamed)
            }
            node => Name::Handle(node),
        };
        let nodes = &mut state.graphs.entry(graph).or_default().0;
        nodes.insert(name, Node::new(copies));
    }

    /// From now on the node copies this, in whichever graph it is.
    pub(super) fn change(&self, node: usize, copies: &[Copied]) {
        for content in self.0.lock().graphs.values_mut() {
            if let Some(node) = content.0.get_mut(&Name::Handle(node)) {
                node.copies = copies.to_vec();
            }
        }
    }

    pub(super) fn forget_node(&self, node: usize) {
        for content in self.0.lock().graphs.values_mut() {
            content.0.remove(&Name::Handle(node));
        }
    }

    /// The clone's nodes keep the names of the original's nodes.
    pub(super) fn cloned(&self, clone: usize, graph: usize) {
        let graphs = &mut self.0.lock().graphs;
        match graphs.get(&graph).cloned() {
            Some(content) => graphs.insert(clone, content),
            None => graphs.remove(&clone),
        };
    }

    pub(super) fn of_graph(&self, graph: usize) -> Vec<Copied> {
        let state = self.0.lock();
        state.graphs.get(&graph).map_or(vec![], Content::copies)
    }

    pub(super) fn take_graph(&self, graph: usize) -> Option<Content> {
        self.0.lock().graphs.remove(&graph)
    }

    pub(super) fn give_graph(&self, graph: usize, content: Option<Content>) {
        if let Some(content) = content {
            self.0.lock().graphs.insert(graph, content);
        }
    }

    /// The executable graph now does what the graph does.
    pub(super) fn instantiated(&self, exec: usize, graph: usize) {
        let state = &mut *self.0.lock();
        match state.graphs.get(&graph) {
            Some(content) => state.execs.insert(exec, content.clone()),
            None => state.execs.remove(&exec),
        };
    }

    pub(super) fn change_exec(&self, exec: usize, node: usize, copies: Vec<Copied>) {
        let execs = &mut self.0.lock().execs;
        let nodes = &mut execs.entry(exec).or_default().0;
        let node = nodes.entry(Name::Handle(node)).or_insert_with(|| Node::new(vec![]));
        node.copies = copies;
    }

    pub(super) fn enable(&self, exec: usize, node: usize, is_enabled: bool) {
        let execs = &mut self.0.lock().execs;
        if let Some(content) = execs.get_mut(&exec)
            && let Some(node) = content.0.get_mut(&Name::Handle(node))
        {
            node.is_enabled = is_enabled;
        }
    }

    pub(super) fn of_exec(&self, exec: usize) -> Vec<Copied> {
        let state = self.0.lock();
        state.execs.get(&exec).map_or(vec![], Content::copies)
    }

    pub(super) fn take_exec(&self, exec: usize) -> Option<Content> {
        self.0.lock().execs.remove(&exec)
    }

    pub(super) fn give_exec(&self, exec: usize, content: Option<Content>) {
        if let Some(content) = content {
            self.0.lock().execs.insert(exec, content);
        }
    }
}
