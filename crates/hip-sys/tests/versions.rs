//! The traps between releases, one test for each.

use std::ffi::{c_char, c_int};
use std::mem::offset_of;
use std::path::Path;

use hip_sys::versions::*;
use hip_sys::*;

const ROCM_5: Release = Release::new(5, 7);
const ROCM_6: Release = Release::new(6, 4);
const ROCM_7: Release = Release::new(7, 2);
/// HIP's number in ROCm 10.0.
const ROCM_10: Release = Release::new(7, 15);

#[test]
fn the_release_is_read_from_the_numbers_that_real_libraries_give() {
    // What hipRuntimeGetVersion of Debian's 5.2.3, 5.7.1, 6.4.3 and 7.2.4 answers, and HIP_VERSION of 10.0's
    // declarations.
    for (number, release) in [
        (50_221_153, Release::new(5, 2)),
        (50_731_921, ROCM_5),
        (60_443_484, ROCM_6),
        (70_253_211, ROCM_7),
        (71_526_333, ROCM_10),
    ] {
        assert_eq!(release_of(number), Some(release));
    }
    assert_eq!(release_of(0), None);
    assert_eq!(release_of(-1), None);
    assert_eq!(release_of(404), None);
}

#[test]
fn a_release_beyond_the_declarations_is_told_from_a_known_one() {
    assert_eq!(NEWEST, ROCM_10);
    for known in [ROCM_5, ROCM_6, ROCM_7, ROCM_10, Release::new(7, 9)] {
        assert!(!is_newer_than_known(known), "{known}");
    }
    for newer in [Release::new(7, 16), Release::new(7, 99), Release::new(8, 0)] {
        assert!(is_newer_than_known(newer), "{newer}");
    }
}

#[test]
fn a_table_tells_its_release_if_its_library_does() {
    unsafe extern "C" fn six_four(number: *mut c_int) -> hipError_t {
        // SAFETY: the caller gives the address of an int.
        unsafe { number.write(60_443_484) };
        hipError_t::hipSuccess
    }
    unsafe extern "C" fn refuses(_: *mut c_int) -> hipError_t {
        hipError_t::hipErrorNotInitialized
    }
    let api = |call| Api {
        hipRuntimeGetVersion: call,
        ..Api::EMPTY
    };
    assert_eq!(api(Some(six_four)).release(), Some(ROCM_6));
    assert_eq!(api(Some(refuses)).release(), None);
    assert_eq!(api(None).release(), None);
}

#[test]
fn memory_types_keep_their_meaning_over_the_renumbering() {
    let meanings = [
        hipMemoryType::hipMemoryTypeHost,
        hipMemoryType::hipMemoryTypeDevice,
        hipMemoryType::hipMemoryTypeArray,
        hipMemoryType::hipMemoryTypeUnified,
        hipMemoryType::hipMemoryTypeManaged,
    ];
    for (number, meaning) in (0..).zip(meanings) {
        assert_eq!(memory_type(hipMemoryType(number), ROCM_5), meaning);
        assert_eq!(memory_type_number(meaning, ROCM_5), Some(hipMemoryType(number)));
    }
    for release in [ROCM_6, ROCM_7] {
        for meaning in meanings {
            assert_eq!(memory_type(meaning, release), meaning);
            assert_eq!(memory_type_number(meaning, release), Some(meaning));
        }
    }
    let unregistered = hipMemoryType::hipMemoryTypeUnregistered;
    assert_eq!(memory_type_number(unregistered, ROCM_5), None);
    assert_eq!(memory_type_number(unregistered, ROCM_6), Some(unregistered));
    // The number 1 is what both releases have and mean differently.
    assert_eq!(
        memory_type(hipMemoryType(1), ROCM_5).name(),
        Some("hipMemoryTypeDevice")
    );
    assert_eq!(memory_type(hipMemoryType(1), ROCM_6).name(), Some("hipMemoryTypeHost"));
}

