//! Memory that others see: descriptors, handles, other processes.

mod common;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use common::{Gate, device};
use hip::{Device, DeviceBuffer, Error, IpcEvent, IpcMemory, Stream};

fn fill(buffer: &mut DeviceBuffer<u32>, stream: &Stream, first: u32) {
    let values: Vec<u32> = (first..).take(buffer.len()).collect();
    buffer.copy_from_slice(stream, &values).unwrap();
}

fn contents(buffer: &DeviceBuffer<u32>, stream: &Stream) -> Vec<u32> {
    let mut values = vec![0; buffer.len()];
    buffer.copy_to_slice(stream, &mut values).unwrap();
    values
}

fn quiet(device: &Device) {
    let deferred = device.runtime().take_deferred_errors();
    assert!(deferred.is_empty(), "{deferred:?}");
}

#[test]
fn exported_memory_is_the_same_memory_wherever_it_is_mapped() {
    let device = device();
    let stream = device.stream().unwrap();
    let memory = device.virtual_memory(4000).unwrap();
    assert_eq!(memory.bytes(), 4000);
    // SAFETY: made with this size; all use below is one after the other.
    let fd = unsafe { memory.export() }.unwrap();
    // SAFETY: as above.
    let again = unsafe { device.import_virtual_memory(fd.as_fd(), 4000) }.unwrap();
    // SAFETY: as above.
    let external = unsafe { device.import_memory(fd.as_fd(), 4000) }.unwrap();
    drop(fd);
    let mut first = memory.into_buffer::<u32>().unwrap();
    assert_eq!(first.len(), 1000);
    fill(&mut first, &stream, 5);
    let second = again.into_buffer::<u32>().unwrap();
    assert_eq!(contents(&second, &stream), contents(&first, &stream));
    // SAFETY: as above.
    let mut third = unsafe { external.buffer::<u32>(400, 10) }.unwrap();
    assert!(contents(&third, &stream).into_iter().eq(105..115));
    drop(external);
    fill(&mut third, &stream, 0);
    assert!(contents(&first, &stream)[100..110].iter().copied().eq(0..10));
    drop((first, third));
    assert_eq!(contents(&second, &stream)[99..103], [104, 0, 1, 2]);
    drop(second);
    quiet(&device);
}

#[test]
fn a_part_outside_of_imported_memory_is_refused() {
    let device = device();
    // SAFETY: only the import below uses it.
    let fd = unsafe { device.virtual_memory(4096).unwrap().export() }.unwrap();
    // SAFETY: made with this size.
    let external = unsafe { device.import_memory(fd.as_fd(), 4096) }.unwrap();
    for (offset, len) in [
        (4096, 1),
        (4092, 2),
        (0, 1025),
        (2, 1),
        (8, usize::MAX),
        (usize::MAX, 1),
    ] {
        // SAFETY: nothing uses it.
        let refused = unsafe { external.buffer::<u32>(offset, len) };
        assert!(matches!(refused, Err(Error::OutOfRange { .. })), "{offset} {len}");
    }
    // SAFETY: nothing uses it.
    assert!(unsafe { external.buffer::<u32>(4092, 1) }.is_ok());
}

#[test]
fn what_is_no_memory_is_refused_and_nothing_is_left() {
    let device = device();
    let null = File::open("/dev/null").unwrap();
    // SAFETY: refused.
    let error = unsafe { device.import_memory(null.as_fd(), 4096) }.unwrap_err();
    assert_eq!(error.code(), Some(hip_sys::hipError_t::hipErrorOutOfMemory));
    assert!(error.to_string().starts_with("`hipImportExternalMemory(fd "), "{error}");
    assert!(device.virtual_memory(0).is_err());
    assert!(matches!(device.virtual_memory(usize::MAX), Err(Error::TooLarge { .. })));
    quiet(&device);
}

