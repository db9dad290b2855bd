//! Modules, kernels, HIPRTC and devices.

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;

use hip_sys::{hipFunction_attribute, hipJitOption, hiprtcProgram, hiprtcResult};

use crate::world::{World, call, pick, slot};

const SOURCE: &CStr = c"
__device__ int kept = 3;
extern \"C\" __global__ void nothing() {}
extern \"C\" __global__ void put(unsigned* out, unsigned value) { if (out) out[0] = value; }
";

macro_rules! rtc {
    ($world:ident.$function:ident($($argument:expr),* $(,)?)) => {
        match $world.rtc.as_ref().and_then(|rtc| rtc.$function) {
            // SAFETY: living programs, or what the function promises to refuse.
            Some(function) => unsafe { function($($argument),*) },
            None => hiprtcResult(9999),
        }
    };
}

pub fn step(w: &mut World) {
    match w.random.below(16) {
        0..=2 => load(w),
        3..=4 => function(w),
        5 => global(w),
        6..=9 => launch(w),
        10 => facts(w),
        11 => unload(w),
        12 => program(w),
        13 => link(w),
        14 => device(w),
        _ => registered(w),
    }
}

/// The module's code, compiled once a process.
fn code(w: &mut World) -> Option<Vec<u8>> {
    if let Some(code) = &w.code {
        return Some(code.clone());
    }
    let mut program: hiprtcProgram = null_mut();
    let none = null_mut();
    let _ = rtc!(w.hiprtcCreateProgram(&mut program, SOURCE.as_ptr(), c"s".as_ptr(), 0, none, null_mut()));
    let _ = rtc!(w.hiprtcCompileProgram(program, 0, null_mut()));
    let mut size = 0;
    let _ = rtc!(w.hiprtcGetCodeSize(program, &mut size));
    let mut code = vec![0; size.max(1)];
    let done = rtc!(w.hiprtcGetCode(program, code.as_mut_ptr().cast()));
    let _ = rtc!(w.hiprtcDestroyProgram(&mut program));
    if done != hiprtcResult::HIPRTC_SUCCESS {
        return None;
    }
    w.code = Some(code.clone());
    Some(code)
}

fn load(w: &mut World) {
    let Some(code) = code(w) else {
        return;
    };
    let mut module = null_mut();
    let done = match w.random.below(8) {
        0 => {
            w.about("hipModuleLoadData", "nonsense");
            let nonsense = c"abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz";
            call!(w.hipModuleLoadData(&mut module, nonsense.as_ptr().cast()))
        }
        1 => {
            let path = w.random.of(&[c"", c"/nowhere", c"/etc/passwd"]);
            w.about("hipModuleLoad", format!("{path:?}"));
            call!(w.hipModuleLoad(&mut module, path.as_ptr()))
        }
        2 => {
            w.about("hipModuleLoadData", "null");
            call!(w.hipModuleLoadData(&mut module, std::ptr::null()))
        }
        3 => {
            w.about("hipModuleLoadDataEx", "code");
            let options: *mut hipJitOption = null_mut();
            call!(w.hipModuleLoadDataEx(&mut module, code.as_ptr().cast(), 0, options, null_mut()))
        }
        _ => {
            w.about("hipModuleLoadData", "code");
            call!(w.hipModuleLoadData(&mut module, code.as_ptr().cast()))
        }
    };
    w.answered(done);
    let mut new = slot(module, 0);
    new.gone = module.is_null() || done != hip_sys::hipError_t::hipSuccess;
    w.modules.push(new);
}

fn function(w: &mut World) {
    let Some(at) = pick(&mut w.random, &w.modules, false) else {
        return load(w);
    };
    let name = w
        .random
        .of(&[c"put", c"nothing", c"put", c"nothing", c"none", c"", c"kept"]);
    let mut function = null_mut();
    w.about("hipModuleGetFunction", format!("{name:?}"));
    let code = call!(w.hipModuleGetFunction(&mut function, w.modules[at].handle, name.as_ptr()));
    w.answered(code);
    let made = code == hip_sys::hipError_t::hipSuccess;
    // A place's note: twice the module, and one more for a kernel with arguments.
    let mut new = slot(function, 2 * at + usize::from(name == c"put"));
    new.gone = !made;
    w.functions.push(new);
}

fn global(w: &mut World) {
    let Some(at) = pick(&mut w.random, &w.modules, false) else {
        return;
    };
    let name = w.random.of(&[c"kept", c"kept", c"none", c""]);
    let (mut p, mut bytes) = (null_mut(), 0);
    w.about("hipModuleGetGlobal", format!("{name:?}"));
    let module = w.modules[at].handle;
    let code = call!(w.hipModuleGetGlobal(&mut p, &mut bytes, module, name.as_ptr()));
    w.told(code, bytes);
}

