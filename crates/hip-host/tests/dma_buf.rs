//! Device memory as descriptors: HSA exports it, HIP imports it, and both see the same bytes.

mod common;

use std::ffi::c_void;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use common::{OK, download, hip, malloc, ok, upload};
use hip_sys::{
    hipError_t, hipExternalMemoryBufferDesc, hipExternalMemoryHandleDesc, hipExternalMemoryHandleType, hipMemcpyKind,
};
use hsa_sys::{hsa_agent_t, hsa_amd_pointer_info_t, hsa_status_t};

/// Calls an HSA function.
macro_rules! hsa {
    ($function:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: the test passes arguments the function's contract allows, or ones it promises to refuse.
        unsafe { (hip_host::hsa_api().$function.expect(stringify!($function)))($($argument),*) }
    };
}

const SUCCESS: hsa_status_t = hsa_status_t::HSA_STATUS_SUCCESS;

/// Maps `bytes` bytes at `offset` of a descriptor as HIP memory.
fn import(fd: i32, offset: u64, bytes: usize) -> (*mut c_void, *mut c_void) {
    let mut handle = hipExternalMemoryHandleDesc {
        type_: hipExternalMemoryHandleType::hipExternalMemoryHandleTypeOpaqueFd,
        size: offset + bytes as u64,
        ..Default::default()
    };
    handle.handle.fd = fd;
    let (mut memory, mut ptr) = (null_mut(), null_mut());
    ok!(hipImportExternalMemory(&mut memory, &handle));
    let range = hipExternalMemoryBufferDesc {
        offset,
        size: bytes as u64,
        ..Default::default()
    };
    ok!(hipExternalMemoryGetMappedBuffer(&mut ptr, memory, &range));
    (memory, ptr)
}

#[test]
fn an_exported_allocation_is_the_same_bytes_at_an_offset_that_is_never_zero() {
    assert_eq!(hsa!(hsa_init()), SUCCESS);
    // Small, and large enough for huge pages.
    for count in [10usize, 1000, 3 << 20] {
        let data: Vec<u32> = (0..count as u32).collect();
        let ptr = upload(&data);
        let bytes = size_of_val(&data[..]);
        let (mut fd, mut offset) = (-1, 0);
        let exported = hsa!(hsa_amd_portable_export_dmabuf(ptr, bytes, &mut fd, &mut offset));
        assert_eq!(exported, SUCCESS);
        assert_ne!(offset, 0);
        assert_eq!(download::<u32>(ptr, count), data, "still there");
        let (memory, alias) = import(fd, offset, bytes);
        assert_eq!(hsa!(hsa_amd_portable_close_dmabuf(fd)), SUCCESS);
        assert_eq!(
            hsa!(hsa_amd_portable_close_dmabuf(fd)),
            hsa_status_t::HSA_STATUS_ERROR_RESOURCE_FREE
        );
        assert_ne!(alias, ptr);
        assert_eq!(download::<u32>(alias, count), data);
        ok!(hipMemset(alias, 0x11, bytes));
        assert_eq!(download::<u32>(ptr, count), vec![0x1111_1111; count]);
        ok!(hipMemset(ptr, 0x22, bytes));
        assert_eq!(download::<u32>(alias, count), vec![0x2222_2222; count]);
        // The exporter may go first.
        ok!(hipFree(ptr));
        assert_eq!(download::<u32>(alias, count), vec![0x2222_2222; count]);
        ok!(hipFree(alias));
        ok!(hipDestroyExternalMemory(memory));
    }
}

#[test]
fn part_of_an_allocation_is_exported_with_the_part_s_offset() {
    assert_eq!(hsa!(hsa_init()), SUCCESS);
    let data: Vec<u8> = (0..200).collect();
    let ptr = upload(&data);
    let part = ptr.wrapping_byte_add(50);
    let (mut fd, mut offset) = (-1, 0);
    let exported = hsa!(hsa_amd_portable_export_dmabuf(part, 100, &mut fd, &mut offset));
    assert_eq!(exported, SUCCESS);
    let (memory, alias) = import(fd, offset, 100);
    assert_eq!(download::<u8>(alias, 100), data[50..150]);
    ok!(hipFree(alias));
    ok!(hipDestroyExternalMemory(memory));
    assert_eq!(hsa!(hsa_amd_portable_close_dmabuf(fd)), SUCCESS);
    ok!(hipFree(ptr));
}

#[test]
fn only_a_device_s_own_living_memory_is_exported() {
    assert_eq!(hsa!(hsa_init()), SUCCESS);
    let (mut fd, mut offset) = (-1, 0);
    let mut export = |ptr: *const c_void, bytes| hsa!(hsa_amd_portable_export_dmabuf(ptr, bytes, &mut fd, &mut offset));
    let ptr = malloc(64);
    let out_of_bounds = hsa_status_t::HSA_STATUS_ERROR_INVALID_ALLOCATION;
    assert_eq!(export(ptr, 65), out_of_bounds);
    assert_eq!(export(ptr, 0), hsa_status_t::HSA_STATUS_ERROR_INVALID_ARGUMENT);
    let mut pinned = null_mut();
    ok!(hipHostMalloc(&mut pinned, 64, 0));
    assert_eq!(export(pinned, 64), hsa_status_t::HSA_STATUS_ERROR_INVALID_AGENT);
    ok!(hipHostFree(pinned));
    ok!(hipFree(ptr));
    assert_eq!(export(ptr, 64), out_of_bounds);
    let local = 0u64;
    assert_eq!(export((&raw const local).cast(), 8), out_of_bounds);
}

