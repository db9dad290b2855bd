//! What has changed since an earlier report.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::findings::{Check, Findings, RouteState, SCHEMA, State};
use super::text::{WIDTH, wrap};
use crate::{Error, Result};

/// A rate that differs by less than this factor is the same.
const RATE_BAND: f64 = 1.25;
/// A time that differs by less than this factor is the same.
const TIME_BAND: f64 = 1.5;
/// And so is one that differs by less than this many microseconds.
const TIME_FLOOR_US: f64 = 5.0;

/// Everything that is not as it was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// When the earlier report was taken.
    pub earlier: String,
    /// The differences, in the order of the report.
    pub changes: Vec<Change>,
    /// Whether one of them is for the worse.
    pub worse: bool,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// What differs: "route hip-pointer", "check large BAR", ….
    pub what: String,
    /// Which way.
    pub kind: Kind,
    /// As it was.
    pub before: Option<String>,
    /// As it is.
    pub now: Option<String>,
    /// Now by then, of figures.
    pub ratio: Option<f64>,
}

/// Which way something differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// It works no longer, or costs more than noise explains.
    Worse,
    /// It works, and did not; or costs less than noise explains.
    Better,
    /// Neither.
    Changed,
    /// It was not there.
    New,
    /// It is not there any more.
    Gone,
}

/// One thing that can differ.
#[derive(Clone, Debug, PartialEq)]
struct Item {
    text: String,
    /// How good it is, where that can be said: a higher number is better.
    rank: Option<u8>,
    figure: Option<Figure>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Figure {
    Microseconds(f64),
    Rate(f64),
}

impl Findings {
    /// Reads what [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    /// A file that can't be read, holds something else, or was written in another form.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::read(path, source))?;
        let other = |why: String| {
            Error::input(format!(
                "`{}` is no file of `hipcl doctor --json` in form {SCHEMA}: {why}; take it again with this version",
                path.display()
            ))
        };
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| other(error.to_string()))?;
        match value.get("schema").and_then(serde_json::Value::as_u64) {
            Some(schema) if schema == u64::from(SCHEMA) => {
                serde_json::from_value(value).map_err(|error| other(error.to_string()))
            }
            Some(schema) => Err(other(format!("it is in form {schema}"))),
            None => Err(other("it has no `schema`".to_owned())),
        }
    }

    /// What differs from `earlier`. Figures within the noise, addresses in messages and the time of a compilation don't.
    pub fn since(&self, earlier: &Self) -> Comparison {
        let (before, now) = (items(earlier), items(self));
        let old: BTreeMap<&str, &Item> = before.iter().map(|(key, item)| (&**key, item)).collect();
        let mut changes: Vec<Change> = now
            .iter()
            .filter_map(|(what, item)| match old.get(&**what) {
                Some(old) => differ(what, old, item),
                None => Some(Change {
                    what: what.clone(),
                    // a check that there is only when it fails
                    kind: match what.starts_with("check ") && item.rank == Some(0) {
                        true => Kind::Worse,
                        false => Kind::New,
                    },
                    before: None,
                    now: Some(item.text.clone()),
                    ratio: None,
                }),
            })
            .collect();
        let gone = |what: &str| !now.iter().any(|(key, _)| key == what);
        for (what, item) in before.iter().filter(|(what, _)| gone(what)) {
            changes.push(Change {
                what: what.clone(),
                // a card that has fallen off the bus
                kind: match what.contains(" device ") {
                    true => Kind::Worse,
                    false => Kind::Gone,
                },
                before: Some(item.text.clone()),
                now: None,
                ratio: None,
            });
        }
        Comparison {
            earlier: earlier.taken.clone(),
            worse: changes.iter().any(|change| change.kind == Kind::Worse),
            changes,
        }
    }
}

