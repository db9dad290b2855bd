use std::collections::HashMap;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::{Launcher, World, WorldError};

const LIMIT: Duration = Duration::from_secs(60);

fn world(variables: &[(&str, &str)]) -> Result<World, WorldError> {
    let variables: HashMap<&str, &str> = variables.iter().copied().collect();
    World::of(&|name| variables.get(name).map(|value| (*value).to_owned()))
}

/// A port that was free just now.
fn address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("tcp://{}", listener.local_addr().unwrap())
}

fn mpi(rank: usize, size: usize, at: &str) -> World {
    let (rank, size) = (rank.to_string(), size.to_string());
    world(&[
        ("OMPI_COMM_WORLD_RANK", &rank),
        ("OMPI_COMM_WORLD_SIZE", &size),
        ("OMPI_COMM_WORLD_LOCAL_RANK", &rank),
        ("HIPCL_WORLD", at),
    ])
    .unwrap()
}

#[test]
fn each_launcher_is_known_by_what_it_sets() {
    let alone = world(&[]).unwrap();
    assert_eq!((alone.rank(), alone.size(), alone.launcher()), (0, 1, Launcher::Alone));
    let torchrun = [
        ("TORCHELASTIC_RUN_ID", "none"),
        ("RANK", "5"),
        ("WORLD_SIZE", "8"),
        ("LOCAL_RANK", "1"),
        ("LOCAL_WORLD_SIZE", "4"),
        ("MASTER_ADDR", "node1"),
        ("MASTER_PORT", "29500"),
    ];
    let open_mpi = [
        ("OMPI_COMM_WORLD_RANK", "3"),
        ("OMPI_COMM_WORLD_SIZE", "4"),
        ("OMPI_COMM_WORLD_LOCAL_RANK", "3"),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "4"),
        // Within an allocation of Slurm's.
        ("SLURM_STEP_ID", "0"),
        ("SLURM_PROCID", "0"),
    ];
    let mpich = [
        ("PMI_RANK", "1"),
        ("PMI_SIZE", "2"),
        ("MPI_LOCALRANKID", "1"),
        ("MPI_LOCALNRANKS", "2"),
    ];
    let slurm = [
        ("SLURM_STEP_ID", "0"),
        ("SLURM_PROCID", "1"),
        ("SLURM_STEP_NUM_TASKS", "2"),
        ("SLURM_LOCALID", "1"),
        ("SLURM_STEP_TASKS_PER_NODE", "2"),
    ];
    for (variables, launcher, expected) in [
        (&torchrun[..], Launcher::Torchrun, [5, 8, 1]),
        (&open_mpi, Launcher::OpenMpi, [3, 4, 3]),
        (&mpich, Launcher::Mpich, [1, 2, 1]),
        (&slurm, Launcher::Slurm, [1, 2, 1]),
    ] {
        let found = world(variables).unwrap();
        assert_eq!(found.launcher(), launcher);
        assert_eq!([found.rank(), found.size(), found.local_rank()], expected, "{launcher}");
        // Every number is needed.
        for left_out in 1..3 {
            let mut fewer = variables.to_vec();
            let (name, _) = fewer.remove(left_out);
            let error = world(&fewer).unwrap_err().to_string();
            assert!(error.contains(name) && !error.contains('\n'), "{error}");
        }
    }
    // A batch script of Slurm's is no step.
    assert_eq!(
        world(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]).unwrap().size(),
        1
    );
}

#[test]
fn what_cannot_be_is_refused_with_its_name() {
    let with = |name: &'static str, value: &str| {
        let mut variables = HashMap::from([
            ("OMPI_COMM_WORLD_RANK", "0"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", "0"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ]);
        variables.insert(name, value);
        World::of(&|name| variables.get(name).map(|value| (*value).to_owned()))
    };
    with("HIPCL_WORLD", "tcp://node1:4000").unwrap();
    for (name, value) in [
        ("OMPI_COMM_WORLD_RANK", "2"),
        ("OMPI_COMM_WORLD_RANK", "-1"),
        ("OMPI_COMM_WORLD_SIZE", "0"),
        ("OMPI_COMM_WORLD_SIZE", "99999999999"),
        ("OMPI_COMM_WORLD_LOCAL_RANK", "x"),
        ("HIPCL_WORLD", "node1:4000"),
        ("HIPCL_WORLD", "tcp://node1"),
        ("HIPCL_WORLD", "tcp://:1"),
        ("HIPCL_WORLD", "tcp://node1:70000"),
    ] {
        let error = with(name, value).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, WorldError::Variable { .. }), "{text}");
        assert!(!text.contains('\n'), "{text}");
    }
    let several = with("OMPI_COMM_WORLD_LOCAL_SIZE", "1").unwrap_err();
    assert!(matches!(several, WorldError::NoMeeting { .. }), "{several}");
}

