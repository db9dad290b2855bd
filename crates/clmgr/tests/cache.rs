//! The program cache: what it keeps, and what it does with a disk that lies.

mod common;

use std::ffi::OsStr;
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clmgr::{Arg, Context, NdRange, Program, ProgramCache, RegularBuffer};
use rustix::fs::inotify;

const SOURCE: &str = "kernel void set(global int *x) { x[0] = VALUE; }";

/// A cache in this folder.
fn open_in(context: &Context, folder: &Path) -> ProgramCache {
    // SAFETY: the tests write no code there, only damage that a digest tells.
    unsafe { ProgramCache::open_in(context, folder) }
}

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
    if !common::tells_code(&context) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let cold = open_in(&context, folder.path());
    assert_eq!(get(&cold, 5), 5);
    assert_eq!(get(&cold, 5), 5);
    let stats = cold.stats();
    assert_eq!((stats.compiled, stats.memory_hits, stats.disk_hits), (1, 1, 0));
    assert_eq!(stats.disk_trouble, None);
    assert_eq!(files(folder.path()).len(), 1, "one complete file and no temporary one");

    let warm = open_in(&context, folder.path());
    assert_eq!(get(&warm, 5), 5);
    let stats = warm.stats();
    assert_eq!((stats.compiled, stats.memory_hits, stats.disk_hits), (0, 0, 1));
}

#[test]
#[ignore = "run by another test in a process of its own"]
fn gets_a_program_from_the_folder_of_the_environment() {
    let cache = ProgramCache::open(&common::context());
    cache.get(SOURCE, "-DVALUE=3").unwrap();
    let stats = cache.stats();
    println!("told: {} compiled, {} from disk", stats.compiled, stats.disk_hits);
}

#[test]
fn a_program_of_other_settings_of_the_driver_is_not_kept() {
    if common::context().device().platform_name() != "Intel(R) OpenCL" {
        return common::skipped("only Intel's driver reads such settings");
    }
    let folder = tempfile::tempdir().unwrap();
    let told = |settings: &[(&str, &str)]| {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "gets_a_program_from_the_folder_of_the_environment"])
            .args(["--ignored", "--nocapture"])
            .env("HIPCL_CACHE_DIR", folder.path())
            .envs(settings.iter().copied())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let (_, told) = text.split_once("told: ").expect(&text);
        told.lines().next().unwrap().to_owned()
    };
    let (compiled, from_disk) = ("1 compiled, 0 from disk", "0 compiled, 1 from disk");
    assert_eq!(told(&[]), compiled);
    let fast = [("CL_CONFIG_USE_FAST_RELAXED_MATH", "1")];
    for _ in 0..2 {
        assert_eq!(told(&fast), compiled);
        assert_eq!(told(&[]), from_disk);
    }
}

#[test]
fn other_options_are_another_program() {
    let context = common::context();
    if !common::tells_code(&context) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let cache = open_in(&context, folder.path());
    assert_eq!((get(&cache, 1), get(&cache, 2), get(&cache, 1)), (1, 2, 1));
    assert_eq!(cache.stats().compiled, 2);
    let warm = open_in(&context, folder.path());
    assert_eq!((get(&warm, 2), get(&warm, 1)), (2, 1));
    assert_eq!(warm.stats().disk_hits, 2);
}

#[test]
fn a_program_is_another_one_when_what_it_includes_changes() {
    const WITH_INCLUDE: &str = "#include \"value.h\"\nkernel void set(global int *x) { x[0] = VALUE; }";
    let context = common::context();
    if !common::tells_code(&context) {
        return;
    }
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
    let run = |cache: &ProgramCache| value_of(&context, &cache.get(WITH_INCLUDE, &options).unwrap());
    let cache = open_in(&context, folder.path());
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
    let warm = open_in(&context, folder.path());
    value(1);
    deeper(10);
    assert_eq!(run(&warm), 11);
    assert_eq!(warm.stats().disk_hits, 1);
}

/// So nothing that happens to the file meanwhile makes another program of it.
#[test]
fn only_the_cache_opens_an_include() {
    let context = common::context();
    let headers = tempfile::tempdir().unwrap();
    let header = headers.path().join("value.h");
    fs::write(&header, "#define VALUE 5\n").unwrap();
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    // Events that are alike and follow each other become one: opening and closing alternate.
    let flags = inotify::WatchFlags::OPEN | inotify::WatchFlags::CLOSE;
    inotify::add_watch(&watch, &header, flags).unwrap();
    let cache = ProgramCache::in_memory(&context);
    let options = format!("-I {}", headers.path().display());
    let program = cache.get(&format!("#include <value.h>\n{SOURCE}"), &options).unwrap();
    assert_eq!(value_of(&context, &program), 5);
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(&watch, &mut buffer);
    let mut opened = 0;
    while let Ok(event) = events.next() {
        opened += u32::from(event.events().contains(inotify::ReadFlags::OPEN));
    }
    assert_eq!(opened, 1);
}

