//! Answers that ROCm 7.2.4 gives, asked of the real library on an emulated card.

mod common;

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

use common::*;
use hip_sys::{
    hipDeviceAttribute_t, hipDeviceProp_tR0000, hipError_t, hipLimit_t, hipMemAccessDesc,
    hipMemAllocationGranularity_flags, hipMemAllocationProp, hipMemAllocationType, hipMemLocationType,
    hipMemRangeAttribute, hipPointer_attribute, hipStreamCaptureMode, hipStreamCaptureStatus,
};

const INVALID: hipError_t = hipError_t::hipErrorInvalidValue;

/// An attribute's value and how many bytes the call wrote.
fn attribute(which: u32, ptr: *mut c_void) -> (hipError_t, usize, u64) {
    let mut told = [[0xcdu8; 32], [0x3b; 32]];
    let mut code = OK;
    for bytes in &mut told {
        let out = bytes.as_mut_ptr().cast();
        code = hip!(hipPointerGetAttribute(out, hipPointer_attribute(which), ptr));
    }
    let written = (0..32)
        .rev()
        .find(|&at| told[0][at] != 0xcd || told[1][at] != 0x3b)
        .map_or(0, |last| last + 1);
    let mut value = [0; 8];
    value[..written].copy_from_slice(&told[0][..written]);
    (code, written, u64::from_le_bytes(value))
}

#[test]
fn the_size_of_a_range_is_four_bytes_wide() {
    let ptr = malloc(1000);
    assert_eq!(attribute(12, ptr), (OK, 4, 1000));
    let mut which = hipPointer_attribute::HIP_POINTER_ATTRIBUTE_RANGE_SIZE;
    let mut out = [7u32, 7];
    let mut outs = [out.as_mut_ptr().cast()];
    ok!(hipDrvPointerGetAttributes(1, &mut which, outs.as_mut_ptr(), ptr));
    assert_eq!(out, [1000, 7]);
    ok!(hipFree(ptr));
}

#[test]
fn every_attribute_of_a_pointer_is_as_wide_as_rocms() {
    let (device, mut pinned) = (malloc(1000), null_mut());
    ok!(hipHostMalloc(&mut pinned, 1000, 0));
    let mut word = 0u32;
    let stack: *mut c_void = (&raw mut word).cast();
    let not_supported = hipError_t::hipErrorNotSupported;
    // Attribute; answer, bytes and value for device, pinned and unknown memory.
    let expected = [
        (2, (OK, 4, 2), (OK, 4, 1), (INVALID, 4, 0)),
        (4, (INVALID, 8, 0), (OK, 8, pinned as u64), (INVALID, 8, 0)),
        (5, (not_supported, 0, 0), (not_supported, 0, 0), (not_supported, 0, 0)),
        (6, (OK, 1, 0), (OK, 1, 0), (INVALID, 1, 0)),
        (8, (OK, 1, 0), (OK, 1, 0), (INVALID, 1, 0)),
        (9, (OK, 4, 0), (OK, 4, 0), (INVALID, 4, u64::from(-2i32 as u32))),
        (10, (OK, 4, 1), (OK, 4, 0), (INVALID, 4, 0)),
        (12, (OK, 4, 1000), (OK, 4, 1000), (INVALID, 4, 0)),
        (13, (OK, 1, 1), (OK, 1, 1), (INVALID, 1, 0)),
        (16, (OK, 4, 0), (OK, 4, 0), (OK, 4, 0)),
        (17, (not_supported, 0, 0), (not_supported, 0, 0), (not_supported, 0, 0)),
        (18, (INVALID, 0, 0), (INVALID, 0, 0), (INVALID, 0, 0)),
    ];
    for (which, of_device, of_pinned, of_stack) in expected {
        assert_eq!(attribute(which, device), of_device, "{which} of device memory");
        assert_eq!(attribute(which, pinned), of_pinned, "{which} of pinned memory");
        assert_eq!(attribute(which, stack), of_stack, "{which} of unknown memory");
    }
    // The context, of device memory only; and a number that no two allocations share.
    assert_eq!(attribute(1, device).0, OK);
    assert_eq!(attribute(1, pinned), (INVALID, 0, 0));
    assert_eq!(attribute(7, device).1, 4);
    assert_ne!(attribute(7, device).2, attribute(7, pinned).2);
    ok!(hipFree(device));
    ok!(hipHostFree(pinned));
}

