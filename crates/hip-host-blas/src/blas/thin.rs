//! The streaming product for thin operands: `C := A B + beta C` with `A` tall and untransposed, and
//! few columns in `A` and `B`.
//!
//! A general product packs its operands so that they are reused from cache. With a handful of
//! columns there is nothing to reuse and packing doubles the traffic; here `A` is read once, `C` is
//! written once, and the whole of `B` stays in registers and first-level cache. A batch of
//! thousands of such products (a fine frequency search, a filter bank) runs at the speed of memory.

use super::scalar::{Real, Scalar};
use super::view::{Source, Target};

/// Beyond these sizes the general product is at least as fast: its packing pays for itself.
const MAX_COLS: usize = 16;
const MAX_DEPTH: usize = 64;
/// Below this height the tail of a column weighs more than its body.
const MIN_ROWS: usize = 32;

/// True if this kernel is the right one for an `m` x `k` times `k` x `n` product whose left operand
/// is not transposed.
pub(crate) fn suits(m: usize, n: usize, k: usize) -> bool {
    m >= MIN_ROWS && n <= MAX_COLS && k <= MAX_DEPTH
}

/// The right operand, multiplied by `alpha` and laid out in the order in which the kernel reads it.
pub(crate) struct Packed<T> {
    n: usize,
    k: usize,
    /// `[k][n]`
    values: [T; MAX_COLS * MAX_DEPTH],
}

impl<T: Scalar> Packed<T> {
    /// # Safety
    /// The `k` x `n` elements of `b` (after its operation) are readable, and `suits` returned true
    /// for these sizes.
    pub(crate) unsafe fn new(b: Source<T>, n: usize, k: usize, alpha: T) -> Self {
        let mut values = [T::ZERO; MAX_COLS * MAX_DEPTH];
        for p in 0..k {
            for j in 0..n {
                // SAFETY: the caller's promise.
                values[p * n + j] = alpha * unsafe { b.read(p, j) };
            }
        }
        Self { n, k, values }
    }
}

/// What happens to the old value of `C`.
#[derive(Clone, Copy)]
enum Old<P> {
    /// Not read at all.
    Ignore,
    Add,
    Scale(P, P),
}

/// `C := A B + beta C` over `m` rows.
///
/// # Safety
/// `a` is untransposed with `m` x `b.k` readable elements, `c` has `m` x `b.n` writable ones that
/// overlap nothing else in use.
pub(crate) unsafe fn product<T: Scalar>(a: Source<T>, b: &Packed<T>, beta: T, c: Target<T>, m: usize) {
    let call = describe(a, b, beta, c, m);
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the feature was detected; the call's ranges are the caller's promise.
            return unsafe { on_avx512::<T>(call) };
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            // SAFETY: as above.
            return unsafe { on_avx2::<T>(call) };
        }
    }
    // SAFETY: the caller's promise.
    unsafe { anywhere::<T>(call) }
}

/// `Scalar` promises that an element is `parts` consecutive reals, so all that follows counts in
/// reals.
fn describe<T: Scalar>(a: Source<T>, b: &Packed<T>, beta: T, c: Target<T>, m: usize) -> Call<T::Part> {
    let parts = if T::COMPLEX { 2 } else { 1 };
    Call {
        a: a.ptr.cast(),
        lda: a.ld * parts,
        b: b.values.as_ptr().cast(),
        n: b.n,
        k: b.k,
        old: if beta == T::ZERO {
            Old::Ignore
        } else if beta == T::ONE {
            Old::Add
        } else {
            Old::Scale(beta.re(), beta.im())
        },
        c: c.ptr.cast(),
        ldc: c.ld * parts,
        rows: m * parts,
    }
}

/// All pointers, strides and counts in reals.
#[derive(Clone, Copy)]
struct Call<P> {
    a: *const P,
    lda: usize,
    b: *const P,
    n: usize,
    k: usize,
    old: Old<P>,
    c: *mut P,
    ldc: usize,
    rows: usize,
}

/// # Safety
/// The ranges of `call`, and a processor with AVX-512F.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn on_avx512<T: Scalar>(call: Call<T::Part>) {
    // SAFETY: the caller's promise. 32 registers: two accumulators for each of 8 columns leave room
    // for `A`.
    unsafe {
        if size_of::<T::Part>() == 4 {
            sweep::<T, true, 16, 8>(call)
        } else {
            sweep::<T, true, 8, 8>(call)
        }
    }
}

