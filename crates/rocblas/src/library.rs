use std::ffi::{CStr, c_char};
use std::fmt;
use std::sync::Arc;

use crate::call::{check, slot};
use crate::{Error, Result};

/// The function tables of rocBLAS and, if present, rocSOLVER. Cloning is cheap.
#[derive(Clone)]
pub struct Library {
    rocblas: Arc<rocblas_sys::Api>,
    rocsolver: Option<Arc<rocsolver_sys::Api>>,
    /// The only runtime whose streams it takes, if there is one.
    runtime: Option<hip::Runtime>,
}

impl Library {
    /// Uses these function tables.
    ///
    /// # Safety
    ///
    /// Every filled slot must be a function that does what rocBLAS's or rocSOLVER's documentation says of that name,
    /// and stay callable for the rest of the process. Both tables, and the [`hip::Runtime`] of every stream that a
    /// handle of this library is made for, must belong to one platform and release; [`only_for`](Self::only_for) leaves
    /// one runtime to check.
    #[must_use]
    pub unsafe fn from_tables(rocblas: Arc<rocblas_sys::Api>, rocsolver: Option<Arc<rocsolver_sys::Api>>) -> Self {
        Self {
            rocblas,
            rocsolver,
            runtime: None,
        }
    }

    /// The library for streams of this runtime only: a [`Handle`](crate::Handle) is refused for any other. For a
    /// library passed to code that may have streams of several platforms.
    #[must_use]
    pub fn only_for(self, runtime: &hip::Runtime) -> Self {
        Self {
            runtime: Some(runtime.clone()),
            ..self
        }
    }

    /// Checks that the library accepts streams of this runtime.
    pub(crate) fn check_runtime(&self, call: &'static str, runtime: &hip::Runtime) -> Result<()> {
        match &self.runtime {
            Some(own) if own != runtime => Err(Error::OtherRuntime { call }),
            _ => Ok(()),
        }
    }

    /// rocBLAS's function table.
    #[must_use]
    pub fn api(&self) -> &rocblas_sys::Api {
        &self.rocblas
    }

    /// rocSOLVER's function table, if there is one.
    #[must_use]
    pub fn solver_api(&self) -> Option<&rocsolver_sys::Api> {
        self.rocsolver.as_deref()
    }

    /// rocBLAS's version text, such as `4.2.4.abcdef`.
    ///
    /// # Errors
    ///
    /// The library cannot tell.
    #[doc(alias = "rocblas_get_version_string")]
    pub fn version(&self) -> Result<String> {
        let size = slot(
            self.rocblas.rocblas_get_version_string_size,
            "rocblas_get_version_string_size",
        )?;
        let text = slot(self.rocblas.rocblas_get_version_string, "rocblas_get_version_string")?;
        let mut len = 0;
        // SAFETY: writes one size to the address given.
        check(unsafe { size(&mut len) }, || {
            "rocblas_get_version_string_size()".to_owned()
        })?;
        // One more than announced: whether the size counts the terminator differs between releases.
        let mut bytes = vec![0_u8; len + 1];
        // SAFETY: writes at most as many bytes as it is told there are.
        let status = unsafe { text(bytes.as_mut_ptr().cast::<c_char>(), bytes.len()) };
        check(status, || "rocblas_get_version_string()".to_owned())?;
        let text = CStr::from_bytes_until_nul(&bytes).map_err(|_| Error::Answer {
            call: "rocblas_get_version_string",
            answer: bytes.len() as i64,
        })?;
        Ok(text.to_string_lossy().into_owned())
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library")
            .field("solver", &self.rocsolver.is_some())
            .finish_non_exhaustive()
    }
}
