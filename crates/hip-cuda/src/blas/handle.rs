//! Handles: cuBLAS handles with rocBLAS modes, and a cuSOLVER handle on demand.

use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::OnceLock;

use hip_sys::hipStream_t;
use parking_lot::Mutex;
use rocblas_sys::{rocblas_atomics_mode, rocblas_handle, rocblas_pointer_mode, rocblas_status as Status};

use super::cusolver::Solver;
use super::scratch::Pool;
use super::workspace::Workspace;
use super::{Result, check, entry, from_hip, library};
use crate::cuda::driver::Driver;
use crate::cuda::{Symbol, c_name};
use crate::device::{self, Device};
use crate::memory::address;

/// A handle of cuBLAS or cuSOLVER.
pub(crate) type Raw = *mut c_void;

/// What a `rocblas_handle` points to.
pub(crate) struct Handle {
    cublas: Raw,
    pub(crate) solver: OnceLock<Solver>,
    /// Memory of rocSOLVER's routines.
    pub(crate) scratch: OnceLock<Pool>,
    device: &'static Device,
    modes: Mutex<Modes>,
    pub(super) workspace: Mutex<Workspace>,
}

#[derive(Clone, Copy)]
struct Modes {
    stream: hipStream_t,
    pointers: rocblas_pointer_mode,
    atomics: rocblas_atomics_mode,
}

/// Declares a function of cuBLAS that a file calls.
macro_rules! cublas {
    ($name:ident($($argument:ident: $ty:ty),*)) => {
        #[allow(non_snake_case, reason = "C name")]
        unsafe fn $name($($argument: $ty),*) -> Result {
            static CUDA: Symbol = Symbol::new(c_name(concat!(stringify!($name), "\0")));
            let found = CUDA.in_library(library()?).ok_or(Status::rocblas_status_not_implemented)?;
            // SAFETY: the address of the function of this name and signature (cublas_api.h).
            let function = unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($ty),*) -> std::ffi::c_uint>(found)
            };
            // SAFETY: the caller's promise is the callee's demand.
            check(unsafe { function($($argument),*) }, stringify!($name))
        }
    };
}
pub(super) use cublas;

cublas!(cublasCreate_v2(out: *mut Raw));
cublas!(cublasDestroy_v2(handle: Raw));
cublas!(cublasSetStream_v2(handle: Raw, stream: hipStream_t));
cublas!(cublasSetPointerMode_v2(handle: Raw, mode: c_uint));
cublas!(cublasSetAtomicsMode(handle: Raw, mode: c_uint));

impl Handle {
    /// # Safety
    /// `handle` is null or came from `rocblas_create_handle` and was not destroyed.
    pub(crate) unsafe fn of<'a>(handle: rocblas_handle) -> Result<&'a Self> {
        if handle.is_null() {
            return Err(Status::rocblas_status_invalid_handle);
        }
        // SAFETY: not null, so ours and alive by this function's contract.
        Ok(unsafe { &*handle.cast::<Self>() })
    }

    pub(crate) fn raw(&self) -> Raw {
        self.cublas
    }

    pub(crate) fn stream(&self) -> hipStream_t {
        self.modes.lock().stream
    }

    pub(crate) fn scalars_on_host(&self) -> bool {
        self.modes.lock().pointers == rocblas_pointer_mode::rocblas_pointer_mode_host
    }

