//! Code that would run when the library is loaded. Loading is safe, so a module has none; a GPU's module cannot have any
//! either: clang refuses initial values of device variables that need code.

use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, read};

/// What a message says of it.
pub(super) const REFUSED: &str = "error: code would run when the module is loaded (a variable's initial value, a constructor or an ifunc); initialise variables with constants, as for a GPU\n";

/// Entries of the dynamic section with functions that the loader calls.
const CALLED: [i64; 5] = [
    elf::DT_INIT,
    elf::DT_FINI,
    elf::DT_INIT_ARRAY,
    elf::DT_FINI_ARRAY,
    elf::DT_PREINIT_ARRAY,
];

/// Whether loading this library runs code of it; also `true` for what is not a library.
pub(super) fn runs(library: &[u8]) -> bool {
    examine(library).unwrap_or(true)
}

fn examine(library: &[u8]) -> read::Result<bool> {
    let header = FileHeader64::<Endianness>::parse(library)?;
    let endian = header.endian()?;
    for segment in header.program_headers(endian, library)? {
        let entries = segment.dynamic(endian, library)?.unwrap_or_default();
        if entries
            .iter()
            .filter_map(|entry| entry.tag32(endian))
            .any(|tag| CALLED.contains(&tag.into()))
        {
            return Ok(true);
        }
    }
    // The loader calls the resolver of each indirect function, local ones by relocations of their own kind.
    let resolved = match header.e_machine(endian) {
        elf::EM_X86_64 => elf::R_X86_64_IRELATIVE,
        elf::EM_AARCH64 => elf::R_AARCH64_IRELATIVE,
        _ => return Ok(true),
    };
    let sections = header.sections(endian, library)?;
    for section in sections.iter() {
        if let Some((relocations, _)) = section.rela(endian, library)?
            && relocations.iter().any(|it| it.r_type(endian, false) == resolved)
        {
            return Ok(true);
        }
    }
    let symbols = sections.symbols(endian, library, elf::SHT_DYNSYM)?;
    Ok(symbols.iter().any(|symbol| symbol.st_type() == elf::STT_GNU_IFUNC))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_library_is_refused() {
        assert!(runs(b""));
        assert!(runs(b"\x7fELF"));
    }
}
