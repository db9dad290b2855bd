//! Which functions are built, and how far.

/// How far a function is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// As on ROCm, as far as a device without a card can be.
    Done,
    /// Built, but for what is said.
    Partial(&'static str),
    /// Not built: answers the API's error for that.
    Absent,
}

const NO_ARRAYS: &str = "no arrays: they are `hipErrorNotSupported`";
const KEPT: &str = "kept and told again, without effect";
const NOT_REGISTERED: &str =
    "there are no registered functions and variables, so always the error for an unknown one";
const ONE_BY_ONE: &str = "branches run one after another";

/// What is missing of the functions that are built in part.
const PARTIAL: &[(&str, &str)] = &[
    ("hipCtxDisablePeerAccess", "without effect, as on ROCm"),
    ("hipCtxEnablePeerAccess", "without effect, as on ROCm"),
    (
        "hipDeviceEnablePeerAccess",
        "kernels reach peers without it",
    ),
    ("hipDeviceSetCacheConfig", "without effect, as on ROCm"),
    ("hipDeviceSetLimit", KEPT),
    ("hipDeviceSetSharedMemConfig", "without effect, as on ROCm"),
    ("hipDrvMemcpy2DUnaligned", NO_ARRAYS),
    ("hipDrvMemcpy3D", NO_ARRAYS),
    ("hipDrvMemcpy3DAsync", NO_ARRAYS),
    (
        "hipDrvPointerGetAttributes",
        "four attributes are `hipErrorNotSupported`",
    ),
    ("hipExtStreamCreateWithCUMask", "the mask is without effect"),
    ("hipFreeAsync", "cannot be captured"),
    (
        "hipFuncGetAttribute",
        "registers and static shared memory are 0",
    ),
    ("hipFuncGetAttributes", NOT_REGISTERED),
    ("hipFuncSetAttribute", NOT_REGISTERED),
    ("hipFuncSetCacheConfig", NOT_REGISTERED),
    ("hipFuncSetSharedMemConfig", NOT_REGISTERED),
    ("hipGetFuncBySymbol", NOT_REGISTERED),
    ("hipGetSymbolAddress", NOT_REGISTERED),
    ("hipGetSymbolSize", NOT_REGISTERED),
    ("hipGraphAddMemcpyNode", NO_ARRAYS),
    ("hipGraphLaunch", ONE_BY_ONE),
    ("hipGraphLaunch_spt", ONE_BY_ONE),
    ("hipLaunchCooperativeKernel", NOT_REGISTERED),
    ("hipLaunchCooperativeKernel_spt", NOT_REGISTERED),
    ("hipLaunchKernel", NOT_REGISTERED),
    ("hipLaunchKernel_spt", NOT_REGISTERED),
    ("hipMallocAsync", "cannot be captured; nothing is set aside"),
    (
        "hipMallocFromPoolAsync",
        "cannot be captured; nothing is set aside",
    ),
    ("hipMemAdvise", KEPT),
    ("hipMemPoolSetAccess", KEPT),
    ("hipMemPoolSetAttribute", KEPT),
    (
        "hipMemPoolTrimTo",
        "nothing is set aside, so nothing to trim",
    ),
    (
        "hipMemPrefetchAsync",
        "remembered in stream order; nothing moves",
    ),
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
    (
        "hipOccupancyMaxActiveBlocksPerMultiprocessor",
        NOT_REGISTERED,
    ),
    (
        "hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
        NOT_REGISTERED,
    ),
    ("hipOccupancyMaxPotentialBlockSize", NOT_REGISTERED),
    (
        "hipPointerGetAttribute",
        "four attributes are `hipErrorNotSupported`",
    ),
    ("hipSetDeviceFlags", KEPT),
    (
        "hipStreamAttachMemAsync",
        "checked; every stream sees all memory",
    ),
    ("hipStreamCreateWithPriority", KEPT),
    ("hipStreamWaitValue32", "cannot be captured"),
    ("hipStreamWaitValue64", "cannot be captured"),
    ("hipStreamWriteValue32", "cannot be captured"),
    ("hipStreamWriteValue64", "cannot be captured"),
    (
        "hsa_amd_portable_export_dmabuf",
        "HIP's device memory only: OpenCL's lies in no file",
    ),
];

/// All names of a table with what is built of each.
fn of(
    symbols: &'static [&'static str],
    present: Vec<&'static str>,
) -> Vec<(&'static str, Coverage)> {
    let coverage = |name: &&'static str| {
        let partial = PARTIAL.iter().find(|(partial, _)| partial == name);
        let coverage = match (present.contains(name), partial) {
            (false, _) => Coverage::Absent,
            (true, Some((_, missing))) => Coverage::Partial(missing),
            (true, None) => Coverage::Done,
        };
        (*name, coverage)
    };
    symbols.iter().map(coverage).collect()
}

/// HIP's functions.
#[must_use]
pub fn hip() -> Vec<(&'static str, Coverage)> {
    of(hip_sys::Api::SYMBOLS, crate::hip_api().present().collect())
}

/// HIPRTC's functions.
#[must_use]
pub fn rtc() -> Vec<(&'static str, Coverage)> {
    of(
        hip_sys::RtcApi::SYMBOLS,
        crate::rtc_api().present().collect(),
    )
}

/// HSA's functions.
#[must_use]
pub fn hsa() -> Vec<(&'static str, Coverage)> {
    of(hsa_sys::Api::SYMBOLS, crate::hsa_api().present().collect())
}

/// rocBLAS' functions.
#[must_use]
pub fn rocblas() -> Vec<(&'static str, Coverage)> {
    of(
        rocblas_sys::Api::SYMBOLS,
        crate::rocblas_api().present().collect(),
    )
}

/// rocSOLVER's functions.
#[must_use]
pub fn rocsolver() -> Vec<(&'static str, Coverage)> {
    of(
        rocsolver_sys::Api::SYMBOLS,
        crate::rocsolver_api().present().collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_called_partial_is_built() {
        let all = [hip(), rtc(), hsa(), rocblas(), rocsolver()].concat();
        for (partial, _) in PARTIAL {
            let found = all.iter().find(|(name, _)| name == partial);
            let (_, coverage) = found.expect(partial);
            assert!(matches!(coverage, Coverage::Partial(_)), "{partial}");
        }
        assert!(PARTIAL.is_sorted_by_key(|(name, _)| *name));
    }
}
