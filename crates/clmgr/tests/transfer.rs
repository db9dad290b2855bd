//! Access, parts, fills, copies of ranges and boxes, and transfers that own their host memory.

mod common;

use clmgr::{
    Access, Arg, BoxLayout, BufferAccess, Context, Error, HostPtrBuffer, NdRange, Program, Queue, RegularBuffer,
    SvmBuffer, SvmCapabilities,
};

const SOURCE: &str = "
kernel void add(global uint *x, uint value) { x[get_global_id(0)] += value; }
kernel void copy(global const uint *from, global uint *to) {
    to[get_global_id(0)] = from[get_global_id(0)];
}
kernel void spin(global uint *x, uint rounds, uint last) {
    uint state = x[0];
    for (uint i = 0; i < rounds; ++i)
        state = state * 1664525u + 1013904223u + i;
    x[0] = state;
    x[last] = state | 1u;
}";

/// Long enough that nothing enqueued behind it ends by chance before it is looked at.
const ROUNDS: u32 = 30_000_000;

fn open() -> (Context, Queue, Program) {
    let context = common::context();
    let queue = context.queue().unwrap();
    let program = Program::build(&context, SOURCE, "-cl-kernel-arg-info").unwrap();
    (context, queue, program)
}

fn counting(len: usize) -> Vec<u32> {
    (0..len as u32).collect()
}

#[test]
fn the_host_is_refused_what_the_flags_forbid() {
    let (context, queue, _) = open();
    let with_host = |host| {
        let access = BufferAccess {
            device: Access::ReadWrite,
            host,
        };
        RegularBuffer::<u32>::with_access(&context, 8, access).unwrap()
    };
    let mut data = [0u32; 8];
    for (host, reads, writes) in [
        (Some(Access::ReadOnly), true, false),
        (Some(Access::WriteOnly), false, true),
        (None, false, false),
        (Some(Access::ReadWrite), true, true),
    ] {
        let mut buffer = with_host(host);
        let extent = [2, 2, 1];
        let layout = BoxLayout::dense(extent);
        let refused = |result: clmgr::Result<()>| matches!(result, Err(Error::Access { .. }));
        let box_read = buffer.read_box(&queue, extent, layout, &mut data, layout);
        assert_eq!(refused(box_read), !reads);
        assert_eq!(refused(buffer.read(&queue, &mut data)), !reads);
        let later = buffer.read_async(&queue, 0, vec![0; 8]);
        assert_eq!(refused(later.map(drop)), !reads);
        assert_eq!(refused(buffer.map(&queue).map(drop)), !reads);
        assert_eq!(refused(buffer.write(&queue, &data)), !writes);
        let later = buffer.write_async(&queue, 0, vec![0; 8]);
        assert_eq!(refused(later.map(drop)), !writes);
        let both = reads && writes;
        assert_eq!(refused(buffer.map_mut(&queue).map(drop)), !both);
    }
    let error = with_host(None).read(&queue, &mut data).unwrap_err();
    assert!(error.to_string().contains("no access for the host"), "{error}");
}

#[test]
fn a_kernel_gets_a_buffer_only_as_its_flags_allow() {
    let (context, queue, program) = open();
    let with = |device| RegularBuffer::<u32>::with_access(&context, 8, BufferAccess::device(device)).unwrap();
    let (read_only, write_only, open) = (with(Access::ReadOnly), with(Access::WriteOnly), with(Access::ReadWrite));
    let copy = program.kernel("copy").unwrap();
    let launch = |from: Arg<'_>, to: Arg<'_>| {
        // SAFETY: the buffers hold the 8 elements and are used by this queue alone.
        unsafe { copy.launch(&queue, NdRange::d1(8), &[from, to]) }.map(drop)
    };
    launch(read_only.arg(), write_only.arg()).unwrap();
    launch(open.arg(), write_only.arg()).unwrap();
    launch(read_only.arg(), open.arg()).unwrap();
    let to_read_only = launch(open.arg(), read_only.arg()).unwrap_err();
    assert!(matches!(to_read_only, Error::Access { .. }), "{to_read_only}");
    assert!(to_read_only.to_string().contains("argument 1"));
    let from_write_only = launch(write_only.arg(), open.arg()).unwrap_err();
    assert!(matches!(from_write_only, Error::Access { .. }), "{from_write_only}");
    queue.finish().unwrap();
}

