//! OpenCL kernels on HIP streams, tried in a process of its own.

use super::findings::{Findings, OneStream};
use super::probe::{Death, OneStreamTried, Prober, Reply, Subject};
use crate::Result;

pub(super) fn examine(prober: &Prober, findings: &mut Findings) -> Result<()> {
    let state = state(prober.run(Subject::OneStream)?);
    if let Some(death) = &state.died {
        findings.advice.push(format!(
            "one stream: {}; launch OpenCL kernels on OpenCL queues (`--kernels queue`), and report this failure with these findings",
            death.how
        ));
    }
    findings.one_stream = Some(state);
    Ok(())
}

fn state(reply: std::result::Result<Reply<OneStreamTried>, Death>) -> OneStream {
    match reply {
        Ok(Reply { found, died: None, .. }) => OneStream {
            works: found.how.is_some(),
            how: found.how,
            reason: found.reason,
            figures: found.figures,
            figures_missing: found.figures_missing,
            died: None,
        },
        // Also after an answer: a program that relied on it would end the same way.
        Ok(Reply { died: Some(death), .. }) | Err(death) => OneStream {
            works: false,
            how: None,
            reason: Some(death.describe(Subject::OneStream)),
            figures: None,
            figures_missing: None,
            died: Some(death),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worked(died: Option<Death>) -> Reply<OneStreamTried> {
        Reply {
            found: OneStreamTried {
                how: Some("by a test".to_owned()),
                reason: None,
                figures: None,
                figures_missing: None,
            },
            mapped: Vec::new(),
            died,
        }
    }

    fn death() -> Death {
        Death {
            how: "died by SIGSEGV".to_owned(),
            step: None,
            stderr: Vec::new(),
        }
    }

    #[test]
    fn a_process_that_dies_proves_nothing_even_after_its_answer() {
        assert!(state(Ok(worked(None))).works);
        for reply in [Err(death()), Ok(worked(Some(death())))] {
            let state = state(reply);
            assert!(!state.works && state.how.is_none());
            let reason = state.reason.expect("a reason");
            assert_eq!(reason, "died by SIGSEGV in the probe of one-stream");
            assert_eq!(state.died, Some(death()));
        }
    }
}
