mod code;
mod peer;
#[cfg(feature = "vulkan")]
pub(crate) mod vulkan;

use std::ops::Range;
use std::time::Duration;

pub use code::Code;
pub use peer::{PeerError, Process};

use crate::values::{Grade, Residency, Route};

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong between the two APIs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// OpenCL refused a call.
    #[error(transparent)]
    Cl(clmgr::Error),
    /// HIP refused a call.
    #[error(transparent)]
    Hip(hip::Error),
    /// rocBLAS or rocSOLVER refused a call.
    #[error(transparent)]
    Blas(rocblas::Error),
    /// OpenCL code that HIP cannot load.
    #[error(
        "HIP cannot load this OpenCL program: {reason}; launch its kernels on an OpenCL queue with `Shared::cl` and `Shared::cl_mut`"
    )]
    NoStreamProgram {
        /// Why.
        reason: String,
    },
    /// An OpenCL kernel that cannot run on a HIP stream.
    #[error(
        "kernel `{kernel}` cannot run on a HIP stream: {reason}; launch it on an OpenCL queue with `Shared::cl` and `Shared::cl_mut`"
    )]
    NotOnStream {
        /// The kernel's name.
        kernel: String,
        /// What it uses that does not work there.
        reason: String,
    },
    /// A tensor that cannot be lent or taken.
    #[error("DLPack: {reason}")]
    DlPack {
        /// Why, and the remedy.
        reason: String,
    },
    /// A range beyond the end, or one that ends before it begins.
    #[error("the range {}..{} is outside 0..{len}", range.start, range.end)]
    OutOfRange {
        /// The range, in elements.
        range: Range<usize>,
        /// The length in elements.
        len: usize,
    },
    /// A fill whose pattern does not fit.
    #[error(
        "a pattern of {pattern} bytes does not fill {bytes} bytes; use one of 1, 2, 4, 8 or 16 bytes, a whole number of times"
    )]
    Pattern {
        /// Its length in bytes.
        pattern: usize,
        /// The bytes to fill.
        bytes: usize,
    },
    /// Two parts of one buffer share an element.
    #[error(
        "the parts {}..{} and {}..{} overlap; parts of one buffer must be disjoint",
        first.start, first.end, second.start, second.end
    )]
    PartsOverlap {
        /// One part, in elements.
        first: Range<usize>,
        /// The other one.
        second: Range<usize>,
    },
    /// A part of copied memory begins or ends inside a unit of device transfer.
    #[error(
        "route {route} copies each part separately, and bytes {}..{} do not begin and end at multiples of {alignment} on `{device}` (or at the buffer's ends); move the ends, or use a route that does not copy",
        bytes.start, bytes.end
    )]
    PartGrid {
        /// The route.
        route: Route,
        /// The part, in bytes.
        bytes: Range<usize>,
        /// `CL_DEVICE_MEM_BASE_ADDR_ALIGN` in bytes.
        alignment: usize,
        /// The OpenCL device.
        device: String,
    },
    /// A part of memory that changes sides as a whole, while the other side has another part.
    #[error(
        "{by} has the elements {}..{} of this buffer, and route {route} hands over its memory only as a whole; to hand over {}..{}, divide the buffer again, or use separate buffers",
        held.start, held.end, wanted.start, wanted.end
    )]
    PartOnOtherSide {
        /// The route.
        route: Route,
        /// The elements on the other side.
        held: Range<usize>,
        /// The holder: `OpenCL` or `HIP`.
        by: &'static str,
        /// The requested elements.
        wanted: Range<usize>,
    },
    /// A part of a buffer object begins where the device cannot address it.
    #[error(
        "the range begins at byte {start} of a buffer object, which must be a multiple of {alignment} on `{device}`; \
         move it, or use a route with shared virtual memory"
    )]
    SubBufferStart {
        /// Where it begins, in bytes.
        start: usize,
        /// `CL_DEVICE_MEM_BASE_ADDR_ALIGN` in bytes.
        alignment: usize,
        /// The OpenCL device.
        device: String,
    },
    /// The route failed, and no other permitted one could take over under a reader, or others may
    /// be writing next to it.
    #[error(
        "{during}: route {route} failed: {cause}; others may hold its addresses, so the buffer stays there; move the data with {}",
        remedy(*.next)
    )]
    UnderReader {
        /// What was being done, such as `download`.
        during: &'static str,
        /// The route that failed.
        route: Route,
        /// The next permitted route.
        next: Option<Route>,
        /// What went wrong.
        cause: Box<Error>,
    },
    /// Vulkan refused a call, or did not behave as assumed.
    #[cfg(feature = "vulkan")]
    #[error(transparent)]
    Vulkan(#[from] vulkan::Error),
    /// No route is possible for this request; not a failure of any one of them.
    #[error("no permitted route works: {}", list(.tried))]
    NotPossible {
        /// Each route considered and why it was not taken.
        tried: Vec<(Route, String)>,
    },
    /// Every permitted route works between the two devices, but failed this time.
    #[error("every permitted route failed: {}", list(.tried))]
    Failed {
        /// Each route tried and what went wrong.
        tried: Vec<(Route, String)>,
    },
    /// No OpenCL device names the same hardware as the HIP device.
    #[error("no OpenCL device pairs with {hip}: {reason}")]
    NoPair {
        /// The HIP device.
        hip: String,
        /// What was examined, and the remedy.
        reason: String,
    },
    /// The platform lacks a library that the call needs.
    #[error("{library} is not available on platform {platform}; {reason}")]
    NoLibrary {
        /// Which library.
        library: &'static str,
        /// The platform in use.
        platform: platform::Platform,
        /// Why it is missing.
        reason: String,
    },
    /// A library of the platform could not be loaded.
    #[error(transparent)]
    Platform(#[from] platform::Error),
    /// OpenCL's answer came when the process had begun to end, and may be wrong.
    #[error("the process is ending, and OpenCL's answers are no longer true: join all threads before `main` returns")]
    ProcessEnds,
    /// RCCL refused a call.
    #[error(transparent)]
    Collectives(rccl::Error),
    /// A pattern written through one API differed from what the other read.
    #[error("route {route}: {mismatches} of {words} words written by {writer} were read differently by {reader}")]
    PatternMismatch {
        /// The route under test.
        route: Route,
        /// The API that wrote.
        writer: &'static str,
        /// The API that read.
        reader: &'static str,
        /// Words that differed.
        mismatches: u32,
        /// Words compared.
        words: usize,
    },
    /// A direct route copied.
    #[error("route {route} copied {bytes} bytes of the data set, but a direct route copies none")]
    HiddenCopy {
        /// The route under test.
        route: Route,
        /// Bytes counted at the function tables.
        bytes: u64,
    },
    /// The APIs see an allocation at two addresses on a route that guarantees one.
    #[error("route {route}: OpenCL sees address {cl:#x} and HIP {hip:#x}, but they must be equal")]
    AddressesDiffer {
        /// The route under test.
        route: Route,
        /// OpenCL's address.
        cl: usize,
        /// HIP's address.
        hip: usize,
    },
    /// The route does not exist for this request.
    #[error("route {route} is not possible: {reason}")]
    Unsupported {
        /// The route.
        route: Route,
        /// Why, and what to use instead.
        reason: String,
    },
    /// An address that the runtime below HIP does not know.
    #[error(
        "route {route}: the HSA runtime knows no memory at {address:#x}; check /proc/self/maps for a second copy of the runtime"
    )]
    UnknownAddress {
        /// The route under test.
        route: Route,
        /// The address from OpenCL.
        address: usize,
    },
    /// The range reaches beyond its allocation.
    #[error("route {route}: {bytes} bytes at {address:#x} exceed the allocation of {allocated} bytes at {base:#x}")]
    OutsideAllocation {
        /// The route under test.
        route: Route,
        /// The address given.
        address: usize,
        /// The requested bytes.
        bytes: usize,
        /// Where the allocation begins.
        base: usize,
        /// Its size in bytes.
        allocated: usize,
    },
    /// Memory of a route over device memory that lies elsewhere.
    #[error(
        "route {route}: the memory at {address:#x} is {residency} memory, not device memory; create one context per device, because a context of several devices keeps memory on the host"
    )]
    NotOnDevice {
        /// The route under test.
        route: Route,
        /// The address given.
        address: usize,
        /// Where the bytes live.
        residency: Residency,
    },
    /// Memory of another device than the bridge's.
    #[error(
        "route {route}: the memory at {address:#x} belongs to the device at {owner}, but the HIP device is at {expected}; pair the devices that match"
    )]
    OtherDevice {
        /// The route under test.
        route: Route,
        /// The address given.
        address: usize,
        /// The place of the owner.
        owner: String,
        /// The place of the bridge's HIP device.
        expected: String,
    },
    /// The elements need a greater alignment than shared memory has.
    #[error("elements aligned to {alignment} bytes cannot be shared; the largest alignment is {limit}")]
    Alignment {
        /// The type's alignment.
        alignment: usize,
        /// The alignment on every route.
        limit: usize,
    },
    /// A buffer of no elements cannot be shared.
    #[error("a shared buffer needs at least one element")]
    Empty,
    /// The size in bytes does not fit the address space.
    #[error("{len} elements of {element} bytes overflow the address space")]
    TooLarge {
        /// The requested elements.
        len: usize,
        /// Bytes of one element.
        element: usize,
    },
    /// A copy within the same bytes.
    #[error("{what}: source and destination show some of the same bytes; copy to other memory")]
    SameBytes {
        /// What copies.
        what: &'static str,
    },
    /// A transfer's host slice and the buffer differ in length.
    #[error("{what}: the host slice has {given} elements, but the shared buffer has {expected}")]
    LengthMismatch {
        /// The operation.
        what: &'static str,
        /// Elements of the host slice.
        given: usize,
        /// Elements of the buffer.
        expected: usize,
    },
    /// Memory that its owner made read-only.
    #[error("the memory is read-only; use `cl` or `hip`, or have its owner create it for writing")]
    ReadOnly,
    /// A queue or stream belongs to other devices than the bridge.
    #[error("the {what} belongs to another {owner} than this bridge; use one from this bridge")]
    OtherOwner {
        /// `queue` or `stream`.
        what: &'static str,
        /// `context` or `device`.
        owner: &'static str,
    },
    /// A stream under capture would have to be ordered against other work.
    #[error(
        "HIP stream {stream:#x} is being captured, and captured work runs later, unordered with other work; end the capture, or take the guard before it begins"
    )]
    Capturing {
        /// The stream's handle.
        stream: usize,
    },
    /// A device handle from no OpenCL library of this process.
    #[error(
        "the OpenCL device is none of the {looked_at} devices found; set HIPCL_OPENCL to the library that it came from"
    )]
    ForeignDevice {
        /// How many devices were found.
        looked_at: usize,
    },
    /// A context of several devices.
    #[error(
        "the OpenCL context has {count} devices, so ROCm keeps shared memory on the host and a copy of each buffer per device; create one context per device"
    )]
    SeveralDevices {
        /// How many.
        count: usize,
    },
    /// The platform's model refused to register an allocation.
    #[error("the {platform} platform refused memory that OpenCL owns: {reason}")]
    Foreign {
        /// The platform.
        platform: platform::Platform,
        /// Its words.
        reason: String,
    },
    /// This hand-off is not available here.
    #[error("hand-off grade {grade} is not possible: {reason}")]
    NoGrade {
        /// The grade.
        grade: Grade,
        /// Why.
        reason: String,
    },
    /// One side did not end in time, and the waiting side was released.
    #[error(
        "{before} did not hand over to {after} within {limit:?} (grade {grade}); check for work that never ends, or raise Options::handoff_limit"
    )]
    HandoffTimeout {
        /// The grade.
        grade: Grade,
        /// The side that was to end first.
        before: String,
        /// The side that waited.
        after: String,
        /// How long.
        limit: Duration,
    },
    /// One side failed, and the other worked on what it left.
    #[error("{before} failed before it handed over to {after} (grade {grade}): {cause}")]
    HandoffFailed {
        /// The grade.
        grade: Grade,
        /// The side that failed.
        before: String,
        /// The side that came after.
        after: String,
        /// The failure.
        cause: Box<Error>,
    },
    /// Work on another view of the same bytes is out of order. That view's users receive the error itself.
    #[error("another view of these bytes: {reason}")]
    AnotherView {
        /// What happened.
        reason: String,
    },
    /// Deferred errors that were not kept.
    #[error(
        "{count} more errors of destructors were not kept; call Bridge::take_deferred_errors before there are more than 64"
    )]
    MoreDeferred {
        /// How many.
        count: usize,
    },
    /// A stream did not wait for a kernel because an earlier hand-off of the kernel's queue took too long.
    #[error("an earlier hand-off of this queue timed out, so this one was abandoned too")]
    Ungated,
    /// A pipeline needs room for a block.
    #[error("the pipeline has no slots; pass at least one, and new ones after its consumer panicked")]
    NoSlots,
    /// An error between this process and another one.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// Two GPUs cannot work together this way.
    #[error("HIP device {to} cannot access memory of HIP device {from}: {reason}")]
    NoPeer {
        /// Ordinal of the device that has the memory.
        from: usize,
        /// Ordinal of the device that should reach it.
        to: usize,
        /// Why, and what to do.
        reason: String,
    },
    /// Every counting slot is in use.
    #[error(
        "this process has {limit} bridges, the most whose copies can be counted; drop a bridge and everything created from it"
    )]
    TooManyBridges {
        /// The number of slots.
        limit: usize,
    },
}