#[test]
fn the_drivers_question_for_attributes_passes_over_what_has_no_answer() {
    let mut word = 0u32;
    let mut which = [hipPointer_attribute(99), hipPointer_attribute(12)];
    let mut values = [7u32, 7];
    let mut outs = values.each_mut().map(|value| (&raw mut *value).cast());
    ok!(hipDrvPointerGetAttributes(
        2,
        which.as_mut_ptr(),
        outs.as_mut_ptr(),
        (&raw mut word).cast()
    ));
    assert_eq!(values, [7, 0]);
}

#[test]
fn only_synchronous_copies_can_be_set_on_a_pointer() {
    let ptr = malloc(64);
    let one = 1u32;
    let mut word = 0u32;
    let set = |which, ptr| {
        hip!(hipPointerSetAttribute(
            (&raw const one).cast(),
            hipPointer_attribute(which),
            ptr
        ))
    };
    assert_eq!(set(6, ptr), OK);
    assert_eq!(attribute(6, ptr), (OK, 1, 1));
    assert_eq!(set(6, (&raw mut word).cast()), hipError_t::hipErrorInvalidDevicePointer);
    for which in [0, 1, 2, 5, 7, 12, 17, 18] {
        assert_eq!(set(which, ptr), INVALID, "{which}");
    }
    assert_eq!(set(6, null_mut()), INVALID);
    ok!(hipFree(ptr));
}

#[test]
fn functions_have_names_by_number_and_others_are_unknown() {
    let name = |id| {
        let name = hip!(hipApiName(id));
        // SAFETY: a terminated string that lives for ever.
        unsafe { CStr::from_ptr(name) }.to_str().unwrap()
    };
    assert_eq!(name(0), "unknown");
    assert_eq!(name(3), "hipArray3DCreate");
    assert_eq!(name(449), "hipOccupancyAvailableDynamicSMemPerBlock");
    assert_eq!(name(450), "unknown");
    assert_eq!(name(u32::MAX), "unknown");
}

/// Memory freed by the call for another kind.
fn free_wrongly() -> [hipError_t; 4] {
    let (mut pinned, mut managed) = (null_mut(), null_mut());
    ok!(hipHostMalloc(&mut pinned, 64, 0));
    ok!(hipMallocManaged(&mut managed, 64, 1));
    let inside = malloc(64).wrapping_byte_add(8);
    [
        hip!(hipFree(pinned)),
        hip!(hipHostFree(managed)),
        hip!(hipHostFree(malloc(64))),
        hip!(hipFree(inside)),
    ]
}

#[test]
fn memory_is_freed_by_its_own_call_unless_strictness_is_off() {
    const NAME: &str = "memory_is_freed_by_its_own_call_unless_strictness_is_off";
    if !is_child() {
        assert_eq!(free_wrongly(), [INVALID; 4]);
        let child = run_child(NAME, &[("HIP_HOST_STRICT", "0")]);
        assert!(child.status.success(), "{child:?}");
        return;
    }
    assert_eq!(free_wrongly(), [OK; 4]);
}

