//! Access of one device to another's memory.
//!
//! All devices of the model share one address space, so every pair can. Whether the program enabled it decides what
//! rocBLAS, rocSOLVER, a stream's words and the parameters of kernels may touch (`memory::reach`). Pointers that a
//! kernel finds elsewhere are raw: one that uses a peer's memory without that is not caught.

use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicU64, Ordering};

use hip_sys::{hipDeviceP2PAttr, hipError_t};

use super::{Device, all, by_ordinal, current};
use crate::error::{Result, entry, store};

/// The peers whose memory a device may use, a bit each.
#[derive(Default)]
pub(super) struct Peers(AtomicU64);

fn bit(peer: &Device) -> u64 {
    1 << peer.ordinal
}

/// Whether `device` was allowed to use `peer`'s memory.
pub(crate) fn enabled_peer(device: &Device, peer: &Device) -> bool {
    device.peers.0.load(Ordering::Acquire) & bit(peer) != 0
}

/// The device, if it is one of ours and not `device` itself (hipamd/src/hip_peer.cpp, `canAccessPeer`).
fn peer_of(device: &Device, ordinal: c_int) -> Result<&'static Device> {
    by_ordinal(ordinal)
        .ok()
        .filter(|peer| peer.ordinal != device.ordinal)
        .ok_or(hipError_t::hipErrorInvalidDevice)
}

pub(crate) unsafe extern "C" fn device_can_access_peer(out: *mut c_int, device: c_int, peer: c_int) -> hipError_t {
    entry("hipDeviceCanAccessPeer", || {
        if out.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        // A device is not its own peer, and ROCm says so before it looks whether the device exists.
        let can = device != peer;
        if can {
            by_ordinal(device)?;
            by_ordinal(peer)?;
        }
        // SAFETY: not null; room for an int by the C caller's promise.
        unsafe { store(out, c_int::from(can)) }
    })
}

pub(crate) unsafe extern "C" fn device_enable_peer_access(peer: c_int, flags: c_uint) -> hipError_t {
    entry("hipDeviceEnablePeerAccess", || {
        if flags != 0 {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let device = current()?;
        let peer = bit(peer_of(device, peer)?);
        if device.peers.0.fetch_or(peer, Ordering::AcqRel) & peer != 0 {
            return Err(hipError_t::hipErrorPeerAccessAlreadyEnabled);
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn device_disable_peer_access(peer: c_int) -> hipError_t {
    entry("hipDeviceDisablePeerAccess", || {
        let device = current()?;
        let peer = bit(peer_of(device, peer)?);
        if device.peers.0.fetch_and(!peer, Ordering::AcqRel) & peer == 0 {
            return Err(hipError_t::hipErrorPeerAccessNotEnabled);
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn device_get_p2p_attribute(
    out: *mut c_int,
    attribute: hipDeviceP2PAttr,
    source: c_int,
    target: c_int,
) -> hipError_t {
    entry("hipDeviceGetP2PAttribute", || {
        if out.is_null() {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        peer_of(by_ordinal(source)?, target)?;
        let value = match attribute {
            // Host memory on both sides: the same link, and atomics work as anywhere.
            hipDeviceP2PAttr::hipDevP2PAttrPerformanceRank => LINK_PCIE as c_int,
            hipDeviceP2PAttr::hipDevP2PAttrAccessSupported | hipDeviceP2PAttr::hipDevP2PAttrNativeAtomicSupported => 1,
            // There are not arrays.
            hipDeviceP2PAttr::hipDevP2PAttrHipArrayAccessSupported => 0,
            _ => return Err(hipError_t::hipErrorInvalidValue),
        };
        // SAFETY: not null; room for an int by the C caller's promise.
        unsafe { store(out, value) }
    })
}

/// HSA's number for PCI Express (`HSA_AMD_LINK_INFO_TYPE_PCIE`).
const LINK_PCIE: u32 = 2;

pub(crate) unsafe extern "C" fn ext_get_link_type_and_hop_count(
    first: c_int,
    second: c_int,
    link: *mut u32,
    hops: *mut u32,
) -> hipError_t {
    entry("hipExtGetLinkTypeAndHopCount", || {
        if link.is_null() || hops.is_null() || first == second || first < 0 || second < 0 {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        by_ordinal(first)?;
        by_ordinal(second)?;
        // SAFETY: neither is null; room for a number each by the C caller's promise.
        unsafe {
            store(link, LINK_PCIE)?;
            store(hops, 1)
        }
    })
}

/// Forgets whom a device enabled, as resetting it does.
pub(super) fn forget(device: &Device) {
    device.peers.0.store(0, Ordering::Release);
    for other in all() {
        other.peers.0.fetch_and(!bit(device), Ordering::AcqRel);
    }
}
