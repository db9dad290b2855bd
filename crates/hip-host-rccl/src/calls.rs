//! The C functions.

use std::ffi::{c_char, c_int, c_void};

use hip_host::library;
use hip_sys::hipStream_t;
use rccl_sys::{Api, ncclComm_t, ncclConfig_t, ncclDataType_t, ncclRedOp_t, ncclResult_t, ncclUniqueId};

use crate::comm::{self, Rank};
use crate::config;
use crate::group::{self, Call, Init, Split};
use crate::meeting::Wish;
use crate::operation::{Kind, Operation};
use crate::status::{Failure, Outcome, entry, entry_of_work, error_string, from_hip, last_text};

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
        ncclCommAbort: Some(abort),
        ncclCommCount: Some(count),
        ncclCommCuDevice: Some(device),
        ncclCommDestroy: Some(destroy),
        ncclCommGetAsyncError: Some(async_error),
        ncclCommInitAll: Some(init_all),
        ncclCommFinalize: Some(finalize),
        ncclCommInitRank: Some(init_rank),
        ncclCommInitRankConfig: Some(init_rank_config),
        ncclCommSplit: Some(split),
        ncclCommUserRank: Some(user_rank),
        ncclGetErrorString: Some(error_string),
        ncclGetLastError: Some(last_error),
        ncclGetUniqueId: Some(unique_id),
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

unsafe extern "C" fn unique_id(out: *mut ncclUniqueId) -> ncclResult_t {
    // SAFETY: the C caller's duty.
    entry("ncclGetUniqueId", || unsafe { store(out, comm::new_id()?) })
}

unsafe extern "C" fn init_rank(out: *mut ncclComm_t, ranks: c_int, id: ncclUniqueId, rank: c_int) -> ncclResult_t {
    // SAFETY: the C caller's duty.
    unsafe { init("ncclCommInitRank", out, (ranks, rank), id, std::ptr::null()) }
}

unsafe extern "C" fn init_rank_config(
    out: *mut ncclComm_t,
    ranks: c_int,
    id: ncclUniqueId,
    rank: c_int,
    config: *mut ncclConfig_t,
) -> ncclResult_t {
    // SAFETY: the C caller's duty.
    unsafe { init("ncclCommInitRankConfig", out, (ranks, rank), id, config) }
}

/// # Safety
/// `out` is null or has room for a handle; `config` is null or a configuration.
unsafe fn init(
    name: &'static str,
    out: *mut ncclComm_t,
    (ranks, rank): (c_int, c_int),
    id: ncclUniqueId,
    config: *const ncclConfig_t,
) -> ncclResult_t {
    entry_of_work(name, || {
        group::checked(|| {
            // SAFETY: the caller's promise.
            let blocking = unsafe {
                store(out, std::ptr::null_mut())?;
                config::blocking(name, config)
            }?;
            let device = group::current_device()?;
            group::submit_init(Init {
                id,
                ranks,
                rank,
                device,
                blocking: blocking.unwrap_or(true),
                out,
            })
        })
    })
}

unsafe extern "C" fn init_all(out: *mut ncclComm_t, count: c_int, devices: *const c_int) -> ncclResult_t {
    entry("ncclCommInitAll", || {
        let count = usize::try_from(count).ok().filter(|count| *count > 0);
        let (Some(count), false) = (count, out.is_null()) else {
            return Err(Failure::argument("ncclCommInitAll: no ranks, or no place for them"));
        };
        let devices: Vec<c_int> = match devices.is_null() {
            true => (0..count as c_int).collect(),
            // SAFETY: the C caller's duty: as many numbers as ranks.
            false => (0..count)
                .map(|rank| unsafe { devices.add(rank).read_unaligned() })
                .collect(),
        };
        let mut present = 0;
        let count_devices = hip_host::hip_api().hipGetDeviceCount.expect("built");
        // SAFETY: writes one number to the address given.
        from_hip("hipGetDeviceCount", unsafe { count_devices(&mut present) })?;
        if let Some(absent) = devices.iter().find(|device| !(0..present).contains(*device)) {
            return Err(Failure::argument(format!(
                "ncclCommInitAll: there is no device {absent}"
            )));
        }
        for (at, rank) in comm::all(&devices)?.into_iter().enumerate() {
            // SAFETY: the C caller's duty: room for as many handles as ranks.
            unsafe { out.add(at).write(comm::publish(rank)) };
        }
        Ok(())
    })
}

unsafe extern "C" fn split(
    comm: ncclComm_t,
    color: c_int,
    key: c_int,
    out: *mut ncclComm_t,
    config: *mut ncclConfig_t,
) -> ncclResult_t {
    entry_of_work("ncclCommSplit", || {
        group::checked(|| {
            // SAFETY: the C caller's duty.
            unsafe { store(out, std::ptr::null_mut()) }?;
            let rank = comm::find(comm)?;
            rank.meeting.check()?;
            let color = match color {
                rccl_sys::NCCL_SPLIT_NOCOLOR => None,
                0.. => Some(color),
                _ => {
                    let text = format!("ncclCommSplit: color {color} is neither NCCL_SPLIT_NOCOLOR nor 0 or more");
                    return Err(Failure::argument(text));
                }
            };
            // SAFETY: the C caller's duty.
            let blocking = unsafe { config::blocking("ncclCommSplit", config) }?;
            group::submit_split(Split {
                blocking: blocking.unwrap_or(rank.blocking),
                rank,
                wish: Wish { color, key },
                out,
            })
        })
    })
}

unsafe extern "C" fn finalize(comm: ncclComm_t) -> ncclResult_t {
    entry_of_work("ncclCommFinalize", || {
        let rank = comm::find(comm)?;
        rank.progress.finalize();
        if rank.blocking {
            rank.meeting.destroy(rank.rank);
            return Ok(false);
        }
        rank.progress.begin(true);
        group::aside(move || {
            rank.meeting.destroy(rank.rank);
            rank.progress.end(|| {});
        })?;
        Ok(true)
    })
}

unsafe extern "C" fn destroy(comm: ncclComm_t) -> ncclResult_t {
    entry("ncclCommDestroy", || {
        let finalized = comm::find_busy(comm)?.progress.check_end()?;
        let rank = comm::remove(comm)?;
        if !finalized {
            rank.meeting.destroy(rank.rank);
        }
        Ok(())
    })
}

unsafe extern "C" fn abort(comm: ncclComm_t) -> ncclResult_t {
    entry("ncclCommAbort", || {
        let rank = comm::remove(comm)?;
        rank.progress.abort();
        rank.meeting.abort(rank.rank);
        Ok(())
    })
}

unsafe extern "C" fn async_error(comm: ncclComm_t, out: *mut ncclResult_t) -> ncclResult_t {
    entry("ncclCommGetAsyncError", || {
        let rank = comm::find_busy(comm)?;
        let code = match rank.progress.ask() {
            true => ncclResult_t::ncclInProgress,
            false => rank
                .meeting
                .failure()
                .map_or(ncclResult_t::ncclSuccess, |failure| failure.code),
        };
        // SAFETY: the C caller's duty.
        unsafe { store(out, code) }
    })
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
