//! Counts AMD devices with the raw functions.

fn main() {
    let (hip, library) = match hip_sys::Api::load() {
        Ok(loaded) => loaded,
        Err(error) => return eprintln!("{error}"),
    };
    let Some(count_devices) = hip.hipGetDeviceCount else {
        return eprintln!("{} cannot count devices", library.path().display());
    };
    let mut devices = 0;
    // SAFETY: `devices` is valid for writing one integer.
    match unsafe { count_devices(&mut devices) } {
        hip_sys::hipError_t::hipSuccess => println!("{devices} devices"),
        hip_sys::hipError_t::hipErrorNoDevice => println!("no device"),
        status => eprintln!("{status:?}"),
    }
    match hip_sys::RtcApi::load_beside(&library) {
        Ok((compiler, _)) => println!("{compiler:?}"),
        Err(error) => eprintln!("{error}"),
    }
}
