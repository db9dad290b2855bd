//! A launch of an OpenCL kernel on a HIP stream asks the host's allocator for nothing.

mod common;
#[path = "common/counting.rs"]
mod counting;

use clmgr::NdRange;
use counting::allocations_of;
use interop::{Bridge, Options, StreamArg};
use platform::Platform;

const SOURCE: &str = "kernel void add(global uint *x, local uint *tile, uint by) {
    tile[get_local_id(0)] = x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    x[get_global_id(0)] = tile[get_local_id(0)] + by;
}";

#[test]
fn launches_do_not_allocate() {
    let selection = common::selection();
    if selection.platform() == Platform::Host {
        common::skipped("the host platform's launches are OpenCL's own, which allocates");
        return;
    }
    let bridge = Bridge::open(&selection, &Options::default()).expect("a bridge");
    let program = bridge.programs().get(SOURCE, "").expect("it compiles");
    let program = bridge.stream_program(&program).expect("HIP loads it");
    let add = program.kernel("add").expect("it runs on a stream");
    let stream = bridge.stream().expect("a stream");
    let mut data = bridge.alloc::<u32>(1024).expect("memory");
    data.upload(&[1; 1024]).expect("an upload");
    {
        let mut guard = data.hip_mut(&stream).expect("the buffer");
        let mut launch = || {
            let (by, range) = (2_u32, NdRange::d1_local(1024, 64).with_offset([0; 3]));
            let args = [guard.arg(), StreamArg::local(256), StreamArg::scalar(&by)];
            // SAFETY: 1024 numbers, room for a work-group's, and a number.
            unsafe { add.launch(&stream, range, &args) }.expect("a launch");
        };
        launch();
        let of_100 = allocations_of(|| (0..100).for_each(|_| launch()));
        assert_eq!(of_100, 0, "allocations of 100 launches");
    }
    let mut seen = vec![0; 1024];
    data.download(&mut seen).expect("a download");
    assert_eq!(seen, [1 + 2 * 101; 1024]);
}
