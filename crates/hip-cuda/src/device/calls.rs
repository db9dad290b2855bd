//! The calls that choose, identify and describe devices.

use std::ffi::{CStr, c_char, c_int};

use hip_sys::{hipDevice_t, hipDeviceAttribute_t, hipDeviceProp_tR0600, hipError_t, hipStream_t};

use super::{Device, all, by_ordinal, current, here, set_current};
use crate::cuda::cu;
use crate::error::{INVALID, Result, calls, not_null, store};

impl Device {
    /// The driver's value for one of its own attributes.
    pub(super) fn cuda_attribute(&self, attribute: cudarc::driver::sys::CUdevice_attribute) -> Result<c_int> {
        let mut value = 0;
        // SAFETY: writes one int to the address given.
        unsafe { cu()?.cuDeviceGetAttribute(&mut value, attribute as u32, self.cu) }?;
        Ok(value)
    }

    pub(super) fn name(&self) -> Result<String> {
        let mut text = [0_u8; 256];
        // SAFETY: writes at most as many bytes as given, terminator included.
        unsafe { cu()?.cuDeviceGetName(text.as_mut_ptr().cast(), text.len() as c_int, self.cu) }?;
        let name = CStr::from_bytes_until_nul(&text).map_err(|_| hipError_t::hipErrorUnknown)?;
        Ok(name.to_string_lossy().into_owned())
    }

    pub(super) fn uuid(&self) -> Result<[u8; 16]> {
        let mut uuid = [0; 16];
        // SAFETY: writes sixteen bytes to the address given.
        unsafe { cu()?.cuDeviceGetUuid_v2(&mut uuid, self.cu) }?;
        Ok(uuid)
    }

    pub(super) fn total_bytes(&self) -> Result<usize> {
        let mut bytes = 0;
        // SAFETY: writes one size to the address given.
        unsafe { cu()?.cuDeviceTotalMem_v2(&mut bytes, self.cu) }?;
        Ok(bytes)
    }

    /// In HIP's form, which has lower-case digits (hipamd/src/hip_device_runtime.cpp, `hipDeviceGetPCIBusId`).
    fn pci_address(&self) -> Result<String> {
        use cudarc::driver::sys::CUdevice_attribute as A;
        let domain = self.cuda_attribute(A::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?;
        let bus = self.cuda_attribute(A::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?;
        let device = self.cuda_attribute(A::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?;
        Ok(format!("{domain:04x}:{bus:02x}:{device:02x}.0"))
    }
}

/// Writes `text` and its terminator, cut to `len` bytes.
///
/// # Safety
/// `out` is valid for writing `len` bytes, `len > 0`.
unsafe fn write_text(out: *mut c_char, len: usize, text: &str) {
    let n = text.len().min(len - 1);
    // SAFETY: `n + 1 <= len` bytes are written, which the caller vouches for; the source is a live string.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), out, n);
        out.add(n).write(0);
    }
}

calls! {
    pub(crate) fn fill;

    fn hipGetDeviceCount(out: *mut c_int) {
        not_null!(out);
        match all() {
            Ok(devices) => store(out, c_int::try_from(devices.len()).unwrap_or(c_int::MAX)),
            Err(code) => {
                store(out, 0)?;
                Err(code)
            }
        }
    }
    fn hipSetDevice(ordinal: c_int) {
        let device = by_ordinal(ordinal)?;
        device.context()?;
        set_current(device);
        // Other CUDA libraries ask the driver for the thread's device: NCCL does.
        here().map(|_| ())
    }
    fn hipGetDevice(out: *mut c_int) {
        let device = current()?;
        // A caller that finds its device here does not set it. Other CUDA code in the thread may have set another.
        if device.context.get().is_some() {
            here()?;
        }
        store(out, device.ordinal)
    }
    fn hipDeviceGet(out: *mut hipDevice_t, ordinal: c_int) {
        store(out, by_ordinal(ordinal)?.ordinal)
    }
    fn hipDeviceGetName(out: *mut c_char, len: c_int, device: hipDevice_t) {
        let device = by_ordinal(device)?;
        let len = usize::try_from(len).map_err(|_| INVALID)?;
        if out.is_null() || len == 0 {
            return Err(INVALID);
        }
        write_text(out, len, &device.name()?);
        Ok(())
    }
    fn hipDeviceGetPCIBusId(out: *mut c_char, len: c_int, device: c_int) {
        let address = by_ordinal(device)?.pci_address()?;
        let len = usize::try_from(len).map_err(|_| INVALID)?;
        // A cut address would name another device, so too little room is an error.
        if out.is_null() || len <= address.len() {
            return Err(INVALID);
        }
        write_text(out, len, &address);
        Ok(())
    }
    fn hipDeviceGetByPCIBusId(out: *mut c_int, address: *const c_char) {
        not_null!(out, address);
        let wanted = CStr::from_ptr(address).to_string_lossy().to_ascii_lowercase();
        for device in all()? {
            if device.pci_address()? == wanted {
                return store(out, device.ordinal);
            }
        }
        Err(INVALID)
    }
    fn hipDeviceGetUuid(out: *mut hip_sys::hipUUID, device: hipDevice_t) {
        let bytes = by_ordinal(device)?.uuid()?;
        store(out.cast::<[u8; 16]>(), bytes)
    }
    fn hipDeviceTotalMem(out: *mut usize, device: hipDevice_t) {
        store(out, by_ordinal(device)?.total_bytes()?)
    }
    fn hipDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, device: hipDevice_t) {
        not_null!(major, minor);
        let capability = by_ordinal(device)?.capability()?;
        store(major, capability.0)?;
        store(minor, capability.1)
    }
    fn hipDeviceGetAttribute(out: *mut c_int, attribute: hipDeviceAttribute_t, device: c_int) {
        let device = by_ordinal(device)?;
        not_null!(out);
        store(out, device.attribute(attribute)?)
    }
    fn hipGetDevicePropertiesR0600(out: *mut hipDeviceProp_tR0600, device: c_int) {
        not_null!(out);
        store(out, by_ordinal(device)?.properties()?)
    }
    fn hipDeviceSynchronize() {
        here()?.cuCtxSynchronize()
    }
    fn hipMemGetInfo(free: *mut usize, total: *mut usize) {
        not_null!(free, total);
        here()?.cuMemGetInfo_v2(free, total)
    }
    fn hipStreamGetDevice(stream: hipStream_t, out: *mut hipDevice_t) {
        not_null!(out);
        store(out, super::of_stream(stream)?.ordinal)
    }
}
