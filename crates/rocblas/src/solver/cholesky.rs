use std::fmt;
use std::marker::PhantomData;

use hip::DeviceSlice;

use super::call::{Call, square};
use super::held::Held;
use super::info::{Failure, Info, Meaning};
use super::inverse::Mirror;
use super::matrices::{Matrices, Single};
use crate::functions::solver::SolverRoutines;
use crate::operands;
use crate::size::int;
use crate::{Fill, Handle, Result, Scalar};

/// The Cholesky factor of a Hermitian positive-definite matrix, or of each matrix of a batch, from [`potrf`] or
/// [`posv`]: `U` with `U^H * U = A` for [`Fill::Upper`], `L` with `L * L^H = A` for [`Fill::Lower`]. It is in the place
/// of that triangle of `A`.
#[must_use = "a matrix that is not positive definite is reported only through `Cholesky::check`"]
pub struct Cholesky<'h, T, F = Single> {
    factor: Held<'h, T>,
    form: PhantomData<fn() -> F>,
    fill: Fill,
    /// `None` if the factor was made elsewhere.
    info: Option<Info>,
}

impl<'h, T, F> Cholesky<'h, T, F> {
    /// A factor that was made elsewhere, in the triangle `fill` of `factor`, for calls of this handle. Its other triangle
    /// is not read.
    ///
    /// # Errors
    ///
    /// `factor` is not square, does not fit its memory, or can't be used on the handle's stream.
    pub fn from_factor<A>(handle: &'h Handle, fill: Fill, factor: A) -> Result<Self>
    where
        A: Matrices<Scalar = T, Form = F> + 'h,
    {
        const CALL: &str = "Cholesky::from_factor";
        square(CALL, "factor", factor.layout())?;
        let mut call = operands::Call::new(handle.stream(), CALL);
        Ok(Self::new(factor.take(&mut call, "factor")?, fill, None))
    }

    fn new(factor: Held<'h, T>, fill: Fill, info: Option<Info>) -> Self {
        Self {
            factor,
            form: PhantomData,
            fill,
            info,
        }
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

    /// Which triangle.
    pub fn fill(&self) -> Fill {
        self.fill
    }

    pub(super) fn into_parts(self) -> (Held<'h, T>, Option<Info>) {
        (self.factor, self.info)
    }
}

impl<T> Cholesky<'_, T> {
    /// The memory with the factor in one triangle, from the matrix's first element to its last.
    pub fn factor(&self) -> DeviceSlice<'_, T> {
        self.factor.elements()
    }
}

impl<T, F> fmt::Debug for Cholesky<'_, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cholesky")
            .field("layout", &self.factor.layout())
            .field("fill", &self.fill)
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

/// The inverse of a Hermitian matrix, or of each matrix of a batch, of which only one triangle is there: what [`potri`]
/// leaves. The other triangle still holds what it held before, so the memory is not yet the inverse.
///
/// The memory stays borrowed for as long as this value lives. [`complete`](Self::complete) makes it the whole matrix.
#[must_use = "only one triangle is the inverse, and a singular matrix is reported only through `Triangle::check`"]
pub struct Triangle<'h, T> {
    memory: Held<'h, T>,
    fill: Fill,
    info: Info,
}

impl<T: Scalar> Triangle<'_, T> {
    /// Copies the triangle, conjugated, into the other one, in order of the handle's stream. The memory is then the whole
    /// inverse, if [`Info::check`] finds that there is one.
    ///
    /// # Errors
    ///
    /// The kernel is for another device, or HIP refused the launch.
    pub fn complete(self, mirror: &Mirror<T>) -> Result<Info> {
        // The kernel is not part of the library, so it does not take part in size queries.
        if self.info.is_computed() {
            mirror.complete_held(self.fill, &self.memory)?;
        }
        Ok(self.info)
    }
}

impl<T> Triangle<'_, T> {
    /// Which triangle is the inverse.
    pub fn fill(&self) -> Fill {
        self.fill
    }

    /// Waits for the call and returns whether each matrix has an inverse, as [`Info::check`].
    ///
    /// # Errors
    ///
    /// As [`Info::check`].
    pub fn check(&self) -> Result<()> {
        self.info.check()
    }

    /// Waits for the call and returns which matrices have no inverse, as [`Info::failures`].
    ///
    /// # Errors
    ///
    /// As [`Info::failures`].
    pub fn failures(&self) -> Result<Vec<Failure>> {
        self.info.failures()
    }

    /// The findings alone, for a caller that reads one triangle only or completes the matrix itself.
    pub fn into_info(self) -> Info {
        self.info
    }
}

impl<T> fmt::Debug for Triangle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Triangle")
            .field("layout", &self.memory.layout())
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
/// `a` is not square, does not fit its memory or can't be used on the handle's stream, there is no rocSOLVER, or it
/// refused the call.
/// [`Cholesky::check`] reports a matrix that is not positive definite.
#[doc(alias(
    "rocsolver_spotrf",
    "rocsolver_dpotrf",
    "rocsolver_cpotrf",
    "rocsolver_zpotrf",
    "rocsolver_cpotrf_strided_batched",
    "rocsolver_zpotrf_strided_batched"
))]
pub fn potrf<'h, A>(handle: &'h Handle, fill: Fill, a: A) -> Result<Cholesky<'h, A::Scalar, A::Form>>
where
    A: Matrices + 'h,
{
    const CALL: &str = "potrf";
    square(CALL, "a", a.layout())?;
    let (call, a) = Call::new(handle, CALL, "a", a)?;
    factorised(&call, fill, a)
}

