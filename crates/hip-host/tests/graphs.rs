//! Graphs: what runs side by side, and what waits.

mod common;

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::*;
use hip_sys::{hipGraph_t, hipGraphExec_t, hipGraphNode_t, hipHostNodeParams, hipMemsetParams, hipStreamCaptureMode};

fn graph() -> hipGraph_t {
    let mut graph = null_mut();
    ok!(hipGraphCreate(&mut graph, 0));
    graph
}

fn ready(graph: hipGraph_t) -> hipGraphExec_t {
    let mut exec = null_mut();
    ok!(hipGraphInstantiateWithFlags(&mut exec, graph, 0));
    exec
}

fn host_node<T>(
    graph: hipGraph_t,
    after: &[hipGraphNode_t],
    function: extern "C" fn(*mut c_void),
    data: &T,
) -> hipGraphNode_t {
    let params = hipHostNodeParams {
        fn_: Some(function),
        userData: (&raw const *data).cast_mut().cast(),
    };
    let mut node = null_mut();
    ok!(hipGraphAddHostNode(
        &mut node,
        graph,
        after.as_ptr(),
        after.len(),
        &params
    ));
    node
}

/// Where threads wait until a number of them have come; who waits in vain leaves.
struct Meeting {
    wanted: usize,
    here: AtomicUsize,
    met: AtomicUsize,
}

impl Meeting {
    fn of(wanted: usize) -> Self {
        Self {
            wanted,
            here: AtomicUsize::new(0),
            met: AtomicUsize::new(0),
        }
    }
}

extern "C" fn meet(data: *mut c_void) {
    // SAFETY: the test gives a meeting that outlives the launch.
    let meeting = unsafe { &*data.cast::<Meeting>() };
    meeting.here.fetch_add(1, Ordering::AcqRel);
    let start = Instant::now();
    while meeting.here.load(Ordering::Acquire) < meeting.wanted {
        if start.elapsed() > Duration::from_secs(20) {
            return;
        }
        std::thread::yield_now();
    }
    meeting.met.fetch_add(1, Ordering::AcqRel);
}

type Log = Mutex<Vec<&'static str>>;

/// A word, and where to note it.
struct Note<'a>(&'static str, &'a Log);

extern "C" fn note(data: *mut c_void) {
    // SAFETY: the test gives a note that outlives the launch.
    let Note(word, log) = unsafe { &*data.cast::<Note<'_>>() };
    log.lock().unwrap().push(word);
}

#[test]
fn branches_of_a_graph_run_side_by_side() {
    let meeting = Meeting::of(3);
    let graph = graph();
    for _ in 0..3 {
        host_node(graph, &[], meet, &meeting);
    }
    let (exec, stream) = (ready(graph), stream());
    ok!(hipGraphLaunch(exec, stream));
    ok!(hipStreamSynchronize(stream));
    assert_eq!(meeting.met.load(Ordering::Acquire), 3);
}

#[test]
fn branches_of_a_child_graph_run_side_by_side() {
    let meeting = Meeting::of(2);
    let (parent, child) = (graph(), graph());
    for _ in 0..2 {
        host_node(child, &[], meet, &meeting);
    }
    let mut node = null_mut();
    ok!(hipGraphAddChildGraphNode(&mut node, parent, null(), 0, child));
    let (exec, stream) = (ready(parent), stream());
    ok!(hipGraphLaunch(exec, stream));
    ok!(hipStreamSynchronize(stream));
    assert_eq!(meeting.met.load(Ordering::Acquire), 2);
}

#[test]
fn branches_forked_by_events_in_a_capture_run_side_by_side() {
    let meeting = Meeting::of(2);
    let data = (&raw const meeting).cast_mut().cast::<c_void>();
    let (origin, branch) = (stream(), stream());
    let (mut fork, mut join) = (null_mut(), null_mut());
    ok!(hipEventCreate(&mut fork));
    ok!(hipEventCreate(&mut join));
    let mode = hipStreamCaptureMode::hipStreamCaptureModeRelaxed;
    ok!(hipStreamBeginCapture(origin, mode));
    ok!(hipEventRecord(fork, origin));
    ok!(hipStreamWaitEvent(branch, fork, 0));
    for stream in [origin, branch] {
        ok!(hipLaunchHostFunc(stream, Some(meet), data));
    }
    ok!(hipEventRecord(join, branch));
    ok!(hipStreamWaitEvent(origin, join, 0));
    let mut graph = null_mut();
    ok!(hipStreamEndCapture(origin, &mut graph));
    ok!(hipGraphLaunch(ready(graph), origin));
    ok!(hipStreamSynchronize(origin));
    assert_eq!(meeting.met.load(Ordering::Acquire), 2);
}

/// Every launch, before and after what else is in its stream.
#[test]
fn each_node_runs_after_all_it_waits_for_and_the_launch_in_its_place() {
    let log = Log::default();
    let words = ["before", "top", "left", "right", "bottom", "after"];
    let [before, top, left, right, bottom, after] = words.map(|word| Note(word, &log));
    let graph = graph();
    let first = host_node(graph, &[], note, &top);
    let middle = [&left, &right].map(|side| host_node(graph, &[first], note, side));
    host_node(graph, &middle, note, &bottom);
    let (exec, stream) = (ready(graph), stream());
    for _ in 0..100 {
        let data = |note: &Note<'_>| (&raw const *note).cast_mut().cast::<c_void>();
        ok!(hipLaunchHostFunc(stream, Some(note), data(&before)));
        ok!(hipGraphLaunch(exec, stream));
        ok!(hipLaunchHostFunc(stream, Some(note), data(&after)));
    }
    ok!(hipStreamSynchronize(stream));
    let log = log.into_inner().unwrap();
    assert_eq!(log.len(), 600);
    for launch in log.chunks(6) {
        let sides = [launch[2], launch[3]];
        assert!(sides == ["left", "right"] || sides == ["right", "left"]);
        assert_eq!(
            [launch[0], launch[1], launch[4], launch[5]],
            ["before", "top", "bottom", "after"]
        );
    }
}

#[test]
fn many_branches_are_all_done_when_the_launch_is() {
    const BRANCHES: usize = 40;
    let memory = malloc(4 * BRANCHES);
    let graph = graph();
    for branch in 0..BRANCHES {
        let mut before = null_mut();
        // A chain of two, the second overwriting the first.
        for (value, last) in [(1000, false), (branch as u32, true)] {
            let params = hipMemsetParams {
                dst: memory.wrapping_byte_add(4 * branch),
                elementSize: 4,
                width: 1,
                height: 1,
                pitch: 4,
                value,
            };
            let after = if last { &[before][..] } else { &[] };
            let mut node = null_mut();
            ok!(hipGraphAddMemsetNode(
                &mut node,
                graph,
                after.as_ptr(),
                after.len(),
                &params
            ));
            before = node;
        }
    }
    let (exec, stream) = (ready(graph), stream());
    for _ in 0..20 {
        ok!(hipMemsetD32Async(memory, -1, BRANCHES, stream));
        ok!(hipGraphLaunch(exec, stream));
        ok!(hipStreamSynchronize(stream));
        let expected: Vec<u32> = (0..BRANCHES as u32).collect();
        assert_eq!(download::<u32>(memory, BRANCHES), expected);
    }
}
