//! The report of `hipcl doctor` as text and as a file, and one held against another.

use hipcl::doctor::{
    AllocationState, CarrierState, Check, Compiler, Crossing, Death, Findings, GradeState, HandoffFigures, HipDevice,
    HostPtr, Kind, Library, OneStream, OpenClDevice, Pair, Pairing, RouteFigures, RouteState, SCHEMA, State,
    StreamFigures, Tried,
};
use tempfile::TempDir;

fn route(name: &str, rates: (f64, f64)) -> RouteState {
    RouteState {
        route: name.into(),
        works: true,
        copies: name == "staging",
        impossible: false,
        oldest_rocm: Some("5.7".into()),
        crossings: ["OpenCL to HIP", "HIP to OpenCL"]
            .map(|direction| Crossing {
                direction: direction.into(),
                agrees: true,
                reason: None,
            })
            .into(),
        residency: Some("vram".into()),
        reason: None,
        figures: Some(RouteFigures {
            grade: "host".into(),
            opencl_to_hip_us: 17.25,
            hip_to_opencl_us: 12.0,
            opencl_gb_s: rates.0,
            hip_gb_s: rates.1,
        }),
        figures_missing: None,
        died: None,
    }
}

fn broken(name: &str, reason: &str, impossible: bool) -> RouteState {
    RouteState {
        works: false,
        impossible,
        oldest_rocm: None,
        crossings: Vec::new(),
        residency: None,
        reason: Some(reason.into()),
        figures: None,
        ..route(name, (0.0, 0.0))
    }
}

fn grade(name: &str, by: Result<[f64; 2], &str>) -> GradeState {
    GradeState {
        grade: name.into(),
        route: "svm-coarse".into(),
        works: by.is_ok(),
        opencl_to_hip: by.is_ok().then(|| "clFinish".into()),
        hip_to_opencl: by.is_ok().then(|| "hipStreamSynchronize".into()),
        reason: by.err().map(Into::into),
        figures: by.ok().map(|[there, back]| HandoffFigures {
            opencl_to_hip_us: there,
            hip_to_opencl_us: back,
        }),
        figures_missing: None,
        died: None,
    }
}

fn carrier(name: &str, found: Result<&str, &str>, impossible: bool) -> CarrierState {
    CarrierState {
        carrier: name.into(),
        works: found.is_ok(),
        impossible,
        residency: found.ok().map(Into::into),
        reason: found.err().map(Into::into),
        died: None,
    }
}

fn allocation(name: &str, call: &str, place: Option<(&str, &str)>) -> AllocationState {
    AllocationState {
        allocation: name.into(),
        call: call.into(),
        works: true,
        residency: place.map(|place| place.0.into()),
        known_by: place.map(|place| place.1.into()),
        opencl_gb_s: Some(900.0),
        opencl_missing: None,
        hip_gb_s: None,
        hip_missing: Some("the other API has no address".into()),
        reason: None,
        died: None,
    }
}

fn library(name: &str, place: &str, detail: &str) -> Library {
    Library {
        name: name.into(),
        place: place.into(),
        usable: true,
        detail: detail.into(),
    }
}