#[test]
fn parts_are_the_memory_of_the_whole() {
    let (context, queue, program) = open();
    let step = context.device().sub_buffer_alignment() / size_of::<u32>();
    let mut whole = RegularBuffer::<u32>::new(&context, 3 * step).unwrap();
    whole.write(&queue, &counting(3 * step)).unwrap();
    {
        let part = whole.part(step..2 * step).unwrap();
        assert_eq!((part.start(), part.len()), (step, step));
        // SAFETY: the part holds `step` elements and is used by this queue alone.
        unsafe {
            let args = [part.arg(), Arg::scalar(&1000u32)];
            let add = program.kernel("add").unwrap();
            add.launch(&queue, NdRange::d1(step), &args).unwrap();
        }
        assert_eq!(part.map(&queue).unwrap()[0], step as u32 + 1000);
    }
    {
        let mut part = whole.part_mut(2 * step..3 * step).unwrap();
        part.fill(&queue, 7).unwrap();
        part.map_mut(&queue).unwrap()[1] = 8;
    }
    let mut all = vec![0; 3 * step];
    whole.read(&queue, &mut all).unwrap();
    let at = |index: usize| all[index];
    assert_eq!((at(step - 1), at(step)), (step as u32 - 1, step as u32 + 1000));
    assert_eq!((at(2 * step), at(2 * step + 1), at(3 * step - 1)), (7, 8, 7));
}

#[test]
fn parts_that_opencl_can_not_make_are_refused() {
    let (context, _, _) = open();
    let step = context.device().sub_buffer_alignment() / size_of::<u32>();
    let whole = RegularBuffer::<u32>::new(&context, 2 * step).unwrap();
    assert!(matches!(whole.part(1..step), Err(Error::Region { .. })) || step == 1);
    assert!(matches!(whole.part(0..0), Err(Error::Zero { .. })));
    assert!(matches!(whole.part(step..2 * step + 1), Err(Error::OutOfRange { .. })));
    assert!(matches!(
        whole.part(usize::MAX..usize::MAX),
        Err(Error::OutOfRange { .. })
    ));
}

#[test]
fn a_read_of_the_whole_waits_for_a_kernel_on_a_part() {
    let (context, queue, program) = open();
    let reader = context.queue().unwrap();
    let mut whole = RegularBuffer::<u32>::new(&context, 4096).unwrap();
    whole.write(&queue, &[0; 4096]).unwrap();
    {
        let part = whole.part(0..1024).unwrap();
        let rounds = common::rounds(ROUNDS);
        let args = [part.arg(), Arg::scalar(&rounds), Arg::scalar(&1023u32)];
        // SAFETY: the part holds 1024 elements, which nothing touches before the kernel ends.
        unsafe { program.kernel("spin").unwrap().launch(&queue, NdRange::d1(1), &args) }.unwrap();
        queue.flush().unwrap();
    }
    let mut last = [0];
    whole.read_at(&reader, 1023, &mut last).unwrap();
    assert_eq!(last[0] & 1, 1);
}

#[test]
fn a_leaked_part_with_a_leaked_map_costs_no_soundness() {
    let (context, queue, _) = open();
    let mut whole = RegularBuffer::<u32>::new(&context, 2048).unwrap();
    whole.write(&queue, &[1; 2048]).unwrap();
    let mut part = whole.part_mut(1024..2048).unwrap();
    let mut map = part.map_mut(&queue).unwrap();
    map[0] = 5;
    std::mem::forget(map);
    std::mem::forget(part);
    let mut all = vec![0; 2048];
    whole.read(&queue, &mut all).unwrap();
    assert_eq!(all[1023..1026], [1, 5, 1]);
    let mut part = whole.part_mut(0..1024).unwrap();
    std::mem::forget(part.map_mut(&queue).unwrap());
    drop(part);
    whole.write(&queue, &vec![2; 2048]).unwrap();
    queue.finish().unwrap();
}

