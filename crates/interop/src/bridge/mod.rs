//! One OpenCL device and one HIP device that are the same hardware.
//!
//! | module | what it does |
//! |---|---|
//! | [`pairing`] | finds the devices that may be the same |
//! | [`open`] | loads both APIs and opens a bridge, by the three below |
//! | [`probe`] | proves a route, or a hand-off, by patterns |
//! | [`choose`] | takes the best of the proven routes |
//! | [`grades`] | starts and proves the hand-offs |
//! | [`all`], [`adopt`] | open a bridge to each GPU, or on objects of other code |
//! | [`memory`] | makes shared buffers of memory that other code allocated |

mod adopt;
mod all;
mod choose;
mod first_call;
mod grades;
mod memory;
mod native;
pub(crate) mod open;
pub(crate) mod pairing;
pub(crate) mod probe;

use std::sync::Arc;
use std::time::Duration;

pub use adopt::ForeignObjects;
pub use all::Bridges;
use bytemuck::Pod;
pub use first_call::FirstCall;
use grades::Grades;
#[cfg(feature = "vulkan")]
pub(crate) use grades::{LIMIT, PROBE_LIMIT};
pub use native::NativeHandles;
use open::{Libraries, Pair};
use platform::Selection;
use probe::Probe;

use crate::backing::{Backing, HipPointer};
use crate::core::Core;
use crate::handoff::Handoff;
use crate::memory::bytes_of;
use crate::values::BridgeReport;
use crate::{Error, Failover, Grade, GradeReport, Meter, Policy, Result, Route, Shared};

/// What to pair and which routes to permit.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Tries exactly this route, which may be [`Route::Staging`]; `None` tries all and takes the best that works.
    pub route: Option<Route>,
    /// What may be done where no direct route works. Ignored when `route` names one.
    pub policy: Policy,
    /// Index into the OpenCL devices of [`clmgr::Manager::devices`]; `None` finds the pair.
    pub opencl_device: Option<usize>,
    /// HIP device ordinal; `None` takes 0, and for [`Bridge::adopt`] the stream's device, or the OpenCL device's pair.
    pub hip_device: Option<usize>,
    /// Uses exactly this hand-off; `None` takes [`Grade::Host`] if it was proven, else [`Grade::Callback`].
    ///
    /// [`Grade::Host`] waits forever for a side that never ends, unless
    /// [`handoff_limit`](Self::handoff_limit) sets a limit.
    pub grade: Option<Grade>,
    /// The longest that one side waits for the other before it is released with [`Error::HandoffTimeout`], measured
    /// from when the hand-off was queued. `None` is 60 s, but **no limit with [`Grade::Host`]**, the default:
    /// `clFinish` and `hipStreamSynchronize` cannot be cancelled. With a limit the host waits through callbacks, which
    /// use a driver thread each time.
    ///
    /// Waits within one API are not limited: with [`Grade::Callback`] and [`Grade::Device`] the drivers keep the order of
    /// two queues, or of two streams, and an `upload` or `download` behind them blocks for as long as they do. Where
    /// OpenCL moves the bytes, it waits by `clFinish` for the queues that used the memory.
    pub handoff_limit: Option<Duration>,
    /// Export memory ([`Route::DmaBuf`]) also where that may end the process: on ROCm 7.2 and later, unless a
    /// [`Trial`](crate::Trial) of the route has shown on this machine that it does not.
    pub force_dma_buf: bool,
}

/// One OpenCL device and one HIP device that are the same hardware, proven to share memory.
///
/// Clones are cheap and name the same bridge.
#[derive(Clone)]
pub struct Bridge {
    core: Arc<Core>,
    probe: Arc<Probe>,
    report: Arc<BridgeReport>,
    /// Never empty, best first.
    permitted: Arc<[Route]>,
    grades: Arc<Grades>,
    handoff: Arc<dyn Handoff>,
}

impl Bridge {
    /// Pairs the devices, builds a single-device OpenCL context, and proves every route, or the one that
    /// [`Options::route`] names.
    ///
    /// # Errors
    /// If OpenCL or HIP is missing, if no two devices pair, or if no permitted route works
    /// ([`Error::NotPossible`], with the reason for each).
    pub fn open(selection: &Selection, options: &Options) -> Result<Self> {
        // SAFETY: the hooks change no table.
        unsafe { Self::open_with(selection, options, |_| {}) }
    }