/// A report as an MI100 might give it; invented.
fn mi100() -> Findings {
    let died = Death {
        how: "died by SIGSEGV".into(),
        step: Some("allocating".into()),
        stderr: vec!["Memory access fault by GPU node-1 on address 0x7f0000000000. Reason: Page not present or supervisor privilege.".into()],
    };
    let crash = "died by SIGSEGV in the probe of hip-pointer, allocating";
    let mut crashed = broken("hip-pointer", crash, false);
    crashed.died = Some(died);
    Findings {
        schema: SCHEMA,
        hipcl: "0.1.0".into(),
        taken: "2026-11-22T01:30:00Z".into(),
        platform: "amd".into(),
        platform_why: "it has a device".into(),
        platform_failure: None,
        emulator: None,
        libraries: vec![
            library("HIP", "/opt/rocm-6.3.0/lib/libamdhip64.so.6", "475 functions"),
            library("HSA", "/opt/rocm-6.3.0/lib/libhsa-runtime64.so.1", "9 functions"),
        ],
        opencl_libraries: vec![library(
            "AMD Accelerated Parallel Processing",
            "libOpenCL.so.1",
            "the system's loader",
        )],
        opencl_tried: vec![Tried {
            what: "libOpenCL.so".into(),
            reason: "no such file".into(),
        }],
        opencl_devices: vec![OpenClDevice {
            name: "gfx908:sramecc+:xnack-".into(),
            kind: "GPU".into(),
            platform: "AMD Accelerated Parallel Processing OpenCL 2.1 AMD-APP (3635.0)".into(),
            driver: "3635.0 (HSA1.1,LC)".into(),
            svm: "coarse fine-buffer".into(),
            pci: Some("????:03:00.0".into()),
            memory_bytes: 32 << 30,
            library: "libOpenCL.so.1".into(),
        }],
        hip_devices: vec![HipDevice {
            ordinal: 0,
            name: "AMD Instinct MI100".into(),
            arch: "gfx908:sramecc+:xnack-".into(),
            pci: Some("0000:03:00.0".into()),
            memory_bytes: 32 << 30,
        }],
        pairing: vec![Pairing {
            hip: 0,
            opencl: vec![0],
        }],
        pair: Some(Pair {
            opencl: "gfx908:sramecc+:xnack-".into(),
            hip: "AMD Instinct MI100".into(),
            proof: "PCI address 0000:03:00.0; a pattern written through each API was read through the other".into(),
            grade: "host".into(),
        }),
        asked_routes: Vec::new(),
        routes: vec![
            route("svm-coarse", (900.0, 950.5)),
            broken("external-fd", "importing memory by opaque-fd is not possible on `gfx908:sramecc+:xnack-`: it lacks `cl_khr_external_memory`", true),
            crashed,
            route("staging", (905.0, 940.0)),
        ],
        host_ptr: Some(HostPtr {
            proof: None,
            impossible: false,
            reason: Some("clCreateBuffer(CL_MEM_USE_HOST_PTR, 262144 bytes of route hip-pointer) failed: CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)".into()),
            died: None,
        }),
        grades: vec![
            grade("host", Ok([17.25, 12.0])),
            grade("device", Err("hung, and was killed after 60 s in the probe of grade:device:svm-coarse, timing the hand-off")),
        ],
        one_stream: Some(OneStream {
            works: true,
            how: Some("HIP launches the code that OpenCL compiled".into()),
            reason: None,
            figures: Some(StreamFigures {
                waited_us: 11.5,
                queued_us: 2.25,
            }),
            figures_missing: None,
            died: None,
        }),
        carriers: vec![
            carrier("hip-fd", Ok("vram"), false),
            carrier(
                "dma-buf",
                Err("in the second process: hsa_amd_interop_map_buffer(...) answered 0x1001"),
                false,
            ),
            carrier("ipc-handle", Err("the device has no HIP memory that leaves"), true),
        ],
        allocations: vec![
            allocation("cl-buffer", "clCreateBuffer", Some(("vram", "hsa_amd_pointer_info"))),
            allocation("cl-alloc-host-ptr", "clCreateBuffer, ALLOC_HOST_PTR", None),
            AllocationState {
                works: false,
                reason: Some("clSVMAlloc(256 bytes) gave no memory".into()),
                ..allocation("cl-svm-fine", "clSVMAlloc, fine", None)
            },
        ],
        compiler: Compiler {
            works: true,
            detail: "HIPRTC, 130 ms for a small kernel".into(),
        },
        opencl_cache: Some("/var/cache/hipcl/opencl".into()),
        loaded: vec!["/opt/rocm-6.3.0/lib/libhsa-runtime64.so.1.14.60300".into()],
        checks: vec![
            Check {
                name: "kernel".into(),
                state: State::Info,
                found: "6.8.0-45-generic".into(),
                advice: None,
            },
            Check {
                name: "/dev/kfd".into(),
                state: State::Good,
                found: "readable and writable".into(),
                advice: None,
            },
            Check {
                name: "large BAR".into(),
                state: State::Bad,
                found: "the host cannot access all memory of 0000:03:00.0".into(),
                advice: Some("no large BAR".into()),
            },
            Check {
                name: "CONFIG_PCI_P2PDMA".into(),
                state: State::Unknown,
                found: "the kernel configuration was not found".into(),
                advice: None,
            },
        ],
        advice: vec![
            format!("route hip-pointer: {crash}; use another route (`--route`), and report this failure with these findings"),
            "no large BAR".into(),
        ],
        passed_over: false,
        healthy: true,
        verdict: "healthy: OpenCL and HIP can work on the same bytes".into(),
        comparison: None,
    }
}

