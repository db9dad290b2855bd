use hip::Stream;

use super::info::{Info, Meaning};
use super::matrices::Matrices;
use super::pivots::Pivots;
use crate::call::Accepted;
use crate::functions::solver::{Called, Form, Target};
use crate::size::int;
use crate::{Error, Handle, Result};

/// One call of a solver routine: its checks, and what it has besides its matrices.
pub(super) struct Call<'a> {
    name: &'static str,
    handle: &'a Handle,
    api: &'a rocsolver_sys::Api,
    count: usize,
    batched: bool,
}

impl<'a> Call<'a> {
    /// A call whose first matrix or batch is `a`.
    pub(super) fn new<A: Matrices>(
        handle: &'a Handle,
        name: &'static str,
        argument: &'static str,
        a: &A,
    ) -> Result<Self> {
        let api = handle.library().solver_api().ok_or(Error::NoSolver { call: name })?;
        handle.check_stream(name, argument, a.stream())?;
        Ok(Self {
            name,
            handle,
            api,
            count: a.count(),
            batched: A::FORM != Form::Single,
        })
    }

    /// Refuses a batch by pointers whose triangles the routine lets rocBLAS invert, if that copies [out of
    /// order](Handle::copies_out_of_order): it reads addresses on the host that the same call makes on the stream
    /// (library/src/blas3/rocblas_trtri.hpp at the tag rocm-6.0.0).
    pub(super) fn inverts_triangles<A: Matrices>(&self, argument: &'static str) -> Result<()> {
        if A::FORM != Form::Pointers || !self.handle.copies_out_of_order() {
            return Ok(());
        }
        Err(Error::Unsupported {
            call: self.name,
            argument,
            found: "of a batch by pointers, which rocBLAS before 4.1 inverts out of the stream's order".to_owned(),
            expected: "one matrix, a batch at a stride, or ROCm 6.1",
        })
    }

    /// The order of the square matrices `a`.
    pub(super) fn square<A: Matrices>(&self, argument: &'static str, a: &A) -> Result<usize> {
        square(self.name, argument, a.shape())
    }

    /// Checks another argument, which has `n` rows and as many matrices. Returns its columns.
    pub(super) fn beside<B: Matrices>(&self, argument: &'static str, b: &B, n: usize) -> Result<usize> {
        self.handle.check_stream(self.name, argument, b.stream())?;
        let (rows, cols) = b.shape();
        let (found, expected) = if rows != n {
            (format!("{rows} x {cols}"), format!("{n} x {cols}"))
        } else if b.count() != self.count {
            (
                format!("a batch of {}", b.count()),
                format!("one of {}, as the factors,", self.count),
            )
        } else {
            return Ok(cols);
        };
        Err(Error::Shape {
            call: self.name,
            argument,
            found,
            expected,
        })
    }

    /// An integer for each matrix, or none for an empty call.
    pub(super) fn info(&self, meaning: Meaning, n: usize) -> Result<Info> {
        self.not_capturing()?;
        let count = if n == 0 { 0 } else { self.count };
        Info::lease(&self.handle.infos, self.stream(), meaning, count, self.batched)
    }

    /// Refuses a captured call that writes pivots or `info`: they would be written by each run of the graph, and not
    /// before. Until then they could be mistaken for another matrix's, and their memory is reused by other calls.
    fn not_capturing(&self) -> Result<()> {
        if self.stream().is_capturing() {
            return Err(Error::Captured {
                call: self.name,
                reason: "its output about the matrix would exist only once the graph runs; make the call before the capture",
            });
        }
        Ok(())
    }

    /// Refuses the output of a call that only queried its workspace size, unless this call is also a query.
    pub(super) fn computed(&self, what: &'static str, is_computed: bool) -> Result<()> {
        if is_computed || self.handle.is_asking() {
            return Ok(());
        }
        Err(Error::NotComputed { call: self.name, what })
    }

    /// `len` pivots for each matrix.
    pub(super) fn pivots(&self, len: usize) -> Result<Pivots> {
        self.not_capturing()?;
        Pivots::lease(&self.handle.infos, self.stream(), len, self.count)
    }

    /// Pivots that exchange nothing.
    pub(super) fn identity_pivots(&self, len: usize) -> Result<Pivots> {
        Pivots::identity(&self.handle.infos, self.stream(), len, self.count)
    }

    /// Whether there is nothing to do for matrices with a side of `n`.
    pub(super) fn is_empty(&self, n: usize) -> bool {
        n == 0 || self.count == 0
    }

    /// Where to call the routine. Its handle is alive and of its stream.
    pub(super) fn target(&self) -> Result<Target<'a>> {
        self.handle.follows()?;
        Ok(Target {
            api: self.api,
            handle: self.handle.raw(),
            stream: self.stream(),
            count: int("batch count", self.count)?,
        })
    }

    /// Turns the routine's status into a result, and whether it computes. The arguments are only formatted on failure.
    pub(super) fn done(&self, (name, status): Called, arguments: impl FnOnce() -> String) -> Result<Accepted> {
        self.handle.accept(status, || {
            let arguments = arguments();
            if self.batched {
                format!("{name}({arguments}, count {})", self.count)
            } else {
                format!("{name}({arguments})")
            }
        })
    }

    fn stream(&self) -> &'a Stream {
        self.handle.stream()
    }
}

/// The order of square matrices; refuses others.
pub(super) fn square(call: &'static str, argument: &'static str, (rows, cols): (usize, usize)) -> Result<usize> {
    if rows == cols {
        return Ok(rows);
    }
    Err(Error::Shape {
        call,
        argument,
        found: format!("{rows} x {cols}"),
        expected: format!("{rows} x {rows}"),
    })
}
