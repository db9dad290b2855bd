//! The C functions. Those of a communicator's life are in `life`.

mod life;

use std::ffi::{c_char, c_int, c_void};

use hip_host::library;
use hip_sys::hipStream_t;
use rccl_sys::{Api, ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t};

use crate::comm::{self, Rank};
use crate::group::{self, Call};
use crate::operation::{Kind, Operation};
use crate::status::{Failure, Outcome, entry, entry_of_work, error_string, last_text};

/// RCCL's version that the model has the API of: 2.27.7.
const VERSION: c_int = 22707;

/// The table of RCCL's functions that the model has.
#[must_use]
pub const fn rccl_api() -> Api {
    Api {
        ncclAllGather: Some(all_gather),
        ncclAllReduce: Some(all_reduce),
        ncclBcast: Some(bcast),
        ncclBroadcast: Some(broadcast),
        ncclCommAbort: Some(life::abort),
        ncclCommCount: Some(count),
        ncclCommCuDevice: Some(device),
        ncclCommDestroy: Some(life::destroy),
        ncclCommGetAsyncError: Some(life::async_error),
        ncclCommInitAll: Some(life::init_all),
        ncclCommFinalize: Some(life::finalize),
        ncclCommInitRank: Some(life::init_rank),
        ncclCommInitRankConfig: Some(life::init_rank_config),
        ncclCommSplit: Some(life::split),
        ncclCommUserRank: Some(user_rank),
        ncclGetErrorString: Some(error_string),
        ncclGetLastError: Some(last_error),
        ncclGetUniqueId: Some(life::unique_id),
        ncclGetVersion: Some(version),
        ncclGroupEnd: Some(group_end),
        ncclGroupStart: Some(group_start),
        ncclRecv: Some(recv),
        ncclReduce: Some(reduce),
        ncclReduceScatter: Some(reduce_scatter),
        ncclSend: Some(send),
        ..Api::EMPTY
    }
}

/// # Safety
/// `out` is null or valid for writing one `T`.
unsafe fn store<T>(out: *mut T, value: T) -> Outcome {
    if out.is_null() {
        return Err(Failure::argument("a result has no place: the pointer is null"));
    }
    // SAFETY: not null, so by this function's contract valid for a write.
    unsafe { out.write_unaligned(value) };
    Ok(())
}

unsafe extern "C" fn version(out: *mut c_int) -> ncclResult_t {
    // SAFETY: the C caller's duty.
    entry("ncclGetVersion", || unsafe { store(out, VERSION) })
}

/// The text of the communicator's failure if it has one, else of the thread's last failed call. It stays for as long as
/// the handle, or until the thread's next failure.
unsafe extern "C" fn last_error(comm: ncclComm_t) -> *const c_char {
    match comm::failure_text(comm) {
        Some(text) => text,
        None => last_text(),
    }
}

/// What a communicator tells as a number.
fn tell(name: &'static str, comm: ncclComm_t, out: *mut c_int, what: fn(&Rank) -> c_int) -> ncclResult_t {
    entry(name, || {
        let value = what(&*comm::find(comm)?);
        // SAFETY: the C caller's duty.
        unsafe { store(out, value) }
    })
}

unsafe extern "C" fn count(comm: ncclComm_t, out: *mut c_int) -> ncclResult_t {
    tell("ncclCommCount", comm, out, |rank| rank.meeting.ranks() as c_int)
}

unsafe extern "C" fn device(comm: ncclComm_t, out: *mut c_int) -> ncclResult_t {
    tell("ncclCommCuDevice", comm, out, |rank| rank.device)
}

unsafe extern "C" fn user_rank(comm: ncclComm_t, out: *mut c_int) -> ncclResult_t {
    tell("ncclCommUserRank", comm, out, |rank| rank.rank as c_int)
}

unsafe extern "C" fn group_start() -> ncclResult_t {
    entry("ncclGroupStart", || {
        group::start();
        Ok(())
    })
}

unsafe extern "C" fn group_end() -> ncclResult_t {
    let mut began = false;
    let code = entry_of_work("ncclGroupEnd", || {
        began = true;
        group::end()
    });
    // An injected failure ends the group too, as a failure of the real library does.
    if !began {
        group::give_up();
    }
    code
}

/// What a caller gives beside the kind, in the groups that the C functions share.
struct Given {
    buffers: (*const c_void, *mut c_void),
    elements: (usize, ncclDataType_t),
    op: ncclRedOp_t,
    root: c_int,
    on: (ncclComm_t, hipStream_t),
}

impl Given {
    /// Of a call without operation and root.
    fn new(
        buffers: (*const c_void, *mut c_void),
        elements: (usize, ncclDataType_t),
        on: (ncclComm_t, hipStream_t),
    ) -> Self {
        Self {
            buffers,
            elements,
            op: ncclRedOp_t::ncclSum,
            root: 0,
            on,
        }
    }

    fn op(self, op: ncclRedOp_t) -> Self {
        Self { op, ..self }
    }

    fn root(self, root: c_int) -> Self {
        Self { root, ..self }
    }
}

/// Checks a call and queues it, or leaves it to the end of the group.
fn queue(kind: Kind, given: Given) -> ncclResult_t {
    entry_of_work(kind.call(), || group::checked(|| submit(kind, given)))
}