fn differ(what: &str, old: &Item, new: &Item) -> Option<Change> {
    let (kind, ratio) = match (old.figure, new.figure) {
        (Some(Figure::Rate(old)), Some(Figure::Rate(new))) => {
            let ratio = new / old;
            let kind = match ratio {
                ratio if ratio * RATE_BAND < 1.0 => Kind::Worse,
                ratio if ratio > RATE_BAND => Kind::Better,
                _ => return None,
            };
            (kind, Some(ratio))
        }
        (Some(Figure::Microseconds(old)), Some(Figure::Microseconds(new))) => {
            if (new - old).abs() < TIME_FLOOR_US {
                return None;
            }
            // below the floor a ratio means nothing, and a difference of two times may be negative
            let ratio = new.max(TIME_FLOOR_US) / old.max(TIME_FLOOR_US);
            let kind = match ratio {
                ratio if ratio > TIME_BAND => Kind::Worse,
                ratio if ratio * TIME_BAND < 1.0 => Kind::Better,
                _ => return None,
            };
            let meaningful = old >= TIME_FLOOR_US && new >= TIME_FLOOR_US;
            (kind, meaningful.then_some(new / old))
        }
        _ if old == new => return None,
        _ => match (old.rank, new.rank) {
            (Some(old), Some(new)) if new < old => (Kind::Worse, None),
            (Some(old), Some(new)) if new > old => (Kind::Better, None),
            _ => (Kind::Changed, None),
        },
    };
    Some(Change {
        what: what.to_owned(),
        kind,
        before: Some(old.text.clone()),
        now: Some(new.text.clone()),
        ratio: ratio.map(|ratio| (ratio * 100.0).round() / 100.0),
    })
}

/// Everything that is compared, in the order of the report.
fn items(findings: &Findings) -> Vec<(String, Item)> {
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
        let Check {
            name, state, found, ..
        } = check;
        let rank = match state {
            State::Good | State::Told => Some(true),
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
        let name = "HIP's memory as a cl_mem".to_owned();
        add(name, masked(text), Some(host_ptr.proof.is_some()));
    }
    for route in &findings.routes {
        items.extend(of_route(route));
    }
    items
}

fn of_route(route: &RouteState) -> Vec<(String, Item)> {
    let name = format!("route {}", route.route);
    let text = match (&route.residency, &route.reason, &route.died) {
        (Some(residency), _, Some(died)) => format!("works in {residency}, then {}", died.how),
        (Some(residency), ..) => format!("works in {residency}"),
        (None, Some(reason), _) => reason.clone(),
        (None, None, _) => "does not work".to_owned(),
    };
    // what works without dying is better than what works, which is better than what does not
    let rank = u8::from(route.works) + u8::from(route.works && route.died.is_none());
    let mut items = vec![(
        name.clone(),
        Item {
            text: masked(&text),
            rank: Some(rank),
            figure: None,
        },
    )];
    let Some(figures) = &route.figures else {
        return items;
    };
    let mut add = |what: &str, figure: Figure| {
        let text = match figure {
            Figure::Microseconds(us) => format!("{us:.1} us"),
            Figure::Rate(rate) => format!("{rate:.1} GB/s"),
        };
        let item = Item {
            text,
            rank: None,
            figure: Some(figure),
        };
        items.push((format!("{name}, {what}"), item));
    };
    add(
        "OpenCL to HIP",
        Figure::Microseconds(figures.opencl_to_hip_us),
    );
    add(
        "HIP to OpenCL",
        Figure::Microseconds(figures.hip_to_opencl_us),
    );
    add("OpenCL kernel", Figure::Rate(figures.opencl_gb_s));
    add("HIP kernel", Figure::Rate(figures.hip_gb_s));
    items
}

/// The text without addresses, which are others in every process.
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

impl Display for Comparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "compared with {}", self.earlier)?;
        if self.changes.is_empty() {
            writeln!(f, "  no difference beyond the noise")?;
        }
        for change in &self.changes {
            let kind = match change.kind {
                Kind::Worse => "worse  ",
                Kind::Better => "better ",
                Kind::Changed => "changed",
                Kind::New => "new    ",
                Kind::Gone => "gone   ",
            };
            let ratio = change.ratio.map(|ratio| format!(" ({ratio:.2} times)"));
            let values = match (&change.before, &change.now) {
                (Some(before), Some(now)) => format!("{before} -> {now}"),
                (Some(one), None) | (None, Some(one)) => one.clone(),
                (None, None) => String::new(),
            };
            let line = format!(
                "  {kind}  {}: {values}{}",
                change.what,
                ratio.unwrap_or_default()
            );
            writeln!(f, "{}", wrap(&line, WIDTH))?;
        }
        Ok(())
    }
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
