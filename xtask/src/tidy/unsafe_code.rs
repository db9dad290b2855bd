//! The inventory of `unsafe`: how much of which class each library has outside of tests.
//!
//! The record is `xtask/unsafe.txt`. More than it says is a violation, so growth is seen in a review; less is one too,
//! so the record stays true.

use std::path::Path;

use proc_macro2::Delimiter;
use serde_json::Value;

use super::knots::libraries;
use super::source::{self, Flat};
use crate::error::{Error, Result};

/// Relative to the project's root.
const RECORD: &str = "xtask/unsafe.txt";

/// What the keyword begins.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
struct Counts {
    /// `unsafe { .. }`: the code vouches for what it calls.
    blocks: usize,
    /// `unsafe fn name`: the caller vouches.
    functions: usize,
    /// `unsafe impl Send` or `Sync`.
    threads: usize,
    /// Implementations of other unsafe traits, and the traits.
    traits: usize,
    /// `unsafe extern`: declarations and types of foreign functions.
    foreign: usize,
}

/// Every library whose counts are not the recorded ones.
pub fn violations(root: &Path, metadata: &Value) -> Result<Vec<String>> {
    let path = root.join(RECORD);
    let record = std::fs::read_to_string(&path).map_err(|error| Error::io(path.display(), error))?;
    let recorded = |line: &String| {
        record
            .lines()
            .any(|it| it.split_whitespace().eq(line.split_whitespace()))
    };
    let mut problems = Vec::new();
    for (package, file) in libraries(metadata) {
        let mut counts = Counts::default();
        for source in source::of_library(&file)? {
            counts.add(&source::flat(&source.tokens));
        }
        let line = counts.line(&package);
        if !recorded(&line) {
            problems.push(format!("{RECORD}: the line of {package} must be: {line}"));
        }
    }
    Ok(problems)
}

impl Counts {
    fn add(&mut self, tokens: &[Flat]) {
        for (at, token) in tokens.iter().enumerate() {
            if *token != Flat::Word("unsafe".into()) {
                continue;
            }
            match &tokens[at + 1..] {
                [Flat::Open(Delimiter::Brace), ..] => self.blocks += 1,
                [Flat::Word(word), rest @ ..] if word == "impl" => {
                    let until = rest.iter().take_while(|it| **it != Flat::Word("for".into()));
                    let is_thread = |it: &Flat| matches!(it, Flat::Word(name) if name == "Send" || name == "Sync");
                    match until.last().is_some_and(is_thread) {
                        true => self.threads += 1,
                        false => self.traits += 1,
                    }
                }
                [Flat::Word(word), ..] if word == "trait" => self.traits += 1,
                // A function, and not the type of a pointer to one.
                [Flat::Word(word), Flat::Word(_), ..] if word == "fn" => self.functions += 1,
                [Flat::Word(word), Flat::Literal, Flat::Word(kind), Flat::Word(_), ..]
                    if word == "extern" && kind == "fn" =>
                {
                    self.functions += 1
                }
                [Flat::Word(word), ..] if word == "extern" => self.foreign += 1,
                // In a macro's pattern, or in an attribute.
                _ => {}
            }
        }
    }

    fn line(self, package: &str) -> String {
        let Self {
            blocks,
            functions,
            threads,
            traits,
            foreign,
        } = self;
        format!("{package} {blocks} {functions} {threads} {traits} {foreign}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_is_counted_by_what_the_keyword_begins() {
        let text = r#"
            unsafe impl Send for A {}
            unsafe impl<T: Sync> Sync for B<T> {}
            unsafe impl bytemuck::Pod for C {}
            unsafe trait D {}
            unsafe fn f() { unsafe { g() } }
            unsafe extern "C" fn h() {}
            type F = unsafe extern "C" fn(i32);
            unsafe extern "C" { fn k(); }
            #[unsafe(no_mangle)]
            fn l(p: unsafe fn()) { let x = { unsafe { m() } }; }
        "#;
        let stream: proc_macro2::TokenStream = text.parse().unwrap();
        let mut counts = Counts::default();
        counts.add(&source::flat(&stream.into_iter().collect::<Vec<_>>()));
        let expected = Counts {
            blocks: 2,
            functions: 2,
            threads: 2,
            traits: 2,
            foreign: 2,
        };
        assert_eq!(counts, expected);
        assert_eq!(counts.line("x"), "x 2 2 2 2 2");
    }
}
