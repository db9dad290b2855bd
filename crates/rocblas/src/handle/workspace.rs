use std::cell::Cell;
use std::sync::Arc;

use hip::DeviceBuffer;

use super::Handle;
use crate::call::{check, slot};
use crate::{Error, Result};

/// In bytes: as HIP allocates memory. rocBLAS lays arrays of every type from its workspace's begin on.
const WORKSPACE_ALIGNMENT: usize = 256;

/// The memory that rocBLAS needs for intermediate results. The library manages it unless the caller sets some.
impl Handle {
    /// Makes rocBLAS use only this memory for its intermediate results. Calls for which it is too small fail with
    /// `rocblas_status_memory_error`, or run slower and log that. It begins at a multiple of 256 bytes, as memory that
    /// HIP allocates does.
    ///
    /// Returns the previous memory, which calls may still be using: it waits for them when dropped. `None` if there was
    /// none, or if a captured graph keeps it.
    ///
    /// # Errors
    ///
    /// The memory belongs to another device or begins at another address, or rocBLAS refused. The memory in use stays in use, and the error returns
    /// the new one.
    #[doc(alias = "rocblas_set_workspace")]
    #[expect(
        clippy::result_large_err,
        reason = "the owner comes back, and is as large as an owner is"
    )]
    pub fn set_workspace(
        &mut self,
        mut memory: DeviceBuffer<u8>,
    ) -> Result<Option<DeviceBuffer<u8>>, (Error, DeviceBuffer<u8>)> {
        let bytes = memory.len();
        // Also makes the memory's record say that the stream uses it, from now on.
        let address = match memory.on_mut(self.stream()) {
            Ok(mut slice) => slice.as_mut_ptr(),
            Err(error) => return Err((error.into(), memory)),
        };
        if bytes > 0 && !address.addr().is_multiple_of(WORKSPACE_ALIGNMENT) {
            return Err((
                Error::WorkspaceAlignment {
                    address: address.addr(),
                },
                memory,
            ));
        }
        match self.tell_workspace(address, bytes) {
            Ok(()) => Ok(self.workspace.replace(Arc::new(memory)).and_then(Arc::into_inner)),
            Err(error) => Err((error, memory)),
        }
    }

    /// Lets rocBLAS manage its memory itself again: it has none until a call needs some. Returns what
    /// [`Handle::set_workspace`] set, unless a captured graph keeps it.
    ///
    /// # Errors
    ///
    /// rocBLAS refused; what was in use stays in use.
    #[doc(alias = "rocblas_set_workspace")]
    pub fn take_workspace(&mut self) -> Result<Option<DeviceBuffer<u8>>> {
        self.tell_workspace(std::ptr::null_mut(), 0)?;
        Ok(self.workspace.take().and_then(Arc::into_inner))
    }

    /// The bytes that rocBLAS has for intermediate results.
    ///
    /// # Errors
    ///
    /// rocBLAS cannot tell.
    #[doc(alias = "rocblas_get_device_memory_size")]
    pub fn workspace_bytes(&self) -> Result<usize> {
        let get = slot(
            self.library().api().rocblas_get_device_memory_size,
            "rocblas_get_device_memory_size",
        )?;
        let mut bytes = 0;
        // SAFETY: the handle is alive; writes one size to the address given.
        check(unsafe { get(self.raw(), &mut bytes) }, || {
            "rocblas_get_device_memory_size()".to_owned()
        })?;
        Ok(bytes)
    }

    /// The bytes of workspace that the calls made by `calls` would need: the maximum over the calls. The calls compute
    /// nothing: the numbers they return are meaningless, and factors and inverses can only be used by further calls
    /// inside `calls`. Elsewhere they are [`Error::NotComputed`].
    ///
    /// # Errors
    ///
    /// rocBLAS refused, or `calls` returned an error. Nested queries are refused by rocBLAS.
    #[doc(alias("rocblas_start_device_memory_size_query", "rocblas_stop_device_memory_size_query"))]
    pub fn workspace_needed<'h>(&'h self, calls: impl FnOnce(&'h Self) -> Result<()>) -> Result<usize> {
        let api = self.library().api();
        let start = slot(
            api.rocblas_start_device_memory_size_query,
            "rocblas_start_device_memory_size_query",
        )?;
        slot(
            api.rocblas_stop_device_memory_size_query,
            "rocblas_stop_device_memory_size_query",
        )?;
        // SAFETY: the handle is alive.
        check(unsafe { start(self.raw()) }, || {
            "rocblas_start_device_memory_size_query()".to_owned()
        })?;
        let query = Query {
            handle: self,
            open: Cell::new(true),
        };
        self.asking.set(true);
        calls(self)?;
        query.stop()
    }

    /// Whether calls only query their workspace size.
    pub(crate) fn is_asking(&self) -> bool {
        self.asking.get()
    }

    fn tell_workspace(&self, address: *mut u8, bytes: usize) -> Result<()> {
        let set = slot(self.library().api().rocblas_set_workspace, "rocblas_set_workspace")?;
        self.on_own_stream()?;
        // The library frees its own memory, which does not wait.
        self.stream().device().make_current()?;
        // SAFETY: the handle is alive. The memory is as large as told, the handle's stream may use it, and the handle
        // keeps it until the library is told of another one.
        check(unsafe { set(self.raw(), address.cast(), bytes) }, || {
            format!("rocblas_set_workspace({bytes} bytes)")
        })
    }
}

/// A size query that is ended in any case.
struct Query<'a> {
    handle: &'a Handle,
    open: Cell<bool>,
}

impl Query<'_> {
    fn stop(&self) -> Result<usize> {
        self.open.set(false);
        self.handle.asking.set(false);
        let stop = slot(
            self.handle.library().api().rocblas_stop_device_memory_size_query,
            "rocblas_stop_device_memory_size_query",
        )?;
        let mut bytes = 0;
        // SAFETY: the handle is alive; writes one size to the address given.
        check(unsafe { stop(self.handle.raw(), &mut bytes) }, || {
            "rocblas_stop_device_memory_size_query()".to_owned()
        })?;
        Ok(bytes)
    }
}

impl Drop for Query<'_> {
    fn drop(&mut self) {
        // Of two errors the caller has the first already.
        if self.open.get() {
            let _ = self.stop();
        }
    }
}
