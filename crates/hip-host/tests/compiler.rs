//! The machine's compiler: found, missing, and spared by the cache. Each case has a process of its own.

mod common;

use common::*;
use hip_sys::hiprtcResult;

const SOURCE: &str = "extern \"C\" __global__ void k(int* p) { *p = 42; }";

fn runs(code: &[u8]) {
    let out = malloc(4);
    let module = load(code);
    assert_eq!(
        launch(
            function(module, "k"),
            [1; 3],
            [1; 3],
            0,
            std::ptr::null_mut(),
            &mut params![out]
        ),
        OK
    );
    assert_eq!(download::<i32>(out, 1), [42]);
}

#[test]
fn without_a_compiler_the_log_says_what_to_do() {
    if is_child() {
        let (result, log, _) = compile_with(SOURCE, &[], &[]);
        assert_eq!(result, hiprtcResult::HIPRTC_ERROR_COMPILATION);
        print!("LOG {log}");
        return;
    }
    let nowhere = tempfile::tempdir().unwrap();
    let nowhere = nowhere.path().to_str().unwrap();
    let case = "without_a_compiler_the_log_says_what_to_do";
    for (environment, expected) in [
        (
            &[("PATH", nowhere), ("CXX", ""), ("HIPCL_CXX", "")][..],
            &["no C++ compiler found", "install g++", "HIPCL_CXX"][..],
        ),
        (
            &[("HIPCL_CXX", "no-such-compiler")],
            &["HIPCL_CXX=`no-such-compiler`", "unset it"],
        ),
        (&[("HIPCL_CXX", "false")], &["HIPCL_CXX=`false`", "correct it"]),
        (
            &[("HIPCL_CXX", ""), ("CXX", "no-such-compiler")],
            &["CXX=`no-such-compiler`"],
        ),
    ] {
        let output = run_child(case, environment);
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        let log = text.split("LOG ").nth(1).unwrap().lines().next().unwrap();
        assert!(expected.iter().all(|part| log.contains(part)), "{log}");
    }
}

#[test]
fn a_kernel_is_compiled_once_and_a_damaged_file_again() {
    let case = "a_kernel_is_compiled_once_and_a_damaged_file_again";
    if is_child() {
        runs(&compile(SOURCE));
        return;
    }
    // A compiler that notes each compilation; its version is asked for by each process and not noted.
    let folder = tempfile::tempdir().unwrap();
    let (script, notes, cache) = (
        folder.path().join("cxx"),
        folder.path().join("notes"),
        folder.path().join("cache"),
    );
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] || echo run >> '{}'\nexec c++ \"$@\"\n",
        notes.display()
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let environment = [
        ("HIPCL_CXX", script.to_str().unwrap()),
        ("HIPCL_CACHE_DIR", cache.to_str().unwrap()),
    ];
    let run = |environment: &[(&str, &str)]| {
        let output = run_child(case, environment);
        assert!(output.status.success(), "{output:?}");
        std::fs::read_to_string(&notes).unwrap_or_default().lines().count()
    };
    let once = run(&environment);
    assert!(once > 0);
    assert_eq!(run(&environment), once, "taken from the cache");
    for entry in std::fs::read_dir(cache.join("host-kernels")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(path, bytes).unwrap();
    }
    assert_eq!(run(&environment), 2 * once, "compiled again");
    assert_eq!(run(&environment), 2 * once, "and kept again");
    let other = [environment[0], environment[1], ("HIP_HOST_MARCH", "x86-64")];
    if cfg!(target_arch = "x86_64") {
        assert_eq!(run(&other), 3 * once, "another processor, another kernel");
    }
    // A cache that cannot be written costs time only.
    let blocked = folder.path().join("blocked");
    std::fs::write(&blocked, "a file where the folder should be").unwrap();
    let before = run(&environment);
    assert_eq!(
        run(&[environment[0], ("HIPCL_CACHE_DIR", blocked.to_str().unwrap())]),
        before + once
    );
}

/// A compiler that logs each run, and the environment for processes that use it with a separate cache.
fn noted(folder: &std::path::Path) -> [(&'static str, String); 3] {
    let (script, notes) = (folder.join("cxx"), folder.join("notes"));
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] || echo run >> '{}'\nexec c++ \"$@\"\n",
        notes.display()
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let text = |path: std::path::PathBuf| path.to_str().unwrap().to_owned();
    [
        ("HIPCL_CXX", text(script)),
        ("HIPCL_CACHE_DIR", text(folder.join("cache"))),
        ("FILE_TO_READ", text(folder.join("value.h"))),
    ]
}