/// OpenCL's kernels are such strangers: they work on the memory of `hipMalloc` and are unknown to the model.
#[test]
fn memory_can_be_exported_while_a_stranger_writes_to_it() {
    assert_eq!(hsa!(hsa_init()), SUCCESS);
    const COUNT: usize = 4 << 20;
    for by_handle in [false, true] {
        let ptr = upload(&vec![1u32; COUNT]);
        let words = ptr.cast::<AtomicU32>();
        // SAFETY: allocated above for as many words, and freed after the last use.
        let words = unsafe { std::slice::from_raw_parts(words, COUNT) };
        let (ends, rounds) = (AtomicBool::new(false), AtomicU32::new(1));
        let (mut fd, mut offset) = (-1, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Until the end of a round that began after the export.
                loop {
                    let last = ends.load(Ordering::Acquire);
                    let round = rounds.fetch_add(1, Ordering::Relaxed) + 1;
                    words.iter().for_each(|word| word.store(round, Ordering::Relaxed));
                    if last {
                        break;
                    }
                }
            });
            while rounds.load(Ordering::Relaxed) < 3 {
                std::thread::yield_now();
            }
            if by_handle {
                let mut handle = Default::default();
                ok!(hipIpcGetMemHandle(&mut handle, ptr));
            }
            let exported = hsa!(hsa_amd_portable_export_dmabuf(ptr, COUNT * 4, &mut fd, &mut offset));
            ends.store(true, Ordering::Release);
            assert_eq!(exported, SUCCESS);
        });
        let (memory, alias) = import(fd, offset, COUNT * 4);
        let last = rounds.load(Ordering::Relaxed);
        assert!(download::<u32>(alias, COUNT).iter().all(|&word| word == last));
        ok!(hipFree(alias));
        ok!(hipDestroyExternalMemory(memory));
        assert_eq!(hsa!(hsa_amd_portable_close_dmabuf(fd)), SUCCESS);
        ok!(hipFree(ptr));
    }
}

#[test]
fn an_export_shows_one_allocation() {
    assert_eq!(hsa!(hsa_init()), SUCCESS);
    let (ptr, neighbours) = (upload(&[1u8; 10]), [upload(&[2u8; 10]), upload(&[2u8; 10])]);
    let (mut fd, mut offset) = (-1, 0);
    let exported = hsa!(hsa_amd_portable_export_dmabuf(ptr, 10, &mut fd, &mut offset));
    assert_eq!(exported, SUCCESS);
    // SAFETY: given to the caller by the export.
    let mut file = std::fs::File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    let mut all = Vec::new();
    file.read_to_end(&mut all).unwrap();
    assert_eq!(all.iter().filter(|&&byte| byte == 1).count(), 10);
    assert!(!all.contains(&2));
    for ptr in neighbours.into_iter().chain([ptr]) {
        ok!(hipFree(ptr));
    }
}

#[test]
fn memory_shared_while_a_stream_works_loses_nothing() {
    assert_eq!(hsa!(hsa_init()), SUCCESS);
    const COUNT: usize = 1 << 20;
    let stream = common::stream();
    let ptr = malloc(COUNT * 4);
    for round in 0..50 {
        ok!(hipMemsetD32Async(ptr, round, COUNT, stream));
    }
    let (mut fd, mut offset) = (-1, 0);
    let exported = hsa!(hsa_amd_portable_export_dmabuf(ptr, COUNT * 4, &mut fd, &mut offset));
    assert_eq!(exported, SUCCESS);
    ok!(hipStreamSynchronize(stream));
    let (memory, alias) = import(fd, offset, COUNT * 4);
    assert_eq!(download::<i32>(alias, COUNT), vec![49; COUNT]);
    assert_eq!(
        hip!(hipMemcpy(alias, ptr, COUNT * 4, hipMemcpyKind::hipMemcpyDeviceToDevice)),
        OK
    );
    ok!(hipStreamDestroy(stream));
    ok!(hipFree(alias));
    ok!(hipDestroyExternalMemory(memory));
    assert_eq!(hsa!(hsa_amd_portable_close_dmabuf(fd)), SUCCESS);
    ok!(hipFree(ptr));
}

#[test]
fn allowed_agents_are_told_and_strangers_refused() {
    assert_eq!(hsa!(hsa_init()), SUCCESS);
    let ptr = malloc(64);
    let host = hsa_agent_t { handle: 1 };
    let nobody = hsa_agent_t { handle: 77 };
    let allow =
        |agent: &hsa_agent_t, ptr: *const c_void| hsa!(hsa_amd_agents_allow_access(1, agent, std::ptr::null(), ptr));
    assert_eq!(allow(&host, ptr), SUCCESS);
    assert_eq!(allow(&nobody, ptr), hsa_status_t::HSA_STATUS_ERROR_INVALID_AGENT);
    let inside = ptr.wrapping_byte_add(8);
    assert_eq!(allow(&host, inside), hsa_status_t::HSA_STATUS_ERROR);
    let mut info = hsa_amd_pointer_info_t {
        size: size_of::<hsa_amd_pointer_info_t>() as u32,
        ..Default::default()
    };
    let no_list = null_mut();
    assert_eq!(
        hsa!(hsa_amd_pointer_info(ptr, &mut info, None, null_mut(), no_list)),
        SUCCESS
    );
    assert_eq!(info.agentOwner.handle, 2);
    assert_eq!(hip!(hipFree(ptr)), hipError_t::hipSuccess);
}
