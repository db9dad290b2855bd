//! What AMD's OpenCL and HIP would be asked, call by call, against the strict shim and model.

use std::sync::{Mutex, MutexGuard, PoisonError};

use clmgr::StrictAmd;
use interop::{Bridge, Error, Extent, HostPtrProof, Options, Residency, Route, Step, Trial};
use platform::Selection;

use crate::{LEN, common, svm_in_file, works};

/// The hazards that the shim notes are the process's: one test at a time.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The host model, with OpenCL's memory in files that it can export.
pub fn selection() -> Selection {
    let mut selection = common::host();
    // SAFETY: these hooks take and release what they are given, or refuse it.
    let tables = unsafe { selection.tables_mut() };
    tables.foreign = Some(svm_in_file::HOOKS);
    selection
}

fn strict(api: &mut clmgr::Api) {
    svm_in_file::wrap(api);
    // SAFETY: the table is an OpenCL library's, with its memory in files.
    assert!(unsafe { StrictAmd::wrap(api) });
}

pub fn open_as(selection: &Selection, options: &Options) -> interop::Result<Bridge> {
    // SAFETY: `strict` keeps every function's contract.
    unsafe { Bridge::open_with(selection, options, strict) }
}

pub fn open() -> Bridge {
    drop(StrictAmd::take_hazards());
    open_as(&selection(), &Options::default()).expect("a bridge")
}

#[test]
fn every_route_that_rocm_has_passes_the_strict_shim_without_a_hazard() {
    let _alone = alone();
    let bridge = open();
    assert_eq!(StrictAmd::take_hazards(), [], "opening");
    for route in Route::ALL {
        if route.oldest_rocm().is_some() {
            works(&bridge, route);
            assert_eq!(StrictAmd::take_hazards(), [], "{route}");
        } else {
            let error = bridge.alloc_on::<u32>(route, 16).expect_err("not on ROCm");
            assert!(error.is_impossible(), "{route}: {error}");
            let text = error.to_string();
            assert!(text.contains("cl_khr_external_memory"), "{text}");
        }
    }
}

#[test]
fn the_first_choice_is_coarse_svm_in_a_context_of_one_device() {
    let _alone = alone();
    let bridge = open();
    assert_eq!(bridge.route(), Route::SvmCoarse);
    let data = bridge.alloc::<u32>(16).expect("memory");
    assert_eq!(data.residency(), Residency::Vram);
    assert!(!bridge.permitted().contains(&Route::SvmFine));
    assert!(!bridge.permitted().contains(&Route::Managed));
}

#[test]
fn an_export_is_imported_from_the_start_and_used_at_its_offset() {
    let _alone = alone();
    let bridge = open();
    let before = svm_in_file::living();
    let mut data = bridge.alloc_on::<u32>(Route::DmaBuf, 1000).expect("memory");
    let (cl, hip) = data.addresses().expect("both are known");
    assert_ne!(cl, hip, "an import has an address of its own");
    assert_eq!(data.residency(), Residency::Vram);
    data.upload(&[9; 1000]).expect("an upload");
    // HIP's own copy, which must not be given bare OpenCL memory.
    let mut back = [0; 1000];
    let stream = bridge.stream().expect("a stream");
    let guard = data.hip(&stream).expect("access");
    guard.slice().copy_to_slice(&mut back).expect("a copy by HIP");
    assert_eq!(back, [9; 1000]);
    drop(guard);
    drop(data);
    assert_eq!(svm_in_file::living(), before);
    assert!(bridge.take_deferred_errors().is_empty());
    assert!(bridge.hip_runtime().take_deferred_errors().is_empty());
}

#[test]
fn hips_own_copies_refuse_a_bare_address_of_opencls() {
    let _alone = alone();
    let bridge = open();
    let stream = bridge.stream().expect("a stream");
    for route in [Route::SvmCoarse, Route::GpuVa] {
        let data = bridge.alloc_on::<u32>(route, 16).expect("memory");
        let guard = data.hip(&stream).expect("access");
        let refused = guard.slice().copy_to_slice(&mut [0; 16]);
        assert!(matches!(refused, Err(hip::Error::ForeignMemory { .. })), "{route}");
    }
}

/// The model as ROCm 7.2, on which programs crashed after an export.
fn selection_of_7_2() -> Selection {
    unsafe extern "C" fn of_7_2(version: *mut i32) -> hip_sys::hipError_t {
        // SAFETY: the caller's place for one int.
        unsafe { *version = 7 * 10_000_000 + 2 * 100_000 };
        hip_sys::hipError_t::hipSuccess
    }
    let mut selection = selection();
    let mut hip = *selection.tables().hip;
    hip.hipRuntimeGetVersion = Some(of_7_2);
    // SAFETY: the function writes its int.
    unsafe { selection.tables_mut() }.hip = std::sync::Arc::new(hip);
    selection
}

