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
    let one_stream = &findings["one_stream"];
    assert_eq!(one_stream["works"], true, "{one_stream}");
    assert!(one_stream["figures"]["queued_us"].is_number());
    for part in [
        "OpenCL kernels on HIP streams",
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
    let said: Vec<&str> = text.split_whitespace().collect();
    let said = said.join(" ");
    assert!(
        said.contains("HIPCL_OPENCL names /nonexistent/libOpenCL.so") && said.contains("unset it"),
        "the variable is not blamed: {text}"
    );
    assert!(text.contains("not healthy"), "{text}");
    assert!(text.contains("HIP device 0 is none of the OpenCL devices"), "{text}");
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
    let libraries = findings["libraries"].as_array().expect("a list");
    let collectives = libraries.iter().find(|library| library["name"] == "RCCL");
    let collectives = collectives.expect("the library of collectives");
    assert_eq!(collectives["usable"], true, "{collectives}");
    let detail = collectives["detail"].as_str().expect("a text");
    assert!(detail.starts_with("version 2.27.7, "), "{detail}");
}

#[test]
fn a_file_that_cannot_be_written_is_refused() {
    Run::new(&["doctor", "--json", "FOLDER/no/such/d.json"]).assert_refused(&["cannot write"]);
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
    let second = Run::with(&[&asked[..], &["--compare", "FOLDER/given.json"]].concat(), |run| {
        std::fs::write(run.folder.join("given.json"), old.to_string()).expect("a file")
    });
    assert_eq!(second.status(), Some(1), "{}", second.stdout());
    let text = second.stdout();
    assert!(text.contains("worse    route dma-buf: works in vram -> "), "{text}");
    assert!(text.contains("healthy: OpenCL and HIP"), "{text}");
}

#[test]
fn a_named_route_is_judged_by_itself() {
    if !ready_on_host("a_named_route_is_judged_by_itself") {
        return;
    }
    let copies = Run::new(&["doctor", "--route", "staging", "--json", "FOLDER/d.json"]);
    assert_eq!(copies.status(), Some(0), "{}", copies.stdout());
    assert!(!copies.stdout().contains("not healthy"), "{}", copies.stdout());
    assert_eq!(copies.json("d.json")["asked_routes"][0], "staging");
    let none = Run::new(&["doctor", "--route", "external-fd"]);
    assert_eq!(none.status(), Some(1), "{}", none.stdout());
    let text = none.stdout();
    assert!(text.contains("undecided: ") && !text.contains("not healthy"), "{text}");
    // held against a whole report
    let whole = Run::new(&["doctor", "--json", "FOLDER/given.json"]);
    assert_eq!(whole.status(), Some(0), "{}", whole.stdout());
    let old = whole.path("given.json");
    let old = old.to_str().expect("a path in UTF-8");
    let part = Run::new(&["doctor", "--route", "staging", "--compare", old]);
    assert_eq!(part.status(), Some(0), "{}", part.stdout());
    assert!(!part.stdout().contains("\n  gone"), "{}", part.stdout());
}

#[test]
fn every_hand_off_carrier_and_allocation_has_a_row() {
    if !ready_on_host("every_hand_off_carrier_and_allocation_has_a_row") {
        return;
    }
    let run = Run::new(&["doctor", "--json", "FOLDER/d.json"]);
    assert_eq!(run.status(), Some(0), "{}{}", run.stdout(), run.stderr());
    let findings = run.json("d.json");
    let grades = findings["grades"].as_array().expect("a list");
    assert_eq!(grades.len(), 3, "{grades:#?}");
    for grade in grades {
        let name = grade["grade"].as_str().expect("a name");
        assert_eq!(grade["works"], true, "{grade:#}");
        assert_eq!(grade["route"], "svm-coarse");
        assert!(grade["figures"]["opencl_to_hip_us"].is_number(), "{grade:#}");
        assert!(grade["figures"]["hip_to_opencl_us"].is_number(), "{grade:#}");
        assert!(run.stdout().contains(&format!("  ok {name}")), "{}", run.stdout());
    }
    let carriers = findings["carriers"].as_array().expect("a list");
    let names: Vec<_> = carriers
        .iter()
        .map(|it| it["carrier"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["hip-fd", "dma-buf", "ipc-handle"]);
    for carrier in carriers {
        assert_eq!(
            (&carrier["works"], &carrier["residency"]),
            (&true.into(), &"vram".into()),
            "{carrier:#}"
        );
    }
    let allocations = findings["allocations"].as_array().expect("a list");
    let of = |name: &str| {
        let found = allocations.iter().find(|it| it["allocation"] == name);
        found.unwrap_or_else(|| panic!("{name} in {allocations:#?}"))
    };
    for (name, residency, known_by) in [
        ("cl-buffer", "vram", "by definition"),
        ("cl-alloc-host-ptr", "host-pinned", "by definition"),
        ("cl-svm-coarse", "vram", "by definition"),
        ("cl-svm-fine", "host-pinned", "by definition"),
        ("hip-malloc", "vram", "hsa_amd_pointer_info"),
        ("hip-host-malloc", "host-pinned", "hsa_amd_pointer_info"),
        ("hip-malloc-managed", "host-pinned", "hsa_amd_pointer_info"),
    ] {
        let row = of(name);
        assert_eq!(row["works"], true, "{row:#}");
        assert_eq!(
            (&row["residency"], &row["known_by"]),
            (&residency.into(), &known_by.into()),
            "{row:#}"
        );
        for rate in ["opencl_gb_s", "hip_gb_s"] {
            let rate = row[rate].as_f64().unwrap_or_else(|| panic!("{row:#}"));
            assert!(rate > 0.0, "{row:#}");
        }
    }
    assert_eq!(allocations.len(), 7);
}

#[test]
fn an_earlier_report_that_is_none_is_refused_before_anything_is_tried() {
    Run::with(&["doctor", "--compare", "FOLDER/given.json"], |run| {
        std::fs::write(run.folder.join("given.json"), "{}").expect("a file");
    })
    .assert_refused(&["given.json", "not a file of `hipcl doctor --json`"]);
}

#[test]
fn an_unknown_platform_is_refused_with_the_names_that_exist() {
    let refused = Run::new(&["doctor", "--platform", "cuda"]);
    refused.assert_refused(&["cuda", "--platform", "nvidia"]);
    assert!(!refused.stderr().contains("HIPCL_PLATFORM"));
    Run::with(&["doctor"], |run| run.env("HIPCL_PLATFORM", "cuda")).assert_refused(&[
        "cuda",
        "HIPCL_PLATFORM",
        "nvidia",
    ]);
}
