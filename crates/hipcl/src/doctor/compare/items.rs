//! The compared parts of a report: a list of named items.

use super::super::findings::{
    AllocationState, CarrierState, Check, Findings, GradeState, OneStream, RouteState, State,
};
use super::super::probe::Death;

/// One thing that can differ.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Item {
    pub(super) text: String,
    /// How good it is, where known: a higher number is better.
    pub(super) rank: Option<u8>,
    pub(super) figure: Option<Figure>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Figure {
    Microseconds(f64),
    Rate(f64),
}

/// Everything compared, in the order of the report.
pub(super) fn items(findings: &Findings) -> Vec<(String, Item)> {
    let mut items = Vec::new();
    let mut add = |what: String, text: String, rank: Option<bool>| {
        let rank = rank.map(u8::from);
        let item = Item {
            text: masked(&text),
            rank,
            figure: None,
        };
        items.push((what, item));
    };
    let health = if findings.healthy { "yes" } else { "no" };
    add("healthy".into(), health.into(), Some(findings.healthy));
    add("hipcl".into(), findings.hipcl.clone(), None);
    add("platform".into(), findings.platform.clone(), None);
    for library in &findings.libraries {
        let text = format!("{} {}", library.place, library.detail);
        let what = format!("library {}", library.name);
        add(what, text.trim().to_owned(), Some(library.usable));
    }
    for device in &findings.hip_devices {
        let pci = device.pci.as_deref().unwrap_or("no PCI address");
        let text = format!("{} ({}, {pci})", device.name, device.arch);
        add(format!("HIP device {}", device.ordinal), text, None);
    }
    for (i, device) in findings.opencl_devices.iter().enumerate() {
        let text = format!(
            "{} ({}, driver {}, SVM {})",
            device.name, device.platform, device.driver, device.svm
        );
        add(format!("OpenCL device {i}"), text, None);
    }
    let compiler = match findings.compiler.works {
        true => "works".to_owned(),
        false => findings.compiler.detail.clone(),
    };
    add("compiler".into(), compiler, Some(findings.compiler.works));
    for file in &findings.loaded {
        add(format!("loaded {file}"), "in the process".into(), None);
    }
    for check in &findings.checks {
        let Check { name, state, found, .. } = check;
        let rank = match state {
            State::Good | State::Info => Some(true),
            State::Bad => Some(false),
            State::Unknown => None,
        };
        add(format!("check {name}"), found.clone(), rank);
    }
    if let Some(host_ptr) = &findings.host_ptr {
        let text = match (&host_ptr.proof, &host_ptr.reason) {
            (Some(_), _) => "works",
            (None, Some(reason)) => reason,
            (None, None) => "does not work",
        };
        let name = "HIP memory as a cl_mem".to_owned();
        add(name, text.to_owned(), Some(host_ptr.proof.is_some()));
    }
    for route in &findings.routes {
        items.extend(of_route(route));
    }
    for grade in &findings.grades {
        items.extend(of_grade(grade));
    }
    items.extend(findings.one_stream.iter().flat_map(of_one_stream));
    items.extend(findings.carriers.iter().map(of_carrier));
    for allocation in &findings.allocations {
        items.extend(of_allocation(allocation));
    }
    items
}

/// What works without dying is better than what works, which is better than what does not.
fn rank(works: bool, died: Option<&Death>) -> u8 {
    u8::from(works) + u8::from(works && died.is_none())
}

fn state(text: &str, rank: u8) -> Item {
    Item {
        text: masked(text),
        rank: Some(rank),
        figure: None,
    }
}

fn figure(figure: Figure) -> Item {
    Item {
        text: match figure {
            Figure::Microseconds(us) => format!("{us:.1} us"),
            Figure::Rate(rate) => format!("{rate:.1} GB/s"),
        },
        rank: None,
        figure: Some(figure),
    }
}

fn of_route(route: &RouteState) -> Vec<(String, Item)> {
    let name = format!("route {}", route.route);
    let text = match (&route.residency, &route.reason, &route.died) {
        (Some(residency), _, Some(died)) => format!("works in {residency}, then {}", died.how),
        (Some(residency), ..) => format!("works in {residency}"),
        (None, Some(reason), _) => reason.clone(),
        (None, None, _) => "does not work".to_owned(),
    };
    let mut items = vec![(name.clone(), state(&text, rank(route.works, route.died.as_ref())))];
    if let Some(figures) = &route.figures {
        for (what, value) in [
            ("OpenCL to HIP", Figure::Microseconds(figures.opencl_to_hip_us)),
            ("HIP to OpenCL", Figure::Microseconds(figures.hip_to_opencl_us)),
            ("OpenCL kernel", Figure::Rate(figures.opencl_gb_s)),
            ("HIP kernel", Figure::Rate(figures.hip_gb_s)),
        ] {
            items.push((format!("{name}, {what}"), figure(value)));
        }
    }
    items
}