    /// As [`open`](Self::open); `hook` may replace functions in each OpenCL library's table before any of them is
    /// called, as in [`clmgr::Manager::load_with`]: to watch them, or to put [`clmgr::StrictAmd`] in front.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    ///
    /// # Safety
    /// As [`clmgr::Manager::load_with`].
    ///
    /// ```compile_fail,E0133
    /// # let selection = platform::select().unwrap();
    /// A function that does not do what its slot promises would make every safe call unsound.
    /// let bridge = interop::Bridge::open_with(&selection, &interop::Options::default(), |api| {
    ///     api.clFinish = None;
    /// });
    /// ```
    pub unsafe fn open_with(selection: &Selection, options: &Options, hook: impl Fn(&mut clmgr::Api)) -> Result<Self> {
        // SAFETY: the caller's promise.
        let libraries = unsafe { Libraries::load_with(selection, hook) }?;
        let hip_device = libraries.hip.device(options.hip_device.unwrap_or(0))?;
        Self::open_on(&libraries, &hip_device, options)
    }

    /// Pairs this HIP device with the first OpenCL device that works.
    fn open_on(libraries: &Libraries<'_>, hip_device: &hip::Device, options: &Options) -> Result<Self> {
        let candidates = pairing::candidates(
            libraries.platform(),
            hip_device,
            &libraries.manager.devices(),
            options.opencl_device,
        )?;
        let mut passed_over = Vec::new();
        let mut refusal = None;
        for (device, paired_by) in candidates {
            let attempt = || {
                let pair = Pair::new(&device, hip_device, paired_by)?;
                libraries.join(pair, options)
            };
            match attempt() {
                Ok(mut bridge) => {
                    Arc::make_mut(&mut bridge.report).passed_over = passed_over;
                    return Ok(bridge);
                }
                Err(error) => {
                    passed_over.push((device.name().to_owned(), error.to_string()));
                    refusal.get_or_insert(error);
                }
            }
        }
        Err(refusal.unwrap_or(Error::NotPossible { tried: Vec::new() }))
    }

    /// The OpenCL context. It has one device: with more, ROCm moves SVM to host memory.
    #[must_use]
    pub fn cl_context(&self) -> &clmgr::Context {
        &self.core.context
    }

    /// The OpenCL device.
    #[must_use]
    pub fn cl_device(&self) -> &clmgr::Device {
        self.core.context.device()
    }

    /// The HIP device.
    #[must_use]
    pub fn hip_device(&self) -> &hip::Device {
        &self.core.hip_device
    }

    /// The HIP runtime, its copy calls counted.
    #[must_use]
    pub fn hip_runtime(&self) -> &hip::Runtime {
        &self.core.hip
    }

    /// The queue of the bridge's own transfers: the foreign one, if the bridge was [adopted](Self::adopt).
    #[must_use]
    pub fn main_queue(&self) -> &clmgr::Queue {
        &self.core.queue
    }

    /// The stream of the bridge's own transfers: the foreign one, if the bridge was [adopted](Self::adopt).
    #[must_use]
    pub fn main_stream(&self) -> &hip::Stream {
        &self.core.stream
    }

    /// A new in-order OpenCL queue.
    ///
    /// # Errors
    /// If OpenCL refuses it.
    pub fn queue(&self) -> Result<clmgr::Queue> {
        Ok(self.core.context.queue()?)
    }

    /// A new HIP stream.
    ///
    /// # Errors
    /// If HIP refuses it.
    pub fn stream(&self) -> Result<hip::Stream> {
        Ok(self.core.hip_device.stream()?)
    }

    /// The bridge's OpenCL programs, cached in memory and on disk.
    #[must_use]
    pub fn programs(&self) -> &clmgr::ProgramCache {
        &self.core.programs
    }

    /// rocBLAS and rocSOLVER, for streams of this bridge's runtime: a handle for any other stream is refused
    /// ([`rocblas::Error::OtherRuntime`]).
    ///
    /// # Errors
    /// If the platform has no rocBLAS.
    pub fn blas(&self) -> Result<rocblas::Library> {
        self.probe.blas.clone().ok_or_else(|| Error::NoLibrary {
            library: "rocBLAS",
            platform: self.core.platform,
            reason: self.probe.blas_missing.clone(),
        })
    }

    /// RCCL, or what the platform has in its place, for devices of this bridge's runtime: a communicator on any other is
    /// refused ([`rccl::Error::OtherRuntime`]). Each call loads it.
    ///
    /// # Errors
    /// [`Error::Platform`] if the platform has none.
    pub fn collectives(&self) -> Result<rccl::Library> {
        let api = self.core.platform.collectives()?;
        // SAFETY: both tables are of the bridge's platform, and its loader refuses another installation's.
        let library = unsafe { rccl::Library::from_tables(api) };
        Ok(library.only_for(self.hip_device().runtime()))
    }

