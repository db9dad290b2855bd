//! HIP's own headers in a HIPRTC source, and what of them is more than the prelude.

mod common;

use std::ptr::null_mut;

use common::*;
use hip_sys::{hipError_t, hiprtcResult};

/// ROCm's headers are for AMD's compiler; a program that passes their folder gets what is built in all the same.
#[test]
fn a_folder_with_hips_headers_does_not_hide_those_that_are_built_in() {
    let folder = tempfile::tempdir().unwrap();
    let headers = folder.path().join("hip");
    std::fs::create_dir(&headers).unwrap();
    for name in ["hip_runtime.h", "hip_fp16.h", "hip_vector_types.h"] {
        std::fs::write(headers.join(name), "#error for AMD's compiler\n").unwrap();
    }
    std::fs::write(headers.join("hip_mine.h"), "#define MINE 3\n").unwrap();
    let source = r#"
    #include <hip/hip_runtime.h>
    #include <hip/hip_fp16.h>
    #include "hip/hip_vector_types.h"
    #include <hip/hip_mine.h>
    extern "C" __global__ void k(__half* p) { p[0] = (__half)MINE; }
    "#;
    let option = format!("-I{}", folder.path().display());
    for options in [vec![option.as_str()], vec!["-I", folder.path().to_str().unwrap()]] {
        let (result, log, _) = compile_with(source, &[], &options);
        assert_eq!(result, hiprtcResult::HIPRTC_SUCCESS, "{log}");
    }
}

/// Runs `body` once, with `out` for 64 results of the type `T`.
fn results<T: Copy + Default>(ty: &str, body: &str) -> Vec<T> {
    let source = format!("#include <hip/hip_fp16.h>\nextern \"C\" __global__ void k({ty}* out) {{\n{body}\n}}\n");
    let module = load(&compile(&source));
    let out = upload(&[T::default(); 64]);
    let kernel = function(module, "k");
    let mut params = params![out];
    let launched = launch(kernel, [1; 3], [1; 3], 0, null_mut(), &mut params);
    assert_eq!(launched, hipError_t::hipSuccess);
    let results = download(out, 64);
    ok!(hipFree(out));
    ok!(hipModuleUnload(module));
    results
}

#[test]
fn halves_round_to_the_nearest_and_in_the_direction_asked_for() {
    // 2049 lies between the halves 2048 and 2050, 1/3 between two others.
    let bits: Vec<u16> = results(
        "unsigned short",
        r#"
        const float values[] = {2049.0f, -2049.0f, 1.0f / 3, -1.0f / 3, 1.5f, 1e-9f, -1e-9f, 65519.0f};
        for (int i = 0; i < 8; ++i) {
            out[5 * i] = __half_as_ushort(__float2half(values[i]));
            out[5 * i + 1] = __half_as_ushort(__float2half_rn(values[i]));
            out[5 * i + 2] = __half_as_ushort(__float2half_rz(values[i]));
            out[5 * i + 3] = __half_as_ushort(__float2half_rd(values[i]));
            out[5 * i + 4] = __half_as_ushort(__float2half_ru(values[i]));
        }"#,
    );
    let expected: [[u16; 5]; 8] = [
        [0x6800, 0x6800, 0x6800, 0x6800, 0x6801],
        [0xe800, 0xe800, 0xe800, 0xe801, 0xe800],
        [0x3555, 0x3555, 0x3555, 0x3555, 0x3556],
        [0xb555, 0xb555, 0xb555, 0xb556, 0xb555],
        [0x3e00; 5],
        [0x0000, 0x0000, 0x0000, 0x0000, 0x0001],
        [0x8000, 0x8000, 0x8000, 0x8001, 0x8000],
        [0x7bff, 0x7bff, 0x7bff, 0x7bff, 0x7c00],
    ];
    assert_eq!(bits[..40], expected.concat());
}

#[test]
fn arithmetic_on_halves_rounds_every_step() {
    let values: Vec<f32> = results(
        "float",
        r#"
        const __half big = 2048, one = 1, third = __float2half(1.0f / 3), nan = __ushort_as_half(0x7e00);
        out[0] = big + one;
        out[1] = __hadd(__hadd(big, one), one);
        out[2] = __hfma(big, one, __hmul(one, third));
        out[3] = __hmul_sat(big, big);
        out[4] = __hsub_sat(one, big);
        out[5] = __half2float(__hmax(nan, third)) == __half2float(third);
        out[6] = __hisnan(__hmax_nan(nan, third));
        out[7] = __heq(nan, nan) + 2 * __hne(nan, nan) + 4 * __hneu(nan, nan) + 8 * __hltu(nan, one);
        out[8] = hsqrt((__half)2);
        out[9] = hrcp((__half)3) == third;
        out[10] = __half2int_rn((__half)2.5f) * 100 + __half2int_ru((__half)2.25f) * 10 + __half2int_rd((__half)-2.25f);
        const __half2 pair = __floats2half2_rn(1.0f, 2.0f), sum = __hfma2(pair, pair, __half2half2(one));
        out[11] = __low2float(sum) * 10 + __high2float(sum);
        const float2 wide = __half22float2(__lowhigh2highlow(pair) * pair - pair);
        out[12] = wide.x * 10 + wide.y;
        out[13] = max((__half)-1, third) == third && min((__half)-1, third) == (__half)-1 && abs((__half)-1) == one;
        out[14] = sizeof(__half) * 100 + sizeof(__half2) * 10 + alignof(__half2);
        out[15] = __hisinf(__float2half(1e30f)) - 10 * __hisinf(__float2half(-1e30f));
        "#,
    );
    let expected = [
        2048.0,
        2048.0,
        2048.0,
        1.0,
        0.0,
        1.0,
        1.0,
        12.0,
        1.414_062_5,
        1.0,
        227.0,
        25.0,
        10.0,
        1.0,
        244.0,
        11.0,
    ];
    assert_eq!(values[..16], expected);
}

#[test]
fn hips_short_names_of_integers_and_reciprocal_lengths_are_there() {
    let source = r#"
    extern "C" __global__ void k(float* out, uchar a, ushort b, uint c, ulong d) {
        out[0] = rhypotf(3.0f, 4.0f);
        out[1] = (float)(rhypot(6.0, 8.0) + (sizeof(a) + sizeof(b) + sizeof(c) + sizeof(d)));
    }"#;
    let module = load(&compile(source));
    let out = upload(&[0f32; 2]);
    let (a, b, c, d) = (1u8, 2u16, 3u32, 4u64);
    let launched = launch(
        function(module, "k"),
        [1; 3],
        [1; 3],
        0,
        null_mut(),
        &mut params![out, a, b, c, d],
    );
    assert_eq!(launched, hipError_t::hipSuccess);
    assert_eq!(download::<f32>(out, 2), [0.2, 15.1]);
    ok!(hipFree(out));
    ok!(hipModuleUnload(module));
}
