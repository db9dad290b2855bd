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

use std::ffi::c_void;
use std::sync::Arc;

use hip_sys::{hipDeviceptr_t, hipError_t, hipMemcpyKind, hipStream_t};

use super::registry::{self, Allocation, Kind};
use crate::error::{Result, entry};
use crate::launch::pool;
use crate::log;
use crate::stream;

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
            .is_some_and(|allocation| allocation.kind == Kind::Device)
    }

    fn is_pageable(&self) -> bool {
        self.allocation.is_none()
    }
}

/// What the caller says a side is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stated {
    Host,
    Device,
    Either,
}

/// Checks one side: bounds, life, and that it is what the caller says.
fn side(call: &str, address: usize, bytes: usize, stated: Stated) -> Result<Side> {
    let Ok(allocation) = registry::any_range(address, bytes) else {
        log::refused(
            call,
            format_args!("{bytes} bytes at {address:#x} are out of bounds, or freed"),
        );
        return Err(hipError_t::hipErrorInvalidValue);
    };
    let reason = match (
        allocation.as_ref().map(|allocation| allocation.kind),
        stated,
    ) {
        // Foreign memory counts as CPU-addressable, so ROCm copies with the CPU: a crash where the card's memory is
        // not visible to it, very slow where it is (rocclr/device/rocm/rocblit.cpp, HostBlitManager's branches).
        (Some(Kind::ForeignVram), _) => {
            "belongs to OpenCL's device memory; import it, or copy with a kernel"
        }
        (Some(Kind::Device), Stated::Host) => "is device memory where host memory is stated",
        (None, Stated::Device) => "is ordinary host memory where device memory is stated",
        _ => {
            return Ok(Side {
                address,
                allocation,
            });
        }
    };
    log::refused(call, format_args!("{address:#x} {reason}"));
    Err(hipError_t::hipErrorInvalidValue)
}

fn stated(kind: hipMemcpyKind) -> Result<(Stated, Stated)> {
    match kind {
        hipMemcpyKind::hipMemcpyHostToHost => Ok((Stated::Host, Stated::Host)),
        hipMemcpyKind::hipMemcpyHostToDevice => Ok((Stated::Device, Stated::Host)),
        hipMemcpyKind::hipMemcpyDeviceToHost => Ok((Stated::Host, Stated::Device)),
        hipMemcpyKind::hipMemcpyDeviceToDevice | hipMemcpyKind::hipMemcpyDeviceToDeviceNoCU => {
            Ok((Stated::Device, Stated::Device))
        }
        hipMemcpyKind::hipMemcpyDefault => Ok((Stated::Either, Stated::Either)),
        _ => Err(hipError_t::hipErrorInvalidMemcpyDirection),
    }
}

/// Rows of `width` bytes, `pitch` bytes apart on each side. A plain copy is one row.
struct Shape {
    width: usize,
    height: usize,
    to_pitch: usize,
    from_pitch: usize,
}

impl Shape {
    fn row(width: usize) -> Self {
        Self {
            width,
            height: 1,
            to_pitch: width,
            from_pitch: width,
        }
    }

    /// Bytes from the first to the last byte touched.
    fn extent(&self, pitch: usize) -> Result<usize> {
        (self.height - 1)
            .checked_mul(pitch)
            .and_then(|rows| rows.checked_add(self.width))
            .ok_or(hipError_t::hipErrorInvalidValue)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Return {
    /// When the data has arrived.
    Done,
    /// At once, where the memory allows.
    Queued,
}

struct Request {
    to: usize,
    from: usize,
    shape: Shape,
    kind: hipMemcpyKind,
    stream: hipStream_t,
    when: Return,
}

fn copy(call: &'static str, request: Request) -> Result {
    let Request {
        to,
        from,
        shape,
        kind,
        stream,
        when,
    } = request;
    let stream = stream::find(stream)?;
    let (to_stated, from_stated) = stated(kind)?;
    if shape.width == 0 || shape.height == 0 {
        return Ok(());
    }
    if to == 0 || from == 0 {
        return Err(hipError_t::hipErrorInvalidValue);
    }
    let to = side(call, to, shape.extent(shape.to_pitch)?, to_stated)?;
    let from = side(call, from, shape.extent(shape.from_pitch)?, from_stated)?;
    // A blocking copy between device ranges does not wait for the host's sake (hipamd/src/hip_memory.cpp,
    // `ihipMemcpy`); a queued one that touches pageable memory does, because it goes through a staging buffer.
    let waits = match when {
        Return::Done => !(to.is_device() && from.is_device()),
        Return::Queued => to.is_pageable() || from.is_pageable(),
    };
    let mark = stream.submit(
        call,
        Vec::new(),
        Box::new(move || {
            // SAFETY: both sides were checked for the shape's extent; `to` and `from` keep our memory mapped, and
            // pageable memory is waited for before the call returns.
            unsafe { copy_rows(to.address, from.address, &shape) };
            drop((to, from));
            Ok(())
        }),
    )?;
    if waits {
        mark.wait();
        return mark.take_error();
    }
    Ok(())
}

/// Bytes of one piece when several threads share a copy.
const PIECE: usize = 4 << 20;

/// # Safety
/// `to` and `from` are valid for the shape's extent with their pitches, for writing and reading.
unsafe fn copy_rows(to: usize, from: usize, shape: &Shape) {
    let apart = to.abs_diff(from) >= shape.width;
    if shape.height == 1 && apart && shape.width > 2 * PIECE {
        let pieces = shape.width.div_ceil(PIECE);
        pool::for_each(pieces as u64, 1, &|pieces| {
            let start = pieces.start as usize * PIECE;
            let end = (pieces.end as usize * PIECE).min(shape.width);
            // SAFETY: a part of the row, valid as the whole is; parts do not overlap, and neither do the two sides.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    (from + start) as *const u8,
                    (to + start) as *mut u8,
                    end - start,
                )
            };
        });
        return;
    }
    for row in 0..shape.height {
        // SAFETY: each row lies in the extent the caller vouches for; overlapping sides are allowed by `copy`.
        unsafe {
            std::ptr::copy(
                (from + row * shape.from_pitch) as *const u8,
                (to + row * shape.to_pitch) as *mut u8,
                shape.width,
            );
        }
    }
}

