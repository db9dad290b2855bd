//! Two GPUs, here two software devices: a bridge to each, and memory that goes from one to the other.

mod common;

use std::ffi::c_void;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once, OnceLock, mpsc};
use std::time::Duration;

use interop::{Bridge, Bridges, Carrier, Error, Link, Options, Peer, PeerError, PeerPath, Route, Shared};
use platform::Selection;

/// Words; four of them are no whole number of copies of 16 bytes.
const LEN: usize = 5001;

fn selection() -> Selection {
    static DEVICES: Once = Once::new();
    // SAFETY: every test comes here before it does anything else, so that nothing reads the environment meanwhile.
    DEVICES.call_once(|| unsafe { std::env::set_var("HIP_HOST_DEVICES", "2") });
    common::host()
}

fn open_with(selection: &Selection) -> [Bridge; 2] {
    let Bridges { bridges, refused } = Bridge::open_all(selection, &Options::default()).expect("bridges");
    assert!(refused.is_empty(), "{refused:?}");
    bridges.try_into().expect("two devices")
}

fn open() -> [Bridge; 2] {
    open_with(&selection())
}

fn words(seed: u32) -> Vec<u32> {
    (0..LEN as u32).map(|i| i.wrapping_mul(seed)).collect()
}

fn contents(shared: &Shared<u32>) -> Vec<u32> {
    let mut words = vec![0; shared.len()];
    shared.download(&mut words).expect("a download");
    words
}

#[test]
fn every_device_gets_a_bridge_of_its_own() {
    let bridges = open();
    for (ordinal, bridge) in bridges.iter().enumerate() {
        assert_eq!(bridge.hip_device().ordinal(), ordinal);
        let mut data = bridge.alloc::<u32>(LEN).expect("memory");
        data.upload(&words(3)).expect("an upload");
        assert_eq!(contents(&data), words(3));
    }
    assert_ne!(
        bridges[0].cl_context().raw(),
        bridges[1].cl_context().raw(),
        "one device in each context"
    );
}

#[test]
fn a_graph_of_the_bridges_stream_has_nothing_of_a_proof() {
    let [first, second] = open();
    for captured in [&first, &second] {
        let graph = captured.main_stream().capture(|_| {
            let error = first.peer(&second).map(drop).expect_err("no proof runs now");
            assert!(matches!(error, Error::Capturing { .. }), "{error}");
            Ok(())
        });
        assert_eq!(graph.expect("a graph").node_count().expect("nodes"), 0);
    }
    first.peer(&second).expect("nothing is captured now");
}

#[test]
fn a_peer_is_proven_in_one_direction_and_never_by_itself() {
    let [first, second] = open();
    let peer = first.peer(&second).expect("peers");
    let report = peer.report();
    assert_eq!((report.from, report.to), (0, 1));
    assert_eq!(report.path, PeerPath::Direct);
    assert!(report.gb_s > 0.0);
    let apart = open();
    for (a, b, reason) in [
        (&first, &first, "both are the same device"),
        (&first, &apart[1], "Bridge::open_all"),
    ] {
        let error = a.peer(b).expect_err(reason);
        assert!(
            matches!(error, Error::NoPeer { .. }) && error.to_string().contains(reason),
            "{error}"
        );
    }
}

#[test]
fn a_copy_brings_every_byte_of_any_owner() {
    let [first, second] = open();
    let peer = first.peer(&second).expect("peers");
    let stream = second.stream().expect("a stream");
    for from in [Route::HipPointer, Route::SvmCoarse, Route::GpuVa] {
        for to in [Route::HipPointer, Route::SvmCoarse] {
            let mut source = first.alloc_on::<u32>(from, LEN).expect("memory");
            let mut destination = second.alloc_on::<u32>(to, LEN).expect("memory");
            source.upload(&words(7)).expect("an upload");
            destination.upload(&words(1)).expect("an upload");
            peer.copy(&source, &mut destination, &stream).expect("a copy");
            assert_eq!(contents(&destination), words(7), "{from} to {to}");
        }
    }
}

