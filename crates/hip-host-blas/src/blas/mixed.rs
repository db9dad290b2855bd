//! The arithmetic of gemm_ex: a product whose result goes elsewhere than to `C`, of elements that
//! may be narrower than the compute type.

use faer::Mat;
use half::{bf16, f16};

use super::batch::Batch;
use super::product::{Operands, Product};
use super::scalar::Scalar;
use super::schedule::for_pieces;
use super::view::{Op, Source, Target};

/// An element that is computed with as a `W`.
pub(super) trait Narrow<W>: Copy + Send + Sync + 'static {
    fn widen(self) -> W;
    /// The nearest value of this type.
    fn narrow(value: W) -> Self;
}

impl<T: Scalar> Narrow<T> for T {
    fn widen(self) -> T {
        self
    }
    fn narrow(value: T) -> T {
        value
    }
}

macro_rules! narrow {
    ($($type:ty),*) => {$(
        impl Narrow<f32> for $type {
            fn widen(self) -> f32 {
                self.to_f32()
            }
            fn narrow(value: f32) -> Self {
                Self::from_f32(value)
            }
        }
    )*};
}
narrow!(f16, bf16);

/// `D := alpha op(A) op(B) + beta C` for each matrix of the batches.
pub(super) struct Update<In, Out, W> {
    /// What is computed; its `beta` belongs to `C`.
    pub(super) product: Product<W>,
    pub(super) ops: [Op; 2],
    pub(super) a: Batch<In>,
    pub(super) b: Batch<In>,
    pub(super) c: Batch<Out>,
    pub(super) d: Batch<Out>,
}

impl<In: Narrow<W>, Out: Narrow<W>, W: Scalar> Update<In, Out, W> {
    fn adds(&self) -> bool {
        self.product.beta != W::ZERO
    }

    /// What the call could not see of the matrices in use.
    ///
    /// # Safety
    /// As for [`Batch::check_in_stream`], for the batches in use.
    unsafe fn check(&self, name: &str) {
        // SAFETY: the caller's promise.
        unsafe {
            if self.product.reads_operands() {
                self.a.check_in_stream(name, "A");
                self.b.check_in_stream(name, "B");
            }
            if self.adds() {
                self.c.check_in_stream(name, "C");
            }
            self.d.check_result_in_stream(name, "D");
        }
    }

    /// # Safety
    /// The batches were checked, those that the scalars say are used. Called in stream order, and
    /// nothing else touches their matrices.
    pub(super) unsafe fn run_mixed(&self, name: &str) {
        let Product { m, n, k, .. } = self.product;
        // SAFETY: the caller's promise.
        unsafe { self.check(name) };
        for i in 0..self.d.count {
            let mut wide = Mat::<W>::zeros(m, n);
            if self.product.reads_operands() {
                // SAFETY: as above; checked just now.
                let (a, b) = unsafe {
                    let [op_a, op_b] = self.ops;
                    (
                        widened(self.a.source(op_a, i), self.a.shape),
                        widened(self.b.source(op_b, i), self.b.shape),
                    )
                };
                let operands = Operands {
                    a: source(&a, self.ops[0]),
                    b: source(&b, self.ops[1]),
                    c: Target {
                        ptr: wide.as_ptr_mut(),
                        ld: wide.col_stride().unsigned_abs(),
                    },
                };
                let product = Product {
                    m,
                    n,
                    k,
                    alpha: self.product.alpha,
                    beta: W::ZERO,
                };
                // SAFETY: matrices made here, of these shapes.
                unsafe { product.run(1, |_| operands) };
            }
            for_pieces(n, |cols| {
                for (col, row) in cols.flat_map(|col| (0..m).map(move |row| (col, row))) {
                    // SAFETY: the caller's promise; each column is written by one thread, and what
                    // it reads of `C` is at the same place or in another matrix.
                    unsafe {
                        let old = if self.adds() {
                            let c = self.c.source(Op::None, i);
                            let c = c.ptr.wrapping_add(row + col * c.ld).read();
                            self.product.beta * c.widen()
                        } else {
                            W::ZERO
                        };
                        let d = self.d.target(i);
                        let d = d.ptr.wrapping_add(row + col * d.ld);
                        d.write(Out::narrow(wide[(row, col)] + old));
                    }
                }
            });
        }
    }
}

impl<T: Scalar> Update<T, T, T> {
    /// # Safety
    /// As for `run_mixed`.
    pub(super) unsafe fn run_uniform(&self, name: &str) {
        // SAFETY: the caller's promise.
        unsafe { self.check(name) };
        let Product { m, n, .. } = self.product;
        let count = self.d.count;
        if self.adds() && !self.c.place.is(self.d.place) {
            for i in 0..count {
                // SAFETY: as above.
                let (c, d) = unsafe { (self.c.source(Op::None, i), self.d.target(i)) };
                for col in 0..n {
                    let (from, to) = (c.from(0, col).ptr, d.from(0, col).ptr);
                    // SAFETY: columns of checked matrices; arrays may name one matrix in both.
                    unsafe { std::ptr::copy(from, to, m) };
                }
            }
        }
        let reads = self.product.reads_operands();
        let input = |batch: &Batch<T>, op, i| {
            if reads {
                // SAFETY: as above.
                unsafe { batch.source(op, i) }
            } else {
                // The array may be null, as nothing is read.
                Source {
                    ptr: std::ptr::null(),
                    ld: batch.ld,
                    op,
                }
            }
        };
        // SAFETY: as above; results do not overlap.
        unsafe {
            self.product.run(count, |i| Operands {
                a: input(&self.a, self.ops[0], i),
                b: input(&self.b, self.ops[1], i),
                c: self.d.target(i),
            });
        }
    }
}

/// The stored matrix in the compute type.
///
/// # Safety
/// It is readable with this shape.
unsafe fn widened<T: Narrow<W>, W: Scalar>(stored: Source<T>, (rows, cols): (usize, usize)) -> Mat<W> {
    Mat::from_fn(rows, cols, |row, col| {
        // SAFETY: the caller's promise.
        unsafe { stored.ptr.wrapping_add(row + col * stored.ld).read() }.widen()
    })
}

fn source<W: Scalar>(matrix: &Mat<W>, op: Op) -> Source<W> {
    Source {
        ptr: matrix.as_ptr(),
        ld: matrix.col_stride().unsigned_abs(),
        op,
    }
}
