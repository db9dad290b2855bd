use std::fmt;

use super::call::Call;
use super::info::{Failure, Info, Meaning};
use super::matrices::Matrices;
use crate::functions::solver::CholeskyRoutines;
use crate::size::int;
use crate::{Fill, Handle, Result};

/// The Cholesky factor of a Hermitian positive-definite matrix, or of each matrix of a batch, from [`potrf`] or
/// [`posv`]: `U` with `U^H * U = A` for [`Fill::Upper`], `L` with `L * L^H = A` for [`Fill::Lower`]. It is in the place
/// of that triangle of `A`.
#[must_use = "a matrix that is not positive definite is reported only through `Cholesky::check`"]
pub struct Cholesky<A: Matrices> {
    factor: A,
    fill: Fill,
    /// `None` if the factor was made elsewhere.
    info: Option<Info>,
}

impl<A: Matrices> Cholesky<A> {
    /// A factor that was made elsewhere, in the triangle `fill` of `factor`. Its other triangle is not read.
    ///
    /// # Errors
    ///
    /// `factor` is not square.
    pub fn from_factor(fill: Fill, factor: A) -> Result<Self> {
        super::call::square("Cholesky::from_factor", "factor", factor.shape())?;
        Ok(Self {
            factor,
            fill,
            info: None,
        })
    }

    /// Waits for the factorisation and returns whether each matrix is positive definite. May be called again.
    ///
    /// Work that uses the factor can be queued before; if the factorisation stopped, its results mean nothing.
    ///
    /// # Errors
    ///
    /// [`Error::NotPositiveDefinite`](crate::Error::NotPositiveDefinite), for a batch in an
    /// [`Error::InBatch`](crate::Error::InBatch). Or earlier work of the stream failed.
    pub fn check(&self) -> Result<()> {
        self.info.as_ref().map_or(Ok(()), Info::check)
    }

    /// Waits for the factorisation and returns which matrices are not positive definite, in ascending order.
    ///
    /// # Errors
    ///
    /// Earlier work of the stream failed.
    pub fn failures(&self) -> Result<Vec<Failure>> {
        self.info.as_ref().map_or(Ok(Vec::new()), Info::failures)
    }

    /// The findings of the factorisation, for a caller that no longer needs the factor; `None` if it was made
    /// elsewhere.
    pub fn into_info(self) -> Option<Info> {
        self.info
    }

    /// The memory with the factor in one triangle.
    pub fn factor(&self) -> &A {
        &self.factor
    }

    /// Which triangle.
    pub fn fill(&self) -> Fill {
        self.fill
    }

    pub(super) fn into_parts(self) -> (A, Option<Info>) {
        (self.factor, self.info)
    }
}

impl<A: Matrices> fmt::Debug for Cholesky<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cholesky")
            .field("shape", &self.factor.shape())
            .field("fill", &self.fill)
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

/// The Cholesky factor of the Hermitian positive-definite n x n matrix whose triangle `fill` is in `a`, in its place.
/// The other triangle is not touched.
///
/// # Errors
///
/// `a` is not square or was taken for another stream, there is no rocSOLVER, or it refused the call.
/// [`Cholesky::check`] reports a matrix that is not positive definite.
#[doc(alias(
    "rocsolver_spotrf",
    "rocsolver_dpotrf",
    "rocsolver_cpotrf",
    "rocsolver_zpotrf",
    "rocsolver_cpotrf_strided_batched",
    "rocsolver_zpotrf_strided_batched"
))]
pub fn potrf<A: Matrices>(handle: &Handle, fill: Fill, a: A) -> Result<Cholesky<A>> {
    let call = Call::new(handle, "potrf", "a", &a)?;
    let n = call.square("a", &a)?;
    let mut info = call.info(Meaning::NotPositiveDefinite, n)?;
    if !call.is_empty(n) {
        let n = int("n", n)?;
        let operand = a.operand()?;
        // SAFETY: `a` is n x n, was checked when it was made and against the handle's stream, and is exclusive; `info`
        // has an integer for each matrix, which lives until the stream is past this call.
        let called = unsafe { A::Scalar::potrf(call.target()?, fill.raw(), n, operand, info.address_mut()?)? };
        let accepted = call.done(called, || format!("{fill:?}, n {n}, {}", operand.distances("a")))?;
        info = info.of(accepted);
    }
    Ok(Cholesky {
        factor: a,
        fill,
        info: Some(info),
    })
}

/// Solves `A * X = B` with the factor of an n x n `A`. `b` is n x (number of right-hand sides), and becomes `X`.
///
/// For batches, matrix `i` of `b` is solved with factor `i`. [`Cholesky::check`] reports whether there is a solution at
/// all.
///
/// # Errors
///
/// `b` has another number of rows or another count than the factor, one of them is of another stream, there is no
/// rocSOLVER, or it refused the call.
#[doc(alias("rocsolver_spotrs", "rocsolver_dpotrs", "rocsolver_cpotrs", "rocsolver_zpotrs"))]
pub fn potrs<A, B>(handle: &Handle, cholesky: &Cholesky<A>, b: B) -> Result<()>
where
    A: Matrices,
    B: Matrices<Scalar = A::Scalar, Form = A::Form>,
{
    let call = Call::new(handle, "potrs", "cholesky", &cholesky.factor)?;
    let n = call.square("cholesky", &cholesky.factor)?;
    call.computed("the factor of `cholesky`", is_computed(&cholesky.info))?;
    let nrhs = call.beside("b", &b, n)?;
    if call.is_empty(n.min(nrhs)) {
        return Ok(());
    }
    let (n, nrhs) = (int("n", n)?, int("right-hand sides", nrhs)?);
    let (from, to) = (cholesky.factor.operand()?, b.operand()?);
    let fill = cholesky.fill;
    // SAFETY: the factor is n x n and `b` is n x nrhs, as often; both were checked when they were made and against the
    // handle's stream, and `b` is exclusive.
    let called = unsafe { A::Scalar::potrs(call.target()?, fill.raw(), n, nrhs, from, to)? };
    call.done(called, || {
        let (a, b) = (from.distances("a"), to.distances("b"));
        format!("{fill:?}, n {n}, nrhs {nrhs}, {a}, {b}")
    })?;
    Ok(())
}