/// The kernels are those of the program that the driver makes of the files.
#[test]
fn a_macro_takes_no_arguments_from_another_file() {
    let context = common::context();
    let headers = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(headers.path().join(name), text).unwrap();
    write("name.h", "#define F(a) other(a)\nkernel void F");
    write("arguments.h", "(global int *x) { x[0] = 1; }\n");
    let options = format!("-I {}", headers.path().display());
    for source in [
        "#include <name.h>\n(global int *x) { x[0] = 1; }\n",
        "#define F(a) other(a)\nkernel void F\n#include <arguments.h>\n",
        "#include <name.h>\n#include <arguments.h>\n",
    ] {
        let kept = ProgramCache::in_memory(&context).get(source, &options).unwrap();
        let built = Program::build(&context, source, &options).unwrap();
        assert_eq!(kept.kernel_names().unwrap(), built.kernel_names().unwrap(), "{source}");
    }
}

#[test]
fn every_spelling_of_an_include_counts() {
    let context = common::context();
    let (folder, headers) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let header = headers.path().join("value.h");
    let path = header.display();
    let options = format!("-I {}", headers.path().display());
    let by_macro = format!("{options} -DFILE=\\\"{path}\\\"");
    let forms = [
        ("/* */ #include \"value.h\"".to_owned(), &options),
        ("/* one\n two */ #include \"value.h\"".to_owned(), &options),
        ("# include \"value.h\"".to_owned(), &options),
        ("#/**/include/**/<value.h>".to_owned(), &options),
        ("%:include \"value.h\"".to_owned(), &options),
        ("#import \"value.h\"".to_owned(), &options),
        ("#inc\\\nlude \"value.h\"".to_owned(), &options),
        ("#include \\ \n\"value.h\"".to_owned(), &options),
        (format!("#include \"{path}\""), &options),
        (format!("#define HERE \"{path}\"\n#include HERE"), &options),
        ("#include FILE".to_owned(), &by_macro),
        (
            format!("#if __has_include(\"{path}.more\")\n#define VALUE 2\n#else\n#define VALUE 1\n#endif"),
            &options,
        ),
        (
            format!(
                "#define ASK __has_include\n#if ASK(\"{path}.more\")\n#define VALUE 2\n#else\n#define VALUE 1\n#endif"
            ),
            &options,
        ),
    ];
    let mut checked = 0;
    for (form, options) in &forms {
        let source = format!("{form}\n{SOURCE}");
        let more = headers.path().join("value.h.more");
        fs::write(&header, "#define VALUE 1\n").unwrap();
        let _ = fs::remove_file(&more);
        let cache = open_in(&context, folder.path());
        // Not every driver accepts every form.
        let Ok(program) = cache.get(&source, options) else {
            eprintln!("rejected by the driver: {form}");
            continue;
        };
        assert_eq!(value_of(&context, &program), 1, "{form}");
        fs::write(&header, "#define VALUE 2\n").unwrap();
        fs::write(&more, "").unwrap();
        for cache in [cache, open_in(&context, folder.path())] {
            let program = cache.get(&source, options).unwrap();
            assert_eq!(value_of(&context, &program), 2, "{form}");
        }
        checked += 1;
    }
    assert!(checked >= 6, "{checked} forms");
}

#[cfg(unix)]
#[test]
fn a_folder_or_file_writable_by_others_is_not_used() {
    use std::os::unix::fs::PermissionsExt;

    let context = common::context();
    if !common::tells_code(&context) {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let folder = base.path().join("cache");
    let compiled = |trouble: &str| {
        let cache = open_in(&context, &folder);
        assert_eq!(get(&cache, 9), 9);
        let stats = cache.stats();
        let found = stats.disk_trouble.clone().unwrap_or_default();
        assert!(
            found.contains(trouble) && trouble.is_empty() == found.is_empty(),
            "{found}"
        );
        stats.compiled
    };
    assert_eq!((compiled(""), compiled("")), (1, 0));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let file = files(&folder).remove(0);
    assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
    let chmod = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    chmod(&file, 0o602);
    assert_eq!((compiled("other users may write"), compiled("")), (1, 0));
    chmod(&folder, 0o777);
    assert_eq!(compiled("other users may write"), 1);
    chmod(&folder, 0o755);
    assert_eq!(compiled(""), 0);
    // A pipe: opening it would block until a writer appears.
    fs::remove_file(&file).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&file).status();
    if made.is_ok_and(|status| status.success()) {
        assert_eq!((compiled("regular file"), compiled("")), (1, 0));
    }
}

#[test]
fn a_program_with_an_include_that_cannot_be_followed_is_compiled_each_time() {
    let context = common::context();
    if !common::tells_code(&context) {
        return;
    }
    let (folder, headers) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(headers.path().join("value.h"), "#define VALUE 6\n").unwrap();
    let source = "#define FILE \"value.h\"\n#include FILE\nkernel void set(global int *x) { x[0] = VALUE; }";
    let options = format!("-I {}", headers.path().display());
    let cache = open_in(&context, folder.path());
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
    if !common::tells_code(&context) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let cache = || open_in(&context, folder.path());
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
        assert!(stats.disk_trouble.unwrap().contains("not a complete program"));
        let healed = cache();
        get(&healed, 7);
        assert_eq!(healed.stats().disk_hits, 1, "the damaged file was not replaced");
    }
}

