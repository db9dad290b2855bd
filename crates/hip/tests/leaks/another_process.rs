//! A process that shares memory and an event, and waits until it is not needed any more.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

use hip::{IpcEvent, IpcMemory};

const CHILD: &str = "HIP_LEAKS_CHILD";
const BEGIN: &str = "handles: ";

struct Other {
    process: Child,
    memory: IpcMemory,
    event: IpcEvent,
    /// Kept open: who writes to a closed pipe is killed.
    _output: BufReader<ChildStdout>,
}

static OTHER: Mutex<Option<Other>> = Mutex::new(None);

/// The handles of the other process, which is started if there is none. Its buffer holds 64 sixes.
pub fn handles() -> (IpcMemory, IpcEvent) {
    let mut other = OTHER.lock().unwrap();
    let Other { memory, event, .. } = other.get_or_insert_with(start);
    (*memory, *event)
}

/// Ends the other process and waits for it.
pub fn end() {
    let mut other = OTHER.lock().unwrap().take().expect("it was started");
    drop(other.process.stdin.take());
    assert!(other.process.wait().unwrap().success());
}

fn start() -> Other {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["another_process::shares_until_its_input_ends", "--exact", "--nocapture"])
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    let mut line = String::new();
    let text = loop {
        line.clear();
        assert_ne!(output.read_line(&mut line).unwrap(), 0, "no handles");
        if let Some((_, text)) = line.split_once(BEGIN) {
            break text;
        }
    };
    let bytes: Vec<u8> = text.split_whitespace().map(|byte| byte.parse().unwrap()).collect();
    let handle = |at: usize| bytes[at..at + 64].try_into().unwrap();
    Other {
        process,
        memory: IpcMemory { bytes: handle(0) },
        event: IpcEvent { bytes: handle(64) },
        _output: output,
    }
}

#[test]
fn shares_until_its_input_ends() {
    if std::env::var_os(CHILD).is_none() {
        crate::common::skipped("it runs only as a second process, which another test starts");
        return;
    }
    // SAFETY: the table is the host platform's.
    let runtime = unsafe { hip::Runtime::from_tables(Arc::new(hip_host::hip_api()), None) }.unwrap();
    let device = runtime.device(0).unwrap();
    let stream = device.stream().unwrap();
    let buffer = device.alloc_from(&stream, &[6_u32; 64]).unwrap();
    let event = device.shared_event().unwrap();
    event.record_on(&stream).unwrap();
    let (memory, event_handle) = (buffer.share().unwrap(), event.share().unwrap());
    let bytes = memory.bytes.iter().chain(&event_handle.bytes);
    let text: Vec<String> = bytes.map(u8::to_string).collect();
    let mut out = std::io::stdout();
    writeln!(out, "{BEGIN}{}", text.join(" ")).unwrap();
    out.flush().unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}
