//! The first bytes of an ELF file: enough to tell a wrong file from a broken installation.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// What a file is, as far as its header tells.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The dynamic linker may be asked.
    Plausible,
    Missing,
    NotALibrary(String),
    /// The machine it is built for.
    WrongArchitecture(String),
}

/// The processor of this process, as messages call it.
pub(crate) const THIS_MACHINE: &str = std::env::consts::ARCH;

const CLASS_64: u8 = 2;
const SHARED_OBJECT: u16 = 3;

/// `e_machine` of this process; unknown processors are left to the dynamic linker.
const fn machine_of_this_process() -> Option<u16> {
    if cfg!(target_arch = "x86_64") {
        Some(62)
    } else if cfg!(target_arch = "aarch64") {
        Some(183)
    } else {
        None
    }
}

/// Looks at the file without loading it.
pub(crate) fn inspect(path: &Path) -> Verdict {
    let mut head = [0_u8; 20];
    match File::open(path).and_then(|mut file| file.read_exact(&mut head)) {
        Ok(()) => judge(&head),
        Err(error) if error.kind() == ErrorKind::NotFound => Verdict::Missing,
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            Verdict::NotALibrary("the file is too short".into())
        }
        Err(error) => Verdict::NotALibrary(error.to_string()),
    }
}

fn judge(head: &[u8; 20]) -> Verdict {
    if head[..4] != *b"\x7fELF" {
        return Verdict::NotALibrary("it is not an ELF file".into());
    }
    let word = |at: usize| {
        let bytes = [head[at], head[at + 1]];
        if head[5] == 2 {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        }
    };
    let machine = word(18);
    if let Some(expected) = machine_of_this_process()
        && (machine != expected || head[4] != CLASS_64)
    {
        return Verdict::WrongArchitecture(machine_name(machine));
    }
    if word(16) != SHARED_OBJECT {
        return Verdict::NotALibrary("it is an ELF file of another kind".into());
    }
    Verdict::Plausible
}

fn machine_name(machine: u16) -> String {
    match machine {
        3 => "x86 (32 bit)".into(),
        40 => "arm (32 bit)".into(),
        62 => "x86_64".into(),
        183 => "aarch64".into(),
        243 => "riscv".into(),
        21 => "powerpc64".into(),
        22 => "s390x".into(),
        other => format!("ELF machine {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(class: u8, kind: u16, machine: u16) -> [u8; 20] {
        let mut head = [0; 20];
        head[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1]);
        head[16..18].copy_from_slice(&kind.to_le_bytes());
        head[18..].copy_from_slice(&machine.to_le_bytes());
        head
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn headers_of_other_processors_and_kinds_are_told_apart() {
        assert_eq!(judge(&header(2, 3, 62)), Verdict::Plausible);
        assert_eq!(
            judge(&header(2, 3, 183)),
            Verdict::WrongArchitecture("aarch64".into())
        );
        assert_eq!(
            judge(&header(1, 3, 3)),
            Verdict::WrongArchitecture("x86 (32 bit)".into())
        );
        assert!(matches!(judge(&header(2, 1, 62)), Verdict::NotALibrary(_)));
        assert!(matches!(
            judge(b"not an elf file at a"),
            Verdict::NotALibrary(_)
        ));
    }
}
