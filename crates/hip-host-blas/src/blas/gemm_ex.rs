//! The entry points `rocblas_gemm_ex`, `rocblas_gemm_batched_ex`,
//! `rocblas_gemm_strided_batched_ex` and their `_64` forms:
//! `D := alpha op(A) op(B) + beta C`, with the element types as arguments. `D` may be `C`.
//!
//! Checks as in rocBLAS' library/src/blas_ex/rocblas_gemm_ex.hpp. The types that are computed here:
//!
//! | A, B | C, D | computed in |
//! |---|---|---|
//! | f32, f64, complex f32, complex f64 | the same | the same |
//! | f16 | f16 | f16 (held in f32), f32 |
//! | bf16 | bf16 | f32 |
//! | f16, bf16 | f32 | f32 |
//!
//! Other combinations, the integers among them, are `rocblas_status_not_implemented`, which is also
//! rocBLAS' answer to types that it does not combine.

use std::ffi::c_void;

use half::{bf16, f16};
use num_complex::Complex;
use rocblas_sys::{rocblas_datatype, rocblas_gemm_algo, rocblas_handle, rocblas_operation, rocblas_status};

use super::aliasing::ensure_elements_apart;
use super::arguments::{Int, enqueue, ensure, operation, scalar, sizes};
use super::batch::{Batch, Place};
use super::family::families;
use super::handle::{self, Handle};
use super::mixed::{Narrow, Update};
use super::product::Product;
use super::scalar::Scalar;
use super::status::Outcome;
use super::view::Op;

struct Arguments<I> {
    handle: rocblas_handle,
    trans: [rocblas_operation; 2],
    /// `m`, `n`, `k`, `lda`, `ldb`, `ldc`, `ldd`, `batch_count`
    sizes: [I; 8],
    alpha: *const c_void,
    beta: *const c_void,
    /// `A`, `B`, `C` and `D`
    places: [Place<c_void>; 4],
    types: [rocblas_datatype; 4],
    compute: rocblas_datatype,
}

const F16: rocblas_datatype = rocblas_datatype::rocblas_datatype_f16_r;
const BF16: rocblas_datatype = rocblas_datatype::rocblas_datatype_bf16_r;
const F32: rocblas_datatype = rocblas_datatype::rocblas_datatype_f32_r;
const F64: rocblas_datatype = rocblas_datatype::rocblas_datatype_f64_r;
const C32: rocblas_datatype = rocblas_datatype::rocblas_datatype_f32_c;
const C64: rocblas_datatype = rocblas_datatype::rocblas_datatype_f64_c;

/// A call whose sizes were checked.
struct Call {
    name: &'static str,
    handle: Handle,
    ops: [Op; 2],
    /// `m`, `n`, `k`
    dims: [usize; 3],
    ld: [usize; 4],
    count: usize,
    alpha: *const c_void,
    beta: *const c_void,
    places: [Place<c_void>; 4],
    types: [rocblas_datatype; 4],
}

/// # Safety
/// The C caller's duties: `alpha` and `beta` are null or, in host pointer mode, readable as the
/// compute type; the matrices (and the arrays that name them) are not touched by others until the
/// stream has passed this call.
unsafe fn gemm_ex<I: Int>(name: &'static str, arguments: Arguments<I>) -> Outcome {
    let handle = handle::current(arguments.handle)?;
    let ops = [operation(arguments.trans[0])?, operation(arguments.trans[1])?];
    let [m, n, k, lda, ldb, ldc, ldd, count] = sizes(arguments.sizes)?;
    let enough = ldc >= m && ldd >= m && lda >= ops[0].stored(m, k).0 && ldb >= ops[1].stored(k, n).0;
    ensure(enough, rocblas_status::rocblas_status_invalid_size)?;
    // k == 0 is not among the quick returns: C must still be multiplied by beta.
    if m == 0 || n == 0 || count == 0 {
        return Ok(());
    }
    let missing = (k != 0 && arguments.alpha.is_null()) || arguments.beta.is_null() || arguments.places[3].is_null();
    ensure(!missing, rocblas_status::rocblas_status_invalid_pointer)?;
    let call = Call {
        name,
        handle,
        ops,
        dims: [m, n, k],
        ld: [lda, ldb, ldc, ldd],
        count,
        alpha: arguments.alpha,
        beta: arguments.beta,
        places: arguments.places,
        types: arguments.types,
    };
    // SAFETY: the caller's promise for the scalars, which are of the compute type.
    unsafe {
        match (arguments.types, arguments.compute) {
            ([F32, F32, F32, F32], F32) => call.uniform::<f32>(),
            ([F64, F64, F64, F64], F64) => call.uniform::<f64>(),
            ([C32, C32, C32, C32], C32) => call.uniform::<Complex<f32>>(),
            ([C64, C64, C64, C64], C64) => call.uniform::<Complex<f64>>(),
            ([F16, F16, F16, F16], F16) => call.mixed::<f16, f16, f16>(),
            ([F16, F16, F16, F16], F32) => call.mixed::<f16, f16, f32>(),
            ([F16, F16, F32, F32], F32) => call.mixed::<f16, f32, f32>(),
            ([BF16, BF16, BF16, BF16], F32) => call.mixed::<bf16, bf16, f32>(),
            ([BF16, BF16, F32, F32], F32) => call.mixed::<bf16, f32, f32>(),
            _ => {
                call.check_in_place()?;
                Err(rocblas_status::rocblas_status_not_implemented)
            }
        }
    }
}

