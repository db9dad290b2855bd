//! A chart of bars as data.

use plotters::style::RGBColor;

use super::style::{FOURTH_COLOUR, HIP_COLOUR, OPENCL_COLOUR, THIRD_COLOUR};

/// What a bar is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// A figure of OpenCL.
    OpenCl,
    /// A figure of HIP.
    Hip,
    /// A rate: longer is better.
    Rate,
    /// A time or an amount: shorter is better.
    Cost,
}

impl Colour {
    /// What the legend says.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OpenCl => "OpenCL",
            Self::Hip => "HIP",
            Self::Rate => "a rate: longer is better",
            Self::Cost => "a time or an amount: shorter is better",
        }
    }

    pub(super) fn ink(self) -> RGBColor {
        match self {
            Self::OpenCl => OPENCL_COLOUR,
            Self::Hip => HIP_COLOUR,
            Self::Rate => THIRD_COLOUR,
            Self::Cost => FOURTH_COLOUR,
        }
    }
}

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Its colour.
    pub colour: Colour,
    /// Its length on the axis; without one, or with one that is not a positive number, there is only the label.
    pub value: Option<f64>,
    /// What stands beside it.
    pub label: String,
}

impl Bar {
    /// The length, if it is one.
    pub(super) fn length(&self) -> Option<f64> {
        self.value.filter(|value| value.is_finite() && *value > 0.0)
    }
}

/// Bars with one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The name, of any length.
    pub name: String,
    /// The bars, from the top.
    pub bars: Vec<Bar>,
}

/// Rows under one heading.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The heading.
    pub heading: String,
    /// The rows, from the top.
    pub rows: Vec<Row>,
}

/// What the lengths mean.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// Quantity and unit.
    pub label: String,
    /// A value to hold the bars against, with its name.
    pub reference: Option<(f64, String)>,
    /// The axis never goes further than this; a longer bar is drawn broken.
    pub most: Option<f64>,
}

impl Axis {
    /// Where the axis ends, for these bars.
    pub(super) fn end(&self, bars: &Bars) -> f64 {
        let rows = bars.groups.iter().flat_map(|group| &group.rows);
        let lengths = rows.flat_map(|row| &row.bars).filter_map(Bar::length);
        let reference = self.reference.iter().map(|(value, _)| *value);
        let most = self.most.unwrap_or(f64::INFINITY);
        let end = lengths.chain(reference).fold(0.0, f64::max).min(most);
        if end > 0.0 { end } else { 1.0 }
    }
}

/// A chart of horizontal bars.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// The headline.
    pub title: String,
    /// What is said below it.
    pub subtitle: String,
    /// What the lengths mean.
    pub axis: Axis,
    /// The bars; none, and the picture says `empty`.
    pub groups: Vec<Group>,
    /// Why there may be no bars.
    pub empty: String,
}

impl Bars {
    /// Each colour that occurs, in the order of occurrence.
    pub(super) fn colours(&self) -> Vec<Colour> {
        let mut found = Vec::new();
        for bar in self
            .groups
            .iter()
            .flat_map(|group| &group.rows)
            .flat_map(|row| &row.bars)
        {
            if bar.length().is_some() && !found.contains(&bar.colour) {
                found.push(bar.colour);
            }
        }
        found
    }
}
