//! The platform, its libraries, its devices and its compiler.

use std::time::Instant;

use platform::Selection;
use serde::{Deserialize, Serialize};

use super::answer::tell;
use crate::doctor::findings::{Compiler, HipDevice, Library};
use crate::error::one_line;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(in crate::doctor) struct Hip {
    pub(in crate::doctor) platform: String,
    pub(in crate::doctor) why: String,
    pub(in crate::doctor) libraries: Vec<Library>,
    pub(in crate::doctor) devices: Vec<HipDevice>,
    pub(in crate::doctor) compiler: Compiler,
    pub(in crate::doctor) failure: Option<String>,
    /// Why the platform as a whole cannot be used.
    pub(in crate::doctor) unusable: Option<String>,
}

/// A platform that cannot be used: what is present of it, and why.
pub(super) fn cannot(error: &platform::Error) -> Hip {
    let failure = match error {
        // the list of places is in the row of the library
        platform::Error::NoLibrary { .. } => "its HIP library cannot be loaded".to_owned(),
        other => one_line(&other.to_string()),
    };
    Hip {
        platform: error.platform().map_or_else(String::new, |it| it.to_string()),
        libraries: error.libraries().iter().map(library).collect(),
        unusable: Some(failure),
        ..Hip::default()
    }
}

pub(super) fn look(selection: &Selection) -> Hip {
    let mut found = Hip {
        platform: selection.platform().to_string(),
        why: one_line(&selection.why),
        libraries: selection.libraries.iter().map(library).collect(),
        ..Hip::default()
    };
    tell("querying HIP for its devices");
    let tables = selection.tables();
    // SAFETY: all tables come from one selection.
    let runtime = unsafe { hip::Runtime::from_tables(tables.hip.clone(), tables.rtc.clone()) };
    let devices = runtime.and_then(|runtime| {
        let count = runtime.device_count()?;
        (0..count)
            .map(|ordinal| runtime.device(ordinal))
            .collect::<hip::Result<Vec<_>>>()
    });
    match devices {
        Ok(devices) => {
            found.devices = devices.iter().map(device).collect();
            if let Some(device) = devices.first() {
                tell("compiling a HIP kernel");
                found.compiler = compiler(selection.platform().facts().compiler, device);
            }
        }
        Err(error) => found.failure = Some(one_line(&error.to_string())),
    }
    found
}

pub(super) fn library(library: &platform::LibraryReport) -> Library {
    let usable = library.state.is_usable();
    Library {
        name: library.name.to_owned(),
        place: one_line(&library.state.to_string()),
        usable,
        detail: if usable { offer(library) } else { String::new() },
    }
}

/// The release that the library reports, and how many of its functions are known.
fn offer(library: &platform::LibraryReport) -> String {
    let functions = format!("{} functions", library.functions);
    match library.release {
        Some(release) if library.is_newer_than_known() => format!(
            "release {release}, newer than {}, the newest known release; {functions}",
            platform::NEWEST_KNOWN
        ),
        Some(release) => format!("release {release}, {functions}"),
        None => functions,
    }
}

fn device(device: &hip::Device) -> HipDevice {
    let unknown = |_| "unknown".to_owned();
    HipDevice {
        ordinal: device.ordinal(),
        name: device.name().unwrap_or_else(unknown),
        arch: device.arch().unwrap_or_else(unknown),
        pci: device.pci_address().ok().map(|address| address.to_string()),
        memory_bytes: device.memory_info().map_or(0, |memory| memory.total as u64),
    }
}

/// Compiles a kernel that no cache can know.
fn compiler(name: &str, device: &hip::Device) -> Compiler {
    let salt = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos());
    let source = format!(
        "extern \"C\" __global__ void probe(unsigned *x) {{ x[threadIdx.x] = {}u; }}",
        salt as u32
    );
    let start = Instant::now();
    let compiled = hip::rtc::Program::new(&source)
        .name("doctor.hip")
        .compile(device)
        .and_then(|module| module.function("probe"));
    match compiled {
        Ok(_) => {
            let ms = start.elapsed().as_secs_f64() * 1e3;
            Compiler {
                works: true,
                detail: format!("{name}, {ms:.0} ms for a small kernel"),
            }
        }
        Err(error) => Compiler {
            works: false,
            detail: one_line(&error.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use platform::{LibraryReport, LibraryState, NEWEST_KNOWN};

    use super::*;

    #[test]
    fn a_library_newer_than_any_known_one_says_so_and_is_usable() {
        let mut report = LibraryReport {
            name: "HIP",
            state: LibraryState::Loaded("/opt/rocm/core-12.0/lib/libamdhip64.so.9".into()),
            functions: 520,
            release: None,
        };
        assert_eq!(library(&report).detail, "520 functions");
        report.release = Some(NEWEST_KNOWN);
        assert_eq!(library(&report).detail, "release 7.15, 520 functions");
        let mut newer = NEWEST_KNOWN;
        newer.minor = 99;
        report.release = Some(newer);
        let found = library(&report);
        assert!(found.usable);
        assert_eq!(
            found.detail,
            "release 7.99, newer than 7.15, the newest known release; 520 functions"
        );
    }
}
