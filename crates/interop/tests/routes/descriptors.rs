//! Memory that HIP exports and OpenCL imports.

use std::sync::{Mutex, MutexGuard, PoisonError};

use interop::{Bridge, Options, Residency, Route};

use crate::{LEN, common, external_memory, works};

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn open() -> Bridge {
    Bridge::open_with(&common::host(), &Options::default(), external_memory::wrap)
        .expect("a bridge")
}

#[test]
fn imported_memory_is_taken_over_before_opencl_and_handed_back_before_hip() {
    let _alone = alone();
    let bridge = open();
    works(&bridge, Route::ExternalFd);
    let data = bridge
        .alloc_on::<u32>(Route::ExternalFd, LEN)
        .expect("memory");
    assert_eq!(data.residency(), Residency::Vram);
    drop(data);
    assert_eq!(external_memory::violations(), [""; 0]);
}

#[test]
fn both_apis_read_imported_memory_at_once() {
    let _alone = alone();
    let bridge = open();
    let mut data = bridge
        .alloc_on::<u32>(Route::ExternalFd, LEN)
        .expect("memory");
    data.upload(&[3; LEN]).expect("an upload");
    let (queue, stream) = (
        bridge.queue().expect("a queue"),
        bridge.stream().expect("a stream"),
    );
    let second = bridge.queue().expect("a queue");
    let (cl, hip) = (
        data.cl(&queue).expect("access"),
        data.hip(&stream).expect("access"),
    );
    let other = data.cl(&second).expect("access");
    let mut back = [0; LEN];
    hip.slice().copy_to_slice(&mut back).expect("a copy");
    assert_eq!(back, [3; LEN]);
    drop((cl, hip, other));
    drop(data.hip_mut(&stream).expect("access"));
    drop(data);
    assert_eq!(external_memory::violations(), [""; 0]);
}

#[test]
fn without_the_extension_its_name_is_the_reason() {
    let bridge = Bridge::open(&common::host(), &Options::default()).expect("a bridge");
    let error = bridge
        .alloc_on::<u32>(Route::ExternalFd, 16)
        .expect_err("a CPU has none");
    assert!(error.is_impossible(), "{error}");
    assert!(
        error.to_string().contains("`cl_khr_external_memory`"),
        "{error}"
    );
}