#[test]
fn external_semaphores_are_refused_by_their_type() {
    let device = device();
    let file = File::open("/dev/null").unwrap();
    let error = device.import_semaphore(file.as_fd()).unwrap_err();
    if common::on_cuda() {
        // CUDA imports semaphores; this is none.
        assert_eq!(error.code(), Some(hip_sys::hipError_t::hipErrorInvalidValue));
        return;
    }
    assert!(matches!(error, Error::NotSupported { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "an external semaphore is not supported: ROCm does not support them on Linux; order the work with events, flags or host functions"
    );
}

/// A library that imports any semaphore, and does nothing when it is asked to signal or wait.
mod accepting {
    use std::ffi::c_uint;
    use std::sync::atomic::{AtomicU32, Ordering};

    use hip_sys::*;

    pub static QUEUED: AtomicU32 = AtomicU32::new(0);
    pub static ALIVE: AtomicU32 = AtomicU32::new(0);

    pub unsafe extern "C" fn import(
        semaphore: *mut hipExternalSemaphore_t,
        _: *const hipExternalSemaphoreHandleDesc,
    ) -> hipError_t {
        ALIVE.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller gives room for a handle; this one is never dereferenced.
        unsafe { *semaphore = std::ptr::without_provenance_mut(16) };
        hipError_t::hipSuccess
    }

    pub unsafe extern "C" fn signal(
        _: *const hipExternalSemaphore_t,
        _: *const hipExternalSemaphoreSignalParams,
        _: c_uint,
        _: hipStream_t,
    ) -> hipError_t {
        QUEUED.fetch_add(1, Ordering::Relaxed);
        hipError_t::hipSuccess
    }

    pub unsafe extern "C" fn wait(
        _: *const hipExternalSemaphore_t,
        _: *const hipExternalSemaphoreWaitParams,
        _: c_uint,
        _: hipStream_t,
    ) -> hipError_t {
        QUEUED.fetch_add(1, Ordering::Relaxed);
        hipError_t::hipSuccess
    }

    pub unsafe extern "C" fn destroy(_: hipExternalSemaphore_t) -> hipError_t {
        ALIVE.fetch_sub(1, Ordering::Relaxed);
        hipError_t::hipSuccess
    }

    /// The host platform's answer, for a device of CUDA.
    pub unsafe extern "C" fn properties_of_cuda(properties: *mut hipDeviceProp_tR0600, device: i32) -> hipError_t {
        // SAFETY: the caller's promise is the callee's demand; it gives room for the structure.
        unsafe {
            let code = crate::common::hip_api().hipGetDevicePropertiesR0600.unwrap()(properties, device);
            let name = (&raw mut (*properties).gcnArchName).cast::<[u8; 6]>();
            name.write(*b"sm_90\0");
            code
        }
    }

    pub fn table() -> Api {
        Api {
            hipImportExternalSemaphore: Some(import),
            hipSignalExternalSemaphoresAsync: Some(signal),
            hipWaitExternalSemaphoresAsync: Some(wait),
            hipDestroyExternalSemaphore: Some(destroy),
            ..crate::common::hip_api()
        }
    }
}

#[test]
fn a_semaphore_is_not_signalled_where_that_would_do_nothing() {
    use std::sync::atomic::Ordering;

    if common::on_cuda() {
        common::skipped("CUDA has semaphores, so there is nothing to refuse");
        return;
    }
    let file = File::open("/dev/null").unwrap();
    let queued = || accepting::QUEUED.load(Ordering::Relaxed);
    let device = common::runtime(accepting::table()).device(0).unwrap();
    let stream = device.stream().unwrap();
    let semaphore = device.import_semaphore(file.as_fd()).unwrap();
    for outcome in [semaphore.signal(&stream, 1), semaphore.wait(&stream, 1)] {
        assert!(matches!(outcome, Err(Error::NotSupported { .. })), "{outcome:?}");
    }
    assert_eq!(queued(), 0);

    let cuda = hip_sys::Api {
        hipGetDevicePropertiesR0600: Some(accepting::properties_of_cuda),
        ..accepting::table()
    };
    let device = common::runtime(cuda).device(0).unwrap();
    let stream = device.stream().unwrap();
    let effective = device.import_semaphore(file.as_fd()).unwrap();
    let alive = || accepting::ALIVE.load(Ordering::Relaxed);
    effective.signal(&stream, 1).unwrap();
    effective.wait(&stream, 1).unwrap();
    assert_eq!(queued(), 2);
    assert_eq!(alive(), 2);
    // No stream uses the first; the second stays for the wait that may be pending.
    drop((semaphore, effective));
    assert_eq!(alive(), 1);
    stream.synchronize().unwrap();
    assert_eq!(alive(), 0);
}

#[test]
fn the_process_itself_cannot_open_its_handle() {
    let device = device();
    let buffer = device.alloc_zeroed::<u32>(16).unwrap();
    let handle = buffer.share().unwrap();
    // SAFETY: the handle is fresh, and the buffer stays.
    let error = unsafe { handle.open::<u32>(&device, 16) }.unwrap_err();
    assert_eq!(error.code(), Some(hip_sys::hipError_t::hipErrorInvalidContext));
    let stream = device.stream().unwrap();
    assert!(matches!(
        stream.alloc::<u8>(4).unwrap().share(),
        Err(Error::NotSupported { .. })
    ));
    assert!(device.alloc::<u8>(0).unwrap().share().is_err());
    assert!(device.event().unwrap().share().is_err(), "not made to be shared");
}

/// What the second process does.
const CHILD: &str = "HIP_TEST_CHILD";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> [u8; 64] {
    std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap())
}

#[test]
fn another_process_reads_and_writes_shared_memory_in_order_of_a_shared_event() {
    let device = device();
    let stream = device.stream().unwrap();
    if let Ok(handles) = std::env::var(CHILD) {
        let (memory, event) = handles.split_once(' ').unwrap();
        let (memory, event) = (IpcMemory { bytes: unhex(memory) }, IpcEvent { bytes: unhex(event) });
        // SAFETY: `share` gave these bytes to the other process, which waits for this one.
        let done = unsafe { event.open(&device) }.unwrap();
        stream.wait(&done).unwrap();
        // SAFETY: as above.
        let too_long = unsafe { memory.open::<u32>(&device, 257) };
        assert!(too_long.is_err());
        // SAFETY: as above.
        let mut buffer = unsafe { memory.open::<u32>(&device, 256) }.unwrap();
        let doubled: Vec<u32> = contents(&buffer, &stream).iter().map(|x| 2 * x).collect();
        buffer.copy_from_slice(&stream, &doubled).unwrap();
        drop((buffer, done));
        quiet(&device);
        println!("done");
        return;
    }
    let mut buffer = device.alloc::<u32>(256).unwrap();
    let written = device.shared_event().unwrap();
    let handles = format!(
        "{} {}",
        hex(&buffer.share().unwrap().bytes),
        hex(&written.share().unwrap().bytes)
    );
    fill(&mut buffer, &stream, 1);
    written.record_on(&stream).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "another_process_reads_and_writes_shared_memory_in_order_of_a_shared_event",
            "--exact",
            "--nocapture",
        ])
        .env(CHILD, handles)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output: Vec<String> = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap)
        .collect();
    std::io::stdout().flush().unwrap();
    assert!(child.wait().unwrap().success(), "{output:?}");
    assert!(output.iter().any(|line| line.contains("done")), "{output:?}");
    assert!(
        contents(&buffer, &stream)
            .into_iter()
            .eq((1..).take(256).map(|x| 2 * x))
    );
    quiet(&device);
}

