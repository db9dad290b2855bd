//! Text for terminals of any width.

use std::env;

/// Columns of a text that nothing makes narrower.
pub(crate) const WIDTH: usize = 100;
/// Below this, nothing is readable.
const NARROWEST: usize = 40;

/// The columns that a text for standard output may use: those of its terminal, else `COLUMNS`, but no more than
/// [`WIDTH`].
pub(crate) fn of_stdout() -> usize {
    let terminal = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok();
    let terminal = terminal
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0);
    let variable = || env::var("COLUMNS").ok()?.parse().ok();
    terminal.or_else(variable).unwrap_or(WIDTH).clamp(NARROWEST, WIDTH)
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
    use super::wrap;

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
