//! What a complete operation does to memory.

use crate::operation::{Kind, Operation};
use crate::reduce::reduce;

/// Does a collective whose calls, one of each rank in their order, agree.
///
/// # Safety
///
/// What each call reads and writes is memory that its rank's stream has given to it, and no other work uses.
pub(crate) unsafe fn collective(calls: &[Operation]) {
    let ranks = calls.len();
    let Some(first) = calls.first() else { return };
    // Every call was checked for it.
    let Some((_, one)) = Operation {
        kind: Kind::AllReduce,
        ..*first
    }
    .bytes(0, ranks) else {
        return;
    };
    if one == 0 {
        return;
    }
    // All is read before anything is written: a result may lie where an operand does, also of another rank.
    // SAFETY: the caller's promise.
    let input = |rank: usize, bytes: usize| unsafe { bytes_at(calls[rank].send, bytes) };
    // SAFETY: as above.
    let output = |rank: usize, at: usize, bytes: &[u8]| unsafe { write(calls[rank].recv + at, bytes) };
    let reduced = |bytes: usize| {
        let inputs: Vec<&[u8]> = (0..ranks).map(|rank| input(rank, bytes)).collect();
        reduce(first.datatype, first.op, &inputs).unwrap_or_default()
    };
    match first.kind {
        Kind::AllReduce => {
            let result = reduced(one);
            (0..ranks).for_each(|rank| output(rank, 0, &result));
        }
        Kind::Reduce => {
            let result = reduced(one);
            output(first.root, 0, &result);
        }
        Kind::Broadcast => {
            let result = input(first.root, one).to_vec();
            (0..ranks).for_each(|rank| output(rank, 0, &result));
        }
        Kind::AllGather => {
            let result: Vec<u8> = (0..ranks).flat_map(|rank| input(rank, one).to_vec()).collect();
            (0..ranks).for_each(|rank| output(rank, 0, &result));
        }
        Kind::ReduceScatter => {
            let result = reduced(one * ranks);
            (0..ranks).for_each(|rank| output(rank, 0, &result[rank * one..(rank + 1) * one]));
        }
        Kind::Send | Kind::Recv => {}
    }
}

/// Moves what a send gives to its receive.
///
/// # Safety
///
/// As for [`collective`].
pub(crate) unsafe fn pair(send: &Operation, recv: &Operation) {
    let bytes = send.bytes(0, 1).map_or(0, |(bytes, _)| bytes);
    // SAFETY: the caller's promise.
    let message = unsafe { bytes_at(send.send, bytes) }.to_vec();
    // SAFETY: as above.
    unsafe { write(recv.recv, &message) };
}

/// # Safety
///
/// So many bytes there may be read, and do not change while the result lives.
pub(crate) unsafe fn bytes_at<'a>(address: usize, bytes: usize) -> &'a [u8] {
    if bytes == 0 {
        return &[];
    }
    // SAFETY: the caller's promise; every byte of device memory has a value.
    unsafe { std::slice::from_raw_parts(address as *const u8, bytes) }
}

/// # Safety
///
/// So many bytes there may be written.
pub(crate) unsafe fn write(address: usize, bytes: &[u8]) {
    // SAFETY: the caller's promise. The source is memory of our own.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
}
