//! Compiled programs on disk: the cache saves time, and nothing else changes.

mod common;

use std::fs;
use std::path::Path;

use common::device;
use hip::rtc::{Cache, Program};
use hip::{Device, LaunchConfig, Module};

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
        let cache = Cache::open_in(folder.path());
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
    let cache = Cache::open_in(folder.path());
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
    Cache::open_in(folder.path())
        .compile(&program(), &device)
        .unwrap();
    let path = files(folder.path()).pop().unwrap();
    let whole = fs::read(&path).unwrap();
    let mut altered = whole.clone();
    *altered.last_mut().unwrap() ^= 1;
    for bytes in [&whole[..whole.len() / 2], &[], b"something else", &altered] {
        fs::write(&path, bytes).unwrap();
        let cache = Cache::open_in(folder.path());
        let module = cache.compile(&program(), &device).unwrap();
        assert_eq!(result(&device, &module), 70);
        assert_eq!(cache.stats().compiled, 1);
        assert!(cache.stats().trouble.is_some());
        // The cached file holds a code object with its own build, so only its use is compared.
        let again = Cache::open_in(folder.path());
        again.compile(&program(), &device).unwrap();
        assert_eq!(again.stats().hits, 1);
    }
}

#[test]
fn a_folder_that_cannot_be_used_means_compile_anyway() {
    let (device, folder) = (device(), tempfile::tempdir().unwrap());
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let cache = Cache::open_in(&file.join("below"));
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
    let cache = Cache::open_in(&folder.path().join("cache"));
    let option = format!("-I{}", folder.path().display());
    for number in [3, 4] {
        fs::write(folder.path().join("by.h"), format!("#define BY {number}\n")).unwrap();
        let program = Program::new(
            "#include \"by.h\"\nextern \"C\" __global__ void get(int *x) { *x = BY; }",
        )
        .option(&option);
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

#[test]
fn threads_that_compile_at_once_all_get_the_program() {
    let (device, folder) = (device(), tempfile::tempdir().unwrap());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let cache = Cache::open_in(folder.path());
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
    let cache = Cache::open_in(&folder.path().join("cache"));
    let error = cache
        .compile(&Program::new("__global__ void f() { nonsense; }"), &device)
        .unwrap_err();
    assert!(matches!(error, hip::Error::Compile { .. }), "{error}");
    assert!(!folder.path().join("cache").exists());
}
