//! A text as a compiler sees it before it looks for tokens.

use std::borrow::Cow;

use super::{Result, refused};

/// A text with its spliced lines joined, and where its parts were.
pub(super) struct Joined<'a> {
    pub(super) text: Cow<'a, str>,
    /// From which byte on how many had been left out, ascending.
    cuts: Vec<(usize, usize)>,
}

impl<'a> Joined<'a> {
    /// Compilers differ in whether blanks may follow the backslash at the end of a line. This joins such lines, so a
    /// directive on the second line becomes a token that is refused.
    ///
    /// # Errors
    ///
    /// Compilers join the text in different ways.
    pub(super) fn of(text: &'a str) -> Result<Self> {
        if text.contains("??") && (text.contains("??/") || text.contains("??=")) {
            return refused("a trigraph, which only some compilers replace");
        }
        if text.contains('\0') {
            return refused("a NUL, which some compilers ignore");
        }
        let whole = Self {
            text: text.into(),
            cuts: Vec::new(),
        };
        if !text.contains(['\\', '\r']) {
            return Ok(whole);
        }
        let (mut joined, mut cuts, mut rest) = (String::with_capacity(text.len()), Vec::new(), text);
        while let Some(at) = rest.find(['\\', '\r']) {
            joined.push_str(&rest[..at]);
            let behind = &rest[at + 1..];
            rest = match rest.as_bytes()[at] {
                b'\r' if !behind.starts_with('\n') => {
                    return refused("a carriage return, which ends a line for some compilers only");
                }
                b'\r' => behind,
                _ => match behind_splice(behind) {
                    Some(next) => next,
                    None => {
                        joined.push('\\');
                        behind
                    }
                },
            };
            cuts.push((joined.len(), text.len() - rest.len() - joined.len()));
        }
        joined.push_str(rest);
        Ok(Self {
            text: joined.into(),
            cuts,
        })
    }

    /// Where a byte of the joined text was. What was left out before it came before it.
    pub(super) fn place(&self, at: usize) -> usize {
        let behind = self.cuts.partition_point(|(begin, _)| *begin <= at);
        let cut = behind.checked_sub(1).map_or(0, |last| self.cuts[last].1);
        at + cut
    }
}

/// What follows the end of the line, if nothing but blanks comes before that.
fn behind_splice(behind: &str) -> Option<&str> {
    let line_end = behind.trim_start_matches([' ', '\t', '\x0b', '\x0c']);
    line_end.strip_prefix('\n').or_else(|| line_end.strip_prefix("\r\n"))
}
