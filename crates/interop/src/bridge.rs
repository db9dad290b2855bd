use crate::handoff::{self, Grades, Handoff};
use crate::pairing;
use crate::probe::Probe;
use crate::report::{BridgeReport, Pairing, RouteReport};
use crate::residency::Hsa;
use crate::warm_up::once;
use crate::{Error, Grade, GradeReport, Meter, Policy, Result, Route, Shared};
use bytemuck::Pod;
use parking_lot::Mutex;
use platform::{LibraryState, Platform, Selection};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What to pair and which routes to permit.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Exactly this route, [`Route::Staging`] included; `None` takes the best that works.
    pub route: Option<Route>,
    /// What may be done where no direct route works. Ignored when `route` names one.
    pub policy: Policy,
    /// Index into the OpenCL devices of [`clmgr::Manager::devices`]; `None` finds the pair.
    pub opencl_device: Option<usize>,
    /// HIP device ordinal; `None` takes 0.
    pub hip_device: Option<usize>,
    /// Exactly this hand-off; `None` takes [`Grade::Host`] if it was proven, else [`Grade::Callback`].
    pub grade: Option<Grade>,
    /// The longest that one side waits for the other before it is let go with
    /// [`Error::HandoffTimeout`], counted from when the hand-off was queued. `None` is 60 s, and no
    /// limit with [`Grade::Host`].
    pub handoff_limit: Option<Duration>,
}

/// One OpenCL device and one HIP device that are the same hardware, proven to share memory.
///
/// Clones are cheap and name the same bridge.
#[derive(Clone)]
pub struct Bridge {
    core: Arc<Core>,
    probe: Arc<Probe>,
    report: Arc<BridgeReport>,
    route: Route,
    fallbacks: Arc<[Route]>,
    grades: Arc<Grades>,
    handoff: Arc<dyn Handoff>,
}

/// What shared buffers need of their bridge.
pub(crate) struct Core {
    pub(crate) platform: Platform,
    pub(crate) meter: Meter,
    pub(crate) hip: hip::Runtime,
    pub(crate) hip_device: hip::Device,
    pub(crate) context: clmgr::Context,
    pub(crate) programs: clmgr::ProgramCache,
    /// For transfers of the bridge itself.
    pub(crate) queue: clmgr::Queue,
    /// For transfers of the bridge itself.
    pub(crate) stream: hip::Stream,
    pub(crate) hsa: Option<Hsa>,
    pub(crate) foreign: Option<platform::ForeignHooks>,
    deferred: Mutex<Vec<Error>>,
}

impl Core {
    /// Keeps an error of a destructor for whoever asks.
    pub(crate) fn defer(&self, error: Error) {
        self.deferred.lock().push(error);
    }
}

