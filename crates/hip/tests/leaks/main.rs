//! Whatever is made is given back, and every call that fails is told: each function of each operation is made to fail
//! in turn, and each function that the crate wraps is among them.

mod another_process;
#[path = "../common/mod.rs"]
mod common;
mod ledger;
mod operations;

use std::collections::BTreeSet;

use hip::{Device, Result};
use ledger::Calls;
use operations::{OPERATIONS, Operation};

/// What each function makes is given back by one of the others.
const PAIRS: &[(&[&str], &[&str])] = &[
    (
        &["hipMalloc", "hipMallocManaged", "hipExternalMemoryGetMappedBuffer"],
        &["hipFree"],
    ),
    (&["hipMallocAsync", "hipMallocFromPoolAsync"], &["hipFreeAsync"]),
    (&["hipMemPoolCreate"], &["hipMemPoolDestroy"]),
    (&["hipHostMalloc"], &["hipHostFree"]),
    (&["hipHostRegister"], &["hipHostUnregister"]),
    (
        &["hipStreamCreateWithFlags", "hipStreamCreateWithPriority"],
        &["hipStreamDestroy"],
    ),
    (
        &["hipEventCreateWithFlags", "hipIpcOpenEventHandle"],
        &["hipEventDestroy"],
    ),
    (&["hipModuleLoadData"], &["hipModuleUnload"]),
    (&["hipImportExternalMemory"], &["hipDestroyExternalMemory"]),
    (&["hipMemCreate", "hipMemImportFromShareableHandle"], &["hipMemRelease"]),
    (&["hipMemAddressReserve"], &["hipMemAddressFree"]),
    (&["hipMemMap"], &["hipMemUnmap"]),
    (&["hipStreamEndCapture"], &["hipGraphDestroy"]),
    (&["hipGraphInstantiate"], &["hipGraphExecDestroy"]),
    (&["hipIpcOpenMemHandle"], &["hipIpcCloseMemHandle"]),
    (&["hiprtcCreateProgram"], &["hiprtcDestroyProgram"]),
];

/// Functions whose failure changes nothing, so that it is not reported.
const TOLERATED: &[&str] = &[
    // Then HIP is told which device is meant.
    "hipGetDevice",
    // HIP itself checks a launch whose limits are not known.
    "hipDeviceGetAttribute",
    // A stream that does not say that it is idle is kept a while longer.
    "hipStreamQuery",
    // A library that cannot tell cannot capture.
    "hipStreamIsCapturing",
    // What it returns is no failure of its own.
    "hipGetLastError",
    // Of a program that compiled there is nothing that has to be said.
    "hiprtcGetProgramLogSize",
    "hiprtcGetProgramLog",
];

/// The same for what only goes into the key of a cache: what cannot be told then is no part of it.
const TOLERATED_IN_A_KEY: &[&str] = &[
    "hipDeviceGetName",
    "hiprtcVersion",
    "hipRuntimeGetVersion",
    "hipDriverGetVersion",
];

/// Wrapped functions that no operation here gets to call.
const ELSEWHERE: &[&str] = &[
    // The host platform imports no semaphore; sharing.rs has a library that does.
    "hipDestroyExternalSemaphore",
    "hipSignalExternalSemaphoresAsync",
    "hipWaitExternalSemaphoresAsync",
];

fn tolerated(what: &str, name: &str) -> bool {
    TOLERATED.contains(&name) || (what == "a cache of programs" && TOLERATED_IN_A_KEY.contains(&name))
}

/// How many more were made than given back, by pair.
fn balance(calls: &Calls) -> Vec<i64> {
    let sum = |names: &[&str]| -> i64 {
        let succeeded = names.iter().filter_map(|name| calls.get(name));
        succeeded.map(|(_, ok)| *ok as i64).sum()
    };
    PAIRS
        .iter()
        .map(|(make, give_back)| sum(make) - sum(give_back))
        .collect()
}

fn run(operation: Operation, device: &Device) -> (Result<()>, usize, Calls) {
    ledger::take();
    let outcome = operation(device);
    hip_host::faults::set_failures("").unwrap();
    let deferred = device.runtime().take_deferred_errors().len();
    (outcome, deferred, ledger::take())
}

/// The functions that `FUNCTIONS.md` calls wrapped.
fn wrapped() -> BTreeSet<&'static str> {
    let table = include_str!("../../FUNCTIONS.md");
    let begin = table.find("## Wrapped").unwrap();
    let end = table.find("## Raw only").unwrap();
    table[begin..end]
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect()
}

#[test]
fn each_call_that_fails_is_told_and_leaves_nothing() {
    // SAFETY: the only test of this program that uses HIP, before it does, and nothing else reads the environment by C
    // functions.
    unsafe { std::env::set_var("HIP_HOST_DEVICES", "2") };
    let device = ledger::counted_runtime().unwrap().device(0).unwrap();
    let mut called = BTreeSet::new();
    // Asked once and kept.
    let limits = OPERATIONS.iter().find(|(name, _)| *name == "kernels");
    limits.unwrap().1(&device).unwrap();
    for (what, operation) in OPERATIONS {
        let (outcome, deferred, calls) = run(*operation, &device);
        outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(deferred, 0, "{what}");
        assert_eq!(balance(&calls), vec![0; PAIRS.len()], "{what}");
        for (name, (count, _)) in calls {
            called.insert(name);
            for nth in 1..=count.min(4) {
                let at = format!("{what}: {name}, call {nth}");
                hip_host::faults::set_failures(&format!("{name}:{nth}")).unwrap();
                let (outcome, deferred, calls) = run(*operation, &device);
                let told = outcome.is_err() || deferred > 0;
                assert!(told || tolerated(what, name), "{at}: no call reported it");
                if let Err(error) = outcome {
                    let text = error.to_string();
                    assert!(!text.contains('\n') && text.contains("hip"), "{at}: {text}");
                }
                let gives_back = PAIRS.iter().position(|(_, give)| give.contains(&name));
                for (pair, more) in balance(&calls).into_iter().enumerate() {
                    // Addresses that are still mapped cannot be given back either.
                    let mapped = name == "hipMemUnmap" && PAIRS[pair].1 == ["hipMemAddressFree"];
                    let expected = i64::from(gives_back == Some(pair) || mapped);
                    assert!(
                        more == 0 || more == expected,
                        "{at}: {more} of {:?} left",
                        PAIRS[pair].0
                    );
                }
            }
        }
    }
    let missing: Vec<_> = wrapped()
        .into_iter()
        .filter(|name| !called.contains(name) && !ELSEWHERE.contains(name))
        .collect();
    assert!(missing.is_empty(), "wrapped, but never made to fail here: {missing:?}");
    let stale: Vec<_> = ELSEWHERE.iter().filter(|name| called.contains(*name)).collect();
    assert!(stale.is_empty(), "made to fail here after all: {stale:?}");
    another_process::end();
}
