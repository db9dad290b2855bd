//! Each allocation of device memory holds a file descriptor. The limits are the process's, so this file has one test.

mod common;

use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr::null_mut;

use common::{hip, malloc, ok};
use hip_sys::hipError_t;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn allocations_may_be_as_many_as_the_hard_limit_and_leave_the_low_descriptors_to_the_program() {
    let (soft, hard) = (64, 1500);
    let limit = Rlimit {
        current: Some(soft),
        maximum: Some(hard),
    };
    setrlimit(Resource::Nofile, limit).expect("a hard limit of 1500 or more");
    // More than the usual soft limit, too.
    let mut held: Vec<_> = (0..400).map(|_| malloc(1)).collect();
    assert_eq!(getrlimit(Resource::Nofile).current, Some(hard));
    let own = File::open("/proc/self/status").unwrap();
    assert!((own.as_raw_fd() as u64) < soft, "{own:?}");

    // Beyond number 1500 there is none; those below 1024 are used instead, until none is left.
    let mut ptr = null_mut();
    let refused = loop {
        match hip!(hipMalloc(&mut ptr, 1)) {
            hipError_t::hipSuccess => held.push(ptr),
            refused => break refused,
        }
    };
    assert_eq!(refused, hipError_t::hipErrorOutOfMemory);
    assert!(held.len() > 1400, "{}", held.len());
    // A release makes room for one again.
    ok!(hipFree(held.pop().unwrap()));
    held.push(malloc(1));
    for ptr in held {
        ok!(hipFree(ptr));
    }
}