fn of_grade(grade: &GradeState) -> Vec<(String, Item)> {
    let name = format!("hand-off {}", grade.grade);
    let text = match (grade.works, &grade.reason, &grade.died) {
        (true, _, Some(died)) => format!("works on {}, then {}", grade.route, died.how),
        (true, _, None) => format!("works on {}", grade.route),
        (false, Some(reason), _) => reason.clone(),
        (false, None, _) => "does not work".to_owned(),
    };
    let mut items = vec![(name.clone(), state(&text, rank(grade.works, grade.died.as_ref())))];
    if let Some(figures) = &grade.figures {
        for (what, us) in [
            ("OpenCL to HIP", figures.opencl_to_hip_us),
            ("HIP to OpenCL", figures.hip_to_opencl_us),
        ] {
            items.push((format!("{name}, {what}"), figure(Figure::Microseconds(us))));
        }
    }
    items
}

fn of_one_stream(state: &OneStream) -> Vec<(String, Item)> {
    let name = "one stream";
    let text = state.how.as_deref().or(state.reason.as_deref());
    let text = text.unwrap_or("does not work");
    let rank = rank(state.works, state.died.as_ref());
    let mut items = vec![(name.to_owned(), self::state(text, rank))];
    if let Some(figures) = &state.figures {
        for (what, us) in [
            ("one and the wait", figures.waited_us),
            ("one in a busy stream", figures.queued_us),
        ] {
            items.push((format!("{name}, {what}"), figure(Figure::Microseconds(us))));
        }
    }
    items
}

fn of_carrier(carrier: &CarrierState) -> (String, Item) {
    let text = match (&carrier.residency, &carrier.reason) {
        (Some(residency), _) => format!("works in {residency}"),
        (None, Some(reason)) => reason.clone(),
        (None, None) => "does not work".to_owned(),
    };
    let rank = rank(carrier.works, carrier.died.as_ref());
    (format!("carrier {}", carrier.carrier), state(&text, rank))
}

fn of_allocation(allocation: &AllocationState) -> Vec<(String, Item)> {
    let name = format!("memory of {}", allocation.call);
    let text = match (&allocation.residency, &allocation.reason) {
        (_, Some(reason)) => reason.clone(),
        (Some(residency), None) => format!("in {residency} memory"),
        (None, None) => "unknown residency".to_owned(),
    };
    let rank = rank(allocation.works, allocation.died.as_ref());
    let mut items = vec![(name.clone(), state(&text, rank))];
    for (what, rate) in [
        ("OpenCL kernel", allocation.opencl_gb_s),
        ("HIP kernel", allocation.hip_gb_s),
    ] {
        let item = rate.map(|rate| (format!("{name}, {what}"), figure(Figure::Rate(rate))));
        items.extend(item);
    }
    items
}

/// The text without addresses, which differ in every process.
fn masked(text: &str) -> String {
    /// Digits from which on a number is an address and no error code.
    const ADDRESS: usize = 6;
    let mut rest = text;
    let mut masked = String::new();
    while let Some(at) = rest.find("0x") {
        let digits = rest[at + 2..]
            .find(|c: char| !c.is_ascii_hexdigit())
            .unwrap_or(rest.len() - at - 2);
        masked.push_str(&rest[..at]);
        match digits >= ADDRESS {
            true => masked.push_str("0x…"),
            false => masked.push_str(&rest[at..at + 2 + digits]),
        }
        rest = &rest[at + 2 + digits..];
    }
    masked.push_str(rest);
    masked
}

#[cfg(test)]
mod tests {
    use super::masked;

    #[test]
    fn addresses_are_masked_and_error_codes_are_not() {
        assert_eq!(
            masked("export(0x7f8b5febf000, 4) answered 0x1003"),
            "export(0x…, 4) answered 0x1003"
        );
        assert_eq!(masked("0xdeadbeef 0x12"), "0x… 0x12");
        assert_eq!(masked("plain"), "plain");
    }
}
