use rccl_sys::ncclResult_t;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong. Each is one line that names the call and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The loaded library does not have the function.
    #[error("`{symbol}` is missing from the loaded RCCL; use a release that has it (`rccl_sys::Api` says which)")]
    MissingSymbol {
        /// The C name.
        symbol: &'static str,
    },

    /// A call failed, or the communicator has failed since.
    #[error("`{call}` failed: {name} ({code}){text}{}", remedy(*code))]
    Status {
        /// The call with its key arguments.
        call: String,
        /// The result's name.
        name: &'static str,
        /// The result.
        code: u32,
        /// The library's own words, with the separator before them; empty if it has none.
        text: String,
    },

    /// Ranks, or a rank, that cannot be.
    #[error("{call}: there is no rank {rank} among {ranks}")]
    NoRank {
        /// The call that refused it.
        call: &'static str,
        /// The rank.
        rank: usize,
        /// The communicator's size.
        ranks: usize,
    },

    /// The lengths of a call's memory do not fit each other.
    #[error("{call}: {argument} has {len} elements, but {needed} are needed for {ranks} ranks")]
    Length {
        /// The call that refused it.
        call: &'static str,
        /// The argument.
        argument: &'static str,
        /// Its elements.
        len: usize,
        /// What it needs.
        needed: usize,
        /// The communicator's size.
        ranks: usize,
    },

    /// Memory cannot be divided into a part for each rank.
    #[error("{call}: {len} elements are not a multiple of {ranks} ranks; pad the memory")]
    NotDivisible {
        /// The call that refused it.
        call: &'static str,
        /// Its elements.
        len: usize,
        /// The communicator's size.
        ranks: usize,
    },

    /// What is written lies where other memory of the same call or group does.
    #[error("{call}: the memory overlaps that of `{other}`, and one of them is written; use separate buffers")]
    Overlap {
        /// The call that refused it.
        call: &'static str,
        /// The other call, or the same.
        other: &'static str,
    },

    /// A slice was taken for another stream than the call's.
    #[error(
        "{call}: the slice was taken for another stream; give the call the memory itself, or a slice for its stream"
    )]
    WrongStream {
        /// The call that refused it.
        call: &'static str,
    },

    /// The stream is one of another device than the communicator's.
    #[error(
        "{call}: the stream is of device {stream}, the communicator of device {communicator}; use a stream of that"
    )]
    WrongDevice {
        /// The call that refused it.
        call: &'static str,
        /// The stream's device.
        stream: usize,
        /// The communicator's device.
        communicator: usize,
    },

    /// A device belongs to another HIP runtime than the library's, perhaps to another platform.
    #[error(
        "{call}: the device belongs to another HIP runtime than this RCCL; use a device of the runtime that the library is for"
    )]
    OtherRuntime {
        /// The call that refused it.
        call: &'static str,
    },

    /// The library is too old for calls in a graph.
    #[error(
        "{call} cannot be captured by RCCL {version}: graphs need NCCL 2.13 or RCCL of ROCm 5.4; make the call outside, or load a newer one"
    )]
    Captured {
        /// The call that refused it.
        call: &'static str,
        /// The library's [version](crate::Library::version).
        version: i32,
    },

    /// The end of a graph has aborted the communicator, for a launch of the graph did not end.
    #[error("{call}: the drop of a graph has aborted the communicator; make a new one on all ranks")]
    Ended {
        /// The call that refused it.
        call: &'static str,
    },

    /// No thread could be started that aborts a communicator, which graphs keep.
    #[error("Communicator::abort: no thread: {error}; drop the graphs first")]
    NoThread {
        /// The system's error.
        error: std::io::Error,
    },

    /// Queued work, or the start of a communicator, did not end in time.
    #[error(
        "{call}: no end within {seconds} s, for a rank did not make its call; give the communicator up on all ranks"
    )]
    TimedOut {
        /// The call that waited.
        call: &'static str,
        /// The limit.
        seconds: f64,
    },

    /// A HIP call failed, or the owner of the memory refused access ([`hip::Error::Memory`]).
    #[error(transparent)]
    Hip(#[from] hip::Error),
}

impl Error {
    /// The library's result, if the error is a failed call of it.
    #[must_use]
    pub fn code(&self) -> Option<ncclResult_t> {
        match self {
            Self::Status { code, .. } => Some(ncclResult_t(*code)),
            _ => None,
        }
    }
}

fn remedy(code: u32) -> &'static str {
    match ncclResult_t(code) {
        ncclResult_t::ncclRemoteError => "; another rank failed: abort the communicator",
        ncclResult_t::ncclSystemError | ncclResult_t::ncclUnhandledCudaError => "; set NCCL_DEBUG=WARN for the cause",
        _ => "",
    }
}
