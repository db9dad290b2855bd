use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use hip::{DeviceBuffer, Stream};
use rocblas_sys::{rocblas_atomics_mode, rocblas_handle, rocblas_pointer_mode, rocblas_status};

use crate::call::{check, slot};
use crate::solver::InfoPool;
use crate::{Error, Library, Result, report};

/// rocBLAS and rocSOLVER on one stream.
///
/// It has a workspace that calls in one stream share, so it keeps its stream for life. It can move to another thread, but two
/// threads cannot use it at once: make a handle for each.
///
/// ```compile_fail,E0277
/// fn share(blas: &rocblas::Handle) {
///     std::thread::scope(|scope| drop(scope.spawn(|| blas.stream().synchronize())));
/// }
/// ```
#[doc(alias = "rocblas_handle")]
pub struct Handle {
    library: Library,
    stream: Stream,
    raw: rocblas_handle,
    /// What the library was last told; *host* between calls, unless setting it back failed.
    pointer_mode: Cell<rocblas_pointer_mode>,
    /// What the library was given by `set_workspace`; goes after the handle.
    pub(crate) workspace: Option<DeviceBuffer<u8>>,
    pub(crate) infos: InfoPool,
    /// "The rocBLAS handle contains allocated device memory which must not be shared by multiple asynchronous streams at the
    /// same time", and its state is not locked: not `Sync`.
    one_thread_at_a_time: PhantomData<Cell<()>>,
}

// SAFETY: rocBLAS keeps no thread in a handle: it "never sets a device, it only queries", and every call here makes the stream's
// device current on its own thread first.
unsafe impl Send for Handle {}

