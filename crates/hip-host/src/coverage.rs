//! Which functions are built, and how far.

/// How far a function is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// As on ROCm, as far as possible without a card.
    Done,
    /// Built, except for what the text names.
    Partial(&'static str),
    /// Not built: returns the API's error for that.
    Absent,
}

const NO_ARRAYS: &str = "no arrays: they are `hipErrorNotSupported`";
const NOT_SET_ASIDE: &str = "nothing is set aside";
const KEPT: &str = "kept and told again, without effect";
const NOT_REGISTERED: &str = "there are no registered functions and variables, so always the error for an unknown one";

/// What partially built functions lack.
const PARTIAL: &[(&str, &str)] = &[
    ("hipCtxDisablePeerAccess", "without effect, as on ROCm"),
    ("hipCtxEnablePeerAccess", "without effect, as on ROCm"),
    ("hipDeviceEnablePeerAccess", "kernels reach peers without it"),
    ("hipDeviceSetCacheConfig", "without effect, as on ROCm"),
    ("hipDeviceSetLimit", KEPT),
    ("hipDeviceSetSharedMemConfig", "without effect, as on ROCm"),
    ("hipDrvMemcpy2DUnaligned", NO_ARRAYS),
    ("hipDrvMemcpy3D", NO_ARRAYS),
    ("hipDrvMemcpy3DAsync", NO_ARRAYS),
    (
        "hipDrvPointerGetAttributes",
        "four attributes are `hipErrorNotSupported`, as on ROCm",
    ),
    ("hipExtStreamCreateWithCUMask", "the mask is without effect"),
    ("hipFuncGetAttribute", "registers and static shared memory are 0"),
    ("hipFuncGetAttributes", NOT_REGISTERED),
    ("hipFuncSetAttribute", NOT_REGISTERED),
    ("hipFuncSetCacheConfig", "without effect, as on ROCm"),
    ("hipFuncSetSharedMemConfig", "without effect, as on ROCm"),
    ("hipGetFuncBySymbol", NOT_REGISTERED),
    ("hipGetSymbolAddress", NOT_REGISTERED),
    ("hipGetSymbolSize", NOT_REGISTERED),
    ("hipGraphAddMemcpyNode", NO_ARRAYS),
    ("hipLaunchByPtr", NOT_REGISTERED),
    ("hipLaunchCooperativeKernel", NOT_REGISTERED),
    ("hipLaunchCooperativeKernel_spt", NOT_REGISTERED),
    ("hipLaunchKernel", NOT_REGISTERED),
    ("hipLaunchKernel_spt", NOT_REGISTERED),
    ("hipMallocAsync", NOT_SET_ASIDE),
    ("hipMallocFromPoolAsync", NOT_SET_ASIDE),
    ("hipMemAdvise", KEPT),
    ("hipMemPoolSetAccess", "kernels reach the memory without it"),
    ("hipMemPoolSetAttribute", KEPT),
    ("hipMemPoolTrimTo", "nothing is set aside, so nothing to trim"),
    ("hipMemPrefetchAsync", "remembered in stream order; nothing moves"),
    ("hipMemcpy3D", NO_ARRAYS),
    ("hipMemcpy3DAsync", NO_ARRAYS),
    ("hipMemcpy3DAsync_spt", NO_ARRAYS),
    ("hipMemcpy3D_spt", NO_ARRAYS),
    ("hipMemcpyFromSymbol", NOT_REGISTERED),
    ("hipMemcpyFromSymbolAsync", NOT_REGISTERED),
    ("hipMemcpyFromSymbolAsync_spt", NOT_REGISTERED),
    ("hipMemcpyFromSymbol_spt", NOT_REGISTERED),
    ("hipMemcpyParam2D", NO_ARRAYS),
    ("hipMemcpyParam2DAsync", NO_ARRAYS),
    ("hipMemcpyToSymbol", NOT_REGISTERED),
    ("hipMemcpyToSymbolAsync", NOT_REGISTERED),
    ("hipMemcpyToSymbolAsync_spt", NOT_REGISTERED),
    ("hipMemcpyToSymbol_spt", NOT_REGISTERED),
    (
        "hipModuleLaunchCooperativeKernel",
        "at most 12288 threads where threads wait for each other",
    ),
    ("hipModuleLoadDataEx", "the options are without effect"),
    ("hipOccupancyMaxActiveBlocksPerMultiprocessor", NOT_REGISTERED),
    ("hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", NOT_REGISTERED),
    ("hipOccupancyMaxPotentialBlockSize", NOT_REGISTERED),
    (
        "hipPointerGetAttribute",
        "four attributes are `hipErrorNotSupported`, as on ROCm",
    ),
    (
        "hipPointerSetAttribute",
        "kept and told again: copies are in stream order either way",
    ),
    ("hipSetDeviceFlags", KEPT),
    ("hipStreamAttachMemAsync", "checked; every stream sees all memory"),
    ("hipStreamCreateWithPriority", KEPT),
    ("hipStreamWaitValue32", "cannot be captured"),
    ("hipStreamWaitValue64", "cannot be captured"),
    ("hipStreamWriteValue32", "cannot be captured"),
    ("hipStreamWriteValue64", "cannot be captured"),
    (
        "hiprtcGetBitcode",
        "there is no bitcode, so always the error for a program without any",
    ),
    (
        "hiprtcGetBitcodeSize",
        "there is no bitcode, so always the error for a program without any",
    ),
    (
        "hiprtcLinkComplete",
        "one input, which is the output: several are `HIPRTC_ERROR_LINKING`",
    ),
    (
        "hsa_amd_portable_export_dmabuf",
        "HIP's device memory only: OpenCL's lies in no file",
    ),
];

/// Lists each function that ROCm 6.4 declares, with the slot that has its form of that release.
macro_rules! slots {
    ($(fn $name:ident($($argument:ident: $ty:ty),* $(,)?) $(-> $result:ty)? = $slot:ident;)*) => {
        &[$((stringify!($name), stringify!($slot))),*]
    };
}

type Slots = &'static [(&'static str, &'static str)];

const HIP: Slots = hip_sys::for_each_function!(slots);
const RTC: Slots = hip_sys::for_each_rtc_function!(slots);

fn coverage(name: &str, is_built: bool) -> Coverage {
    let partial = PARTIAL.iter().find(|(partial, _)| *partial == name);
    match (is_built, partial) {
        (false, _) => Coverage::Absent,
        (true, Some((_, missing))) => Coverage::Partial(missing),
        (true, None) => Coverage::Done,
    }
}

/// All names of a table with the coverage of each.
fn of(slots: Slots, present: Vec<&'static str>) -> Vec<(&'static str, Coverage)> {
    slots
        .iter()
        .map(|(name, slot)| (*name, coverage(name, present.contains(slot))))
        .collect()
}

/// HIP's functions.
#[must_use]
pub fn hip() -> Vec<(&'static str, Coverage)> {
    of(HIP, crate::hip_api().present().collect())
}

/// HIPRTC's functions.
#[must_use]
pub fn rtc() -> Vec<(&'static str, Coverage)> {
    of(RTC, crate::rtc_api().present().collect())
}

/// HSA's functions.
#[must_use]
pub fn hsa() -> Vec<(&'static str, Coverage)> {
    let present: Vec<_> = crate::hsa_api().present().collect();
    let symbols = hsa_sys::Api::SYMBOLS.iter();
    symbols
        .map(|name| (*name, coverage(name, present.contains(name))))
        .collect()
}
