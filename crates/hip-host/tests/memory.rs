//! Allocation, copies, fills, and what every pointer is checked for.

mod common;

use std::ffi::c_void;
use std::ptr::null_mut;

use common::*;
use hip_sys::{hipDeviceptr_t, hipError_t, hipMemcpyKind, hipMemoryType, hipPointerAttribute_t};

const INVALID: hipError_t = hipError_t::hipErrorInvalidValue;
const H2D: hipMemcpyKind = hipMemcpyKind::hipMemcpyHostToDevice;
const D2H: hipMemcpyKind = hipMemcpyKind::hipMemcpyDeviceToHost;
const D2D: hipMemcpyKind = hipMemcpyKind::hipMemcpyDeviceToDevice;
const H2H: hipMemcpyKind = hipMemcpyKind::hipMemcpyHostToHost;
const ANY: hipMemcpyKind = hipMemcpyKind::hipMemcpyDefault;

fn at(ptr: *mut c_void, offset: usize) -> *mut c_void {
    ptr.wrapping_byte_add(offset)
}

fn attributes(ptr: *const c_void) -> hipPointerAttribute_t {
    let mut answer = hipPointerAttribute_t::default();
    ok!(hipPointerGetAttributes(&mut answer, ptr));
    answer
}

#[test]
fn copies_carry_every_byte_at_every_size() {
    for bytes in [
        1,
        255,
        256,
        257,
        4095,
        4096,
        4097,
        1 << 20,
        (8 << 20) + 3,
        (20 << 20) + 1,
    ] {
        let data: Vec<u8> = (0..bytes).map(|i| (i * 7 + i / 251) as u8).collect();
        let a = upload(&data);
        let b = malloc(bytes);
        ok!(hipMemcpy(b, a, bytes, D2D));
        assert!(download::<u8>(b, bytes) == data, "{bytes}");
        ok!(hipFree(a));
        ok!(hipFree(b));
    }
}

#[test]
fn a_range_out_of_bounds_is_refused() {
    let (n, host) = (1000usize, vec![0u8; 5000]);
    let d = malloc(n);
    for (offset, bytes) in [
        (0, n + 1),
        (1, n),
        (n - 1, 2),
        (n, 1),
        (n + 300, 1),
        (5000, 1),
        (0, usize::MAX),
        (n - 1, usize::MAX),
    ] {
        let p = at(d, offset);
        assert_eq!(
            hip!(hipMemcpy(p, host.as_ptr().cast(), bytes, H2D)),
            INVALID,
            "{offset} {bytes}"
        );
        assert_eq!(
            hip!(hipMemcpy(host.as_ptr().cast_mut().cast(), p, bytes, D2H)),
            INVALID,
            "{offset} {bytes}"
        );
        assert_eq!(hip!(hipMemset(p, 0, bytes)), INVALID, "{offset} {bytes}");
        assert_eq!(
            hip!(hipMemcpyAsync(p, p, bytes, ANY, null_mut())),
            INVALID,
            "{offset} {bytes}"
        );
    }
    assert_eq!(hip!(hipMemset(at(d, 0usize.wrapping_sub(1)), 0, 1)), INVALID);
    assert_eq!(hip!(hipMemsetD32(d, 0, usize::MAX / 2)), INVALID);
    assert_eq!(hip!(hipMemsetD32(at(d, 2), 0, 1)), INVALID);
    // A host range that runs into the device's memory.
    let before = at(d, 0usize.wrapping_sub(d as usize % 4096 + 4096 + 64));
    assert_eq!(hip!(hipMemcpy(d, before, 8192, ANY)), INVALID);
    ok!(hipMemset(at(d, n - 1), 1, 1));
    ok!(hipFree(d));
}

#[test]
fn a_freed_pointer_is_recognised() {
    let mut host = [0u8; 64];
    let d = malloc(64);
    ok!(hipFree(d));
    assert_eq!(hip!(hipFree(d)), INVALID);
    assert_eq!(hip!(hipMemcpy(host.as_mut_ptr().cast(), d, 64, ANY)), INVALID);
    assert_eq!(hip!(hipMemset(d, 0, 64)), INVALID);
    assert_eq!(attributes(d).type_, hipMemoryType::hipMemoryTypeUnregistered);
    // Its addresses are not given out again soon.
    for _ in 0..64 {
        let other = malloc(64);
        assert_ne!(other, d);
        ok!(hipFree(other));
    }
    ok!(hipFree(null_mut()));
    assert_eq!(hip!(hipFree(host.as_mut_ptr().cast())), INVALID);
    let d = malloc(1024);
    assert_eq!(hip!(hipFree(at(d, 256))), INVALID);
    assert_eq!(hip!(hipHostFree(d)), INVALID);
    ok!(hipFree(d));
}

