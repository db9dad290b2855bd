//! NVIDIA's side: the libraries and their functions.

pub(crate) mod driver;
pub(crate) mod library;
pub(crate) mod nvrtc;
mod symbol;
mod table;

use std::sync::OnceLock;

use hip_sys::hipError_t;
pub(crate) use symbol::Symbol;
pub(crate) use table::{c_name, functions};

use crate::error::Result;

/// The driver's functions, initialised, or why there are none.
pub(crate) fn opened_driver() -> std::result::Result<&'static driver::Driver, &'static str> {
    static DRIVER: OnceLock<std::result::Result<driver::Driver, String>> = OnceLock::new();
    let opened = DRIVER.get_or_init(|| {
        let driver = driver::Driver::open(&library::DRIVER)?;
        // SAFETY: cuInit takes flags that must be 0.
        unsafe { driver.cuInit(0) }.map_err(|code| format!("cuInit(0) of the CUDA driver returned {code:?}"))?;
        Ok(driver)
    });
    opened.as_ref().map_err(String::as_str)
}

/// The driver's functions. Without a driver there is no device.
pub(crate) fn cu() -> Result<&'static driver::Driver> {
    opened_driver().map_err(|_| hipError_t::hipErrorNoDevice)
}

/// Opens one of the libraries above the driver, once.
macro_rules! once {
    ($name:ident, $open:path, $table:ty, $names:path) => {
        pub(crate) fn $name() -> std::result::Result<&'static $table, &'static str> {
            static TABLE: OnceLock<std::result::Result<$table, String>> = OnceLock::new();
            let opened = TABLE.get_or_init(|| $open(&$names));
            opened.as_ref().map_err(String::as_str)
        }
    };
}

once!(opened_nvrtc, nvrtc::Nvrtc::open, nvrtc::Nvrtc, library::NVRTC);
once!(opened_cublas, library::Opened::find, library::Opened, library::CUBLAS);
once!(
    opened_cusolver,
    library::Opened::find,
    library::Opened,
    library::CUSOLVER
);
once!(opened_cufft, library::Opened::find, library::Opened, library::CUFFT);
