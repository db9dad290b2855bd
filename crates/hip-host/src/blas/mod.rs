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
//! | `entry_points` | a family of C functions from one signature |
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
//!   peer access included (`memory::reach`). For the `_batched` forms,
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
mod reach;
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
pub(crate) mod entry_points;
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
        transfer:
            rocblas_set_vector rocblas_set_vector_64 rocblas_set_vector_async rocblas_set_vector_async_64
            rocblas_get_vector rocblas_get_vector_64 rocblas_get_vector_async rocblas_get_vector_async_64
            rocblas_set_matrix rocblas_set_matrix_64 rocblas_set_matrix_async rocblas_set_matrix_async_64
            rocblas_get_matrix rocblas_get_matrix_64 rocblas_get_matrix_async rocblas_get_matrix_async_64;
        level1:
            rocblas_saxpy rocblas_daxpy rocblas_caxpy rocblas_zaxpy
            rocblas_saxpy_64 rocblas_daxpy_64 rocblas_caxpy_64 rocblas_zaxpy_64
            rocblas_sscal rocblas_dscal rocblas_cscal rocblas_zscal
            rocblas_sscal_64 rocblas_dscal_64 rocblas_cscal_64 rocblas_zscal_64
            rocblas_csscal rocblas_zdscal rocblas_csscal_64 rocblas_zdscal_64
            rocblas_scopy rocblas_dcopy rocblas_ccopy rocblas_zcopy
            rocblas_scopy_64 rocblas_dcopy_64 rocblas_ccopy_64 rocblas_zcopy_64
            rocblas_sswap rocblas_dswap rocblas_cswap rocblas_zswap
            rocblas_sswap_64 rocblas_dswap_64 rocblas_cswap_64 rocblas_zswap_64;
        reduction:
            rocblas_sdot rocblas_ddot rocblas_cdotu rocblas_zdotu rocblas_cdotc rocblas_zdotc
            rocblas_sdot_64 rocblas_ddot_64
            rocblas_cdotu_64 rocblas_zdotu_64 rocblas_cdotc_64 rocblas_zdotc_64
            rocblas_snrm2 rocblas_dnrm2 rocblas_scnrm2 rocblas_dznrm2
            rocblas_snrm2_64 rocblas_dnrm2_64 rocblas_scnrm2_64 rocblas_dznrm2_64
            rocblas_sasum rocblas_dasum rocblas_scasum rocblas_dzasum
            rocblas_sasum_64 rocblas_dasum_64 rocblas_scasum_64 rocblas_dzasum_64
            rocblas_isamax rocblas_idamax rocblas_icamax rocblas_izamax
            rocblas_isamax_64 rocblas_idamax_64 rocblas_icamax_64 rocblas_izamax_64
            rocblas_isamin rocblas_idamin rocblas_icamin rocblas_izamin
            rocblas_isamin_64 rocblas_idamin_64 rocblas_icamin_64 rocblas_izamin_64;
        gemv:
            rocblas_sgemv rocblas_dgemv rocblas_cgemv rocblas_zgemv
            rocblas_sgemv_64 rocblas_dgemv_64 rocblas_cgemv_64 rocblas_zgemv_64;
        ger:
            rocblas_sger rocblas_dger rocblas_sger_64 rocblas_dger_64
            rocblas_cgeru rocblas_zgeru rocblas_cgeru_64 rocblas_zgeru_64
            rocblas_cgerc rocblas_zgerc rocblas_cgerc_64 rocblas_zgerc_64;
        gemm:
            rocblas_sgemm rocblas_dgemm rocblas_cgemm rocblas_zgemm
            rocblas_sgemm_64 rocblas_dgemm_64 rocblas_cgemm_64 rocblas_zgemm_64
            rocblas_sgemm_strided_batched rocblas_dgemm_strided_batched
            rocblas_cgemm_strided_batched rocblas_zgemm_strided_batched
            rocblas_sgemm_strided_batched_64 rocblas_dgemm_strided_batched_64
            rocblas_cgemm_strided_batched_64 rocblas_zgemm_strided_batched_64
            rocblas_sgemm_batched rocblas_dgemm_batched rocblas_cgemm_batched rocblas_zgemm_batched
            rocblas_sgemm_batched_64 rocblas_dgemm_batched_64 rocblas_cgemm_batched_64 rocblas_zgemm_batched_64;
        gemm_ex:
            rocblas_gemm_ex rocblas_gemm_ex_64 rocblas_gemm_batched_ex rocblas_gemm_batched_ex_64
            rocblas_gemm_strided_batched_ex rocblas_gemm_strided_batched_ex_64;
        trsm:
            rocblas_strsm rocblas_dtrsm rocblas_ctrsm rocblas_ztrsm
            rocblas_strsm_64 rocblas_dtrsm_64 rocblas_ctrsm_64 rocblas_ztrsm_64
            rocblas_strsm_batched rocblas_dtrsm_batched rocblas_ctrsm_batched rocblas_ztrsm_batched
            rocblas_strsm_batched_64 rocblas_dtrsm_batched_64
            rocblas_ctrsm_batched_64 rocblas_ztrsm_batched_64
            rocblas_strsm_strided_batched rocblas_dtrsm_strided_batched
            rocblas_ctrsm_strided_batched rocblas_ztrsm_strided_batched
            rocblas_strsm_strided_batched_64 rocblas_dtrsm_strided_batched_64
            rocblas_ctrsm_strided_batched_64 rocblas_ztrsm_strided_batched_64;
        trmm:
            rocblas_strmm rocblas_dtrmm rocblas_ctrmm rocblas_ztrmm
            rocblas_strmm_64 rocblas_dtrmm_64 rocblas_ctrmm_64 rocblas_ztrmm_64
            rocblas_strmm_batched rocblas_dtrmm_batched rocblas_ctrmm_batched rocblas_ztrmm_batched
            rocblas_strmm_batched_64 rocblas_dtrmm_batched_64
            rocblas_ctrmm_batched_64 rocblas_ztrmm_batched_64
            rocblas_strmm_strided_batched rocblas_dtrmm_strided_batched
            rocblas_ctrmm_strided_batched rocblas_ztrmm_strided_batched
            rocblas_strmm_strided_batched_64 rocblas_dtrmm_strided_batched_64
            rocblas_ctrmm_strided_batched_64 rocblas_ztrmm_strided_batched_64;
        syrk:
            rocblas_cherk rocblas_zherk rocblas_cherk_64 rocblas_zherk_64
            rocblas_ssyrk rocblas_dsyrk rocblas_csyrk rocblas_zsyrk
            rocblas_ssyrk_64 rocblas_dsyrk_64 rocblas_csyrk_64 rocblas_zsyrk_64;
    }
}
