//! Versions, devices and error texts.

mod common;

use std::ffi::CStr;
use std::ptr::null_mut;

use common::*;
use hip_host::foreign::ForeignKind;
use hip_sys::{hipDeviceAttribute_t, hipDeviceProp_tR0600, hipError_t};

fn text(of: unsafe extern "C" fn(hipError_t) -> *const std::ffi::c_char, code: u32) -> String {
    // SAFETY: the functions take any value and return a terminated string that lives for ever.
    unsafe { CStr::from_ptr(of(hipError_t(code))) }
        .to_str()
        .unwrap()
        .to_owned()
}

#[test]
fn every_code_has_its_own_name() {
    let (name, string) = (
        hip_host::hip_api().hipGetErrorName.unwrap(),
        hip_host::hip_api().hipGetErrorString.unwrap(),
    );
    for code in 0..1100 {
        // The bindings' own list of names is the reference.
        if let Some(known) = hipError_t(code).name() {
            assert_eq!(text(name, code), known);
            assert!(!text(string, code).is_empty());
        }
    }
    assert_eq!(
        (text(name, 1), text(string, 1)),
        ("hipErrorInvalidValue".into(), "invalid argument".into())
    );
    assert_eq!(text(name, 12345), "hipErrorUnknown");
    let mut out = c"x".as_ptr();
    assert_eq!(
        hip!(hipDrvGetErrorName(hipError_t(12345), &mut out)),
        hipError_t::hipErrorInvalidValue
    );
    assert!(out.is_null());
    ok!(hipDrvGetErrorString(hipError_t(2), &mut out));
}

#[test]
fn the_last_error_is_the_threads_last_result() {
    let invalid = hipError_t::hipErrorInvalidValue;
    assert_eq!(hip!(hipGetDeviceCount(null_mut())), invalid);
    assert_eq!(hip!(hipPeekAtLastError()), invalid);
    std::thread::spawn(|| assert_eq!(hip!(hipPeekAtLastError()), OK))
        .join()
        .unwrap();
    assert_eq!(hip!(hipGetLastError()), invalid);
    assert_eq!(hip!(hipGetLastError()), OK);
    assert_eq!(hip!(hipGetDeviceCount(null_mut())), invalid);
    let mut count = 0;
    ok!(hipGetDeviceCount(&mut count));
    // As HIP 6 does, a success takes an earlier error away.
    assert_eq!(hip!(hipPeekAtLastError()), OK);
}

#[test]
fn one_device_answers_by_default() {
    ok!(hipInit(0));
    assert_eq!(hip!(hipInit(1)), hipError_t::hipErrorInvalidValue);
    let mut value = 0;
    ok!(hipGetDeviceCount(&mut value));
    assert_eq!(value, 1);
    ok!(hipRuntimeGetVersion(&mut value));
    assert_eq!((value / 10_000_000, value / 100_000 % 100), (6, 4));
    let invalid_device = hipError_t::hipErrorInvalidDevice;
    for ordinal in [-1, 1, i32::MAX] {
        assert_eq!(hip!(hipSetDevice(ordinal)), invalid_device);
        assert_eq!(hip!(hipDeviceGet(&mut value, ordinal)), invalid_device);
        assert_eq!(
            hip!(hipDeviceGetAttribute(
                &mut value,
                hipDeviceAttribute_t::hipDeviceAttributeWarpSize,
                ordinal
            )),
            invalid_device
        );
    }
    let mut name = [1i8; 256];
    ok!(hipDeviceGetName(name.as_mut_ptr(), 256, 0));
    // SAFETY: a terminated string.
    let name_text = unsafe { CStr::from_ptr(name.as_ptr()) }.to_str().unwrap();
    assert!(name_text.starts_with("hipcl host device ("), "{name_text}");
    ok!(hipDeviceGetName(name.as_mut_ptr(), 4, 0));
    assert_eq!(name[..4], [b'h' as i8, b'i' as i8, b'p' as i8, 0]);
    assert_eq!(
        hip!(hipDeviceGetName(name.as_mut_ptr(), 0, 0)),
        hipError_t::hipErrorInvalidValue
    );
    let mut address = [0i8; 16];
    assert_eq!(
        hip!(hipDeviceGetPCIBusId(address.as_mut_ptr(), 12, 0)),
        hipError_t::hipErrorInvalidValue
    );
    ok!(hipDeviceGetPCIBusId(address.as_mut_ptr(), 13, 0));
    ok!(hipDeviceGetByPCIBusId(&mut value, address.as_ptr()));
    assert_eq!(value, 0);
    assert_eq!(
        hip!(hipDeviceGetByPCIBusId(&mut value, c"0000:03:00.0".as_ptr())),
        hipError_t::hipErrorInvalidValue
    );
}

