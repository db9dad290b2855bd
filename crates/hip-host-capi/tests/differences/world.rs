//! What a sequence has made so far, and the log of its calls.
//!
//! Everything is picked by place, and what was freed counts as freed whatever the library answered: so the calls never
//! depend on the answers. A call that failed leaves a null handle in its place.

use std::ffi::c_void;
use std::fmt::Display;
use std::ptr::null_mut;

use hip_sys::{
    Api, RtcApi, hipError_t, hipEvent_t, hipExternalMemory_t, hipFunction_t, hipGraph_t, hipGraphExec_t,
    hipGraphNode_t, hipMemGenericAllocationHandle_t, hipMemPool_t, hipModule_t, hipStream_t, hipUserObject_t,
};

use crate::random::Random;

/// Calls a function of the table; `hipErrorTbd` stands for one that the library lacks.
macro_rules! call {
    ($world:ident.$function:ident($($argument:expr),* $(,)?)) => {
        match $world.hip.$function {
            // SAFETY: the sequence passes living memory and handles, or what the function promises to refuse.
            Some(function) => unsafe { function($($argument),*) },
            None => hip_sys::hipError_t::hipErrorTbd,
        }
    };
}
pub(crate) use call;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Device,
    Pinned,
    Managed,
    Registered,
    Pageable,
}

#[derive(Clone, Copy)]
pub struct Memory {
    pub address: *mut c_void,
    pub bytes: usize,
    pub kind: Kind,
    pub freed: bool,
}

/// A handle and whether it was destroyed.
#[derive(Clone, Copy)]
pub struct Slot<T> {
    pub handle: T,
    pub gone: bool,
    /// What the area that made it wants to remember: flags, or the place of a parent.
    pub note: usize,
}

pub struct World {
    pub hip: Api,
    pub rtc: Option<RtcApi>,
    pub random: Random,
    pub memories: Vec<Memory>,
    pub streams: Vec<Slot<hipStream_t>>,
    pub events: Vec<Slot<hipEvent_t>>,
    pub graphs: Vec<Slot<hipGraph_t>>,
    pub nodes: Vec<Slot<hipGraphNode_t>>,
    pub execs: Vec<Slot<hipGraphExec_t>>,
    pub modules: Vec<Slot<hipModule_t>>,
    pub functions: Vec<Slot<hipFunction_t>>,
    pub pools: Vec<Slot<hipMemPool_t>>,
    pub physical: Vec<Slot<hipMemGenericAllocationHandle_t>>,
    pub external: Vec<Slot<hipExternalMemory_t>>,
    pub objects: Vec<Slot<hipUserObject_t>>,
    /// Streams with a capture that began, by place.
    pub capturing: Vec<usize>,
    /// Compiled for every module of the process.
    pub code: Option<Vec<u8>>,
    pub lines: Vec<Line>,
    pub sequence: u64,
}

/// One call with its answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    pub call: String,
    pub answer: String,
}

impl World {
    pub fn new(hip: Api, rtc: Option<RtcApi>) -> Self {
        Self {
            hip,
            rtc,
            random: Random::new(0),
            memories: Vec::new(),
            streams: Vec::new(),
            events: Vec::new(),
            graphs: Vec::new(),
            nodes: Vec::new(),
            execs: Vec::new(),
            modules: Vec::new(),
            functions: Vec::new(),
            pools: Vec::new(),
            physical: Vec::new(),
            external: Vec::new(),
            objects: Vec::new(),
            capturing: Vec::new(),
            code: None,
            lines: Vec::new(),
            sequence: 0,
        }
    }

    /// Says what is about to be called, so that a crash shows in which call it was.
    pub fn about(&mut self, name: &str, arguments: impl Display) {
        let call = format!("{name}({arguments})");
        println!("@ {} {call}", self.sequence);
        self.lines.push(Line {
            call,
            answer: "crash".to_owned(),
        });
    }

    /// The answer of the call that [`about`](Self::about) announced.
    pub fn answered(&mut self, code: hipError_t) {
        self.told(code, "");
    }

    /// As [`answered`](Self::answered), with what the call wrote.
    pub fn told(&mut self, code: hipError_t, out: impl Display) {
        let out = out.to_string();
        let answer = match (code == hipError_t::hipSuccess, out.is_empty()) {
            // A failed call may leave anything behind.
            (false, _) | (true, true) => code.0.to_string(),
            (true, false) => format!("0:{out}"),
        };
        println!("= {answer}");
        if let Some(line) = self.lines.last_mut() {
            line.answer = answer;
        }
    }

    pub fn size(&mut self) -> usize {
        self.random.of(&[1, 4, 64, 100, 256, 1000, 4096, 4097, 65536, 1 << 20])
    }

    /// The place of some memory that `fits`, living but for once in a while where `dead` is allowed.
    pub fn memory(&mut self, fits: impl Fn(&Memory) -> bool, dead: bool) -> Option<usize> {
        let dead = dead && self.random.once_in(20);
        let places: Vec<usize> = (0..self.memories.len())
            .filter(|&at| fits(&self.memories[at]) && (dead || !self.memories[at].freed))
            .collect();
        (!places.is_empty()).then(|| self.random.of(&places))
    }

    pub fn add_memory(&mut self, address: *mut c_void, bytes: usize, kind: Kind) {
        self.memories.push(Memory {
            address,
            bytes,
            kind,
            freed: false,
        });
    }

    /// A name for some memory in the log.
    pub fn named(&self, at: usize) -> String {
        let memory = &self.memories[at];
        let life = if memory.freed { ":freed" } else { "" };
        format!("m{at}:{:?}{life}:{}", memory.kind, memory.bytes)
    }

    /// A stream, by place; `None` is the default stream.
    pub fn stream(&mut self) -> (Option<usize>, hipStream_t, String) {
        let living: Vec<usize> = (0..self.streams.len()).filter(|&at| !self.streams[at].gone).collect();
        if living.is_empty() || self.random.once_in(4) {
            return (None, null_mut(), "s:null".to_owned());
        }
        let at = self.random.of(&living);
        let state = if self.capturing.contains(&at) { ":capturing" } else { "" };
        (Some(at), self.streams[at].handle, format!("s{at}{state}"))
    }

    pub fn is_capturing(&self) -> bool {
        !self.capturing.is_empty()
    }
}

/// The place of a living handle, or once in a while of one that is gone, where that may be.
pub fn pick<T: Copy>(random: &mut Random, slots: &[Slot<T>], gone: bool) -> Option<usize> {
    let gone = gone && random.once_in(15);
    let places: Vec<usize> = (0..slots.len()).filter(|&at| gone || !slots[at].gone).collect();
    (!places.is_empty()).then(|| random.of(&places))
}

pub fn slot<T>(handle: T, note: usize) -> Slot<T> {
    Slot {
        handle,
        gone: false,
        note,
    }
}
