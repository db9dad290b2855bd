//! axpy, scal, copy, swap, dot, nrm2, asum, iamax, iamin.

use std::ptr::{null, null_mut};

use proptest::prelude::*;
use rocblas_sys::rocblas_status;

use crate::functions::{check, families, for_all_types};
use crate::memory::{Buffer, Handle, SUCCESS};
use crate::number::{C64, Int, Number, assert_close, nan, numbers, sum};

families! { Level1 from BLAS:
    axpy(I, *const Self, *const Self, I, *mut Self, I) =
        rocblas_saxpy rocblas_daxpy rocblas_caxpy rocblas_zaxpy;
        rocblas_saxpy_64 rocblas_daxpy_64 rocblas_caxpy_64 rocblas_zaxpy_64;
    scal(I, *const Self, *mut Self, I) =
        rocblas_sscal rocblas_dscal rocblas_cscal rocblas_zscal;
        rocblas_sscal_64 rocblas_dscal_64 rocblas_cscal_64 rocblas_zscal_64;
    scal_real(I, *const Self::Real, *mut Self, I) =
        rocblas_sscal rocblas_dscal rocblas_csscal rocblas_zdscal;
        rocblas_sscal_64 rocblas_dscal_64 rocblas_csscal_64 rocblas_zdscal_64;
    copy(I, *const Self, I, *mut Self, I) =
        rocblas_scopy rocblas_dcopy rocblas_ccopy rocblas_zcopy;
        rocblas_scopy_64 rocblas_dcopy_64 rocblas_ccopy_64 rocblas_zcopy_64;
    swap(I, *mut Self, I, *mut Self, I) =
        rocblas_sswap rocblas_dswap rocblas_cswap rocblas_zswap;
        rocblas_sswap_64 rocblas_dswap_64 rocblas_cswap_64 rocblas_zswap_64;
    dotu(I, *const Self, I, *const Self, I, *mut Self) =
        rocblas_sdot rocblas_ddot rocblas_cdotu rocblas_zdotu;
        rocblas_sdot_64 rocblas_ddot_64 rocblas_cdotu_64 rocblas_zdotu_64;
    dotc(I, *const Self, I, *const Self, I, *mut Self) =
        rocblas_sdot rocblas_ddot rocblas_cdotc rocblas_zdotc;
        rocblas_sdot_64 rocblas_ddot_64 rocblas_cdotc_64 rocblas_zdotc_64;
    nrm2(I, *const Self, I, *mut Self::Real) =
        rocblas_snrm2 rocblas_dnrm2 rocblas_scnrm2 rocblas_dznrm2;
        rocblas_snrm2_64 rocblas_dnrm2_64 rocblas_scnrm2_64 rocblas_dznrm2_64;
    asum(I, *const Self, I, *mut Self::Real) =
        rocblas_sasum rocblas_dasum rocblas_scasum rocblas_dzasum;
        rocblas_sasum_64 rocblas_dasum_64 rocblas_scasum_64 rocblas_dzasum_64;
    iamax(I, *const Self, I, *mut I) =
        rocblas_isamax rocblas_idamax rocblas_icamax rocblas_izamax;
        rocblas_isamax_64 rocblas_idamax_64 rocblas_icamax_64 rocblas_izamax_64;
    iamin(I, *const Self, I, *mut I) =
        rocblas_isamin rocblas_idamin rocblas_icamin rocblas_izamin;
        rocblas_isamin_64 rocblas_idamin_64 rocblas_icamin_64 rocblas_izamin_64;
}

/// Where element `i` of `n` lies, counted from the lowest one.
pub fn place(n: usize, inc: i64, i: usize) -> usize {
    let steps = if inc < 0 { n - 1 - i } else { i };
    steps * inc.unsigned_abs() as usize
}

/// A vector in memory of its own, with numbers between its elements too.
pub fn vector<T: Number>(n: usize, inc: i64, seed: u64) -> Vec<T> {
    numbers(n.saturating_sub(1) * inc.unsigned_abs() as usize + n.min(1), seed)
}

