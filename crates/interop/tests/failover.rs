//! A route that fails at run time, by faults put into HIP: the next permitted one takes over.

mod common;

use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};

use interop::{Bridge, Carrier, Error, Grade, Link, Options, Policy, Route, Shared};
use platform::{ForeignHooks, ForeignKind};

const LEN: usize = 1000;

/// Faults are the process's: one test at a time, and none left behind.
struct Faults(#[allow(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl Faults {
    fn alone() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        Self(ALONE.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, rules: &str) {
        hip_host::faults::set_failures(rules).expect("rules");
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        self.set("");
    }
}

unsafe fn refuse(_: *mut c_void, _: usize, _: ForeignKind, _: usize) -> Result<(), String> {
    Err("not of this platform".into())
}

/// Where OpenCL's memory is out of HIP's reach, routes over HIP's own calls come first.
fn bridge(policy: Policy) -> Bridge {
    let mut selection = common::host();
    // SAFETY: these hooks take and release what they are given, or refuse it.
    let tables = unsafe { selection.tables_mut() };
    tables.foreign = Some(ForeignHooks {
        adopt: refuse,
        release: |_| Ok(()),
        reaches_hip: || true,
        launch: hip_host::foreign::launch,
        end: hip_host::foreign::end,
    });
    let options = Options {
        policy,
        ..Options::default()
    };
    let bridge = Bridge::open(&selection, &options).expect("a bridge");
    let direct = [Route::HipPointer, Route::HostPinned];
    assert_eq!(bridge.permitted()[..2], direct);
    bridge
}

#[test]
fn a_failed_allocation_is_made_on_the_next_route_and_the_report_says_so() {
    let faults = Faults::alone();
    let bridge = bridge(Policy::DirectOnly);
    faults.set("hipMalloc:1:2");
    let mut data = bridge.alloc::<u32>(LEN).expect("the next route has memory");
    assert_eq!(data.route(), Route::HostPinned);
    let failovers = bridge.failovers();
    assert_eq!(failovers.len(), 1);
    let (from, to) = (failovers[0].from, failovers[0].to);
    assert_eq!((from, to), (Route::HipPointer, Route::HostPinned));
    let text = failovers[0].to_string();
    assert!(text.contains("hipMalloc") && text.starts_with("allocation:"), "{text}");
    data.upload(&[4; LEN]).expect("an upload");
    let mut back = [0; LEN];
    data.download(&mut back).expect("a download");
    assert_eq!(back, [4; LEN]);
    assert_eq!(bridge.alloc::<u32>(LEN).expect("memory").route(), Route::HipPointer);
}

#[test]
fn what_is_never_asked_for_does_not_grow_without_end() {
    let faults = Faults::alone();
    let bridge = bridge(Policy::DirectOnly);
    for _ in 0..100 {
        faults.set("hipMalloc:1:2");
        let mut data = bridge.alloc::<u32>(LEN).expect("the next route has memory");
        assert_eq!(data.route(), Route::HostPinned);
        let stream = bridge.stream().expect("a stream");
        drop(data.hip_mut(&stream).expect("access"));
        // The drop cannot wait for the stream.
        faults.set("hipStreamSynchronize:1");
        drop(data);
    }
    assert_eq!(bridge.failovers().len(), 64);
    let told = bridge.take_deferred_errors();
    assert!(
        told.len() == 65 && matches!(told[64], Error::MoreDeferred { count: 36 }),
        "{told:?}"
    );
}

fn is_mapped(address: usize) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux");
    maps.lines().any(|line| {
        let range = line.split_whitespace().next().expect("a range");
        let (start, end) = range.split_once('-').expect("two ends");
        let number = |text| usize::from_str_radix(text, 16).expect("an address");
        (number(start)..number(end)).contains(&address)
    })
}

#[test]
fn pages_that_hip_does_not_let_go_of_are_not_freed() {
    let faults = Faults::alone();
    let bridge = bridge(Policy::DirectOnly);
    let stream = bridge.stream().expect("a stream");
    for refused in [true, false] {
        faults.set("hipMalloc:1:2");
        let data = bridge.alloc::<u64>(1 << 20).expect("the next route has memory");
        assert_eq!(data.route(), Route::HostPinned);
        let guard = data.hip(&stream).expect("access");
        let page = guard.slice().as_ptr().addr();
        drop(guard);
        if refused {
            faults.set("hipHostUnregister:1");
        }
        drop(data);
        assert_eq!(is_mapped(page), refused);
        let deferred = bridge.hip_device().runtime().take_deferred_errors();
        assert_eq!(deferred.len(), usize::from(refused), "{deferred:?}");
    }
}

