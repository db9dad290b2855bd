//! The entry points `rocblas_{s,d,c,z}gemv` and their `_64` forms: `y := alpha op(A) x + beta y`.
//!
//! Checks as in rocBLAS' library/src/blas2/rocblas_gemv.hpp: an increment of 0 is an invalid size,
//! and so is a leading dimension of 0, also for an empty matrix.

use rocblas_sys::{rocblas_handle, rocblas_operation, rocblas_status};

use super::arguments::{Carried, Int, Strided, check_batch, ensure, operation, sizes};
use super::family::families;
use super::handle;
use super::level1::Given;
use super::pointer_mode::with_scalars;
use super::product::{Operands, Product};
use super::scalar::Scalar;
use super::schedule::for_pieces;
use super::status::Outcome;
use super::vector::{Elements, Vector};
use super::view::{Op, Source, Target};

struct Arguments<T, I> {
    handle: rocblas_handle,
    trans: rocblas_operation,
    /// `m`, `n`, `lda`
    sizes: [I; 3],
    alpha: *const T,
    a: *const T,
    x: Given<T, I>,
    beta: *const T,
    y: Given<T, I>,
}

/// # Safety
/// The C caller's duties: `alpha` and `beta` are null or, in host pointer mode, readable; the
/// operands are not touched by others until the stream has passed this call.
unsafe fn gemv<T: Scalar, I: Int>(name: &'static str, arguments: Arguments<T, I>) -> Outcome {
    let invalid_pointer = rocblas_status::rocblas_status_invalid_pointer;
    let handle = handle::current(arguments.handle)?;
    let op = operation(arguments.trans)?;
    let Arguments { a, x, y, .. } = arguments;
    let [m, n, lda] = sizes(arguments.sizes)?;
    ensure(
        lda >= m.max(1) && x.inc.signed() != 0 && y.inc.signed() != 0,
        rocblas_status::rocblas_status_invalid_size,
    )?;
    if m == 0 || n == 0 {
        return Ok(());
    }
    let (rows, cols) = op.stored(m, n);
    let (x, y) = (x.of(cols), y.of(rows));
    let matrix = Carried(a);
    let check = move |[alpha, beta]: [T; 2]| {
        if alpha == T::ZERO && beta == T::ONE {
            return Ok(false);
        }
        y.check_result(name, "y")?;
        if alpha != T::ZERO {
            let a = matrix.get();
            ensure(!a.is_null(), invalid_pointer)?;
            let strided = Strided {
                ptr: a,
                ld: lda,
                stride: 0,
            };
            check_batch(name, "A", strided, (m, n), 1)?;
            x.check(name, "x")?;
            x.ensure_apart(name, "x", y.elements())?;
            y.ensure_apart(name, "A", Elements::of_matrix(a, (m, n), lda))?;
        }
        Ok(true)
    };
    let work = move |[alpha, beta]: [T; 2]| {
        let a = Source {
            ptr: matrix.get(),
            ld: lda,
            op,
        };
        // SAFETY: `check` looked at all that is touched here; the caller promises that nothing else
        // touches it.
        unsafe { compute((rows, cols), alpha, a, x, beta, y) };
    };
    // SAFETY: the caller's promise for `alpha` and `beta`.
    unsafe { with_scalars(&handle, name, [arguments.alpha, arguments.beta], check, work) }
}

/// The product goes through the matrix product's kernels, on vectors without gaps.
///
/// # Safety
/// `y` has `rows` elements that are writable and, if `beta` is not 0, initialised. If `alpha` is
/// not 0, `a` has `rows` x `cols` readable elements (after its operation) and `x` has `cols`.
unsafe fn compute<T: Scalar>(
    (rows, cols): (usize, usize),
    alpha: T,
    a: Source<T>,
    x: Vector<T>,
    beta: T,
    y: Vector<T>,
) {
    let mut product = vec![T::ZERO; rows];
    if alpha != T::ZERO {
        // SAFETY: the caller's promise.
        let packed: Vec<T> = (0..cols).map(|i| unsafe { x.at(i).read() }).collect();
        let plan = Product {
            m: rows,
            n: 1,
            k: cols,
            alpha,
            beta: T::ZERO,
        };
        let operands = Operands {
            a,
            b: Source {
                ptr: packed.as_ptr(),
                ld: cols,
                op: Op::None,
            },
            c: Target {
                ptr: product.as_mut_ptr(),
                ld: rows,
            },
        };
        // SAFETY: the caller's promise for `a`; the others were made here with these shapes.
        unsafe { plan.run(1, |_| operands) };
    }
    for_pieces(rows, |range| {
        for i in range {
            // SAFETY: the caller's promise; every element is written once.
            unsafe {
                let y = y.at(i);
                y.write(if beta == T::ZERO {
                    product[i]
                } else {
                    product[i] + beta * y.read()
                });
            }
        }
    });
}

families! {
    /// gemv.
    pub(super) fn slots(rocblas_sys::Api);

    rocblas_ [s d c z] [gemv] [plain] [32 64]
        (trans: rocblas_operation, m: I, n: I, alpha: *const T, a: *const T, lda: I, x: *const T, incx: I,
         beta: *const T, y: *mut T, incy: I)
        => |name, handle| {
            let (x, y) = (Given::new(x, incx), Given::new(y, incy));
            let (alpha, a, beta) = (alpha.cast(), a.cast(), beta.cast());
            gemv::<E, I>(name, Arguments { handle, trans, sizes: [m, n, lda], alpha, a, x, beta, y })
        };
}
