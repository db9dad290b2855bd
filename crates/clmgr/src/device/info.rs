//! Everything that a device reports about itself.

use opencl_sys::cl_device_info;

use super::{Device, DeviceKind, FloatSupport, HandleKind, PciAddress, Query, SemaphoreKind, SvmCapabilities};
use crate::error::{Error, Result};

/// What a device offers, for a list of capabilities: see [`Device::info`]. It displays as some lines
/// of text.
///
/// A field is `None`, or an empty list, where the device predates the query or lacks its extension.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The device's name.
    pub name: String,
    /// The device's vendor.
    pub vendor: String,
    /// The vendor's number, on PCI devices that of the PCI register.
    pub vendor_id: u32,
    /// CPU, GPU or other.
    pub kind: DeviceKind,
    /// The device's version string.
    pub version: String,
    /// The version string of the language that it compiles.
    pub language_version: Option<String>,
    /// The driver's version string.
    pub driver_version: String,
    /// The name of its platform.
    pub platform_name: String,
    /// The version string of its platform.
    pub platform_version: String,

    /// The device's identifier in other APIs.
    pub uuid: Option<[u8; 16]>,
    /// The driver's identifier in other APIs.
    pub driver_uuid: Option<[u8; 16]>,
    /// The device's identifier on Windows.
    pub luid: Option<[u8; 8]>,
    /// Its place on the PCI bus.
    pub pci: Option<PciAddress>,

    /// The number of compute units.
    pub compute_units: u32,
    /// The highest clock, in MHz.
    pub max_clock_mhz: u32,
    /// The width of a pointer in kernels, in bits.
    pub address_bits: u32,
    /// The maximum number of work-items in a work-group.
    pub max_work_group: usize,
    /// The maximum number of work-items in a work-group in each dimension.
    pub max_work_item_sizes: Vec<usize>,
    /// What the work-group size is best a multiple of: OpenCL 3.0's answer, else the width of AMD
    /// or NVIDIA hardware.
    pub preferred_work_group_multiple: Option<usize>,
    /// Its sub-groups.
    pub sub_groups: Option<SubGroups>,
    /// Arithmetic in half precision; none without `cl_khr_fp16`.
    pub fp16: Option<FloatSupport>,
    /// Arithmetic in single precision.
    pub fp32: FloatSupport,
    /// Arithmetic in double precision; none if the device has no doubles.
    pub fp64: Option<FloatSupport>,
    /// The largest arguments of a kernel together, in bytes.
    pub max_parameter_bytes: usize,
    /// The tick of its timer, in nanoseconds.
    pub timer_resolution_ns: usize,
    /// What `printf` in kernels writes to, in bytes.
    pub printf_bytes: Option<usize>,
    /// Whether it compiles source, or only takes binaries.
    pub compiles: bool,
    /// Whether it supports images.
    pub images: bool,

    /// Its global memory, in bytes.
    pub global_bytes: u64,
    /// How much of it is free, in bytes, at the time of the query; AMD's drivers report it.
    pub free_bytes: Option<u64>,
    /// The largest single allocation, in bytes.
    pub max_alloc_bytes: u64,
    /// The cache of the global memory, in bytes.
    pub cache_bytes: u64,
    /// A line of that cache, in bytes.
    pub cache_line_bytes: u32,
    /// The local memory of a work-group, in bytes.
    pub local_bytes: u64,
    /// Whether local memory is separate memory, not part of global memory.
    pub local_is_dedicated: bool,
    /// The largest constant buffer, in bytes.
    pub max_constant_bytes: u64,
    /// What the origin of a sub-buffer must be a multiple of, in bytes.
    pub sub_buffer_alignment: usize,
    /// Whether device and host share one memory; the query is deprecated but still answered.
    pub unified_memory: Option<bool>,
    /// Whether memory and registers correct errors.
    pub error_correction: bool,
    /// The kinds of shared virtual memory.
    pub svm: SvmCapabilities,
    /// The kinds of handle that memory can be imported by.
    pub memory_imports: Vec<HandleKind>,
    /// The kinds of handle that a semaphore can be imported by.
    pub semaphore_imports: Vec<SemaphoreKind>,
    /// The kinds of handle that a semaphore can be exported by.
    pub semaphore_exports: Vec<SemaphoreKind>,
    /// The names of its extensions.
    pub extensions: Vec<String>,
}

