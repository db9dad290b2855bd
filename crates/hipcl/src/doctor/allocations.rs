//! Where the memory of each call lies, each in a process of its own.

use interop::{Allocation, Residency};

use super::findings::{AllocationState, Findings};
use super::probe::{AllocationTried, Death, Prober, Reply, Subject};
use crate::Result;

/// Fraction of the fastest memory's speed: from here on it is the card's own, ...
const OWN: f64 = 0.5;
/// ... and up to here it is behind the link. Between the two it stays undecided.
const BEHIND_LINK: f64 = 0.2;

pub(super) fn examine(prober: &Prober, findings: &mut Findings) -> Result<()> {
    for allocation in Allocation::ALL {
        let reply = prober.run(Subject::Allocation(allocation))?;
        findings.allocations.push(state(allocation, reply));
    }
    if !findings.is_model() {
        by_speed(&mut findings.allocations);
    }
    let advice: Vec<String> = findings.allocations.iter().filter_map(advice).collect();
    findings.advice.extend(advice);
    Ok(())
}

fn state(allocation: Allocation, reply: std::result::Result<Reply<AllocationTried>, Death>) -> AllocationState {
    let empty = AllocationState {
        allocation: allocation.to_string(),
        call: allocation.call().to_owned(),
        works: false,
        residency: None,
        known_by: None,
        opencl_gb_s: None,
        opencl_missing: None,
        hip_gb_s: None,
        hip_missing: None,
        reason: None,
        died: None,
    };
    match reply {
        Err(death) => AllocationState {
            reason: Some(death.describe(Subject::Allocation(allocation))),
            died: Some(death),
            ..empty
        },
        Ok(reply) => {
            let AllocationTried {
                place,
                reason,
                opencl,
                hip,
            } = reply.found;
            let (residency, known_by) = place.unzip();
            AllocationState {
                works: reason.is_none(),
                residency,
                known_by,
                opencl_gb_s: opencl.gb_s,
                opencl_missing: opencl.missing,
                hip_gb_s: hip.gb_s,
                hip_missing: hip.missing,
                reason,
                died: reply.died,
                ..empty
            }
        }
    }
}

fn fastest(state: &AllocationState) -> Option<f64> {
    let rates = [state.opencl_gb_s, state.hip_gb_s];
    rates.into_iter().flatten().max_by(f64::total_cmp)
}

/// Where no API reports where a card's memory lies, its speed does: a link is several times slower than the memory.
fn by_speed(states: &mut [AllocationState]) {
    let best = states.iter().filter_map(fastest).max_by(f64::total_cmp);
    for state in states.iter_mut().filter(|state| state.residency.is_none()) {
        let (Some(best), Some(rate)) = (best, fastest(state)) else {
            continue;
        };
        let residency = match rate / best {
            share if share >= OWN => Residency::Vram,
            share if share <= BEHIND_LINK => Residency::HostPinned,
            _ => continue,
        };
        state.residency = Some(residency.to_string());
        state.known_by = Some("its speed".to_owned());
    }
}

fn advice(state: &AllocationState) -> Option<String> {
    let call = &state.call;
    if let Some(death) = &state.died {
        return Some(format!(
            "{call}: {}; use memory for which the table has figures, and report this failure with these findings",
            death.how
        ));
    }
    let coarse = state.allocation == Allocation::SvmCoarse.name();
    (coarse && state.residency.as_deref() == Some("host-pinned")).then(|| {
        format!("memory of {call}, is in host memory, so every access by the GPU crosses the link: use the route hip-pointer if memory of hipMalloc is on the GPU")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(residency: Option<&str>, opencl: Option<f64>, hip: Option<f64>) -> AllocationState {
        AllocationState {
            residency: residency.map(str::to_owned),
            opencl_gb_s: opencl,
            hip_gb_s: hip,
            ..state(
                Allocation::SvmCoarse,
                Err(Death {
                    how: String::new(),
                    step: None,
                    stderr: Vec::new(),
                }),
            )
        }
    }

    #[test]
    fn memory_of_unreported_place_is_known_by_its_speed_or_not_at_all() {
        let mut states = [
            with(Some("vram"), None, Some(4000.0)),
            with(None, Some(3900.0), None),
            with(None, Some(55.0), Some(40.0)),
            with(None, Some(1500.0), None),
            with(None, None, None),
            // somebody told, whatever its speed
            with(Some("managed"), None, Some(50.0)),
        ];
        by_speed(&mut states);
        let places = states.each_ref().map(|state| state.residency.as_deref());
        assert_eq!(
            places,
            [
                Some("vram"),
                Some("vram"),
                Some("host-pinned"),
                None,
                None,
                Some("managed")
            ]
        );
        assert_eq!(states[2].known_by.as_deref(), Some("its speed"));
        assert_eq!(states[5].known_by, None);
    }

    #[test]
    fn coarse_memory_in_host_memory_is_advised_of() {
        let mut state = with(Some("host-pinned"), None, None);
        state.died = None;
        assert!(advice(&state).expect("it is said").contains("crosses the link"));
        state.residency = Some("vram".to_owned());
        assert_eq!(advice(&state), None);
    }
}
