//! Ranks that are processes of their own. The first process has rank 0, unless a test says otherwise.

mod child;
mod everything;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use child::Role;
use hip::{Device, Runtime, Stream};
use rccl::{Communicator, Library, ReduceOp, UniqueId};
use rccl_sys::ncclResult_t;

const DEVICES: usize = 4;

fn library() -> Library {
    // SAFETY: the table is the software device's, as the runtime's is.
    unsafe { Library::from_tables(Arc::new(hip_host_rccl::rccl_api())) }
}

/// The device of a rank.
fn device(rank: usize) -> Device {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| {
        // SAFETY: each test begins here, and before that reads no environment.
        unsafe { std::env::set_var("HIP_HOST_DEVICES", DEVICES.to_string()) };
        // SAFETY: one platform's functions.
        unsafe { Runtime::from_tables(Arc::new(hip_host::hip_api()), None) }.unwrap()
    });
    made.device(rank).unwrap()
}

/// Freeing memory waits for all streams of a device, so two tests that share one could wait for each other.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Rank {
    comm: Communicator,
    device: Device,
    stream: Stream,
}

fn join(id: &UniqueId, rank: usize, ranks: usize) -> Rank {
    let device = device(rank);
    Rank {
        comm: Communicator::new(&library(), &device, id, rank, ranks).unwrap(),
        stream: device.stream().unwrap(),
        device,
    }
}

/// As [`join`], with a limit that no start reaches.
fn join_within(id: &UniqueId, rank: usize, ranks: usize) -> Rank {
    let (device, limit) = (device(rank), Duration::from_secs(600));
    Rank {
        comm: Communicator::new_within(&library(), &device, id, rank, ranks, limit).unwrap(),
        stream: device.stream().unwrap(),
        device,
    }
}

/// Another process of this program, and the lines that it writes for the test.
struct Peer {
    process: Child,
    lines: BufReader<ChildStdout>,
}

