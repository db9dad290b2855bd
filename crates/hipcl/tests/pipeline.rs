//! The jobs, run as a user runs them.

mod common;

use std::process::{Command, Stdio};

use common::{Run, files, ready};
use serde_json::Value;

const NOTE: [&str; 6] = ["pipeline", "note", "--samples", "100000", "--iterations", "3"];
const CAPON: [&str; 8] = [
    "pipeline",
    "capon",
    "--elements",
    "48",
    "--segments",
    "256",
    "--iterations",
    "2",
];
const RADAR: [&str; 8] = [
    "pipeline",
    "radar",
    "--blocks",
    "4",
    "--pulse",
    "256",
    "--iterations",
    "2",
];
const GPS: [&str; 8] = [
    "pipeline",
    "gps",
    "--rate",
    "2e6",
    "--doppler-max",
    "1000",
    "--iterations",
    "2",
];
const OUTPUTS: [&str; 4] = ["--json", "FOLDER/r.json", "--plot", "FOLDER/r.png"];
const VECTORS: [&str; 4] = ["--json", "FOLDER/r.json", "--plot", "FOLDER/r.svg"];

const KEYS: [&str; 11] = [
    "platform",
    "hip_device",
    "opencl_device",
    "route",
    "residency",
    "grade",
    "stages",
    "handoff_us",
    "host_copies_bytes",
    "max_rel_error",
    "verified",
];

#[track_caller]
fn check_report(report: &Value, extra: Option<(&str, &[&str])>) {
    for key in KEYS {
        assert!(!report[key].is_null(), "{key}");
    }
    for stage in report["stages"].as_array().expect("a list") {
        for key in ["median_us", "gb_s", "percent_of_limit"] {
            assert!(stage[key].as_f64().is_some_and(|value| value > 0.0), "{key} of {stage}");
        }
        assert!(stage["name"].is_string());
        assert!(matches!(stage["api"].as_str(), Some("opencl" | "hip")), "{stage}");
    }
    if let Some((list, keys)) = extra {
        for entry in report[list].as_array().expect("a list") {
            for key in keys {
                assert!(entry[key].is_number(), "{key} of {entry}");
            }
        }
    }
}

/// The stages as text, and the map of a job that has one as a single image.
#[track_caller]
fn check_svg(svg: &str, report: &Value) {
    assert!(
        svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"),
        "{:.200}",
        svg
    );
    for stage in report["stages"].as_array().expect("a list") {
        let name = stage["name"].as_str().expect("a name");
        assert!(svg.lines().any(|line| line == name), "no {name}");
    }
    let images = svg.matches("<image ").count();
    assert_eq!(images, usize::from(report["job"] == "radar"));
    assert!(svg.matches("<rect ").count() < 1000, "a rectangle for each pixel");
}

#[test]
fn jobs_verify_without_copying_and_write_report_and_picture() {
    if !ready("jobs_verify_without_copying_and_write_report_and_picture") {
        return;
    }
    for (args, stages, extra, outputs) in [
        (&NOTE[..], 4, None, VECTORS),
        (
            &CAPON[..],
            7,
            Some(("emitters", &["angle_deg", "power_db"][..])),
            OUTPUTS,
        ),
        (
            &RADAR[..],
            7,
            Some((
                "targets",
                &["delay_samples", "range_m", "angle_deg", "amplitude_db"][..],
            )),
            VECTORS,
        ),
    ] {
        let run = Run::new(&[args, &outputs].concat());
        assert_eq!(run.status(), Some(0), "{}{}", run.stdout(), run.stderr());
        let report = run.json("r.json");
        check_report(&report, extra);
        assert_eq!(report["verified"], true);
        assert_eq!(report["host_copies_bytes"], 0);
        assert_eq!(report["stages"].as_array().map(Vec::len), Some(stages));
        if outputs == VECTORS {
            check_svg(&std::fs::read_to_string(run.path("r.svg")).unwrap(), &report);
        } else {
            let bytes = std::fs::read(run.path("r.png")).unwrap();
            assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"));
        }
        assert_eq!(files(run.folder.path()).len(), 2, "only the two files asked for");
        assert!(
            run.stdout().contains("% of limit") && run.stdout().contains("verified"),
            "{}",
            run.stdout()
        );
    }
}

/// Both ways of each job, and the graph: options, where the kernels run, stages, iterations and traffic.
#[test]
fn each_job_verifies_on_a_queue_on_a_stream_and_as_a_graph() {
    if !ready("each_job_verifies_on_a_queue_on_a_stream_and_as_a_graph") {
        return;
    }
    // One by one, and as a graph: `note` holds two iterations in one; `capon` refines where it found peaks.
    let jobs = [
        (&NOTE[..], 4, &["add to magnitude, graph"][..], 4),
        (&GPS, 8, &["wipe-off to median, graph"], 2),
        (&CAPON, 7, &["channelize to power, 2 graphs", "refine"], 2),
        (&RADAR, 7, &["align to peaks, graph"], 2),
    ];
    for (args, stages, graph, graph_iterations) in jobs {
        let mut bytes = None;
        for (options, kernels) in [
            (&["--kernels", "queue"][..], "queue"),
            (&["--kernels", "stream"], "stream"),
            (&["--kernels", "stream", "--graph"], "stream"),
            (&["--graph"], "stream"),
        ] {
            let what = format!("{} {options:?}", args[1]);
            let run = Run::new(&[args, &OUTPUTS, options].concat());
            assert_eq!(run.status(), Some(0), "{}{}", run.stdout(), run.stderr());
            let report = run.json("r.json");
            check_report(&report, None);
            assert_eq!(report["verified"], true, "{what}");
            assert_eq!(report["kernels"], kernels, "{what}");
            assert!(report["kernels_why"].is_null(), "{what}: {report}");
            assert_eq!(report["host_copies_bytes"], 0, "{what}");
            let list = report["stages"].as_array().expect("a list");
            let names: Vec<_> = list.iter().filter_map(|it| it["name"].as_str()).collect();
            if options.contains(&"--graph") {
                assert_eq!(names, graph, "{what}");
                assert_eq!(report["iterations"], graph_iterations, "{what}");
            } else {
                assert_eq!(names.len(), stages, "{what}: {names:?}");
            }
            // The algorithm is the same everywhere.
            let traffic = report["iteration_bytes"].clone();
            assert_eq!(*bytes.get_or_insert(traffic.clone()), traffic, "{what}");
            let line = format!("kernels         {kernels}");
            assert!(run.stdout().contains(&line), "{}", run.stdout());
        }
        if args[1] == "note" {
            // 60 bytes for each sample
            assert_eq!(bytes, Some((60 * 100_000).into()));
        }
    }
}

