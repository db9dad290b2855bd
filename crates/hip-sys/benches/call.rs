//! What a call through the table costs, in nanoseconds: `cargo bench -p hipcl-hip-sys`.
//!
//! All calls reach the same function, which does next to nothing, so the difference is the way there:
//!
//! | way | machine code |
//! |---|---|
//! | direct | a call of a known address |
//! | slot | a load of the slot, a test for null, an indirect call |
//! | kept | the slot was read and tested before; an indirect call |
//!
//! A median over many rounds, the ways in turn within a round, so that a change of the clock rate meets all of them.

use std::ffi::{CStr, c_int, c_void};
use std::hint::black_box;
use std::time::Instant;

use hip_sys::{Api, hipError_t};

const ROUNDS: usize = 501;
const CALLS: u32 = 10_000;

/// Stands for a function of the library; the compiler may not look inside.
#[inline(never)]
unsafe extern "C" fn device_count(count: *mut c_int) -> hipError_t {
    // SAFETY: every caller gives the address of an integer.
    unsafe { count.write(black_box(3)) };
    hipError_t::hipSuccess
}

fn find(name: &CStr) -> Option<*mut c_void> {
    (name == c"hipGetDeviceCount").then_some(device_count as *mut c_void)
}

/// Nanoseconds a call.
fn time(mut call: impl FnMut(&mut c_int) -> hipError_t) -> f64 {
    let mut count = 0;
    let started = Instant::now();
    for _ in 0..CALLS {
        let status = call(black_box(&mut count));
        assert_eq!(black_box(status), hipError_t::hipSuccess);
    }
    started.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn main() {
    // `cargo test --benches` wants to know that it runs, not how fast.
    let rounds = if std::env::args().any(|argument| argument == "--bench") {
        ROUNDS
    } else {
        1
    };
    // SAFETY: the one address given is a function of its slot's signature.
    let api = black_box(unsafe { Api::from_symbols(find) });
    let kept = black_box(api.hipGetDeviceCount).expect("it was offered");

    let mut samples = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        let ways: [&mut dyn FnMut() -> f64; 3] = [
            // SAFETY: `count` is the address of an integer that outlives the call.
            &mut || time(|count| unsafe { device_count(count) }),
            &mut || {
                time(|count| match black_box(&api).hipGetDeviceCount {
                    // SAFETY: as above; the slot holds that function.
                    Some(call) => unsafe { call(count) },
                    None => hipError_t::hipErrorNotSupported,
                })
            },
            // SAFETY: as above.
            &mut || time(|count| unsafe { black_box(kept)(count) }),
        ];
        for (way, samples) in ways.into_iter().zip(&mut samples) {
            samples.push(way());
        }
    }
    let medians = samples.map(median);
    for (name, nanoseconds) in ["direct", "slot", "kept"].iter().zip(medians) {
        println!(
            "{name:8} {nanoseconds:7.2} ns/call  {:5.2} x direct",
            nanoseconds / medians[0]
        );
    }
}