fn launch(w: &mut World) {
    let Some(at) = pick(&mut w.random, &w.functions, false) else {
        return function(w);
    };
    let has_arguments = w.functions[at].note % 2 == 1;
    let kernel = w.functions[at].handle;
    let grid = w.random.of(&[[1, 1, 1], [2, 1, 1], [0, 1, 1], [1, 2, 3], [1, 0, 1]]);
    let block = w.random.of(&[
        [1, 1, 1],
        [64, 1, 1],
        [1024, 1, 1],
        [1025, 1, 1],
        [32, 32, 2],
        [0, 1, 1],
        [8, 8, 1],
    ]);
    let shared = w.random.of(&[0, 0, 0, 1024, 65536, 65537]);
    let (_, stream, stream_name) = w.stream();
    let mut out: *mut c_void = null_mut();
    let mut value = 5u32;
    let mut list = [(&raw mut out).cast::<c_void>(), (&raw mut value).cast()];
    let none = has_arguments && w.random.once_in(10);
    let list = if has_arguments && !none {
        list.as_mut_ptr()
    } else {
        null_mut()
    };
    w.about(
        "hipModuleLaunchKernel",
        format!(
            "{}, {grid:?}, {block:?}, {shared}, {stream_name}{}",
            if has_arguments { "put" } else { "nothing" },
            if none { ", null" } else { "" }
        ),
    );
    let code = call!(w.hipModuleLaunchKernel(
        kernel,
        grid[0],
        grid[1],
        grid[2],
        block[0],
        block[1],
        block[2],
        shared,
        stream,
        list,
        null_mut()
    ));
    w.answered(code);
}

fn facts(w: &mut World) {
    let Some(at) = pick(&mut w.random, &w.functions, false) else {
        return;
    };
    let kernel = w.functions[at].handle;
    let (mut value, mut other) = (77, 77);
    match w.random.below(3) {
        0 => {
            let attribute = w.random.of(&[0, 1, 2, 3, 7, 8, 10, 99]);
            w.about("hipFuncGetAttribute", attribute);
            let code = call!(w.hipFuncGetAttribute(&mut value, hipFunction_attribute(attribute), kernel));
            // The numbers are of the compiler and the processor.
            w.answered(code);
        }
        1 => {
            let threads = w.random.of(&[64, 256, 1024, 0, -1, 2048]);
            let shared = w.random.of(&[0, 0, 1024, 65537]);
            w.about(
                "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor",
                format!("{threads}, {shared}"),
            );
            let code = call!(w.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&mut value, kernel, threads, shared));
            w.answered(code);
        }
        _ => {
            let limit = w.random.of(&[0, 64, 32, 100, -1]);
            w.about("hipModuleOccupancyMaxPotentialBlockSize", limit);
            let code = call!(w.hipModuleOccupancyMaxPotentialBlockSize(&mut value, &mut other, kernel, 0, limit));
            w.told(code, other);
        }
    }
}

fn unload(w: &mut World) {
    if w.is_capturing() {
        return;
    }
    let Some(at) = pick(&mut w.random, &w.modules, false) else {
        return;
    };
    let _ = call!(w.hipDeviceSynchronize());
    w.about("hipModuleUnload", "");
    let code = call!(w.hipModuleUnload(w.modules[at].handle));
    w.answered(code);
    w.modules[at].gone = true;
    for function in &mut w.functions {
        function.gone |= function.note / 2 == at;
    }
}

fn program(w: &mut World) {
    let mut program: hiprtcProgram = null_mut();
    let (source, name) = w.random.of(&[
        (c"extern \"C\" __global__ void k() {}", "k"),
        (c"this is no source", "bad"),
        (c"", "empty"),
    ]);
    let none = null_mut();
    w.about("hiprtcCreateProgram", name);
    let code = rtc!(w.hiprtcCreateProgram(&mut program, source.as_ptr(), c"s".as_ptr(), 0, none, null_mut()));
    w.answered(hip_sys::hipError_t(code.0));
    if program.is_null() {
        return;
    }
    let mut size = 0;
    if w.random.once_in(3) {
        w.about("hiprtcGetCodeSize", "before");
        let code = rtc!(w.hiprtcGetCodeSize(program, &mut size));
        w.answered(hip_sys::hipError_t(code.0));
    }
    // Compilation is slow under an emulator, so it is rare.
    if w.random.once_in(3) {
        let option = w.random.of(&[c"-O2", c"-std=c++17", c"--no-such-option"]);
        let mut options = [option.as_ptr()];
        w.about("hiprtcCompileProgram", format!("{name}, {option:?}"));
        let code = rtc!(w.hiprtcCompileProgram(program, 1, options.as_mut_ptr()));
        w.answered(hip_sys::hipError_t(code.0));
        w.about("hiprtcGetBitcodeSize", name);
        let code = rtc!(w.hiprtcGetBitcodeSize(program, &mut size));
        w.answered(hip_sys::hipError_t(code.0));
        w.about("hiprtcAddNameExpression", "after");
        let code = rtc!(w.hiprtcAddNameExpression(program, c"&kept".as_ptr()));
        w.answered(hip_sys::hipError_t(code.0));
    }
    w.about("hiprtcDestroyProgram", "");
    let code = rtc!(w.hiprtcDestroyProgram(&mut program));
    w.told(
        hip_sys::hipError_t(code.0),
        if program.is_null() { "null" } else { "kept" },
    );
}

