//! `hipcl bench`.

mod common;

use common::{Prepared, Run, ready, ready_on_host};
use hipcl::bench::line::{Better, Line};
use hipcl::bench::report::Report;
use interop::Route;

fn measured(what: &str) -> Option<serde_json::Value> {
    measured_with(what, |_| {})
}

fn measured_with(what: &str, prepare: impl FnOnce(&mut Prepared)) -> Option<serde_json::Value> {
    if !ready(what) {
        return None;
    }
    let run = Run::with(&["bench", what, "--json", "FOLDER/b.json"], prepare);
    assert_eq!(run.status(), Some(0), "{}{}", run.stdout(), run.stderr());
    let report = run.json("b.json");
    assert_eq!(report["bench"], what);
    let lines = report["lines"].as_array().expect("a list");
    assert!(!lines.is_empty(), "{what} measured nothing");
    for line in lines {
        let name = line["name"].as_str().expect("a name");
        assert!(run.stdout().contains(name), "{name} in {}", run.stdout());
        assert!(line["value"].is_number(), "{name}: {line}");
        assert!(line["high"].is_number(), "{name} has no spread: {line}");
        // A limit that is the difference of two measurements can be lost in their noise.
        let limit = line["limit"].as_f64();
        assert!(
            line["percent"].is_number() || limit.is_some_and(|limit| limit <= 0.0),
            "{name} is held against nothing: {line}"
        );
        assert_ne!(line["limit_is"], "", "{name} does not say against what: {line}");
    }
    let first_calls = report["first_calls"].as_array().expect("a list");
    assert!(first_calls.len() > 5, "{first_calls:?}");
    Some(report)
}

/// A test for each bench, so they run side by side.
mod every_figure_has_a_spread_and_is_held_against_something {
    macro_rules! benches {
        ($($what:ident)*) => {$(
            #[test]
            fn $what() {
                super::measured(stringify!($what));
            }
        )*};
    }
    benches! { launch pool cache staging blas solver fft routes pipeline stream }
}

#[test]
fn four_small_kernels_are_measured_on_two_sides_and_on_one_stream() {
    let Some(report) = measured("note") else {
        return;
    };
    let lines = report["lines"].as_array().expect("a list");
    let names: Vec<_> = lines.iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(
        names[..6],
        [
            "strictly alternating, an iteration",
            "one stream, waiting after each kernel, an iteration",
            "one stream, waiting after each side, an iteration",
            "one stream, one wait an iteration",
            "one stream, a graph of two iterations, an iteration",
            "1 in flight, an iteration",
        ]
    );
}

#[test]
fn gps_and_capon_are_measured_on_a_queue_on_one_stream_and_as_graphs() {
    let Some(report) = measured("jobs") else {
        return;
    };
    let lines = report["lines"].as_array().expect("a list");
    let names: Vec<_> = lines.iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(
        names,
        [
            "gps, queue, waiting after each stage",
            "gps, stream, waiting after each stage",
            "gps, stream, waiting once",
            "gps, stream, graph",
            "capon, queue, waiting after each stage",
            "capon, stream, waiting after each stage",
            "capon, stream, waiting once",
            "capon, stream, graph",
        ]
    );
    for lines in lines.chunks(4) {
        for line in &lines[1..] {
            assert_eq!(line["limit"], lines[0]["value"], "{line}");
        }
    }
}

#[test]
fn four_kinds_of_memory_stand_beside_their_predictions_or_say_why_not() {
    let Some(report) = measured("svm") else {
        return;
    };
    let lines = report["lines"].as_array().expect("a list");
    let notes = report["notes"].as_array().expect("a list");
    for kind in [
        "fine-grain SVM",
        "coarse SVM",
        "coarse SVM, context of two devices",
        "HIP's pointer",
    ] {
        let measured = lines.iter().any(|line| line["name"] == kind);
        let skipped = format!("{kind}: skipped: ");
        let skipped = notes
            .iter()
            .any(|note| note.as_str().is_some_and(|note| note.starts_with(&skipped)));
        assert!(measured != skipped, "{kind}: {report:#}");
    }
    for line in lines {
        assert!(line["limit"].as_f64().is_some_and(|limit| limit > 0.0), "{line}");
    }
}

#[test]
fn a_hand_off_is_measured_by_grade_on_idle_and_on_busy_queues() {
    let Some(report) = measured("handoff") else {
        return;
    };
    let names: Vec<_> = report["lines"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|line| line["name"].as_str())
        .collect();
    let expected = [
        "host, idle queues",
        "callback, idle queues",
        "callback, busy queues",
        "device, idle queues",
        "device, busy queues",
        "one stream",
    ];
    assert_eq!(names, expected);
}

