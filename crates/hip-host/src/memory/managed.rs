//! Managed memory: advice and prefetching.
//!
//! All memory of the model is the host's, so nothing moves; the program's advice on each range is kept and reported
//! back.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use hip_sys::{
    hipCpuDeviceId, hipError_t, hipInvalidDeviceId, hipMemRangeAttribute as Attribute, hipMemRangeCoherencyMode,
    hipMemoryAdvise as Advice, hipStream_t,
};
use parking_lot::Mutex;

use super::registry::{self, Allocation, Kind};
use crate::error::{Result, entry, store};
use crate::{device, log, stream, strict};

/// The advice on some bytes.
#[derive(Clone, PartialEq, Eq)]
struct RangeState {
    read_mostly: bool,
    coarse: bool,
    preferred: c_int,
    prefetched: c_int,
    /// Devices and the host (-1), sorted.
    accessed_by: Vec<c_int>,
}

impl Default for RangeState {
    fn default() -> Self {
        Self {
            read_mostly: false,
            coarse: false,
            preferred: hipInvalidDeviceId,
            prefetched: hipInvalidDeviceId,
            accessed_by: Vec::new(),
        }
    }
}

/// The advice on the ranges of an allocation, latest last; ranges are offsets.
#[derive(Default)]
pub(super) struct Ranges(Mutex<Vec<Range>>);

struct Range {
    start: usize,
    end: usize,
    state: RangeState,
}

impl Ranges {
    /// Changes the advice on `[start, end)`.
    fn change(&self, start: usize, end: usize, change: impl Fn(&mut RangeState)) {
        let mut ranges = self.0.lock();
        let mut pieces = Vec::new();
        let mut untouched = start;
        ranges.sort_by_key(|range| range.start);
        for range in ranges.drain(..) {
            let (from, to) = (range.start.max(start), range.end.min(end));
            if from >= to {
                pieces.push(range);
                continue;
            }
            let mut piece = |start, end, state: &RangeState| {
                if start < end {
                    let state = state.clone();
                    pieces.push(Range { start, end, state });
                }
            };
            piece(range.start, from, &range.state);
            piece(to, range.end, &range.state);
            piece(untouched, from, &changed(&RangeState::default(), &change));
            piece(from, to, &changed(&range.state, &change));
            untouched = to;
        }
        if untouched < end {
            let state = changed(&RangeState::default(), &change);
            pieces.push(Range {
                start: untouched,
                end,
                state,
            });
        }
        *ranges = pieces;
    }

    /// The advice on the parts of `[start, end)`; the default for a part without any.
    fn of(&self, start: usize, end: usize) -> Vec<RangeState> {
        let ranges = self.0.lock();
        let inside = ranges.iter().filter(|range| range.start < end && range.end > start);
        let mut covered = 0;
        let mut state: Vec<RangeState> = inside
            .map(|range| {
                covered += range.end.min(end) - range.start.max(start);
                range.state.clone()
            })
            .collect();
        if covered < end - start {
            state.push(RangeState::default());
        }
        state
    }
}

fn changed(state: &RangeState, change: impl Fn(&mut RangeState)) -> RangeState {
    let mut state = state.clone();
    change(&mut state);
    state
}

/// The managed allocation that holds all of a range.
fn find(call: &str, ptr: *const c_void, bytes: usize) -> Result<Arc<Allocation>> {
    let managed = registry::device_range(ptr as usize, bytes)
        .ok()
        .filter(|allocation| allocation.kind == Kind::Managed || strict::is_off());
    if ptr.is_null() || bytes == 0 {
        return Err(hipError_t::hipErrorInvalidValue);
    }
    managed.ok_or_else(|| {
        log::refused(call, format_args!("{bytes} bytes at {ptr:p} are not managed memory"));
        hipError_t::hipErrorInvalidValue
    })
}

/// A device or the host.
fn place(device: c_int) -> Result {
    if device != hipCpuDeviceId {
        device::by_ordinal(device)?;
    }
    Ok(())
}

fn change(allocation: &Allocation, ptr: *const c_void, bytes: usize, change: impl Fn(&mut RangeState)) {
    if let Some(ranges) = allocation.kept::<Ranges>() {
        let start = ptr as usize - allocation.base;
        ranges.change(start, start + bytes, change);
    }
}

