//! The bandwidth that kernels of each API reach in each route's memory, reads and writes counted.

use interop::{Route, measure};

use super::line::{Better, Line};
use super::{Figures, Setup};
use crate::Result;

const RUNS: usize = 5;

pub(super) fn measure(setup: &Setup) -> Result<Figures> {
    let mut found = Figures::default();
    for route in Route::ALL {
        let bridge = match setup.on_route(route) {
            Ok(bridge) => bridge,
            Err(error) => {
                found.notes.push(format!("{route}: {}", error.one_line()));
                continue;
            }
        };
        let runs = (0..RUNS)
            .map(|_| Ok(measure::bandwidth(&bridge)?))
            .collect::<Result<Vec<_>>>()?;
        let mut line = |api: &str, rates: Vec<f64>| {
            let name = format!("{route}, {api}");
            found.lines.push(Line::of(name, "GB/s", Better::Higher, rates));
        };
        line("OpenCL", runs.iter().map(|run| run.opencl_gb_s).collect());
        line("HIP", runs.iter().map(|run| run.hip_gb_s).collect());
    }
    let best = found.lines.iter().map(|line| line.value).fold(0.0, f64::max);
    let against = |line: Line| line.against(best, "the best of these");
    found.lines = found.lines.into_iter().map(against).collect();
    found
        .notes
        .push("each sample is the median of seven copies within the memory".to_owned());
    Ok(found)
}
