//! What a module's library says of itself, before the loader maps it.
//!
//! Loading is safe, so a library is refused if loading it would run code of it or leave it in the process for good. A GPU's
//! module can do neither: clang refuses initial values of device variables that need code.

use std::ops::Range;

use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader, Sym};
use object::{Endianness, read};

/// Entries of the dynamic section with functions that the loader calls.
const CALLED: [i64; 5] = [
    elf::DT_INIT,
    elf::DT_FINI,
    elf::DT_INIT_ARRAY,
    elf::DT_FINI_ARRAY,
    elf::DT_PREINIT_ARRAY,
];

/// Why a library is not loaded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("it is not a library of this machine")]
    NotALibrary,
    #[error(
        "code would run when the module is loaded, for a variable's initial value, a constructor or an ifunc; give \
         variables constant values, as for a GPU"
    )]
    RunsCode,
    #[error("the module would never be unloaded, because of a unique symbol (STB_GNU_UNIQUE); make it an ordinary one")]
    Stays,
    #[error(
        "loading the module would make the stacks of the process executable, because of a section .note.GNU-stack with \
         the flag x, or of object code without that section; leave them as they are"
    )]
    ExecutableStack,
    #[error("the module would load a library by its path; a kernel can use the C library's functions only")]
    LoadsFile,
    #[error("it has no table of kernels")]
    NoTable,
}

/// Where the parts of a library lie, in bytes from where it is loaded.
#[derive(Debug)]
pub(crate) struct Layout {
    /// What is readable only, once relocations have been made.
    read_only: Vec<Range<u64>>,
    executable: Vec<Range<u64>>,
    /// The first page.
    pub(crate) start: u64,
    /// The table of kernels.
    pub(crate) table: u64,
}

impl Layout {
    pub(crate) fn is_read_only(&self, bytes: Range<u64>) -> bool {
        holds(&self.read_only, &bytes)
    }

    pub(crate) fn is_code(&self, address: u64) -> bool {
        holds(&self.executable, &(address..address.saturating_add(1)))
    }
}

/// Where the loader finds relocations: by the dynamic section, not by the table of sections. A source that adds to a
/// section of them makes the linker count it into the first table, whose end then lies in what comes behind.
#[derive(Default)]
struct Tables {
    all: (u64, u64),
    calls: (u64, u64),
}

impl Tables {
    fn note(&mut self, tag: i64, value: u64) {
        match tag {
            elf::DT_RELA => self.all.0 = value,
            elf::DT_RELASZ => self.all.1 = value,
            elf::DT_JMPREL => self.calls.0 = value,
            elf::DT_PLTRELSZ => self.calls.1 = value,
            _ => {}
        }
    }

    /// Whether exactly these bytes are one of the tables.
    fn have(&self, address: u64, bytes: u64) -> bool {
        [self.all, self.calls].contains(&(address, bytes))
    }
}

fn holds(ranges: &[Range<u64>], bytes: &Range<u64>) -> bool {
    bytes.start <= bytes.end && ranges.iter().any(|it| it.start <= bytes.start && bytes.end <= it.end)
}

/// Reads the headers of a library with a table of kernels of this name. Code that is `checked` runs when it is loaded:
/// AddressSanitizer registers a library's variables.
///
/// # Errors
/// Why it must not be loaded.
pub(crate) fn examine(library: &[u8], table: &str, checked: bool) -> Result<Layout, Refusal> {
    read_headers(library, table, checked).unwrap_or(Err(Refusal::NotALibrary))
}

