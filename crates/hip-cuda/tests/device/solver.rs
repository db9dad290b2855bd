//! Factors, solutions, inverses, and what `info` says.

use std::ptr;

use rocblas_sys::{rocblas_double_complex as Z, rocblas_fill, rocblas_float_complex as C, rocblas_operation as Op};

use crate::common::{DONE, Handle, Memory, call, tables};

const LOWER: rocblas_fill = rocblas_fill::rocblas_fill_lower;

/// Hermitian, positive definite: [[4, 2 + 2i], [2 - 2i, 6]].
fn hermitian() -> [C; 4] {
    [
        C { x: 4., y: 0. },
        C { x: 2., y: -2. },
        C { x: 77., y: 77. },
        C { x: 6., y: 0. },
    ]
}

fn near(found: C, x: f32, y: f32) -> bool {
    (found.x - x).abs() < 1e-5 && (found.y - y).abs() < 1e-5
}

#[test]
fn a_batch_of_hermitian_inverses_writes_one_triangle_and_names_the_bad_minor() {
    let Some(tables) = tables() else { return };
    let handle = Handle::new();
    let mut matrices = hermitian().to_vec();
    matrices.extend(hermitian());
    // The second has a second minor that is not positive.
    matrices[7] = C { x: 1., y: 0. };
    let (a, info) = (Memory::of(&matrices), Memory::of(&[-1, -1]));
    let solver = &tables.solver;
    assert_eq!(
        call!(
            solver,
            rocsolver_cpotrf_strided_batched(handle.0, LOWER, 2, a.at, 2, 4, info.at, 2)
        ),
        DONE
    );
    assert_eq!(info.read(), [0, 2]);
    assert_eq!(
        call!(
            solver,
            rocsolver_cpotri_strided_batched(handle.0, LOWER, 2, a.at, 2, 4, info.at, 1)
        ),
        DONE
    );
    assert_eq!(info.read()[0], 0);
    let found = a.read();
    // The determinant is 16.
    assert!(near(found[0], 0.375, 0.), "{}", found[0].x);
    assert!(near(found[1], -0.125, 0.125), "{} {}", found[1].x, found[1].y);
    assert!(near(found[3], 0.25, 0.), "{}", found[3].x);
    assert!(near(found[2], 77., 77.), "the other triangle is not touched");
}

#[test]
fn a_general_inverse_is_made_from_the_factors_and_a_zero_pivot_is_named() {
    let Some(tables) = tables() else { return };
    let handle = Handle::new();
    let (a, pivots, info) = (
        Memory::of(&[0.0_f64, 2.0, 4.0, 6.0]),
        Memory::of(&[0, 0]),
        Memory::of(&[-1]),
    );
    let solver = &tables.solver;
    assert_eq!(
        call!(solver, rocsolver_dgetrf(handle.0, 2, 2, a.at, 2, pivots.at, info.at)),
        DONE
    );
    assert_eq!((pivots.read(), info.read()), (vec![2, 2], vec![0]));
    assert_eq!(
        call!(solver, rocsolver_dgetri(handle.0, 2, a.at, 2, pivots.at, info.at)),
        DONE
    );
    assert_eq!(info.read(), [0]);
    let expected = [-0.75, 0.25, 0.5, 0.0];
    for (found, expected) in a.read().iter().zip(expected) {
        assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
    }
    let singular = Memory::of(&[1.0_f64, 2.0, 2.0, 4.0]);
    assert_eq!(
        call!(
            solver,
            rocsolver_dgetrf(handle.0, 2, 2, singular.at, 2, pivots.at, info.at)
        ),
        DONE
    );
    assert_eq!(info.read(), [2]);
    assert_eq!(
        call!(
            solver,
            rocsolver_dgetri(handle.0, 2, singular.at, 2, pivots.at, info.at)
        ),
        DONE
    );
    assert_eq!(info.read(), [2]);
}

#[test]
fn a_singular_system_leaves_its_right_hand_side() {
    let Some(tables) = tables() else { return };
    let handle = Handle::new();
    // The first can be solved, the second not.
    let a = Memory::of(&[2.0_f32, 0.0, 0.0, 4.0, 1.0, 2.0, 2.0, 4.0]);
    let b = Memory::of(&[2.0_f32, 8.0, 5.0, 6.0]);
    let (pivots, info) = (Memory::of(&[0; 4]), Memory::of(&[-1; 2]));
    let status = call!(
        tables.solver,
        rocsolver_sgesv_strided_batched(handle.0, 2, 1, a.at, 2, 4, pivots.at, 2, b.at, 2, 2, info.at, 2)
    );
    assert_eq!(status, DONE);
    assert_eq!(info.read(), [0, 2]);
    assert_eq!(b.read(), [1.0, 2.0, 5.0, 6.0]);
}

#[test]
fn matrices_listed_on_the_device_are_found() {
    let Some(tables) = tables() else { return };
    let handle = Handle::new();
    let (first, second) = (Memory::of(&[4.0_f32]), Memory::of(&[9.0_f32]));
    let list = Memory::of(&[first.at as u64, second.at as u64]);
    let info = Memory::of(&[-1; 2]);
    let status = call!(
        tables.solver,
        rocsolver_spotrf_batched(handle.0, LOWER, 1, list.at.cast(), 1, info.at, 2)
    );
    assert_eq!(status, DONE);
    assert_eq!((first.read()[0], second.read()[0], info.read()), (2.0, 3.0, vec![0, 0]));
}