macro_rules! plain_copies {
    ($($function:ident $name:literal ($to:ty, $from:ty) $kind:expr;)*) => {$(
        pub(crate) unsafe extern "C" fn $function(to: $to, from: $from, bytes: usize) -> hipError_t {
            entry($name, || {
                let (to, from) = (to as usize, from as usize);
                let shape = Shape::row(bytes);
                copy($name, Request { to, from, shape, kind: $kind, stream: std::ptr::null_mut(), when: Return::Done })
            })
        }
    )*};
}

macro_rules! queued_copies {
    ($($function:ident $name:literal ($to:ty, $from:ty) $kind:expr;)*) => {$(
        pub(crate) unsafe extern "C" fn $function(to: $to, from: $from, bytes: usize, stream: hipStream_t) -> hipError_t {
            entry($name, || {
                let (to, from) = (to as usize, from as usize);
                let shape = Shape::row(bytes);
                copy($name, Request { to, from, shape, kind: $kind, stream, when: Return::Queued })
            })
        }
    )*};
}

plain_copies! {
    memcpy_htod "hipMemcpyHtoD" (hipDeviceptr_t, *mut c_void) hipMemcpyKind::hipMemcpyHostToDevice;
    memcpy_dtoh "hipMemcpyDtoH" (*mut c_void, hipDeviceptr_t) hipMemcpyKind::hipMemcpyDeviceToHost;
    memcpy_dtod "hipMemcpyDtoD" (hipDeviceptr_t, hipDeviceptr_t) hipMemcpyKind::hipMemcpyDeviceToDevice;
}

queued_copies! {
    memcpy_htod_async "hipMemcpyHtoDAsync" (hipDeviceptr_t, *mut c_void) hipMemcpyKind::hipMemcpyHostToDevice;
    memcpy_dtoh_async "hipMemcpyDtoHAsync" (*mut c_void, hipDeviceptr_t) hipMemcpyKind::hipMemcpyDeviceToHost;
    memcpy_dtod_async "hipMemcpyDtoDAsync" (hipDeviceptr_t, hipDeviceptr_t) hipMemcpyKind::hipMemcpyDeviceToDevice;
}

pub(crate) unsafe extern "C" fn memcpy(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: hipMemcpyKind,
) -> hipError_t {
    entry("hipMemcpy", || {
        let (to, from) = (to as usize, from as usize);
        copy(
            "hipMemcpy",
            Request {
                to,
                from,
                shape: Shape::row(bytes),
                kind,
                stream: std::ptr::null_mut(),
                when: Return::Done,
            },
        )
    })
}

pub(crate) unsafe extern "C" fn memcpy_with_stream(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: hipMemcpyKind,
    stream: hipStream_t,
) -> hipError_t {
    entry("hipMemcpyWithStream", || {
        let (to, from) = (to as usize, from as usize);
        copy(
            "hipMemcpyWithStream",
            Request {
                to,
                from,
                shape: Shape::row(bytes),
                kind,
                stream,
                when: Return::Done,
            },
        )
    })
}

pub(crate) unsafe extern "C" fn memcpy_async(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: hipMemcpyKind,
    stream: hipStream_t,
) -> hipError_t {
    entry("hipMemcpyAsync", || {
        let (to, from) = (to as usize, from as usize);
        copy(
            "hipMemcpyAsync",
            Request {
                to,
                from,
                shape: Shape::row(bytes),
                kind,
                stream,
                when: Return::Queued,
            },
        )
    })
}

/// # Errors
/// `hipErrorInvalidPitchValue` if a row does not fit its pitch.
fn rows(width: usize, height: usize, to_pitch: usize, from_pitch: usize) -> Result<Shape> {
    if width != 0 && height != 0 && (width > to_pitch || width > from_pitch) {
        return Err(hipError_t::hipErrorInvalidPitchValue);
    }
    Ok(Shape {
        width,
        height,
        to_pitch,
        from_pitch,
    })
}

pub(crate) unsafe extern "C" fn memcpy_2d(
    to: *mut c_void,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: hipMemcpyKind,
) -> hipError_t {
    entry("hipMemcpy2D", || {
        let shape = rows(width, height, to_pitch, from_pitch)?;
        let (to, from) = (to as usize, from as usize);
        copy(
            "hipMemcpy2D",
            Request {
                to,
                from,
                shape,
                kind,
                stream: std::ptr::null_mut(),
                when: Return::Done,
            },
        )
    })
}

#[allow(clippy::too_many_arguments, reason = "the C signature")]
pub(crate) unsafe extern "C" fn memcpy_2d_async(
    to: *mut c_void,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: hipMemcpyKind,
    stream: hipStream_t,
) -> hipError_t {
    entry("hipMemcpy2DAsync", || {
        let shape = rows(width, height, to_pitch, from_pitch)?;
        let (to, from) = (to as usize, from as usize);
        copy(
            "hipMemcpy2DAsync",
            Request {
                to,
                from,
                shape,
                kind,
                stream,
                when: Return::Queued,
            },
        )
    })
}
