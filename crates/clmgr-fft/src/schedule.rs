//! The launches that make up a transform.

use std::sync::Arc;

use clmgr::{C32, Kernel, NdRange};

use crate::route::{Place, Route};
use crate::steps::{Steps, Table};
use crate::way::Way;

/// A transform as launches in order, for code that launches OpenCL kernels itself. From
/// [`Plan::schedule`](crate::Plan::schedule).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Schedule {
    /// In order; each needs what the one before has written.
    pub launches: Vec<Launch>,
    /// What the kernels read besides the data, as laid out in memory.
    pub tables: Vec<Vec<u8>>,
    /// Complex numbers of scratch memory, of which two transforms at once need one each.
    pub scratch: usize,
}

/// One launch of a [`Schedule`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Launch {
    /// What is launched.
    pub kernel: Kernel,
    /// Its work-items.
    pub range: NdRange,
    /// Its arguments.
    pub operands: Vec<Operand>,
}

/// An argument of a [`Launch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// What is transformed; only read.
    Data,
    /// The result; the same memory as [`Data`](Self::Data) for a transform in place.
    Out,
    /// The scratch memory.
    Scratch,
    /// The table with this index.
    Table(usize),
    /// A number of 64 bits.
    Number(u64),
}

/// What a plan needs for one direction.
pub(crate) struct Prepared {
    pub kernels: Vec<Kernel>,
    /// Each once.
    pub tables: Vec<Arc<Table>>,
    out_of_place: Stages,
    in_place: Stages,
}

/// The launches of a transform.
pub(crate) struct Stages {
    pub list: Vec<Stage>,
    /// Complex numbers of scratch memory.
    pub scratch: usize,
}

pub(crate) struct Stage {
    /// Its index.
    pub kernel: usize,
    pub range: NdRange,
    pub operands: Vec<Operand>,
}

/// The shape of a plan.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub way: Way,
    pub len: usize,
    pub batch: usize,
    /// Bytes of scratch memory to keep to.
    pub scratch: usize,
}

impl Prepared {
    pub fn new(steps: Steps, shape: Shape) -> Self {
        let mut tables: Vec<Arc<Table>> = Vec::new();
        let mut operand = |table: &Arc<Table>| {
            let known = tables.iter().position(|other| Arc::ptr_eq(other, table));
            Operand::Table(known.unwrap_or_else(|| {
                tables.push(Arc::clone(table));
                tables.len() - 1
            }))
        };
        let of_kernels: Vec<Vec<Operand>> = steps
            .tables
            .iter()
            .map(|list| list.iter().map(&mut operand).collect())
            .collect();
        Self {
            out_of_place: shape.stages(&steps.ranges, &of_kernels, false),
            in_place: shape.stages(&steps.ranges, &of_kernels, true),
            kernels: steps.kernels,
            tables,
        }
    }

    pub fn stages(&self, in_place: bool) -> &Stages {
        match in_place {
            true => &self.in_place,
            false => &self.out_of_place,
        }
    }
}

impl Shape {
    fn stages(&self, ranges: &[NdRange], tables: &[Vec<Operand>], in_place: bool) -> Stages {
        match self.way {
            Way::Rows | Way::Columns | Way::Local | Way::Registers => {
                let mut operands = vec![Operand::Data, Operand::Out];
                operands.extend(&tables[0]);
                operands.push(Operand::Number(self.batch as u64));
                let (kernel, range) = (0, ranges[0]);
                Stages {
                    list: vec![Stage {
                        kernel,
                        range,
                        operands,
                    }],
                    scratch: 0,
                }
            }
            Way::Split { .. } | Way::Stages { .. } | Way::Passes => self.steps(ranges, tables, in_place),
        }
    }

    /// Several kernels that hand the data on, a chunk of the batch at a time. A kernel takes the offset of
    /// its place in elements. The order of the launches keeps a chunk from overwriting scratch memory that
    /// the one before still reads.
    fn steps(&self, ranges: &[NdRange], tables: &[Vec<Operand>], in_place: bool) -> Stages {
        let route = Route::of(self.way, ranges.len(), in_place);
        let chunk = match self.len * size_of::<C32>() * route.scratches {
            0 => self.batch,
            bytes => (self.scratch / bytes).clamp(1, self.batch),
        };
        let second = (self.len * chunk) as u64;
        let mut list = Vec::new();
        let mut begin = 0;
        while begin < self.batch {
            let rows = chunk.min(self.batch - begin);
            let start = (begin * self.len) as u64;
            let place = |place: Place| match place {
                Place::Data => (Operand::Data, start),
                Place::Out => (Operand::Out, start),
                Place::First => (Operand::Scratch, 0),
                Place::Second => (Operand::Scratch, second),
            };
            for (kernel, range) in ranges.iter().enumerate() {
                let (from, from_offset) = place(route.places[kernel]);
                let (to, to_offset) = place(route.places[kernel + 1]);
                let mut operands = vec![from, to];
                operands.extend(&tables[kernel]);
                operands.extend([Operand::Number(from_offset), Operand::Number(to_offset)]);
                let mut range = *range;
                range.global[1] = rows;
                list.push(Stage {
                    kernel,
                    range,
                    operands,
                });
            }
            begin += rows;
        }
        Stages {
            list,
            scratch: self.len * chunk * route.scratches,
        }
    }
}
