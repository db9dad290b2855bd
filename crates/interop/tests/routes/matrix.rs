//! The table of routes and platforms in the book, made from what the routes do here.
//!
//! After a change: `cargo xtask tables`.

use std::fmt::Write;
use std::path::Path;

use interop::{Bridge, BridgeReport, Carrier, Link, Options, PeerError, Residency, Route};

use crate::evidence::{Evidence, Seen};
use crate::{amd, common, descriptors, evidence};

const BEGIN: &str = "<!-- routes: made by `cargo xtask tables`, do not edit -->\n";
const END: &str = "<!-- routes: end -->\n";

/// Below the table: what is too long for a cell, each once.
#[derive(Default)]
struct Notes(Vec<String>);

impl Notes {
    fn number(&mut self, note: &str) -> String {
        let known = self.0.iter().position(|known| known == note);
        let index = known.unwrap_or_else(|| {
            self.0.push(note.to_owned());
            self.0.len() - 1
        });
        format!("[{}]", index + 1)
    }

    fn list(&self) -> String {
        let lines = self.0.iter().enumerate();
        lines
            .map(|(index, note)| format!("- [{}] {note}\n", index + 1))
            .collect()
    }
}

/// What is known of one route on one platform.
fn cell(report: &BridgeReport, route: Route, state: &str, notes: &mut Notes) -> String {
    let found = report.routes.iter().find(|report| report.route == route);
    match &found.expect("every route is reported").outcome {
        Ok(residency) => format!("{state}: {residency}"),
        Err(reason) => skipped(reason, notes),
    }
}

/// Addresses and names of devices differ from machine to machine, the last clause does not.
fn skipped(reason: &str, notes: &mut Notes) -> String {
    let clause = reason.rsplit(": ").next().unwrap_or(reason);
    format!("skipped {}", notes.number(clause))
}

/// What was seen on hardware, or on an emulated GPU.
fn told_by(seen: &Seen, notes: &mut Notes) -> String {
    let reason = seen.reason.as_deref().map(|reason| notes.number(reason));
    let place = notes.number(&seen.place);
    match reason {
        None => format!("{}: {} {place}", seen.grade, seen.state),
        Some(reason) => format!("{}: {} {reason} {place}", seen.grade, seen.state),
    }
}

const NO_DEVICE: &str = "no such device here";
const TWO_CONTEXTS: &str = "OpenCL and CUDA are two contexts";

/// Where the platform cannot run here: a shim's proof if there is one, else why not.
fn nvidia(shim: &BridgeReport, route: Route, notes: &mut Notes) -> String {
    match route {
        Route::ExternalFd => cell(shim, route, "shim", notes),
        Route::HostPinned | Route::Staging => skipped(NO_DEVICE, notes),
        _ => skipped(TWO_CONTEXTS, notes),
    }
}

/// Named in the environment of the second process: how its bridge is opened.
const SECOND: &str = "HIPCL_TEST_MATRIX_SECOND";

fn open_as(platform: &str) -> Bridge {
    match platform {
        "amd" => amd::open(),
        _ => Bridge::open(&common::host(), &Options::default()).expect("a bridge"),
    }
}

/// Passes every turn back, with each word one greater.
#[test]
#[ignore = "run by another test in a process of its own"]
fn the_second_process_of_the_table() {
    let Ok(platform) = std::env::var(SECOND) else {
        return common::skipped("it runs only as a second process, which another test starts");
    };
    let bridge = open_as(&platform);
    // SAFETY: nothing else here uses standard input.
    let link = unsafe { Link::from_stdin() }.expect("a link");
    // SAFETY: the first process is `crosses`.
    let mut joint = match unsafe { bridge.import::<u32>(link) } {
        Ok(joint) => joint,
        // Nothing carried the memory.
        Err(interop::Error::Peer(PeerError::Gone { .. })) => return,
        Err(error) => panic!("{error}"),
    };
    joint.take().expect("a turn");
    let add = bridge
        .programs()
        .get("kernel void add(global uint *x) { x[get_global_id(0)] += 1u; }", "")
        .and_then(|program| program.kernel("add"))
        .expect("a kernel");
    let queue = bridge.queue().expect("a queue");
    let range = clmgr::NdRange::d1(joint.len());
    let guard = joint.cl_mut(&queue).expect("access");
    // SAFETY: the kernel touches the words of the buffer.
    unsafe { add.launch(&queue, range, &[guard.arg()]) }.expect("a launch");
    drop(guard);
    joint.pass().expect("passed");
}

