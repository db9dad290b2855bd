//! Starts the HSA runtime and stops it.

use hsa_sys::{Api, hsa_status_t};

fn main() {
    let (hsa, _library) = match Api::load() {
        Ok(loaded) => loaded,
        Err(error) => return eprintln!("{error}"),
    };
    let (Some(init), Some(shut_down)) = (hsa.hsa_init, hsa.hsa_shut_down) else {
        return eprintln!("this is no HSA runtime");
    };
    // SAFETY: neither call takes an argument; the second undoes the first.
    let status = unsafe { init() };
    println!("{status:?}");
    if status == hsa_status_t::HSA_STATUS_SUCCESS {
        // SAFETY: as above.
        println!("{:?}", unsafe { shut_down() });
    }
}
