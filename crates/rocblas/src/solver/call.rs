use hip::Stream;

use super::held::Held;
use super::info::{Info, Meaning};
use super::matrices::Matrices;
use super::pivots::Pivots;
use crate::call::Accepted;
use crate::functions::solver::{Called, Target};
use crate::operands;
use crate::size::{Layout, int};
use crate::{Error, Handle, Result};

/// One call of a solver routine: its checks, and what it has besides its matrices.
pub(super) struct Call<'h> {
    name: &'static str,
    handle: &'h Handle,
    api: &'h rocsolver_sys::Api,
    memory: operands::Call<'h>,
    /// Of the first matrix or batch.
    count: usize,
    batched: bool,
}

impl<'h> Call<'h> {
    /// A call that takes its first matrix or batch `a`.
    pub(super) fn new<'a, A>(
        handle: &'h Handle,
        name: &'static str,
        argument: &'static str,
        a: A,
    ) -> Result<(Self, Held<'a, A::Scalar>)>
    where
        'h: 'a,
        A: Matrices + 'a,
    {
        let mut call = Self::begin(handle, name)?;
        let held = a.take(&mut call.memory, argument)?;
        call.goes_by(&held);
        Ok((call, held))
    }

    /// A call that takes square matrices `a` and `b` with as many rows.
    pub(super) fn pair<'a, 'b, T, A, B>(
        handle: &'h Handle,
        name: &'static str,
        a: A,
        b: B,
    ) -> Result<(Self, Held<'a, T>, Held<'b, T>)>
    where
        'h: 'a + 'b,
        A: Matrices<Scalar = T> + 'a,
        B: Matrices<Scalar = T> + 'b,
    {
        let n = square(name, "a", a.layout())?;
        rows(name, "b", b.layout(), n)?;
        let (mut call, a) = Self::new(handle, name, "a", a)?;
        let b = call.beside("b", b, n)?;
        Ok((call, a, b))
    }

    /// A call on a matrix or batch that an earlier one took, and that this one writes or only reads.
    pub(super) fn on<T>(
        handle: &'h Handle,
        name: &'static str,
        argument: &'static str,
        held: &Held<'_, T>,
        is_written: bool,
    ) -> Result<Self> {
        let mut call = Self::begin(handle, name)?;
        call.memory.check_stream(argument, held.stream())?;
        call.memory.note(argument, is_written, held.place())?;
        call.goes_by(held);
        Ok(call)
    }

    fn begin(handle: &'h Handle, name: &'static str) -> Result<Self> {
        Ok(Self {
            name,
            handle,
            api: handle.library().solver_api().ok_or(Error::NoSolver { call: name })?,
            memory: operands::Call::new(handle.stream(), name),
            count: 0,
            batched: false,
        })
    }

    /// Refuses a batch by pointers whose triangles the routine lets rocBLAS invert, if that copies [out of
    /// order](Handle::copies_out_of_order): it reads addresses on the host that the same call makes on the stream
    /// (library/src/blas3/rocblas_trtri.hpp at the tag rocm-6.0.0).
    pub(super) fn inverts_triangles<T>(&self, argument: &'static str, held: &Held<'_, T>) -> Result<()> {
        if !held.is_by_pointers() || !self.handle.copies_out_of_order() {
            return Ok(());
        }
        Err(Error::Unsupported {
            call: self.name,
            argument,
            found: "of a batch by pointers, which rocBLAS before 4.1 inverts out of the stream's order".to_owned(),
            expected: "one matrix, a batch at a stride, or ROCm 6.1",
        })
    }

    fn goes_by<T>(&mut self, first: &Held<'_, T>) {
        self.count = first.count();
        self.batched = first.is_batch();
    }

    /// Takes another argument, which has `n` rows and as many matrices as the first.
    pub(super) fn beside<'b, B>(&mut self, argument: &'static str, b: B, n: usize) -> Result<Held<'b, B::Scalar>>
    where
        'h: 'b,
        B: Matrices + 'b,
    {
        rows(self.name, argument, b.layout(), n)?;
        let b = b.take(&mut self.memory, argument)?;
        if b.count() == self.count {
            return Ok(b);
        }
        Err(Error::Shape {
            call: self.name,
            argument,
            found: format!("a batch of {}", b.count()),
            expected: format!("one of {}, as the factors,", self.count),
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
    pub(super) fn target(&self) -> Result<Target<'h>> {
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

    fn stream(&self) -> &'h Stream {
        self.handle.stream()
    }
}

/// The order of square matrices; refuses others.
pub(super) fn square(call: &'static str, argument: &'static str, Layout { rows, cols, .. }: Layout) -> Result<usize> {
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

/// Refuses matrices that do not have `n` rows.
fn rows(call: &'static str, argument: &'static str, Layout { rows, cols, .. }: Layout, n: usize) -> Result<()> {
    if rows == n {
        return Ok(());
    }
    Err(Error::Shape {
        call,
        argument,
        found: format!("{rows} x {cols}"),
        expected: format!("{n} x {cols}"),
    })
}
