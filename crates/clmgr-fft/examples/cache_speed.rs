//! What the program cache saves: the FFT kernels of several lengths, compiled and then found on disk
//! by another process.
//!
//! `cargo run --release -p hipcl-clmgr-fft --example cache_speed`. Drivers with a cache of their own hide what
//! a cold start takes: empty it before, or switch it off (PoCL: `POCL_KERNEL_CACHE=0`).

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use clmgr::{Context, Manager, ProgramCache};
use clmgr_fft::{Direction, Plan};

/// Lengths and batches of this project's jobs, and a few common ones.
const SIZES: [(usize, usize); 8] = [
    (4000, 100),
    (2000, 100),
    (32, 1000),
    (1024, 100),
    (625, 100),
    (4096, 100),
    (16384, 10),
    (1 << 20, 1),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let program = std::env::current_exe()?;
    match std::env::args_os().nth(1) {
        Some(folder) => start(Path::new(&folder)),
        None => {
            let folder = tempfile::tempdir()?;
            let mut times = Vec::new();
            for round in 0..4 {
                let output = Command::new(&program).arg(folder.path()).output()?;
                let text = String::from_utf8(output.stdout)?;
                if !output.status.success() {
                    return Err(String::from_utf8_lossy(&output.stderr).into());
                }
                print!("{}: {text}", if round == 0 { "cold" } else { "warm" });
                let seconds = text.split_whitespace().next().ok_or("no time")?;
                times.push(seconds.parse::<f64>()?);
            }
            let warm = times[1..].iter().copied().fold(f64::INFINITY, f64::min);
            println!("a warm start is {:.0} times as quick", times[0] / warm);
            Ok(())
        }
    }
}

/// One process: the time to get all programs, without that of finding OpenCL.
fn start(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let context = Context::new(&Manager::load()?.devices()[0])?;
    // SAFETY: only caches of programs write there.
    let programs = unsafe { ProgramCache::open_in(&context, folder) };
    let begin = Instant::now();
    for (len, batch) in SIZES {
        let plan = Plan::new(&context, &programs, len, batch)?;
        plan.prepare(Direction::Forward)?;
        plan.prepare(Direction::Inverse)?;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let stats = programs.stats();
    println!(
        "{seconds:.4} s, {} programs compiled, {} from disk",
        stats.compiled, stats.disk_hits
    );
    match stats.disk_trouble {
        Some(trouble) => Err(trouble.into()),
        None => Ok(()),
    }
}