fn run_noted(case: &str, environment: &[(&'static str, String)]) {
    let environment: Vec<(&str, &str)> = environment
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let output = run_child(case, &environment);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn sources_that_read_files_are_cached_by_preprocessor_output() {
    let case = "sources_that_read_files_are_cached_by_preprocessor_output";
    if is_child() {
        let file = std::env::var("FILE_TO_READ").unwrap();
        let source = format!("/**/#include \"{file}\"\n{SOURCE}");
        let (result, log, code) = compile_with(&source, &[], &[]);
        assert_eq!(result, hiprtcResult::HIPRTC_SUCCESS, "{log}");
        runs(&code);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let environment = noted(folder.path());
    let header = folder.path().join("value.h");
    let notes = folder.path().join("notes");
    let runs = |content: &str| {
        std::fs::write(&header, content).unwrap();
        let before = std::fs::read_to_string(&notes).unwrap_or_default().len();
        run_noted(case, &environment);
        let after = std::fs::read_to_string(&notes).unwrap().len();
        (after - before) / "run\n".len()
    };
    // The preprocessor, and what follows it if the text is new.
    assert_eq!((runs("int a;\n"), runs("int a;\n")), (2, 1));
    assert_eq!((runs("int b;\n"), runs("int a;\n")), (2, 1));
    // The time differs in each run.
    assert_eq!(runs("const char *at = __TIME__;\n"), 2);
}

#[test]
fn sources_whose_assembly_reads_files_are_compiled_every_time() {
    let case = "sources_whose_assembly_reads_files_are_compiled_every_time";
    if is_child() {
        let file = std::env::var("FILE_TO_READ").unwrap();
        // In two texts, which the compiler joins.
        let source = format!("asm(\"\\n.inc\" \"lude \\\"{file}\\\"\\n\");\n{SOURCE}");
        let (result, log, code) = compile_with(&source, &[], &[]);
        assert_eq!(result, hiprtcResult::HIPRTC_SUCCESS, "{log}");
        runs(&code);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let environment = noted(folder.path());
    let notes = folder.path().join("notes");
    std::fs::write(folder.path().join("value.h"), "# nothing\n").unwrap();
    let runs = || std::fs::read_to_string(&notes).unwrap().lines().count();
    run_noted(case, &environment);
    assert_eq!(runs(), 2, "the preprocessor, and what follows it");
    run_noted(case, &environment);
    assert_eq!(runs(), 4);
}

#[test]
fn a_cache_writable_by_others_is_not_used() {
    let case = "a_cache_writable_by_others_is_not_used";
    if is_child() {
        runs(&compile(SOURCE));
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let environment = noted(folder.path());
    let notes = folder.path().join("notes");
    let runs = || {
        let before = std::fs::read_to_string(&notes).unwrap_or_default().len();
        run_noted(case, &environment);
        std::fs::read_to_string(&notes).unwrap().len() > before
    };
    assert!(runs() && !runs());
    let cache = folder.path().join("cache/host-kernels");
    let entry = std::fs::read_dir(&cache).unwrap().next().unwrap();
    let entry = entry.unwrap().path();
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(&cache), mode(&entry)), (0o700, 0o600));
    let chmod = |path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    chmod(&entry, 0o666);
    assert!(runs() && !runs());
    chmod(&cache, 0o777);
    assert!(runs() && runs());
}

#[test]
fn halves_need_no_option_that_the_compiler_lacks_or_warns_of() {
    let case = "halves_need_no_option_that_the_compiler_lacks_or_warns_of";
    if is_child() {
        let source = "#include <hip/hip_fp16.h>\n\
            extern \"C\" __global__ void k(int* p) { const __half six = (__half)6; *p = (int)(six * six + six); }";
        let (result, log, code) = compile_with(source, &[], &[]);
        assert_eq!((result, log.as_str()), (hiprtcResult::HIPRTC_SUCCESS, ""));
        runs(&code);
        return;
    }
    for reply in ["echo no >&2; exit 1", "echo ignored >&2"] {
        let folder = tempfile::tempdir().unwrap();
        let environment = noted(folder.path());
        let text = format!(
            "#!/bin/sh\nfor word; do [ \"$word\" != -fexcess-precision=16 ] || {{ {reply}; }}; done\nexec c++ \"$@\"\n"
        );
        std::fs::write(&environment[0].1, text).unwrap();
        run_noted(case, &environment);
    }
}

/// Kernels of one line each, and the types that the scan makes of their index.
const FORMS: &[(&str, &str, &str)] = &[
    ("int, unsigned int", "int n", "int i = SUM; if (i < n)"),
    ("int, unsigned int", "int n", "const int i = SUM; if (i >= n) return;"),
    (
        "unsigned int, unsigned int",
        "unsigned n",
        "unsigned i = SUM; if (i < n)",
    ),
    ("unsigned int, unsigned int", "int n", "unsigned i = SUM; if (i < n)"),
    ("unsigned long, unsigned int", "size_t n", "size_t i = SUM; if (i < n)"),
    (
        "unsigned long, unsigned long",
        "size_t n",
        "size_t i = (size_t)SUM; if (i < n)",
    ),
    ("long, long", "long n", "long i = (long)SUM; if (i < n)"),
    (
        "int, unsigned int",
        "int w, int n",
        "int i = SUM, j = blockIdx.y; if (i < n && j < w)",
    ),
];

/// With the address of an index taken anywhere in the prelude, the compiler reloads it after each store and scatters;
/// with the kernel's comparison left in the loop it masks each access, which the processor's prefetcher does not see.
#[test]
fn consecutive_threads_load_and_store_consecutively_and_without_masks() {
    const TEST: &str = "consecutive_threads_load_and_store_consecutively_and_without_masks";
    let version = std::process::Command::new("c++").arg("--version").output();
    let is_gcc =
        version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("Free Software Foundation"));
    if !cfg!(target_arch = "x86_64") || !is_gcc {
        return skip(TEST, "the check reads what GCC makes for x86-64");
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("kernel.cpp");
    let prelude = include_str!("../kernels/prelude.hpp");
    for (types, bound, guard) in FORMS {
        let guard = guard.replace("SUM", "blockIdx.x * blockDim.x + threadIdx.x");
        let kernel = format!(
            "#undef __global__\n\
             extern \"C\" void axpy({bound}, float a, const float* x, float* y) {{ {guard} y[i] = a * x[i] + y[i]; }}\n\
             auto entry = __hipcl_kernel<(&axpy), {types}>::run_blocks;\n"
        );
        std::fs::write(&source, format!("{prelude}{kernel}")).unwrap();
        let output = std::process::Command::new("c++")
            .args([
                "-std=c++17",
                "-O3",
                "-fPIC",
                "-march=skylake-avx512",
                "-fno-strict-aliasing",
                "-fno-semantic-interposition",
                "-fno-trapping-math",
                "-fno-math-errno",
                "--param=logical-op-non-short-circuit=0",
                "-S",
                "-o",
                "-",
            ])
            .arg(&source)
            .output()
            .unwrap();
        let assembly = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // The kernel alone is not vector code; what is comes from the loop over threads.
        let is_vector = |line: &str| line.contains("ps\t") && ["%ymm", "%zmm"].iter().any(|name| line.contains(name));
        assert!(assembly.lines().any(is_vector), "`{guard}` is not vectorised");
        for unwanted in ["scatter", "gather", "{%k"] {
            assert!(
                !assembly.contains(unwanted),
                "`{guard}` makes the loop over threads use `{unwanted}`"
            );
        }
    }
}

#[test]
fn code_that_would_run_when_a_module_is_loaded_is_refused() {
    const KERNEL: &str = "extern \"C\" __global__ void k(int *p) { *p = 42; }";
    for refused in [
        "extern \"C\" int getpid(); static int now = getpid(); __device__ int *keep() { return &now; }",
        "struct Ends { ~Ends(); }; Ends::~Ends() {} static Ends ends;",
        "static volatile int seen; __attribute__((constructor)) static void begin() { seen = 1; }",
        "static volatile int seen; __attribute__((destructor)) static void end() { seen = 1; }",
        "static void begin() {} __attribute__((section(\".init_array\"), used)) static void (*entry)() = begin;",
        "extern \"C\" void _init() {}",
        "static int one() { return 1; } extern \"C\" int (*choose())() { return one; } \
         extern \"C\" int chosen() __attribute__((ifunc(\"choose\"))); __device__ int (*keep)() = chosen;",
        "static int one() { return 1; } extern \"C\" { static int (*choose())() { return one; } \
         static int chosen() __attribute__((ifunc(\"choose\"))); } __device__ int call() { return chosen(); }",
    ] {
        let (result, log, _) = compile_with(&format!("{refused}\n{KERNEL}"), &[], &[]);
        assert_eq!(result, hiprtcResult::HIPRTC_ERROR_COMPILATION, "{refused}");
        assert!(log.contains("error"), "{refused}: {log}");
    }
    let constant = "__device__ int table[3] = {1, 2, 3}; __constant__ float scale = 0.5f;";
    let (result, log, code) = compile_with(&format!("{constant}\n{KERNEL}"), &[], &[]);
    assert_eq!(result, hiprtcResult::HIPRTC_SUCCESS, "{log}");
    runs(&code);
}
