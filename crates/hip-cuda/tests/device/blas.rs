//! Products and vectors, against sums on the host.

use std::ptr;

use rocblas_sys::{
    rocblas_datatype, rocblas_diagonal, rocblas_fill, rocblas_float_complex as C, rocblas_gemm_algo,
    rocblas_operation as Op, rocblas_side, rocblas_status,
};

use crate::common::{DONE, Handle, Memory, call, tables};

const NONE: Op = Op::rocblas_operation_none;
const CONJ: Op = Op::rocblas_operation_conjugate_transpose;

fn c(x: f32, y: f32) -> C {
    C { x, y }
}

#[test]
fn a_complex_product_with_a_conjugate_is_the_sum_by_hand() {
    let Some(tables) = tables() else { return };
    let handle = Handle::new();
    // A is 2 x 2 and used as its conjugate transpose.
    let a = [c(1., 2.), c(3., 4.), c(5., 6.), c(7., 8.)];
    let b = [c(1., 0.), c(0., 1.), c(2., 0.), c(0., 2.)];
    let (da, db, dc) = (Memory::of(&a), Memory::of(&b), Memory::of(&[c(0., 0.); 4]));
    let (one, zero) = (c(1., 0.), c(0., 0.));
    let status = call!(
        tables.blas,
        rocblas_cgemm(handle.0, CONJ, NONE, 2, 2, 2, &one, da.at, 2, db.at, 2, &zero, dc.at, 2)
    );
    assert_eq!(status, DONE);
    let found = dc.read();
    for j in 0..2 {
        for i in 0..2 {
            let (mut x, mut y) = (0.0, 0.0);
            for k in 0..2 {
                let (p, q) = (a[k + 2 * i], b[k + 2 * j]);
                x += p.x * q.x + p.y * q.y;
                y += p.x * q.y - p.y * q.x;
            }
            assert_eq!((found[i + 2 * j].x, found[i + 2 * j].y), (x, y), "({i}, {j})");
        }
    }
}

#[test]
fn only_the_asked_triangle_of_a_hermitian_product_is_written() {
    let Some(tables) = tables() else { return };
    let handle = Handle::new();
    let a = Memory::of(&[c(1., 1.), c(2., -1.)]);
    let out = Memory::of(&[c(9., 9.); 4]);
    let lower = rocblas_fill::rocblas_fill_lower;
    let status = call!(
        tables.blas,
        rocblas_cherk(handle.0, lower, NONE, 2, 1, &1.0, a.at, 2, &0.0, out.at, 2)
    );
    assert_eq!(status, DONE);
    let found: Vec<_> = out.read().iter().map(|z| (z.x, z.y)).collect();
    // (2 - i) times the conjugate of (1 + i).
    assert_eq!(found, [(2., 0.), (1., -3.), (9., 9.), (5., 0.)]);
}

#[test]
fn a_mixed_product_into_another_matrix_leaves_c_alone() {
    let Some(tables) = tables() else { return };
    let handle = Handle::new();
    let (a, b) = (Memory::of(&[2.0_f32]), Memory::of(&[3.0_f32]));
    let (c, d) = (Memory::of(&[10.0_f32]), Memory::of(&[0.0_f32]));
    let ty = rocblas_datatype::rocblas_datatype_f32_r;
    let (alpha, beta) = (1.0_f32, 2.0_f32);
    let status = call!(
        tables.blas,
        rocblas_gemm_ex(
            handle.0,
            NONE,
            NONE,
            1,
            1,
            1,
            (&raw const alpha).cast(),
            a.at.cast(),
            ty,
            1,
            b.at.cast(),
            ty,
            1,
            (&raw const beta).cast(),
            c.at.cast(),
            ty,
            1,
            d.at.cast(),
            ty,
            1,
            ty,
            rocblas_gemm_algo::rocblas_gemm_algo_standard,
            0,
            0,
        )
    );
    assert_eq!(status, DONE);
    assert_eq!((c.read()[0], d.read()[0]), (10.0, 26.0));
}

#[test]
fn a_triangular_system_is_solved_in_place() {
    let Some(tables) = tables() else { return };
    let handle = Handle::new();
    let a = Memory::of(&[2.0_f64, 1.0, 0.0, 4.0]);
    let b = Memory::of(&[2.0_f64, 9.0]);
    let status = call!(
        tables.blas,
        rocblas_dtrsm(
            handle.0,
            rocblas_side::rocblas_side_left,
            rocblas_fill::rocblas_fill_lower,
            NONE,
            rocblas_diagonal::rocblas_diagonal_non_unit,
            2,
            1,
            &1.0,
            a.at,
            2,
            b.at,
            2,
        )
    );
    assert_eq!(status, DONE);
    assert_eq!(b.read(), [1.0, 2.0]);
}

#[test]
fn reductions_come_to_the_host_and_sizes_of_64_bits_are_taken() {
    let Some(tables) = tables() else { return };
    let handle = Handle::new();
    let x = Memory::of(&[3.0_f32, 4.0]);
    let (mut norm, mut dot, mut most) = (0.0_f32, 0.0_f32, 0);
    assert_eq!(call!(tables.blas, rocblas_snrm2(handle.0, 2, x.at, 1, &mut norm)), DONE);
    assert_eq!(
        call!(tables.blas, rocblas_sdot_64(handle.0, 2, x.at, 1, x.at, 1, &mut dot)),
        DONE
    );
    assert_eq!(
        call!(tables.blas, rocblas_isamax(handle.0, 2, x.at, 1, &mut most)),
        DONE
    );
    assert_eq!((norm, dot, most), (5.0, 25.0, 2));
}

#[test]
fn bad_arguments_are_told_apart_before_cublas_sees_them() {
    let Some(tables) = tables() else { return };
    let handle = Handle::new();
    let a = Memory::of(&[1.0_f32; 4]);
    let (one, null) = (1.0_f32, ptr::null::<f32>());
    let gemm = |op, m, lda, alpha| {
        call!(
            tables.blas,
            rocblas_sgemm(handle.0, op, NONE, m, 2, 2, alpha, a.at, lda, a.at, 2, &one, a.at, 2)
        )
    };
    assert_eq!(gemm(Op(0), 2, 2, &one), rocblas_status::rocblas_status_invalid_value);
    assert_eq!(gemm(NONE, 2, 1, &one), rocblas_status::rocblas_status_invalid_size);
    assert_eq!(gemm(NONE, 2, 2, null), rocblas_status::rocblas_status_invalid_pointer);
    assert_eq!(gemm(NONE, 0, 2, null), DONE, "nothing to do");
}
