//! `HIP_HOST_STRICT=2`: the host is kept out of device memory. Each case has a process of its own.

mod common;

use std::os::unix::process::ExitStatusExt as _;

use common::*;
use hip_sys::hipMemcpyKind;

const SIGSEGV: i32 = 11;
const STRICT: [(&str, &str); 1] = [("HIP_HOST_STRICT", "2")];

#[test]
fn following_a_device_pointer_on_the_host_faults() {
    const CASE: &str = "following_a_device_pointer_on_the_host_faults";
    if is_child() {
        let device = upload(&[1u32, 2, 3]);
        // SAFETY: the memory is there and holds three numbers; the host has no business with it, which is what is tested.
        println!("READ {}", unsafe { device.cast::<u32>().read_volatile() });
        return;
    }
    let strict = run_child(CASE, &STRICT);
    assert_eq!(strict.status.signal(), Some(SIGSEGV), "{strict:?}");
    let lenient = run_child(CASE, &[("HIP_HOST_STRICT", "1")]);
    assert!(lenient.status.success(), "{lenient:?}");
}

#[test]
fn copies_fills_and_kernels_reach_device_memory_and_the_host_its_own() {
    const CASE: &str = "copies_fills_and_kernels_reach_device_memory_and_the_host_its_own";
    if !is_child() {
        let output = run_child(CASE, &STRICT);
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
        ok!(hipMemcpyAsync(
            a,
            a,
            4,
            hipMemcpyKind::hipMemcpyDeviceToDevice,
            second
        ));
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
