//! One grade or allocation tried by itself.

mod common;

use interop::{
    Allocation, AllocationTrial, Extent, Grade, GradeTrial, Options, Residency, Route, Step, StreamTrial, Trial,
    Witness,
};

#[test]
fn every_allocation_tells_where_its_memory_lies_and_both_apis_use_it() {
    use Residency::{HostPinned, Vram};
    let selection = common::host();
    for (allocation, residency, witness) in [
        (Allocation::ClBuffer, Vram, Witness::Registered),
        (Allocation::ClAllocHostPtr, HostPinned, Witness::Registered),
        (Allocation::SvmCoarse, Vram, Witness::Registered),
        (Allocation::SvmFine, HostPinned, Witness::Registered),
        (Allocation::HipMalloc, Vram, Witness::Hsa),
        (Allocation::HipHostMalloc, HostPinned, Witness::Hsa),
        (Allocation::HipMallocManaged, HostPinned, Witness::Hsa),
    ] {
        let mut steps = Vec::new();
        let trial = AllocationTrial::run(&selection, &Options::default(), allocation, Extent::Figures, |step| {
            steps.push(step);
        })
        .expect("a trial");
        let found = trial.whereabouts.expect("memory");
        assert_eq!((found.residency, found.witness), (residency, witness), "{allocation}");
        for rate in [trial.opencl_gb_s, trial.hip_gb_s] {
            assert!(rate.expect("it is used").expect("a rate") > 0.0, "{allocation}");
        }
        let expected = [
            Step::Pair,
            Step::Allocate,
            Step::Locate,
            Step::UseByOpenCl,
            Step::UseByHip,
        ];
        assert_eq!(steps, expected, "{allocation}");
    }
}

#[test]
fn memory_out_of_an_apis_reach_has_a_reason_and_the_other_apis_rate() {
    let mut selection = common::host();
    let hooks = selection.tables().foreign.expect("the model has to be told");
    // SAFETY: these hooks take and release what they are given, or refuse it.
    let tables = unsafe { selection.tables_mut() };
    tables.foreign = Some(platform::ForeignHooks {
        reaches_hip: || false,
        launch: hip_host::foreign::launch,
        ..hooks
    });
    let trial = AllocationTrial::run(
        &selection,
        &Options::default(),
        Allocation::HipMalloc,
        Extent::Figures,
        |_| {},
    )
    .expect("a trial");
    let reason = trial.opencl_gb_s.expect_err("out of reach");
    assert!(reason.starts_with("the software device hides"), "{reason}");
    assert!(trial.hip_gb_s.expect("it is used").expect("a rate") > 0.0);
    assert!(trial.whereabouts.is_ok());
}

#[test]
fn a_grade_is_tried_by_itself_and_on_the_route_that_was_named() {
    let selection = common::host();
    for &grade in common::grades() {
        let on = (Route::HipPointer, grade);
        let trial = GradeTrial::run(&selection, &Options::default(), on, Extent::Figures, |_| {}).expect("a trial");
        assert_eq!((trial.route, trial.grade), on);
        let by = trial.outcome.expect("it was proven");
        assert_eq!(by.cl_to_hip == "clFinish", grade == Grade::Host, "{by}");
        let cost = trial.cost.expect("it works").expect("figures");
        assert!(cost.opencl_to_hip_us.is_finite() && cost.hip_to_opencl_us.is_finite());
    }
}

#[test]
fn a_grade_that_the_host_has_a_part_in_is_none_on_a_route_that_copies() {
    if !common::grade_or_skip(Grade::Callback) {
        return;
    }
    let trial = GradeTrial::run(
        &common::host(),
        &Options::default(),
        (Route::Staging, Grade::Callback),
        Extent::Figures,
        |_| {},
    )
    .expect("a trial");
    let reason = trial.outcome.expect_err("the host copies");
    assert!(reason.contains("the host takes part"), "{reason}");
    assert!(trial.cost.is_none());
}

#[test]
fn a_trial_that_only_proves_measures_nothing() {
    let (selection, options) = (common::host(), Options::default());
    let mut steps = Vec::new();
    let mut observe = |step| steps.push(step);
    let trial = Trial::run(&selection, &options, Route::HipPointer, Extent::Proof, &mut observe).expect("a trial");
    assert!(trial.report.works() && trial.figures.is_none());
    let on = (Route::HipPointer, Grade::Host);
    let trial = GradeTrial::run(&selection, &options, on, Extent::Proof, &mut observe).expect("a trial");
    assert!(trial.outcome.is_ok() && trial.cost.is_none());
    let trial = StreamTrial::run(&selection, &options, Extent::Proof, &mut observe).expect("a trial");
    assert!(trial.outcome.is_ok() && trial.cost.is_none());
    let fine = Allocation::SvmFine;
    let trial = AllocationTrial::run(&selection, &options, fine, Extent::Proof, &mut observe).expect("a trial");
    assert_eq!((trial.opencl_gb_s, trial.hip_gb_s), (Ok(None), Ok(None)));
    for measured in [Step::Bandwidth, Step::Launch] {
        assert!(!steps.contains(&measured), "{measured}");
    }
}