#[test]
fn the_text_is_as_it_was_and_fits_its_width() {
    let mut findings = mi100();
    findings.comparison = Some({
        let mut earlier = mi100();
        earlier.routes[0].figures.as_mut().unwrap().hip_gb_s = 400.0;
        findings.since(&earlier)
    });
    let text = findings.to_string();
    if std::env::var_os("HIPCL_WRITE_GOLDEN").is_some() {
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/doctor.txt");
        std::fs::write(golden, &text).expect("written");
        return;
    }
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
        assert!(!line.contains('\u{1b}') && line.trim_end() == line, "{line:?}");
    }
    assert_eq!(
        text,
        include_str!("golden/doctor.txt"),
        "run HIPCL_WRITE_GOLDEN=1 cargo test -p hipcl --test doctor_report"
    );
}

#[test]
fn in_a_narrow_terminal_the_tables_stay_tables_and_nothing_is_wider() {
    let findings = mi100();
    let text = findings.text(80);
    for line in text.lines() {
        assert!(line.chars().count() <= 80 && line.trim_end() == line, "{line}");
    }
    for row in [
        "     route       kind    memory      CL>HIP us HIP>CL us CL GB/s HIP GB/s  ROCm",
        "  ok svm-coarse  direct  vram             17.2      12.0   900.0    950.5  5.7",
        "     allocation                     memory            CL GB/s  HIP GB/s",
        "  ok clCreateBuffer                 vram (1)            900.0       (2)",
        "     (1) memory: hsa_amd_pointer_info",
        "     (2) HIP: the other API has no address",
    ] {
        assert!(text.lines().any(|line| line == row), "{row}\n{text}");
    }
    let words = |text: &str| -> String { text.split_whitespace().collect() };
    for check in &findings.checks {
        assert!(words(&text).contains(&words(&check.found)), "{}", check.found);
    }
    for width in [40, 60, 79, 93, 94, 99] {
        let text = findings.text(width);
        assert!(
            text.lines().all(|line| line.chars().count() <= width),
            "{width}: {text}"
        );
    }
}

#[test]
fn the_picture_has_a_bar_for_each_bandwidth_and_names_what_has_none() {
    let picture = mi100().picture();
    assert!(picture.title.contains("AMD Instinct MI100"), "{}", picture.title);
    let groups: Vec<&str> = picture.groups.iter().map(|group| &*group.heading).collect();
    assert_eq!(groups, ["Routes", "Allocations"]);
    let rows = picture.groups.iter().flat_map(|group| &group.rows);
    let found: Vec<_> = rows
        .map(|row| {
            let bars = row.bars.iter().map(|bar| (bar.value, &*bar.label));
            (&*row.name, bars.collect::<Vec<_>>())
        })
        .collect();
    let (full, half) = (
        vec![(Some(900.0), "900 GB/s"), (Some(950.5), "950 GB/s")],
        vec![(Some(900.0), "900 GB/s"), (None, "HIP: no figure")],
    );
    assert_eq!(
        found,
        [
            ("svm-coarse (vram)", full),
            ("external-fd", vec![(None, "not possible here")]),
            ("hip-pointer", vec![(None, "does not work")]),
            (
                "staging (vram)",
                vec![(Some(905.0), "905 GB/s"), (Some(940.0), "940 GB/s")]
            ),
            ("clCreateBuffer (vram)", half.clone()),
            ("clCreateBuffer, ALLOC_HOST_PTR", half),
            ("clSVMAlloc, fine", vec![(None, "gave no memory")]),
        ]
    );
    let nothing = Findings::default().picture();
    assert!(nothing.groups.iter().all(|group| group.rows.is_empty()));
    assert!(nothing.empty.contains("No route was tried"));
}

