//! `rocblas_handle`: a stream, some modes and a workspace.
//!
//! A handle's value is a number that is never reused and never dereferenced. A handle that was
//! destroyed, or never was one, is therefore refused with `rocblas_status_invalid_handle`; the real
//! library checks for null only, and the rest is undefined there.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::LazyLock;

use hip_host::library;
use hip_sys::hipStream_t;
use parking_lot::Mutex;
use rocblas_sys::{
    rocblas_atomics_mode, rocblas_handle, rocblas_math_mode, rocblas_performance_metric, rocblas_pointer_mode,
    rocblas_status,
};

use super::arguments::check_range;
use super::status::{Outcome, entry};

/// What the real library reserves for a handle on the cards that the model stands for.
const MANAGED_WORKSPACE: usize = 32 << 20;

#[derive(Clone, Copy)]
pub(crate) struct Handle {
    /// An address, because raw pointers are not `Send`; null is the default stream.
    stream: usize,
    pub(crate) pointer_mode: rocblas_pointer_mode,
    atomics_mode: rocblas_atomics_mode,
    math_mode: rocblas_math_mode,
    metric: rocblas_performance_metric,
    workspace: Workspace,
    /// Between `rocblas_start_device_memory_size_query` and its stop, calls report sizes and
    /// compute nothing.
    size_query: bool,
}

/// Who owns the memory for intermediate results. The model computes its intermediate results in
/// host memory and keeps only the account.
#[derive(Clone, Copy)]
enum Workspace {
    Managed(usize),
    /// The size was chosen by the user, the memory is the library's.
    Sized(usize),
    /// Given by `rocblas_set_workspace`.
    User(usize),
}

impl Workspace {
    /// A size in `ROCBLAS_DEVICE_MEMORY_SIZE`, read for every new handle, is the user's choice
    /// (library/src/handle.cpp). Nothing, 0 or text leaves it to the library.
    fn from_environment() -> Self {
        let text = std::env::var("ROCBLAS_DEVICE_MEMORY_SIZE").unwrap_or_default();
        match text.trim().parse() {
            Ok(0) | Err(_) => Self::Managed(MANAGED_WORKSPACE),
            Ok(bytes) => Self::Sized(bytes),
        }
    }

    fn bytes(self) -> usize {
        match self {
            Workspace::Managed(bytes) | Workspace::Sized(bytes) | Workspace::User(bytes) => bytes,
        }
    }
}

impl Handle {
    pub(crate) fn stream(&self) -> hipStream_t {
        self.stream as hipStream_t
    }
}

struct Registry {
    next: usize,
    live: HashMap<usize, Handle>,
}

static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(|| {
    Mutex::new(Registry {
        next: 1,
        live: HashMap::new(),
    })
});

/// Handles look like addresses of aligned objects, and not like null or an error code.
const ALIGNMENT: usize = 64;

fn with<R>(handle: rocblas_handle, body: impl FnOnce(&mut Handle) -> Outcome<R>) -> Outcome<R> {
    match REGISTRY.lock().live.get_mut(&handle.addr()) {
        Some(handle) => body(handle),
        None => Err(rocblas_status::rocblas_status_invalid_handle),
    }
}

/// The state of a live handle at this moment, for a call that computes. During a size query the
/// call ends here: nothing is computed, and no call of the model needs device memory of its own.
pub(crate) fn current(handle: rocblas_handle) -> Outcome<Handle> {
    let handle = with(handle, |handle| {
        if handle.size_query {
            Err(rocblas_status::rocblas_status_size_unchanged)
        } else {
            Ok(*handle)
        }
    })?;
    // A stream that is gone is refused when the work is put into it.
    let _ = library::begin(handle.stream());
    Ok(handle)
}

/// # Safety
/// `to` is null or valid for a write.
unsafe fn give<T>(to: *mut T, value: T) -> Outcome {
    if to.is_null() {
        return Err(rocblas_status::rocblas_status_invalid_pointer);
    }
    // SAFETY: not null, and the caller's promise.
    unsafe { to.write(value) };
    Ok(())
}

pub(super) unsafe extern "C" fn rocblas_create_handle(handle: *mut rocblas_handle) -> rocblas_status {
    entry("rocblas_create_handle", |_| {
        if handle.is_null() {
            return Err(rocblas_status::rocblas_status_invalid_handle);
        }
        let mut registry = REGISTRY.lock();
        let value = registry.next * ALIGNMENT;
        registry.next += 1;
        registry.live.insert(
            value,
            Handle {
                stream: 0,
                pointer_mode: rocblas_pointer_mode::rocblas_pointer_mode_host,
                atomics_mode: rocblas_atomics_mode::rocblas_atomics_allowed,
                math_mode: rocblas_math_mode::rocblas_default_math,
                metric: rocblas_performance_metric::rocblas_default_performance_metric,
                workspace: Workspace::from_environment(),
                size_query: false,
            },
        );
        // SAFETY: checked above; that it is writable is the C caller's duty.
        unsafe { give(handle, std::ptr::without_provenance_mut(value)) }
    })
}

/// Waits for the handle's stream, as freeing the workspace does on the real library.
pub(super) unsafe extern "C" fn rocblas_destroy_handle(handle: rocblas_handle) -> rocblas_status {
    entry("rocblas_destroy_handle", |_| {
        let removed = REGISTRY.lock().live.remove(&handle.addr());
        let removed = removed.ok_or(rocblas_status::rocblas_status_invalid_handle)?;
        library::drain(removed.stream(), "rocblas_destroy_handle");
        Ok(())
    })
}

