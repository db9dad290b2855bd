//! Memory that HIP exports and OpenCL imports.

use std::ffi::c_void;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use interop::{Bridge, Error, Options, PartMut, Residency, Route};
use platform::{ForeignHooks, ForeignKind};

use crate::{LEN, common, external_memory, round_trip, works};

/// Words; parts of a buffer object begin at multiples.
const GRID: usize = 64;

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn open() -> Bridge {
    let (host, options) = (common::host(), Options::default());
    // SAFETY: the functions do what those of the extension do.
    unsafe { Bridge::open_with(&host, &options, external_memory::wrap) }.expect("a bridge")
}

#[test]
fn imported_memory_is_taken_over_before_opencl_and_handed_back_before_hip() {
    let _alone = alone();
    let bridge = open();
    works(&bridge, Route::ExternalFd);
    let data = bridge.alloc_on::<u32>(Route::ExternalFd, LEN).expect("memory");
    assert_eq!(data.residency(), Residency::Vram);
    drop(data);
    assert_eq!(external_memory::violations(), [""; 0]);
}

#[test]
fn both_apis_read_imported_memory_at_once() {
    let _alone = alone();
    let bridge = open();
    let mut data = bridge.alloc_on::<u32>(Route::ExternalFd, LEN).expect("memory");
    data.upload(&[3; LEN]).expect("an upload");
    let (queue, stream) = (bridge.queue().expect("a queue"), bridge.stream().expect("a stream"));
    let second = bridge.queue().expect("a queue");
    let (cl, hip) = (data.cl(&queue).expect("access"), data.hip(&stream).expect("access"));
    let other = data.cl(&second).expect("access");
    let mut back = [0; LEN];
    hip.slice().copy_to_slice(&mut back).expect("a copy");
    assert_eq!(back, [3; LEN]);
    drop((cl, hip, other));
    drop(data.hip_mut(&stream).expect("access"));
    drop(data);
    assert_eq!(external_memory::violations(), [""; 0]);
}

#[test]
fn opencls_readers_keep_imported_memory_while_hip_or_the_host_reads_it_too() {
    let _alone = alone();
    let bridge = open();
    let mut data = bridge.alloc_on::<u32>(Route::ExternalFd, LEN).expect("memory");
    let program = bridge
        .programs()
        .get(
            "kernel void fill(global uint *x) { x[get_global_id(0)] = 3u; }
             kernel void look(global const uint *x, global uint *y) { y[0] = x[get_global_id(0)]; }",
            "",
        )
        .expect("a program");
    let (fill, look) = (
        program.kernel("fill").expect("a kernel"),
        program.kernel("look").expect("a kernel"),
    );
    let queues = [(); 2].map(|()| bridge.queue().expect("a queue"));
    let stream = bridge.stream().expect("a stream");
    let guard = data.cl_mut(&queues[0]).expect("access");
    // SAFETY: `fill` takes a buffer of as many words as work-items.
    unsafe { fill.launch(&queues[0], clmgr::NdRange::d1(LEN), &[guard.arg()]) }.expect("a launch");
    drop(guard);
    let readers = [0, 1].map(|which| data.cl(&queues[which]).expect("access"));
    let mut back = [0; LEN];
    let hip = data.hip(&stream).expect("access");
    hip.slice().copy_to_slice(&mut back).expect("a copy");
    assert_eq!(back, [3; LEN]);
    let look_again = || {
        for (reader, queue) in readers.iter().zip(&queues) {
            let found = clmgr::RegularBuffer::<u32>::new(bridge.cl_context(), 1).expect("a word");
            let args = [reader.arg(), found.arg()];
            // SAFETY: `look` reads the buffer and writes one word.
            unsafe { look.launch(queue, clmgr::NdRange::d1(LEN), &args) }.expect("a launch");
            let mut word = [0];
            found.read(queue, &mut word).expect("a word");
            assert_eq!(word, [3]);
        }
    };
    look_again();
    data.download(&mut back).expect("a download");
    look_again();
    drop(hip);
    drop(data.hip_mut(&stream).expect("access"));
    assert!(!external_memory::is_taken());
    drop(data);
    assert_eq!(external_memory::violations(), [""; 0]);
}

/// A device without memory to export, which is not why OpenCL imports none.
unsafe extern "C" fn is_full(
    _: *mut hip_sys::hipMemGenericAllocationHandle_t,
    _: usize,
    _: *const hip_sys::hipMemAllocationProp,
    _: u64,
) -> hip_sys::hipError_t {
    hip_sys::hipError_t::hipErrorOutOfMemory
}

#[test]
fn without_the_extension_its_name_is_the_reason() {
    let mut selection = common::host();
    let mut hip = *selection.tables().hip;
    hip.hipMemCreate = Some(is_full);
    // SAFETY: the function allocates nothing and says so.
    unsafe { selection.tables_mut() }.hip = std::sync::Arc::new(hip);
    let bridge = Bridge::open(&selection, &Options::default()).expect("a bridge");
    let error = bridge
        .alloc_on::<u32>(Route::ExternalFd, 16)
        .expect_err("a CPU has none");
    assert!(error.is_impossible(), "{error}");
    assert!(error.to_string().contains("`cl_khr_external_memory`"), "{error}");
}

