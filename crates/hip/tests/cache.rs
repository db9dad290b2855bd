//! Compiled programs on disk: the cache saves time, and nothing else changes.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::device;
use hip::rtc::{Cache, Program};
use hip::{Device, LaunchConfig, Module};

/// A cache in this folder.
fn cache_in(folder: &Path) -> Cache {
    // SAFETY: the tests write no code there, only damage that a digest tells.
    unsafe { Cache::open_in(folder) }
}

fn program() -> Program {
    Program::new(
        "template <int N> __global__ void set(int *x) { *x = N; }\n#include \"by.h\"\n\
         extern \"C\" __global__ void times(int *x) { *x *= BY; }",
    )
    .header("by.h", "#define BY 10\n")
    .instance("set<7>")
}

/// What the program computes on `device`: 7 x 10 if all is well.
fn result(device: &Device, module: &Module) -> i32 {
    let stream = device.stream().unwrap();
    let mut x = device.alloc_zeroed::<i32>(1).unwrap();
    for name in ["set<7>", "times"] {
        let function = module.function(name).unwrap();
        let config = LaunchConfig::linear(1, 1).unwrap();
        // SAFETY: one thread on one element.
        unsafe { function.launch(&stream, config, &[&x.on_mut(&stream).unwrap()]) }.unwrap();
    }
    let mut seen = [0];
    x.copy_to_slice(&stream, &mut seen).unwrap();
    seen[0]
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_second_cache_finds_what_the_first_kept_with_its_instances() {
    let (device, folder) = (device(), tempfile::tempdir().unwrap());
    for (compiled, hits) in [(1, 0), (0, 1)] {
        let cache = cache_in(folder.path());
        let module = cache.compile(&program(), &device).unwrap();
        assert_eq!(result(&device, &module), 70);
        let stats = cache.stats();
        assert_eq!((stats.compiled, stats.hits), (compiled, hits));
        assert_eq!(stats.trouble, None);
    }
}

#[test]
fn every_part_of_a_program_is_in_its_key() {
    let (device, folder) = (device(), tempfile::tempdir().unwrap());
    let cache = cache_in(folder.path());
    let variants = [
        program(),
        program().option("-DUNUSED"),
        program().header("more.h", ""),
        program().instance("set<8>"),
        program().name("other.hip"),
    ];
    for variant in &variants {
        cache.compile(variant, &device).unwrap();
    }
    assert_eq!(cache.stats().compiled, variants.len() as u64);
    assert_eq!(files(folder.path()).len(), variants.len());
}

#[test]
fn a_damaged_or_foreign_file_means_compile_anyway_and_is_replaced() {
    let (device, folder) = (device(), tempfile::tempdir().unwrap());
    cache_in(folder.path()).compile(&program(), &device).unwrap();
    let path = files(folder.path()).pop().unwrap();
    let whole = fs::read(&path).unwrap();
    let mut altered = whole.clone();
    *altered.last_mut().unwrap() ^= 1;
    for bytes in [&whole[..whole.len() / 2], &[], b"something else", &altered] {
        fs::write(&path, bytes).unwrap();
        let cache = cache_in(folder.path());
        let module = cache.compile(&program(), &device).unwrap();
        assert_eq!(result(&device, &module), 70);
        assert_eq!(cache.stats().compiled, 1);
        assert!(cache.stats().trouble.is_some());
        // The cached file holds a code object with its own build, so only its use is compared.
        let again = cache_in(folder.path());
        again.compile(&program(), &device).unwrap();
        assert_eq!(again.stats().hits, 1);
    }
}

#[test]
fn a_folder_that_cannot_be_used_means_compile_anyway() {
    let (device, folder) = (device(), tempfile::tempdir().unwrap());
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let cache = cache_in(&file.join("below"));
    for _ in 0..2 {
        let module = cache.compile(&program(), &device).unwrap();
        assert_eq!(result(&device, &module), 70);
    }
    assert_eq!(cache.stats().compiled, 2);
    assert!(cache.stats().trouble.is_some());
}

#[test]
fn a_program_that_reads_files_is_never_kept() {
    let (device, folder) = (device(), tempfile::tempdir().unwrap());
    let cache = cache_in(&folder.path().join("cache"));
    let option = format!("-I{}", folder.path().display());
    for number in [3, 4] {
        fs::write(folder.path().join("by.h"), format!("#define BY {number}\n")).unwrap();
        let program =
            Program::new("#include \"by.h\"\nextern \"C\" __global__ void get(int *x) { *x = BY; }").option(&option);
        let module = cache.compile(&program, &device).unwrap();
        let stream = device.stream().unwrap();
        let mut x = device.alloc_zeroed::<i32>(1).unwrap();
        let config = LaunchConfig::linear(1, 1).unwrap();
        let get = module.function("get").unwrap();
        // SAFETY: one thread on one element.
        unsafe { get.launch(&stream, config, &[&x.on_mut(&stream).unwrap()]) }.unwrap();
        let mut seen = [0];
        x.copy_to_slice(&stream, &mut seen).unwrap();
        assert_eq!(seen, [number]);
    }
    assert!(!folder.path().join("cache").exists());
}

/// Both this crate's cache and the software device's cache, which every compilation here uses.
#[test]
fn every_way_to_name_a_file_counts() {
    let (device, folder) = (device(), tempfile::tempdir().unwrap());
    let cache = cache_in(&folder.path().join("cache"));
    let header = folder.path().join("value.h");
    let path = header.display();
    let has = |ask: &str| format!("#if {ask}(\"{path}.more\")\n#define VALUE 2\n#else\n#define VALUE 1\n#endif");
    let forms = [
        format!("#include \"{path}\""),
        format!("/* */ #include \"{path}\""),
        format!("/* one\n two */ #include \"{path}\""),
        format!("# include \"{path}\""),
        format!("#/**/include/**/<{path}>"),
        format!("%:include \"{path}\""),
        format!("#import \"{path}\""),
        format!("#inc\\\nlude \"{path}\""),
        format!("#include \\ \n\"{path}\""),
        format!("#define HERE \"{path}\"\n#include HERE"),
        "#include FILE".to_owned(),
        "#include \"given.h\"\n".to_owned(),
        has("__has_include"),
        format!("#define ASK __has_include\n{}", has("ASK")),
        format!("#define CAT(a, b) a##b\n{}", has("CAT(__has_inc, lude)")),
    ];
    for form in &forms {
        let more = folder.path().join("value.h.more");
        let kernel = "extern \"C\" __global__ void get(int *x) { *x = VALUE; }";
        let program = Program::new(&format!("{form}\n{kernel}"))
            .option(&format!("-DFILE=\"{path}\""))
            .header("given.h", &format!("/**/#include \"{path}\"\n"));
        fs::write(&header, "#pragma once\n#define VALUE 1\n").unwrap();
        let _ = fs::remove_file(&more);
        let value = |cache: &Cache| {
            let module = cache.compile(&program, &device)?;
            let stream = device.stream()?;
            let mut x = device.alloc_zeroed::<i32>(1)?;
            let config = LaunchConfig::linear(1, 1)?;
            let get = module.function("get")?;
            // SAFETY: one thread on one element.
            unsafe { get.launch(&stream, config, &[&x.on_mut(&stream)?]) }?;
            let mut seen = [0];
            x.copy_to_slice(&stream, &mut seen)?;
            Ok::<i32, hip::Error>(seen[0])
        };
        // What no compiler accepts, such as a pasted operator, can't be stale.
        let Ok(first) = value(&cache) else { continue };
        assert_eq!(first, 1, "{form}");
        fs::write(&header, "#pragma once\n#define VALUE 2\n").unwrap();
        fs::write(&more, "").unwrap();
        assert_eq!(value(&cache).unwrap(), 2, "{form}");
    }
}

#[cfg(unix)]
#[test]
fn a_folder_or_file_writable_by_others_is_not_used() {
    use std::os::unix::fs::PermissionsExt;

    let (device, base) = (device(), tempfile::tempdir().unwrap());
    let folder = base.path().join("cache");
    let compiled = || {
        let cache = cache_in(&folder);
        cache.compile(&program(), &device).unwrap();
        cache.stats().compiled
    };
    assert_eq!((compiled(), compiled()), (1, 0));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let file = files(&folder).remove(0);
    assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
    let chmod = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    chmod(&file, 0o602);
    assert_eq!((compiled(), compiled()), (1, 0));
    chmod(&folder, 0o777);
    assert_eq!((compiled(), compiled()), (1, 1));
    chmod(&folder, 0o700);
    // A pipe: opening it would block until a writer appears.
    fs::remove_file(&file).unwrap();
    let (kind, all) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, &file, kind, all, 0).unwrap();
    assert_eq!((compiled(), compiled()), (1, 0));
}

