//! Puts a vector into device memory.

fn main() -> hip::Result<()> {
    let runtime = hip::Runtime::load()?;
    let device = runtime.device(0)?;
    let stream = device.stream()?;
    let buffer = device.alloc_from(&stream, &[1.0_f32, 2.0, 3.0])?;
    println!("{}: {} elements of device memory", device.name()?, buffer.len());
    device.synchronize()
}