#[test]
fn parts_of_imported_memory_go_to_one_side_at_a_time() {
    let _alone = alone();
    let bridge = open();
    let mut data = bridge.alloc_on::<u32>(Route::ExternalFd, 4 * GRID).expect("memory");
    let mut model: Vec<u32> = (0..4 * GRID as u32).collect();
    data.upload(&model).expect("an upload");
    let add = bridge
        .programs()
        .get(
            "kernel void add(global uint *x, uint k) { x[get_global_id(0)] += k; }",
            "",
        )
        .and_then(|program| program.kernel("add"))
        .expect("a kernel");
    let twice = hip::rtc::Program::new(
        "extern \"C\" __global__ void twice(unsigned int *x) { x[blockIdx.x * blockDim.x + threadIdx.x] *= 2u; }",
    )
    .compile(bridge.hip_device())
    .and_then(|module| module.function("twice"))
    .expect("a kernel");
    let queues = [(); 2].map(|()| bridge.queue().expect("a queue"));
    let streams = [(); 2].map(|()| bridge.stream().expect("a stream"));
    let on_cl = |part: &mut PartMut<'_, u32>, which: usize| {
        let (queue, range) = (&queues[which], clmgr::NdRange::d1(part.len()));
        let guard = part.cl_mut(queue).expect("access for OpenCL");
        let args = [guard.arg(), clmgr::Arg::scalar(&5_u32)];
        // SAFETY: `add` takes a buffer of as many words as work-items, and a uint.
        unsafe { add.launch(queue, range, &args) }.expect("a launch");
    };
    let on_hip = |part: &mut PartMut<'_, u32>, which: usize| {
        let config = hip::LaunchConfig::linear(part.len(), 64).expect("a grid");
        let mut guard = part.hip_mut(&streams[which]).expect("access for HIP");
        assert!(!external_memory::is_taken(), "OpenCL has given it back");
        // SAFETY: `twice` takes a pointer to as many words as threads.
        unsafe { twice.launch(&streams[which], config, &[&guard.slice_mut()]) }.expect("a launch");
    };
    for turn in 0..6 {
        let [mut left, mut right] = data.parts_mut([0..GRID, 2 * GRID..4 * GRID]).expect("parts");
        // Two queues, and then two streams, each on a part of its own.
        if turn % 2 == 0 {
            on_cl(&mut left, turn % 4 / 2);
            on_cl(&mut right, 1 - turn % 4 / 2);
            let refused = left.hip_mut(&streams[0]).expect_err("OpenCL has the right");
            assert_eq!(
                refused.to_string(),
                format!(
                    "OpenCL has the elements 0..{GRID} of this buffer, and route external-fd hands over its memory only as \
                     a whole; to hand over 0..{GRID}, divide the buffer again, or use separate buffers"
                )
            );
            model[..GRID].iter_mut().for_each(|x| *x += 5);
            model[2 * GRID..].iter_mut().for_each(|x| *x += 5);
        } else {
            on_hip(&mut left, 0);
            on_hip(&mut right, 1);
            assert!(matches!(
                right.cl(&queues[0]),
                Err(Error::PartOnOtherSide { by: "HIP", .. })
            ));
            model[..GRID].iter_mut().for_each(|x| *x *= 2);
            model[2 * GRID..].iter_mut().for_each(|x| *x *= 2);
        }
    }
    let mut back = vec![0; 4 * GRID];
    data.download(&mut back).expect("a download");
    assert_eq!(back, model);
    drop(data);
    assert_eq!(external_memory::violations(), [""; 0]);
}

#[test]
fn a_part_waits_for_the_other_side_of_every_other_part() {
    let _alone = alone();
    let bridge = open();
    let mut data = bridge.alloc_on::<u32>(Route::ExternalFd, 2 * GRID).expect("memory");
    data.upload(&[1; 2 * GRID]).expect("an upload");
    let (queue, stream) = (bridge.queue().expect("a queue"), bridge.stream().expect("a stream"));
    let steps = hip::rtc::Program::new(
        "extern \"C\" __global__ void steps(unsigned int *x) {
            unsigned int v = x[threadIdx.x];
            // Long enough that a missing wait shows.
            for (unsigned int n = 0; n < 4000000; ++n) v = v * 22695477u + 1u;
            x[threadIdx.x] = v;
        }",
    )
    .compile(bridge.hip_device())
    .and_then(|module| module.function("steps"))
    .expect("a kernel");
    let mut left = data.part_mut(0..GRID).expect("a part");
    let mut guard = left.hip_mut(&stream).expect("access");
    let config = hip::LaunchConfig::linear(GRID, GRID as u32).expect("a grid");
    // SAFETY: `steps` takes a pointer to as many words as threads.
    unsafe { steps.launch(&stream, config, &[&guard.slice_mut()]) }.expect("a launch");
    drop(guard);
    let mut right = data.part_mut(GRID..2 * GRID).expect("a part");
    drop(right.cl_mut(&queue).expect("access"));
    assert!(
        stream.is_idle().expect("an answer"),
        "OpenCL took the memory over while HIP was at work on the left"
    );
    assert!(external_memory::is_taken());
    drop(data);
    assert_eq!(external_memory::violations(), [""; 0]);
}

