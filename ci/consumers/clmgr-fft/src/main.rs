//! Plans a transform on every OpenCL device.

use clmgr::{Context, Manager, ProgramCache};
use clmgr_fft::Plan;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for device in Manager::load()?.devices() {
        let context = Context::new(&device)?;
        let plan = Plan::new(&context, &ProgramCache::in_memory(&context), 1000, 1)?;
        println!("{}: {}", device.name(), plan.way());
    }
    Ok(())
}
