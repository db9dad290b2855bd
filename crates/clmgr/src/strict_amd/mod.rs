//! Makes any OpenCL behave as strictly as AMD's, so code which passes here has a chance there.
//!
//! The functions of a table are put behind others that hide what ROCm's OpenCL lacks, refuse what it refuses, and
//! record misuses that it would not report. The model follows ROCm's own source; each rule names its file. The names of
//! platform and device stay those of the real ones.

mod info;
mod launch;
mod objects;
mod order;

use std::sync::OnceLock;

use order::Orders;
pub use order::{Hazard, HazardKind};
use parking_lot::Mutex;

use crate::api::Api;

/// The variable that puts every library behind the shim; its one value is `amd`.
pub(crate) const VARIABLE: &str = "HIPCL_OPENCL_STRICT";

/// How many libraries can be behind the shim at once.
const LANES: usize = 4;

/// The real functions. A wrapped function knows its lane at compile time, since OpenCL gives it
/// nothing to find its library by.
static REAL: [OnceLock<Api>; LANES] = [const { OnceLock::new() }; LANES];
static ORDERS: [Mutex<Option<Orders>>; LANES] = [const { Mutex::new(None) }; LANES];

/// AMD's OpenCL as a shim in front of another one.
///
/// With `HIPCL_OPENCL_STRICT=amd` every [`Manager`](crate::Manager) uses it.
#[derive(Clone, Copy, Debug)]
pub struct StrictAmd(());

impl StrictAmd {
    /// Puts the table's functions behind the shim. A table that is behind it already stays as it is.
    /// Returns false, and an empty table, for more than four libraries.
    ///
    /// It suits [`Manager::load_with`](crate::Manager::load_with).
    ///
    /// # Safety
    ///
    /// The table's functions are those of an OpenCL library, or behave the same, for the life of the
    /// process: every later table of that library calls them.
    ///
    /// ```compile_fail,E0133
    /// let mut api = clmgr::Api::EMPTY;
    /// clmgr::StrictAmd::wrap(&mut api);
    /// ```
    pub unsafe fn wrap(api: &mut Api) -> bool {
        for (lane, real) in REAL.iter().enumerate() {
            let known = real.get_or_init(|| *api);
            if same_library(known, api) {
                install(lane, api);
                return true;
            }
            if is_wrapped(lane, api) {
                return true;
            }
        }
        *api = Api::EMPTY;
        false
    }

    /// What went wrong in a way that ROCm does not report, since the last call, in order.
    #[must_use]
    pub fn take_hazards() -> Vec<Hazard> {
        ORDERS
            .iter()
            .filter_map(|orders| orders.lock().as_mut().map(Orders::take_hazards))
            .flatten()
            .collect()
    }
}

/// Whether both tables hold the functions of one library, told by one that all libraries have.
fn same_library(one: &Api, two: &Api) -> bool {
    let address = |api: &Api| api.clGetDeviceInfo.map(|function| function as usize);
    address(one) == address(two)
}

fn is_wrapped(lane: usize, api: &Api) -> bool {
    let mut wrapped = *api;
    install(lane, &mut wrapped);
    same_library(&wrapped, api)
}

fn install(lane: usize, api: &mut Api) {
    match lane {
        0 => install_lane::<0>(api),
        1 => install_lane::<1>(api),
        2 => install_lane::<2>(api),
        _ => install_lane::<3>(api),
    }
}

fn install_lane<const LANE: usize>(api: &mut Api) {
    // The dispatch table of amdocl stops at OpenCL 2.2 (clr: opencl/amdocl/cl_icd.cpp).
    api.clCreateBufferWithProperties = None;
    info::install::<LANE>(api);
    objects::install::<LANE>(api);
    launch::install::<LANE>(api);
}

/// The real table of a lane whose functions are in use.
fn real<const LANE: usize>() -> &'static Api {
    REAL[LANE].get().unwrap_or(&Api::EMPTY)
}

/// Works on what is noted about the objects of a lane.
fn orders<const LANE: usize, R>(work: impl FnOnce(&mut Orders) -> R) -> R {
    work(ORDERS[LANE].lock().get_or_insert_default())
}

/// Puts `wrapper` where the library has the function.
macro_rules! put {
    ($api:ident: $($name:ident => $wrapper:expr;)*) => {
        $(if $api.$name.is_some() {
            $api.$name = Some($wrapper);
        })*
    };
}

/// Calls the real function, or returns what a driver without it would.
macro_rules! forward {
    ($lane:ident.$name:ident($($arg:expr),* $(,)?)) => {
        match $crate::strict_amd::real::<$lane>().$name {
            // SAFETY: the arguments are the caller's, for the function they were meant for.
            Some(function) => unsafe { function($($arg),*) },
            None => opencl_sys::CL_INVALID_OPERATION,
        }
    };
}
use forward;
use put;
