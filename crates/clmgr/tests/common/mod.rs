//! What the tests share: a context on the first device that was found.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::Mutex;

use clmgr::{Context, Device, Manager, SvmCapabilities};

/// What was taken from the library that was loaded last: those before it, such as a loader without drivers, were given
/// up.
pub struct Last<T>(Mutex<Option<T>>);

impl<T: Copy> Last<T> {
    pub const fn none() -> Self {
        Self(Mutex::new(None))
    }

    pub fn set(&self, value: T) {
        *self.0.lock().unwrap() = Some(value);
    }

    pub fn get(&self) -> T {
        self.0.lock().unwrap().expect("a library was loaded")
    }
}

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

/// Whether the device has this kind of memory; if not, the test counts as skipped.
pub fn has(context: &Context, kind: SvmCapabilities) -> bool {
    let has = context.device().svm().contains(kind);
    if !has {
        skipped(&format!("`{}` lacks {kind:?}", context.device().name()));
    }
    has
}

/// Whether the driver tells a program's code, which a cache on disk needs; if not, the test counts as skipped.
pub fn tells_code(context: &Context) -> bool {
    let tells = context.device().platform_name() != POCL;
    if !tells {
        skipped("PoCL tells no program's code");
    }
    tells
}

/// The name of PoCL's platform.
pub const POCL: &str = "Portable Computing Language";

/// Rounds of a loop that takes a device tens of milliseconds, for which a card or a CPU needs `usual`. The variable
/// `HIPCL_SLOW_DEVICE` says how many times slower the device is, as an emulated one is.
pub fn rounds(usual: u32) -> u32 {
    let slower =
        std::env::var("HIPCL_SLOW_DEVICE").map_or(1, |times| times.parse().expect("HIPCL_SLOW_DEVICE is a number"));
    usual / slower
}

/// Says that the running test can't do its work here, also in the file that `HIPCL_SKIP_LOG` names.
pub fn skipped(reason: &str) {
    let thread = std::thread::current();
    let line = format!("{}: {reason}", thread.name().unwrap_or("a test"));
    eprintln!("skipped: {line}");
    if let Some(log) = std::env::var_os("HIPCL_SKIP_LOG") {
        let mut log = OpenOptions::new()
            .append(true)
            .create(true)
            .open(log)
            .expect("the skip log opens");
        log.write_all(format!("{line}\n").as_bytes())
            .expect("the skip log takes a line");
    }
}
