//! `hipcl doctor`.

mod common;

use common::{Run, ready, ready_on_host};

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
    let host_ptr = &findings["host_ptr"];
    assert!(
        host_ptr["proof"].is_string() != host_ptr["reason"].is_string(),
        "{host_ptr}"
    );
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

#[test]
fn a_route_that_works_no_longer_is_worse_and_changes_the_status() {
    if !ready_on_host("a_route_that_works_no_longer_is_worse_and_changes_the_status") {
        return;
    }
    let asked = ["doctor", "--route", "dma-buf", "--route", "host-pinned"];
    let first = Run::new(&[&asked[..], &["--json", "FOLDER/d.json"]].concat());
    assert_eq!(first.status(), Some(0), "{}", first.stderr());
    let mut old = first.json("d.json");
    let routes = old["routes"].as_array_mut().expect("a list");
    assert_eq!(routes.len(), 2);
    // as if the first route had worked
    assert_eq!(routes[0]["route"], "dma-buf");
    assert_eq!(routes[0]["works"], false);
    routes[0]["works"] = true.into();
    routes[0]["residency"] = "vram".into();
    let second = Run::with(
        &[&asked[..], &["--compare", "FOLDER/given.json"]].concat(),
        |run| std::fs::write(run.folder.join("given.json"), old.to_string()).expect("a file"),
    );
    assert_eq!(second.status(), Some(1), "{}", second.stdout());
    let text = second.stdout();
    assert!(
        text.contains("worse    route dma-buf: works in vram -> "),
        "{text}"
    );
    assert!(text.contains("healthy: OpenCL and HIP"), "{text}");
}

#[test]
fn an_earlier_report_that_is_none_is_refused_before_anything_is_tried() {
    Run::with(&["doctor", "--compare", "FOLDER/given.json"], |run| {
        std::fs::write(run.folder.join("given.json"), "{}").expect("a file");
    })
    .assert_refused(&["given.json", "no file of `hipcl doctor --json`"]);
}

#[test]
fn an_unknown_platform_is_refused_with_the_names_that_exist() {
    Run::new(&["doctor", "--platform", "cuda"]).assert_refused(&["cuda", "nvidia"]);
}
