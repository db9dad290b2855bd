//! HIPRTC, modules and launches.

mod common;

use std::ptr::null_mut;

use common::*;
use hip_sys::{hipError_t, hiprtcResult};

const SAXPY: &str = r#"
extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"#;

#[test]
fn a_kernel_computes_what_its_source_says() {
    let n = 1000usize;
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let (dx, dy) = (upload(&x), upload(&vec![1.0f32; n]));
    let module = load(&compile(SAXPY));
    let saxpy = function(module, "saxpy");
    let (count, a) = (n as i32, 2.0f32);
    assert_eq!(
        launch(
            saxpy,
            [4, 1, 1],
            [256, 1, 1],
            0,
            null_mut(),
            &mut params![count, a, dx, dy]
        ),
        OK
    );
    assert_eq!(
        download::<f32>(dy, n),
        (0..n).map(|i| 2.0 * i as f32 + 1.0).collect::<Vec<_>>()
    );
    ok!(hipModuleUnload(module));
    ok!(hipFree(dx));
    ok!(hipFree(dy));
}

#[test]
fn every_thread_of_every_block_runs_once_in_all_dimensions() {
    let source = r#"
    extern "C" __global__ void mark(unsigned* out) {
        unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
        atomicAdd(&out[block * blockDim.x * blockDim.y * blockDim.z + thread], 1u);
    }
    extern "C" __global__ void mark_waiting(unsigned* out) {
        __syncthreads();
        unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
        atomicAdd(&out[block * blockDim.x * blockDim.y * blockDim.z + thread], 1u);
    }"#;
    let module = load(&compile(source));
    for name in ["mark", "mark_waiting"] {
        let mark = function(module, name);
        for (grid, block) in [
            ([1, 1, 1], [1, 1, 1]),
            ([3, 5, 7], [2, 3, 4]),
            ([100, 1, 3], [7, 1, 1]),
            ([2, 2, 2], [1, 1, 64]),
            ([1, 1, 1], [1024, 1, 1]),
        ] {
            let n = (grid.iter().product::<u32>() * block.iter().product::<u32>()) as usize;
            let out = upload(&vec![0u32; n]);
            assert_eq!(launch(mark, grid, block, 0, null_mut(), &mut params![out]), OK);
            assert_eq!(download::<u32>(out, n), vec![1; n], "{name} {grid:?} {block:?}");
            ok!(hipFree(out));
        }
    }
}