#[test]
fn the_stated_direction_must_fit_the_memory() {
    let (d, mut h) = (malloc(64), [0u8; 64]);
    let h = h.as_mut_ptr().cast::<c_void>();
    let e = malloc(64);
    for (to, from, good, bad) in [
        (d, h, &[H2D, ANY][..], &[D2H, D2D, H2H][..]),
        (h, d, &[D2H, ANY], &[H2D, D2D, H2H]),
        (d, e, &[D2D, ANY], &[H2D, D2H, H2H]),
        (h, at(h, 32), &[H2H, ANY], &[H2D, D2H, D2D]),
    ] {
        for &kind in good {
            ok!(hipMemcpy(to, from, 32, kind));
        }
        for &kind in bad {
            assert_eq!(hip!(hipMemcpy(to, from, 32, kind)), INVALID, "{kind:?}");
        }
        assert_eq!(
            hip!(hipMemcpy(to, from, 32, hipMemcpyKind(77))),
            hipError_t::hipErrorInvalidMemcpyDirection
        );
    }
    assert_eq!(hip!(hipMemcpy(null_mut(), h, 1, ANY)), INVALID);
    assert_eq!(hip!(hipMemcpy(d, null_mut(), 1, ANY)), INVALID);
    ok!(hipMemcpy(null_mut(), null_mut(), 0, ANY));
    assert_eq!(hip!(hipMemcpyHtoD(h, h, 4)), INVALID);
    assert_eq!(hip!(hipMemcpyDtoH(d, d, 4)), INVALID);
    assert_eq!(hip!(hipMemcpyDtoD(d, h, 4)), INVALID);
    assert_eq!(hip!(hipMemset(h, 0, 4)), INVALID);
}

#[test]
fn sizes_that_cannot_be_are_out_of_memory_and_cost_nothing() {
    if !is_child() {
        // Alone in a process: other tests allocate too.
        assert!(
            run_child("sizes_that_cannot_be_are_out_of_memory_and_cost_nothing", &[])
                .status
                .success()
        );
        return;
    }
    let (mut before, mut total, mut after) = (0, 0, 0);
    let mut ptr = null_mut();
    ok!(hipMemGetInfo(&mut before, &mut total));
    for bytes in [total + 1, usize::MAX, usize::MAX - 4096, 1 << 62] {
        assert_eq!(hip!(hipMalloc(&mut ptr, bytes)), hipError_t::hipErrorOutOfMemory);
        assert_eq!(hip!(hipHostMalloc(&mut ptr, bytes, 0)), hipError_t::hipErrorOutOfMemory);
        assert_eq!(
            hip!(hipMallocManaged(&mut ptr, bytes, 1)),
            hipError_t::hipErrorOutOfMemory
        );
    }
    ok!(hipMalloc(&mut ptr, 0));
    assert!(ptr.is_null());
    assert_eq!(hip!(hipMalloc(null_mut(), 16)), INVALID);
    ok!(hipMemGetInfo(&mut after, null_mut()));
    assert_eq!(after, before);
}

#[test]
fn device_memory_is_accounted_until_freed() {
    if !is_child() {
        // Alone in a process: other tests allocate too.
        assert!(
            run_child("device_memory_is_accounted_until_freed", &[])
                .status
                .success()
        );
        return;
    }
    let free = || {
        let mut free = 0;
        ok!(hipMemGetInfo(&mut free, null_mut()));
        free
    };
    let before = free();
    let (a, b) = (malloc(1 << 20), malloc(3));
    assert_eq!(free(), before - (1 << 20) - 3);
    ok!(hipFree(a));
    ok!(hipFree(b));
    assert_eq!(free(), before);
}

#[test]
fn an_overrun_by_host_code_meets_the_guard_page() {
    if is_child() {
        let d = malloc(1000).cast::<u8>();
        // SAFETY: none is claimed; the child is to end by this write.
        unsafe { d.add(1024).write_volatile(1) };
        return;
    }
    let output = run_child("an_overrun_by_host_code_meets_the_guard_page", &[]);
    assert!(!output.status.success());
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&output.status), Some(11));
}

