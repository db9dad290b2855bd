//! A product of two matrices. The README shows this program.
//!
//! `cargo run --package hipcl-rocblas --example hello`

use rocblas::{Handle, Library, Matrix, Op};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let selection = platform::select()?;
    let tables = selection.tables();
    let blas = tables.rocblas.clone().ok_or("the platform has no rocBLAS")?;
    // SAFETY: all tables come from one platform.
    let (runtime, library) = unsafe {
        (
            hip::Runtime::from_tables(tables.hip.clone(), tables.rtc.clone())?,
            Library::from_tables(blas, tables.rocsolver.clone()),
        )
    };
    let device = runtime.device(0)?;
    let stream = device.stream()?;
    let blas = Handle::new(&library, &stream)?;

    // a is 2 x 3, b is 3 x 1: columns one after the other.
    let a = device.alloc_from(&stream, &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0_f32])?;
    let b = device.alloc_from(&stream, &[1.0, 10.0, 100.0_f32])?;
    let mut c = device.alloc::<f32>(2)?;
    let (a, b, product) = (
        Matrix::new(&a, 2, 3, 2),
        Matrix::new(&b, 3, 1, 3),
        Matrix::new(&mut c, 2, 1, 2),
    );
    blas.gemm(Op::None, Op::None, 1.0, a, b, 0.0, product)?;

    let mut result = [0.0; 2];
    c.copy_to_slice(&stream, &mut result)?;
    assert_eq!(result, [321.0, 654.0]);
    println!("{}: {result:?}", device.name()?);
    Ok(())
}