fn read_headers(library: &[u8], table: &str, checked: bool) -> read::Result<Result<Layout, Refusal>> {
    let header = FileHeader64::<Endianness>::parse(library)?;
    let endian = header.endian()?;
    // The loader calls the resolver of each indirect function, local ones by relocations of their own kind.
    let resolved = match header.e_machine(endian) {
        elf::EM_X86_64 => elf::R_X86_64_IRELATIVE,
        elf::EM_AARCH64 => elf::R_AARCH64_IRELATIVE,
        _ => return Ok(Err(Refusal::NotALibrary)),
    };
    let sections = header.sections(endian, library)?;
    let symbols = sections.symbols(endian, library, elf::SHT_DYNSYM)?;
    let page = rustix::param::page_size() as u64;
    let mut layout = Layout {
        read_only: Vec::new(),
        executable: Vec::new(),
        start: u64::MAX,
        table: 0,
    };
    let mut runs_code = false;
    // Without the header, the loader assumes that the library needs it.
    let mut executable_stack = true;
    let mut tables = Tables::default();
    for segment in header.program_headers(endian, library)? {
        let start = segment.p_vaddr(endian);
        let end = start.saturating_add(segment.p_memsz(endian));
        match segment.p_type(endian) {
            elf::PT_LOAD => {
                layout.start = layout.start.min(start - start % page);
                if segment.p_flags(endian) & elf::PF_W == 0 {
                    layout.read_only.push(start..end);
                }
                if segment.p_flags(endian) & elf::PF_X != 0 {
                    layout.executable.push(start..end);
                }
            }
            elf::PT_GNU_STACK => executable_stack = segment.p_flags(endian) & elf::PF_X != 0,
            // The loader protects whole pages.
            elf::PT_GNU_RELRO => layout.read_only.push(start..end - end % page),
            _ => {}
        }
        for entry in segment.dynamic(endian, library)?.unwrap_or_default() {
            let tag = entry.tag32(endian).map_or(0, i64::from);
            runs_code |= CALLED.contains(&tag);
            tables.note(tag, entry.d_val(endian));
            if tag == elf::DT_NEEDED {
                let name = entry.val32(endian).and_then(|at| symbols.strings().get(at).ok());
                if name.is_none_or(|name| name.contains(&b'/')) {
                    return Ok(Err(Refusal::LoadsFile));
                }
            }
        }
    }
    if executable_stack {
        return Ok(Err(Refusal::ExecutableStack));
    }
    for section in sections.iter() {
        if let Some((relocations, _)) = section.rela(endian, library)? {
            runs_code |= relocations.iter().any(|it| it.r_type(endian, false) == resolved);
            let is_loaded = section.sh_flags(endian) & u64::from(elf::SHF_ALLOC) != 0;
            runs_code |= is_loaded && !tables.have(section.sh_addr(endian), section.sh_size(endian));
        }
    }
    let mut found = None;
    for symbol in symbols.iter() {
        runs_code |= symbol.st_type() == elf::STT_GNU_IFUNC;
        if symbol.st_bind() == elf::STB_GNU_UNIQUE {
            return Ok(Err(Refusal::Stays));
        }
        if symbol.st_shndx(endian) != elf::SHN_UNDEF && symbol.name(endian, symbols.strings())? == table.as_bytes() {
            found = Some(symbol.st_value(endian));
        }
    }
    if runs_code && !checked {
        return Ok(Err(Refusal::RunsCode));
    }
    Ok(match found {
        Some(table) => Ok(Layout { table, ..layout }),
        None => Err(Refusal::NoTable),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_library_is_refused() {
        for bytes in [&b""[..], b"\x7fELF"] {
            assert_eq!(examine(bytes, "table", false).unwrap_err(), Refusal::NotALibrary);
        }
    }

    #[test]
    fn bytes_are_inside_only_if_all_of_them_lie_in_one_segment() {
        let layout = Layout {
            read_only: vec![16..32, 48..64],
            executable: vec![32..48, 80..96],
            start: 0,
            table: 16,
        };
        assert!(layout.is_read_only(16..32) && layout.is_read_only(63..64));
        for outside in [15..17, 31..33, 24..56, 64..65, u64::MAX - 1..u64::MAX] {
            assert!(!layout.is_read_only(outside.clone()), "{outside:?}");
        }
        assert!(layout.is_code(47) && !layout.is_code(48) && !layout.is_code(u64::MAX));
    }
}
