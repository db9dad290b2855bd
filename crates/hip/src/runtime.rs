use std::any::Any;
use std::fmt;
use std::sync::Arc;

use hip_sys::hipError_t;
use parking_lot::Mutex;

use crate::call::{call, code};
use crate::deferred::Deferred;
use crate::error::remedy;
use crate::{Error, Result};

/// A HIP library in use: its function table, and the compiler's. Cloning is cheap.
///
/// Objects of two runtimes do not mix, even if both use the same library: use one runtime per process, and clone it.
#[derive(Clone)]
pub struct Runtime {
    shared: Arc<Shared>,
}

struct Shared {
    hip: Arc<hip_sys::Api>,
    /// Or why there is no compiler.
    rtc: Result<Arc<hip_sys::RtcApi>, String>,
    deferred: Deferred,
    /// See [`Runtime::keep`].
    kept: Mutex<Vec<Box<dyn Any + Send + Sync>>>,
}

/// The versions that the library and the driver report.
///
/// HIP's numbers are not reliable across releases (ROCm/hip issues 3703 and 3881); decide by the functions present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// `hipRuntimeGetVersion`: major x 10,000,000 + minor x 100,000 + patch.
    pub runtime: i32,
    /// `hipDriverGetVersion`.
    pub driver: i32,
}

impl Runtime {
    /// Finds and opens AMD's HIP library and its compiler (`HIPCL_HIP_LIBRARY`, `$ROCM_PATH`, versioned names, the
    /// installations in `/opt`, Python's wheels).
    ///
    /// # Errors
    ///
    /// [`Error::Library`] names every path that was tried. A missing *compiler* is no error here: [`Error::NoCompiler`]
    /// is returned when it is needed.
    pub fn load() -> Result<Self> {
        let (hip, library) = hip_sys::Api::load()?;
        let rtc = hip_sys::RtcApi::load_beside(&library);
        let rtc = rtc.map(|(rtc, _)| Arc::new(rtc)).map_err(|error| error.to_string());
        // SAFETY: both tables were resolved from AMD's libraries, which stay open and lie in one folder, hence of one
        // release.
        unsafe { Self::start(Arc::new(hip), rtc) }
    }

    /// Uses these function tables.
    ///
    /// # Safety
    ///
    /// Every filled slot must be a function that does what HIP's documentation says of that name, stay callable for
    /// the rest of the process, and belong to the same implementation as the others.
    ///
    /// # Errors
    ///
    /// `hipInit` failed.
    #[doc(alias = "hipInit")]
    pub unsafe fn from_tables(hip: Arc<hip_sys::Api>, rtc: Option<Arc<hip_sys::RtcApi>>) -> Result<Self> {
        let missing = || "no HIPRTC library is loaded; install hiprtc of the same ROCm release as HIP".to_owned();
        // SAFETY: the caller's promise is the callee's demand.
        unsafe { Self::start(hip, rtc.ok_or_else(missing)) }
    }

    /// # Safety
    ///
    /// As [`Runtime::from_tables`].
    unsafe fn start(hip: Arc<hip_sys::Api>, rtc: Result<Arc<hip_sys::RtcApi>, String>) -> Result<Self> {
        let runtime = Self {
            shared: Arc::new(Shared {
                hip,
                rtc,
                deferred: Deferred::default(),
                kept: Mutex::default(),
            }),
        };
        if runtime.api().hipInit.is_some() {
            // SAFETY: `hipInit` takes no pointers; the only flags value is 0.
            unsafe { call!(runtime, hipInit(0), "hipInit(0)") }?;
        }
        Ok(runtime)
    }

    /// The versions of library and driver.
    ///
    /// # Errors
    ///
    /// The library cannot report it.
    #[doc(alias("hipRuntimeGetVersion", "hipDriverGetVersion"))]
    pub fn versions(&self) -> Result<Versions> {
        let (mut runtime, mut driver) = (0, 0);
        // SAFETY: both write one int to the address given.
        unsafe {
            call!(self, hipRuntimeGetVersion(&mut runtime), "hipRuntimeGetVersion()")?;
            call!(self, hipDriverGetVersion(&mut driver), "hipDriverGetVersion()")?;
        }
        Ok(Versions { runtime, driver })
    }

