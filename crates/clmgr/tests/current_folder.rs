//! Programs with relative includes, in a process whose current folder changes: the only test of its process.

#[path = "common/mod.rs"]
mod common;

use std::env::set_current_dir;
use std::fs;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clmgr::ProgramCache;

const SOURCE: &str = "#include \"name.h\"\nkernel void NAME(global int *x) { x[0] = 1; }";

/// The include of the folder that is the current one before and after is the one that the kept program was made of.
#[test]
fn a_current_folder_that_changes_meanwhile_leaves_no_wrong_program() {
    let context = common::context();
    let base = tempfile::tempdir().unwrap();
    let folders = ["first", "second"].map(|name| {
        let folder = base.path().join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("name.h"), format!("#define NAME {name}\n")).unwrap();
        folder
    });
    set_current_dir(&folders[0]).unwrap();
    for round in 0..40 {
        let cache = ProgramCache::in_memory(&context);
        let (stop, began) = (AtomicBool::new(false), Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                began.wait();
                while !stop.load(Ordering::Relaxed) {
                    for folder in [&folders[1], &folders[0]] {
                        set_current_dir(folder).unwrap();
                        // As long as a part of a compilation takes.
                        std::thread::sleep(Duration::from_micros(700));
                    }
                }
            });
            began.wait();
            let program = cache.get(SOURCE, "-I .");
            stop.store(true, Ordering::Relaxed);
            program.unwrap();
        });
        let program = cache.get(SOURCE, "-I .").unwrap();
        assert_eq!(program.kernel_names().unwrap(), ["first"], "round {round}");
    }
    set_current_dir("/").unwrap();
}
