use std::fmt;
use std::time::Duration;

/// When one stage worked on one block, counted from the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The block's number.
    pub block: u64,
    /// Start.
    pub begin: Duration,
    /// End.
    pub end: Duration,
}

impl Span {
    /// Whether the two overlap in time.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.begin < other.end && other.begin < self.end
    }
}

/// One stage's work.
#[derive(Clone, Debug)]
pub struct StageTime {
    /// The stage's name.
    pub name: String,
    /// Blocks it processed, failed ones included.
    pub blocks: u64,
    /// Its total working time.
    pub busy: Duration,
    /// Its last blocks, [`StageTime::KEPT`] at most, oldest first.
    pub spans: Vec<Span>,
}

impl StageTime {
    /// How many spans a stage keeps: a run may go on for days.
    pub const KEPT: usize = 1024;
}

/// A run of a pipeline.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Blocks taken from the producer.
    pub blocks: u64,
    /// Those that a stage failed.
    pub failed: u64,
    /// From the call to the last result.
    pub elapsed: Duration,
    /// The stages in order, upload first and download last.
    pub stages: Vec<StageTime>,
}

impl Summary {
    pub(super) fn new(blocks: u64, failed: u64, elapsed: Duration, stages: Vec<StageTime>) -> Self {
        Self {
            blocks,
            failed,
            elapsed,
            stages,
        }
    }

    /// The stages' working time over the elapsed time: how many stages were at work at once, on
    /// average.
    #[must_use]
    pub fn concurrency(&self) -> f64 {
        let busy: Duration = self.stages.iter().map(|stage| stage.busy).sum();
        match self.elapsed.is_zero() {
            true => 0.0,
            false => busy.as_secs_f64() / self.elapsed.as_secs_f64(),
        }
    }
}

/// The stages' lines of the timeline, one column for every 64th of the time that the kept spans
/// cover, and the last digit of the block's number where a stage was at work.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const COLUMNS: usize = 64;
        let spans = || self.stages.iter().flat_map(|stage| &stage.spans);
        let begin = spans().map(|span| span.begin).min().unwrap_or_default();
        let end = spans().map(|span| span.end).max().unwrap_or_default();
        let whole = (end - begin).as_secs_f64().max(f64::MIN_POSITIVE);
        let column = |time: Duration| ((time - begin).as_secs_f64() / whole * COLUMNS as f64) as usize;
        let width = self.stages.iter().map(|stage| stage.name.len()).max().unwrap_or(0);
        for stage in &self.stages {
            let mut line = [b'.'; COLUMNS];
            for span in &stage.spans {
                let from = column(span.begin).min(COLUMNS - 1);
                let to = column(span.end).clamp(from + 1, COLUMNS);
                line[from..to].fill(b'0' + (span.block % 10) as u8);
            }
            let line: String = line.iter().copied().map(char::from).collect();
            writeln!(f, "{:<width$}  {line}", stage.name)?;
        }
        write!(
            f,
            "{} blocks in {:.3} ms, {} failed, {:.2} stages at work at once",
            self.blocks,
            self.elapsed.as_secs_f64() * 1e3,
            self.failed,
            self.concurrency()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(block: u64, begin: u64, end: u64) -> Span {
        Span {
            block,
            begin: Duration::from_millis(begin),
            end: Duration::from_millis(end),
        }
    }

    #[test]
    fn spans_that_only_touch_do_not_overlap() {
        assert!(!span(0, 0, 2).overlaps(&span(1, 2, 4)));
        assert!(span(0, 0, 3).overlaps(&span(1, 2, 4)));
        assert!(span(1, 2, 4).overlaps(&span(0, 0, 9)));
    }

    #[test]
    fn the_timeline_shows_who_worked_when() {
        let stage = |name: &str, spans: Vec<Span>| StageTime {
            name: name.into(),
            blocks: spans.len() as u64,
            busy: spans.iter().map(|span| span.end - span.begin).sum(),
            spans,
        };
        let summary = Summary::new(
            2,
            0,
            Duration::from_millis(64),
            vec![
                stage("up", vec![span(0, 0, 32), span(1, 32, 48)]),
                stage("down", vec![span(0, 32, 64)]),
            ],
        );
        let text = summary.to_string();
        let lines: Vec<_> = text.lines().collect();
        let repeated =
            |parts: &[(&str, usize)]| -> String { parts.iter().map(|(text, count)| text.repeat(*count)).collect() };
        assert_eq!(lines[0], repeated(&[("up    ", 1), ("0", 32), ("1", 16), (".", 16)]));
        assert_eq!(lines[1], repeated(&[("down  ", 1), (".", 32), ("0", 32)]));
        assert!(lines[2].ends_with("1.25 stages at work at once"), "{text}");
    }
}
