//! Each collective against a scalar reference.

use half::{bf16, f16};
use rccl::ReduceOp;

use crate::common::{Number, Rank, run, value, values};

const LENGTHS: [usize; 5] = [0, 1, 7, 1001, 40_009];

const OPS: [ReduceOp; 4] = [ReduceOp::Sum, ReduceOp::Product, ReduceOp::Max, ReduceOp::Min];

fn reduced(op: ReduceOp, ranks: usize, at: usize) -> i64 {
    let values = (0..ranks).map(|rank| value(rank, at));
    match op {
        ReduceOp::Sum => values.sum(),
        ReduceOp::Product => values.product(),
        ReduceOp::Max => values.max().unwrap(),
        ReduceOp::Min => values.min().unwrap(),
        op => panic!("{op:?} has no reference"),
    }
}

fn reference<T: Number>(op: ReduceOp, ranks: usize, len: usize) -> Vec<T> {
    (0..len).map(|at| T::of(reduced(op, ranks, at))).collect()
}

/// Every collective of one type, with one operation for each length in turn.
fn check<T: Number>(rank: &Rank) {
    for (case, len) in LENGTHS.into_iter().enumerate() {
        let op = OPS[case % OPS.len()];
        all_reduce::<T>(rank, len, op);
        reduce::<T>(rank, len, op, case % rank.ranks);
        broadcast::<T>(rank, len, case % rank.ranks);
        all_gather::<T>(rank, len);
        reduce_scatter::<T>(rank, len, op);
    }
}

fn all_reduce<T: Number>(rank: &Rank, len: usize, op: ReduceOp) {
    let own = values::<T>(rank.rank, len);
    let expected = reference::<T>(op, rank.ranks, len);
    let send = rank.upload(&own);
    let mut recv = rank.device.alloc_zeroed::<T>(len).unwrap();
    rank.comm.all_reduce(&send, &mut recv, op, &rank.stream).unwrap();
    assert_eq!(rank.download(&recv), expected, "all_reduce {op:?} of {len}");
    assert_eq!(rank.download(&send), own);
    let mut memory = send;
    rank.comm.all_reduce_in_place(&mut memory, op, &rank.stream).unwrap();
    assert_eq!(rank.download(&memory), expected);
}

fn reduce<T: Number>(rank: &Rank, len: usize, op: ReduceOp, root: usize) {
    let own = values::<T>(rank.rank, len);
    let before = vec![T::of(9); len];
    let expected = match rank.rank == root {
        true => reference::<T>(op, rank.ranks, len),
        false => before.clone(),
    };
    let send = rank.upload(&own);
    let mut recv = rank.upload(&before);
    rank.comm.reduce(&send, &mut recv, op, root, &rank.stream).unwrap();
    assert_eq!(rank.download(&recv), expected, "reduce {op:?} of {len} to {root}");
    let mut memory = send;
    rank.comm.reduce_in_place(&mut memory, op, root, &rank.stream).unwrap();
    if rank.rank == root {
        assert_eq!(rank.download(&memory), expected);
    }
}

fn broadcast<T: Number>(rank: &Rank, len: usize, root: usize) {
    let mut memory = rank.upload(&values::<T>(rank.rank, len));
    rank.comm.broadcast(&mut memory, root, &rank.stream).unwrap();
    assert_eq!(
        rank.download(&memory),
        values::<T>(root, len),
        "broadcast of {len} from {root}"
    );
}

fn all_gather<T: Number>(rank: &Rank, len: usize) {
    let expected: Vec<T> = (0..rank.ranks).flat_map(|rank| values::<T>(rank, len)).collect();
    let own = values::<T>(rank.rank, len);
    let send = rank.upload(&own);
    let mut recv = rank.device.alloc_zeroed::<T>(len * rank.ranks).unwrap();
    rank.comm.all_gather(&send, &mut recv, &rank.stream).unwrap();
    assert_eq!(rank.download(&recv), expected, "all_gather of {len}");
    let mut whole = vec![T::of(9); len * rank.ranks];
    whole[rank.rank * len..][..len].copy_from_slice(&own);
    let mut memory = rank.upload(&whole);
    rank.comm.all_gather_in_place(&mut memory, &rank.stream).unwrap();
    assert_eq!(rank.download(&memory), expected);
}

fn reduce_scatter<T: Number>(rank: &Rank, len: usize, op: ReduceOp) {
    let whole = reference::<T>(op, rank.ranks, len * rank.ranks);
    let expected = &whole[rank.rank * len..][..len];
    let send = rank.upload(&values::<T>(rank.rank, len * rank.ranks));
    let mut recv = rank.device.alloc_zeroed::<T>(len).unwrap();
    rank.comm.reduce_scatter(&send, &mut recv, op, &rank.stream).unwrap();
    assert_eq!(rank.download(&recv), expected, "reduce_scatter {op:?} of {len}");
    let mut memory = send;
    rank.comm
        .reduce_scatter_in_place(&mut memory, op, &rank.stream)
        .unwrap();
    assert_eq!(&rank.download(&memory)[rank.rank * len..][..len], expected);
}

#[test]
fn two_ranks_get_what_the_reference_says() {
    run(2, |rank| check::<f32>(&rank));
}

#[test]
fn eight_ranks_get_what_the_reference_says() {
    run(8, |rank| check::<f64>(&rank));
}

#[test]
fn every_element_type_is_moved_and_reduced() {
    run(3, |rank| {
        check::<i8>(&rank);
        check::<u8>(&rank);
        check::<i32>(&rank);
        check::<u32>(&rank);
        check::<i64>(&rank);
        check::<u64>(&rank);
        check::<f16>(&rank);
        check::<bf16>(&rank);
    });
}

#[test]
fn one_rank_is_a_copy() {
    run(1, |rank| check::<i32>(&rank));
}

#[test]
fn an_average_is_truncated_for_integers_only() {
    run(2, |rank| {
        let mut whole = rank.upload(&[1 + 2 * rank.rank as i32, 4, -3 * rank.rank as i32]);
        let mut real = rank.upload(&[rank.rank as f32, 4.0]);
        rank.comm
            .all_reduce_in_place(&mut whole, ReduceOp::Average, &rank.stream)
            .unwrap();
        rank.comm
            .all_reduce_in_place(&mut real, ReduceOp::Average, &rank.stream)
            .unwrap();
        assert_eq!(rank.download(&whole), [2, 4, -1]);
        assert_eq!(rank.download(&real), [0.5, 4.0]);
    });
}

#[test]
fn collectives_are_ordered_with_the_other_work_of_streams() {
    run(4, |rank| {
        let other = rank.device.stream().unwrap();
        let mut memory = rank.device.alloc::<f32>(3001).unwrap();
        for round in 0..20 {
            // On another stream before, and on the same stream after it.
            memory.on_mut(&other).unwrap().fill_zero().unwrap();
            let one = rank.device.alloc_from(&other, &vec![round as f32; 3001]).unwrap();
            memory
                .on_mut(&rank.stream)
                .unwrap()
                .copy_from(one.on(&rank.stream).unwrap())
                .unwrap();
            rank.comm
                .all_reduce_in_place(&mut memory, ReduceOp::Sum, &rank.stream)
                .unwrap();
            let mut seen = vec![0.0; 3001];
            memory.copy_to_slice(&other, &mut seen).unwrap();
            assert!(seen.iter().all(|value| *value == 4.0 * round as f32), "round {round}");
        }
    });
}
