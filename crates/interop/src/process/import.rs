use std::os::fd::{AsFd, OwnedFd};

use bytemuck::Pod;
use rustix::fs::{FileType, SeekFrom, fstat, seek};

use super::joint::Role;
use super::message::{Body, DeviceId, Message, Offer};
use super::{Carrier, Joint, Link, PeerError};
use crate::backing::{Backing, ExternalFd, HipPointer, Imported};
use crate::{Bridge, Error, Result, Shared};

impl Bridge {
    /// Memory of the process at the other end of `link`, which [exports](Shared::export) it: without a copy; both
    /// processes see the same bytes. Waits for the offer; the other side has the turn at first ([`Joint::take`]).
    ///
    /// OpenCL and HIP reach it as they reach HIP's own memory: by the import's address in kernels, or by an OpenCL
    /// import where OpenCL is a context of its own (NVIDIA).
    ///
    /// # Errors
    /// [`PeerError::OtherDevice`] for memory of another GPU, [`PeerError::ElementSize`], [`PeerError::Message`] for an
    /// offer that cannot be true, HIP's error for a handle of this very process (`hipErrorInvalidContext`) or for
    /// memory that it cannot map, [`PeerError::Gone`], [`PeerError::Late`]. The other process receives the reason.
    ///
    /// # Safety
    /// The other process describes its memory truthfully, and uses it only in its turn, through a [`Joint`] or by the
    /// same rules.
    pub unsafe fn import<T: Pod>(&self, link: Link) -> Result<Joint<T>> {
        let (message, fd) = link.receive("waiting for an offer of memory")?;
        let opened = match message.body {
            Body::Offer(offer) => {
                // SAFETY: the caller's promise.
                let opened = unsafe { self.open_offer::<T>(&link, &offer, fd) };
                opened.map(|shared| (shared, offer.carrier))
            }
            _ => Err(wrong(&link, "expected an offer of memory")),
        };
        match opened {
            Ok((shared, carrier)) => {
                let during = "accepting its memory";
                link.send(&Message::here(Body::Accepted), None, during)?;
                Ok(Joint::new(shared, link, carrier, Role::Importer))
            }
            Err(error) => {
                let refusal = Message::here(Body::Refused(error.to_string()));
                // If the other side has hung up, nothing is left to inform.
                let _ = link.send(&refusal, None, "refusing its memory");
                Err(error)
            }
        }
    }

    /// # Safety
    /// As [`import`](Self::import).
    unsafe fn open_offer<T: Pod>(&self, link: &Link, offer: &Offer, fd: Option<OwnedFd>) -> Result<Shared<T>> {
        let core = self.core();
        let ours = DeviceId::of(&core.hip_device)?;
        if offer.device != ours {
            return Err(PeerError::OtherDevice {
                theirs: offer.device.to_string(),
                ours: ours.to_string(),
            }
            .into());
        }
        if offer.element as usize != size_of::<T>() {
            return Err(PeerError::ElementSize {
                theirs: offer.element as usize,
                ours: size_of::<T>(),
            }
            .into());
        }
        let (bytes, offset) = extent(offer).ok_or_else(|| {
            wrong(
                link,
                "it does not offer a whole number of elements that fit the address space",
            )
        })?;
        if let Some(fd) = &fd {
            check_size(link, fd, offset, bytes)?;
        }
        let backing: Box<dyn Backing> = match (offer.carrier, fd) {
            // SAFETY: the caller's promise, for all of these.
            (Carrier::HipFd, Some(fd)) => unsafe {
                if offset != 0 {
                    return Err(wrong(link, "HIP memory must begin at the start of its file descriptor"));
                }
                match core.platform.facts().one_address_space {
                    true => Box::new(HipPointer::import_fd(core, fd.as_fd(), bytes)?),
                    false => Box::new(ExternalFd::import(core, fd, bytes)?),
                }
            },
            // SAFETY: as above.
            (Carrier::DmaBuf, Some(fd)) => unsafe { Box::new(Imported::new(core, fd, offset, bytes)?) },
            (Carrier::IpcHandle, _) => {
                let handle = hip::IpcMemory { bytes: offer.handle };
                // SAFETY: as above.
                unsafe { Box::new(HipPointer::open_ipc(core, &handle, offset, bytes)?) }
            }
            (_, None) => return Err(wrong(link, "the file descriptor is missing")),
        };
        self.share(backing, true)
    }
}

/// The bytes and the offset of an offer that can be true.
fn extent(offer: &Offer) -> Option<(usize, usize)> {
    let bytes = usize::try_from(offer.bytes).ok()?;
    let offset = usize::try_from(offer.offset).ok()?;
    let end = offset.checked_add(bytes)?;
    let element = offer.element as usize;
    let whole = bytes > 0 && element > 0 && bytes.is_multiple_of(element);
    (whole && isize::try_from(end).is_ok()).then_some((bytes, offset))
}

/// That the memory is as large as the offer says, where the system can tell: it can for files, which may
/// be empty, and for dma-bufs. A driver's descriptor has no size, and the end of it is at 0 or nowhere.
fn check_size(link: &Link, fd: &OwnedFd, offset: usize, bytes: usize) -> Result<()> {
    let is_file = fstat(fd).is_ok_and(|about| FileType::from_raw_mode(about.st_mode).is_file());
    let size = match seek(fd, SeekFrom::End(0)) {
        Ok(size) if size > 0 || is_file => size,
        _ => return Ok(()),
    };
    if (offset + bytes) as u64 <= size {
        return Ok(());
    }
    let reason = format!("{bytes} bytes from byte {offset} exceed memory of {size} bytes");
    Err(wrong(link, &reason))
}

fn wrong(link: &Link, reason: &str) -> Error {
    PeerError::Message {
        process: link.process(),
        reason: reason.to_owned(),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_elements_inside_an_address_space_are_an_offer() {
        let offer = |bytes, offset, element| Offer {
            carrier: Carrier::IpcHandle,
            bytes,
            offset,
            element,
            device: DeviceId {
                uuid: hip::Uuid { bytes: [0; 16] },
                pci: hip::PciAddress {
                    domain: 0,
                    bus: 0,
                    device: 0,
                    function: 0,
                },
            },
            handle: [0; 64],
        };
        assert_eq!(extent(&offer(12, 4096, 4)), Some((12, 4096)));
        for (bytes, offset, element) in [
            (0, 0, 4),
            (10, 0, 4),
            (12, 0, 0),
            (u64::MAX, 0, 1),
            (12, u64::MAX, 4),
            (1 << 62, 1 << 62, 4),
        ] {
            assert_eq!(extent(&offer(bytes, offset, element)), None);
        }
    }
}
