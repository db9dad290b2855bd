//! A sum over four ranks, each a thread with its own device. The README shows this program.
//!
//! `cargo run --package hipcl-rccl --example all_reduce`

use std::sync::Arc;

use rccl::{Communicator, Library, ReduceOp, UniqueId};

const RANKS: usize = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // SAFETY: no other thread runs yet.
    unsafe { std::env::set_var("HIP_HOST_DEVICES", RANKS.to_string()) };
    // SAFETY: both tables are the software device's. For AMD's GPUs: `hip_sys::Api::load`, `rccl_sys::Api::load`.
    let (runtime, library) = unsafe {
        (
            hip::Runtime::from_tables(Arc::new(hip_host::hip_api()), None)?,
            Library::from_tables(Arc::new(hip_host_rccl::rccl_api())),
        )
    };
    let id = UniqueId::new(&library)?;
    let rank = &|rank: usize| -> rccl::Result<f32> {
        let device = runtime.device(rank)?;
        let stream = device.stream()?;
        let communicator = Communicator::new(&library, &device, &id, rank, RANKS)?;
        let mut x = device.alloc_from(&stream, &[rank as f32 + 1.0; 1000])?;
        communicator.all_reduce_in_place(&mut x, ReduceOp::Sum, &stream)?;
        communicator.wait(&stream)?;
        let mut sums = [0.0; 1000];
        x.copy_to_slice(&stream, &mut sums)?;
        Ok(sums[999])
    };
    let sums = std::thread::scope(|scope| {
        let ranks: Vec<_> = (0..RANKS).map(|at| scope.spawn(move || rank(at))).collect();
        let sums = ranks.into_iter().map(|rank| rank.join().expect("no rank panics"));
        sums.collect::<rccl::Result<Vec<f32>>>()
    })?;
    assert_eq!(sums, [10.0; RANKS]);
    println!("{sums:?}");
    Ok(())
}
