//! The ways into another process, each tried in a process of its own, which starts a second one.

use interop::Carrier;

use super::findings::{CarrierState, Findings};
use super::probe::{CarrierTried, Death, Prober, Reply, Subject};
use crate::Result;

pub(super) fn examine(prober: &Prober, findings: &mut Findings) -> Result<()> {
    for carrier in Carrier::ALL {
        let state = state(carrier, prober.run(Subject::Carrier(carrier))?);
        if let Some(death) = &state.died {
            findings.advice.push(format!(
                "carrier {carrier}: {}; share memory with another process by another carrier (`Shared::export_by`), and report this failure with these findings",
                death.how
            ));
        }
        findings.carriers.push(state);
    }
    Ok(())
}

fn state(carrier: Carrier, reply: std::result::Result<Reply<CarrierTried>, Death>) -> CarrierState {
    let name = carrier.to_string();
    match reply {
        Ok(Reply { found, died: None, .. }) => CarrierState {
            carrier: name,
            works: found.residency.is_some(),
            impossible: found.impossible,
            residency: found.residency,
            reason: found.reason,
            died: None,
        },
        // Also after an answer: a program that relied on it would end the same way.
        Ok(Reply { died: Some(death), .. }) | Err(death) => CarrierState {
            carrier: name,
            works: false,
            impossible: false,
            residency: None,
            reason: Some(death.describe(Subject::Carrier(carrier))),
            died: Some(death),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(residency: Option<&str>, died: Option<Death>) -> Reply<CarrierTried> {
        Reply {
            found: CarrierTried {
                residency: residency.map(str::to_owned),
                reason: residency.is_none().then(|| "no memory leaves".to_owned()),
                impossible: residency.is_none(),
            },
            mapped: Vec::new(),
            died,
        }
    }

    #[test]
    fn a_carrier_works_only_if_its_process_answered_so_and_lived() {
        let works = state(Carrier::HipFd, Ok(reply(Some("vram"), None)));
        assert_eq!((works.works, works.residency.as_deref()), (true, Some("vram")));
        let cannot = state(Carrier::HipFd, Ok(reply(None, None)));
        assert!(!cannot.works && cannot.impossible);
        let death = Death {
            how: "died by SIGSEGV".to_owned(),
            step: None,
            stderr: Vec::new(),
        };
        for reply in [Err(death.clone()), Ok(reply(Some("vram"), Some(death.clone())))] {
            let state = state(Carrier::DmaBuf, reply);
            assert!(!state.works && state.residency.is_none());
            let reason = state.reason.expect("a reason");
            assert_eq!(reason, "died by SIGSEGV in the probe of carrier:dma-buf");
        }
    }
}
