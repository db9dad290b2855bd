//! Arrays of the crate `ndarray`: what goes to the device and comes back is the same array, in any order of its
//! elements.

#![cfg(feature = "ndarray")]

mod common;

use common::{numbers, setup};
use ndarray::{Array2, Array3, Axis, ShapeBuilder, s};
use num_complex::Complex;
use proptest::prelude::*;
use rocblas::{Batch, DeviceMatrix, Error, Matrix};

type C32 = Complex<f32>;

/// A value that no test writes.
const GAP: C32 = C32::new(77.0, -77.0);

proptest! {
    #![proptest_config(common::cases(60))]

    #[test]
    fn an_array_of_any_strides_comes_back(
        rows in 0_usize..7, cols in 0_usize..7, gap in 0_usize..3, transposed in any::<bool>(),
        step in 1_isize..3, flipped in any::<bool>(), seed in any::<u64>(),
    ) {
        let setup = setup();
        // A part of a larger array: every `step`th row, perhaps backwards, perhaps the other way round.
        let (height, width) = if transposed { (cols, rows) } else { (rows, cols) };
        let large = Array2::from_shape_vec((height * 2 + 1, width + 1), numbers::<C32>((height * 2 + 1) * (width + 1), seed)).unwrap();
        let mut part = large.slice(s![..;step, ..width]);
        part = part.slice_move(s![..height, ..]);
        if flipped {
            part.invert_axis(Axis(0));
        }
        if transposed {
            part = part.reversed_axes();
        }
        prop_assert_eq!(part.dim(), (rows, cols));

        let ld = rows + gap + 1;
        let mut buffer = setup.upload(&vec![GAP; ld * cols]);
        let stream = &setup.stream;
        Matrix::new(&mut buffer, rows, cols, ld).gather_from_array(stream, part).unwrap();
        let matrix = Matrix::new(&buffer, rows, cols, ld);
        prop_assert_eq!(&matrix.to_array(stream).unwrap(), &part);
        let mut scattered = large.clone();
        scattered.fill(GAP);
        let mut target = scattered.slice_mut(s![..;step, ..width]);
        target = target.slice_move(s![..height, ..]);
        if transposed {
            target = target.reversed_axes();
        }
        matrix.scatter_to_array(stream, target.view_mut()).unwrap();
        prop_assert_eq!(&target, &part);
        prop_assert_eq!(scattered.iter().filter(|&&value| value == GAP).count(), large.len() - rows * cols);
        // On the device, element (i, j) is at i + j * ld, and the gaps are untouched.
        for (index, value) in setup.download(&buffer).into_iter().enumerate() {
            let (i, j) = (index % ld, index / ld);
            prop_assert_eq!(value, if i < rows { part[[i, j]] } else { GAP });
        }
    }

    #[test]
    fn a_batch_comes_back_matrix_by_matrix(
        count in 0_usize..4, rows in 0_usize..5, cols in 0_usize..5, gap in 0_usize..3, seed in any::<u64>(),
    ) {
        let setup = setup();
        let array = Array3::from_shape_vec((count, rows, cols), numbers::<C32>(count * rows * cols, seed)).unwrap();
        let (ld, stride) = (rows + 1, (rows + 1) * cols + gap);
        let mut buffer = setup.upload(&vec![GAP; stride * count]);
        let stream = &setup.stream;
        macro_rules! batch {
            ($buffer:expr) => {
                Matrix::new($buffer, rows, cols, ld).batch(stride, count)
            };
        }
        batch!(&mut buffer).gather_from_array(stream, array.view()).unwrap();
        let back = batch!(&buffer).to_array(stream).unwrap();
        prop_assert_eq!(&back, &array);
        // What `to_array` made is as the strict copies want it.
        batch!(&mut buffer).copy_from_array(stream, back.view()).unwrap();
        let mut scattered = Array3::from_elem((count, rows, cols), GAP);
        batch!(&buffer).scatter_to_array(stream, scattered.view_mut()).unwrap();
        prop_assert_eq!(&scattered, &array);
        let gaps = setup.download(&buffer).into_iter().filter(|&value| value == GAP).count();
        prop_assert_eq!(gaps, stride * count - count * rows * cols);
    }
}

#[test]
fn a_column_major_array_is_copied_as_it_is() {
    let setup = setup();
    let array = Array2::from_shape_vec((2, 3).f(), vec![1.0_f64, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let matrix = DeviceMatrix::from_array(&setup.stream, array.view()).unwrap();
    assert_eq!((matrix.rows(), matrix.cols()), (2, 3));
    assert_eq!(matrix.to_array(&setup.stream).unwrap(), array);
    assert_eq!(setup.download(&matrix.into_buffer()), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
}

#[test]
fn another_order_of_elements_is_refused_with_what_to_do() {
    let setup = setup();
    let array = Array2::<f32>::zeros((3, 4));
    let error = DeviceMatrix::from_array(&setup.stream, array.view()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "copy_from_array: the array of shape [3, 4] has strides [4, 1], but column-major ones without gaps are needed; \
         use gather_from_array, which reorders in host memory, or the array's transpose"
    );
    // Its transpose is what the call wants.
    DeviceMatrix::from_array(&setup.stream, array.t()).unwrap();
    // Column-major, but a part of larger columns.
    let part = Array2::<f32>::zeros((5, 4).f());
    let part = part.slice(s![..3, ..]);
    assert!(matches!(
        DeviceMatrix::from_array(&setup.stream, part),
        Err(Error::ArrayLayout { strides, .. }) if strides == [1, 5]
    ));

    let matrix = DeviceMatrix::<f32>::zeros(&setup.device, 3, 4).unwrap();
    let mut target = Array2::from_elem((3, 4), 1.0);
    let error = matrix
        .as_matrix()
        .copy_to_array(&setup.stream, target.view_mut())
        .unwrap_err();
    assert!(error.to_string().contains("; use scatter_to_array, "), "{error}");
    assert_eq!(target, Array2::from_elem((3, 4), 1.0), "nothing was written");
}

#[test]
fn another_shape_is_refused_by_name() {
    let setup = setup();
    let mut matrix = DeviceMatrix::<f32>::zeros(&setup.device, 3, 4).unwrap();
    let (mut array, stream) = (Array2::zeros((4, 3)), &setup.stream);
    let expected = "array is 4 x 3, but 3 x 4, as the matrix, is needed";
    for outcome in [
        matrix.as_matrix_mut().copy_from_array(stream, array.view()),
        matrix.as_matrix_mut().gather_from_array(stream, array.view()),
        matrix.as_matrix().copy_to_array(stream, array.view_mut()),
        matrix.as_matrix().scatter_to_array(stream, array.view_mut()),
    ] {
        let text = outcome.unwrap_err().to_string();
        assert!(text.ends_with(expected), "{text}");
    }
    let batch = Batch::from(matrix.as_matrix_mut());
    let array = Array3::zeros((2, 3, 4));
    let error = batch.gather_from_array(stream, array.view()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "gather_from_array: array is 2 x 3 x 4, but 1 x 3 x 4, as the batch, is needed"
    );
}

/// Its shape is only what the caller said: nothing is allocated by it.
#[test]
fn a_batch_that_is_not_in_the_memory_is_refused_before_there_is_an_array() {
    let setup = setup();
    let matrix = DeviceMatrix::<f32>::zeros(&setup.device, 8, 8).unwrap();
    let batch = matrix.as_matrix().batch(1, 1 << 40);
    let error = batch.to_array(&setup.stream).unwrap_err().to_string();
    assert!(error.contains("the memory has 64"), "{error}");
}
