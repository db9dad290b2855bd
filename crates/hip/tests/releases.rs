//! Libraries of other releases than the one that the device models.

mod common;

use std::ffi::{c_char, c_int};

use common::runtime;
use hip_sys::{hipDeviceProp_tR0000, hipError_t};

#[test]
fn the_architecture_of_a_rocm_5_library_is_read_in_its_own_layout() {
    unsafe extern "C" fn properties(out: *mut hipDeviceProp_tR0000, device: c_int) -> hipError_t {
        assert_eq!(device, 0);
        // SAFETY: the caller gives room for one structure, which it has set to zeroes.
        let out = unsafe { &mut *out };
        // What a reader of the newer layout would take for the name.
        out.name.fill(b'?' as c_char);
        for (place, byte) in out.gcnArchName.iter_mut().zip(b"gfx908:sramecc+:xnack-\0") {
            *place = *byte as c_char;
        }
        hipError_t::hipSuccess
    }
    let api = hip_sys::Api {
        hipGetDevicePropertiesR0600: None,
        hipGetDeviceProperties: Some(properties),
        ..hip_host::hip_api()
    };
    let device = runtime(api).device(0).unwrap();
    assert_eq!(device.arch().unwrap(), "gfx908:sramecc+:xnack-");
}

#[test]
fn a_library_without_properties_is_told_by_the_function_of_today() {
    let api = hip_sys::Api {
        hipGetDevicePropertiesR0600: None,
        ..hip_host::hip_api()
    };
    let error = runtime(api).device(0).unwrap().arch().unwrap_err();
    assert!(error.to_string().contains("hipGetDevicePropertiesR0600"), "{error}");
}