#[test]
fn each_job_takes_the_stream_unless_a_route_is_named() {
    if !ready("each_job_takes_the_stream_unless_a_route_is_named") {
        return;
    }
    for args in [&NOTE[..], &GPS, &CAPON, &RADAR] {
        let report = Run::new(&[args, &OUTPUTS].concat()).json("r.json");
        assert_eq!(report["kernels"], "stream", "{report}");
        let staging = [args, &OUTPUTS, &["--staging"]].concat();
        let report = Run::new(&staging).json("r.json");
        assert_eq!(report["kernels"], "queue");
        let why = report["kernels_why"].as_str().expect("a reason");
        assert!(why.contains("a route was named"), "{why}");
        // On one stream the data stays on one side, whatever the route.
        let report = Run::new(&[&staging[..], &["--kernels", "stream"]].concat()).json("r.json");
        assert_eq!(report["kernels"], "stream");
        assert_eq!(report["verified"], true);
        assert_eq!(report["host_copies_bytes"], 0);
    }
}

#[test]
fn staging_copies_exactly_what_it_says_and_still_verifies() {
    if !ready("staging_copies_exactly_what_it_says_and_still_verifies") {
        return;
    }
    // bytes of the data set that crosses, and crossings in an iteration
    let sets = [
        (&NOTE[..], 100_000 * 8, 2 * 3),
        (&CAPON[..], 48 * 256 * 8, 2),
        (&RADAR[..], 4 * 8 * 2048 * 8, 2),
    ];
    for (args, bytes, crossings) in sets {
        for option in [&["--staging"][..], &["--route", "staging"]] {
            let run = Run::new(&[args, &OUTPUTS, option].concat());
            assert_eq!(run.status(), Some(0), "{}{}", run.stdout(), run.stderr());
            let report = run.json("r.json");
            assert_eq!(report["route"], "staging");
            assert_eq!(report["verified"], true);
            // out of one API's memory and into the other's
            assert_eq!(report["host_copies_bytes"], 2 * bytes * crossings);
        }
    }
}

#[test]
fn one_planted_copy_makes_the_run_unverified() {
    if !ready("one_planted_copy_makes_the_run_unverified") {
        return;
    }
    for args in [&NOTE[..], &CAPON[..], &RADAR[..]] {
        for api in ["opencl", "hip"] {
            let run = Run::new(&[args, &OUTPUTS, &["--plant-copy", api]].concat());
            assert_eq!(run.status(), Some(1), "{}{}", run.stdout(), run.stderr());
            let report = run.json("r.json");
            assert_eq!(report["verified"], false);
            let iterations = report["iterations"].as_u64().unwrap();
            assert_eq!(report["host_copies_bytes"], 4096 * iterations, "{api}");
            assert!(
                run.stdout().contains("not verified: the copied bytes"),
                "{}",
                run.stdout()
            );
        }
    }
}

#[test]
fn every_direct_route_that_works_verifies() {
    for route in interop::Route::ALL.map(|route| route.to_string()) {
        let route = route.as_str();
        if route == "staging" {
            continue;
        }
        let wanted = route.parse().expect("a route");
        if let Err(reason) = common::open(Some(wanted)) {
            println!("{route} is not possible here: {reason}");
            continue;
        }
        for args in [&NOTE[..], &CAPON[..]] {
            let run = Run::new(&[args, &OUTPUTS, &["--route", route]].concat());
            assert_eq!(run.status(), Some(0), "{}{}", run.stdout(), run.stderr());
            let report = run.json("r.json");
            assert_eq!(
                (&report["route"], &report["host_copies_bytes"]),
                (&route.into(), &0.into())
            );
        }
    }
}

#[test]
fn a_reader_that_goes_away_causes_no_panic() {
    if !ready("a_reader_that_goes_away_causes_no_panic") {
        return;
    }
    for args in [&NOTE[..], &["doctor"], &["--help"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_hipcl"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("the command ends");
        assert_eq!(
            output.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}

#[test]
fn the_same_seed_finds_the_same_emitters() {
    if !ready("the_same_seed_finds_the_same_emitters") {
        return;
    }
    let emitters = |seed: &str| {
        let run = Run::new(&[&CAPON[..], &OUTPUTS, &["--seed", seed]].concat());
        assert_eq!(run.status(), Some(0), "{}{}", run.stdout(), run.stderr());
        run.json("r.json")["emitters"].clone()
    };
    assert_eq!(emitters("9"), emitters("9"));
    assert_ne!(emitters("9"), emitters("10"));
}
