//! The examination: queries child processes, and combines their answers. A failure becomes a finding with advice; only
//! a request that makes no sense is an error.

use std::time::SystemTime;

use interop::Route;

use super::findings::{Findings, HostPtr, Pair, RouteState, SCHEMA};
use super::probe::{Death, HostPtrTried, Prober, Reply, RouteTried, Subject};
use super::system::{self, Environment, Root, RuntimeReport};
use super::tables::NOT_TRIED;
use super::{Options, allocations, carriers, collectives, grades, libraries, mapped, one_stream, pairing};
use crate::Result;

pub(super) fn examine(options: &Options) -> Result<Findings> {
    let mut prober = Prober::new(options.platform.clone(), options.limit());
    let environment = Environment::of_this_process();
    let mut findings = Findings {
        schema: SCHEMA,
        hipcl: env!("CARGO_PKG_VERSION").to_owned(),
        taken: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        asked_routes: options.routes.iter().map(Route::to_string).collect(),
        ..Findings::default()
    };
    let asked = libraries::asked(options, &environment);
    let reply = prober.run(Subject::Hip)?;
    if let Ok(reply) = &reply {
        findings.emulator = mapped::emulator(&reply.mapped);
        if findings.emulator.is_some() {
            // Its times are its own.
            prober.only_prove();
        }
        // The only child that loads all of the platform's libraries.
        findings.loaded.clone_from(&reply.mapped);
    }
    libraries::hip(reply, asked, &mut findings);
    collectives::examine(&prober, &mut findings)?;
    let named = environment.get(libraries::OPENCL_VARIABLE);
    libraries::opencl(prober.run(Subject::OpenCl)?, named, &mut findings);
    findings.pairing = pairing::table(findings.is_model(), &findings.hip_devices, &findings.opencl_devices);
    if let Some(reason) = cannot_pair(&findings) {
        let untried = |route| state(route, Err(reason.clone()));
        findings.routes = options.routes().map(untried).collect();
    } else {
        for route in options.routes() {
            let reply = prober.run(Subject::Route(route))?;
            one_route(route, reply, &mut findings);
        }
        // a matter of HIP memory, like the route
        if options.routes().any(|route| route == Route::HipPointer) {
            let reply = prober.run(Subject::HostPtr)?;
            findings.host_ptr = Some(host_ptr(reply));
        }
        // a caller that names routes asks about these alone
        if options.routes.is_empty() {
            grades::examine(&prober, &mut findings)?;
            one_stream::examine(&prober, &mut findings)?;
            carriers::examine(&prober, &mut findings)?;
            allocations::examine(&prober, &mut findings)?;
        }
    }
    findings.checks = system::checks(&Root::default(), &environment, &heard(&findings));
    for advice in findings.checks.iter().filter_map(|it| it.advice.as_ref()) {
        if !findings.advice.contains(advice) {
            findings.advice.push(advice.clone());
        }
    }
    if let Some(advice) = passed_over(&findings, &system::cards(&Root::default())) {
        findings.advice.insert(0, advice);
        findings.passed_over = true;
    }
    findings.healthy = findings.proven() && !findings.passed_over;
    findings.verdict = verdict(&findings);
    Ok(findings)
}

/// Whether all is well, in a line with the reason. Where only some routes were tried, their failure says nothing about
/// the others.
fn verdict(findings: &Findings) -> String {
    if findings.passed_over {
        return "not healthy: the machine has a GPU, but it is not used".to_owned();
    }
    if findings.healthy {
        let well = "healthy: OpenCL and HIP can work on the same bytes";
        return match findings.crashed().as_slice() {
            [] => well.to_owned(),
            crashed => format!("{well}, but some ways fail: {}", crashed.join("; ")),
        };
    }
    if let Some(reason) = cannot_pair(findings) {
        let missing = reason.strip_prefix(NOT_TRIED).unwrap_or(&reason);
        return format!("not healthy: {missing}");
    }
    if findings.asked_routes.is_empty() {
        return "not healthy: no direct route between OpenCL and HIP works".to_owned();
    }
    format!(
        "undecided: none of the requested direct routes works ({}), and no other was tried; run without `--route`",
        findings.asked_routes.join(", ")
    )
}

