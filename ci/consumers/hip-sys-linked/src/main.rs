//! Lets the dynamic linker find HIP, and reports what it found.
//!
//! `cargo xtask consumers` runs this on small libraries of its own and reads the lines.

use hip_sys::{Api, RtcApi};

fn main() {
    let (hip, library) = Api::linked().expect("one copy of each library");
    let (compiler, compiler_library) = RtcApi::linked().expect("one copy of each library");
    println!("HIP {}", library.path().display());
    println!("HIPRTC {}", compiler_library.path().display());
    println!("functions {} {}", hip.present().count(), compiler.present().count());
    let mut devices = -1;
    let count_devices = hip.hipGetDeviceCount.expect("every release has it");
    // SAFETY: `devices` is valid for writing one integer.
    println!("status {:?}", unsafe { count_devices(&mut devices) });
}