impl Handle {
    /// A handle whose calls run on `stream`: pointer mode host, atomics not allowed.
    ///
    /// # Errors
    ///
    /// rocBLAS could not create or set it up; nothing stays behind then.
    #[doc(alias(
        "rocblas_create_handle",
        "rocblas_set_stream",
        "rocblas_set_pointer_mode",
        "rocblas_set_atomics_mode"
    ))]
    pub fn new(library: &Library, stream: &Stream) -> Result<Self> {
        let api = library.api();
        let create = slot(api.rocblas_create_handle, "rocblas_create_handle")?;
        let set_stream = slot(api.rocblas_set_stream, "rocblas_set_stream")?;
        slot(api.rocblas_destroy_handle, "rocblas_destroy_handle")?;
        stream.device().make_current()?;
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle to the address given.
        check(unsafe { create(&mut raw) }, || {
            format!(
                "rocblas_create_handle(device {})",
                stream.device().ordinal()
            )
        })?;
        let handle = Self {
            library: library.clone(),
            stream: stream.clone(),
            raw,
            // That it is not known makes the line below set it.
            pointer_mode: Cell::new(rocblas_pointer_mode(u32::MAX)),
            workspace: None,
            infos: InfoPool::default(),
            one_thread_at_a_time: PhantomData,
        };
        // SAFETY: handle and stream are alive and of one device; the handle keeps the stream alive. The library's maker vouched
        // that both are of one platform.
        let status = unsafe { set_stream(raw, stream.raw().cast()) };
        check(status, || format!("rocblas_set_stream({:?})", stream.raw()))?;
        handle.set_pointer_mode(rocblas_pointer_mode::rocblas_pointer_mode_host)?;
        handle.allow_atomics(false)?;
        Ok(handle)
    }

    /// Whether rocBLAS may use atomics. Without them, as is the default here, equal calls give equal bits.
    ///
    /// # Errors
    ///
    /// rocBLAS refused.
    #[doc(alias = "rocblas_get_atomics_mode")]
    pub fn atomics_allowed(&self) -> Result<bool> {
        let get = slot(
            self.library.api().rocblas_get_atomics_mode,
            "rocblas_get_atomics_mode",
        )?;
        let mut mode = rocblas_atomics_mode::rocblas_atomics_not_allowed;
        // SAFETY: the handle is alive; writes one mode to the address given.
        check(unsafe { get(self.raw, &mut mode) }, || {
            "rocblas_get_atomics_mode()".to_owned()
        })?;
        Ok(mode != rocblas_atomics_mode::rocblas_atomics_not_allowed)
    }

    /// Lets rocBLAS use atomics where they are faster. Two equal calls may then differ in their last bits.
    ///
    /// # Errors
    ///
    /// rocBLAS refused.
    #[doc(alias = "rocblas_set_atomics_mode")]
    pub fn allow_atomics(&self, allowed: bool) -> Result<()> {
        let set = slot(
            self.library.api().rocblas_set_atomics_mode,
            "rocblas_set_atomics_mode",
        )?;
        let mode = if allowed {
            rocblas_atomics_mode::rocblas_atomics_allowed
        } else {
            rocblas_atomics_mode::rocblas_atomics_not_allowed
        };
        // SAFETY: the handle is alive, the mode is one of the library's.
        check(unsafe { set(self.raw, mode) }, || {
            format!("rocblas_set_atomics_mode({mode:?})")
        })
    }

    /// The stream its calls run on.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The library it belongs to.
    #[must_use]
    #[inline]
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// The C handle, valid while this one lives. Its stream and pointer mode must stay as they are.
    #[must_use]
    #[inline]
    pub fn raw(&self) -> rocblas_handle {
        self.raw
    }

    /// Refuses an argument that was taken for another stream.
    #[inline]
    pub(crate) fn check_stream(
        &self,
        call: &'static str,
        argument: &'static str,
        stream: &Stream,
    ) -> Result<()> {
        if *stream == self.stream {
            Ok(())
        } else {
            Err(Error::WrongStream { call, argument })
        }
    }

    /// Calls into the library: with the stream's device current, in this pointer mode, which is *host* again after it.
    pub(crate) fn submit(
        &self,
        mode: rocblas_pointer_mode,
        call: impl FnOnce() -> rocblas_status,
    ) -> Result<rocblas_status> {
        self.stream.device().make_current()?;
        self.set_pointer_mode(mode)?;
        let status = call();
        let restored = self.set_pointer_mode(rocblas_pointer_mode::rocblas_pointer_mode_host);
        // What the call itself has to say comes first.
        if status == rocblas_status::rocblas_status_success {
            restored?;
        }
        Ok(status)
    }

    #[inline]
    fn set_pointer_mode(&self, mode: rocblas_pointer_mode) -> Result<()> {
        if self.pointer_mode.get() == mode {
            return Ok(());
        }
        let set = slot(
            self.library.api().rocblas_set_pointer_mode,
            "rocblas_set_pointer_mode",
        )?;
        // SAFETY: the handle is alive, the mode is one of the library's.
        check(unsafe { set(self.raw, mode) }, || {
            format!("rocblas_set_pointer_mode({mode:?})")
        })?;
        self.pointer_mode.set(mode);
        Ok(())
    }

    fn destroy(&self) -> Result<()> {
        let destroy = slot(
            self.library.api().rocblas_destroy_handle,
            "rocblas_destroy_handle",
        )?;
        self.stream.device().make_current()?;
        // SAFETY: the handle is alive, this is its last use, and no call of it still runs.
        check(unsafe { destroy(self.raw) }, || {
            "rocblas_destroy_handle()".to_owned()
        })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let runtime = self.stream.device().runtime();
        // The workspace goes with the handle, so what uses it has to be done.
        if !self.stream.settle() {
            report::leaked_handle();
            return;
        }
        match self.destroy() {
            Ok(()) => {}
            Err(Error::Hip(error)) => runtime.defer(error),
            Err(Error::Status {
                call,
                name,
                code,
                remedy,
            }) => {
                runtime.defer(hip::Error::Call {
                    call,
                    name,
                    code: code.into(),
                    remedy: remedy.to_owned(),
                });
            }
            Err(error) => report::while_dropping(&error),
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("stream", &self.stream)
            .field("raw", &self.raw)
            .finish_non_exhaustive()
    }
}
