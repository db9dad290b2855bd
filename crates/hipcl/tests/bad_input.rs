//! Whatever is wrong with the input: one line, status 2, no file, no panic.

mod common;

use common::{Run, ready};
use ndarray::{Array2, ShapeBuilder as _};
use ndarray_npy::write_npy;
use num_complex::Complex;

type C32 = Complex<f32>;

/// `args` with both output files asked for.
fn with_outputs<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [args, &["--json", "FOLDER/r.json", "--plot", "FOLDER/r.png"]].concat()
}

#[test]
fn nonsense_on_the_command_line_is_refused_on_one_line() {
    for (args, parts) in [
        (&["pipeline"][..], &["no job", "pipeline note"][..]),
        (&["pipeline", "sonar"], &["sonar", "use one of gps, capon, radar, note"]),
        (
            &["docter"],
            &["docter", "use one of pipeline, radar-send, doctor, bench, completions"],
        ),
        (
            &["pipeline", "note", "--route", "magic"],
            &["magic", "; [possible values: svm-coarse", "staging"],
        ),
        (&["pipeline", "note", "--iterations", "0"], &["0", "--iterations"]),
        (&["pipeline", "note", "--iterations", "many"], &["many"]),
        (
            &["pipeline", "note", "--staging", "--route", "svm-coarse"],
            &["--staging", "--route"],
        ),
        (&["pipeline", "note", "--colour"], &["--colour"]),
        (
            &["pipeline", "note", "--kernels", "card"],
            &["card", "--kernels", "stream", "queue"],
        ),
        (
            &["pipeline", "capon", "--input", "a.npy", "--elements", "4"],
            &["--input", "--elements"],
        ),
        (&["doctor", "--route", "magic"], &["magic", "svm-coarse", "staging"]),
        (&["doctor", "--platform", "cuda"], &["cuda", "amd", "nvidia", "host"]),
        (
            &["bench", "routes", "--route", "magic"],
            &["magic", "; [possible values: svm-coarse", "staging"],
        ),
        (&["bench", "speed"], &["speed", "routes", "list", "all"]),
        (&["bench", "all", "--json", "FOLDER/b.json"], &["bench all", "--json"]),
        (&["completions", "tcl"], &["tcl", "bash", "fish"]),
        (&["doctor", "-v", "--quiet"], &["--verbose", "--quiet"]),
        (
            &["pipeline", "gps", "--input", "FOLDER/absent.bin"],
            &["cannot read", "absent.bin", "No such file"],
        ),
        (&["frobnicate"], &["frobnicate"]),
    ] {
        Run::new(args).assert_refused(parts);
    }
}

#[test]
fn an_unknown_platform_is_refused_with_the_choices() {
    for command in [&["pipeline", "note"][..], &["doctor"]] {
        let run = Run::with(command, |run| run.env("HIPCL_PLATFORM", "cuda"));
        run.assert_refused(&["`cuda`", "HIPCL_PLATFORM", "amd, nvidia or host"]);
    }
}

#[test]
fn an_opencl_library_that_is_not_there_is_named_with_the_remedy() {
    let run = Run::with(&with_outputs(&["pipeline", "note"]), |run| {
        run.env("HIPCL_OPENCL", "/nonexistent/libOpenCL.so")
    });
    run.assert_refused(&["no OpenCL device", "/nonexistent/libOpenCL.so", "unset HIPCL_OPENCL"]);
}

