//! Every kernel on small data, for devices that check each access, as `cargo xtask oclgrind` has.

mod common;

use clmgr::{Arg, Context, NdRange, Program, Queue, RegularBuffer};

struct Bench {
    context: Context,
    queue: Queue,
}

fn open() -> Bench {
    let context = common::context();
    Bench {
        queue: context.queue().unwrap(),
        context,
    }
}

/// The kernels of a bridge between contexts, here within one.
#[test]
fn a_bridges_copies_stay_in_their_memory() {
    let bench = open();
    let source = include_str!("../kernels/bridge.cl");
    let program = Program::build(&bench.context, source, "").unwrap();
    let data: Vec<u8> = (0..112u8).collect();
    for (name, unit, from_at, to_at, count) in [
        ("copy_16", 16, 1u64, 2u64, 5),
        ("copy_4", 4, 3, 1, 25),
        ("copy_1", 1, 3, 5, 100),
    ] {
        let mut from = RegularBuffer::new(&bench.context, data.len()).unwrap();
        from.write(&bench.queue, &data).unwrap();
        let end = (to_at as usize + count) * unit;
        let mut to = RegularBuffer::<u8>::new(&bench.context, end).unwrap();
        to.write(&bench.queue, &vec![255; end]).unwrap();
        let places = [from_at, to_at];
        let args = [from.arg(), Arg::scalar(&places[0]), to.arg(), Arg::scalar(&places[1])];
        let kernel = program.kernel(name).unwrap();
        // SAFETY: the ranges lie in the buffers, which nothing else uses.
        unsafe { kernel.launch(&bench.queue, NdRange::d1(count), &args) }.unwrap();
        let mut got = vec![0; end];
        to.read(&bench.queue, &mut got).unwrap();
        let (before, copied) = got.split_at(to_at as usize * unit);
        assert!(before.iter().all(|&byte| byte == 255), "{name}");
        assert_eq!(copied, &data[from_at as usize * unit..][..count * unit]);
    }
}

#[test]
#[ignore = "run by `cargo xtask oclgrind`, which wants to see the report"]
fn a_kernel_that_leaves_its_buffer_is_reported() {
    let bench = open();
    let platform = bench.context.device().platform_name();
    assert_eq!(platform, "Oclgrind", "other devices would do the write");
    let source = "kernel void beyond(global uint *x) { x[get_global_id(0) + 1] = 1; }";
    let program = Program::build(&bench.context, source, "").unwrap();
    let buffer = RegularBuffer::<u32>::new(&bench.context, 4).unwrap();
    let kernel = program.kernel("beyond").unwrap();
    // SAFETY: the device checks every access and makes none outside of a buffer.
    unsafe { kernel.launch(&bench.queue, NdRange::d1(4), &[buffer.arg()]) }.unwrap();
    bench.queue.finish().unwrap();
}
