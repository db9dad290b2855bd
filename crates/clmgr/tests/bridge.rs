//! Copies between contexts.

mod common;

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use clmgr::opencl_sys::{
    cl_command_queue, cl_context, cl_context_properties, cl_device_id, cl_event, cl_function_types as types, cl_int,
    cl_kernel, cl_uint,
};
use clmgr::{
    Access, BoxLayout, BridgeRoute, BufferAccess, BufferBridge, Context, Device, DeviceKind, Error, HostPtrBuffer,
    Manager, Queue, RegularBuffer, SvmBuffer, SvmCapabilities, UserEvent,
};
use common::Last;

/// Of the first device and the last one, which are of two platforms where there are several.
fn two_contexts() -> ((Context, Queue), (Context, Queue)) {
    let manager = Manager::load().unwrap_or_else(|error| panic!("{error}"));
    let open = |device: &Device| {
        let context = Context::new(device).unwrap();
        let queue = context.queue().unwrap();
        (context, queue)
    };
    let devices = manager.devices();
    (open(&devices[0]), open(&devices[devices.len() - 1]))
}

/// By host memory in pieces of this size, and by the best way that there is.
fn both_ways(from: &Queue, to: &Queue, bytes: usize) -> [BufferBridge; 2] {
    let staged = BufferBridge::staged(from, to, bytes).unwrap();
    assert_eq!(staged.route(), BridgeRoute::Staging);
    [staged, BufferBridge::new(from, to).unwrap()]
}

fn counting(len: usize) -> Vec<u32> {
    (0..len as u32).map(|n| n.wrapping_mul(0x9E37_79B9)).collect()
}

#[test]
fn a_copy_of_any_number_of_pieces_arrives_whole() {
    let ((here, from), (there, to)) = two_contexts();
    let data = counting(2000);
    let mut source = RegularBuffer::<u32>::new(&here, 2000).unwrap();
    source.write(&from, &data).unwrap();
    // 256 elements a piece.
    for bridge in both_ways(&from, &to, 1024) {
        for count in [0, 1, 255, 256, 257, 512, 513, 1990] {
            for (source_at, target_at) in [(10, 5), (8, 4)] {
                let mut target = RegularBuffer::<u32>::new(&there, 2000).unwrap();
                target.fill(&to, 0, 2000, 7).unwrap();
                bridge.copy(&source, source_at, &mut target, target_at, count).unwrap();
                let mut got = vec![0; 2000];
                target.read(&to, &mut got).unwrap();
                let (before, rest) = got.split_at(target_at);
                let (copied, behind) = rest.split_at(count);
                assert!(before.iter().all(|&x| x == 7));
                assert_eq!(copied, &data[source_at..][..count], "{bridge:?}");
                assert!(behind.iter().all(|&x| x == 7), "{bridge:?}, {count}");
            }
        }
    }
}

#[test]
fn the_way_between_contexts_is_explained_with_its_reason() {
    let ((here, from), (there, to)) = two_contexts();
    let bridge = BufferBridge::new(&from, &to).unwrap();
    let text = bridge.explain();
    println!("{text}");
    assert!(text.starts_with(&bridge.route().to_string()), "{text}");
    assert!(!text.contains('\n'), "{text}");
    match bridge.route() {
        BridgeRoute::Staging => {
            assert!(text.contains("not direct: "), "{text}");
            let one_device = here.device() == there.device();
            assert_eq!(!one_device, text.contains("two devices"), "{text}");
        }
        route => {
            assert_eq!(route, BridgeRoute::Foreign);
            assert_eq!(here.device(), there.device());
        }
    }
    let staged = BufferBridge::staged(&from, &to, 64).unwrap().explain();
    assert!(staged.contains("64 bytes"), "{staged}");
    let inside = BufferBridge::new(&from, &from).unwrap().explain();
    assert!(inside.starts_with("direct: "), "{inside}");
}

static CONTEXTS: AtomicUsize = AtomicUsize::new(0);
static CREATE: Last<types::clCreateContext_t> = Last::none();

unsafe extern "C" fn counts_contexts(
    properties: *const cl_context_properties,
    count: cl_uint,
    devices: *const cl_device_id,
    notify: Option<unsafe extern "C" fn(*const std::ffi::c_char, *const c_void, usize, *mut c_void)>,
    data: *mut c_void,
    code: *mut cl_int,
) -> cl_context {
    CONTEXTS.fetch_add(1, Ordering::SeqCst);
    let create = CREATE.get().unwrap();
    // SAFETY: the caller's arguments.
    unsafe { create(properties, count, devices, notify, data, code) }
}