#[test]
fn fills_write_their_pattern_and_nothing_else() {
    let d = upload(&[0u8; 64]);
    ok!(hipMemset(at(d, 1), 0x1ab, 3));
    ok!(hipMemsetD16(at(d, 8), 0x1234, 2));
    ok!(hipMemsetD32(at(d, 16), -2, 3));
    ok!(hipMemsetD8(at(d, 63), 9, 1));
    let mut expected = [0u8; 64];
    expected[1..4].fill(0xab);
    expected[8..12].copy_from_slice(&[0x34, 0x12, 0x34, 0x12]);
    expected[16..28].copy_from_slice(&(-2i32).to_le_bytes().repeat(3));
    expected[63] = 9;
    assert_eq!(download::<u8>(d, 64), expected);
    let big = malloc(9 << 20);
    ok!(hipMemsetD32Async(big, 7, (9 << 20) / 4, null_mut()));
    assert!(download::<u32>(big, (9 << 20) / 4).iter().all(|&v| v == 7));
}

#[test]
fn rows_are_copied_by_their_pitches() {
    let host: Vec<u8> = (0..100).collect();
    let d = upload(&[0u8; 200]);
    ok!(hipMemcpy2D(d, 20, host.as_ptr().cast(), 10, 7, 10, H2D));
    let got = download::<u8>(d, 200);
    for row in 0..10 {
        assert_eq!(got[row * 20..row * 20 + 7], host[row * 10..row * 10 + 7]);
        assert_eq!(got[row * 20 + 7..row * 20 + 20], [0; 13]);
    }
    let pitch = hipError_t::hipErrorInvalidPitchValue;
    assert_eq!(hip!(hipMemcpy2D(d, 6, host.as_ptr().cast(), 10, 7, 10, H2D)), pitch);
    assert_eq!(hip!(hipMemcpy2D(d, 20, host.as_ptr().cast(), 6, 7, 10, H2D)), pitch);
    assert_eq!(hip!(hipMemcpy2D(d, 20, host.as_ptr().cast(), 10, 7, 11, H2D)), INVALID);
    assert_eq!(
        hip!(hipMemcpy2D(d, usize::MAX / 2, host.as_ptr().cast(), 10, 7, 10, H2D)),
        INVALID
    );
    ok!(hipMemcpy2D(d, 20, host.as_ptr().cast(), 10, 7, 0, H2D));
    ok!(hipMemcpy2DAsync(d, 20, host.as_ptr().cast(), 10, 7, 9, H2D, null_mut()));
}

#[test]
fn pinned_memory_is_host_and_device_memory() {
    let mut p = null_mut();
    ok!(hipHostMalloc(&mut p, 5000, 0));
    assert_eq!(p as usize % 4096, 0);
    let mut q = null_mut();
    ok!(hipHostGetDevicePointer(&mut q, p, 0));
    assert_eq!(p, q);
    assert_eq!(hip!(hipHostGetDevicePointer(&mut q, p, 1)), INVALID);
    let a = attributes(at(p, 100));
    assert_eq!(
        (a.type_, a.hostPointer, a.devicePointer, a.isManaged),
        (hipMemoryType::hipMemoryTypeHost, at(p, 100), at(p, 100), 0)
    );
    let d = malloc(5000);
    for kind in [H2D, D2D, ANY] {
        ok!(hipMemcpy(d, p, 5000, kind));
    }
    assert_eq!(hip!(hipMemcpy(d, at(p, 1), 5000, H2D)), INVALID);
    assert_eq!(hip!(hipFree(p)), INVALID);
    assert_eq!(
        hip!(hipHostRegister(p, 16, 0)),
        hipError_t::hipErrorHostMemoryAlreadyRegistered
    );
    ok!(hipHostFree(p));
    assert_eq!(hip!(hipHostFree(p)), INVALID);
    ok!(hipHostFree(null_mut()));
    assert_eq!(hip!(hipHostMalloc(&mut p, 16, 0xc000_0000)), INVALID);
    let mut flags = 0;
    ok!(hipHostMalloc(&mut p, 16, 3));
    ok!(hipHostGetFlags(&mut flags, p));
    assert_eq!(flags, 3);
    ok!(hipHostFree(p));
}

