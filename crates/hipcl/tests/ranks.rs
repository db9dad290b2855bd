//! Jobs as several processes, each on a software device of its own, as mpirun and torchrun start them.

mod common;

use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::Run;
use serde_json::Value;
use tempfile::TempDir;

const CAPON: &[&str] = &["capon", "--elements", "24", "--segments", "100", "--channels", "8"];
const GPS: &[&str] = &["gps", "--rate", "2e6", "--doppler-max", "1000"];
const RADAR: &[&str] = &["radar", "--blocks", "8", "--pulse", "128", "--samples", "400"];

/// Nothing here takes so long, however slow the machine.
const LIMIT: Duration = Duration::from_secs(300);

/// Whether the software device is what this run tests.
fn ready(test: &str) -> bool {
    let is_model = platform::select().is_ok_and(|it| it.platform().facts().is_model);
    if !is_model {
        common::skip(test, "it starts a process for each of several software devices");
    }
    is_model && common::ready(test)
}

/// What starts the processes.
#[derive(Clone, Copy, Debug)]
enum Launcher {
    OpenMpi,
    Torchrun,
}

/// A process of a start.
struct Process {
    child: Child,
}

impl Process {
    /// All of one start.
    fn all(launcher: Launcher, size: usize, args: impl Fn(usize) -> Vec<String>) -> Vec<Self> {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a port")
            .port();
        let start = |rank: usize| {
            let (rank_text, size_text) = (rank.to_string(), size.to_string());
            let mut command = Command::new(env!("CARGO_BIN_EXE_hipcl"));
            command
                .args(args(rank))
                .env("HIP_HOST_DEVICES", &size_text)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            match launcher {
                Launcher::OpenMpi => command
                    .env("HIPCL_WORLD", format!("tcp://127.0.0.1:{port}"))
                    .env("OMPI_COMM_WORLD_RANK", &rank_text)
                    .env("OMPI_COMM_WORLD_SIZE", &size_text)
                    .env("OMPI_COMM_WORLD_LOCAL_RANK", &rank_text),
                // The processes meet at the port after this one.
                Launcher::Torchrun => command
                    .env("TORCHELASTIC_RUN_ID", "none")
                    .env("MASTER_ADDR", "127.0.0.1")
                    .env("MASTER_PORT", (port - 1).to_string())
                    .env("RANK", &rank_text)
                    .env("WORLD_SIZE", &size_text)
                    .env("LOCAL_RANK", &rank_text)
                    .env("LOCAL_WORLD_SIZE", &size_text),
            };
            Self {
                child: command.spawn().expect("a process"),
            }
        };
        (0..size).map(start).collect()
    }