unsafe extern "C" fn takes_any_argument(_: cl_kernel, _: cl_uint, _: usize, _: *const c_void) -> cl_int {
    0
}

static MARKER: Last<types::clEnqueueMarkerWithWaitList_t> = Last::none();

unsafe extern "C" fn runs_nothing(
    queue: cl_command_queue,
    _: cl_kernel,
    _: cl_uint,
    _: *const usize,
    _: *const usize,
    _: *const usize,
    waits: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let marker = MARKER.get().unwrap();
    // SAFETY: the caller's queue, list and place.
    unsafe { marker(queue, waits, list, event) }
}

#[test]
fn a_driver_that_reports_success_and_copies_nothing_is_found_out() {
    let lie = |api: &mut clmgr::Api| {
        MARKER.set(api.clEnqueueMarkerWithWaitList);
        CREATE.set(api.clCreateContext);
        api.clCreateContext = Some(counts_contexts);
        api.clSetKernelArg = Some(takes_any_argument);
        api.clEnqueueNDRangeKernel = Some(runs_nothing);
    };
    // SAFETY: each function only touches memory it was given.
    let manager = unsafe { Manager::load_with(lie) }.unwrap_or_else(|error| panic!("{error}"));
    let device = manager.devices().remove(0);
    let (here, there) = (Context::new(&device).unwrap(), Context::new(&device).unwrap());
    let (from, to) = (here.queue().unwrap(), there.queue().unwrap());
    // The second one knows the verdict of the first, which took two contexts to find out.
    let before = CONTEXTS.load(Ordering::SeqCst);
    for _ in 0..2 {
        // SAFETY: the kernel does not run.
        let bridge = unsafe { BufferBridge::with_trial(&from, &to) }.unwrap();
        let text = bridge.explain();
        assert_eq!(bridge.route(), BridgeRoute::Staging, "{text}");
        assert!(text.contains("a pattern did not arrive"), "{text}");
        let mut source = RegularBuffer::<u32>::new(&here, 100).unwrap();
        source.write(&from, &counting(100)).unwrap();
        let mut target = RegularBuffer::<u32>::new(&there, 100).unwrap();
        bridge.copy(&source, 0, &mut target, 0, 100).unwrap();
        assert_eq!(target.map(&to).unwrap()[..], counting(100));
        assert_eq!(CONTEXTS.load(Ordering::SeqCst), before + 2);
    }
}

#[test]
fn what_the_source_s_queue_writes_later_does_not_reach_the_copy() {
    let ((here, from), (there, to)) = two_contexts();
    for bridge in both_ways(&from, &to, 512) {
        let mut source = RegularBuffer::<u32>::new(&here, 5000).unwrap();
        source.write(&from, &counting(5000)).unwrap();
        let mut target = RegularBuffer::<u32>::new(&there, 5000).unwrap();
        let gate = UserEvent::new(&there).unwrap();
        to.wait_for(gate.event()).unwrap();
        let first = bridge.copy_async(&source, 0, &mut target, 0, 2500).unwrap();
        let second = bridge.copy_async(&source, 2500, &mut target, 2500, 2500).unwrap();
        let later = source.fill(&from, 0, 5000, 9).unwrap();
        from.flush().unwrap();
        gate.complete().unwrap();
        first.wait().unwrap();
        second.wait().unwrap();
        later.wait().unwrap();
        let mut got = vec![0; 5000];
        target.read(&to, &mut got).unwrap();
        assert_eq!(got, counting(5000), "{bridge:?}");
    }
}

#[test]
fn memory_of_the_host_goes_over_either_way() {
    let ((here, from), (there, to)) = two_contexts();
    for bridge in both_ways(&from, &to, 512) {
        let mut source = HostPtrBuffer::<u32>::new(&here, 1000).unwrap();
        source.write(&from, &counting(1000)).unwrap();
        let mut target = HostPtrBuffer::<u32>::new(&there, 1000).unwrap();
        // Dropped while the copy is under way: its memory is the host's and must stay.
        let copy = bridge.copy_async(&source, 0, &mut target, 0, 1000).unwrap();
        drop(source);
        copy.wait().unwrap();
        assert_eq!(target.map(&to).unwrap()[..], counting(1000), "{bridge:?}");
    }
}

