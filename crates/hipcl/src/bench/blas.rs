//! Complex products of rocBLAS on shared memory, in turns with the same product called raw from another library.

use rocblas::{Handle, Matrix, Op};

use super::line::{Better, Line};
use super::peer::{self, Product};
use super::{Figures, Setup, in_turns, per_second, same_result, shapes};
use crate::{C32, Result};

/// Rows of the square matrices, and how many of them.
const ON_HOST: [(usize, usize); 7] = [(64, 1), (128, 1), (256, 1), (512, 1), (1024, 1), (64, 64), (256, 8)];
const ON_A_CARD: [(usize, usize); 8] = [
    (64, 1),
    (256, 1),
    (512, 1),
    (1024, 1),
    (2048, 1),
    (4096, 1),
    (64, 4096),
    (512, 64),
];
const SAMPLES: usize = 15;

pub(super) fn measure(setup: &Setup) -> Result<Figures> {
    let mut found = Figures::default();
    let sizes: &[(usize, usize)] = match setup.bridge.report().platform.facts().is_model {
        true => &ON_HOST,
        false => &ON_A_CARD,
    };
    let stream = setup.bridge.stream()?;
    let peers = peer::products(&setup.bridge, &stream);
    for &(size, count) in sizes {
        products(setup, &stream, &peers, size, count, &mut found)?;
    }
    found.notes.extend(peers.missing);
    let best = |line: &Line| line.limit.is_none();
    let fastest = found.lines.iter().filter(|line| best(line));
    let fastest = fastest.map(|line| line.value).fold(0.0, f64::max);
    for line in &mut found.lines {
        if best(line) {
            *line = line.clone().against(fastest, "the best of these");
        }
    }
    shapes::measure(setup, fastest, &mut found)?;
    Ok(found)
}

fn products(
    setup: &Setup,
    stream: &hip::Stream,
    peers: &peer::Peers<Product>,
    size: usize,
    count: usize,
    found: &mut Figures,
) -> Result<()> {
    let bridge = &setup.bridge;
    let queue = bridge.queue()?;
    let handle = Handle::new(&bridge.blas()?, stream)?;
    let (one, zero) = (C32::new(1.0, 0.0), C32::default());
    let each = size * size;
    let elements = each * count;
    let number = |i: usize| C32::new((i % 17) as f32 - 8.0, (i % 13) as f32 - 6.0);
    let numbers: Vec<_> = (0..elements).map(number).collect();
    let mut a = bridge.alloc::<C32>(elements)?;
    let mut b = bridge.alloc::<C32>(elements)?;
    let mut c = bridge.alloc::<C32>(elements)?;
    a.upload(&numbers)?;
    b.upload(&numbers)?;
    // OpenCL owns it first, as it does in a program that needs the two
    drop(c.cl_mut(&queue)?);
    let product = Product {
        size,
        count,
        a: a.hip(stream)?.slice().as_ptr(),
        b: b.hip(stream)?.slice().as_ptr(),
        c: c.hip_mut(stream)?.slice_mut().as_mut_ptr(),
    };
    let mut ours = || {
        let [a, b] = [&a, &b].map(|memory| Matrix::new(memory, size, size, size));
        let c = Matrix::new(&mut c, size, size, size);
        let none = Op::None;
        if count == 1 {
            handle.gemm(none, none, one, a, b, zero, c)?;
        } else {
            let [a, b] = [a, b].map(|matrix| matrix.batch(each, count));
            handle.gemm_strided_batched(none, none, one, a, b, zero, c.batch(each, count))?;
        }
        Ok(stream.synchronize()?)
    };
    let mut theirs: Vec<_> = peers
        .found
        .iter()
        .map(|peer| {
            move || {
                // SAFETY: the three buffers hold these matrices, and the stream is idle between the turns.
                unsafe { peer.run(&product) }?;
                Ok(stream.synchronize()?)
            }
        })
        .collect();
    let mut turns: Vec<&mut dyn FnMut() -> Result<()>> = vec![&mut ours];
    turns.extend(theirs.iter_mut().map(|turn| turn as _));
    let mut times = in_turns(SAMPLES, &mut turns)?.into_iter();
    drop(turns);
    ours()?;
    let mut result = vec![C32::default(); elements];
    c.download(&mut result)?;
    let mut other = vec![C32::default(); elements];
    for (turn, peer) in theirs.iter_mut().zip(&peers.found) {
        c.upload(&other)?;
        turn()?;
        c.download(&mut other)?;
        same_result("cgemm", &peer.name(), &result, &other)?;
    }
    let operations = 8.0 * (elements * size) as f64;
    let shape = match count {
        1 => format!("cgemm, {size} x {size}"),
        _ => format!("cgemm strided batched, {count} of {size} x {size}"),
    };
    let line =
        |name: String, times: Vec<f64>| Line::of(name, "GFLOP/s", Better::Higher, per_second(operations, &times));
    let mut ours = line(shape.clone(), times.next().unwrap_or_default());
    let peers = peers.found.iter().zip(times);
    for (index, (peer, times)) in peers.enumerate() {
        let theirs = line(format!("{shape}, {}", peer.name()), times);
        if index == 0 {
            ours = ours.against(theirs.value, peer.name());
        }
        found.lines.push(theirs);
    }
    found.lines.push(ours);
    Ok(())
}
