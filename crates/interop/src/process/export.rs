use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use bytemuck::Pod;

use super::joint::Role;
use super::lent::keep;
use super::message::{Body, DeviceId, Message, Offer};
use super::{Carrier, Joint, Link, PeerError};
use crate::backing::{Opens, Outgoing};
use crate::{Error, Result, Shared};

/// A buffer that was not exported, and why. The link is hung up.
pub struct NotExported<T: Pod> {
    /// What went wrong.
    pub error: Error,
    /// The buffer, unchanged. `None` if the other process may have opened its memory and has not hung up: it was
    /// offered, there was no answer or no intelligible one, and the link's limit has passed. The memory is then the
    /// other process's alone, or is kept until that hangs up ([`Bridge::lent_out`](crate::Bridge::lent_out)).
    pub buffer: Option<Shared<T>>,
}

impl<T: Pod> fmt::Debug for NotExported<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotExported")
            .field("error", &self.error)
            .field("buffer", &self.buffer)
            .finish()
    }
}

impl<T: Pod> fmt::Display for NotExported<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<T: Pod> std::error::Error for NotExported<T> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

/// The memory of a buffer behind a descriptor, from [`Shared::export_fd`].
#[derive(Debug)]
#[non_exhaustive]
pub struct ExportedFd {
    /// The descriptor.
    pub fd: OwnedFd,
    /// Where the buffer begins in the descriptor's memory, in bytes.
    pub offset: usize,
    /// The buffer's length in bytes.
    pub bytes: usize,
    /// What the descriptor is: [`Carrier::HipFd`] or [`Carrier::DmaBuf`].
    pub carrier: Carrier,
}

/// Drops the buffer.
impl<T: Pod> From<Box<NotExported<T>>> for Error {
    fn from(not: Box<NotExported<T>>) -> Self {
        not.error
    }
}

impl<T: Pod> Shared<T> {
    /// Shares the memory with the process at the other end of `link`, which [imports](crate::Bridge::import) it, by the
    /// first [`Carrier`] that accepts it. Returns when the other process has it; this side has the turn.
    ///
    /// The memory still belongs to this process and stays in place. It is no longer moved to another route.
    ///
    /// # Errors
    /// With the buffer: [`PeerError::NotPossible`] with a reason for each carrier; [`PeerError::Refused`] or
    /// [`PeerError::Gone`] of the other process; [`Error::ReadOnly`]; or the failure of earlier work, which is waited
    /// for. Without it, unless the other process hangs up within the link's limit: [`PeerError::Late`],
    /// [`PeerError::Message`].
    pub fn export(self, link: Link) -> Result<Joint<T>, Box<NotExported<T>>> {
        self.export_on(&Carrier::ALL, link)
    }

    /// As [`export`](Self::export), exactly by this carrier.
    ///
    /// # Errors
    /// As [`export`](Self::export).
    pub fn export_by(self, carrier: Carrier, link: Link) -> Result<Joint<T>, Box<NotExported<T>>> {
        self.export_on(&[carrier], link)
    }

    fn export_on(mut self, carriers: &[Carrier], link: Link) -> Result<Joint<T>, Box<NotExported<T>>> {
        let not = |error, buffer| Err(Box::new(NotExported { error, buffer }));
        // Others may have let go since.
        self.core().kept.sweep();
        let deadline = link.deadline();
        let offered = self.outgoing(carriers).and_then(|(carrier, outgoing)| {
            self.offer(carrier, &outgoing, &link)?;
            Ok(carrier)
        });
        let carrier = match offered {
            Ok(carrier) => carrier,
            Err(error) => return not(error, Some(self)),
        };
        match answer(&link, deadline) {
            Ok(()) => {
                self.pinned_down();
                Ok(Joint::new(self, link, carrier, Role::Exporter))
            }
            Err(error) => {
                let has_let_go = match &error {
                    // By then it has closed what it had opened.
                    Error::Peer(PeerError::Refused { .. } | PeerError::Gone { .. }) => true,
                    _ => link.outlast(deadline),
                };
                if has_let_go {
                    return not(error, Some(self));
                }
                if !carrier.outlives_exporter() {
                    keep(self, Arc::clone(link.socket()));
                }
                not(error, None)
            }
        }
    }