#[test]
fn memory_of_another_process_is_measured_by_carrier() {
    let Some(report) = measured("ipc") else {
        return;
    };
    let names: Vec<_> = report["lines"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|line| line["name"].as_str())
        .collect();
    for carrier in ["hip-fd", "dma-buf", "ipc-handle"] {
        for what in ["export and import", "a turn", "OpenCL on it", "HIP on it"] {
            let name = format!("{carrier}, {what}");
            assert!(
                names.iter().any(|known| known.starts_with(&name)),
                "{name} in {names:?}"
            );
        }
    }
}

#[test]
fn two_gpus_divide_the_blocks_and_are_held_against_twice_one() {
    if !ready_on_host("two_gpus_divide_the_blocks_and_are_held_against_twice_one") {
        return;
    }
    let two = |run: &mut Prepared| run.env("HIP_HOST_DEVICES", "2");
    let Some(report) = measured_with("peers", two) else {
        return;
    };
    let lines = report["lines"].as_array().expect("a list");
    let line = |name: &str| {
        let found = lines.iter().find(|line| line["name"] == name);
        found.unwrap_or_else(|| panic!("{name} in {lines:?}"))
    };
    for origin in ["from the host", "on the device"] {
        let rate = |who: &str| line(&format!("{origin}, {who}"))["value"].as_f64();
        for who in ["GPU 0 alone", "GPU 1 alone", "2 GPUs"] {
            assert!(rate(who) > Some(0.0), "{origin}, {who}: {lines:?}");
        }
        let ratio = line(&format!("{origin}, 2 GPUs over one"));
        assert_eq!(ratio["limit"], 2.0, "{ratio}");
        assert_eq!(ratio["unit"], "times", "{ratio}");
    }
    for (from, to) in [(0, 1), (1, 0)] {
        for route in [Route::SvmCoarse, Route::HipPointer] {
            let name = format!("copy, GPU {from} to {to}, {route}");
            assert!(line(&name)["value"].as_f64() > Some(0.0), "{lines:?}");
        }
    }
}

#[test]
fn one_gpu_is_not_compared_with_itself() {
    if !ready_on_host("one_gpu_is_not_compared_with_itself") {
        return;
    }
    let one = |run: &mut Prepared| run.env("HIP_HOST_DEVICES", "1");
    let run = Run::with(&["bench", "peers", "--json", "FOLDER/b.json"], one);
    run.assert_refused(&["needs two GPUs", "opens to 1", "HIP_HOST_DEVICES=2"]);
}

#[test]
fn nothing_grows_with_the_iterations() {
    if !ready("nothing_grows_with_the_iterations") {
        return;
    }
    let run = Run::new(&["bench", "soak", "--iterations", "20000", "--json", "FOLDER/b.json"]);
    assert_eq!(run.status(), Some(0), "{}{}", run.stdout(), run.stderr());
    let report = run.json("b.json");
    let lines = report["lines"].as_array().expect("a list");
    let line = |name: &str| {
        let found = lines.iter().find(|line| line["name"] == name);
        found.unwrap_or_else(|| panic!("{name} in {lines:?}"))
    };
    let growth = |name: &str| {
        let line = line(name);
        let of = |key: &str| line[key].as_f64().expect("a number");
        of("high") - of("limit")
    };
    assert_eq!(growth("device memory in use"), 0.0, "{lines:?}");
    // A driver may start a thread late, which is not one for each of 20000 iterations.
    for name in ["open descriptors", "threads"] {
        assert!(growth(name) < 8.0, "{name}: {lines:?}");
    }
    // A hundred bytes leaked by each iteration would be 2000 KiB.
    let memory = growth("resident memory of the process");
    assert!(memory < 2000.0, "{memory} KiB: {lines:?}");
}

#[test]
fn an_earlier_run_of_the_same_kind_is_compared_and_another_refused() {
    if !ready("an_earlier_run_of_the_same_kind_is_compared_and_another_refused") {
        return;
    }
    let first = Run::new(&["bench", "pool", "--json", "FOLDER/old.json"]);
    assert_eq!(first.status(), Some(0), "{}", first.stderr());
    let old = first.path("old.json");
    let old = old.to_str().expect("a path in UTF-8");
    let second = Run::new(&["bench", "pool", "--compare", old]);
    assert_eq!(second.status(), Some(0), "{}", second.stderr());
    let text = second.stdout();
    assert!(text.contains("before") && text.contains("gain"), "{text}");
    let gain = |word: &str| word.strip_suffix('x').is_some_and(|gain| gain.parse::<f64>().is_ok());
    let figures = text.lines().filter(|line| line.contains("given back"));
    let gains = figures.filter(|line| line.split_whitespace().any(gain));
    assert_eq!(gains.count(), 3, "{text}");
    assert!(!text.contains("a different setup"), "{text}");
    let other = Run::new(&["bench", "launch", "--compare", old]);
    assert_eq!(other.status(), Some(2), "{}", other.stdout());
    assert!(other.stderr().contains("bench pool"), "{}", other.stderr());
}

