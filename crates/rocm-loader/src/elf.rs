//! The headers of an ELF file: enough to tell a wrong file from a broken installation before calling the dynamic
//! linker.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

/// What a file is, by its headers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The dynamic linker may try it.
    Plausible,
    Missing,
    NotALibrary(String),
    /// The machine it is built for.
    WrongArchitecture(String),
}

/// The processor of this process, as messages call it.
pub(crate) const THIS_MACHINE: &str = std::env::consts::ARCH;

/// Systems whose shared libraries are of another format leave the judgement to their dynamic linker.
const SYSTEM_USES_ELF: bool = cfg!(all(unix, not(target_vendor = "apple")));

const CLASS_64: u8 = 2;
const BIG_ENDIAN: u8 = 2;
const SHARED_OBJECT: u16 = 3;
const PT_LOAD: u32 = 1;
/// Bytes of the 64-bit file header and of one 64-bit program header.
const FILE_HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;

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

/// Inspects the file without loading it.
pub(crate) fn inspect(path: &Path) -> Verdict {
    // Asked first: opening a pipe would wait for a writer.
    match path.metadata() {
        Ok(metadata) if !metadata.is_file() => {
            return Verdict::NotALibrary("it is not a regular file".into());
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Verdict::Missing,
        Err(error) => return Verdict::NotALibrary(error.to_string()),
    }
    if !SYSTEM_USES_ELF {
        return Verdict::Plausible;
    }
    match File::open(path).and_then(inspect_open) {
        Ok(verdict) => verdict,
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Verdict::NotALibrary("the file is too short".into()),
        Err(error) => Verdict::NotALibrary(error.to_string()),
    }
}

fn inspect_open(mut file: File) -> std::io::Result<Verdict> {
    let mut head = [0; 20];
    file.read_exact(&mut head)?;
    let verdict = judge(&head);
    if verdict != Verdict::Plausible || head[4] != CLASS_64 {
        return Ok(verdict);
    }
    let mut rest = [0; FILE_HEADER - 20];
    file.read_exact(&mut rest)?;
    let mut header = [0; FILE_HEADER];
    header[..20].copy_from_slice(&head);
    header[20..].copy_from_slice(&rest);
    let order = Order::of(&header);
    if usize::from(order.half(&header, 54)) != PROGRAM_HEADER {
        return Ok(verdict); // not what the format says: the dynamic linker will find better words
    }
    let count = usize::from(order.half(&header, 56));
    file.seek(SeekFrom::Start(order.long(&header, 32)))?;
    let mut segments = vec![0; count * PROGRAM_HEADER];
    file.read_exact(&mut segments)?;
    let needed = segments
        .chunks_exact(PROGRAM_HEADER)
        .filter(|segment| order.word(segment, 0) == PT_LOAD)
        .map(|segment| order.long(segment, 8).saturating_add(order.long(segment, 32)))
        .max()
        .unwrap_or(0);
    let length = file.metadata()?.len();
    if needed > length {
        // The dynamic linker maps such a file, and the process dies of SIGBUS at the first missing page.
        return Ok(Verdict::NotALibrary(format!(
            "it is truncated: {length} of {needed} bytes"
        )));
    }
    Ok(verdict)
}

/// The order of the bytes of a number, as the file's header says.
#[derive(Clone, Copy)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn of(head: &[u8]) -> Self {
        if head[5] == BIG_ENDIAN { Self::Big } else { Self::Little }
    }

    fn half(self, bytes: &[u8], at: usize) -> u16 {
        self.number(&bytes[at..at + 2]) as u16
    }

    fn word(self, bytes: &[u8], at: usize) -> u32 {
        self.number(&bytes[at..at + 4]) as u32
    }

    fn long(self, bytes: &[u8], at: usize) -> u64 {
        self.number(&bytes[at..at + 8])
    }

    fn number(self, bytes: &[u8]) -> u64 {
        let append = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        match self {
            Self::Big => bytes.iter().fold(0, append),
            Self::Little => bytes.iter().rev().fold(0, append),
        }
    }
}

fn judge(head: &[u8; 20]) -> Verdict {
    if head[..4] != *b"\x7fELF" {
        return Verdict::NotALibrary("it is not an ELF file".into());
    }
    let order = Order::of(head);
    let machine = order.half(head, 18);
    match machine_of_this_process() {
        Some(expected) if machine != expected || head[4] != CLASS_64 => {
            return Verdict::WrongArchitecture(machine_name(machine));
        }
        _ => {}
    }
    if order.half(head, 16) != SHARED_OBJECT {
        return Verdict::NotALibrary("it is an ELF file, but not a shared library".into());
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

#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
mod tests {
    use super::*;

    fn header(class: u8, kind: u16, machine: u16) -> [u8; 20] {
        let mut head = [0; 20];
        head[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1]);
        head[16..18].copy_from_slice(&kind.to_le_bytes());
        head[18..].copy_from_slice(&machine.to_le_bytes());
        head
    }

    #[test]
    fn headers_of_other_processors_and_kinds_are_told_apart() {
        assert_eq!(judge(&header(2, 3, 62)), Verdict::Plausible);
        assert_eq!(judge(&header(2, 3, 183)), Verdict::WrongArchitecture("aarch64".into()));
        assert_eq!(
            judge(&header(1, 3, 3)),
            Verdict::WrongArchitecture("x86 (32 bit)".into())
        );
        // The 32-bit processes of the same processor.
        assert_eq!(judge(&header(1, 3, 62)), Verdict::WrongArchitecture("x86_64".into()));
        let mut big = header(2, 0, 0);
        big[5] = BIG_ENDIAN;
        big[16..].copy_from_slice(&[0, 3, 0, 22]);
        assert_eq!(judge(&big), Verdict::WrongArchitecture("s390x".into()));
        assert!(matches!(judge(&header(2, 1, 62)), Verdict::NotALibrary(_)));
        assert!(matches!(judge(b"not an elf file at a"), Verdict::NotALibrary(_)));
    }

    #[test]
    fn a_pipe_is_refused_without_waiting_for_a_writer() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("libpipe.so");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo is a standard tool").success());
        assert_eq!(inspect(&pipe), Verdict::NotALibrary("it is not a regular file".into()));
    }
}