    /// How many devices are visible. None is 0, not an error.
    ///
    /// # Errors
    ///
    /// Counting failed for another reason than that there are none.
    #[doc(alias = "hipGetDeviceCount")]
    pub fn device_count(&self) -> Result<usize> {
        let mut count = 0;
        // SAFETY: writes one int to the address given.
        match unsafe { code!(self, hipGetDeviceCount(&mut count)) }? {
            hipError_t::hipSuccess => Ok(usize::try_from(count).unwrap_or(0)),
            hipError_t::hipErrorNoDevice => {
                self.forget_last_error();
                Ok(0)
            }
            code => Err(self.failure(code, "hipGetDeviceCount()".to_owned())),
        }
    }

    /// The function table.
    #[must_use]
    pub fn api(&self) -> &hip_sys::Api {
        &self.shared.hip
    }

    /// The compiler's function table, if there is one.
    #[must_use]
    pub fn rtc_api(&self) -> Option<&hip_sys::RtcApi> {
        self.compiler().ok()
    }

    pub(crate) fn compiler(&self) -> Result<&hip_sys::RtcApi, &str> {
        match &self.shared.rtc {
            Ok(rtc) => Ok(rtc),
            Err(reason) => Err(reason),
        }
    }

    /// Takes the errors that destructors found since the last call. At most 64 are kept; all are logged with `tracing`.
    #[must_use = "these errors were returned nowhere else"]
    pub fn take_deferred_errors(&self) -> Vec<Error> {
        self.shared.deferred.take()
    }

    /// Keeps an error that a destructor cannot return, for [`Runtime::take_deferred_errors`].
    ///
    /// For layers above, whose own destructors have the same duty.
    pub fn defer(&self, error: Error) {
        self.shared.deferred.push(error);
    }

    /// Keeps what the functions of its tables need: it is dropped after the last clone of this runtime, hence after
    /// every stream, event and buffer that was made through it.
    pub fn keep(&self, owner: impl Any + Send + Sync) {
        self.shared.kept.lock().push(Box::new(owner));
    }

    pub(crate) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    #[cold]
    /// Clears what a call left as the thread's last error, after a code that is an answer here and no failure.
    /// Otherwise other code that queries HIP's last error would see it.
    pub(crate) fn forget_last_error(&self) {
        if let Some(get_last_error) = self.api().hipGetLastError {
            // SAFETY: takes no arguments; sets this thread's last error to success. What it returns is known already.
            let _known = unsafe { get_last_error() };
        }
    }

    pub(crate) fn failure(&self, code: hipError_t, call: String) -> Error {
        let remedy = match code {
            hipError_t::hipErrorOutOfMemory => self.memory_left(),
            code => remedy(code).to_owned(),
        };
        failure(code, call, remedy)
    }

    /// As `failure`, without a call: for HIP's threads, which must not use HIP.
    pub(crate) fn failure_told(code: hipError_t, call: String) -> Error {
        failure(code, call, remedy(code).to_owned())
    }

    fn memory_left(&self) -> String {
        let (mut free, mut total) = (0, 0);
        let told = self.api().hipMemGetInfo.is_some_and(|info| {
            // SAFETY: writes two sizes to the addresses given.
            unsafe { info(&mut free, &mut total) == hipError_t::hipSuccess }
        });
        if told {
            format!("{} free of {}", Bytes(free), Bytes(total))
        } else {
            "the device did not report its free memory".to_owned()
        }
    }
}

fn failure(code: hipError_t, call: String, remedy: String) -> Error {
    Error::Call {
        call,
        name: code.name().unwrap_or("hipError_t of a newer release"),
        code: i64::from(code.0),
        remedy,
    }
}

/// Two runtimes are equal if they are clones of one.
impl PartialEq for Runtime {
    fn eq(&self, other: &Self) -> bool {
        self.same(other)
    }
}

impl Eq for Runtime {}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("compiler", &self.shared.rtc.is_ok())
            .finish_non_exhaustive()
    }
}

struct Bytes(usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        while value >= 1024.0 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        write!(f, "{value:.1} {}", UNITS[unit])
    }
}
