//! Ranks that are processes of one start, each on a device of its own, and what happens when one is killed.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use interop::world::World;
use rccl::{Communicator, Library, ReduceOp, UniqueId};

/// Set for a process that another test starts.
const STEPS: &str = "HIPCL_TEST_STEPS";

const LEN: usize = 4096;
const LIMIT: Duration = Duration::from_secs(60);

#[test]
#[ignore = "run by other tests in a process of its own"]
fn one_of_several_processes() {
    let Ok(steps) = std::env::var(STEPS) else {
        return crate::common::skipped("it runs only as one of several processes, which another test starts");
    };
    // SAFETY: the only test of this process, before anything reads the environment.
    unsafe { std::env::set_var("HIP_HOST_DEVICES", "4") };
    let world = World::from_env().expect("a place among the processes");
    // SAFETY: both tables are the software device's.
    let (runtime, library) = unsafe {
        (
            hip::Runtime::from_tables(Arc::new(hip_host::hip_api()), None).expect("a runtime"),
            Library::from_tables(Arc::new(hip_host_rccl::rccl_api())),
        )
    };
    let device = runtime
        .device(world.device(4).expect("a device of its own"))
        .expect("a device");
    let make = || UniqueId::new(&library).expect("an id").to_bytes().to_vec();
    let id = world.share(LIMIT, make).expect("an id");
    let id = UniqueId::from_bytes(id.try_into().expect("the length of an id"));
    let rank = Communicator::new(&library, &device, &id, world.rank(), world.size()).expect("a communicator");
    let stream = device.stream().expect("a stream");
    let mut memory = device.alloc_zeroed::<u32>(LEN).expect("memory");
    for step in 0..steps.parse().expect("a number") {
        let own: Vec<u32> = (0..LEN as u32)
            .map(|at| at + step * (1 + world.rank() as u32))
            .collect();
        memory.copy_from_slice(&stream, &own).expect("a copy");
        let queued = rank.all_reduce_in_place(&mut memory, ReduceOp::Sum, &stream);
        if let Err(error) = queued.and_then(|()| rank.wait(&stream)) {
            println!("failed: {error}");
            std::process::exit(3);
        }
        let mut sums = [0; LEN];
        memory.copy_to_slice(&stream, &mut sums).expect("a copy");
        let size = world.size() as u32;
        let expected = |at: usize| size * at as u32 + step * size * (size + 1) / 2;
        assert!((0..LEN).all(|at| sums[at] == expected(at)), "step {step}");
        println!("step {step}");
    }
}

struct Process {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Process {
    /// All of one start, as Open MPI would start them.
    fn all(size: usize, steps: u32) -> Vec<Self> {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a port");
        let start = |rank: usize| {
            let mut child = Command::new(std::env::current_exe().expect("a path"))
                .args(["--exact", "ranks::one_of_several_processes", "--ignored", "--nocapture"])
                .env(STEPS, steps.to_string())
                .env("HIPCL_WORLD", format!("tcp://{port}"))
                .env("OMPI_COMM_WORLD_RANK", rank.to_string())
                .env("OMPI_COMM_WORLD_SIZE", size.to_string())
                .env("OMPI_COMM_WORLD_LOCAL_RANK", rank.to_string())
                .stdout(Stdio::piped())
                .spawn()
                .expect("a process");
            let lines = BufReader::new(child.stdout.take().expect("its output"));
            Self { child, lines }
        };
        (0..size).map(start).collect()
    }

    /// Reads up to the end of this step; whether it came.
    fn has_done(&mut self, step: u32) -> bool {
        let step = format!("step {step}");
        (&mut self.lines).lines().map_while(Result::ok).any(|line| line == step)
    }

    /// What it still wrote, and its exit code.
    fn end(&mut self) -> (String, Option<i32>) {
        let mut text = String::new();
        self.lines.read_to_string(&mut text).expect("text");
        (text, self.child.wait().expect("an end").code())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Has ended, unless the test failed.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[test]
fn processes_of_one_start_reduce_together() {
    for mut process in Process::all(4, 20) {
        assert!(process.has_done(19));
        let (text, code) = process.end();
        assert_eq!(code, Some(0), "{text}");
    }
}

/// The first one too, where the ranks of the software device meet.
#[test]
fn a_killed_process_ends_the_others_with_an_error_that_names_it() {
    for round in 0..10_u32 {
        let victim = (round % 3) as usize;
        let mut processes = Process::all(3, u32::MAX / 8);
        assert!(processes[victim].has_done(round * 7 % 24), "round {round}");
        let killed = processes[victim].child.id();
        processes[victim].child.kill().expect("a kill");
        let name = match victim {
            0 => format!("the process that made the id, {killed}, has ended"),
            _ => format!("the process of rank {victim} has ended"),
        };
        for (rank, process) in processes.iter_mut().enumerate().filter(|(rank, _)| *rank != victim) {
            let (text, code) = process.end();
            let failed = text.lines().find(|line| line.starts_with("failed: ")).unwrap_or(&text);
            assert!(
                code == Some(3) && failed.contains(&name),
                "round {round}, rank {rank}: {code:?} {failed}"
            );
        }
    }
    // Neither memory nor a socket has a name in the file system.
    let names = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let left: Vec<_> = names
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy().contains("hip"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