#[test]
fn a_copy_comes_after_the_writer_and_before_the_next_one() {
    let [first, second] = open();
    let peer = first.peer(&second).expect("peers");
    let (here, there) = (first.stream().expect("a stream"), second.stream().expect("a stream"));
    let mut source = first.alloc_on::<u32>(Route::HipPointer, LEN).expect("memory");
    let mut destination = second.alloc_on::<u32>(Route::HipPointer, LEN).expect("memory");
    source.upload(&words(1)).expect("an upload");
    // The writer is held, so that the copy would read the old words if it did not wait.
    let (open, opened) = mpsc::channel::<()>();
    here.host_function(move || {
        let _: Result<(), _> = opened.recv();
    })
    .expect("a gate");
    source
        .hip_mut(&here)
        .expect("access")
        .slice_mut()
        .fill_zero()
        .expect("a fill");
    peer.copy(&source, &mut destination, &there).expect("a copy");
    assert!(!there.is_idle().expect("asked"), "the copy waits");
    drop(open);
    // The next writer comes after the copy.
    source.upload(&words(9)).expect("an upload");
    assert_eq!(contents(&destination), [0; LEN]);
    assert_eq!(contents(&source), words(9));
}

/// A pool's memory: no enabling of peers covers it.
fn of_a_pool(bridge: &Bridge) -> Shared<u32> {
    let pool = bridge.hip_device().default_mem_pool().expect("a pool");
    let stream = bridge.main_stream();
    let mut memory = pool.alloc::<u32>(stream, LEN).expect("memory");
    let ptr = memory.on_mut(stream).expect("access").as_mut_ptr();
    // SAFETY: the memory is the owner's, and nothing else uses it.
    unsafe { bridge.adopt_hip(ptr, LEN, memory) }.expect("adopted")
}

#[test]
fn memory_that_other_code_allocated_is_copied_and_not_reached_in_place() {
    let [first, second] = open();
    let peer = first.peer(&second).expect("peers");
    let there = second.stream().expect("a stream");
    let mut source = of_a_pool(&first);
    source.upload(&words(5)).expect("an upload");
    let error = peer.hip(&source, &there).expect_err("not reached");
    assert!(matches!(error, Error::NoPeer { .. }), "{error}");
    let mut destination = second.alloc_on::<u32>(Route::HipPointer, LEN).expect("memory");
    peer.copy(&source, &mut destination, &there).expect("a copy");
    assert_eq!(contents(&destination), words(5));
}

#[test]
fn kernels_of_one_device_read_the_memory_of_the_other_in_place() {
    let [first, second] = open();
    let peer = first.peer(&second).expect("peers");
    let stream = second.stream().expect("a stream");
    let kernel = hip::rtc::Program::new(
        "extern \"C\" __global__ void sum(const unsigned int *x, unsigned int n, unsigned int *out) {
            unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) atomicAdd(out, x[i]);
        }",
    )
    .compile(second.hip_device())
    .and_then(|module| module.function("sum"))
    .expect("a kernel");
    let expected = words(5).into_iter().fold(0, u32::wrapping_add);
    let on = |route| first.alloc_on::<u32>(route, LEN).expect("memory");
    let exportable = first.alloc_exportable::<u32>(LEN).expect("memory");
    for mut source in [on(Route::HipPointer), on(Route::SvmCoarse), exportable] {
        source.upload(&words(5)).expect("an upload");
        let mut out = second.hip_device().alloc_zeroed::<u32>(1).expect("memory");
        {
            let guard = peer.hip(&source, &stream).expect("access");
            let config = hip::LaunchConfig::linear(LEN, 256).expect("a grid");
            let sum = out.on_mut(&stream).expect("access");
            // SAFETY: the kernel reads as many words as it is told and adds to one.
            unsafe { kernel.launch(&stream, config, &[&guard.slice(), &(LEN as u32), &sum]) }.expect("a launch");
        }
        let mut sum = [0];
        out.copy_to_slice(&stream, &mut sum).expect("a copy");
        assert_eq!(sum, [expected], "{source:?}");
    }
}