#[test]
fn users_of_memory_that_failed_streams_wrote_fail_too() {
    let faults = Faults::alone();
    if !common::grade_or_skip(Grade::Callback) {
        return;
    }
    let bridge = bridge(Policy::DirectOnly).with_grade(Grade::Callback);
    let bridge = bridge.expect("proven");
    let mut data = bridge.alloc::<u32>(LEN).expect("memory");
    faults.set("async/hipMemsetAsync:1,async/hipMemsetAsync:2");
    let mut streams = Vec::new();
    for _ in 0..2 {
        let stream = bridge.stream().expect("a stream");
        let mut guard = data.hip_mut(&stream).expect("access");
        guard.slice_mut().fill_zero().expect("a fill");
        drop(guard);
        let (tell, told) = mpsc::channel();
        let done = stream.on_complete(move |outcome| {
            let _: Result<(), _> = tell.send(outcome.is_err());
        });
        done.expect("a callback");
        assert!(told.recv().expect("called"), "the fill failed");
        streams.push(stream);
    }
    faults.set("");
    for _ in 0..32 {
        let stream = bridge.stream().expect("a stream");
        // What is granted comes after the failed work, and fails with it.
        let granted = data.hip_mut(&stream).map(drop);
        assert!(granted.is_err() || stream.synchronize().is_err());
        streams.push(stream);
    }
    assert!(data.download(&mut [0; LEN]).is_err());
}

#[test]
fn a_failed_upload_goes_to_the_next_route_with_all_data() {
    let faults = Faults::alone();
    let bridge = bridge(Policy::DirectOnly);
    let mut data = bridge.alloc::<u32>(LEN).expect("memory");
    assert_eq!(data.route(), Route::HipPointer);
    let input: Vec<u32> = (0..LEN as u32).collect();
    faults.set("hipMemcpyWithStream:1");
    data.upload(&input).expect("the next route takes it");
    assert_eq!(data.route(), Route::HostPinned);
    let stream = bridge.stream().expect("a stream");
    let mut back = vec![0; LEN];
    data.hip(&stream)
        .expect("access")
        .slice()
        .copy_to_slice(&mut back)
        .expect("a copy");
    assert_eq!(back, input);
    assert_eq!(bridge.failovers()[0].during, "upload");
}

#[test]
fn memory_that_another_process_has_is_not_moved_when_its_route_fails() {
    let faults = Faults::alone();
    let bridge = bridge(Policy::DirectOnly);
    let (link, theirs) = Link::pair().expect("a link");
    let importer = std::thread::spawn({
        let bridge = bridge.clone();
        move || {
            // SAFETY: the other end is this test.
            unsafe { bridge.import::<u32>(theirs.into_link()) }
        }
    });
    let data = bridge.alloc::<u32>(LEN).expect("memory");
    let mut joint = data.export_by(Carrier::DmaBuf, link).expect("an export by descriptor");
    let theirs = importer.join().expect("no panic").expect("an import");
    assert_eq!(joint.route(), Route::HipPointer);
    let address = joint.addresses();
    faults.set("hipMemcpyWithStream:1");
    let error = joint.upload(&[1; LEN]).expect_err("the route fails");
    assert!(error.to_string().contains("hipMemcpyWithStream"), "{error}");
    assert_eq!(joint.addresses(), address);
    assert!(bridge.failovers().is_empty());
    drop((theirs, joint));
}

#[test]
fn a_copy_is_the_last_resort_and_only_where_it_is_allowed() {
    let faults = Faults::alone();
    for (policy, copies) in [
        (Policy::DirectOnly, false),
        (Policy::PreferDirect, false),
        (Policy::AllowCopy, true),
    ] {
        let bridge = bridge(policy);
        // Staging allocates by `hipMalloc` too, the second time that it is called.
        faults.set("hipMalloc:1,hipHostRegister:*");
        match bridge.alloc::<u32>(LEN) {
            Ok(data) => {
                assert!(copies && data.is_copy(), "{policy:?}");
                let text = bridge.failovers()[0].to_string();
                assert!(text.ends_with("which copies"), "{text}");
            }
            Err(error) => {
                assert!(!copies, "{policy:?}: {error}");
                assert!(matches!(&error, Error::Failed { tried } if tried.len() == 2), "{error}");
                assert!(!error.is_impossible());
                let text = error.to_string();
                assert!(text.contains("hip-pointer:") && text.contains("host-pinned:"), "{text}");
            }
        }
        faults.set("");
    }
}

