//! One sequence: areas, calls, and everything given back.

use std::ptr::null_mut;

use crate::random::Random;
use crate::world::{Kind, World, call};
use crate::{external, graphs, managed, memory, modules, streams};

type Step = fn(&mut World);

/// The areas of a sequence: one or two, over some memory and a stream.
const AREAS: [Step; 6] = [
    memory::step,
    streams::step,
    graphs::step,
    modules::step,
    external::step,
    managed::step,
];

/// Makes the calls of a sequence.
pub fn run(w: &mut World, sequence: u64) {
    w.random = Random::new(sequence);
    w.sequence = sequence;
    w.lines.clear();
    let first = AREAS[(sequence % AREAS.len() as u64) as usize];
    let second = w.random.of(&AREAS);
    let steps = 10 + w.random.below(15);
    for _ in 0..w.random.below(3) {
        memory::step(w);
        streams::create(w);
    }
    for _ in 0..steps {
        let step = if w.random.below(3) > 0 { first } else { second };
        step(w);
    }
    tidy(w);
}

/// Gives everything back, so that the next sequence begins as the first did.
fn tidy(w: &mut World) {
    for at in std::mem::take(&mut w.capturing) {
        let mut graph = null_mut();
        let _ = call!(w.hipStreamEndCapture(w.streams[at].handle, &mut graph));
        if !graph.is_null() {
            let _ = call!(w.hipGraphDestroy(graph));
        }
    }
    let _ = call!(w.hipDeviceSynchronize());
    for exec in std::mem::take(&mut w.execs) {
        if !exec.gone {
            let _ = call!(w.hipGraphExecDestroy(exec.handle));
        }
    }
    w.nodes.clear();
    for graph in std::mem::take(&mut w.graphs) {
        if !graph.gone {
            let _ = call!(w.hipGraphDestroy(graph.handle));
        }
    }
    w.objects.clear();
    w.functions.clear();
    for module in std::mem::take(&mut w.modules) {
        if !module.gone {
            let _ = call!(w.hipModuleUnload(module.handle));
        }
    }
    for event in std::mem::take(&mut w.events) {
        if !event.gone {
            let _ = call!(w.hipEventDestroy(event.handle));
        }
    }
    for stream in std::mem::take(&mut w.streams) {
        if !stream.gone {
            let _ = call!(w.hipStreamDestroy(stream.handle));
        }
    }
    for memory in std::mem::take(&mut w.memories) {
        if memory.freed || memory.address.is_null() {
            continue;
        }
        let _ = match memory.kind {
            Kind::Device | Kind::Managed => call!(w.hipFree(memory.address)),
            Kind::Pinned => call!(w.hipHostFree(memory.address)),
            Kind::Registered => call!(w.hipHostUnregister(memory.address)),
            Kind::Pageable => continue,
        };
    }
    for pool in std::mem::take(&mut w.pools) {
        if !pool.gone && !pool.handle.is_null() {
            let _ = call!(w.hipMemPoolDestroy(pool.handle));
        }
    }
    for memory in std::mem::take(&mut w.external) {
        if !memory.gone {
            let _ = call!(w.hipDestroyExternalMemory(memory.handle));
        }
    }
    for memory in std::mem::take(&mut w.physical) {
        if !memory.gone {
            let _ = call!(w.hipMemRelease(memory.handle));
        }
    }
    let _ = call!(w.hipGetLastError());
}
