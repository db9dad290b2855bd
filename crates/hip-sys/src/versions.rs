//! What means something else from release to release, in one place.
//!
//! The tables take care of functions that are *called* in another way: each form has a slot of its own (see [`Api`]).
//! Here is what the compiler can't see, values that were renumbered and structures to choose by the release at hand:
//!
//! | trap | since | here |
//! |---|---|---|
//! | [`hipMemoryType`] renumbered | 6.0 | [`memory_type`], [`memory_type_number`] |
//! | [`hipPointerAttribute_t::type_`] holds such a number; the layout is the same in all releases | 6.0 | [`memory_type`] |
//! | device properties are another structure, with another symbol | 6.0 | [`DeviceProperties`] |
//! | [`HIP_MEMCPY3D`] has wider fields and renumbered memory types | 6.0 | [`HIP_MEMCPY3D_until_5`]`::try_from` |
//! | `hipIpcMemLazyEnablePeerAccess` was 0 | 6.0 | [`ipc_lazy_peer_access`] |
//! | driver-style memset nodes take [`hipMemsetParams`] instead of [`HIP_MEMSET_NODE_PARAMS`] | 7.0 | [`HIP_MEMSET_NODE_PARAMS`]`::from` |
//! | `hipDeviceAttributePciChipId` is 10020, was 10019 in 7.0 and absent before | 7.1 | [`pci_chip_id_attribute`], [`attribute_name`] |
//! | `hipErrorTbd` is 1055, was 1054, which is `hipErrorInvalidClusterSize` now | 7.14 | [`error_name`] |
//! | HIPRTC takes `const char* const*`, was `const char**`; called alike | 7.0 | nothing to do |
//! | [`hipMemAllocationProp`]'s `requestedHandleType` lies in a union with its newer name, at the same place | 7.0 | nothing to do |
//!
//! The releases are HIP's own numbers, which are ROCm's up to 7.14; ROCm 10.0 has HIP 7.15.
//!
//! Where the header sets leave open which release between two made a change, it is taken to be the one with the new
//! major number, as AMD's rule for the SONAME has it.

use core::ffi::{c_int, c_uint};

use rocm_loader::Release;
#[cfg(feature = "load")]
use rocm_loader::{Floor, Loaded};

use crate::*;

/// The oldest supported release.
///
/// 5.7 is the oldest whose headers and libraries these bindings were made from and are checked against. Older ones lack
/// what handing memory over needs: HSA's dma-buf export came with 5.6, `hipLaunchHostFunc` and the memory nodes of
/// graphs with 5.3.
pub const OLDEST: Release = Release::new(5, 7);

/// The newest release whose declarations these bindings were made from: the HIP of ROCm 10.0.
pub const NEWEST: Release = Release::new(7, 15);

/// Whether nothing is known here of what this release added or changed. Its library is used all the same: AMD only adds
/// functions within a major release.
#[must_use]
pub const fn is_newer_than_known(release: Release) -> bool {
    NEWEST.is_before(release)
}

#[cfg(feature = "load")]
pub(crate) const FLOOR: Floor = Floor {
    oldest: OLDEST,
    release: ask,
    lacking: "older ones were never checked against these bindings, and before 5.6 they cannot export memory as dma-buf",
};

/// The release that an open HIP library is of. The call needs no device.
#[cfg(feature = "load")]
fn ask(library: &Loaded) -> Option<Release> {
    let address = library.symbol(c"hipRuntimeGetVersion")?;
    // SAFETY: every release declares it as `hipError_t hipRuntimeGetVersion(int*)`.
    let call: unsafe extern "C" fn(*mut c_int) -> hipError_t = unsafe { core::mem::transmute(address) };
    call_for_release(call)
}

fn call_for_release(call: unsafe extern "C" fn(*mut c_int) -> hipError_t) -> Option<Release> {
    let mut number = 0;
    // SAFETY: it writes one int to the address given.
    let status = unsafe { call(&mut number) };
    (status == hipError_t::hipSuccess).then(|| release_of(number)).flatten()
}

/// The release in the number that `hipRuntimeGetVersion` gives: major x 10,000,000 + minor x 100,000 + patch.
///
/// Releases before 4.3 numbered otherwise; such numbers, too small to be one of these, give `None`.
#[must_use]
pub const fn release_of(number: c_int) -> Option<Release> {
    if number < 10_000_000 {
        return None;
    }
    let number = number as u32;
    Some(Release::new(number / 10_000_000, number / 100_000 % 100))
}

impl Api {
    /// The release that the library says it is of; `None` if it can't tell. AMD's patch numbers are not reliable, so
    /// they are left out: decide by this and by the presence of functions.
    #[must_use]
    pub fn release(&self) -> Option<Release> {
        call_for_release(self.hipRuntimeGetVersion?)
    }
}

const fn before_6(release: Release) -> bool {
    release.major < 6
}

/// What a memory type that came from this release's library means, as a value of today's numbering.
///
/// ROCm 5 has no number for unregistered memory; asking about it is an error there. A number that the release does not
/// know is returned as it is.
#[must_use]
pub const fn memory_type(raw: hipMemoryType, release: Release) -> hipMemoryType {
    if !before_6(release) {
        return raw;
    }
    match raw.0 {
        0 => hipMemoryType::hipMemoryTypeHost,
        1 => hipMemoryType::hipMemoryTypeDevice,
        2 => hipMemoryType::hipMemoryTypeArray,
        3 => hipMemoryType::hipMemoryTypeUnified,
        4 => hipMemoryType::hipMemoryTypeManaged,
        _ => raw,
    }
}

