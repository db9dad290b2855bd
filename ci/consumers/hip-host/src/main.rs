//! Uses the software device as a HIP library.

fn main() {
    let hip = hip_host::hip_api();
    let count_devices = hip.hipGetDeviceCount.expect("the software device has it");
    let mut devices = 0;
    // SAFETY: `devices` is valid for writing one integer.
    let status = unsafe { count_devices(&mut devices) };
    println!("{status:?}: {devices} devices, {hip:?}");
}