pub fn increment() -> impl Strategy<Value = i64> {
    prop_oneof![Just(1), Just(-1), 2..5_i64, -4..-1_i64]
}

/// Lengths around the unrolled sums, and now and then one that takes several pieces.
fn length() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 0..40_usize, 1 => 16_000..40_000_usize]
}

fn axpy_adds_a_multiple<T: Level1<I>, I: Int>() {
    let handle = Handle::new();
    check(
        (length(), increment(), increment(), any::<u64>()),
        |(n, incx, incy, seed)| {
            let (x, y) = (vector::<T>(n, incx, seed), vector::<T>(n, incy, seed ^ 1));
            let alpha = numbers::<T>(1, seed ^ 2)[0];
            let (device_x, device_y) = (Buffer::new(&x), Buffer::new(&y));
            // SAFETY: vectors of that length.
            handle.finish(unsafe {
                T::axpy()(
                    handle.raw,
                    I::of(n as i64),
                    &alpha,
                    device_x.ptr(),
                    I::of(incx),
                    device_y.ptr(),
                    I::of(incy),
                )
            });
            device_x.assert_untouched();
            device_y.assert_only_written(|i| i % incy.unsigned_abs() as usize == 0);
            let found = device_y.read();
            for i in 0..n {
                let (at_x, at_y) = (place(n, incx, i), place(n, incy, i));
                let terms = [(alpha.wide(), x[at_x].wide()), (C64::ONE, y[at_y].wide())];
                assert_close(found[at_y], sum::<T>(terms), || format!("element {i}"));
            }
        },
    );
}

fn scal_multiplies_in_place<T: Level1<I>, I: Int>() {
    let handle = Handle::new();
    check(
        (length(), 1..4_i64, any::<u64>(), any::<bool>()),
        |(n, inc, seed, real)| {
            let x = vector::<T>(n, inc, seed);
            let alpha = numbers::<T>(1, seed ^ 2)[0];
            let real_alpha = T::Real::of(alpha.wide());
            let device = Buffer::new(&x);
            // SAFETY: a vector of that length.
            handle.finish(unsafe {
                if real {
                    T::scal_real()(handle.raw, I::of(n as i64), &real_alpha, device.ptr(), I::of(inc))
                } else {
                    T::scal()(handle.raw, I::of(n as i64), &alpha, device.ptr(), I::of(inc))
                }
            });
            device.assert_only_written(|i| i % inc as usize == 0);
            let factor = if real { real_alpha.wide() } else { alpha.wide() };
            let found = device.read();
            for i in (0..x.len()).step_by(inc as usize) {
                assert_close(found[i], sum::<T>([(factor, x[i].wide())]), || format!("element {i}"));
            }
        },
    );
}

fn copy_and_swap_move_bits<T: Level1<I>, I: Int>() {
    let handle = Handle::new();
    check(
        (length(), increment(), increment(), any::<u64>()),
        |(n, incx, incy, seed)| {
            let (mut x, mut y) = (vector::<T>(n, incx, seed), vector::<T>(n, incy, seed ^ 1));
            if let (Some(x), Some(y)) = (x.first_mut(), y.last_mut()) {
                (*x, *y) = (nan(), T::of(C64::new(-0.0, f64::INFINITY)));
            }
            let bits = |value: T| format!("{value:?}");
            for swap in [false, true] {
                let (device_x, device_y) = (Buffer::new(&x), Buffer::new(&y));
                let (count, incx, incy) = (I::of(n as i64), I::of(incx), I::of(incy));
                // SAFETY: vectors of that length.
                handle.finish(unsafe {
                    if swap {
                        T::swap()(handle.raw, count, device_x.ptr(), incx, device_y.ptr(), incy)
                    } else {
                        T::copy()(handle.raw, count, device_x.ptr(), incx, device_y.ptr(), incy)
                    }
                });
                let (incx, incy): (i64, i64) = (incx.into(), incy.into());
                device_x.assert_only_written(|i| swap && i % incx.unsigned_abs() as usize == 0);
                device_y.assert_only_written(|i| i % incy.unsigned_abs() as usize == 0);
                let (new_x, new_y) = (device_x.read(), device_y.read());
                for i in 0..n {
                    let (at_x, at_y) = (place(n, incx, i), place(n, incy, i));
                    assert_eq!(bits(new_y[at_y]), bits(x[at_x]));
                    let expected = if swap { y[at_y] } else { x[at_x] };
                    assert_eq!(bits(new_x[at_x]), bits(expected));
                }
            }
        },
    );
}