unsafe fn refuse(_: *mut c_void, _: usize, _: ForeignKind, _: usize) -> Result<(), String> {
    Err("not of this platform".into())
}

/// As where OpenCL and HIP are two contexts on the GPU: no address of one means anything to the other.
fn open_apart() -> Bridge {
    let mut selection = common::host();
    // SAFETY: these hooks take and release what they are given, or refuse it.
    let tables = unsafe { selection.tables_mut() };
    tables.foreign = Some(ForeignHooks {
        adopt: refuse,
        release: |_| Ok(()),
        reaches_hip: || false,
        launch: hip_host::foreign::launch,
        end: hip_host::foreign::end,
    });
    let options = Options::default();
    // SAFETY: as in `open`.
    unsafe { Bridge::open_with(&selection, &options, external_memory::wrap) }.expect("a bridge")
}

#[test]
fn descriptors_of_other_code_are_imported_by_both_where_addresses_mean_nothing() {
    let _alone = alone();
    let bridge = open_apart();
    let bytes = LEN * size_of::<u32>();
    // HIP's virtual memory, and plain memory as another API would export it.
    let of_hip = bridge.hip_device().virtual_memory(bytes).expect("memory");
    // SAFETY: only the import below uses it.
    let of_hip = unsafe { of_hip.export() }.expect("a descriptor");
    let of_others = rustix::fs::memfd_create("others", rustix::fs::MemfdFlags::CLOEXEC);
    let of_others = of_others.expect("a descriptor");
    rustix::fs::ftruncate(&of_others, bytes as u64).expect("its size");
    for fd in [of_hip, of_others] {
        let again = fd.try_clone().expect("a descriptor");
        // SAFETY: the memory has this size; the guards below are taken one after the other.
        let (data, mut other) = unsafe {
            (
                bridge.adopt_fd::<u32>(fd, 0, LEN).expect("adopted"),
                bridge.adopt_fd::<u32>(again, 0, LEN).expect("adopted"),
            )
        };
        assert_eq!((data.route(), data.len()), (Route::ExternalFd, LEN));
        assert_eq!(data.residency(), Residency::Unknown, "the place is not known");
        other.upload(&[6; LEN]).expect("an upload");
        let mut back = [0; LEN];
        data.download(&mut back).expect("a download");
        assert_eq!(back, [6; LEN], "two imports of one descriptor");
        drop(other);
        round_trip(&bridge, data);
    }
    assert_eq!(external_memory::violations(), [""; 0]);
}

/// The exporter may free the memory next.
#[test]
fn the_drop_of_an_import_waits_for_the_commands_of_guards_that_are_gone() {
    use std::sync::atomic::{AtomicBool, Ordering};

    let _alone = alone();
    let bridge = open();
    let (context, queue) = (bridge.cl_context(), bridge.queue().expect("a queue"));
    let fd = rustix::fs::memfd_create("import", rustix::fs::MemfdFlags::CLOEXEC).expect("a descriptor");
    rustix::fs::ftruncate(&fd, (LEN * size_of::<u32>()) as u64).expect("its size");
    let (kind, access) = (clmgr::HandleKind::OPAQUE_FD, clmgr::BufferAccess::default());
    // SAFETY: the descriptor's memory has this size, and only the guard below uses it.
    let memory = unsafe { clmgr::ImportedBuffer::<u32>::import(context, kind, fd, LEN, access) };
    let mut memory = memory.expect("an import");
    let held = clmgr::UserEvent::new(context).expect("an event");
    {
        let _guard = memory.acquire(&queue).expect("taken over");
        queue.wait_for(held.event()).expect("a wait");
    }
    let (is_let_go, (start, started)) = (AtomicBool::new(false), std::sync::mpsc::channel());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            started.into_iter().next();
            is_let_go.store(true, Ordering::Release);
            held.complete().expect("an event");
        });
        start.send(()).expect("a listener");
        drop(memory);
        assert!(is_let_go.load(Ordering::Acquire), "its hand-back was still queued");
    });
    assert_eq!(external_memory::violations(), [""; 0]);
}

#[test]
fn what_neither_api_imports_is_refused_with_both_reasons() {
    let _alone = alone();
    let bridge = open_apart();
    let pipe = || -> OwnedFd { std::io::pipe().expect("a pipe").0.into() };
    // SAFETY: refused: a pipe is no memory.
    let error = unsafe { bridge.adopt_fd::<u32>(pipe(), 0, LEN) }.expect_err("no memory");
    let text = error.to_string();
    assert!(
        text.contains("as HIP virtual memory: ") && text.contains("as memory of another API: "),
        "{text}"
    );
    // SAFETY: refused before anything is done.
    let error = unsafe { bridge.adopt_fd::<u32>(pipe(), 4096, LEN) }.expect_err("no offset");
    assert!(
        error.is_impossible() && error.to_string().contains("not from byte 4096"),
        "{error}"
    );
}
