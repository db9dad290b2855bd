//! Managed memory: the host fills it, the device changes it, the host checks it, under one address and without a copy
//! call; then the same with advice and prefetching.
//!
//! `cargo run -p hipcl-hip --example 03_lazy_managed`

mod common;

use std::error::Error;
use std::time::Instant;

use hip::param::{In, InOut};
use hip::{Advice, LaunchConfig, Location};

const N: usize = 4 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let wanted = common::check_xnack();
    let device = common::device()?;
    common::explain_xnack(&device, wanted)?;
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

    for prefetch in [false, true] {
        let mut x = device.alloc_managed::<f32>(N)?;
        let mut y = device.alloc_managed::<f32>(N)?;
        for (i, value) in x.host_mut()?.iter_mut().enumerate() {
            *value = (i % 4096) as f32;
        }
        let begin = Instant::now();
        if prefetch {
            // Hints: a device that cannot move pages may refuse them, and the result is the same.
            let here = Location::Device(&device);
            let hints = x
                .advise(Advice::ReadMostly)
                .and_then(|()| y.advise(Advice::Preferred(here)))
                .and_then(|()| x.prefetch(&stream, here))
                .and_then(|()| y.prefetch(&stream, here));
            if let Err(error) = hints {
                println!("hints were refused: {error}");
            }
        }
        let args = (y.on_mut(&stream)?, x.on(&stream)?, 3.0, 1.0, N as u32);
        // SAFETY: the kernel stays below `N`, the length of both.
        unsafe { add.launch(&stream, LaunchConfig::linear(N, 256)?, args)? };
        // Waits for the kernel.
        let seen = y.host()?;
        let elapsed = begin.elapsed();
        if let Some(i) = (0..N).find(|&i| seen[i] != 3.0 * (i % 4096) as f32 + 1.0) {
            return Err(format!("y[{i}] is {}", seen[i]).into());
        }
        let how = if prefetch { "prefetched" } else { "on demand" };
        println!("{how}: {N} elements are right, device part in {elapsed:?}");
    }
    Ok(())
}