fn reductions_agree_with_loops<T: Level1<I>, I: Int>() {
    let host = Handle::new();
    let device = Handle::new().in_device_mode();
    check(
        (length(), increment(), increment(), any::<u64>()),
        |(n, incx, incy, seed)| {
            let (x, y) = (vector::<T>(n, incx, seed), vector::<T>(n, incy, seed ^ 1));
            let (device_x, device_y) = (Buffer::new(&x), Buffer::new(&y));
            let results = Buffer::new(&[nan::<T>(); 2]);
            let real = Buffer::new(&[nan::<T::Real>(); 2]);
            let mut on_host = [nan::<T>(); 2];
            let mut real_on_host = [nan::<T::Real>(); 2];
            let count = I::of(n as i64);
            for (handle, all, reals) in [
                (&host, on_host.as_mut_ptr(), real_on_host.as_mut_ptr()),
                (&device, results.ptr(), real.ptr()),
            ] {
                let (x, y) = (device_x.ptr().cast_const(), device_y.ptr().cast_const());
                let (incx, incy) = (I::of(incx), I::of(incy));
                // SAFETY: vectors of that length and places for two results.
                unsafe {
                    assert_eq!(T::dotu()(handle.raw, count, x, incx, y, incy, all), SUCCESS);
                    assert_eq!(T::dotc()(handle.raw, count, x, incx, y, incy, all.add(1)), SUCCESS);
                    assert_eq!(T::nrm2()(handle.raw, count, x, incx, reals), SUCCESS);
                    assert_eq!(T::asum()(handle.raw, count, x, incx, reals.add(1)), SUCCESS);
                }
            }
            handle_agrees(&device, &results.read(), &on_host);
            handle_agrees(&device, &real.read(), &real_on_host);
            let element = |i| (x[place(n, incx, i)].wide(), y[place(n, incy, i)].wide());
            assert_close(on_host[0], sum::<T>((0..n).map(element)), || "dotu".into());
            let conjugated = (0..n).map(element).map(|(x, y)| (x.conj(), y));
            assert_close(on_host[1], sum::<T>(conjugated), || "dotc".into());
            // A vector that is not walked forwards has no norm.
            let m = if incx > 0 { n } else { 0 };
            let norm = (0..m).map(|i| element(i).0.norm_sqr()).sum::<f64>().sqrt();
            // The loop here rounds too.
            let bound = norm * T::EPSILON * (4.0 + n as f64);
            assert_close(real_on_host[0], (C64::from(norm), bound), || "nrm2".into());
            let ones = (0..m).map(|i| (C64::from(element(i).0.l1_norm()), C64::ONE));
            assert_close(real_on_host[1], sum::<T>(ones), || "asum".into());
        },
    );
}

/// Both pointer modes compute the same bits.
#[track_caller]
fn handle_agrees<N: Number>(handle: &Handle, in_device_mode: &[N], in_host_mode: &[N]) {
    handle.finish(SUCCESS);
    assert_eq!(format!("{in_device_mode:?}"), format!("{in_host_mode:?}"));
}

