//! Sizes above 4 GiB. They take memory and time: `cargo test -p interop --test large -- --ignored`.

mod common;

use interop::{Bridge, Options, Route};

/// Its last word lies where an offset of 32 bits ends.
const LEN: usize = (1 << 30) + 1024;

#[test]
#[ignore = "needs 5 GiB of memory"]
fn the_last_word_above_4_gib_is_the_same_for_both_apis() {
    let bridge = Bridge::open(&common::host(), &Options::default()).expect("a bridge");
    let (queue, stream) = (
        bridge.queue().expect("a queue"),
        bridge.stream().expect("a stream"),
    );
    let source = "kernel void put(global uint *x, ulong at, uint v) { x[at] = v; }";
    let put = bridge
        .programs()
        .get(source, "")
        .and_then(|program| program.kernel("put"));
    let put = put.expect("a kernel");
    let add = hip::rtc::Program::new(
        "extern \"C\" __global__ void add(unsigned int *x, unsigned long long at) { x[at] += 1u; }",
    )
    .compile(bridge.hip_device())
    .and_then(|module| module.function("add"))
    .expect("a kernel");
    for route in [Route::SvmCoarse, Route::GpuVa, Route::HipPointer] {
        let mut data = bridge.alloc_on::<u32>(route, LEN).expect("5 GiB");
        assert_eq!(data.len(), LEN);
        for at in [0, LEN as u64 - 1] {
            let guard = data.cl_mut(&queue).expect("access");
            let value = at as u32 ^ 0x5A5A;
            let args = [
                guard.arg(),
                clmgr::Arg::scalar(&at),
                clmgr::Arg::scalar(&value),
            ];
            // SAFETY: the kernel writes one word inside the buffer.
            unsafe { put.launch(&queue, clmgr::NdRange::d1(1), &args) }.expect("a launch");
            drop(guard);
            let mut guard = data.hip_mut(&stream).expect("access");
            let config = hip::LaunchConfig::linear(1, 1).expect("a grid");
            // SAFETY: the kernel touches one word inside the buffer.
            unsafe { add.launch(&stream, config, &[&guard.slice_mut(), &at]) }.expect("a launch");
        }
        let mut back = vec![0; LEN];
        data.download(&mut back).expect("a download");
        assert_eq!(back[0], 0x5A5A + 1, "{route}");
        assert_eq!(back[LEN - 1], ((LEN as u32 - 1) ^ 0x5A5A) + 1, "{route}");
    }
}
