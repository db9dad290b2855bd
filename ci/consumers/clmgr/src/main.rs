//! Lists the OpenCL devices.

fn main() -> clmgr::Result<()> {
    for device in clmgr::Manager::load()?.devices() {
        println!("{} ({})", device.name(), device.version());
    }
    Ok(())
}