#[test]
fn a_file_that_is_no_report_is_refused_before_anything_is_measured() {
    let run = Run::with(&["bench", "pool", "--compare", "FOLDER/old.json"], |run| {
        std::fs::write(run.folder.join("old.json"), "{}").expect("a file");
        run.env("HIPCL_OPENCL", "/nonexistent/libOpenCL.so");
    });
    assert_eq!(run.status(), Some(2), "{}", run.stdout());
    assert!(
        run.stderr().contains("not a file of `hipcl bench --json`"),
        "{}",
        run.stderr()
    );
    assert!(run.stderr().contains("measure again"), "{}", run.stderr());
    assert_eq!(run.stderr().trim_end().lines().count(), 1, "{}", run.stderr());
}

#[test]
fn iterations_are_refused_where_nothing_iterates() {
    Run::new(&["bench", "pool", "--iterations", "2000"]).assert_refused(&["bench pool", "--iterations", "bench soak"]);
}

/// What an empty device list would be found out for, if anything was measured.
fn without_devices(run: &mut Prepared) {
    run.env("HIPCL_OPENCL", "/nonexistent/libOpenCL.so");
}

#[test]
fn a_plot_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let refused = |args: &[&str], parts: &[&str]| Run::with(args, without_devices).assert_refused(parts);
    for command in [
        &["bench", "pool", "--plot"][..],
        &["doctor", "--plot"],
        &["pipeline", "note", "--plot"],
    ] {
        let with = |file| [command, &[file]].concat();
        refused(&with("FOLDER/b.pdf"), &["b.pdf", "end the name in .svg or .png"]);
        refused(&with("FOLDER/b"), &["end the name in .svg or .png"]);
        refused(
            &with("FOLDER/no/such/b.svg"),
            &["cannot write", "b.svg", "writable folder"],
        );
        let both = [with("FOLDER/b.svg"), vec!["--json", "FOLDER/b.svg"]].concat();
        refused(&both, &["both name", "b.svg"]);
    }
    refused(&["bench", "all", "--plot", "FOLDER/b.svg"], &["bench all", "--plot"]);
}

#[test]
fn the_plot_of_a_bench_holds_each_figure_against_its_limit() {
    if !ready("the_plot_of_a_bench_holds_each_figure_against_its_limit") {
        return;
    }
    let run = Run::new(&["bench", "pool", "--json", "FOLDER/b.json", "--plot", "FOLDER/b.svg"]);
    assert_eq!(run.status(), Some(0), "{}", run.stderr());
    let svg = std::fs::read_to_string(run.path("b.svg")).expect("the plot");
    let report = run.json("b.json");
    let lines = report["lines"].as_array().expect("a list");
    for line in lines {
        let name = line["name"].as_str().expect("a name");
        assert!(svg.lines().any(|text| text == name), "{name} in {svg}");
        let percent = line["percent"].as_f64().expect("a limit");
        let unit = line["unit"].as_str().expect("a unit");
        let label = format!(" {unit}, {percent:.0} % of ");
        assert!(svg.contains(&label), "{label} in {svg}");
        let heading = format!("compared with {}", line["limit_is"].as_str().expect("its name"));
        assert!(svg.lines().any(|text| text == heading), "{heading} in {svg}");
    }
    assert!(svg.trim_end().ends_with("</svg>"));
    assert_eq!(common::files(run.folder.path()).len(), 2, "nothing else is left");
}

#[test]
fn the_picture_of_a_report_groups_by_limit_and_takes_any_number() {
    let line = |name: &str, value: f64, limit: f64| {
        Line::known(name, "GB/s", Better::Higher, value).against(limit, "the wall")
    };
    let mut lines = vec![
        line("half", 5.0, 10.0),
        line("none", f64::NAN, 10.0),
        line("no limit", 5.0, 0.0),
        line("inf", f64::INFINITY, 10.0),
    ];
    lines.push(Line::known("alone", "us", Better::Lower, 3.0));
    let report = Report {
        bench: "x".into(),
        platform: "host".into(),
        hip_device: "a".into(),
        opencl_device: "b".into(),
        route: "c".into(),
        grade: "d".into(),
        lines,
        first_calls: Vec::new(),
        notes: Vec::new(),
    };
    let picture = report.picture();
    let headings: Vec<&str> = picture.groups.iter().map(|group| &*group.heading).collect();
    assert_eq!(headings, ["compared with the wall", "compared with nothing"]);
    let bars = picture
        .groups
        .iter()
        .flat_map(|group| &group.rows)
        .map(|row| &row.bars[0]);
    let found: Vec<_> = bars.map(|bar| (bar.value, &*bar.label)).collect();
    assert_eq!(
        found,
        [
            (Some(0.5), "5.00 GB/s, 50 % of 10.0"),
            (None, "- GB/s"),
            (None, "5.00 GB/s"),
            (None, "- GB/s"),
            (None, "3.00 us"),
        ]
    );
    let empty = Report {
        lines: Vec::new(),
        ..report
    };
    assert!(empty.picture().groups.is_empty());
}
