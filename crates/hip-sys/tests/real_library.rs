//! The real libraries, on machines that have them. Without a GPU they load and answer with an error value.

use std::io::Write;

use hip_sys::versions::OLDEST;
use hip_sys::{Api, LoadError, RtcApi, hipError_t, hiprtcResult};

/// Tells a reader, and the test run's record, that nothing was tested here.
fn skipped(test: &str, reason: &LoadError) {
    println!("skipped: {test}: {reason}");
    if let Some(log) = std::env::var_os("HIPCL_SKIP_LOG") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(log);
        file.and_then(|mut file| file.write_all(format!("{test}: {reason}\n").as_bytes()))
            .expect("HIPCL_SKIP_LOG names a writable file");
    }
}

#[test]
fn real_hip_counts_devices_or_says_why_not() {
    let (api, library) = match Api::load() {
        Ok(loaded) => loaded,
        Err(reason @ (LoadError::NotFound { .. } | LoadError::TooOld { .. })) => {
            return skipped("real_hip_counts_devices_or_says_why_not", &reason);
        }
        Err(error) => panic!("{error}"),
    };
    let call = api.hipGetDeviceCount.expect("the key function of every release");
    let mut count = -1;
    // SAFETY: `count` outlives the call.
    let status = unsafe { call(&mut count) };
    println!(
        "{}: {} function(s), hipGetDeviceCount -> {status:?}",
        library.path().display(),
        api.present().count()
    );
    assert!(status.name().is_some(), "{status:?} is no value of the enum");
    assert_eq!(
        status == hipError_t::hipSuccess,
        count > 0,
        "{status:?}, {count} devices"
    );
    // An emulator may provide a device without the file of AMD's kernel driver.
    if status != hipError_t::hipSuccess {
        if !std::path::Path::new("/dev/kfd").exists() {
            assert_eq!(status, hipError_t::hipErrorNoDevice);
        }
        let mut memory = std::ptr::null_mut();
        let allocate = api.hipMalloc.expect("every release has it");
        // SAFETY: `memory` is valid for writing one pointer.
        let status = unsafe { allocate(&mut memory, 64) };
        assert!(status != hipError_t::hipSuccess && memory.is_null(), "{status:?}");
    }
    assert!(api.hipMalloc.is_some() && api.hipModuleLaunchKernel.is_some());
}

#[test]
fn a_real_library_tells_its_release_and_has_one_form_of_each_function() {
    let (api, library) = match Api::load() {
        Ok(loaded) => loaded,
        Err(reason @ (LoadError::NotFound { .. } | LoadError::TooOld { .. })) => {
            return skipped(
                "a_real_library_tells_its_release_and_has_one_form_of_each_function",
                &reason,
            );
        }
        Err(error) => panic!("{error}"),
    };
    let release = api.release().expect("it needs no device for that");
    println!("{}: ROCm {release}", library.path().display());
    assert!(release >= OLDEST);
    assert_ne!(api.hipDrvMemcpy3D.is_some(), api.hipDrvMemcpy3D_until_5.is_some());
    assert_eq!(api.hipDrvMemcpy3D.is_some(), release.major >= 6);
    assert_eq!(api.hipLaunchKernelExC.is_some(), release.major >= 7);
}

#[test]
fn real_hiprtc_tells_its_version() {
    let (api, library) = match RtcApi::load() {
        Ok(loaded) => loaded,
        Err(reason @ (LoadError::NotFound { .. } | LoadError::TooOld { .. })) => {
            return skipped("real_hiprtc_tells_its_version", &reason);
        }
        Err(error) => panic!("{error}"),
    };
    let call = api.hiprtcVersion.expect("every release has it");
    let (mut major, mut minor) = (0, -1);
    // SAFETY: both integers outlive the call.
    let status = unsafe { call(&mut major, &mut minor) };
    println!("{}: HIPRTC {major}.{minor}", library.path().display());
    assert_eq!(status, hiprtcResult::HIPRTC_SUCCESS);
    assert!(major >= 5 && minor >= 0);
}
