//! What HIP promises about memory and CUDA does not.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr;

use hip_sys::{hipError_t, hipExternalMemoryHandleDesc, hipExternalMemoryHandleType, hipMemoryType};

use crate::common::{Memory, OK, call, tables};

#[test]
fn nothing_can_be_allocated_and_freed() {
    let Some(tables) = tables() else { return };
    let mut at = ptr::dangling_mut();
    assert_eq!(call!(tables.hip, hipMalloc(&mut at, 0)), OK);
    assert!(at.is_null());
    assert_eq!(call!(tables.hip, hipFree(at)), OK);
    assert_eq!(call!(tables.hip, hipHostFree(at)), OK);
}

#[test]
fn an_unknown_pointer_is_unregistered_and_no_error() {
    let Some(tables) = tables() else { return };
    let mut told = hip_sys::hipPointerAttribute_t::default();
    let own = 1_u8;
    assert_eq!(
        call!(tables.hip, hipPointerGetAttributes(&mut told, (&raw const own).cast())),
        OK
    );
    assert_eq!(told.type_, hipMemoryType::hipMemoryTypeUnregistered);
    let memory = Memory::of(&[1_u32; 4]);
    assert_eq!(
        call!(tables.hip, hipPointerGetAttributes(&mut told, memory.at.cast())),
        OK
    );
    assert_eq!(
        (told.type_, told.devicePointer),
        (hipMemoryType::hipMemoryTypeDevice, memory.at.cast())
    );
    let mut base = ptr::null_mut();
    let mut bytes = 0;
    let inside = memory.at.wrapping_add(1).cast();
    assert_eq!(
        call!(tables.hip, hipMemGetAddressRange(&mut base, &mut bytes, inside)),
        OK
    );
    assert_eq!(base, memory.at.cast());
    let unknown = (&raw const own).cast_mut().cast();
    assert_eq!(
        call!(tables.hip, hipMemGetAddressRange(&mut base, &mut bytes, unknown)),
        hipError_t::hipErrorNotFound
    );
}

#[test]
fn a_refused_descriptor_stays_open() {
    let Some(tables) = tables() else { return };
    let null = File::open("/dev/null").unwrap();
    let mut desc = hipExternalMemoryHandleDesc {
        type_: hipExternalMemoryHandleType::hipExternalMemoryHandleTypeOpaqueFd,
        size: 4096,
        ..hipExternalMemoryHandleDesc::default()
    };
    desc.handle.fd = null.as_raw_fd();
    let mut memory = ptr::null_mut();
    assert_eq!(
        call!(tables.hip, hipImportExternalMemory(&mut memory, &desc)),
        hipError_t::hipErrorOutOfMemory
    );
    assert!(null.metadata().is_ok());
}

#[test]
fn the_last_error_is_the_last_calls_and_a_bad_device_has_its_own() {
    let Some(tables) = tables() else { return };
    assert_eq!(call!(tables.hip, hipSetDevice(1000)), hipError_t::hipErrorInvalidDevice);
    assert_eq!(
        call!(tables.hip, hipPeekAtLastError()),
        hipError_t::hipErrorInvalidDevice
    );
    assert_eq!(call!(tables.hip, hipSetDevice(0)), OK);
    assert_eq!(call!(tables.hip, hipGetLastError()), OK);
}