#[test]
fn a_process_has_the_gpu_of_its_local_rank_or_the_only_one() {
    let second = mpi(1, 4, &address());
    assert_eq!(second.device(4).unwrap(), 1);
    assert_eq!(second.device(1).unwrap(), 0);
    let last = mpi(3, 4, &address());
    assert!(matches!(last.device(2), Err(WorldError::NoDevice { .. })));
    assert!(matches!(last.device(0), Err(WorldError::NoDevice { .. })));
}

/// Runs `body` as each process, on a thread of its own.
fn all<R: Send>(worlds: Vec<World>, body: impl Fn(World) -> R + Sync) -> Vec<R> {
    let body = &body;
    std::thread::scope(|scope| {
        let threads: Vec<_> = worlds
            .into_iter()
            .map(|world| scope.spawn(move || body(world)))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn every_process_gets_what_the_first_made_as_often_as_they_meet() {
    let here = |rank: usize| {
        let rank = rank.to_string();
        world(&[
            ("PMI_RANK", &rank),
            ("PMI_SIZE", "4"),
            ("MPI_LOCALRANKID", &rank),
            ("MPI_LOCALNRANKS", "4"),
        ])
        .unwrap()
    };
    let at = address();
    for worlds in [
        (0..4).map(here).collect(),
        (0..4).map(|rank| mpi(rank, 4, &at)).collect::<Vec<_>>(),
    ] {
        let shared = all(worlds, |world| {
            [0, 1, 2].map(|time| {
                let own = vec![world.rank() as u8 + 7, time];
                world.share(LIMIT, || own).unwrap()
            })
        });
        assert_eq!(shared, vec![[vec![7, 0], vec![7, 1], vec![7, 2]]; 4]);
    }
}

#[test]
fn a_process_may_be_ahead_of_one_that_has_not_come_yet() {
    let at = address();
    let is_ahead = AtomicBool::new(false);
    let shared = all((0..3).map(|rank| mpi(rank, 3, &at)).collect(), |world| {
        if world.rank() == 2 {
            while !is_ahead.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            // It comes for the second time meanwhile.
            (0..1000).for_each(|_| std::thread::yield_now());
        }
        [0, 1].map(|time| {
            let bytes = world.share(LIMIT, || vec![time]).unwrap();
            is_ahead.fetch_or(world.rank() == 1, Ordering::Release);
            bytes
        })
    });
    assert_eq!(shared, vec![[vec![0], vec![1]]; 3]);
}

#[test]
fn one_that_does_not_come_is_named_at_the_limit() {
    let short = Duration::from_millis(50);
    let error = mpi(0, 3, &address()).share(short, Vec::new).unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, WorldError::Late { .. }) && text.contains("rank 1, 2"),
        "{text}"
    );
    let error = mpi(1, 3, &address()).share(short, Vec::new).unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, WorldError::Late { .. }) && text.contains("rank 0"),
        "{text}"
    );
}

#[test]
fn more_bytes_than_a_start_needs_are_refused_at_once() {
    let error = mpi(0, 2, &address())
        .share(LIMIT, || vec![0; (1 << 20) + 1])
        .unwrap_err();
    assert!(matches!(error, WorldError::TooLarge { .. }), "{error}");
}

