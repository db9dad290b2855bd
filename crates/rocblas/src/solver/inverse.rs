use std::fmt;
use std::marker::PhantomData;

use hip::{Device, Function, LaunchConfig};

use super::call::square;
use super::cholesky::{potrf, potri};
use super::held::Held;
use super::info::Info;
use super::lu::{getrf, getri};
use super::matrices::Matrices;
use crate::functions::solver::Form;
use crate::operands::Call;
use crate::size::int;
use crate::{Fill, Handle, Result, Scalar};

/// Threads of a block in each of two dimensions.
const TILE: u32 = 16;
/// Matrices of a batch that get blocks of their own; a block takes several if there are more.
const MOST_LAYERS: usize = 1024;

/// A compiled kernel that completes Hermitian (for real scalars: symmetric) matrices of which one triangle is there.
///
/// rocSOLVER's [`potri`](super::potri) and rocBLAS's [`herk`](Handle::herk) write one triangle only. This kernel is not
/// part of either library; it is compiled at run time, so the runtime needs HIPRTC.
pub struct Mirror<T> {
    at_stride: Function,
    at_pointers: Function,
    element: PhantomData<fn(T)>,
}

impl<T: Scalar> Mirror<T> {
    /// Compiles the kernel for a device.
    ///
    /// # Errors
    ///
    /// There is no HIPRTC, or it failed.
    pub fn new(device: &Device) -> Result<Self> {
        let [at_stride, at_pointers] = ["mirror", "mirror_pointers"].map(|kernel| format!("{kernel}<{}>", T::ELEMENT));
        let module = hip::rtc::Program::new(include_str!("../../kernels/mirror.hip"))
            .name("mirror.hip")
            .instance(&at_stride)
            .instance(&at_pointers)
            .compile(device)?;
        Ok(Self {
            at_stride: module.function(&at_stride)?,
            at_pointers: module.function(&at_pointers)?,
            element: PhantomData,
        })
    }

    /// Copies the triangle `fill` of `a` (n x n), conjugated, into the other one, in order of the handle's stream, and
    /// sets the imaginary parts of the diagonal to zero.
    ///
    /// # Errors
    ///
    /// `a` is not square, does not fit its memory or can't be used on the handle's stream, the kernel is for another
    /// device, or HIP refused the launch.
    pub fn complete<A: Matrices<Scalar = T>>(&self, handle: &Handle, fill: Fill, a: A) -> Result<()> {
        const CALL: &str = "Mirror::complete";
        square(CALL, "a", a.layout())?;
        let a = a.take(&mut Call::new(handle.stream(), CALL), "a")?;
        self.complete_held(fill, &a)
    }

    /// Of square matrices.
    pub(super) fn complete_held(&self, fill: Fill, a: &Held<'_, T>) -> Result<()> {
        let (n, count) = (a.layout().rows, a.count());
        if n == 0 || count == 0 {
            return Ok(());
        }
        let operand = a.operand()?;
        let tiles = int("n", n)?.cast_unsigned().div_ceil(TILE);
        let config = LaunchConfig {
            grid: (tiles, tiles, count.min(MOST_LAYERS) as u32),
            block: (TILE, TILE, 1),
            shared_bytes: 0,
        };
        let address = operand.address as u64;
        let from_upper = i32::from(fill == Fill::Upper);
        let [n, ld, count] = [n as i64, operand.ld.into(), count as i64];
        let stride = operand.stride;
        // SAFETY: the arguments are of the kernels' types, an address as the integer of its size. They read one
        // triangle of each n x n matrix and write the other and the diagonal, once; they are as large as their sizes say, share no
        // element, and may be used on this stream.
        unsafe {
            match operand.form {
                Form::Single | Form::Strided => {
                    self.at_stride
                        .launch(a.stream(), config, &[&address, &n, &ld, &stride, &count, &from_upper])?
                }
                Form::Batched => {
                    self.at_pointers
                        .launch(a.stream(), config, &[&address, &n, &ld, &count, &from_upper])?
                }
            }
        }
        Ok(())
    }
}

impl<T> fmt::Debug for Mirror<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mirror")
            .field("at_stride", &self.at_stride)
            .field("at_pointers", &self.at_pointers)
            .finish()
    }
}

/// The whole inverse of the Hermitian positive-definite n x n matrix whose triangle `fill` is in `a`, in its place:
/// [`potrf`], [`potri`](super::potri) and a [`Mirror`] for the other triangle, one after the other without a wait
/// between.
///
/// # Errors
///
/// As for those. [`Info::check`] reports a matrix that is not positive definite or is singular; there is no inverse
/// then.
pub fn hermitian_inverse<A: Matrices>(handle: &Handle, mirror: &Mirror<A::Scalar>, fill: Fill, a: A) -> Result<Info> {
    potri(handle, potrf(handle, fill, a)?)?.complete(mirror)
}

/// The inverse of the general n x n matrix in `a`, in its place: [`getrf`] and [`getri`], one after the other without a
/// wait between.
///
/// This function reads every element of `a`. Do not pass a matrix that holds one triangle only, such as the covariance
/// that [`herk`](Handle::herk) writes: use [`hermitian_inverse`], or complete the matrix with a [`Mirror`] first.
///
/// # Errors
///
/// As for those. [`Info::check`] reports a singular matrix; there is no inverse then.
pub fn general_inverse<A: Matrices>(handle: &Handle, a: A) -> Result<Info> {
    square("general_inverse", "a", a.layout())?;
    getri(handle, getrf(handle, a)?)
}