#[test]
fn content_under_a_foreign_header_is_rejected() {
    let context = common::context();
    if !common::tells_code(&context) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    get(&open_in(&context, folder.path()), 1);
    let first = files(folder.path()).remove(0);
    get(&open_in(&context, folder.path()), 2);
    let mut both = files(folder.path());
    both.retain(|file| *file != first);
    let content: Vec<_> = [first.clone(), both.remove(0)]
        .map(|file| fs::read(file).unwrap())
        .into();
    // After the format and the key.
    let spliced = [&content[0][..48], &content[1][48..]].concat();
    fs::write(&first, spliced).unwrap();
    let cache = open_in(&context, folder.path());
    assert_eq!(get(&cache, 1), 1);
    assert_eq!(cache.stats().compiled, 1);
}

#[test]
fn a_file_of_another_key_is_not_taken() {
    let context = common::context();
    if !common::tells_code(&context) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    get(&open_in(&context, folder.path()), 1);
    let first = files(folder.path()).remove(0);
    let content = fs::read(&first).unwrap();
    get(&open_in(&context, folder.path()), 2);
    for file in files(folder.path()) {
        fs::write(file, &content).unwrap();
    }
    let cache = open_in(&context, folder.path());
    assert_eq!((get(&cache, 1), get(&cache, 2)), (1, 2));
    let stats = cache.stats();
    assert_eq!((stats.disk_hits, stats.compiled), (1, 1));
}

#[test]
fn a_kept_binary_that_is_refused_costs_a_compilation() {
    let context = common::context();
    if !common::tells_code(&context) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    get(&open_in(&context, folder.path()), 3);
    let file = files(folder.path()).remove(0);
    let kept = fs::read(&file).unwrap();
    // Format and key; then the length, the digest and the content.
    let (head, body) = (&kept[..16 + 32], &kept[16 + 32 + 8 + 32..]);
    // What a version without today's refusals may have kept, and what the driver takes for no binary.
    let with_constructor = [body, b"\0llvm.global_ctors\0"].concat();
    for (body, reason) in [(&with_constructor[..], "without a launch"), (b"no binary", "BINARY")] {
        // A complete file with a right digest.
        let digest = blake3::hash(&[head, body].concat());
        let length = (body.len() as u64).to_le_bytes();
        fs::write(&file, [head, &length, digest.as_bytes(), body].concat()).unwrap();
        let cache = open_in(&context, folder.path());
        assert_eq!(get(&cache, 3), 3);
        let stats = cache.stats();
        assert_eq!((stats.disk_hits, stats.compiled), (0, 1));
        let trouble = stats.disk_trouble.unwrap();
        assert!(trouble.contains(reason), "{trouble}");
    }
}

#[test]
fn a_folder_that_cannot_be_written_costs_nothing_else() {
    let context = common::context();
    if !common::tells_code(&context) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Below a file there is no folder, for root as for anyone.
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    let cache = open_in(&context, &file.join("below"));
    assert_eq!((get(&cache, 4), get(&cache, 4)), (4, 4));
    let stats = cache.stats();
    assert_eq!((stats.compiled, stats.memory_hits), (1, 1));
    assert!(stats.disk_trouble.is_some());
}

#[test]
fn threads_that_ask_at_once_compile_once() {
    let context = common::context();
    let folder = tempfile::tempdir().unwrap();
    let cache = open_in(&context, folder.path());
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
    if !common::tells_code(&context) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| assert_eq!(get(&open_in(&context, folder.path()), 12), 12));
        }
    });
    assert_eq!(files(folder.path()).len(), 1);
    let warm = open_in(&context, folder.path());
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

/// A header that includes `inner`, whose value changes, in a folder with these other headers: programs follow it.
fn assert_followed(outer: &[u8], inner: &OsStr, others: &[(&str, &str)]) {
    let context = common::context();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("outer.h"), outer).unwrap();
    for (name, text) in others {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let source = format!("#include \"outer.h\"\n{SOURCE}");
    let options = format!("-I {}", folder.path().display());
    let cache = ProgramCache::in_memory(&context);
    for value in [1, 2] {
        fs::write(folder.path().join(inner), format!("#define VALUE {value}\n")).unwrap();
        let program = cache.get(&source, &options).unwrap();
        assert_eq!(value_of(&context, &program), value);
    }
}

#[test]
fn an_include_behind_a_nul_counts() {
    assert_followed(b"#\0include \"inner.h\"\n", OsStr::new("inner.h"), &[]);
}

#[test]
fn an_include_whose_name_is_not_utf_8_counts() {
    let inner = OsStr::from_bytes(b"\xff.h");
    assert_followed(b"#include \"\xff.h\"\n", inner, &[("\u{FFFD}.h", "#define VALUE 0\n")]);
}
