//! What the examples share: the platform's first device, and what page migration depends on.

#![allow(dead_code, reason = "each example uses a part")]

use std::error::Error;

/// The first device of the chosen platform (`HIPCL_PLATFORM`), announced in one line.
pub fn device() -> Result<hip::Device, Box<dyn Error>> {
    let selection = platform::select()?;
    let tables = selection.tables().clone();
    // SAFETY: both tables come from the one platform that was selected.
    let runtime = unsafe { hip::Runtime::from_tables(tables.hip, tables.rtc) }?;
    let device = runtime.device(0)?;
    println!(
        "platform {}: {} ({})",
        selection.platform(),
        device.name()?,
        device.arch()?
    );
    Ok(device)
}

/// Whether the program was started so that the device may fault, and the command that starts it so if not. To be asked
/// before the runtime starts, which reads the variable once: gfx908 and gfx90a run with XNACK only if asked to.
pub fn check_xnack() -> bool {
    if std::env::var("HSA_XNACK").is_ok_and(|value| value == "1") {
        return true;
    }
    let words: Vec<String> = std::env::args().map(|word| quoted(&word)).collect();
    println!("HSA_XNACK is not 1, so pages do not move on demand on cards that have to be asked. To ask, run");
    println!("    HSA_XNACK=1 {}", words.join(" "));
    false
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Says whether pages move on demand here.
pub fn explain_xnack(device: &hip::Device, wanted: bool) -> hip::Result<()> {
    let faults = device.attribute(hip_sys::hipDeviceAttribute_t::hipDeviceAttributePageableMemoryAccess)? != 0;
    if faults {
        println!("pages move on demand: the device reads memory of the operating system as it is");
    } else if wanted {
        println!("HSA_XNACK=1 is set, and the device still cannot fault: managed memory stays on the host");
    } else {
        println!("the device does not fault: managed memory stays on the host");
    }
    Ok(())
}
