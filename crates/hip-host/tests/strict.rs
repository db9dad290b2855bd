//! `HIP_HOST_STRICT=2`: the host touches device memory at its peril.

mod common;

use std::os::unix::process::ExitStatusExt;
use std::ptr::null_mut;

use common::*;
use hip_sys::hipMemcpyKind;

const SIGSEGV: i32 = 11;
const LEVEL_2: &[(&str, &str)] = &[("HIP_HOST_STRICT", "2")];

#[test]
fn copies_and_fills_work_at_level_2() {
    if !is_child() {
        let child = run_child("copies_and_fills_work_at_level_2", LEVEL_2);
        assert!(child.status.success(), "{child:?}");
        return;
    }
    let data: Vec<u32> = (0..100_000).collect();
    let ptr = upload(&data);
    let other = malloc(64);
    assert_eq!(download::<u32>(ptr, data.len()), data);
    ok!(hipMemset(other, 7, 64));
    assert_eq!(download::<u8>(other, 64), [7; 64]);
    // Pinned memory is the host's.
    let mut pinned = null_mut();
    ok!(hipHostMalloc(&mut pinned, 64, 0));
    // SAFETY: 64 bytes of pinned memory.
    unsafe { pinned.cast::<u8>().write(1) };
    ok!(hipHostFree(pinned));
    ok!(hipFree(other));
    ok!(hipFree(ptr));
}

#[test]
fn a_shared_allocation_stays_usable_at_level_2() {
    if !is_child() {
        let child = run_child("a_shared_allocation_stays_usable_at_level_2", LEVEL_2);
        assert!(child.status.success(), "{child:?}");
        return;
    }
    let ptr = upload(&[1u32, 2, 3]);
    let mut handle = hip_sys::hipIpcMemHandle_t::default();
    ok!(hipIpcGetMemHandle(&mut handle, ptr));
    assert_eq!(download::<u32>(ptr, 3), [1, 2, 3]);
    ok!(hipFree(ptr));
}

#[test]
fn a_host_access_to_device_memory_faults_at_level_2_only() {
    const NAME: &str = "a_host_access_to_device_memory_faults_at_level_2_only";
    if !is_child() {
        assert!(run_child(NAME, &[]).status.success());
        let child = run_child(NAME, LEVEL_2);
        assert_eq!(child.status.signal(), Some(SIGSEGV), "{child:?}");
        return;
    }
    let ptr = malloc(64);
    ok!(hipMemset(ptr, 7, 64));
    ok!(hipDeviceSynchronize());
    // SAFETY: mapped memory at level 1; at level 2 the fault is what is tested.
    assert_eq!(unsafe { ptr.cast::<u8>().read_volatile() }, 7);
}

#[test]
fn copies_fills_and_kernels_reach_device_memory_and_the_host_its_own() {
    const CASE: &str = "copies_fills_and_kernels_reach_device_memory_and_the_host_its_own";
    if !is_child() {
        let output = run_child(CASE, LEVEL_2);
        assert!(output.status.success(), "{output:?}");
        return;
    }
    let source = "extern \"C\" __global__ void twice(int* x) { x[threadIdx.x] *= 2; }";
    let kernel = function(load(&compile(source)), "twice");
    let (first, second) = (stream(), stream());
    let (a, b) = (upload(&[1i32, 2, 3]), upload(&[10i32, 20, 30]));
    for _ in 0..50 {
        let (mut one, mut two) = (params![a], params![b]);
        assert_eq!(launch(kernel, [1; 3], [3, 1, 1], 0, first, &mut one), OK);
        assert_eq!(launch(kernel, [1; 3], [3, 1, 1], 0, second, &mut two), OK);
        // Memory comes and goes while commands run.
        let c = malloc(1 << 20);
        ok!(hipMemsetAsync(c, 1, 1 << 20, first));
        ok!(hipMemcpyAsync(a, a, 4, hipMemcpyKind::hipMemcpyDeviceToDevice, second));
        ok!(hipStreamSynchronize(first));
        ok!(hipFree(c));
        ok!(hipMemset(a, 0, 12));
        ok!(hipMemcpyDtoD(a, b, 12));
    }
    ok!(hipDeviceSynchronize());
    assert_eq!(download::<i32>(a, 3)[0] % 10, 0);

    let mut pinned = std::ptr::null_mut();
    ok!(hipHostMalloc(&mut pinned, 4, 0));
    // SAFETY: pinned memory is the host's to write.
    unsafe { pinned.cast::<i32>().write(7) };
    ok!(hipHostFree(pinned));
}

#[test]
fn a_level_that_does_not_exist_is_named() {
    const CASE: &str = "a_level_that_does_not_exist_is_named";
    if is_child() {
        malloc(4);
        return;
    }
    let output = run_child(CASE, &[("HIP_HOST_STRICT", "3")]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("HIP_HOST_STRICT=`3`"), "{text}");
}
