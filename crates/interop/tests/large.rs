//! Sizes above 4 GiB. They take memory and time: `cargo test -p hipcl-interop --test large -- --ignored`.

mod common;

use interop::{Bridge, Options, Route};

/// Words whose last lies where an offset of 32 bits ends; on a card also 32 GiB of them, more than 32 bits count.
const LENS: [usize; 2] = [(1 << 30) + 1024, (8 << 30) + 1024];

const CL: &str = "
kernel void fill(global uint *x)
{
    ulong i = get_global_id(0);
    x[i] = (uint)(i * 2654435761u >> 7);
}
kernel void wrong(global const uint *x, global uint *count)
{
    ulong i = get_global_id(0);
    if (x[i] != (uint)(i * 2654435761u >> 7) + 1u)
        atomic_inc(count);
}";

const HIP: &str = r#"
extern "C" __global__ void add(unsigned int *x, unsigned long long len, unsigned int *wrong)
{
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < len; i += (unsigned long long)gridDim.x * blockDim.x) {
        if (x[i] != (unsigned int)(i * 2654435761u >> 7))
            atomicAdd(wrong, 1u);
        x[i] += 1u;
    }
}"#;

/// HIP has less than 2^32 threads in a grid.
const THREADS: usize = 1 << 24;

#[test]
#[ignore = "needs 5 GiB of memory, on a card 33 GiB of its"]
fn every_word_above_4_gib_is_the_same_for_both_apis() {
    let bridge = Bridge::open(&common::selection(), &Options::default()).expect("a bridge");
    let (queue, stream) = (bridge.queue().expect("a queue"), bridge.stream().expect("a stream"));
    let program = bridge.programs().get(CL, "").expect("OpenCL kernels");
    let kernel = |name| program.kernel(name).expect("a kernel");
    let (fill, wrong) = (kernel("fill"), kernel("wrong"));
    let add = hip::rtc::Program::new(HIP)
        .compile(bridge.hip_device())
        .and_then(|module| module.function("add"))
        .expect("a kernel");
    let free = bridge.hip_device().memory_info().expect("an answer").free;
    // Room for the programs, too.
    let fits = |len: &usize| !common::on_host() && len * size_of::<u32>() + (1 << 30) < free;
    let lens: Vec<usize> = [LENS[0]]
        .into_iter()
        .chain(LENS.into_iter().skip(1).filter(fits))
        .collect();
    let working: Vec<Route> = bridge.report().working().collect();
    // The host routes lie in the host's memory in any case.
    let direct =
        |route: &&Route| !route.is_copy() && !matches!(route, Route::SvmFine | Route::HostPinned | Route::Managed);
    let routes: Vec<Route> = working.iter().filter(direct).copied().collect();
    assert!(!routes.is_empty(), "{working:?}");
    for (route, len) in routes
        .iter()
        .flat_map(|route| lens.iter().map(move |len| (*route, *len)))
    {
        let mut data = bridge.alloc_on::<u32>(route, len).expect("memory");
        let mut count = bridge.alloc::<u32>(2).expect("memory");
        count.upload(&[0; 2]).expect("an upload");
        assert_eq!(data.len(), len);
        {
            let guard = data.cl_mut(&queue).expect("access");
            // SAFETY: the kernel writes as many words as it has work-items, and so many there are.
            unsafe { fill.launch(&queue, clmgr::NdRange::d1(len), &[guard.arg()]) }.expect("a launch");
        }
        {
            let mut guard = data.hip_mut(&stream).expect("access");
            let mut told = count.hip_mut(&stream).expect("access");
            let config = hip::LaunchConfig::linear(THREADS, 256).expect("a grid");
            let words = len as u64;
            // SAFETY: the kernel stays below `words`, and counts in one word.
            unsafe { add.launch(&stream, config, &[&guard.slice_mut(), &words, &told.slice_mut()]) }.expect("a launch");
        }
        let mut found = [0; 2];
        count.download(&mut found).expect("a download");
        assert_eq!(found[0], 0, "{route}, {len} words: HIP read others");
        {
            let guard = data.cl(&queue).expect("access");
            let told = count.cl_mut(&queue).expect("access");
            let args = [guard.arg(), told.arg()];
            // SAFETY: as above.
            unsafe { wrong.launch(&queue, clmgr::NdRange::d1(len), &args) }.expect("a launch");
        }
        count.download(&mut found).expect("a download");
        assert_eq!(found[0], 0, "{route}, {len} words: OpenCL read others");
        eprintln!("{route}: {len} words are right for both");
    }
}
