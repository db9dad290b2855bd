//! How near kernels come to the machine's memory bandwidth.
//!
//! Machines are shared and their speed drifts: what is compared is measured in turns, round by round, and medians
//! count.

mod common;

use std::time::Instant;

use common::*;

const N: usize = 64 << 20;
const ROUNDS: usize = 25;

/// Something to measure.
struct Work<'a> {
    name: &'static str,
    bytes: usize,
    run: Box<dyn FnMut() + 'a>,
}

impl<'a> Work<'a> {
    fn new(name: &'static str, bytes: usize, run: impl FnMut() + 'a) -> Self {
        let run = Box::new(run);
        Self { name, bytes, run }
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The median seconds of each, measured in turns after a round that is not counted.
fn in_turns(works: &mut [Work<'_>]) -> Vec<f64> {
    let mut times = vec![Vec::new(); works.len()];
    for round in 0..=ROUNDS {
        for (work, times) in works.iter_mut().zip(&mut times) {
            let start = Instant::now();
            (work.run)();
            if round > 0 {
                times.push(start.elapsed().as_secs_f64());
            }
        }
    }
    times.into_iter().map(median).collect()
}

/// Runs `body` on corresponding parts of three arrays, a thread for each processor.
fn on_all_cores<T: Send + Sync>(a: &mut [T], b: &[T], c: &[T], body: impl Fn(&mut [T], &[T], &[T]) + Sync) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let part = a.len().div_ceil(threads);
    let inputs = b.chunks(part).zip(c.chunks(part));
    std::thread::scope(|scope| {
        for (a, (b, c)) in a.chunks_mut(part).zip(inputs) {
            let body = &body;
            scope.spawn(move || body(a, b, c));
        }
    });
}

#[test]
#[ignore = "measures for half a minute; run it by hand on a quiet machine"]
fn saxpy_reaches_seven_tenths_of_stream() {
    let source = r#"
    extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = a * x[i] + y[i];
    }
    extern "C" __global__ void scale(float2* d, int n, float s) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) { float2 v = d[i]; v.x *= s; v.y *= s; d[i] = v; }
    }
    extern "C" __global__ void magnitude(const float2* d, float* o, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) { float2 v = d[i]; o[i] = v.x * v.x + v.y * v.y; }
    }"#;
    let module = load(&compile(source));
    let (x, y) = (malloc(4 * N), malloc(4 * N));
    for array in [x, y] {
        ok!(hipMemset(array, 0, 4 * N));
    }
    ok!(hipDeviceSynchronize());
    let stream = stream();
    let (n, half, factor) = (N as i32, (N / 2) as i32, 2.0f32);
    let kernel = |name, threads: usize, mut params: Vec<*mut std::ffi::c_void>| {
        let kernel = function(module, name);
        let grid = [(threads / 256) as u32, 1, 1];
        move || {
            assert_eq!(launch(kernel, grid, [256, 1, 1], 0, stream, &mut params), OK);
            ok!(hipStreamSynchronize(stream));
        }
    };
    let (mut a, b, c) = (vec![0f64; N / 2], vec![1f64; N / 2], vec![2f64; N / 2]);
    let (hx, mut hy) = (vec![1f32; N], vec![0f32; N]);
    let mut works = [
        // Its bytes are counted as STREAM does, without what the processor reads before it writes.
        Work::new("STREAM triad", 12 * N, || {
            on_all_cores(&mut a, &b, &c, |a, b, c| {
                for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
                    *a = b + 3.0 * c;
                }
            });
        }),
        Work::new("saxpy as a plain loop", 12 * N, || {
            on_all_cores(&mut hy, &hx, &hx, |y, x, _| {
                for (y, x) in y.iter_mut().zip(x) {
                    *y += 2.0 * x;
                }
            });
        }),
        Work::new("saxpy", 12 * N, kernel("saxpy", N, params![n, factor, x, y].to_vec())),
        Work::new(
            "scale, complex",
            8 * N,
            kernel("scale", N / 2, params![x, half, factor].to_vec()),
        ),
        Work::new(
            "magnitude, complex",
            6 * N,
            kernel("magnitude", N / 2, params![x, y, half].to_vec()),
        ),
        Work::new("copy", 8 * N, || {
            let kind = hip_sys::hipMemcpyKind::hipMemcpyDeviceToDevice;
            ok!(hipMemcpyAsync(y, x, 4 * N, kind, stream));
            ok!(hipStreamSynchronize(stream));
        }),
    ];
    let times = in_turns(&mut works);
    let speeds: Vec<f64> = works
        .iter()
        .zip(&times)
        .map(|(work, time)| work.bytes as f64 / time / 1e9)
        .collect();
    for (work, speed) in works.iter().zip(&speeds) {
        println!("{:<24}{speed:6.1} GB/s", work.name);
    }
    let [stream_triad, plain, saxpy, ..] = speeds[..] else {
        unreachable!("six were measured")
    };
    println!("saxpy over STREAM:      {:.2}", saxpy / stream_triad);
    println!("saxpy over plain loop:  {:.2}", saxpy / plain);
    assert!(saxpy >= 0.7 * stream_triad, "too slow");
}

#[test]
#[ignore = "measures and prints; run it by hand on a quiet machine"]
fn a_small_command_and_a_wait() {
    let (x, stream) = (malloc(4), stream());
    let mut works = [Work::new("memset and wait", 4, || {
        for _ in 0..100 {
            ok!(hipMemsetAsync(x, 0, 4, stream));
            ok!(hipStreamSynchronize(stream));
        }
    })];
    println!("{:.1} us", in_turns(&mut works)[0] * 1e4);
}

#[test]
#[ignore = "measures and prints; run it by hand on a quiet machine"]
fn threads_with_barriers() {
    let source = r#"
    extern "C" __global__ void reduce(const float* x, float* sums) {
        __shared__ float s[256];
        unsigned t = threadIdx.x;
        s[t] = x[blockIdx.x * 256 + t];
        __syncthreads();
        for (unsigned half = 128; half > 0; half /= 2) {
            if (t < half) s[t] += s[t + half];
            __syncthreads();
        }
        if (t == 0) sums[blockIdx.x] = s[0];
    }"#;
    let reduce = function(load(&compile(source)), "reduce");
    let (x, sums, stream) = (malloc(16 << 20), malloc(64 << 10), stream());
    ok!(hipMemset(x, 0, 16 << 20));
    let mut works = [Work::new("reduce", 16 << 20, || {
        assert_eq!(
            launch(reduce, [16384, 1, 1], [256, 1, 1], 0, stream, &mut params![x, sums]),
            OK
        );
        ok!(hipStreamSynchronize(stream));
    })];
    println!(
        "a thread with nine barriers: {:.1} ns",
        in_turns(&mut works)[0] / (16384.0 * 256.0) * 1e9
    );
}
