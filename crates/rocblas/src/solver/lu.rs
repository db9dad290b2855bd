use std::cell::OnceCell;
use std::fmt;
use std::marker::PhantomData;

use hip::DeviceSlice;

use super::call::{Call, square};
use super::held::Held;
use super::info::{Failure, Info, Meaning};
use super::matrices::{Matrices, Single};
use super::pivots::Pivots;
use crate::functions::solver::SolverRoutines;
use crate::size::int;
use crate::{Handle, Op, Result, Scalar};

/// The factors `A = P * L * U` of a matrix, or of each matrix of a batch, from [`getrf`], [`getrf_npvt`] or [`gesv`].
///
/// `U` is the upper triangle with its diagonal, `L` the lower one with ones on its diagonal; both are where `A` was.
/// The factors borrow that memory, so nothing else writes it while they are used, and their pivots cannot be mistaken
/// for others.
///
/// ```compile_fail,E0382
/// # use rocblas::{Handle, Matrix, Op, Result, solver};
/// # type Buffer = hip::DeviceBuffer<f32>;
/// fn overwritten(blas: &Handle, a: &mut Buffer, b: &mut Buffer) -> Result<()> {
///     let lu = solver::getrf(blas, Matrix::new(a, 2, 2, 2))?;
///     solver::getri(blas, lu)?.check()?;
///     // The factors are gone: their inverse is in their place.
///     solver::getrs(blas, Op::None, &lu, Matrix::new(b, 2, 1, 2))
/// }
/// ```
///
/// ```compile_fail,E0502
/// # use rocblas::{Handle, Matrix, Op, Result, solver};
/// # type Buffer = hip::DeviceBuffer<f32>;
/// fn read_meanwhile(blas: &Handle, a: &mut Buffer, b: &mut Buffer) -> Result<()> {
///     let lu = solver::getrf(blas, Matrix::new(&mut *a, 2, 2, 2))?;
///     a.copy_to_slice(blas.stream(), &mut [0.0; 4])?;
///     solver::getrs(blas, Op::None, &lu, Matrix::new(b, 2, 1, 2))
/// }
/// ```
#[must_use = "a singular matrix is reported only through `Lu::check`"]
pub struct Lu<'h, T, F = Single> {
    factors: Held<'h, T>,
    form: PhantomData<fn() -> F>,
    /// Filled at once, or at the first need if nothing was exchanged.
    pivots: OnceCell<Pivots>,
    info: Info,
}

impl<'h, T, F> Lu<'h, T, F> {
    fn new(factors: Held<'h, T>, pivots: OnceCell<Pivots>, info: Info) -> Self {
        Self {
            factors,
            form: PhantomData,
            pivots,
            info,
        }
    }

    /// Waits for the factorisation and returns whether each `U` has an inverse. May be called again.
    ///
    /// Work that uses the factors can be queued before; with a singular matrix its results are infinite or not numbers.
    ///
    /// # Errors
    ///
    /// [`Error::Singular`](crate::Error::Singular), for a batch in an [`Error::InBatch`](crate::Error::InBatch). The
    /// factors are complete then, too: `P * L * U` is the matrix. Or earlier work of the stream failed.
    pub fn check(&self) -> Result<()> {
        self.info.check()
    }

    /// The findings of the factorisation, for a caller that no longer needs the factors.
    pub fn into_info(self) -> Info {
        self.info
    }

    /// Waits for the factorisation and returns which matrices are singular, in ascending order.
    ///
    /// # Errors
    ///
    /// Earlier work of the stream failed.
    pub fn failures(&self) -> Result<Vec<Failure>> {
        self.info.failures()
    }

    /// The exchanged rows; `None` for factors of [`getrf_npvt`], which exchanges none (unless a solve needed them spelt
    /// out).
    pub fn pivots(&self) -> Option<&Pivots> {
        self.pivots.get()
    }

    /// The pivots, made if need be.
    fn spelt_out(&self, call: &Call<'_>, n: usize) -> Result<&Pivots> {
        if let Some(pivots) = self.pivots.get() {
            return Ok(pivots);
        }
        let identity = call.identity_pivots(n)?;
        Ok(self.pivots.get_or_init(|| identity))
    }
}