#[test]
fn addresses_and_memory_come_in_pages() {
    let mut props = hipMemAllocationProp {
        type_: hipMemAllocationType::hipMemAllocationTypePinned,
        ..hipMemAllocationProp::default()
    };
    props.location.type_ = hipMemLocationType::hipMemLocationTypeDevice;
    for option in [0, 1] {
        let mut bytes = 0;
        let option = hipMemAllocationGranularity_flags(option);
        ok!(hipMemGetAllocationGranularity(&mut bytes, &props, option));
        assert_eq!(bytes, 4096);
    }
    let mut at = null_mut();
    for bytes in [0, 100, 5000] {
        let code = hip!(hipMemAddressReserve(&mut at, bytes, 0, null_mut(), 0));
        assert_eq!(code, INVALID, "{bytes}");
    }
    for alignment in [3, 100] {
        let code = hip!(hipMemAddressReserve(&mut at, 4096, alignment, null_mut(), 0));
        assert_eq!(code, INVALID, "{alignment}");
    }
    ok!(hipMemAddressReserve(&mut at, 4096, 0, null_mut(), 0));
    let mut memory = null_mut();
    ok!(hipMemCreate(&mut memory, 4096, &props, 0));
    ok!(hipMemMap(at, 4096, 0, memory, 0));
    let mut access = hipMemAccessDesc::default();
    access.location.type_ = hipMemLocationType::hipMemLocationTypeDevice;
    access.flags.0 = 3;
    ok!(hipMemSetAccess(at, 4096, &access, 1));
    ok!(hipMemset(at, 3, 4096));
    assert_eq!(download::<u8>(at, 4096), [3; 4096]);
    ok!(hipMemUnmap(at, 4096));
    ok!(hipMemRelease(memory));
    ok!(hipMemAddressFree(at, 4096));
}

#[test]
fn of_a_devices_flags_only_the_way_of_waiting_is_told() {
    let flags = || {
        let mut flags = 99;
        ok!(hipGetDeviceFlags(&mut flags));
        flags
    };
    for (set, told) in [(0, 0), (1, 1), (4, 4), (8, 0), (0x18, 0), (0x19, 1)] {
        ok!(hipSetDeviceFlags(set));
        assert_eq!(flags(), told, "{set:#x}");
    }
    for set in [3, 7, 0x20, 0x80] {
        assert_eq!(hip!(hipSetDeviceFlags(set)), INVALID, "{set:#x}");
    }
    let mut context = null_mut();
    ok!(hipCtxCreate(&mut context, 4, 0));
    assert_eq!(flags(), 4);
    ok!(hipCtxDestroy(context));
    assert_eq!(flags(), 4);
    ok!(hipSetDeviceFlags(0));
}

#[test]
fn limits_are_supported_unsupported_or_invalid_as_on_rocm() {
    let unsupported = hipError_t::hipErrorUnsupportedLimit;
    let expected = [
        (0, OK, OK),
        (1, unsupported, unsupported),
        (2, OK, OK),
        (3, unsupported, unsupported),
        (0xfff, unsupported, unsupported),
        (0x1000, OK, unsupported),
        (0x1001, OK, unsupported),
        (0x1002, OK, INVALID),
        (0x1003, INVALID, INVALID),
        (0xffff, INVALID, INVALID),
        (u32::MAX, unsupported, unsupported),
    ];
    for (limit, get, set) in expected {
        let mut value = 64;
        let limit = hipLimit_t(limit);
        assert_eq!(hip!(hipDeviceGetLimit(&mut value, limit)), get, "{limit:?}");
        assert_eq!(hip!(hipDeviceSetLimit(limit, value)), set, "{limit:?}");
    }
}

#[test]
fn an_event_has_one_scope_of_release() {
    let create = |flags| {
        let mut event = null_mut();
        let code = hip!(hipEventCreateWithFlags(&mut event, flags));
        if code == OK {
            ok!(hipEventDestroy(event));
        }
        code
    };
    for flags in [0x4000_0000, 0x8000_0000, 0x2000_0000, 0x4000_0002, 6] {
        assert_eq!(create(flags), OK, "{flags:#x}");
    }
    for flags in [0xc000_0000, 0xe000_0000, 0x6000_0000, 0xa000_0000, 8, 4] {
        assert_eq!(create(flags), INVALID, "{flags:#x}");
    }
}

#[test]
fn the_time_between_an_event_and_itself_is_none() {
    let mut event = null_mut();
    ok!(hipEventCreate(&mut event));
    ok!(hipEventRecord(event, null_mut()));
    ok!(hipEventSynchronize(event));
    let mut milliseconds = 1.0;
    ok!(hipEventElapsedTime(&mut milliseconds, event, event));
    assert_eq!(milliseconds, 0.0);
    ok!(hipEventDestroy(event));
}

