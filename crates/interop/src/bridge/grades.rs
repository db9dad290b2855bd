//! Which hand-offs work between the two devices.

use std::sync::Arc;
use std::time::Duration;

use super::probe::Probe;
use crate::core::Core;
use crate::handoff::{Callback, Device, Gate, Handoff, Host};
use crate::values::GradeReport;
use crate::{Error, Grade, Result, Route};

/// Long enough for work that is meant to end, short enough to learn of a deadlock.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);
/// The exchange of a pattern takes milliseconds.
pub(crate) const PROBE_LIMIT: Duration = Duration::from_secs(2);

/// The proven grades, ready for use, and what was found about each.
pub(crate) struct Grades {
    reports: Vec<GradeReport>,
    proven: Vec<Arc<dyn Handoff>>,
}

/// Proves these grades on `route`.
pub(crate) fn open(core: &Arc<Core>, probe: &Probe, route: Route, limit: Option<Duration>, grades: &[Grade]) -> Grades {
    let mut proven: Vec<Arc<dyn Handoff>> = Vec::new();
    let reports = grades
        .iter()
        .map(|&grade| {
            let outcome = prove(core, probe, route, grade, limit)
                .and_then(|()| start(core, probe, grade, limit, LIMIT))
                .map(|handoff| {
                    let mechanisms = handoff.mechanisms();
                    proven.push(handoff);
                    mechanisms
                })
                .map_err(|error| error.to_string());
            GradeReport { grade, outcome }
        })
        .collect();
    Grades { reports, proven }
}

fn prove(core: &Arc<Core>, probe: &Probe, route: Route, grade: Grade, limit: Option<Duration>) -> Result<()> {
    let handoff = start(core, probe, grade, proven_within(grade, limit), PROBE_LIMIT)?;
    probe.prove_handoff(core, route, &handoff)
}

/// The limit of a grade's proof, where `limit` is its user's.
fn proven_within(grade: Grade, limit: Option<Duration>) -> Option<Duration> {
    match grade {
        // Without a limit the host waits by other calls than with one: what will be used is what is proven.
        Grade::Host => limit.map(|limit| limit.min(PROBE_LIMIT)),
        _ => Some(PROBE_LIMIT),
    }
}

fn start(
    core: &Arc<Core>,
    probe: &Probe,
    grade: Grade,
    asked: Option<Duration>,
    otherwise: Duration,
) -> Result<Arc<dyn Handoff>> {
    let limit = asked.unwrap_or(otherwise);
    Ok(match grade {
        // `clFinish` may take as long as it takes, unless the user says how long.
        Grade::Host => Arc::new(Host::new(asked)),
        Grade::Callback => {
            let gate = Gate::of(&core.hip_device);
            Arc::new(Callback::start(core, gate, limit)?)
        }
        Grade::Device => Arc::new(Device::start(core, probe.cl().program(), limit)?),
    })
}

impl Grades {
    pub(crate) fn reports(&self) -> &[GradeReport] {
        &self.reports
    }

    /// The requested grade, else the host's: it costs least on every pair measured so far, and its errors come at once.
    /// The device's is used only on request.
    pub(crate) fn choose(&self, asked: Option<Grade>) -> Result<Arc<dyn Handoff>> {
        let proven = |grade| self.proven.iter().find(|handoff| handoff.grade() == grade);
        let found = match asked {
            Some(grade) => proven(grade),
            None => proven(Grade::Host).or_else(|| proven(Grade::Callback)),
        };
        found.cloned().ok_or_else(|| {
            let grade = asked.unwrap_or(Grade::Host);
            Error::NoGrade {
                grade,
                reason: self.reason(grade),
            }
        })
    }

    /// The same, with another way for one grade.
    #[cfg(feature = "vulkan")]
    pub(crate) fn with(&self, handoff: Arc<dyn Handoff>) -> Self {
        let grade = handoff.grade();
        let report = GradeReport {
            grade,
            outcome: Ok(handoff.mechanisms()),
        };
        let others = self.reports.iter().filter(|other| other.grade != grade);
        let proven = self.proven.iter().filter(|other| other.grade() != grade);
        Self {
            reports: others.cloned().chain([report]).collect(),
            proven: proven.cloned().chain([handoff]).collect(),
        }
    }

    fn reason(&self, grade: Grade) -> String {
        self.reports
            .iter()
            .find(|report| report.grade == grade)
            .and_then(|report| report.outcome.clone().err())
            .unwrap_or_else(|| "it was not probed".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bridge, Options};

    #[test]
    fn the_host_is_proven_with_a_limit_only_if_its_user_sets_one() {
        assert_eq!(proven_within(Grade::Host, None), None);
        let short = PROBE_LIMIT / 2;
        assert_eq!(proven_within(Grade::Host, Some(short)), Some(short));
        for (grade, limit) in [
            (Grade::Host, Some(2 * PROBE_LIMIT)),
            (Grade::Callback, None),
            (Grade::Device, Some(short)),
        ] {
            assert_eq!(proven_within(grade, limit), Some(PROBE_LIMIT), "{grade}");
        }
    }

    #[test]
    fn grades_are_given_once_they_are_proven() {
        let platform = platform::select_named(Some("host")).expect("the host platform");
        let bridge = Bridge::open(&platform, &Options::default())
            .expect("a bridge; run `cargo xtask setup` if OpenCL is missing");
        let open = |grades: &[Grade]| open(bridge.core(), bridge.probe(), bridge.route(), None, grades);
        let grades = open(&[Grade::Host, Grade::Callback]);
        let reported = |grades: &Grades| -> Vec<Grade> { grades.reports().iter().map(|report| report.grade).collect() };
        assert_eq!(reported(&grades), [Grade::Host, Grade::Callback]);
        grades.choose(Some(Grade::Callback)).expect("a proven grade");
        assert_eq!(grades.choose(None).expect("a grade").grade(), Grade::Host);
        let absent = grades.choose(Some(Grade::Device)).map(drop);
        let absent = absent.expect_err("not proven").to_string();
        assert!(absent.ends_with("it was not probed"), "{absent}");
        #[cfg(feature = "vulkan")]
        {
            let limit = Some(Duration::from_secs(7));
            let other = grades.with(Arc::new(Host::new(limit)));
            assert_eq!(reported(&other), [Grade::Callback, Grade::Host]);
            let host = other.choose(Some(Grade::Host)).expect("a grade");
            assert_eq!(host.limit(), limit);
            other.choose(Some(Grade::Callback)).expect("a proven grade");
        }
    }
}