impl<T> Lu<'_, T> {
    /// The memory with both factors, from the matrix's first element to its last.
    pub fn factors(&self) -> DeviceSlice<'_, T> {
        self.factors.elements()
    }
}

impl<T, F> fmt::Debug for Lu<'_, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lu")
            .field("layout", &self.factors.layout())
            .field("pivots", &self.pivots.get())
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

/// The factors of `a` (m x n), in its place, with rows exchanged for the largest pivot of each column.
///
/// # Errors
///
/// `a` does not fit its memory or can't be used on the handle's stream, there is no rocSOLVER, or it refused the call. [`Lu::check`] reports a singular
/// matrix.
#[doc(alias(
    "rocsolver_sgetrf",
    "rocsolver_dgetrf",
    "rocsolver_cgetrf",
    "rocsolver_zgetrf",
    "rocsolver_cgetrf_strided_batched",
    "rocsolver_zgetrf_strided_batched"
))]
pub fn getrf<'h, A>(handle: &'h Handle, a: A) -> Result<Lu<'h, A::Scalar, A::Form>>
where
    A: Matrices + 'h,
{
    let (call, a) = Call::new(handle, "getrf", "a", a)?;
    factorised(&call, a)
}

/// [`getrf`] of what its call has taken.
fn factorised<'h, T: Scalar, F>(call: &Call<'_>, a: Held<'h, T>) -> Result<Lu<'h, T, F>> {
    let (rows, cols) = (a.layout().rows, a.layout().cols);
    let least = rows.min(cols);
    let mut pivots = call.pivots(least)?;
    let mut info = call.info(Meaning::Singular, least)?;
    if !call.is_empty(least) {
        let (m, n) = (int("m", rows)?, int("n", cols)?);
        let operand = a.operand()?;
        // SAFETY: `a` is m x n and may be used on the handle's stream, as the call that took it checked; it is exclusive. There
        // are min(m, n) pivots and an integer of `info` for each matrix; their memory outlives the call on the stream.
        let called = unsafe {
            let (pivots, info) = (pivots.raw_mut()?, info.address_mut()?);
            T::getrf(call.target()?, m, n, operand, pivots, info)?
        };
        let accepted = call.done(called, || format!("m {m}, n {n}, {}", operand.distances("a")))?;
        (pivots, info) = (pivots.of(accepted), info.of(accepted));
    }
    Ok(Lu::new(a, OnceCell::from(pivots), info))
}

/// The factors of `a` (m x n), in its place, without exchanging rows.
///
/// Only for matrices that need no exchange, such as diagonally dominant ones: a small pivot costs digits, and a zero
/// one, which an exchange would have avoided, ends in [`Error::Singular`](crate::Error::Singular).
///
/// rocSOLVER's solvers still need pivots: the first use of the factors uploads some that exchange nothing, for which it
/// waits for the stream.
///
/// # Errors
///
/// As [`getrf`].
#[doc(alias(
    "rocsolver_sgetrf_npvt",
    "rocsolver_dgetrf_npvt",
    "rocsolver_cgetrf_npvt",
    "rocsolver_zgetrf_npvt"
))]
pub fn getrf_npvt<'h, A>(handle: &'h Handle, a: A) -> Result<Lu<'h, A::Scalar, A::Form>>
where
    A: Matrices + 'h,
{
    let (call, a) = Call::new(handle, "getrf_npvt", "a", a)?;
    let (rows, cols) = (a.layout().rows, a.layout().cols);
    let least = rows.min(cols);
    let mut info = call.info(Meaning::Singular, least)?;
    if !call.is_empty(least) {
        let (m, n) = (int("m", rows)?, int("n", cols)?);
        let operand = a.operand()?;
        // SAFETY: as in `getrf`.
        let called = unsafe { A::Scalar::getrf_npvt(call.target()?, m, n, operand, info.address_mut()?)? };
        let accepted = call.done(called, || format!("m {m}, n {n}, {}", operand.distances("a")))?;
        info = info.of(accepted);
    }
    Ok(Lu::new(a, OnceCell::new(), info))
}

