//! Allocation in stream order: neither allocating nor dropping waits, and no memory is reused while somebody uses it.

mod common;

use std::cell::RefCell;
use std::rc::Rc;

use common::{Gate, device, unwatch, watch, watched_device};

#[test]
fn dropping_does_not_wait_and_gives_the_memory_back_in_order() {
    let device = device();
    let stream = device.stream().unwrap();
    let pool = device.mem_pool().unwrap();
    let gate = Gate::close(&stream);
    let mut memory = pool.alloc::<u32>(&stream, 1000).unwrap();
    memory.on_mut(&stream).unwrap().fill_zero().unwrap();
    drop(memory);
    assert!(!stream.is_idle().unwrap(), "no call waited");
    let usage = pool.usage().unwrap();
    assert_eq!(usage.used, 0, "off the account when the release is queued");
    assert!(usage.reserved >= 4000, "and back only when the stream gets there");
    gate.open();
    stream.synchronize().unwrap();
    pool.trim_to(0).unwrap();
    assert_eq!(pool.usage().unwrap().reserved, 0);
    assert!(device.runtime().take_deferred_errors().is_empty());
}

#[test]
fn neither_closing_nor_a_request_without_hope_waits_for_queued_work() {
    if !common::on_host() {
        return;
    }
    let device = device();
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let pool = device.mem_pool().unwrap();
    let mut memory = pool.alloc::<u32>(&stream, 1000).unwrap();
    // Before a wait for it could begin, or the test would not end.
    let gate = Gate::close(&stream);
    memory.on_mut(&stream).unwrap().fill_zero().unwrap();
    assert!(memory.close().is_ok());
    assert!(pool.alloc::<u8>(&other, 1 << 45).is_err(), "more than the device has");
    assert!(!stream.is_idle().unwrap(), "no call waited");
    gate.open();
    stream.synchronize().unwrap();
}

#[test]
fn memory_goes_back_only_after_other_streams_are_done_with_it() {
    let device = device();
    let (home, other) = (device.stream().unwrap(), device.stream().unwrap());
    let pool = device.mem_pool().unwrap();
    let memory = pool.alloc::<u32>(&home, 1000).unwrap();
    let gate = Gate::close(&other);
    let _slice = memory.on(&other).unwrap();
    drop(memory);
    assert!(pool.usage().unwrap().reserved >= 4000);
    assert!(!home.is_idle().unwrap(), "home waits for the reader");
    gate.open();
    home.synchronize().unwrap();
    pool.trim_to(0).unwrap();
    assert_eq!(pool.usage().unwrap().reserved, 0);
}

#[test]
fn another_stream_waits_for_the_allocation() {
    let device = device();
    let (home, other) = (device.stream().unwrap(), device.stream().unwrap());
    let gate = Gate::close(&home);
    let mut memory = home.alloc::<u8>(64).unwrap();
    memory.on_mut(&other).unwrap().fill_zero().unwrap();
    assert!(!other.is_idle().unwrap());
    gate.open();
    let mut seen = [1; 64];
    memory.copy_to_slice(&other, &mut seen).unwrap();
    assert_eq!(seen, [0; 64]);
}

#[test]
fn a_pool_may_go_before_its_memory() {
    let device = device();
    let stream = device.stream().unwrap();
    let pool = device.mem_pool().unwrap();
    let mut memory = pool.alloc::<f32>(&stream, 10).unwrap();
    drop(pool);
    memory.copy_from_slice(&stream, &[1.0; 10]).unwrap();
    memory.close().unwrap();
    stream.synchronize().unwrap();
    assert!(device.runtime().take_deferred_errors().is_empty());
}

#[test]
fn a_pool_is_destroyed_only_after_its_memory_is_freed() {
    let device = watched_device();
    let stream = device.stream().unwrap();
    let pool = device.mem_pool().unwrap();
    let memory = pool.alloc::<f32>(&stream, 10).unwrap();
    let calls = Rc::new(RefCell::new(Vec::new()));
    let heard = calls.clone();
    watch(move |name| {
        if ["hipFreeAsync", "hipMemPoolDestroy"].contains(&name) {
            heard.borrow_mut().push(name);
        }
    });
    drop(pool);
    assert!(calls.borrow().is_empty(), "the memory is still there");
    drop(memory);
    unwatch();
    assert_eq!(*calls.borrow(), ["hipFreeAsync", "hipMemPoolDestroy"]);
    stream.synchronize().unwrap();
    assert!(device.runtime().take_deferred_errors().is_empty());
}

#[test]
fn the_settings_of_a_pool_are_taken_and_told() {
    let device = device();
    let stream = device.stream().unwrap();
    let pool = device.mem_pool().unwrap();
    pool.set_release_threshold(1 << 20).unwrap();
    let memory = pool.alloc::<u8>(&stream, 1 << 16).unwrap();
    let usage = pool.usage().unwrap();
    assert_eq!(usage.used, 1 << 16);
    assert!(usage.reserved >= usage.used && usage.most_reserved >= usage.reserved);
    drop(memory);
    stream.synchronize().unwrap();
    pool.trim_to(0).unwrap();
    let usage = pool.usage().unwrap();
    assert_eq!((usage.used, usage.reserved), (0, 0));
    assert_eq!(usage.most_used, 1 << 16);
    assert!(device.default_mem_pool().unwrap().usage().is_ok());
}

#[test]
fn nothing_is_allocated_for_nothing_and_foreign_streams_are_refused() {
    let device = device();
    let stream = device.stream().unwrap();
    stream.alloc::<u8>(0).unwrap().close().unwrap();
    let elsewhere = common::device().stream().unwrap();
    assert!(device.mem_pool().unwrap().alloc::<u8>(&elsewhere, 4).is_err());
}
