//! Whether includes stayed as they are while a compiler read them.

use std::path::PathBuf;

use super::includes::{self, Includes};
use super::watch::Watch;

/// Runs the compiler. Beside its result stands why it may have read other includes than these, if so.
pub(super) fn during<R: Send>(
    source: &str,
    options: &str,
    includes: &Includes,
    compile: impl FnOnce() -> R + Send,
) -> (R, Option<String>) {
    if includes.is_empty() {
        return (compile(), None);
    }
    // A thread of its own, for relative paths: no other one can change its current folder.
    std::thread::scope(
        |scope| match scope.spawn(|| watched(source, options, includes, compile)).join() {
            Ok(compiled) => compiled,
            Err(panic) => std::panic::resume_unwind(panic),
        },
    )
}

fn watched<R>(source: &str, options: &str, includes: &Includes, compile: impl FnOnce() -> R) -> (R, Option<String>) {
    // SAFETY: takes no pointer. The thread gets a current folder of its own, and shares all else with the process.
    if unsafe { libc::unshare(libc::CLONE_FS) } != 0 {
        let error = std::io::Error::last_os_error();
        let reason = format!("another thread may change the current folder ({error})");
        return (compile(), Some(reason));
    }
    let watch = match Watch::of(includes.keys().map(PathBuf::as_path)) {
        Ok(watch) => watch,
        Err(error) => return (compile(), Some(format!("the includes can't be watched ({error})"))),
    };
    // Read anew: the watch began later, and so did this current folder.
    let are_as_read = || includes::of(source, options).as_ref() == Ok(includes);
    let before = are_as_read();
    let compiled = compile();
    let changed = !(before && watch.is_quiet() && are_as_read());
    (
        compiled,
        changed.then(|| "a file changed while it was compiled".to_owned()),
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const SOURCE: &str = "#include \"a.h\"\n";

    #[test]
    fn what_changes_and_changes_back_meanwhile_counts() {
        let base = tempfile::tempdir().unwrap();
        let at = |name: &str| base.path().join(name);
        fs::create_dir(at("folder")).unwrap();
        fs::write(at("folder/a.h"), "int a;\n").unwrap();
        let options = format!("-I {}", at("folder").display());
        let includes = includes::of(SOURCE, &options).unwrap();
        let trouble = |change: &(dyn Fn() + Sync)| during(SOURCE, &options, &includes, change).1;
        assert_eq!(trouble(&|| ()), None);
        let changed = trouble(&|| {
            fs::rename(at("folder"), at("kept")).unwrap();
            fs::rename(at("kept"), at("folder")).unwrap();
        });
        assert!(changed.unwrap().contains("changed while it was compiled"));
        // Before the compiler began, but after the includes were read.
        fs::write(at("folder/a.h"), "int b;\n").unwrap();
        assert!(trouble(&|| ()).is_some());
    }

    #[test]
    fn the_compiler_has_a_current_folder_of_its_own() {
        let base = tempfile::tempdir().unwrap();
        let elsewhere = base.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::write(base.path().join("a.h"), "").unwrap();
        let options = format!("-I {}", base.path().display());
        let includes = includes::of(SOURCE, &options).unwrap();
        let before = std::env::current_dir().unwrap();
        let ((), trouble) = during(SOURCE, &options, &includes, || {
            std::env::set_current_dir(&elsewhere).unwrap();
        });
        assert_eq!(trouble, None);
        assert_eq!(std::env::current_dir().unwrap(), before);
    }
}