/// The number to hand to this release's library for a memory type; `None` if the release has none for it.
#[must_use]
pub const fn memory_type_number(meaning: hipMemoryType, release: Release) -> Option<hipMemoryType> {
    if !before_6(release) {
        return Some(meaning);
    }
    Some(hipMemoryType(match meaning {
        hipMemoryType::hipMemoryTypeHost => 0,
        hipMemoryType::hipMemoryTypeDevice => 1,
        hipMemoryType::hipMemoryTypeArray => 2,
        hipMemoryType::hipMemoryTypeUnified => 3,
        hipMemoryType::hipMemoryTypeManaged => 4,
        _ => return None,
    }))
}

/// The value of `hipIpcMemLazyEnablePeerAccess`, the only flag that `hipIpcOpenMemHandle` takes.
#[must_use]
pub const fn ipc_lazy_peer_access(release: Release) -> c_uint {
    if before_6(release) {
        0
    } else {
        hipIpcMemLazyEnablePeerAccess
    }
}

/// The attribute that gives the chip's PCI identity; absent before 7.0.
#[must_use]
pub const fn pci_chip_id_attribute(release: Release) -> Option<hipDeviceAttribute_t> {
    if release.is_before(Release::new(7, 0)) {
        None
    } else if release.is_before(Release::new(7, 1)) {
        Some(hipDeviceAttribute_t(10_019))
    } else {
        Some(hipDeviceAttribute_t::hipDeviceAttributePciChipId)
    }
}

/// The C name that an attribute's number has in this release.
#[must_use]
pub fn attribute_name(attribute: hipDeviceAttribute_t, release: Release) -> Option<&'static str> {
    match attribute.0 {
        10_019 | 10_020 if release.is_before(Release::new(7, 1)) => {
            (pci_chip_id_attribute(release) == Some(attribute)).then_some("hipDeviceAttributePciChipId")
        }
        _ => attribute.name(),
    }
}

/// The C name that an error code has in this release. Only the place holder `hipErrorTbd` ever moved, to make room for
/// `hipErrorInvalidClusterSize`.
#[must_use]
pub fn error_name(error: hipError_t, release: Release) -> Option<&'static str> {
    match error.0 {
        1054 | 1055 if release.is_before(Release::new(7, 14)) => (error.0 == 1054).then_some("hipErrorTbd"),
        _ => error.name(),
    }
}

/// Which structure of device properties a library fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceProperties {
    /// [`hipDeviceProp_tR0600`], by [`Api::hipGetDevicePropertiesR0600`].
    R0600,
    /// [`hipDeviceProp_tR0000`], by [`Api::hipGetDeviceProperties`]. Newer libraries keep that symbol for programs
    /// compiled against ROCm 5, with the old structure.
    R0000,
}

impl DeviceProperties {
    /// What this library has; the newer one if both. `None` if it can't tell properties at all.
    #[must_use]
    pub const fn of(api: &Api) -> Option<Self> {
        if api.hipGetDevicePropertiesR0600.is_some() {
            Some(Self::R0600)
        } else if api.hipGetDeviceProperties.is_some() {
            Some(Self::R0000)
        } else {
            None
        }
    }
}

/// What [`Api::hipDrvGraphAddMemsetNode_until_6`] wants instead of today's structure.
impl From<hipMemsetParams> for HIP_MEMSET_NODE_PARAMS {
    fn from(params: hipMemsetParams) -> Self {
        Self {
            dst: params.dst,
            pitch: params.pitch,
            value: params.value,
            elementSize: params.elementSize,
            width: params.width,
            height: params.height,
        }
    }
}

/// What [`Api::hipDrvMemcpy3D_until_5`] wants instead of today's structure. The error names the field that does not
/// fit.
impl TryFrom<&HIP_MEMCPY3D> for HIP_MEMCPY3D_until_5 {
    type Error = &'static str;

    fn try_from(copy: &HIP_MEMCPY3D) -> Result<Self, Self::Error> {
        macro_rules! narrow {
            ($($field:ident),*) => {
                Self {
                    $($field: c_uint::try_from(copy.$field).map_err(|_| stringify!($field))?,)*
                    srcMemoryType: memory_type_number(copy.srcMemoryType, OLDEST).ok_or("srcMemoryType")?,
                    srcHost: copy.srcHost,
                    srcDevice: copy.srcDevice,
                    srcArray: copy.srcArray,
                    dstMemoryType: memory_type_number(copy.dstMemoryType, OLDEST).ok_or("dstMemoryType")?,
                    dstHost: copy.dstHost,
                    dstDevice: copy.dstDevice,
                    dstArray: copy.dstArray,
                }
            };
        }
        Ok(narrow!(
            srcXInBytes,
            srcY,
            srcZ,
            srcLOD,
            srcPitch,
            srcHeight,
            dstXInBytes,
            dstY,
            dstZ,
            dstLOD,
            dstPitch,
            dstHeight,
            WidthInBytes,
            Height,
            Depth
        ))
    }
}
