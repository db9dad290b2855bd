//! C = A I for 256 x 256 matrices, by a naive kernel and by one with tiles in shared memory: C must be A, bit by bit.
//!
//! `cargo run -p hipcl-hip --example 02_matrix_mul`

mod common;

use std::error::Error;

use hip::LaunchConfig;
use hip::param::{In, InOut};

const N: usize = 256;
const TILE: u32 = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let device = common::device()?;
    let stream = device.stream()?;
    let module = hip::rtc::Program::new(include_str!("../kernels/matrix_mul.hip"))
        .name("matrix_mul.hip")
        .compile(&device)?;

    let matrix: Vec<f32> = (0..N * N).map(|i| (i as f32 * 0.37).sin()).collect();
    let identity: Vec<f32> = (0..N * N).map(|i| f32::from(u8::from(i / N == i % N))).collect();
    let a = device.alloc_from(&stream, &matrix)?;
    let b = device.alloc_from(&stream, &identity)?;
    let blocks = N as u32 / TILE;
    let config = LaunchConfig {
        grid: (blocks, blocks, 1),
        block: (TILE, TILE, 1),
        shared_bytes: 0,
    };
    for name in ["naive", "tiled"] {
        let function = module.function(name)?;
        // SAFETY: these are the parameters of both kernels.
        let multiply = unsafe { function.typed::<(InOut<f32>, In<f32>, In<f32>, u32)>() };
        let mut c = device.alloc_zeroed::<f32>(N * N)?;
        let start = stream.record()?;
        let args = (c.on_mut(&stream)?, a.on(&stream)?, b.on(&stream)?, N as u32);
        // SAFETY: one thread for each of the N x N elements, N is a multiple of the tile, and blocks are tiles.
        unsafe { multiply.launch(&stream, config, args)? };
        let end = stream.record()?;

        let mut product = vec![0.0; N * N];
        c.copy_to_slice(&stream, &mut product)?;
        // x 1 + 0 + 0 ... is x exactly, in any order.
        if let Some(i) = (0..N * N).find(|&i| product[i] != matrix[i]) {
            return Err(format!("{name}: C[{i}] is {}, not {}", product[i], matrix[i]).into());
        }
        println!("{name}: C == A in {:?}", end.elapsed_since(&start)?);
    }
    Ok(())
}