const REDUCE: &str = r#"
extern "C" __global__ void sum_static(const float* x, float* out) {
    __shared__ float s[256];
    unsigned t = threadIdx.x;
    s[t] = x[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
extern "C" __global__ void sum_dynamic(const float* x, float* out) {
    extern __shared__ __align__(16) float s[];
    unsigned t = threadIdx.x;
    s[t] = x[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
extern __shared__ unsigned char raw[];
extern "C" __global__ void sum_raw(const float* x, float* out) {
    float* s = (float*)raw;
    s[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) { float t = 0; for (unsigned i = 0; i < blockDim.x; ++i) t += s[i]; out[blockIdx.x] = t; }
}
"#;

#[test]
fn shared_memory_and_barriers_reduce_a_block() {
    let (blocks, threads) = (37usize, 256usize);
    let x: Vec<f32> = (0..blocks * threads).map(|i| (i % 97) as f32).collect();
    let expected: Vec<f32> = x.chunks(threads).map(|block| block.iter().sum()).collect();
    let (dx, out) = (upload(&x), malloc(blocks * 4));
    let module = load(&compile(REDUCE));
    for (name, shared) in [("sum_static", 0), ("sum_dynamic", 1024), ("sum_raw", 1024)] {
        ok!(hipMemset(out, 0xff, blocks * 4));
        assert_eq!(
            launch(
                function(module, name),
                [blocks as u32, 1, 1],
                [threads as u32, 1, 1],
                shared,
                null_mut(),
                &mut params![dx, out]
            ),
            OK
        );
        assert_eq!(download::<f32>(out, blocks), expected, "{name}");
    }
}

#[test]
fn warp_functions_move_values_between_lanes() {
    let source = r#"
    extern "C" __global__ void warps(int* out) {
        int t = threadIdx.x, lane = t & 63;
        int sum = t;
        for (int d = 32; d > 0; d /= 2) sum += __shfl_down(sum, d);
        int first = __shfl(sum, 0);
        int swapped = __shfl_xor(t, 1);
        int up = __shfl_up(t, 1);
        unsigned long long odd = __ballot(t & 1);
        out[4 * t] = first; out[4 * t + 1] = swapped; out[4 * t + 2] = up;
        out[4 * t + 3] = __popcll(odd) + 100 * __any(lane == 5) + 1000 * __all(lane < 64);
    }"#;
    let out = malloc(128 * 16);
    let module = load(&compile(source));
    assert_eq!(
        launch(
            function(module, "warps"),
            [1, 1, 1],
            [128, 1, 1],
            0,
            null_mut(),
            &mut params![out]
        ),
        OK
    );
    for (t, got) in download::<[i32; 4]>(out, 128).into_iter().enumerate() {
        let (t, warp) = (t as i32, t as i32 / 64 * 64);
        let sum: i32 = (warp..warp + 64).sum();
        assert_eq!(got, [sum, t ^ 1, if t == warp { t } else { t - 1 }, 1132], "thread {t}");
    }
}

#[test]
fn a_block_whose_threads_part_at_a_barrier_ends() {
    let source = r#"
    extern "C" __global__ void part(int* out) {
        if (threadIdx.x % 3 == 0) return;
        __syncthreads();
        if (threadIdx.x % 3 == 1) { __syncthreads(); int v = __shfl(7, 1); out[threadIdx.x] = v; return; }
        __syncwarp();
        out[threadIdx.x] = 2;
    }"#;
    let out = upload(&vec![0i32; 192]);
    let module = load(&compile(source));
    assert_eq!(
        launch(
            function(module, "part"),
            [1, 1, 1],
            [192, 1, 1],
            0,
            null_mut(),
            &mut params![out]
        ),
        OK
    );
    let got = download::<i32>(out, 192);
    assert!(
        got.iter().enumerate().all(|(t, &v)| if t % 3 == 0 {
            v == 0
        } else if t % 3 == 1 {
            v == 7
        } else {
            v == 2
        }),
        "{got:?}"
    );
}

#[test]
fn atomics_lose_nothing() {
    let source = r#"
    extern "C" __global__ void count(int* i, unsigned* u, float* f, unsigned long long* l, int* extremes, unsigned* swapped) {
        int t = blockIdx.x * blockDim.x + threadIdx.x;
        atomicAdd(i, 1); atomicAdd(u, 2u); atomicAdd(f, 1.0f); atomicAdd(l, 3ull);
        atomicMax(&extremes[0], t); atomicMin(&extremes[1], -t);
        unsigned old = *swapped, seen;
        do { seen = old; old = atomicCAS(swapped, seen, seen + 1); } while (old != seen);
    }"#;
    let n = 256 * 400;
    let module = load(&compile(source));
    let zero = || upload(&[0u64; 2]);
    let (i, u, f, l, e, s) = (zero(), zero(), zero(), zero(), zero(), zero());
    assert_eq!(
        launch(
            function(module, "count"),
            [400, 1, 1],
            [256, 1, 1],
            0,
            null_mut(),
            &mut params![i, u, f, l, e, s]
        ),
        OK
    );
    assert_eq!(download::<i32>(i, 1), [n]);
    assert_eq!(download::<u32>(u, 1), [2 * n as u32]);
    assert_eq!(download::<f32>(f, 1), [n as f32]);
    assert_eq!(download::<u64>(l, 1), [3 * n as u64]);
    assert_eq!(download::<i32>(e, 2), [n - 1, 1 - n]);
    assert_eq!(download::<u32>(s, 1), [n as u32]);
}

#[test]
fn parameters_of_every_size_arrive_packed_or_listed() {
    let source = r#"
    struct three { char a; double b; };
    extern "C" __global__ void pack(char c, double d, short s, float2 v, three t, float4 w, bool b, long long* out) {
        out[0] = c; out[1] = (long long)d; out[2] = s; out[3] = (long long)(v.x + v.y); out[4] = t.a; out[5] = (long long)t.b;
        out[6] = (long long)(w.x + w.w); out[7] = b;
    }"#;
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Three(i8, f64);
    #[repr(C, align(16))]
    #[derive(Clone, Copy)]
    struct Float4([f32; 4]);
    #[repr(C, align(8))]
    #[derive(Clone, Copy)]
    struct Float2([f32; 2]);
    #[repr(C)]
    struct Packed(i8, f64, i16, Float2, Three, Float4, bool, *mut std::ffi::c_void);
    let module = load(&compile(source));
    let pack = function(module, "pack");
    let out = malloc(64);
    let all = Packed(
        -3,
        1e6,
        -300,
        Float2([1.0, 2.0]),
        Three(9, -5.0),
        Float4([10.0, 0.0, 0.0, 20.0]),
        true,
        out,
    );
    let expected = [-3i64, 1_000_000, -300, 3, 9, -5, 30, 1];
    assert_eq!(
        launch(
            pack,
            [1; 3],
            [1; 3],
            0,
            null_mut(),
            &mut params![all.0, all.1, all.2, all.3, all.4, all.5, all.6, all.7]
        ),
        OK
    );
    assert_eq!(download::<i64>(out, 8), expected);
    ok!(hipMemset(out, 0, 64));
    let mut size = size_of::<Packed>();
    let mut extra = [
        std::ptr::without_provenance_mut(1),
        (&raw const all).cast_mut().cast(),
        std::ptr::without_provenance_mut(2),
        (&raw mut size).cast(),
        std::ptr::without_provenance_mut(3),
    ];
    ok!(hipModuleLaunchKernel(
        pack,
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        null_mut(),
        null_mut(),
        extra.as_mut_ptr()
    ));
    assert_eq!(download::<i64>(out, 8), expected);
    let mut short = size - 8;
    extra[3] = (&raw mut short).cast();
    assert_eq!(
        hip!(hipModuleLaunchKernel(
            pack,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            null_mut(),
            null_mut(),
            extra.as_mut_ptr()
        )),
        hipError_t::hipErrorInvalidValue
    );
}

#[test]
fn a_launch_out_of_limits_is_refused_and_the_device_stays_usable() {
    let module = load(&compile(SAXPY));
    let saxpy = function(module, "saxpy");
    let (n, a, p) = (0i32, 0f32, malloc(4));
    let mut params = params![n, a, p, p];
    for (grid, block, shared) in [
        ([0, 1, 1], [1, 1, 1], 0),
        ([1, 1, 1], [1, 0, 1], 0),
        ([1, 1, 1], [1025, 1, 1], 0),
        ([1, 1, 1], [64, 64, 1], 0),
        ([1, 1, 1], [u32::MAX, u32::MAX, u32::MAX], 0),
        ([1, 65537, 1], [1, 1, 1], 0),
        ([i32::MAX as u32, 1, 1], [1024, 1, 1], 0),
        ([1, 1, 1], [1, 1, 1], 65537),
    ] {
        assert_eq!(
            launch(saxpy, grid, block, shared, null_mut(), &mut params),
            hipError_t::hipErrorInvalidValue,
            "{grid:?} {block:?} {shared}"
        );
    }
    assert_eq!(
        launch(null_mut(), [1; 3], [1; 3], 0, null_mut(), &mut params),
        hipError_t::hipErrorInvalidImage
    );
    assert_eq!(
        hip!(hipModuleLaunchKernel(
            saxpy,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            null_mut(),
            null_mut(),
            null_mut()
        )),
        hipError_t::hipErrorInvalidValue
    );
    let mut broken = params;
    broken[2] = null_mut();
    assert_eq!(
        launch(saxpy, [1; 3], [1; 3], 0, null_mut(), &mut broken),
        hipError_t::hipErrorInvalidValue
    );
    assert_eq!(
        launch(saxpy, [1; 3], [1; 3], 0, 0xdead0 as *mut _, &mut params),
        hipError_t::hipErrorContextIsDestroyed
    );
    assert_eq!(launch(saxpy, [1; 3], [1; 3], 0, null_mut(), &mut params), OK);
    ok!(hipModuleUnload(module));
    assert_eq!(
        launch(saxpy, [1; 3], [1; 3], 0, null_mut(), &mut params),
        hipError_t::hipErrorInvalidHandle
    );
    assert_eq!(hip!(hipModuleUnload(module)), hipError_t::hipErrorNotFound);
    ok!(hipDeviceSynchronize());
}

#[test]
fn diagnostics_name_the_users_file_and_line() {
    let source = "#include \"mine.h\"\n\nextern \"C\" __global__ void k(float* p) {\n    p[0] = undeclared_thing;\n}\n";
    let (result, log, _) = compile_with(source, &[("mine.h", "#define MINE 1\n")], &[]);
    assert_eq!(result, hiprtcResult::HIPRTC_ERROR_COMPILATION);
    assert!(log.contains("user.hip:4:") && log.contains("undeclared_thing"), "{log}");
    let (result, log, _) = compile_with("#include \"mine.h\"\n", &[("mine.h", "\n\nbroken here;\n")], &[]);
    assert_eq!(result, hiprtcResult::HIPRTC_ERROR_COMPILATION);
    assert!(log.contains("mine.h:3:") && !log.contains("/include/mine.h"), "{log}");
    let (result, log, _) = compile_with("#include <not_there.h>\n", &[], &[]);
    assert_eq!(result, hiprtcResult::HIPRTC_ERROR_COMPILATION);
    assert!(log.contains("user.hip:1:") && log.contains("not_there.h"), "{log}");
}

#[test]
fn headers_definitions_and_disabled_code_behave_as_in_any_compiler() {
    let source = r#"
    #include <hip/hip_runtime.h>
    #include <math.h>
    #include <cmath>
    #include <cstdint>
    #include "deep/mine.h"
    #if 0
    extern "C" __global__ void disabled(nonsense) {}
    #endif
    #define KERNEL(name, value) extern "C" __global__ void name(float* p) { p[threadIdx.x] = value * FACTOR + fabs(MINE) + sqrt(4.0f) + max(1, 0); }
    KERNEL(by_macro, 3.0f)
    /* extern "C" __global__ void commented() {} */
    "#;
    let (result, log, code) = compile_with(
        source,
        &[("deep/mine.h", "#pragma once\n#define MINE -5.0f\n")],
        &["-DFACTOR=2", "--gpu-architecture=gfx908", "-O2"],
    );
    assert_eq!(result, hiprtcResult::HIPRTC_SUCCESS, "{log}");
    assert_eq!(log, "");
    let out = malloc(4);
    let module = load(&code);
    assert_eq!(
        launch(
            function(module, "by_macro"),
            [1; 3],
            [1; 3],
            0,
            null_mut(),
            &mut params![out]
        ),
        OK
    );
    assert_eq!(download::<f32>(out, 1), [14.0]);
    let mut missing = null_mut();
    for name in [c"disabled", c"commented", c"printf"] {
        assert_eq!(
            hip!(hipModuleGetFunction(&mut missing, module, name.as_ptr())),
            hipError_t::hipErrorNotFound,
            "{name:?}"
        );
    }
}

#[test]
fn a_kernel_without_c_linkage_has_its_mangled_name_only() {
    let module = load(&compile("__global__ void plain(int* p) { *p = 4; }"));
    let mut missing = null_mut();
    assert_eq!(
        hip!(hipModuleGetFunction(&mut missing, module, c"plain".as_ptr())),
        hipError_t::hipErrorNotFound
    );
    let out = malloc(4);
    assert_eq!(
        launch(
            function(module, "_Z5plainPi"),
            [1; 3],
            [1; 3],
            0,
            null_mut(),
            &mut params![out]
        ),
        OK
    );
    assert_eq!(download::<i32>(out, 1), [4]);
}

#[test]
fn name_expressions_instantiate_templates() {
    let source = c"namespace n { template <class T, int N> __global__ void fill(T* p, T v) { for (int i = 0; i < N; ++i) p[i] = v; } }";
    let mut program = null_mut();
    let good = hiprtcResult::HIPRTC_SUCCESS;
    assert_eq!(
        rtc!(hiprtcCreateProgram(
            &mut program,
            source.as_ptr(),
            std::ptr::null(),
            0,
            null_mut(),
            null_mut()
        )),
        good
    );
    let (floats, ints) = (c"&n::fill<float, 4>", c"n::fill<int, 2>");
    let mut name = std::ptr::null();
    assert_eq!(rtc!(hiprtcAddNameExpression(program, floats.as_ptr())), good);
    assert_eq!(rtc!(hiprtcAddNameExpression(program, ints.as_ptr())), good);
    assert_eq!(
        rtc!(hiprtcGetLoweredName(program, ints.as_ptr(), &mut name)),
        hiprtcResult::HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION
    );
    assert_eq!(rtc!(hiprtcCompileProgram(program, 0, null_mut())), good);
    assert_eq!(
        rtc!(hiprtcAddNameExpression(program, ints.as_ptr())),
        hiprtcResult::HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION
    );
    assert_eq!(
        rtc!(hiprtcGetLoweredName(program, c"n::fill<char, 1>".as_ptr(), &mut name)),
        hiprtcResult::HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID
    );
    let mut size = 0;
    assert_eq!(rtc!(hiprtcGetCodeSize(program, &mut size)), good);
    let mut code = vec![0u8; size];
    assert_eq!(rtc!(hiprtcGetCode(program, code.as_mut_ptr().cast())), good);
    let module = load(&code);
    assert_eq!(rtc!(hiprtcGetLoweredName(program, floats.as_ptr(), &mut name)), good);
    // SAFETY: a terminated string that lives as long as the program.
    let lowered = unsafe { std::ffi::CStr::from_ptr(name) }.to_str().unwrap().to_owned();
    let (out, value) = (upload(&[0f32; 5]), 2.5f32);
    assert_eq!(
        launch(
            function(module, &lowered),
            [1; 3],
            [1; 3],
            0,
            null_mut(),
            &mut params![out, value]
        ),
        OK
    );
    assert_eq!(download::<f32>(out, 5), [2.5, 2.5, 2.5, 2.5, 0.0]);
    assert_eq!(rtc!(hiprtcDestroyProgram(&mut program)), good);
    // The handle stays as it is, and names nothing any more.
    let gone = hiprtcResult::HIPRTC_ERROR_INVALID_PROGRAM;
    assert_eq!(rtc!(hiprtcDestroyProgram(&mut program)), gone);
}

#[test]
fn unknown_options_and_foreign_code_are_refused() {
    for option in ["-oelsewhere", "--nonsense", "@file", "-Wl,-rpath,."] {
        let (result, log, _) = compile_with(SAXPY, &[], &[option]);
        assert_eq!(result, hiprtcResult::HIPRTC_ERROR_COMPILATION);
        assert!(log.contains(option), "{log}");
    }
    let mut module = null_mut();
    let elf = [0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(
        hip!(hipModuleLoadData(&mut module, elf.as_ptr().cast())),
        hipError_t::hipErrorNoBinaryForGpu
    );
    let mut code = compile(SAXPY);
    let last = code.len() - 1;
    code[last] ^= 1;
    assert_eq!(
        hip!(hipModuleLoadData(&mut module, code.as_ptr().cast())),
        hipError_t::hipErrorInvalidImage
    );
    assert_eq!(
        hip!(hipModuleLoadData(&mut module, std::ptr::null())),
        hipError_t::hipErrorInvalidValue
    );
    assert_eq!(
        hip!(hipModuleLoad(&mut module, c"not-there.hsaco".as_ptr())),
        hipError_t::hipErrorFileNotFound
    );
}

#[test]
fn modules_loaded_twice_do_not_share_their_globals() {
    let code = compile("__device__ int counter; extern \"C\" __global__ void next(int* out) { *out = ++counter; }");
    let (a, b) = (load(&code), load(&code));
    let out = malloc(4);
    for (module, expected) in [(a, 1), (a, 2), (b, 1), (a, 3), (b, 2)] {
        assert_eq!(
            launch(
                function(module, "next"),
                [1; 3],
                [1; 3],
                0,
                null_mut(),
                &mut params![out]
            ),
            OK
        );
        assert_eq!(download::<i32>(out, 1), [expected]);
    }
}

#[test]
fn kernels_are_compiled_and_launched_from_many_threads() {
    std::thread::scope(|scope| {
        for seed in 0..8i32 {
            scope.spawn(move || {
                let module = load(&compile(&format!("extern \"C\" __global__ void k(int* p) {{ p[blockIdx.x] = {seed}; __syncthreads(); p[blockIdx.x] += blockIdx.x; }}")));
                let (k, out, stream) = (function(module, "k"), malloc(4096), stream());
                for _ in 0..50 {
                    assert_eq!(launch(k, [1024, 1, 1], [1; 3], 0, stream, &mut params![out]), OK);
                }
                ok!(hipStreamSynchronize(stream));
                assert_eq!(download::<i32>(out, 1024), (0..1024).map(|i| i + seed).collect::<Vec<_>>());
                ok!(hipModuleUnload(module));
                ok!(hipStreamDestroy(stream));
                ok!(hipFree(out));
            });
        }
    });
}

#[test]
fn a_modules_variables_are_device_memory_while_it_is_loaded() {
    let source = r#"
    __device__ int counters[4];
    extern "C" __constant__ float factor;
    __constant__ float factor = 1.5f;
    extern "C" __global__ void k(float* out) { counters[threadIdx.x] += 10; out[threadIdx.x] = factor * counters[threadIdx.x]; }"#;
    let module = load(&compile(source));
    let (mut counters, mut factor, mut size) = (null_mut(), null_mut(), 0);
    ok!(hipModuleGetGlobal(
        &mut counters,
        &mut size,
        module,
        c"counters".as_ptr()
    ));
    assert_eq!(size, 16);
    ok!(hipModuleGetGlobal(&mut factor, null_mut(), module, c"factor".as_ptr()));
    let kind = hip_sys::hipMemcpyKind::hipMemcpyHostToDevice;
    ok!(hipMemcpy(counters, [1i32, 2, 3, 4].as_ptr().cast(), 16, kind));
    ok!(hipMemcpy(factor, 2.0f32.to_le_bytes().as_ptr().cast(), 4, kind));
    let out = malloc(16);
    assert_eq!(
        launch(
            function(module, "k"),
            [1; 3],
            [4, 1, 1],
            0,
            null_mut(),
            &mut params![out]
        ),
        OK
    );
    assert_eq!(download::<f32>(out, 4), [22.0, 24.0, 26.0, 28.0]);
    assert_eq!(download::<i32>(counters, 4), [11, 12, 13, 14]);
    let invalid = hipError_t::hipErrorInvalidValue;
    assert_eq!(
        hip!(hipMemcpy(factor, out, 8, hip_sys::hipMemcpyKind::hipMemcpyDefault)),
        invalid
    );
    assert_eq!(hip!(hipFree(counters)), invalid);
    for name in [c"k", c"nothing", c"printf", c"stdout"] {
        assert_eq!(
            hip!(hipModuleGetGlobal(&mut counters, &mut size, module, name.as_ptr())),
            hipError_t::hipErrorNotFound,
            "{name:?}"
        );
    }
    ok!(hipModuleUnload(module));
    assert_eq!(hip!(hipMemset(factor, 0, 4)), invalid);
}

#[test]
fn the_kernel_language_computes_what_it_names() {
    let source = r#"
    extern "C" __global__ void language(double* o) {
        int n = 0;
        float2 a = make_float2(1.0f, 2.0f), b = {3.0f, 4.0f};
        float2 c = a * b + a - b / 2.0f; o[n++] = c.x; o[n++] = c.y;
        float4 f = make_float4(1, 2, 3, 4); f += f; f = 0.5f * f; o[n++] = f.x + f.y + f.z + f.w; o[n++] = (f == make_float4(1, 2, 3, 4));
        int3 i = make_int3(1, -2, 3); o[n++] = (-i).y; o[n++] = (int)sizeof(int3) + (int)sizeof(float4) + (int)alignof(float4);
        hipFloatComplex z = make_hipFloatComplex(3, 4); o[n++] = hipCabsf(z); o[n++] = hipCmulf(z, hipConjf(z)).x;
        z = hipCdivf(z, z); o[n++] = z.x; o[n++] = z.y;
        float s, t; sincosf(0.5f, &s, &t); o[n++] = s * s + t * t; __sincosf(0.0f, &s, &t); o[n++] = t;
        o[n++] = rsqrtf(4.0f) + rsqrt(4.0) + rsqrt(4.0f); o[n++] = fmaf(2, 3, 4) + fma(2.0, 3.0, 4.0) + fma(2.0f, 3.0f, 4.0f);
        o[n++] = __float_as_uint(1.0f); o[n++] = __int_as_float(0x40000000); o[n++] = __longlong_as_double(0x4008000000000000ll);
        o[n++] = __popc(0xff00u) + __popcll(~0ull) + __clz(1) + __clzll(0) + __ffs(8) + __brev(1u) / 2147483648u;
        o[n++] = __umulhi(0x80000000u, 4u) + __mulhi(-2147483647 - 1, 2);
        o[n++] = min(3, 2) + max(2.5f, 1.0f) + min(1u, 2u) + max(-1ll, 4ll) + min(2.0, 3.0);
        o[n++] = sinpif(0.5f) + cospi(1.0) + exp10f(2.0f) + __expf(0.0f) + __powf(2.0f, 3.0f) + exp2f(3.0f) + log2(8.0f);
        o[n++] = isnan(0.0f / 0.0f) + isinf(1.0 / 0.0) + isfinite(1.0f) + fabs(-1.0f) + abs(-2) + abs(-2.5f) + __saturatef(7.0f);
        o[n++] = __fmul_rn(3.0f, 2.0f) + __fadd_rn(1.0f, 1.0f) + __fdividef(6.0f, 3.0f) + __float2int_rn(2.5f) + __float2int_rz(-2.7f);
        dim3 d = blockDim; uint3 u = threadIdx; dim3 e(5); o[n++] = d.x + u.x + e.x + e.y + gridDim.z + warpSize;
        unsigned w = 5; o[n++] = atomicInc(&w, 5) + w; o[n++] = atomicDec(&w, 9) + w; o[n++] = atomicExch(&w, 3u) + w; 
        int q = 12; atomicAnd(&q, 6); atomicOr(&q, 1); atomicXor(&q, 3); atomicSub(&q, 1); o[n++] = q;
        float g = 1.0f; o[n++] = atomicMax(&g, 2.5f) + g; double h = 1.0; o[n++] = atomicAdd(&h, 2.0) + h; 
        int8_t i8 = -1; uint64_t u64 = ~0ull; o[n++] = (double)i8 + (double)(u64 >> 63) + (double)sizeof(size_t);
    }"#;
    let (result, log, code) = compile_with(source, &[], &["-Wall"]);
    assert_eq!((result, log.as_str()), (hiprtcResult::HIPRTC_SUCCESS, ""));
    let expected = [
        2.5,
        8.0,
        10.0,
        1.0,
        2.0,
        12.0 + 16.0 + 16.0,
        5.0,
        25.0,
        1.0,
        0.0,
        1.0,
        1.0,
        1.5,
        30.0,
        f64::from(0x3f80_0000),
        2.0,
        3.0,
        8.0 + 64.0 + 31.0 + 64.0 + 4.0 + 1.0,
        2.0 - 1.0 + 0.0,
        2.0 + 2.5 + 1.0 + 4.0 + 2.0,
        1.0 - 1.0 + 100.0 + 1.0 + 8.0 + 8.0 + 3.0,
        1.0 + 1.0 + 1.0 + 1.0 + 2.0 + 2.5 + 1.0,
        6.0 + 2.0 + 2.0 + 2.0 - 2.0,
        1.0 + 0.0 + 5.0 + 1.0 + 1.0 + 64.0,
        5.0,
        9.0,
        12.0,
        5.0,
        3.5,
        4.0,
        -1.0 + 1.0 + 8.0,
    ];
    let out = upload(&vec![f64::NAN; expected.len() + 1]);
    assert_eq!(
        launch(
            function(load(&code), "language"),
            [1; 3],
            [1; 3],
            0,
            null_mut(),
            &mut params![out]
        ),
        OK
    );
    let got = download::<f64>(out, expected.len() + 1);
    for (index, (&got, &expected)) in got.iter().zip(&expected).enumerate() {
        assert!(
            (got - expected).abs() < 1e-5,
            "value {index}: {got}, expected {expected}"
        );
    }
    assert!(got[expected.len()].is_nan());
}
