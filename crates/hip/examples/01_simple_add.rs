//! y = a x + b on the device: memory, a kernel, a typed launch, and the check.
//!
//! `cargo run -p hipcl-hip --example 01_simple_add`

mod common;

use std::error::Error;

use hip::LaunchConfig;
use hip::param::{In, InOut};

const N: usize = 1 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let device = common::device()?;
    let stream = device.stream()?;
    let module = hip::rtc::Program::new(include_str!("../kernels/simple_add.hip"))
        .name("simple_add.hip")
        .compile(&device)?;
    // SAFETY: these are the kernel's parameters.
    let add = unsafe {
        module
            .function("simple_add")?
            .typed::<(InOut<f32>, In<f32>, f32, f32, u32)>()
    };

    let input: Vec<f32> = (0..N).map(|i| (i % 1000) as f32).collect();
    let x = device.alloc_from(&stream, &input)?;
    let mut y = device.alloc::<f32>(N)?;
    let (a, b) = (2.0, 0.5);
    let args = (y.on_mut(&stream)?, x.on(&stream)?, a, b, N as u32);
    // SAFETY: the kernel stays below `N`, the length of both.
    unsafe { add.launch(&stream, LaunchConfig::linear(N, 256)?, args)? };

    let mut output = vec![0.0; N];
    y.copy_to_slice(&stream, &mut output)?;
    // Small whole numbers and halves: exact, whether or not the device fuses the two operations.
    match (0..N).find(|&i| output[i] != a * input[i] + b) {
        None => println!("{N} elements are right"),
        Some(i) => return Err(format!("y[{i}] is {}, not {}", output[i], a * input[i] + b).into()),
    }
    Ok(())
}
