//! What the command says while it works: a line that moves, on a terminal alone, and events on request.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use tracing::Level;

/// Work that takes less is done without a word.
const PATIENCE: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(200);

/// Whether `--quiet` was given.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Options of every command.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Options {
    /// Say on standard error what is chosen, and why; -vv adds the libraries' files, -vvv each call of rocBLAS.
    #[arg(short, long, global = true, action = clap::ArgAction::Count, display_order = 900)]
    pub verbose: u8,
    /// Show no progress.
    #[arg(short, long, global = true, conflicts_with = "verbose", display_order = 901)]
    pub quiet: bool,
}

impl Options {
    /// Sets the process up; to be called once.
    pub fn apply(self) {
        QUIET.store(self.quiet || self.verbose > 0, Ordering::Relaxed);
        let Some(level) = level(self.verbose) else {
            return;
        };
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(std::io::stderr)
            .with_ansi(colour(
                std::io::stderr().is_terminal(),
                std::env::var_os("NO_COLOR").as_deref(),
            ));
        // A program that calls this as a library may have its own subscriber, which stays.
        let _ = subscriber.try_init();
    }
}

fn level(verbose: u8) -> Option<Level> {
    match verbose {
        0 => None,
        1 => Some(Level::INFO),
        2 => Some(Level::DEBUG),
        _ => Some(Level::TRACE),
    }
}

/// Colours are for terminals, and not for users who set `NO_COLOR` to anything.
fn colour(is_terminal: bool, no_colour: Option<&std::ffi::OsStr>) -> bool {
    is_terminal && no_colour.is_none_or(std::ffi::OsStr::is_empty)
}

/// A line on standard error with the time that the work has taken, from its third second to the drop of this value.
/// Nothing is written if standard error is no terminal.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// Begins with what is being done.
    pub fn of(work: &str) -> Self {
        let target = match QUIET.load(Ordering::Relaxed) {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        let work = work.to_owned();
        let line = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let _ = out.write_str(&line(&work, state.elapsed()));
        };
        if let Ok(style) = ProgressStyle::with_template("{line}") {
            bar.set_style(style.with_key("line", line));
        }
        bar.enable_steady_tick(TICK);
        Self(bar)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn line(work: &str, elapsed: Duration) -> String {
    let mut text = String::new();
    if elapsed >= PATIENCE {
        let _ = write!(text, "{work} … {} s", elapsed.as_secs());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_work_is_done_without_a_word() {
        assert_eq!(line("doctor", Duration::from_millis(1999)), "");
        assert_eq!(line("doctor", Duration::from_millis(61_500)), "doctor … 61 s");
    }

    #[test]
    fn no_color_turns_colours_off_on_a_terminal_too() {
        assert!(colour(true, None) && colour(true, Some("".as_ref())));
        assert!(!colour(true, Some("1".as_ref())) && !colour(false, None));
    }

    #[test]
    fn each_v_adds_a_level() {
        let levels: Vec<_> = [0, 1, 2, 3, 9].into_iter().map(level).collect();
        let all = Some(Level::TRACE);
        assert_eq!(levels, [None, Some(Level::INFO), Some(Level::DEBUG), all, all]);
    }
}