pub(super) unsafe extern "C" fn rocblas_set_stream(handle: rocblas_handle, stream: hipStream_t) -> rocblas_status {
    entry("rocblas_set_stream", |_| {
        with(handle, |handle| {
            // An invalid stream is an invalid value here, not an invalid handle: that word is kept
            // for the rocBLAS handle.
            if !library::is_stream(stream) {
                return Err(rocblas_status::rocblas_status_invalid_value);
            }
            handle.stream = stream.addr();
            Ok(())
        })
    })
}

pub(super) unsafe extern "C" fn rocblas_get_stream(handle: rocblas_handle, stream: *mut hipStream_t) -> rocblas_status {
    entry("rocblas_get_stream", |_| {
        with(handle, |handle| {
            // SAFETY: the C caller's duty.
            unsafe { give(stream, handle.stream()) }
        })
    })
}

macro_rules! mode {
    ($set:ident, $get:ident, $field:ident: $mode:ident = $($value:ident)|+) => {
        pub(super) unsafe extern "C" fn $set(handle: rocblas_handle, mode: $mode) -> rocblas_status {
            entry(stringify!($set), |_| with(handle, |handle| {
                // The real library stores any number; one that means nothing is refused here.
                if !matches!(mode, $($mode::$value)|+) {
                    return Err(rocblas_status::rocblas_status_invalid_value);
                }
                handle.$field = mode;
                Ok(())
            }))
        }

        pub(super) unsafe extern "C" fn $get(handle: rocblas_handle, mode: *mut $mode) -> rocblas_status {
            // SAFETY: the C caller's duty.
            entry(stringify!($get), |_| with(handle, |handle| unsafe { give(mode, handle.$field) }))
        }
    };
}
mode!(rocblas_set_pointer_mode, rocblas_get_pointer_mode, pointer_mode: rocblas_pointer_mode
    = rocblas_pointer_mode_host | rocblas_pointer_mode_device);
mode!(rocblas_set_atomics_mode, rocblas_get_atomics_mode, atomics_mode: rocblas_atomics_mode
    = rocblas_atomics_not_allowed | rocblas_atomics_allowed);
mode!(rocblas_set_math_mode, rocblas_get_math_mode, math_mode: rocblas_math_mode
    = rocblas_default_math | rocblas_xf32_xdl_math_op);
mode!(rocblas_set_performance_metric, rocblas_get_performance_metric, metric: rocblas_performance_metric
    = rocblas_default_performance_metric
    | rocblas_device_efficiency_performance_metric
    | rocblas_cu_efficiency_performance_metric);

pub(super) unsafe extern "C" fn rocblas_set_workspace(
    handle: rocblas_handle,
    addr: *mut c_void,
    size: usize,
) -> rocblas_status {
    entry("rocblas_set_workspace", |_| {
        with(handle, |handle| {
            handle.workspace = if addr.is_null() || size == 0 {
                // ROCm's library allocates again when a call needs memory.
                Workspace::Managed(0)
            } else {
                library::begin(handle.stream()).map_err(|_| rocblas_status::rocblas_status_invalid_handle)?;
                check_range("rocblas_set_workspace", "addr", addr, size)?;
                Workspace::User(size)
            };
            Ok(())
        })
    })
}

pub(super) unsafe extern "C" fn rocblas_set_device_memory_size(handle: rocblas_handle, size: usize) -> rocblas_status {
    entry("rocblas_set_device_memory_size", |_| {
        with(handle, |handle| {
            handle.workspace = match size {
                0 => Workspace::Managed(MANAGED_WORKSPACE),
                size => Workspace::Sized(size),
            };
            Ok(())
        })
    })
}

pub(super) unsafe extern "C" fn rocblas_get_device_memory_size(
    handle: rocblas_handle,
    size: *mut usize,
) -> rocblas_status {
    entry("rocblas_get_device_memory_size", |_| {
        with(handle, |handle| {
            // SAFETY: the C caller's duty.
            unsafe { give(size, handle.workspace.bytes()) }
        })
    })
}

pub(super) unsafe extern "C" fn rocblas_is_managing_device_memory(handle: rocblas_handle) -> bool {
    with(handle, |handle| Ok(matches!(handle.workspace, Workspace::Managed(_)))).unwrap_or(false)
}

pub(super) unsafe extern "C" fn rocblas_is_user_managing_device_memory(handle: rocblas_handle) -> bool {
    with(handle, |handle| Ok(matches!(handle.workspace, Workspace::User(_)))).unwrap_or(false)
}

pub(super) unsafe extern "C" fn rocblas_start_device_memory_size_query(handle: rocblas_handle) -> rocblas_status {
    entry("rocblas_start_device_memory_size_query", |_| {
        with(handle, |handle| begin_or_end(handle, true))
    })
}

pub(super) unsafe extern "C" fn rocblas_stop_device_memory_size_query(
    handle: rocblas_handle,
    size: *mut usize,
) -> rocblas_status {
    entry("rocblas_stop_device_memory_size_query", |_| {
        with(handle, |handle| {
            begin_or_end(handle, false)?;
            // SAFETY: the C caller's duty.
            unsafe { give(size, 0) }
        })
    })
}

fn begin_or_end(handle: &mut Handle, begin: bool) -> Outcome {
    if handle.size_query == begin {
        return Err(rocblas_status::rocblas_status_size_query_mismatch);
    }
    handle.size_query = begin;
    Ok(())
}

pub(super) unsafe extern "C" fn rocblas_is_device_memory_size_query(handle: rocblas_handle) -> bool {
    with(handle, |handle| Ok(handle.size_query)).unwrap_or(false)
}