    /// The driver, with the handle's device current: cuBLAS launches into the current context.
    pub(crate) fn make_current(&self) -> Result<&'static Driver> {
        let driver = device::here().map_err(from_hip)?;
        let current = device::current().map_err(from_hip)?;
        if current.ordinal != self.device.ordinal {
            let context = self.device.context().map_err(from_hip)?;
            // SAFETY: a context that is retained for good.
            unsafe { driver.cuCtxSetCurrent(context) }.map_err(from_hip)?;
        }
        Ok(driver)
    }

    /// As [`Handle::make_current`], for a call that computes: during a size query it ends here.
    pub(crate) fn begin(&self) -> Result<&'static Driver> {
        match self.workspace.lock().asked_for {
            true => Err(Status::rocblas_status_size_unchanged),
            false => self.make_current(),
        }
    }

    pub(crate) fn device(&self) -> &'static Device {
        self.device
    }

    /// Reads device memory after all queued work; waits for it.
    ///
    /// # Safety
    /// `from` is valid device memory of `len` elements, and any bytes are a `T`.
    pub(crate) unsafe fn read<T: Copy + Default>(&self, from: *const T, len: usize) -> Result<Vec<T>> {
        let driver = self.begin()?;
        let stream = self.stream();
        let mut values = vec![T::default(); len];
        let (to, bytes) = (address(values.as_mut_ptr()), len * size_of::<T>());
        // SAFETY: both ranges have this size, and the host's stays until the stream is done.
        unsafe {
            driver
                .cuMemcpyAsync(to, address(from), bytes, stream)
                .and_then(|()| driver.cuStreamSynchronize(stream))
        }
        .map_err(from_hip)?;
        Ok(values)
    }
}

/// Lets cuBLAS read scalars on the host, whatever the caller's mode is, until it is dropped.
pub(crate) struct HostScalars<'a>(Option<&'a Handle>);

impl<'a> HostScalars<'a> {
    pub(crate) fn new(handle: &'a Handle) -> Result<Self> {
        if handle.scalars_on_host() {
            return Ok(Self(None));
        }
        // SAFETY: a live handle, and the number of the host's mode.
        unsafe { cublasSetPointerMode_v2(handle.cublas, 0) }?;
        Ok(Self(Some(handle)))
    }
}

impl Drop for HostScalars<'_> {
    fn drop(&mut self) {
        if let Some(handle) = self.0 {
            // SAFETY: as above, with the device's mode. A failure leaves nothing to do.
            let _ = unsafe { cublasSetPointerMode_v2(handle.cublas, 1) };
        }
    }
}

unsafe extern "C" fn rocblas_create_handle(out: *mut rocblas_handle) -> Status {
    entry(|| {
        if out.is_null() {
            return Err(Status::rocblas_status_invalid_pointer);
        }
        device::here().map_err(from_hip)?;
        let device = device::current().map_err(from_hip)?;
        let mut cublas = ptr::null_mut();
        // SAFETY: writes one handle to the address given.
        unsafe { cublasCreate_v2(&mut cublas) }?;
        let handle = Handle {
            cublas,
            solver: OnceLock::new(),
            scratch: OnceLock::new(),
            device,
            modes: Mutex::new(Modes {
                stream: ptr::null_mut(),
                pointers: rocblas_pointer_mode::rocblas_pointer_mode_host,
                // rocBLAS permits them until told otherwise, cuBLAS does not.
                atomics: rocblas_atomics_mode::rocblas_atomics_allowed,
            }),
            workspace: Mutex::default(),
        };
        // SAFETY: a live handle, and cuBLAS' own number.
        unsafe { cublasSetAtomicsMode(cublas, 1) }?;
        // SAFETY: not null; room for a handle by the C caller's promise.
        unsafe { out.write(Box::into_raw(Box::new(handle)).cast()) };
        Ok(())
    })
}

unsafe extern "C" fn rocblas_destroy_handle(handle: rocblas_handle) -> Status {
    entry(|| {
        // SAFETY: as the C caller promises; the reference ends before the box is taken back.
        unsafe { Handle::of(handle)? }.make_current()?;
        // SAFETY: a box of `rocblas_create_handle`, taken back once by the C caller's promise.
        let handle = unsafe { Box::from_raw(handle.cast::<Handle>()) };
        let Handle {
            cublas,
            solver,
            scratch,
            ..
        } = *handle;
        drop(solver);
        drop(scratch);
        // SAFETY: destroyed once, with the box.
        unsafe { cublasDestroy_v2(cublas) }
    })
}