#[test]
fn each_of_several_maps_at_one_address_is_undone_once() {
    let (context, queue, _) = open();
    let other = context.queue().unwrap();
    let mut whole = RegularBuffer::<u32>::new(&context, 4096).unwrap();
    whole.write(&queue, &counting(4096)).unwrap();
    {
        // Where a map is the memory itself, these begin at one address.
        let all = whole.map(&queue).unwrap();
        let (short, long) = (whole.part(0..1024).unwrap(), whole.part(0..2048).unwrap());
        let of_short = short.map(&queue).unwrap();
        drop(long.map(&other).unwrap());
        drop(long);
        assert_eq!((all[4095], of_short[3]), (4095, 3));
        of_short.unmap().unwrap();
        drop(short);
        assert_eq!(all[4095], 4095);
        all.unmap().unwrap();
    }
    queue.finish().unwrap();
    other.finish().unwrap();
    std::mem::forget(whole.map(&queue).unwrap());
    drop(whole.part(0..1024).unwrap().map(&other).unwrap());
    other.finish().unwrap();
    whole.fill(&queue, 0, 4096, 7).unwrap();
    queue.finish().unwrap();
    other.finish().unwrap();
    drop(whole);
    assert!(context.take_deferred_errors().is_empty());
}

#[test]
fn fills_and_copies_touch_their_range_and_no_more() {
    let (context, queue, _) = open();
    let mut one = RegularBuffer::<u32>::new(&context, 100).unwrap();
    let mut two = HostPtrBuffer::<u32>::new(&context, 100).unwrap();
    one.write(&queue, &counting(100)).unwrap();
    one.fill(&queue, 10, 5, 0xABCD).unwrap();
    two.copy_from(&queue, 50, &one, 8, 20).unwrap();
    let mut data = vec![1; 100];
    two.read(&queue, &mut data).unwrap();
    assert_eq!(data[49..53], [0, 8, 9, 0xABCD]);
    assert_eq!(data[56..59], [0xABCD, 15, 16]);
    assert_eq!((data[69], data[70]), (27, 0));
    assert!(matches!(one.fill(&queue, 99, 2, 0), Err(Error::OutOfRange { .. })));
    assert!(matches!(
        two.copy_from(&queue, 90, &one, 0, 11),
        Err(Error::OutOfRange { .. })
    ));
    assert!(matches!(
        two.copy_from(&queue, 0, &one, usize::MAX, 2),
        Err(Error::OutOfRange { .. })
    ));
    let mut odd = RegularBuffer::<[u32; 3]>::new(&context, 4).unwrap();
    assert!(matches!(odd.fill(&queue, 0, 4, [1; 3]), Err(Error::TooLarge { .. })));
    let other = common::context();
    let foreign = RegularBuffer::<u32>::new(&other, 100).unwrap();
    assert!(matches!(
        one.copy_from(&queue, 0, &foreign, 0, 1),
        Err(Error::ContextMismatch { .. })
    ));
}

#[test]
fn boxes_land_where_their_layout_says() {
    let (context, queue, _) = open();
    // 5 x 4 x 3 elements.
    let all = BoxLayout::dense([5, 4, 3]);
    let mut source = RegularBuffer::<u32>::new(&context, 60).unwrap();
    source.write(&queue, &counting(60)).unwrap();
    let extent = [2, 3, 2];
    let from = BoxLayout {
        origin: [1, 1, 1],
        ..all
    };
    let expected: Vec<u32> = (1..3)
        .flat_map(|z| (1..4).flat_map(move |y| (1..3).map(move |x| z * 20 + y * 5 + x)))
        .collect();
    let dense = BoxLayout::dense(extent);

    let mut read = [0u32; 12];
    source.read_box(&queue, extent, from, &mut read, dense).unwrap();
    assert_eq!(read[..], expected);

    let mut copied = RegularBuffer::<u32>::new(&context, 60).unwrap();
    copied.fill(&queue, 0, 60, 0).unwrap();
    let to = BoxLayout {
        origin: [3, 0, 0],
        ..all
    };
    copied.copy_box_from(&queue, extent, to, &source, from).unwrap();
    copied.read_box(&queue, extent, to, &mut read, dense).unwrap();
    assert_eq!(read[..], expected);

    let mut written = RegularBuffer::<u32>::new(&context, 60).unwrap();
    written.fill(&queue, 0, 60, 9).unwrap();
    written.write_box(&queue, extent, from, &expected, dense).unwrap();
    let mut whole = [0u32; 60];
    written.read(&queue, &mut whole).unwrap();
    for (index, &value) in whole.iter().enumerate() {
        let inside = expected.contains(&(index as u32));
        assert_eq!(value, if inside { index as u32 } else { 9 });
    }
    let short = &mut read[..11];
    assert!(matches!(
        source.read_box(&queue, extent, from, short, dense),
        Err(Error::Region { .. })
    ));
}