/// Whether memory goes to another process and back by this carrier, and where it lies.
fn crosses(platform: &str, carrier: Carrier) -> Result<Residency, String> {
    let bridge = open_as(platform);
    let memory = match (carrier, platform) {
        (Carrier::HipFd, _) => bridge.alloc_exportable::<u32>(crate::LEN),
        (Carrier::DmaBuf, "amd") => bridge.alloc_on(Route::SvmCoarse, crate::LEN),
        _ => bridge.alloc_on(Route::HipPointer, crate::LEN),
    };
    let mut memory = memory.map_err(|error| error.to_string())?;
    let words: Vec<u32> = (0..crate::LEN as u32).collect();
    memory.upload(&words).expect("an upload");
    let (link, theirs) = Link::pair().expect("a link");
    let mut child = std::process::Command::new(std::env::current_exe().expect("a path"))
        .args([
            "matrix::the_second_process_of_the_table",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env(SECOND, platform)
        .stdin(std::process::Stdio::from(theirs))
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the second process starts");
    let crossed = memory
        .export_by(carrier, link)
        .map_err(|not| not.to_string())
        .map(|mut joint| {
            joint.pass().expect("passed");
            joint.take().expect("a turn");
            let mut back = vec![0; crate::LEN];
            joint.download(&mut back).expect("a download");
            assert!(back.iter().zip(&words).all(|(a, b)| *a == b + 1), "{carrier}");
            joint.residency()
        });
    assert!(child.wait().expect("a child").success());
    crossed
}

/// The rows of memory of another process.
fn across_processes(seen: &[Evidence], notes: &mut Notes) -> String {
    let mut text = String::new();
    for carrier in Carrier::ALL {
        let seen = |platform| evidence::seen_to_carry(seen, platform, carrier);
        let cell = |platform: &str, state: &str, notes: &mut Notes| match crosses(platform, carrier) {
            Ok(residency) => format!("{state}: {residency}"),
            Err(reason) => skipped(&reason, notes),
        };
        // The shim is tried in any case.
        let modelled = cell("amd", "shim", notes);
        let amd = seen("amd").map_or(modelled, |seen| told_by(&seen, notes));
        let host = cell("host", "host", notes);
        let nvidia = match (seen("nvidia"), carrier) {
            (Some(seen), _) => told_by(&seen, notes),
            (None, Carrier::HipFd) => skipped(NO_DEVICE, notes),
            (None, _) => skipped(TWO_CONTEXTS, notes),
        };
        writeln!(text, "| `ipc` by {carrier} | 5.7 | {amd} | {nvidia} | {host} |").expect("a string");
    }
    text
}

fn table() -> String {
    let seen = evidence::all();
    let _alone = amd::alone();
    let strict = amd::open();
    let imports = descriptors::open();
    let host = Bridge::open(&common::host(), &Options::default()).expect("a bridge");
    let mut text = "| route | oldest ROCm | amd | nvidia | host |\n|---|---|---|---|---|\n".to_owned();
    let mut notes = Notes::default();
    for route in Route::ALL {
        // what was seen outweighs what was modelled
        let amd = match evidence::seen(&seen, "amd", route) {
            Some(seen) => told_by(&seen, &mut notes),
            None => cell(strict.report(), route, "shim", &mut notes),
        };
        let nvidia = match evidence::seen(&seen, "nvidia", route) {
            Some(seen) => told_by(&seen, &mut notes),
            None => nvidia(imports.report(), route, &mut notes),
        };
        let host = cell(host.report(), route, "host", &mut notes);
        let oldest = route.oldest_rocm().unwrap_or("none");
        writeln!(text, "| `{route}` | {oldest} | {amd} | {nvidia} | {host} |").expect("a string");
    }
    text += &across_processes(&seen, &mut notes);
    text + "\n" + &notes.list()
}

#[test]
fn the_books_table_of_routes_is_what_the_routes_do() {
    let table = table();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/status.md");
    let book = std::fs::read_to_string(&path).expect("the book");
    let (before, rest) = book.split_once(BEGIN).expect("the table's begin");
    let (written, after) = rest.split_once(END).expect("the table's end");
    if std::env::var_os("HIPCL_WRITE_TABLES").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}\n{table}\n{END}{after}")).expect("written");
        return;
    }
    let host = Bridge::open(&common::host(), &Options::default()).expect("a bridge");
    if !host.report().opencl_platform.contains("Intel") {
        eprintln!("skipped: the book's table is that of the runtime which `cargo xtask setup` installs");
        return;
    }
    assert_eq!(written.trim(), table.trim(), "run cargo xtask tables");
}