#[test]
fn queues_of_one_context_copy_directly_and_in_order() {
    let context = common::context();
    let (from, to) = (context.queue().unwrap(), context.queue().unwrap());
    let bridge = BufferBridge::new(&from, &to).unwrap();
    assert_eq!(bridge.route(), BridgeRoute::Direct);
    let mut source = RegularBuffer::<u32>::new(&context, 100).unwrap();
    let mut target = RegularBuffer::<u32>::new(&context, 100).unwrap();
    source.fill(&from, 0, 100, 3).unwrap();
    bridge.copy(&source, 0, &mut target, 0, 100).unwrap();
    assert_eq!(target.map(&to).unwrap()[..], [3; 100]);
}

#[test]
fn an_asynchronous_copy_waits_for_the_source_and_holds_up_the_target() {
    let ((here, from), (there, to)) = two_contexts();
    for bridge in both_ways(&from, &to, 512) {
        let mut source = RegularBuffer::<u32>::new(&here, 1000).unwrap();
        source.fill(&from, 0, 1000, 1).unwrap();
        let mut target = RegularBuffer::<u32>::new(&there, 1000).unwrap();
        target.fill(&to, 0, 1000, 0).unwrap();
        let gate = UserEvent::new(&here).unwrap();
        from.wait_for(gate.event()).unwrap();
        let fill = source.fill(&from, 0, 1000, 2).unwrap();
        let copy = bridge.copy_async(&source, 0, &mut target, 0, 1000).unwrap();
        drop(source);
        let behind = to.record().unwrap();
        to.flush().unwrap();
        assert!(!copy.is_complete().unwrap() && !behind.is_complete().unwrap());
        gate.complete().unwrap();
        behind.wait().unwrap();
        assert!(fill.is_complete().unwrap() && copy.is_complete().unwrap());
        copy.wait().unwrap();
        assert_eq!(target.map(&to).unwrap()[..], [2; 1000]);
    }
}

#[test]
fn copies_that_are_dropped_or_leaked_leave_the_memory_sound() {
    let ((here, from), (there, to)) = two_contexts();
    for bridge in both_ways(&from, &to, 512) {
        let way = bridge.explain();
        let mut target = RegularBuffer::<u32>::new(&there, 5000).unwrap();
        {
            let bridge = bridge;
            let mut source = RegularBuffer::<u32>::new(&here, 5000).unwrap();
            source.write(&from, &counting(5000)).unwrap();
            std::mem::forget(bridge.copy_async(&source, 0, &mut target, 0, 5000).unwrap());
            drop(bridge.copy_async(&source, 0, &mut target, 0, 5000).unwrap());
        }
        let mut got = vec![0; 5000];
        target.read(&to, &mut got).unwrap();
        assert_eq!(got, counting(5000), "{way}");
    }
}

#[test]
fn threads_may_share_a_bridge() {
    let ((here, from), (there, to)) = two_contexts();
    for bridge in both_ways(&from, &to, 256) {
        std::thread::scope(|scope| {
            for thread in 1..5u32 {
                let (bridge, here, there, from, to) = (&bridge, &here, &there, &from, &to);
                scope.spawn(move || {
                    let mut source = RegularBuffer::<u32>::new(here, 1000).unwrap();
                    source.write(from, &[thread; 1000]).unwrap();
                    let mut target = RegularBuffer::<u32>::new(there, 1000).unwrap();
                    bridge.copy(&source, 0, &mut target, 0, 1000).unwrap();
                    let mut got = vec![0; 1000];
                    target.read(to, &mut got).unwrap();
                    assert_eq!(got, [thread; 1000]);
                });
            }
        });
    }
}