impl Call {
    /// `C` in the place of `D` must be the same matrix.
    fn check_in_place(&self) -> Outcome {
        let [_, _, c, d] = self.places;
        let [_, _, ldc, ldd] = self.ld;
        if !c.is(d) {
            return Ok(());
        }
        ensure(ldc == ldd, rocblas_status::rocblas_status_invalid_size)?;
        ensure(
            self.types[2] == self.types[3],
            rocblas_status::rocblas_status_invalid_value,
        )
    }

    /// The scalars, of the compute type. `alpha` is not read if `k` is 0.
    ///
    /// # Safety
    /// As for [`gemm_ex`].
    unsafe fn scalars<S: Narrow<W>, W: Scalar>(&self) -> Outcome<(W, W)> {
        // SAFETY: the caller's promise; null only where it is not read.
        let read =
            |pointer: *const c_void| unsafe { scalar(&self.handle, self.name, pointer.cast::<S>()).map(S::widen) };
        let beta = read(self.beta)?;
        let alpha = match self.dims[2] {
            0 => W::ZERO,
            _ => read(self.alpha)?,
        };
        Ok((alpha, beta))
    }

    /// Checks everything that the scalars say is used. `None` means that there is nothing to do.
    fn update<In, Out, W: Scalar>(&self, (alpha, beta): (W, W)) -> Outcome<Option<Update<In, Out, W>>> {
        let name = self.name;
        let [m, n, k] = self.dims;
        let (multiplies, adds) = (alpha != W::ZERO, beta != W::ZERO);
        let [a, b, c, d] = self.places;
        let missing = (adds && c.is_null()) || (multiplies && (a.is_null() || b.is_null()));
        ensure(!missing, rocblas_status::rocblas_status_invalid_pointer)?;
        self.check_in_place()?;
        let in_place = c.is(d);
        if in_place && !multiplies && beta == W::ONE {
            return Ok(None);
        }
        let [lda, ldb, ldc, ldd] = self.ld;
        let product = Product { m, n, k, alpha, beta };
        let update = Update {
            product,
            ops: self.ops,
            a: self.batch::<In>(a, self.ops[0].stored(m, k), lda),
            b: self.batch::<In>(b, self.ops[1].stored(k, n), ldb),
            c: self.batch::<Out>(c, (m, n), ldc),
            d: self.batch::<Out>(d, (m, n), ldd),
        };
        let result = &update.d;
        if multiplies {
            for (argument, operand) in [("A", &update.a), ("B", &update.b)] {
                operand.check(name, argument)?;
                ensure_elements_apart(name, argument, operand, result)?;
            }
        }
        if adds && !in_place {
            update.c.check(name, "C")?;
            ensure_elements_apart(name, "C", &update.c, result)?;
        }
        update.d.check_result(name, "D")?;
        Ok(Some(update))
    }

    fn batch<T>(&self, place: Place<c_void>, shape: (usize, usize), ld: usize) -> Batch<T> {
        Batch {
            place: place.cast(),
            shape,
            ld,
            count: self.count,
        }
    }

    /// All matrices have the compute type.
    ///
    /// # Safety
    /// As for [`gemm_ex`].
    unsafe fn uniform<T: Scalar>(self) -> Outcome {
        // SAFETY: the caller's promise.
        let scalars = unsafe { self.scalars::<T, T>()? };
        let Some(update) = self.update::<T, T, T>(scalars)? else {
            return Ok(());
        };
        // SAFETY: everything in use was checked, but for the matrices that an array names; the
        // caller promises that nothing else touches them.
        enqueue(&self.handle, self.name, move || unsafe {
            update.run_uniform(self.name);
        })
    }

    /// Operands of less precision than the compute type.
    ///
    /// # Safety
    /// As for [`gemm_ex`].
    unsafe fn mixed<In: Narrow<f32>, Out: Narrow<f32>, S: Narrow<f32>>(self) -> Outcome {
        // SAFETY: the caller's promise.
        let scalars = unsafe { self.scalars::<S, f32>()? };
        let Some(update) = self.update::<In, Out, f32>(scalars)? else {
            return Ok(());
        };
        let (handle, name) = (self.handle, self.name);
        // SAFETY: as in `uniform`.
        enqueue(&handle, name, move || unsafe { update.run_mixed(name) })
    }
}

families! {
    /// gemm_ex.
    pub(super) fn slots(rocblas_sys::Api);

    rocblas_ [any] [gemm] [plain_ex batched_ex strided_batched_ex] [32 64]
        (trans_a: rocblas_operation, trans_b: rocblas_operation, m: I, n: I, k: I, alpha: *const T,
         a: *const untyped(a_type: rocblas_datatype, lda: I), b: *const untyped(b_type: rocblas_datatype, ldb: I),
         beta: *const T,
         c: *const untyped(c_type: rocblas_datatype, ldc: I), d: *mut untyped(d_type: rocblas_datatype, ldd: I),
         batch_count: batch, compute: rocblas_datatype, _algo: rocblas_gemm_algo, _solution_index: i32, _flags: u32)
        => |name, handle| {
            let arguments = Arguments {
                handle,
                trans: [trans_a, trans_b],
                sizes: [m, n, k, lda, ldb, ldc, ldd, batch_count],
                alpha,
                beta,
                places: [a, b, c, d],
                types: [a_type, b_type, c_type, d_type],
                compute,
            };
            gemm_ex(name, arguments)
        };
}
