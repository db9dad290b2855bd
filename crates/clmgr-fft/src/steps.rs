//! The kernels of a way, their tables and their ranges.

use std::sync::Arc;

use clmgr::{Arg, C32, Context, Error, Kernel, NdRange, ProgramCache, Queue, Result};

use crate::Direction;
use crate::factor::radices;
use crate::memory::{Form, Memory};
use crate::source::{Source, Template, WidePasses, global_body, local_body, pass_name, wide_body};
use crate::tables::{beside_factors, coarse_and_fine, pass_factors, roots, row_factors};
use crate::tile::{Tile, Transforms};
use crate::tuning::{Tuning, registers, rows, steps};
use crate::way::{LocalShape, Way};

/// The longest row that is read in order before its first pass, by measurement.
const LONGEST_STAGED: usize = 2048;
/// About the bytes that a work-item on a CPU should have, so its start costs nothing.
const BYTES_OF_ITEM: usize = 64 << 10;

/// The kernels and tables of one direction.
pub(crate) struct Steps {
    pub kernels: Vec<Kernel>,
    /// For each kernel, the tables that follow its data arguments.
    pub tables: Vec<Vec<Arc<Table>>>,
    pub ranges: Vec<NdRange>,
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

/// Makes the steps of a plan.
pub(crate) struct Maker<'a> {
    pub context: &'a Context,
    pub programs: &'a ProgramCache,
    pub len: usize,
    pub batch: usize,
    pub tuning: &'a Tuning,
}