#[test]
fn what_is_not_possible_is_told_from_what_failed() {
    let faults = Faults::alone();
    faults.set("hipMalloc:*,hipHostRegister:*,hipMallocManaged:*,hipHostMalloc:*");
    let mut selection = common::host();
    // SAFETY: these hooks take and release what they are given, or refuse it.
    let tables = unsafe { selection.tables_mut() };
    tables.foreign = Some(ForeignHooks {
        adopt: refuse,
        release: |_| Ok(()),
        reaches_hip: || true,
        launch: hip_host::foreign::launch,
        end: hip_host::foreign::end,
    });
    let error = Bridge::open(&selection, &Options::default()).expect_err("nothing works");
    faults.set("");
    // Which call meets the fault first is the bridge's business: a kernel's counter or a route's
    // memory. Both are named.
    let text = error.to_string();
    assert!(text.contains("hipMalloc") || text.contains("hipHostRegister"), "{text}");
}

#[test]
fn data_moves_to_another_route_as_it_was() {
    let _faults = Faults::alone();
    let bridge = Bridge::open(&common::host(), &Options::default()).expect("a bridge");
    let input: Vec<u32> = (0..LEN as u32).rev().collect();
    let mut data = bridge.alloc::<u32>(LEN).expect("memory");
    data.upload(&input).expect("an upload");
    let before = bridge.meter().snapshot();
    for route in bridge.report().working() {
        data.move_to(route).expect("moved");
        assert_eq!(data.route(), route);
        let mut back = vec![0; LEN];
        data.download(&mut back).expect("a download");
        assert_eq!(back, input, "{route}");
    }
    let moved = bridge.meter().snapshot().since(&before);
    assert!(moved.data_set > 0, "a move is a copy of the data set");
}

const NO_COPIES: &str = "hipMemcpyAsync:*,hipMemcpy:*,hipMemcpyWithStream:*";

/// On the route over HIP's own copies.
fn filled(bridge: &Bridge) -> (Shared<u32>, Vec<u32>) {
    let mut data = bridge.alloc::<u32>(LEN).expect("memory");
    assert_eq!(data.route(), Route::HipPointer);
    let input: Vec<u32> = (0..LEN as u32).map(|i| i ^ 0x5A).collect();
    data.upload(&input).expect("an upload");
    (data, input)
}

/// The words as a kernel on `stream` finds them.
fn sum_by_hip(stream: &hip::Stream, words: hip::DeviceSlice<'_, u32>) -> u32 {
    let sum = hip::rtc::Program::new(
        "extern \"C\" __global__ void sum(const unsigned int *x, unsigned int *total, unsigned int n) {
            unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) atomicAdd(total, x[i]);
        }",
    )
    .compile(stream.device())
    .and_then(|module| module.function("sum"))
    .expect("a kernel");
    // Page-locked, so that no copy is needed to look at it.
    let mut total = stream.device().alloc_pinned::<u32>(1).expect("a counter");
    let config = hip::LaunchConfig::linear(LEN, 256).expect("a grid");
    let counter = total.on_mut(stream).expect("a counter");
    // SAFETY: `sum` takes a pointer to as many words as it is told, and a counter.
    unsafe { sum.launch(stream, config, &[&words, &counter, &(LEN as u32)]) }.expect("a launch");
    stream.synchronize().expect("it ends");
    total.host().expect("the counter")[0]
}

