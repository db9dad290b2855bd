//! The ways of a transform, and which one suits a length on a device.

use std::fmt;

use clmgr::{C32, Context, DeviceKind};

use crate::chirp::convolution;
use crate::factor::{not_smooth, radices, split};
use crate::tuning::{Tuning, rows, steps};

/// The longest row whose two private arrays a CPU's cache and a driver's stack hold.
const LONGEST_ROW: usize = 16384;
/// The longest transform of eight columns at once, for the same reason.
const LONGEST_COLUMNS: usize = 4096;
/// The rows of other lengths than powers of two that registers take from local memory.
const MIXED_REGISTERS: std::ops::RangeInclusive<usize> = 375..=4096;
/// The shortest such row that is a power of two.
const SHORTEST_REGISTERS: usize = 128;
/// The longest column of which a work-group holds several side by side.
const LONGEST_WIDE: usize = 2048;

/// The way in which a plan transforms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Way {
    /// One row at a time by a CPU's work-item.
    Rows,
    /// Eight rows at a time by a CPU's work-item.
    Columns,
    /// Rows as matrices of this many rows and columns.
    Split {
        /// The length of the first step's transforms.
        height: usize,
        /// The length of the second step's transforms.
        width: usize,
    },
    /// Work-groups in local memory.
    Local,
    /// Work-groups that hold rows in registers.
    Registers,
    /// Rows as matrices of this many rows and columns, whose columns work-groups hold in registers.
    Stages {
        /// The length of the first step's transforms.
        height: usize,
        /// The length of the second step's transforms.
        width: usize,
    },
    /// Passes in global memory.
    Passes,
    /// As a convolution, for lengths with other factors than 2, 3, 5 and 7: two transforms of a longer length, in the
    /// way that suits it.
    Bluestein {
        /// The length of the convolution: at least twice that of the transform, less one.
        convolution: usize,
    },
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows => f.write_str("rows"),
            Self::Columns => f.write_str("columns"),
            Self::Split { height, width } => write!(f, "split {height} x {width}"),
            Self::Local => f.write_str("local"),
            Self::Registers => f.write_str("registers"),
            Self::Stages { height, width } => write!(f, "stages {height} x {width}"),
            Self::Passes => f.write_str("passes"),
            Self::Bluestein { convolution } => write!(f, "bluestein over {convolution}"),
        }
    }
}

impl Way {
    /// The kernels of a transform of this length, one behind the other.
    pub(crate) fn kernels(self, len: usize) -> usize {
        match self {
            Self::Rows | Self::Columns | Self::Local | Self::Registers => 1,
            Self::Split { .. } | Self::Stages { .. } => 2,
            Self::Passes | Self::Bluestein { .. } => radices(len, 16).map_or(1, |radices| radices.len()),
        }
    }
}

/// The way that suits a device best. None if the length is too large for any.
pub(crate) fn choose(context: &Context, len: usize) -> Option<Way> {
    match radices(len, 8) {
        Some(_) => Some(choose_smooth(context, len)),
        None => Some(Way::Bluestein {
            convolution: convolution(len)?,
        }),
    }
}

/// The same for a length without other factors than 2, 3, 5 and 7.
pub(crate) fn choose_smooth(context: &Context, len: usize) -> Way {
    let tuning = Tuning::default();
    let suits = |way| suits(context, len, way, &tuning).is_ok();
    if context.device().kind() != DeviceKind::Cpu {
        let registers = if len.is_power_of_two() {
            len >= SHORTEST_REGISTERS
        } else {
            MIXED_REGISTERS.contains(&len)
        };
        if registers && suits(Way::Registers) {
            return Way::Registers;
        }
        if suits(Way::Local) {
            return Way::Local;
        }
        return stages(context, len).unwrap_or(Way::Passes);
    }
    if len > 64 && suits(Way::Rows) {
        return Way::Rows;
    }
    if suits(Way::Columns) {
        return Way::Columns;
    }
    match split(len, LONGEST_COLUMNS) {
        Some((height, width)) => Way::Split { height, width },
        None => Way::Passes,
    }
}

