//! The shapes of the tiles that work-groups hold in registers: a rule, found by measurement, and what
//! may be set in its place.

use clmgr::Context;

use crate::factor::{not_smooth, radices};
use crate::tile::{Shape, Tile, Transforms};

/// How the ways [`Registers`](crate::Way::Registers) and [`Stages`](crate::Way::Stages) use a GPU.
///
/// A field that is `None` follows the rule that was found by measurement. The other ways ignore it all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Tuning {
    /// The complex numbers that a work-item holds: 2 to 32.
    pub values: Option<usize>,
    /// The transforms of a work-group, side by side: 1 to 32. The second of two steps takes the next
    /// divisor of the first one's length below.
    pub columns: Option<usize>,
    /// Whether work-items exchange complex numbers, or the real and then the imaginary parts, which
    /// takes half the local memory and twice the barriers.
    pub whole: Option<bool>,
    /// Further options for the compiler.
    pub(crate) options: String,
}

impl Tuning {
    /// Further options for the compiler, in place of earlier ones.
    ///
    /// They may replace the functions by which a kernel indexes its data, and bring any code. Hence this is `unsafe`:
    ///
    /// ```compile_fail,E0133
    /// let tuning = clmgr_fft::Tuning::default().with_options("-Dget_group_id(x)=1000");
    /// ```
    ///
    /// and there is no other way to them:
    ///
    /// ```compile_fail,E0616
    /// let mut tuning = clmgr_fft::Tuning::default();
    /// tuning.options = String::from("-Dget_group_id(x)=1000");
    /// ```
    ///
    /// # Safety
    ///
    /// With these options the kernels are free of undefined behaviour and access the same memory, in
    /// the same way, as without.
    ///
    /// ```
    /// // SAFETY: the option lets the compiler round otherwise, and no index is rounded.
    /// let tuning = unsafe { clmgr_fft::Tuning::default().with_options("-cl-mad-enable") };
    /// ```
    #[must_use]
    pub unsafe fn with_options(self, options: impl Into<String>) -> Self {
        Self {
            options: options.into(),
            ..self
        }
    }
}

/// The work-items that a work-group of rows has at least, if one row has fewer.
const ITEMS_OF_ROWS: usize = 256;
/// The numbers of a tile of columns.
const NUMBERS_OF_COLUMNS: usize = 8192;
/// The registers of a multiprocessor.
const REGISTERS_OF_NVIDIA: usize = 65536;
/// The most transforms side by side.
const MOST_COLUMNS: usize = 32;

/// The tile of the one kernel of [`Registers`](crate::Way::Registers), or why there is none.
pub(crate) fn rows(context: &Context, len: usize, tuning: &Tuning) -> Result<Tile, String> {
    // The butterflies of other lengths do not fill 16 numbers evenly.
    let values = if len.is_power_of_two() { 16 } else { 10 };
    let tile = |columns, whole| {
        let shape = Shape {
            values: tuning.values.unwrap_or(values),
            columns,
            whole,
        };
        tile(context, len, shape, Transforms::Rows)
    };
    let one = tile(1, tuning.whole.unwrap_or(false))?;
    let columns = match tuning.columns {
        Some(columns) => columns,
        None => 1 << (ITEMS_OF_ROWS / one.items).clamp(1, MOST_COLUMNS).ilog2(),
    };
    match tuning.whole {
        Some(whole) => tile(columns, whole),
        None => tile(columns, true).or_else(|_| tile(columns, false)),
    }
}

/// The tiles of the two kernels of [`Stages`](crate::Way::Stages), or why there are none.
pub(crate) fn steps(context: &Context, height: usize, width: usize, tuning: &Tuning) -> Result<[Tile; 2], String> {
    let second = |columns: usize| {
        // Blocks that fill the matrix.
        let columns = (1..=columns.min(height))
            .rev()
            .find(|columns| height.is_multiple_of(*columns));
        (columns.unwrap_or(1), Transforms::Second { width: height })
    };
    let second = step(context, width, tuning, second)?;
    let block = second.columns;
    let first = |columns| (columns, Transforms::First { width, block });
    Ok([step(context, height, tuning, first)?, second])
}

/// The widest tile that the device takes.
fn step(
    context: &Context,
    len: usize,
    tuning: &Tuning,
    transforms: impl Fn(usize) -> (usize, Transforms),
) -> Result<Tile, String> {
    let passes = |values| radices(len, values).map_or(usize::MAX, |radices| radices.len());
    // More numbers for a work-item are worth their registers only if they save a pass.
    let values = match tuning.values {
        Some(values) => [values, values],
        None if len.is_power_of_two() && passes(32) < passes(16) => [32, 16],
        None => [16, 32],
    };
    let most = (NUMBERS_OF_COLUMNS / len.max(1)).clamp(1, MOST_COLUMNS).ilog2();
    let columns: Vec<usize> = match tuning.columns {
        Some(columns) => vec![columns],
        None => (0..=most).rev().map(|exponent| 1 << exponent).collect(),
    };
    let mut refused = String::new();
    for wish in columns {
        for values in values {
            let (columns, transforms) = transforms(wish);
            let shape = Shape {
                values,
                columns,
                whole: tuning.whole.unwrap_or(false),
            };
            match tile(context, len, shape, transforms) {
                Ok(tile) => return Ok(tile),
                Err(reason) => refused = reason,
            }
        }
    }
    Err(refused)
}

/// The registers of a work-item to which NVIDIA's compiler is held, so a multiprocessor has two work-groups: one loads
/// while the other one computes. Rows get by without.
pub(crate) fn registers(context: &Context, tile: &Tile) -> Option<usize> {
    if tile.transforms == Transforms::Rows || !context.device().has_extension("cl_nv_compiler_options") {
        return None;
    }
    let registers = REGISTERS_OF_NVIDIA / 2 / tile.group();
    (64..=128).contains(&registers).then_some(registers)
}

/// A tile, if the device takes it.
fn tile(context: &Context, len: usize, shape: Shape, transforms: Transforms) -> Result<Tile, String> {
    if !(2..=32).contains(&shape.values) {
        return Err("a work-item must hold 2 to 32 numbers".to_owned());
    }
    if !(1..=MOST_COLUMNS).contains(&shape.columns) {
        return Err(format!("a work-group must hold 1 to {MOST_COLUMNS} transforms"));
    }
    if len < 2 {
        return Err("the length must be at least 2".to_owned());
    }
    let tile = Tile::new(len, shape, transforms).ok_or_else(|| not_smooth(len))?;
    let device = context.device();
    let most = device.max_work_group();
    if tile.group() > most {
        return Err(format!(
            "it needs work-groups of {} work-items; the device allows {most}",
            tile.group()
        ));
    }
    let bytes = device.local_bytes();
    if tile.local_bytes() as u64 > bytes {
        return Err(format!(
            "it needs {} bytes of local memory; the device has {bytes}",
            tile.local_bytes()
        ));
    }
    Ok(tile)
}
