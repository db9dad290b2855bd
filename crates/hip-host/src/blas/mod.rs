//! rocBLAS on the host: the calls with their checks, and the arithmetic behind them.
//!
//! | module | what |
//! |---|---|
//! | `handle`, `version`, `status` | handles and their modes, version strings, status codes |
//! | `gemm`, `syrk` | the entry points: rocBLAS' checks in its order, then the work goes to the handle's stream |
//! | `arguments`, `aliasing` | what the entry points share: sizes, enums, scalars, ranges, overlaps |
//! | `product`, `rank_k` | the arithmetic, on `faer`'s matrix product |
//! | `thin` | our own kernel for tall matrices of few columns, which run at the speed of memory |
//! | `schedule` | how pieces of a result are spread over cores |
//! | `scalar`, `view` | element types; matrices as pointer and leading dimension |
//!
//! # Where the model is stricter than the library
//! - A handle that is not alive is `rocblas_status_invalid_handle`, also if it is not null.
//! - Memory that the device cannot reach, over exactly the bytes that the call touches, is
//!   `rocblas_status_invalid_pointer` (a memory fault on a real device). For the `_batched` forms,
//!   whose pointers are known only in stream order, it is an asynchronous error of the stream.
//! - A result that shares memory with an operand is `rocblas_status_invalid_pointer` (undefined on
//!   the real library), as far as it can be seen; `HIP_HOST_LOG=1` says why.
//! - Results of a batch that overlap are `rocblas_status_invalid_size` (undefined on the real
//!   library).
//! - A mode that is no constant of its enum is `rocblas_status_invalid_value`.

mod gemm;
mod handle;
mod product;
mod rank_k;
pub(crate) mod schedule;
mod syrk;
mod thin;
mod version;

pub(crate) mod aliasing;
pub(crate) mod arguments;
pub(crate) mod scalar;
pub(crate) mod status;
pub(crate) mod view;

pub(crate) use handle::current as current_handle;
pub(crate) use version::{copy as copy_version, size as version_size};

use rocblas_sys::Api;

/// The rocBLAS functions of the host platform. Slots that are empty have no implementation here.
pub const fn rocblas_api() -> Api {
    macro_rules! table {
        ($($module:ident: $($name:ident)*;)*) => {
            Api { $($($name: Some($module::$name),)*)* ..Api::EMPTY }
        };
    }
    table! {
        handle:
            rocblas_create_handle rocblas_destroy_handle
            rocblas_set_stream rocblas_get_stream
            rocblas_set_pointer_mode rocblas_get_pointer_mode
            rocblas_set_atomics_mode rocblas_get_atomics_mode
            rocblas_set_math_mode rocblas_get_math_mode
            rocblas_set_performance_metric rocblas_get_performance_metric
            rocblas_set_workspace rocblas_set_device_memory_size rocblas_get_device_memory_size
            rocblas_is_managing_device_memory rocblas_is_user_managing_device_memory
            rocblas_start_device_memory_size_query rocblas_stop_device_memory_size_query
            rocblas_is_device_memory_size_query;
        status: rocblas_status_to_string;
        version: rocblas_get_version_string rocblas_get_version_string_size rocblas_initialize;
        gemm:
            rocblas_sgemm rocblas_dgemm rocblas_cgemm rocblas_zgemm
            rocblas_sgemm_64 rocblas_dgemm_64 rocblas_cgemm_64 rocblas_zgemm_64
            rocblas_sgemm_strided_batched rocblas_dgemm_strided_batched
            rocblas_cgemm_strided_batched rocblas_zgemm_strided_batched
            rocblas_sgemm_strided_batched_64 rocblas_dgemm_strided_batched_64
            rocblas_cgemm_strided_batched_64 rocblas_zgemm_strided_batched_64
            rocblas_sgemm_batched rocblas_dgemm_batched rocblas_cgemm_batched rocblas_zgemm_batched
            rocblas_sgemm_batched_64 rocblas_dgemm_batched_64 rocblas_cgemm_batched_64 rocblas_zgemm_batched_64;
        syrk:
            rocblas_cherk rocblas_zherk rocblas_cherk_64 rocblas_zherk_64
            rocblas_ssyrk rocblas_dsyrk rocblas_csyrk rocblas_zsyrk
            rocblas_ssyrk_64 rocblas_dsyrk_64 rocblas_csyrk_64 rocblas_zsyrk_64;
    }
}
