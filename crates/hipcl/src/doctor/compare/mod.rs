//! What has changed since an earlier report.

mod items;

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::path::Path;

use items::{Figure, Item, items};
use serde::{Deserialize, Serialize};

use super::findings::{Findings, SCHEMA};
use crate::{Error, Result};

/// A rate that differs by less than this factor is the same.
const RATE_BAND: f64 = 1.25;
/// A time that differs by less than this factor is the same.
const TIME_BAND: f64 = 1.5;
/// And so is one that differs by less than this many microseconds.
const TIME_FLOOR_US: f64 = 5.0;

/// Everything that differs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// When the earlier report was taken.
    pub earlier: String,
    /// The differences, in the order of the report.
    pub changes: Vec<Change>,
    /// Whether anything became worse.
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
    /// The ratio of now to then, for figures.
    pub ratio: Option<f64>,
}

/// Which way something differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// It no longer works, or costs more than noise explains.
    Worse,
    /// It works now and did not, or costs less than noise explains.
    Better,
    /// Neither.
    Changed,
    /// It was not there.
    New,
    /// It is not there any more.
    Gone,
}

impl Findings {
    /// Reads what [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    /// A file that cannot be read, holds something else, or was written in another form.
    pub fn read(path: &Path) -> Result<Self> {
        let text = crate::input::text(path)?;
        let other = |why: String| {
            Error::input(format!(
                "`{}` is not a file of `hipcl doctor --json` with schema {SCHEMA}: {why}; run the doctor again with this version",
                path.display()
            ))
        };
        let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| other(error.to_string()))?;
        match value.get("schema").and_then(serde_json::Value::as_u64) {
            Some(schema) if schema == u64::from(SCHEMA) => {
                serde_json::from_value(value).map_err(|error| other(error.to_string()))
            }
            Some(schema) => Err(other(format!("its schema is {schema}"))),
            None => Err(other("it has no `schema`".to_owned())),
        }
    }

    /// What differs from `earlier`. Figures within the noise, addresses in messages and the time of a compilation do
    /// not.
    ///
    /// The figures of the software device are those of a processor that others use as well: beyond the noise they are
    /// [`Changed`](Kind::Changed), and never worse. Routes that only one of the two examined are left out.
    pub fn since(&self, earlier: &Self) -> Comparison {
        let (mut before, mut now) = (items(earlier), items(self));
        if self.asked_routes != earlier.asked_routes {
            drop_unasked(&mut before, &mut now);
        }
        let on_cards = [self, earlier].iter().all(|it| !it.is_model());
        let old: BTreeMap<&str, &Item> = before.iter().map(|(key, item)| (&**key, item)).collect();
        let mut changes: Vec<Change> = now
            .iter()
            .filter_map(|(what, item)| match old.get(&**what) {
                Some(old) => differ(what, old, item, on_cards),
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

/// Leaves out what depends on the requested routes, as far as only one of the reports has it.
fn drop_unasked(before: &mut Vec<(String, Item)>, now: &mut Vec<(String, Item)>) {
    let depends = |what: &str| {
        let prefixes = [
            "route ",
            "hand-off ",
            "carrier ",
            "one stream",
            "HIP memory ",
            "memory of ",
            "loaded ",
            "check lib",
        ];
        what == "healthy" || prefixes.iter().any(|prefix| what.starts_with(prefix))
    };
    let names = |items: &[(String, Item)]| -> Vec<String> { items.iter().map(|(what, _)| what.clone()).collect() };
    let (old, new) = (names(before), names(now));
    before.retain(|(what, _)| !depends(what) || what != "healthy" && new.contains(what));
    now.retain(|(what, _)| !depends(what) || what != "healthy" && old.contains(what));
}

/// `on_card`: whether a figure can be for the worse.
fn differ(what: &str, old: &Item, new: &Item, on_card: bool) -> Option<Change> {
    let judged = |kind| if on_card { kind } else { Kind::Changed };
    let (kind, ratio) = match (old.figure, new.figure) {
        (Some(Figure::Rate(old)), Some(Figure::Rate(new))) => {
            let ratio = new / old;
            let kind = match ratio {
                ratio if ratio * RATE_BAND < 1.0 => Kind::Worse,
                ratio if ratio > RATE_BAND => Kind::Better,
                _ => return None,
            };
            (judged(kind), Some(ratio))
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
            (judged(kind), meaningful.then_some(new / old))
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
            writeln!(f, "  {kind}  {}: {values}{}", change.what, ratio.unwrap_or_default())?;
        }
        Ok(())
    }
}