    /// The copy counter.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.core.meter
    }

    /// What was found when the bridge was opened.
    #[must_use]
    pub fn report(&self) -> &BridgeReport {
        &self.report
    }

    /// The route that [`alloc`](Self::alloc) tries first.
    #[must_use]
    pub fn route(&self) -> Route {
        self.permitted[0]
    }

    /// The routes that [`alloc`](Self::alloc) tries, in this order.
    #[must_use]
    pub fn permitted(&self) -> &[Route] {
        &self.permitted
    }

    /// How work of the two APIs is ordered.
    #[must_use]
    pub fn grade(&self) -> Grade {
        self.handoff.grade()
    }

    /// Every hand-off, and how it works here or why not.
    #[must_use]
    pub fn grades(&self) -> &[GradeReport] {
        self.grades.reports()
    }

    /// The same bridge with another hand-off for the buffers it makes from now on.
    ///
    /// # Errors
    /// [`Error::NoGrade`] if the grade was not proven when the bridge was opened.
    pub fn with_grade(&self, grade: Grade) -> Result<Self> {
        Ok(Self {
            handoff: self.grades.choose(Some(grade))?,
            ..self.clone()
        })
    }

    /// A shared buffer of `len` elements on the first [permitted](Self::permitted) route that can allocate.
    /// [`Shared::route`] returns that route, and [`failovers`](Self::failovers) what failed before. If the route fails
    /// later, while the buffer is filled or handed over, the next permitted one takes the data.
    ///
    /// # Errors
    /// If the length is zero or too large, or every permitted route fails ([`Error::Failed`], or
    /// the error itself if only one is permitted).
    pub fn alloc<T: Pod>(&self, len: usize) -> Result<Shared<T>> {
        Shared::on_first_of(&self.core, &self.handoff, &self.permitted, len)
    }

    /// Every failover from one route to another, oldest first. At most 64 are kept.
    #[must_use]
    pub fn failovers(&self) -> Vec<Failover> {
        self.core.failovers.lock().clone()
    }

    /// A shared buffer on one particular route, proven or not.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc).
    pub fn alloc_on<T: Pod>(&self, route: Route, len: usize) -> Result<Shared<T>> {
        Shared::on_route(&self.core, &self.handoff, route, len)
    }

    /// A shared buffer whose memory other processes can open by a descriptor
    /// ([`Carrier::HipFd`](crate::Carrier::HipFd)): HIP's virtual memory, on [`Route::ExternalFd`] where OpenCL imports
    /// descriptors, else on [`Route::HipPointer`].
    ///
    /// # Errors
    /// As [`alloc_on`](Self::alloc_on) on that route.
    pub fn alloc_exportable<T: Pod>(&self, len: usize) -> Result<Shared<T>> {
        if !self.core.platform.facts().one_address_space {
            return self.alloc_on(Route::ExternalFd, len);
        }
        let backing = HipPointer::exportable(&self.core, bytes_of::<T>(len)?)?;
        self.share(Box::new(backing), true)
    }

    /// How many buffers this process has dropped that another one may still have open by
    /// [`Carrier::IpcHandle`](crate::Carrier::IpcHandle). Their memory is freed only once that process hangs up; this
    /// call and every export check for it.
    #[must_use]
    pub fn lent_out(&self) -> usize {
        self.core.kept.sweep()
    }

    /// Errors from destructors since the last call. At most 64 are kept; the last one then counts the others
    /// ([`Error::MoreDeferred`]).
    #[must_use]
    pub fn take_deferred_errors(&self) -> Vec<Error> {
        self.core.deferred.lock().take()
    }

    /// A shared buffer over memory that exists already.
    pub(crate) fn share<T: Pod>(&self, memory: Box<dyn Backing>, writable: bool) -> Result<Shared<T>> {
        Shared::over(&self.core, &self.handoff, memory, writable)
    }

    /// The same bridge with this proven hand-off for its grade.
    #[cfg(feature = "vulkan")]
    pub(crate) fn with_handoff(&self, handoff: Arc<dyn Handoff>) -> Self {
        Self {
            grades: Arc::new(self.grades.with(Arc::clone(&handoff))),
            handoff,
            ..self.clone()
        }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) fn probe(&self) -> &Probe {
        &self.probe
    }
}

impl std::fmt::Debug for Bridge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bridge")
            .field("permitted", &self.permitted)
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}