/// The second device's part and the first one's are written at once, by kernels: neither waits for the other.
#[test]
fn kernels_of_both_devices_write_their_parts_of_one_buffer() {
    let [first, second] = open();
    let peer = first.peer(&second).expect("peers");
    let (here, there) = (first.stream().expect("a stream"), second.stream().expect("a stream"));
    let add = |bridge: &Bridge| {
        hip::rtc::Program::new(
            "extern \"C\" __global__ void add(unsigned int *x, unsigned int n, unsigned int y) {
                unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
                if (i < n) x[i] += y;
            }",
        )
        .compile(bridge.hip_device())
        .and_then(|module| module.function("add"))
        .expect("a kernel")
    };
    let launch = |kernel: &hip::Function, stream: &hip::Stream, mut x: hip::DeviceSliceMut<'_, u32>, y: u32| {
        let (config, len) = (hip::LaunchConfig::linear(x.len(), 256).expect("a grid"), x.len() as u32);
        let x = x.reborrow();
        // SAFETY: the kernel stays below the count.
        unsafe { kernel.launch(stream, config, &[&x, &len, &y]) }.expect("a launch");
    };
    let (add_here, add_there) = (add(&first), add(&second));
    let on = |route| first.alloc_on::<u32>(route, LEN).expect("memory");
    let exportable = first.alloc_exportable::<u32>(LEN).expect("memory");
    for mut memory in [on(Route::HipPointer), on(Route::SvmCoarse), exportable] {
        memory.upload(&words(3)).expect("an upload");
        let route = memory.route();
        let (open, opened) = mpsc::channel::<()>();
        here.host_function(move || {
            let _: Result<(), _> = opened.recv();
        })
        .expect("a gate");
        {
            let (mut left, mut right) = memory.split_at_mut(LEN / 2).expect("parts");
            let mut ours = left.hip_mut(&here).expect("access");
            launch(&add_here, &here, ours.slice_mut(), 1);
            let mut theirs = peer.hip_part_mut(&mut right, &there).expect("access");
            launch(&add_there, &there, theirs.slice_mut(), 2);
            let begin = std::time::Instant::now();
            while !there.is_idle().expect("asked") {
                // Ends what it would wait for, so that a failure is no hang.
                if begin.elapsed() > Duration::from_secs(60) {
                    drop(open);
                    panic!("{route}: waits for the other part");
                }
                std::thread::yield_now();
            }
        }
        drop(open);
        {
            // The whole: after both.
            let mut whole = peer.hip_mut(&mut memory, &there).expect("access");
            launch(&add_there, &there, whole.slice_mut(), 10);
        }
        let sum = |i: usize| words(3)[i].wrapping_add(if i < LEN / 2 { 11 } else { 12 });
        let expected: Vec<u32> = (0..LEN).map(sum).collect();
        let part = memory.part(1..LEN).expect("a part");
        let read = peer.hip_part(&part, &there).expect("access");
        let (second_word, len) = (read.slice().as_ptr().addr(), read.slice().len());
        drop(read);
        assert_eq!(contents(&memory), expected, "{memory:?}");
        let (_, address) = memory.addresses().expect("both are known");
        assert_eq!((second_word, len), (address + 4, LEN - 1));
    }
}

/// HIP's copies from a mapping that the copying device does not reach go through the host.
#[test]
fn a_copy_lets_its_device_reach_a_mapping() {
    let [first, second] = open();
    let peer = first.peer(&second).expect("peers");
    let stream = second.stream().expect("a stream");
    let mut source = first.alloc_exportable::<u32>(LEN).expect("memory");
    source.upload(&words(5)).expect("an upload");
    let mut destination = second.alloc_on::<u32>(Route::HipPointer, LEN).expect("memory");
    let (_, address) = source.addresses().expect("both are known");
    let word = std::ptr::with_exposed_provenance_mut::<u32>(address);
    // SAFETY: an aligned word of living memory, which holds this value already.
    let reaches = || unsafe { stream.write_word(word, words(5)[0]) }.is_ok();
    assert!(!reaches(), "only the memory's own device does so far");
    peer.copy(&source, &mut destination, &stream).expect("a copy");
    assert!(reaches());
    assert_eq!(contents(&destination), words(5));
    assert_eq!(contents(&source), words(5));
}

