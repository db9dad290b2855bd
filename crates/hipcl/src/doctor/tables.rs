//! The tables of the text: routes, ways to hand over, ways into another process, allocations.
//!
//! Each fits in 79 columns where the text is to be narrow; what does not fit then goes below the table.

use std::fmt::{self, Write as _};

use super::findings::{AllocationState, CarrierState, GradeState, HostPtr, OneStream, RouteState};
use super::probe::Death;

/// Columns of the widest table in its wide form.
const WIDE: usize = 94;

/// Columns of the routes' figures.
fn figure_columns(width: usize) -> [usize; 4] {
    if width < WIDE { [10, 10, 8, 9] } else { [11; 4] }
}

pub(super) fn routes(out: &mut String, routes: &[RouteState], host_ptr: Option<&HostPtr>, width: usize) -> fmt::Result {
    let Some(first) = routes.first() else {
        return Ok(());
    };
    // what keeps all of them from being tried is said once
    if let Some(why) = first.reason.as_deref().and_then(|it| it.strip_prefix(NOT_TRIED))
        && routes.iter().all(|route| route.reason == first.reason)
    {
        return writeln!(out, "  no route was tried: {why}");
    }
    let names = if width < WIDE { 12 } else { 13 };
    write!(out, "\n     {:<names$}{:<7} {:<11}", "route", "kind", "memory")?;
    let heads = ["CL>HIP us", "HIP>CL us", "CL GB/s", "HIP GB/s"];
    for (head, columns) in heads.iter().zip(figure_columns(width)) {
        write!(out, "{head:>columns$}")?;
    }
    writeln!(out, "  {}", if width < WIDE { "ROCm" } else { "ROCm from" })?;
    for route in routes.iter().filter(|route| route.works) {
        works(out, route, names, figure_columns(width))?;
    }
    for route in routes.iter().filter(|route| !route.works) {
        let reason = route.reason.as_deref().unwrap_or("unknown reason");
        let kind = if route.impossible { "-  " } else { "no " };
        writeln!(out, "  {kind}{:<names$}{reason}", route.route)?;
    }
    if let Some(host_ptr) = host_ptr {
        let (kind, text) = match (&host_ptr.proof, &host_ptr.reason) {
            (Some(proof), _) => ("ok ", proof.as_str()),
            (None, reason) if host_ptr.impossible => ("-  ", reason.as_deref().unwrap_or("")),
            (None, reason) => ("no ", reason.as_deref().unwrap_or("not tried")),
        };
        writeln!(out, "  {kind}HIP memory as a cl_mem: {text}")?;
    }
    for route in routes {
        stderr(out, &route.route, route.died.as_ref())?;
    }
    Ok(())
}

/// Begins the reason of a route that no process was spent on.
pub(super) const NOT_TRIED: &str = "not tried: ";

fn works(out: &mut String, route: &RouteState, names: usize, columns: [usize; 4]) -> fmt::Result {
    let kind = if route.copies { "copies" } else { "direct" };
    let residency = route.residency.as_deref().unwrap_or("unknown");
    write!(out, "  ok {:<names$}{kind:<7} {residency:<11}", route.route)?;
    let figures = route.figures.as_ref().map(|figures| {
        [
            figures.opencl_to_hip_us,
            figures.hip_to_opencl_us,
            figures.opencl_gb_s,
            figures.hip_gb_s,
        ]
    });
    for (place, columns) in columns.into_iter().enumerate() {
        match figures {
            Some(figures) => write!(out, "{:>columns$.1}", figures[place])?,
            None => write!(out, "{:>columns$}", "-")?,
        }
    }
    writeln!(out, "  {}", route.oldest_rocm.as_deref().unwrap_or("none"))?;
    if let Some(reason) = &route.figures_missing {
        writeln!(out, "     {:<names$}not measured: {reason}", "")?;
    }
    Ok(())
}

pub(super) fn grades(out: &mut String, grades: &[GradeState]) -> fmt::Result {
    let Some(first) = grades.first() else {
        return Ok(());
    };
    writeln!(
        out,
        "\n     {:<9} {:>10} {:>10}  by (on {})",
        "hand-off", "CL>HIP us", "HIP>CL us", first.route
    )?;
    for state in grades {
        let name = &state.grade;
        if !state.works {
            let reason = state.reason.as_deref().unwrap_or("unknown reason");
            writeln!(out, "  no {name:<9} {reason}")?;
            continue;
        }
        write!(out, "  ok {name:<9}")?;
        match &state.figures {
            Some(figures) => write!(
                out,
                " {:>10.1} {:>10.1}",
                figures.opencl_to_hip_us, figures.hip_to_opencl_us
            )?,
            None => write!(out, " {0:>10} {0:>10}", "-")?,
        }
        let by = |mechanism: &Option<String>| mechanism.clone().unwrap_or_default();
        let (there, back) = (by(&state.opencl_to_hip), by(&state.hip_to_opencl));
        writeln!(out, "  {there}; {back}")?;
        if let Some(reason) = &state.figures_missing {
            writeln!(out, "     {:<9} not measured: {reason}", "")?;
        }
    }
    for state in grades {
        stderr(out, &state.grade, state.died.as_ref())?;
    }
    Ok(())
}

