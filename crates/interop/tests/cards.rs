//! Two GPUs and the memory that a bridge allocates on each: used in place by the other, and copied over their link.
//!
//! On the host platform both are software devices.

mod common;

use std::sync::Once;
use std::time::Instant;

use interop::{Bridge, Bridges, Options, Peer, PeerPath, Route, Shared};

/// The first bridge, the second, and the proven pair; `None` after noting a skip where there is one GPU.
fn open() -> Option<(Bridge, Bridge, Peer)> {
    static DEVICES: Once = Once::new();
    // SAFETY: every test comes here before it does anything else, so that nothing reads the environment meanwhile.
    DEVICES.call_once(|| unsafe { std::env::set_var("HIP_HOST_DEVICES", "2") });
    let Bridges { bridges, refused } = Bridge::open_all(&common::selection(), &Options::default()).expect("bridges");
    assert!(refused.is_empty(), "{refused:?}");
    let mut bridges = bridges.into_iter();
    let (Some(first), Some(second)) = (bridges.next(), bridges.next()) else {
        common::skipped("needs two devices");
        return None;
    };
    let peer = first.peer(&second).expect("peers");
    println!("{}", peer.report());
    Some((first, second, peer))
}

/// Memory of each kind that other devices can use in place.
fn reachable(bridge: &Bridge, len: usize) -> Vec<Shared<u32>> {
    let mut all = vec![bridge.alloc::<u32>(len).expect("memory")];
    if all[0].route() != Route::HipPointer {
        all.extend(bridge.alloc_on::<u32>(Route::HipPointer, len));
    }
    all.extend(bridge.alloc_exportable::<u32>(len));
    all
}

#[test]
fn a_kernel_of_one_device_reads_and_writes_parts_of_the_others_memory() {
    const LEN: usize = 10_000;
    let Some((first, second, peer)) = open() else { return };
    if peer.report().path == PeerPath::Staged {
        common::skipped("kernels cannot access the other device");
        return;
    }
    let stream = second.stream().expect("a stream");
    let kernel = hip::rtc::Program::new(
        "extern \"C\" __global__ void add(unsigned int *x, const unsigned int *y, unsigned int n) {
            unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) x[i] += 3 * y[i];
        }",
    )
    .compile(second.hip_device())
    .and_then(|module| module.function("add"))
    .expect("a kernel");
    let config = hip::LaunchConfig::linear(LEN / 2, 256).expect("a grid");
    for mut memory in reachable(&first, LEN) {
        let before: Vec<u32> = (0..LEN as u32).collect();
        memory.upload(&before).expect("an upload");
        let mut factors = first.alloc::<u32>(LEN).expect("memory");
        factors.upload(&before).expect("an upload");
        {
            let factors = factors.part(LEN / 2..LEN).expect("a part");
            let read = peer.hip_part(&factors, &stream).expect("access");
            let (_, mut right) = memory.split_at_mut(LEN / 2).expect("parts");
            let mut write = peer.hip_part_mut(&mut right, &stream).expect("access");
            let (x, y) = (write.slice_mut(), read.slice());
            // SAFETY: the kernel stays below the count, which is that of both parts.
            unsafe { kernel.launch(&stream, config, &[&x, &y, &((LEN / 2) as u32)]) }.expect("a launch");
        }
        let mut after = vec![0; LEN];
        memory.download(&mut after).expect("a download");
        let expected = |i: u32| if i < LEN as u32 / 2 { i } else { 4 * i };
        let wrong = (0..LEN as u32).find(|&i| after[i as usize] != expected(i));
        assert_eq!(wrong, None, "{}", memory.route());
    }
}

/// Staged copies of mappings run at a tenth of the link's throughput on two H200.
#[test]
fn a_copy_of_any_memory_is_as_fast_as_hips_copy_of_its_own() {
    const LEN: usize = 64 << 20;
    const RUNS: usize = 5;
    if !common::on_cards_or_skip("the software device has no link to measure") {
        return;
    }
    let Some((first, second, peer)) = open() else { return };
    if peer.report().path == PeerPath::Staged {
        common::skipped("kernels cannot access the other device");
        return;
    }
    let stream = second.stream().expect("a stream");
    let words: Vec<u32> = (0..LEN as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    for mut source in reachable(&first, LEN) {
        for mut destination in reachable(&second, LEN) {
            source.upload(&words).expect("an upload");
            let mut rates = [0.0; RUNS];
            // The first one opens the memory.
            for run in 0..=RUNS {
                let start = Instant::now();
                peer.copy(&source, &mut destination, &stream).expect("a copy");
                stream.synchronize().expect("copied");
                if run > 0 {
                    rates[run - 1] = 4.0 * LEN as f64 / start.elapsed().as_secs_f64() / 1e9;
                }
            }
            rates.sort_by(f64::total_cmp);
            let (rate, link) = (rates[RUNS / 2], peer.report().gb_s);
            println!(
                "{} to {}: {rate:.1} GB/s of {link:.1}",
                source.route(),
                destination.route()
            );
            let mut copied = vec![0; LEN];
            destination.download(&mut copied).expect("a download");
            assert!(copied == words, "{} to {}", source.route(), destination.route());
            assert!(
                rate > link / 2.0,
                "{} to {}: {rate:.1} GB/s",
                source.route(),
                destination.route()
            );
        }
    }
}
