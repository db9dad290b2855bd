//! Files shared with other processes: no process can kill this one through them, and no handle opens any other file.

mod common;

use std::ffi::c_void;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::process::{Child, Command, Stdio};
use std::ptr::null_mut;
use std::sync::mpsc;
use std::time::Duration;

use common::{OK, download, hip, ok, upload};
use hip_sys::{
    hipError_t, hipEvent_t, hipExternalMemoryBufferDesc, hipExternalMemoryHandleDesc, hipExternalMemoryHandleType,
    hipIpcEventHandle_t, hipIpcMemHandle_t,
};
use hsa_sys::hsa_status_t;

const WORDS: usize = 100_000;
const SUCCESS: hsa_status_t = hsa_status_t::HSA_STATUS_SUCCESS;

/// A second process truncates this descriptor's file to zero, if it can.
fn cut_by_another_process(fd: i32) -> bool {
    let redirect = format!(": > /proc/{}/fd/{fd}", std::process::id());
    let status = Command::new("sh").args(["-c", &redirect]).status();
    status.expect("a shell").success()
}

fn exported(ptr: *mut c_void, words: usize) -> OwnedFd {
    let (mut fd, mut offset) = (-1, 0);
    let bytes = words * size_of::<u32>();
    // SAFETY: memory of this many bytes, and room for both answers.
    let status = unsafe {
        let api = hip_host::hsa_api();
        assert_eq!(api.hsa_init.expect("hsa_init")(), SUCCESS);
        api.hsa_amd_portable_export_dmabuf.expect("the export")(ptr, bytes, &mut fd, &mut offset)
    };
    assert_eq!(status, SUCCESS);
    // SAFETY: just created, and not shared.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// The descriptor in a handle, after the magic word and the process.
fn descriptor(handle: &[u8]) -> i32 {
    i32::from_le_bytes(handle[12..16].try_into().expect("four bytes"))
}

fn bytes<T>(value: &T) -> Vec<u8> {
    // SAFETY: a C structure of bytes.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }.to_vec()
}

#[test]
fn another_process_cannot_cut_the_memory_that_it_was_given() {
    let data: Vec<u32> = (0..WORDS as u32).collect();
    let ptr = upload(&data);
    let fd = exported(ptr, WORDS);
    assert!(!cut_by_another_process(fd.as_raw_fd()), "it was cut");
    let grown = File::from(fd).set_len(1 << 30);
    assert!(grown.is_err(), "it grew");
    let mut handle = hipIpcMemHandle_t::default();
    ok!(hipIpcGetMemHandle(&mut handle, ptr));
    assert!(!cut_by_another_process(descriptor(&bytes(&handle))));
    assert_eq!(download::<u32>(ptr, WORDS), data);
    ok!(hipFree(ptr));
}

#[test]
fn another_process_cannot_cut_an_event() {
    const INTERPROCESS: u32 = 4 | 2;
    let (mut event, mut handle) = (null_mut(), hipIpcEventHandle_t::default());
    ok!(hipEventCreateWithFlags(&mut event, INTERPROCESS));
    ok!(hipIpcGetEventHandle(&mut handle, event));
    assert!(!cut_by_another_process(descriptor(&bytes(&handle))));
    ok!(hipEventRecord(event, null_mut()));
    ok!(hipEventSynchronize(event));
    ok!(hipEventDestroy(event));
}

#[test]
fn another_process_cannot_cut_memory_that_was_imported_from_it() {
    let allows = rustix::fs::MemfdFlags::CLOEXEC | rustix::fs::MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create("made elsewhere", allows);
    let file = File::from(file.expect("a file"));
    let bytes = WORDS * size_of::<u32>();
    file.set_len(bytes as u64).expect("a size");
    let (mut memory, mut ptr) = (null_mut(), null_mut());
    let mut desc = hipExternalMemoryHandleDesc {
        type_: hipExternalMemoryHandleType::hipExternalMemoryHandleTypeOpaqueFd,
        size: bytes as u64,
        ..Default::default()
    };
    desc.handle.fd = file.as_raw_fd();
    ok!(hipImportExternalMemory(&mut memory, &desc));
    let buffer = hipExternalMemoryBufferDesc {
        size: bytes as u64,
        ..Default::default()
    };
    ok!(hipExternalMemoryGetMappedBuffer(&mut ptr, memory, &buffer));
    assert!(!cut_by_another_process(file.as_raw_fd()), "it was cut");
    assert_eq!(download::<u32>(ptr, WORDS), vec![0; WORDS]);
    file.set_len(2 * bytes as u64).expect("it may grow");
    ok!(hipFree(ptr));
    ok!(hipDestroyExternalMemory(memory));
}

const EVENT: &str = "HIP_HOST_TEST_EVENT";

/// A second process that has recorded an event behind work that does not end.
fn stuck(handle: &hipIpcEventHandle_t) -> Child {
    let handle: Vec<String> = bytes(handle).iter().map(u8::to_string).collect();
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "a_process_that_gets_stuck", "--ignored", "--nocapture"])
        .env(EVENT, handle.join(","))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a second process");
    let told = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut told = told.map(|line| line.expect("a line"));
    assert!(told.any(|line| line.contains("it is recorded")));
    child
}