impl Bridge {
    /// Pairs the devices, builds a single-device OpenCL context, and proves every route.
    ///
    /// # Errors
    /// If OpenCL or HIP is missing, if no two devices pair, or if no permitted route works
    /// ([`Error::NotPossible`], with the reason for each).
    pub fn open(selection: &Selection, options: &Options) -> Result<Self> {
        let (meter, counted) = Meter::wrap_hip(&selection.tables.hip)?;
        // SAFETY: both tables are of the one platform that was selected; the copy calls are
        // replaced by functions of the same signatures that pass everything on.
        let hip =
            unsafe { hip::Runtime::from_tables(Arc::new(counted), selection.tables.rtc.clone()) }?;
        let hip_device = hip.device(options.hip_device.unwrap_or(0))?;
        let counted_everywhere = AtomicBool::new(true);
        let manager = clmgr::Manager::load_with(|api| {
            if !meter.wrap_cl(api) {
                counted_everywhere.store(false, Ordering::Relaxed);
            }
        })?;
        let devices = manager.devices();
        let candidates = pairing::candidates(
            selection.platform,
            &hip_device,
            &devices,
            options.opencl_device,
        )?;

        let mut passed_over = Vec::new();
        let mut refusal = None;
        for (device, paired_by) in candidates {
            let attempt = Attempt {
                selection,
                meter: &meter,
                hip: &hip,
                hip_device: &hip_device,
                device: &device,
                paired_by,
                counted: counted_everywhere.load(Ordering::Relaxed),
            };
            match attempt.run(options) {
                Ok((mut bridge, report)) => {
                    meter.clear();
                    bridge.report = Arc::new(BridgeReport {
                        passed_over,
                        ..report
                    });
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

    /// OpenCL programs of the bridge's context, cached in memory and on disk.
    #[must_use]
    pub fn programs(&self) -> &clmgr::ProgramCache {
        &self.core.programs
    }

    /// rocBLAS and rocSOLVER.
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

    /// The route that [`alloc`](Self::alloc) takes first.
    #[must_use]
    pub fn route(&self) -> Route {
        self.route
    }

    /// How work of the two APIs is ordered.
    #[must_use]
    pub fn grade(&self) -> Grade {
        self.handoff.grade()
    }

    /// Every hand-off, and how it is done here or why not.
    #[must_use]
    pub fn grades(&self) -> &[GradeReport] {
        self.grades.reports()
    }

    /// The same bridge with another hand-off, for the buffers that it makes from now on.
    ///
    /// # Errors
    /// [`Error::NoGrade`] if the grade was not proven when the bridge was opened.
    pub fn with_grade(&self, grade: Grade) -> Result<Self> {
        Ok(Self {
            handoff: self.grades.choose(Some(grade))?,
            ..self.clone()
        })
    }

    /// A shared buffer of `len` elements on the bridge's route. With [`Policy::AllowCopy`] a failed
    /// allocation is tried again on the other routes that work; [`Shared::route`] says which it was.
    ///
    /// # Errors
    /// If the length is zero or too large, or the allocation fails.
    pub fn alloc<T: Pod>(&self, len: usize) -> Result<Shared<T>> {
        let first = match self.alloc_on(self.route, len) {
            Err(error) if !self.fallbacks.is_empty() => error,
            done => return done,
        };
        let mut tried = vec![(self.route, first.to_string())];
        for &route in &*self.fallbacks {
            match self.alloc_on(route, len) {
                Ok(shared) => return Ok(shared),
                Err(error) => tried.push((route, error.to_string())),
            }
        }
        Err(Error::NotPossible { tried })
    }

    /// A shared buffer on one particular route, proven or not.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc).
    pub fn alloc_on<T: Pod>(&self, route: Route, len: usize) -> Result<Shared<T>> {
        Ok(Shared::on_route(&self.core, route, len)?.handed_over_by(&self.handoff))
    }

    /// Errors that destructors met since the last call.
    #[must_use]
    pub fn take_deferred_errors(&self) -> Vec<Error> {
        std::mem::take(&mut self.core.deferred.lock())
    }

    #[cfg(test)]
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
            .field("route", &self.route)
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}

/// One pair of devices under trial.
struct Attempt<'a> {
    selection: &'a Selection,
    meter: &'a Meter,
    hip: &'a hip::Runtime,
    hip_device: &'a hip::Device,
    device: &'a clmgr::Device,
    paired_by: Pairing,
    counted: bool,
}

impl Attempt<'_> {
    fn run(self, options: &Options) -> Result<(Bridge, BridgeReport)> {
        let tables = &self.selection.tables;
        let mut first_calls = Vec::new();
        let context = once(&mut first_calls, "OpenCL context", || {
            Ok(clmgr::Context::new(self.device)?)
        })?;
        let core = Arc::new(Core {
            platform: self.selection.platform,
            meter: self.meter.clone(),
            hip: self.hip.clone(),
            hip_device: self.hip_device.clone(),
            programs: clmgr::ProgramCache::open(&context),
            queue: context.queue()?,
            stream: self.hip_device.stream()?,
            context,
            hsa: tables.hsa.clone().and_then(Hsa::start),
            foreign: tables.foreign,
            deferred: Mutex::default(),
        });
        let blas = tables.rocblas.clone().map(|rocblas| {
            // SAFETY: the tables are of the one platform that was selected.
            unsafe { rocblas::Library::from_tables(rocblas, tables.rocsolver.clone()) }
        });
        let blas = (blas, missing(self.selection, "rocBLAS"));
        let probe = Arc::new(Probe::new(&core, blas, first_calls)?);
        let routes: Vec<_> = Route::ALL
            .into_iter()
            .map(|route| RouteReport {
                route,
                outcome: probe.prove(&core, route).map_err(|error| error.to_string()),
            })
            .collect();
        let (route, fallbacks) = choose(&routes, options)?;
        let grades = handoff::open(&core, &probe, route, options.handoff_limit);
        let handoff = grades.choose(options.grade)?;
        let report = BridgeReport {
            platform: self.selection.platform,
            platform_why: self.selection.why.clone(),
            hip_device: self.hip_device.name()?,
            hip_pci: self
                .hip_device
                .pci_address()
                .ok()
                .map(|address| address.to_string()),
            opencl_device: self.device.name().to_owned(),
            opencl_platform: format!(
                "{} {}",
                self.device.platform_name(),
                self.device.platform_version()
            ),
            opencl_library: self.device.library_path().to_owned(),
            pairing: self.paired_by,
            routes,
            passed_over: Vec::new(),
            opencl_counted: self.counted,
        };
        let shared_report = Arc::new(report.clone());
        Ok((
            Bridge {
                core,
                probe,
                report: shared_report,
                route,
                fallbacks,
                grades: Arc::new(grades),
                handoff,
            },
            report,
        ))
    }
}

fn missing(selection: &Selection, library: &str) -> String {
    selection
        .libraries
        .iter()
        .filter(|report| report.name == library)
        .find_map(|report| match &report.state {
            LibraryState::Missing(reason) => Some(reason.clone()),
            _ => None,
        })
        .unwrap_or_else(|| "the platform does not offer it".into())
}

/// The route to take first, and those to try if an allocation on it fails.
fn choose(routes: &[RouteReport], options: &Options) -> Result<(Route, Arc<[Route]>)> {
    let works = |route: Route| {
        routes
            .iter()
            .any(|report| report.route == route && report.works())
    };
    let reasons = |only: Option<Route>| {
        let tried = routes
            .iter()
            .filter(|report| only.is_none_or(|route| route == report.route))
            .map(|report| {
                let reason = report.outcome.clone().err();
                (
                    report.route,
                    reason.unwrap_or_else(|| "works, but copies, which is not permitted".into()),
                )
            })
            .collect();
        Error::NotPossible { tried }
    };
    if let Some(route) = options.route {
        return if works(route) {
            Ok((route, Arc::default()))
        } else {
            Err(reasons(Some(route)))
        };
    }
    let may_copy = options.policy != Policy::DirectOnly;
    let mut usable = Route::ALL
        .into_iter()
        .filter(|&route| works(route) && (may_copy || !route.is_copy()));
    let first = usable.next().ok_or_else(|| reasons(None))?;
    let fallbacks = match options.policy {
        Policy::AllowCopy => usable.collect(),
        Policy::DirectOnly | Policy::PreferDirect => Arc::default(),
    };
    Ok((first, fallbacks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Residency;

    fn reports(direct_works: bool) -> Vec<RouteReport> {
        let direct = if direct_works {
            Ok(Residency::Vram)
        } else {
            Err("no SVM".to_owned())
        };
        vec![
            RouteReport {
                route: Route::SvmCoarse,
                outcome: direct,
            },
            RouteReport {
                route: Route::HostPinned,
                outcome: Err("copied".into()),
            },
            RouteReport {
                route: Route::Staging,
                outcome: Ok(Residency::Vram),
            },
        ]
    }

    fn with(policy: Policy) -> Options {
        Options {
            policy,
            ..Options::default()
        }
    }

    #[test]
    fn a_copy_is_never_taken_without_permission() {
        let error =
            choose(&reports(false), &with(Policy::DirectOnly)).expect_err("no direct route");
        let text = error.to_string();
        assert!(
            matches!(error, Error::NotPossible { ref tried } if tried.len() == 3),
            "{text}"
        );
        assert!(
            text.contains("no SVM") && text.contains("not permitted"),
            "{text}"
        );
        let (route, _) = choose(&reports(false), &with(Policy::PreferDirect)).expect("may copy");
        assert_eq!(route, Route::Staging);
    }

    #[test]
    fn only_allow_copy_falls_back_after_a_failed_allocation() {
        let (route, fallbacks) =
            choose(&reports(true), &with(Policy::PreferDirect)).expect("works");
        assert_eq!((route, fallbacks.len()), (Route::SvmCoarse, 0));
        let (route, fallbacks) = choose(&reports(true), &with(Policy::AllowCopy)).expect("works");
        assert_eq!(
            (route, &*fallbacks),
            (Route::SvmCoarse, [Route::Staging].as_slice())
        );
    }

    #[test]
    fn a_named_route_is_taken_or_refused_but_never_replaced() {
        let named = |route| Options {
            route: Some(route),
            ..with(Policy::AllowCopy)
        };
        assert_eq!(
            choose(&reports(true), &named(Route::Staging))
                .expect("works")
                .0,
            Route::Staging
        );
        let error = choose(&reports(true), &named(Route::HostPinned)).expect_err("does not work");
        assert_eq!(
            error.to_string(),
            "no permitted route works: host-pinned: copied"
        );
    }
}