/// Whether a way takes a length on a device, or why not.
pub(crate) fn suits(context: &Context, len: usize, way: Way, tuning: &Tuning) -> std::result::Result<(), String> {
    let most = |limit: usize, why: &str| {
        if len <= limit {
            Ok(())
        } else {
            Err(format!("{why} holds at most {limit} elements"))
        }
    };
    if let Way::Bluestein { convolution } = way {
        return if radices(convolution, 8).is_none() {
            Err(not_smooth(convolution))
        } else if convolution.saturating_add(1) / 2 < len || u32::try_from(convolution).is_err() {
            Err(format!(
                "the convolution's length must be from {} to {}",
                len.saturating_mul(2) - 1,
                u32::MAX
            ))
        } else {
            Ok(())
        };
    }
    if radices(len, 8).is_none() {
        return Err(not_smooth(len));
    }
    match way {
        Way::Rows if !len.is_multiple_of(8) || len < 64 => {
            Err("the length of a row must be a multiple of 8, and at least 64".to_owned())
        }
        Way::Rows => most(LONGEST_ROW, "a row"),
        Way::Columns if len < 2 => Err("a column must have at least 2 elements".to_owned()),
        Way::Columns => most(LONGEST_COLUMNS, "a column"),
        Way::Local if len < 2 => Err("the length must be at least 2".to_owned()),
        Way::Local => {
            let bytes = usize::try_from(context.device().local_bytes()).unwrap_or(usize::MAX);
            // Beyond this a work-item would hold more than its registers.
            let registers = LocalShape::items(context) * 32;
            most((bytes / size_of::<C32>()).min(registers), "local memory")
        }
        Way::Registers => rows(context, len, tuning).map(drop),
        Way::Stages { height, width } if height.checked_mul(width) != Some(len) => {
            Err("the product of the two factors is not the length".to_owned())
        }
        Way::Stages { height, width } => steps(context, height, width, tuning).map(drop),
        Way::Passes | Way::Bluestein { .. } => Ok(()),
        Way::Split { height, width } => {
            let fits = height.checked_mul(width) == Some(len)
                && height.is_multiple_of(8)
                && (8..=LONGEST_COLUMNS).contains(&height)
                && (8..=LONGEST_COLUMNS).contains(&width);
            if fits {
                Ok(())
            } else {
                Err(format!(
                    "both factors must be between 8 and {LONGEST_COLUMNS}, and the first must be a multiple of 8"
                ))
            }
        }
    }
}

/// Two steps of lengths as close to each other as possible, if work-groups can hold them.
fn stages(context: &Context, len: usize) -> Option<Way> {
    (2..=LONGEST_COLUMNS)
        .filter(|height| len.is_multiple_of(*height))
        .map(|height| (height, len / height))
        .filter(|&(height, width)| steps(context, height, width, &Tuning::default()).is_ok())
        // Of two columns that are too long for a wide tile the second step suffers more.
        .min_by_key(|&(height, width)| (height.abs_diff(width), width > LONGEST_WIDE))
        .map(|(height, width)| Way::Stages { height, width })
}

/// The work-groups of the kernel in local memory.
pub(crate) struct LocalShape {
    pub items: usize,
    pub group: usize,
}

impl LocalShape {
    fn items(context: &Context) -> usize {
        context.device().max_work_group().clamp(1, 256)
    }

    pub fn of(context: &Context, len: usize) -> Self {
        let most = Self::items(context);
        let bytes = usize::try_from(context.device().local_bytes()).unwrap_or(usize::MAX);
        let fit = bytes / (len * size_of::<C32>());
        // Four elements for each work-item keep all busy without much local memory.
        let group = (4 * most / len).clamp(1, fit.max(1));
        let items = (len * group).div_ceil(8).next_multiple_of(64).min(most);
        Self { items, group }
    }
}
