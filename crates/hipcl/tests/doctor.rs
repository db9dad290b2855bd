//! `hipcl doctor`.

mod common;

use common::{Run, ready};

#[test]
fn a_healthy_machine_has_a_pair_and_a_direct_route() {
    if !ready("a_healthy_machine_has_a_pair_and_a_direct_route") {
        return;
    }
    let run = Run::new(&["doctor", "--json", "FOLDER/d.json"]);
    assert_eq!(run.status(), Some(0), "{}{}", run.stdout(), run.stderr());
    let findings = run.json("d.json");
    assert_eq!(findings["healthy"], true);
    let routes = findings["routes"].as_array().expect("a list");
    assert!(
        routes
            .iter()
            .any(|route| route["works"] == true && route["copies"] == false)
    );
    assert!(findings["pair"]["proof"].is_string());
    for part in [
        "platform",
        "HIP",
        "OpenCL",
        "svm-coarse",
        "host-pinned",
        "staging",
        "healthy",
    ] {
        assert!(run.stdout().contains(part), "{part} in {}", run.stdout());
    }
}

#[test]
fn a_machine_without_opencl_is_unhealthy_and_says_what_was_tried() {
    let run = Run::with(&["doctor"], |run| {
        run.env("HIPCL_PLATFORM", "host");
        run.env("HIPCL_OPENCL", "/nonexistent/libOpenCL.so");
    });
    assert_eq!(run.status(), Some(1), "{}{}", run.stdout(), run.stderr());
    let text = run.stdout();
    assert!(
        text.contains("/nonexistent/libOpenCL.so") && text.contains("advice: no OpenCL device"),
        "{text}"
    );
    assert!(text.contains("not healthy"), "{text}");
}

#[test]
fn json_alone_goes_to_standard_output() {
    let run = Run::with(&["doctor", "--json"], |run| {
        run.env("HIPCL_PLATFORM", "host");
        run.env("HIPCL_OPENCL", "/nonexistent/libOpenCL.so");
    });
    let findings: serde_json::Value = serde_json::from_str(&run.stdout()).expect("valid JSON");
    assert_eq!(findings["healthy"], false);
    assert_eq!(findings["platform"], "host");
}

#[test]
fn a_file_that_cannot_be_written_is_refused() {
    Run::new(&["doctor", "--json", "FOLDER/no/such/d.json"]).assert_refused(&["can't write"]);
}
