//! Memory of the first GPU in place, for kernels of the second.

use std::ops::Range;

use bytemuck::Pod;

use super::order::Across;
use super::{Peer, PeerPath, no_peer};
use crate::access::User;
use crate::backing::PeerAccess;
use crate::memory::SharedAllocation;
use crate::values::{Access, Side};
use crate::{Error, HipGuard, HipGuardMut, Part, PartMut, Result, Shared};

impl Peer {
    /// Read access for HIP kernels of the second device, on `stream`, to memory of the first: across the link, without
    /// a copy.
    ///
    /// # Errors
    /// [`Error::NoPeer`] if the memory cannot be reached; [`Error::OtherOwner`]; as [`Shared::hip`].
    pub fn hip<'a, T: Pod>(&self, source: &'a Shared<T>, stream: &'a hip::Stream) -> Result<HipGuard<'a, T>> {
        let allocation = self.check_in_place(source, stream)?;
        self.admit(allocation, stream, Access::Read)?;
        Ok(read(allocation, 0..source.len(), stream))
    }

    /// As [`hip`](Self::hip), to read and write.
    ///
    /// # Errors
    /// As [`hip`](Self::hip), or [`Error::ReadOnly`].
    pub fn hip_mut<'a, T: Pod>(
        &self,
        memory: &'a mut Shared<T>,
        stream: &'a hip::Stream,
    ) -> Result<HipGuardMut<'a, T>> {
        memory.check_writable()?;
        let allocation = self.check_in_place(memory, stream)?;
        self.admit(allocation, stream, Access::Write)?;
        Ok(write(allocation, 0..memory.len(), stream))
    }

    /// As [`hip`](Self::hip), to read a part. Streams of both devices may use other parts of the buffer meanwhile.
    ///
    /// # Errors
    /// As [`hip`](Self::hip), or those of [`Part::hip`].
    pub fn hip_part<'a, T: Pod>(&self, part: &'a Part<'_, T>, stream: &'a hip::Stream) -> Result<HipGuard<'a, T>> {
        let allocation = self.take_part(part.whole(), part.range(), stream, Access::Read)?;
        Ok(read(allocation, part.range(), stream))
    }

    /// As [`hip_part`](Self::hip_part), to read and write.
    ///
    /// # Errors
    /// As [`hip_part`](Self::hip_part), or [`Error::ReadOnly`].
    pub fn hip_part_mut<'a, T: Pod>(
        &self,
        part: &'a mut PartMut<'_, T>,
        stream: &'a hip::Stream,
    ) -> Result<HipGuardMut<'a, T>> {
        part.whole().check_writable()?;
        let allocation = self.take_part(part.whole(), part.range(), stream, Access::Write)?;
        Ok(write(allocation, part.range(), stream))
    }

    /// One place from here on: a reader elsewhere may put another in its stead.
    fn check_in_place<'a, T: Pod>(&self, memory: &'a Shared<T>, stream: &hip::Stream) -> Result<&'a SharedAllocation> {
        self.check_owners(memory, None, stream)?;
        let allocation = memory.allocation();
        if let Err(reason) = self.reach(allocation)? {
            let reason = format!("{reason}; let Peer::copy bring it to the second device");
            return Err(no_peer(&self.from, &self.to, reason));
        }
        Ok(allocation)
    }

    fn take_part<'a, T: Pod>(
        &self,
        whole: &'a Shared<T>,
        range: Range<usize>,
        stream: &hip::Stream,
        access: Access,
    ) -> Result<&'a SharedAllocation> {
        let allocation = self.check_in_place(whole, stream)?;
        whole.check_side(Side::Hip, access, &range)?;
        // What the part's maker checked for the elements.
        let bytes = range.start * size_of::<T>()..range.end * size_of::<T>();
        allocation.backing().check_part(&allocation.core, &bytes)?;
        let across = Across::new(allocation.handoff().limit());
        allocation.admit_across(&across, &User::of(stream), access, &bytes)?;
        Ok(allocation)
    }

    pub(super) fn check_owners<T: Pod>(
        &self,
        source: &Shared<T>,
        destination: Option<&Shared<T>>,
        stream: &hip::Stream,
    ) -> Result<()> {
        let same = |shared: &Shared<T>, bridge: &crate::Bridge| std::sync::Arc::ptr_eq(shared.core(), bridge.core());
        let what = if !same(source, &self.from) {
            "source"
        } else if destination.is_some_and(|destination| !same(destination, &self.to)) {
            "destination"
        } else if stream.device() != self.to.hip_device() {
            "stream"
        } else {
            return Ok(());
        };
        Err(Error::OtherOwner { what, owner: "device" })
    }

    /// Lets kernels of the second device use the memory, or returns why they do not reach it.
    pub(super) fn reach(&self, source: &SharedAllocation) -> Result<std::result::Result<(), String>> {
        if self.report.path == PeerPath::Staged {
            return Ok(Err("kernels cannot access the other device".into()));
        }
        Ok(match source.backing().peer_access() {
            PeerAccess::Enabled => Ok(()),
            PeerAccess::Mapped(access) => {
                access.enable(self.to.hip_device())?;
                Ok(())
            }
            PeerAccess::Granted => {
                let Some(hsa) = &source.core.hsa else {
                    return Ok(Err("there is no HSA runtime that could grant access".into()));
                };
                let address = source.backing().hip_ptr().cast_const().cast();
                hsa.allow(address, &self.to.hip_device().pci_address()?)
            }
            PeerAccess::None => Err(format!(
                "kernels of other devices cannot access this memory of route {}",
                source.route()
            )),
        })
    }

    pub(super) fn admit(&self, allocation: &SharedAllocation, stream: &hip::Stream, access: Access) -> Result<()> {
        let across = Across::new(allocation.handoff().limit());
        allocation.admit_across(&across, &User::of(stream), access, &allocation.bytes())
    }
}

fn read<'a, T: Pod>(allocation: &SharedAllocation, range: Range<usize>, stream: &'a hip::Stream) -> HipGuard<'a, T> {
    let first = allocation.backing().hip_ptr().cast::<T>().wrapping_add(range.start);
    // SAFETY: as many elements are at the address, which the device reaches; the stream was admitted as a reader, and
    // the memory is freed only after it has been waited for. As foreign memory HIP's own copies do not take it.
    HipGuard::new(unsafe { hip::DeviceSlice::from_raw_parts(first, range.len(), stream) })
}

fn write<'a, T: Pod>(
    allocation: &'a SharedAllocation,
    range: Range<usize>,
    stream: &'a hip::Stream,
) -> HipGuardMut<'a, T> {
    let first = allocation.backing().hip_ptr().cast::<T>().wrapping_add(range.start);
    // SAFETY: as for `read`; the stream was admitted as the only user of these elements.
    let slice = unsafe { hip::DeviceSliceMut::from_raw_parts(first, range.len(), stream) };
    HipGuardMut::new(allocation, slice)
}
