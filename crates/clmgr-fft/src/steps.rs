//! The kernels of a way, their tables and their ranges.

use std::sync::Arc;

use clmgr::{Arg, C32, Context, Error, Kernel, NdRange, ProgramCache, Queue, Result};

use crate::Direction;
use crate::ends::{Load, Store, literal};
use crate::factor::{not_smooth, radices};
use crate::memory::{Form, Memory};
use crate::recipe::{Completion, Leg};
use crate::source::{Source, Template, WidePasses, global_body, local_body, pass_name, wide_body};
use crate::tables::{beside_factors, coarse_and_fine, first_roots, pass_factors, roots, row_factors};
use crate::tile::{Tile, Transforms};
use crate::tuning::{Tuning, registers, rows, steps};
use crate::way::{LocalShape, Way};

/// The longest row that is read in order before its first pass, by measurement.
const LONGEST_STAGED: usize = 2048;
/// About the bytes that a work-item on a CPU should have, so its start costs nothing.
const BYTES_OF_ITEM: usize = 64 << 10;

/// A kernel of a leg.
pub(crate) struct Step {
    pub kernel: Kernel,
    /// The tables that follow its data arguments.
    pub tables: Vec<Arc<Table>>,
    pub grid: Grid,
}

/// The work-items of a kernel.
#[derive(Clone, Copy)]
pub(crate) enum Grid {
    /// Work-groups of `items` work-items, each for `rows` rows. The kernel is told how many rows there are.
    Groups { rows: usize, items: usize },
    /// These for each row.
    Each(NdRange),
}

impl Grid {
    pub fn range(self, rows: usize) -> NdRange {
        match self {
            Self::Groups { rows: each, items } => NdRange::d1_local(rows.div_ceil(each) * items, items),
            Self::Each(mut range) => {
                range.global[1] = rows;
                range
            }
        }
    }

    pub fn counts_rows(self) -> bool {
        matches!(self, Self::Groups { .. })
    }
}

/// Factors in device memory.
pub(crate) enum Table {
    Floats(Memory<f32>),
    Complex(Memory<C32>),
}

impl Table {
    pub fn arg(&self, form: Form) -> Arg<'_> {
        match self {
            Self::Floats(memory) => memory.arg(form),
            Self::Complex(memory) => memory.arg(form),
        }
    }

    /// The factors' bytes.
    pub fn read(&self, queue: &Queue) -> Result<Vec<u8>> {
        match self {
            Self::Floats(memory) => memory.read(queue),
            Self::Complex(memory) => memory.read(queue),
        }
    }
}

/// Makes the steps of a leg.
pub(crate) struct Maker<'a> {
    pub context: &'a Context,
    pub programs: &'a ProgramCache,
    pub queue: &'a Queue,
    pub tuning: &'a Tuning,
    pub leg: &'a Leg,
}

impl Completion {
    /// Its kernel.
    pub fn make(&self, context: &Context, programs: &ProgramCache, queue: &Queue) -> Result<Step> {
        let source = Source::new(Template::Halves, self.half, Direction::Forward)
            .define("STRIDE", format_args!("{}ul", self.layout.stride))
            .define("DISTANCE", format_args!("{}ul", self.layout.distance))
            .define("SCALE", literal(self.scale));
        let roots = first_roots(self.half / 2 + 1, 2 * self.half, Direction::Forward);
        let roots = Memory::filled(context, queue, &roots)?;
        Ok(Step {
            kernel: programs.get(&source.finish(), "")?.kernel("fft_halves")?,
            tables: vec![Arc::new(Table::Complex(roots))],
            grid: Grid::Each(NdRange::d2(self.half / 2 + 1, 1)),
        })
    }
}

/// What a kernel of a leg has of the leg's ends.
#[derive(Clone, Copy)]
struct Ends {
    loads: bool,
    stores: bool,
}

const BOTH: Ends = Ends {
    loads: true,
    stores: true,
};

impl Ends {
    /// Of the kernel with this index.
    fn of(index: usize, kernels: usize) -> Self {
        Self {
            loads: index == 0,
            stores: index + 1 == kernels,
        }
    }
}