/// # Safety
/// The ranges of `call`, and a processor with AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn on_avx2<T: Scalar>(call: Call<T::Part>) {
    // SAFETY: the caller's promise. 16 registers: 5 columns.
    unsafe {
        if size_of::<T::Part>() == 4 {
            sweep::<T, true, 8, 5>(call)
        } else {
            sweep::<T, true, 4, 5>(call)
        }
    }
}

/// # Safety
/// The ranges of `call`.
unsafe fn anywhere<T: Scalar>(call: Call<T::Part>) {
    // SAFETY: the caller's promise.
    unsafe { sweep::<T, false, 4, 4>(call) }
}

/// All columns, in groups of at most `MAX` that are as equal as can be.
///
/// # Safety
/// The ranges of `call`.
#[inline(always)]
unsafe fn sweep<T: Scalar, const FUSED: bool, const LANES: usize, const MAX: usize>(call: Call<T::Part>) {
    let groups = call.n.div_ceil(MAX).max(1);
    let width = call.n.div_ceil(groups);
    let parts = if T::COMPLEX { 2 } else { 1 };
    let mut col = 0;
    while col < call.n {
        let n = width.min(call.n - col);
        let b = call.b.wrapping_add(col * parts);
        let c = call.c.wrapping_add(col * call.ldc);
        let group = Call { b, c, ..call };
        // SAFETY: columns `col..col + n` of the caller's ranges. The count is a constant in each
        // arm so that the accumulators live in registers.
        unsafe {
            match n {
                1 => columns::<T, FUSED, LANES, 1>(group),
                2 => columns::<T, FUSED, LANES, 2>(group),
                3 => columns::<T, FUSED, LANES, 3>(group),
                4 => columns::<T, FUSED, LANES, 4>(group),
                5 => columns::<T, FUSED, LANES, 5>(group),
                6 => columns::<T, FUSED, LANES, 6>(group),
                7 => columns::<T, FUSED, LANES, 7>(group),
                _ => columns::<T, FUSED, LANES, 8>(group),
            }
        }
        col += n;
    }
}

/// `N` columns of `C`, top to bottom.
///
/// # Safety
/// The ranges of `call`; its `b` and `c` point at the first of these columns.
#[inline(always)]
unsafe fn columns<T: Scalar, const FUSED: bool, const LANES: usize, const N: usize>(call: Call<T::Part>) {
    let whole = call.rows / LANES * LANES;
    let mut row = 0;
    while row < whole {
        // SAFETY: rows `row..row + LANES` lie within the caller's ranges.
        unsafe { block::<T, FUSED, LANES, N>(&call, row) };
        row += LANES;
    }
    // The rest, one element (two reals are one or two of them) at a time.
    while row + 2 <= call.rows {
        // SAFETY: as above.
        unsafe { block::<T, FUSED, 2, N>(&call, row) };
        row += 2;
    }
    if row < call.rows {
        // SAFETY: as above; an odd row is left only for real elements.
        unsafe { block::<T, FUSED, 1, N>(&call, row) };
    }
}

/// `LANES` rows of `N` columns. Complex numbers stay interleaved: one accumulator takes `A` times
/// the real parts of `B`, the other one `A` with its parts exchanged times the imaginary parts, and
/// they are joined once at the end.
///
/// # Safety
/// The ranges of `call` hold rows `row..row + LANES`.
#[inline(always)]
unsafe fn block<T: Scalar, const FUSED: bool, const LANES: usize, const N: usize>(call: &Call<T::Part>, row: usize) {
    let zero = [<T::Part as Real>::ZERO; LANES];
    let mut direct = [zero; N];
    let mut crossed = [zero; N];
    let parts = if T::COMPLEX { 2 } else { 1 };
    for p in 0..call.k {
        // SAFETY: column `p` of `A` has these rows; an array of reals has no stricter alignment
        // than a real.
        let a: [T::Part; LANES] = unsafe { call.a.add(p * call.lda + row).cast::<[T::Part; LANES]>().read() };
        let exchanged: [T::Part; LANES] = if T::COMPLEX {
            std::array::from_fn(|i| a[i ^ 1])
        } else {
            a
        };
        for j in 0..N {
            // SAFETY: `b` is packed as `[k][n]`.
            unsafe {
                let b = call.b.add((p * call.n + j) * parts);
                let re = *b;
                for i in 0..LANES {
                    direct[j][i] = a[i].multiply_add::<FUSED>(re, direct[j][i]);
                }
                if T::COMPLEX {
                    let im = *b.add(1);
                    for i in 0..LANES {
                        crossed[j][i] = exchanged[i].multiply_add::<FUSED>(im, crossed[j][i]);
                    }
                }
            }
        }
    }
    for j in 0..N {
        let mut sum = join::<T, LANES>(&direct[j], &crossed[j]);
        // SAFETY: column `j` of `C` has these rows.
        let at = unsafe { call.c.add(j * call.ldc + row).cast::<[T::Part; LANES]>() };
        match call.old {
            Old::Ignore => {}
            Old::Add => {
                // SAFETY: as above; with this `beta` the old value is initialised.
                let old = unsafe { at.read() };
                for i in 0..LANES {
                    sum[i] += old[i];
                }
            }
            Old::Scale(re, im) => {
                // SAFETY: as above.
                let old = unsafe { at.read() };
                let exchanged: [T::Part; LANES] = if T::COMPLEX {
                    std::array::from_fn(|i| old[i ^ 1])
                } else {
                    old
                };
                let scaled = join::<T, LANES>(&old.map(|x| x * re), &exchanged.map(|x| x * im));
                for i in 0..LANES {
                    sum[i] += scaled[i];
                }
            }
        }
        // SAFETY: as above.
        unsafe { at.write(sum) };
    }
}

