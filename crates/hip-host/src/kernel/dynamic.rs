//! What the loader reads of a library: the entries of its dynamic section, and the tables that they lead to.
//!
//! The linker writes both. But a source can add to any section by its name, and the loader would take what was added for
//! the linker's.

use std::collections::BTreeMap;

use object::Endianness;
use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn, SectionHeader, SectionTable};

/// Entries with functions that the loader calls.
const CALLED: [i64; 5] = [
    elf::DT_INIT,
    elf::DT_FINI,
    elf::DT_INIT_ARRAY,
    elf::DT_FINI_ARRAY,
    elf::DT_PREINIT_ARRAY,
];

/// What linkers write for a library that was compiled as a module is.
const KNOWN: [i64; 28] = [
    elf::DT_NULL,
    elf::DT_NEEDED,
    elf::DT_HASH,
    elf::DT_GNU_HASH,
    elf::DT_SYMTAB,
    elf::DT_SYMENT,
    elf::DT_STRTAB,
    elf::DT_STRSZ,
    elf::DT_RELA,
    elf::DT_RELASZ,
    elf::DT_RELAENT,
    elf::DT_RELACOUNT,
    elf::DT_RELR,
    elf::DT_RELRSZ,
    elf::DT_RELRENT,
    elf::DT_JMPREL,
    elf::DT_PLTREL,
    elf::DT_PLTRELSZ,
    elf::DT_PLTGOT,
    elf::DT_TLSDESC_PLT,
    elf::DT_TLSDESC_GOT,
    elf::DT_SYMBOLIC,
    elf::DT_BIND_NOW,
    elf::DT_FLAGS,
    elf::DT_FLAGS_1,
    elf::DT_VERSYM,
    elf::DT_VERNEED,
    elf::DT_VERNEEDNUM,
];

/// What only the library of a checked kernel has: the runtime of AddressSanitizer registers its variables, and is found by
/// its folder.
const CHECKED: [i64; 6] = [
    elf::DT_INIT_ARRAY,
    elf::DT_INIT_ARRAYSZ,
    elf::DT_FINI_ARRAY,
    elf::DT_FINI_ARRAYSZ,
    elf::DT_RUNPATH,
    elf::DT_RPATH,
];

/// The tables, by the entry with their address and the type of the section that holds nothing else.
const TABLES: [(i64, u32); 9] = [
    (elf::DT_SYMTAB, elf::SHT_DYNSYM),
    (elf::DT_STRTAB, elf::SHT_STRTAB),
    (elf::DT_HASH, elf::SHT_HASH),
    (elf::DT_GNU_HASH, elf::SHT_GNU_HASH),
    (elf::DT_VERSYM, elf::SHT_GNU_VERSYM),
    (elf::DT_VERNEED, elf::SHT_GNU_VERNEED),
    (elf::DT_RELA, elf::SHT_RELA),
    (elf::DT_JMPREL, elf::SHT_RELA),
    (elf::DT_RELR, elf::SHT_RELR),
];

/// The tables of relocations, by the entries with their address and their size: one entry more is one write more.
const RELOCATIONS: [(i64, i64); 3] = [
    (elf::DT_RELA, elf::DT_RELASZ),
    (elf::DT_JMPREL, elf::DT_PLTRELSZ),
    (elf::DT_RELR, elf::DT_RELRSZ),
];

type Section = elf::SectionHeader64<Endianness>;

/// Libraries that a module may need: the C library with its parts, and what the compiler adds.
const LIBRARIES: [&str; 12] = [
    "libc",
    "libm",
    "libmvec",
    "libpthread",
    "libdl",
    "librt",
    "libgcc_s",
    "libstdc++",
    "libc++",
    "libc++abi",
    "ld-linux-x86-64",
    "ld-linux-aarch64",
];

/// The entries of a dynamic section.
#[derive(Default)]
pub(super) struct Dynamic {
    values: BTreeMap<i64, u64>,
    /// Where the names of the libraries that it needs begin in the table of strings.
    needed: Vec<u32>,
    /// A linker writes each entry once, and none behind the last.
    is_odd: bool,
}

impl Dynamic {
    pub(super) fn note(&mut self, entries: &[elf::Dyn64<Endianness>], endian: Endianness) {
        let mut has_ended = false;
        for entry in entries {
            let (tag, value) = (entry.tag(endian), entry.d_val(endian));
            has_ended |= tag == elf::DT_NULL;
            self.is_odd |= has_ended && tag != elf::DT_NULL;
            if tag == elf::DT_NEEDED {
                self.needed.push(u32::try_from(value).unwrap_or(u32::MAX));
            } else if tag != elf::DT_NULL {
                self.is_odd |= self.values.insert(tag, value).is_some();
            }
        }
    }

    /// Whether the loader calls functions of the library.
    pub(super) fn calls(&self) -> bool {
        CALLED.iter().any(|tag| self.values.contains_key(tag))
    }

    /// Whether the loader loads nothing along but parts of the C library and of the compiler, which the process has.
    pub(super) fn needs_no_others<'data>(&self, name: impl Fn(u32) -> Option<&'data [u8]>, checked: bool) -> bool {
        self.needed.iter().all(|at| {
            let name = name(*at).and_then(|name| std::str::from_utf8(name).ok()).unwrap_or("/");
            let stem = name.split_once(".so").map_or(name, |(stem, _)| stem);
            let of_checks = checked && (stem == "libasan" || stem.starts_with("libclang_rt."));
            let of_musl = stem.starts_with("libc.musl-");
            !name.contains('/') && (LIBRARIES.contains(&stem) || of_musl || of_checks)
        })
    }

    /// Whether the entries and what they lead to are the linker's alone.
    pub(super) fn is_the_linkers(
        &self,
        endian: Endianness,
        sections: &SectionTable<'_, FileHeader64<Endianness>>,
        checked: bool,
    ) -> bool {
        let is_known = |tag: &i64| {
            let of_the_processor = (elf::DT_LOPROC..elf::DT_AUXILIARY).contains(tag);
            KNOWN.contains(tag) || CALLED.contains(tag) || of_the_processor || (checked && CHECKED.contains(tag))
        };
        let has = |tag, bits: u32| self.values.get(&tag).is_some_and(|value| value & u64::from(bits) != 0);
        // The library would stay loaded or serve others' symbols; the loader would write to its code.
        let is_special = has(elf::DT_FLAGS_1, !elf::DF_1_NOW) || has(elf::DT_FLAGS, elf::DF_TEXTREL);
        let begins = |kind: u32, address: u64| {
            let mut sections = sections.iter();
            sections.any(|it| it.sh_type(endian) == kind && it.sh_addr(endian) == address)
        };
        let begin = TABLES
            .iter()
            .all(|(tag, kind)| self.values.get(tag).is_none_or(|at| begins(*kind, *at)));
        let value = |tag| self.values.get(&tag).copied();
        let is_whole = |it: &Section| {
            let found = (Some(it.sh_addr(endian)), Some(it.sh_size(endian)));
            RELOCATIONS
                .iter()
                .any(|(address, size)| (value(*address), value(*size)) == found)
        };
        let is_loaded = |it: &&Section| it.sh_flags(endian) & u64::from(elf::SHF_ALLOC) != 0;
        let relocates = |it: &&Section| [elf::SHT_RELA, elf::SHT_RELR].contains(&it.sh_type(endian));
        let whole = sections.iter().filter(is_loaded).filter(relocates).all(is_whole);
        !self.is_odd && self.values.keys().all(is_known) && !is_special && begin && whole
    }
}