#[test]
fn solving_with_the_factors_of_the_transpose_is_right() {
    let Some(tables) = tables() else { return };
    let handle = Handle::new();
    let (a, pivots, info) = (
        Memory::of(&[1.0_f64, 3.0, 2.0, 4.0]),
        Memory::of(&[0, 0]),
        Memory::of(&[-1]),
    );
    let b = Memory::of(&[5.0_f64, 11.0]);
    let solver = &tables.solver;
    assert_eq!(
        call!(solver, rocsolver_dgetrf(handle.0, 2, 2, a.at, 2, pivots.at, info.at)),
        DONE
    );
    let plain = Op::rocblas_operation_none;
    assert_eq!(
        call!(
            solver,
            rocsolver_dgetrs(handle.0, plain, 2, 1, a.at, 2, pivots.at, b.at, 2)
        ),
        DONE
    );
    let found = b.read();
    assert!(
        (found[0] - 1.0).abs() < 1e-12 && (found[1] - 2.0).abs() < 1e-12,
        "{found:?}"
    );
    let status = call!(
        solver,
        rocsolver_dgetrf(handle.0, 2, 2, ptr::null_mut(), 2, pivots.at, info.at)
    );
    assert_eq!(status, rocblas_sys::rocblas_status::rocblas_status_invalid_pointer);
}

/// A diagonal of `n` ones but for zeros (one of them negative) in two places, beyond one block of threads; `potri`
/// names the first, for few rows and for those that cuSOLVER takes.
macro_rules! zeros_are_named {
    ($($test:ident: $ty:ty, $one:expr, $zeros:expr, $function:ident;)*) => {
        $(
            #[test]
            fn $test() {
                let Some(tables) = tables() else { return };
                let handle = Handle::new();
                for n in [300_usize, 1100] {
                    let mut factor = vec![<$ty>::default(); n * n];
                    (0..n).for_each(|i| factor[i + i * n] = $one);
                    let places = [(170, $zeros[0]), (290, $zeros[1]), (290, $zeros[0]), (170, $zeros[1])];
                    let info = Memory::of(&[-1]);
                    let order = n as rocblas_sys::rocblas_int;
                    for pair in places.chunks(2) {
                        let mut singular = factor.clone();
                        pair.iter().for_each(|(at, zero)| singular[at + at * n] = *zero);
                        let a = Memory::of(&singular);
                        let status = call!(tables.solver, $function(handle.0, LOWER, order, a.at, order, info.at));
                        assert_eq!((status, info.read()), (DONE, vec![171]));
                    }
                    let a = Memory::of(&factor);
                    let status = call!(tables.solver, $function(handle.0, LOWER, order, a.at, order, info.at));
                    assert_eq!((status, info.read()), (DONE, vec![0]));
                }
            }
        )*
    };
}

zeros_are_named! {
    the_first_zero_of_a_factor_is_named_f32: f32, 1.0, [0.0, -0.0], rocsolver_spotri;
    the_first_zero_of_a_factor_is_named_f64: f64, 1.0, [0.0, -0.0], rocsolver_dpotri;
    the_first_zero_of_a_factor_is_named_c32: C, C { x: 1.0, y: 0.0 }, [C { x: 0.0, y: -0.0 }, C { x: -0.0, y: 0.0 }], rocsolver_cpotri;
    the_first_zero_of_a_factor_is_named_c64: Z, Z { x: 1.0, y: 0.0 }, [Z { x: 0.0, y: -0.0 }, Z { x: -0.0, y: 0.0 }], rocsolver_zpotri;
}

#[test]
fn a_factor_needs_no_scalars_of_the_callers_and_leaves_its_mode() {
    let Some(tables) = tables() else { return };
    let handle = Handle::new();
    let device = rocblas_sys::rocblas_pointer_mode::rocblas_pointer_mode_device;
    let mode = call!(tables.blas, rocblas_set_pointer_mode(handle.0, device));
    assert_eq!(mode, DONE);
    let n = 40_usize;
    let mut matrix = vec![0.0_f32; n * n];
    (0..n).for_each(|i| matrix[i + i * n] = 4.0);
    // beyond the first tile
    matrix[35 + 2 * n] = 2.0;
    let (a, info) = (Memory::of(&matrix), Memory::of(&[-1]));
    let order = n as rocblas_sys::rocblas_int;
    let status = call!(
        tables.solver,
        rocsolver_spotrf(handle.0, LOWER, order, a.at, order, info.at)
    );
    assert_eq!((status, info.read()), (DONE, vec![0]));
    let found = a.read();
    assert_eq!((found[0], found[35 + 2 * n]), (2.0, 1.0));
    assert!((found[35 + 35 * n] - 3.0_f32.sqrt()).abs() < 1e-6);
    // cuBLAS would read the host's address as one of the device's otherwise
    let (factor, x) = (Memory::of(&[3.0_f32]), Memory::of(&[5.0_f32]));
    let status = call!(tables.blas, rocblas_sscal(handle.0, 1, factor.at, x.at, 1));
    assert_eq!((status, x.read()), (DONE, vec![15.0]));
}

#[test]
fn a_small_number_is_no_zero() {
    let Some(tables) = tables() else { return };
    let handle = Handle::new();
    let (a, info) = (Memory::of(&[1e-300_f64]), Memory::of(&[-1]));
    // Its low word alone is not zero.
    let low = Memory::of(&[f64::from_bits(0x1)]);
    for memory in [&a, &low] {
        let status = call!(
            tables.solver,
            rocsolver_dpotri(handle.0, LOWER, 1, memory.at, 1, info.at)
        );
        assert_eq!((status, info.read()), (DONE, vec![0]));
    }
}
