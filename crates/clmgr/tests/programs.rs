//! Programs from binaries, SPIR-V and files, and what their kernels tell.

mod common;

use std::fs;

use clmgr::{AddressSpace, Arg, Context, Error, NdRange, ObjectKind, Program, ProgramCache, RegularBuffer};

const SOURCE: &str = "
    constant int table[2] = { 10, 20 };
    kernel void fill(global int *out, const int by) {
        out[get_global_id(0)] = table[get_global_id(0) & 1] + by;
    }
    kernel void other(global const float4 *x, local float *room, constant uchar *c) {}";

/// What `fill` writes with the argument 3.
fn filled(context: &Context, program: &Program) -> Vec<i32> {
    let queue = context.queue().unwrap();
    let mut out = RegularBuffer::new(context, 4).unwrap();
    out.write(&queue, &[0i32; 4]).unwrap();
    let kernel = program.kernel("fill").unwrap();
    // SAFETY: four work-items on four elements.
    unsafe { kernel.launch(&queue, NdRange::d1(4), &[out.arg(), Arg::scalar(&3i32)]) }.unwrap();
    let mut result = vec![0; 4];
    out.read(&queue, &mut result).unwrap();
    result
}

#[test]
fn a_program_from_its_own_binary_does_the_same() {
    let context = common::context();
    let program = Program::build(&context, SOURCE, "").unwrap();
    assert_eq!(filled(&context, &program), [13, 23, 13, 23]);
    if !common::tells_code(&context) {
        return;
    }
    let binary = program.binary().unwrap();
    assert!(!binary.is_empty());
    // SAFETY: the driver has just made it.
    let again = unsafe { Program::from_binary(&context, &binary, "") }.unwrap();
    assert_eq!(again.kernel_names().unwrap(), ["fill", "other"]);
    assert_eq!(filled(&context, &again), [13, 23, 13, 23]);

    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [("p.cl", SOURCE.as_bytes()), ("p.bin", &binary)] {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        // SAFETY: the driver has made the binary.
        let read = unsafe { Program::from_file(&context, &path, "") }.unwrap();
        assert_eq!(filled(&context, &read), [13, 23, 13, 23], "{name}");
    }
}

#[test]
fn a_binary_that_is_none_and_a_file_that_is_not_there_are_refused() {
    let context = common::context();
    for wrong in [&b""[..], b"no device's code\0", &[0x7F, b'E', b'L', b'F', 0]] {
        // SAFETY: refused.
        let refused = unsafe { Program::from_binary(&context, wrong, "") };
        let error = refused.err().unwrap_or_else(|| panic!("{wrong:?} was taken"));
        assert!(!error.to_string().contains('\n'), "{error}");
    }
    let nowhere = tempfile::tempdir().unwrap().path().join("p.cl");
    // SAFETY: there is no such file.
    let error = unsafe { Program::from_file(&context, &nowhere, "") }.unwrap_err();
    assert!(
        matches!(&error, Error::File { path, .. } if *path == nowhere),
        "{error}"
    );
    let program = Program::build(&context, SOURCE, "").unwrap();
    assert_eq!(filled(&context, &program), [13, 23, 13, 23]);
}

