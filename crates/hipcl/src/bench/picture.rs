//! The figures of a run as bars, each held against its limit.

use super::line::{Better, Line};
use super::report::Report;
use crate::chart::scale::number;
use crate::chart::{Axis, Bar, Bars, Colour, Group, Row};

/// A figure further above its limit than this is drawn broken: it would squeeze all others.
const MOST: f64 = 4.0;

impl Report {
    /// Each figure over its limit.
    pub fn picture(&self) -> Bars {
        let mut groups: Vec<Group> = Vec::new();
        for line in &self.lines {
            let heading = match line.limit_is.as_str() {
                "" => "compared with nothing".to_owned(),
                limit => format!("compared with {limit}"),
            };
            let row = row(line);
            match groups.last_mut().filter(|group| group.heading == heading) {
                Some(group) => group.rows.push(row),
                None => groups.push(Group {
                    heading,
                    rows: vec![row],
                }),
            }
        }
        Bars {
            title: format!("hipcl bench {}: {}", self.bench, self.hip_device),
            subtitle: format!(
                "platform {}, OpenCL device {}, route {}, hand-off {}; medians",
                self.platform, self.opencl_device, self.route, self.grade
            ),
            axis: Axis {
                label: "figure over its limit".into(),
                reference: Some((1.0, "limit".into())),
                most: Some(MOST),
            },
            groups,
            empty: "Nothing was measured.".into(),
        }
    }
}

fn row(line: &Line) -> Row {
    let limit = line.limit.filter(|limit| limit.is_finite() && *limit > 0.0);
    let ratio = limit.map(|limit| line.value / limit).filter(|ratio| ratio.is_finite());
    let figure = format!("{} {}", number(line.value), line.unit);
    let label = match (ratio, limit) {
        (Some(ratio), Some(limit)) => format!("{figure}, {:.0} % of {}", 100.0 * ratio, number(limit)),
        _ => figure,
    };
    let colour = match line.better {
        Better::Higher => Colour::Rate,
        Better::Lower => Colour::Cost,
    };
    let bar = Bar {
        colour,
        value: ratio,
        label,
    };
    Row {
        name: line.name.clone(),
        bars: vec![bar],
    }
}
