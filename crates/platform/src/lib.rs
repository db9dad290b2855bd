//! Selects the platform and provides its function tables.
//!
//! | platform | what it is | where its tables come from |
//! |---|---|---|
//! | [`Platform::Amd`] | the real ROCm libraries | [`rocm_loader`], HIP first, everything else from the same folder |
//! | [`Platform::Nvidia`] | the same ABI over CUDA | `hip-cuda` (feature `nvidia`); without the feature, selecting it is an error |
//! | [`Platform::Host`] | a strict software device | compiled in (feature `host`, on by default) |
//!
//! `HIPCL_PLATFORM` (`amd`, `nvidia` or `host`) selects the platform; if it is not set, `HIP_PLATFORM` does. Without
//! either, the choice is `amd` if it has a device, else `nvidia` if it has one, else `host`. [`Selection::why`] reports
//! the reason.
//!
//! Code that depends on the platform checks a fact ([`Platform::facts`]), never the name. A new platform states its
//! facts in its own file.
//!
//! ```
//! let selection = platform::select_named(Some("host"))?;
//! assert_eq!(selection.platform(), platform::Platform::Host);
//! assert!(selection.tables().rocblas.is_some());
//! # Ok::<(), platform::Error>(())
//! ```

mod error;
mod facts;
mod foreign;
mod library;
mod platforms;
mod select;

use std::sync::Arc;

pub use error::Error;
pub use facts::{DlPackNames, Facts, Install, OpenClKernels, Rivals};
pub use foreign::{ForeignHooks, ForeignKernel, ForeignKind};
pub use library::{LibraryReport, LibraryState, NEWEST_KNOWN};
pub use platforms::Platform;
pub use select::{Selection, select, select_asked, select_named, select_runtime};

/// One platform's function tables. An absent library is `None`; [`Selection::libraries`] says why.
#[derive(Clone, Debug)]
pub struct Tables {
    /// HIP runtime.
    pub hip: Arc<hip_sys::Api>,
    /// HIPRTC, the run-time compiler.
    pub rtc: Option<Arc<hip_sys::RtcApi>>,
    /// rocBLAS.
    pub rocblas: Option<Arc<rocblas_sys::Api>>,
    /// rocSOLVER.
    pub rocsolver: Option<Arc<rocsolver_sys::Api>>,
    /// HSA runtime.
    pub hsa: Option<Arc<hsa_sys::Api>>,
    /// Only where the platform is a model that must be told about memory owned by OpenCL.
    pub foreign: Option<ForeignHooks>,
}