/// [`potrf`] of what its call has taken.
fn factorised<'h, T: Scalar, F>(call: &Call<'_>, fill: Fill, a: Held<'h, T>) -> Result<Cholesky<'h, T, F>> {
    let n = a.layout().rows;
    let mut info = call.info(Meaning::NotPositiveDefinite, n)?;
    if !call.is_empty(n) {
        let n = int("n", n)?;
        let operand = a.operand()?;
        // SAFETY: `a` is n x n and may be used on the handle's stream, as the call that took it checked; it is exclusive.
        // `info` has an integer for each matrix, which lives until the stream is past this call.
        let called = unsafe { T::potrf(call.target()?, fill.raw(), n, operand, info.address_mut()?)? };
        let accepted = call.done(called, || format!("{fill:?}, n {n}, {}", operand.distances("a")))?;
        info = info.of(accepted);
    }
    Ok(Cholesky::new(a, fill, Some(info)))
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
pub fn potrs<T, F, B>(handle: &Handle, cholesky: &Cholesky<'_, T, F>, b: B) -> Result<()>
where
    T: Scalar,
    B: Matrices<Scalar = T, Form = F>,
{
    let n = cholesky.factor.layout().rows;
    let mut call = Call::on(handle, "potrs", "cholesky", &cholesky.factor, false)?;
    call.computed("the factor of `cholesky`", is_computed(&cholesky.info))?;
    let b = call.beside("b", b, n)?;
    let nrhs = b.layout().cols;
    if call.is_empty(n.min(nrhs)) {
        return Ok(());
    }
    let (n, nrhs) = (int("n", n)?, int("right-hand sides", nrhs)?);
    let (from, to) = (cholesky.factor.operand()?, b.operand()?);
    let fill = cholesky.fill;
    // SAFETY: the factor is n x n and `b` is n x nrhs, as often and of one form; both may be used on the handle's stream,
    // as the calls that took them checked, and `b` is exclusive.
    let called = unsafe { T::potrs(call.target()?, fill.raw(), n, nrhs, from, to)? };
    call.done(called, || {
        let (a, b) = (from.distances("a"), to.distances("b"));
        format!("{fill:?}, n {n}, nrhs {nrhs}, {a}, {b}")
    })?;
    Ok(())
}

/// The inverse of a matrix from its Cholesky factor, in its place: one triangle of the Hermitian result, the factor's.
/// The other triangle is not touched; [`Triangle::complete`] fills it.
///
/// # Errors
///
/// The factor is of another stream, there is no rocSOLVER, or it refused the call.
/// [`Error::Unsupported`](crate::Error::Unsupported) for a batch by pointers before ROCm 6.1. [`Triangle::check`] reports
/// a matrix that was not positive definite or is singular; there is no inverse then.
#[doc(alias(
    "rocsolver_spotri",
    "rocsolver_dpotri",
    "rocsolver_cpotri",
    "rocsolver_zpotri",
    "rocsolver_cpotri_strided_batched",
    "rocsolver_zpotri_strided_batched"
))]
pub fn potri<'h, T: Scalar, F>(handle: &Handle, cholesky: Cholesky<'h, T, F>) -> Result<Triangle<'h, T>> {
    let fill = cholesky.fill;
    let (memory, factorised) = cholesky.into_parts();
    let info = invert(handle, fill, &memory, factorised)?;
    Ok(Triangle { memory, fill, info })
}

/// Whether there is a factor; a factor made elsewhere counts.
fn is_computed(info: &Option<Info>) -> bool {
    info.as_ref().is_none_or(Info::is_computed)
}

/// [`potri`] of a factor that no later solve uses.
pub(super) fn invert<T: Scalar>(
    handle: &Handle,
    fill: Fill,
    factor: &Held<'_, T>,
    factorised: Option<Info>,
) -> Result<Info> {
    let n = factor.layout().rows;
    let call = Call::on(handle, "potri", "cholesky", factor, true)?;
    call.inverts_triangles("cholesky", factor)?;
    call.computed("the factor of `cholesky`", is_computed(&factorised))?;
    let mut info = call.info(Meaning::Singular, n)?;
    if !call.is_empty(n) {
        let n = int("n", n)?;
        let operand = factor.operand()?;
        // SAFETY: as in `potrf`.
        let called = unsafe { T::potri(call.target()?, fill.raw(), n, operand, info.address_mut()?)? };
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
pub fn posv<'h, A, B>(handle: &'h Handle, fill: Fill, a: A, b: B) -> Result<Cholesky<'h, A::Scalar, A::Form>>
where
    A: Matrices + 'h,
    B: Matrices<Scalar = A::Scalar, Form = A::Form>,
{
    let (call, a, b) = Call::pair(handle, "posv", a, b)?;
    let (n, nrhs) = (a.layout().rows, b.layout().cols);
    if nrhs == 0 {
        // rocSOLVER would do nothing; the factor is wanted all the same.
        return factorised(&call, fill, a);
    }
    let mut info = call.info(Meaning::NotPositiveDefinite, n)?;
    if !call.is_empty(n) {
        let (n, nrhs) = (int("n", n)?, int("right-hand sides", nrhs)?);
        let (from, to) = (a.operand()?, b.operand()?);
        // SAFETY: `a` is n x n and `b` is n x nrhs, as often and of one form; both may be used on the handle's stream, as
        // the call that took them checked, and are exclusive. `info` has an integer for each matrix.
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
    Ok(Cholesky::new(a, fill, Some(info)))
}
