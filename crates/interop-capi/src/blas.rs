//! Products and inverses of complex matrices, by rocBLAS and rocSOLVER.

use hip::{DeviceMemory, DeviceMemoryMut, DeviceSlice, DeviceSliceMut};
use num_complex::Complex;
use parking_lot::Mutex;
use rocblas::solver::{Mirror, hermitian_inverse};
use rocblas::{Batch, Fill, Handle, Matrix, Op};

use crate::bridge::{BridgeObject, hipcl_bridge};
use crate::buffer::{BufferReader, BufferWriter, Memory, hipcl_buffer};
use crate::call::{Out, call, destroy, input, one_of, optional_out};
use crate::failure::Failure;
use crate::handle::{Object, object};
use crate::queue::{StreamObject, hipcl_stream};
use crate::status::hipcl_status;

type C32 = Complex<f32>;

/// What a hipcl_blas points to.
pub enum hipcl_blas_s {}
/// rocBLAS and rocSOLVER on one stream.
pub type hipcl_blas = *mut hipcl_blas_s;

pub(crate) struct BlasObject(Mutex<Blas>);
object!(BlasObject, hipcl_blas_s, Blas);

struct Blas {
    handle: Handle,
    /// Compiled when the first inverse needs it.
    mirror: Option<Mirror<C32>>,
}

/// A complex number in single precision, as float2 of OpenCL C and rocblas_float_complex.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hipcl_complex {
    /// The real part.
    pub re: f32,
    /// The imaginary part.
    pub im: f32,
}

/// What is done to a matrix before it is used: one of HIPCL_OP_..., whose values are those of rocblas_operation.
pub type hipcl_op = i32;
/// Nothing.
pub const HIPCL_OP_NONE: hipcl_op = 111;
/// Transposed.
pub const HIPCL_OP_TRANSPOSE: hipcl_op = 112;
/// Transposed and conjugated.
pub const HIPCL_OP_CONJ_TRANSPOSE: hipcl_op = 113;

/// Which triangle of a Hermitian matrix is given: one of HIPCL_FILL_..., whose values are those of rocblas_fill.
pub type hipcl_fill = i32;
/// The upper one.
pub const HIPCL_FILL_UPPER: hipcl_fill = 121;
/// The lower one.
pub const HIPCL_FILL_LOWER: hipcl_fill = 122;

const OPS: [(hipcl_op, Op); 3] = [
    (HIPCL_OP_NONE, Op::None),
    (HIPCL_OP_TRANSPOSE, Op::Transpose),
    (HIPCL_OP_CONJ_TRANSPOSE, Op::ConjTranspose),
];

const FILLS: [(hipcl_fill, Fill); 2] = [(HIPCL_FILL_UPPER, Fill::Upper), (HIPCL_FILL_LOWER, Fill::Lower)];

/// Creates a BLAS handle whose calls run on this stream. Calls with one handle on several threads wait for each other.
///
/// @param bridge  A bridge.
/// @param stream  A stream of it.
/// @param blas    Receives the handle, which the caller destroys with hipcl_blas_destroy().
///
/// Errors: HIPCL_ERROR_NOT_SUPPORTED without rocBLAS, HIPCL_ERROR_BLAS if it refuses.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_blas_create(
    bridge: hipcl_bridge,
    stream: hipcl_stream,
    blas: *mut hipcl_blas,
) -> hipcl_status {
    call("hipcl_blas_create", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(blas, "blas") }?;
        let bridge = BridgeObject::of(bridge, "bridge")?;
        let stream = StreamObject::of(stream, "stream")?;
        let handle = Handle::new(&bridge.0.blas()?, &stream.0)?;
        place.publish(BlasObject(Mutex::new(Blas { handle, mirror: None })))
    })
}