/// Names the variable of the folder in which an earlier process keeps what it survived.
const CACHE: &str = "HIPCL_CACHE_DIR";

#[test]
fn an_export_is_tried_on_releases_that_crash_after_one_where_a_trial_survived_it_or_if_it_is_forced() {
    let folder = tempfile::tempdir().expect("a folder");
    let child = std::process::Command::new(std::env::current_exe().expect("a path"))
        .args([
            "amd::in_a_process_with_its_own_cache",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env(CACHE, folder.path())
        .status();
    assert!(child.expect("a child").success());
}

#[test]
#[ignore = "run by another test in a process of its own"]
fn in_a_process_with_its_own_cache() {
    if std::env::var_os(CACHE).is_none() {
        return common::skipped("it runs only in a process which another test starts");
    }
    let _alone = alone();
    let selection = selection_of_7_2();
    let open = |options: &Options| open_as(&selection, options).expect("a bridge");
    let refused = |bridge: &Bridge| {
        let error = bridge.alloc_on::<u8>(Route::DmaBuf, 64).expect_err("nothing is known");
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("8517") && text.contains("hipcl doctor"), "{text}");
        assert!(!bridge.permitted().contains(&Route::DmaBuf));
    };
    refused(&open(&Options::default()));
    let forced = Options {
        force_dma_buf: true,
        ..Options::default()
    };
    works(&open(&forced), Route::DmaBuf);
    refused(&open(&Options::default()));

    let mut steps = Vec::new();
    // SAFETY: `strict` keeps every function's contract.
    let trial = unsafe {
        Trial::run_with(
            &selection,
            &Options::default(),
            (Route::DmaBuf, Extent::Figures),
            strict,
            |step| {
                steps.push(step);
                if step == Step::Survive {
                    // As if the process ended here.
                    refused(&open(&Options::default()));
                }
            },
        )
    };
    let trial = trial.expect("a trial");
    assert!(trial.report.works(), "{:?}", trial.report);
    assert!(steps.contains(&Step::Survive));
    let bridge = open(&Options::default());
    works(&bridge, Route::DmaBuf);
    assert!(bridge.permitted().contains(&Route::DmaBuf));

    // What was survived once is not known while another process tries it: it may end.
    // SAFETY: as above.
    let again = unsafe {
        Trial::run_with(
            &selection,
            &Options::default(),
            (Route::DmaBuf, Extent::Figures),
            strict,
            |step| {
                if step == Step::Survive {
                    refused(&open(&Options::default()));
                }
            },
        )
    };
    assert!(again.expect("a trial").report.works());
}

#[test]
fn a_bridge_tries_the_route_that_is_named_and_no_other() {
    let _alone = alone();
    let named = Options {
        route: Some(Route::SvmCoarse),
        ..Options::default()
    };
    let bridge = open_as(&selection(), &named).expect("a bridge");
    let tried = bridge.report().routes.iter().map(|report| report.route);
    assert_eq!(tried.collect::<Vec<_>>(), [Route::SvmCoarse]);
}

#[test]
fn memory_of_the_host_has_no_dma_buf() {
    let _alone = alone();
    let bridge = open();
    let fine = bridge.alloc_on::<u8>(Route::SvmFine, 4096).expect("memory");
    assert_eq!(fine.residency(), Residency::HostPinned);
    // The model answers as ROCm: only memory that the device owns is exported.
    let export = selection()
        .tables()
        .hsa
        .as_ref()
        .expect("HSA")
        .hsa_amd_portable_export_dmabuf;
    let (mut fd, mut offset) = (-1, 0);
    let (_, address) = fine.addresses().expect("known");
    let ptr = std::ptr::without_provenance(address);
    // SAFETY: both places are valid; the address is only looked up.
    let status = unsafe { export.expect("exports")(ptr, 4096, &mut fd, &mut offset) };
    assert_eq!(status, hsa_sys::hsa_status_t::HSA_STATUS_ERROR_INVALID_AGENT);
}

#[test]
fn hips_memory_as_a_buffer_object_passes_the_strict_shim_without_a_hazard() {
    let _alone = alone();
    drop(StrictAmd::take_hazards());
    // SAFETY: `strict` keeps every function's contract.
    let proof = unsafe { HostPtrProof::seek_with(&selection(), &Options::default(), strict, |_| {}) };
    let proof = proof.expect("a proof");
    assert_eq!(StrictAmd::take_hazards(), [], "seeking");
    let bridge = open();
    let data = bridge.alloc_hip_object::<u32>(LEN, &proof).expect("an object");
    crate::round_trip(&bridge, data);
    assert_eq!(StrictAmd::take_hazards(), []);
}
