//! Calls on one stream, and what they share.

mod integers;
mod workspace;

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::{fmt, ptr};

use hip::{DeviceBuffer, Stream};
pub(crate) use integers::{InfoPool, Integers};
use rocblas_sys::{rocblas_atomics_mode, rocblas_handle, rocblas_pointer_mode, rocblas_status};

use crate::call::{Accepted, check, slot};
use crate::{Error, Library, Result, report};

/// rocBLAS and rocSOLVER on one stream.
///
/// Its calls on one stream share a workspace, so it keeps its stream for life. It can move to another thread, but two
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
    /// The mode last set in the library; *host* between calls, unless resetting it failed.
    pointer_mode: Cell<rocblas_pointer_mode>,
    /// The memory set by `set_workspace`; dropped after the handle.
    pub(crate) workspace: Option<Arc<DeviceBuffer<u8>>>,
    pub(crate) infos: InfoPool,
    /// Between the start and stop of a size query: calls compute nothing.
    pub(crate) asking: Cell<bool>,
    /// Whether the library uses the recording stream of [`Handle::capture`].
    recording: Cell<bool>,
    /// Whether a call failed that was recorded, and may have left a part of its work in the graph.
    spoiled: Cell<bool>,
    /// Whether resetting the handle's own stream after a capture failed: the stream that the library knows is gone.
    astray: Cell<bool>,
    /// "The rocBLAS handle contains allocated device memory which must not be shared by multiple asynchronous streams
    /// at the same time", and its state is not locked: not `Sync`.
    one_thread_at_a_time: PhantomData<Cell<()>>,
}

// SAFETY: rocBLAS keeps no thread in a handle: it "never sets a device, it only queries", and every call here makes the
// stream's device current on its own thread first.
unsafe impl Send for Handle {}

