//! OpenCL's kernels on HIP streams, tried in a process of its own.

use super::findings::{Findings, OneStream};
use super::probe::{Asker, Death, OneStreamTried, Subject, Told};
use crate::Result;

pub(super) fn examine(asker: &Asker, findings: &mut Findings) -> Result<()> {
    let state = state(asker.ask(Subject::OneStream)?);
    if let Some(death) = &state.died {
        findings.advice.push(format!(
            "one stream: {}; keep OpenCL's kernels on OpenCL queues (`--kernels queue`), and report this with these findings",
            death.how
        ));
    }
    findings.one_stream = Some(state);
    Ok(())
}

fn state(told: std::result::Result<Told<OneStreamTried>, Death>) -> OneStream {
    match told {
        Ok(Told {
            found, died: None, ..
        }) => OneStream {
            works: found.how.is_some(),
            how: found.how,
            reason: found.reason,
            figures: found.figures,
            figures_missing: found.figures_missing,
            died: None,
        },
        // Also after an answer: a program that relied on it would end the same way.
        Ok(Told {
            died: Some(death), ..
        })
        | Err(death) => OneStream {
            works: false,
            how: None,
            reason: Some(death.describe(Subject::OneStream)),
            figures: None,
            figures_missing: None,
            died: Some(death),
        },
    }
}