/// Two buffers over the same bytes would part ways.
#[test]
fn memory_that_another_buffer_shows_is_not_moved_when_its_route_fails() {
    let faults = Faults::alone();
    let bridge = bridge(Policy::DirectOnly);
    let (shared, words) = filled(&bridge);
    let route = shared.route();
    let shared = std::sync::Arc::new(shared);
    let (_, address) = shared.addresses().expect("addresses");
    let address = std::ptr::with_exposed_provenance_mut(address);
    // SAFETY: the owner keeps the memory; guards of the two are not alive together.
    let other = unsafe { bridge.adopt_hip::<u32>(address, words.len(), shared.clone()) }.expect("adopted");
    faults.set(NO_COPIES);
    let mut read = vec![0; words.len()];
    let refused = shared.download(&mut read);
    assert!(matches!(refused, Err(Error::UnderReader { .. })), "{refused:?}");
    faults.set("");
    assert_eq!(shared.route(), route);
    drop(other);
    shared.download(&mut read).expect("the route works again");
    assert_eq!(read, words);
}

#[test]
fn a_failed_download_is_made_from_the_next_route_and_other_readers_keep_their_memory() {
    let faults = Faults::alone();
    let bridge = bridge(Policy::DirectOnly);
    let (mut data, input) = filled(&bridge);
    let stream = bridge.stream().expect("a stream");
    let expected = input.iter().fold(0_u32, |sum, v| sum.wrapping_add(*v));
    let old = data.addresses().expect("one address").1;
    let early = data.hip(&stream).expect("access");
    let mut back = vec![0; LEN];
    let before = bridge.meter().snapshot();
    faults.set(NO_COPIES);
    // OpenCL's kernel reads what HIP can't copy.
    data.download(&mut back).expect("the next route has it");
    assert_eq!(back, input);
    assert_eq!(data.route(), Route::HostPinned);
    let moved = bridge.meter().snapshot().since(&before);
    assert!(moved.data_set > 0, "a failover is a copy of the data set");
    let failovers = bridge.failovers();
    assert_eq!(failovers.len(), 1);
    let text = failovers[0].to_string();
    assert!(
        text.starts_with("download: hip-pointer failed (") && text.contains("hipMemcpy"),
        "{text}"
    );
    // Who was there first has the address that it was given, and the same bytes at it.
    assert_eq!(early.slice().as_ptr().addr(), old);
    assert_eq!(sum_by_hip(&stream, early.slice()), expected);
    let late = data.hip(&stream).expect("access");
    assert_ne!(late.slice().as_ptr().addr(), old);
    assert_eq!(sum_by_hip(&stream, late.slice()), expected);
    drop((early, late));
    faults.set("");
    let allocated = |data: &mut Shared<u32>| {
        drop(data.hip_mut(&stream).expect("access"));
        let runtime = bridge.hip_device().runtime();
        runtime
            .pointer_info(std::ptr::without_provenance(old))
            .expect("an answer")
            .is_some()
    };
    assert!(!allocated(&mut data), "a writer is alone: the old memory is given back");
    data.download(&mut back).expect("a download");
    assert_eq!(back, input);
}

#[test]
fn readers_on_several_threads_find_one_successor() {
    let faults = Faults::alone();
    let bridge = bridge(Policy::DirectOnly);
    let (data, input) = filled(&bridge);
    faults.set(NO_COPIES);
    let start = std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut back = vec![0; LEN];
                start.wait();
                data.download(&mut back).expect("a download");
                assert_eq!(back, input);
                let part = data.part(LEN / 4..LEN / 2).expect("a part");
                drop(part.hip(bridge.main_stream()).expect("access"));
            });
        }
    });
    assert_eq!(data.route(), Route::HostPinned);
    assert_eq!(bridge.failovers().len(), 1);
}

#[test]
fn a_part_next_to_which_others_may_write_is_told_how_to_move_on_and_nothing_is_lost() {
    let faults = Faults::alone();
    let options = Options {
        policy: Policy::AllowCopy,
        ..Options::default()
    };
    let bridge = Bridge::open(&common::host(), &options).expect("a bridge");
    let stream = bridge.stream().expect("a stream");
    let mut data = bridge.alloc_on::<u32>(Route::Staging, LEN).expect("memory");
    let input: Vec<u32> = (0..LEN as u32).map(|i| i ^ 0x77).collect();
    data.upload(&input).expect("an upload");
    faults.set("hipMemcpyWithStream:1");
    let mut part = data.part_mut(0..LEN).expect("a part");
    let error = part.hip_mut(&stream).expect_err("the copy to HIP's side fails");
    let text = error.to_string();
    assert!(
        matches!(
            &error,
            Error::UnderReader {
                route: Route::Staging,
                ..
            }
        ) && text.starts_with("hand-off of a part to HIP: route staging failed: ")
            && text.contains("move_to")
            && !text.contains('\n'),
        "{text}"
    );
    assert_eq!(data.route(), Route::Staging, "others may write next to it");
    data.move_to(Route::SvmCoarse).expect("moved");
    let mut back = vec![0; LEN];
    data.download(&mut back).expect("a download");
    assert_eq!(back, input);
}

