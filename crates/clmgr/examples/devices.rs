//! What every OpenCL device here tells about itself, and which libraries were tried.
//!
//! `cargo run -p hipcl-clmgr --example devices`

use clmgr::Manager;

fn main() -> clmgr::Result<()> {
    let manager = Manager::load()?;
    for library in manager.libraries() {
        println!("{} ({})", library.path.display(), library.kind);
    }
    for device in manager.devices() {
        println!("\n{}", device.info()?);
    }
    Ok(())
}
