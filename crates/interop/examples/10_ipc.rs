//! Two processes take turns on one memory, each with OpenCL and HIP; then one of them is killed.
//!
//! `cargo run -p hipcl-interop --example 10_ipc`, or with the carriers to try: `10_ipc dma-buf ipc-handle`.

mod common;

use std::error::Error;

use common::{LEN, ROUNDS, first, is_second, second, start_second};
use interop::{Bridge, Carrier, Options, PeerError, Route};

fn main() -> Result<(), Box<dyn Error>> {
    let bridge = Bridge::open(&platform::select()?, &Options::default())?;
    if is_second() {
        return second(&bridge);
    }
    let mut carriers = std::env::args()
        .skip(1)
        .map(|name| name.parse())
        .collect::<Result<Vec<Carrier>, _>>()?;
    if carriers.is_empty() {
        carriers.extend(Carrier::ALL);
    }
    let mut worked = None;
    for carrier in carriers {
        println!("{carrier}");
        let memory = match carrier {
            Carrier::HipFd => bridge.alloc_exportable::<u32>(LEN),
            // What OpenCL allocates leaves as a dma-buf, where the platform has any.
            Carrier::DmaBuf if bridge.report().working().any(|r| r == Route::DmaBuf) => {
                bridge.alloc_on(Route::SvmCoarse, LEN)
            }
            _ => bridge.alloc_on(Route::HipPointer, LEN),
        };
        let memory = match memory {
            Ok(memory) => memory,
            Err(error) => {
                println!("  not here: {error}");
                continue;
            }
        };
        let route = memory.route();
        let (mut child, link) = start_second()?;
        let mut joint = match memory.export_by(carrier, link) {
            Ok(joint) => joint,
            Err(not) if not.error.is_impossible() => {
                println!("  not here: {not}");
                child.kill()?;
                child.wait()?;
                continue;
            }
            Err(not) => return Err(not.error.into()),
        };
        println!(
            "  process {}: {route}, sent to process {}",
            std::process::id(),
            joint.peer().unwrap_or_default()
        );
        first(&bridge, &mut joint)?;
        println!(
            "  {ROUNDS} turns each, {} KiB: every word right, none copied",
            (LEN * size_of::<u32>()) >> 10
        );
        drop(joint);
        if !child.wait()?.success() {
            return Err("the second process failed".into());
        }
        worked.get_or_insert(carrier);
    }
    let carrier = worked.ok_or("memory cannot go to another process on this platform")?;
    killed(&bridge, carrier)
}

/// The second process dies in its turn; the memory stays.
fn killed(bridge: &Bridge, carrier: Carrier) -> Result<(), Box<dyn Error>> {
    let memory = match carrier {
        Carrier::HipFd => bridge.alloc_exportable::<u32>(LEN),
        _ => bridge.alloc_on(Route::HipPointer, LEN),
    }?;
    let (mut child, link) = start_second()?;
    let mut joint = memory.export_by(carrier, link).map_err(|not| not.error)?;
    joint.upload(&vec![7; LEN])?;
    child.kill()?;
    child.wait()?;
    let error = loop {
        // A turn may still be passed to it that it never sees.
        match joint.pass().and_then(|()| joint.take()) {
            Ok(()) => {}
            Err(interop::Error::Peer(error @ PeerError::Gone { .. })) => break error,
            Err(error) => return Err(error.into()),
        }
    };
    println!("killed: {error}");
    let memory = joint.into_shared()?;
    let mut words = vec![0; LEN];
    memory.download(&mut words)?;
    if words.iter().any(|&word| word != 7) {
        return Err("the memory changed".into());
    }
    println!("killed: the memory is as it was, and this process's alone");
    Ok(())
}