#[test]
fn a_machine_without_a_compiler_is_told_what_to_install() {
    if !ready("a_machine_without_a_compiler_is_told_what_to_install") {
        return;
    }
    let run = Run::with(&with_outputs(&["pipeline", "note"]), |run| {
        // nothing compiled earlier may help
        let cache = run.folder.join("given-cache");
        run.env("HIPCL_CACHE_DIR", cache);
        run.env("HIPCL_PLATFORM", "host");
        run.env("CXX", "/nonexistent/c++");
        run.env("PATH", "/nonexistent");
    });
    run.assert_refused(&["compiler"]);
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_the_run() {
    for option in ["--json", "--plot"] {
        let started = std::time::Instant::now();
        for path in ["FOLDER/no/such/folder/r.png", "FOLDER/given.png", "/proc/r.png"] {
            // 10^6 iterations: a check at the end would never be reached
            let args = ["pipeline", "note", "--iterations", "1000000", option, path];
            let run = Run::with(&args, |run| {
                std::fs::create_dir(run.folder.join("given.png")).expect("a folder");
            });
            run.assert_refused(&["cannot write", "folder"]);
        }
        assert!(started.elapsed().as_secs() < 60);
    }
}

#[test]
fn one_file_for_report_and_picture_is_refused() {
    Run::new(&["pipeline", "note", "--json", "FOLDER/r.svg", "--plot", "FOLDER/r.svg"])
        .assert_refused(&["--json and --plot", "separate file"]);
}

#[test]
fn options_are_refused_before_a_device_is_looked_for() {
    for (args, parts) in [
        (&["capon", "--elements", "8"][..], &["--elements 8", "16"][..]),
        (&["capon", "--channels", "1"], &["--channels 1"]),
        (&["capon", "--elements", "32", "--segments", "16"], &["singular"]),
        (&["gps", "--generate", "--rate", "1023000"], &["factor 31", "1024000"]),
        (&["gps", "--pfa", "2"], &["--pfa"]),
        (&["gps", "--blocks", "7", "--sub", "2"], &["--blocks"]),
        (&["radar", "--peaks", "2"], &["--peaks 2", "3 and 5"]),
        (&["radar", "--bandwidth", "9e6"], &["--bandwidth 9000000", "8000000"]),
        (&["radar", "--delays", "1,2"], &["--delays has 2 values for 8 channels"]),
        (&["radar", "--delays", "0,0,0,NaN,0,0,0,0"], &["--delays has NaN"]),
    ] {
        let args = [&["pipeline"], args].concat();
        let run = Run::with(&args, |run| run.env("HIPCL_OPENCL", "/nonexistent/libOpenCL.so"));
        run.assert_refused(parts);
    }
}

#[test]
fn capon_options_that_make_no_sense_are_refused() {
    if !ready("capon_options_that_make_no_sense_are_refused") {
        return;
    }
    let small = ["pipeline", "capon", "--elements", "16", "--segments", "64"];
    for (args, parts) in [
        (&["--channels", "1"][..], &["--channels 1", "2 or more"][..]),
        (&["--channel", "32"], &["--channel 32", "0 to 31"]),
        (&["--loading", "NaN"], &["--loading NaN"]),
        (&["--loading=-1"], &["--loading -1"]),
        (&["--step", "0"], &["--step 0", "0.001"]),
        (&["--elements", "4", "--segments", "64"], &["--elements 4", "16"]),
        (&["--elements", "0"], &["--elements", "1 or more"]),
        (
            &["--elements", "100000000000", "--segments", "100000000000"],
            &["exceed the", "lower"],
        ),
    ] {
        // the later value of an option given twice must not be an error of its own
        let mut all: Vec<&str> = if args.contains(&"--elements") {
            vec!["pipeline", "capon"]
        } else {
            small.to_vec()
        };
        all.extend(args);
        Run::new(&with_outputs(&all)).assert_refused(parts);
    }
}

#[test]
fn fewer_snapshots_than_elements_are_a_singular_covariance() {
    if !ready("fewer_snapshots_than_elements_are_a_singular_covariance") {
        return;
    }
    let args = ["pipeline", "capon", "--elements", "32", "--segments", "31"];
    Run::new(&with_outputs(&args)).assert_refused(&["singular", "order 32", "--loading"]);
}

#[test]
fn recordings_that_cannot_be_used_are_refused() {
    if !ready("recordings_that_cannot_be_used_are_refused") {
        return;
    }
    let noise = |e: usize, t: usize| {
        // any full-rank content will do
        let mixed = (e * 7919 + t * 104_729 + e * t * 31) % 1009;
        C32::new(
            mixed as f32 / 1009.0 - 0.5,
            ((mixed * mixed) % 1013) as f32 / 1013.0 - 0.5,
        )
    };
    let good = Array2::from_shape_fn((4, 32 * 16), |(e, t)| noise(e, t));
    let mut nan = good.clone();
    nan[[2, 100]].re = f32::INFINITY;
    let mut dead = good.clone();
    dead.row_mut(2).fill(C32::default());
    let mut twins = good.clone();
    let first = twins.row(0).to_owned();
    twins.row_mut(3).assign(&first);

    let refused = |name: &str, parts: &[&str], write: &dyn Fn(&std::path::Path)| {
        let run = Run::with(
            &with_outputs(&["pipeline", "capon", "--input", "FOLDER/given.npy"]),
            |run| {
                write(&run.folder.join("given.npy"));
            },
        );
        println!("{name}");
        run.assert_refused(parts);
    };
    refused("missing", &["cannot read", "given.npy"], &|_| {});
    refused("empty", &["empty", "complex64"], &|path| {
        std::fs::write(path, b"").unwrap()
    });
    refused("text", &["not an .npy file"], &|path| {
        std::fs::write(path, b"element;sample\n1;2\n").unwrap()
    });
    refused("real numbers", &["complex64"], &|path| {
        write_npy(path, &Array2::from_elem((4, 64), 1.0_f64)).unwrap()
    });
    refused("one dimension", &["1 dimensions", "elements x samples"], &|path| {
        write_npy(path, &ndarray::Array1::from_elem(64, C32::default())).unwrap()
    });
    refused("truncated", &["truncated"], &|path| {
        write_npy(path, &good).unwrap();
        let bytes = std::fs::read(path).unwrap();
        std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    });
    refused("infinite", &["element 2, sample 100", "finite"], &|path| {
        write_npy(path, &nan).unwrap()
    });
    refused("too short", &["fewer than the 32"], &|path| {
        write_npy(path, &Array2::from_shape_fn((4, 20), |(e, t)| noise(e, t))).unwrap()
    });
    refused("dead element", &["singular", "order 3", "--loading"], &|path| {
        write_npy(path, &dead).unwrap()
    });
    refused("two equal elements", &["singular", "order 4", "--loading"], &|path| {
        write_npy(path, &twins).unwrap()
    });
}

#[test]
fn a_graph_of_kernels_on_a_queue_is_refused() {
    if !ready("a_graph_of_kernels_on_a_queue_is_refused") {
        return;
    }
    for job in ["gps", "capon", "note"] {
        let args = ["pipeline", job, "--graph", "--kernels", "queue"];
        Run::new(&with_outputs(&args)).assert_refused(&["--graph", "--kernels queue", "remove one"]);
    }
}

#[test]
fn a_size_that_the_device_cannot_hold_is_refused() {
    if !ready("a_size_that_the_device_cannot_hold_is_refused") {
        return;
    }
    for samples in ["0", "999999999999999"] {
        Run::new(&with_outputs(&["pipeline", "note", "--samples", samples]))
            .assert_refused(&["--samples", "between 1 and"]);
    }
}

#[test]
fn a_recording_in_either_memory_order_gives_the_same_emitters() {
    if !ready("a_recording_in_either_memory_order_gives_the_same_emitters") {
        return;
    }
    use hipcl::jobs::capon::scene::{Shape, generate};
    let shape = Shape {
        elements: 24,
        segments: 128,
        channels: 8,
    };
    let scene = generate(shape, 3, 5);
    let at = |e: usize, t: usize| scene.samples[e * shape.samples() + t];
    let rows = Array2::from_shape_fn((24, shape.samples()), |(e, t)| at(e, t));
    let columns = Array2::from_shape_fn((24, shape.samples()).f(), |(e, t)| at(e, t));
    let found: Vec<_> = [rows, columns]
        .iter()
        .map(|array| {
            let args = [
                "pipeline",
                "capon",
                "--input",
                "FOLDER/given.npy",
                "--channels",
                "8",
                "--channel",
                "3",
                "--json",
                "FOLDER/r.json",
            ];
            let run = Run::with(&args, |run| write_npy(run.folder.join("given.npy"), array).unwrap());
            assert_eq!(run.status(), Some(0), "{}{}", run.stdout(), run.stderr());
            run.json("r.json")["emitters"].clone()
        })
        .collect();
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0].as_array().map(Vec::len), Some(scene.emitters.len()));
}