/// A line, for there is nothing to compare.
pub(super) fn one_stream(out: &mut String, state: &OneStream) -> fmt::Result {
    let title = "OpenCL kernels on HIP streams";
    match &state.how {
        None => {
            let reason = state.reason.as_deref().unwrap_or("unknown reason");
            writeln!(out, "\n  no {title}: {reason}")?;
        }
        Some(how) => {
            write!(out, "\n  ok {title}: {how}")?;
            if let Some(figures) = &state.figures {
                write!(
                    out,
                    "; an empty kernel takes {:.1} us with the wait, {:.1} us in a busy stream",
                    figures.waited_us, figures.queued_us
                )?;
            }
            writeln!(out)?;
            if let Some(reason) = &state.figures_missing {
                writeln!(out, "     not measured: {reason}")?;
            }
        }
    }
    stderr(out, "one-stream", state.died.as_ref())
}

pub(super) fn carriers(out: &mut String, carriers: &[CarrierState]) -> fmt::Result {
    if carriers.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n     {:<13}{:<11}", "to a process", "memory")?;
    for state in carriers {
        let (mark, text) = match (&state.residency, &state.reason) {
            (Some(residency), _) => ("ok ", residency.as_str()),
            (None, reason) if state.impossible => ("-  ", reason.as_deref().unwrap_or("")),
            (None, reason) => ("no ", reason.as_deref().unwrap_or("unknown reason")),
        };
        writeln!(out, "  {mark}{:<13}{text}", state.carrier)?;
    }
    for state in carriers {
        stderr(out, &state.carrier, state.died.as_ref())?;
    }
    Ok(())
}

pub(super) fn allocations(out: &mut String, allocations: &[AllocationState], width: usize) -> fmt::Result {
    if allocations.is_empty() {
        return Ok(());
    }
    let is_wide = width >= WIDE;
    let columns = if is_wide { 10 } else { 9 };
    write!(out, "\n     {:<31}", "allocation")?;
    match is_wide {
        true => write!(out, "{:<12}{:<24}", "memory", "known by")?,
        false => write!(out, "{:<16}", "memory")?,
    }
    writeln!(out, "{:>columns$} {:>columns$}", "CL GB/s", "HIP GB/s")?;
    let mut notes = Notes::default();
    for state in allocations {
        let call = &state.call;
        if !state.works {
            let reason = state.reason.as_deref().unwrap_or("unknown reason");
            writeln!(out, "  no {call:<31}{reason}")?;
            continue;
        }
        let residency = state.residency.as_deref().unwrap_or("unknown");
        let known_by = state.known_by.as_deref().unwrap_or("no API");
        write!(out, "  ok {call:<31}")?;
        if is_wide {
            write!(out, "{residency:<12}{known_by:<24}")?;
        } else {
            let memory = format!("{residency} ({})", notes.number("memory:", known_by));
            write!(out, "{memory:<16}")?;
        }
        for (api, rate, missing) in [
            ("OpenCL:", state.opencl_gb_s, &state.opencl_missing),
            ("HIP:", state.hip_gb_s, &state.hip_missing),
        ] {
            match (rate, missing) {
                (Some(rate), _) => write!(out, "{rate:>columns$.1} ")?,
                (None, None) => write!(out, "{:>columns$} ", "-")?,
                (None, Some(reason)) => {
                    let mark = format!("({})", notes.number(api, reason));
                    write!(out, "{mark:>columns$} ")?;
                }
            }
        }
        writeln!(out)?;
    }
    for (index, note) in notes.0.iter().enumerate() {
        writeln!(out, "     ({}) {note}", index + 1)?;
    }
    for state in allocations {
        stderr(out, &state.call, state.died.as_ref())?;
    }
    Ok(())
}

/// Reasons and sources, each given once below the table.
#[derive(Default)]
struct Notes(Vec<String>);

impl Notes {
    fn number(&mut self, about: &str, reason: &str) -> usize {
        let note = format!("{about} {reason}");
        let known = self.0.iter().position(|known| *known == note);
        known.map_or_else(
            || {
                self.0.push(note);
                self.0.len()
            },
            |index| index + 1,
        )
    }
}

fn stderr(out: &mut String, what: &str, died: Option<&Death>) -> fmt::Result {
    for line in died.iter().flat_map(|died| &died.stderr) {
        writeln!(out, "  stderr of {what}: {line}")?;
    }
    Ok(())
}