#[test]
#[ignore = "run by another test in a process of its own"]
fn a_process_that_gets_stuck() {
    unsafe extern "C" fn until_the_input_ends(_: *mut c_void) {
        let _ = std::io::stdin().lines().count();
    }
    let text = std::env::var(EVENT).expect("another test sets it");
    let mut handle = hipIpcEventHandle_t::default();
    for (place, byte) in text.split(',').enumerate() {
        // SAFETY: as `bytes`, which there are as many of.
        unsafe {
            let raw = (&raw mut handle).cast::<u8>();
            raw.add(place).write(byte.parse().expect("a byte"));
        }
    }
    let (mut event, stream) = (null_mut(), common::stream());
    ok!(hipIpcOpenEventHandle(&mut event, handle));
    ok!(hipLaunchHostFunc(stream, Some(until_the_input_ends), null_mut()));
    ok!(hipEventRecord(event, stream));
    println!("it is recorded");
    ok!(hipStreamSynchronize(stream));
}

#[test]
fn a_wait_for_a_process_that_was_killed_fails() {
    const GONE: hipError_t = hipError_t::hipErrorContextIsDestroyed;
    let (mut event, mut handle) = (null_mut(), hipIpcEventHandle_t::default());
    ok!(hipEventCreateWithFlags(&mut event, 4 | 2));
    ok!(hipIpcGetEventHandle(&mut handle, event));
    let mut process = stuck(&handle);
    assert_eq!(hip!(hipEventQuery(event)), hipError_t::hipErrorNotReady);
    let stream = common::stream();
    ok!(hipStreamWaitEvent(stream, event, 0));
    // Waiting threads: one began before the process ended, and one begins after it.
    let (tell, told) = mpsc::channel();
    let wait = |event: usize| {
        let tell = tell.clone();
        std::thread::spawn(move || {
            let code = hip!(hipEventSynchronize(event as hipEvent_t));
            tell.send(code).expect("the test waits");
        });
        told.recv_timeout(Duration::from_secs(60))
    };
    let early = std::thread::scope(|scope| {
        let killer = scope.spawn(|| process.kill().expect("it is killed"));
        let early = wait(event as usize);
        killer.join().expect("it is killed");
        early
    });
    assert_eq!(early, Ok(GONE));
    // Its status has not been collected yet.
    assert_eq!(wait(event as usize), Ok(GONE));
    process.wait().expect("it has ended");
    assert_eq!(wait(event as usize), Ok(GONE));
    assert_eq!(hip!(hipEventQuery(event)), GONE);
    assert_eq!(hip!(hipStreamSynchronize(stream)), GONE);
    // A later recording is another matter.
    ok!(hipEventRecord(event, null_mut()));
    ok!(hipEventSynchronize(event));
    ok!(hipEventDestroy(event));
}

/// A process that owns a file and sleeps, and a handle that claims shared memory is there.
struct MadeUp {
    owner: std::process::Child,
    handle: hipIpcMemHandle_t,
}

impl MadeUp {
    fn new(genuine: hipIpcMemHandle_t, file: File) -> Self {
        let inode = file.metadata().expect("a file").ino();
        let owner = Command::new("sleep")
            .arg("600")
            .stdin(file)
            .spawn()
            .expect("a second process");
        let mut handle = genuine;
        // SAFETY: as `bytes`; magic, process, descriptor, inode, offset, size, place.
        let raw: &mut [u8] = unsafe { std::slice::from_raw_parts_mut((&raw mut handle).cast(), size_of_val(&handle)) };
        raw[8..12].copy_from_slice(&owner.id().to_le_bytes());
        raw[12..16].copy_from_slice(&0_i32.to_le_bytes());
        raw[16..24].copy_from_slice(&inode.to_le_bytes());
        raw[24..32].copy_from_slice(&0_u64.to_le_bytes());
        raw[32..40].copy_from_slice(&4096_u64.to_le_bytes());
        raw[40..48].copy_from_slice(&0_u64.to_le_bytes());
        Self { owner, handle }
    }

    fn open(&self) -> hipError_t {
        let mut ptr = null_mut();
        hip!(hipIpcOpenMemHandle(&mut ptr, self.handle, 1))
    }
}

impl Drop for MadeUp {
    fn drop(&mut self) {
        let _ = self.owner.kill();
        let _ = self.owner.wait();
    }
}

#[test]
fn a_forged_handle_opens_no_file_of_another_process() {
    let ptr = upload(&[1_u32; 1024]);
    let mut genuine = hipIpcMemHandle_t::default();
    ok!(hipIpcGetMemHandle(&mut genuine, ptr));
    let mut plain = tempfile::tempfile().expect("a file");
    plain.write_all(&[7; 8192]).expect("room");
    let memfd = |name: &str| {
        let file = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC);
        let file = File::from(file.expect("a file"));
        file.set_len(8192).expect("a size");
        file
    };
    for (what, file) in [
        ("an ordinary file", plain),
        ("a device", File::open("/dev/zero").expect("a device")),
        ("another program's memory", memfd("something else")),
        ("memory whose size may change", memfd("hip-host memory")),
    ] {
        assert_ne!(MadeUp::new(genuine, file).open(), OK, "{what}");
    }
    // The path is right: only the file was not.
    let copy = File::from(exported(ptr, 1024));
    let shared = MadeUp::new(genuine, copy);
    assert_eq!(shared.open(), OK);
    ok!(hipFree(ptr));
}