/// Who may use the allocation, by HSA.
fn agents(selection: &Selection, address: usize) -> u32 {
    unsafe extern "C" fn leak(bytes: usize) -> *mut std::ffi::c_void {
        Vec::<u64>::leak(vec![0; bytes.div_ceil(8)]).as_mut_ptr().cast()
    }
    let hsa = selection.tables().hsa.clone().expect("HSA");
    let mut info = hsa_sys::hsa_amd_pointer_info_t {
        size: size_of::<hsa_sys::hsa_amd_pointer_info_t>() as u32,
        ..Default::default()
    };
    let (mut count, mut list) = (0, std::ptr::null_mut());
    // SAFETY: valid places; the address is looked up only; the list is small and is leaked.
    let status = unsafe {
        hsa.hsa_amd_pointer_info.expect("a query")(
            std::ptr::without_provenance(address),
            &raw mut info,
            Some(leak),
            &raw mut count,
            &raw mut list,
        )
    };
    assert_eq!(status, hsa_sys::hsa_status_t::HSA_STATUS_SUCCESS);
    count
}

#[test]
fn opencls_memory_is_granted_to_the_peer_by_hsa_and_the_owner_keeps_it() {
    let selection = selection();
    let [first, second] = open_with(&selection);
    let peer = first.peer(&second).expect("peers");
    let stream = second.stream().expect("a stream");
    let source = first.alloc_on::<u32>(Route::SvmCoarse, LEN).expect("memory");
    let (_, address) = source.addresses().expect("both are known");
    assert_eq!(agents(&selection, address), 1, "the owner alone");
    for _ in 0..2 {
        drop(peer.hip(&source, &stream).expect("access"));
        assert_eq!(agents(&selection, address), 2);
    }
}

/// Counts how many calls are between the question who may use an allocation and the new answer.
#[test]
fn the_list_of_those_with_access_is_read_and_written_by_one_thread_at_a_time() {
    static HSA: OnceLock<Arc<hsa_sys::Api>> = OnceLock::new();
    static BETWEEN: AtomicUsize = AtomicUsize::new(0);
    static MET: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn ask(
        ptr: *const c_void,
        info: *mut hsa_sys::hsa_amd_pointer_info_t,
        allocate: Option<unsafe extern "C" fn(usize) -> *mut c_void>,
        count: *mut u32,
        list: *mut *mut hsa_sys::hsa_agent_t,
    ) -> hsa_sys::hsa_status_t {
        if allocate.is_some() {
            let others = BETWEEN.fetch_add(1, Ordering::SeqCst);
            MET.fetch_max(others, Ordering::SeqCst);
            std::thread::yield_now();
        }
        let ask = HSA.get().and_then(|hsa| hsa.hsa_amd_pointer_info).expect("a query");
        // SAFETY: the caller's arguments.
        unsafe { ask(ptr, info, allocate, count, list) }
    }
    unsafe extern "C" fn allow(
        count: u32,
        agents: *const hsa_sys::hsa_agent_t,
        flags: *const u32,
        ptr: *const c_void,
    ) -> hsa_sys::hsa_status_t {
        let allow = HSA
            .get()
            .and_then(|hsa| hsa.hsa_amd_agents_allow_access)
            .expect("a call");
        // SAFETY: the caller's arguments.
        let status = unsafe { allow(count, agents, flags, ptr) };
        BETWEEN.fetch_sub(1, Ordering::SeqCst);
        status
    }
    let mut selection = selection();
    let real = selection.tables().hsa.clone().expect("HSA");
    let mut watched = *HSA.get_or_init(|| real).clone();
    watched.hsa_amd_pointer_info = Some(ask);
    watched.hsa_amd_agents_allow_access = Some(allow);
    // SAFETY: the functions call those that they replace.
    unsafe { selection.tables_mut() }.hsa = Some(Arc::new(watched));
    let [first, second] = open_with(&selection);
    let peer = first.peer(&second).expect("peers");
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let stream = second.stream().expect("a stream");
                let source = first.alloc_on::<u32>(Route::SvmCoarse, LEN).expect("memory");
                for _ in 0..500 {
                    drop(peer.hip(&source, &stream).expect("access"));
                }
            });
        }
    });
    assert_eq!(BETWEEN.load(Ordering::SeqCst), 0, "every question has its answer");
    assert_eq!(MET.load(Ordering::SeqCst), 0, "two threads met");
}

