//! OpenCL's memory in HIP and HSA, as ROCm has it.

mod common;

use std::ffi::c_void;
use std::ptr::null_mut;

use common::*;
use hip_host::foreign::{self, ForeignKind};
use hip_sys::{hipDeviceptr_t, hipError_t, hipMemcpyKind, hipMemoryType, hipPointerAttribute_t};
use hsa_sys::{hsa_agent_t, hsa_amd_pointer_info_t, hsa_amd_pointer_type_t, hsa_device_type_t, hsa_status_t};

const ANY: hipMemcpyKind = hipMemcpyKind::hipMemcpyDefault;
const INVALID: hipError_t = hipError_t::hipErrorInvalidValue;
const GOOD: hsa_status_t = hsa_status_t::HSA_STATUS_SUCCESS;

macro_rules! hsa {
    ($function:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: the test passes arguments the function's contract allows, or ones it promises to refuse.
        unsafe { (hip_host::hsa_api().$function.expect(stringify!($function)))($($argument),*) }
    };
}

fn adopt(memory: &mut [u8], kind: ForeignKind) -> *mut c_void {
    let ptr = memory.as_mut_ptr().cast();
    // SAFETY: every test releases the memory before it goes.
    unsafe { foreign::adopt(ptr, memory.len(), kind) }.unwrap();
    ptr
}

fn info(ptr: *const c_void) -> hsa_amd_pointer_info_t {
    let mut info = hsa_amd_pointer_info_t {
        size: size_of::<hsa_amd_pointer_info_t>() as u32,
        ..Default::default()
    };
    assert_eq!(
        hsa!(hsa_amd_pointer_info(ptr, &mut info, None, null_mut(), null_mut())),
        GOOD
    );
    info
}

fn kind_of(agent: hsa_agent_t) -> hsa_device_type_t {
    let mut kind = hsa_device_type_t(99);
    let attribute = hsa_sys::hsa_agent_info_t::HSA_AGENT_INFO_DEVICE;
    assert_eq!(hsa!(hsa_agent_get_info(agent, attribute, (&raw mut kind).cast())), GOOD);
    kind
}

#[test]
fn foreign_device_memory_is_for_kernels_only() {
    let mut memory = vec![0u8; 4096];
    let p = adopt(&mut memory, ForeignKind::Vram);
    let (d, mut host) = (malloc(64), [0u8; 64]);
    assert_eq!(hip!(hipMemcpy(p, host.as_ptr().cast(), 64, ANY)), INVALID);
    assert_eq!(hip!(hipMemcpy(host.as_mut_ptr().cast(), p, 64, ANY)), INVALID);
    assert_eq!(
        hip!(hipMemcpyAsync(
            d,
            p,
            64,
            hipMemcpyKind::hipMemcpyDeviceToDevice,
            null_mut()
        )),
        INVALID
    );
    assert_eq!(hip!(hipMemset(p, 0, 64)), INVALID);
    assert_eq!(hip!(hipHostRegister(p, 64, 0)), INVALID);
    assert_eq!(hip!(hipHostGetDevicePointer(&mut null_mut(), p, 0)), INVALID);
    let mut answer = hipPointerAttribute_t::default();
    ok!(hipPointerGetAttributes(&mut answer, p.wrapping_byte_add(8)));
    assert_eq!(
        (answer.type_, answer.device, answer.isManaged),
        (hipMemoryType::hipMemoryTypeDevice, 0, 0)
    );
    let (mut base, mut size): (hipDeviceptr_t, usize) = (null_mut(), 0);
    ok!(hipMemGetAddressRange(&mut base, &mut size, p));
    assert_eq!((base as usize, size), (0x100, usize::MAX));
    // Success, and nothing happens: the memory is as it was.
    ok!(hipFree(p));
    ok!(hipPointerGetAttributes(&mut answer, p));
    assert_eq!(answer.type_, hipMemoryType::hipMemoryTypeDevice);
    let module = load(&compile(
        "extern \"C\" __global__ void k(unsigned char* p) { p[blockIdx.x] = blockIdx.x; }",
    ));
    assert_eq!(
        launch(
            function(module, "k"),
            [200, 1, 1],
            [1; 3],
            0,
            null_mut(),
            &mut params![p]
        ),
        OK
    );
    ok!(hipDeviceSynchronize());
    foreign::release(p).unwrap();
    assert!(memory[..200].iter().enumerate().all(|(i, &byte)| byte == i as u8));
    assert!(foreign::release(p).is_err());
}