#[test]
fn a_file_gives_back_the_findings_that_were_written() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("d.json");
    let findings = mi100();
    std::fs::write(&path, findings.to_json()).expect("written");
    assert_eq!(Findings::read(&path).expect("read"), findings);
}

#[test]
fn files_of_another_form_and_other_files_are_refused_with_the_reason() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("d.json");
    let newer = mi100().to_json().replace("\"schema\": 1", "\"schema\": 2");
    for (text, reason) in [
        (&*newer, "its schema is 2"),
        ("{}", "it has no `schema`"),
        ("{\"schema\": 1}", "missing field"),
        ("no JSON", "expected"),
    ] {
        std::fs::write(&path, text).expect("written");
        let error = Findings::read(&path).expect_err("refused").one_line();
        assert!(error.contains(reason), "{error}");
        assert!(error.contains("run the doctor again"), "{error}");
    }
}

#[test]
fn noise_addresses_and_the_compilers_time_are_no_difference() {
    let (earlier, mut now) = (mi100(), mi100());
    now.taken = "2026-12-01T00:00:00Z".into();
    now.compiler.detail = "HIPRTC, 480 ms for a small kernel".into();
    now.hip_devices[0].memory_bytes -= 4096;
    let figures = now.routes[0].figures.as_mut().unwrap();
    figures.hip_gb_s *= 0.85;
    figures.opencl_gb_s *= 1.2;
    figures.opencl_to_hip_us += 4.9;
    figures.hip_to_opencl_us -= 4.9;
    now.routes[1].reason = earlier.routes[1].reason.clone().map(|it| it + " at 0x7f1234567890");
    let mut masked = earlier.clone();
    masked.routes[1].reason = earlier.routes[1].reason.clone().map(|it| it + " at 0x7fabcdef0000");
    let comparison = now.since(&masked);
    assert_eq!(comparison.changes, [], "{comparison}");
    assert!(!comparison.worse);
    assert!(comparison.to_string().contains("no difference beyond the noise"));
}

#[test]
fn each_difference_says_which_way_it_went() {
    let (mut earlier, mut now) = (mi100(), mi100());
    // a route that worked crashes now, and one that crashed works
    now.routes[3] = broken("staging", "died by SIGBUS in the probe of staging", false);
    now.routes[2] = route("hip-pointer", (800.0, 800.0));
    now.routes[0].figures.as_mut().unwrap().hip_gb_s = 14.0;
    now.routes[0].figures.as_mut().unwrap().opencl_to_hip_us = 60.0;
    now.checks[2].state = State::Good;
    now.checks[2].found = "the host can access all GPU memory".into();
    earlier.libraries[0].detail = "467 functions".into();
    earlier.loaded.push("/old/libhsa-runtime64.so".into());
    let comparison = now.since(&earlier);
    let kind = |what: &str| {
        let change = comparison.changes.iter().find(|change| change.what == what);
        change.map(|change| (change.kind, change.ratio))
    };
    assert_eq!(kind("route staging"), Some((Kind::Worse, None)));
    assert_eq!(kind("route staging, HIP kernel"), Some((Kind::Gone, None)));
    assert_eq!(kind("route hip-pointer"), Some((Kind::Better, None)));
    assert_eq!(kind("route hip-pointer, HIP kernel"), Some((Kind::New, None)));
    assert_eq!(kind("route svm-coarse, HIP kernel"), Some((Kind::Worse, Some(0.01))));
    assert_eq!(kind("route svm-coarse, OpenCL to HIP"), Some((Kind::Worse, Some(3.48))));
    assert_eq!(kind("check large BAR"), Some((Kind::Better, None)));
    assert_eq!(kind("library HIP"), Some((Kind::Changed, None)));
    assert_eq!(kind("loaded /old/libhsa-runtime64.so"), Some((Kind::Gone, None)));
    assert!(comparison.worse);
    // the other way round what was worse is better
    let back = earlier.since(&now);
    assert!(
        back.changes
            .iter()
            .any(|change| change.what == "route staging" && change.kind == Kind::Better)
    );
}

