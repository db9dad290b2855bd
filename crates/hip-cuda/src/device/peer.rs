//! Memory of other devices.

use std::ffi::{c_int, c_uint};

use hip_sys::{hipDeviceP2PAttr, hipError_t};

use super::{by_ordinal, current, here};
use crate::cuda::cu;
use crate::error::{INVALID, calls, not_null, store};

calls! {
    pub(crate) fn fill;

    fn hipDeviceCanAccessPeer(out: *mut c_int, device: c_int, peer: c_int) {
        let (device, peer) = (by_ordinal(device)?, by_ordinal(peer)?);
        not_null!(out);
        if device.ordinal == peer.ordinal {
            return store(out, 0);
        }
        cu()?.cuDeviceCanAccessPeer(out, device.cu, peer.cu)
    }
    fn hipDeviceEnablePeerAccess(peer: c_int, flags: c_uint) {
        if flags != 0 {
            return Err(INVALID);
        }
        let peer = by_ordinal(peer)?;
        if peer.ordinal == current()?.ordinal {
            return Err(hipError_t::hipErrorInvalidDevice);
        }
        here()?.cuCtxEnablePeerAccess(peer.context()?, 0)
    }
    fn hipDeviceDisablePeerAccess(peer: c_int) {
        here()?.cuCtxDisablePeerAccess(by_ordinal(peer)?.context()?)
    }
    fn hipDeviceGetP2PAttribute(out: *mut c_int, attribute: hipDeviceP2PAttr, from: c_int, to: c_int) {
        let (from, to) = (by_ordinal(from)?, by_ordinal(to)?);
        not_null!(out);
        if from.ordinal == to.ordinal {
            return Err(hipError_t::hipErrorInvalidDevice);
        }
        // HIP counts from 0 what CUDA counts from 1.
        cu()?.cuDeviceGetP2PAttribute(out, attribute.0 + 1, from.cu, to.cu)
    }
}
