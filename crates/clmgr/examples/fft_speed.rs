//! FFT throughput beside a plain copy kernel and single-threaded rustfft.
//!
//! `cargo run --release -p clmgr --example fft_speed [LENxBATCH …]`; all sizes of the presets
//! without arguments, and with `powers` those from 2^12 to 2^22 of 256 MiB each. The figures are the
//! best of several runs, in GB/s of one read and one write. The limit is what the copy kernel would
//! take to read and write the data as often as the plan does.

use std::time::Instant;

use clmgr::fft::{Direction, Plan};
use clmgr::{Arg, C32, Context, Manager, NdRange, Program, ProgramCache, Queue, RegularBuffer};

const COPY: &str = "kernel void copy(global const float4 *x, global float4 *y) {
    y[get_global_id(0)] = x[get_global_id(0)];
}";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Manager::load()?.devices().remove(0);
    println!("{} ({})", device.name(), device.platform_name());
    let context = Context::new(&device)?;
    let queue = context.queue()?;
    let programs = ProgramCache::in_memory(&context);
    let mut sizes = Vec::new();
    for argument in std::env::args().skip(1) {
        if argument == "powers" {
            sizes.extend((12..=22).map(|power| (1usize << power, 1usize << (25 - power))));
            continue;
        }
        let (len, batch) = argument.split_once('x').ok_or("a size is LENxBATCH")?;
        sizes.push((len.parse()?, batch.parse()?));
    }
    if sizes.is_empty() {
        sizes = vec![
            (4000, 6720),
            (2000, 6720),
            (32, 349_184),
            (1024, 4096),
            (1 << 22, 1),
        ];
    }
    println!(
        "{:>20} {:>16} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "size", "way", "passes", "compile s", "copy", "in place", "apart", "of limit", "rustfft"
    );
    for (len, batch) in sizes {
        measure(&context, &queue, &programs, len, batch)?;
    }
    Ok(())
}

fn measure(
    context: &Context,
    queue: &Queue,
    programs: &ProgramCache,
    len: usize,
    batch: usize,
) -> clmgr::Result<()> {
    let all = len * batch;
    let mut data: Vec<C32> = (0..all)
        .map(|i| C32::new((i % 17) as f32 - 8.0, (i % 13) as f32 - 6.0))
        .collect();
    let mut x = RegularBuffer::new(context, all)?;
    let mut y = RegularBuffer::new(context, all)?;
    x.write(queue, &data)?;
    y.write(queue, &data)?;

    let copy = Program::build(context, COPY, "")?.kernel("copy")?;
    let begin = Instant::now();
    let plan = Plan::new(context, programs, len, batch)?;
    plan.prepare(Direction::Forward)?;
    let compile = begin.elapsed().as_secs_f64();

    let bytes = plan.bytes_moved() as f64;
    let copied = best(bytes, || {
        // SAFETY: both buffers hold the elements of the range, and nothing else uses them.
        unsafe { copy.launch(queue, NdRange::d1(all / 2), &[x.arg(), y.arg()]) }?;
        queue.finish()
    })?;
    let transform = |from: Arg<'_>, to: Arg<'_>| {
        best(bytes, || {
            // SAFETY: both buffers hold the plan's data, and nothing else uses them.
            unsafe { plan.enqueue(queue, Direction::Forward, from, to) }?;
            queue.finish()
        })
    };
    let in_place = transform(y.arg(), y.arg())?;
    let apart = transform(x.arg(), y.arg())?;

    let fft = rustfft::FftPlanner::new().plan_fft_forward(len);
    let mut scratch = vec![C32::default(); fft.get_inplace_scratch_len()];
    let reference = best(bytes, || {
        fft.process_with_scratch(&mut data, &mut scratch);
        Ok(())
    })?;
    let passes = plan.passes();
    println!(
        "{:>20} {:>16} {passes:>6} {compile:>9.2} {copied:>9.1} {in_place:>9.1} {apart:>9.1} {:>8.0}% {reference:>9.1}",
        format!("{len} x {batch}"),
        plan.way().to_string(),
        100.0 * apart * passes as f64 / copied,
    );
    Ok(())
}

/// The best of 15 runs after one to warm up.
fn best(bytes: f64, mut work: impl FnMut() -> clmgr::Result<()>) -> clmgr::Result<f64> {
    work()?;
    let mut least = f64::INFINITY;
    for _ in 0..15 {
        let begin = Instant::now();
        work()?;
        least = least.min(begin.elapsed().as_secs_f64());
    }
    Ok(bytes / least / 1e9)
}