#[test]
fn the_chip_id_attribute_is_the_number_of_its_release() {
    assert_eq!(pci_chip_id_attribute(ROCM_6), None);
    let in_7_0 = pci_chip_id_attribute(Release::new(7, 0)).expect("it came with 7.0");
    let in_7_1 = pci_chip_id_attribute(Release::new(7, 1)).expect("it moved");
    assert_eq!((in_7_0.0, in_7_1.0), (10_019, 10_020));
    let name = Some("hipDeviceAttributePciChipId");
    assert_eq!(attribute_name(in_7_0, Release::new(7, 0)), name);
    assert_eq!(attribute_name(in_7_1, ROCM_7), name);
    assert_eq!(
        attribute_name(in_7_0, ROCM_7),
        Some("hipDeviceAttributeMaxAvailableVgprsPerThread")
    );
    assert_eq!(attribute_name(in_7_0, ROCM_6), None);
    assert_eq!(
        attribute_name(hipDeviceAttribute_t::hipDeviceAttributeWarpSize, ROCM_5),
        Some("hipDeviceAttributeWarpSize")
    );
}

#[test]
fn the_place_holder_among_the_errors_moves_with_7_14() {
    let later = Release::new(7, 14);
    assert_eq!(error_name(hipError_t(1054), ROCM_7), Some("hipErrorTbd"));
    assert_eq!(error_name(hipError_t(1055), ROCM_7), None);
    assert_eq!(error_name(hipError_t(1054), later), Some("hipErrorInvalidClusterSize"));
    assert_eq!(error_name(hipError_t(1055), later), Some("hipErrorTbd"));
    assert_eq!(error_name(hipError_t(2), later), Some("hipErrorOutOfMemory"));
}

#[test]
fn the_ipc_flag_was_zero_before_6() {
    assert_eq!(ipc_lazy_peer_access(ROCM_5), 0);
    assert_eq!(ipc_lazy_peer_access(ROCM_6), 1);
    assert_eq!(ipc_lazy_peer_access(ROCM_7), 1);
}

#[test]
fn device_properties_are_read_in_the_layout_that_the_library_has() {
    unsafe extern "C" fn new(_: *mut hipDeviceProp_tR0600, _: c_int) -> hipError_t {
        hipError_t::hipSuccess
    }
    unsafe extern "C" fn old(_: *mut hipDeviceProp_tR0000, _: c_int) -> hipError_t {
        hipError_t::hipSuccess
    }
    let both = Api {
        hipGetDevicePropertiesR0600: Some(new),
        hipGetDeviceProperties: Some(old),
        ..Api::EMPTY
    };
    assert_eq!(DeviceProperties::of(&both), Some(DeviceProperties::R0600));
    let only_old = Api {
        hipGetDeviceProperties: Some(old),
        ..Api::EMPTY
    };
    assert_eq!(DeviceProperties::of(&only_old), Some(DeviceProperties::R0000));
    assert_eq!(DeviceProperties::of(&Api::EMPTY), None);
    assert_eq!(offset_of!(hipDeviceProp_tR0000, gcnArchName), 396);
    assert_eq!(offset_of!(hipDeviceProp_tR0600, gcnArchName), 1160);
}

#[test]
fn a_memset_node_keeps_its_values_in_the_order_of_6() {
    let params = hipMemsetParams {
        dst: std::ptr::without_provenance_mut(64),
        elementSize: 4,
        height: 3,
        pitch: 256,
        value: 7,
        width: 5,
    };
    let older = HIP_MEMSET_NODE_PARAMS::from(params);
    assert_eq!(
        (
            older.dst.addr(),
            older.elementSize,
            older.height,
            older.pitch,
            older.value,
            older.width
        ),
        (64, 4, 3, 256, 7, 5)
    );
    assert_ne!(
        offset_of!(HIP_MEMSET_NODE_PARAMS, pitch),
        offset_of!(hipMemsetParams, pitch)
    );
}

