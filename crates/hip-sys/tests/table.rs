//! What a table of functions promises, whatever fills it.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_int, c_void};
use std::mem::offset_of;

use hip_sys::{Api, RtcApi, hipError_t, hiprtcResult};

unsafe extern "C" fn three_devices(count: *mut c_int) -> hipError_t {
    // SAFETY: the test gives the address of an integer.
    unsafe { count.write(3) };
    hipError_t::hipSuccess
}

unsafe extern "C" fn version_nine(major: *mut c_int, minor: *mut c_int) -> hiprtcResult {
    // SAFETY: the test gives the addresses of two integers.
    unsafe {
        major.write(9);
        minor.write(1);
    }
    hiprtcResult::HIPRTC_SUCCESS
}

/// Never called: it only is an address.
unsafe extern "C" fn unused() {}

/// A slot for an older form of a function has the function's symbol.
fn symbol_of(slot: &str) -> &str {
    slot.split("_until_").next().expect("a first part")
}

#[test]
fn every_slot_is_listed_once() {
    for symbols in [Api::SYMBOLS, RtcApi::SYMBOLS] {
        let unique: BTreeSet<_> = symbols.iter().collect();
        assert_eq!(unique.len(), symbols.len());
    }
    assert!(Api::SYMBOLS.contains(&"hipMalloc"));
    assert!(RtcApi::SYMBOLS.iter().all(|name| name.starts_with("hiprtc")));
    assert!(!Api::SYMBOLS.iter().any(|name| name.starts_with("hiprtc")));
}

#[test]
fn an_empty_table_offers_no_function() {
    assert_eq!(Api::EMPTY.present().count(), 0);
    assert_eq!(RtcApi::default().present().count(), 0);
    assert!(Api::EMPTY.hipMalloc.is_none());
}

#[test]
fn exactly_the_offered_slots_are_filled() {
    let offered = [
        "hipFree",
        "hipGetDevicePropertiesR0600",
        "hipMalloc",
        "hipWaitExternalSemaphoresAsync",
    ];
    let mut asked = Vec::new();
    let resolve = |name: &CStr| {
        let name = name.to_str().expect("symbols are ASCII");
        asked.push(name.to_owned());
        offered.contains(&name).then_some(unused as *mut c_void)
    };
    // SAFETY: no slot of this table is called.
    let api = unsafe { Api::from_symbols(resolve) };
    assert_eq!(api.present().collect::<Vec<_>>(), offered);
    let symbols: Vec<&str> = Api::SYMBOLS.iter().map(|slot| symbol_of(slot)).collect();
    assert_eq!(asked, symbols);
    assert!(api.hipMalloc.is_some() && api.hipFree.is_some() && api.hipMallocAsync.is_none());
    assert_eq!(
        format!("{api:?}"),
        format!("Api(4 of {} functions)", Api::SYMBOLS.len())
    );
}

#[test]
fn a_null_address_leaves_its_slot_empty() {
    // SAFETY: no address is given, so no slot can be called.
    let api = unsafe { Api::from_symbols(|_| Some(std::ptr::null_mut())) };
    assert_eq!(api.present().count(), 0);
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
    assert_eq!(offset_of!(Api, hipApiName), index("hipApiName") * slot);
    assert_eq!(offset_of!(Api, hipMalloc), index("hipMalloc") * slot);
    assert_eq!(
        offset_of!(Api, hipModuleLaunchKernel),
        index("hipModuleLaunchKernel") * slot
    );
    assert_eq!(offset_of!(Api, hipStreamWaitEvent), index("hipStreamWaitEvent") * slot);
    assert_eq!(size_of::<Api>(), Api::SYMBOLS.len() * slot);
}

#[test]
fn a_call_through_a_slot_reaches_its_own_function() {
    let hip = |name: &CStr| (name == c"hipGetDeviceCount").then_some(three_devices as *mut c_void);
    // SAFETY: the only address given is a function of that slot's signature.
    let api = unsafe { Api::from_symbols(hip) };
    let mut count = 0;
    let call = api.hipGetDeviceCount.expect("it was offered");
    // SAFETY: `count` outlives the call.
    let status = unsafe { call(&mut count) };
    assert_eq!((status, count), (hipError_t::hipSuccess, 3));

    let rtc = |name: &CStr| (name == c"hiprtcVersion").then_some(version_nine as *mut c_void);
    // SAFETY: as above.
    let api = unsafe { RtcApi::from_symbols(rtc) };
    let (mut major, mut minor) = (0, 0);
    let call = api.hiprtcVersion.expect("it was offered");
    // SAFETY: both integers outlive the call.
    let status = unsafe { call(&mut major, &mut minor) };
    assert_eq!((status, major, minor), (hiprtcResult::HIPRTC_SUCCESS, 9, 1));
}

#[test]
fn tables_travel_between_threads() {
    fn shared<T: Copy + Send + Sync + 'static>() {}
    shared::<Api>();
    shared::<RtcApi>();
}
