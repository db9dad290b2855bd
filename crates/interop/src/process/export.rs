use super::joint::Role;
use super::message::{Body, DeviceId, Message, Offer};
use super::{Carrier, Joint, Link, PeerError};
use crate::backing::{Opens, Outgoing};
use crate::{Error, Result, Shared};
use bytemuck::Pod;
use std::fmt;
use std::os::fd::AsFd;

/// A buffer that did not get to the other process, and why. The link is hung up.
pub struct NotExported<T: Pod> {
    /// What went wrong.
    pub error: Error,
    /// The buffer, as it was.
    pub buffer: Shared<T>,
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

/// Gives the buffer up.
impl<T: Pod> From<Box<NotExported<T>>> for Error {
    fn from(not: Box<NotExported<T>>) -> Self {
        not.error
    }
}

impl<T: Pod> Shared<T> {
    /// Shares the memory with the process at the other end of `link`, which [imports](crate::Bridge::import) it, by the
    /// first [`Carrier`] that takes it. Returns when the other process has it; the turn is this side's.
    ///
    /// The memory stays this process's and where it is. From now on it is not moved to another route.
    ///
    /// # Errors
    /// With the buffer: [`PeerError::NotPossible`] with a reason for each carrier; [`PeerError::Refused`],
    /// [`PeerError::Gone`] or [`PeerError::Late`] of the other process; [`Error::ReadOnly`]; or the failure of earlier work,
    /// which is waited for.
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

    fn export_on(
        mut self,
        carriers: &[Carrier],
        link: Link,
    ) -> Result<Joint<T>, Box<NotExported<T>>> {
        let sent = self.outgoing(carriers).and_then(|(carrier, outgoing)| {
            self.offer(carrier, &outgoing, &link)?;
            Ok(carrier)
        });
        match sent {
            Ok(carrier) => {
                self.pinned_down();
                Ok(Joint::new(self, link, carrier, Role::Exporter))
            }
            Err(error) => Err(Box::new(NotExported {
                error,
                buffer: self,
            })),
        }
    }

    fn outgoing(&self, carriers: &[Carrier]) -> Result<(Carrier, Outgoing)> {
        self.check_writable()?;
        // The host platform moves the bytes when it shares memory for the first time.
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
        link.send(&offer, fd, "memory was offered to it")?;
        let (answer, _) = link.receive("its answer to an offer of memory was waited for")?;
        match answer.body {
            Body::Accepted => Ok(()),
            Body::Refused(reason) => Err(PeerError::Refused {
                process: link.process(),
                reason,
            }
            .into()),
            _ => Err(PeerError::Message {
                process: link.process(),
                reason: "an answer to the offer was due".into(),
            }
            .into()),
        }
    }
}
