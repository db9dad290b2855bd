//! What the other processes do.

use std::time::Duration;

use rccl::{Communicator, ReduceOp, UniqueId};

use crate::{device, everything, join, join_within, library};

/// Names the role; without it the program is the first process.
pub const ROLE: &str = "HIPCL_TEST_ROLE";

/// How a line for the test begins: the harness writes some too.
pub const TELLS: &str = "told: ";

#[derive(Debug, Clone, Copy)]
pub enum Role {
    /// Takes part in everything.
    Everything,
    /// Takes part in everything of a part, and then of the whole.
    Split,
    /// Is killed when the first call is under way.
    Die,
    /// Ends without leaving the communicator.
    End,
    /// Makes an id, tells it, and waits as rank 0 to be killed.
    Make,
    /// Aborts when a message comes.
    Abort,
    /// Looks at the memory of a call that the other rank aborts.
    KeepMemory,
    /// Makes no call, and tells the failure that it sees.
    Watch,
    /// Is killed when it has a part with color 1.
    DieInPart,
    /// As `Watch`, with a part of color 1.
    WatchPart,
    /// Calls an all-reduce and tells how it failed.
    TellFailure,
    /// Tells why it could not join.
    TellJoin,
    /// Tells why it could not join within a limit.
    TellJoinWithin,
    /// Joins within a limit that is not reached, and takes part in everything.
    JoinWithin,
}

pub fn describe(role: Role, id: &UniqueId, rank: usize, ranks: usize) -> String {
    format!("{role:?} {rank} {ranks} {}", text_of(id))
}

fn text_of(id: &UniqueId) -> String {
    id.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn id_of(text: &str) -> UniqueId {
    let mut bytes = [0; UniqueId::BYTES];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap();
    }
    UniqueId::from_bytes(bytes)
}

/// Waits for it.
fn failure_of(comm: &Communicator) -> rccl::Error {
    loop {
        match comm.check() {
            Ok(()) => std::thread::yield_now(),
            Err(failure) => return failure,
        }
    }
}

fn tell(what: impl std::fmt::Display) {
    println!("{TELLS}{what}");
}

#[test]
#[ignore = "run by other tests in a process of its own"]
fn the_other_process() {
    let Ok(role) = std::env::var(ROLE) else {
        println!("skipped: it runs only as another process, which another test starts");
        return;
    };
    let words: Vec<&str> = role.split(' ').collect();
    let [role, rank, ranks, id] = words[..] else {
        panic!("no role: {role}");
    };
    let (rank, ranks, id) = (rank.parse().unwrap(), ranks.parse().unwrap(), id_of(id));
    match role {
        "Everything" => everything::run(&join(&id, rank, ranks)),
        "Split" => {
            let whole = join(&id, rank, ranks);
            everything::of_parts(&whole);
        }
        "Die" => {
            let rank = join(&id, rank, ranks);
            let mut memory = rank.device.alloc_zeroed::<f32>(1 << 20).unwrap();
            // Waits for a message that never comes, so its call is under way.
            rank.comm.recv(&mut memory, 0, &rank.stream).unwrap();
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        }
        "End" => {
            let rank = join(&id, rank, ranks);
            std::mem::forget(rank.comm);
        }
        "Make" => {
            let id = UniqueId::new(&library()).unwrap();
            tell(text_of(&id));
            let rank = join(&id, rank, ranks);
            let mut memory = rank.device.alloc_zeroed::<f32>(3).unwrap();
            rank.comm.recv(&mut memory, 1, &rank.stream).unwrap();
            let error = rank.comm.wait(&rank.stream);
            panic!("it was not killed: {error:?}");
        }
        "Abort" => {
            let rank = join(&id, rank, ranks);
            let mut message = rank.device.alloc_zeroed::<f32>(1).unwrap();
            rank.comm.recv(&mut message, 0, &rank.stream).unwrap();
            rank.comm.wait(&rank.stream).unwrap();
            rank.comm.abort().unwrap();
        }
        "KeepMemory" => {
            let rank = join(&id, rank, ranks);
            let mut memory = rank.device.alloc_from(&rank.stream, &[7.0_f32; 5]).unwrap();
            rank.comm
                .all_reduce_in_place(&mut memory, ReduceOp::Sum, &rank.stream)
                .unwrap();
            let (message, other) = (
                rank.device.alloc_zeroed::<f32>(1).unwrap(),
                rank.device.stream().unwrap(),
            );
            rank.comm.send(&message, 0, &other).unwrap();
            let mut values = [0.0; 5];
            memory.copy_to_slice(&rank.stream, &mut values).unwrap();
            assert_eq!(values, [7.0; 5]);
        }
        "Watch" => {
            tell(failure_of(&join(&id, rank, ranks).comm));
        }
        "WatchPart" => {
            let rank = join(&id, rank, ranks);
            tell(failure_of(&rank.comm.split(Some(1), 0).unwrap().unwrap()));
        }
        "DieInPart" => {
            let rank = join(&id, rank, ranks);
            let _part = rank.comm.split(Some(1), 0).unwrap();
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        }
        "TellFailure" => {
            let rank = join(&id, rank, ranks);
            let mut memory = rank.device.alloc_zeroed::<f32>(1 << 20).unwrap();
            let queued = rank.comm.all_reduce_in_place(&mut memory, ReduceOp::Sum, &rank.stream);
            tell(queued.and_then(|()| rank.comm.wait(&rank.stream)).unwrap_err());
        }
        "TellJoinWithin" => {
            let limit = Duration::from_millis(20);
            tell(Communicator::new_within(&library(), &device(rank), &id, rank, ranks, limit).unwrap_err());
        }
        "JoinWithin" => everything::run(&join_within(&id, rank, ranks)),
        "TellJoin" => tell(Communicator::new(&library(), &device(rank), &id, rank, ranks).unwrap_err()),
        other => panic!("no role {other}"),
    }
}
