//! Factors and inverses of a batch together, in tiles: kernels of ours for the tiles on the diagonal, and cuBLAS'
//! strided batches of products for all else.
//!
//! It works on copies, because a product does not stop at a diagonal: of the caller's matrices only the triangle is
//! read and written. Everything is in stream order and nothing is read by the host.

mod kernels;
mod steps;

use std::ffi::{c_int, c_uint};

use rocblas_sys::{rocblas_int, rocblas_status as Status};

use self::kernels::{Kernels, Launch};
use self::steps::{Grid, Product, Room, Step, TILE};
use super::operand::Operand;
use super::scalar::Scalar;
use crate::blas::Result;
use crate::blas::cusolver::typed;
use crate::blas::handle::{Handle, HostScalars, Raw};
use crate::blas::scratch::{Scratch, clear};
use crate::memory::address;

/// Rows from which on the library's own routines take one matrix after another: a single one fills the device then.
const LARGEST: rocblas_int = 1024;
/// Bytes of the copies that a call works on at a time.
const MOST_BYTES: usize = 256 << 20;
/// A grid's second and third dimension end at 65535.
const MOST_MATRICES: usize = 1 << 15;

/// Triangles of a batch; `n` is not 0.
pub(super) struct Batch<'a, T> {
    pub(super) upper: bool,
    pub(super) n: rocblas_int,
    pub(super) a: &'a Operand<T>,
    pub(super) lda: rocblas_int,
    pub(super) count: usize,
}

/// How many matrices of this size are worked on at a time.
const fn at_once(element: usize, tiles: usize) -> usize {
    let size = tiles * TILE;
    let most = MOST_BYTES / (element * (2 * size * size + TILE * TILE));
    match most {
        0 => 1,
        most if most > MOST_MATRICES => MOST_MATRICES,
        most => most,
    }
}

/// A part of a batch in memory of its own.
struct Copies<'a, T> {
    handle: &'a Handle,
    kernels: Kernels,
    grid: Grid,
    rooms: [Scratch<T>; 3],
}

impl<T: Scalar> Batch<'_, T> {
    /// Whether these are for this way; not where there is no compiler for its kernels.
    pub(super) fn kernels(&self, handle: &Handle) -> Result<Option<Kernels>> {
        match self.n <= LARGEST {
            true => Kernels::of::<T>(handle),
            false => Ok(None),
        }
    }

    /// Replaces each triangle by its Cholesky factor; of one that stops, only the columns before are written.
    ///
    /// # Safety
    /// The matrices are valid device memory, and `info` that of a number for each.
    pub(super) unsafe fn factor(&self, handle: &Handle, kernels: Kernels, info: *mut rocblas_int) -> Result {
        // SAFETY: the caller's promise.
        unsafe {
            self.each(handle, kernels, false, info, |copies, info| {
                clear(handle, info, copies.grid.batch)?;
                copies.grid.factor().into_iter().try_for_each(|step| match step {
                    Step::FactorTile(tile) => copies.factor_tile(tile, info),
                    Step::Multiply(product) => copies.multiply(product),
                })
            })
        }
    }

    /// Replaces each factor by the triangle of its matrix's inverse; one with a zero on its diagonal is not written.
    ///
    /// # Safety
    /// As [`Batch::factor`].
    pub(super) unsafe fn invert(&self, handle: &Handle, kernels: Kernels, info: *mut rocblas_int) -> Result {
        // SAFETY: the caller's promise.
        unsafe {
            self.each(handle, kernels, true, info, |copies, info| {
                copies.first_zeros(self.n, info)?;
                copies.invert_tiles()?;
                let mut products = copies.grid.inverse().into_iter();
                products.try_for_each(|product| copies.multiply(product))
            })
        }
    }

    /// # Safety
    /// As [`Batch::factor`]; `work` leaves what is to be written in `Room::Result`.
    unsafe fn each(
        &self,
        handle: &Handle,
        kernels: Kernels,
        whole: bool,
        info: *mut rocblas_int,
        work: impl Fn(&Copies<'_, T>, *mut rocblas_int) -> Result,
    ) -> Result {
        let tiles = (self.n.unsigned_abs() as usize).div_ceil(TILE);
        let mut most = at_once(size_of::<T>(), tiles).min(self.count);
        let grid = |batch| Grid { tiles, batch };
        let rooms = |most| -> Result<_> {
            let elements = grid(most).elements() * most;
            Ok([
                Scratch::new(handle, elements)?,
                Scratch::new(handle, elements)?,
                Scratch::new(handle, TILE * TILE * most)?,
            ])
        };
        let rooms = loop {
            match rooms(most) {
                Err(Status::rocblas_status_memory_error) if most > 1 => most /= 2,
                rooms => break rooms?,
            }
        };
        let mut copies = Copies {
            handle,
            kernels,
            grid: grid(most),
            rooms,
        };
        let _scalars = HostScalars::new(handle)?;
        for first in (0..self.count).step_by(most) {
            copies.grid = grid(most.min(self.count - first));
            let info = info.wrapping_add(first);
            copies.pack(self, first)?;
            work(&copies, info)?;
            copies.unpack(self, first, whole, info)?;
        }
        Ok(())
    }
}