    /// A descriptor of the memory for code that opens it by other means than a [`Link`]: another library, or another
    /// process that receives it by `SCM_RIGHTS`. Waits for every user that was granted access, and leaves the memory on
    /// HIP's side. The buffer is no longer moved to another route by itself; [`move_to`](Self::move_to) leaves the
    /// descriptor's memory behind.
    ///
    /// A descriptor of HIP virtual memory (`alloc_exportable`) keeps the memory alive after the buffer. A dma-buf need
    /// not: ROCm takes small allocations from larger blocks and uses their bytes again once they are freed.
    ///
    /// ```
    /// use interop::{Bridge, Options};
    ///
    /// let bridge = Bridge::open(&platform::select()?, &Options::default())?;
    /// let mut data = bridge.alloc_exportable::<f32>(1024)?;
    /// data.upload(&[2.5; 1024])?;
    /// // SAFETY: nothing uses the memory through the descriptor while `data` lives.
    /// let exported = unsafe { data.export_fd() }?;
    /// drop(data);
    ///
    /// // SAFETY: the descriptor's memory holds 1024 numbers, and no other buffer shows it.
    /// let again = unsafe { bridge.adopt_fd::<f32>(exported.fd, exported.offset, 1024) }?;
    /// let mut numbers = [0.0; 1024];
    /// again.download(&mut numbers)?;
    /// assert_eq!(numbers, [2.5; 1024]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`PeerError::NotPossible`] with a reason for each carrier that is a descriptor; [`Error::ReadOnly`]; or the failure
    /// of earlier work.
    ///
    /// # Safety
    /// While a guard of the buffer, or work that received one, uses the memory, nothing writes it through the
    /// descriptor; while it is written so, nothing uses it through the descriptor. Unless the memory is HIP virtual
    /// memory, the buffer outlives every use of the descriptor.
    pub unsafe fn export_fd(&mut self) -> Result<ExportedFd> {
        const DESCRIPTORS: [Carrier; 2] = [Carrier::HipFd, Carrier::DmaBuf];
        let (carrier, outgoing) = self.outgoing(&DESCRIPTORS)?;
        let Opens::Fd(fd) = outgoing.opens else {
            unreachable!("both carriers are descriptors");
        };
        self.pinned_down();
        Ok(ExportedFd {
            fd,
            offset: outgoing.offset,
            bytes: self.len() * size_of::<T>(),
            carrier,
        })
    }

    fn outgoing(&mut self, carriers: &[Carrier]) -> Result<(Carrier, Outgoing)> {
        self.check_writable()?;
        // The host platform moves the bytes when it shares memory for the first time.
        self.bring_together()?;
        self.settle()?;
        let mut tried = Vec::new();
        for &carrier in carriers {
            match self.backing().outgoing(self.core(), carrier) {
                Ok(outgoing) => return Ok((carrier, outgoing)),
                Err(Error::Peer(PeerError::NotPossible { tried: reasons })) => {
                    tried.extend(reasons);
                }
                Err(error) => tried.push((carrier, error.to_string())),
            }
        }
        Err(PeerError::NotPossible { tried }.into())
    }

    fn offer(&self, carrier: Carrier, outgoing: &Outgoing, link: &Link) -> Result<()> {
        let (fd, handle) = match &outgoing.opens {
            Opens::Fd(fd) => (Some(fd.as_fd()), [0; 64]),
            Opens::Handle(handle) => (None, *handle),
        };
        let offer = Offer {
            carrier,
            bytes: (self.len() * size_of::<T>()) as u64,
            offset: outgoing.offset as u64,
            element: u32::try_from(size_of::<T>()).unwrap_or(u32::MAX),
            device: DeviceId::of(&self.core().hip_device)?,
            handle,
        };
        let offer = Message::here(Body::Offer(Box::new(offer)));
        link.send(&offer, fd, "offering memory to it")
    }
}

/// Whether the other process has taken the memory.
fn answer(link: &Link, deadline: Instant) -> Result<()> {
    let during = "waiting for its answer to an offer of memory";
    let (answer, _) = link.receive_until(deadline, during)?;
    let process = link.process();
    Err(match answer.body {
        Body::Accepted => return Ok(()),
        Body::Refused(reason) => PeerError::Refused { process, reason },
        _ => PeerError::Message {
            process,
            reason: "expected an answer to the offer".into(),
        },
    }
    .into())
}
