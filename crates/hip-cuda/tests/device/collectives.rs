//! NCCL on this machine's GPUs, one rank on each, through the crate `rccl`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hip::{Device, DeviceBuffer, Runtime, Stream};
use rccl::{Communicator, Error, Group, Library, ReduceOp, UniqueId};

use crate::common::skipped;

/// Two communicators on the same devices may wait for each other, so one test has them at a time.
static ALONE: Mutex<()> = Mutex::new(());

struct Bench {
    library: Library,
    devices: Vec<Device>,
    streams: Vec<Stream>,
    ranks: Vec<Communicator>,
    // Behind the ranks: it is let go when they have ended.
    _alone: MutexGuard<'static, ()>,
}

/// `None` after noting a skip, where there is no GPU or no NCCL.
fn bench() -> Option<Bench> {
    crate::common::tables()?;
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (nccl, _) = match rccl_sys::Api::load_nccl() {
        Ok(loaded) => loaded,
        Err(error) => {
            skipped(&format!("no NCCL: {error}"));
            return None;
        }
    };
    let opened = hip_cuda::open().expect("it was opened before");
    // SAFETY: both tables are CUDA's; NCCL takes the driver's streams and devices, which `hip-cuda` hands out as they are.
    let (runtime, library) = unsafe {
        (
            Runtime::from_tables(Arc::new(opened.hip), None).unwrap(),
            Library::from_tables(Arc::new(nccl)),
        )
    };
    println!("NCCL {}", library.version().unwrap());
    let count = runtime.device_count().unwrap();
    let devices: Vec<_> = (0..count).map(|ordinal| runtime.device(ordinal).unwrap()).collect();
    let streams = devices.iter().map(|device| device.stream().unwrap()).collect();
    let ranks = Communicator::all(&library, &devices).unwrap();
    Some(Bench {
        library,
        devices,
        streams,
        ranks,
        _alone: alone,
    })
}

impl Bench {
    /// On each rank's device, `len` numbers of the rank.
    fn filled(&self, len: usize, number: impl Fn(usize, usize) -> i64) -> Vec<DeviceBuffer<i64>> {
        let of_rank = |rank: usize| -> Vec<i64> { (0..len).map(|at| number(rank, at)).collect() };
        let both = self.devices.iter().zip(&self.streams).enumerate();
        both.map(|(rank, (device, stream))| device.alloc_from(stream, &of_rank(rank)).unwrap())
            .collect()
    }

    /// What each rank has, after the work that was queued.
    fn contents(&self, buffers: &[DeviceBuffer<i64>]) -> Vec<Vec<i64>> {
        contents(&self.ranks, &self.streams, buffers)
    }
}

fn contents(ranks: &[Communicator], streams: &[Stream], buffers: &[DeviceBuffer<i64>]) -> Vec<Vec<i64>> {
    let ranks = ranks.iter().zip(streams).zip(buffers);
    let read = |((rank, stream), buffer): ((&Communicator, &Stream), &DeviceBuffer<i64>)| {
        rank.wait(stream).unwrap();
        let mut numbers = vec![0; buffer.len()];
        buffer.copy_to_slice(stream, &mut numbers).unwrap();
        numbers
    };
    ranks.map(read).collect()
}

/// Differs by rank and by place.
fn number(rank: usize, at: usize) -> i64 {
    (at % 5 + 2 * rank + 1) as i64
}

/// Over all ranks.
fn reduced(ranks: usize, at: usize, op: ReduceOp) -> i64 {
    let all = (0..ranks).map(|rank| number(rank, at));
    match op {
        ReduceOp::Sum => all.sum(),
        ReduceOp::Product => all.product(),
        ReduceOp::Max => all.max().unwrap(),
        ReduceOp::Min => all.min().unwrap(),
        _ => all.sum::<i64>() / ranks as i64,
    }
}