#[test]
fn bytes_are_not_copied_onto_themselves() {
    let [first, second] = open();
    let peer = first.peer(&second).expect("peers");
    let stream = second.stream().expect("a stream");
    let memory = first.hip_device().virtual_memory(LEN * 4).expect("memory");
    // SAFETY: guards of the imports are taken one after the other.
    let [one, two] = [(); 2].map(|()| unsafe { memory.export() }.expect("a descriptor"));
    // SAFETY: the memory has this size; no guards of both are alive at once.
    let (source, mut same) = unsafe {
        (
            first.adopt_fd::<u32>(one, 0, LEN).expect("adopted"),
            second.adopt_fd::<u32>(two, 0, LEN).expect("adopted"),
        )
    };
    let error = peer.copy(&source, &mut same, &stream).expect_err("the same bytes");
    assert!(matches!(error, Error::SameBytes { .. }), "{error}");
}

/// On ROCm a kernel of the second card would fault; the host platform refuses the stream's word instead.
#[test]
fn hips_peer_access_covers_hips_memory_and_opencls_needs_hsas_grant() {
    let [first, second] = open();
    let peer = first.peer(&second).expect("peers");
    let stream = second.stream().expect("a stream");
    for (route, is_covered) in [
        (Route::HipPointer, true),
        (Route::SvmCoarse, false),
        (Route::GpuVa, false),
    ] {
        let mut source = first.alloc_on::<u32>(route, LEN).expect("memory");
        source.upload(&words(1)).expect("an upload");
        let (_, address) = source.addresses().expect("both are known");
        let word = std::ptr::with_exposed_provenance_mut::<u32>(address);
        // SAFETY: an aligned word of living memory; nothing else uses it before the stream was waited for.
        let write = |value| unsafe { stream.write_word(word, value) };
        let written = write(7);
        assert_eq!(written.is_ok(), is_covered, "{route}: {written:?}");
        drop(peer.hip(&source, &stream).expect("access"));
        write(11).expect("granted");
        stream.synchronize().expect("a word");
        assert_eq!(contents(&source)[0], 11, "{route}");
        drop(source);
        // Freed memory takes its grant along, also where the next allocation has the address.
        let mut next = first.alloc_on::<u32>(route, LEN).expect("memory");
        next.upload(&words(1)).expect("an upload");
        let (_, address) = next.addresses().expect("both are known");
        let word = std::ptr::with_exposed_provenance_mut::<u32>(address);
        // SAFETY: as above.
        let written = unsafe { stream.write_word(word, 7) };
        assert_eq!(written.is_ok(), is_covered, "{route}: {written:?}");
        stream.synchronize().expect("at most a word");
    }
}

#[test]
fn buffers_and_streams_of_the_wrong_side_are_refused() {
    let [first, second] = open();
    let peer = first.peer(&second).expect("peers");
    let (here, there) = (first.stream().expect("a stream"), second.stream().expect("a stream"));
    let ours = first.alloc::<u32>(LEN).expect("memory");
    let mut theirs = second.alloc::<u32>(LEN).expect("memory");
    let mut also_ours = first.alloc::<u32>(LEN).expect("memory");
    let mut short = second.alloc::<u32>(LEN - 1).expect("memory");
    let stranger = second.alloc::<u32>(LEN).expect("memory");
    let what = |outcome: interop::Result<()>| match outcome {
        Err(Error::OtherOwner { what, .. }) => what,
        Err(Error::LengthMismatch { .. }) => "length",
        other => panic!("{other:?}"),
    };
    assert_eq!(what(peer.copy(&ours, &mut theirs, &here)), "stream");
    assert_eq!(what(peer.copy(&ours, &mut also_ours, &there)), "destination");
    assert_eq!(what(peer.copy(&stranger, &mut theirs, &there)), "source");
    assert_eq!(what(peer.copy(&ours, &mut short, &there)), "length");
}

