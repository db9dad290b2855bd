//! A handle works on its stream's device, whatever device the thread last used.

mod common;

use common::library;
use rocblas::{Handle, Matrix, Op};

#[test]
fn a_handle_stays_on_its_device() {
    // SAFETY: the only test of this program, before anything else reads the environment.
    unsafe { std::env::set_var("HIP_HOST_DEVICES", "2") };
    let first = common::device();
    if first.runtime().device_count().unwrap() < 2 {
        common::skipped("needs two devices");
        return;
    }
    let second = first.runtime().device(1).unwrap();
    let stream = second.stream().unwrap();
    first.make_current().unwrap();
    let blas = Handle::new(&library(), &stream).unwrap();
    let a = second.alloc_from(&stream, &[3.0_f32]).unwrap();
    let mut c = second.alloc_zeroed::<f32>(1).unwrap();
    let x = Matrix::new(a.on(&stream).unwrap(), 1, 1, 1);
    let out = Matrix::new(c.on_mut(&stream).unwrap(), 1, 1, 1);
    first.make_current().unwrap();
    blas.gemm(Op::None, Op::None, 1.0, x, x, 0.0, out).unwrap();
    first.make_current().unwrap();
    drop(blas);
    let mut seen = [0.0];
    c.copy_to_slice(&stream, &mut seen).unwrap();
    assert_eq!(seen, [9.0]);
    assert!(first.runtime().take_deferred_errors().is_empty());
}
