//! Two devices: copies between them, and kernels of one on the memory of the other, both in order.

mod common;

use common::{Gate, two_devices};
use hip::rtc::Program;
use hip::{Error, LaunchConfig};

#[test]
fn a_copy_between_devices_waits_for_the_writer_and_the_source_for_the_copy() {
    let Some((first, second)) = two_devices() else {
        return;
    };
    let (here, there) = (first.stream().unwrap(), second.stream().unwrap());
    let mut source = first.alloc_from(&here, &[3_u32; 256]).unwrap();
    let mut destination = second.alloc_zeroed::<u32>(256).unwrap();
    let gate = Gate::close(&here);
    source.on_mut(&here).unwrap().fill_zero().unwrap();
    destination.copy_from_peer(&there, &source).unwrap();
    assert!(!there.is_idle().unwrap(), "waits for the fill");
    gate.open();
    let copied = Gate::close(&there);
    let mut again = first.alloc_from(&here, &[9_u32; 256]).unwrap();
    source
        .on_mut(&here)
        .unwrap()
        .copy_from(again.on(&here).unwrap())
        .unwrap();
    copied.open();
    let mut seen = [1; 256];
    destination.copy_to_slice(&there, &mut seen).unwrap();
    assert_eq!(seen, [0; 256]);
    source.copy_to_slice(&here, &mut seen).unwrap();
    assert_eq!(seen, [9; 256]);
    again.copy_from_peer(&here, &destination).unwrap();
    again.copy_to_slice(&here, &mut seen).unwrap();
    assert_eq!(seen, [0; 256]);
}

#[test]
fn a_kernel_of_one_device_works_on_the_memory_of_a_peer() {
    let Some((first, second)) = two_devices() else {
        return;
    };
    assert!(second.can_access(&first).unwrap());
    assert!(!first.can_access(&first).unwrap());
    let (here, there) = (first.stream().unwrap(), second.stream().unwrap());
    let source = "extern \"C\" __global__ void add(int *x, const int *y) { x[threadIdx.x] += y[threadIdx.x]; }";
    let add = Program::new(source).compile(&second).unwrap().function("add").unwrap();
    let (mut x, y) = (
        first.alloc_from(&here, &[1; 32]).unwrap(),
        first.alloc_from(&here, &[2; 32]).unwrap(),
    );
    for _ in 0..2 {
        let args = (x.on_peer_mut(&there).unwrap(), y.on_peer(&there).unwrap());
        // SAFETY: 32 threads on 32 elements.
        unsafe { add.launch(&there, LaunchConfig::linear(32, 32).unwrap(), &[&args.0, &args.1]) }.unwrap();
    }
    let mut seen = [0; 32];
    x.copy_to_slice(&here, &mut seen).unwrap();
    assert_eq!(seen, [5; 32]);
}

/// Peer access as `hipDeviceEnablePeerAccess` gives it does not cover mappings: each lets the devices in by itself.
#[test]
fn a_kernel_of_one_device_works_on_the_virtual_memory_of_a_peer() {
    let Some((first, second)) = two_devices() else {
        return;
    };
    second.enable_access(&first).unwrap();
    let (here, there) = (first.stream().unwrap(), second.stream().unwrap());
    let source = "extern \"C\" __global__ void add(int *x, const int *y) { x[threadIdx.x] += y[threadIdx.x]; }";
    let add = Program::new(source).compile(&second).unwrap().function("add").unwrap();
    let memory = first.virtual_memory(32 * 4).unwrap();
    let access = memory.access();
    let mut x = memory.into_buffer::<i32>().unwrap();
    let mut y = first.virtual_memory(32 * 4).unwrap().into_buffer::<i32>().unwrap();
    x.copy_from_slice(&here, &[1; 32]).unwrap();
    y.copy_from_slice(&here, &[2; 32]).unwrap();
    let config = LaunchConfig::linear(32, 32).unwrap();
    access.enable(&second).unwrap();
    for _ in 0..2 {
        let args = (x.on_peer_mut(&there).unwrap(), y.on_peer(&there).unwrap());
        // SAFETY: 32 threads on 32 elements.
        unsafe { add.launch(&there, config, &[&args.0, &args.1]) }.unwrap();
    }
    let mut seen = [0; 32];
    x.copy_to_slice(&here, &mut seen).unwrap();
    assert_eq!(seen, [5; 32], "and the memory's own device still reaches it");
    let other = common::device();
    assert!(matches!(access.enable(&other), Err(Error::WrongDevice { .. })));
}

/// A GPU's kernel would fault, which ends the process; the software device refuses the launch.
#[test]
fn a_kernel_of_a_device_that_was_not_let_in_is_refused() {
    let Some((first, second)) = two_devices() else {
        return;
    };
    if !common::on_host() {
        return;
    }
    second.enable_access(&first).unwrap();
    let (here, there) = (first.stream().unwrap(), second.stream().unwrap());
    let source = "extern \"C\" __global__ void set(int *x) { x[threadIdx.x] = 7; }";
    let set = Program::new(source).compile(&second).unwrap().function("set").unwrap();
    let config = LaunchConfig::linear(32, 32).unwrap();
    let memory = first.virtual_memory(32 * 4).unwrap();
    let access = memory.access();
    let mut x = memory.into_buffer::<i32>().unwrap();
    let pointer = x.on_mut(&here).unwrap().as_mut_ptr();
    // SAFETY: 32 elements that nothing else uses; whether the device reaches them is the question.
    let slice = unsafe { hip::DeviceSliceMut::from_raw_parts(pointer, 32, &there) };
    // SAFETY: 32 threads on 32 elements.
    let launch = || unsafe { set.launch(&there, config, &[&slice]) };
    let refused = launch().unwrap_err();
    assert!(refused.to_string().contains("hipErrorIllegalAddress"), "{refused}");
    access.enable(&second).unwrap();
    launch().unwrap();
    there.synchronize().unwrap();
    let mut seen = [0; 32];
    x.copy_to_slice(&here, &mut seen).unwrap();
    assert_eq!(seen, [7; 32]);
}

#[test]
fn enabling_access_again_leaves_no_last_error() {
    let Some((first, second)) = two_devices() else {
        return;
    };
    let api = first.runtime().api();
    let (peek, clear) = (api.hipPeekAtLastError.unwrap(), api.hipGetLastError.unwrap());
    first.enable_access(&second).unwrap();
    first.enable_access(&second).unwrap();
    // SAFETY: takes no arguments.
    assert_eq!(unsafe { peek() }, hip_sys::hipError_t::hipSuccess);
    // A refusal that is told is HIP's last error, too.
    assert!(first.enable_access(&first).is_err());
    // SAFETY: takes no arguments.
    assert_ne!(unsafe { clear() }, hip_sys::hipError_t::hipSuccess);
}

#[test]
fn what_no_peer_may_see_is_refused() {
    let Some((first, second)) = two_devices() else {
        return;
    };
    let (here, there) = (first.stream().unwrap(), second.stream().unwrap());
    let pooled = here.alloc::<u8>(4).unwrap();
    assert!(matches!(pooled.on_peer(&there), Err(Error::NotSupported { .. })));
    let other = common::device();
    assert!(matches!(first.can_access(&other), Err(Error::WrongDevice { .. })));
    assert!(matches!(first.enable_access(&other), Err(Error::WrongDevice { .. })));
    let mut short = second.alloc::<u8>(3).unwrap();
    assert!(matches!(
        short.copy_from_peer(&there, &pooled),
        Err(Error::LengthMismatch { .. })
    ));
}