#[test]
fn bytes_that_are_no_code_are_an_invalid_image() {
    let mut module = null_mut();
    let image = hipError_t::hipErrorInvalidImage;
    assert_eq!(hip!(hipModuleLoad(&mut module, c"".as_ptr())), INVALID);
    let file = hip!(hipModuleLoad(&mut module, c"/etc/passwd".as_ptr()));
    assert_eq!(file, image);
    let nothing = hip!(hipModuleLoadData(&mut module, c"".as_ptr().cast()));
    assert_eq!(nothing, image);
    let nonsense = c"abcdefghijklmnopqrstuvwxyz".as_ptr().cast();
    assert_eq!(hip!(hipModuleLoadData(&mut module, nonsense)), image);
    let elf = b"\x7fELF\x02\x01\x01\x40".as_ptr().cast();
    let code = hip!(hipModuleLoadData(&mut module, elf));
    assert_eq!(code, hipError_t::hipErrorNoBinaryForGpu);
}

#[test]
fn questions_about_unknown_functions_are_answered_as_by_rocm() {
    static ADDRESS: u32 = 0;
    let unknown: *const c_void = (&raw const ADDRESS).cast();
    let mut attributes = hip_sys::hipFuncAttributes::default();
    assert_eq!(hip!(hipFuncGetAttributes(null_mut(), unknown)), INVALID);
    let code = hip!(hipFuncGetAttributes(&mut attributes, unknown));
    assert_eq!(code, hipError_t::hipErrorInvalidSymbol);
    let code = hip!(hipFuncGetAttributes(&mut attributes, null()));
    assert_eq!(code, hipError_t::hipErrorInvalidDeviceFunction);
    ok!(hipFuncSetCacheConfig(unknown, hip_sys::hipFuncCache_t(3)));
    let preference = hip_sys::hipFuncCache_t(9);
    assert_eq!(hip!(hipFuncSetCacheConfig(unknown, preference)), INVALID);
    ok!(hipFuncSetSharedMemConfig(unknown, hip_sys::hipSharedMemConfig(1)));
    let none = null_mut();
    let code = hip!(hipOccupancyMaxActiveBlocksPerMultiprocessor(none, unknown, 64, 0));
    assert_eq!(code, INVALID);
    assert_eq!(hip!(hipGetSymbolAddress(null_mut(), unknown)), INVALID);
}

#[test]
fn a_launch_in_three_calls_ends_where_its_function_is_unknown() {
    static ADDRESS: u32 = 0;
    let dim = hip_sys::dim3 { x: 1, y: 1, z: 1 };
    let argument = 5u32;
    let put = || hip!(hipSetupArgument((&raw const argument).cast(), 4, 8));
    assert_eq!(put(), hipError_t::hipErrorMissingConfiguration);
    ok!(hipConfigureCall(dim, dim, 0, null_mut()));
    assert_eq!(put(), OK);
    assert_eq!(hip!(hipSetupArgument(null(), 4, 0)), INVALID);
    let launch = || hip!(hipLaunchByPtr((&raw const ADDRESS).cast()));
    assert_eq!(launch(), hipError_t::hipErrorInvalidDeviceFunction);
    assert_eq!(launch(), hipError_t::hipErrorMissingConfiguration);
}

#[test]
fn what_fits_of_a_pci_address_is_written_with_its_end() {
    let mut whole = [0u8; 32];
    ok!(hipDeviceGetPCIBusId(whole.as_mut_ptr().cast(), 32, 0));
    for room in 1..13usize {
        let mut cut = [b'x'; 32];
        let code = hip!(hipDeviceGetPCIBusId(cut.as_mut_ptr().cast(), room as c_int, 0));
        assert_eq!(code, INVALID);
        assert_eq!((&cut[..room - 1], cut[room - 1]), (&whole[..room - 1], 0));
        assert_eq!(cut[room], b'x');
    }
}

