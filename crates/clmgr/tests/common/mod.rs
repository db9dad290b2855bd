//! What the tests share: a context on the first device that was found.
#![allow(dead_code, reason = "each test file uses a part of it")]

use clmgr::{Context, Device, Manager, SvmCapabilities};

/// The first device. Without OpenCL the tests fail: the project's test command installs a runtime.
pub fn device() -> Device {
    match Manager::load() {
        Ok(manager) => manager.devices().remove(0),
        Err(error) => panic!("{error}"),
    }
}

pub fn context() -> Context {
    Context::new(&device()).expect("a context on the first device")
}

/// Whether the device has this kind of memory; says so if not.
pub fn has(context: &Context, kind: SvmCapabilities) -> bool {
    let has = context.device().svm().contains(kind);
    if !has {
        eprintln!("skipped: `{}` lacks {kind:?}", context.device().name());
    }
    has
}