#[test]
fn processes_that_count_differently_are_told_both() {
    let at = address();
    for (others, reason) in [
        (mpi(1, 3, &at), "counts 3 processes"),
        // It has met the others once more.
        (
            {
                let ahead = mpi(1, 2, &at);
                ahead.met.set(1);
                ahead
            },
            "comes for time 1",
        ),
    ] {
        for error in all(vec![mpi(0, 2, &at), others], |world| {
            world.share(LIMIT, Vec::new).unwrap_err()
        }) {
            let text = error.to_string();
            assert!(
                matches!(error, WorldError::Disagree { .. }) && text.contains(reason),
                "{text}"
            );
        }
    }
}

#[test]
fn a_stranger_at_the_port_costs_nothing() {
    use std::io::Write;

    let at = address();
    let port = at.trim_start_matches("tcp://").to_owned();
    let shared = all(vec![mpi(0, 2, &at), mpi(1, 2, &at)], |world| {
        let mut silent = None;
        if world.rank() == 1 {
            // Connects as soon as somebody listens, says something else, and goes.
            let mut stranger = loop {
                match std::net::TcpStream::connect(&port) {
                    Ok(line) => break line,
                    Err(_) => std::thread::yield_now(),
                }
            };
            stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            // Another one says nothing, and stays.
            silent = std::net::TcpStream::connect(&port).ok();
        }
        let shared = world.share(LIMIT, || vec![1, 2, 3]).unwrap();
        drop(silent);
        shared
    });
    assert_eq!(shared, [[1, 2, 3], [1, 2, 3]]);
}

/// Each process's watch, and where it hears who was lost.
type Watching = (super::Watch, Receiver<usize>);

fn watches(size: usize) -> Vec<Watching> {
    let at = address();
    let worlds = (0..size).map(|rank| mpi(rank, size, &at)).collect();
    all(worlds, |world| {
        let (told, heard) = channel();
        let watch = world.watch(LIMIT, move |rank| told.send(rank).unwrap());
        (watch.unwrap(), heard)
    })
}

#[test]
fn processes_that_leave_wait_for_each_other_and_none_is_lost() {
    let mut watching = watches(3);
    let (last, heard_by_last) = watching.pop().unwrap();
    std::thread::scope(|scope| {
        let leaving: Vec<_> = watching
            .into_iter()
            .map(|(watch, heard)| scope.spawn(move || (watch.leave(LIMIT), heard)))
            .collect();
        assert!(leaving.iter().all(|it| !it.is_finished()));
        last.leave(LIMIT).unwrap();
        for thread in leaving {
            let (left, heard) = thread.join().unwrap();
            left.unwrap();
            heard.recv().unwrap_err();
        }
    });
    heard_by_last.recv().unwrap_err();
}

#[test]
fn a_process_that_ends_without_leaving_is_named_to_all_others() {
    for lost in 0..3 {
        // Also to one that has left, and waits.
        for waits in [false, true] {
            let mut watching = watches(3);
            let (ended, _) = watching.remove(lost);
            std::thread::scope(|scope| {
                let others: Vec<_> = watching
                    .into_iter()
                    .map(|(watch, heard)| {
                        scope.spawn(move || {
                            let left = match waits {
                                true => watch.leave(LIMIT),
                                false => {
                                    assert_eq!(heard.recv_timeout(LIMIT), Ok(lost));
                                    return Ok(());
                                }
                            };
                            assert_eq!(heard.recv_timeout(LIMIT), Ok(lost));
                            match left {
                                Err(WorldError::Lost { rank }) if rank == lost => Ok(()),
                                other => Err(other),
                            }
                        })
                    })
                    .collect();
                drop(ended);
                for thread in others {
                    thread.join().unwrap().unwrap();
                }
            });
        }
    }
}

#[test]
fn a_process_that_waits_in_vain_for_the_others_to_leave_says_so() {
    let mut watching = watches(2);
    let (_other, _) = watching.pop().unwrap();
    let (first, _) = watching.pop().unwrap();
    let error = first.leave(Duration::from_millis(50)).unwrap_err();
    assert!(matches!(error, WorldError::Late { rank: 0, .. }), "{error}");
}

#[test]
fn a_process_alone_watches_no_other() {
    let watch = world(&[]).unwrap().watch(LIMIT, |rank| panic!("{rank}")).unwrap();
    watch.leave(Duration::ZERO).unwrap();
}