#[test]
fn every_attribute_that_rocm_answers_has_an_answer() {
    let answered: Vec<u32> = (0..=20)
        .chain(22..=32)
        .chain([39, 41, 42, 43, 44, 49, 50, 51, 53])
        .chain(56..=63)
        .chain(65..=76)
        .chain([78, 79])
        .chain(81..=85)
        .chain(87..=92)
        .chain([10002])
        .chain(10005..=10020)
        .collect();
    let refused = [
        21, 33, 40, 45, 52, 54, 55, 64, 77, 80, 86, 93, 10000, 10001, 10003, 10021,
    ];
    let ask = |attribute| {
        let mut value = -77;
        let code = hip!(hipDeviceGetAttribute(&mut value, hipDeviceAttribute_t(attribute), 0));
        (code, value)
    };
    for attribute in answered {
        let (code, value) = ask(attribute);
        assert_eq!(code, OK, "{attribute}");
        assert_ne!(value, -77, "{attribute}");
    }
    for attribute in refused {
        assert_eq!(ask(attribute).0, INVALID, "{attribute}");
    }
    // A program divides by it.
    assert_eq!(ask(10017), (OK, 100_000));
}

#[test]
fn a_kernels_wall_clock_runs_at_the_rate_that_is_told() {
    let source = r#"
    extern "C" __global__ void k(long long* out) {
        long long begin = wall_clock64();
        while (wall_clock64() - begin < 1000000) {}
        out[0] = wall_clock64() - begin;
    }"#;
    let module = load(&compile(source));
    let out = malloc(8);
    let start = std::time::Instant::now();
    let mut params = params![out];
    let launched = launch(function(module, "k"), [1; 3], [1; 3], 0, null_mut(), &mut params);
    assert_eq!(launched, OK);
    ok!(hipDeviceSynchronize());
    // A million ticks of 10 ns.
    assert!(start.elapsed() >= std::time::Duration::from_millis(9));
    assert!(download::<i64>(out, 1)[0] >= 1_000_000);
    ok!(hipFree(out));
    ok!(hipModuleUnload(module));
}

#[test]
fn the_plain_name_gives_the_properties_of_older_releases() {
    let mut old = hipDeviceProp_tR0000::default();
    ok!(hipGetDevicePropertiesR0000(&mut old, 0));
    assert_eq!(
        (size_of_val(&old), old.warpSize, old.maxThreadsPerBlock),
        (792, 64, 1024)
    );
    assert!(old.totalGlobalMem > 0 && old.gcnArchName[0] != 0);
    let invalid = hipError_t::hipErrorInvalidDevice;
    assert_eq!(hip!(hipGetDevicePropertiesR0000(&mut old, 9)), invalid);
    let (mut chosen, wish) = (-1, hipDeviceProp_tR0000::default());
    // With nothing wished for, nothing is chosen.
    ok!(hipChooseDeviceR0000(&mut chosen, &wish));
    assert_eq!(chosen, -1);
    ok!(hipChooseDeviceR0000(&mut chosen, &old));
    assert_eq!(chosen, 0);
}

#[test]
fn the_default_stream_has_no_capture_to_tell_while_a_blocking_stream_captures() {
    let implicit = hipError_t::hipErrorStreamCaptureImplicit;
    let ask = || {
        let mut status = hipStreamCaptureStatus(9);
        hip!(hipStreamIsCapturing(null_mut(), &mut status))
    };
    let end = |stream| {
        let mut graph = null_mut();
        ok!(hipStreamEndCapture(stream, &mut graph));
        ok!(hipGraphDestroy(graph));
    };
    for mode in [0, 2] {
        let stream = blocking_stream();
        ok!(hipStreamBeginCapture(stream, hipStreamCaptureMode(mode)));
        assert_eq!(ask(), implicit);
        let (mut status, mut id) = (hipStreamCaptureStatus(9), 0);
        let info = hip!(hipStreamGetCaptureInfo(null_mut(), &mut status, &mut id));
        assert_eq!(info, implicit);
        end(stream);
        assert_eq!(ask(), OK);
        ok!(hipStreamDestroy(stream));
    }
    let free = stream();
    ok!(hipStreamBeginCapture(free, hipStreamCaptureMode(0)));
    assert_eq!(ask(), OK);
    end(free);
    let code = hip!(hipStreamEndCapture(free, null_mut()));
    assert_eq!(code, hipError_t::hipErrorIllegalState);
    ok!(hipStreamDestroy(free));
}