#[test]
fn foreign_host_memory_is_copied_like_any() {
    let mut memory = vec![0u8; 4096];
    let p = adopt(&mut memory, ForeignKind::HostFine);
    let d = upload(&[7u8; 64]);
    ok!(hipMemcpy(p, d, 64, ANY));
    ok!(hipMemset(p.wrapping_byte_add(64), 8, 64));
    ok!(hipDeviceSynchronize());
    let mut answer = hipPointerAttribute_t::default();
    ok!(hipPointerGetAttributes(&mut answer, p));
    assert_eq!(answer.type_, hipMemoryType::hipMemoryTypeDevice, "even on the host");
    foreign::release(p).unwrap();
    assert_eq!((memory[0], memory[63], memory[64], memory[128]), (7, 7, 8, 0));
}

#[test]
fn what_cannot_be_adopted_is_refused_with_a_reason() {
    let mut memory = vec![0u8; 4096];
    let p = adopt(&mut memory, ForeignKind::Vram);
    let d = malloc(64);
    for (ptr, bytes) in [
        (p, 4096),
        (p.wrapping_byte_add(100), 1),
        (p.wrapping_byte_sub(10), 11),
        (d, 64),
        (null_mut(), 5),
        (d, 0),
        (p, usize::MAX),
    ] {
        // SAFETY: refused, so nothing is used.
        let error = unsafe { foreign::adopt(ptr, bytes, ForeignKind::Vram) }
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("adopt(") && !error.contains('\n'), "{error}");
    }
    assert!(foreign::release(d).is_err());
    foreign::release(p).unwrap();
}

#[test]
fn hsa_tells_who_owns_an_address() {
    assert_eq!(hsa!(hsa_init()), GOOD);
    let (mut vram, mut fine, mut own) = (vec![0u8; 4096], vec![0u8; 4096], vec![0u8; 4096]);
    let (vram, fine) = (
        adopt(&mut vram, ForeignKind::Vram),
        adopt(&mut fine, ForeignKind::HostFine),
    );
    let d = malloc(1000);
    let mut pinned = null_mut();
    ok!(hipHostMalloc(&mut pinned, 100, 0));
    ok!(hipHostRegister(own.as_mut_ptr().cast(), 4096, 0));
    let (gpu, cpu) = (
        hsa_device_type_t::HSA_DEVICE_TYPE_GPU,
        hsa_device_type_t::HSA_DEVICE_TYPE_CPU,
    );
    let hsa = hsa_amd_pointer_type_t::HSA_EXT_POINTER_TYPE_HSA;
    for (ptr, bytes, kind, owner) in [
        (vram, 4096, hsa, gpu),
        (fine, 4096, hsa, cpu),
        (d, 1000, hsa, gpu),
        (pinned, 100, hsa, cpu),
    ] {
        let info = info(ptr.wrapping_byte_add(50));
        assert_eq!(
            (info.type_, info.sizeInBytes, info.agentBaseAddress),
            (kind, bytes, ptr)
        );
        assert_eq!(kind_of(info.agentOwner), owner);
    }
    // Registered memory is no more known to HSA than memory that HIP never saw.
    for ptr in [own.as_ptr().cast(), (&raw const gpu).cast()] {
        assert_eq!(info(ptr).type_, hsa_amd_pointer_type_t::HSA_EXT_POINTER_TYPE_UNKNOWN);
    }
    foreign::release(vram).unwrap();
    assert_eq!(info(vram).type_, hsa_amd_pointer_type_t::HSA_EXT_POINTER_TYPE_UNKNOWN);
    foreign::release(fine).unwrap();
    ok!(hipHostUnregister(own.as_mut_ptr().cast()));
    assert_eq!(hsa!(hsa_shut_down()), GOOD);
}

