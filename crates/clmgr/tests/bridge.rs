//! Copies between contexts.

mod common;

use clmgr::{
    Access, BoxLayout, BridgeRoute, BufferAccess, BufferBridge, Context, Device, DeviceKind, Error,
    Manager, Queue, RegularBuffer, SvmBuffer, SvmCapabilities, UserEvent,
};

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

fn counting(len: usize) -> Vec<u32> {
    (0..len as u32)
        .map(|n| n.wrapping_mul(0x9E37_79B9))
        .collect()
}

#[test]
fn a_copy_of_any_number_of_pieces_arrives_whole() {
    let ((here, from), (there, to)) = two_contexts();
    // 256 elements a piece.
    let bridge = BufferBridge::with_piece(&from, &to, 1024).unwrap();
    assert_eq!(bridge.route(), BridgeRoute::Staging);
    let data = counting(2000);
    let mut source = RegularBuffer::<u32>::new(&here, 2000).unwrap();
    source.write(&from, &data).unwrap();
    for count in [0, 1, 255, 256, 257, 512, 513, 1990] {
        let mut target = RegularBuffer::<u32>::new(&there, 2000).unwrap();
        target.fill(&to, 0, 2000, 7).unwrap();
        bridge.copy(&source, 10, &mut target, 5, count).unwrap();
        let mut got = vec![0; 2000];
        target.read(&to, &mut got).unwrap();
        assert_eq!(got[..5], [7; 5]);
        assert_eq!(got[5..5 + count], data[10..10 + count]);
        assert!(got[5 + count..].iter().all(|&x| x == 7), "{count}");
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
    let bridge = BufferBridge::with_piece(&from, &to, 512).unwrap();
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

#[test]
fn copies_that_are_dropped_or_leaked_leave_the_memory_sound() {
    let ((here, from), (there, to)) = two_contexts();
    let mut target = RegularBuffer::<u32>::new(&there, 5000).unwrap();
    {
        let bridge = BufferBridge::with_piece(&from, &to, 512).unwrap();
        let mut source = RegularBuffer::<u32>::new(&here, 5000).unwrap();
        source.write(&from, &counting(5000)).unwrap();
        std::mem::forget(bridge.copy_async(&source, 0, &mut target, 0, 5000).unwrap());
        drop(bridge.copy_async(&source, 0, &mut target, 0, 5000).unwrap());
    }
    let mut got = vec![0; 5000];
    target.read(&to, &mut got).unwrap();
    assert_eq!(got, counting(5000));
}

#[test]
fn threads_may_share_a_bridge() {
    let ((here, from), (there, to)) = two_contexts();
    let bridge = BufferBridge::with_piece(&from, &to, 256).unwrap();
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

#[test]
fn bad_copies_are_refused_before_anything_moves() {
    let ((here, from), (there, to)) = two_contexts();
    let bridge = BufferBridge::with_piece(&from, &to, 64).unwrap();
    let source = RegularBuffer::<u32>::new(&here, 100).unwrap();
    let mut target = RegularBuffer::<u32>::new(&there, 100).unwrap();
    let mut wrong_side = RegularBuffer::<u32>::new(&here, 100).unwrap();
    let copy = |at, target: &mut RegularBuffer<u32>, count| {
        bridge.copy(&source, at, target, 0, count).unwrap_err()
    };
    assert!(matches!(
        copy(1, &mut target, 100),
        Error::OutOfRange { .. }
    ));
    assert!(matches!(
        copy(usize::MAX, &mut target, 2),
        Error::OutOfRange { .. }
    ));
    assert!(matches!(
        copy(0, &mut wrong_side, 1),
        Error::ContextMismatch { .. }
    ));
    let closed = BufferAccess {
        device: Access::ReadWrite,
        host: None,
    };
    let mut closed = RegularBuffer::<u32>::with_access(&there, 100, closed).unwrap();
    assert!(matches!(copy(0, &mut closed, 1), Error::Access { .. }));
    assert!(matches!(
        BufferBridge::with_piece(&from, &to, 0),
        Err(Error::Zero { .. })
    ));
    let wide = RegularBuffer::<[u32; 32]>::new(&here, 4).unwrap();
    let mut wide_target = RegularBuffer::<[u32; 32]>::new(&there, 4).unwrap();
    let refused = bridge.copy(&wide, 0, &mut wide_target, 0, 1);
    assert!(matches!(refused, Err(Error::TooLarge { .. })));
}

#[test]
fn offsets_above_4_gib_are_kept() {
    const FAR: usize = (4 << 30) + 4096;
    let ((here, from), (there, to)) = two_contexts();
    if here.device().max_alloc_bytes() < (FAR + 4096) as u64 {
        common::skipped("no single allocation above 4 GiB");
        return;
    }
    let mut source = RegularBuffer::<u8>::new(&here, FAR + 4096).unwrap();
    let mut target = RegularBuffer::<u8>::new(&there, FAR + 4096).unwrap();
    source.write_at(&from, FAR, &[9; 1000]).unwrap();
    source.write_at(&from, FAR - (4 << 30), &[1; 1000]).unwrap();
    let bridge = BufferBridge::with_piece(&from, &to, 300).unwrap();
    bridge
        .copy(&source, FAR, &mut target, FAR + 8, 1000)
        .unwrap();
    let mut got = [0; 1000];
    target.read_at(&to, FAR + 8, &mut got).unwrap();
    assert_eq!(got, [9; 1000]);
    // Whole rows above 4 GiB: a row pitch of that size is more than NVIDIA's OpenCL takes.
    const PITCH: usize = 1 << 16;
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
            let one_processor =
                here.device() == there.device() && here.device().kind() == DeviceKind::Cpu;
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
