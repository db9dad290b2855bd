//! A program ends with the status that it asks for, whatever work is queued: OpenCL's static destructors free its
//! memory at the exit, and no stream works in it or calls OpenCL any more.

use std::ffi::c_int;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use clmgr::NdRange;
use interop::{Bridge, Error, Grade, Link, Options, Route, Shared, StreamArg};

use crate::child::kernels;
use crate::{LIMIT, alone, common, open};

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

/// OpenCL's destructors wait for the commands behind a hand-off, which nothing but the end of the process ends here.
#[test]
fn an_exit_over_handoffs_that_never_end_is_not_held_by_them() {
    exits_well("stuck-callback");
    exits_well("stuck-device");
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

/// The other process would take what was never written.
#[test]
fn a_pass_behind_the_beginning_of_the_end_is_an_error() {
    exits_well("pass-at-exit");
}

fn exits_well(work: &str) {
    // Other tests count this process's descriptors, and the pipes to a child are some.
    let _alone = alone();
    for run in 0..RUNS {
        let mut child = Command::new(std::env::current_exe().expect("a path"))
            .args(["exit::the_program", "--exact", "--ignored", "--nocapture"])
            .env(WORK, work)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let until = Instant::now() + LIMIT;
        let hangs = loop {
            let ended = child.try_wait().expect("a child").is_some();
            if ended || Instant::now() > until {
                break !ended;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        if hangs {
            child.kill().expect("a child");
        }
        let child = child.wait_with_output().expect("a child");
        assert!(!hangs, "{work}, run {run}: it did not end in {LIMIT:?}");
        assert_eq!(child.status.code(), Some(STATUS), "{work}, run {run}: {child:?}");
    }
}

#[test]
#[ignore = "run by other tests in a process of its own"]
fn the_program() {
    let Ok(work) = std::env::var(WORK) else {
        return common::skipped("it runs only as a program of its own, which another test starts");
    };
    match work.as_str() {
        "wait-at-exit" => wait_at_exit(),
        "download-at-exit" => download_at_exit(),
        "pass-at-exit" => pass_at_exit(),
        _ => {}
    }
    let bridge = open();
    // An exit drops nothing: a module, and so a bridge, waits for the kernels as it goes.
    let _memory = match work.as_str() {
        "svm-coarse" => vec![work_on(&bridge, Route::SvmCoarse)],
        "gpu-va" => vec![work_on(&bridge, Route::GpuVa)],
        "stream-kernels" => vec![stream_kernels(&bridge)],
        "hand-offs" => hand_offs(),
        "stuck-callback" => vec![stuck(Grade::Callback)],
        "stuck-device" => vec![stuck(Grade::Device)],
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
    let mut launch = || {
        let mut guard = memory.hip_mut(&stream).expect("access");
        let args: [StreamArg<'_>; 1] = [guard.arg()];
        // SAFETY: the kernel touches the words of the buffer.
        unsafe { add.launch(&stream, NdRange::d1(WORDS), &args) }.expect("a launch");
    };
    // PoCL compiles a kernel at its first run, in a thread of its own, and crashes if the process exits meanwhile.
    launch();
    stream.synchronize().expect("it runs");
    for _ in 0..400 {
        launch();
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
    // PoCL compiles a kernel at its first run, as above.
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

/// Two queues behind a stream that waits for ever.
fn stuck(grade: Grade) -> Shared<u32> {
    let options = Options {
        grade: Some(grade),
        handoff_limit: Some(2 * LIMIT),
        ..Options::default()
    };
    let bridge = Bridge::open(&common::host(), &options).expect("a bridge");
    let (mul, add) = kernels(&bridge);
    let stream = bridge.stream().expect("a stream");
    let queues = [(); 2].map(|()| bridge.queue().expect("a queue"));
    let mut memory = bridge.alloc::<u32>(WORDS / 16).expect("memory");
    let launch_mul = |queue: &clmgr::Queue, memory: &mut Shared<u32>| {
        let words = memory.len();
        let guard = memory.cl_mut(queue).expect("access");
        // SAFETY: the kernel touches the words of the buffer.
        unsafe { mul.launch(queue, NdRange::d1(words), &[guard.arg()]) }.expect("a launch");
    };
    // PoCL compiles a kernel at its first run, as above.
    launch_mul(&queues[0], &mut memory);
    queues[0].finish().expect("it runs");
    let flag = bridge.hip_device().flag::<u32>().expect("a flag");
    stream.wait_flag(&flag, hip::Condition::AtLeast(1)).expect("a wait");
    queue_add(&add, &stream, &mut memory);
    for queue in &queues {
        launch_mul(queue, &mut memory);
        queue.flush().expect("the queue begins");
    }
    std::mem::forget((mul, add, stream, queues, flag, bridge));
    memory
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

/// Another thread reads what OpenCL holds.
fn download_at_exit() -> ! {
    exit_before(|bridge| {
        let memory = bridge.alloc_on::<u32>(Route::SvmCoarse, 16).expect("memory");
        memory.download(&mut [0; 16]).expect("a download");
        move || {
            let read = memory.download(&mut [0; 16]);
            std::mem::forget(memory);
            read
        }
    })
}

/// Another thread passes on what OpenCL may not have written.
fn pass_at_exit() -> ! {
    exit_before(|bridge| {
        let (link, theirs) = Link::pair().expect("a link");
        let memory = bridge.alloc_exportable::<u32>(16).expect("memory");
        let other = bridge.clone();
        // SAFETY: the other side is this function, whose memory is what it says.
        let import = std::thread::spawn(move || unsafe { other.import::<u32>(theirs.into_link()) });
        let mut joint = memory
            .export(link.with_limit(LIMIT))
            .map_err(|failed| failed.to_string());
        let mut other = import.join().expect("no panic").expect("an import");
        let joined = joint.as_mut().expect("an export");
        joined.pass().expect("a turn");
        other.take().expect("a turn");
        other.pass().expect("a turn");
        joined.take().expect("a turn");
        move || {
            let passed = joint.as_mut().expect("an export").pass();
            std::mem::forget((joint, other));
            passed
        }
    })
}

/// Exits, and asks what `prepare` returns between the bridge's handler and OpenCL's destructors.
fn exit_before<A>(prepare: impl FnOnce(&Bridge) -> A) -> !
where
    A: FnOnce() -> interop::Result<()> + Send + 'static,
{
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
    let ask = prepare(&bridge);
    // The thread that ends the process has no thread-local storage by then.
    std::thread::spawn(move || {
        wait_for(ENDS);
        let answer = ask();
        if !matches!(answer, Err(Error::ProcessEnds)) {
            eprintln!("{answer:?}");
            std::process::abort();
        }
        STATE.store(TRIED, Ordering::Release);
    });
    std::process::exit(STATUS)
}
