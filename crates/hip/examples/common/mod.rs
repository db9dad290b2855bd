//! What the examples share: the platform's first device, and what page migration depends on.

#![allow(dead_code, reason = "each example uses a part")]

use std::error::Error;

/// The first device of the chosen platform (`HIPCL_PLATFORM`), announced in one line.
pub fn device() -> Result<hip::Device, Box<dyn Error>> {
    let selection = platform::select()?;
    let tables = selection.tables;
    // SAFETY: both tables come from the one platform that was selected.
    let runtime = unsafe { hip::Runtime::from_tables(tables.hip, tables.rtc) }?;
    let device = runtime.device(0)?;
    println!(
        "platform {}: {} ({})",
        selection.platform,
        device.name()?,
        device.arch()?
    );
    Ok(device)
}

/// Whether the program was started so that the device can fault. To be asked before the runtime starts: it reads the
/// variable once.
pub fn xnack_wanted() -> bool {
    std::env::var("HSA_XNACK").is_ok_and(|value| value == "1")
}

/// Says what page migration depends on here, and how to get it. gfx908 and gfx90a run with XNACK only if asked to.
pub fn explain_xnack(device: &hip::Device, wanted: bool) -> hip::Result<()> {
    let faults = device
        .attribute(hip_sys::hipDeviceAttribute_t::hipDeviceAttributePageableMemoryAccess)?
        != 0;
    if faults {
        println!("pages move on demand: the device reads memory of the operating system as it is");
    } else if wanted {
        println!(
            "HSA_XNACK=1 is set, and the device still cannot fault: managed memory stays on the host"
        );
    } else {
        let program = std::env::args().collect::<Vec<_>>().join(" ");
        println!(
            "the device does not fault: managed memory stays on the host. To let pages move, run"
        );
        println!("    HSA_XNACK=1 {program}");
    }
    Ok(())
}
