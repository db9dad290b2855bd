//! Faults and delays on demand, and the call log. One test sets the rules: they are the process's.

mod common;

use std::ptr::null_mut;
use std::time::{Duration, Instant};

use common::*;
use hip_host::faults::{set_delay, set_failures};
use hip_sys::{hipError_t, hiprtcResult};

#[test]
fn calls_fail_and_finish_late_as_told() {
    let mut ptr = null_mut();
    set_failures("hipMalloc:2:2, hipFree:*, hiprtcCreateProgram:1:1, hsa_init:1").unwrap();
    ok!(hipMalloc(&mut ptr, 16));
    assert_eq!(hip!(hipMalloc(&mut ptr, 16)), hipError_t::hipErrorOutOfMemory);
    assert_eq!(hip!(hipPeekAtLastError()), hipError_t::hipErrorOutOfMemory);
    ok!(hipMalloc(&mut ptr, 16));
    assert_eq!(
        (hip!(hipFree(ptr)), hip!(hipFree(ptr))),
        (hipError_t::hipErrorUnknown, hipError_t::hipErrorUnknown)
    );
    let created = rtc!(hiprtcCreateProgram(
        &mut null_mut(),
        c"".as_ptr(),
        c"".as_ptr(),
        0,
        null_mut(),
        null_mut()
    ));
    assert_eq!(created, hiprtcResult::HIPRTC_ERROR_OUT_OF_MEMORY);
    // SAFETY: takes no argument.
    let initialised = unsafe { hip_host::hsa_api().hsa_init.unwrap()() };
    assert_eq!(initialised, hsa_sys::hsa_status_t::HSA_STATUS_ERROR);
    assert!(set_failures("hipFree").is_err());
    assert_eq!(
        hip!(hipFree(ptr)),
        hipError_t::hipErrorUnknown,
        "a bad rule changes nothing"
    );

    // A failure skips the command. Its stream tells it from then on, and so do what waits for the stream and its
    // events.
    set_failures("async/hipMemsetAsync:2:719").unwrap();
    let (s, d) = (stream(), upload(&[5u8; 4]));
    ok!(hipMemsetAsync(d, 6, 2, s));
    ok!(hipMemsetAsync(d, 7, 4, s));
    ok!(hipMemsetAsync(d, 8, 1, s));
    assert_eq!(hip!(hipStreamSynchronize(s)), hipError_t::hipErrorLaunchFailure);
    let (mut event, follower, other) = (null_mut(), stream(), stream());
    ok!(hipEventCreate(&mut event));
    ok!(hipEventRecord(event, s));
    ok!(hipStreamWaitEvent(follower, event, 0));
    let told = [
        hip!(hipEventSynchronize(event)),
        hip!(hipEventQuery(event)),
        hip!(hipStreamSynchronize(follower)),
        hip!(hipStreamQuery(follower)),
        hip!(hipStreamQuery(s)),
        hip!(hipStreamSynchronize(s)),
    ];
    assert_eq!(told, [hipError_t::hipErrorLaunchFailure; 6]);
    assert_eq!(hip!(hipStreamSynchronize(other)), OK);
    assert_eq!(download::<u8>(d, 4), [8, 6, 5, 5]);
    set_failures("async/hipMemcpy:1:700").unwrap();
    let mut host = [0u8; 4];
    let kind = hip_sys::hipMemcpyKind::hipMemcpyDeviceToHost;
    assert_eq!(
        hip!(hipMemcpy(host.as_mut_ptr().cast(), d, 4, kind)),
        hipError_t::hipErrorIllegalAddress
    );
    set_failures("").unwrap();
    assert_eq!(
        hip!(hipMemcpy(host.as_mut_ptr().cast(), d, 4, kind)),
        hipError_t::hipErrorIllegalAddress,
        "in the default stream too"
    );
    ok!(hipDeviceReset());
    ok!(hipDeviceSynchronize());
    let (s, d) = (stream(), upload(&[5u8; 4]));
    set_failures("async/hipMemsetAsync:1:719").unwrap();
    ok!(hipMemsetAsync(d, 9, 4, s));
    assert_eq!(hip!(hipDeviceSynchronize()), hipError_t::hipErrorLaunchFailure);
    set_failures("").unwrap();
    ok!(hipFree(d));

    // Long enough that no pause of this thread makes the call look as if it had waited.
    let delay = Duration::from_millis(500);
    set_delay(delay);
    let start = Instant::now();
    let (s, d) = (stream(), malloc(4));
    ok!(hipMemsetAsync(d, 1, 4, s));
    assert!(start.elapsed() < delay);
    assert_eq!(hip!(hipStreamQuery(s)), hipError_t::hipErrorNotReady);
    ok!(hipStreamSynchronize(s));
    assert!(start.elapsed() >= delay);
    set_delay(Duration::ZERO);

    // The environment's rules, in a process of their own.
    let environment = [("HIP_HOST_FAIL", "hipInit:1:3"), ("HIP_HOST_DELAY", "20000")];
    assert!(
        run_child("the_environment_sets_rules_too", &environment)
            .status
            .success()
    );
}

#[test]
fn the_environment_sets_rules_too() {
    if !is_child() {
        return;
    }
    assert_eq!(hip!(hipInit(0)), hipError_t::hipErrorNotInitialized);
    ok!(hipInit(0));
    let start = Instant::now();
    let d = malloc(4);
    ok!(hipMemset(d, 0, 4));
    ok!(hipDeviceSynchronize());
    assert!(start.elapsed() >= Duration::from_millis(20));
}

#[test]
fn the_call_log_names_every_call_and_its_answer() {
    if is_child() {
        // SAFETY: takes no argument.
        let _ = unsafe { hip_host::hsa_api().hsa_init.unwrap()() };
        ok!(hipFree(malloc(16)));
        let bad = std::ptr::dangling_mut();
        assert_eq!(hip!(hipFree(bad)), hipError_t::hipErrorInvalidValue);
        return;
    }
    let case = "the_call_log_names_every_call_and_its_answer";
    let output = run_child(case, &[("HIP_HOST_LOG", "2")]);
    let text = String::from_utf8_lossy(&output.stderr);
    let calls: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("hip-host: ")?.split_once("): "))
        .map(|(_, call)| call)
        .collect();
    assert_eq!(
        calls,
        [
            "hsa_init -> HSA_STATUS_SUCCESS (0)",
            "hipMalloc -> hipSuccess (0)",
            "hipFree -> hipSuccess (0)",
            "hipFree -> hipErrorInvalidValue (1)"
        ],
        "{text}"
    );
    let quiet = run_child(case, &[("HIP_HOST_LOG", "0")]);
    assert!(!String::from_utf8_lossy(&quiet.stderr).contains("hip-host"));
}

/// Safe code takes such an answer for a result: nothing was computed, and it reads what no call wrote.
#[test]
fn codes_that_callers_take_as_success_are_refused() {
    for rule in [
        "hipMalloc:1:0",
        "rocblas_sgemm:*:7",
        "rocblas_set_stream:1:7",
        "rocsolver_sgetrf:1:7",
        "rocblas_sgemm:1:9",
        "rocblas_sgemm:1:10",
        "hipDeviceEnablePeerAccess:1:704",
        "async/hipMemcpyPeerAsync:1:0",
        "hsa_iterate_agents:1:1",
    ] {
        let error = set_failures(rule).expect_err(rule).to_string();
        assert!(error.contains(rule) && error.contains("success"), "{error}");
    }
}