/// HIP on which no device is a peer.
unsafe extern "C" fn no_peers(can: *mut i32, _: i32, _: i32) -> hip_sys::hipError_t {
    // SAFETY: the caller's place for one int.
    unsafe { *can = 0 };
    hip_sys::hipError_t::hipSuccess
}

/// HIP whose copies between devices bring nothing.
unsafe extern "C" fn lost(
    _: *mut std::ffi::c_void,
    _: i32,
    _: *const std::ffi::c_void,
    _: i32,
    _: usize,
    _: hip_sys::hipStream_t,
) -> hip_sys::hipError_t {
    hip_sys::hipError_t::hipSuccess
}

fn peer_of(change: impl FnOnce(&mut hip_sys::Api)) -> ([Bridge; 2], interop::Result<Peer>) {
    let mut selection = selection();
    let mut hip = *selection.tables().hip;
    change(&mut hip);
    // SAFETY: the tests replace functions by ones that refuse, or copy to no memory but their own.
    unsafe { selection.tables_mut() }.hip = Arc::new(hip);
    let bridges = open_with(&selection);
    let peer = bridges[0].peer(&bridges[1]);
    (bridges, peer)
}

#[test]
fn wrong_data_is_no_peer() {
    let (_bridges, peer) = peer_of(|hip| hip.hipMemcpyPeerAsync = Some(lost));
    let error = peer.expect_err("nothing arrived");
    let text = error.to_string();
    assert!(
        matches!(error, Error::NoPeer { from: 0, to: 1, .. }) && text.contains("of 65536 words were wrong"),
        "{text}"
    );
}

#[test]
fn where_no_kernel_reaches_across_hips_copies_are_staged_and_opencls_memory_stays() {
    let ([first, second], peer) = peer_of(|hip| hip.hipDeviceCanAccessPeer = Some(no_peers));
    let peer = peer.expect("copies work");
    assert_eq!(peer.report().path, PeerPath::Staged);
    assert!(peer.report().to_string().contains("staged through the host"));
    let stream = second.stream().expect("a stream");
    let mut destination = second.alloc_on::<u32>(Route::HipPointer, LEN).expect("memory");
    let mut source = first.alloc_on::<u32>(Route::HipPointer, LEN).expect("memory");
    source.upload(&words(3)).expect("an upload");
    peer.copy(&source, &mut destination, &stream).expect("a copy");
    assert_eq!(contents(&destination), words(3));
    let opencls = first.alloc_on::<u32>(Route::SvmCoarse, LEN).expect("memory");
    let error = peer.copy(&opencls, &mut destination, &stream).expect_err("not HIP's");
    assert!(matches!(error, Error::NoPeer { .. }), "{error}");
    names_what_to_move(&error, &["source"]);
    let mut theirs = second.alloc_on::<u32>(Route::SvmCoarse, LEN).expect("memory");
    let error = peer.copy(&source, &mut theirs, &stream);
    names_what_to_move(&error.expect_err("not HIP's"), &["destination"]);
    let error = peer.copy(&opencls, &mut theirs, &stream);
    let error = error.expect_err("neither is HIP's");
    names_what_to_move(&error, &["source", "destination"]);
    // The remedy is one.
    theirs.move_to(Route::HipPointer).expect("moved");
    peer.copy(&source, &mut theirs, &stream).expect("a copy");
    assert_eq!(contents(&theirs), words(3));
}

