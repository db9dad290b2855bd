//! Two devices and one memory.

use std::ffi::c_void;

use bytemuck::Pod;
use hip_sys::hipError_t;

use super::backing::out_of_reach;
use super::{Backing, DeviceBuffer};
use crate::call::{call, code};
use crate::slice::{Origin, kind, same_len};
use crate::{Device, DeviceSlice, DeviceSliceMut, Result, Stream};

impl Device {
    /// Whether kernels of this device could reach the memory of `other`. A device is not a peer of itself.
    ///
    /// # Errors
    ///
    /// The devices belong to different runtimes, or HIP cannot report it.
    #[doc(alias = "hipDeviceCanAccessPeer")]
    pub fn can_access(&self, other: &Device) -> Result<bool> {
        if !self.runtime().same(other.runtime()) {
            self.check_same(other, "Device::can_access", "other")?;
        }
        let mut can = 0;
        // SAFETY: writes one int to the address given.
        unsafe {
            call!(
                self.runtime(),
                hipDeviceCanAccessPeer(&mut can, self.index(), other.index()),
                "hipDeviceCanAccessPeer({}, {})",
                self.ordinal(),
                other.ordinal()
            )?;
        }
        Ok(can != 0)
    }

    /// Lets kernels of this device reach the memory of `other`. Doing it twice is fine; it is never revoked, because
    /// other buffers may rely on it.
    ///
    /// # Errors
    ///
    /// The devices are not peers.
    #[doc(alias = "hipDeviceEnablePeerAccess")]
    pub fn enable_access(&self, other: &Device) -> Result<()> {
        if !self.runtime().same(other.runtime()) {
            self.check_same(other, "Device::enable_access", "other")?;
        }
        self.make_current()?;
        // SAFETY: takes a number that the callee checks; the only flags value is 0.
        let code = unsafe { code!(self.runtime(), hipDeviceEnablePeerAccess(other.index(), 0)) }?;
        match code {
            hipError_t::hipSuccess => Ok(()),
            hipError_t::hipErrorPeerAccessAlreadyEnabled => {
                self.runtime().forget_last_error();
                Ok(())
            }
            code => {
                let call = format!(
                    "hipDeviceEnablePeerAccess({}) on device {}",
                    other.ordinal(),
                    self.ordinal()
                );
                Err(self.runtime().failure(code, call))
            }
        }
    }
}

impl<T: Pod> DeviceBuffer<T> {
    /// Copies all of `source`, which is on another device, in order of `stream`, which is of this buffer's device and
    /// waits for the last write. The host does not wait. The devices need not be peers.
    ///
    /// The data goes through the host where the stream's device does not reach the source. That is so for memory of
    /// [`Device::virtual_memory`] until it was let in ([`VirtualAccess::enable`](crate::VirtualAccess::enable)).
    ///
    /// # Errors
    ///
    /// Different lengths, a stream of another device, devices of different runtimes, or HIP refused the copy.
    #[doc(alias = "hipMemcpyPeerAsync")]
    pub fn copy_from_peer(&mut self, stream: &Stream, source: &DeviceBuffer<T>) -> Result<()> {
        const CALL: &str = "DeviceBuffer::copy_from_peer";
        same_len(CALL, source.len(), self.len())?;
        if !self.device().runtime().same(source.device().runtime()) {
            self.device().check_same(source.device(), CALL, "source")?;
        }
        // A stream that is refused must not become a reader of the source.
        self.device().check_same(stream.device(), CALL, "stream")?;
        let bytes = self.len() * size_of::<T>();
        source.uses.read_on(stream)?;
        let to = self.on_mut(stream)?.as_mut_ptr();
        let from = source.pointer().as_ptr();
        // SAFETY: both have this many bytes on the devices named, are plain data and different allocations; the buffers
        // remember the stream, so both outlive the copy.
        unsafe { copy(to.cast(), from.cast(), source.device(), bytes, stream) }
    }
}