    /// Whether it has met the others, and would notice that one ends.
    fn watches(&self) -> bool {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id()));
        tasks.into_iter().flatten().flatten().any(|task| {
            let name = fs::read_to_string(task.path().join("comm"));
            name.is_ok_and(|name| name.trim() == "hipcl-watch")
        })
    }

    /// Its status, and what it wrote to its output and its errors.
    fn end(&mut self) -> (Option<i32>, String, String) {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a status") {
                break status;
            }
            assert!(begin.elapsed() < LIMIT, "a process does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        let (mut out, mut err) = (String::new(), String::new());
        if let Some(from) = &mut self.child.stdout {
            from.read_to_string(&mut out).expect("text");
        }
        if let Some(from) = &mut self.child.stderr {
            from.read_to_string(&mut err).expect("text");
        }
        (status.code(), out, err)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Has ended, unless the test failed.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn words(job: &[&str], more: &[&str]) -> Vec<String> {
    let all = ["--quiet", "pipeline"].iter().chain(job).chain(more);
    all.map(|word| (*word).to_owned()).collect()
}

/// The report of several processes, of which only the first one prints.
fn together(launcher: Launcher, size: usize, job: &[&str]) -> Value {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("r.json");
    let file = file.to_str().expect("text");
    let mut processes = Process::all(launcher, size, |_| {
        words(job, &["--iterations", "2", "--ranks", "--json", file])
    });
    for (rank, process) in processes.iter_mut().enumerate() {
        let (status, out, err) = process.end();
        assert_eq!((status, err.as_str()), (Some(0), ""), "{job:?}: rank {rank}");
        assert_eq!(
            out.contains("verified        true"),
            rank == 0,
            "{job:?}: rank {rank}: {out}"
        );
        assert_eq!(out.is_empty(), rank > 0);
    }
    serde_json::from_str(&fs::read_to_string(file).expect("a report")).expect("JSON")
}

fn alone(job: &[&str]) -> Value {
    let mut args = vec!["pipeline"];
    args.extend(job);
    args.extend(["--iterations", "2", "--json", "FOLDER/r.json"]);
    let run = Run::new(&args);
    assert_eq!(run.status(), Some(0), "{}", run.stderr());
    run.json("r.json")
}

/// The satellites' numbers bit by bit: each is searched by one process, as by one alone.
#[test]
fn satellites_divided_among_processes_are_those_of_one() {
    if !ready("satellites_divided_among_processes_are_those_of_one") {
        return;
    }
    let one = alone(GPS);
    let found = one["satellites"].as_array().expect("satellites");
    assert!(!found.is_empty());
    for (launcher, size) in [(Launcher::OpenMpi, 2), (Launcher::Torchrun, 4), (Launcher::OpenMpi, 3)] {
        let all = together(launcher, size, GPS);
        assert_eq!(all["satellites"], one["satellites"], "{size} ranks");
        assert_eq!(all["ranks"]["count"], size);
    }
}

#[test]
fn what_sums_over_processes_find_is_what_one_finds() {
    if !ready("what_sums_over_processes_find_is_what_one_finds") {
        return;
    }
    let jobs = [
        (CAPON, "emitters", "sum over ranks"),
        (RADAR, "targets", "mean over ranks"),
    ];
    for (job, findings, stage) in jobs {
        let one = alone(job);
        let expected = one[findings].as_array().expect("findings");
        assert!(!expected.is_empty(), "{job:?}");
        // Three divide neither.
        for (launcher, size) in [(Launcher::OpenMpi, 4), (Launcher::Torchrun, 2), (Launcher::OpenMpi, 3)] {
            let all = together(launcher, size, job);
            let found = all[findings].as_array().expect("findings");
            assert_eq!(found.len(), expected.len(), "{job:?}");
            for (found, expected) in found.iter().zip(expected) {
                for (name, value) in expected.as_object().expect("numbers") {
                    let (found, value) = (found[name].as_f64(), value.as_f64());
                    let (found, value) = (found.expect("a number"), value.expect("a number"));
                    // Sums in another order.
                    assert!(
                        (found - value).abs() <= 1e-4 * value.abs().max(1.0),
                        "{job:?}: {name} {found} {value}"
                    );
                }
            }
            let stages = all["stages"].as_array().expect("stages");
            assert!(stages.iter().any(|it| it["name"] == stage), "{job:?}: {stages:?}");
        }
    }
}

/// Of each process, not of the first alone.
#[test]
fn a_process_whose_own_result_is_wrong_keeps_the_run_from_verifying() {
    if !ready("a_process_whose_own_result_is_wrong_keeps_the_run_from_verifying") {
        return;
    }
    let mut processes = Process::all(Launcher::OpenMpi, 2, |rank| {
        let plant: &[&str] = if rank == 1 { &["--plant-copy", "opencl"] } else { &[] };
        words(CAPON, &[&["--iterations", "2", "--ranks"], plant].concat())
    });
    let ends: Vec<_> = processes.iter_mut().map(Process::end).collect();
    let (status, out, _) = &ends[0];
    assert_eq!(*status, Some(1), "{out}");
    assert!(
        out.contains("rank 1 did not verify its own results") && !out.contains("rank 0 did"),
        "{out}"
    );
    assert!(out.contains("verified        false"), "{out}");
}

#[test]
fn a_user_whose_processes_all_run_the_whole_job_is_told_of_ranks() {
    if !ready("a_user_whose_processes_all_run_the_whole_job_is_told_of_ranks") {
        return;
    }
    let run = |size: &'static str| {
        let args = [&["pipeline"], CAPON, &["--iterations", "2"]].concat();
        let run = Run::with(&args, |run| {
            for (name, value) in [("RANK", "0"), ("SIZE", size), ("LOCAL_RANK", "0"), ("LOCAL_SIZE", size)] {
                run.env(&format!("OMPI_COMM_WORLD_{name}"), value);
            }
        });
        assert_eq!(run.status(), Some(0), "{}", run.stderr());
        run.stdout().replace('\n', " ").contains("--ranks")
    };
    assert!(run("2"));
    assert!(!run("1"));
}