/// The buffers that an error tells to move, and no other.
#[track_caller]
fn names_what_to_move(error: &Error, buffers: &[&str]) {
    let text = error.to_string();
    for which in ["source", "destination"] {
        let named = text.contains(&format!("the {which} from "));
        assert_eq!(named, buffers.contains(&which), "{text}");
    }
    assert!(text.contains("to hip-pointer (Shared::move_to)"), "{text}");
    assert!(!text.contains("Peer::copy"), "it is what failed: {text}");
}

#[test]
fn memory_that_no_peers_kernel_reaches_is_copied_into_hips_own_alone() {
    let [first, second] = open();
    let peer = first.peer(&second).expect("peers");
    let stream = second.stream().expect("a stream");
    let mut pooled = of_a_pool(&first);
    pooled.upload(&words(5)).expect("an upload");
    let mut theirs = second.alloc_on::<u32>(Route::SvmCoarse, LEN).expect("memory");
    let error = peer.copy(&pooled, &mut theirs, &stream);
    names_what_to_move(&error.expect_err("no kernel reaches it"), &["destination"]);
    theirs.move_to(Route::HipPointer).expect("moved");
    peer.copy(&pooled, &mut theirs, &stream).expect("a copy");
    assert_eq!(contents(&theirs), words(5));
}

const SECOND: &str = "HIPCL_TEST_SECOND";

/// Imports what lies on GPU 0 there, and copies it to GPU 1.
#[test]
fn a_process_on_one_gpu_gets_the_memory_of_a_process_on_the_other() {
    let name = "a_process_on_one_gpu_gets_the_memory_of_a_process_on_the_other";
    let [first, second] = open();
    if std::env::var_os(SECOND).is_some() {
        // SAFETY: nothing else here uses standard input.
        let link = unsafe { Link::from_stdin() }.expect("a link");
        // SAFETY: the first process runs this program too.
        let mut joint = unsafe { first.import::<u32>(link) }.expect("an import");
        let peer = first.peer(&second).expect("peers");
        let stream = second.stream().expect("a stream");
        let mut own = second.alloc_on::<u32>(Route::HipPointer, LEN).expect("memory");
        joint.take().expect("a turn");
        let view = joint.view().expect("this side's turn");
        peer.copy(view, &mut own, &stream).expect("a copy");
        assert_eq!(contents(&own), words(11));
        joint.upload(&words(13)).expect("an upload");
        joint.pass().expect("passed");
        return;
    }
    for carrier in [Carrier::HipFd, Carrier::IpcHandle] {
        let (link, theirs) = Link::pair().expect("a link");
        let mut second = Command::new(std::env::current_exe().expect("a path"))
            .args([name, "--exact", "--nocapture"])
            .env(SECOND, "yes")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .expect("the second process starts");
        let memory = match carrier {
            Carrier::HipFd => first.alloc_exportable(LEN),
            _ => first.alloc_on(Route::HipPointer, LEN),
        };
        let mut joint = memory.expect("memory").export_by(carrier, link).expect("an export");
        joint.upload(&words(11)).expect("an upload");
        joint.pass().expect("passed");
        joint.take().expect("a turn");
        assert_eq!(contents(joint.view().expect("ours")), words(13));
        drop(joint);
        assert!(second.wait().expect("a child").success(), "{carrier}");
    }
}

#[test]
fn memory_of_one_gpu_is_not_imported_by_the_bridge_of_another() {
    let [first, second] = open();
    let (link, theirs) = Link::pair().expect("a link");
    let importer = std::thread::spawn(move || {
        // SAFETY: refused.
        unsafe { second.import::<u32>(theirs.into_link()) }
    });
    let not = first
        .alloc_exportable::<u32>(LEN)
        .expect("memory")
        .export(link)
        .expect_err("the wrong GPU");
    assert!(matches!(not.error, Error::Peer(PeerError::Refused { .. })), "{not}");
    let error = importer.join().expect("no panic").expect_err("refused");
    assert!(matches!(error, Error::Peer(PeerError::OtherDevice { .. })), "{error}");
}