impl<T: Pod> DeviceSliceMut<'_, T> {
    /// Copies all of `source`, which is on another device, in order of this slice's stream alone. The host does not
    /// wait. The devices need not be peers.
    ///
    /// # Safety
    ///
    /// The stream comes after the last write of `source`, whose own stream only names its device, and `source` is
    /// neither written nor freed before the copy is done.
    ///
    /// # Errors
    ///
    /// Different lengths, memory that HIP does not know ([`ForeignMemory`](crate::Error::ForeignMemory)), devices of
    /// different runtimes, or HIP refused the copy.
    #[doc(alias = "hipMemcpyPeerAsync")]
    pub unsafe fn copy_from_peer_unchecked(&mut self, source: DeviceSlice<'_, T>) -> Result<()> {
        const CALL: &str = "DeviceSliceMut::copy_from_peer_unchecked";
        same_len(CALL, source.len(), self.len())?;
        for origin in [source.origin(), self.origin()] {
            kind(CALL, origin, hip_sys::hipMemcpyKind::hipMemcpyDefault)?;
        }
        let (stream, from) = (self.stream(), source.stream().device());
        if !stream.device().runtime().same(from.runtime()) {
            stream.device().check_same(from, CALL, "source")?;
        }
        let bytes = self.len() * size_of::<T>();
        let to = self.as_mut_ptr();
        // SAFETY: both have this many bytes and are plain data; the slices' makers answer for the memory, the caller
        // for the order.
        unsafe { copy(to.cast(), source.as_ptr().cast(), from, bytes, stream) }
    }
}

/// Queues a copy to the stream's device; nothing for 0 bytes.
///
/// # Safety
///
/// `bytes` bytes can be read at `source` on the device `from`, and written at `destination`, until the stream has done
/// the copy.
unsafe fn copy(
    destination: *mut c_void,
    source: *const c_void,
    from: &Device,
    bytes: usize,
    stream: &Stream,
) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let to = stream.device();
    to.make_current()?;
    // SAFETY: the caller's promise is the callee's demand.
    unsafe {
        call!(
            to.runtime(),
            hipMemcpyPeerAsync(
                destination,
                to.index(),
                source,
                from.index(),
                bytes,
                stream.raw_for_work()?
            ),
            "hipMemcpyPeerAsync({bytes} bytes, device {} to {})",
            from.ordinal(),
            to.ordinal()
        )
    }
}

impl<T> DeviceBuffer<T> {
    /// The memory to read on a stream of a peer, which waits for the last write. Access is enabled if it was not.
    ///
    /// # Errors
    ///
    /// The stream's device is no peer, or the memory is from neither [`Device::alloc`] nor
    /// [`Device::virtual_memory`], the kinds that peers can reach.
    pub fn on_peer<'a>(&'a self, stream: &'a Stream) -> Result<DeviceSlice<'a, T>> {
        self.reach(stream)?;
        self.uses.read_on(stream)?;
        Ok(DeviceSlice::with_origin(
            self.pointer().as_ptr(),
            self.len(),
            stream,
            Origin::Known,
        ))
    }

    /// The memory to write on a stream of a peer, which waits for all use by other streams.
    ///
    /// # Errors
    ///
    /// As [`DeviceBuffer::on_peer`].
    pub fn on_peer_mut<'a>(&'a mut self, stream: &'a Stream) -> Result<DeviceSliceMut<'a, T>> {
        self.reach(stream)?;
        self.uses.write_on(stream)?;
        Ok(DeviceSliceMut::with_origin(
            self.pointer().as_ptr(),
            self.len(),
            stream,
            Origin::Known,
        ))
    }

    fn reach(&self, stream: &Stream) -> Result<()> {
        let peer = stream.device();
        match self.backing() {
            Backing::Device if peer == self.device() => Ok(()),
            Backing::Device => peer.enable_access(self.device()),
            Backing::Mapped(Some(mapping)) => mapping.let_in(peer),
            Backing::Mapped(None) | Backing::Ordered { .. } => Err(out_of_reach()),
        }
    }
}