/// A device's report about its sub-groups.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubGroups {
    /// The maximum number of sub-groups in a work-group.
    pub max_per_work_group: u32,
    /// Whether each makes progress while others wait.
    pub independent_progress: bool,
    /// The sizes that kernels can be compiled for: Intel's answer, else the width of AMD or NVIDIA
    /// hardware, else empty.
    pub sizes: Vec<usize>,
}

impl DeviceInfo {
    pub(super) fn ask(device: &Device) -> Result<Self> {
        let ask = device.ask();
        let flag = |what| ask.value::<u32>(what).map(|answer| answer != 0);
        // To an early caller, answers that came later must read as unknown, not failed.
        let text =
            |what| -> Result<Option<String>> { Ok(unless_unknown(ask.text(what))?.filter(|text| !text.is_empty())) };
        let width = hardware_width(&ask);
        let multiple = opencl_sys::CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE;
        Ok(Self {
            name: device.name().to_owned(),
            vendor: device.vendor().to_owned(),
            vendor_id: ask.value(opencl_sys::CL_DEVICE_VENDOR_ID)?,
            kind: device.kind(),
            version: device.version().to_owned(),
            language_version: text(opencl_sys::CL_DEVICE_OPENCL_C_VERSION)?,
            driver_version: device.driver_version().to_owned(),
            platform_name: device.platform_name().to_owned(),
            platform_version: device.platform_version().to_owned(),
            uuid: device.uuid(),
            driver_uuid: device.driver_uuid(),
            luid: device.luid(),
            pci: device.pci_address(),
            compute_units: device.compute_units(),
            max_clock_mhz: ask.value(opencl_sys::CL_DEVICE_MAX_CLOCK_FREQUENCY)?,
            address_bits: ask.value(opencl_sys::CL_DEVICE_ADDRESS_BITS)?,
            max_work_group: device.max_work_group(),
            max_work_item_sizes: ask.list(opencl_sys::CL_DEVICE_MAX_WORK_ITEM_SIZES)?,
            preferred_work_group_multiple: known(ask.value(multiple).ok()).or(width),
            sub_groups: sub_groups(device, &ask, width),
            fp16: float(&ask, opencl_sys::CL_DEVICE_HALF_FP_CONFIG).filter(|_| device.has_extension("cl_khr_fp16")),
            fp32: FloatSupport::from_bits_truncate(ask.value(opencl_sys::CL_DEVICE_SINGLE_FP_CONFIG)?),
            fp64: float(&ask, opencl_sys::CL_DEVICE_DOUBLE_FP_CONFIG),
            max_parameter_bytes: ask.value(opencl_sys::CL_DEVICE_MAX_PARAMETER_SIZE)?,
            timer_resolution_ns: ask.value(opencl_sys::CL_DEVICE_PROFILING_TIMER_RESOLUTION)?,
            printf_bytes: ask.value(opencl_sys::CL_DEVICE_PRINTF_BUFFER_SIZE).ok(),
            compiles: flag(opencl_sys::CL_DEVICE_COMPILER_AVAILABLE)?,
            images: flag(opencl_sys::CL_DEVICE_IMAGE_SUPPORT)?,
            global_bytes: device.global_bytes(),
            free_bytes: free_bytes(device, &ask),
            max_alloc_bytes: device.max_alloc_bytes(),
            cache_bytes: ask.value(opencl_sys::CL_DEVICE_GLOBAL_MEM_CACHE_SIZE)?,
            cache_line_bytes: ask.value(opencl_sys::CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE)?,
            local_bytes: device.local_bytes(),
            local_is_dedicated: ask.value::<u32>(opencl_sys::CL_DEVICE_LOCAL_MEM_TYPE)? == opencl_sys::CL_LOCAL,
            max_constant_bytes: ask.value(opencl_sys::CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE)?,
            sub_buffer_alignment: device.sub_buffer_alignment(),
            unified_memory: flag(opencl_sys::CL_DEVICE_HOST_UNIFIED_MEMORY).ok(),
            error_correction: flag(opencl_sys::CL_DEVICE_ERROR_CORRECTION_SUPPORT)?,
            svm: device.svm(),
            memory_imports: device.memory_import_kinds(),
            semaphore_imports: device.semaphore_import_kinds(),
            semaphore_exports: device.semaphore_export_kinds(),
            extensions: device.extensions().map(str::to_owned).collect(),
        })
    }
}