pub(crate) unsafe extern "C" fn mem_advise(
    ptr: *const c_void,
    bytes: usize,
    advice: Advice,
    device: c_int,
) -> hipError_t {
    const CALL: &str = "hipMemAdvise";
    entry(CALL, || {
        if ptr.is_null() || bytes == 0 {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // The advice that speaks of no place ignores the device (hipamd/src/hip_hmm.cpp, `hipMemAdvise`).
        if !matches!(
            advice,
            Advice::hipMemAdviseSetReadMostly | Advice::hipMemAdviseUnsetReadMostly
        ) {
            place(device)?;
        }
        let allocation = find(CALL, ptr, bytes)?;
        match advice {
            Advice::hipMemAdviseSetReadMostly | Advice::hipMemAdviseUnsetReadMostly => {
                let set = advice == Advice::hipMemAdviseSetReadMostly;
                change(&allocation, ptr, bytes, |state| state.read_mostly = set);
            }
            Advice::hipMemAdviseSetPreferredLocation => {
                change(&allocation, ptr, bytes, |state| state.preferred = device);
            }
            Advice::hipMemAdviseUnsetPreferredLocation => {
                change(&allocation, ptr, bytes, |state| {
                    state.preferred = hipInvalidDeviceId;
                });
            }
            Advice::hipMemAdviseSetAccessedBy => change(&allocation, ptr, bytes, |state| {
                if let Err(at) = state.accessed_by.binary_search(&device) {
                    state.accessed_by.insert(at, device);
                }
            }),
            Advice::hipMemAdviseUnsetAccessedBy => change(&allocation, ptr, bytes, |state| {
                state.accessed_by.retain(|&other| other != device);
            }),
            Advice::hipMemAdviseSetCoarseGrain | Advice::hipMemAdviseUnsetCoarseGrain => {
                let set = advice == Advice::hipMemAdviseSetCoarseGrain;
                change(&allocation, ptr, bytes, |state| state.coarse = set);
            }
            _ => return Err(hipError_t::hipErrorInvalidValue),
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn mem_prefetch_async(
    ptr: *const c_void,
    bytes: usize,
    device: c_int,
    stream: hipStream_t,
) -> hipError_t {
    const CALL: &str = "hipMemPrefetchAsync";
    entry(CALL, || {
        if ptr.is_null() || bytes == 0 {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let stream = stream::find(stream)?;
        place(device)?;
        let allocation = find(CALL, ptr, bytes)?;
        let start = ptr as usize;
        let work = Box::new(move || {
            change(&allocation, start as *const c_void, bytes, |state| {
                // The host is told as no place at all (`hipMemRangeGetAttribute` after a prefetch to it).
                state.prefetched = if device == hipCpuDeviceId {
                    hipInvalidDeviceId
                } else {
                    device
                };
            });
            Ok(())
        });
        stream.submit(CALL, Vec::new(), work).map(|_| ())
    })
}

/// Writes the requested attribute of the range that `said` describes.
///
/// # Safety
/// `out` has room for `bytes` bytes.
unsafe fn answer(out: *mut c_void, bytes: usize, attribute: Attribute, state: &[RangeState]) -> Result {
    let same = |pick: fn(&RangeState) -> c_int| {
        let first = state.first().map_or(hipInvalidDeviceId, pick);
        if state.iter().all(|state| pick(state) == first) {
            first
        } else {
            hipInvalidDeviceId
        }
    };
    let number = match attribute {
        Attribute::hipMemRangeAttributeReadMostly => c_int::from(state.iter().all(|state| state.read_mostly)),
        Attribute::hipMemRangeAttributePreferredLocation => same(|state| state.preferred),
        Attribute::hipMemRangeAttributeLastPrefetchLocation => same(|state| state.prefetched),
        Attribute::hipMemRangeAttributeCoherencyMode => {
            let coarse = state.iter().filter(|state| state.coarse).count();
            let mode = if coarse == 0 {
                hipMemRangeCoherencyMode::hipMemRangeCoherencyModeFineGrain
            } else if coarse == state.len() {
                hipMemRangeCoherencyMode::hipMemRangeCoherencyModeCoarseGrain
            } else {
                hipMemRangeCoherencyMode::hipMemRangeCoherencyModeIndeterminate
            };
            mode.0 as c_int
        }
        Attribute::hipMemRangeAttributeAccessedBy => {
            // A list as long as the caller's room, filled up with "no device".
            let size = size_of::<c_int>();
            if bytes == 0 || !bytes.is_multiple_of(size) {
                return Err(hipError_t::hipErrorInvalidValue);
            }
            let everywhere = |device: &&c_int| {
                state
                    .iter()
                    .all(|state| state.accessed_by.binary_search(device).is_ok())
            };
            let first = state.first().map(|state| state.accessed_by.as_slice());
            let devices = first.unwrap_or_default().iter().filter(everywhere).copied();
            let list = devices.chain(std::iter::repeat(hipInvalidDeviceId));
            for (index, device) in list.take(bytes / size).enumerate() {
                // SAFETY: within the caller's room.
                unsafe { store(out.cast::<c_int>().add(index), device) }?;
            }
            return Ok(());
        }
        _ => return Err(hipError_t::hipErrorInvalidValue),
    };
    if bytes != size_of::<c_int>() {
        return Err(hipError_t::hipErrorInvalidValue);
    }
    // SAFETY: the caller's room is an int.
    unsafe { store(out.cast(), number) }
}

fn said_of(call: &str, ptr: *const c_void, bytes: usize) -> Result<Vec<RangeState>> {
    let allocation = find(call, ptr, bytes)?;
    let start = ptr as usize - allocation.base;
    let state = allocation
        .kept::<Ranges>()
        .map(|ranges| ranges.of(start, start + bytes));
    Ok(state.unwrap_or_default())
}

pub(crate) unsafe extern "C" fn mem_range_get_attribute(
    out: *mut c_void,
    out_bytes: usize,
    attribute: Attribute,
    ptr: *const c_void,
    bytes: usize,
) -> hipError_t {
    const CALL: &str = "hipMemRangeGetAttribute";
    entry(CALL, || {
        if out.is_null() || out_bytes == 0 {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let state = said_of(CALL, ptr, bytes)?;
        // SAFETY: not null; the C caller promises that many bytes.
        unsafe { answer(out, out_bytes, attribute, &state) }
    })
}

pub(crate) unsafe extern "C" fn mem_range_get_attributes(
    outs: *mut *mut c_void,
    out_bytes: *mut usize,
    attributes: *mut Attribute,
    count: usize,
    ptr: *const c_void,
    bytes: usize,
) -> hipError_t {
    const CALL: &str = "hipMemRangeGetAttributes";
    entry(CALL, || {
        if outs.is_null() || out_bytes.is_null() || attributes.is_null() || count == 0 {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let state = said_of(CALL, ptr, bytes)?;
        for index in 0..count {
            // SAFETY: none of the lists is null; the C caller promises `count` entries in each, and the bytes they say.
            unsafe {
                let out = outs.add(index).read_unaligned();
                if out.is_null() {
                    return Err(hipError_t::hipErrorInvalidValue);
                }
                let room = out_bytes.add(index).read_unaligned();
                answer(out, room, attributes.add(index).read_unaligned(), &state)?;
            }
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn stream_attach_mem_async(
    stream: hipStream_t,
    ptr: *mut c_void,
    bytes: usize,
    flags: c_uint,
) -> hipError_t {
    const CALL: &str = "hipStreamAttachMemAsync";
    entry(CALL, || {
        stream::find(stream)?;
        // Global, host, single (hipamd/src/hip_hmm.cpp, `hipStreamAttachMemAsync`); every stream sees all memory here.
        if ptr.is_null() || !matches!(flags, 1 | 2 | 4) {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // Memory of a single stream is not the default stream's.
        if flags == 4 && stream::is_null_handle(stream) {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let allocation = find(CALL, ptr, bytes.max(1))?;
        // All of it, by its first byte; or, in ROCm's words, zero for all.
        if allocation.base != ptr as usize || !(bytes == 0 || bytes == allocation.bytes) {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        Ok(())
    })
}
