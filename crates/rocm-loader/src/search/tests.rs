//! The search order, on a real library and real folders.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::Release;

/// The C library's mathematics stands in for a ROCm library: a real shared library that every Linux machine has.
const SEARCH: Search = Search {
    library: "libstandin",
    env: "STANDIN_LIBRARY",
    sonames: &["libstandin.so.2", "libstandin.so.1"],
    key_symbol: c"cos",
    once: &[],
    fallback: None,
    floor: None,
};

fn real_library() -> PathBuf {
    let search = Search {
        library: "libm",
        sonames: &["libm.so.6"],
        ..SEARCH
    };
    search
        .load_with(&|_| None)
        .expect("the C library has a mathematics part")
        .path
}

impl Search {
    /// As [`Search::load`], with the environment given and no installation but those that it names.
    fn load_with(&self, env: &dyn Fn(&str) -> Option<OsString>) -> Result<Loaded, LoadError> {
        let opt = Path::new("/nowhere/opt");
        self.load_on(&Machine { env, opt })
    }
}

fn environment<'a>(values: &'a [(&'a str, &'a Path)]) -> impl Fn(&str) -> Option<OsString> + 'a {
    move |name| {
        values
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, path)| path.as_os_str().to_owned())
    }
}

/// A ROCm folder whose `lib` holds the stand-in under this name.
fn rocm_folder(name: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a folder");
    fs::create_dir(root.path().join("lib")).expect("its lib");
    symlink(real_library(), root.path().join("lib").join(name)).expect("a link");
    root
}

#[test]
fn a_loaded_library_names_the_real_file_and_resolves_symbols() {
    let root = rocm_folder("libstandin.so.1");
    let loaded = SEARCH
        .load_with(&environment(&[("ROCM_PATH", root.path())]))
        .expect("it lies there");
    assert_eq!(loaded.path, real_library());
    assert!(loaded.symbol(c"sin").is_some());
    assert!(loaded.symbol(c"hipMalloc").is_none());
}

