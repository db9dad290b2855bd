//! Copies.
//!
//! Each side of a copy is one of four things, found by address and compared with the direction the caller states:
//!
//! | side | what | may be used as |
//! |---|---|---|
//! | device | `hipMalloc` | device |
//! | reachable | pinned, registered, managed, OpenCL's host memory | device or host |
//! | pageable | the process's ordinary memory | host |
//! | out of reach | OpenCL's device memory | nothing: ROCm would copy with the CPU through the PCI window |
//!
//! | module | what |
//! |---|---|
//! | `shape` | rows and slices, and moving them |
//! | `linear` | the calls that copy one row, between peers too |
//! | `pitched` | the calls that copy rows and slices |

mod linear;
mod pitched;
mod shape;

use std::sync::Arc;

use hip_sys::{hipError_t, hipMemcpyKind, hipStream_t};
pub(crate) use linear::*;
pub(crate) use pitched::*;
pub(crate) use shape::{Layout, Shape};

use super::registry::{self, Allocation};
use crate::error::Result;
use crate::graph::{Operation, capture};
use crate::work::Task;
use crate::{log, stream, strict};

/// One side of a copy, checked.
struct Side {
    address: usize,
    /// Keeps the memory alive until the copy is done; `None` for pageable memory.
    allocation: Option<Arc<Allocation>>,
}

impl Side {
    fn is_device(&self) -> bool {
        self.allocation
            .as_ref()
            .is_some_and(|allocation| allocation.kind.is_device())
    }

    fn is_pageable(&self) -> bool {
        self.allocation.is_none()
    }
}

/// What the caller says a side is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StatedKind {
    Host,
    Device,
    Either,
}

/// Checks one side: bounds, life, and that it is what the caller says.
fn side(call: &str, address: usize, bytes: usize, stated: StatedKind) -> Result<Side> {
    let Ok(allocation) = registry::any_range(address, bytes) else {
        log::refused(
            call,
            format_args!("{bytes} bytes at {address:#x} are out of bounds or freed"),
        );
        return Err(hipError_t::hipErrorInvalidValue);
    };
    let kind = allocation.as_ref().map(|allocation| allocation.kind);
    let reason = match (kind, stated) {
        // Foreign memory counts as CPU-addressable, so ROCm copies with the CPU: a crash where the card's memory is
        // not visible to it, very slow where it is (rocclr/device/rocm/rocblit.cpp, HostBlitManager's branches).
        (Some(registry::Kind::ForeignVram), _) => "is OpenCL device memory; import it, or copy with a kernel",
        (Some(kind), StatedKind::Host) if kind.is_device() => "is device memory where the copy kind states host memory",
        (None, StatedKind::Device) => "is ordinary host memory where the copy kind states device memory",
        _ => {
            return Ok(Side { address, allocation });
        }
    };
    // ROCm goes by the addresses alone.
    if strict::is_off() && kind != Some(registry::Kind::ForeignVram) {
        return Ok(Side { address, allocation });
    }
    log::refused(call, format_args!("{address:#x} {reason}"));
    Err(hipError_t::hipErrorInvalidValue)
}

fn stated(kind: hipMemcpyKind) -> Result<(StatedKind, StatedKind)> {
    match kind {
        hipMemcpyKind::hipMemcpyHostToHost => Ok((StatedKind::Host, StatedKind::Host)),
        hipMemcpyKind::hipMemcpyHostToDevice => Ok((StatedKind::Device, StatedKind::Host)),
        hipMemcpyKind::hipMemcpyDeviceToHost => Ok((StatedKind::Host, StatedKind::Device)),
        hipMemcpyKind::hipMemcpyDeviceToDevice | hipMemcpyKind::hipMemcpyDeviceToDeviceNoCU => {
            Ok((StatedKind::Device, StatedKind::Device))
        }
        hipMemcpyKind::hipMemcpyDefault => Ok((StatedKind::Either, StatedKind::Either)),
        _ => Err(hipError_t::hipErrorInvalidMemcpyDirection),
    }
}

/// What is to be copied: addresses of the first bytes, and how the bytes lie.
#[derive(Clone, Copy)]
pub(crate) struct Transfer {
    pub(crate) to: usize,
    pub(crate) from: usize,
    pub(crate) shape: Shape,
    pub(crate) kind: hipMemcpyKind,
}

/// A copy that was checked and can be done any number of times.
pub(crate) struct Prepared {
    pub(crate) task: Task,
    between_devices: bool,
    touches_pageable: bool,
}

impl Transfer {
    /// One row.
    pub(crate) fn row(to: usize, from: usize, bytes: usize, kind: hipMemcpyKind) -> Self {
        Self {
            to,
            from,
            shape: Shape::row(bytes),
            kind,
        }
    }

    /// Checks both sides; `None` if there is nothing to copy.
    pub(crate) fn prepare(&self, call: &'static str) -> Result<Option<Prepared>> {
        let (to_stated, from_stated) = stated(self.kind)?;
        let shape = self.shape;
        if shape.is_empty() {
            return Ok(None);
        }
        if self.to == 0 || self.from == 0 {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let to = side(call, self.to, shape.extent(shape.to)?, to_stated)?;
        if to.allocation.as_ref().is_some_and(|to| !to.is_writable()) {
            log::refused(call, format_args!("{:#x} is mapped for reading only", self.to));
            return Err(hipError_t::hipErrorInvalidValue);
        }
        let from = side(call, self.from, shape.extent(shape.from)?, from_stated)?;
        // A device has part in every copy that is said to be one of a device, even where ROCm goes by the addresses.
        let of_device = to_stated == StatedKind::Device || from_stated == StatedKind::Device;
        let is_wrong = of_device && to.is_pageable() && from.is_pageable();
        if is_wrong {
            return Err(hipError_t::hipErrorInvalidValue);
        }
        Ok(Some(Prepared {
            between_devices: to.is_device() && from.is_device(),
            touches_pageable: to.is_pageable() || from.is_pageable(),
            task: Arc::new(move || {
                // SAFETY: both sides were checked for the shape's extent; `to` and `from` keep our memory mapped, and
                // pageable memory is the caller's duty: calls wait for the copy, graphs ask for memory that lives.
                unsafe { shape.copy(to.address, from.address) };
                Ok(())
            }),
        }))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Return {
    /// When the data has arrived.
    Done,
    /// At once, where the memory allows.
    Queued,
}

fn copy(call: &'static str, transfer: Transfer, stream: hipStream_t, when: Return) -> Result {
    let stream = stream::find(stream)?;
    if when == Return::Done {
        capture::forbid(call)?;
    }
    let Some(prepared) = transfer.prepare(call)? else {
        // A node that copies nothing is none.
        return if capture::is_active(&stream) {
            Err(hipError_t::hipErrorInvalidValue)
        } else {
            Ok(())
        };
    };
    // A blocking copy between device ranges does not wait for the host's sake (hipamd/src/hip_memory.cpp,
    // `ihipMemcpy`); a queued one that touches pageable memory does, because it goes through a staging buffer.
    let waits = match when {
        Return::Done => !prepared.between_devices,
        Return::Queued => prepared.touches_pageable,
    };
    let captured = || Operation::Copy(transfer);
    let Some(mark) = stream.issue_task(call, prepared.task, captured)? else {
        return Ok(());
    };
    if waits {
        mark.wait();
        return mark.outcome();
    }
    Ok(())
}
