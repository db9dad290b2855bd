//! The kernels that select a median, launched as on a card and as on the software device.

mod common;

use hip::{KernelArg, LaunchConfig};
use interop::Bridge;

const KERNELS: &str = include_str!("../kernels/gps.hip");

/// The fields of the kernels' `Peak`, of which the last is the median.
const PEAK: usize = 8;

/// Medians of `maps`, one behind the other, by blocks of `threads` threads with `copies` histograms, `chunks` of them a
/// map.
fn medians(bridge: &Bridge, maps: &[Vec<f32>], [chunks, threads, copies]: [u32; 3]) -> Vec<f32> {
    let (device, stream) = (bridge.hip_device(), bridge.stream().unwrap());
    let module = hip::rtc::Program::new(KERNELS).name("gps.hip").compile(device).unwrap();
    let kernel = |name| module.function(name).unwrap();
    let count = maps.len() as u32;
    let cells = maps[0].len() as u32;
    let power = device.alloc_from(&stream, &maps.concat()).unwrap();
    let mut selections = device.alloc::<[u32; 2]>(maps.len()).unwrap();
    let mut histograms = device.alloc::<u32>(maps.len() * 2048).unwrap();
    let mut peaks = device.alloc_zeroed::<[f32; PEAK]>(maps.len()).unwrap();
    let launch = |name, grid, block, args: &[&dyn KernelArg]| {
        let config = LaunchConfig {
            grid,
            block: (block, 1, 1),
            shared_bytes: 0,
        };
        // SAFETY: the arguments are the kernels', and the buffers have an entry, a histogram and a map for each of the
        // grid.
        unsafe { kernel(name).launch(&stream, config, args) }.unwrap();
    };
    launch(
        "select_begin",
        ((count * 2048).div_ceil(256), 1, 1),
        256,
        &[
            &selections.on_mut(&stream).unwrap(),
            &histograms.on_mut(&stream).unwrap(),
            &count,
            &(cells / 2),
        ],
    );
    for (shift, fixed) in [(21_u32, 0_u32), (10, 0xffe0_0000), (0, 0xffff_fc00)] {
        launch(
            "count_digits",
            (chunks, count, 1),
            threads,
            &[
                &power.on(&stream).unwrap(),
                &selections.on(&stream).unwrap(),
                &histograms.on_mut(&stream).unwrap(),
                &cells,
                &shift,
                &fixed,
                &copies,
            ],
        );
        launch(
            "select_digit",
            (count, 1, 1),
            64,
            &[
                &selections.on_mut(&stream).unwrap(),
                &histograms.on_mut(&stream).unwrap(),
                &peaks.on_mut(&stream).unwrap(),
                &shift,
            ],
        );
    }
    let mut found = vec![[0.0; PEAK]; maps.len()];
    peaks.copy_to_slice(&stream, &mut found).unwrap();
    found.iter().map(|peak| peak[PEAK - 1]).collect()
}

/// Powers as noise has them, equal ones, and ones that differ in their last bits only.
fn maps(cells: usize) -> Vec<Vec<f32>> {
    let mut state = 0x2545_f491_u32;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    let noise = |u: u32| -(f64::from(u) / f64::from(u32::MAX) + 1e-12).ln();
    vec![
        (0..cells).map(|_| noise(next()) as f32).collect(),
        vec![0.0; cells],
        (0..cells).map(|_| f32::from_bits(0x3f80_0000 + next() % 9)).collect(),
        (0..cells).map(|_| f32::from_bits(next() % 0x7f80_0000)).collect(),
        (0..cells).map(|i| if i % 2 == 0 { 1e-42 } else { 3e38 }).collect(),
    ]
}

#[test]
fn the_median_is_exact_wherever_a_map_begins_and_however_it_is_divided() {
    let bridge = match common::open(None) {
        Ok(bridge) => bridge,
        Err(reason) => return common::skip("medians", &reason),
    };
    // a multiple of four and every remainder; fewer fours than threads, and many a thread
    for cells in [1024, 1025, 1026, 1027, 30_003] {
        let maps = maps(cells);
        let wanted: Vec<f32> = maps
            .iter()
            .map(|map| {
                let mut sorted = map.clone();
                sorted.sort_by(f32::total_cmp);
                sorted[cells / 2]
            })
            .collect();
        for way in [[16, 64, 1], [17, 512, 4], [1, 64, 2], [300, 32, 3]] {
            let found = medians(&bridge, &maps, way);
            assert!(
                found.iter().zip(&wanted).all(|(a, b)| a.to_bits() == b.to_bits()),
                "{cells} cells, {way:?}: {found:?} is not {wanted:?}"
            );
        }
    }
}
