//! The launches that make up a transform.

use std::sync::Arc;

use clmgr::{Kernel, NdRange};

use crate::recipe::{Recipe, Scratch};
use crate::route::Place;
use crate::spec::Spec;
use crate::steps::{Grid, Step, Table};

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
    /// The input; only read.
    Data,
    /// The output; the same memory as [`Data`](Self::Data) for a transform in place.
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

/// A kernel between two places.
struct Pass {
    kernel: usize,
    grid: Grid,
    tables: Vec<Operand>,
}

impl Prepared {
    /// Of a recipe's steps, by leg, and its completion.
    pub fn new(
        legs: Vec<Vec<Step>>,
        completion: Option<Step>,
        recipe: &Recipe,
        spec: &Spec,
        scratch: impl Fn(bool) -> Scratch,
    ) -> Self {
        let mut kernels = Vec::new();
        let mut tables: Vec<Arc<Table>> = Vec::new();
        let mut operand = |table: &Arc<Table>| {
            let known = tables.iter().position(|other| Arc::ptr_eq(other, table));
            Operand::Table(known.unwrap_or_else(|| {
                tables.push(Arc::clone(table));
                tables.len() - 1
            }))
        };
        let mut pass = |step: Step| {
            kernels.push(step.kernel);
            Pass {
                kernel: kernels.len() - 1,
                grid: step.grid,
                tables: step.tables.iter().map(&mut operand).collect(),
            }
        };
        let legs = legs.into_iter().map(|steps| steps.into_iter().map(&mut pass).collect());
        let legs: Vec<Vec<Pass>> = legs.collect();
        let completion = completion.map(&mut pass);
        let stages = |in_place| Stages::new(&legs, completion.as_ref(), recipe, spec, scratch(in_place), in_place);
        Self {
            out_of_place: stages(false),
            in_place: stages(true),
            kernels,
            tables,
        }
    }

    /// In place, only of a plan that does so.
    pub fn stages(&self, in_place: bool) -> &Stages {
        match in_place {
            true => &self.in_place,
            false => &self.out_of_place,
        }
    }
}

impl Stages {
    /// As many rows at a time as the scratch memory takes. The order of the launches keeps these rows from overwriting
    /// what the ones before still read.
    fn new(
        legs: &[Vec<Pass>],
        completion: Option<&Pass>,
        recipe: &Recipe,
        spec: &Spec,
        scratch: Scratch,
        in_place: bool,
    ) -> Self {
        let routes = recipe.routes(in_place);
        let last = legs.len() - 1;
        let mut list = Vec::new();
        let mut begin = 0;
        while begin < spec.batch {
            let rows = scratch.rows.min(spec.batch - begin);
            let part = |index: usize| (Operand::Scratch, index * scratch.part);
            for (index, (passes, route)) in legs.iter().zip(&routes).enumerate() {
                // Between two legs the data is in the first part.
                let place = |place: Place| match place {
                    Place::Data if index > 0 => part(0),
                    Place::Out if index < last => part(0),
                    Place::Data => (Operand::Data, begin * spec.input.layout.distance),
                    Place::Out => (Operand::Out, begin * spec.output.layout.distance),
                    Place::First => part(last),
                    Place::Second => part(last + 1),
                };
                for (pass, places) in passes.iter().zip(route.places.windows(2)) {
                    let (from, to) = (place(places[0]), place(places[1]));
                    list.push(pass.stage(from, to, rows));
                }
            }
            let out = (Operand::Out, begin * spec.output.layout.distance);
            list.extend(completion.map(|pass| pass.stage(out, out, rows)));
            begin += rows;
        }
        Self {
            list,
            scratch: scratch.len(),
        }
    }
}

impl Pass {
    /// A kernel takes the offsets of its places in their numbers.
    fn stage(&self, from: (Operand, usize), to: (Operand, usize), rows: usize) -> Stage {
        let mut operands = vec![from.0, to.0];
        operands.extend(&self.tables);
        operands.extend([Operand::Number(from.1 as u64), Operand::Number(to.1 as u64)]);
        if self.grid.counts_rows() {
            operands.push(Operand::Number(rows as u64));
        }
        Stage {
            kernel: self.kernel,
            range: self.grid.range(rows),
            operands,
        }
    }
}
