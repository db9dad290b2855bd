//! The report on the library of collectives.

use platform::Platform;

use super::findings::{Findings, Library};
use super::probe::{Death, Prober, Reply, Subject};
use crate::Result;

/// A machine with one GPU does well without the library, so nothing depends on it.
pub(super) fn examine(prober: &Prober, findings: &mut Findings) -> Result<()> {
    // nothing was loaded: the library belongs to an installation that is not there
    if findings.hip_devices.is_empty() {
        return Ok(());
    }
    if let Ok(platform) = findings.platform.parse::<Platform>() {
        let reply = prober.run(Subject::Collectives(platform))?;
        add(platform, reply, findings);
    }
    Ok(())
}

fn add(platform: Platform, reply: std::result::Result<Reply<Library>, Death>, findings: &mut Findings) {
    let name = platform.facts().collectives;
    let found = match reply {
        Ok(reply) => reply.found,
        Err(death) => Library {
            name: name.to_owned(),
            place: death.describe(Subject::Collectives(platform)),
            usable: false,
            detail: death.stderr.join(" | "),
        },
    };
    if !found.usable && findings.hip_devices.len() > 1 {
        findings.advice.push(format!(
            "without {name} the devices cannot work together (`--ranks`): {}",
            found.place
        ));
    }
    findings.libraries.push(found);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::findings::HipDevice;

    #[test]
    fn only_several_devices_need_the_library_of_collectives() {
        let device = |ordinal| HipDevice {
            ordinal,
            name: String::new(),
            arch: String::new(),
            pci: None,
            memory_bytes: 0,
        };
        let missing = || {
            Ok(Reply {
                found: Library {
                    name: "RCCL".into(),
                    place: "missing: no librccl.so.1; install RCCL".into(),
                    usable: false,
                    detail: String::new(),
                },
                mapped: Vec::new(),
                died: None,
            })
        };
        let mut findings = Findings::default();
        findings.hip_devices.push(device(0));
        add(Platform::Amd, missing(), &mut findings);
        assert_eq!((findings.libraries.len(), findings.advice.len()), (1, 0));
        findings.hip_devices.push(device(1));
        add(Platform::Amd, missing(), &mut findings);
        assert_eq!(findings.libraries.len(), 2);
        assert_eq!(
            findings.advice,
            ["without RCCL the devices cannot work together (`--ranks`): missing: no librccl.so.1; install RCCL"]
        );
    }
}
