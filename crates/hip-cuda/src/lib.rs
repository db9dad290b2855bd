//! HIP, HIPRTC, rocBLAS and rocSOLVER over the CUDA driver, NVRTC, cuBLAS and cuSOLVER.
//!
//! The same binaries that call ROCm through the tables of `hip-sys`, `rocblas-sys` and `rocsolver-sys` run on an NVIDIA
//! GPU: each slot is a C function with HIP's arguments, codes and obligations. The slot of a function that is not
//! implemented is empty. Nothing is linked: the libraries are opened at run time, and without them [`open`] reports
//! what is missing.
//!
//! | module | what |
//! |---|---|
//! | `cuda` | NVIDIA's libraries, as tables of functions that return `Result` |
//! | `code`, `error`, `text` | CUDA codes as HIP codes; a thread's last error; names of codes |
//! | `init` | initialisation and versions |
//! | `device` | devices, their attributes, the context that each thread works in |
//! | `memory` | allocation, copies, fills, pools, virtual memory, file descriptors |
//! | `stream`, `event`, `graph` | order |
//! | `rtc`, `module`, `launch` | kernels: compiled by NVRTC from HIP's dialect, loaded, launched |
//! | [`peer`] | direct calls of cuBLAS and cuFFT, for comparison |
//! | `blas`, `solver` | rocBLAS on cuBLAS; rocSOLVER on cuSOLVER and, for what it lacks, on cuBLAS |
//!
//! # Where CUDA differs from HIP
//!
//! | behaviour | HIP on Linux | CUDA | here |
//! |---|---|---|---|
//! | file descriptor passed to an import | still belongs to the caller | taken over | duplicated before the import |
//! | `hipMemImportFromShareableHandle` | pointer to the descriptor (before 7.1) | the descriptor | as HIP 6.4 |
//! | `hipMalloc(0)` | success, null | an error | as HIP |
//! | `hipMemset`, `hipMemcpy` on the device | complete on return | may return earlier | complete on return |
//! | dynamic shared memory over 48 KiB | allowed | after opting in | opted in at launch |
//! | lanes of a warp | 64 | 32 | 32: kernels must query `warpSize` |
//! | memory of OpenCL | the same address | no address | refused: not a pointer of this context |
//! | external semaphores | not supported | supported | supported |
//!
//! # Environment
//!
//! | variable | meaning |
//! |---|---|
//! | `HIPCL_CUDA_LIBRARIES` | folders (separated by `:`) that are searched first for NVIDIA's libraries |
//! | `CUDA_HOME`, `CUDA_PATH` | a toolkit, searched after the system's search path |
//! | `HIP_CUDA_LOG` | 1: report failed CUDA calls on standard error |

mod blas;
mod code;
mod cuda;
mod device;
mod error;
mod event;
mod graph;
mod init;
mod launch;
mod layout;
mod log;
mod memory;
mod module;
pub mod peer;
mod rtc;
mod solver;
mod stream;
mod table;
mod text;

use std::path::PathBuf;

pub use blas::rocblas_api;
pub use solver::rocsolver_api;
pub use table::hip_api;

/// The platform's tables, and where its libraries are.
#[derive(Debug)]
pub struct Opened {
    /// HIP.
    pub hip: hip_sys::Api,
    /// The driver that HIP's functions go to.
    pub driver: PathBuf,
    /// HIPRTC, and the library behind it; or why there is none.
    pub rtc: Result<(hip_sys::RtcApi, PathBuf), String>,
    /// rocBLAS, and the library behind it; or why there is none.
    pub rocblas: Result<(rocblas_sys::Api, PathBuf), String>,
    /// rocSOLVER, and the library behind it; or why there is none.
    pub rocsolver: Result<(rocsolver_sys::Api, PathBuf), String>,
}

/// Why the platform cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(String);

/// Opens NVIDIA's libraries.
///
/// # Errors
/// There is no driver, or it does not start. A missing library above the driver is no error; its field says why.
pub fn open() -> Result<Opened, Unavailable> {
    let driver = cuda::opened_driver().map_err(|cause| Unavailable(cause.to_owned()))?;
    Ok(Opened {
        hip: hip_api(),
        driver: driver.library.path.clone(),
        rtc: cuda::opened_nvrtc()
            .map(|nvrtc| (rtc::api(), nvrtc.library.path.clone()))
            .map_err(str::to_owned),
        rocblas: cuda::opened_cublas()
            .map(|cublas| (rocblas_api(), cublas.path.clone()))
            .map_err(str::to_owned),
        rocsolver: cuda::opened_cusolver()
            .map(|cusolver| (rocsolver_api(), cusolver.path.clone()))
            .map_err(str::to_owned),
    })
}

/// The HIPRTC function table. Without NVRTC its functions return `HIPRTC_ERROR_INTERNAL_ERROR`.
#[must_use]
pub const fn rtc_api() -> hip_sys::RtcApi {
    rtc::api()
}

// The README's program is compiled and run like any other.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