#[test]
fn collectives_give_what_a_loop_gives() {
    let Some(bench) = bench() else { return };
    let (library, ranks, streams) = (&bench.library, &bench.ranks, &bench.streams);
    let count = ranks.len();
    let len = 12 * count;
    for op in [
        ReduceOp::Sum,
        ReduceOp::Product,
        ReduceOp::Max,
        ReduceOp::Min,
        ReduceOp::Average,
    ] {
        let mut buffers = bench.filled(len, number);
        library
            .group(|group| {
                let mut each = ranks.iter().zip(streams).zip(&mut buffers);
                each.try_for_each(|((rank, stream), buffer)| group.all_reduce_in_place(rank, buffer, op, stream))
            })
            .unwrap();
        let expected: Vec<i64> = (0..len).map(|at| reduced(count, at, op)).collect();
        assert_eq!(bench.contents(&buffers), vec![expected; count], "{op:?}");
    }

    let send = bench.filled(len, number);
    let mut all = bench.filled(len * count, |_, _| 0);
    let mut parts = bench.filled(len / count, |_, _| 0);
    library
        .group(|group| {
            for (at, (whole, part)) in all.iter_mut().zip(&mut parts).enumerate() {
                group.all_gather(&ranks[at], &send[at], whole, &streams[at])?;
                group.reduce_scatter(&ranks[at], &send[at], part, ReduceOp::Sum, &streams[at])?;
            }
            Ok(())
        })
        .unwrap();
    let gathered: Vec<i64> = (0..len * count).map(|at| number(at / len, at % len)).collect();
    assert_eq!(bench.contents(&all), vec![gathered; count]);
    for (rank, part) in bench.contents(&parts).into_iter().enumerate() {
        let places = rank * len / count..(rank + 1) * len / count;
        let expected: Vec<i64> = places.map(|at| reduced(count, at, ReduceOp::Sum)).collect();
        assert_eq!(part, expected, "rank {rank}");
    }
}

#[test]
fn messages_arrive_and_the_root_is_copied() {
    let Some(bench) = bench() else { return };
    let (library, ranks, streams) = (&bench.library, &bench.ranks, &bench.streams);
    let (count, len) = (ranks.len(), 1000);
    let send = bench.filled(len, number);
    let mut recv = bench.filled(len, |_, _| 0);
    library
        .group(|group| {
            for (at, place) in recv.iter_mut().enumerate() {
                group.send(&ranks[at], &send[at], (at + 1) % count, &streams[at])?;
                group.recv(&ranks[at], place, (at + count - 1) % count, &streams[at])?;
            }
            Ok(())
        })
        .unwrap();
    let of = |rank: usize| -> Vec<i64> { (0..len).map(|at| number(rank, at)).collect() };
    let passed: Vec<_> = (0..count).map(|rank| of((rank + count - 1) % count)).collect();
    assert_eq!(bench.contents(&recv), passed);

    let root = count - 1;
    library
        .group(|group| {
            let mut each = ranks.iter().zip(streams).zip(&mut recv);
            each.try_for_each(|((rank, stream), buffer)| group.broadcast(rank, buffer, root, stream))
        })
        .unwrap();
    assert_eq!(bench.contents(&recv), vec![passed[root].clone(); count]);
}

#[test]
fn ranks_of_one_color_are_a_communicator() {
    let Some(bench) = bench() else { return };
    let count = bench.ranks.len();
    // Each rank calls it in a thread of its own, for all have to be in it at once.
    let splits = bench.ranks.into_iter().map(|rank| {
        std::thread::spawn(move || {
            let color = (rank.rank() % 2) as u16;
            let part = rank.split(Some(color), 0).unwrap().expect("a part");
            (rank.rank(), part.rank(), part.ranks())
        })
    });
    for split in splits.collect::<Vec<_>>() {
        let (rank, of_part, ranks) = split.join().unwrap();
        assert_eq!((of_part, ranks), (rank / 2, (count + 1 - rank % 2) / 2), "rank {rank}");
    }
}