#[test]
fn hsa_agents_name_the_same_device_as_hip() {
    unsafe extern "C" fn collect(agent: hsa_agent_t, list: *mut c_void) -> hsa_status_t {
        // SAFETY: the list given to the walk below.
        unsafe { (*list.cast::<Vec<hsa_agent_t>>()).push(agent) };
        hsa_status_t::HSA_STATUS_SUCCESS
    }
    unsafe extern "C" fn stop(_: hsa_agent_t, _: *mut c_void) -> hsa_status_t {
        hsa_status_t::HSA_STATUS_INFO_BREAK
    }
    assert_eq!(hsa!(hsa_init()), GOOD);
    let mut agents: Vec<hsa_agent_t> = Vec::new();
    assert_eq!(hsa!(hsa_iterate_agents(Some(collect), (&raw mut agents).cast())), GOOD);
    assert_eq!(
        hsa!(hsa_iterate_agents(Some(stop), null_mut())),
        hsa_status_t::HSA_STATUS_INFO_BREAK
    );
    assert_eq!(
        hsa!(hsa_iterate_agents(None, null_mut())),
        hsa_status_t::HSA_STATUS_ERROR_INVALID_ARGUMENT
    );
    let gpus: Vec<_> = agents
        .iter()
        .filter(|agent| kind_of(**agent) == hsa_device_type_t::HSA_DEVICE_TYPE_GPU)
        .collect();
    assert_eq!((agents.len(), gpus.len()), (2, 1));
    let read = |attribute: u32| {
        let mut value = 0u32;
        assert_eq!(
            hsa!(hsa_agent_get_info(
                *gpus[0],
                hsa_sys::hsa_agent_info_t(attribute),
                (&raw mut value).cast()
            )),
            GOOD
        );
        value
    };
    let (bdf, domain) = (read(0xa006), read(0xa00f));
    let mut address = [0i8; 16];
    ok!(hipDeviceGetPCIBusId(address.as_mut_ptr(), 16, 0));
    // SAFETY: a terminated string.
    let address = unsafe { std::ffi::CStr::from_ptr(address.as_ptr()) }.to_str().unwrap();
    assert_eq!(
        address,
        format!("{domain:04x}:{:02x}:{:02x}.{}", bdf >> 8, bdf >> 3 & 31, bdf & 7)
    );
    let mut uuid = [0u8; 21];
    let attribute = hsa_sys::hsa_agent_info_t(0xa011);
    assert_eq!(
        hsa!(hsa_agent_get_info(*gpus[0], attribute, uuid.as_mut_ptr().cast())),
        GOOD
    );
    let mut of_hip = hip_sys::hipUUID::default();
    ok!(hipDeviceGetUuid(&mut of_hip, 0));
    assert_eq!(uuid[..4], *b"GPU-");
    assert!(
        uuid[4..20]
            .iter()
            .eq(of_hip.bytes.iter().map(|&byte| byte as u8).collect::<Vec<_>>().iter())
    );
    let unknown = hsa_agent_t { handle: 77 };
    assert_eq!(
        hsa!(hsa_agent_get_info(unknown, attribute, uuid.as_mut_ptr().cast())),
        hsa_status_t::HSA_STATUS_ERROR_INVALID_AGENT
    );
    assert_eq!(hsa!(hsa_shut_down()), GOOD);
}

#[test]
fn hsa_needs_its_initialisation() {
    if !is_child() {
        // Alone in a process: other tests initialise too.
        assert!(run_child("hsa_needs_its_initialisation", &[]).status.success());
        return;
    }
    let not = hsa_status_t::HSA_STATUS_ERROR_NOT_INITIALIZED;
    assert_eq!(hsa!(hsa_shut_down()), not);
    assert_eq!(hsa!(hsa_iterate_agents(None, null_mut())), not);
    assert_eq!(
        (hsa!(hsa_init()), hsa!(hsa_init()), hsa!(hsa_shut_down())),
        (GOOD, GOOD, GOOD)
    );
    assert_eq!(
        hsa!(hsa_iterate_agents(None, null_mut())),
        hsa_status_t::HSA_STATUS_ERROR_INVALID_ARGUMENT
    );
    assert_eq!((hsa!(hsa_shut_down()), hsa!(hsa_shut_down())), (GOOD, not));
}

#[test]
fn foreign_device_memory_in_a_file_is_exported_with_its_place_there() {
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    const LEAD: usize = 8192;
    let file = memfd_create("opencl memory", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, 3 * 4096).unwrap();
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping.
    let p = unsafe { mmap(null_mut(), 4096, access, MapFlags::SHARED, &file, LEAD as u64) };
    let p = p.unwrap();
    // SAFETY: mapped from there, and unmapped after its release.
    unsafe { foreign::adopt_in_file(p, 4096, 0, file, LEAD) }.unwrap();
    assert_eq!(hsa!(hsa_init()), GOOD);
    let (mut fd, mut offset) = (-1, 0);
    let inside = p.wrapping_byte_add(256);
    let exported = hsa!(hsa_amd_portable_export_dmabuf(inside, 512, &mut fd, &mut offset));
    assert_eq!((exported, offset), (GOOD, (LEAD + 256) as u64));
    assert_eq!(hsa!(hsa_amd_portable_close_dmabuf(fd)), GOOD);
    assert_eq!(hsa!(hsa_shut_down()), GOOD);
    foreign::release(p).unwrap();
    // SAFETY: nothing uses the mapping any more.
    unsafe { munmap(p, 4096) }.unwrap();
}

#[test]
fn a_device_that_is_not_there_owns_nothing() {
    let mut memory = vec![0u8; 64];
    // SAFETY: refused, so nothing is used.
    let refused = unsafe { foreign::adopt_on(memory.as_mut_ptr().cast(), 64, ForeignKind::Vram, 7) };
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("no device 7") && error.contains("at least 8"), "{error}");
}
