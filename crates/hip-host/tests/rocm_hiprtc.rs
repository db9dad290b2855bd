//! What HIPRTC of ROCm takes and answers beyond plain kernels.

mod common;

use std::ffi::c_void;
use std::ptr::null_mut;

use common::*;
use hip_sys::{hipJitInputType, hiprtcProgram, hiprtcResult};

const INVALID: hiprtcResult = hiprtcResult::HIPRTC_ERROR_INVALID_INPUT;

/// Runs `body` once, with `out` for 16 results of the type `T`.
fn results<T: Copy + Default>(ty: &str, body: &str) -> Vec<T> {
    let source = format!(
        "#include <hip/hip_bfloat16.h>\n#include <hip/hip_math_constants.h>\n#include <hip/hip_complex.h>\n\
         extern \"C\" __global__ void k({ty}* out) {{\n{body}\n}}\n"
    );
    let module = load(&compile(&source));
    let out = upload(&[T::default(); 16]);
    let mut params = params![out];
    let launched = launch(function(module, "k"), [1; 3], [1; 3], 0, null_mut(), &mut params);
    assert_eq!(launched, OK);
    let results = download(out, 16);
    ok!(hipFree(out));
    ok!(hipModuleUnload(module));
    results
}

#[test]
fn bfloat16_rounds_to_the_nearest_even_and_counts_in_float() {
    let bits: Vec<u16> = results(
        "unsigned short",
        r#"
        // 1 + 2^-8 lies between two; so does 1 + 3 * 2^-8.
        out[0] = hip_bfloat16(1.0f).data;
        out[1] = hip_bfloat16(1.00390625f).data;
        out[2] = hip_bfloat16(1.01171875f).data;
        out[3] = hip_bfloat16(1.01171875f, hip_bfloat16::truncate).data;
        out[4] = isnan(hip_bfloat16(HIP_NAN_F));
        out[5] = isinf(hip_bfloat16(3.4e38f)) || iszero(hip_bfloat16(1.0f));
        hip_bfloat16 a(1.5f), b(2.0f);
        a += b;
        ++a;
        out[6] = a.data;
        out[7] = (-a * b / b - b < b) + 2 * (a == hip_bfloat16(4.5f)) + 4 * (a != b) + 8 * (a >= b);
        hip_bfloat16 c;
        c = 2.5f;
        out[8] = (unsigned short)(float)c;
        "#,
    );
    let of = |f: f32| (f.to_bits() >> 16) as u16;
    let expected = [0x3f80, 0x3f80, 0x3f82, 0x3f81, 1, 1, of(4.5), 15, 2];
    assert_eq!(bits[..9], expected);
}

#[test]
fn constants_are_the_nearest_numbers() {
    let values: Vec<f64> = results(
        "double",
        r#"
        out[0] = HIP_PI; out[1] = HIP_LN2; out[2] = HIP_SQRT_TWO; out[3] = HIP_L2E; out[4] = HIP_2_OVER_PI;
        out[5] = HIP_PI_F; out[6] = HIP_SQRT_HALF_F; out[7] = HIP_INF_F; out[8] = HIP_NAN; out[9] = HIP_MIN_DENORM;
        out[10] = HIP_MAX_NORMAL_F; out[11] = HIP_PI_LO; out[12] = HIP_LG2; out[13] = HIP_NEG_ZERO; out[14] = HIP_TWO_TO_52;
        "#,
    );
    use std::f64::consts as c;
    let exact = [c::PI, c::LN_2, c::SQRT_2, c::LOG2_E, c::FRAC_2_PI];
    assert_eq!(values[..5], exact);
    let single = [std::f32::consts::PI, std::f32::consts::FRAC_1_SQRT_2, f32::INFINITY];
    assert_eq!(values[5..8], single.map(f64::from));
    assert!(values[8].is_nan());
    assert_eq!(values[9], f64::from_bits(1));
    assert_eq!(values[10], f64::from(f32::MAX));
    assert!((values[11] - 1.2246e-16).abs() < 1e-19);
    assert_eq!(values[12], c::LOG10_2);
    assert!(values[13] == 0.0 && values[13].is_sign_negative());
    assert_eq!(values[14], 4503599627370496.0);
}

#[test]
fn vectors_take_one_value_and_every_operator_of_their_numbers() {
    let values: Vec<f32> = results(
        "float",
        r#"
        float4 f(2.0f);
        f += 1;
        f = 2.0f * f - float4{1, 2, 3, 4};
        out[0] = f.x; out[1] = f.w;
        int4 i(5);
        i <<= 1;
        i = (i | int4(1)) & 0xf;
        i %= 4;
        ++i;
        out[2] = i.y; out[3] = (~i).z;
        float1 one = 3.0f;
        one += one;
        out[4] = one.x;
        uint3 u{1u, 2u, 3u};
        dim3 d(u);
        out[5] = d.z + (u == uint3{1u, 2u, 3u}) + (u != u);
        double2 z = hipComplexFloatToDouble(make_hipComplex(1.5f, -2.5f));
        hipFloatComplex back = hipComplexDoubleToFloat(z);
        out[6] = back.x; out[7] = back.y;
        ptrdiff_t difference = &out[7] - &out[0];
        out[8] = difference;
        float3 zero{};
        out[9] = zero.x + zero.y + zero.z;
        short2 s(7, 8);
        out[10] = (s >> 1).y + (s--).x + s.x;
        "#,
    );
    let expected = [5.0, 2.0, 4.0, -5.0, 6.0, 4.0, 1.5, -2.5, 7.0, 0.0, 17.0];
    assert_eq!(values[..11], expected);
}