#[test]
fn properties_and_attributes_agree() {
    let mut p = hipDeviceProp_tR0600::default();
    ok!(hipGetDevicePropertiesR0600(&mut p, 0));
    let attribute = |attribute| {
        let mut value = 0;
        ok!(hipDeviceGetAttribute(&mut value, attribute, 0));
        value
    };
    type A = hipDeviceAttribute_t;
    assert_eq!(attribute(A::hipDeviceAttributeWarpSize), p.warpSize);
    assert_eq!(attribute(A::hipDeviceAttributeMaxThreadsPerBlock), p.maxThreadsPerBlock);
    assert_eq!(
        attribute(A::hipDeviceAttributeMultiprocessorCount),
        p.multiProcessorCount
    );
    assert_eq!(attribute(A::hipDeviceAttributePciBusId), p.pciBusID);
    assert_eq!(attribute(A::hipDeviceAttributePciDomainID), p.pciDomainID);
    assert_eq!(
        attribute(A::hipDeviceAttributeMaxSharedMemoryPerBlock) as usize,
        p.sharedMemPerBlock
    );
    assert_eq!(attribute(A::hipDeviceAttributeManagedMemory), p.managedMemory);
    assert_eq!(attribute(A::hipDeviceAttributeIntegrated), p.integrated);
    let (mut total, mut major, mut minor) = (0, 0, 0);
    ok!(hipDeviceTotalMem(&mut total, 0));
    ok!(hipDeviceComputeCapability(&mut major, &mut minor, 0));
    assert_eq!((total, major, minor), (p.totalGlobalMem, p.major, p.minor));
    // SAFETY: a terminated string.
    assert_eq!(unsafe { CStr::from_ptr(p.gcnArchName.as_ptr()) }, c"host");
    let mut value = 0;
    assert_eq!(
        hip!(hipDeviceGetAttribute(&mut value, hipDeviceAttribute_t(999_999), 0)),
        hipError_t::hipErrorInvalidValue
    );
}

#[test]
fn devices_are_as_many_as_asked_for_and_apart() {
    if !is_child() {
        assert!(
            run_child(
                "devices_are_as_many_as_asked_for_and_apart",
                &[("HIP_HOST_DEVICES", "3")]
            )
            .status
            .success()
        );
        return;
    }
    let mut value = 0;
    ok!(hipGetDeviceCount(&mut value));
    assert_eq!(value, 3);
    ok!(hipSetDevice(2));
    std::thread::spawn(|| {
        let mut value = 9;
        ok!(hipGetDevice(&mut value));
        assert_eq!(value, 0, "each thread begins with device 0");
    })
    .join()
    .unwrap();
    let d = malloc(64);
    let mut answer = hip_sys::hipPointerAttribute_t::default();
    ok!(hipPointerGetAttributes(&mut answer, d));
    assert_eq!(answer.device, 2);
    let (own, mut stream_device) = (stream(), 9);
    ok!(hipStreamGetDevice(own, &mut stream_device));
    assert_eq!(stream_device, 2);
    ok!(hipSetDevice(1));
    let mut event = null_mut();
    ok!(hipEventCreate(&mut event));
    assert_eq!(
        hip!(hipEventRecord(event, own)),
        hipError_t::hipErrorInvalidHandle,
        "an event of another device"
    );
    let mut addresses: Vec<[i8; 16]> = vec![[0; 16]; 3];
    for (ordinal, address) in addresses.iter_mut().enumerate() {
        ok!(hipDeviceGetPCIBusId(address.as_mut_ptr(), 16, ordinal as i32));
    }
    addresses.dedup();
    assert_eq!(addresses.len(), 3);
}

#[test]
fn no_device_is_told_by_every_call_that_needs_one() {
    if !is_child() {
        assert!(
            run_child(
                "no_device_is_told_by_every_call_that_needs_one",
                &[("HIP_HOST_DEVICES", "0")]
            )
            .status
            .success()
        );
        return;
    }
    let none = hipError_t::hipErrorNoDevice;
    let (mut value, mut ptr, mut stream, mut event) = (9, null_mut(), null_mut(), null_mut());
    assert_eq!(hip!(hipInit(0)), none);
    assert_eq!(hip!(hipGetDeviceCount(&mut value)), none);
    assert_eq!(value, 0);
    assert_eq!(hip!(hipSetDevice(0)), none);
    assert_eq!(hip!(hipMalloc(&mut ptr, 16)), none);
    assert_eq!(hip!(hipStreamCreate(&mut stream)), none);
    assert_eq!(hip!(hipEventCreate(&mut event)), none);
    assert_eq!(hip!(hipDeviceSynchronize()), none);
    assert_eq!(hip!(hipStreamSynchronize(null_mut())), none);
    let memory = [0u8; 8];
    let (ptr, kind) = (memory.as_ptr().cast_mut().cast(), ForeignKind::Vram);
    // SAFETY: refused, so nothing is used.
    let adopted = unsafe { hip_host::foreign::adopt(ptr, 8, kind) };
    assert!(adopted.is_err());
}