/// What to say if the software device stands in for an available card, without a request.
fn passed_over(findings: &Findings, cards: &[String]) -> Option<String> {
    let stands_in = findings.is_model() && !findings.platform_why.starts_with("requested by");
    (stands_in && !cards.is_empty()).then(|| {
        format!(
            "{} is not used, so this report describes the software device: {}",
            cards.join(", "),
            findings.platform_why
        )
    })
}

/// What the system is compared with.
fn heard(findings: &Findings) -> RuntimeReport {
    let hip = findings.hip_devices.iter();
    let opencl = || findings.opencl_devices.iter();
    let gpus = opencl().filter(|device| device.kind == "GPU");
    RuntimeReport {
        uses_kfd: findings.facts().is_some_and(|facts| facts.uses_kfd),
        devices: hip
            .clone()
            .map(|device| device.arch.clone())
            .chain(opencl().map(|device| device.name.clone()))
            .collect(),
        hip: hip.filter_map(|device| device.pci.clone()).collect(),
        opencl: gpus.filter_map(|device| device.pci.clone()).collect(),
        loaded: findings.loaded.clone(),
        works: findings.facts().is_some_and(|facts| facts.uses_kfd) && findings.proven(),
    }
}

/// Why there is nothing to try: the same for every route, and reported once.
fn cannot_pair(findings: &Findings) -> Option<String> {
    let missing = match (findings.opencl_devices.is_empty(), findings.hip_devices.is_empty()) {
        (true, true) => "OpenCL or HIP device",
        (true, false) => "OpenCL device",
        (false, true) => "HIP device",
        (false, false) if !findings.compiler.works => "compiler for HIP kernels",
        (false, false) => return None,
    };
    Some(format!("{NOT_TRIED}there is no {missing}"))
}

fn one_route(route: Route, reply: std::result::Result<Reply<RouteTried>, Death>, findings: &mut Findings) {
    let subject = Subject::Route(route);
    let reply = match reply {
        Ok(reply) => reply,
        Err(death) => {
            let how = death.describe(subject);
            findings.advice.push(format!(
                "route {route}: {how}; use another route (`--route`), and report this failure with these findings"
            ));
            let mut state = state(route, Err(how));
            state.died = Some(death);
            findings.routes.push(state);
            return;
        }
    };
    for file in reply.mapped {
        if !findings.loaded.contains(&file) {
            findings.loaded.push(file);
        }
    }
    let devices = reply.found.pair.clone();
    let cache = reply.found.program_cache.clone();
    let mut state = state(route, Ok(reply.found));
    if let Some((opencl, hip, paired_by)) = &devices {
        let proven = state.works && !state.copies;
        let better = findings.pair.is_none() || proven && !findings.proven();
        if better {
            findings.opencl_cache = cache;
            findings.pair = Some(Pair {
                opencl: opencl.clone(),
                hip: hip.clone(),
                proof: match proven {
                    true => format!("{paired_by}; a pattern written through each API was read through the other"),
                    false => paired_by.clone(),
                },
                // What the proof of a route used; the other grades have probes of their own.
                grade: match proven {
                    true => interop::Grade::Host.to_string(),
                    false => "unknown".to_owned(),
                },
            });
        }
    }
    if let Some(death) = reply.died {
        findings.advice.push(format!(
            "route {route}: the probe answered, but then {}; a program that uses this route may end the same way",
            death.how
        ));
        state.died = Some(death);
    }
    if let (false, false, Some(reason)) = (state.works, state.impossible, &state.reason) {
        let advice = match devices {
            // most reasons begin with the route's name
            Some(_) if reason.starts_with("route ") => reason.clone(),
            Some(_) => format!("route {route}: {reason}"),
            // not about this route: it did not come so far
            None => reason.clone(),
        };
        if !findings.advice.contains(&advice) {
            findings.advice.push(advice);
        }
    }
    findings.routes.push(state);
}

/// With another route it is not needed, so a failure is reported and asks for nothing to be done.
fn host_ptr(reply: std::result::Result<Reply<HostPtrTried>, Death>) -> HostPtr {
    match reply {
        Ok(Reply { found, died: None, .. }) => HostPtr {
            proof: found.proof,
            impossible: found.impossible,
            reason: found.reason,
            died: None,
        },
        // also after an answer: a program that relied on it would end the same way
        Ok(Reply { died: Some(death), .. }) | Err(death) => HostPtr {
            proof: None,
            impossible: false,
            reason: Some(death.describe(Subject::HostPtr)),
            died: Some(death),
        },
    }
}

