//! What the table and the types promise, whatever fills them.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_void};
use std::mem::offset_of;

use rocblas_sys::*;

/// Never called: it only is an address.
unsafe extern "C" fn unused() {}

#[test]
fn every_slot_is_listed_once() {
    let unique: BTreeSet<_> = Api::SYMBOLS.iter().collect();
    assert_eq!(unique.len(), Api::SYMBOLS.len());
    assert!(Api::SYMBOLS.iter().all(|name| name.starts_with("rocblas_")));
}

#[test]
fn an_empty_table_offers_no_function() {
    assert_eq!(Api::EMPTY.present().count(), 0);
}

#[test]
fn exactly_the_offered_slots_are_filled() {
    let offered = [
        "rocblas_cgemm",
        "rocblas_cgemm_strided_batched",
        "rocblas_cherk",
        "rocblas_create_handle",
    ];
    let resolve = |name: &CStr| {
        offered
            .contains(&name.to_str().expect("symbols are ASCII"))
            .then_some(unused as *mut c_void)
    };
    // SAFETY: no slot of this table is called.
    let api = unsafe { Api::from_symbols(resolve) };
    assert_eq!(api.present().collect::<Vec<_>>(), offered);
    assert!(api.rocblas_cgemm.is_some() && api.rocblas_cgemm_64.is_none());
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
    assert_eq!(offset_of!(Api, rocblas_cgemm), index("rocblas_cgemm") * slot);
    assert_eq!(offset_of!(Api, rocblas_set_stream), index("rocblas_set_stream") * slot);
    assert_eq!(offset_of!(Api, rocblas_zher2k), index("rocblas_zher2k") * slot);
    assert_eq!(size_of::<Api>(), Api::SYMBOLS.len() * slot);
}

#[test]
fn values_are_those_of_the_abi() {
    assert_eq!(rocblas_operation::rocblas_operation_none.0, 111);
    assert_eq!(rocblas_operation::rocblas_operation_transpose.0, 112);
    assert_eq!(rocblas_operation::rocblas_operation_conjugate_transpose.0, 113);
    assert_eq!(rocblas_fill::rocblas_fill_upper.0, 121);
    assert_eq!(rocblas_fill::rocblas_fill_lower.0, 122);
    assert_eq!(rocblas_pointer_mode::rocblas_pointer_mode_host.0, 0);
    assert_eq!(rocblas_pointer_mode::rocblas_pointer_mode_device.0, 1);
    assert_eq!(rocblas_atomics_mode::rocblas_atomics_not_allowed.0, 0);
    assert_eq!(rocblas_datatype::rocblas_datatype_f32_c.0, 154);
    assert_eq!(rocblas_status::rocblas_status_success.0, 0);
    assert_eq!(rocblas_status::rocblas_status_invalid_size.0, 4);
    assert_eq!(rocblas_status(5).name(), Some("rocblas_status_memory_error"));
    assert_eq!(rocblas_status(4711).name(), None);
}

#[test]
fn complex_numbers_are_two_floats() {
    assert_eq!(
        (size_of::<rocblas_float_complex>(), align_of::<rocblas_float_complex>()),
        (8, 4)
    );
    assert_eq!(
        (
            size_of::<rocblas_double_complex>(),
            align_of::<rocblas_double_complex>()
        ),
        (16, 8)
    );
    assert_eq!(
        (
            offset_of!(rocblas_float_complex, x),
            offset_of!(rocblas_float_complex, y)
        ),
        (0, 4)
    );
    assert_eq!(size_of::<rocblas_int>(), 4);
}