fn submit(kind: Kind, given: Given) -> Outcome<bool> {
    let name = kind.call();
    let rank = comm::find(given.on.0)?;
    rank.meeting.check()?;
    let ranks = rank.meeting.ranks();
    let root = usize::try_from(given.root).ok().filter(|root| *root < ranks);
    let root = root.ok_or_else(|| Failure::argument(format!("{name}: no rank {} among {ranks}", given.root)))?;
    let (count, datatype) = given.elements;
    let operation = Operation {
        kind,
        send: given.buffers.0 as usize,
        recv: given.buffers.1 as usize,
        count,
        datatype,
        op: given.op,
        root,
        captured: false,
    };
    if !operation.has_arithmetic() {
        return Err(Failure::argument(format!(
            "{}: the model has no such arithmetic",
            operation.describe()
        )));
    }
    let bytes = operation.bytes(rank.rank, ranks);
    let (read, written) = bytes.ok_or_else(|| Failure::argument(format!("{}: no such size", operation.describe())))?;
    check_stream(name, &rank, given.on.1)?;
    check_memory(&operation, &rank, (read, written))?;
    group::submit(Call {
        rank,
        operation,
        stream: given.on.1 as usize,
    })
}

/// The stream is one of the communicator's device.
fn check_stream(name: &str, rank: &Rank, stream: hipStream_t) -> Outcome {
    let unknown = |error| Failure::argument(format!("{name}: the stream: {error:?}"));
    library::begin(stream).map_err(unknown)?;
    let device = library::ordinal(stream).map_err(unknown)?;
    if device == rank.device as usize {
        return Ok(());
    }
    Err(Failure::argument(format!(
        "{name}: the stream is of device {device}, rank {} of the communicator is on device {}",
        rank.rank, rank.device
    )))
}

/// The device reaches the buffers, and they are one, as the operation allows, or apart.
fn check_memory(operation: &Operation, rank: &Rank, (read, written): (usize, usize)) -> Outcome {
    let what = || format!("{} of rank {}", operation.describe(), rank.rank);
    for (buffer, address, bytes) in [("send", operation.send, read), ("receive", operation.recv, written)] {
        if bytes > 0 && library::check(address as *const c_void, bytes).is_err() {
            return Err(Failure::argument(format!(
                "{}: device {} does not reach {bytes} bytes of the {buffer} buffer",
                what(),
                rank.device
            )));
        }
    }
    let (from, to) = (operation.send, operation.recv);
    let apart = from + read <= to || to + written <= from;
    let in_place = match operation.kind {
        Kind::AllGather => from == to + rank.rank * read,
        Kind::ReduceScatter => to == from + rank.rank * written,
        _ => from == to,
    };
    if read == 0 || written == 0 || apart || in_place {
        return Ok(());
    }
    Err(Failure::argument(format!(
        "{}: the buffers overlap, but are not in place",
        what()
    )))
}

unsafe extern "C" fn all_reduce(
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    datatype: ncclDataType_t,
    op: ncclRedOp_t,
    comm: ncclComm_t,
    stream: hipStream_t,
) -> ncclResult_t {
    queue(
        Kind::AllReduce,
        Given::new((send, recv), (count, datatype), (comm, stream)).op(op),
    )
}

unsafe extern "C" fn reduce(
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    datatype: ncclDataType_t,
    op: ncclRedOp_t,
    root: c_int,
    comm: ncclComm_t,
    stream: hipStream_t,
) -> ncclResult_t {
    queue(
        Kind::Reduce,
        Given::new((send, recv), (count, datatype), (comm, stream))
            .op(op)
            .root(root),
    )
}

unsafe extern "C" fn broadcast(
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    datatype: ncclDataType_t,
    root: c_int,
    comm: ncclComm_t,
    stream: hipStream_t,
) -> ncclResult_t {
    queue(
        Kind::Broadcast,
        Given::new((send, recv), (count, datatype), (comm, stream)).root(root),
    )
}

unsafe extern "C" fn bcast(
    buffer: *mut c_void,
    count: usize,
    datatype: ncclDataType_t,
    root: c_int,
    comm: ncclComm_t,
    stream: hipStream_t,
) -> ncclResult_t {
    queue(
        Kind::Broadcast,
        Given::new((buffer, buffer), (count, datatype), (comm, stream)).root(root),
    )
}

unsafe extern "C" fn all_gather(
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    datatype: ncclDataType_t,
    comm: ncclComm_t,
    stream: hipStream_t,
) -> ncclResult_t {
    queue(
        Kind::AllGather,
        Given::new((send, recv), (count, datatype), (comm, stream)),
    )
}

unsafe extern "C" fn reduce_scatter(
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    datatype: ncclDataType_t,
    op: ncclRedOp_t,
    comm: ncclComm_t,
    stream: hipStream_t,
) -> ncclResult_t {
    queue(
        Kind::ReduceScatter,
        Given::new((send, recv), (count, datatype), (comm, stream)).op(op),
    )
}

unsafe extern "C" fn send(
    buffer: *const c_void,
    count: usize,
    datatype: ncclDataType_t,
    peer: c_int,
    comm: ncclComm_t,
    stream: hipStream_t,
) -> ncclResult_t {
    queue(
        Kind::Send,
        Given::new((buffer, std::ptr::null_mut()), (count, datatype), (comm, stream)).root(peer),
    )
}

unsafe extern "C" fn recv(
    buffer: *mut c_void,
    count: usize,
    datatype: ncclDataType_t,
    peer: c_int,
    comm: ncclComm_t,
    stream: hipStream_t,
) -> ncclResult_t {
    queue(
        Kind::Recv,
        Given::new((std::ptr::null(), buffer), (count, datatype), (comm, stream)).root(peer),
    )
}