impl Handle {
    /// A handle whose calls run on `stream`: pointer mode host, atomics not allowed.
    ///
    /// # Errors
    ///
    /// [`Error::OtherRuntime`] if the library is [only for](Library::only_for) another runtime than the stream's;
    /// rocBLAS could not create or set it up. Nothing is left behind then.
    #[doc(alias(
        "rocblas_create_handle",
        "rocblas_set_stream",
        "rocblas_set_pointer_mode",
        "rocblas_set_atomics_mode"
    ))]
    pub fn new(library: &Library, stream: &Stream) -> Result<Self> {
        library.check_runtime("Handle::new", stream.device().runtime())?;
        let api = library.api();
        let create = slot(api.rocblas_create_handle, "rocblas_create_handle")?;
        slot(api.rocblas_set_stream, "rocblas_set_stream")?;
        slot(api.rocblas_destroy_handle, "rocblas_destroy_handle")?;
        stream.device().make_current()?;
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle to the address given.
        check(unsafe { create(&mut raw) }, || {
            format!("rocblas_create_handle(device {})", stream.device().ordinal())
        })?;
        let handle = Self {
            library: library.clone(),
            stream: stream.clone(),
            raw,
            // That it is not known makes the line below set it.
            pointer_mode: Cell::new(rocblas_pointer_mode(u32::MAX)),
            workspace: None,
            infos: InfoPool::default(),
            asking: Cell::new(false),
            recording: Cell::new(false),
            spoiled: Cell::new(false),
            astray: Cell::new(false),
            one_thread_at_a_time: PhantomData,
        };
        // SAFETY: the handle keeps the stream alive.
        unsafe { handle.set_stream(stream.raw()) }?;
        handle.set_pointer_mode(rocblas_pointer_mode::rocblas_pointer_mode_host)?;
        handle.allow_atomics(false)?;
        Ok(handle)
    }

    /// Whether rocBLAS may use atomics. Without them, the default here, equal calls yield equal bits.
    ///
    /// # Errors
    ///
    /// rocBLAS refused.
    #[doc(alias = "rocblas_get_atomics_mode")]
    pub fn atomics_allowed(&self) -> Result<bool> {
        let get = slot(self.library.api().rocblas_get_atomics_mode, "rocblas_get_atomics_mode")?;
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
        let set = slot(self.library.api().rocblas_set_atomics_mode, "rocblas_set_atomics_mode")?;
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

    /// Captures the calls that `work` makes with this handle, and whatever else it queues on the handle's stream,
    /// instead of running them: [`Stream::capture`] for rocBLAS, which needs the recording stream.
    ///
    /// The result of a captured call exists after a run of the graph, not before. So a call whose result is more than
    /// memory contents is refused with [`Error::Captured`]: factorisations and inverses, and reductions to the host.
    /// Which calls rocBLAS can capture depends on its release.
    ///
    /// The graph uses the handle's workspace: keep the handle alive during a run, and order its other calls with it.
    /// rocBLAS replaces a workspace of its own as soon as a call needs a larger one, and frees what the graph would use.
    /// So set one before the capture ([`set_workspace`](Self::set_workspace)), large enough for all calls. The graph
    /// keeps it, and the pivots of the factors that captured solvers use.
    ///
    /// # Errors
    ///
    /// The error from `work`, or the HIP error if the capture was invalidated; nothing is kept, and handle and stream
    /// remain usable. [`Error::Captured`] if a call failed inside the library, although `work` returned no error: a part
    /// of its work may be recorded. [`Error::NotComputed`] inside [`workspace_needed`](Self::workspace_needed), where no call makes a
    /// node.
    #[doc(alias("hipStreamBeginCapture", "rocblas_set_stream"))]
    pub fn capture<'h>(&'h self, work: impl FnOnce(&'h Self) -> Result<()>) -> Result<hip::Graph> {
        if self.is_asking() {
            return Err(crate::Error::NotComputed {
                call: "capture",
                what: "the graph",
            });
        }
        let own = self.stream.raw();
        self.stream.capture_told(
            |stream| {
                // SAFETY: `capture_told` tells a stream of the same device that lives until the next is told, which is
                // the handle's own at last.
                let told = unsafe { self.set_stream(stream) };
                match &told {
                    Ok(()) => {
                        self.recording.set(stream != own);
                        self.astray.set(false);
                    }
                    Err(_) if stream == own => {
                        self.recording.set(false);
                        self.astray.set(true);
                    }
                    Err(_) => {}
                }
                told
            },
            |_| {
                self.spoiled.set(false);
                if let Some(workspace) = &self.workspace {
                    self.stream.keep_if_recording(workspace);
                }
                work(self)?;
                if self.spoiled.get() {
                    return Err(Error::Captured {
                        call: "a call that failed",
                        reason: "a part of its work may be in the graph; return the call's error, which says why it failed",
                    });
                }
                Ok(())
            },
        )
    }

    /// # Safety
    ///
    /// A stream of the handle's device that lives until another one is set.
    unsafe fn set_stream<S>(&self, stream: *mut S) -> Result<()> {
        let set = slot(self.library.api().rocblas_set_stream, "rocblas_set_stream")?;
        self.stream.device().make_current()?;
        // SAFETY: the handle is alive and the caller vouches for the stream. The library's maker vouched that both are
        // of one platform, or the library is only for the stream's runtime.
        check(unsafe { set(self.raw, stream.cast()) }, || {
            format!("rocblas_set_stream({stream:?})")
        })
    }

    /// Sets the handle's own stream in the library again, if the end of a capture could not.
    #[inline]
    pub(crate) fn on_own_stream(&self) -> Result<()> {
        if self.astray.get() {
            // SAFETY: the handle keeps the stream alive.
            unsafe { self.set_stream(self.stream.raw()) }?;
            self.astray.set(false);
        }
        Ok(())
    }

    /// Refuses calls that a capture of their stream would miss, because the library does not know about it, and calls
    /// on a stream whose owner captures it.
    #[inline]
    pub(crate) fn follows(&self) -> Result<()> {
        self.on_own_stream()?;
        self.stream.check_uncaptured()?;
        if self.stream.is_recording() && !self.recording.get() {
            return Err(Error::Captured {
                call: "a call of this rocBLAS handle",
                reason: "the library does not follow `Stream::capture`; use `Handle::capture`",
            });
        }
        Ok(())
    }

    /// Whether the library copies to the host on the null stream, which does not wait for non-blocking streams. rocBLAS
    /// does so before 4.1 (ROCm 6.1), the release that also brought the `_64` functions of level 1.
    pub(crate) fn copies_out_of_order(&self) -> bool {
        self.library.api().rocblas_sdot_64.is_none()
    }

    /// Before the library copies a number from device memory to the host itself.
    ///
    /// If it does so [out of order](Self::copies_out_of_order) (library/src/blas3/Tensile/gemm.hpp at the tag
    /// rocm-6.0.0), the work that makes the number has to be done by then.
    ///
    /// A captured call is refused: the copy would become a node of the graph that writes to the library's stack, which
    /// is gone when the graph runs (library/src/blas3/rocblas_gemm.hpp).
    pub(crate) fn before_fetch(&self, call: &'static str) -> Result<()> {
        if self.stream.is_capturing() {
            return Err(Error::Captured {
                call,
                reason: "rocBLAS fetches a factor in device memory while it is called; pass it from the host",
            });
        }
        if self.copies_out_of_order() {
            self.stream.synchronize()?;
        }
        Ok(())
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

    /// Calls into the library: with the stream's device current, in this pointer mode, which is *host* again after it.
    pub(crate) fn submit(
        &self,
        mode: rocblas_pointer_mode,
        call: impl FnOnce() -> rocblas_status,
    ) -> Result<rocblas_status> {
        self.follows()?;
        self.stream.device().make_current()?;
        self.set_pointer_mode(mode)?;
        let status = call();
        let restored = self.set_pointer_mode(rocblas_pointer_mode::rocblas_pointer_mode_host);
        // What the call itself has to say comes first.
        if status == rocblas_status::rocblas_status_success && restored.is_err() {
            // Its work is in the graph, and the caller is told that it failed.
            self.spoiled.set(self.recording.get());
            restored?;
        }
        Ok(status)
    }

    /// Turns the status of a computing call into a result. The text is only formatted on failure.
    ///
    /// A size-query status is a success inside [`Handle::workspace_needed`], where nothing is computed. Anywhere else
    /// other code has left the library in size-query mode, and the call has no result.
    #[inline]
    pub(crate) fn accept(&self, status: rocblas_status, call: impl FnOnce() -> String) -> Result<Accepted> {
        match status {
            rocblas_status::rocblas_status_size_increased | rocblas_status::rocblas_status_size_unchanged
                if self.is_asking() =>
            {
                report::accepted(call);
                Ok(Accepted::Sized)
            }
            // Less workspace than wished for; the result is right.
            rocblas_status::rocblas_status_perf_degraded => {
                report::degraded(&call());
                Ok(Accepted::Queued)
            }
            status => {
                let accepted = check(status, call);
                if accepted.is_err() && self.recording.get() {
                    self.spoiled.set(true);
                }
                accepted.map(|()| Accepted::Queued)
            }
        }
    }

    #[inline]
    fn set_pointer_mode(&self, mode: rocblas_pointer_mode) -> Result<()> {
        if self.pointer_mode.get() == mode {
            return Ok(());
        }
        let set = slot(self.library.api().rocblas_set_pointer_mode, "rocblas_set_pointer_mode")?;
        // SAFETY: the handle is alive, the mode is one of the library's.
        check(unsafe { set(self.raw, mode) }, || {
            format!("rocblas_set_pointer_mode({mode:?})")
        })?;
        self.pointer_mode.set(mode);
        Ok(())
    }

    fn destroy(&self) -> Result<()> {
        let destroy = slot(self.library.api().rocblas_destroy_handle, "rocblas_destroy_handle")?;
        self.stream.device().make_current()?;
        // SAFETY: the handle is alive, this is its last use, and no call of it still runs.
        check(unsafe { destroy(self.raw) }, || "rocblas_destroy_handle()".to_owned())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let runtime = self.stream.device().runtime();
        // The workspace goes with the handle, so what uses it has to be done. The library looks at its stream then.
        if !self.stream.settle() || self.on_own_stream().is_err() {
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
