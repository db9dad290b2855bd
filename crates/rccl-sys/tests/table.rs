//! What the table and the types promise, whatever fills them.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_int, c_void};
use std::mem::offset_of;

use rccl_sys::*;

/// Stands in for the real one. The id comes by value, as the only structure that does.
unsafe extern "C" fn init(comm: *mut ncclComm_t, ranks: c_int, id: ncclUniqueId, rank: c_int) -> ncclResult_t {
    assert!(comm.is_null());
    assert_eq!((ranks, rank), (3, 2));
    assert_eq!((id.internal[0], id.internal[127]), (1, 2));
    ncclResult_t::ncclInvalidUsage
}

#[test]
fn every_slot_is_listed_once() {
    let unique: BTreeSet<_> = Api::SYMBOLS.iter().collect();
    assert_eq!(unique.len(), Api::SYMBOLS.len());
    assert!(Api::SYMBOLS.contains(&"ncclAllReduce") && Api::SYMBOLS.contains(&"ncclCommSplit"));
}

#[test]
fn an_empty_table_offers_no_function() {
    assert_eq!(Api::EMPTY.present().count(), 0);
}

#[test]
fn exactly_the_offered_slot_is_filled_and_takes_the_id_by_value() {
    let resolve = |name: &CStr| (name == c"ncclCommInitRank").then_some(init as *mut c_void);
    // SAFETY: the only address given is a function of that slot's signature.
    let api = unsafe { Api::from_symbols(resolve) };
    assert_eq!(api.present().collect::<Vec<_>>(), ["ncclCommInitRank"]);
    let call = api.ncclCommInitRank.expect("it was offered");
    let mut id = ncclUniqueId::default();
    (id.internal[0], id.internal[127]) = (1, 2);
    // SAFETY: the stand-in touches none of its arguments' memory.
    let result = unsafe { call(std::ptr::null_mut(), 3, id, 2) };
    assert_eq!(result, ncclResult_t::ncclInvalidUsage);
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
    assert_eq!(offset_of!(Api, ncclAllReduce), index("ncclAllReduce") * slot);
    assert_eq!(offset_of!(Api, ncclSend), index("ncclSend") * slot);
    assert_eq!(size_of::<Api>(), Api::SYMBOLS.len() * slot);
}

#[test]
fn values_are_those_of_the_abi() {
    assert_eq!(ncclDataType_t::ncclFloat32.0, 7);
    assert_eq!(ncclDataType_t::ncclBfloat16.0, 9);
    assert_eq!(ncclRedOp_t::ncclAvg.0, 4);
    assert_eq!(ncclResult_t(6).name(), Some("ncclRemoteError"));
    assert_eq!(size_of::<ncclUniqueId>(), NCCL_UNIQUE_ID_BYTES as usize);
}

#[cfg(feature = "load")]
#[test]
fn nccl_is_never_taken_for_rccl() {
    assert!(Api::SEARCH.fallback.is_none());
    assert_ne!(Api::SEARCH.env, NCCL.env);
    let names: BTreeSet<_> = Api::SEARCH.sonames.iter().chain(NCCL.sonames).collect();
    assert_eq!(names.len(), Api::SEARCH.sonames.len() + NCCL.sonames.len());
}