/// What `record` queues for each rank, as a graph. Each has its thread: the first call of a kind waits for the other ranks.
fn captured<M: Send>(
    ranks: &mut [Communicator],
    streams: &[Stream],
    memory: impl Iterator<Item = M>,
    record: impl Fn(usize, &Communicator, M, &Stream) -> rccl::Result<()> + Sync,
) -> Vec<hip::GraphExec> {
    std::thread::scope(|scope| {
        let each = ranks.iter_mut().zip(streams).zip(memory).enumerate();
        let threads = each.map(|(at, ((rank, stream), memory))| {
            let record = &record;
            scope.spawn(move || {
                let graph = rank.capture(stream, |stream| record(at, rank, memory, stream));
                graph.unwrap().instantiate().unwrap()
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// The sum over `ranks` of what is there, twice: by a graph on each device, recorded and launched by a thread each.
fn captured_sums(devices: &[Device], streams: &[Stream], ranks: &mut [Communicator]) {
    const LEN: usize = 1000;
    let count = ranks.len();
    let mut memory: Vec<DeviceBuffer<i64>> = devices.iter().map(|device| device.alloc(LEN).unwrap()).collect();
    let mut sums: Vec<DeviceBuffer<i64>> = devices.iter().map(|device| device.alloc_zeroed(LEN).unwrap()).collect();
    let buffers = memory.iter().zip(&mut sums);
    let graphs = captured(ranks, streams, buffers, |_, rank, (memory, sum), stream| {
        sum.on_mut(stream)?.fill_zero()?;
        rank.all_reduce(memory, &mut *sum, ReduceOp::Sum, stream)?;
        rank.all_reduce_in_place(&mut *sum, ReduceOp::Sum, stream)
    });
    for launch in 0..5 {
        std::thread::scope(|scope| {
            for (at, (memory, sum)) in memory.iter_mut().zip(&mut sums).enumerate() {
                let (stream, graph) = (&streams[at], &graphs[at]);
                scope.spawn(move || {
                    let values: Vec<i64> = (0..LEN).map(|place| number(at, place) + launch).collect();
                    memory.copy_from_slice(stream, &values).unwrap();
                    let slices = (memory.on(stream).unwrap(), sum.on_mut(stream).unwrap());
                    // SAFETY: the graph reads the one and writes the other.
                    unsafe { graph.launch(stream, &[&slices.0, &slices.1]) }.unwrap();
                });
            }
        });
        let of = count as i64;
        let expected = |at: usize| of * (reduced(count, at, ReduceOp::Sum) + of * launch);
        let expected: Vec<i64> = (0..LEN).map(expected).collect();
        let seen = contents(ranks, streams, &sums);
        assert_eq!(seen, vec![expected; count], "launch {launch}");
    }
}

#[test]
fn captured_sums_of_one_rank_are_made_by_each_launch() {
    let Some(bench) = bench() else { return };
    let mut alone = Communicator::all(&bench.library, &bench.devices[..1]).unwrap();
    captured_sums(&bench.devices[..1], &bench.streams[..1], &mut alone);
}

#[test]
fn captured_sums_of_all_ranks_are_made_by_each_launch() {
    let Some(mut bench) = bench() else { return };
    captured_sums(&bench.devices, &bench.streams, &mut bench.ranks);
}

#[test]
fn captured_messages_go_around_with_each_launch() {
    let Some(mut bench) = bench() else { return };
    let count = bench.ranks.len();
    let mut tokens = bench.filled(1000, |rank, _| rank as i64);
    let mut came = bench.filled(1000, |_, _| -1);
    let both = tokens.iter_mut().zip(&mut came);
    let graphs = captured(
        &mut bench.ranks,
        &bench.streams,
        both,
        |at, rank, (token, came), stream| {
            let mut group = Group::new();
            group.send(rank, &*token, (at + 1) % count, stream)?;
            group.recv(rank, &mut *came, (at + count - 1) % count, stream)?;
            group.launch()?;
            Ok(token.on_mut(stream)?.copy_from(came.on(stream)?)?)
        },
    );
    let streams = &bench.streams;
    for launch in 1..4 {
        std::thread::scope(|scope| {
            for (at, (token, came)) in tokens.iter_mut().zip(&mut came).enumerate() {
                let (stream, graph) = (&streams[at], &graphs[at]);
                scope.spawn(move || {
                    let slices = (token.on_mut(stream).unwrap(), came.on_mut(stream).unwrap());
                    // SAFETY: the graph uses this memory and nothing else.
                    unsafe { graph.launch(stream, &[&slices.0, &slices.1]) }.unwrap();
                });
            }
        });
        let from = |rank: usize| ((rank + launch * (count - 1)) % count) as i64;
        let expected: Vec<_> = (0..count).map(|rank| vec![from(rank); 1000]).collect();
        assert_eq!(bench.contents(&tokens), expected, "launch {launch}");
    }
}

/// NCCL's own end waits for the graphs for ever.
#[test]
fn a_graph_outlives_the_value_of_its_communicator() {
    let Some(mut bench) = bench() else { return };
    let mut memory = bench.filled(1000, |rank, _| rank as i64 + 1);
    let each = memory.iter_mut();
    let graphs = captured(&mut bench.ranks, &bench.streams, each, |_, rank, memory, stream| {
        rank.all_reduce_in_place(memory, ReduceOp::Sum, stream)
    });
    let count = bench.ranks.len() as i64;
    bench.ranks.clear();
    std::thread::scope(|scope| {
        for ((graph, stream), memory) in graphs.into_iter().zip(&bench.streams).zip(&mut memory) {
            scope.spawn(move || {
                let slice = memory.on_mut(stream).unwrap();
                // SAFETY: the graph uses this memory and nothing else.
                unsafe { graph.launch(stream, &[&slice]) }.unwrap();
                drop(graph);
                let mut numbers = vec![0; 1000];
                memory.copy_to_slice(stream, &mut numbers).unwrap();
                assert_eq!(numbers, vec![count * (count + 1) / 2; 1000]);
            });
        }
    });
    let deferred = bench.devices[0].runtime().take_deferred_errors();
    assert!(deferred.is_empty(), "{deferred:?}");
}

/// NCCL's own start does not end then.
#[test]
fn a_rank_that_does_not_come_is_given_up_at_the_limit() {
    let Some(bench) = bench() else { return };
    let id = UniqueId::new(&bench.library).unwrap();
    let limit = Duration::from_secs(5);
    let (device, ranks) = (&bench.devices[0], bench.devices.len() + 1);
    let begin = Instant::now();
    let error = Communicator::new_within(&bench.library, device, &id, 0, ranks, limit).unwrap_err();
    println!("{error}, after {:.1} s", begin.elapsed().as_secs_f64());
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
    // Neither the others of this library nor the device suffer.
    ranks_add_up(&bench.ranks, &bench);
}

#[test]
fn ranks_that_come_within_the_limit_are_a_communicator_as_any_other() {
    let Some(bench) = bench() else { return };
    let id = UniqueId::new(&bench.library).unwrap();
    let (library, count) = (&bench.library, bench.devices.len());
    let begin = Instant::now();
    let joined: Vec<Communicator> = std::thread::scope(|scope| {
        let limit = Duration::from_secs(120);
        let join = |(rank, device)| {
            let id = &id;
            scope.spawn(move || Communicator::new_within(library, device, id, rank, count, limit).unwrap())
        };
        let threads: Vec<_> = bench.devices.iter().enumerate().map(join).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    println!("joined after {:.1} s", begin.elapsed().as_secs_f64());
    ranks_add_up(&joined, &bench);
    let parts = joined.iter().map(|rank| rank.ranks()).collect::<Vec<_>>();
    assert_eq!(parts, vec![count; count]);
}

/// Each rank gives its number and one.
fn ranks_add_up(ranks: &[Communicator], bench: &Bench) {
    let mut memory = bench.filled(1000, |rank, _| rank as i64 + 1);
    bench
        .library
        .group(|group| {
            let both = ranks.iter().zip(&mut memory).zip(&bench.streams);
            both.into_iter()
                .try_for_each(|((rank, memory), stream)| group.all_reduce_in_place(rank, memory, ReduceOp::Sum, stream))
        })
        .unwrap();
    let count = ranks.len() as i64;
    assert_eq!(
        bench.contents(&memory),
        vec![vec![count * (count + 1) / 2; 1000]; ranks.len()]
    );
}