#[test]
fn threads_that_compile_at_once_all_get_the_program() {
    let (device, folder) = (device(), tempfile::tempdir().unwrap());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let cache = cache_in(folder.path());
                let module = cache.compile(&program(), &device).unwrap();
                assert_eq!(result(&device, &module), 70);
                assert_eq!(cache.stats().trouble, None);
            });
        }
    });
    assert_eq!(files(folder.path()).len(), 1, "no temporary file is left");
}

#[test]
fn a_compile_error_is_the_compilers_also_through_a_cache() {
    let (device, folder) = (device(), tempfile::tempdir().unwrap());
    let cache = cache_in(&folder.path().join("cache"));
    let error = cache
        .compile(&Program::new("__global__ void f() { nonsense; }"), &device)
        .unwrap_err();
    assert!(matches!(error, hip::Error::Compile { .. }), "{error}");
    assert!(!folder.path().join("cache").exists());
}

/// The folder that a child of this test program compiles into.
const FOLDER: &str = "HIPCL_TEST_FOLDER";

/// Outside of the sanitizer's runtime such a module would end the process when it is loaded.
#[test]
fn a_checked_program_is_not_taken_for_an_unchecked_one() {
    const NAME: &str = "a_checked_program_is_not_taken_for_an_unchecked_one";
    if !common::on_host() {
        return;
    }
    if let Some(folder) = std::env::var_os(FOLDER) {
        let cache = cache_in(folder.as_ref());
        let device = device();
        assert_eq!(result(&device, &cache.compile(&program(), &device).unwrap()), 70);
        assert_eq!(cache.stats().compiled, 1, "another process's program was taken");
        return;
    }
    let asked = Command::new("c++").arg("-print-file-name=libasan.so").output().unwrap();
    let runtime = String::from_utf8(asked.stdout).unwrap().trim().to_owned();
    if !runtime.starts_with('/') {
        common::skipped("the C++ compiler has no libasan.so");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for checked in [true, false, true] {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", NAME, "--nocapture"]).env(FOLDER, folder.path());
        if checked {
            child.env("HIP_HOST_SANITIZE", "address");
            child.env("LD_PRELOAD", &runtime).env("ASAN_OPTIONS", "detect_leaks=0");
        }
        let ended = child.output().unwrap();
        assert!(
            ended.status.success(),
            "checked {checked}: {}",
            String::from_utf8_lossy(&ended.stderr)
        );
    }
}