/// `kernel void store(global uint *x) { *x = 7; }`, in the words of SPIR-V 1.0.
fn spirv() -> Vec<u8> {
    let name = |text: [u8; 4]| u32::from_le_bytes(text);
    let instruction = |opcode: u32, operands: &[u32]| {
        let mut words = vec![(operands.len() as u32 + 1) << 16 | opcode];
        words.extend(operands);
        words
    };
    let (function, void, uint, pointer, kind, seven, parameter, label) = (1, 2, 3, 4, 5, 6, 7, 8);
    let module = [
        vec![0x0723_0203, 0x0001_0000, 0, 9, 0],
        instruction(17, &[4]),    // OpCapability Addresses
        instruction(17, &[6]),    // OpCapability Kernel
        instruction(14, &[2, 2]), // OpMemoryModel Physical64 OpenCL
        instruction(15, &[6, function, name(*b"stor"), name(*b"e\0\0\0")]), // OpEntryPoint Kernel
        instruction(19, &[void]), // OpTypeVoid
        instruction(21, &[uint, 32, 0]), // OpTypeInt
        instruction(32, &[pointer, 5, uint]), // OpTypePointer CrossWorkgroup
        instruction(33, &[kind, void, pointer]), // OpTypeFunction
        instruction(43, &[uint, seven, 7]), // OpConstant
        instruction(54, &[void, function, 0, kind]), // OpFunction
        instruction(55, &[pointer, parameter]), // OpFunctionParameter
        instruction(248, &[label]), // OpLabel
        instruction(62, &[parameter, seven, 2, 4]), // OpStore Aligned 4
        instruction(253, &[]),    // OpReturn
        instruction(56, &[]),     // OpFunctionEnd
    ];
    module.concat().iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[test]
fn spirv_is_built_where_the_device_takes_it() {
    let context = common::context();
    let module = spirv();
    for wrong in [&b"kernel void f() {}"[..], &module[..module.len() - 1]] {
        // SAFETY: refused.
        let error = unsafe { Program::from_spirv(&context, wrong, "") }.unwrap_err();
        assert!(matches!(error, Error::NotSupported { .. }), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.spv");
    fs::write(&path, &module).unwrap();
    // SAFETY: the module is valid.
    let program = match unsafe { Program::from_file(&context, &path, "") } {
        Ok(program) => program,
        Err(Error::NotSupported { reason, .. }) => return common::skipped(&reason),
        Err(error) => panic!("{error}"),
    };
    let queue = context.queue().unwrap();
    let mut x = RegularBuffer::new(&context, 1).unwrap();
    x.write(&queue, &[0u32]).unwrap();
    let store = program.kernel("store").unwrap();
    // SAFETY: the kernel writes the one element.
    unsafe { store.launch(&queue, NdRange::d1(1), &[x.arg()]) }.unwrap();
    let mut seen = [0];
    x.read(&queue, &mut seen).unwrap();
    assert_eq!(seen, [7]);
}

#[test]
fn a_kernel_tells_its_parameters_and_needs() {
    let context = common::context();
    let program = Program::build(&context, SOURCE, "").unwrap();
    let info = program.kernel("other").unwrap().info().unwrap();
    assert_eq!(info.name, "other");
    let told: Vec<_> = info
        .parameters
        .iter()
        .map(|it| (it.name.as_deref(), it.address_space, it.is_const))
        .collect();
    assert_eq!(
        told,
        [
            (Some("x"), Some(AddressSpace::Global), Some(true)),
            (Some("room"), Some(AddressSpace::Local), Some(false)),
            (Some("c"), Some(AddressSpace::Constant), Some(true)),
        ]
    );
    assert!(info.max_work_group >= 1 && info.preferred_multiple >= 1);
    assert_eq!(info.required_work_group, None);
    assert!(info.objects().is_empty());
    let fill = program.kernel("fill").unwrap().info().unwrap();
    let by = &fill.parameters[1];
    assert_eq!(by.type_name.as_deref(), Some("int"));
    assert_eq!((by.address_space, by.size), (Some(AddressSpace::Private), Some(4)));

    let source = "kernel __attribute__((reqd_work_group_size(4, 2, 1))) void f(global int *x) {
            local int room[64];
            room[get_local_id(0)] = x[0];
            barrier(CLK_LOCAL_MEM_FENCE);
            x[get_global_id(0)] = room[3 - get_local_id(0)];
        }";
    let program = Program::build(&context, source, "").unwrap();
    let info = program.kernel("f").unwrap().info().unwrap();
    assert_eq!(info.required_work_group, Some([4, 2, 1]));
    let compiles_late = context.device().platform_name() == "Portable Computing Language" && info.local_bytes == 0;
    assert!(info.local_bytes >= 256 || compiles_late, "{info:?}");
}

#[test]
fn objects_other_than_buffers_are_told() {
    let context = common::context();
    let source = "kernel void f(read_only image2d_t image, sampler_t how, global float4 *out) {
            *out = read_imagef(image, how, (float2)(0.0f, 0.0f));
        }";
    let program = match Program::build(&context, source, "") {
        Ok(program) => program,
        Err(Error::Build(_)) => return common::skipped("the device has no images"),
        Err(error) => panic!("{error}"),
    };
    let info = program.kernel("f").unwrap().info().unwrap();
    assert_eq!(
        info.objects().into_iter().collect::<Vec<_>>(),
        [ObjectKind::Image, ObjectKind::Sampler]
    );
}

#[test]
fn global_ids_begin_at_the_offset() {
    let context = common::context();
    let queue = context.queue().unwrap();
    let source = "kernel void ids(global int *out) {
            size_t x = get_global_id(0), y = get_global_id(1);
            out[(y - get_global_offset(1)) * 4 + x - get_global_offset(0)] = 100 * y + x;
        }";
    let ids = Program::build(&context, source, "").unwrap().kernel("ids").unwrap();
    let mut out = RegularBuffer::new(&context, 8).unwrap();
    out.write(&queue, &[0i32; 8]).unwrap();
    let range = NdRange::d2(4, 2).with_offset([5, 7, 0]);
    // SAFETY: eight work-items on eight elements.
    unsafe { ids.launch(&queue, range, &[out.arg()]) }.unwrap();
    let mut seen = [0; 8];
    out.read(&queue, &mut seen).unwrap();
    assert_eq!(seen, [705, 706, 707, 708, 805, 806, 807, 808]);
}

