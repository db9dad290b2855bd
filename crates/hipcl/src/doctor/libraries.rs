//! The answers of the children that load the libraries, and what to do about them.

use platform::Facts;

use super::findings::{Findings, Library, Tried};
use super::probe::{Death, Hip, OpenCl, Reply, Subject};
use super::system::Environment;
use super::{Options, PLATFORM_OPTION};

/// Names the OpenCL library; no other is examined then.
pub(super) const OPENCL_VARIABLE: &str = "HIPCL_OPENCL";

/// The requested platform, and where the request came from.
pub(super) fn asked(options: &Options, environment: &Environment) -> Option<(String, &'static str)> {
    if let Some(name) = &options.platform {
        return Some((name.clone(), PLATFORM_OPTION));
    }
    ["HIPCL_PLATFORM", "HIP_PLATFORM"]
        .into_iter()
        .find_map(|variable| Some((environment.get(variable)?.to_owned(), variable)))
}

pub(super) fn hip(
    reply: std::result::Result<Reply<Hip>, Death>,
    asked: Option<(String, &str)>,
    findings: &mut Findings,
) {
    // what a platform that cannot be used does not tell itself
    if let Some((name, by)) = asked {
        findings.platform = name;
        findings.platform_why = format!("requested by {by}");
    }
    let found = match reply {
        Ok(reply) => reply.found,
        Err(death) => {
            lost(Subject::Hip, &death, None, findings);
            findings.libraries.push(Library {
                name: "HIP".to_owned(),
                place: death.describe(Subject::Hip),
                usable: false,
                detail: death.stderr.join(" | "),
            });
            return;
        }
    };
    findings.platform = found.platform;
    if !found.why.is_empty() {
        findings.platform_why = found.why;
    }
    if let Some(facts) = findings.facts() {
        let missing = found.libraries.iter().filter(|library| !library.usable);
        let advice = missing.map(|library| library_advice(facts, &library.name));
        findings.advice.extend(advice);
    }
    findings.libraries = found.libraries;
    if let Some(reason) = found.unusable {
        // without its library there is an advice already
        if findings.libraries.iter().any(|library| library.usable) {
            findings.advice.push(reason.clone());
        }
        findings.platform_failure = Some(reason);
        return;
    }
    match found.failure {
        Some(reason) => findings.advice.push(format!("HIP: {reason}")),
        None if found.devices.is_empty() => findings
            .advice
            .push("HIP reports no device: check that the GPU driver is loaded".into()),
        None if !found.compiler.works => findings
            .advice
            .push(format!("HIP kernels cannot be compiled: {}", found.compiler.detail)),
        None => {}
    }
    findings.hip_devices = found.devices;
    findings.compiler = found.compiler;
}

/// What to do about a missing library.
fn library_advice(facts: &Facts, library: &str) -> String {
    match library {
        "HIP" => facts.install.hip.to_owned(),
        _ => format!("{library} is missing: {}", facts.install.other),
    }
}

pub(super) fn opencl(reply: std::result::Result<Reply<OpenCl>, Death>, named: Option<&str>, findings: &mut Findings) {
    let found = match reply {
        Ok(reply) => reply.found,
        Err(death) => {
            lost(Subject::OpenCl, &death, named, findings);
            let stderr = death.stderr.iter().map(|line| format!(" | {line}"));
            findings.opencl_tried.push(Tried {
                what: named.unwrap_or("OpenCL").to_owned(),
                reason: death.describe(Subject::OpenCl) + &stderr.collect::<String>(),
            });
            return;
        }
    };
    match (found.failure, named) {
        (Some(reason), _) => findings.advice.push(format!("OpenCL: {reason}")),
        (None, _) if !found.devices.is_empty() => {}
        (None, Some(file)) => findings.advice.push(format!(
            "no OpenCL device: {OPENCL_VARIABLE} names {file}, so no other library is tried; unset it, or set it to an OpenCL library that works"
        )),
        (None, None) => findings.advice.push(format!(
            "no OpenCL device: install an OpenCL runtime (Debian: pocl-opencl-icd), or set {OPENCL_VARIABLE} to the path of one"
        )),
    }
    findings.opencl_libraries = found.libraries;
    // The project's own driver is of use to the software device, and to a machine without any other.
    let is_missed =
        |tried: &Tried| findings.is_model() || found.devices.is_empty() || !tried.what.contains("hipcl-opencl");
    findings.opencl_tried = found.tried.into_iter().filter(is_missed).collect();
    findings.opencl_devices = found.devices;
}

/// A child that was lost while it looked for devices.
fn lost(subject: Subject, death: &Death, named: Option<&str>, findings: &mut Findings) {
    let remedy = match (subject, named) {
        (Subject::OpenCl, Some(file)) => {
            format!("unset {OPENCL_VARIABLE}, which names {file}, or set it to another library")
        }
        (Subject::OpenCl, None) => format!("set {OPENCL_VARIABLE} to another library"),
        _ => "set HIPCL_HIP_LIBRARY to another library, or ROCM_PATH to another installation".to_owned(),
    };
    findings.advice.push(format!(
        "{}: {remedy}, and report this to the vendor of the library",
        death.describe(subject)
    ));
}
