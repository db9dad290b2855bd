//! The program cache: what it keeps, and what it does with a disk that lies.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use clmgr::{Arg, Context, NdRange, Program, ProgramCache, RegularBuffer};

const SOURCE: &str = "kernel void set(global int *x) { x[0] = VALUE; }";

/// Runs the program and gives what it wrote.
fn value_of(context: &Context, program: &Program) -> i32 {
    let queue = context.queue().unwrap();
    let mut buffer = RegularBuffer::new(context, 1).unwrap();
    buffer.write(&queue, &[0i32]).unwrap();
    let kernel = program.kernel("set").unwrap();
    // SAFETY: the buffer holds the one element.
    unsafe { kernel.launch(&queue, NdRange::d1(1), &[buffer.arg()]) }.unwrap();
    let mut result = [0];
    buffer.read(&queue, &mut result).unwrap();
    // A launch checks its arguments whether the program was compiled or loaded.
    let one_too_many = [buffer.arg(), Arg::scalar(&1u32)];
    // SAFETY: the launch is refused.
    let refused = unsafe { kernel.launch(&queue, NdRange::d1(1), &one_too_many) };
    assert!(refused.is_err());
    result[0]
}

fn get(cache: &ProgramCache, value: i32) -> i32 {
    let program = cache.get(SOURCE, &format!("-DVALUE={value}")).unwrap();
    value_of(cache.context(), &program)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

#[test]
fn a_second_process_finds_on_disk_what_the_first_compiled() {
    let context = common::context();
    let folder = tempfile::tempdir().unwrap();
    let cold = ProgramCache::open_in(&context, folder.path());
    assert_eq!(get(&cold, 5), 5);
    assert_eq!(get(&cold, 5), 5);
    let stats = cold.stats();
    assert_eq!(
        (stats.compiled, stats.memory_hits, stats.disk_hits),
        (1, 1, 0)
    );
    assert_eq!(stats.disk_trouble, None);
    assert_eq!(
        files(folder.path()).len(),
        1,
        "one complete file and no temporary one"
    );

    let warm = ProgramCache::open_in(&context, folder.path());
    assert_eq!(get(&warm, 5), 5);
    let stats = warm.stats();
    assert_eq!(
        (stats.compiled, stats.memory_hits, stats.disk_hits),
        (0, 0, 1)
    );
}

#[test]
fn other_options_are_another_program() {
    let context = common::context();
    let folder = tempfile::tempdir().unwrap();
    let cache = ProgramCache::open_in(&context, folder.path());
    assert_eq!((get(&cache, 1), get(&cache, 2), get(&cache, 1)), (1, 2, 1));
    assert_eq!(cache.stats().compiled, 2);
    let warm = ProgramCache::open_in(&context, folder.path());
    assert_eq!((get(&warm, 2), get(&warm, 1)), (2, 1));
    assert_eq!(warm.stats().disk_hits, 2);
}

#[test]
fn a_program_is_another_one_when_what_it_includes_changes() {
    const WITH_INCLUDE: &str =
        "#include \"value.h\"\nkernel void set(global int *x) { x[0] = VALUE; }";
    let context = common::context();
    let (folder, headers) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let options = format!("-I {}", headers.path().display());
    let value = |value: i32| {
        let header = format!("#include \"deeper.h\"\n#define VALUE (DEEPER + {value})\n");
        fs::write(headers.path().join("value.h"), header).unwrap();
    };
    let deeper = |value: i32| {
        let header = format!("#define DEEPER {value}\n");
        fs::write(headers.path().join("deeper.h"), header).unwrap();
    };
    let run =
        |cache: &ProgramCache| value_of(&context, &cache.get(WITH_INCLUDE, &options).unwrap());
    let cache = ProgramCache::open_in(&context, folder.path());
    value(1);
    deeper(10);
    assert_eq!((run(&cache), run(&cache)), (11, 11));
    value(2);
    assert_eq!(run(&cache), 12);
    deeper(20);
    assert_eq!(run(&cache), 22);
    let stats = cache.stats();
    assert_eq!((stats.compiled, stats.memory_hits), (3, 1));
    assert_eq!(stats.disk_trouble, None);
    // What was compiled for the old content is still right for it.
    let warm = ProgramCache::open_in(&context, folder.path());
    value(1);
    deeper(10);
    assert_eq!(run(&warm), 11);
    assert_eq!(warm.stats().disk_hits, 1);
}

#[test]
fn a_program_with_an_include_that_cannot_be_followed_is_compiled_each_time() {
    let context = common::context();
    let (folder, headers) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(headers.path().join("value.h"), "#define VALUE 6\n").unwrap();
    let source =
        "#define FILE \"value.h\"\n#include FILE\nkernel void set(global int *x) { x[0] = VALUE; }";
    let options = format!("-I {}", headers.path().display());
    let cache = ProgramCache::open_in(&context, folder.path());
    for _ in 0..2 {
        let program = cache.get(source, &options).unwrap();
        assert_eq!(value_of(&context, &program), 6);
    }
    let stats = cache.stats();
    assert_eq!((stats.compiled, stats.memory_hits), (2, 0));
    assert!(stats.disk_trouble.unwrap().contains("FILE"));
    assert!(files(folder.path()).is_empty());
}

#[test]
fn a_file_that_was_damaged_costs_a_compilation_and_is_replaced() {
    let context = common::context();
    let folder = tempfile::tempdir().unwrap();
    let cache = || ProgramCache::open_in(&context, folder.path());
    get(&cache(), 7);
    let file = files(folder.path()).remove(0);
    let whole = fs::read(&file).unwrap();
    let mut altered = whole.clone();
    let middle = altered.len() / 2;
    altered[middle] ^= 0x40;
    for damaged in [
        &whole[..whole.len() / 2],
        &whole[..10],
        &[],
        b"not a program at all",
        &altered,
    ] {
        fs::write(&file, damaged).unwrap();
        let again = cache();
        assert_eq!(get(&again, 7), 7);
        let stats = again.stats();
        assert_eq!((stats.compiled, stats.disk_hits), (1, 0));
        assert!(
            stats
                .disk_trouble
                .unwrap()
                .contains("not a complete program")
        );
        let healed = cache();
        get(&healed, 7);
        assert_eq!(
            healed.stats().disk_hits,
            1,
            "the damaged file was not replaced"
        );
    }
}

#[test]
fn a_file_of_another_key_is_not_taken() {
    let context = common::context();
    let folder = tempfile::tempdir().unwrap();
    get(&ProgramCache::open_in(&context, folder.path()), 1);
    let first = files(folder.path()).remove(0);
    let content = fs::read(&first).unwrap();
    get(&ProgramCache::open_in(&context, folder.path()), 2);
    for file in files(folder.path()) {
        fs::write(file, &content).unwrap();
    }
    let cache = ProgramCache::open_in(&context, folder.path());
    assert_eq!((get(&cache, 1), get(&cache, 2)), (1, 2));
    let stats = cache.stats();
    assert_eq!((stats.disk_hits, stats.compiled), (1, 1));
}

#[test]
fn a_file_whose_binary_the_driver_refuses_costs_a_compilation() {
    let context = common::context();
    let folder = tempfile::tempdir().unwrap();
    get(&ProgramCache::open_in(&context, folder.path()), 3);
    let file = files(folder.path()).remove(0);
    // A complete file with a right digest, written by someone else's hand.
    let mut content = fs::read(&file).unwrap();
    content.truncate(16 + 32);
    content.extend_from_slice(blake3::hash(b"no binary").as_bytes());
    content.extend_from_slice(b"no binary");
    fs::write(&file, content).unwrap();
    let cache = ProgramCache::open_in(&context, folder.path());
    assert_eq!(get(&cache, 3), 3);
    let stats = cache.stats();
    assert_eq!((stats.disk_hits, stats.compiled), (0, 1));
    assert!(stats.disk_trouble.is_some());
}

#[test]
fn a_folder_that_cannot_be_written_costs_nothing_else() {
    let context = common::context();
    let folder = tempfile::tempdir().unwrap();
    // Below a file there is no folder, for root as for anyone.
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    let cache = ProgramCache::open_in(&context, &file.join("below"));
    assert_eq!((get(&cache, 4), get(&cache, 4)), (4, 4));
    let stats = cache.stats();
    assert_eq!((stats.compiled, stats.memory_hits), (1, 1));
    assert!(stats.disk_trouble.is_some());
}

#[test]
fn threads_that_ask_at_once_compile_once() {
    let context = common::context();
    let folder = tempfile::tempdir().unwrap();
    let cache = ProgramCache::open_in(&context, folder.path());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(get(&cache, 11), 11));
        }
    });
    let stats = cache.stats();
    assert_eq!((stats.compiled, stats.memory_hits), (1, 7));
}

#[test]
fn caches_that_write_the_same_file_at_once_leave_a_whole_one() {
    let context = common::context();
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope
                .spawn(|| assert_eq!(get(&ProgramCache::open_in(&context, folder.path()), 12), 12));
        }
    });
    assert_eq!(files(folder.path()).len(), 1);
    let warm = ProgramCache::open_in(&context, folder.path());
    assert_eq!(get(&warm, 12), 12);
    assert_eq!(warm.stats().disk_hits, 1);
}

#[test]
fn a_program_that_does_not_build_is_not_kept() {
    let context = common::context();
    let cache = ProgramCache::in_memory(&context);
    assert!(cache.get(SOURCE, "-DVALUE=nowhere").is_err());
    assert!(cache.get(SOURCE, "-DVALUE=nowhere").is_err());
    assert_eq!(cache.stats().compiled, 0);
    assert_eq!(get(&cache, 1), 1);
}