#[test]
fn bad_copies_are_refused_before_anything_moves() {
    let ((here, from), (there, to)) = two_contexts();
    let bridge = BufferBridge::staged(&from, &to, 64).unwrap();
    let source = RegularBuffer::<u32>::new(&here, 100).unwrap();
    let mut target = RegularBuffer::<u32>::new(&there, 100).unwrap();
    let mut wrong_side = RegularBuffer::<u32>::new(&here, 100).unwrap();
    let copy = |at, target: &mut RegularBuffer<u32>, count| bridge.copy(&source, at, target, 0, count).unwrap_err();
    assert!(matches!(copy(1, &mut target, 100), Error::OutOfRange { .. }));
    assert!(matches!(copy(usize::MAX, &mut target, 2), Error::OutOfRange { .. }));
    assert!(matches!(copy(0, &mut wrong_side, 1), Error::ContextMismatch { .. }));
    let closed = BufferAccess {
        device: Access::ReadWrite,
        host: None,
    };
    let mut closed = RegularBuffer::<u32>::with_access(&there, 100, closed).unwrap();
    assert!(matches!(copy(0, &mut closed, 1), Error::Access { .. }));
    assert!(matches!(BufferBridge::staged(&from, &to, 0), Err(Error::Zero { .. })));
    let write_only = BufferAccess {
        device: Access::WriteOnly,
        ..BufferAccess::default()
    };
    let unread = RegularBuffer::<u32>::with_access(&here, 100, write_only).unwrap();
    let best = BufferBridge::new(&from, &to).unwrap();
    match best.copy(&unread, 0, &mut target, 0, 1) {
        Ok(()) => assert_eq!(best.route(), BridgeRoute::Staging),
        Err(error) => {
            assert_eq!(best.route(), BridgeRoute::Foreign);
            assert!(error.to_string().contains("BufferBridge::staged"), "{error}");
        }
    }
    bridge.copy(&unread, 0, &mut target, 0, 1).unwrap();
    let wide = RegularBuffer::<[u32; 32]>::new(&here, 4).unwrap();
    let mut wide_target = RegularBuffer::<[u32; 32]>::new(&there, 4).unwrap();
    let refused = bridge.copy(&wide, 0, &mut wide_target, 0, 1);
    assert!(matches!(refused, Err(Error::TooLarge { .. })));
}

#[test]
fn offsets_above_4_gib_are_kept() {
    const FAR: usize = (4 << 30) + 4096;
    let ((here, from), (there, to)) = two_contexts();
    if here.device().max_alloc_bytes() < (FAR + (1 << 16)) as u64 {
        common::skipped("no single allocation above 4 GiB");
        return;
    }
    // NVIDIA's OpenCL wants the whole of a box's last row in the buffer, up to its pitch.
    const PITCH: usize = 1 << 16;
    let mut source = RegularBuffer::<u8>::new(&here, FAR + PITCH).unwrap();
    let mut target = RegularBuffer::<u8>::new(&there, FAR + PITCH).unwrap();
    source.write_at(&from, FAR, &[9; 1000]).unwrap();
    source.write_at(&from, FAR - (4 << 30), &[1; 1000]).unwrap();
    let bridge = BufferBridge::staged(&from, &to, 300).unwrap();
    bridge.copy(&source, FAR, &mut target, FAR + 8, 1000).unwrap();
    let mut got = [0; 1000];
    target.read_at(&to, FAR + 8, &mut got).unwrap();
    assert_eq!(got, [9; 1000]);
    let mut dense = [0; 4];
    let row = [4, 1, 1];
    let start = BoxLayout::rows(FAR % PITCH + 8, FAR / PITCH, PITCH);
    target
        .read_box(&to, row, start, &mut dense, BoxLayout::dense(row))
        .unwrap();
    assert_eq!(dense, [9; 4]);
}

#[test]
fn shared_memory_goes_by_address_or_is_refused_with_a_reason() {
    let ((here, from), (there, to)) = two_contexts();
    if !common::has(&here, SvmCapabilities::COARSE) {
        return;
    }
    let bridge = BufferBridge::new(&from, &to).unwrap();
    let mut source = SvmBuffer::<u32>::coarse(&here, 1000).unwrap();
    source.write(&from, &counting(1000)).unwrap();
    let mut target = SvmBuffer::<u32>::coarse(&there, 1000).unwrap();
    match bridge.try_copy_svm(&source, &mut target) {
        Ok(()) => {
            let mut got = vec![0; 1000];
            target.read(&to, &mut got).unwrap();
            assert_eq!(got, counting(1000));
        }
        Err(error) => {
            assert!(matches!(error, Error::NotSupported { .. }), "{error}");
            let one_processor = here.device() == there.device() && here.device().kind() == DeviceKind::Cpu;
            assert!(!one_processor, "{error}");
        }
    }
    let mut short = SvmBuffer::<u32>::coarse(&there, 10).unwrap();
    assert!(bridge.try_copy_svm(&source, &mut short).is_err());
    let mut same_side = SvmBuffer::<u32>::coarse(&here, 1000).unwrap();
    assert!(matches!(
        bridge.try_copy_svm(&source, &mut same_side),
        Err(Error::ContextMismatch { .. })
    ));
    let inside = BufferBridge::new(&from, &from).unwrap();
    inside.try_copy_svm(&source, &mut same_side).unwrap();
    assert_eq!(same_side.map(&from).unwrap()[..], counting(1000));
}