impl Peer {
    fn start(role: Role, id: &UniqueId, rank: usize, ranks: usize) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "child::the_other_process",
                "--include-ignored",
                "--nocapture",
            ])
            .env(child::ROLE, child::describe(role, id, rank, ranks))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        Self { process, lines }
    }

    /// The next line that is meant for the test.
    fn line(&mut self) -> String {
        let mut line = String::new();
        while self.lines.read_line(&mut line).unwrap() > 0 {
            if let Some((_, told)) = line.trim_end().split_once(child::TELLS) {
                return told.to_owned();
            }
            line.clear();
        }
        panic!("the other process ended without a word");
    }

    fn end(&mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Has ended long ago, unless the test failed.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

fn new_id() -> UniqueId {
    UniqueId::new(&library()).unwrap()
}

fn peers(role: Role, id: &UniqueId, ranks: usize) -> Vec<Peer> {
    (1..ranks).map(|rank| Peer::start(role, id, rank, ranks)).collect()
}

#[test]
fn every_collective() {
    let _alone = alone();
    let id = new_id();
    let peers = peers(Role::Everything, &id, DEVICES);
    everything::run(&join(&id, 0, DEVICES));
    for mut peer in peers {
        assert!(peer.end().success());
    }
}

#[test]
fn processes_that_come_in_time() {
    let _alone = alone();
    let id = new_id();
    let peers = peers(Role::JoinWithin, &id, DEVICES);
    everything::run(&join_within(&id, 0, DEVICES));
    for mut peer in peers {
        assert!(peer.end().success());
    }
}

#[test]
fn a_process_gives_up_a_rank_that_does_not_come() {
    let _alone = alone();
    let id = new_id();
    let mut peer = Peer::start(Role::TellJoinWithin, &id, 1, 2);
    let told = peer.line();
    assert!(
        told.contains("Communicator::new_within: no end within 0.02 s"),
        "{told}"
    );
    assert!(peer.end().success());
    let error = Communicator::new(&library(), &device(0), &id, 0, 2).unwrap_err();
    assert!(error.to_string().contains("rank 1"), "{error}");
}

#[test]
fn parts_of_processes() {
    let _alone = alone();
    let id = new_id();
    let peers = peers(Role::Split, &id, DEVICES);
    everything::of_parts(&join(&id, 0, DEVICES));
    for mut peer in peers {
        assert!(peer.end().success());
    }
}

#[test]
fn a_killed_process_ends_a_split() {
    let _alone = alone();
    let id = new_id();
    let mut victim = Peer::start(Role::Die, &id, 1, 2);
    let rank = join(&id, 0, 2);
    let error = rank.comm.split(Some(0), 0).unwrap_err();
    assert!(error.to_string().contains("the process of rank 1 has ended"), "{error}");
    assert!(!victim.end().success());
}

#[test]
fn a_process_that_is_killed_after_a_split_is_named_to_its_part() {
    let _alone = alone();
    let id = new_id();
    let mut victim = Peer::start(Role::DieInPart, &id, 2, 3);
    let mut witness = Peer::start(Role::WatchPart, &id, 1, 3);
    let rank = join(&id, 0, 3);
    // This rank is alone in its part, which does not fail.
    let part = rank.comm.split(Some(0), 0).unwrap().unwrap();
    let told = witness.line();
    assert!(told.contains("the process of rank 1 has ended"), "{told}");
    assert!(!victim.end().success());
    assert!(witness.end().success());
    part.check().unwrap();
}

#[test]
fn a_killed_process_is_named_to_all() {
    let _alone = alone();
    let id = new_id();
    let mut victim = Peer::start(Role::Die, &id, 1, 3);
    let mut witness = Peer::start(Role::Watch, &id, 2, 3);
    let rank = join(&id, 0, 3);
    let mut memory = rank.device.alloc_zeroed::<f32>(1 << 20).unwrap();
    let queued = rank.comm.all_reduce_in_place(&mut memory, ReduceOp::Sum, &rank.stream);
    let error = queued.and_then(|()| rank.comm.wait(&rank.stream)).unwrap_err();
    assert_eq!(error.code(), Some(ncclResult_t::ncclRemoteError), "{error}");
    assert!(error.to_string().contains("the process of rank 1 has ended"), "{error}");
    let told = witness.line();
    assert!(told.contains("the process of rank 1 has ended"), "{told}");
    assert!(witness.end().success());
    assert!(!victim.end().success());
    // Later calls are refused at once.
    let refused = rank.comm.broadcast(&mut memory, 0, &rank.stream);
    assert!(refused.is_err());
}

#[test]
fn a_process_that_ends_without_a_word_is_missed() {
    let _alone = alone();
    let id = new_id();
    let mut peer = Peer::start(Role::End, &id, 1, 2);
    let rank = join(&id, 0, 2);
    assert!(peer.end().success());
    let mut memory = rank.device.alloc_zeroed::<f32>(3).unwrap();
    let queued = rank.comm.broadcast(&mut memory, 0, &rank.stream);
    let error = queued.and_then(|()| rank.comm.wait(&rank.stream)).unwrap_err();
    assert!(error.to_string().contains("rank 1"), "{error}");
}

#[test]
fn a_process_that_made_the_id_and_is_killed_ends_the_others() {
    let _alone = alone();
    let mut maker = Peer::start(Role::Make, &new_id(), 0, 2);
    let id = child::id_of(&maker.line());
    let rank = join(&id, 1, 2);
    let mut memory = rank.device.alloc_zeroed::<f32>(3).unwrap();
    rank.comm
        .all_reduce_in_place(&mut memory, ReduceOp::Sum, &rank.stream)
        .unwrap();
    maker.process.kill().unwrap();
    let error = rank.comm.wait(&rank.stream).unwrap_err();
    assert_eq!(error.code(), Some(ncclResult_t::ncclRemoteError), "{error}");
    let process = format!("the process that made the id, {}, has ended", maker.process.id());
    assert!(error.to_string().contains(&process), "{error}");
    drop(rank);

    let error = Communicator::new(&library(), &device(1), &id, 1, 2).unwrap_err();
    assert_eq!(error.code(), Some(ncclResult_t::ncclInvalidArgument), "{error}");
    assert!(error.to_string().contains("does not answer"), "{error}");
}

#[test]
fn an_abort_in_another_process_ends_the_wait_without_failing_the_stream() {
    let _alone = alone();
    let id = new_id();
    let mut peer = Peer::start(Role::Abort, &id, 1, 2);
    let rank = join(&id, 0, 2);
    let mut memory = rank.device.alloc_zeroed::<f32>(3).unwrap();
    rank.comm
        .all_reduce_in_place(&mut memory, ReduceOp::Sum, &rank.stream)
        .unwrap();
    // The peer aborts when it gets a message, which is queued after the call that the abort ends.
    let (message, other) = (
        rank.device.alloc_zeroed::<f32>(1).unwrap(),
        rank.device.stream().unwrap(),
    );
    rank.comm.send(&message, 1, &other).unwrap();
    rank.stream.synchronize().unwrap();
    let error = rank.comm.check().unwrap_err();
    assert!(error.to_string().contains("rank 1 aborted"), "{error}");
    assert!(peer.end().success());
}

#[test]
fn an_abort_leaves_the_memory_of_another_process_as_it_was() {
    let _alone = alone();
    let id = new_id();
    let mut peer = Peer::start(Role::KeepMemory, &id, 1, 2);
    let rank = join(&id, 0, 2);
    let mut message = rank.device.alloc_zeroed::<f32>(1).unwrap();
    rank.comm.recv(&mut message, 1, &rank.stream).unwrap();
    rank.comm.wait(&rank.stream).unwrap();
    rank.comm.abort().unwrap();
    assert!(peer.end().success());
}

#[test]
fn calls_that_differ_are_told_to_both() {
    let _alone = alone();
    let id = new_id();
    let mut peer = Peer::start(Role::TellFailure, &id, 1, 2);
    let rank = join(&id, 0, 2);
    let mut memory = rank.device.alloc_zeroed::<f32>(3).unwrap();
    rank.comm.broadcast(&mut memory, 0, &rank.stream).unwrap();
    let error = rank.comm.wait(&rank.stream).unwrap_err();
    assert_eq!(error.code(), Some(ncclResult_t::ncclInvalidUsage), "{error}");
    let told = peer.line();
    for text in [error.to_string(), told] {
        let both = text.contains("ncclBroadcast(3") && text.contains("ncclAllReduce(1048576");
        assert!(both, "{text}");
    }
    assert!(peer.end().success());
}

#[test]
fn two_processes_cannot_have_one_rank_or_one_device() {
    let _alone = alone();
    let id = new_id();
    let library = library();
    let mut peer = Peer::start(Role::TellJoin, &id, 0, 2);
    let error = Communicator::new(&library, &device(0), &id, 0, 2).unwrap_err();
    assert!(error.to_string().contains("rank 0 joins twice"), "{error}");
    let told = peer.line();
    assert!(told.contains("rank 0 joins twice"), "{told}");
    assert!(peer.end().success());
}

/// A process that knows the id, and says what the library would not: by hand, in the words of the model's connections.
#[test]
fn words_that_no_rank_says_are_refused() {
    let _alone = alone();
    let id = new_id();
    let numbers: Vec<u64> = id.to_bytes()[16..40]
        .chunks(8)
        .map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap()))
        .collect();
    let name = format!("hip-host-rccl-{}-{:016x}", numbers[0], numbers[1]);
    let say = |request: &str, memory: &[u8]| {
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let mut line = UnixStream::connect_addr(&address).unwrap();
        for length in [request.len(), memory.len()] {
            line.write_all(&(length as u64).to_ne_bytes()).unwrap();
        }
        line.write_all(request.as_bytes()).unwrap();
        line.write_all(memory).unwrap();
        let mut lengths = [0; 16];
        line.read_exact(&mut lengths).unwrap();
        let mut answer = vec![0; u64::from_ne_bytes(lengths[..8].try_into().unwrap()) as usize];
        line.read_exact(&mut answer).unwrap();
        (String::from_utf8(answer).unwrap(), line)
    };
    let joins = format!(r#"{{"Join":{{"id":{},"ranks":2,"rank":1,"device":1}}}}"#, numbers[2]);
    let (joined, _presence) = say(&joins, &[]);
    let key = joined
        .trim_start_matches(r#"{"Joined":"#)
        .trim_end_matches('}')
        .to_owned();
    let rank = join(&id, 0, 2);
    let send = rank.device.alloc_from(&rank.stream, &[1_u32; 5000]).unwrap();
    rank.comm.send(&send, 1, &rank.stream).unwrap();

    let of = |key: &str, action: &str| format!(r#"{{"Of":{{"key":{key},"action":{action}}}}}"#);
    let arrives = |kind: &str, root: usize| {
        let place = r#"{"Message":{"from":0,"to":1,"number":1}}"#;
        format!(
            r#"{{"Arrive":[{place},{{"kind":"{kind}","count":5000,"datatype":3,"op":0,"root":{root},"captured":false}}]}}"#
        )
    };
    let (stranger, _) = say(&of("1", r#""Abort""#), &[]);
    assert!(stranger.contains("has ended"), "{stranger}");
    assert!(rank.comm.check().is_ok());
    // A reduction writes nothing here, but a message of 20,000 bytes comes for it.
    let (refused, _) = say(&of(&key, &arrives("Reduce", 0)), &[0; 20_000]);
    assert!(refused.contains("no such call"), "{refused}");
    let error = rank.comm.wait(&rank.stream).unwrap_err();
    assert!(error.to_string().contains("no such call"), "{error}");
}
