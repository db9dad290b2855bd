//! The dynamic symbols of a shared library, read from its file: nothing is loaded or run.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use object::Endianness;
use object::elf::{FileHeader64, SHT_DYNSYM, STB_LOCAL, STT_FUNC};
use object::read::elf::{FileHeader, Sym};
use object::read::{ReadCache, ReadRef};

use crate::codegen::Result;

/// What a library exports.
#[derive(Debug)]
pub struct Exports {
    /// Each function, with the node of the library's version script that it belongs to, if it has one.
    ///
    /// Of several versions of a function this is the one that `dlsym` returns.
    pub functions: BTreeMap<String, Option<String>>,
}

impl Exports {
    /// Reads the file piece by piece: libraries of gigabytes do not have to fit into memory.
    pub fn of_file(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|error| format!("cannot open {}: {error}", path.display()))?;
        let cache = ReadCache::new(file);
        Self::read(&cache).map_err(|error| format!("{} is not a shared library: {error}", path.display()).into())
    }

    fn read<'data, R: ReadRef<'data>>(data: R) -> object::Result<Self> {
        let header = FileHeader64::<Endianness>::parse(data)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, data)?;
        let symbols = sections.symbols(endian, data, SHT_DYNSYM)?;
        let versions = sections.versions(endian, data)?;
        let mut functions = BTreeMap::new();
        for (index, symbol) in symbols.enumerate() {
            let exported =
                symbol.st_type() == STT_FUNC && symbol.st_bind() != STB_LOCAL && !symbol.is_undefined(endian);
            if !exported {
                continue;
            }
            let Ok(name) = std::str::from_utf8(symbol.name(endian, symbols.strings())?) else {
                continue;
            };
            let mut node = None;
            if let Some(versions) = &versions {
                let version = versions.version_index(endian, index);
                if version.is_hidden() {
                    continue;
                }
                if let Some(version) = versions.version(version)? {
                    node = Some(String::from_utf8_lossy(version.name()).into_owned());
                }
            }
            functions.insert(name.to_owned(), node);
        }
        Ok(Self { functions })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_exports_its_functions_with_their_version_nodes() {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("the process' mappings");
        let libc = maps
            .lines()
            .find_map(|line| Some(&line[line.find('/')?..]).filter(|path| path.contains("libc.so")))
            .expect("this test is linked to the C library");
        let exports = Exports::of_file(Path::new(libc)).expect("a shared library");
        let node = exports.functions.get("malloc").expect("it has malloc");
        assert!(
            node.as_deref().is_some_and(|node| node.starts_with("GLIBC_")),
            "{node:?}"
        );
        assert!(!exports.functions.contains_key("hipMalloc"));
    }

    #[test]
    fn a_text_is_refused_by_its_name() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "this is no library").expect("some text");
        let error = Exports::of_file(file.path()).expect_err("a text");
        assert!(
            error.to_string().contains(&file.path().display().to_string()),
            "{error}"
        );
    }
}