#[test]
fn figures_of_the_software_device_change_and_are_never_worse() {
    let (mut earlier, mut now) = (mi100(), mi100());
    now.platform = "host".into();
    earlier.platform = "host".into();
    let figures = now.routes[0].figures.as_mut().unwrap();
    figures.hip_gb_s = 14.0;
    figures.opencl_to_hip_us = 600.0;
    now.allocations[0].opencl_gb_s = Some(3.0);
    now.grades[0].figures.as_mut().unwrap().hip_to_opencl_us = 500.0;
    let comparison = now.since(&earlier);
    assert!(!comparison.worse, "{comparison}");
    let kinds: Vec<Kind> = comparison.changes.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [Kind::Changed; 4], "{comparison}");
    assert_eq!(comparison.changes[0].ratio, Some(34.78));
    // on a card the same is worse
    now.platform = "amd".into();
    earlier.platform = "amd".into();
    let comparison = now.since(&earlier);
    let kinds: Vec<Kind> = comparison.changes.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [Kind::Worse; 4], "{comparison}");
    // what works no longer is worse anywhere
    now.platform = "host".into();
    earlier.platform = "host".into();
    now.grades[0] = grade("host", Err("hung"));
    assert!(now.since(&earlier).worse);
}

#[test]
fn memory_that_moved_is_a_change_and_a_hand_off_that_hangs_is_worse() {
    let (earlier, mut now) = (mi100(), mi100());
    now.allocations[0].residency = Some("host-pinned".into());
    now.grades[0] = grade("host", Err("hung"));
    let comparison = now.since(&earlier);
    let kind = |what: &str| {
        let change = comparison.changes.iter().find(|change| change.what == what);
        change.map(|change| change.kind)
    };
    assert_eq!(kind("memory of clCreateBuffer"), Some(Kind::Changed));
    assert_eq!(kind("hand-off host"), Some(Kind::Worse));
}

#[test]
fn routes_that_were_not_asked_for_are_neither_gone_nor_worse() {
    let (earlier, mut now) = (mi100(), mi100());
    now.asked_routes = vec!["staging".into()];
    now.routes.retain(|route| route.route == "staging");
    now.grades.clear();
    now.carriers.clear();
    now.allocations.clear();
    now.loaded.clear();
    now.healthy = false;
    let comparison = now.since(&earlier);
    assert_eq!(comparison.changes, [], "{comparison}");
    // the one that both have is still compared
    now.routes[0] = broken("staging", "died by SIGBUS", false);
    assert!(now.since(&earlier).worse);
    assert!(earlier.since(&now).changes.iter().all(|it| it.kind != Kind::Worse));
}

#[test]
fn a_card_that_is_gone_and_a_check_that_fails_newly_are_worse() {
    let (mut earlier, now) = (mi100(), mi100());
    let card = earlier.hip_devices[0].clone();
    earlier.hip_devices.push(HipDevice { ordinal: 1, ..card });
    let comparison = now.since(&earlier);
    assert!(comparison.worse, "{comparison}");
    assert!(!earlier.since(&now).worse, "a card more is no harm");
    let (mut earlier, mut now) = (mi100(), mi100());
    let check = now.checks.iter().position(|check| check.state == State::Bad);
    let failing = now.checks.remove(check.expect("the machine has a fault"));
    now.checks.push(failing.clone());
    earlier.checks.retain(|check| check.name != failing.name);
    assert!(now.since(&earlier).worse);
}

#[test]
fn a_route_that_works_and_then_dies_is_worse_than_one_that_only_works() {
    let (earlier, mut now) = (mi100(), mi100());
    now.routes[0].died = earlier.routes[2].died.clone();
    let comparison = now.since(&earlier);
    assert_eq!(comparison.changes.len(), 1, "{comparison}");
    assert_eq!(comparison.changes[0].kind, Kind::Worse);
}

#[test]
fn an_emulated_gpu_is_named_before_the_verdict() {
    let mut findings = mi100();
    findings.emulator = Some("rocjitsu".into());
    let text = findings.to_string();
    let mut lines = text.lines().skip(1);
    assert!(lines.next().unwrap().starts_with("rocjitsu emulates the GPU"));
    assert_eq!(lines.next(), Some(""));
    assert_eq!(lines.next(), Some(&*findings.verdict));
    assert!(!mi100().to_string().contains("emulated"));
}
