//! What the tests share: the tables, or a skip; device memory of plain values; a handle.

use std::ffi::c_void;
use std::io::Write;
use std::ptr;
use std::sync::OnceLock;

use hip_sys::{hipError_t, hipMemcpyKind};
use rocblas_sys::{rocblas_handle, rocblas_status};

pub const OK: hipError_t = hipError_t::hipSuccess;
pub const DONE: rocblas_status = rocblas_status::rocblas_status_success;

pub struct Tables {
    pub hip: hip_sys::Api,
    pub blas: rocblas_sys::Api,
    pub solver: rocsolver_sys::Api,
}

/// The tables; `None` after noting a skip where there is no GPU and none was promised.
pub fn tables() -> Option<&'static Tables> {
    static TABLES: OnceLock<Result<Tables, String>> = OnceLock::new();
    let opened = TABLES.get_or_init(|| {
        let opened = hip_cuda::open().map_err(|error| error.to_string())?;
        Ok(Tables {
            hip: opened.hip,
            blas: opened.rocblas?.0,
            solver: opened.rocsolver?.0,
        })
    });
    match opened {
        Ok(tables) => Some(tables),
        Err(reason) if std::env::var("HIPCL_PLATFORM").is_ok_and(|name| name == "nvidia") => {
            panic!("a GPU was promised: {reason}")
        }
        Err(reason) => {
            skipped(reason);
            None
        }
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

/// Calls a function of one of the tables, which must be there.
macro_rules! call {
    ($table:expr, $function:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: the test passes what the function's contract allows, or what it promises to refuse.
        unsafe { ($table.$function.expect(stringify!($function)))($($argument),*) }
    };
}
pub(crate) use call;

/// Device memory, freed when dropped.
pub struct Memory<T> {
    pub at: *mut T,
    len: usize,
}

impl<T: Copy + Default> Memory<T> {
    pub fn of(values: &[T]) -> Self {
        let hip = &tables().unwrap().hip;
        let mut at = ptr::null_mut();
        let bytes = size_of_val(values);
        assert_eq!(call!(hip, hipMalloc(&mut at, bytes)), OK);
        let kind = hipMemcpyKind::hipMemcpyHostToDevice;
        assert_eq!(call!(hip, hipMemcpy(at, values.as_ptr().cast(), bytes, kind)), OK);
        Self {
            at: at.cast(),
            len: values.len(),
        }
    }

    pub fn read(&self) -> Vec<T> {
        let hip = &tables().unwrap().hip;
        let mut values = vec![T::default(); self.len];
        let (bytes, kind) = (self.len * size_of::<T>(), hipMemcpyKind::hipMemcpyDeviceToHost);
        let to = values.as_mut_ptr().cast::<c_void>();
        assert_eq!(call!(hip, hipMemcpy(to, self.at.cast(), bytes, kind)), OK);
        values
    }
}

impl<T> Drop for Memory<T> {
    fn drop(&mut self) {
        let freed = call!(tables().unwrap().hip, hipFree(self.at.cast()));
        assert!(freed == OK || std::thread::panicking(), "{freed:?}");
    }
}

/// A handle on the null stream, destroyed when dropped.
pub struct Handle(pub rocblas_handle);

impl Handle {
    pub fn new() -> Self {
        let mut handle = ptr::null_mut();
        assert_eq!(call!(tables().unwrap().blas, rocblas_create_handle(&mut handle)), DONE);
        Self(handle)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let gone = call!(tables().unwrap().blas, rocblas_destroy_handle(self.0));
        assert!(gone == DONE || std::thread::panicking(), "{gone:?}");
    }
}