impl Maker<'_> {
    /// The kernels and tables of the leg's way, which suits its length.
    pub fn make(&self) -> Result<Vec<Step>> {
        match self.leg.way {
            Way::Rows => self.make_rows(),
            Way::Columns => self.make_columns(),
            Way::Split { height, width } => self.make_split(height, width),
            Way::Local => self.make_local(),
            Way::Registers => self.make_registers(),
            Way::Stages { height, width } => self.make_stages(height, width),
            // A recipe has no such leg: its way would be that of the convolution.
            Way::Passes | Way::Bluestein { .. } => self.make_passes(),
        }
    }

    /// Those of a length that the plan has accepted.
    fn radices(&self, len: usize, largest: usize) -> Result<Vec<usize>> {
        radices(len, largest).ok_or_else(|| self.refused(not_smooth(len)))
    }

    /// A kernel's source, which makes transforms of this length.
    fn source(&self, template: Template, len: usize, ends: Ends) -> Source {
        let leg = self.leg;
        let source = Source::new(template, len, leg.direction);
        let source = match ends.loads {
            true => leg.load.define(source),
            false => Load::plain(leg.len).define(source),
        };
        match ends.stores {
            true => leg.store.define(source, leg.len),
            false => Store::plain(leg.len).define(source, leg.len),
        }
    }

    fn kernel(&self, source: Source, name: &str) -> Result<Kernel> {
        self.programs.get(&source.finish(), "")?.kernel(name)
    }

    fn floats(&self, data: &[f32]) -> Result<Arc<Table>> {
        Ok(Arc::new(Table::Floats(Memory::filled(self.context, self.queue, data)?)))
    }

    fn complex(&self, data: &[C32]) -> Result<Arc<Table>> {
        Ok(Arc::new(Table::Complex(Memory::filled(
            self.context,
            self.queue,
            data,
        )?)))
    }

    /// The kernel's own tables and those of its ends, in the order of `ENDS_PARAMS`.
    fn tables(&self, mut own: Vec<Arc<Table>>, ends: Ends) -> Result<Vec<Arc<Table>>> {
        let Leg { load, store, .. } = self.leg;
        if ends.loads {
            if let Some(window) = &load.window {
                own.push(self.floats(window)?);
            }
            if let Some(roots) = load.roots() {
                own.push(self.complex(&roots)?);
            }
            if let Some(chirp) = load.chirp {
                own.push(self.complex(&chirp.table())?);
            }
        }
        if ends.stores
            && let Some(chirp) = store.chirp
        {
            own.push(self.complex(&chirp.table())?);
        }
        Ok(own)
    }

    fn make_rows(&self) -> Result<Vec<Step>> {
        let &Leg { len, direction, .. } = self.leg;
        let inner_len = len / 8;
        let radices = self.radices(inner_len, 8)?;
        let factors = pass_factors(&radices, direction, true);
        let (body, _) = wide_body(&WidePasses {
            radices: &radices,
            offsets: &factors.offsets,
            load: "LOAD_A",
            store: Some("STORE_OUT"),
        });
        let lines = (BYTES_OF_ITEM / (len * size_of::<C32>())).max(1);
        let mut source = self
            .source(Template::Wide, inner_len, BOTH)
            .define("FFT_ROWS", 1)
            .define("LINES", lines)
            .define("FFT_BODY", body);
        if len <= LONGEST_STAGED {
            source = source.define("FFT_STAGED", 1);
        }
        let own = vec![self.floats(&factors.data)?, self.complex(&row_factors(len, direction))?];
        Ok(vec![Step {
            kernel: self.kernel(source, "fft_rows")?,
            tables: self.tables(own, BOTH)?,
            grid: Grid::Groups { rows: lines, items: 1 },
        }])
    }

    fn make_columns(&self) -> Result<Vec<Step>> {
        let &Leg { len, direction, .. } = self.leg;
        let radices = self.radices(len, 8)?;
        let factors = pass_factors(&radices, direction, true);
        let (body, result) = wide_body(&WidePasses {
            radices: &radices,
            offsets: &factors.offsets,
            load: "LOAD_A",
            store: None,
        });
        let blocks = (BYTES_OF_ITEM / (8 * len * size_of::<C32>())).max(1);
        let source = self
            .source(Template::Wide, len, BOTH)
            .define("FFT_COLUMNS", 1)
            .define("BLOCKS", blocks)
            .define("RESULT", result)
            .define("FFT_BODY", body);
        Ok(vec![Step {
            kernel: self.kernel(source, "fft_columns")?,
            tables: self.tables(vec![self.floats(&factors.data)?], BOTH)?,
            grid: Grid::Groups {
                rows: 8 * blocks,
                items: 1,
            },
        }])
    }

    fn make_split(&self, height: usize, width: usize) -> Result<Vec<Step>> {
        let &Leg { len, direction, .. } = self.leg;
        let (coarse, fine) = coarse_and_fine(len, direction);
        let coarse = self.complex(&coarse)?;
        let fine = self.complex(&fine)?;
        let mut steps = Vec::new();
        for (index, (length, columns)) in [(height, width), (width, height)].into_iter().enumerate() {
            let (ends, turns) = (Ends::of(index, 2), index == 0);
            let radices = self.radices(length, 8)?;
            let factors = pass_factors(&radices, direction, true);
            let (body, result) = wide_body(&WidePasses {
                radices: &radices,
                offsets: &factors.offsets,
                load: "LOAD_IN",
                store: (!turns).then_some("STORE_OUT"),
            });
            let mut source = self
                .source(Template::Wide, length, ends)
                .define("FFT_SPLIT", 1)
                .define("WIDTH", columns)
                .define("RESULT", result)
                .define("FFT_BODY", body);
            if turns {
                source = source.define("FFT_TURN", 1);
            }
            let own = vec![
                self.floats(&factors.data)?,
                coarse.clone(),
                fine.clone(),
                self.complex(&beside_factors(length, len, direction))?,
            ];
            steps.push(Step {
                kernel: self.kernel(source, "fft_split")?,
                tables: self.tables(own, ends)?,
                grid: Grid::Each(NdRange::d2(columns.div_ceil(8), 1).with_local([1, 1, 1])),
            });
        }
        Ok(steps)
    }

    fn make_local(&self) -> Result<Vec<Step>> {
        let &Leg { len, direction, .. } = self.leg;
        let radices = self.radices(len, 8)?;
        let factors = pass_factors(&radices, direction, false);
        let LocalShape { items, group } = LocalShape::of(self.context, len);
        let source = self
            .source(Template::Narrow, len, BOTH)
            .define("FFT_LOCAL", 1)
            .define("ITEMS", items)
            .define("GROUP", group)
            .define("FFT_BODY", local_body(&radices, &factors.offsets, group, items));
        Ok(vec![Step {
            kernel: self.kernel(source, "fft_local")?,
            tables: self.tables(vec![self.floats(&factors.data)?], BOTH)?,
            grid: Grid::Groups { rows: group, items },
        }])
    }

    fn make_registers(&self) -> Result<Vec<Step>> {
        let &Leg { len, direction, .. } = self.leg;
        let tile = rows(self.context, len, self.tuning).map_err(|reason| self.refused(reason))?;
        Ok(vec![Step {
            kernel: self.tile_kernel(&tile, BOTH)?,
            tables: self.tables(vec![self.complex(&roots(tile.len, direction))?], BOTH)?,
            grid: Grid::Groups {
                rows: tile.columns,
                items: tile.group(),
            },
        }])
    }

    fn make_stages(&self, height: usize, width: usize) -> Result<Vec<Step>> {
        let &Leg { len, direction, .. } = self.leg;
        let tiles = steps(self.context, height, width, self.tuning).map_err(|reason| self.refused(reason))?;
        let (coarse, fine) = coarse_and_fine(len, direction);
        let coarse = self.complex(&coarse)?;
        let fine = self.complex(&fine)?;
        let mut steps = Vec::new();
        for (index, (tile, columns)) in tiles.iter().zip([width, height]).enumerate() {
            let ends = Ends::of(index, 2);
            let own = vec![self.complex(&roots(tile.len, direction))?, coarse.clone(), fine.clone()];
            let groups = columns.div_ceil(tile.columns);
            steps.push(Step {
                kernel: self.tile_kernel(tile, ends)?,
                tables: self.tables(own, ends)?,
                grid: Grid::Each(NdRange::d2(groups * tile.group(), 1).with_local([tile.group(), 1, 1])),
            });
        }
        Ok(steps)
    }

    fn tile_kernel(&self, tile: &Tile, ends: Ends) -> Result<Kernel> {
        let mut source = self
            .source(Template::Tile, tile.len, ends)
            .define("COLUMNS", tile.columns)
            .define("ITEMS", tile.items)
            .define("PITCH", tile.pitch())
            .define("FFT_BODY", tile.body());
        if tile.whole {
            source = source.define("FFT_WHOLE", 1);
        }
        if tile.swapped() {
            source = source.define("FFT_SWAPPED", 1);
        }
        source = match tile.transforms {
            Transforms::Rows => source,
            Transforms::First { width, block } => source
                .define("FFT_FIRST", 1)
                .define("WIDTH", width)
                .define("BLOCK", block)
                .define("MIX", tile.mix()),
            Transforms::Second { width } => source.define("FFT_SECOND", 1).define("WIDTH", width),
        };
        let mut options = self.tuning.options.clone();
        if let Some(registers) = registers(self.context, tile) {
            // NVIDIA's compiler ignores the limit where it knows the size of the work-groups.
            source = source.define("FFT_ANY_GROUP", 1);
            options = format!("{options} -cl-nv-maxrregcount={registers}");
        }
        self.programs
            .get(&source.finish(), options.trim_start())?
            .kernel("fft_tile")
    }

    fn make_passes(&self) -> Result<Vec<Step>> {
        let &Leg { len, direction, .. } = self.leg;
        let radices = self.radices(len, 16)?;
        let (coarse, fine) = coarse_and_fine(len, direction);
        let own = vec![self.complex(&coarse)?, self.complex(&fine)?];
        let ends = |index| Ends::of(index, radices.len());
        let source = |index| self.source(Template::Narrow, len, ends(index)).define("FFT_PASSES", 1);
        let indices = 0..radices.len();
        let mut steps = Vec::new();
        for index in indices.clone() {
            // A program has all kernels that read and write in the same way.
            let alike = indices.clone().filter(|&other| source(other) == source(index));
            let body: String = alike.map(|index| global_body(&radices, index)).collect();
            let kernel = self.kernel(source(index).define("FFT_BODY", body), &pass_name(index))?;
            steps.push(Step {
                kernel,
                tables: self.tables(own.clone(), ends(index))?,
                grid: Grid::Each(NdRange::d2(len / radices[index], 1)),
            });
        }
        Ok(steps)
    }

    fn refused(&self, reason: String) -> Error {
        Error::NotSupported {
            what: format!("an FFT of length {}", self.leg.len),
            device: self.context.device().name().to_owned(),
            reason,
        }
    }
}
