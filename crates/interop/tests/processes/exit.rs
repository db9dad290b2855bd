//! A program ends with the status that it asks for, whatever work is queued: OpenCL's static destructors free its
//! memory at the exit, and no stream works in it or calls OpenCL any more.

use std::ffi::c_int;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};

use clmgr::NdRange;
use interop::{Bridge, Error, Grade, Options, Route, Shared, StreamArg};

use crate::child::kernels;
use crate::{alone, common, open};

/// What [`the_program`] does before it exits.
const WORK: &str = "HIPCL_TEST_EXIT";
const STATUS: i32 = 42;
/// Each way crashed in at least one of three runs without the end of the streams.
const RUNS: usize = 6;
const WORDS: usize = 1 << 20;

#[test]
fn an_exit_over_kernels_in_opencls_memory_keeps_its_status() {
    exits_well("svm-coarse");
    exits_well("gpu-va");
}

#[test]
fn an_exit_over_opencl_kernels_on_a_stream_keeps_its_status() {
    exits_well("stream-kernels");
}

#[test]
fn an_exit_over_handoffs_keeps_its_status() {
    exits_well("hand-offs");
}

/// Destructors that run after the end wait for queued work, which ends there with an error.
#[test]
fn a_wait_after_the_end_of_the_streams_returns() {
    exits_well("wait-at-exit");
}

/// OpenCL may answer success and do nothing from then on.
#[test]
fn a_download_behind_the_beginning_of_the_end_is_an_error() {
    exits_well("download-at-exit");
}

fn exits_well(work: &str) {
    // Other tests count this process's descriptors, and the pipes to a child are some.
    let _alone = alone();
    for run in 0..RUNS {
        let child = Command::new(std::env::current_exe().expect("a path"))
            .args(["exit::the_program", "--exact", "--ignored", "--nocapture"])
            .env(WORK, work)
            .output()
            .expect("the program starts");
        assert_eq!(child.status.code(), Some(STATUS), "{work}, run {run}: {child:?}");
    }
}

#[test]
#[ignore = "run by other tests in a process of its own"]
fn the_program() {
    let Ok(work) = std::env::var(WORK) else {
        return common::skipped("it runs only as a program of its own, which another test starts");
    };
    if work == "wait-at-exit" {
        wait_at_exit();
    }
    if work == "download-at-exit" {
        download_at_exit();
    }
    let bridge = open();
    // An exit drops nothing: a module, and so a bridge, waits for the kernels as it goes.
    let _memory = match work.as_str() {
        "svm-coarse" => vec![work_on(&bridge, Route::SvmCoarse)],
        "gpu-va" => vec![work_on(&bridge, Route::GpuVa)],
        "stream-kernels" => vec![stream_kernels(&bridge)],
        "hand-offs" => hand_offs(),
        other => panic!("no work {other}"),
    };
    std::process::exit(STATUS)
}

/// Many kernels of HIP in memory of OpenCL.
fn work_on(bridge: &Bridge, route: Route) -> Shared<u32> {
    let (_, add) = kernels(bridge);
    let stream = bridge.stream().expect("a stream");
    let mut memory = bridge.alloc_on::<u32>(route, WORDS).expect("memory");
    for _ in 0..400 {
        queue_add(&add, &stream, &mut memory);
    }
    std::mem::forget(add);
    memory
}

fn queue_add(add: &hip::Function, stream: &hip::Stream, memory: &mut Shared<u32>) {
    let len = memory.len();
    let mut guard = memory.hip_mut(stream).expect("access");
    let config = hip::LaunchConfig::linear(len, 256).expect("a grid");
    // SAFETY: the kernel touches as many words as it is told.
    unsafe { add.launch(stream, config, &[&guard.slice_mut(), &(len as u32)]) }.expect("a launch");
}