#[test]
fn a_program_from_the_cache_tells_its_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let context = common::context();
    for _ in 0..2 {
        // SAFETY: only the cache writes there.
        let cache = unsafe { clmgr::ProgramCache::open_in(&context, folder.path()) };
        let program = cache.get(SOURCE, "").unwrap().with_parameters().unwrap();
        let info = program.kernel("fill").unwrap().info().unwrap();
        let spaces: Vec<_> = info.parameters.iter().map(|it| it.address_space).collect();
        assert_eq!(spaces, [Some(AddressSpace::Global), Some(AddressSpace::Private)]);
        assert_eq!(filled(&context, &program), [13, 23, 13, 23]);
    }
}

#[test]
fn options_that_load_code_into_the_compiler_are_refused() {
    let context = common::context();
    let option = |options: &str| {
        let error = Program::build(&context, SOURCE, options).unwrap_err();
        assert!(error.to_string().contains("into the process"), "{options}: {error}");
    };
    option("-fplugin=/tmp/x.so");
    option("-cl-mad-enable  \"-fpass-plugin=/tmp/x.so\"");
    option("-Xclang -load -Xclang /tmp/x.so");
    option("--config=/tmp/x.cfg");
    option("@/tmp/options");
    assert!(Program::build(&context, SOURCE, "-cl-mad-enable -DNAME=\"a\" -I /tmp").is_ok());
}

