//! The findings as data. The names of the fields are the keys of the JSON file, which the book's page on the doctor
//! describes.

use platform::{Facts, Platform};
use serde::{Deserialize, Serialize};

use super::compare::Comparison;
use super::probe::{Crossing, Death};

/// Version of the JSON file's form: incremented for each change that breaks a reader of the old
/// form.
pub const SCHEMA: u32 = 1;

/// Everything `hipcl doctor` found out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// [`SCHEMA`] of the program that wrote the file.
    pub schema: u32,
    /// Version of that program.
    pub hipcl: String,
    /// When, in UTC: `2026-11-22T01:30:00Z`.
    pub taken: String,
    /// The chosen platform: "amd", "nvidia" or "host"; empty if the choice itself failed.
    pub platform: String,
    /// Why it was chosen.
    pub platform_why: String,
    /// Why the platform cannot be used, if it was requested.
    #[serde(default)]
    pub platform_failure: Option<String>,
    /// The platform's libraries.
    pub libraries: Vec<Library>,
    /// The OpenCL libraries that offer devices.
    pub opencl_libraries: Vec<Library>,
    /// OpenCL libraries that offer none.
    pub opencl_tried: Vec<Tried>,
    /// What plays the GPU, if it is emulated: "rocjitsu".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator: Option<String>,
    /// All OpenCL devices.
    pub opencl_devices: Vec<OpenClDevice>,
    /// All HIP devices.
    pub hip_devices: Vec<HipDevice>,
    /// Which devices of the two APIs may be one.
    pub pairing: Vec<Pairing>,
    /// The two devices taken for the same one.
    pub pair: Option<Pair>,
    /// The requested routes; empty for all.
    #[serde(default)]
    pub asked_routes: Vec<String>,
    /// The routes between them.
    pub routes: Vec<RouteState>,
    /// HIP memory as an OpenCL buffer object; `None` if that was not examined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_ptr: Option<HostPtr>,
    /// The ways to hand over from one API to the other, each tried on the best direct route.
    #[serde(default)]
    pub grades: Vec<GradeState>,
    /// OpenCL kernels on HIP streams; `None` if that was not examined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_stream: Option<OneStream>,
    /// The ways into another process.
    #[serde(default)]
    pub carriers: Vec<CarrierState>,
    /// The calls that allocate, and what is known about their memory.
    #[serde(default)]
    pub allocations: Vec<AllocationState>,
    /// What compiles HIP kernels.
    pub compiler: Compiler,
    /// Where compiled OpenCL programs are kept.
    pub opencl_cache: Option<String>,
    /// The runtimes' library files in a process that used both APIs.
    pub loaded: Vec<String>,
    /// The system: kernel, driver, devices, rights, environment.
    pub checks: Vec<Check>,
    /// Whether the software device stands in for a card that is there.
    #[serde(default)]
    pub passed_over: bool,
    /// What to do, a line for each failure.
    pub advice: Vec<String>,
    /// Whether at least one direct route works, of those that were tried, and no card is passed over.
    pub healthy: bool,
    /// The verdict in one line, with the reason.
    #[serde(default)]
    pub verdict: String,
    /// What has changed since an earlier report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
}

impl Findings {
    /// What is true of the chosen platform; nothing if the choice failed or a later release named a new one.
    pub(super) fn facts(&self) -> Option<&'static Facts> {
        let platform: Platform = self.platform.parse().ok()?;
        Some(platform.facts())
    }

    /// Whether all this is about a model in software.
    pub(super) fn is_model(&self) -> bool {
        self.facts().is_some_and(|facts| facts.is_model)
    }

    /// Whether a direct route is among those tried so far that work.
    pub(super) fn proven(&self) -> bool {
        self.routes.iter().any(|route| route.works && !route.copies)
    }

    /// Whether the request is met: by a direct route, or, where routes were named, by one of these.
    pub(super) fn is_met(&self) -> bool {
        let undecided = !self.asked_routes.is_empty() && !self.passed_over;
        self.healthy || undecided && self.routes.iter().any(|route| route.works)
    }

    /// The probes that ended abnormally, each with how it ended.
    pub(super) fn crashed(&self) -> Vec<String> {
        let routes = self.routes.iter().map(|it| (format!("route {}", it.route), &it.died));
        let grades = self
            .grades
            .iter()
            .map(|it| (format!("hand-off {}", it.grade), &it.died));
        let carriers = self
            .carriers
            .iter()
            .map(|it| (format!("carrier {}", it.carrier), &it.died));
        let allocations = self.allocations.iter().map(|it| (it.call.clone(), &it.died));
        let others = [
            self.host_ptr.as_ref().map(|it| ("HIP memory as a cl_mem", &it.died)),
            self.one_stream.as_ref().map(|it| ("one stream", &it.died)),
        ];
        let others = others.into_iter().flatten().map(|(name, died)| (name.to_owned(), died));
        routes
            .chain(grades)
            .chain(others)
            .chain(carriers)
            .chain(allocations)
            .filter_map(|(name, died)| Some(format!("{name} {}", died.as_ref()?.how)))
            .collect()
    }

    /// The findings as a JSON text.
    pub fn to_json(&self) -> String {
        // strings, numbers and lists: there is no way to fail
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

/// A library.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Library {
    /// What it is.
    pub name: String,
    /// Where it was found, or why it is missing.
    pub place: String,
    /// Whether it can be used.
    pub usable: bool,
    /// How it was found, or what it offers.
    pub detail: String,
}

