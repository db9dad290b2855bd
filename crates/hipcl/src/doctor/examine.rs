//! The examination. What fails becomes a finding with an advice; only a request that makes no sense is an error.

use std::time::Instant;

use interop::{Bridge, RouteReport};
use platform::{Platform, Selection};

use super::findings::{
    Compiler, Findings, HipDevice, Library, OpenClDevice, Pair, RouteState, Tried,
};
use crate::Result;
use crate::error::one_line;

pub(super) fn examine() -> Result<Findings> {
    let selection = platform::select()?;
    let mut findings = Findings {
        platform: selection.platform.to_string(),
        platform_why: one_line(&selection.why),
        ..Findings::default()
    };
    libraries(&selection, &mut findings);
    opencl(&mut findings);
    hip(&selection, &mut findings);
    bridge(&selection, &mut findings);
    findings.healthy = findings
        .routes
        .iter()
        .any(|route| route.works && !route.copies);
    Ok(findings)
}

fn libraries(selection: &Selection, findings: &mut Findings) {
    for library in &selection.libraries {
        let usable = library.state.is_usable();
        findings.libraries.push(Library {
            name: library.name.to_owned(),
            place: one_line(&library.state.to_string()),
            usable,
            detail: if usable {
                format!("{} functions", library.functions)
            } else {
                String::new()
            },
        });
        if !usable {
            findings.advice.push(format!(
                "{} is missing: install it from the same ROCm release as HIP, or set ROCM_PATH to a complete one",
                library.name
            ));
        }
    }
}

fn opencl(findings: &mut Findings) {
    let tried = |tried: &[clmgr::Tried]| -> Vec<Tried> {
        tried
            .iter()
            .map(|tried| Tried {
                what: tried.path.display().to_string(),
                reason: one_line(&tried.reason),
            })
            .collect()
    };
    let manager = match clmgr::Manager::load() {
        Ok(manager) => manager,
        Err(error) => {
            if let clmgr::Error::NoRuntime { tried: all } = &error {
                findings.opencl_tried = tried(all);
                findings.advice.push(
                    "no OpenCL device: run `cargo xtask setup`, install an OpenCL runtime, or set HIPCL_OPENCL to the path of one".into(),
                );
            } else {
                findings
                    .advice
                    .push(format!("OpenCL: {}", one_line(&error.to_string())));
            }
            return;
        }
    };
    findings.opencl_tried = tried(manager.tried());
    for library in manager.libraries() {
        findings.opencl_libraries.push(Library {
            name: library.platforms.join(", "),
            place: library.path.display().to_string(),
            usable: true,
            detail: library.kind.to_string(),
        });
    }
    for device in manager.devices() {
        findings.opencl_devices.push(OpenClDevice {
            name: device.name().trim().to_owned(),
            kind: format!("{:?}", device.kind()).to_uppercase(),
            platform: format!(
                "{} {}",
                device.platform_name().trim(),
                device.platform_version().trim()
            ),
            driver: device.driver_version().trim().to_owned(),
            svm: svm(device.svm()),
            pci: device.pci_address().map(|address| address.to_string()),
            memory_bytes: device.global_bytes(),
            library: device.library_path().display().to_string(),
        });
    }
}

fn svm(capabilities: clmgr::SvmCapabilities) -> String {
    let names: Vec<String> = capabilities
        .iter_names()
        .map(|(name, _)| name.to_lowercase().replace('_', "-"))
        .collect();
    if names.is_empty() {
        "none".into()
    } else {
        names.join(" ")
    }
}

fn hip(selection: &Selection, findings: &mut Findings) {
    // SAFETY: all tables come from one selection.
    let runtime = unsafe {
        hip::Runtime::from_tables(selection.tables.hip.clone(), selection.tables.rtc.clone())
    };
    let devices = runtime.and_then(|runtime| {
        let count = runtime.device_count()?;
        (0..count)
            .map(|ordinal| runtime.device(ordinal))
            .collect::<hip::Result<Vec<_>>>()
    });
    let devices = match devices {
        Ok(devices) => devices,
        Err(error) => {
            findings
                .advice
                .push(format!("HIP: {}", one_line(&error.to_string())));
            return;
        }
    };
    for device in &devices {
        let unknown = |_| "unknown".to_owned();
        findings.hip_devices.push(HipDevice {
            ordinal: device.ordinal(),
            name: device.name().unwrap_or_else(unknown),
            arch: device.arch().unwrap_or_else(unknown),
            pci: device.pci_address().ok().map(|address| address.to_string()),
            memory_bytes: device.memory_info().map_or(0, |memory| memory.total as u64),
        });
    }
    match devices.first() {
        Some(device) => compiler(selection.platform, device, findings),
        None => findings
            .advice
            .push("HIP has no device: check that the GPU's driver is loaded".into()),
    }
}

/// Compiles a kernel that no cache can know.
fn compiler(platform: Platform, device: &hip::Device, findings: &mut Findings) {
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
    findings.compiler = match compiled {
        Ok(_) => {
            let name = match platform {
                Platform::Host => "HIPRTC by this machine's C++ compiler",
                Platform::Amd | Platform::Nvidia => "HIPRTC",
            };
            let ms = start.elapsed().as_secs_f64() * 1e3;
            Compiler {
                works: true,
                detail: format!("{name}, {ms:.0} ms for a small kernel"),
            }
        }
        Err(error) => {
            let detail = one_line(&error.to_string());
            findings
                .advice
                .push(format!("HIP kernels can't be compiled: {detail}"));
            Compiler {
                works: false,
                detail,
            }
        }
    };
}

fn bridge(selection: &Selection, findings: &mut Findings) {
    match Bridge::open(selection, &interop::Options::default()) {
        Ok(bridge) => {
            let report = bridge.report();
            let direct = report
                .routes
                .iter()
                .any(|route| route.works() && !route.route.is_copy());
            findings.routes = report.routes.iter().map(state).collect();
            findings.opencl_cache = bridge
                .programs()
                .folder()
                .map(|folder| folder.display().to_string());
            findings.pair = Some(Pair {
                opencl: report.opencl_device.trim().to_owned(),
                hip: report.hip_device.clone(),
                proof: if direct {
                    format!(
                        "{}; a pattern written through each API was read through the other",
                        report.pairing
                    )
                } else {
                    report.pairing.to_string()
                },
                grade: bridge.grade().to_string(),
            });
            if !report.opencl_counted {
                findings
                    .advice
                    .push("too many bridges are open: OpenCL's copies are not counted".into());
            }
        }
        Err(interop::Error::NotPossible { tried }) => {
            for (route, reason) in tried {
                let reason = one_line(&reason);
                findings.advice.push(format!("route {route}: {reason}"));
                findings.routes.push(RouteState {
                    route: route.to_string(),
                    works: false,
                    copies: route.is_copy(),
                    residency: None,
                    reason: Some(reason),
                });
            }
        }
        // a missing runtime or compiler has its advice already
        Err(error) => {
            let text = one_line(&error.to_string());
            if !findings.opencl_devices.is_empty() && findings.compiler.works {
                findings.advice.push(text);
            }
        }
    }
}

fn state(report: &RouteReport) -> RouteState {
    let (residency, reason) = match &report.outcome {
        Ok(residency) => (Some(residency.to_string()), None),
        Err(reason) => (None, Some(one_line(reason))),
    };
    RouteState {
        route: report.route.to_string(),
        works: report.works(),
        copies: report.route.is_copy(),
        residency,
        reason,
    }
}