impl<T: Scalar> Copies<'_, T> {
    fn at(&self, room: Room) -> *mut T {
        let [packed, result, tile] = &self.rooms;
        match room {
            Room::Packed => packed.at(),
            Room::Result => result.at(),
            Room::Tile => tile.at(),
        }
    }

    fn word(&self, room: Room) -> u64 {
        address(self.at(room))
    }

    fn tiles(&self) -> c_uint {
        self.grid.tiles as c_uint
    }

    fn batch(&self) -> c_uint {
        self.grid.batch as c_uint
    }

    fn launch(&self, function: hip_sys::hipFunction_t, grid: (c_uint, c_uint, c_uint)) -> Launch<'_> {
        Launch::new(self.handle, function, grid)
    }

    fn pack(&self, batch: &Batch<'_, T>, first: usize) -> Result {
        let (at, stride, list) = batch.a.from(first);
        let grid = (self.tiles(), self.tiles(), self.batch());
        // SAFETY: the arguments are the kernel's; the caller's matrices are valid by the contract of `Batch::each`, and
        // the copies have room for the grid.
        unsafe {
            self.launch(self.kernels.pack, grid).with(&[
                &address(at),
                &stride,
                &address(list),
                &batch.n,
                &batch.lda,
                &c_int::from(batch.upper),
                &self.word(Room::Packed),
            ])
        }
    }

    fn unpack(&self, batch: &Batch<'_, T>, first: usize, whole: bool, info: *mut c_int) -> Result {
        let (at, stride, list) = batch.a.from(first);
        let grid = (self.tiles(), self.tiles(), self.batch());
        // SAFETY: as in `pack`; `info` has a number for each matrix.
        unsafe {
            self.launch(self.kernels.unpack, grid).with(&[
                &self.word(Room::Result),
                &address(info),
                &c_int::from(whole),
                &address(at),
                &stride,
                &address(list),
                &batch.n,
                &batch.lda,
                &c_int::from(batch.upper),
            ])
        }
    }

    fn factor_tile(&self, tile: usize, info: *mut c_int) -> Result {
        // SAFETY: the arguments are the kernel's; the copies have this tile, and `info` a number for each matrix.
        unsafe {
            self.launch(self.kernels.factor_tile, (self.batch(), 1, 1)).with(&[
                &self.word(Room::Packed),
                &self.word(Room::Result),
                &self.word(Room::Tile),
                &address(info),
                &(self.grid.tiles as c_int),
                &(tile as c_int),
            ])
        }
    }

    fn invert_tiles(&self) -> Result {
        let grid = (self.tiles(), self.batch(), 1);
        // SAFETY: the argument is the kernel's; the copies have the grid's tiles.
        unsafe {
            self.launch(self.kernels.invert_tiles, grid)
                .with(&[&self.word(Room::Packed)])
        }
    }

    fn first_zeros(&self, n: c_int, info: *mut c_int) -> Result {
        // SAFETY: as in `factor_tile`.
        unsafe {
            self.launch(self.kernels.first_zeros, (self.batch(), 1, 1)).with(&[
                &self.word(Room::Packed),
                &address(info),
                &n,
                &(self.grid.tiles as c_int),
            ])
        }
    }

    fn multiply(&self, product: Product) -> Result {
        let run = typed!(
            crate::blas::library()?,
            T::names().gemm_strided_batched,
            fn(
                Raw,
                c_uint,
                c_uint,
                c_int,
                c_int,
                c_int,
                *const T,
                *const T,
                c_int,
                i64,
                *const T,
                c_int,
                i64,
                *const T,
                *mut T,
                c_int,
                i64,
                c_int,
            )
        );
        let [a, b, c] = [product.a, product.b, product.c].map(|place| {
            let at = self.at(place.room).wrapping_add(place.offset);
            (at, place.ld as c_int, place.stride as i64)
        });
        // CUBLAS_OP_N and CUBLAS_OP_C
        let turned = |turned: bool| if turned { 2 } else { 0 };
        let alpha = Aligned(T::whole(if product.negative { -1 } else { 1 }));
        let beta = Aligned(T::whole(i8::from(product.added)));
        // SAFETY: a live handle whose scalars are the host's; the matrices lie in the copies, and `c` is neither `a`
        // nor `b`.
        let code = unsafe {
            run(
                self.handle.raw(),
                turned(product.turned.0),
                turned(product.turned.1),
                product.m as c_int,
                product.n as c_int,
                product.k as c_int,
                &alpha.0,
                a.0,
                a.1,
                a.2,
                b.0,
                b.1,
                b.2,
                &beta.0,
                c.0,
                c.1,
                c.2,
                product.count as c_int,
            )
        };
        crate::blas::check(code, "cublas gemmStridedBatched")
    }
}

/// A scalar where cuBLAS can load it.
#[repr(align(16))]
struct Aligned<T>(T);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_many_matrices_stay_within_their_bytes() {
        for tiles in 1..=LARGEST.unsigned_abs() as usize / TILE {
            for element in [4, 8, 16] {
                let count = at_once(element, tiles);
                let size = tiles * TILE;
                let bytes = count * element * (2 * size * size + TILE * TILE);
                assert!((1..=MOST_MATRICES).contains(&count) && bytes <= MOST_BYTES);
            }
        }
        // a hundred of the job `capon` at once
        assert!(at_once(8, 341_usize.div_ceil(TILE)) >= 100);
    }
}
