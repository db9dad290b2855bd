//! A kernel on memory of OpenCL. The README shows this program.
//!
//! `cargo run --package hipcl-clmgr --example hello`

use clmgr::{Arg, Context, Manager, NdRange, Program, RegularBuffer};

fn main() -> clmgr::Result<()> {
    let device = Manager::load()?.devices().remove(0);
    let context = Context::new(&device)?;
    let queue = context.queue()?;
    let source = "kernel void scale(global float *x, float by) { x[get_global_id(0)] *= by; }";
    let scale = Program::build(&context, source, "")?.kernel("scale")?;

    let mut x = RegularBuffer::new(&context, 1000)?;
    x.write(&queue, &[2.0f32; 1000])?;
    // SAFETY: the kernel touches the 1000 elements of `x`, which nothing else uses.
    unsafe { scale.launch(&queue, NdRange::d1(x.len()), &[x.arg(), Arg::scalar(&1.5f32)])? };
    let mut result = [0.0; 1000];
    x.read(&queue, &mut result)?;
    assert_eq!(result, [3.0; 1000]);
    println!("{}: 2.0 * 1.5 = {}", device.name(), result[0]);
    Ok(())
}
