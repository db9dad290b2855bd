//! Libraries that work only as the single copy in a process.
//!
//! ROCm's runtimes keep their state (the memory they know, the one open `/dev/kfd`) in the library itself. Two files of
//! one runtime in a process, such as a Python wheel's and the system's, are two runtimes that do not know each other's
//! memory.

use crate::LoadError;

/// Fails if this process has two different files of one of `libraries`.
#[cfg(target_os = "linux")]
pub(crate) fn check(libraries: &[&'static str]) -> Result<(), LoadError> {
    if libraries.is_empty() {
        return Ok(());
    }
    // Without /proc nothing can be told, and nothing is claimed.
    match std::fs::read_to_string("/proc/self/maps") {
        Ok(maps) => check_in(&maps, libraries),
        Err(_) => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn check(_libraries: &[&'static str]) -> Result<(), LoadError> {
    Ok(())
}

#[cfg(any(target_os = "linux", test))]
fn check_in(maps: &str, libraries: &[&'static str]) -> Result<(), LoadError> {
    for &library in libraries {
        let mut first: Option<Mapped> = None;
        for mapped in maps.lines().filter_map(Mapped::parse) {
            if !mapped.is_copy_of(library) {
                continue;
            }
            match &first {
                None => first = Some(mapped),
                Some(known) if known.file == mapped.file => {}
                Some(known) => {
                    return Err(LoadError::TwoCopies {
                        library,
                        first: known.path.into(),
                        second: mapped.path.into(),
                    });
                }
            }
        }
    }
    Ok(())
}

/// One executable mapping of a file: `7f00-7f10 r-xp 00001000 08:01 42    /opt/rocm/lib/libhsa-runtime64.so.1`.
#[cfg(any(target_os = "linux", test))]
struct Mapped<'a> {
    /// Device and inode: two links to one file are one library to the dynamic linker, two files of one name are two.
    file: (&'a str, &'a str),
    path: &'a str,
}

#[cfg(any(target_os = "linux", test))]
impl<'a> Mapped<'a> {
    /// Nothing for a mapping that is not code: a program that only reads a library's file does not run it.
    fn parse(line: &'a str) -> Option<Self> {
        let path = &line[line.find('/')?..];
        let mut fields = line.split_ascii_whitespace().skip(1);
        let executable = fields.next()?.contains('x');
        let file = (fields.nth(1)?, fields.next()?);
        executable.then_some(Self { file, path })
    }

    /// Wheels insert a digest before the suffix (`libhsa-runtime64-1a2b3c4d.so.1`).
    fn is_copy_of(&self, library: &str) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or(self.path);
        name.strip_prefix(library)
            .is_some_and(|rest| rest.starts_with(".so") || (rest.starts_with('-') && rest.contains(".so")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HSA: &[&str] = &["libhsa-runtime64"];

    fn line(permissions: &str, inode: u32, path: &str) -> String {
        format!("7f0000000000-7f0000001000 {permissions} 00001000 08:01 {inode}        {path}\n")
    }

    #[test]
    fn two_files_of_one_runtime_are_named_both() {
        let maps = line("r-xp", 42, "/opt/rocm/lib/libhsa-runtime64.so.1.15")
            + &line("r-xp", 43, "/opt/venv a/lib/libhsa-runtime64-1a2b.so.1");
        let error = check_in(&maps, HSA).expect_err("two runtimes");
        let LoadError::TwoCopies { library, first, second } = &error else {
            panic!("{error}")
        };
        assert_eq!(*library, "libhsa-runtime64");
        assert_eq!(first.to_str(), Some("/opt/rocm/lib/libhsa-runtime64.so.1.15"));
        assert_eq!(second.to_str(), Some("/opt/venv a/lib/libhsa-runtime64-1a2b.so.1"));
        assert!(!error.to_string().contains('\n'));
    }

    #[test]
    fn two_links_to_one_file_are_one_runtime() {
        let maps = line("r-xp", 42, "/opt/rocm/lib/libhsa-runtime64.so.1")
            + &line("r-xp", 42, "/opt/rocm-6.3/lib/libhsa-runtime64.so.1.14");
        assert_eq!(check_in(&maps, HSA), Ok(()));
    }

    #[test]
    fn a_replaced_file_of_the_same_name_is_a_second_runtime() {
        let maps = line("r-xp", 42, "/opt/rocm/lib/libhsa-runtime64.so.1 (deleted)")
            + &line("r-xp", 77, "/opt/rocm/lib/libhsa-runtime64.so.1");
        assert!(check_in(&maps, HSA).is_err());
    }

    #[test]
    fn other_names_and_mappings_without_code_do_not_count() {
        let maps = line("r-xp", 42, "/opt/rocm/lib/libhsa-runtime64.so.1")
            + &line("r--p", 43, "/backup/libhsa-runtime64.so.1")
            + &line("r-xp", 44, "/opt/rocm/lib/libhsa-runtime64x.so.1")
            + &line("r-xp", 45, "/opt/rocm/lib/libhsa-runtime64_tools.so.1")
            + "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n\nnot a mapping\n";
        assert_eq!(check_in(&maps, HSA), Ok(()));
        assert_eq!(check_in(&maps, &[]), Ok(()));
    }
}