/// Destroys a BLAS handle, after the work that was queued with it.
///
/// Errors: HIPCL_ERROR_HANDLE, HIPCL_ERROR_STALE_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hipcl_blas_destroy(blas: hipcl_blas) -> hipcl_status {
    destroy::<BlasObject>("hipcl_blas_destroy", blas, "blas")
}

/// Queues C = alpha * op_a(A) * op_b(B) + beta * C in single-precision complex numbers (rocblas_cgemm), after all earlier
/// work on the buffers, and returns without waiting for it. Matrices are column-major: element (i, j) is at
/// offset + i + j * ld. Sizes, offsets and leading dimensions are in complex numbers of 8 bytes.
///
/// @param blas      A BLAS handle.
/// @param op_a      What is done to A: one of HIPCL_OP_...
/// @param op_b      What is done to B.
/// @param m         Rows of op_a(A) and C.
/// @param n         Columns of op_b(B) and C.
/// @param k         Columns of op_a(A), rows of op_b(B).
/// @param alpha     A host value, read before the call returns.
/// @param a         The buffer of A, which may be that of B.
/// @param a_offset  Where A begins in it.
/// @param lda       Distance of A's columns, at least its rows.
/// @param b         The buffer of B.
/// @param b_offset  Where B begins in it.
/// @param ldb       Distance of B's columns, at least its rows.
/// @param beta      A host value; if it is 0, C is not read.
/// @param c         The buffer of C, another one than those of A and B.
/// @param c_offset  Where C begins in it.
/// @param ldc       Distance of C's columns, at least m.
///
/// Errors: HIPCL_ERROR_ARGUMENT if a matrix does not fit its buffer or the others, HIPCL_ERROR_BUSY for a buffer with an
/// open access or if C's buffer is also an input, HIPCL_ERROR_HANDOFF, HIPCL_ERROR_BLAS. Nothing is queued then.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_cgemm(
    blas: hipcl_blas,
    op_a: hipcl_op,
    op_b: hipcl_op,
    m: usize,
    n: usize,
    k: usize,
    alpha: *const hipcl_complex,
    a: hipcl_buffer,
    a_offset: usize,
    lda: usize,
    b: hipcl_buffer,
    b_offset: usize,
    ldb: usize,
    beta: *const hipcl_complex,
    c: hipcl_buffer,
    c_offset: usize,
    ldc: usize,
) -> hipcl_status {
    call("hipcl_cgemm", || {
        let blas = BlasObject::of(blas, "blas")?;
        let (op_a, op_b) = (operation(op_a, "op_a")?, operation(op_b, "op_b")?);
        // SAFETY: the C caller's numbers.
        let (alpha, beta) = unsafe { (number(alpha, "alpha")?, number(beta, "beta")?) };
        let (a, b) = (BufferReader::of(a, "a")?, BufferReader::of(b, "b")?);
        let mut c = BufferWriter::of(c, "c")?;
        let (a_rows, a_cols) = stored(op_a, m, k);
        let (b_rows, b_cols) = stored(op_b, k, n);
        let a = Matrix::new(Numbers(&a), a_rows, a_cols, lda).at(a_offset);
        let b = Matrix::new(Numbers(&b), b_rows, b_cols, ldb).at(b_offset);
        let c = Matrix::new(NumbersMut(&mut c), m, n, ldc).at(c_offset);
        Ok(blas.0.lock().handle.gemm(op_a, op_b, alpha, a, b, beta, c)?)
    })
}

