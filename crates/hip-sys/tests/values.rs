//! Numbers that the rest of the project relies on, as ROCm 6.x has them.

#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

use std::mem::offset_of;

use hip_sys::*;

#[test]
fn error_codes_are_those_of_the_abi() {
    assert_eq!(hipError_t::hipSuccess.0, 0);
    assert_eq!(hipError_t::hipErrorInvalidValue.0, 1);
    assert_eq!(hipError_t::hipErrorOutOfMemory.0, 2);
    assert_eq!(hipError_t::hipErrorInvalidDevice.0, 101);
    assert_eq!(hipError_t::hipErrorNoDevice.0, 100);
    assert_eq!(hipError_t::hipErrorInvalidHandle.0, 400);
    assert_eq!(hipError_t::hipErrorNotReady.0, 600);
    assert_eq!(hipError_t::hipErrorIllegalAddress.0, 700);
    assert_eq!(hipError_t::hipErrorNotSupported.0, 801);
    assert_eq!(hipError_t::hipErrorUnknown.0, 999);
}

#[test]
fn what_rocm_10_added_has_its_numbers_and_its_layout() {
    assert_eq!(hipError_t::hipErrorInvalidResourceType.0, 914);
    assert_eq!(hipError_t::hipErrorStreamDetached.0, 916);
    assert_eq!(hipError_t::hipErrorInvalidClusterSize.0, 1054);
    assert_eq!(hipError_t::hipErrorTbd.0, 1055);
    assert_eq!(hipLaunchAttributeID::hipLaunchAttributeClusterDimension.0, 4);
    assert_eq!(hipDevResourceType::hipDevResourceTypeWorkqueue.0, 10_000);
    assert_eq!(size_of::<hipDevResource>(), 144);
    // The resource itself, a union without a name, lies behind 92 bytes of the library's own.
    assert_eq!(offset_of!(hipDevResource_st, __bindgen_anon_1), 96);
    assert_eq!(offset_of!(hipDevResource_st, nextResource), 136);
    assert_eq!(size_of::<hipDevSmResourceGroupParams>(), 64);
    assert_eq!(size_of::<hipMemcpy3DBatchOp>(), 112);
    assert_eq!(size_of::<hipLaunchAttributeValue>(), 64);
}

#[test]
fn a_known_value_has_its_c_name_and_an_unknown_one_none() {
    assert_eq!(hipError_t(2).name(), Some("hipErrorOutOfMemory"));
    assert_eq!(hiprtcResult(6).name(), Some("HIPRTC_ERROR_COMPILATION"));
    assert_eq!(hipError_t(123_456).name(), None);
    assert_eq!(format!("{:?}", hipError_t::hipErrorNoDevice), "hipErrorNoDevice (100)");
    assert_eq!(format!("{:?}", hipError_t(123_456)), "hipError_t(123456)");
}

#[test]
fn memory_kinds_are_numbered_as_since_rocm_6() {
    assert_eq!(hipMemoryType::hipMemoryTypeUnregistered.0, 0);
    assert_eq!(hipMemoryType::hipMemoryTypeHost.0, 1);
    assert_eq!(hipMemoryType::hipMemoryTypeDevice.0, 2);
    assert_eq!(hipMemoryType::hipMemoryTypeManaged.0, 3);
    assert_eq!(hipMemcpyKind::hipMemcpyHostToDevice.0, 1);
    assert_eq!(hipMemcpyKind::hipMemcpyDeviceToHost.0, 2);
    assert_eq!(hipMemcpyKind::hipMemcpyDeviceToDevice.0, 3);
    assert_eq!(hipMemcpyKind::hipMemcpyDefault.0, 4);
}

#[test]
fn flags_are_those_of_the_abi() {
    assert_eq!((hipStreamDefault, hipStreamNonBlocking), (0, 1));
    assert_eq!((hipEventDefault, hipEventDisableTiming), (0, 2));
    assert_eq!(
        (hipHostMallocDefault, hipHostMallocPortable, hipHostMallocMapped),
        (0, 1, 2)
    );
    assert_eq!(
        (hipHostRegisterDefault, hipHostRegisterPortable, hipHostRegisterMapped),
        (0, 1, 2)
    );
    assert_eq!((hipStreamLegacy.addr(), hipStreamPerThread.addr()), (1, 2));
}

#[test]
fn structures_have_the_layout_of_rocm_6() {
    assert_eq!(offset_of!(hipDeviceProp_tR0600, gcnArchName), 1160);
    assert_eq!(offset_of!(hipDeviceProp_tR0600, totalGlobalMem), 288);
    assert_eq!(size_of::<hipPointerAttribute_t>(), 32);
    assert_eq!(offset_of!(hipPointerAttribute_t, devicePointer), 8);
    assert_eq!(offset_of!(hipPointerAttribute_t, isManaged), 24);
    assert_eq!(size_of::<dim3>(), 12);
    assert_eq!(size_of::<hipUUID>(), 16);
    assert_eq!(size_of::<hipIpcMemHandle_t>(), 64);
    assert_eq!(size_of::<hipStream_t>(), size_of::<usize>());
}

#[test]
fn handles_start_null_and_structures_zero() {
    let attributes = hipPointerAttribute_t::default();
    assert!(attributes.devicePointer.is_null());
    assert_eq!(attributes.type_, hipMemoryType::hipMemoryTypeUnregistered);
}
