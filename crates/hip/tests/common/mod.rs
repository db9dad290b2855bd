//! What the tests share: a runtime on the platform under test, a gate that holds a stream, and a look at every call.

#![allow(dead_code, reason = "each test program uses a part")]

use std::cell::RefCell;
use std::ffi::c_void;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

use hip::{Device, Runtime, Stream};
use proptest::test_runner::Config as ProptestConfig;

/// The platform that `HIPCL_PLATFORM` names, the software device if it names none. A platform that is named and cannot
/// be used fails the test.
fn selection() -> &'static platform::Selection {
    static CHOSEN: OnceLock<platform::Selection> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        let name = std::env::var("HIPCL_PLATFORM").unwrap_or_default();
        let name = Some(name.as_str()).filter(|name| !name.is_empty());
        let chosen = platform::select_named(name.or(Some("host")));
        chosen.unwrap_or_else(|error| panic!("{error}"))
    })
}

/// The tables of the platform under test.
pub fn tables() -> &'static platform::Tables {
    selection().tables()
}

/// Whether the tests run on CUDA, which differs from HIP where a test says so.
pub fn on_cuda() -> bool {
    selection().platform() == platform::Platform::Nvidia
}

/// Whether the tests run on the host platform, whose compiler and modules are the machine's; notes a skip if not.
pub fn on_host() -> bool {
    let is_host = selection().platform() == platform::Platform::Host;
    if !is_host {
        skipped("is about the host platform");
    }
    is_host
}

/// Two devices of one runtime; `None` after noting a skip if there is only one.
pub fn two_devices() -> Option<(Device, Device)> {
    static DEVICES: std::sync::Once = std::sync::Once::new();
    DEVICES.call_once(|| {
        // SAFETY: every test of a program that asks for two devices comes here first, and nothing else of it reads the
        // environment by C functions.
        unsafe { std::env::set_var("HIP_HOST_DEVICES", "2") };
    });
    let runtime = runtime(hip_api());
    if runtime.device_count().unwrap() < 2 {
        skipped("needs two devices");
        return None;
    }
    Some((runtime.device(0).unwrap(), runtime.device(1).unwrap()))
}

/// A random test of so many cases, or of fewer if proptest's own variable `PROPTEST_CASES` asks for fewer, as on an
/// emulated GPU.
pub fn cases(most: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig {
        cases: u32::min(most, default.cases),
        ..default
    }
}

/// Says that the running test can't do its work here, also in the file that `HIPCL_SKIP_LOG` names.
pub fn skipped(reason: &str) {
    let thread = std::thread::current();
    let line = format!("{}: {reason}\n", thread.name().unwrap_or("a test"));
    eprint!("skipped: {line}");
    if let Some(log) = std::env::var_os("HIPCL_SKIP_LOG") {
        let log = std::fs::File::options().append(true).create(true).open(log);
        let mut log = log.expect("the skip log opens");
        log.write_all(line.as_bytes()).expect("the skip log takes a line");
    }
}

/// HIP's table of the platform under test.
pub fn hip_api() -> hip_sys::Api {
    *tables().hip
}

/// A device of the platform under test.
pub fn device() -> Device {
    runtime(hip_api()).device(0).unwrap()
}

/// A runtime with this table, and the compiler of the platform under test.
pub fn runtime(api: hip_sys::Api) -> Runtime {
    // SAFETY: one platform's functions, or wrappers that call them.
    unsafe { Runtime::from_tables(Arc::new(api), tables().rtc.clone()) }.unwrap()
}

/// Holds a stream: work queued after [`Gate::close`] does not start before [`Gate::open`]. Dropping opens it, so that a
/// failing test ends.
pub struct Gate {
    open: Arc<(Mutex<bool>, Condvar)>,
}