/// Queues one product for each matrix of three batches (rocblas_cgemm_strided_batched): matrix i of a batch begins
/// i * stride numbers behind the first. Otherwise as hipcl_cgemm().
///
/// @param blas      A BLAS handle.
/// @param op_a      What is done to each A: one of HIPCL_OP_...
/// @param op_b      What is done to each B.
/// @param m         Rows of op_a(A) and C.
/// @param n         Columns of op_b(B) and C.
/// @param k         Columns of op_a(A), rows of op_b(B).
/// @param alpha     A host value, read before the call returns.
/// @param a         The buffer of the A, which may be that of the B.
/// @param a_offset  Where the first A begins in it.
/// @param lda       Distance of A's columns, at least its rows.
/// @param a_stride  Distance of the A; 0 to use one for all.
/// @param b         The buffer of the B.
/// @param b_offset  Where the first B begins in it.
/// @param ldb       Distance of B's columns, at least its rows.
/// @param b_stride  Distance of the B; 0 to use one for all.
/// @param beta      A host value; if it is 0, the C are not read.
/// @param c         The buffer of the C, another one than those of A and B.
/// @param c_offset  Where the first C begins in it.
/// @param ldc       Distance of C's columns, at least m.
/// @param c_stride  Distance of the C, which share no element.
/// @param count     The number of matrices in each batch.
///
/// Errors: as hipcl_cgemm(), and HIPCL_ERROR_ARGUMENT if two of the C overlap.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_cgemm_strided_batched(
    blas: hipcl_blas,
    op_a: hipcl_op,
    op_b: hipcl_op,
    m: usize,
    n: usize,
    k: usize,
    alpha: *const hipcl_complex,
    a: hipcl_buffer,
    a_offset: usize,
    lda: usize,
    a_stride: usize,
    b: hipcl_buffer,
    b_offset: usize,
    ldb: usize,
    b_stride: usize,
    beta: *const hipcl_complex,
    c: hipcl_buffer,
    c_offset: usize,
    ldc: usize,
    c_stride: usize,
    count: usize,
) -> hipcl_status {
    call("hipcl_cgemm_strided_batched", || {
        let blas = BlasObject::of(blas, "blas")?;
        let (op_a, op_b) = (operation(op_a, "op_a")?, operation(op_b, "op_b")?);
        // SAFETY: the C caller's numbers.
        let (alpha, beta) = unsafe { (number(alpha, "alpha")?, number(beta, "beta")?) };
        let (a, b) = (BufferReader::of(a, "a")?, BufferReader::of(b, "b")?);
        let mut c = BufferWriter::of(c, "c")?;
        let (a_rows, a_cols) = stored(op_a, m, k);
        let (b_rows, b_cols) = stored(op_b, k, n);
        let a = Matrix::new(Numbers(&a), a_rows, a_cols, lda).at(a_offset);
        let b = Matrix::new(Numbers(&b), b_rows, b_cols, ldb).at(b_offset);
        let c = Matrix::new(NumbersMut(&mut c), m, n, ldc).at(c_offset);
        let (a, b, c) = (
            a.batch(a_stride, count),
            b.batch(b_stride, count),
            c.batch(c_stride, count),
        );
        let blas = blas.0.lock();
        Ok(blas.handle.gemm_strided_batched(op_a, op_b, alpha, a, b, beta, c)?)
    })
}

