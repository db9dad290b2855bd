//! What calls return in threads that still run while the process ends and the drivers' destructors run.

mod common;

use std::ffi::c_int;
use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::thread;

use clmgr::{Arg, Context, Error, Manager, NdRange, Program, RegularBuffer, Result, SvmBuffer, SvmCapabilities};

const LEN: usize = 20_000;
/// How many processes end. Each of them ends at another moment of its threads' work.
const PROCESSES: usize = 12;
const CHILD: &str = "HIPCL_TEST_END_CHILD";
const WRONG: &str = "success with wrong values";

static ROUNDS: AtomicUsize = AtomicUsize::new(0);

/// Unlike `println`, also when the standard library has let go of its output.
fn tell(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

fn compare(way: &str, values: &[u32], expected: u32) {
    if values.iter().any(|&value| value != expected) {
        tell(&format!("{way}: {WRONG}"));
    }
    ROUNDS.fetch_add(1, Ordering::SeqCst);
}

fn maps(context: &Context) -> Result<()> {
    let queue = context.queue()?;
    let mut memory = SvmBuffer::coarse(context, LEN)?;
    for value in 1.. {
        memory.fill(&queue, 0, LEN, value)?;
        // Copied at once: when the driver has ended, the memory has too.
        let values = memory.map(&queue)?.to_vec();
        compare("map", &values, value);
    }
    Ok(())
}

fn transfers(context: &Context) -> Result<()> {
    let queue = context.queue()?;
    let mut memory = RegularBuffer::new(context, LEN)?;
    for value in 1.. {
        let _written = memory.write_async(&queue, 0, vec![value; LEN])?;
        let read = memory.read_async(&queue, 0, vec![0; LEN])?;
        compare("transfer", &read.wait()?, value);
    }
    Ok(())
}

fn launches(context: &Context) -> Result<()> {
    let source = "kernel void set(global uint *x, uint value) { x[get_global_id(0)] = value; }";
    let kernel = Program::build(context, source, "")?.kernel("set")?;
    let queue = context.queue()?;
    let memory = RegularBuffer::new(context, LEN)?;
    let mut values = vec![0; LEN];
    for value in 1u32.. {
        // SAFETY: the kernel writes the buffer's elements, which this thread alone uses.
        unsafe { kernel.launch(&queue, NdRange::d1(LEN), &[memory.arg(), Arg::scalar(&value)])? };
        memory.read(&queue, &mut values)?;
        compare("launch", &values, value);
    }
    Ok(())
}

/// Ends while its threads work.
fn child(number: usize) -> ! {
    let context = common::context();
    let mut ways: Vec<fn(&Context) -> Result<()>> = vec![transfers, launches];
    if common::has(&context, SvmCapabilities::COARSE) {
        ways.push(maps);
    }
    for way in &ways {
        let (way, context) = (*way, context.clone());
        thread::spawn(move || {
            tell(&format!("{:?}", way(&context)));
            // What it holds, it drops while the process ends.
            drop(context);
        });
    }
    while ROUNDS.load(Ordering::SeqCst) < 10 + 7 * number {
        thread::yield_now();
    }
    std::process::exit(0);
}

fn start(test: &str, number: usize) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(CHILD, number.to_string())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn no_call_succeeds_with_wrong_values_while_the_process_ends() {
    const NAME: &str = "no_call_succeeds_with_wrong_values_while_the_process_ends";
    if let Ok(number) = std::env::var(CHILD) {
        child(number.parse().unwrap());
    }
    for number in 0..PROCESSES {
        let child = start(NAME, number);
        // It may end with a signal: its threads are inside of a driver whose destructors run.
        assert_ne!(child.status.code(), Some(101), "process {number}: {child:?}");
        let told = String::from_utf8_lossy(&child.stderr);
        assert!(!told.contains(WRONG), "process {number}: {told}");
    }
}

unsafe extern "C" {
    safe fn atexit(handler: extern "C" fn()) -> c_int;
}

/// Asks between the beginning of the end and OpenCL's destructors.
fn ask_behind_the_beginning() -> ! {
    const RUNS: u8 = 0;
    const ENDS: u8 = 1;
    const ASKED: u8 = 2;
    static STATE: AtomicU8 = AtomicU8::new(RUNS);
    fn wait_for(state: u8) {
        while STATE.load(Ordering::Acquire) != state {
            thread::yield_now();
        }
    }
    extern "C" fn ends() {
        STATE.store(ENDS, Ordering::Release);
        wait_for(ASKED);
    }
    // What is registered last runs first: what a context registers, then this, then the drivers' destructors.
    let _loaded = Manager::load().unwrap();
    assert_eq!(atexit(ends), 0);
    let context = common::context();
    let queue = context.queue().unwrap();
    let mut memory = RegularBuffer::new(&context, LEN).unwrap();
    let written = memory.write_async(&queue, 0, vec![7u32; LEN]).unwrap();
    written.wait().unwrap();
    // The thread that ends the process has no thread-local storage by then.
    thread::spawn(move || {
        wait_for(ENDS);
        let answers = [
            memory.read(&queue, &mut [0; LEN]),
            memory
                .read_async(&queue, 0, vec![0; LEN])
                .and_then(|read| read.wait())
                .map(drop),
            memory.map(&queue).map(drop),
            queue.record().and_then(|event| event.wait()),
            queue.record().and_then(|event| event.is_complete()).map(drop),
            queue.finish(),
        ];
        let all_told = answers.iter().all(|answer| matches!(answer, Err(Error::ProcessEnds)));
        if !all_told {
            tell(&format!("{answers:?}"));
            std::process::abort();
        }
        std::mem::forget((memory, queue, context));
        STATE.store(ASKED, Ordering::Release);
    });
    std::process::exit(0);
}

#[test]
fn an_answer_behind_the_beginning_of_the_end_is_an_error() {
    const NAME: &str = "an_answer_behind_the_beginning_of_the_end_is_an_error";
    if std::env::var_os(CHILD).is_some() {
        ask_behind_the_beginning();
    }
    let child = start(NAME, 0);
    assert!(child.status.success(), "{child:?}");
}
