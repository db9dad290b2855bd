//! How near a kernel comes to the machine's memory bandwidth.

mod common;

use std::time::Instant;

use common::*;

const N: usize = 64 << 20;

fn best(mut work: impl FnMut()) -> f64 {
    work();
    (0..7)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

#[test]
#[ignore = "measures for a minute and prints; run it by hand on a quiet machine"]
fn saxpy_against_a_plain_loop() {
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
    }
    extern "C" __global__ void strided(int n, float a, const float* x, float* y) {
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) y[i] = a * x[i] + y[i];
    }"#;
    let module = load(&compile(source));
    let (x, y) = (malloc(4 * N), malloc(4 * N));
    ok!(hipMemset(x, 0, 4 * N));
    ok!(hipMemset(y, 0, 4 * N));
    ok!(hipDeviceSynchronize());
    let stream = stream();
    // The same work without HIP: as many threads as the machine has, each with a plain loop the compiler vectorises.
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (hx, mut hy) = (vec![0f32; N], vec![0f32; N]);
    let plain = best(|| {
        std::thread::scope(|scope| {
            for (x, y) in hx
                .chunks(N.div_ceil(threads))
                .zip(hy.chunks_mut(N.div_ceil(threads)))
            {
                scope.spawn(move || x.iter().zip(y).for_each(|(x, y)| *y += 2.0 * x));
            }
        });
    });
    let bytes = 12.0 * N as f64;
    println!(
        "plain loop: {:.1} GB/s on {threads} threads",
        bytes / plain / 1e9
    );
    let (n, half, a) = (N as i32, (N / 2) as i32, 2.0f32);
    let run = |name: &str, grid: u32, bytes: f64, params: &mut [*mut std::ffi::c_void]| {
        let kernel = function(module, name);
        let time = best(|| {
            assert_eq!(
                launch(kernel, [grid, 1, 1], [256, 1, 1], 0, stream, params),
                OK
            );
            ok!(hipStreamSynchronize(stream));
        });
        println!("{name}: {:.1} GB/s", bytes / time / 1e9);
        bytes / time
    };
    let saxpy = run("saxpy", (N / 256) as u32, bytes, &mut params![n, a, x, y]);
    run(
        "scale",
        (N / 512) as u32,
        8.0 * N as f64,
        &mut params![x, half, a],
    );
    run(
        "magnitude",
        (N / 512) as u32,
        6.0 * N as f64,
        &mut params![x, y, half],
    );
    run("strided", 1024, bytes, &mut params![n, a, x, y]);
    println!("saxpy over the plain loop: {:.2}", saxpy * plain / bytes);
    let copy = best(|| {
        ok!(hipMemcpyAsync(
            y,
            x,
            4 * N,
            hip_sys::hipMemcpyKind::hipMemcpyDeviceToDevice,
            stream
        ));
        ok!(hipStreamSynchronize(stream));
    });
    println!("copy: {:.1} GB/s", 8.0 * N as f64 / copy / 1e9);
    let empty = best(|| {
        for _ in 0..100 {
            ok!(hipMemsetAsync(x, 0, 4, stream));
            ok!(hipStreamSynchronize(stream));
        }
    });
    println!("a small command and a wait: {:.1} us", empty * 1e4);
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
    let time = best(|| {
        assert_eq!(
            launch(
                reduce,
                [16384, 1, 1],
                [256, 1, 1],
                0,
                stream,
                &mut params![x, sums]
            ),
            OK
        );
        ok!(hipStreamSynchronize(stream));
    });
    println!(
        "a thread with nine barriers: {:.1} ns",
        time / (16384.0 * 256.0) * 1e9
    );
}