impl Error {
    /// Whether the route does not exist for this request, rather than having failed: a driver that
    /// lacks the extension, a platform on which it makes no sense, a release that is known to
    /// crash.
    #[must_use]
    pub fn is_impossible(&self) -> bool {
        #[cfg(feature = "vulkan")]
        if let Self::Vulkan(error) = self {
            return error.is_impossible();
        }
        matches!(
            self,
            Self::NotPossible { .. }
                | Self::Unsupported { .. }
                | Self::Peer(PeerError::NotPossible { .. })
                | Self::NoPeer { .. }
                | Self::Cl(clmgr::Error::NotSupported { .. })
                | Self::Hip(hip::Error::NotSupported { .. } | hip::Error::MissingSymbol { .. })
        )
    }
}

impl Error {
    /// Whether another route may do better.
    pub(crate) fn is_about_route(&self) -> bool {
        self.is_impossible()
            || matches!(
                self,
                Self::UnknownAddress { .. }
                    | Self::OutsideAllocation { .. }
                    | Self::NotOnDevice { .. }
                    | Self::OtherDevice { .. }
                    | Self::Foreign { .. }
            )
    }
}

/// For layers below that take shared memory: they hand the error on as it is.
impl From<Error> for hip::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Hip(error) => error,
            error => Self::Memory(Box::new(error)),
        }
    }
}