impl Maker<'_> {
    /// The kernels and tables for `way`, which suits the length.
    pub fn make(&self, way: Way, direction: Direction) -> Result<Steps> {
        let queue = self.context.queue()?;
        let steps = match way {
            Way::Rows => self.make_rows(direction, &queue)?,
            Way::Columns => self.make_columns(direction, &queue)?,
            Way::Split { height, width } => self.make_split(direction, &queue, height, width)?,
            Way::Local => self.make_local(direction, &queue)?,
            Way::Registers => self.make_registers(direction, &queue)?,
            Way::Stages { height, width } => self.make_stages(direction, &queue, height, width)?,
            Way::Passes => self.make_passes(direction, &queue)?,
        };
        Ok(steps)
    }

    /// Those of a length that the plan has accepted.
    fn radices(&self, len: usize, largest: usize) -> Result<Vec<usize>> {
        radices(len, largest).map_err(|error| self.refused(error.to_string()))
    }

    fn kernel(&self, source: Source, name: &str) -> Result<Kernel> {
        self.programs.get(&source.finish(), "")?.kernel(name)
    }

    fn floats(&self, queue: &Queue, data: &[f32]) -> Result<Arc<Table>> {
        Ok(Arc::new(Table::Floats(Memory::filled(self.context, queue, data)?)))
    }

    fn complex(&self, queue: &Queue, data: &[C32]) -> Result<Arc<Table>> {
        Ok(Arc::new(Table::Complex(Memory::filled(self.context, queue, data)?)))
    }

    fn make_rows(&self, direction: Direction, queue: &Queue) -> Result<Steps> {
        let inner_len = self.len / 8;
        let radices = self.radices(inner_len, 8)?;
        let factors = pass_factors(&radices, direction, true);
        let (body, _) = wide_body(&WidePasses {
            radices: &radices,
            offsets: &factors.offsets,
            load: "LOAD_A",
            store: Some("STORE_OUT"),
        });
        let lines = (BYTES_OF_ITEM / (self.len * size_of::<C32>())).max(1);
        let mut source = Source::new(Template::Wide, inner_len, direction)
            .define("FFT_ROWS", 1)
            .define("LINES", lines)
            .define("FFT_BODY", body);
        if self.len <= LONGEST_STAGED {
            source = source.define("FFT_STAGED", 1);
        }
        Ok(Steps {
            kernels: vec![self.kernel(source, "fft_rows")?],
            tables: vec![vec![
                self.floats(queue, &factors.data)?,
                self.complex(queue, &row_factors(self.len, direction))?,
            ]],
            ranges: vec![NdRange::d1_local(self.batch.div_ceil(lines), 1)],
        })
    }

    fn make_columns(&self, direction: Direction, queue: &Queue) -> Result<Steps> {
        let radices = self.radices(self.len, 8)?;
        let factors = pass_factors(&radices, direction, true);
        let (body, result) = wide_body(&WidePasses {
            radices: &radices,
            offsets: &factors.offsets,
            load: "LOAD_A",
            store: None,
        });
        let blocks = (BYTES_OF_ITEM / (8 * self.len * size_of::<C32>())).max(1);
        let source = Source::new(Template::Wide, self.len, direction)
            .define("FFT_COLUMNS", 1)
            .define("BLOCKS", blocks)
            .define("RESULT", result)
            .define("FFT_BODY", body);
        Ok(Steps {
            kernels: vec![self.kernel(source, "fft_columns")?],
            tables: vec![vec![self.floats(queue, &factors.data)?]],
            ranges: vec![NdRange::d1_local(self.batch.div_ceil(8 * blocks), 1)],
        })
    }

    fn make_split(&self, direction: Direction, queue: &Queue, height: usize, width: usize) -> Result<Steps> {
        let (coarse, fine) = coarse_and_fine(self.len, direction);
        let coarse = self.complex(queue, &coarse)?;
        let fine = self.complex(queue, &fine)?;
        let mut kernels = Vec::new();
        let mut tables = Vec::new();
        let mut ranges = Vec::new();
        for (length, columns, turns) in [(height, width, true), (width, height, false)] {
            let radices = self.radices(length, 8)?;
            let factors = pass_factors(&radices, direction, true);
            let (body, result) = wide_body(&WidePasses {
                radices: &radices,
                offsets: &factors.offsets,
                load: "LOAD_IN",
                store: (!turns).then_some("STORE_OUT"),
            });
            let mut source = Source::new(Template::Wide, length, direction)
                .define("FFT_SPLIT", 1)
                .define("WIDTH", columns)
                .define("RESULT", result)
                .define("FFT_BODY", body);
            if turns {
                source = source.define("FFT_TURN", 1);
            }
            kernels.push(self.kernel(source, "fft_split")?);
            tables.push(vec![
                self.floats(queue, &factors.data)?,
                coarse.clone(),
                fine.clone(),
                self.complex(queue, &beside_factors(length, self.len, direction))?,
            ]);
            ranges.push(NdRange::d2(columns.div_ceil(8), 1).with_local([1, 1, 1]));
        }
        Ok(Steps {
            kernels,
            tables,
            ranges,
        })
    }

    fn make_local(&self, direction: Direction, queue: &Queue) -> Result<Steps> {
        let radices = self.radices(self.len, 8)?;
        let factors = pass_factors(&radices, direction, false);
        let LocalShape { items, group } = LocalShape::of(self.context, self.len);
        let source = Source::new(Template::Narrow, self.len, direction)
            .define("FFT_LOCAL", 1)
            .define("ITEMS", items)
            .define("GROUP", group)
            .define("FFT_BODY", local_body(&radices, &factors.offsets, group, items));
        Ok(Steps {
            kernels: vec![self.kernel(source, "fft_local")?],
            tables: vec![vec![self.floats(queue, &factors.data)?]],
            ranges: vec![NdRange::d1_local(self.batch.div_ceil(group) * items, items)],
        })
    }

    fn make_registers(&self, direction: Direction, queue: &Queue) -> Result<Steps> {
        let tile = rows(self.context, self.len, self.tuning).map_err(|reason| self.refused(reason))?;
        let groups = self.batch.div_ceil(tile.columns);
        Ok(Steps {
            kernels: vec![self.tile_kernel(&tile, direction)?],
            tables: vec![vec![self.complex(queue, &roots(tile.len, direction))?]],
            ranges: vec![NdRange::d1_local(groups * tile.group(), tile.group())],
        })
    }

    fn make_stages(&self, direction: Direction, queue: &Queue, height: usize, width: usize) -> Result<Steps> {
        let tiles = steps(self.context, height, width, self.tuning).map_err(|reason| self.refused(reason))?;
        let (coarse, fine) = coarse_and_fine(self.len, direction);
        let coarse = self.complex(queue, &coarse)?;
        let fine = self.complex(queue, &fine)?;
        let mut steps = Steps {
            kernels: Vec::new(),
            tables: Vec::new(),
            ranges: Vec::new(),
        };
        for (tile, columns) in tiles.iter().zip([width, height]) {
            let roots = self.complex(queue, &roots(tile.len, direction))?;
            let groups = columns.div_ceil(tile.columns);
            steps.kernels.push(self.tile_kernel(tile, direction)?);
            steps.tables.push(vec![roots, coarse.clone(), fine.clone()]);
            steps
                .ranges
                .push(NdRange::d2(groups * tile.group(), 1).with_local([tile.group(), 1, 1]));
        }
        Ok(steps)
    }

    fn tile_kernel(&self, tile: &Tile, direction: Direction) -> Result<Kernel> {
        let mut source = Source::new(Template::Tile, tile.len, direction)
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

    fn refused(&self, reason: String) -> Error {
        Error::NotSupported {
            what: format!("an FFT of length {}", self.len),
            device: self.context.device().name().to_owned(),
            reason,
        }
    }

    fn make_passes(&self, direction: Direction, queue: &Queue) -> Result<Steps> {
        let radices = self.radices(self.len, 16)?;
        let (coarse, fine) = coarse_and_fine(self.len, direction);
        let tables = vec![self.complex(queue, &coarse)?, self.complex(queue, &fine)?];
        let source = Source::new(Template::Narrow, self.len, direction)
            .define("FFT_PASSES", 1)
            .define("FFT_BODY", global_body(&radices));
        let program = self.programs.get(&source.finish(), "")?;
        Ok(Steps {
            kernels: (0..radices.len())
                .map(|index| program.kernel(&pass_name(index)))
                .collect::<Result<_>>()?,
            tables: vec![tables; radices.len()],
            ranges: radices.iter().map(|radix| NdRange::d2(self.len / radix, 1)).collect(),
        })
    }
}
