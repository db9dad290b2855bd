//! Products by OpenBLAS, on as many threads as it takes by itself. Signatures: its `cblas.h`.

use std::ffi::{CStr, c_char, c_int};

use libloading::Library;

use super::library::{function, open};
use super::{Peer, Product};
use crate::{C32, Error, Result};

const COLUMN_MAJOR: c_int = 102;
const AS_IT_IS: c_int = 111;

type Cgemm = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const C32,
    *const C32,
    c_int,
    *const C32,
    c_int,
    *const C32,
    *mut C32,
    c_int,
);

pub(super) struct OpenBlas {
    cgemm: Cgemm,
    core: String,
    #[allow(dead_code, reason = "the function lives in it")]
    library: Library,
}

impl OpenBlas {
    pub(super) fn find() -> std::result::Result<Self, String> {
        let library = open("OpenBLAS", &["libopenblas.so.0", "libopenblas.so"])?;
        // SAFETY: the types are the header's, and the functions are kept beside their library.
        let (cgemm, core) = unsafe {
            let cgemm: Cgemm = function(&library, c"cblas_cgemm")?;
            let core: unsafe extern "C" fn() -> *const c_char = function(&library, c"openblas_get_corename")?;
            (cgemm, CStr::from_ptr(core()).to_string_lossy().into_owned())
        };
        Ok(Self { cgemm, core, library })
    }
}

impl Peer<Product> for OpenBlas {
    fn name(&self) -> String {
        format!("OpenBLAS ({} kernels)", self.core)
    }

    unsafe fn run(&self, work: &Product) -> Result<()> {
        let size = c_int::try_from(work.size).map_err(|_| Error::input(format!("{} exceeds 32 bits", work.size)))?;
        let (one, zero) = (C32::new(1.0, 0.0), C32::default());
        for index in 0..work.count {
            let offset = index * work.size * work.size;
            // SAFETY: on the host platform the device's addresses are the process's own; the caller's promise covers
            // the sizes.
            unsafe {
                (self.cgemm)(
                    COLUMN_MAJOR,
                    AS_IT_IS,
                    AS_IT_IS,
                    size,
                    size,
                    size,
                    &one,
                    work.a.add(offset),
                    size,
                    work.b.add(offset),
                    size,
                    &zero,
                    work.c.add(offset),
                    size,
                );
            }
        }
        Ok(())
    }
}
