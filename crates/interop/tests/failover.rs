//! A route that fails at run time, by faults put into HIP: the next permitted one takes over.

mod common;

use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use interop::{Bridge, Error, Options, Policy, Route};
use platform::{ForeignHooks, ForeignKind};

const LEN: usize = 1000;

/// Faults are the process's: one test at a time, and none left behind.
struct Faults(#[allow(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl Faults {
    fn alone() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        Self(ALONE.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, rules: &str) {
        hip_host::faults::set_failures(rules).expect("rules");
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        self.set("");
    }
}

unsafe fn refuse(_: *mut c_void, _: usize, _: ForeignKind, _: usize) -> Result<(), String> {
    Err("not of this platform".into())
}

/// Where OpenCL's memory is out of HIP's reach, routes over HIP's own calls come first.
fn bridge(policy: Policy) -> Bridge {
    let mut selection = common::host();
    selection.tables.foreign = Some(ForeignHooks {
        adopt: refuse,
        release: |_| Ok(()),
    });
    let options = Options {
        policy,
        ..Options::default()
    };
    let bridge = Bridge::open(&selection, &options).expect("a bridge");
    let direct = [Route::HipPointer, Route::HostPinned];
    assert_eq!(bridge.permitted()[..2], direct);
    bridge
}

#[test]
fn a_failed_allocation_is_made_on_the_next_route_and_the_report_says_so() {
    let faults = Faults::alone();
    let bridge = bridge(Policy::DirectOnly);
    faults.set("hipMalloc:1:2");
    let mut data = bridge.alloc::<u32>(LEN).expect("the next route has memory");
    assert_eq!(data.route(), Route::HostPinned);
    let failovers = bridge.failovers();
    assert_eq!(failovers.len(), 1);
    let (from, to) = (failovers[0].from, failovers[0].to);
    assert_eq!((from, to), (Route::HipPointer, Route::HostPinned));
    let text = failovers[0].to_string();
    assert!(
        text.contains("hipMalloc") && text.starts_with("allocation:"),
        "{text}"
    );
    data.upload(&[4; LEN]).expect("an upload");
    let mut back = [0; LEN];
    data.download(&mut back).expect("a download");
    assert_eq!(back, [4; LEN]);
    assert_eq!(
        bridge.alloc::<u32>(LEN).expect("memory").route(),
        Route::HipPointer
    );
}

#[test]
fn a_failed_upload_goes_to_the_next_route_with_all_data() {
    let faults = Faults::alone();
    let bridge = bridge(Policy::DirectOnly);
    let mut data = bridge.alloc::<u32>(LEN).expect("memory");
    assert_eq!(data.route(), Route::HipPointer);
    let input: Vec<u32> = (0..LEN as u32).collect();
    faults.set("hipMemcpyAsync:1");
    data.upload(&input).expect("the next route takes it");
    assert_eq!(data.route(), Route::HostPinned);
    let stream = bridge.stream().expect("a stream");
    let mut back = vec![0; LEN];
    data.hip(&stream)
        .expect("access")
        .slice()
        .copy_to_slice(&mut back)
        .expect("a copy");
    assert_eq!(back, input);
    assert_eq!(bridge.failovers()[0].during, "upload");
}

#[test]
fn a_copy_is_the_last_resort_and_only_where_it_is_allowed() {
    let faults = Faults::alone();
    for (policy, copies) in [
        (Policy::DirectOnly, false),
        (Policy::PreferDirect, false),
        (Policy::AllowCopy, true),
    ] {
        let bridge = bridge(policy);
        // Staging allocates by `hipMalloc` too, the second time that it is called.
        faults.set("hipMalloc:1,hipHostRegister:*");
        match bridge.alloc::<u32>(LEN) {
            Ok(data) => {
                assert!(copies && data.is_copy(), "{policy:?}");
                let text = bridge.failovers()[0].to_string();
                assert!(text.ends_with("which copies"), "{text}");
            }
            Err(error) => {
                assert!(!copies, "{policy:?}: {error}");
                assert!(
                    matches!(&error, Error::Failed { tried } if tried.len() == 2),
                    "{error}"
                );
                assert!(!error.is_impossible());
                let text = error.to_string();
                assert!(
                    text.contains("hip-pointer:") && text.contains("host-pinned:"),
                    "{text}"
                );
            }
        }
        faults.set("");
    }
}

#[test]
fn what_is_not_possible_is_told_from_what_failed() {
    let faults = Faults::alone();
    faults.set("hipMalloc:*,hipHostRegister:*,hipMallocManaged:*,hipHostMalloc:*");
    let mut selection = common::host();
    selection.tables.foreign = Some(ForeignHooks {
        adopt: refuse,
        release: |_| Ok(()),
    });
    let error = Bridge::open(&selection, &Options::default()).expect_err("nothing works");
    faults.set("");
    // Which call meets the fault first is the bridge's business: a kernel's counter or a route's
    // memory. Both are named.
    let text = error.to_string();
    assert!(
        text.contains("hipMalloc") || text.contains("hipHostRegister"),
        "{text}"
    );
}

#[test]
fn data_moves_to_another_route_as_it_was() {
    let _faults = Faults::alone();
    let bridge = Bridge::open(&common::host(), &Options::default()).expect("a bridge");
    let input: Vec<u32> = (0..LEN as u32).rev().collect();
    let mut data = bridge.alloc::<u32>(LEN).expect("memory");
    data.upload(&input).expect("an upload");
    let before = bridge.meter().snapshot();
    for route in bridge.report().working() {
        data.move_to(route).expect("moved");
        assert_eq!(data.route(), route);
        let mut back = vec![0; LEN];
        data.download(&mut back).expect("a download");
        assert_eq!(back, input, "{route}");
    }
    let moved = bridge.meter().snapshot().since(&before);
    assert!(moved.data_set > 0, "a move is a copy of the data set");
}