unsafe extern "C" fn rocblas_set_stream(handle: rocblas_handle, stream: hipStream_t) -> Status {
    entry(|| {
        // SAFETY: as the C caller promises.
        let handle = unsafe { Handle::of(handle) }?;
        handle.make_current()?;
        if let Some(solver) = handle.solver.get() {
            solver.set_stream(stream)?;
        }
        // SAFETY: a live handle; the C caller keeps the stream as long as it is set.
        unsafe { cublasSetStream_v2(handle.cublas, stream) }?;
        handle.modes.lock().stream = stream;
        Ok(())
    })
}

unsafe extern "C" fn rocblas_get_stream(handle: rocblas_handle, out: *mut hipStream_t) -> Status {
    // SAFETY: as the C caller promises.
    entry(|| unsafe { put(out, Handle::of(handle)?.stream()) })
}

/// # Safety
/// `out` is null (refused) or valid for one write.
pub(super) unsafe fn put<T>(out: *mut T, value: T) -> Result {
    if out.is_null() {
        return Err(Status::rocblas_status_invalid_pointer);
    }
    // SAFETY: not null, so valid by this function's contract.
    unsafe { out.write(value) };
    Ok(())
}

unsafe extern "C" fn rocblas_set_pointer_mode(handle: rocblas_handle, mode: rocblas_pointer_mode) -> Status {
    entry(|| {
        // SAFETY: as the C caller promises.
        let handle = unsafe { Handle::of(handle) }?;
        // Host is 0 and device 1 in both.
        if mode.0 > 1 {
            return Err(Status::rocblas_status_invalid_value);
        }
        // SAFETY: a live handle.
        unsafe { cublasSetPointerMode_v2(handle.cublas, mode.0) }?;
        handle.modes.lock().pointers = mode;
        Ok(())
    })
}

unsafe extern "C" fn rocblas_get_pointer_mode(handle: rocblas_handle, out: *mut rocblas_pointer_mode) -> Status {
    // SAFETY: as the C caller promises.
    entry(|| unsafe { put(out, Handle::of(handle)?.modes.lock().pointers) })
}

unsafe extern "C" fn rocblas_set_atomics_mode(handle: rocblas_handle, mode: rocblas_atomics_mode) -> Status {
    entry(|| {
        // SAFETY: as the C caller promises.
        let handle = unsafe { Handle::of(handle) }?;
        // Not allowed is 0 and allowed 1 in both.
        if mode.0 > 1 {
            return Err(Status::rocblas_status_invalid_value);
        }
        // SAFETY: a live handle.
        unsafe { cublasSetAtomicsMode(handle.cublas, mode.0) }?;
        handle.modes.lock().atomics = mode;
        Ok(())
    })
}

unsafe extern "C" fn rocblas_get_atomics_mode(handle: rocblas_handle, out: *mut rocblas_atomics_mode) -> Status {
    // SAFETY: as the C caller promises.
    entry(|| unsafe { put(out, Handle::of(handle)?.modes.lock().atomics) })
}

/// cuBLAS sizes its own memory; this only waits until it has loaded its kernels.
unsafe extern "C" fn rocblas_initialize() {
    let mut handle = ptr::null_mut();
    if device::here().is_ok() {
        // SAFETY: writes one handle to the address given, and destroys it once.
        let _ = unsafe { cublasCreate_v2(&mut handle).and_then(|()| cublasDestroy_v2(handle)) };
    }
}

/// The slots of this file.
pub(crate) const fn fill(api: &mut rocblas_sys::Api) {
    api.rocblas_create_handle = Some(rocblas_create_handle);
    api.rocblas_destroy_handle = Some(rocblas_destroy_handle);
    api.rocblas_set_stream = Some(rocblas_set_stream);
    api.rocblas_get_stream = Some(rocblas_get_stream);
    api.rocblas_set_pointer_mode = Some(rocblas_set_pointer_mode);
    api.rocblas_get_pointer_mode = Some(rocblas_get_pointer_mode);
    api.rocblas_set_atomics_mode = Some(rocblas_set_atomics_mode);
    api.rocblas_get_atomics_mode = Some(rocblas_get_atomics_mode);
    api.rocblas_initialize = Some(rocblas_initialize);
}
