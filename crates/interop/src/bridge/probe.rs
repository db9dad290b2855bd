//! Patterns written through one API and read through the other.

use std::sync::Arc;

use super::first_call::{FirstCall, once};
use crate::core::Core;
use crate::handoff::{self, Handoff};
use crate::values::RouteReport;
use crate::{Category, Direction, Error, Grade, Residency, Result, Route, Shared};

/// 256 KiB: more than a page and more than a 64 KiB fragment, and quick to check.
pub(crate) const WORDS: usize = 1 << 16;
const BLOCK: u32 = 256;

/// The kernels that prove routes and measure limits, compiled once per bridge.
pub(crate) struct Probe {
    opening: Vec<FirstCall>,
    cl: ClKernels,
    hip: HipKernels,
    pub(crate) blas: Option<rocblas::Library>,
    pub(crate) blas_missing: String,
}

pub(crate) struct ClKernels {
    program: clmgr::Program,
    pub(crate) fill: clmgr::Kernel,
    pub(crate) check: clmgr::Kernel,
    pub(crate) nothing: clmgr::Kernel,
    pub(crate) copy: clmgr::Kernel,
}

pub(crate) struct HipKernels {
    pub(crate) fill: hip::Function,
    pub(crate) check: hip::Function,
    pub(crate) nothing: hip::Function,
    pub(crate) copy: hip::Function,
    pub(crate) copy_bytes: hip::Function,
}

impl ClKernels {
    /// For kernel objects of the caller's own.
    pub(crate) fn program(&self) -> &clmgr::Program {
        &self.program
    }
}

impl Probe {
    pub(crate) fn new(
        core: &Core,
        (blas, blas_missing): (Option<rocblas::Library>, String),
        mut opening: Vec<FirstCall>,
    ) -> Result<Self> {
        let program = once(&mut opening, "OpenCL program, or its cache entry", || {
            Ok(core.programs.get(include_str!("../../kernels/probe.cl"), "")?)
        })?;
        let module = once(&mut opening, "HIP program", || {
            Ok(hip::rtc::Program::new(include_str!("../../kernels/probe.hip"))
                .name("probe.hip")
                .compile(&core.hip_device)?)
        })?;
        Ok(Self {
            opening,
            cl: ClKernels {
                program: program.clone(),
                fill: program.kernel("probe_fill")?,
                check: program.kernel("probe_check")?,
                nothing: program.kernel("probe_nothing")?,
                copy: program.kernel("probe_copy")?,
            },
            hip: HipKernels {
                fill: module.function("probe_fill")?,
                check: module.function("probe_check")?,
                nothing: module.function("probe_nothing")?,
                copy: module.function("probe_copy")?,
                copy_bytes: module.function("probe_copy_bytes")?,
            },
            blas,
            blas_missing,
        })
    }

    /// The first calls made when the bridge was opened.
    pub(crate) fn opening(&self) -> &[FirstCall] {
        &self.opening
    }

    pub(crate) fn cl(&self) -> &ClKernels {
        &self.cl
    }

    pub(crate) fn hip(&self) -> &HipKernels {
        &self.hip
    }

    /// Writes through each API, reads through the other, and returns where the memory lives. A
    /// direct route must also show that no copy call was made, and the same address where it
    /// guarantees one.
    pub(crate) fn prove(&self, core: &Arc<Core>, route: Route) -> Result<Residency> {
        self.cross_all(core, route, |_, crossing| crossing())
    }

    /// As [`prove`](Self::prove); `observe` makes each crossing, and learns its result.
    pub(crate) fn cross_all(
        &self,
        core: &Arc<Core>,
        route: Route,
        mut observe: impl FnMut(Direction, &mut dyn FnMut() -> Result<()>) -> Result<()>,
    ) -> Result<Residency> {
        let words = uncopied(core, route, || {
            let mut words = Shared::<u32>::on_route(core, &handoff::by_host(), route, WORDS)?;
            for direction in Direction::BOTH {
                observe(direction, &mut || self.cross(core, &mut words, direction))?;
            }
            Ok(words)
        })?;
        match words.addresses() {
            Some((cl, hip)) if cl != hip && route.has_one_address() => Err(Error::AddressesDiffer { route, cl, hip }),
            _ => Ok(words.residency()),
        }
    }

    /// Passes a pattern from one API to the other.
    pub(crate) fn cross(&self, core: &Core, words: &mut Shared<u32>, direction: Direction) -> Result<()> {
        let seed = match direction {
            Direction::OpenClToHip => 0x5EED_0001,
            Direction::HipToOpenCl => 0x0DD_BA11,
        };
        self.write(core, words, direction, seed)?;
        self.check(core, words, direction, seed)
    }

    /// Writes a pattern through the API that a crossing begins with.
    pub(crate) fn write(&self, core: &Core, words: &mut Shared<u32>, direction: Direction, seed: u32) -> Result<()> {
        match direction {
            Direction::OpenClToHip => self.cl_fill(core, words, seed),
            Direction::HipToOpenCl => self.hip_fill(core, words, seed),
        }
    }

