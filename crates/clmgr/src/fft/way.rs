//! The ways of a transform, and which one suits a length on a device.

use std::fmt;

use super::factor::split;
use crate::C32;
use crate::context::Context;
use crate::device::DeviceKind;

/// The longest row whose two private arrays a CPU's cache and a driver's stack hold.
const LONGEST_ROW: usize = 16384;
/// The longest transform of eight columns at once, for the same reason.
const LONGEST_COLUMNS: usize = 4096;

/// The way in which a plan transforms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// Passes in global memory.
    Passes,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows => f.write_str("rows"),
            Self::Columns => f.write_str("columns"),
            Self::Split { height, width } => write!(f, "split {height} x {width}"),
            Self::Local => f.write_str("local"),
            Self::Passes => f.write_str("passes"),
        }
    }
}
/// The way that suits a device best.
pub(super) fn choose(context: &Context, len: usize) -> Way {
    if context.device().kind() != DeviceKind::Cpu {
        return match suits(context, len, Way::Local) {
            Ok(()) => Way::Local,
            Err(_) => Way::Passes,
        };
    }
    if len > 64 && suits(context, len, Way::Rows).is_ok() {
        return Way::Rows;
    }
    if suits(context, len, Way::Columns).is_ok() {
        return Way::Columns;
    }
    match split(len, LONGEST_COLUMNS) {
        Some((height, width)) => Way::Split { height, width },
        None => Way::Passes,
    }
}

/// Whether a way takes a length on a device, or why not.
pub(super) fn suits(context: &Context, len: usize, way: Way) -> std::result::Result<(), String> {
    let most = |limit: usize, why: &str| {
        if len <= limit {
            Ok(())
        } else {
            Err(format!("{why} takes at most {limit}"))
        }
    };
    match way {
        Way::Rows if !len.is_multiple_of(8) || len < 64 => {
            Err("a row is a multiple of 8 and at least 64".to_owned())
        }
        Way::Rows => most(LONGEST_ROW, "a row"),
        Way::Columns if len < 2 => Err("a column has at least 2 elements".to_owned()),
        Way::Columns => most(LONGEST_COLUMNS, "a column"),
        Way::Local if len < 2 => Err("a work-group takes at least 2 elements".to_owned()),
        Way::Local => {
            let bytes = usize::try_from(context.device().local_bytes()).unwrap_or(usize::MAX);
            // Beyond this a work-item would hold more than its registers.
            let registers = LocalShape::items(context) * 32;
            most((bytes / size_of::<C32>()).min(registers), "local memory")
        }
        Way::Passes => Ok(()),
        Way::Split { height, width } => {
            let fits = height.checked_mul(width) == Some(len)
                && height.is_multiple_of(8)
                && (8..=LONGEST_COLUMNS).contains(&height)
                && (8..=LONGEST_COLUMNS).contains(&width);
            if fits {
                Ok(())
            } else {
                Err(format!(
                    "both factors must be 8 to {LONGEST_COLUMNS}, and the first a multiple of 8"
                ))
            }
        }
    }
}

/// The work-groups of the kernel in local memory.
pub(super) struct LocalShape {
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