#[test]
fn a_reader_of_a_failed_copy_is_told_too_and_a_later_one_succeeds() {
    let faults = Faults::alone();
    let options = Options {
        route: Some(Route::Staging),
        ..Options::default()
    };
    let bridge = Bridge::open(&common::host(), &options).expect("a bridge");
    let stream = bridge.stream().expect("a stream");
    let mut data = bridge.alloc::<u32>(LEN).expect("memory");
    data.upload(&[6; LEN]).expect("an upload");
    faults.set("hipMemcpyWithStream:1");
    let error = data.hip(&stream).expect_err("the copy to HIP's side fails");
    assert!(matches!(&error, Error::UnderReader { next: None, .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.starts_with("hand-off to HIP: route staging failed: ") && text.contains("move_to"),
        "{text}"
    );
    let mut back = [0; LEN];
    let guard = data.hip(&stream).expect("the fault is over");
    guard.slice().copy_to_slice(&mut back).expect("a copy");
    assert_eq!(back, [6; LEN]);
}

/// What OpenCL's reads answer while it is set.
static REFUSED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
static READ: std::sync::OnceLock<ReadBuffer> = std::sync::OnceLock::new();

type ReadBuffer = unsafe extern "C" fn(
    clmgr::opencl_sys::cl_command_queue,
    clmgr::opencl_sys::cl_mem,
    clmgr::opencl_sys::cl_bool,
    usize,
    usize,
    *mut c_void,
    clmgr::opencl_sys::cl_uint,
    *const clmgr::opencl_sys::cl_event,
    *mut clmgr::opencl_sys::cl_event,
) -> clmgr::opencl_sys::cl_int;

unsafe extern "C" fn refuse_read(
    queue: clmgr::opencl_sys::cl_command_queue,
    buffer: clmgr::opencl_sys::cl_mem,
    blocking: clmgr::opencl_sys::cl_bool,
    offset: usize,
    bytes: usize,
    to: *mut c_void,
    count: clmgr::opencl_sys::cl_uint,
    list: *const clmgr::opencl_sys::cl_event,
    event: *mut clmgr::opencl_sys::cl_event,
) -> clmgr::opencl_sys::cl_int {
    if REFUSED.load(std::sync::atomic::Ordering::SeqCst) {
        return clmgr::opencl_sys::CL_OUT_OF_RESOURCES;
    }
    let read = READ.get().expect("set before the first call");
    // SAFETY: the caller's own arguments.
    unsafe { read(queue, buffer, blocking, offset, bytes, to, count, list, event) }
}

#[test]
fn hip_reads_what_opencl_no_longer_can() {
    let _faults = Faults::alone();
    let hook = |api: &mut clmgr::Api| {
        let read = api.clEnqueueReadBuffer.expect("clEnqueueReadBuffer");
        READ.get_or_init(|| read);
        api.clEnqueueReadBuffer = Some(refuse_read);
    };
    // SAFETY: a read either reads or is refused.
    let bridge = unsafe { Bridge::open_with(&common::host(), &Options::default(), hook) };
    let bridge = bridge.expect("a bridge");
    let mut data = bridge.alloc_on::<u32>(Route::GpuVa, LEN).expect("memory");
    let input: Vec<u32> = (0..LEN as u32).map(|i| i.wrapping_mul(97)).collect();
    data.upload(&input).expect("an upload");
    let mut back = vec![0; LEN];
    REFUSED.store(true, std::sync::atomic::Ordering::SeqCst);
    let download = data.download(&mut back);
    let moved = data.move_to(Route::HipPointer);
    REFUSED.store(false, std::sync::atomic::Ordering::SeqCst);
    assert!(matches!(download, Err(Error::UnderReader { .. })), "{download:?}");
    moved.expect("a HIP kernel reads it");
    data.download(&mut back).expect("a download");
    assert_eq!(back, input);
}