/// Gives the error back that a layer below handed on.
impl From<hip::Error> for Error {
    fn from(error: hip::Error) -> Self {
        let hip::Error::Memory(source) = error else {
            return Self::Hip(error);
        };
        match source.downcast::<Self>() {
            Ok(own) => *own,
            Err(other) => Self::Hip(hip::Error::Memory(other)),
        }
    }
}

/// `clmgr` and this crate both notice the end of the process; callers match one error for it.
impl From<clmgr::Error> for Error {
    fn from(error: clmgr::Error) -> Self {
        match error {
            clmgr::Error::ProcessEnds => Self::ProcessEnds,
            error => Self::Cl(error),
        }
    }
}

/// Gives the error back that a layer below handed on.
impl From<rccl::Error> for Error {
    fn from(error: rccl::Error) -> Self {
        match error {
            rccl::Error::Hip(error) => error.into(),
            error => Self::Collectives(error),
        }
    }
}

/// Gives the error back that a layer below handed on.
impl From<rocblas::Error> for Error {
    fn from(error: rocblas::Error) -> Self {
        match error {
            rocblas::Error::Hip(error @ hip::Error::Memory(_)) => error.into(),
            error => Self::Blas(error),
        }
    }
}

fn remedy(next: Option<Route>) -> String {
    match next {
        Some(route) => format!("Shared::move_to({route})"),
        None => "Shared::move_to to another route (the policy permits none)".into(),
    }
}

fn list(tried: &[(Route, String)]) -> String {
    if tried.is_empty() {
        return "none was permitted".into();
    }
    let one = |(route, reason): &(Route, String)| format!("{route}: {reason}");
    tried.iter().map(one).collect::<Vec<_>>().join("; ")
}
