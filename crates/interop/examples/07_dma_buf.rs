//! Memory as a file descriptor: a second address in this process, and the same bytes in another one.
//!
//! `cargo run -p hipcl-interop --example 07_dma_buf`

mod common;

use std::error::Error;

use common::{LEN, first, is_second, second, start_second};
use interop::{Bridge, Carrier, Joint, Link, NotExported, Options, Route, Shared};

fn main() -> Result<(), Box<dyn Error>> {
    let bridge = Bridge::open(&platform::select()?, &Options::default())?;
    if is_second() {
        return second(&bridge);
    }

    // OpenCL allocates, HIP imports: the route that gives HIP an object of its own.
    match bridge.alloc_on::<u32>(Route::DmaBuf, LEN) {
        Ok(mut memory) => {
            alias(&mut memory)?;
            println!("OpenCL's memory as a dma-buf for HIP: two addresses, the same words");
        }
        Err(error) => println!("OpenCL's memory as a dma-buf for HIP: not here: {error}"),
    }

    let (memory, carrier) = descriptor(&bridge)?;
    in_one_process(&bridge, memory, carrier)?;

    let (memory, _) = descriptor(&bridge)?;
    let (mut child, link) = start_second()?;
    let mut joint = memory.export_by(carrier, link).map_err(|not| not.error)?;
    first(&bridge, &mut joint)?;
    drop(joint);
    if !child.wait()?.success() {
        return Err("the second process failed".into());
    }
    println!("two processes, by {carrier}: every word right, none copied");
    Ok(())
}

/// Memory that leaves as a dma-buf, or else by the descriptor that the platform has.
fn descriptor(bridge: &Bridge) -> Result<(Shared<u32>, Carrier), Box<dyn Error>> {
    let candidates = [
        (Carrier::DmaBuf, bridge.alloc_on(Route::SvmCoarse, LEN)),
        (Carrier::DmaBuf, bridge.alloc_on(Route::HipPointer, LEN)),
        (Carrier::HipFd, bridge.alloc_exportable(LEN)),
    ];
    for (carrier, memory) in candidates {
        let tried = memory.and_then(|memory| {
            // No process answers, so that only the export itself is tried.
            let (link, theirs) = Link::pair()?;
            drop(theirs);
            match memory.export_by(carrier, link) {
                Err(not) => {
                    let NotExported { error, buffer } = *not;
                    let found = buffer.filter(|_| !error.is_impossible());
                    found.ok_or(error)
                }
                Ok(_) => unreachable!("no peer is there"),
            }
        });
        match tried {
            Ok(memory) => return Ok((memory, carrier)),
            Err(error) => println!("by {carrier}: not here: {error}"),
        }
    }
    Err("no descriptor of device memory can be had on this platform".into())
}

/// HIP's address against OpenCL's.
fn alias(memory: &mut Shared<u32>) -> Result<(), Box<dyn Error>> {
    let words: Vec<u32> = (0..LEN as u32).rev().collect();
    memory.upload(&words)?;
    let (cl, hip) = memory.addresses().ok_or("both addresses are known")?;
    let mut back = vec![0; LEN];
    memory.download(&mut back)?;
    if cl == hip || back != words {
        return Err("an import has an address of its own and shows the same words".into());
    }
    Ok(())
}

/// Both ends of the link in this process: what one side writes the other reads, at another address.
fn in_one_process(bridge: &Bridge, memory: Shared<u32>, carrier: Carrier) -> Result<(), Box<dyn Error>> {
    let route = memory.route();
    let (link, theirs) = Link::pair()?;
    let importer = bridge.clone();
    let importer = std::thread::spawn(move || {
        // SAFETY: the other side is `ours` below.
        unsafe { importer.import::<u32>(theirs.into_link()) }
    });
    let mut ours = memory.export_by(carrier, link).map_err(|not| not.error)?;
    let mut other: Joint<u32> = importer.join().map_err(|_| "the importer panicked")??;
    let words: Vec<u32> = (0..LEN as u32).collect();
    ours.upload(&words)?;
    ours.pass()?;
    other.take()?;
    let mut back = vec![0; LEN];
    other.download(&mut back)?;
    let addresses = ours.addresses().zip(other.addresses());
    if back != words || addresses.is_some_and(|(a, b)| a.1 == b.1) {
        return Err("the import does not show the memory".into());
    }
    println!("one process, {route} by {carrier}: two addresses, the same words");
    Ok(())
}