impl Gate {
    pub fn close(stream: &Stream) -> Self {
        unsafe extern "C" fn wait(gate: *mut c_void) {
            // SAFETY: `close` leaked one reference for this call.
            let gate = unsafe { Arc::from_raw(gate.cast::<(Mutex<bool>, Condvar)>()) };
            let mut open = gate.0.lock().unwrap_or_else(PoisonError::into_inner);
            while !*open {
                open = gate.1.wait(open).unwrap_or_else(PoisonError::into_inner);
            }
        }
        let open = Arc::new((Mutex::new(false), Condvar::new()));
        let launch = stream.device().runtime().api().hipLaunchHostFunc.unwrap();
        // SAFETY: the stream is alive; `wait` gets the reference it expects.
        let code = unsafe { launch(stream.raw(), Some(wait), Arc::into_raw(open.clone()).cast_mut().cast()) };
        assert_eq!(code, hip_sys::hipError_t::hipSuccess);
        Self { open }
    }

    pub fn open(&self) {
        *self.open.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.open.1.notify_all();
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}

type Watcher = Box<dyn FnMut(&'static str)>;

thread_local! {
    static WATCHER: RefCell<Option<Watcher>> = const { RefCell::new(None) };
}

/// From now on `watcher` hears the name of every watched call of this thread, before the call is made.
pub fn watch(watcher: impl FnMut(&'static str) + 'static) {
    WATCHER.set(Some(Box::new(watcher)));
}

pub fn unwatch() {
    drop(WATCHER.take());
}

/// A watched call.
pub fn heard(name: &'static str) {
    // Taken out while it runs, so that what it calls itself is not heard.
    if let Some(mut watcher) = WATCHER.take() {
        watcher(name);
        WATCHER.set(Some(watcher));
    }
}

macro_rules! watched {
    ($($function:ident($($argument:ident: $kind:ty),*);)*) => {
        $(
            #[expect(non_snake_case, reason = "C names")]
            unsafe extern "C" fn $function($($argument: $kind),*) -> hip_sys::hipError_t {
                heard(stringify!($function));
                // SAFETY: the caller's promise is the callee's demand.
                unsafe { hip_api().$function.unwrap()($($argument),*) }
            }
        )*

        /// A device whose calls [`watch`] hears.
        pub fn watched_device() -> Device {
            let api = hip_sys::Api { $($function: Some($function),)* ..hip_api() };
            runtime(api).device(0).unwrap()
        }
    };
}

watched! {
    hipMalloc(pointer: *mut *mut c_void, bytes: usize);
    hipFree(pointer: *mut c_void);
    hipHostMalloc(pointer: *mut *mut c_void, bytes: usize, flags: u32);
    hipHostFree(pointer: *mut c_void);
    hipHostUnregister(pointer: *mut c_void);
    hipMemcpyAsync(to: *mut c_void, from: *const c_void, bytes: usize, kind: hip_sys::hipMemcpyKind, stream: hip_sys::hipStream_t);
    hipMemcpyWithStream(to: *mut c_void, from: *const c_void, bytes: usize, kind: hip_sys::hipMemcpyKind, stream: hip_sys::hipStream_t);
    hipMemsetAsync(to: *mut c_void, value: i32, bytes: usize, stream: hip_sys::hipStream_t);
    hipStreamSynchronize(stream: hip_sys::hipStream_t);
    hipStreamDestroy(stream: hip_sys::hipStream_t);
    hipStreamWaitEvent(stream: hip_sys::hipStream_t, event: hip_sys::hipEvent_t, flags: u32);
    hipEventRecord(event: hip_sys::hipEvent_t, stream: hip_sys::hipStream_t);
    hipFreeAsync(pointer: *mut c_void, stream: hip_sys::hipStream_t);
    hipMemPoolDestroy(pool: hip_sys::hipMemPool_t);
    hipGraphExecDestroy(graph: hip_sys::hipGraphExec_t);
    hipModuleUnload(module: hip_sys::hipModule_t);
    hipSetDevice(device: i32);
}
