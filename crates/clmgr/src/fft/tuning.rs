//! What is left to measurement in the kernels that hold their data in registers.

use super::tile::{Tile, Transforms};
use crate::context::Context;

/// How the ways [`Registers`](super::Way::Registers) and [`Stages`](super::Way::Stages) use a GPU.
///
/// What is `None` follows the rule that was found by measurement. The other ways ignore all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Tuning {
    /// The complex numbers that a work-item holds: 2 to 32.
    pub values: Option<usize>,
    /// The transforms of a work-group, side by side: a power of two, at most 32.
    pub columns: Option<usize>,
    /// Whether work-items exchange complex numbers, or the real and then the imaginary parts, which
    /// takes half the local memory and twice the barriers.
    pub whole: Option<bool>,
    /// The bytes that the first of two steps hands to the second at a time, so that a cache may hold
    /// them.
    pub chunk_bytes: Option<usize>,
    /// Further options for the compiler.
    pub options: String,
}

/// The work-items that a work-group of rows has at least, if one row has fewer.
const ITEMS_OF_ROWS: usize = 256;

/// The tile of the one kernel of [`Registers`](super::Way::Registers), or why there is none.
pub(super) fn rows(context: &Context, len: usize, tuning: &Tuning) -> Result<Tile, String> {
    let values = tuning.values.unwrap_or(16);
    let tile = |columns, whole| tile(context, len, values, columns, whole, Transforms::Rows);
    let one = tile(1, tuning.whole.unwrap_or(false))?;
    let columns = match tuning.columns {
        Some(columns) => columns,
        None => 1 << (ITEMS_OF_ROWS / one.items).clamp(1, 32).ilog2(),
    };
    match tuning.whole {
        Some(whole) => tile(columns, whole),
        None => tile(columns, true).or_else(|_| tile(columns, false)),
    }
}

/// The tiles of the two kernels of [`Stages`](super::Way::Stages), or why there are none.
pub(super) fn steps(
    context: &Context,
    height: usize,
    width: usize,
    tuning: &Tuning,
) -> Result<[Tile; 2], String> {
    Ok([
        step(context, height, Transforms::Turned(width), tuning)?,
        step(context, width, Transforms::Columns(height), tuning)?,
    ])
}

fn step(
    context: &Context,
    len: usize,
    transforms: Transforms,
    tuning: &Tuning,
) -> Result<Tile, String> {
    let values = tuning.values.unwrap_or(16);
    let tile = |columns, whole| tile(context, len, values, columns, whole, transforms);
    match (tuning.columns, tuning.whole) {
        (Some(columns), whole) => tile(columns, whole.unwrap_or(false)),
        (None, whole) => {
            let whole = whole.unwrap_or(false);
            tile(8, whole).or_else(|_| tile(4, whole))
        }
    }
}

/// A tile, if the device takes it.
fn tile(
    context: &Context,
    len: usize,
    values: usize,
    columns: usize,
    whole: bool,
    transforms: Transforms,
) -> Result<Tile, String> {
    if !(2..=32).contains(&values) {
        return Err("a work-item holds 2 to 32 numbers".to_owned());
    }
    if !columns.is_power_of_two() || columns > 32 {
        return Err("a work-group has 1, 2, 4, 8, 16 or 32 transforms side by side".to_owned());
    }
    if len < 2 {
        return Err("a work-group takes at least 2 elements".to_owned());
    }
    let tile =
        Tile::new(len, values, columns, whole, transforms).map_err(|error| error.to_string())?;
    let device = context.device();
    let most = device.max_work_group();
    if tile.group() > most {
        return Err(format!(
            "it takes work-groups of {} work-items, and the device takes {most}",
            tile.group()
        ));
    }
    let bytes = device.local_bytes();
    if tile.local_bytes() as u64 > bytes {
        return Err(format!(
            "it takes {} bytes of local memory, and the device has {bytes}",
            tile.local_bytes()
        ));
    }
    Ok(tile)
}