#[test]
fn a_later_record_of_a_shared_event_does_not_end_an_earlier_wait() {
    let device = device();
    let [held, idle, waits] = [(); 3].map(|()| device.stream().unwrap());
    let event = device.shared_event().unwrap();
    let gate = Gate::close(&held);
    event.record_on(&held).unwrap();
    waits.wait(&event).unwrap();
    let (is_open, came_after) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let seen = (is_open.clone(), came_after.clone());
    waits
        .host_function(move || seen.1.store(seen.0.load(Ordering::SeqCst), Ordering::SeqCst))
        .unwrap();
    event.record_on(&idle).unwrap();
    event.synchronize().unwrap();
    // A wait that the later record ends has ended by now.
    for _ in 0..1000 {
        assert!(!waits.is_idle().unwrap());
        std::thread::yield_now();
    }
    is_open.store(true, Ordering::SeqCst);
    gate.open();
    waits.synchronize().unwrap();
    assert!(came_after.load(Ordering::SeqCst));
    quiet(&device);
}

#[test]
fn a_shared_event_can_be_recorded_more_often_than_it_has_places() {
    let device = device();
    let stream = device.stream().unwrap();
    let event = device.shared_event().unwrap();
    let recorded = AtomicUsize::new(0);
    // ROCm and its model have 32 recordings under way, and wait for a place then.
    let most = if common::on_cuda() { 100 } else { 32 };
    let gate = Gate::close(&stream);
    let (under_way, is_complete) = std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..100 {
                event.record_on(&stream).unwrap();
                recorded.fetch_add(1, Ordering::SeqCst);
            }
        });
        while recorded.load(Ordering::SeqCst) < most {
            std::thread::yield_now();
        }
        // One more would be recorded within this time.
        (0..1000).for_each(|_| std::thread::yield_now());
        let seen = (recorded.load(Ordering::SeqCst), event.is_complete());
        // The other thread ends before anything is asserted.
        gate.open();
        seen
    });
    assert_eq!(under_way, most);
    assert!(!is_complete.unwrap());
    event.synchronize().unwrap();
    assert!(event.is_complete().unwrap());
    quiet(&device);
}
