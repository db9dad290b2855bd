//! What a hook returns outlives every call through the tables that it changed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use clmgr::opencl_sys::{cl_int, cl_kernel};
use clmgr::{Api, Context, Kernel, Manager, NdRange, Program, RegularBuffer};

static REAL: OnceLock<Api> = OnceLock::new();
static KEPT: AtomicUsize = AtomicUsize::new(0);
/// For each kernel object that was released, how many values were kept then.
static RELEASES: Mutex<Vec<usize>> = Mutex::new(Vec::new());

struct Kept;

impl Drop for Kept {
    fn drop(&mut self) {
        KEPT.fetch_sub(1, Ordering::SeqCst);
    }
}

unsafe extern "C" fn release(kernel: cl_kernel) -> cl_int {
    RELEASES.lock().unwrap().push(KEPT.load(Ordering::SeqCst));
    // SAFETY: the caller's reference.
    unsafe { REAL.get().unwrap().clReleaseKernel.unwrap()(kernel) }
}

fn kernel() -> (Context, Kernel) {
    let hook = |api: &mut Api| {
        let _ = REAL.set(*api);
        api.clReleaseKernel = Some(release);
        KEPT.fetch_add(1, Ordering::SeqCst);
        Kept
    };
    // SAFETY: the function passes everything on.
    let manager = unsafe { Manager::load_with(hook) }.unwrap_or_else(|error| panic!("{error}"));
    let context = Context::new(&manager.devices()[0]).unwrap();
    let source = "kernel void set(global int *x) { x[0] = 1; }";
    let kernel = Program::build(&context, source, "").unwrap().kernel("set").unwrap();
    (context, kernel)
}

#[test]
fn kernel_objects_are_released_before_what_their_table_rests_on() {
    let (context, kernel) = kernel();
    let buffer = RegularBuffer::<i32>::new(&context, 1).unwrap();
    // SAFETY: the buffer is alive.
    let bound = unsafe { kernel.bind(NdRange::d1(1), &[buffer.arg()]) }.unwrap();
    drop((buffer, context, kernel));
    drop(bound);
    let releases = RELEASES.lock().unwrap();
    assert!(releases.len() >= 2, "{releases:?}");
    assert!(releases.iter().all(|kept| *kept > 0), "{releases:?}");
    assert_eq!(KEPT.load(Ordering::SeqCst), 0);
}
