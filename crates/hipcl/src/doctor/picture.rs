//! The bandwidth of each route and allocation as a picture.

use super::findings::{AllocationState, Findings, RouteState};
use crate::chart::scale::number;
use crate::chart::{Axis, Bar, Bars, Colour, Group, Row};

impl Findings {
    /// The bandwidth that kernels of each API reach in the memory of each route and of each allocating call.
    pub fn picture(&self) -> Bars {
        let device = self.pair.as_ref().map(|pair| pair.hip.as_str());
        let device = device.or(self.hip_devices.first().map(|device| device.name.as_str()));
        let mut subtitle = format!(
            "hipcl {} doctor, {}, platform {}; a kernel copies within the memory: bytes read and written",
            self.hipcl,
            self.taken,
            if self.platform.is_empty() {
                "unknown"
            } else {
                &self.platform
            },
        );
        if let Some(emulator) = &self.emulator {
            subtitle += &format!("; {emulator} emulates the GPU, so nothing was measured");
        } else if self.is_model() {
            subtitle += "; a software device: the figures say nothing about a GPU";
        }
        let groups = vec![
            Group {
                heading: "Routes".into(),
                rows: self.routes.iter().map(of_route).collect(),
            },
            Group {
                heading: "Allocations".into(),
                rows: self.allocations.iter().map(of_allocation).collect(),
            },
        ];
        Bars {
            title: format!("Memory bandwidth: {}", device.unwrap_or("no HIP device")),
            subtitle,
            axis: Axis {
                label: "GB/s: 10^9 bytes per second".into(),
                ..Axis::default()
            },
            groups,
            empty: format!("No route was tried. {}", self.verdict),
        }
    }
}

fn of_route(state: &RouteState) -> Row {
    let name = named(&state.route, state.residency.as_deref());
    let figures = state.figures.as_ref();
    let bars = match state.works {
        false if state.impossible => vec![without("not possible here")],
        false => vec![without("does not work")],
        true => vec![
            rate(Colour::OpenCl, "OpenCL", figures.map(|it| it.opencl_gb_s)),
            rate(Colour::Hip, "HIP", figures.map(|it| it.hip_gb_s)),
        ],
    };
    Row { name, bars }
}

fn of_allocation(state: &AllocationState) -> Row {
    let name = named(&state.call, state.residency.as_deref());
    let bars = match state.works {
        false => vec![without("gave no memory")],
        true => vec![
            rate(Colour::OpenCl, "OpenCL", state.opencl_gb_s),
            rate(Colour::Hip, "HIP", state.hip_gb_s),
        ],
    };
    Row { name, bars }
}

fn named(what: &str, residency: Option<&str>) -> String {
    residency.map_or_else(|| what.to_owned(), |residency| format!("{what} ({residency})"))
}

fn rate(colour: Colour, api: &str, value: Option<f64>) -> Bar {
    let value = value.filter(|value| value.is_finite());
    Bar {
        colour,
        value,
        label: value.map_or_else(
            || format!("{api}: no figure"),
            |value| format!("{} GB/s", number(value)),
        ),
    }
}

fn without(label: &str) -> Bar {
    Bar {
        colour: Colour::Hip,
        value: None,
        label: label.into(),
    }
}
