//! What the table and the types promise, whatever fills them.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_void};
use std::mem::offset_of;

use hsa_sys::*;

/// Never called: it only is an address.
unsafe extern "C" fn unused() {}

#[test]
fn every_slot_is_listed_once() {
    let unique: BTreeSet<_> = Api::SYMBOLS.iter().collect();
    assert_eq!(unique.len(), Api::SYMBOLS.len());
    for name in [
        "hsa_init",
        "hsa_shut_down",
        "hsa_iterate_agents",
        "hsa_amd_pointer_info",
        "hsa_amd_portable_export_dmabuf",
    ] {
        assert!(Api::SYMBOLS.contains(&name), "{name}");
    }
}

#[test]
fn an_empty_table_offers_no_function() {
    assert_eq!(Api::EMPTY.present().count(), 0);
}

#[test]
fn exactly_the_offered_slots_are_filled() {
    let offered = ["hsa_amd_pointer_info", "hsa_init"];
    let resolve = |name: &CStr| {
        offered
            .contains(&name.to_str().expect("symbols are ASCII"))
            .then_some(unused as *mut c_void)
    };
    // SAFETY: no slot of this table is called.
    let api = unsafe { Api::from_symbols(resolve) };
    assert_eq!(api.present().collect::<Vec<_>>(), offered);
    assert!(api.hsa_amd_pointer_info.is_some() && api.hsa_shut_down.is_none());
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
    assert_eq!(
        offset_of!(Api, hsa_amd_pointer_info),
        index("hsa_amd_pointer_info") * slot
    );
    assert_eq!(offset_of!(Api, hsa_init), index("hsa_init") * slot);
    assert_eq!(size_of::<Api>(), Api::SYMBOLS.len() * slot);
}

#[test]
fn values_are_those_of_the_abi() {
    assert_eq!(hsa_status_t::HSA_STATUS_SUCCESS.0, 0);
    assert_eq!(hsa_status_t::HSA_STATUS_ERROR_OUT_OF_RESOURCES.0, 0x1008);
    assert_eq!(hsa_status_t(0x1008).name(), Some("HSA_STATUS_ERROR_OUT_OF_RESOURCES"));
    assert_eq!(hsa_status_t(43).name(), Some("HSA_STATUS_ERROR_MEMORY_FAULT"));
    assert_eq!(hsa_device_type_t::HSA_DEVICE_TYPE_CPU.0, 0);
    assert_eq!(hsa_device_type_t::HSA_DEVICE_TYPE_GPU.0, 1);
    assert_eq!(hsa_amd_pointer_type_t::HSA_EXT_POINTER_TYPE_UNKNOWN.0, 0);
    assert_eq!(hsa_amd_pointer_type_t::HSA_EXT_POINTER_TYPE_HSA.0, 1);
    assert_eq!(hsa_amd_pointer_type_t::HSA_EXT_POINTER_TYPE_LOCKED.0, 2);
    assert_eq!(hsa_amd_pointer_type_t::HSA_EXT_POINTER_TYPE_GRAPHICS.0, 3);
    assert_eq!(hsa_amd_pointer_type_t::HSA_EXT_POINTER_TYPE_IPC.0, 4);
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn pointer_info_has_the_layout_that_its_size_field_promises() {
    assert_eq!(size_of::<hsa_amd_pointer_info_t>(), 56);
    assert_eq!(offset_of!(hsa_amd_pointer_info_t, agentBaseAddress), 8);
    assert_eq!(offset_of!(hsa_amd_pointer_info_t, sizeInBytes), 24);
    assert_eq!(offset_of!(hsa_amd_pointer_info_t, agentOwner), 40);
    assert_eq!(offset_of!(hsa_amd_pointer_info_t, global_flags), 48);
    assert_eq!(size_of::<hsa_agent_t>(), 8);
}
