//! Atomics and workspace of a handle.

mod common;

use std::os::fd::AsFd;
use std::sync::Arc;

use common::setup;
use rocblas::{Error, Handle, Library, Matrix, Op};
use rocblas_sys::{rocblas_handle, rocblas_status};

#[test]
fn atomics_are_as_they_were_allowed() {
    let setup = setup();
    assert!(!setup.blas.atomics_allowed().unwrap());
    setup.blas.allow_atomics(true).unwrap();
    assert!(setup.blas.atomics_allowed().unwrap());
    setup.blas.allow_atomics(false).unwrap();
    assert!(!setup.blas.atomics_allowed().unwrap());
}

#[test]
fn a_workspace_is_kept_until_it_is_taken_back() {
    let mut setup = setup();
    let managed = setup.blas.workspace_bytes().unwrap();
    let memory = |len| setup.device.alloc::<u8>(len).unwrap();
    let (one, other) = (memory(4096), memory(8192));
    assert!(setup.blas.set_workspace(one).unwrap().is_none());
    assert_eq!(setup.blas.workspace_bytes().unwrap(), 4096);
    let replaced = setup.blas.set_workspace(other).unwrap();
    assert_eq!(replaced.unwrap().len(), 4096);
    assert_eq!(setup.blas.workspace_bytes().unwrap(), 8192);
    assert_eq!(setup.blas.take_workspace().unwrap().unwrap().len(), 8192);
    // cuBLAS has its own back at once, rocBLAS when a call needs it.
    let given_back = setup.blas.workspace_bytes().unwrap();
    assert!([0, managed].contains(&given_back), "{given_back}");
    assert!(setup.blas.take_workspace().unwrap().is_none());
}

#[test]
fn a_workspace_goes_with_its_handle() {
    // Far more than the other tests of this process allocate meanwhile, and than the handle had of its own.
    const BYTES: usize = 192 << 20;
    let mut setup = setup();
    let device = setup.device.clone();
    let before = device.memory_info().unwrap().free;
    let held = || before.saturating_sub(device.memory_info().unwrap().free);
    let memory = device.alloc::<u8>(BYTES).unwrap();
    setup.blas.set_workspace(memory).unwrap();
    assert!(held() > BYTES / 2, "{}", held());
    drop(setup.blas);
    assert!(held() < BYTES / 2, "{}", held());
    assert!(device.runtime().take_deferred_errors().is_empty());
}

#[test]
fn a_refused_workspace_comes_back() {
    unsafe extern "C" fn refuse(_: rocblas_handle, _: *mut std::ffi::c_void, _: usize) -> rocblas_status {
        rocblas_status::rocblas_status_memory_error
    }
    let device = common::device();
    let stream = device.stream().unwrap();
    let api = rocblas_sys::Api {
        rocblas_set_workspace: Some(refuse),
        ..common::rocblas_api()
    };
    // SAFETY: the host platform's functions, and one that does nothing.
    let library = unsafe { Library::from_tables(Arc::new(api), None) };
    let mut blas = Handle::new(&library, &stream).unwrap();
    let (error, memory) = blas.set_workspace(device.alloc(64).unwrap()).unwrap_err();
    assert_eq!(memory.len(), 64);
    assert_eq!(
        error.to_string(),
        "`rocblas_set_workspace(64 bytes)` failed: rocblas_status_memory_error (5); device memory is exhausted: free some, or \
         use smaller matrices"
    );
}

#[test]
fn a_workspace_at_an_odd_address_is_refused_and_comes_back() {
    let mut setup = setup();
    let memory = setup.device.virtual_memory(1 << 16);
    // SAFETY: only the import below uses it.
    let exported = memory.and_then(|memory| unsafe { memory.export() });
    let Ok(fd) = exported else {
        return common::skipped("no virtual memory");
    };
    // SAFETY: made with this size.
    let external = unsafe { setup.device.import_memory(fd.as_fd(), 1 << 16) }.unwrap();
    // SAFETY: nothing else uses it.
    let odd = unsafe { external.buffer::<u8>(1, 4096) }.unwrap();
    let (error, memory) = setup.blas.set_workspace(odd).unwrap_err();
    assert!(matches!(error, Error::WorkspaceAlignment { .. }), "{error}");
    assert_eq!(memory.len(), 4096);
    // SAFETY: nothing else uses it.
    let even = unsafe { external.buffer::<u8>(256, 4096) }.unwrap();
    setup.blas.set_workspace(even).unwrap();
}

#[test]
fn asking_for_sizes_computes_nothing_and_ends_in_any_case() {
    let setup = setup();
    let stream = &setup.stream;
    let a = setup.upload(&[2.0_f32]);
    let mut c = setup.upload(&[7.0_f32]);
    let x = Matrix::new(a.on(stream).unwrap(), 1, 1, 1);
    let mut product = |blas: &Handle| {
        let c = Matrix::new(c.on_mut(stream)?, 1, 1, 1);
        blas.gemm(Op::None, Op::None, 1.0, x, x, 0.0, c)
    };
    // The host platform computes without device memory of its own.
    assert_eq!(setup.blas.workspace_needed(&mut product).unwrap(), 0);
    let failed = setup.blas.workspace_needed(|_| Err(Error::Increment));
    assert!(matches!(failed, Err(Error::Increment)));
    let nested = setup
        .blas
        .workspace_needed(|blas| blas.workspace_needed(|_| Ok(())).map(drop));
    assert!(
        matches!(&nested, Err(Error::Status { name, .. }) if *name == "rocblas_status_size_query_mismatch"),
        "{nested:?}"
    );
    stream.synchronize().unwrap();
    product(&setup.blas).unwrap();
    assert_eq!(setup.download(&c), [4.0]);
}

#[test]
fn nothing_is_computed_while_sizes_are_asked_for() {
    let setup = setup();
    let stream = &setup.stream;
    let mut x = setup.upload(&[7.0_f32]);
    setup
        .blas
        .workspace_needed(|blas| blas.scal(2.0, x.on_mut(stream)?.into()))
        .unwrap();
    assert_eq!(setup.download(&x), [7.0]);
}
