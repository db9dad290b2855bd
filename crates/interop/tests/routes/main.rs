//! Every route where it can exist: on the host platform, and call by call as AMD's and others'
//! OpenCL would see it, behind shims that know their rules.

mod amd;
#[path = "../common/mod.rs"]
mod common;
mod descriptors;
mod evidence;
mod external_memory;
mod matrix;
mod rules;
mod svm_in_file;

use interop::{Bridge, Route, Shared};

/// Words; no multiple of a work-group.
pub const LEN: usize = 5000;

/// One step in each API, back and forth, and the result against the same in plain Rust.
pub fn round_trip(bridge: &Bridge, mut data: Shared<u32>) {
    let route = data.route();
    let program = bridge
        .programs()
        .get("kernel void mul(global uint *x) { x[get_global_id(0)] *= 3u; }", "")
        .expect("a program");
    let mul = program.kernel("mul").expect("a kernel");
    let add = hip::rtc::Program::new(
        "extern \"C\" __global__ void add(unsigned int *x, unsigned int n) {
            unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) x[i] += 7u;
        }",
    )
    .compile(bridge.hip_device())
    .and_then(|module| module.function("add"))
    .expect("a kernel");
    let (queue, other) = (bridge.queue().expect("a queue"), bridge.queue().expect("a queue"));
    let stream = bridge.stream().expect("a stream");
    let len = data.len();
    let mut model: Vec<u32> = (0..len as u32).collect();
    data.upload(&model).expect("an upload");
    let before = bridge.meter().snapshot();
    for queue in [&queue, &queue, &other] {
        for _ in 0..2 {
            let guard = data.cl_mut(queue).expect("access");
            // SAFETY: the kernel touches the words of the buffer.
            unsafe { mul.launch(queue, clmgr::NdRange::d1(len), &[guard.arg()]) }.expect("a launch");
            drop(guard);
            model.iter_mut().for_each(|x| *x = x.wrapping_mul(3));
        }
        let mut guard = data.hip_mut(&stream).expect("access");
        let config = hip::LaunchConfig::linear(len, 256).expect("a grid");
        // SAFETY: the kernel touches as many words as it is told.
        unsafe { add.launch(&stream, config, &[&guard.slice_mut(), &(len as u32)]) }.expect("a launch");
        drop(guard);
        model.iter_mut().for_each(|x| *x = x.wrapping_add(7));
    }
    let counts = bridge.meter().snapshot().since(&before);
    assert!(counts.data_set == 0 || route.is_copy(), "{route}: {counts:?}");
    let mut result = vec![0; len];
    data.download(&mut result).expect("a download");
    assert_eq!(result, model, "{route}");
}

/// A round trip on a new buffer of this route.
pub fn works(bridge: &Bridge, route: Route) {
    let data = bridge.alloc_on::<u32>(route, LEN).expect("an allocation");
    assert_eq!(data.route(), route);
    round_trip(bridge, data);
}
