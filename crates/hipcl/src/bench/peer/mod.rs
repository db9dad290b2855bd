//! Other implementations of what is measured, called directly, to measure against.
//!
//! | platform | products | transforms |
//! |---|---|---|
//! | nvidia | cuBLAS | cuFFT |
//! | host | OpenBLAS, if the machine has it | rustfft, and FFTW if the machine has it |
//! | amd | none: rocBLAS is what is measured | none |

mod library;
#[cfg(feature = "nvidia")]
mod nvidia;
mod openblas;
mod transforms;

use interop::Bridge;
use platform::Rivals;

use crate::{C32, Result};

/// `count` products `C = A B` of square matrices, column-major and dense, one behind the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product {
    pub size: usize,
    pub count: usize,
    pub a: *const C32,
    pub b: *const C32,
    pub c: *mut C32,
}

/// `batch` forward transforms of `len` numbers, one row behind the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transform {
    pub len: usize,
    pub batch: usize,
    pub from: *mut C32,
    pub to: *mut C32,
}

/// Someone else's way to do `W`.
pub(super) trait Peer<W> {
    /// Who, and how.
    fn name(&self) -> String;

    /// Does the work, which on return has ended or is queued in stream order.
    ///
    /// # Safety
    /// The addresses hold what `work` says, on the bridge's HIP device, and nothing else uses the output meanwhile.
    unsafe fn run(&self, work: &W) -> Result<()>;
}

/// The available peers, and for the others, why they are not.
pub(super) struct Peers<W> {
    pub found: Vec<Box<dyn Peer<W>>>,
    pub missing: Vec<String>,
}

impl<W> Peers<W> {
    fn none(why: &str) -> Self {
        Self {
            found: Vec::new(),
            missing: vec![why.to_owned()],
        }
    }

    #[cfg(feature = "nvidia")]
    fn of<P: Peer<W> + 'static>(peer: std::result::Result<P, String>) -> Self {
        let mut peers = Self {
            found: Vec::new(),
            missing: Vec::new(),
        };
        peers.take(peer);
        peers
    }

    fn take<P: Peer<W> + 'static>(&mut self, peer: std::result::Result<P, String>) {
        match peer {
            Ok(peer) => self.found.push(Box::new(peer)),
            Err(why) => self.missing.push(why),
        }
    }
}

const AMD: &str = "no comparison: the measurement uses rocBLAS itself, and no other library is loaded";
#[cfg(not(feature = "nvidia"))]
const NOT_BUILT: &str = "no comparison: built without the feature `nvidia`";

/// Products on this stream.
pub(super) fn products(bridge: &Bridge, stream: &hip::Stream) -> Peers<Product> {
    match bridge.report().platform.facts().rivals {
        #[cfg(feature = "nvidia")]
        Rivals::Cuda => Peers::of(nvidia::products(stream)),
        #[cfg(not(feature = "nvidia"))]
        Rivals::Cuda => Peers::none(NOT_BUILT),
        Rivals::Processor => {
            let _ = stream;
            let mut peers = Peers {
                found: Vec::new(),
                missing: Vec::new(),
            };
            peers.take(openblas::OpenBlas::find());
            peers
        }
        _ => Peers::none(AMD),
    }
}

/// Transforms of this shape on this stream.
pub(super) fn transforms(bridge: &Bridge, stream: &hip::Stream, len: usize, batch: usize) -> Peers<Transform> {
    match bridge.report().platform.facts().rivals {
        #[cfg(feature = "nvidia")]
        Rivals::Cuda => Peers::of(nvidia::transforms(stream, len, batch)),
        #[cfg(not(feature = "nvidia"))]
        Rivals::Cuda => Peers::none(NOT_BUILT),
        Rivals::Processor => {
            let _ = (stream, batch);
            let mut peers = Peers {
                found: Vec::new(),
                missing: Vec::new(),
            };
            peers.take(Ok(transforms::RustFft::new(len)));
            peers.take(transforms::Fftw::find(len, batch));
            peers
        }
        _ => Peers::none(AMD),
    }
}