#[test]
fn there_is_no_bitcode_to_take() {
    let mut program: hiprtcProgram = null_mut();
    let source = c"extern \"C\" __global__ void k() {}";
    let none = null_mut();
    let created = rtc!(hiprtcCreateProgram(
        &mut program,
        source.as_ptr(),
        c"k".as_ptr(),
        0,
        none,
        null_mut()
    ));
    assert_eq!(created, hiprtcResult::HIPRTC_SUCCESS);
    let (mut size, mut byte) = (9, 0);
    let without = hiprtcResult::HIPRTC_ERROR_INVALID_PROGRAM;
    assert_eq!(rtc!(hiprtcGetBitcodeSize(program, &mut size)), without);
    assert_eq!(rtc!(hiprtcGetBitcodeSize(program, null_mut())), INVALID);
    assert_eq!(rtc!(hiprtcGetBitcode(program, &mut byte)), without);
    assert_eq!(rtc!(hiprtcGetBitcode(program, null_mut())), INVALID);
    assert_eq!(size, 9);
    assert_eq!(rtc!(hiprtcDestroyProgram(&mut program)), hiprtcResult::HIPRTC_SUCCESS);
}

#[test]
fn a_link_gives_its_one_input_back_and_joins_no_two() {
    let mut code = compile("extern \"C\" __global__ void put(int* out) { out[0] = 4; }");
    let mut state = null_mut();
    assert_eq!(rtc!(hiprtcLinkCreate(0, null_mut(), null_mut(), null_mut())), INVALID);
    assert_eq!(rtc!(hiprtcLinkCreate(1, null_mut(), null_mut(), &mut state)), INVALID);
    let created = rtc!(hiprtcLinkCreate(0, null_mut(), null_mut(), &mut state));
    assert_eq!(created, hiprtcResult::HIPRTC_SUCCESS);
    let bitcode = hipJitInputType::hipJitInputLLVMBitcode;
    let add = |kind, image: *mut c_void, bytes| {
        let name = c"k".as_ptr();
        rtc!(hiprtcLinkAddData(
            state,
            kind,
            image,
            bytes,
            name,
            0,
            null_mut(),
            null_mut()
        ))
    };
    let image = code.as_mut_ptr().cast();
    assert_eq!(add(bitcode, null_mut(), code.len()), INVALID);
    assert_eq!(add(bitcode, image, 0), INVALID);
    assert_eq!(add(hipJitInputType::hipJitInputPtx, image, code.len()), INVALID);
    assert_eq!(add(bitcode, c"nonsense".as_ptr().cast_mut().cast(), 8), INVALID);
    let file = rtc!(hiprtcLinkAddFile(
        state,
        bitcode,
        c"/nowhere".as_ptr(),
        0,
        null_mut(),
        null_mut()
    ));
    assert_eq!(file, hiprtcResult::HIPRTC_ERROR_PROGRAM_CREATION_FAILURE);
    let (mut linked, mut bytes) = (null_mut(), 0);
    let linking = hiprtcResult::HIPRTC_ERROR_LINKING;
    assert_eq!(rtc!(hiprtcLinkComplete(state, &mut linked, &mut bytes)), linking);
    assert_eq!(add(bitcode, image, code.len()), hiprtcResult::HIPRTC_SUCCESS);
    assert_eq!(rtc!(hiprtcLinkComplete(state, null_mut(), &mut bytes)), INVALID);
    let done = rtc!(hiprtcLinkComplete(state, &mut linked, &mut bytes));
    assert_eq!((done, bytes), (hiprtcResult::HIPRTC_SUCCESS, code.len()));
    let mut module = null_mut();
    ok!(hipModuleLoadData(&mut module, linked));
    let out = malloc(4);
    let mut params = params![out];
    assert_eq!(
        launch(function(module, "put"), [1; 3], [1; 3], 0, null_mut(), &mut params),
        OK
    );
    assert_eq!(download::<i32>(out, 1), [4]);
    ok!(hipModuleUnload(module));
    ok!(hipFree(out));
    assert_eq!(rtc!(hiprtcLinkDestroy(state)), hiprtcResult::HIPRTC_SUCCESS);
    assert_eq!(rtc!(hiprtcLinkDestroy(state)), INVALID);
}
