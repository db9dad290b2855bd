//! How communicators begin, part and end.

use std::ffi::c_int;

use rccl_sys::{ncclComm_t, ncclConfig_t, ncclResult_t, ncclUniqueId};

use super::store;
use crate::group::{self, Init, Split};
use crate::meeting::Wish;
use crate::status::{Failure, entry, entry_of_work, from_hip};
use crate::{comm, config};

pub(super) unsafe extern "C" fn unique_id(out: *mut ncclUniqueId) -> ncclResult_t {
    // SAFETY: the C caller's duty.
    entry("ncclGetUniqueId", || unsafe { store(out, comm::new_id()?) })
}

pub(super) unsafe extern "C" fn init_rank(
    out: *mut ncclComm_t,
    ranks: c_int,
    id: ncclUniqueId,
    rank: c_int,
) -> ncclResult_t {
    // SAFETY: the C caller's duty.
    unsafe { init("ncclCommInitRank", out, (ranks, rank), id, std::ptr::null()) }
}

pub(super) unsafe extern "C" fn init_rank_config(
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

pub(super) unsafe extern "C" fn init_all(out: *mut ncclComm_t, count: c_int, devices: *const c_int) -> ncclResult_t {
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

pub(super) unsafe extern "C" fn split(
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

pub(super) unsafe extern "C" fn finalize(comm: ncclComm_t) -> ncclResult_t {
    entry_of_work("ncclCommFinalize", || {
        let rank = comm::find(comm)?;
        if rank.blocking {
            rank.graphs.wait_gone("ncclCommFinalize")?;
            rank.progress.finalize();
            rank.meeting.destroy(rank.rank);
            return Ok(false);
        }
        rank.progress.finalize();
        rank.progress.begin(true);
        group::aside(move || {
            match rank.graphs.wait_gone("ncclCommFinalize") {
                Ok(()) => rank.meeting.destroy(rank.rank),
                Err(failure) => rank.meeting.fail_with(failure),
            }
            rank.progress.end(|| {});
        })?;
        Ok(true)
    })
}

pub(super) unsafe extern "C" fn destroy(comm: ncclComm_t) -> ncclResult_t {
    entry("ncclCommDestroy", || {
        let rank = comm::find_busy(comm)?;
        let finalized = rank.progress.check_end()?;
        rank.graphs.wait_gone("ncclCommDestroy")?;
        let rank = comm::remove(comm)?;
        if !finalized {
            rank.meeting.destroy(rank.rank);
        }
        Ok(())
    })
}

pub(super) unsafe extern "C" fn abort(comm: ncclComm_t) -> ncclResult_t {
    entry("ncclCommAbort", || {
        let rank = comm::remove(comm)?;
        rank.progress.abort();
        rank.meeting.abort(rank.rank);
        rank.graphs.wait_gone("ncclCommAbort")
    })
}

pub(super) unsafe extern "C" fn async_error(comm: ncclComm_t, out: *mut ncclResult_t) -> ncclResult_t {
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