/// Real parts are the difference, imaginary parts the sum of the two accumulators.
#[inline(always)]
fn join<T: Scalar, const LANES: usize>(direct: &[T::Part; LANES], crossed: &[T::Part; LANES]) -> [T::Part; LANES] {
    if !T::COMPLEX {
        return *direct;
    }
    std::array::from_fn(|i| {
        if i % 2 == 0 {
            direct[i] - crossed[i]
        } else {
            direct[i] + crossed[i]
        }
    })
}

#[cfg(test)]
mod tests {
    use num_complex::Complex;

    use super::super::view::Op;
    use super::*;

    type Path<T> = unsafe fn(Call<<T as Scalar>::Part>);

    /// Every way to compute that this processor has.
    fn paths<T: Scalar>() -> Vec<(&'static str, Path<T>)> {
        let mut paths: Vec<(_, Path<T>)> = vec![("anywhere", anywhere::<T>)];
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx512f") {
                paths.push(("avx512", on_avx512::<T>));
            }
            if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
                paths.push(("avx2", on_avx2::<T>));
            }
        }
        paths
    }

    /// Small integers: every sum is exact, so every path must give the very same numbers.
    fn check<T: Scalar>(element: impl Fn(usize) -> T) {
        let k = 3;
        for (m, n, beta) in (1..40usize)
            .flat_map(|m| (1..=MAX_COLS).map(move |n| (m, n)))
            .flat_map(|(m, n)| [0, 1, 2].map(|beta| (m, n, beta)))
        {
            let beta = [T::ZERO, T::ONE, element(5)][beta];
            let ld = m + 1;
            let a: Vec<T> = (0..ld * k).map(&element).collect();
            let b: Vec<T> = (0..k * n).map(|i| element(i + 7)).collect();
            let old: Vec<T> = (0..ld * n).map(|i| element(i + 3)).collect();
            let mut expected = old.clone();
            for (row, col) in (0..n).flat_map(|col| (0..m).map(move |row| (row, col))) {
                let product = |p: usize| a[row + p * ld] * b[p + col * k];
                let sum = product(0) + product(1) + product(2);
                expected[row + col * ld] = sum + beta * old[row + col * ld];
            }
            let b = Source {
                ptr: b.as_ptr(),
                ld: k,
                op: Op::None,
            };
            let a = Source {
                ptr: a.as_ptr(),
                ld,
                op: Op::None,
            };
            // SAFETY: `k` x `n` elements.
            let packed = unsafe { Packed::new(b, n, k, T::ONE) };
            for (name, path) in paths::<T>() {
                let mut c = old.clone();
                let target = Target {
                    ptr: c.as_mut_ptr(),
                    ld,
                };
                // SAFETY: the matrices have these shapes, and the processor has the path.
                unsafe { path(describe(a, &packed, beta, target, m)) };
                assert!(c == expected, "{name}: {m} x {n}");
            }
        }
    }

    fn digit(i: usize) -> f32 {
        (i * 7 % 11) as f32 - 5.0
    }

    #[test]
    fn every_path_gives_the_exact_product_of_small_integers() {
        check(digit);
        check(|i| f64::from(digit(i)));
        check(|i| Complex::new(digit(i), digit(i + 4)));
        check(|i| Complex::new(f64::from(digit(i)), f64::from(digit(i + 4))));
    }
}