#[test]
fn registered_memory_is_known_until_unregistered() {
    let mut host = vec![1u8; 10000];
    let p = host.as_mut_ptr().cast::<c_void>();
    let not_registered = hipError_t::hipErrorHostMemoryNotRegistered;
    assert_eq!(hip!(hipHostUnregister(p)), not_registered);
    ok!(hipHostRegister(p, 10000, 0));
    assert_eq!(attributes(at(p, 9999)).type_, hipMemoryType::hipMemoryTypeHost);
    assert_eq!(attributes(at(p, 10000)).type_, hipMemoryType::hipMemoryTypeUnregistered);
    for (offset, bytes) in [(0, 10000), (5000, 10), (9999, 100)] {
        assert_eq!(
            hip!(hipHostRegister(at(p, offset), bytes, 0)),
            hipError_t::hipErrorHostMemoryAlreadyRegistered
        );
    }
    assert_eq!(hip!(hipHostUnregister(at(p, 1))), not_registered);
    ok!(hipMemset(p, 5, 10000));
    assert!(host.iter().all(|&byte| byte == 5));
    ok!(hipHostUnregister(p));
    assert_eq!(hip!(hipMemset(p, 5, 1)), INVALID);
    assert_eq!(hip!(hipHostRegister(null_mut(), 1, 0)), INVALID);
    assert_eq!(hip!(hipHostRegister(p, 0, 0)), INVALID);
    assert_eq!(hip!(hipHostRegister(p, usize::MAX, 0)), INVALID);
    assert_eq!(
        hip!(hipHostRegister(0x10000 as *mut c_void, 16, 0)),
        INVALID,
        "not mapped"
    );
    let d = malloc(64);
    assert_eq!(hip!(hipHostRegister(d, 64, 0)), INVALID);
}

#[test]
fn managed_memory_serves_both_sides() {
    let mut p = null_mut();
    ok!(hipMallocManaged(&mut p, 64, 1));
    ok!(hipMemset(p, 3, 64));
    ok!(hipDeviceSynchronize());
    // SAFETY: 64 bytes of managed memory, and the device is idle.
    let bytes = unsafe { *p.cast::<[u8; 64]>() };
    assert_eq!(bytes, [3; 64]);
    let a = attributes(p);
    assert_eq!((a.type_, a.isManaged), (hipMemoryType::hipMemoryTypeManaged, 1));
    ok!(hipFree(p));
    assert_eq!(hip!(hipMallocManaged(&mut p, 0, 1)), INVALID);
    assert_eq!(hip!(hipMallocManaged(&mut p, 64, 9)), INVALID);
}

#[test]
fn address_ranges_are_those_that_were_asked_for() {
    let d = malloc(777);
    let (mut base, mut size): (hipDeviceptr_t, usize) = (null_mut(), 0);
    ok!(hipMemGetAddressRange(&mut base, &mut size, at(d, 776)));
    assert_eq!((base, size), (d, 777));
    assert_eq!(
        hip!(hipMemGetAddressRange(&mut base, &mut size, at(d, 777))),
        hipError_t::hipErrorNotFound
    );
    ok!(hipMemPtrGetInfo(d, &mut size));
    assert_eq!(size, 777);
    let a = attributes(at(d, 3));
    assert_eq!(
        (a.type_, a.devicePointer, a.hostPointer, a.device),
        (hipMemoryType::hipMemoryTypeDevice, at(d, 3), null_mut(), 0)
    );
    assert_eq!(hip!(hipPointerGetAttributes(null_mut(), d)), INVALID);
    let mut answer = hipPointerAttribute_t::default();
    assert_eq!(hip!(hipPointerGetAttributes(&mut answer, null_mut())), INVALID);
    let local = 5;
    let unknown = attributes((&raw const local).cast());
    assert_eq!(
        (unknown.type_, unknown.device),
        (hipMemoryType::hipMemoryTypeUnregistered, -2)
    );
}

#[test]
fn threads_allocate_copy_and_free_at_once() {
    std::thread::scope(|scope| {
        for seed in 0..8u8 {
            scope.spawn(move || {
                for round in 0..100usize {
                    let n = 1 + round * 97;
                    let data = vec![seed; n];
                    let d = upload(&data);
                    assert_eq!(download::<u8>(d, n), data);
                    ok!(hipFree(d));
                }
            });
        }
    });
}

/// Its pages are shared between mappings: a child that got them would write what this process computes with.
#[test]
fn a_forked_child_has_no_device_memory() {
    let ptr = malloc(3 * 4096) as usize;
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut holds = false;
    let flags = maps.lines().find_map(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let bounds = range.and_then(|(start, end)| {
            let bound = |text| usize::from_str_radix(text, 16).ok();
            Some((bound(start)?, bound(end)?))
        });
        if let Some((start, end)) = bounds {
            holds = (start..end).contains(&ptr);
        }
        line.strip_prefix("VmFlags:").filter(|_| holds)
    });
    let flags = flags.expect("the mapping");
    assert!(flags.split_whitespace().any(|flag| flag == "dc"), "{flags}");
    ok!(hipFree(ptr as *mut c_void));
}
