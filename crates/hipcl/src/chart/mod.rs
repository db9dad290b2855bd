//! Charts: what all pictures have in common, their files, and bars as a picture.
//!
//! | module | what it owns |
//! |---|---|
//! | `style` | typeface, colours, the ground, PNG files |
//! | `scale` | positions and numbers on an axis |
//! | `bars` | a chart of bars as data |
//! | `layout` | where each part of such a chart stands |
//! | `draw` | the parts as SVG or PNG |
//! | `file` | the file, its format by its extension |
//!
//! The ground is white and part of the picture, so a picture is readable on a dark page too.

mod bars;
mod draw;
mod file;
mod layout;
pub(crate) mod scale;
pub(crate) mod style;

pub use bars::{Axis, Bar, Bars, Colour, Group, Row};
pub use draw::render;
pub use file::{Format, PlotFile};
