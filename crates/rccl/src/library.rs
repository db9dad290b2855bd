use std::ffi::CStr;
use std::fmt;
use std::sync::Arc;

use rccl_sys::{Api, ncclComm_t, ncclResult_t, ncclUniqueId};

use crate::{Error, Result};

/// RCCL's function table. Cloning is cheap.
#[derive(Clone)]
pub struct Library {
    api: Arc<Api>,
    /// The only runtime whose devices it takes, if there is one.
    runtime: Option<hip::Runtime>,
}

impl Library {
    /// Uses this function table.
    ///
    /// # Safety
    ///
    /// Every filled slot must be a function that does what RCCL's documentation says of that name, and stay callable for
    /// the rest of the process. The table, and the [`hip::Runtime`] of every device and stream that it is used with,
    /// must belong to one platform and release; [`only_for`](Self::only_for) leaves one runtime to check.
    #[must_use]
    pub unsafe fn from_tables(api: Arc<Api>) -> Self {
        Self { api, runtime: None }
    }

    /// The library for devices of this runtime only: a [`Communicator`](crate::Communicator) on another is refused. For
    /// a library passed to code that may have devices of several platforms.
    #[must_use]
    pub fn only_for(self, runtime: &hip::Runtime) -> Self {
        Self {
            runtime: Some(runtime.clone()),
            ..self
        }
    }

    /// Checks that the library accepts this device.
    pub(crate) fn check_runtime(&self, call: &'static str, device: &hip::Device) -> Result<()> {
        match &self.runtime {
            Some(own) if own != device.runtime() => Err(Error::OtherRuntime { call }),
            _ => Ok(()),
        }
    }

    /// The function table.
    #[must_use]
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// The version of the API: 22707 is 2.27.7.
    ///
    /// # Errors
    ///
    /// The library cannot tell.
    #[doc(alias = "ncclGetVersion")]
    pub fn version(&self) -> Result<i32> {
        let get = slot(self.api.ncclGetVersion, "ncclGetVersion")?;
        let mut version = 0;
        // SAFETY: writes one number to the address given.
        self.check(unsafe { get(&mut version) }, None, || "ncclGetVersion()".to_owned())?;
        Ok(version)
    }

    /// Turns a result into an error with the library's own words.
    pub(crate) fn check(
        &self,
        code: ncclResult_t,
        comm: Option<ncclComm_t>,
        call: impl FnOnce() -> String,
    ) -> Result<()> {
        match code {
            ncclResult_t::ncclSuccess => Ok(()),
            code => Err(self.failure(code, comm, call())),
        }
    }

    #[cold]
    fn failure(&self, code: ncclResult_t, comm: Option<ncclComm_t>, call: String) -> Error {
        let text = self.api.ncclGetLastError.map(|get| {
            // SAFETY: takes a living communicator or none, and returns null or a text that lasts until a later call.
            let text = unsafe { get(comm.unwrap_or(std::ptr::null_mut())) };
            match text.is_null() {
                true => String::new(),
                // SAFETY: as above; it ends with a null byte.
                false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
            }
        });
        // One line, whatever the library writes.
        let text = text
            .unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        Error::Status {
            call,
            name: code.name().unwrap_or("ncclResult_t of a newer release"),
            code: code.0,
            text: if text.is_empty() { text } else { format!(": {text}") },
        }
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").field("api", &self.api).finish()
    }
}

/// The function in a slot, or the error that names it.
pub(crate) fn slot<F>(function: Option<F>, symbol: &'static str) -> Result<F> {
    function.ok_or(Error::MissingSymbol { symbol })
}

/// By what ranks find each other: one makes it and gives it to the others, in any way that moves 128 bytes.
#[doc(alias = "ncclUniqueId")]
#[derive(Clone, Copy)]
pub struct UniqueId(pub(crate) ncclUniqueId);

impl UniqueId {
    /// Bytes of an id.
    pub const BYTES: usize = rccl_sys::NCCL_UNIQUE_ID_BYTES as usize;

    /// A new one, for one communicator.
    ///
    /// # Errors
    ///
    /// The library found no way by which others could reach it.
    #[doc(alias = "ncclGetUniqueId")]
    pub fn new(library: &Library) -> Result<Self> {
        let get = slot(library.api.ncclGetUniqueId, "ncclGetUniqueId")?;
        let mut id = ncclUniqueId::default();
        // SAFETY: writes one id to the address given.
        library.check(unsafe { get(&mut id) }, None, || "ncclGetUniqueId()".to_owned())?;
        Ok(Self(id))
    }

    /// To send it.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        self.0.internal.map(|byte| byte.cast_unsigned())
    }

    /// As it was received. Bytes that are no id make [`Communicator::new`](crate::Communicator::new) fail, or wait for
    /// ranks that never come.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(ncclUniqueId {
            internal: bytes.map(u8::cast_signed),
        })
    }
}

impl fmt::Debug for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UniqueId").finish_non_exhaustive()
    }
}