fn extremes_are_the_first_of_their_size<T: Level1<I>, I: Int>() {
    let handle = Handle::new();
    check((length(), 1..4_i64, any::<u64>()), |(n, inc, seed)| {
        // Few different values, so that there are ties.
        let coarse = |value: T| {
            let value = value.wide().scale(3.0);
            T::of(C64::new(value.re.round(), value.im.round()))
        };
        let x: Vec<T> = vector::<T>(n, inc, seed).into_iter().map(coarse).collect();
        let device = Buffer::new(&x);
        let (mut most, mut least) = (I::of(99), I::of(99));
        // SAFETY: a vector of that length and places for the results.
        unsafe {
            let (n, inc) = (I::of(n as i64), I::of(inc));
            assert_eq!(T::iamax()(handle.raw, n, device.ptr(), inc, &mut most), SUCCESS);
            assert_eq!(T::iamin()(handle.raw, n, device.ptr(), inc, &mut least), SUCCESS);
        }
        let sizes: Vec<f64> = (0..n).map(|i| x[place(n, inc, i)].wide().l1_norm()).collect();
        let first = |size: Option<f64>| {
            let found = sizes.iter().position(|s| Some(*s) == size);
            found.map_or(0, |i| i as i64 + 1)
        };
        assert_eq!(most.into(), first(sizes.iter().copied().reduce(f64::max)));
        assert_eq!(least.into(), first(sizes.iter().copied().reduce(f64::min)));
    });
}

fn level_1_refuses_in_rocblas_order<T: Level1<I>, I: Int>() {
    let pointer = rocblas_status::rocblas_status_invalid_pointer;
    let size = rocblas_status::rocblas_status_invalid_size;
    let handle = Handle::new();
    let buffer = Buffer::new(&numbers::<T>(40, 5));
    let (x, y) = (buffer.ptr(), buffer.ptr().wrapping_add(20));
    let mut on_host = numbers::<T>(8, 1);
    let (zero, one, two) = (T::of(C64::ZERO), T::of(C64::ONE), T::of(C64::from(2.0)));
    let axpy = |raw, n, alpha, x, y, inc: i64| {
        // SAFETY: what the model refuses is not touched.
        unsafe { T::axpy()(raw, I::of(n), alpha, x, I::of(1), y, I::of(inc)) }
    };
    let invalid_handle = rocblas_status::rocblas_status_invalid_handle;
    assert_eq!(axpy(null_mut(), 0, null(), null(), null_mut(), 1), invalid_handle);
    for n in [0, -1] {
        assert_eq!(axpy(handle.raw, n, null(), null(), null_mut(), 1), SUCCESS);
    }
    assert_eq!(axpy(handle.raw, 1, null(), x, y, 1), pointer);
    assert_eq!(axpy(handle.raw, 1, &zero, null(), null_mut(), 1), SUCCESS);
    assert_eq!(axpy(handle.raw, 1, &two, null(), y, 1), pointer);
    assert_eq!(axpy(handle.raw, 1, &two, x, null_mut(), 1), pointer);
    assert_eq!(axpy(handle.raw, 1, &two, on_host.as_ptr(), y, 1), pointer);
    assert_eq!(axpy(handle.raw, 1, &two, x, on_host.as_mut_ptr(), 1), pointer);
    assert_eq!(axpy(handle.raw, 2, &two, x, y, 0), size);
    assert_eq!(axpy(handle.raw, 4, &two, x, x.wrapping_add(1), 1), pointer);
    assert_eq!(axpy(handle.raw, 1 << 20, &two, x, y, 1), pointer);
    let odd = x.cast::<u8>().wrapping_add(1).cast::<T>();
    assert_eq!(axpy(handle.raw, 1, &two, odd, y, 1), pointer);
    // SAFETY: as above.
    unsafe {
        let scal = T::scal();
        assert_eq!(scal(handle.raw, I::of(3), null(), null_mut(), I::of(0)), SUCCESS);
        assert_eq!(scal(handle.raw, I::of(3), null(), x, I::of(1)), pointer);
        assert_eq!(scal(handle.raw, I::of(3), &one, null_mut(), I::of(1)), SUCCESS);
        assert_eq!(scal(handle.raw, I::of(3), &two, null_mut(), I::of(1)), pointer);
        let (copy, swap) = (T::copy(), T::swap());
        assert_eq!(
            copy(handle.raw, I::of(0), null(), I::of(1), null_mut(), I::of(1)),
            SUCCESS
        );
        assert_eq!(copy(handle.raw, I::of(1), null(), I::of(1), y, I::of(1)), pointer);
        assert_eq!(swap(handle.raw, I::of(1), x, I::of(1), null_mut(), I::of(1)), pointer);
        assert_eq!(swap(handle.raw, I::of(2), x, I::of(0), y, I::of(1)), size);
        let mut result = two;
        let dot = T::dotu();
        let no = null_mut();
        assert_eq!(
            dot(handle.raw, I::of(0), null(), I::of(1), null(), I::of(1), no),
            pointer
        );
        assert_eq!(
            dot(handle.raw, I::of(1), x, I::of(1), null(), I::of(1), &mut result),
            pointer
        );
        assert_eq!(
            dot(handle.raw, I::of(0), null(), I::of(1), null(), I::of(1), &mut result),
            SUCCESS
        );
        assert_eq!(result.wide(), C64::ZERO);
        assert_eq!(T::nrm2()(handle.raw, I::of(0), null(), I::of(1), null_mut()), pointer);
        let mut index = I::of(7);
        assert_eq!(T::iamax()(handle.raw, I::of(4), null(), I::of(1), &mut index), pointer);
        assert_eq!(T::iamax()(handle.raw, I::of(4), null(), I::of(0), &mut index), SUCCESS);
        assert_eq!(index.into(), 0);
    }
    handle.finish(SUCCESS);
    buffer.assert_untouched();
}

