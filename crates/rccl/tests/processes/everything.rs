//! Each call once, between any number of ranks. Every process looks at its own results.

use hip::DeviceBuffer;
use rccl::{Group, ReduceOp};

use crate::Rank;

const LEN: usize = 12;

/// Differs for all ranks and places, and adds up exactly.
fn value(rank: usize, at: usize) -> f32 {
    (rank * 1000 + at) as f32
}

fn sum(ranks: usize, at: usize) -> f32 {
    (0..ranks).map(|rank| value(rank, at)).sum()
}

/// In parts of two ranks, which are turned around, and between all ranks before and after.
pub fn of_parts(whole: &Rank) {
    let own = whole.comm.rank();
    let none = whole.comm.split(Some(0).filter(|_| own > 0), 0).unwrap();
    assert_eq!(none.is_none(), own == 0);
    let part = whole.comm.split(Some(own as u16 / 2), -(own as i32)).unwrap().unwrap();
    assert_eq!((part.rank(), part.ranks()), (1 - own % 2, 2));
    let of_part = Rank {
        comm: part,
        device: whole.device.clone(),
        stream: whole.device.stream().unwrap(),
    };
    run(&of_part);
    run(whole);
    drop(none);
}

pub fn run(rank: &Rank) {
    let (own, ranks) = (rank.comm.rank(), rank.comm.ranks());
    let filled = |len: usize| -> DeviceBuffer<f32> {
        let values: Vec<f32> = (0..len).map(|at| value(own, at)).collect();
        rank.device.alloc_from(&rank.stream, &values).unwrap()
    };
    let is = |what: &str, memory: &DeviceBuffer<f32>, expected: &dyn Fn(usize) -> f32| {
        rank.comm.wait(&rank.stream).unwrap();
        let mut values = vec![0.0; memory.len()];
        memory.copy_to_slice(&rank.stream, &mut values).unwrap();
        let expected: Vec<f32> = (0..memory.len()).map(expected).collect();
        assert_eq!(values, expected, "{what} of rank {own}");
    };
    let (comm, stream) = (&rank.comm, &rank.stream);
    let (last, all) = (ranks - 1, LEN * ranks);

    let (send, mut recv) = (filled(LEN), filled(LEN));
    comm.all_reduce(&send, &mut recv, ReduceOp::Sum, stream).unwrap();
    is("all_reduce", &recv, &|at| sum(ranks, at));
    comm.all_reduce_in_place(&mut recv, ReduceOp::Max, stream).unwrap();
    is("all_reduce_in_place", &recv, &|at| sum(ranks, at));

    let mut reduced = filled(LEN);
    comm.reduce(&send, &mut reduced, ReduceOp::Sum, last, stream).unwrap();
    is("reduce", &reduced, &|at| {
        if own == last { sum(ranks, at) } else { value(own, at) }
    });

    let mut memory = filled(LEN);
    comm.broadcast(&mut memory, last, stream).unwrap();
    is("broadcast", &memory, &|at| value(last, at));

    let mut gathered = filled(all);
    comm.all_gather(&send, &mut gathered, stream).unwrap();
    is("all_gather", &gathered, &|at| value(at / LEN, at % LEN));
    let mut gathered = filled(all);
    comm.all_gather_in_place(&mut gathered, stream).unwrap();
    is("all_gather_in_place", &gathered, &|at| value(at / LEN, at));

    let (whole, mut scattered) = (filled(all), filled(LEN));
    comm.reduce_scatter(&whole, &mut scattered, ReduceOp::Sum, stream)
        .unwrap();
    is("reduce_scatter", &scattered, &|at| sum(ranks, own * LEN + at));

    let mut came = filled(LEN);
    let mut group = Group::new();
    group.send(comm, &send, (own + 1) % ranks, stream).unwrap();
    group.recv(comm, &mut came, (own + last) % ranks, stream).unwrap();
    group.launch().unwrap();
    is("a ring of messages", &came, &|at| value((own + last) % ranks, at));

    let mut repeated = filled(LEN);
    let graph = comm.capture(stream, |stream| {
        comm.all_reduce(&send, &mut repeated, ReduceOp::Sum, stream)?;
        comm.all_reduce_in_place(&mut repeated, ReduceOp::Sum, stream)
    });
    let graph = graph.unwrap().instantiate().unwrap();
    for launch in 1..4 {
        let slices = (send.on(stream).unwrap(), repeated.on_mut(stream).unwrap());
        // SAFETY: the graph uses this memory and nothing else.
        unsafe { graph.launch(stream, &[&slices.0, &slices.1]) }.unwrap();
        comm.all_reduce_in_place(&mut repeated, ReduceOp::Max, stream).unwrap();
        is(&format!("launch {launch}"), &repeated, &|at| {
            sum(ranks, at) * ranks as f32
        });
    }
}
