//! Text for terminals of any width.

use std::env;

/// Columns of a text that nothing makes narrower.
pub(crate) const WIDTH: usize = 100;
/// Below this, nothing is readable.
const NARROWEST: usize = 40;

/// The columns that a text for standard output may use: those of its terminal, else `COLUMNS`, but no more than
/// [`WIDTH`].
pub(crate) fn of_stdout() -> usize {
    let variable = || env::var("COLUMNS").ok()?.parse().ok();
    of_terminal().or_else(variable).unwrap_or(WIDTH).clamp(NARROWEST, WIDTH)
}

/// The columns of the terminal that standard output is.
fn of_terminal() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// A report of names and values for standard output: on a terminal, what is too long continues below its value. In a
/// file or a pipe every line stays whole, for the programs that read it.
pub(crate) fn report(text: &str, indent: usize) -> String {
    within(text, of_terminal(), indent)
}

fn within(text: &str, columns: Option<usize>, indent: usize) -> String {
    let Some(columns) = columns else {
        return text.to_owned();
    };
    let columns = columns.max(NARROWEST);
    text.lines().map(|line| hanging(line, columns, indent) + "\n").collect()
}

/// Breaks a line at spaces, and a word that is too long wherever it must; what follows is indented.
pub(crate) fn wrap(line: &str, width: usize) -> String {
    hanging(line, width, line.chars().take_while(|&c| c == ' ').count() + 4)
}

/// The same, with the indentation of what follows.
pub(crate) fn hanging(line: &str, width: usize, indent: usize) -> String {
    let mut left: Vec<char> = line.chars().collect();
    let mut text = String::new();
    let mut room = width;
    while left.len() > room {
        let space = left[..=room].iter().rposition(|&c| c == ' ');
        let at = match space {
            // not inside the indentation of the line itself
            Some(at) if left[..at].iter().any(|&c| c != ' ') => at,
            _ => room,
        };
        let rest = left.split_off(at);
        text.extend(left);
        text.truncate(text.trim_end().len());
        text.push('\n');
        text.extend(std::iter::repeat_n(' ', indent));
        left = rest.into_iter().skip_while(|&c| c == ' ').collect();
        room = width - indent;
    }
    text.extend(left);
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::{within, wrap};

    #[test]
    fn a_report_is_broken_for_terminals_alone() {
        let text = "job             note\n\nnote            a remark that goes on and on and on\n";
        assert_eq!(within(text, None, 16), text);
        assert_eq!(within(text, Some(80), 16), text);
        assert_eq!(
            within(text, Some(40), 16),
            "job             note\n\nnote            a remark that goes on\n                and on and on\n"
        );
    }

    #[test]
    fn long_lines_are_broken_and_nothing_is_lost() {
        assert_eq!(wrap("  short", 20), "  short");
        assert_eq!(
            wrap("  one two three four five", 12),
            "  one two\n      three\n      four\n      five"
        );
        let path = format!("  {}", "x".repeat(30));
        let broken = wrap(&path, 12);
        assert!(broken.lines().all(|line| line.chars().count() <= 12), "{broken}");
        let kept: String = broken.chars().filter(|c| !c.is_whitespace()).collect();
        assert_eq!(kept, path.trim());
        assert_eq!(wrap("µµµ", 3), "µµµ");
    }
}