#[test]
fn an_explicit_path_is_the_only_place_looked_at() {
    let root = rocm_folder("libstandin.so.1");
    let missing = root.path().join("absent.so");
    let env = [("STANDIN_LIBRARY", missing.as_path()), ("ROCM_PATH", root.path())];
    let error = SEARCH
        .load_with(&environment(&env))
        .expect_err("the named file is absent");
    let LoadError::Missing { path, env, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!((path, *env), (&missing, Some("STANDIN_LIBRARY")));
    assert!(error.to_string().contains("STANDIN_LIBRARY names it"), "{error}");
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let env = [("STANDIN_LIBRARY", Path::new("")), ("ROCM_PATH", Path::new(""))];
    let error = SEARCH
        .load_with(&environment(&env))
        .expect_err("there is no such library");
    let LoadError::NotFound { tried, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(tried[0].path, Path::new("libstandin.so.2"));
}

#[test]
fn the_error_lists_every_place_in_the_search_order_on_one_line() {
    let env = [("ROCM_PATH", Path::new("/r")), ("HIP_PATH", Path::new("/h"))];
    let error = SEARCH
        .load_with(&environment(&env))
        .expect_err("there is no such library");
    let LoadError::NotFound { tried, .. } = &error else {
        panic!("{error}")
    };
    let places: Vec<&str> = tried.iter().filter_map(|tried| tried.path.to_str()).collect();
    let expected = [
        "/r/lib/libstandin.so.2",
        "/r/lib/libstandin.so.1",
        "/r/lib/libstandin.so",
        "/h/lib/libstandin.so.2",
        "/h/lib/libstandin.so.1",
        "/h/lib/libstandin.so",
        "libstandin.so.2",
        "libstandin.so.1",
        "libstandin.so",
        "/nowhere/opt/rocm/lib/libstandin.so.2",
        "/nowhere/opt/rocm/lib/libstandin.so.1",
        "/nowhere/opt/rocm/lib/libstandin.so",
    ];
    assert_eq!(places, expected);
    let line = error.to_string();
    assert!(!line.contains('\n'), "{line}");
    for place in expected {
        assert!(line.contains(&format!("{place} (")), "{place} in {line}");
    }
    assert!(line.contains("STANDIN_LIBRARY"), "{line}");
}

#[test]
fn an_unusable_file_is_passed_over_for_the_next_place() {
    let (old, new) = (rocm_folder("libstandin.so.1"), rocm_folder("libstandin.so.2"));
    symlink(real_library(), old.path().join("lib/libstandin.so")).expect("a link");
    // Broken on purpose: it is tried only if the first folder has nothing.
    fs::remove_file(new.path().join("lib/libstandin.so.2")).expect("the link");
    fs::write(new.path().join("lib/libstandin.so.2"), "text").expect("a file");
    let env = [("ROCM_PATH", new.path()), ("HIP_PATH", old.path())];
    let loaded = SEARCH
        .load_with(&environment(&env))
        .expect("an unusable file is passed over");
    assert_eq!(loaded.path, real_library());
}

#[test]
fn a_copy_in_the_process_is_used_before_any_folder() {
    let search = Search {
        library: "libc",
        sonames: &["libc.so.6"],
        key_symbol: c"getpid",
        ..SEARCH
    };
    let root = tempfile::tempdir().expect("a folder");
    fs::create_dir(root.path().join("lib")).expect("its lib");
    fs::write(root.path().join("lib/libc.so.6"), "text").expect("a decoy");
    let loaded = search
        .load_with(&environment(&[("ROCM_PATH", root.path())]))
        .expect("it is resident");
    assert!(!loaded.path.starts_with(root.path()));
    assert!(search.already_in_process().is_some());
    assert!(SEARCH.already_in_process().is_none());
}

#[test]
fn a_file_that_is_no_library_and_one_of_another_processor_are_told_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("libstandin.so");
    fs::write(&file, "this is a text file, not a library").expect("a file");
    assert!(matches!(SEARCH.load_file(&file), Err(LoadError::NotALibrary { .. })));
    fs::write(&file, "short").expect("a file");
    assert!(matches!(SEARCH.load_file(&file), Err(LoadError::NotALibrary { .. })));
    assert!(matches!(
        SEARCH.load_file(folder.path()),
        Err(LoadError::NotALibrary { .. })
    ));

    let mut foreign = vec![0; 64];
    foreign[..6].copy_from_slice(b"\x7fELF\x02\x01");
    foreign[16] = 3;
    foreign[18] = 0xf3;
    fs::write(&file, &foreign).expect("a file");
    let error = SEARCH.load_file(&file).expect_err("a RISC-V library");
    let LoadError::WrongArchitecture { found, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(found, "riscv");

    // A header of the right kind that announces no segment: only the dynamic linker can tell.
    let mut empty = fs::read(real_library()).expect("the real file");
    empty.truncate(64);
    empty[56..58].fill(0);
    fs::write(&file, &empty).expect("a file");
    let error = SEARCH.load_file(&file).expect_err("an empty library");
    assert!(matches!(error, LoadError::Open { .. }), "{error}");
    assert!(!error.to_string().contains('\n'));
}

#[test]
fn a_file_that_was_cut_off_is_an_error_wherever_the_cut_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("libstandin.so");
    let whole = fs::read(real_library()).expect("the real file");
    for eighths in 0..8 {
        fs::write(&file, &whole[..whole.len() / 8 * eighths]).expect("a file");
        // Without the check the dynamic linker maps the file, and the process dies of SIGBUS.
        let error = SEARCH.load_file(&file).expect_err("a cut-off library");
        assert!(matches!(error, LoadError::NotALibrary { .. }), "{error}");
    }
    fs::write(&file, &whole).expect("a file");
    SEARCH.load_file(&file).expect("the whole library");
}

#[test]
fn another_library_is_recognised_by_the_missing_function() {
    let search = Search {
        key_symbol: c"hipGetDeviceCount",
        ..SEARCH
    };
    let error = search.load_file(&real_library()).expect_err("it is not HIP");
    let LoadError::MissingSymbol { symbol, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(*symbol, "hipGetDeviceCount");
}

#[test]
fn a_neighbour_is_looked_for_in_its_folder_only() {
    let root = rocm_folder("libstandin.so.2");
    let mut neighbour = SEARCH.load_file(&real_library()).expect("a library");
    let other = Search {
        library: "libneighbour",
        sonames: &["libneighbour.so.0"],
        ..SEARCH
    };
    neighbour.path = root.path().join("lib/libstandin.so.2");
    let error = other.load_next_to(&neighbour).expect_err("no such neighbour");
    let LoadError::NotFound { tried, .. } = &error else {
        panic!("{error}")
    };
    assert!(tried.iter().all(|tried| tried.path.starts_with(root.path())));
    symlink(real_library(), root.path().join("lib/libneighbour.so.0")).expect("a link");
    assert!(other.load_next_to(&neighbour).is_ok());
}

#[test]
fn the_fallback_is_taken_last_and_its_places_are_listed() {
    static FALLBACK: Search = Search {
        library: "libolder",
        env: "OLDER_LIBRARY",
        sonames: &[],
        ..SEARCH
    };
    let search = Search {
        fallback: Some(&FALLBACK),
        ..SEARCH
    };
    let root = rocm_folder("libolder.so");
    let loaded = search
        .load_with(&environment(&[("ROCM_PATH", root.path())]))
        .expect("the older one has it");
    assert_eq!(loaded.path, real_library());

    let error = search.load_with(&|_| None).expect_err("neither is there");
    assert!(
        error.to_string().contains("/nowhere/opt/rocm/lib/libolder.so ("),
        "{error}"
    );

    let broken = root.path().join("absent");
    let error = search
        .load_with(&environment(&[("OLDER_LIBRARY", &broken)]))
        .expect_err("neither is there");
    assert!(error.to_string().contains("absent (no such file)"), "{error}");
}

#[test]
fn a_second_copy_of_a_runtime_is_an_error_that_names_both_files() {
    // Another file with the same contents, which is what a wheel's copy of a library is.
    let folder = tempfile::tempdir().expect("a folder");
    let (first, second) = (
        folder.path().join("libtwice.so.1"),
        folder.path().join("libtwice-8f1c.so.1"),
    );
    for path in [&first, &second] {
        fs::copy(real_library(), path).expect("a copy");
    }
    let alone = Search {
        library: "libtwice",
        once: &["libtwice"],
        ..SEARCH
    };
    alone.load_file(&first).expect("one copy");
    alone.load_file(&first).expect("the same copy again");
    let error = alone.load_file(&second).expect_err("two copies");
    let LoadError::TwoCopies {
        library,
        first: one,
        second: other,
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(*library, "libtwice");
    let mut files = [one, other];
    files.sort();
    assert_eq!(files, [&second, &first]);
    // Nothing can be unloaded, so every later way in finds it too.
    assert!(matches!(alone.load_file(&first), Err(LoadError::TwoCopies { .. })));
}

#[test]
fn a_library_that_is_too_old_ends_the_search_with_both_releases_and_a_remedy() {
    let (old, new) = (rocm_folder("libstandin.so.2"), rocm_folder("libstandin.so.2"));
    let env = [("ROCM_PATH", old.path()), ("HIP_PATH", new.path())];
    let with_floor = |oldest, release| Search {
        floor: Some(Floor {
            oldest,
            release,
            lacking: "older ones can't count",
        }),
        ..SEARCH
    };
    let five_two = |_: &Loaded| Some(Release::new(5, 2));
    let error = with_floor(Release::new(5, 7), five_two)
        .load_with(&environment(&env))
        .expect_err("it says that it is too old");
    let LoadError::TooOld { found, oldest, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!((*found, *oldest), (Release::new(5, 2), Release::new(5, 7)));
    let line = error.to_string();
    for part in ["ROCm 5.2", "5.7", "can't count", "STANDIN_LIBRARY"] {
        assert!(line.contains(part), "{part} in {line}");
    }
    assert!(!line.contains('\n'), "{line}");

    for (oldest, release) in [
        (Release::new(5, 2), five_two as fn(&Loaded) -> _),
        (Release::new(5, 7), |_: &Loaded| None),
    ] {
        assert!(with_floor(oldest, release).load_with(&environment(&env)).is_ok());
    }
}

/// A machine's folder of installations; each name in `at` is a link to a library of its own, so the file identifies the
/// place.
struct Installed {
    folder: tempfile::TempDir,
}

impl Installed {
    fn new(at: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for place in at {
            let file = folder.path().join(place);
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            fs::copy(real_library(), file).expect("a copy");
        }
        Self { folder }
    }

    fn path(&self, place: &str) -> PathBuf {
        let folder = self.folder.path().canonicalize();
        folder.expect("it is there").join(place)
    }

    /// Where the library is found, relative to the folder.
    fn found(&self, search: &Search, env: &[(&str, &Path)]) -> Option<String> {
        let env = environment(env);
        let machine = Machine {
            env: &env,
            opt: self.folder.path(),
        };
        let loaded = search.load_on(&machine).ok()?;
        let place = loaded.path.strip_prefix(self.path("")).ok()?;
        Some(place.display().to_string())
    }
}

#[test]
fn of_several_releases_the_newest_is_found_and_the_linked_one_before_it() {
    let rocm = Installed::new(&[
        "rocm-7.2.4/lib/libstandin.so.2",
        "rocm-6.4/lib/libstandin.so.1",
        "rocm/core-10.0/lib/libstandin.so.2",
        "rocm/core-10.1/lib/libstandin.so.2",
        "rocm/core-9.9/lib/libstandin.so.2",
        "rocm/extras-10/lib/libstandin.so.2",
    ]);
    let found = || rocm.found(&SEARCH, &[]);
    let newest = "rocm/core-10.1/lib/libstandin.so.2";
    assert_eq!(found().as_deref(), Some(newest));

    // Distribution packages link the release that was chosen.
    symlink("core-10.0/lib", rocm.path("rocm/lib")).expect("a link");
    let chosen = "rocm/core-10.0/lib/libstandin.so.2";
    assert_eq!(found().as_deref(), Some(chosen));

    // A variable comes before everything.
    let older = rocm.path("rocm-6.4");
    assert_eq!(
        rocm.found(&SEARCH, &[("ROCM_PATH", &older)]).as_deref(),
        Some("rocm-6.4/lib/libstandin.so.1")
    );
    let tenth = rocm.path("rocm/core-10.1");
    let env = [("HIP_PATH", older.as_path()), ("ROCM_PATH", &tenth)];
    assert_eq!(rocm.found(&SEARCH, &env).as_deref(), Some(newest));
}

#[test]
fn older_installations_are_found_where_no_newer_one_has_the_library() {
    let rocm = Installed::new(&[
        "rocm/core-10.1/lib/libother.so.2",
        "rocm-6.4/lib/libstandin.so.1",
        "rocm-6.10/lib/libstandin.so.1",
    ]);
    assert_eq!(
        rocm.found(&SEARCH, &[]).as_deref(),
        Some("rocm-6.10/lib/libstandin.so.1")
    );
    let extras = Installed::new(&["rocm/extras-10/lib/libstandin.so.2"]);
    assert_eq!(extras.found(&SEARCH, &[]), None);
}

#[test]
fn the_wheels_of_the_active_python_come_after_every_installation() {
    let site = "venv/lib/python3.12/site-packages";
    let wheel = format!("{site}/_rocm_sdk_core/lib/libstandin.so.2");
    let machine = Installed::new(&[&wheel]);
    let venv = machine.path("venv");
    let active: [(&str, &Path); 1] = [("VIRTUAL_ENV", &venv)];
    assert_eq!(machine.found(&SEARCH, &active).as_deref(), Some(&*wheel));
    assert_eq!(machine.found(&SEARCH, &[]), None);

    let installed = "rocm-6.4/lib/libstandin.so.1";
    fs::create_dir_all(machine.path("rocm-6.4/lib")).expect("a folder");
    fs::copy(real_library(), machine.path(installed)).expect("a copy");
    assert_eq!(machine.found(&SEARCH, &active).as_deref(), Some(installed));
}

#[test]
fn the_blas_of_a_wheel_is_found_beside_its_runtime_and_that_of_another_release_is_not() {
    let site = "venv/lib/python3.12/site-packages";
    let hip = format!("{site}/_rocm_sdk_core/lib/libstandin.so.2");
    let blas = format!("{site}/_rocm_sdk_libraries/lib/libneighbour.so.0");
    let machine = Installed::new(&[&hip, &blas, "rocm/core-10.1/lib/libneighbour.so.0"]);
    let runtime = SEARCH.load_file(&machine.path(&hip)).expect("the runtime");
    let search = Search {
        library: "libneighbour",
        sonames: &["libneighbour.so.0"],
        ..SEARCH
    };
    let found = search.load_next_to(&runtime).expect("it lies in its wheel");
    assert_eq!(found.path, machine.path(&blas));
    assert!(found.is_together_with(&runtime));
    let other = machine.path("rocm/core-10.1/lib/libneighbour.so.0");
    let other = search.load_file(&other).expect("a library");
    assert!(!other.is_together_with(&runtime));

    for record in ["rocm_sdk_core-10.0.0.dist-info", "rocm_sdk_libraries-10.1.0.dist-info"] {
        fs::create_dir(machine.path(site).join(record)).expect("a record");
    }
    assert!(!found.is_together_with(&runtime));
    let error = search.load_next_to(&runtime).expect_err("of another release");
    assert!(matches!(error, LoadError::NotFound { .. }), "{error}");
}

#[test]
fn a_library_newer_than_every_known_one_is_taken_where_no_known_one_is() {
    let lib = "rocm/core-12.0/lib";
    let newer = [9, 4, 3].map(|number| format!("{lib}/libstandin.so.{number}"));
    let rocm = Installed::new(&newer.each_ref().map(String::as_str));
    assert_eq!(
        rocm.found(&SEARCH, &[]).as_deref(),
        Some("rocm/core-12.0/lib/libstandin.so.3"),
        "the one that is least ahead"
    );
    for (known, expected) in [("", "libstandin.so"), (".1", "libstandin.so.1")] {
        let file = format!("{lib}/libstandin.so{known}");
        fs::copy(real_library(), rocm.path(&file)).expect("a copy");
        assert_eq!(
            rocm.found(&SEARCH, &[]),
            Some(format!("{lib}/{expected}")),
            "a known name comes first"
        );
    }
    // Numbers of a patch, an older release and other files are no newer library.
    let none = Installed::new(&[
        "rocm/core-12.0/lib/libstandin.so.0",
        "rocm/core-12.0/lib/libstandin.so.3.1",
        "rocm/core-12.0/lib/libstandinx.so.3",
    ]);
    assert_eq!(none.found(&SEARCH, &[]), None);
}