#[test]
fn code_that_would_run_without_a_launch_is_refused() {
    let context = common::context();
    let kernel = "kernel void k(global int *out) { out[0] = 1; }";
    for attribute in ["constructor", "destructor", "constructor(65535)"] {
        // A name put together by the preprocessor is no way past.
        let (start, end) = attribute.split_at(3);
        let source = format!(
            "#define JOINED(a, b) a##b\n\
             __attribute__((JOINED({start}, {end}))) void unlaunched(void) {{ *(volatile global int *)64 = 1; }}\n{kernel}"
        );
        let built = Program::build(&context, &source, "");
        if context.device().platform_name() == common::POCL {
            let program = built.expect("a program");
            // To look at the code would run the constructor.
            let error = program.binary().expect_err("no code");
            assert!(matches!(error, Error::NotSupported { .. }), "{attribute}: {error}");
            let cache = ProgramCache::open(&context);
            cache.get(&source, "").expect("a program");
            assert_eq!((cache.folder(), cache.stats().disk_trouble), (None, None));
            continue;
        }
        let error = built.expect_err(attribute);
        assert!(matches!(error, Error::Unlaunched { .. }), "{attribute}: {error}");
        assert!(!error.to_string().contains('\n'), "{error}");
    }
    Program::build(&context, &format!("constant char text[] = \".init\"; {kernel}"), "").expect("nothing to refuse");
}

#[test]
fn assembly_is_refused_where_the_driver_links_in_the_process() {
    let context = common::context();
    if context.device().platform_name() != "Intel(R) OpenCL" {
        return common::skipped("only Intel's CPU driver links in the process");
    }
    let define = "#define JOINED(a, b) a##b";
    let kernel = |statement: &str| format!("kernel void k(global int *x) {{ {statement}; x[0] = 1; }}");
    for word in ["asm", "__asm", "__asm__", "JOINED(__as, m__)"] {
        // A relocation that would be written 1 GiB behind the code.
        let relocation = kernel(&format!("{word} volatile(\".reloc 0x40000000, R_X86_64_64, .ltext\")"));
        let of_the_module = format!("{word}(\".section .foo\");\n{}", kernel(""));
        let undefined = format!("#undef asm\n#undef __asm__\n{relocation}");
        for text in [relocation, of_the_module, undefined].map(|text| format!("{define}\n{text}")) {
            let error = Program::build(&context, &text, "").expect_err(word).to_string();
            assert!(error.contains("poisoned"), "{text}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }
    // Unwind tables by whose lengths the driver reads.
    let tables = "__attribute__((section(\".eh_frame\"), used)) constant uint v[4] = {20, 0, 0x7a5201, 0xfffffff0};";
    let error = Program::build(&context, &format!("{tables}\n{}", kernel("")), "").expect_err(tables);
    assert!(error.to_string().contains("poisoned"), "{error}");
    // A module's text has a preprocessor of its own, without the poison.
    let module = "#pragma clang module build M\nmodule M {}\n#pragma clang module contents\n#pragma clang module begin M\n\
                  static inline void f(void) { __asm__ volatile(\".reloc 0x40000000, R_X86_64_64, .ltext\"); }\n\
                  #pragma clang module end\n#pragma clang module endbuild\n#pragma clang module import M\n";
    let error = Program::build(&context, &format!("{module}{}", kernel("f()")), "").expect_err(module);
    assert!(error.to_string().contains("poisoned"), "{error}");
    // The options' macros are older than the poison.
    for option in [
        "-DA=__asm__",
        "-D A=asm",
        "-DA=__section__",
        "-include /tmp/a.h",
        // Quotes for some, letters for the driver.
        r#"-I\"a -DA=__asm__ -DB=\""#,
        r#"-Ia\" -DA=__asm__ -DB=\""#,
        "-D\"A=__a\"sm__",
    ] {
        let error = Program::build(&context, &kernel("A(\"nop\")"), option).expect_err(option);
        assert!(matches!(error, Error::Options { .. }), "{option}: {error}");
    }
    Program::build(&context, &kernel(""), "-DA=1 -I /tmp/plasma -I/tmp/section").expect("folders");
    // The line of an error is that of the source.
    let Err(Error::Build(failure)) = Program::build(&context, "// no asm here\nkernel void k() { y = 1; }", "") else {
        panic!("a build that fails");
    };
    assert!(failure.to_string().contains("y = 1"), "{failure}");
    Program::build(&context, &kernel("x[1] = 2 /* asm */"), "").expect("a program");
}