fn stream_kernels(bridge: &Bridge) -> Shared<u32> {
    let program = bridge
        .programs()
        .get("kernel void add(global uint *x) { x[get_global_id(0)] += 7u; }", "")
        .expect("it compiles");
    let add = bridge
        .stream_program(&program)
        .and_then(|program| program.kernel("add"))
        .expect("it runs on a stream");
    let stream = bridge.stream().expect("a stream");
    let mut memory = bridge.alloc::<u32>(WORDS).expect("memory");
    for _ in 0..400 {
        let mut guard = memory.hip_mut(&stream).expect("access");
        let args: [StreamArg<'_>; 1] = [guard.arg()];
        // SAFETY: the kernel touches the words of the buffer.
        unsafe { add.launch(&stream, NdRange::d1(WORDS), &args) }.expect("a launch");
    }
    std::mem::forget(add);
    memory
}

/// Hand-offs both ways, whose callbacks call OpenCL.
fn hand_offs() -> Vec<Shared<u32>> {
    let options = Options {
        grade: Some(Grade::Callback),
        ..Options::default()
    };
    let bridge = Bridge::open(&common::host(), &options).expect("a bridge");
    let (mul, add) = kernels(&bridge);
    let (queue, stream) = (bridge.queue().expect("a queue"), bridge.stream().expect("a stream"));
    let mut all: Vec<Shared<u32>> = (0..40).map(|_| bridge.alloc(WORDS / 16).expect("memory")).collect();
    let launch_mul = |memory: &mut Shared<u32>| {
        let words = memory.len();
        let guard = memory.cl_mut(&queue).expect("access");
        // SAFETY: the kernel touches the words of the buffer.
        unsafe { mul.launch(&queue, NdRange::d1(words), &[guard.arg()]) }.expect("a launch");
    };
    // PoCL compiles a kernel at its first run, in a thread of its own, and crashes if the process exits meanwhile.
    launch_mul(&mut all[0]);
    queue.finish().expect("it runs");
    for memory in &mut all {
        queue_add(&add, &stream, memory);
        launch_mul(memory);
    }
    queue.flush().expect("the queue begins");
    std::mem::forget((mul, add, bridge));
    all
}

unsafe extern "C" {
    safe fn atexit(handler: extern "C" fn()) -> c_int;
}

/// What was registered before a bridge was opened runs after the end of its streams.
fn wait_at_exit() -> ! {
    static STREAM: Mutex<Option<hip::Stream>> = Mutex::new(None);
    extern "C" fn waits() {
        let stream = STREAM.lock().expect("the only thread");
        if stream.as_ref().is_some_and(|stream| stream.synchronize().is_ok()) {
            // The kernel cannot have run.
            std::process::abort();
        }
    }
    assert_eq!(atexit(waits), 0);
    let bridge = open();
    let (_, add) = kernels(&bridge);
    let stream = bridge.stream().expect("a stream");
    let mut memory = bridge.alloc_on::<u32>(Route::GpuVa, WORDS).expect("memory");
    // Never stored: only the end of the process ends the wait.
    let flag = bridge.hip_device().flag::<u32>().expect("a flag");
    stream.wait_flag(&flag, hip::Condition::AtLeast(1)).expect("a wait");
    queue_add(&add, &stream, &mut memory);
    *STREAM.lock().expect("the only thread") = Some(stream);
    std::process::exit(STATUS)
}

/// Another thread reads what OpenCL holds, between the bridge's handler and OpenCL's destructors.
fn download_at_exit() -> ! {
    const RUNS: u8 = 0;
    const ENDS: u8 = 1;
    const TRIED: u8 = 2;
    static STATE: AtomicU8 = AtomicU8::new(RUNS);
    fn wait_for(state: u8) {
        while STATE.load(Ordering::Acquire) != state {
            std::thread::yield_now();
        }
    }
    extern "C" fn ends() {
        STATE.store(ENDS, Ordering::Release);
        wait_for(TRIED);
    }
    // What is registered last runs first: the bridge's handler, then this one, then OpenCL's destructors.
    let manager = clmgr::Manager::load().expect("OpenCL");
    let context = clmgr::Context::new(&manager.devices()[0]).expect("a context");
    context.queue().and_then(|queue| queue.finish()).expect("a queue");
    assert_eq!(atexit(ends), 0);
    let bridge = open();
    let memory = bridge.alloc_on::<u32>(Route::SvmCoarse, 16).expect("memory");
    memory.download(&mut [0; 16]).expect("a download");
    // The thread that ends the process has no thread-local storage by then.
    std::thread::spawn(move || {
        wait_for(ENDS);
        let read = memory.download(&mut [0; 16]);
        if !matches!(read, Err(Error::ProcessEnds)) {
            eprintln!("{read:?}");
            std::process::abort();
        }
        std::mem::forget(memory);
        STATE.store(TRIED, Ordering::Release);
    });
    std::process::exit(STATUS)
}