/// Replaces each Hermitian positive-definite matrix of a batch by its inverse, both triangles (rocsolver_cpotrf,
/// rocsolver_cpotri and a kernel that completes the other triangle), after all earlier work on the buffer. Waits for the
/// result, to tell which matrices have an inverse. Sizes are in complex numbers of 8 bytes.
///
/// @param blas      A BLAS handle.
/// @param fill      The triangle that is read: HIPCL_FILL_UPPER or HIPCL_FILL_LOWER.
/// @param n         Rows and columns of each matrix.
/// @param a         The buffer.
/// @param a_offset  Where the first matrix begins in it.
/// @param lda       Distance of the columns, at least n.
/// @param a_stride  Distance of the matrices, which share no element; ignored if `count` is 1.
/// @param count     The number of matrices.
/// @param failed    Receives the number of matrices that have no inverse; their contents are unspecified. May be null.
///
/// Errors: HIPCL_ERROR_NUMERIC if a matrix has no inverse, where hipcl_last_error() names the first and the others are
/// right; otherwise as hipcl_cgemm(), but a failure of the library itself leaves the contents unspecified.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_cinverse_hermitian(
    blas: hipcl_blas,
    fill: hipcl_fill,
    n: usize,
    a: hipcl_buffer,
    a_offset: usize,
    lda: usize,
    a_stride: usize,
    count: usize,
    failed: *mut usize,
) -> hipcl_status {
    call("hipcl_cinverse_hermitian", || {
        // SAFETY: null or the C caller's place for a size.
        let place = unsafe { optional_out(failed, "failed") }?;
        let blas = BlasObject::of(blas, "blas")?;
        let fill = one_of(fill, &FILLS, "fill", "HIPCL_FILL_UPPER, HIPCL_FILL_LOWER")?;
        let mut a = BufferWriter::of(a, "a")?;
        let stride = if count == 1 { 0 } else { a_stride };
        let a: Batch<_> = Matrix::new(NumbersMut(&mut a), n, n, lda)
            .at(a_offset)
            .batch(stride, count);
        let mut blas = blas.0.lock();
        let Blas { handle, mirror } = &mut *blas;
        let mirror = match mirror {
            Some(mirror) => mirror,
            None => mirror.insert(Mirror::new(handle.stream().device())?),
        };
        let failures = hermitian_inverse(handle, mirror, fill, a)?.failures()?;
        if let Some(place) = place {
            place.set(failures.len());
        }
        match failures.into_iter().next() {
            None => Ok(()),
            Some(first) if count == 1 => Err(first.error.into()),
            Some(first) => {
                let (index, failure) = (first.matrix, Failure::from(first.error));
                Err(Failure {
                    text: format!("matrix {index} of {count}: {}", failure.text),
                    ..failure
                })
            }
        }
    })
}

/// Rows and columns of a matrix in memory that has these after the operation.
fn stored(op: Op, rows: usize, cols: usize) -> (usize, usize) {
    match op {
        Op::None => (rows, cols),
        Op::Transpose | Op::ConjTranspose => (cols, rows),
    }
}

fn operation(value: hipcl_op, argument: &str) -> Result<Op, Failure> {
    one_of(value, &OPS, argument, "HIPCL_OP_...")
}

/// # Safety
/// `number` is null or the C caller's number.
unsafe fn number(number: *const hipcl_complex, argument: &'static str) -> Result<C32, Failure> {
    // SAFETY: the caller's promise.
    let number = unsafe { input(number, argument) }?;
    Ok(C32::new(number.re, number.im))
}

/// The whole complex numbers in a buffer, to be read.
pub(crate) struct Numbers<'a>(pub(crate) &'a Memory);

/// The whole complex numbers in a buffer, to be written.
pub(crate) struct NumbersMut<'a>(pub(crate) &'a mut Memory);

impl DeviceMemory for Numbers<'_> {
    type Element = C32;

    fn len(&self) -> usize {
        self.0.len() / size_of::<C32>()
    }

    fn read_on<'s>(self, stream: &'s hip::Stream) -> hip::Result<DeviceSlice<'s, C32>>
    where
        Self: 's,
    {
        let bytes = DeviceMemory::len(&self) * size_of::<C32>();
        self.0.read_on(stream)?.slice(..bytes)?.cast()
    }
}

impl DeviceMemory for NumbersMut<'_> {
    type Element = C32;

    fn len(&self) -> usize {
        self.0.len() / size_of::<C32>()
    }

    fn read_on<'s>(self, stream: &'s hip::Stream) -> hip::Result<DeviceSlice<'s, C32>>
    where
        Self: 's,
    {
        Numbers(self.0).read_on(stream)
    }
}

impl DeviceMemoryMut for NumbersMut<'_> {
    fn write_on<'s>(self, stream: &'s hip::Stream) -> hip::Result<DeviceSliceMut<'s, C32>>
    where
        Self: 's,
    {
        let bytes = DeviceMemory::len(&self) * size_of::<C32>();
        self.0.write_on(stream)?.split_at_mut(bytes)?.0.cast()
    }
}