/// `None` for a query that the driver does not know.
fn unless_unknown<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(Error::Call { code, .. }) if code == opencl_sys::CL_INVALID_VALUE => Ok(None),
        Err(error) => Err(error),
    }
}

/// A size, where zero means that the driver knows none.
fn known(size: Option<usize>) -> Option<usize> {
    size.filter(|&size| size > 0)
}

/// The work-items that one instruction works on: AMD's wavefront or NVIDIA's warp.
fn hardware_width(ask: &Query<'_>) -> Option<usize> {
    let width = |what| ask.value::<u32>(what).ok().map(|width| width as usize);
    known(width(opencl_sys::CL_DEVICE_WAVEFRONT_WIDTH_AMD)).or_else(|| known(width(opencl_sys::CL_DEVICE_WARP_SIZE_NV)))
}

/// A precision's bits; none if the device has none of it.
fn float(ask: &Query<'_>, what: cl_device_info) -> Option<FloatSupport> {
    let bits = ask.value::<u64>(what).ok()?;
    Some(FloatSupport::from_bits_truncate(bits)).filter(|support| !support.is_empty())
}

fn sub_groups(device: &Device, ask: &Query<'_>, width: Option<usize>) -> Option<SubGroups> {
    let told = ask
        .value::<u32>(opencl_sys::CL_DEVICE_MAX_NUM_SUB_GROUPS)
        .ok()
        .filter(|&most| most > 0);
    // AMD's OpenCL has sub-groups and answers this question of OpenCL 2.1 with an error.
    let counted = || {
        let work_group = ask.value::<usize>(opencl_sys::CL_DEVICE_MAX_WORK_GROUP_SIZE).ok()?;
        let has = device.has_extension("cl_khr_subgroups");
        u32::try_from(work_group / width.filter(|&width| has && width > 0)?).ok()
    };
    let max_per_work_group = told.or_else(counted)?;
    let progress = opencl_sys::CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS;
    let intel = device.has_extension("cl_intel_required_subgroup_size");
    let sizes = intel.then(|| ask.list::<usize>(opencl_sys::CL_DEVICE_SUB_GROUP_SIZES_INTEL));
    Some(SubGroups {
        max_per_work_group,
        independent_progress: ask.value::<u32>(progress).is_ok_and(|answer| answer != 0),
        sizes: match sizes {
            Some(Ok(sizes)) if !sizes.is_empty() => sizes,
            _ => width.into_iter().collect(),
        },
    })
}

/// AMD's answer is in KiB: all that is free, and the largest block.
fn free_bytes(device: &Device, ask: &Query<'_>) -> Option<u64> {
    if !device.has_extension("cl_amd_device_attribute_query") {
        return None;
    }
    let free = ask.list::<usize>(opencl_sys::CL_DEVICE_GLOBAL_FREE_MEMORY_AMD);
    (*free.ok()?.first()? as u64).checked_mul(1024)
}