/// Solves `op(A) * X = B` with the factors of an n x n `A`. `b` is n x (number of right-hand sides), and becomes `X`.
///
/// For batches, matrix `i` of `b` is solved with matrix `i` of the factors. [`Lu::check`] reports whether there is a
/// solution at all.
///
/// # Errors
///
/// The factors are not square, `b` has another number of rows or another count, one of them is of another stream, there
/// is no rocSOLVER, or it refused the call.
#[doc(alias("rocsolver_sgetrs", "rocsolver_dgetrs", "rocsolver_cgetrs", "rocsolver_zgetrs"))]
pub fn getrs<T, F, B>(handle: &Handle, op: Op, lu: &Lu<'_, T, F>, b: B) -> Result<()>
where
    T: Scalar,
    B: Matrices<Scalar = T, Form = F>,
{
    const CALL: &str = "getrs";
    let n = square(CALL, "lu", lu.factors.layout())?;
    let mut call = Call::on(handle, CALL, "lu", &lu.factors, false)?;
    call.computed("the factors of `lu`", lu.info.is_computed())?;
    let b = call.beside("b", b, n)?;
    let nrhs = b.layout().cols;
    if call.is_empty(n.min(nrhs)) {
        return Ok(());
    }
    let pivots = lu.spelt_out(&call, n)?;
    let (n, nrhs) = (int("n", n)?, int("right-hand sides", nrhs)?);
    let (from, to) = (lu.factors.operand()?, b.operand()?);
    // SAFETY: the factors are n x n and `b` is n x nrhs, as often and of one form; both may be used on the handle's
    // stream, as the calls that took them checked, and `b` is exclusive. rocSOLVER wrote the pivots in earnest (or they name each row itself,
    // or it computes nothing) and only reads them.
    let called = unsafe { T::getrs(call.target()?, op.raw(), n, nrhs, from, pivots.raw()?, to)? };
    call.done(called, || {
        let (a, b) = (from.distances("a"), to.distances("b"));
        format!("{op:?}, n {n}, nrhs {nrhs}, {a}, {b}")
    })?;
    Ok(())
}

/// The inverse of an n x n matrix from its factors, in their place.
///
/// # Errors
///
/// The factors are not square or of another stream, there is no rocSOLVER, or it refused the call.
/// [`Error::Unsupported`](crate::Error::Unsupported) for a batch by pointers before ROCm 6.1. [`Info::check`] reports a
/// singular matrix; there is no inverse then.
#[doc(alias("rocsolver_sgetri", "rocsolver_dgetri", "rocsolver_cgetri", "rocsolver_zgetri"))]
pub fn getri<T: Scalar, F>(handle: &Handle, lu: Lu<'_, T, F>) -> Result<Info> {
    const CALL: &str = "getri";
    let n = square(CALL, "lu", lu.factors.layout())?;
    let call = Call::on(handle, CALL, "lu", &lu.factors, true)?;
    call.inverts_triangles("lu", &lu.factors)?;
    call.computed("the factors of `lu`", lu.info.is_computed())?;
    let mut info = call.info(Meaning::Singular, n)?;
    if !call.is_empty(n) {
        let pivots = lu.spelt_out(&call, n)?.raw()?;
        let n = int("n", n)?;
        let operand = lu.factors.operand()?;
        // SAFETY: the factors are n x n and may be used on the handle's stream, as the calls checked; they are exclusive. rocSOLVER wrote the pivots in earnest (or they name each row itself, or it computes nothing) and
        // only reads them; `info` has an integer for each matrix.
        let called = unsafe { T::getri(call.target()?, n, operand, pivots, info.address_mut()?)? };
        info = info.of(call.done(called, || format!("n {n}, {}", operand.distances("a")))?);
    }
    // The same zero on the diagonal of `U` is what this call reports.
    lu.info.superseded();
    Ok(info)
}

/// The inverse of an n x n matrix from its factors, in `c`, which is n x n too. The factors stay.
///
/// # Errors
///
/// The factors are not square, `c` has another shape or count, one of them is of another stream, there is no rocSOLVER,
/// or it refused the call. [`Info::check`] reports a singular matrix; there is no inverse then.
#[doc(alias(
    "rocsolver_sgetri_outofplace",
    "rocsolver_dgetri_outofplace",
    "rocsolver_cgetri_outofplace",
    "rocsolver_zgetri_outofplace"
))]
pub fn getri_outofplace<T, F, C>(handle: &Handle, lu: &Lu<'_, T, F>, c: C) -> Result<Info>
where
    T: Scalar,
    C: Matrices<Scalar = T, Form = F>,
{
    const CALL: &str = "getri_outofplace";
    let n = square(CALL, "lu", lu.factors.layout())?;
    square(CALL, "c", c.layout())?;
    let mut call = Call::on(handle, CALL, "lu", &lu.factors, false)?;
    call.computed("the factors of `lu`", lu.info.is_computed())?;
    let c = call.beside("c", c, n)?;
    let mut info = call.info(Meaning::Singular, n)?;
    if !call.is_empty(n) {
        let pivots = lu.spelt_out(&call, n)?.raw()?;
        let n = int("n", n)?;
        let (from, to) = (lu.factors.operand()?, c.operand()?);
        // SAFETY: as in `getri`; `c` is as large, of the same form, was checked likewise, and is exclusive.
        let called = unsafe {
            let info = info.address_mut()?;
            T::getri_outofplace(call.target()?, n, from, pivots, to, info)?
        };
        let accepted = call.done(called, || {
            format!("n {n}, {}, {}", from.distances("a"), to.distances("c"))
        })?;
        info = info.of(accepted);
    }
    Ok(info)
}

/// Solves `A * X = B` for an n x n `a` and an n x (number of right-hand sides) `b`, which becomes `X`. Returns the
/// factors of `A`, which are in the place of `a`.
///
/// # Errors
///
/// `a` is not square, `b` has another number of rows or another count, one of them is of another stream, there is no
/// rocSOLVER, or it refused the call. [`Lu::check`] reports a singular matrix; there is no solution then.
#[doc(alias("rocsolver_sgesv", "rocsolver_dgesv", "rocsolver_cgesv", "rocsolver_zgesv"))]
pub fn gesv<'h, A, B>(handle: &'h Handle, a: A, b: B) -> Result<Lu<'h, A::Scalar, A::Form>>
where
    A: Matrices + 'h,
    B: Matrices<Scalar = A::Scalar, Form = A::Form>,
{
    let (call, a, b) = Call::pair(handle, "gesv", a, b)?;
    let (n, nrhs) = (a.layout().rows, b.layout().cols);
    if nrhs == 0 {
        // rocSOLVER would do nothing; the factors are wanted all the same.
        return factorised(&call, a);
    }
    let mut pivots = call.pivots(n)?;
    let mut info = call.info(Meaning::Singular, n)?;
    if !call.is_empty(n) {
        let (n, nrhs) = (int("n", n)?, int("right-hand sides", nrhs)?);
        let (from, to) = (a.operand()?, b.operand()?);
        // SAFETY: `a` is n x n and `b` is n x nrhs, as often and of one form; both may be used on the handle's stream, as
        // the call that took them checked, and are exclusive. There are n pivots and an integer of `info` for each matrix.
        let called = unsafe {
            let (pivots, info) = (pivots.raw_mut()?, info.address_mut()?);
            A::Scalar::gesv(call.target()?, n, nrhs, from, pivots, to, info)?
        };
        let accepted = call.done(called, || {
            let (a, b) = (from.distances("a"), to.distances("b"));
            format!("n {n}, nrhs {nrhs}, {a}, {b}")
        })?;
        (pivots, info) = (pivots.of(accepted), info.of(accepted));
    }
    Ok(Lu::new(a, OnceCell::from(pivots), info))
}