#[test]
fn shared_memory_fills_and_copies_like_a_buffer_object() {
    let (context, queue, _) = open();
    if !common::has(&context, SvmCapabilities::COARSE) {
        return;
    }
    let mut shared = SvmBuffer::<u32>::coarse(&context, 64).unwrap();
    let mut other = SvmBuffer::<u32>::coarse(&context, 64).unwrap();
    let mut regular = RegularBuffer::<u32>::new(&context, 64).unwrap();
    shared.fill(&queue, 0, 64, 3).unwrap();
    shared.fill(&queue, 8, 8, 4).unwrap();
    regular.copy_from(&queue, 0, &shared.view().unwrap(), 4, 8).unwrap();
    other.fill(&queue, 0, 64, 0).unwrap();
    other.copy_from(&queue, 60, &regular, 2, 4).unwrap();
    other.copy_from(&queue, 0, &shared.view().unwrap(), 7, 2).unwrap();
    drop(regular);
    drop(shared);
    let data = other.read_async(&queue, 0, vec![0; 64]).unwrap().wait().unwrap();
    assert_eq!((data[0], data[1], data[2]), (3, 4, 0));
    assert_eq!(data[60..], [3, 3, 4, 4]);
    let written = other.write_async(&queue, 1, vec![11, 12]).unwrap().wait().unwrap();
    assert_eq!(written, [11, 12]);
    assert_eq!(other.map(&queue).unwrap()[..4], [3, 11, 12, 0]);
    let extent = [2, 2, 1];
    let two = RegularBuffer::<u32>::new(&context, 4).unwrap();
    let layout = BoxLayout::dense(extent);
    other
        .copy_box_from(&queue, extent, BoxLayout::rows(1, 1, 8), &two, layout)
        .unwrap();
    queue.finish().unwrap();
}

#[test]
fn a_pending_read_owns_its_memory_until_the_device_is_done() {
    let (context, queue, program) = open();
    let mut buffer = RegularBuffer::<u32>::new(&context, 1000).unwrap();
    buffer.write(&queue, &[0; 1000]).unwrap();
    let spin = program.kernel("spin").unwrap();
    let spin = |buffer: &RegularBuffer<u32>| {
        let rounds = common::rounds(ROUNDS);
        let args = [buffer.arg(), Arg::scalar(&rounds), Arg::scalar(&999u32)];
        // SAFETY: the buffer holds 1000 elements and is used by this queue alone.
        unsafe { spin.launch(&queue, NdRange::d1(1), &args) }.unwrap()
    };
    let kernel = spin(&buffer);
    let pending = buffer.read_async(&queue, 0, vec![0; 1000]).unwrap();
    drop(buffer);
    let data = pending.wait().unwrap();
    assert!(kernel.is_complete().unwrap());
    assert_eq!(data[999] & 1, 1);

    let buffer = RegularBuffer::<u32>::new(&context, 1000).unwrap();
    let kernel = spin(&buffer);
    drop(buffer.read_async(&queue, 0, vec![0; 1000]).unwrap());
    assert!(kernel.is_complete().unwrap(), "the memory was freed under the device");

    std::mem::forget(buffer.read_async(&queue, 0, vec![0; 1000]).unwrap());
    let empty = buffer.read_async(&queue, 1000, Vec::new()).unwrap();
    assert!(empty.wait().unwrap().is_empty());
    assert!(buffer.read_async(&queue, 1, vec![0; 1000]).is_err());
    queue.finish().unwrap();
}