/// Something that was tried in vain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// What was tried.
    pub what: String,
    /// Why it is of no use.
    pub reason: String,
}

/// An OpenCL device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenClDevice {
    /// Its name.
    pub name: String,
    /// "CPU", "GPU", …
    pub kind: String,
    /// Its platform and version.
    pub platform: String,
    /// Version of its driver.
    pub driver: String,
    /// Shared virtual memory it offers.
    pub svm: String,
    /// Its PCI address, if reported.
    pub pci: Option<String>,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// The library it comes from.
    pub library: String,
}

/// A HIP device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HipDevice {
    /// Its number.
    pub ordinal: usize,
    /// Its name.
    pub name: String,
    /// Its architecture, such as `gfx908`.
    pub arch: String,
    /// Its PCI address, if it has one.
    pub pci: Option<String>,
    /// Its memory in bytes.
    pub memory_bytes: u64,
}

/// A HIP device and the OpenCL devices that may be it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairing {
    /// Number of the HIP device.
    pub hip: usize,
    /// Places in the list of OpenCL devices.
    pub opencl: Vec<usize>,
}

/// Two devices that are one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The OpenCL device.
    pub opencl: String,
    /// The HIP device.
    pub hip: String,
    /// How that was found.
    pub proof: String,
    /// How work is handed from one API to the other.
    pub grade: String,
}

/// The state of one route.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RouteState {
    /// Its name.
    pub route: String,
    /// Whether it works.
    pub works: bool,
    /// Whether it copies.
    pub copies: bool,
    /// Whether it does not exist between the two devices, as far as they report: no failure.
    pub impossible: bool,
    /// The oldest ROCm release on which it can work, by its sources.
    pub oldest_rocm: Option<String>,
    /// The patterns that were passed.
    pub crossings: Vec<Crossing>,
    /// Where its memory lives.
    pub residency: Option<String>,
    /// Why it does not work.
    pub reason: Option<String>,
    /// What it costs, if it works.
    pub figures: Option<RouteFigures>,
    /// Why there are no figures of a route that works.
    pub figures_missing: Option<String>,
    /// How the process that probed it ended, if abnormally.
    pub died: Option<Death>,
}

/// Whether OpenCL takes HIP memory by `CL_MEM_USE_HOST_PTR`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostPtr {
    /// The text that [`interop::HostPtrProof::from_text`] takes, if it does.
    pub proof: Option<String>,
    /// Whether OpenCL does not reach HIP memory between the two devices at all: no failure.
    pub impossible: bool,
    /// Why there is no proof.
    pub reason: Option<String>,
    /// How the process that tried it ended, if abnormally: there is no proof then.
    pub died: Option<Death>,
}

/// The cost of a route.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RouteFigures {
    /// How work was handed from one API to the other.
    pub grade: String,
    /// Microseconds from OpenCL to HIP, median.
    pub opencl_to_hip_us: f64,
    /// Microseconds from HIP to OpenCL, median.
    pub hip_to_opencl_us: f64,
    /// 10^9 bytes a second, read and written, of an OpenCL kernel that copies within the memory.
    pub opencl_gb_s: f64,
    /// The same of a HIP kernel.
    pub hip_gb_s: f64,
}

impl From<&interop::Figures> for RouteFigures {
    fn from(figures: &interop::Figures) -> Self {
        let handoff = HandoffFigures::from(&figures.handoff);
        Self {
            grade: figures.grade.to_string(),
            opencl_to_hip_us: handoff.opencl_to_hip_us,
            hip_to_opencl_us: handoff.hip_to_opencl_us,
            opencl_gb_s: rounded(figures.bandwidth.opencl_gb_s),
            hip_gb_s: rounded(figures.bandwidth.hip_gb_s),
        }
    }
}