fn device_scalars_are_read_in_stream_order<T: Level1<I>, I: Int>() {
    let handle = Handle::new().in_device_mode();
    let (two, three) = (T::of(C64::from(2.0)), T::of(C64::from(3.0)));
    let alpha = Buffer::new(&[two]);
    let x = Buffer::new(&[three]);
    let one = I::of(1);
    let hold = handle.hold();
    // SAFETY: single elements in device memory.
    unsafe {
        // x := x0 alpha with an alpha that the call before has changed to 9 by then.
        assert_eq!(T::copy()(handle.raw, one, x.ptr(), one, alpha.ptr(), one), SUCCESS);
        assert_eq!(T::scal()(handle.raw, one, alpha.ptr(), x.ptr(), one), SUCCESS);
    }
    drop(hold);
    handle.finish(SUCCESS);
    assert_eq!(x.read()[0].wide(), C64::from(9.0));
    // SAFETY: refused before it is read.
    let status = unsafe { T::scal()(handle.raw, one, &two, x.ptr(), one) };
    assert_eq!(status, rocblas_status::rocblas_status_invalid_pointer);
}

fn a_bad_vector_under_a_device_scalar_fails_the_stream<T: Level1<I>, I: Int>() {
    let handle = Handle::apart().in_device_mode();
    let scalars = Buffer::new(&[T::of(C64::ZERO), T::of(C64::from(2.0))]);
    let one = I::of(1);
    let scal = |alpha| {
        // SAFETY: the model refuses the vector.
        unsafe { T::axpy()(handle.raw, one, alpha, null(), one, null_mut(), one) }
    };
    // Nothing is read where alpha is 0.
    handle.finish(scal(scalars.ptr()));
    assert_eq!(scal(scalars.ptr().wrapping_add(1)), SUCCESS);
    assert_ne!(handle.wait(), hip_sys::hipError_t::hipSuccess);
}

for_all_types! {
    axpy_adds_a_multiple scal_multiplies_in_place copy_and_swap_move_bits
    reductions_agree_with_loops extremes_are_the_first_of_their_size
    level_1_refuses_in_rocblas_order device_scalars_are_read_in_stream_order
    a_bad_vector_under_a_device_scalar_fails_the_stream
}
