//! Differences between two libraries' answers.
//!
//! A sequence is compared up to its first difference in what a call did: from there on the two are in different states.
//! A difference in what a question was told changes nothing, so the comparison goes on behind it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use crate::run::Log;
use crate::world::Line;

/// Answers that were recorded, sequence by sequence.
pub struct Recorded(BTreeMap<u64, Vec<String>>);

impl Recorded {
    /// One sequence a line: its number, then its answers with `;` between them.
    pub fn read(text: &str) -> Self {
        let line = |line: &str| {
            let (number, answers) = line.split_once(' ')?;
            let answers = answers.split(';').map(str::to_owned);
            Some((number.parse().ok()?, answers.collect()))
        };
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self(lines.filter_map(line).collect())
    }

    pub fn of(&self, number: u64) -> &[String] {
        &self.0[&number]
    }

    /// The numbers that are there, in ranges without gaps.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for &number in self.0.keys() {
            match ranges.last_mut() {
                Some(range) if range.end == number => range.end += 1,
                _ => ranges.push(number..number + 1),
            }
        }
        ranges
    }
}

/// Answers to record.
pub fn recording(log: &Log) -> String {
    let mut text =
        "# What ROCm 7.2.4 answered, on an emulated gfx908. Written by `cargo xtask differences --record`.\n"
            .to_owned();
    for (number, lines) in log {
        let answers: Vec<&str> = lines.iter().map(|line| line.answer.as_str()).collect();
        text += &format!("{number} {}\n", answers.join(";"));
    }
    text
}

/// Differences that are known: call, our answer, the real one and why, with ` | ` between them. A `*` stands for any
/// text at the end of the first and for any answer.
pub struct Known(Vec<Entry>);

struct Entry {
    line: String,
    /// Call, our answer, the real one.
    patterns: [String; 3],
    /// How often it has explained a difference.
    met: Cell<usize>,
}

impl Known {
    pub fn read(text: &str) -> Self {
        let entry = |line: &str| {
            let mut parts = line.splitn(4, " | ").map(|part| part.trim().to_owned());
            let mut part = || parts.next().unwrap_or_default();
            let patterns = [part(), part(), part()];
            assert!(!part().is_empty(), "a known difference without a reason: {line}");
            Entry {
                line: line.to_owned(),
                patterns,
                met: Cell::new(0),
            }
        };
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self(lines.map(entry).collect())
    }

    fn has(&self, call: &str, ours: &str, real: &str) -> bool {
        let found = self.0.iter().find(|entry| {
            let [c, o, r] = &entry.patterns;
            glob(c, call) && glob(o, ours) && glob(r, real)
        });
        if let Some(entry) = found {
            entry.met.set(entry.met.get() + 1);
        }
        found.is_some()
    }
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (met, unmet): (Vec<_>, Vec<_>) = self.0.iter().partition(|entry| entry.met.get() > 0);
        writeln!(f, "{} known lines explained something:", met.len())?;
        for entry in met {
            writeln!(f, "{:5} {}", entry.met.get(), entry.line)?;
        }
        writeln!(f, "{} known lines explained nothing:", unmet.len())?;
        unmet
            .into_iter()
            .try_for_each(|entry| writeln!(f, "      {}", entry.line))
    }
}

/// Whether a text is what a pattern says, in which `*` stands for anything.
fn glob(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(behind) = text.strip_prefix(head) else {
        return false;
    };
    (0..=behind.len())
        .filter(|&at| behind.is_char_boundary(at))
        .any(|at| glob(rest, &behind[at..]))
}

/// Whether the call only tells something.
fn is_question(call: &str) -> bool {
    let name = call.split('(').next().unwrap_or_default();
    ["Get", "Query", "IsCapturing", "Occupancy", "CanAccess", "FindInClone"]
        .iter()
        .any(|word| name.contains(word))
        && !["GetMappedBuffer", "GetFunction", "GetGlobal", "GetMemHandle"]
            .iter()
            .any(|word| name.contains(word))
}

/// Differences by call and answers: how often, and one example.
#[derive(Default)]
pub struct Differences {
    found: BTreeMap<(String, String, String), (usize, u64, String)>,
    sequences: usize,
    calls: usize,
    known: usize,
}

impl Differences {
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    fn add(&mut self, number: u64, call: &str, ours: &str, real: &str) {
        let name = call.split('(').next().unwrap_or_default().to_owned();
        let key = (name, ours.to_owned(), real.to_owned());
        let entry = self.found.entry(key).or_insert((0, number, call.to_owned()));
        entry.0 += 1;
    }

    /// Whether the comparison may go on behind these answers.
    fn line(&mut self, number: u64, call: &str, ours: &str, real: &str, known: &Known) -> bool {
        self.calls += 1;
        if ours == real {
            return ours != "crash";
        }
        if known.has(call, ours, real) {
            self.known += 1;
        } else {
            self.add(number, call, ours, real);
        }
        is_question(call) && ours != "crash" && real != "crash"
    }

    pub fn compare(&mut self, number: u64, ours: &[Line], real: &[Line], known: &Known) {
        self.sequences += 1;
        for (at, line) in real.iter().enumerate() {
            let Some(mine) = ours.get(at) else {
                return self.add(number, &line.call, "nothing", &line.answer);
            };
            if mine.call != line.call {
                let ours = format!("called {}", mine.call);
                return self.add(number, &line.call, &ours, &line.answer);
            }
            if !self.line(number, &line.call, &mine.answer, &line.answer, known) {
                return;
            }
        }
    }

    pub fn compare_recorded(&mut self, number: u64, ours: &[Line], real: &[String], known: &Known) {
        self.sequences += 1;
        for (at, mine) in ours.iter().enumerate() {
            let Some(answer) = real.get(at) else {
                return;
            };
            if !self.line(number, &mine.call, &mine.answer, answer, known) {
                return;
            }
        }
    }
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} sequences, {} calls compared, {} differences known, {} kinds of others:",
            self.sequences,
            self.calls,
            self.known,
            self.found.len()
        )?;
        let mut found: Vec<_> = self.found.iter().collect();
        found.sort_by_key(|(_, (count, _, _))| std::cmp::Reverse(*count));
        for ((name, ours, real), (count, number, call)) in found {
            writeln!(f, "{count:5} {name}: {ours} / {real}   #{number} {call}")?;
        }
        Ok(())
    }
}