/// At any point of their work.
#[test]
fn a_killed_process_ends_the_others_with_its_rank() {
    if !ready("a_killed_process_ends_the_others_with_its_rank") {
        return;
    }
    for round in 0..10_u64 {
        let victim = (round % 3) as usize;
        let mut processes = Process::all(Launcher::OpenMpi, 3, |_| {
            words(CAPON, &["--iterations", "1000000", "--ranks"])
        });
        let begin = Instant::now();
        while !processes.iter().all(Process::watches) {
            assert!(begin.elapsed() < LIMIT, "the processes do not meet");
            std::thread::sleep(Duration::from_millis(1));
        }
        // Some point: between the first meeting and the middle of the work.
        std::thread::sleep(Duration::from_millis(round * round * 37 % 601));
        processes[victim].child.kill().expect("a kill");
        for (rank, process) in processes.iter_mut().enumerate().filter(|(rank, _)| *rank != victim) {
            let (status, out, err) = process.end();
            let told = err.starts_with("error: ")
                && (err.contains(&format!("rank {victim}"))
                    // The double's own word for the first one, where its ranks meet.
                    || victim == 0 && err.contains("the process that made the id"));
            assert!(
                status == Some(2) && told && out.is_empty(),
                "round {round}, rank {rank}: {status:?} {err}"
            );
        }
    }
    let names = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let left: Vec<_> = names
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy().contains("hip"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_process_that_fails_ends_the_others_and_says_why() {
    if !ready("a_process_that_fails_ends_the_others_and_says_why") {
        return;
    }
    let mut processes = Process::all(Launcher::OpenMpi, 3, |rank| match rank {
        1 => words(&["capon", "--input", "/no/such.npy"], &["--ranks"]),
        _ => words(CAPON, &["--iterations", "1000000", "--ranks"]),
    });
    let ends: Vec<_> = processes.iter_mut().map(Process::end).collect();
    for (rank, (status, out, err)) in ends.iter().enumerate() {
        let word = if rank == 1 { "/no/such.npy" } else { "rank 1" };
        assert_eq!((*status, out.as_str()), (Some(2), ""), "rank {rank}");
        assert!(err.contains(word), "rank {rank}: {err}");
    }
}

#[test]
fn what_cannot_be_divided_is_refused_with_the_remedy() {
    let refused = |args: &[&str], parts: &[&str]| {
        let mut all = vec!["pipeline"];
        all.extend(args);
        all.push("--ranks");
        Run::new(&all).assert_refused(parts);
    };
    refused(&["note"], &["--ranks", "remove it"]);
    refused(&["radar", "--udp", "127.0.0.1:0"], &["--ranks", "remove it"]);
    let with = |name: &'static str, value: &'static str, parts: &[&str]| {
        let args = [&["pipeline"], CAPON, &["--ranks"]].concat();
        Run::with(&args, |run| run.env(name, value)).assert_refused(parts);
    };
    with("OMPI_COMM_WORLD_RANK", "0", &["OMPI_COMM_WORLD_SIZE"]);
    with("PMI_RANK", "-1", &["PMI_SIZE"]);
    if !ready("what_cannot_be_divided_is_refused_with_the_remedy") {
        return;
    }
    let few = [&RADAR[..2], &["2"], &RADAR[3..]].concat();
    let mut processes = Process::all(Launcher::OpenMpi, 3, |_| words(&few, &["--ranks"]));
    let ends: Vec<_> = processes.iter_mut().map(Process::end).collect();
    for (status, _, err) in &ends {
        assert_eq!(*status, Some(2));
        assert!(err.contains("2 blocks") || err.contains("ended before"), "{err}");
    }
    let told = |err: &str| err.contains("2 blocks are too few for 3 ranks; raise --blocks");
    assert!(ends.iter().any(|(_, _, err)| told(err)), "{ends:?}");
}

/// The collectives are part of what each process records.
#[test]
fn graphs_of_several_processes_find_what_one_finds() {
    if !ready("graphs_of_several_processes_find_what_one_finds") {
        return;
    }
    for (job, findings) in [(GPS, "satellites"), (CAPON, "emitters"), (RADAR, "targets")] {
        let job = [job, &["--graph"]].concat();
        let one = alone(&job);
        let found = |report: &Value| report[findings].as_array().expect("findings").len();
        assert!(found(&one) > 0, "{job:?}");
        let all = together(Launcher::OpenMpi, 3, &job);
        assert_eq!(found(&all), found(&one), "{job:?}");
        if findings == "satellites" {
            assert_eq!(all[findings], one[findings]);
        }
        let stages = all["stages"].to_string();
        assert!(stages.contains("graph"), "{job:?}: {stages}");
    }
}

/// Without a launcher there is one rank, which has all of the data.
#[test]
fn a_process_alone_is_the_only_rank() {
    if !ready("a_process_alone_is_the_only_rank") {
        return;
    }
    let args = [
        &["pipeline"],
        GPS,
        &["--iterations", "2", "--ranks", "--json", "FOLDER/r.json"],
    ]
    .concat();
    let run = Run::new(&args);
    assert_eq!(run.status(), Some(0), "{}", run.stderr());
    let report = run.json("r.json");
    assert_eq!(report["ranks"]["count"], 1);
    assert_eq!(report["satellites"], alone(GPS)["satellites"]);
}

#[test]
fn the_bench_of_collectives_runs_in_one_process_and_in_several() {
    if !ready("the_bench_of_collectives_runs_in_one_process_and_in_several") {
        return;
    }
    let mut processes = Process::all(Launcher::Torchrun, 2, |_| {
        ["--quiet", "bench", "collective"].map(str::to_owned).to_vec()
    });
    for (rank, process) in processes.iter_mut().enumerate() {
        let (status, out, err) = process.end();
        assert_eq!((status, err.as_str()), (Some(0), ""), "rank {rank}");
        assert_eq!(out.contains("2 ranks in a process each"), rank == 0, "{out}");
    }
    let run = Run::with(&["bench", "collective", "--json", "FOLDER/r.json"], |run| {
        run.env("HIP_HOST_DEVICES", "2");
    });
    assert_eq!(run.status(), Some(0), "{}", run.stderr());
    let lines = run.json("r.json")["lines"].as_array().expect("figures").len();
    // Bandwidth, time, and time to queue, of three sizes.
    assert_eq!(lines, 9, "{}", run.stdout());
}
