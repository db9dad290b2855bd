//! cuBLAS and cuFFT.

use hip_cuda::peer::{Cublas, Cufft};

use super::{Peer, Product, Transform};
use crate::{Error, Result};

/// A peer with the stream that it works on.
struct On<P>(P, #[allow(dead_code, reason = "the handle needs it alive")] hip::Stream);

pub(super) fn products(stream: &hip::Stream) -> std::result::Result<impl Peer<Product> + 'static, String> {
    // SAFETY: the stream is kept beside the handle, and dropped after it.
    let handle = unsafe { Cublas::new(stream.raw()) };
    Ok(On(handle.map_err(|error| error.to_string())?, stream.clone()))
}

pub(super) fn transforms(
    stream: &hip::Stream,
    len: usize,
    batch: usize,
) -> std::result::Result<impl Peer<Transform> + 'static, String> {
    // SAFETY: as above.
    let plan = unsafe { Cufft::new(len, batch, stream.raw()) };
    Ok(On(plan.map_err(|error| error.to_string())?, stream.clone()))
}

fn refused(error: hip_cuda::peer::Error) -> Error {
    Error::input(error.to_string())
}

impl Peer<Product> for On<Cublas> {
    fn name(&self) -> String {
        "cuBLAS called directly".to_owned()
    }

    unsafe fn run(&self, work: &Product) -> Result<()> {
        let product = hip_cuda::peer::Product {
            size: work.size,
            count: work.count,
            a: work.a.cast(),
            b: work.b.cast(),
            c: work.c.cast(),
        };
        // SAFETY: the caller's promise; a complex number is its two parts.
        unsafe { self.0.multiply(&product) }.map_err(refused)
    }
}

impl Peer<Transform> for On<Cufft> {
    fn name(&self) -> String {
        "cuFFT called directly".to_owned()
    }

    unsafe fn run(&self, work: &Transform) -> Result<()> {
        // SAFETY: the caller's promise; the plan is of this length and batch.
        unsafe { self.0.forward(work.from.cast(), work.to.cast()) }.map_err(refused)
    }
}
