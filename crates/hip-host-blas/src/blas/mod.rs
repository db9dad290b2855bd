//! rocBLAS on the host: the calls with their checks, and the arithmetic behind them.
//!
//! | module | what |
//! |---|---|
//! | `handle`, `version`, `status` | handles and their modes, version strings, status codes |
//! | `level1`, `reduction` | the entry points of level 1 with their arithmetic |
//! | `transfer` | vectors and matrices between host and device |
//! | `gemv`, `ger` | the entry points of level 2 |
//! | `gemm`, `gemm_ex`, `syrk`, `trsm`, `trmm` | the entry points of level 3: rocBLAS' checks in its order, then the work goes to the handle's stream |
//! | `arguments`, `aliasing`, `pointer_mode` | what the entry points share: sizes, enums, ranges, overlaps, scalars |
//! | `family` | a family of C functions from one declaration |
//! | `product`, `mixed`, `rank_k`, `triangular` | the arithmetic, on `faer`'s matrix product and solvers |
//! | `thin` | our own kernel for tall matrices of few columns, which run at the speed of memory |
//! | `batch` | many matrices: by a distance or by an array of pointers |
//! | `schedule` | how pieces of a result are spread over cores |
//! | `scalar`, `view`, `vector` | element types; matrices as pointer and leading dimension, vectors as pointer and increment |
//!
//! # Where the model is stricter than the library
//! - A handle that is not alive is `rocblas_status_invalid_handle`, also if it is not null.
//! - Memory that the device cannot reach, over exactly the bytes that the call touches, is
//!   `rocblas_status_invalid_pointer` (a memory fault on a real device), another device's without
//!   peer access included. For the `_batched` forms,
//!   whose pointers are known only in stream order, it is an asynchronous error of the stream.
//! - A result that shares memory with an operand is `rocblas_status_invalid_pointer` (undefined on
//!   the real library), as far as it can be seen; `HIP_HOST_LOG=1` says why.
//! - Results of a batch that overlap are `rocblas_status_invalid_size` (undefined on the real
//!   library).
//! - A mode that is no constant of its enum is `rocblas_status_invalid_value`.

mod gemm;
mod gemm_ex;
mod gemv;
mod ger;
mod handle;
mod level1;
mod mixed;
mod pointer_mode;
pub(crate) mod product;
mod rank_k;
mod reduction;
pub(crate) mod schedule;
mod syrk;
mod thin;
mod transfer;
mod trmm;
mod trsm;
mod vector;
mod version;

pub(crate) mod aliasing;
pub(crate) mod arguments;
pub(crate) mod batch;
pub(crate) mod family;
pub(crate) mod scalar;
pub(crate) mod status;
pub(crate) mod triangular;
pub(crate) mod view;

pub(crate) use handle::current as current_handle;
use rocblas_sys::Api;
pub(crate) use version::{copy as copy_version, size as version_size};

/// The rocBLAS functions of the host platform. Slots that are empty have no implementation here.
pub const fn rocblas_api() -> Api {
    macro_rules! table {
        ($($module:ident: $($name:ident)*;)*) => {
            Api { $($($name: Some($module::$name),)*)* ..Api::EMPTY }
        };
    }
    let mut api = table! {
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
        transfer:
            rocblas_set_vector rocblas_set_vector_64 rocblas_set_vector_async rocblas_set_vector_async_64
            rocblas_get_vector rocblas_get_vector_64 rocblas_get_vector_async rocblas_get_vector_async_64
            rocblas_set_matrix rocblas_set_matrix_64 rocblas_set_matrix_async rocblas_set_matrix_async_64
            rocblas_get_matrix rocblas_get_matrix_64 rocblas_get_matrix_async rocblas_get_matrix_async_64;
    };
    level1::slots(&mut api);
    reduction::slots(&mut api);
    gemv::slots(&mut api);
    ger::slots(&mut api);
    gemm::slots(&mut api);
    gemm_ex::slots(&mut api);
    trsm::slots(&mut api);
    trmm::slots(&mut api);
    syrk::slots(&mut api);
    api
}