fn state(route: Route, tried: std::result::Result<RouteTried, String>) -> RouteState {
    let empty = RouteState {
        route: route.to_string(),
        works: false,
        copies: route.is_copy(),
        impossible: false,
        oldest_rocm: route.oldest_rocm().map(str::to_owned),
        crossings: Vec::new(),
        residency: None,
        reason: None,
        figures: None,
        figures_missing: None,
        died: None,
    };
    match tried {
        Err(reason) => RouteState {
            reason: Some(reason),
            ..empty
        },
        Ok(tried) => RouteState {
            works: tried.residency.is_some(),
            impossible: tried.impossible,
            crossings: tried.crossings,
            residency: tried.residency,
            reason: tried.reason,
            figures: tried.figures,
            figures_missing: tried.figures_missing,
            ..empty
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_that_were_not_tried_are_not_counted_as_broken() {
        let device = |json: &str| serde_json::from_str(json).expect("a device");
        let mut findings = Findings {
            platform: "amd".into(),
            hip_devices: vec![device(
                r#"{"ordinal":0,"name":"n","arch":"a","pci":null,"memory_bytes":1}"#,
            )],
            routes: vec![state(Route::Staging, Err("died".into()))],
            asked_routes: vec!["staging".into()],
            ..Findings::default()
        };
        assert_eq!(verdict(&findings), "not healthy: there is no OpenCL device");
        findings.opencl_devices.push(
            serde_json::from_str(
                r#"{"name":"n","kind":"GPU","platform":"p","driver":"d","svm":"s","pci":null,"memory_bytes":1,"library":"l"}"#,
            )
            .expect("a device"),
        );
        findings.compiler.works = true;
        assert!(verdict(&findings).starts_with("undecided: "));
        assert!(!findings.is_met());
        findings.routes[0].works = true;
        assert!(findings.is_met(), "the route that was asked for works");
        findings.asked_routes.clear();
        assert!(verdict(&findings).starts_with("not healthy: no direct route"));
        assert!(!findings.is_met(), "a copy is no direct route");
        findings.passed_over = true;
        assert!(verdict(&findings).contains("is not used"));
    }

    #[test]
    fn a_healthy_machine_whose_probes_crashed_says_so() {
        let mut findings = Findings {
            platform: "amd".into(),
            healthy: true,
            routes: vec![state(Route::HipPointer, Err("died".into()))],
            ..Findings::default()
        };
        let well = "healthy: OpenCL and HIP can work on the same bytes";
        assert_eq!(verdict(&findings), well);
        let died = |how: &str| {
            Some(Death {
                how: how.to_owned(),
                step: None,
                stderr: Vec::new(),
            })
        };
        findings.routes[0].died = died("died by SIGSEGV");
        findings.host_ptr = Some(HostPtr {
            proof: None,
            impossible: false,
            reason: None,
            died: died("died by SIGABRT"),
        });
        assert_eq!(
            verdict(&findings),
            format!(
                "{well}, but some ways fail: route hip-pointer died by SIGSEGV; HIP memory as a cl_mem died by SIGABRT"
            )
        );
    }

    #[test]
    fn a_card_left_out_unasked_is_no_healthy_silence() {
        let card = ["the card at 0000:03:00.0".to_owned()];
        let mut findings = Findings {
            platform: "host".into(),
            platform_why: "amd skipped: no libamdhip64".into(),
            ..Findings::default()
        };
        let advice = passed_over(&findings, &card).expect("it is said");
        assert!(
            advice.contains("0000:03:00.0 is not used") && advice.contains("no libamdhip64"),
            "{advice}"
        );
        assert_eq!(passed_over(&findings, &[]), None);
        findings.platform_why = "requested by HIPCL_PLATFORM".into();
        assert_eq!(passed_over(&findings, &card), None);
        findings.platform_why = "amd has a device".into();
        findings.platform = "amd".into();
        assert_eq!(passed_over(&findings, &card), None);
    }
}
