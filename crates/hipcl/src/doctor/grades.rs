//! The ways to hand over, each in a process of its own: one that deadlocks is a finding.

use interop::{Grade, Route};

use super::findings::{Findings, GradeState};
use super::probe::{Death, GradeTried, Prober, Reply, Subject};
use crate::Result;

/// Tries every grade on the first direct route that works; without one there is nothing to hand over.
pub(super) fn examine(prober: &Prober, findings: &mut Findings) -> Result<()> {
    let direct = |route: &Route| {
        let mut states = findings.routes.iter();
        states.any(|state| state.works && !state.copies && state.route == route.name())
    };
    let Some(route) = Route::ALL.into_iter().find(direct) else {
        return Ok(());
    };
    for grade in Grade::ALL {
        let reply = prober.run(Subject::Grade(grade, route))?;
        let state = state(grade, route, reply);
        if let Some(advice) = advice(&state) {
            findings.advice.push(advice);
        }
        findings.grades.push(state);
    }
    Ok(())
}

fn state(grade: Grade, route: Route, reply: std::result::Result<Reply<GradeTried>, Death>) -> GradeState {
    let mut state = GradeState {
        grade: grade.to_string(),
        route: route.to_string(),
        works: false,
        opencl_to_hip: None,
        hip_to_opencl: None,
        reason: None,
        figures: None,
        figures_missing: None,
        died: None,
    };
    match reply {
        Err(death) => {
            state.reason = Some(death.describe(Subject::Grade(grade, route)));
            state.died = Some(death);
        }
        Ok(reply) => {
            let GradeTried {
                mechanisms,
                reason,
                figures,
                figures_missing,
            } = reply.found;
            state.works = mechanisms.is_some();
            (state.opencl_to_hip, state.hip_to_opencl) = mechanisms.unzip();
            state.reason = reason;
            state.figures = figures;
            state.figures_missing = figures_missing;
            state.died = reply.died;
        }
    }
    state
}

fn advice(state: &GradeState) -> Option<String> {
    let grade = &state.grade;
    match (&state.died, state.works) {
        (Some(death), false) => Some(format!(
            "hand-off {grade}: {}; use another grade (`Options::grade`), and report this failure with these findings",
            death.how
        )),
        (Some(death), true) => Some(format!(
            "hand-off {grade}: the probe answered, but then {}; a program that uses this grade may end the same way",
            death.how
        )),
        // the one that every pair of drivers has; the others are offers
        (None, false) if *grade == Grade::Host.to_string() => Some(format!(
            "hand-off {grade} does not work: {}",
            state.reason.as_deref().unwrap_or("unknown reason")
        )),
        (None, _) => None,
    }
}
