//! What the table and the types promise, whatever fills them.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_void};
use std::mem::offset_of;

use rocblas_sys::{rocblas_fill, rocblas_handle, rocblas_status};
use rocsolver_sys::*;

/// Stands in for the real one: it proves that handles and status values are rocBLAS' own.
unsafe extern "C" fn refuse(
    handle: rocblas_handle,
    _uplo: rocblas_fill,
    _n: i32,
    _a: *mut rocblas_sys::rocblas_float_complex,
    _lda: i32,
    _info: *mut i32,
) -> rocblas_status {
    assert!(handle.is_null());
    rocblas_status::rocblas_status_invalid_handle
}

#[test]
fn every_slot_is_listed_once() {
    let unique: BTreeSet<_> = Api::SYMBOLS.iter().collect();
    assert_eq!(unique.len(), Api::SYMBOLS.len());
    assert!(Api::SYMBOLS.contains(&"rocsolver_cpotrf") && Api::SYMBOLS.contains(&"rocsolver_cpotri"));
}

#[test]
fn an_empty_table_offers_no_function() {
    assert_eq!(Api::EMPTY.present().count(), 0);
}

#[test]
fn exactly_the_offered_slot_is_filled_and_works_on_rocblas_types() {
    let resolve = |name: &CStr| (name == c"rocsolver_cpotrf").then_some(refuse as *mut c_void);
    // SAFETY: the only address given is a function of that slot's signature.
    let api = unsafe { Api::from_symbols(resolve) };
    assert_eq!(api.present().collect::<Vec<_>>(), ["rocsolver_cpotrf"]);
    let call = api.rocsolver_cpotrf.expect("it was offered");
    let null = std::ptr::null_mut();
    // SAFETY: the stand-in touches none of its arguments' memory.
    let status = unsafe { call(null, rocblas_fill::rocblas_fill_lower, 1, null.cast(), 1, null.cast()) };
    assert_eq!(status, rocblas_status::rocblas_status_invalid_handle);
}

#[test]
fn each_slot_lies_where_its_symbol_is_listed() {
    let index = |name: &str| {
        Api::SYMBOLS
            .iter()
            .position(|symbol| *symbol == name)
            .expect("a symbol")
    };
    let slot = size_of::<usize>();
    assert_eq!(offset_of!(Api, rocsolver_cpotri), index("rocsolver_cpotri") * slot);
    assert_eq!(offset_of!(Api, rocsolver_zgetrf), index("rocsolver_zgetrf") * slot);
    assert_eq!(size_of::<Api>(), Api::SYMBOLS.len() * slot);
}

#[test]
fn values_are_those_of_the_abi() {
    assert_eq!(rocblas_direct::rocblas_forward_direction.0, 171);
    assert_eq!(rocblas_svect::rocblas_svect_none.0, 194);
    assert_eq!(rocblas_evect::rocblas_evect_original.0, 211);
    assert_eq!(rocblas_evect(212).name(), Some("rocblas_evect_tridiagonal"));
}