fn link(w: &mut World) {
    let mut state = null_mut();
    w.about("hiprtcLinkCreate", "0");
    let code = rtc!(w.hiprtcLinkCreate(0, null_mut(), null_mut(), &mut state));
    w.answered(hip_sys::hipError_t(code.0));
    if state.is_null() {
        return;
    }
    let kind = w.random.of(&[
        hip_sys::hipJitInputType::hipJitInputPtx,
        hip_sys::hipJitInputType::hipJitInputLLVMBitcode,
    ]);
    let bytes = w.random.of(&[0, 16]);
    let mut image = [0u64; 2];
    if bytes == 0 || kind == hip_sys::hipJitInputType::hipJitInputPtx {
        w.about("hiprtcLinkAddData", format!("{}, {bytes}", kind.0));
        let image = image.as_mut_ptr().cast();
        let code = rtc!(w.hiprtcLinkAddData(state, kind, image, bytes, c"n".as_ptr(), 0, null_mut(), null_mut()));
        w.answered(hip_sys::hipError_t(code.0));
    }
    w.about("hiprtcLinkDestroy", "");
    let code = rtc!(w.hiprtcLinkDestroy(state));
    w.answered(hip_sys::hipError_t(code.0));
}

fn device(w: &mut World) {
    let mut value = 77;
    match w.random.below(8) {
        0 => {
            let attribute = w.random.below(100) as u32;
            let attribute = w.random.of(&[attribute, attribute + 9950]);
            w.about("hipDeviceGetAttribute", attribute);
            let attribute = hip_sys::hipDeviceAttribute_t(attribute);
            let code = call!(w.hipDeviceGetAttribute(&mut value, attribute, 0));
            w.answered(code);
        }
        1 => {
            let flags = w.random.of(&[0, 1, 2, 4, 8, 0x10, 0x18, 3, 0x80]);
            w.about("hipSetDeviceFlags", format!("{flags:#x}"));
            let code = call!(w.hipSetDeviceFlags(flags));
            w.answered(code);
            let mut told = 77;
            w.about("hipGetDeviceFlags", "");
            let code = call!(w.hipGetDeviceFlags(&mut told));
            w.told(code, format!("{told:#x}"));
            let _ = call!(w.hipSetDeviceFlags(0));
        }
        2 => {
            let limit = w.random.of(&[0, 1, 2, 3, 0x1000, 0x1003, 0xffff]);
            let mut size = 0;
            w.about("hipDeviceGetLimit", format!("{limit:#x}"));
            let code = call!(w.hipDeviceGetLimit(&mut size, hip_sys::hipLimit_t(limit)));
            w.answered(code);
        }
        3 => {
            let (first, second) = (w.random.of(&[0, 0, 1, -1]), w.random.of(&[0, 1, 5]));
            w.about("hipDeviceCanAccessPeer", format!("{first}, {second}"));
            let code = call!(w.hipDeviceCanAccessPeer(&mut value, first, second));
            w.told(code, value);
        }
        4 => {
            let device = w.random.of(&[0, 0, 1, -1]);
            w.about("hipSetDevice", device);
            let code = call!(w.hipSetDevice(device));
            w.answered(code);
        }
        5 => {
            let config = w.random.of(&[0, 1, 2, 3, 9]);
            w.about("hipDeviceSetCacheConfig", config);
            let code = call!(w.hipDeviceSetCacheConfig(hip_sys::hipFuncCache_t(config)));
            w.answered(code);
        }
        6 => {
            let mut context = null_mut();
            w.about("hipCtxGetCurrent", "");
            let code = call!(w.hipCtxGetCurrent(&mut context));
            w.told(code, if context.is_null() { "null" } else { "one" });
        }
        _ => {
            let (mut flags, mut active) = (77, 77);
            let device = w.random.of(&[0, 0, 5]);
            w.about("hipDevicePrimaryCtxGetState", device);
            let code = call!(w.hipDevicePrimaryCtxGetState(device, &mut flags, &mut active));
            w.told(code, flags);
        }
    }
}

fn registered(w: &mut World) {
    static VARIABLE: u32 = 0;
    let address = (&raw const VARIABLE).cast::<c_void>();
    let mut size = 0;
    match w.random.below(3) {
        0 => {
            w.about("hipGetSymbolSize", "unknown");
            let code = call!(w.hipGetSymbolSize(&mut size, address));
            w.answered(code);
        }
        1 => {
            let mut attributes = hip_sys::hipFuncAttributes::default();
            w.about("hipFuncGetAttributes", "unknown");
            let code = call!(w.hipFuncGetAttributes(&mut attributes, address));
            w.answered(code);
        }
        _ => {
            let config = w.random.of(&[0, 1, 9]);
            w.about("hipFuncSetCacheConfig", format!("unknown, {config}"));
            let code = call!(w.hipFuncSetCacheConfig(address, hip_sys::hipFuncCache_t(config)));
            w.answered(code);
        }
    }
}