#[test]
fn the_last_place_of_a_prefetch_is_the_device_and_for_the_host_none() {
    let mut managed = null_mut();
    ok!(hipMallocManaged(&mut managed, 8192, 1));
    let place = || {
        let mut place: c_int = 55;
        let which = hipMemRangeAttribute::hipMemRangeAttributeLastPrefetchLocation;
        let out = (&raw mut place).cast();
        ok!(hipMemRangeGetAttribute(out, 4, which, managed, 4096));
        place
    };
    assert_eq!(place(), -2);
    for (device, told) in [(0, 0), (-1, -2)] {
        ok!(hipMemPrefetchAsync(managed, 8192, device, null_mut()));
        ok!(hipDeviceSynchronize());
        assert_eq!(place(), told, "{device}");
    }
    ok!(hipFree(managed));
}

#[test]
fn a_pool_and_its_memory_are_opened_from_what_was_exported() {
    let mut props = hip_sys::hipMemPoolProps {
        allocType: hipMemAllocationType::hipMemAllocationTypePinned,
        handleTypes: hip_sys::hipMemAllocationHandleType::hipMemHandleTypePosixFileDescriptor,
        ..hip_sys::hipMemPoolProps::default()
    };
    props.location.type_ = hipMemLocationType::hipMemLocationTypeDevice;
    let kind = props.handleTypes;
    let (mut pool, mut own, mut imported) = (null_mut(), null_mut(), null_mut());
    ok!(hipMemPoolCreate(&mut pool, &props));
    ok!(hipDeviceGetDefaultMemPool(&mut own, 0));
    let mut fd: c_int = -1;
    let out: *mut c_void = (&raw mut fd).cast();
    let export = |pool, kind, flags: c_uint| hip!(hipMemPoolExportToShareableHandle(out, pool, kind, flags));
    assert_eq!(export(own, kind, 0), INVALID);
    assert_eq!(export(pool, kind, 1), INVALID);
    assert_eq!(export(null_mut(), kind, 0), INVALID);
    for other in [0, 2] {
        let other = hip_sys::hipMemAllocationHandleType(other);
        assert_eq!(export(pool, other, 0), INVALID);
    }
    assert_eq!(export(pool, kind, 0), OK);
    // SAFETY: the call stored a descriptor.
    let fd = unsafe { out.cast::<c_int>().read() };
    let handle = fd as usize as *mut c_void;
    let flags = hip!(hipMemPoolImportFromShareableHandle(&mut imported, handle, kind, 1));
    assert_eq!(flags, INVALID);
    let wrong = hip!(hipMemPoolImportFromShareableHandle(&mut imported, 999 as _, kind, 0));
    assert_eq!(wrong, INVALID);
    ok!(hipMemPoolImportFromShareableHandle(&mut imported, handle, kind, 0));

    let mut ptr = null_mut();
    ok!(hipMallocFromPoolAsync(&mut ptr, 4096, pool, null_mut()));
    ok!(hipMemset(ptr, 9, 4096));
    let mut data = hip_sys::hipMemPoolPtrExportData::default();
    assert_eq!(hip!(hipMemPoolExportPointer(&mut data, null_mut())), INVALID);
    ok!(hipMemPoolExportPointer(&mut data, ptr));
    let mut again = null_mut();
    assert_eq!(hip!(hipMemPoolImportPointer(&mut again, pool, &mut data)), INVALID);
    ok!(hipMemPoolImportPointer(&mut again, imported, &mut data));
    assert_ne!(again, ptr);
    assert_eq!(download::<u8>(again, 4096), [9; 4096]);
    // Memory is opened from an imported pool, not allocated.
    let mut none = null_mut();
    let code = hip!(hipMallocFromPoolAsync(&mut none, 64, imported, null_mut()));
    assert_eq!(code, INVALID);
    ok!(hipFreeAsync(again, null_mut()));
    ok!(hipFreeAsync(ptr, null_mut()));
    ok!(hipDeviceSynchronize());
    ok!(hipMemPoolDestroy(imported));
    ok!(hipMemPoolDestroy(pool));
    // SAFETY: the descriptor is this test's.
    drop(unsafe { <std::os::fd::OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(fd) });
}
