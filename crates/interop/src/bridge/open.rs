//! Loads both APIs' libraries and proves what a pair of devices can share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use platform::{LibraryState, Selection};

use super::first_call::{FirstCall, once};
use super::probe::Probe;
use super::{Bridge, Options, choose, grades};
use crate::core::{Core, Hsa, LentMemory};
use crate::handoff::end_with_the_process;
use crate::values::{BridgeReport, Pairing, RouteReport};
use crate::{Grade, Meter, Result, Route};

/// Both APIs' libraries, their copy calls counted.
pub(crate) struct Libraries<'a> {
    selection: &'a Selection,
    pub(super) meter: Meter,
    pub(crate) hip: hip::Runtime,
    pub(crate) manager: clmgr::Manager,
    opencl_counted: bool,
}

/// What the proofs need.
pub(crate) struct Ready {
    pub(crate) core: Arc<Core>,
    pub(crate) probe: Arc<Probe>,
    pub(crate) paired_by: Pairing,
}

/// Two devices under trial, and the objects to work with.
pub(crate) struct Pair {
    pub(super) context: clmgr::Context,
    pub(super) queue: clmgr::Queue,
    pub(super) stream: hip::Stream,
    pub(super) paired_by: Pairing,
    /// The first calls made to get here.
    pub(super) first_calls: Vec<FirstCall>,
}

impl Pair {
    /// A single-device context on `device`, and a stream on `hip`.
    pub(crate) fn new(device: &clmgr::Device, hip: &hip::Device, paired_by: Pairing) -> Result<Self> {
        let mut first_calls = Vec::new();
        let context = once(&mut first_calls, "OpenCL context", || Ok(clmgr::Context::new(device)?))?;
        Ok(Self {
            queue: context.queue()?,
            stream: hip.stream()?,
            context,
            paired_by,
            first_calls,
        })
    }
}

impl<'a> Libraries<'a> {
    pub(crate) fn load(selection: &'a Selection) -> Result<Self> {
        // SAFETY: the hooks change no table.
        unsafe { Self::load_with(selection, |_| {}) }
    }

    /// `hook` sees each OpenCL library's table before it is counted.
    ///
    /// # Safety
    /// As [`clmgr::Manager::load_with`].
    pub(crate) unsafe fn load_with(selection: &'a Selection, hook: impl Fn(&mut clmgr::Api)) -> Result<Self> {
        let tables = selection.tables();
        let (meter, counted, lease) = Meter::wrap_hip(&tables.hip)?;
        // SAFETY: both tables are of the one platform that was selected; the copy calls are
        // replaced by functions of the same signatures that pass everything on.
        let hip = unsafe { hip::Runtime::from_tables(Arc::new(counted), tables.rtc.clone()) }?;
        hip.keep(lease);
        let opencl_counted = AtomicBool::new(true);
        let count = |api: &mut clmgr::Api| {
            hook(api);
            let lease = meter.wrap_cl(api);
            if lease.is_none() {
                opencl_counted.store(false, Ordering::Relaxed);
            }
            lease
        };
        // SAFETY: the caller's promise about `hook`; the meter's functions pass everything on.
        let manager = unsafe { clmgr::Manager::load_with(count) }?;
        Ok(Self {
            selection,
            meter,
            hip,
            manager,
            opencl_counted: opencl_counted.into_inner(),
        })
    }

    pub(crate) fn platform(&self) -> platform::Platform {
        self.selection.platform()
    }

    /// Proves the named route, or every route between the two devices, and chooses one.
    pub(super) fn join(&self, pair: Pair, options: &Options) -> Result<Bridge> {
        let ready = self.ready(pair, options)?;
        let routes: Vec<_> = Route::ALL
            .into_iter()
            .filter(|&route| options.route.is_none_or(|named| named == route))
            .map(|route| RouteReport::of(route, ready.probe.prove(&ready.core, route)))
            .collect();
        self.finish(ready, routes, options, &Grade::ALL)
    }

    /// Compiles what the proofs need.
    pub(crate) fn ready(&self, pair: Pair, options: &Options) -> Result<Ready> {
        let tables = self.selection.tables();
        let device = pair.context.device().clone();
        let hip_device = pair.stream.device().clone();
        let core = Arc::new(Core {
            platform: self.selection.platform(),
            meter: self.meter.clone(),
            hip: self.hip.clone(),
            external: self.manager.external(&device),
            programs: clmgr::ProgramCache::open(&pair.context),
            hip_device,
            context: pair.context,
            queue: pair.queue,
            stream: pair.stream,
            hsa: tables.hsa.clone().and_then(Hsa::start),
            foreign: tables.foreign,
            force_dma_buf: options.force_dma_buf,
            survives_exports: OnceLock::new(),
            deferred: Mutex::default(),
            failovers: Mutex::default(),
            kept: LentMemory::default(),
        });
        end_with_the_process(&core);
        let blas = tables.rocblas.clone().map(|rocblas| {
            // SAFETY: the tables are of the one platform that was selected.
            let blas = unsafe { rocblas::Library::from_tables(rocblas, tables.rocsolver.clone()) };
            // Safe code may have streams of a bridge on another platform.
            blas.only_for(&self.hip)
        });
        let blas = (blas, missing(self.selection, "rocBLAS"));
        let probe = Arc::new(Probe::new(&core, blas, pair.first_calls)?);
        Ok(Ready {
            core,
            probe,
            paired_by: pair.paired_by,
        })
    }

    /// Chooses among the examined routes, and proves these hand-offs on the chosen one.
    pub(crate) fn finish(
        &self,
        ready: Ready,
        routes: Vec<RouteReport>,
        options: &Options,
        grades: &[Grade],
    ) -> Result<Bridge> {
        let Ready { core, probe, paired_by } = ready;
        let device = core.context.device().clone();
        let permitted = choose::choose(&routes, options)?;
        let grades = grades::open(&core, &probe, permitted[0], options.handoff_limit, grades);
        let handoff = grades.choose(options.grade)?;
        let report = BridgeReport {
            platform: self.selection.platform(),
            platform_why: self.selection.why.clone(),
            hip_device: core.hip_device.name()?,
            hip_pci: core.hip_device.pci_address().ok().map(|address| address.to_string()),
            opencl_device: device.name().to_owned(),
            opencl_platform: format!("{} {}", device.platform_name(), device.platform_version()),
            opencl_library: device.library_path().to_owned(),
            pairing: paired_by,
            routes,
            passed_over: Vec::new(),
            opencl_counted: self.opencl_counted,
        };
        // The proofs are not their user's copies.
        self.meter.clear();
        Ok(Bridge {
            core,
            probe,
            report: Arc::new(report),
            permitted,
            grades: Arc::new(grades),
            handoff,
        })
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