/// The inverse of a matrix from its Cholesky factor, in its place: one triangle of the Hermitian result, the factor's.
/// The other triangle is not touched; [`Mirror`](super::Mirror) completes it.
///
/// # Errors
///
/// The factor is of another stream, there is no rocSOLVER, or it refused the call.
/// [`Error::Unsupported`](crate::Error::Unsupported) for a batch by pointers before ROCm 6.1. [`Info::check`] reports a
/// matrix that was not positive definite or is singular; there is no inverse then.
#[doc(alias(
    "rocsolver_spotri",
    "rocsolver_dpotri",
    "rocsolver_cpotri",
    "rocsolver_zpotri",
    "rocsolver_cpotri_strided_batched",
    "rocsolver_zpotri_strided_batched"
))]
pub fn potri<A: Matrices>(handle: &Handle, cholesky: Cholesky<A>) -> Result<Info> {
    let fill = cholesky.fill;
    let (factor, factorised) = cholesky.into_parts();
    invert(handle, fill, &factor, factorised)
}

/// Whether there is a factor; a factor made elsewhere counts.
fn is_computed(info: &Option<Info>) -> bool {
    info.as_ref().is_none_or(Info::is_computed)
}

/// [`potri`] of a factor that no later solve uses.
pub(super) fn invert<A: Matrices>(handle: &Handle, fill: Fill, factor: &A, factorised: Option<Info>) -> Result<Info> {
    let call = Call::new(handle, "potri", "cholesky", factor)?;
    call.inverts_triangles::<A>("cholesky")?;
    let n = call.square("cholesky", factor)?;
    call.computed("the factor of `cholesky`", is_computed(&factorised))?;
    let mut info = call.info(Meaning::Singular, n)?;
    if !call.is_empty(n) {
        let n = int("n", n)?;
        let operand = factor.operand()?;
        // SAFETY: as in `potrf`.
        let called = unsafe { A::Scalar::potri(call.target()?, fill.raw(), n, operand, info.address_mut()?)? };
        let accepted = call.done(called, || format!("{fill:?}, n {n}, {}", operand.distances("a")))?;
        info = info.of(accepted);
    }
    // A factorisation that stopped may leave a diagonal without zeros, which this call would call regular.
    Ok(match factorised {
        Some(factorised) => info.after(factorised),
        None => info,
    })
}

/// Solves `A * X = B` for the Hermitian positive-definite n x n matrix whose triangle `fill` is in `a`. `b` is n x
/// (number of right-hand sides), and becomes `X`. Returns the factor of `A`, which is in the place of that triangle.
///
/// # Errors
///
/// `a` is not square, `b` has another number of rows or another count, one of them is of another stream, there is no
/// rocSOLVER, or it refused the call. [`Cholesky::check`] reports a matrix that is not positive definite; there is no
/// solution then.
#[doc(alias("rocsolver_sposv", "rocsolver_dposv", "rocsolver_cposv", "rocsolver_zposv"))]
pub fn posv<A, B>(handle: &Handle, fill: Fill, a: A, b: B) -> Result<Cholesky<A>>
where
    A: Matrices,
    B: Matrices<Scalar = A::Scalar, Form = A::Form>,
{
    let call = Call::new(handle, "posv", "a", &a)?;
    let n = call.square("a", &a)?;
    let nrhs = call.beside("b", &b, n)?;
    if nrhs == 0 {
        // rocSOLVER would do nothing; the factor is wanted all the same.
        return potrf(handle, fill, a);
    }
    let mut info = call.info(Meaning::NotPositiveDefinite, n)?;
    if !call.is_empty(n) {
        let (n, nrhs) = (int("n", n)?, int("right-hand sides", nrhs)?);
        let (from, to) = (a.operand()?, b.operand()?);
        // SAFETY: `a` is n x n and `b` is n x nrhs, as often; both were checked when they were made and against the
        // handle's stream, and are exclusive. `info` has an integer for each matrix.
        let called = unsafe {
            let info = info.address_mut()?;
            A::Scalar::posv(call.target()?, fill.raw(), n, nrhs, from, to, info)?
        };
        let accepted = call.done(called, || {
            let (a, b) = (from.distances("a"), to.distances("b"));
            format!("{fill:?}, n {n}, nrhs {nrhs}, {a}, {b}")
        })?;
        info = info.of(accepted);
    }
    Ok(Cholesky {
        factor: a,
        fill,
        info: Some(info),
    })
}
