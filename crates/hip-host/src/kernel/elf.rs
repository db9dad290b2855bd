//! What a module's library says of itself, before the loader maps it.
//!
//! Loading is safe, so a library is refused if loading it would run code of it or leave it in the process for good. A GPU's
//! module can do neither: clang refuses initial values of device variables that need code.

use std::ops::Range;

use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use object::{Endianness, read};

use super::dynamic::Dynamic;

/// Of every architecture: linkers fill a table with it that became shorter.
const NO_RELOCATION: u32 = elf::R_X86_64_NONE;

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
    #[error("the module would load another library; a kernel can use the C library's functions only")]
    LoadsLibrary,
    #[error(
        "the source adds to what the loader reads, by a section as .dynamic, .dynsym, .gnu.hash or .rela.dyn; give its \
         sections names of their own"
    )]
    Forged,
    #[error("it has no table of kernels")]
    NoTable,
}

/// Where the parts of a library lie, in bytes from where it is loaded.
#[derive(Debug)]
pub(crate) struct Layout {
    /// What is readable only, once relocations have been made.
    read_only: Vec<Range<u64>>,
    executable: Vec<Range<u64>>,
    /// What relocations may write, but for `dynamic`.
    writable: Vec<Range<u64>>,
    /// What the loader reads again after it has relocated: the addresses of its tables.
    dynamic: Range<u64>,
    /// The first page.
    pub(crate) start: u64,
    /// The table of kernels.
    pub(crate) table: u64,
}

impl Layout {
    pub(crate) fn is_read_only(&self, bytes: Range<u64>) -> bool {
        holds(&self.read_only, &bytes)
    }

    fn is_writable(&self, address: u64, words: u64) -> bool {
        let end = address.saturating_add(words * 8);
        let is_dynamic = address < self.dynamic.end && self.dynamic.start < end;
        holds(&self.writable, &(address..end)) && !is_dynamic
    }

    pub(crate) fn is_code(&self, address: u64) -> bool {
        holds(&self.executable, &(address..address.saturating_add(1)))
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
    let (resolved, copied, described, of_threads) = match header.e_machine(endian) {
        elf::EM_X86_64 => (
            elf::R_X86_64_IRELATIVE,
            elf::R_X86_64_COPY,
            elf::R_X86_64_TLSDESC,
            [elf::R_X86_64_TPOFF64, elf::R_X86_64_TLSDESC],
        ),
        elf::EM_AARCH64 => (
            elf::R_AARCH64_IRELATIVE,
            elf::R_AARCH64_COPY,
            elf::R_AARCH64_TLSDESC,
            [elf::R_AARCH64_TLS_TPREL, elf::R_AARCH64_TLSDESC],
        ),
        _ => return Ok(Err(Refusal::NotALibrary)),
    };
    let sections = header.sections(endian, library)?;
    let symbols = sections.symbols(endian, library, elf::SHT_DYNSYM)?;
    let page = rustix::param::page_size() as u64;
    let mut layout = Layout {
        read_only: Vec::new(),
        executable: Vec::new(),
        writable: Vec::new(),
        dynamic: 0..0,
        start: u64::MAX,
        table: 0,
    };
    // Without the header, the loader assumes that the library needs it.
    let mut executable_stack = true;
    let mut has_thread_variables = false;
    let mut dynamic = Dynamic::default();
    for segment in header.program_headers(endian, library)? {
        let start = segment.p_vaddr(endian);
        let end = start.saturating_add(segment.p_memsz(endian));
        match segment.p_type(endian) {
            elf::PT_LOAD => {
                layout.start = layout.start.min(start - start % page);
                if segment.p_flags(endian) & elf::PF_W == 0 {
                    layout.read_only.push(start..end);
                } else {
                    layout.writable.push(start..end);
                }
                if segment.p_flags(endian) & elf::PF_X != 0 {
                    layout.executable.push(start..end);
                }
            }
            elf::PT_GNU_STACK => executable_stack = segment.p_flags(endian) & elf::PF_X != 0,
            elf::PT_TLS => has_thread_variables = segment.p_align(endian) > 0,
            elf::PT_DYNAMIC => layout.dynamic = start..end,
            // The loader protects whole pages.
            elf::PT_GNU_RELRO => layout.read_only.push(start..end - end % page),
            _ => {}
        }
        dynamic.note(segment.dynamic(endian, library)?.unwrap_or_default(), endian);
    }
    if executable_stack {
        return Ok(Err(Refusal::ExecutableStack));
    }
    if !dynamic.is_the_linkers(endian, &sections, checked) {
        return Ok(Err(Refusal::Forged));
    }
    if !dynamic.needs_no_others(|at| symbols.strings().get(at).ok(), checked) {
        return Ok(Err(Refusal::LoadsLibrary));
    }
    let mut runs_code = dynamic.calls();
    for section in sections.iter() {
        for relocation in section.rela(endian, library)?.map_or(&[][..], |(table, _)| table) {
            let kind = relocation.r_type(endian, false);
            runs_code |= kind == resolved;
            // The loader would divide by the alignment of variables that the module does not have.
            if !has_thread_variables && of_threads.contains(&kind) {
                return Ok(Err(Refusal::Forged));
            }
            let words = if kind == described { 2 } else { 1 };
            // The linker never names a symbol that is not there; the loader would take what lies behind for one.
            if relocation.r_sym(endian, false) as usize >= symbols.len() {
                return Ok(Err(Refusal::Forged));
            }
            if kind != NO_RELOCATION && (kind == copied || !layout.is_writable(relocation.r_offset.get(endian), words))
            {
                return Ok(Err(Refusal::Forged));
            }
        }
        let mut addresses = section.relr(endian, library)?.into_iter().flatten();
        if !addresses.all(|address| layout.is_writable(address, 1)) {
            return Ok(Err(Refusal::Forged));
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
            writable: vec![64..80, 96..160],
            dynamic: 112..128,
            start: 0,
            table: 16,
        };
        assert!(layout.is_read_only(16..32) && layout.is_read_only(63..64));
        for outside in [15..17, 31..33, 24..56, 64..65, u64::MAX - 1..u64::MAX] {
            assert!(!layout.is_read_only(outside.clone()), "{outside:?}");
        }
        assert!(layout.is_writable(64, 2) && !layout.is_writable(72, 2) && !layout.is_writable(48, 1));
        for (address, ok) in [
            (96, true),
            (104, true),
            (108, false),
            (112, false),
            (124, false),
            (128, true),
        ] {
            assert_eq!(layout.is_writable(address, 1), ok, "{address}");
        }
        assert!(layout.is_code(47) && !layout.is_code(48) && !layout.is_code(u64::MAX));
    }
}
