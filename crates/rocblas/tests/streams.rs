//! Random products on random streams give what the same work gives in order.

mod common;

use common::{library, numbers};
use hip::DeviceBuffer;
use proptest::prelude::*;
use rocblas::{Handle, Matrix, OnDevice, Op, PointerArray};

const BUFFERS: usize = 4;
const STREAMS: usize = 3;
/// Rows and columns of each matrix.
const N: usize = 6;

#[derive(Debug, Clone)]
enum Step {
    /// Its output is none of its inputs.
    Gemm {
        a: usize,
        b: usize,
        c: usize,
        by_pointer: bool,
    },
    Axpy {
        x: usize,
        y: usize,
    },
    Copy {
        x: usize,
        y: usize,
    },
    Scal {
        x: usize,
    },
    /// Scales by the norm of another buffer, which never leaves the device.
    ScalByNorm {
        x: usize,
        y: usize,
    },
    NewHandle,
}

fn step() -> impl Strategy<Value = Step> {
    let buffer = || 0..BUFFERS;
    prop_oneof![
        3 => (buffer(), buffer(), buffer(), any::<bool>())
            .prop_map(|(a, b, c, by_pointer)| Step::Gemm { a, b, c, by_pointer }),
        3 => (buffer(), buffer()).prop_map(|(x, y)| Step::Axpy { x, y }),
        2 => (buffer(), buffer()).prop_map(|(x, y)| Step::Copy { x, y }),
        1 => buffer().prop_map(|x| Step::Scal { x }),
        2 => (buffer(), buffer()).prop_map(|(x, y)| Step::ScalByNorm { x, y }),
        1 => Just(Step::NewHandle),
    ]
}

/// The same step in double precision, one after another.
fn model(step: &Step, state: &mut [Vec<f64>]) {
    match *step {
        Step::Gemm { a, b, c, .. } => {
            let product =
                |i: usize, j: usize| -> f64 { (0..N).map(|l| state[a][i + l * N] * state[b][l + j * N]).sum() };
            let sum = |index: usize| 0.25 * product(index % N, index / N) - 0.5 * state[c][index];
            state[c] = (0..N * N).map(sum).collect();
        }
        Step::Axpy { x, y } => {
            let [x, y] = state.get_disjoint_mut([x, y]).unwrap();
            y.iter_mut().zip(x).for_each(|(y, x)| *y += 0.5 * *x);
        }
        Step::Copy { x, y } => state[y] = state[x].clone(),
        Step::Scal { x } => state[x].iter_mut().for_each(|value| *value *= -0.75),
        Step::ScalByNorm { x, y } => {
            let norm = state[x].iter().map(|value| value * value).sum::<f64>().sqrt();
            state[y].iter_mut().for_each(|value| *value *= norm);
        }
        Step::NewHandle => {}
    }
}

/// Scales down what has grown, here and on the device, so that one bound fits all numbers.
fn tame(blas: &Handle, buffers: &mut [DeviceBuffer<f64>], state: &mut [Vec<f64>]) {
    for (values, buffer) in state.iter_mut().zip(buffers) {
        let most = values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        if most > 4.0 {
            let factor = 1.0 / most;
            values.iter_mut().for_each(|value| *value *= factor);
            let slice = buffer.on_mut(blas.stream()).unwrap();
            blas.scal(factor, slice.into()).unwrap();
        }
    }
}

fn run(
    step: &Step,
    blas: &Handle,
    buffers: &mut [DeviceBuffer<f64>],
    norm: &mut DeviceBuffer<f64>,
) -> rocblas::Result<()> {
    let stream = blas.stream();
    match *step {
        Step::Gemm { a, b, c, by_pointer } => {
            let mut c_buffer = std::mem::replace(&mut buffers[c], stream.device().alloc(0)?);
            let (a, b) = (buffers[a].on(stream)?, buffers[b].on(stream)?);
            let out = c_buffer.on_mut(stream)?;
            let none = Op::None;
            if by_pointer {
                let [at_a, at_b, at_out] = [(); 3].map(|()| PointerArray::new(N, N, N));
                blas.gemm_batched(none, none, 0.25, at_a.of(a), at_b.of(b), -0.5, at_out.of(out))?;
            } else {
                let (a, b) = (Matrix::new(a, N, N, N), Matrix::new(b, N, N, N));
                blas.gemm(none, none, 0.25, a, b, -0.5, Matrix::new(out, N, N, N))?;
            }
            buffers[c] = c_buffer;
        }
        Step::Axpy { x, y } => {
            let [x, y] = buffers.get_disjoint_mut([x, y]).unwrap();
            blas.axpy(0.5, x.on(stream)?.into(), y.on_mut(stream)?.into())?;
        }
        Step::Copy { x, y } => {
            let [x, y] = buffers.get_disjoint_mut([x, y]).unwrap();
            blas.copy(x.on(stream)?.into(), y.on_mut(stream)?.into())?;
        }
        Step::Scal { x } => blas.scal(-0.75, buffers[x].on_mut(stream)?.into())?,
        Step::ScalByNorm { x, y } => {
            blas.nrm2_into(buffers[x].on(stream)?.into(), norm.on_mut(stream)?)?;
            blas.scal(OnDevice(&*norm), buffers[y].on_mut(stream)?.into())?;
        }
        Step::NewHandle => {}
    }
    Ok(())
}

/// Whether its output is none of its inputs, as borrowing demands.
fn possible(step: &Step) -> bool {
    match *step {
        Step::Gemm { a, b, c, .. } => a != c && b != c,
        Step::Axpy { x, y } | Step::Copy { x, y } => x != y,
        Step::Scal { .. } | Step::ScalByNorm { .. } | Step::NewHandle => true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_time: 10_000, ..common::cases(60) })]

    #[test]
    fn streams_are_in_order_wherever_operands_connect_them(steps in prop::collection::vec((step(), 0..STREAMS), 1..24)) {
        // Late completion turns a missing wait into a wrong result.
        hip_host::faults::set_delay(std::time::Duration::from_micros(300));
        let device = common::device();
        let stream = device.stream().unwrap();
        let handle = || Handle::new(&library(), &device.stream().unwrap()).unwrap();
        let mut handles: Vec<_> = (0..STREAMS).map(|_| handle()).collect();
        let mut state: Vec<Vec<f64>> = (0..BUFFERS).map(|i| numbers(N * N, i as u64)).collect();
        let mut buffers: Vec<_> = state.iter().map(|values| device.alloc_from(&stream, values).unwrap()).collect();
        let mut norm = device.alloc_zeroed::<f64>(1).unwrap();
        for (step, on) in steps.into_iter().filter(|(step, _)| possible(step)) {
            if let Step::NewHandle = step {
                handles[on] = handle();
            }
            run(&step, &handles[on], &mut buffers, &mut norm).unwrap();
            model(&step, &mut state);
            tame(&handles[(on + 1) % STREAMS], &mut buffers, &mut state);
        }
        for (buffer, expected) in buffers.iter().zip(&state) {
            let mut seen = vec![0.0; N * N];
            buffer.copy_to_slice(&stream, &mut seen).unwrap();
            for (seen, expected) in seen.iter().zip(expected) {
                prop_assert!((seen - expected).abs() <= 1e-7, "{seen}, not {expected}");
            }
        }
        prop_assert!(device.runtime().take_deferred_errors().is_empty());
    }
}
