//! rocSOLVER's inverses and solutions on shared memory, in stream order after OpenCL's work.
//!
//! | function | what | C API |
//! |---|---|---|
//! | [`hermitian_inverse`] | the inverse of a Hermitian positive-definite matrix, both triangles | `rocsolver_?potrf`, `?potri` |
//! | [`inverse`] | the inverse of a general matrix | `rocsolver_?getrf`, `?getri` |
//! | [`hermitian_solve`] | `A * X = B` for a Hermitian positive-definite `A` | `rocsolver_?posv` |
//! | [`solve`] | `A * X = B` for a general `A` | `rocsolver_?gesv` |
//!
//! Each takes one matrix ([`Matrix`](crate::blas::Matrix)), a batch at a stride ([`Batch`](crate::blas::Batch)) or a
//! batch of pointers ([`Pointers`](crate::blas::Pointers)), and works in place: the call takes the guards for writing
//! on the handle's stream, queues the library's calls one after the other, and returns. Later users of the memory, on
//! either API, come after them. Matrices are column-major, sizes in elements, as in [`blas`](crate::blas).
//!
//! Whether a matrix had an inverse is known once the device has done the work; see [`Findings`].
//!
//! Sources: rocSOLVER, library/include/rocsolver/rocsolver-functions.h.

mod findings;
mod in_place;

pub use findings::Findings;
pub use in_place::InPlace;
use in_place::sealed::Take;
pub use rocblas::solver::{Failure, Mirror};
use rocblas::{Fill, Handle, solver};

use crate::Result;
use crate::blas::{Name, check_apart};

/// The whole inverse of the Hermitian positive-definite n x n matrix whose triangle `fill` is in `a`, in its place. The
/// `mirror` copies the triangle that potri writes to the other one; make it once.
///
/// # Errors
/// `a` is not square or does not fit its memory, there is no rocSOLVER, the library refused a call, or a guard was
/// refused. [`Findings::check`] reports a matrix that is not positive definite; there is no inverse then.
#[doc(alias("rocsolver_cpotrf", "rocsolver_cpotri"))]
pub fn hermitian_inverse<A: InPlace>(
    handle: &Handle,
    mirror: &Mirror<A::Scalar>,
    fill: Fill,
    a: A,
) -> Result<Findings> {
    let name = Name {
        call: "hermitian_inverse",
        argument: "a",
    };
    let (_, a) = a.take(name, handle.stream())?;
    Ok(solver::hermitian_inverse(handle, mirror, fill, a)?.into())
}

/// The inverse of the general n x n matrix in `a`, in its place, by LU factors with partial pivoting.
///
/// # Errors
/// As [`hermitian_inverse`]. [`Findings::check`] reports a singular matrix; there is no inverse then.
#[doc(alias("rocsolver_cgetrf", "rocsolver_cgetri"))]
pub fn inverse<A: InPlace>(handle: &Handle, a: A) -> Result<Findings> {
    let name = Name {
        call: "inverse",
        argument: "a",
    };
    let (_, a) = a.take(name, handle.stream())?;
    let lu = solver::getrf(handle, a)?;
    Ok(solver::getri(handle, lu)?.into())
}

/// Solves `A * X = B` for the n x n matrix in `a`. `b` is n x (number of right-hand sides), and becomes `X`; `a`
/// becomes its LU factors. For batches, matrix `i` of `b` is solved with matrix `i` of `a`.
///
/// # Errors
/// `b` has another number of rows or another count than `a`, the two overlap, or as [`hermitian_inverse`].
/// [`Findings::check`] reports a singular matrix; there is no solution then.
#[doc(alias("rocsolver_cgesv"))]
pub fn solve<A, B>(handle: &Handle, a: A, b: B) -> Result<Findings>
where
    A: InPlace,
    B: InPlace<Scalar = A::Scalar, Form = A::Form>,
{
    let (a, b) = pair("solve", handle, a, b)?;
    Ok(solver::gesv(handle, a, b)?.into_info().into())
}

/// Solves `A * X = B` for the Hermitian positive-definite n x n matrix whose triangle `fill` is in `a`. `b` is n x
/// (number of right-hand sides), and becomes `X`; the triangle becomes its Cholesky factor.
///
/// # Errors
/// As [`solve`]. [`Findings::check`] reports a matrix that is not positive definite; there is no solution then.
#[doc(alias("rocsolver_cposv"))]
pub fn hermitian_solve<A, B>(handle: &Handle, fill: Fill, a: A, b: B) -> Result<Findings>
where
    A: InPlace,
    B: InPlace<Scalar = A::Scalar, Form = A::Form>,
{
    let (a, b) = pair("hermitian_solve", handle, a, b)?;
    let factor = solver::posv(handle, fill, a, b)?;
    Ok(Findings::from_option(factor.into_info()))
}

type Held<'s, A> = <A as Take<<A as InPlace>::Scalar, <A as InPlace>::Form>>::Matrices<'s>;

fn pair<'s, A, B>(call: &'static str, handle: &'s Handle, a: A, b: B) -> Result<(Held<'s, A>, Held<'s, B>)>
where
    A: InPlace + 's,
    B: InPlace + 's,
{
    let stream = handle.stream();
    let name = |argument| Name { call, argument };
    let (at_a, a) = a.take(name("a"), stream)?;
    let (at_b, b) = b.take(name("b"), stream)?;
    check_apart(call, &at_b, &[&at_a])?;
    Ok((a, b))
}
