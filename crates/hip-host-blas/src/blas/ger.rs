//! The entry points `rocblas_{s,d}ger`, `rocblas_{c,z}{geru,gerc}` and their `_64` forms:
//! `A := alpha x y^T + A`, with `y^H` for gerc.
//!
//! Checks as in rocBLAS' library/src/blas2/rocblas_ger.hpp.

use rocblas_sys::{rocblas_handle, rocblas_status};

use super::arguments::{Carried, Int, Strided, check_batch, ensure, sizes};
use super::family::families;
use super::level1::Given;
use super::pointer_mode::with_scalars;
use super::scalar::Scalar;
use super::status::Outcome;
use super::vector::Elements;
use super::view::Target;
use super::{handle, schedule};

struct Arguments<T, I> {
    handle: rocblas_handle,
    /// `m`, `n`, `lda`
    sizes: [I; 3],
    alpha: *const T,
    x: Given<T, I>,
    y: Given<T, I>,
    a: *mut T,
}

/// # Safety
/// The C caller's duties: `alpha` is null or, in host pointer mode, readable; the operands are not
/// touched by others until the stream has passed this call.
unsafe fn ger<T: Scalar, I: Int>(name: &'static str, conjugate: bool, arguments: Arguments<T, I>) -> Outcome {
    let invalid_pointer = rocblas_status::rocblas_status_invalid_pointer;
    let handle = handle::current(arguments.handle)?;
    let Arguments { x, y, .. } = arguments;
    let [m, n, lda] = sizes(arguments.sizes)?;
    ensure(
        lda >= m.max(1) && x.inc.signed() != 0 && y.inc.signed() != 0,
        rocblas_status::rocblas_status_invalid_size,
    )?;
    if m == 0 || n == 0 {
        return Ok(());
    }
    let (x, y) = (x.of(m), y.of(n));
    let matrix = Carried(arguments.a);
    let check = move |[alpha]: [T; 1]| {
        if alpha == T::ZERO {
            return Ok(false);
        }
        let a = matrix.get().cast_const();
        x.check(name, "x")?;
        y.check(name, "y")?;
        ensure(!a.is_null(), invalid_pointer)?;
        let strided = Strided {
            ptr: a,
            ld: lda,
            stride: 0,
        };
        check_batch(name, "A", strided, (m, n), 1)?;
        let result = Elements::of_matrix(a, (m, n), lda);
        x.ensure_apart(name, "x", result)?;
        y.ensure_apart(name, "y", result)?;
        Ok(true)
    };
    let work = move |[alpha]: [T; 1]| {
        let a = Target {
            ptr: matrix.get(),
            ld: lda,
        };
        // SAFETY: `check` looked at all that is touched here; the caller promises that nothing else
        // touches it.
        let x: Vec<T> = (0..m).map(|i| unsafe { x.at(i).read() }).collect();
        schedule::for_each(n, m.saturating_mul(n).saturating_mul(8), |col| {
            // SAFETY: as above.
            let factor = unsafe { y.at(col).read() };
            let factor = alpha * if conjugate { factor.conjugate() } else { factor };
            for (row, x) in x.iter().enumerate() {
                // SAFETY: as above; each column is written by one thread.
                unsafe {
                    let a = a.from(row, col).ptr;
                    a.write(*x * factor + a.read());
                }
            }
        });
    };
    // SAFETY: the caller's promise for `alpha`.
    unsafe { with_scalars(&handle, name, [arguments.alpha], check, work) }
}

families! {
    /// ger, geru and gerc.
    pub(super) fn slots(rocblas_sys::Api);

    rocblas_ [s d] [ger] [plain] [32 64]
        (m: I, n: I, alpha: *const T, x: *const T, incx: I, y: *const T, incy: I, a: *mut T, lda: I)
        => |name, handle| {
            let (x, y) = (Given::new(x, incx), Given::new(y, incy));
            ger::<E, I>(name, false, Arguments { handle, sizes: [m, n, lda], alpha: alpha.cast(), x, y, a: a.cast() })
        };
    rocblas_ [c z] [geru] [plain] [32 64]
        (m: I, n: I, alpha: *const T, x: *const T, incx: I, y: *const T, incy: I, a: *mut T, lda: I)
        => |name, handle| {
            let (x, y) = (Given::new(x, incx), Given::new(y, incy));
            ger::<E, I>(name, false, Arguments { handle, sizes: [m, n, lda], alpha: alpha.cast(), x, y, a: a.cast() })
        };
    rocblas_ [c z] [gerc] [plain] [32 64]
        (m: I, n: I, alpha: *const T, x: *const T, incx: I, y: *const T, incy: I, a: *mut T, lda: I)
        => |name, handle| {
            let (x, y) = (Given::new(x, incx), Given::new(y, incy));
            ger::<E, I>(name, true, Arguments { handle, sizes: [m, n, lda], alpha: alpha.cast(), x, y, a: a.cast() })
        };
}