    /// Reads the pattern through the API that a crossing ends with.
    pub(crate) fn check(&self, core: &Core, words: &Shared<u32>, direction: Direction, seed: u32) -> Result<()> {
        let mismatches = match direction {
            Direction::OpenClToHip => self.hip_check(core, words, seed)?,
            Direction::HipToOpenCl => self.cl_check(core, words, seed)?,
        };
        if mismatches == 0 {
            return Ok(());
        }
        let (writer, reader) = direction.ends();
        Err(Error::PatternMismatch {
            route: words.route(),
            writer,
            reader,
            mismatches,
            words: WORDS,
        })
    }

    /// As [`prove`](Self::prove), for a hand-off on a proven route.
    pub(crate) fn prove_handoff(&self, core: &Arc<Core>, route: Route, handoff: &Arc<dyn Handoff>) -> Result<()> {
        let _scope = core.meter.scope(Category::Control);
        let mut words = Shared::<u32>::on_route(core, handoff, route, WORDS)?;
        if words.needs_host() && handoff.grade() != Grade::Host {
            // The exchange would be the host's, and prove nothing.
            return Err(Error::NoGrade {
                grade: handoff.grade(),
                reason: format!("the host takes part in every hand-off on route {route}"),
            });
        }
        for direction in Direction::BOTH {
            self.cross(core, &mut words, direction)?;
        }
        words.check_handoffs()
    }

    pub(crate) fn cl_fill(&self, core: &Core, words: &mut Shared<u32>, seed: u32) -> Result<()> {
        let guard = words.cl_mut(&core.queue)?;
        let args = [guard.arg(), clmgr::Arg::scalar(&seed)];
        // SAFETY: probe_fill takes a buffer and a uint and writes one word per work-item.
        unsafe { self.cl.fill.launch(&core.queue, clmgr::NdRange::d1(WORDS), &args) }?;
        Ok(())
    }

    pub(crate) fn cl_check(&self, core: &Core, words: &Shared<u32>, seed: u32) -> Result<u32> {
        let mut count = [0_u32];
        let mut counter = clmgr::RegularBuffer::<u32>::new(&core.context, 1)?;
        counter.write(&core.queue, &count)?;
        let guard = words.cl(&core.queue)?;
        let args = [guard.arg(), clmgr::Arg::scalar(&seed), counter.arg()];
        // SAFETY: probe_check takes a buffer, a uint and a counter, reads one word per work-item.
        unsafe { self.cl.check.launch(&core.queue, clmgr::NdRange::d1(WORDS), &args) }?;
        counter.read(&core.queue, &mut count)?;
        Ok(count[0])
    }

    pub(crate) fn hip_fill(&self, core: &Core, words: &mut Shared<u32>, seed: u32) -> Result<()> {
        let mut guard = words.hip_mut(&core.stream)?;
        let config = hip::LaunchConfig::linear(WORDS, BLOCK)?;
        let (slice, count) = (guard.slice_mut(), WORDS as u64);
        // SAFETY: probe_fill takes a pointer, a 64-bit count and a uint, and stays below the count.
        unsafe { self.hip.fill.launch(&core.stream, config, &[&slice, &count, &seed]) }?;
        Ok(())
    }

    pub(crate) fn hip_check(&self, core: &Core, words: &Shared<u32>, seed: u32) -> Result<u32> {
        let mut count = [0_u32];
        let mut counter = core.hip_device.alloc_from(&core.stream, &count)?;
        {
            let guard = words.hip(&core.stream)?;
            let config = hip::LaunchConfig::linear(WORDS, BLOCK)?;
            let (slice, len) = (guard.slice(), WORDS as u64);
            let mismatches = counter.on_mut(&core.stream)?;
            // SAFETY: probe_check takes a pointer, a 64-bit count, a uint and a counter, and stays
            // below the count.
            unsafe {
                self.hip
                    .check
                    .launch(&core.stream, config, &[&slice, &len, &seed, &mismatches])
            }?;
        }
        counter.copy_to_slice(&core.stream, &mut count)?;
        Ok(count[0])
    }
}

/// Does a proof's `work`, in which a direct route must not copy.
pub(crate) fn uncopied<T>(core: &Core, route: Route, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let _scope = core.meter.scope(Category::Control);
    let before = core.meter.snapshot();
    let done = work()?;
    let bytes = core.meter.snapshot().since(&before).data_set;
    match bytes != 0 && !route.is_copy() {
        true => Err(Error::HiddenCopy { route, bytes }),
        false => Ok(done),
    }
}

impl RouteReport {
    pub(crate) fn of(route: Route, proof: Result<Residency>) -> Self {
        Self {
            route,
            impossible: proof.as_ref().is_err_and(Error::is_impossible),
            outcome: proof.map_err(|error| error.to_string()),
        }
    }
}

/// The word that the kernels write to a place.
pub(crate) fn pattern(place: usize, seed: u32) -> u32 {
    let (low, high) = (place as u32, (place as u64 >> 32) as u32);
    let mut x = low
        .wrapping_mul(0x9E37_79B9)
        .wrapping_add(high.wrapping_mul(0x85EB_CA6B))
        .wrapping_add(seed);
    x ^= x >> 16;
    x = x.wrapping_mul(0x7FEB_352D);
    x ^ (x >> 15)
}