/// Rounds to two decimals: a figure is not that precise.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// The state of one hand-off grade.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GradeState {
    /// "host", "callback" or "device".
    pub grade: String,
    /// The route whose memory was handed over.
    pub route: String,
    /// Whether a pattern crossed that way in both directions.
    pub works: bool,
    /// What hands over from OpenCL to HIP, if it works.
    pub opencl_to_hip: Option<String>,
    /// What hands over from HIP to OpenCL.
    pub hip_to_opencl: Option<String>,
    /// Why it does not work.
    pub reason: Option<String>,
    /// What it costs, if it works.
    pub figures: Option<HandoffFigures>,
    /// Why there are no figures of a grade that works.
    pub figures_missing: Option<String>,
    /// How the process that probed it ended, if abnormally.
    pub died: Option<Death>,
}

/// The cost of a hand-off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandoffFigures {
    /// Microseconds from OpenCL to HIP, median.
    pub opencl_to_hip_us: f64,
    /// Microseconds from HIP to OpenCL, median.
    pub hip_to_opencl_us: f64,
}

impl From<&interop::measure::DirectionCost> for HandoffFigures {
    fn from(cost: &interop::measure::DirectionCost) -> Self {
        Self {
            opencl_to_hip_us: rounded(cost.opencl_to_hip_us),
            hip_to_opencl_us: rounded(cost.hip_to_opencl_us),
        }
    }
}

/// Whether OpenCL kernels run on HIP streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OneStream {
    /// Whether one with local arguments, an offset and constants yielded the right result.
    pub works: bool,
    /// What the stream ran, if it works.
    pub how: Option<String>,
    /// Why it does not work.
    pub reason: Option<String>,
    /// What it costs, if it works.
    pub figures: Option<StreamFigures>,
    /// Why there are no figures although it works.
    pub figures_missing: Option<String>,
    /// How the process that tried it ended, if abnormally.
    pub died: Option<Death>,
}

/// The cost of an empty OpenCL kernel on a HIP stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamFigures {
    /// Microseconds of the launch and the wait for it, median.
    pub waited_us: f64,
    /// Microseconds of one of 64 that are queued before the wait, median.
    pub queued_us: f64,
}

impl From<&interop::measure::StreamLaunchCost> for StreamFigures {
    fn from(cost: &interop::measure::StreamLaunchCost) -> Self {
        Self {
            waited_us: rounded(cost.launch.waited_us),
            queued_us: rounded(cost.launch.queued_us),
        }
    }
}

/// The state of one way into another process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CarrierState {
    /// "hip-fd", "dma-buf" or "ipc-handle".
    pub carrier: String,
    /// Whether a second process and the first one read each other's patterns in the memory, each through both APIs.
    pub works: bool,
    /// Whether no memory leaves by this carrier between the two devices: no failure.
    pub impossible: bool,
    /// Where the memory lives.
    pub residency: Option<String>,
    /// Why it does not work.
    pub reason: Option<String>,
    /// How the process that tried it ended, if abnormally.
    pub died: Option<Death>,
}

/// What is known about the memory that one call allocates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AllocationState {
    /// Its name, such as `cl-alloc-host-ptr`.
    pub allocation: String,
    /// The call.
    pub call: String,
    /// Whether it returned memory.
    pub works: bool,
    /// Where the memory lies, as far as known.
    pub residency: Option<String>,
    /// Which source says so.
    pub known_by: Option<String>,
    /// 10^9 bytes a second, read and written, of an OpenCL kernel that copies within such memory.
    pub opencl_gb_s: Option<f64>,
    /// Why there is no such figure.
    pub opencl_missing: Option<String>,
    /// The same of a HIP kernel.
    pub hip_gb_s: Option<f64>,
    /// Why there is no such figure.
    pub hip_missing: Option<String>,
    /// Why the call returned no memory.
    pub reason: Option<String>,
    /// How the process that probed it ended, if abnormally.
    pub died: Option<Death>,
}

/// One check of the system around the libraries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What was checked; unique.
    pub name: String,
    /// Its verdict.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What to do, if something is wrong.
    pub advice: Option<String>,
}

/// The verdict on a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// As it should be.
    Good,
    /// An obstacle.
    Bad,
    /// Neither: information for the reader of the report.
    #[serde(rename = "told")]
    Info,
    /// Could not be determined.
    Unknown,
}

/// What compiles HIP kernels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Compiler {
    /// Whether a kernel could be compiled.
    pub works: bool,
    /// Which one it is, or why it does not work.
    pub detail: String,
}
