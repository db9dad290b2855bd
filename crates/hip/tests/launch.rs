//! Kernels: compiling, launching, and what is refused before HIP sees it.

mod common;

use std::cell::RefCell;
use std::rc::Rc;

use common::{Gate, device, watch, watched_device};
use hip::rtc::Program;
use hip::{Device, Error, LaunchConfig, Module};
use num_complex::Complex;

const FILL: &str = r#"
extern "C" __global__ void fill(unsigned *out, unsigned value, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = value;
}
"#;

fn fill(device: &Device) -> Module {
    Program::new(FILL).name("fill.hip").compile(device).unwrap()
}

#[test]
fn a_kernel_gets_its_arguments_in_order_and_as_they_are() {
    let device = device();
    let stream = device.stream().unwrap();
    let source = r#"
        extern "C" __global__ void all(double *out, const float *in, signed char a, unsigned char b, short c, unsigned short d,
                                       int e, unsigned f, long long g, unsigned long long h, float i, double j,
                                       float2 k, double2 l) {
            double values[] = {in[0], (double)a, (double)b, (double)c, (double)d, (double)e, (double)f, (double)g, (double)h,
                               i, j, k.x, k.y, l.x, l.y};
            out[threadIdx.x] = values[threadIdx.x];
        }
    "#;
    let all = Program::new(source).compile(&device).unwrap().function("all").unwrap();
    let input = device.alloc_from(&stream, &[0.5_f32]).unwrap();
    let mut output = device.alloc_zeroed::<f64>(15).unwrap();
    let out = output.on_mut(&stream).unwrap();
    let config = LaunchConfig {
        grid: (1, 1, 1),
        block: (15, 1, 1),
        shared_bytes: 0,
    };
    // SAFETY: the arguments are those of the kernel's parameters, and 15 threads write 15 values.
    unsafe {
        all.launch(
            &stream,
            config,
            &[
                &out,
                &input.on(&stream).unwrap(),
                &-1_i8,
                &255_u8,
                &-300_i16,
                &65_000_u16,
                &-100_000_i32,
                &4_000_000_000_u32,
                &-(1_i64 << 40),
                &(1_u64 << 52),
                &1.25_f32,
                &-2.5_f64,
                &Complex::new(3.0_f32, 4.0),
                &Complex::new(5.0_f64, 6.0),
            ],
        )
    }
    .unwrap();
    let mut seen = [0.0; 15];
    output.copy_to_slice(&stream, &mut seen).unwrap();
    let expected = [
        0.5,
        -1.0,
        255.0,
        -300.0,
        65_000.0,
        -100_000.0,
        4e9,
        -1_099_511_627_776.0,
        4_503_599_627_370_496.0,
        1.25,
        -2.5,
        3.0,
        4.0,
        5.0,
        6.0,
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_linear_launch_reaches_every_item_once() {
    let device = device();
    let stream = device.stream().unwrap();
    let source = r#"
        extern "C" __global__ void count(unsigned *out, unsigned n) {
            unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) atomicAdd(&out[i], i + 1);
        }
    "#;
    let count = Program::new(source)
        .compile(&device)
        .unwrap()
        .function("count")
        .unwrap();
    for items in [1, 63, 64, 65, 1000, 4096] {
        let mut output = device.alloc_zeroed::<u32>(items).unwrap();
        let out = output.on_mut(&stream).unwrap();
        // SAFETY: the arguments are those of the kernel's parameters, and it stays below `items`.
        unsafe {
            count.launch(
                &stream,
                LaunchConfig::linear(items, 64).unwrap(),
                &[&out, &(items as u32)],
            )
        }
        .unwrap();
        let mut seen = vec![0; items];
        output.copy_to_slice(&stream, &mut seen).unwrap();
        assert!(seen.iter().enumerate().all(|(i, &x)| x as usize == i + 1), "{items}");
    }
}

#[test]
fn a_kernel_reads_shared_memory_of_the_size_asked_for() {
    let device = device();
    let stream = device.stream().unwrap();
    let source = r#"
        extern "C" __global__ void reverse(int *data) {
            extern __shared__ int part[];
            part[threadIdx.x] = data[threadIdx.x];
            __syncthreads();
            data[threadIdx.x] = part[blockDim.x - 1 - threadIdx.x];
        }
    "#;
    let reverse = Program::new(source)
        .compile(&device)
        .unwrap()
        .function("reverse")
        .unwrap();
    let values: Vec<i32> = (0..256).collect();
    let mut buffer = device.alloc_from(&stream, &values).unwrap();
    let config = LaunchConfig {
        grid: (1, 1, 1),
        block: (256, 1, 1),
        shared_bytes: 1024,
    };
    // SAFETY: one block of 256 threads on 256 elements, with shared memory for as many.
    unsafe { reverse.launch(&stream, config, &[&buffer.on_mut(&stream).unwrap()]) }.unwrap();
    let mut seen = vec![0; 256];
    buffer.copy_to_slice(&stream, &mut seen).unwrap();
    assert!(seen.iter().eq(values.iter().rev()));
}

#[test]
fn a_slice_of_another_stream_is_refused() {
    let device = device();
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let fill = fill(&device).function("fill").unwrap();
    let mut buffer = device.alloc_zeroed::<u32>(4).unwrap();
    let out = buffer.on_mut(&other).unwrap();
    // SAFETY: the arguments are those of the kernel's parameters.
    let error =
        unsafe { fill.launch(&stream, LaunchConfig::linear(4, 4).unwrap(), &[&out, &7_u32, &4_u32]) }.unwrap_err();
    assert!(matches!(error, Error::WrongStream { .. }));
    assert_eq!(
        error.to_string(),
        "Function::launch: argument 0 of `fill` was taken for another stream; take it with `on` or `on_mut` of the stream that uses it"
    );
    let mut seen = [0; 4];
    buffer.copy_to_slice(&other, &mut seen).unwrap();
    assert_eq!(seen, [0; 4]);
}

#[test]
fn a_stream_of_another_device_is_refused() {
    let device = device();
    let fill = fill(&device).function("fill").unwrap();
    let elsewhere = common::device();
    let stream = elsewhere.stream().unwrap();
    // SAFETY: nothing is launched.
    let error = unsafe { fill.launch(&stream, LaunchConfig::linear(4, 4).unwrap(), &[]) }.unwrap_err();
    assert!(matches!(error, Error::WrongDevice { .. }), "{error}");
}

#[test]
fn impossible_grids_are_refused_with_the_limit() {
    let device = device();
    let stream = device.stream().unwrap();
    let fill = fill(&device).function("fill").unwrap();
    let good = LaunchConfig {
        grid: (1, 1, 1),
        block: (64, 1, 1),
        shared_bytes: 0,
    };
    for config in [
        LaunchConfig {
            grid: (0, 1, 1),
            ..good
        },
        LaunchConfig {
            grid: (1, 0, 1),
            ..good
        },
        LaunchConfig {
            block: (0, 1, 1),
            ..good
        },
        LaunchConfig {
            block: (1, 1, 0),
            ..good
        },
        LaunchConfig {
            block: (1 << 20, 1, 1),
            ..good
        },
        LaunchConfig {
            block: (1024, 2, 1),
            ..good
        },
        LaunchConfig {
            grid: (1 << 27, 1, 1),
            ..good
        },
        LaunchConfig {
            shared_bytes: 1 << 30,
            ..good
        },
    ] {
        // SAFETY: nothing is launched.
        let error = unsafe { fill.launch(&stream, config, &[]) }.unwrap_err();
        assert!(matches!(error, Error::Launch { .. }), "{error}");
        assert!(error.to_string().starts_with("cannot launch `fill`: "), "{error}");
    }
}

#[test]
fn code_is_unloaded_after_its_last_kernel() {
    let device = watched_device();
    let stream = device.stream().unwrap();
    let function = fill(&device).function("fill").unwrap();
    let mut buffer = device.alloc_zeroed::<u32>(4).unwrap();
    let gate = Gate::close(&stream);
    let out = buffer.on_mut(&stream).unwrap();
    // SAFETY: the arguments are those of the kernel's parameters.
    unsafe { function.launch(&stream, LaunchConfig::linear(4, 4).unwrap(), &[&out, &7_u32, &4_u32]) }.unwrap();
    let found_idle = Rc::new(RefCell::new(Vec::new()));
    let (noted, watched) = (found_idle.clone(), stream.clone());
    watch(move |name| {
        if name == "hipModuleUnload" {
            noted.borrow_mut().push(watched.is_idle().unwrap());
        }
        if name == "hipModuleUnload" || name == "hipStreamSynchronize" {
            gate.open();
        }
    });
    drop(function);
    common::unwatch();
    assert_eq!(*found_idle.borrow(), [true]);
    let mut seen = [0; 4];
    buffer.copy_to_slice(&stream, &mut seen).unwrap();
    assert_eq!(seen, [7; 4]);
}

#[test]
fn a_module_keeps_no_stream_that_is_done_with_it() {
    let device = watched_device();
    let module = fill(&device);
    let function = module.function("fill").unwrap();
    let destroyed = Rc::new(RefCell::new(0));
    let counted = destroyed.clone();
    watch(move |name| *counted.borrow_mut() += i32::from(name == "hipStreamDestroy"));
    for _ in 0..10 {
        let stream = device.stream().unwrap();
        let mut buffer = device.alloc_zeroed::<u32>(4).unwrap();
        let out = buffer.on_mut(&stream).unwrap();
        // SAFETY: the arguments are those of the kernel's parameters.
        unsafe { function.launch(&stream, LaunchConfig::linear(4, 4).unwrap(), &[&out, &7_u32, &4_u32]) }.unwrap();
        stream.synchronize().unwrap();
    }
    assert!(
        *destroyed.borrow() >= 9,
        "{} of 10 streams destroyed",
        destroyed.borrow()
    );
    common::unwatch();
}

#[test]
fn the_compilers_words_are_in_the_error() {
    let device = device();
    let source = "extern \"C\" __global__ void f(int *x) {\n    x[0] = undeclared_thing;\n}\n";
    let error = Program::new(source).name("words.hip").compile(&device).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("compiling `words.hip` for ") && text.contains("undeclared_thing"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1, "{text}");
    let Error::Compile { log, first, .. } = error else {
        panic!("{text}")
    };
    assert!(log.contains(&first));
}

#[test]
fn options_and_headers_reach_the_compiler() {
    let device = device();
    let stream = device.stream().unwrap();
    let source = "#include \"three.h\"\nextern \"C\" __global__ void f(int *x) { x[0] = THREE * FACTOR; }";
    let module = Program::new(source)
        .header("three.h", "#define THREE 3\n")
        .option("-DFACTOR=14")
        .compile(&device)
        .unwrap();
    let mut buffer = device.alloc_zeroed::<i32>(1).unwrap();
    let out = buffer.on_mut(&stream).unwrap();
    // SAFETY: one thread writes one element.
    unsafe {
        module
            .function("f")
            .unwrap()
            .launch(&stream, LaunchConfig::linear(1, 1).unwrap(), &[&out])
    }
    .unwrap();
    let mut seen = [0];
    buffer.copy_to_slice(&stream, &mut seen).unwrap();
    assert_eq!(seen, [42]);
}

#[test]
fn the_architecture_cannot_be_overridden() {
    let device = device();
    for option in ["--offload-arch=gfx0", "--gpu-architecture=gfx908", "-arch=sm_90"] {
        let error = Program::new(FILL).option(option).compile(&device).unwrap_err();
        assert!(matches!(error, Error::CompilerOption { .. }), "{error}");
    }
}

#[test]
fn options_that_load_code_into_the_compiler_are_refused() {
    let device = device();
    for options in [
        &["-fplugin=/tmp/x.so"][..],
        &["-fpass-plugin=/tmp/x.so"],
        &["-Xclang", "-load", "-Xclang", "/tmp/x.so"],
        &["-load", "/tmp/x.so"],
        &["--config=/tmp/x.cfg"],
        &["--config", "/tmp/x.cfg"],
        &["@/tmp/options"],
        &["-O2 -fplugin=/tmp/x.so"],
        &["\"-fplugin=/tmp/x.so\""],
        &["-mllvm", "-load=/tmp/x.so"],
        &["-Wl,-plugin,/tmp/x.so"],
        &["-B/tmp"],
        &["--plugin=/tmp/x.so"],
        &["-DA", "-specs=/tmp/x"],
        &["-fmodules-ts", "-fmodule-mapper=|/tmp/x"],
        &["--driver-mode=cl", "/clang:-fplugin=/tmp/x.so"],
        &["/clang:-fplugin=/tmp/x.so"],
    ] {
        let program = options
            .iter()
            .fold(Program::new(FILL), |program, option| program.option(option));
        let error = program.compile(&device).unwrap_err();
        assert!(matches!(error, Error::CompilerOption { .. }), "{options:?}: {error}");
    }
}

#[test]
fn texts_with_a_nul_are_refused() {
    let device = device();
    for program in [
        Program::new("a\0b"),
        Program::new(FILL).name("x\0"),
        Program::new(FILL).option("-D\0"),
        Program::new(FILL).header("\0", ""),
        Program::new(FILL).header("a", "\0"),
    ] {
        let error = program.compile(&device).unwrap_err();
        assert!(matches!(error, Error::NulByte { .. }), "{error}");
    }
    assert!(matches!(
        fill(&device).function("fi\0ll"),
        Err(Error::NulByte { position: 2, .. })
    ));
}

#[test]
fn an_unknown_kernel_is_named_with_a_hint() {
    let error = fill(&device()).function("fil").unwrap_err().to_string();
    assert!(
        error.starts_with("`hipModuleGetFunction(\"fil\")` failed: hipErrorNotFound (500); check the name"),
        "{error}"
    );
}

#[test]
fn no_compiler_is_an_error_that_says_what_to_install() {
    // SAFETY: the host platform's own functions.
    let runtime = unsafe { hip::Runtime::from_tables(common::hip_api().into(), None) }.unwrap();
    let error = Program::new(FILL)
        .name("a.hip")
        .compile(&runtime.device(0).unwrap())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot compile `a.hip`: no HIPRTC library is loaded; install hiprtc of the same ROCm release as HIP"
    );
}

#[test]
fn a_header_without_a_character_is_a_header() {
    let device = device();
    Program::new("#include \"nothing.h\"\nextern \"C\" __global__ void k() {}")
        .header("nothing.h", "")
        .compile(&device)
        .unwrap();
}