#[test]
fn a_three_dimensional_copy_narrows_or_names_the_field() {
    let mut copy = HIP_MEMCPY3D {
        srcMemoryType: hipMemoryType::hipMemoryTypeHost,
        dstMemoryType: hipMemoryType::hipMemoryTypeDevice,
        WidthInBytes: 40,
        Height: 2,
        Depth: 1,
        dstPitch: 64,
        ..HIP_MEMCPY3D::default()
    };
    let older = HIP_MEMCPY3D_until_5::try_from(&copy).expect("all of it fits");
    assert_eq!((older.srcMemoryType.0, older.dstMemoryType.0), (0, 1));
    assert_eq!(
        (older.WidthInBytes, older.Height, older.Depth, older.dstPitch),
        (40, 2, 1, 64)
    );
    assert_eq!(
        (size_of::<HIP_MEMCPY3D_until_5>(), size_of::<HIP_MEMCPY3D>()),
        (128, 184)
    );
    copy.dstPitch = 1 << 32;
    assert_eq!(HIP_MEMCPY3D_until_5::try_from(&copy).err(), Some("dstPitch"));
    copy.dstPitch = 64;
    copy.srcMemoryType = hipMemoryType::hipMemoryTypeUnregistered;
    assert_eq!(HIP_MEMCPY3D_until_5::try_from(&copy).err(), Some("srcMemoryType"));
}

#[test]
fn the_handle_type_of_an_allocation_lies_where_it_did() {
    // ROCm 6 has it as a plain field behind the allocation's type.
    assert_eq!(offset_of!(hipMemAllocationProp, __bindgen_anon_1), 4);
    assert_eq!(offset_of!(hipMemAllocationProp, location), 8);
    let prop = hipMemAllocationProp {
        __bindgen_anon_1: hipMemAllocationProp__bindgen_ty_1 {
            requestedHandleTypes: hipMemAllocationHandleType::hipMemHandleTypePosixFileDescriptor,
        },
        ..hipMemAllocationProp::default()
    };
    // SAFETY: both names of the union's field are the same number.
    let older = unsafe { prop.__bindgen_anon_1.requestedHandleType };
    assert_eq!(older, hipMemAllocationHandleType::hipMemHandleTypePosixFileDescriptor);
}

#[test]
fn hiprtc_takes_a_list_of_texts_that_it_does_not_write() {
    // A function of 7.0's type; before, the list was declared without its own `const`.
    unsafe extern "C" fn counts(_: hiprtcProgram, count: c_int, options: *const *const c_char) -> hiprtcResult {
        let count = usize::try_from(count).expect("not negative");
        // SAFETY: the test gives as many texts as it says.
        let options = unsafe { std::slice::from_raw_parts(options, count) };
        match options.iter().all(|option| !option.is_null()) {
            true => hiprtcResult::HIPRTC_SUCCESS,
            false => hiprtcResult::HIPRTC_ERROR_INVALID_OPTION,
        }
    }
    let api = RtcApi {
        hiprtcCompileProgram: Some(counts),
        ..RtcApi::EMPTY
    };
    let list = [c"-O3".as_ptr()];
    let call = api.hiprtcCompileProgram.expect("it was put there");
    // SAFETY: the list has one text.
    let status = unsafe { call(std::ptr::null_mut(), 1, list.as_ptr()) };
    assert_eq!(status, hiprtcResult::HIPRTC_SUCCESS);
}

#[test]
fn every_renumbered_value_is_handled_here_or_only_counts_the_others() {
    // Ends of enums: they name no value of their own.
    let ends = [
        "hipFuncAttribute::hipFuncAttributeMax",
        "hipFunction_attribute::HIP_FUNC_ATTRIBUTE_MAX",
        "hipGraphNodeType::hipGraphNodeTypeCount",
        "hipJitOption::hipJitOptionNumOptions",
        "hipLaunchAttributeID::hipLaunchAttributeMax",
        "hipLimit_t::hipLimitRange",
    ];
    let handled = [
        "hipMemoryType::",
        "hipIpcMemLazyEnablePeerAccess",
        "hipError_t::hipErrorTbd",
    ];
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/symbols/hip/renumbered.txt");
    let text = std::fs::read_to_string(path).expect("the list is in the repository");
    for line in text.lines() {
        let name = line.split(' ').next().expect("a name");
        assert!(
            ends.contains(&name) || handled.iter().any(|start| name.starts_with(start)),
            "{line}: handle it in versions.rs"
        );
    }
    assert!(text.lines().count() >= handled.len() + ends.len());
}
