//! The sources of a library as tokens: its modules, without their tests.

use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::error::{Error, Result};

/// A file of a library.
pub struct Source {
    /// The names of the modules that it lies in, from the root. The root's file has none.
    pub path: Vec<String>,
    /// Its tokens, without modules that only tests have.
    pub tokens: Vec<TokenTree>,
}

/// The library whose root is this file: every file that belongs to it outside of tests.
pub fn of_library(root: &Path) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    let folder = root.parent().unwrap_or(root);
    read(root, folder, Vec::new(), &mut sources)?;
    Ok(sources)
}

/// Reads a file, and the files of its modules, which lie in `folder`.
fn read(file: &Path, folder: &Path, path: Vec<String>, sources: &mut Vec<Source>) -> Result<()> {
    let text = std::fs::read_to_string(file).map_err(|error| Error::io(file.display(), error))?;
    let stream: TokenStream = text
        .parse()
        .map_err(|error| Error::Failed(format!("{}: not Rust: {error}", file.display())))?;
    let tokens = without_tests(stream.into_iter().collect());
    let children = declared(&tokens);
    sources.push(Source {
        path: path.clone(),
        tokens,
    });
    for child in children {
        let found = [folder.join(format!("{child}.rs")), folder.join(&child).join("mod.rs")];
        let Some(file) = found.into_iter().find(|file| file.is_file()) else {
            // One that a `#[path]` or a macro places.
            continue;
        };
        let mut path = path.clone();
        path.push(child.clone());
        let folder: PathBuf = folder.join(&child);
        read(&file, &folder, path, sources)?;
    }
    Ok(())
}

/// The names of `mod name;`, also where a macro declares modules.
fn declared(tokens: &[TokenTree]) -> Vec<String> {
    let mut names: Vec<String> = tokens
        .windows(3)
        .filter(|it| is_word(&it[0], "mod") && is_sign(&it[2], ';'))
        .map(|it| it[1].to_string())
        .collect();
    for token in tokens {
        if let TokenTree::Group(group) = token {
            names.extend(declared(&group.stream().into_iter().collect::<Vec<_>>()));
        }
    }
    names
}

/// Drops items under `#[cfg(test)]` and its combinations with `all`.
fn without_tests(tokens: Vec<TokenTree>) -> Vec<TokenTree> {
    let mut kept = Vec::new();
    let mut rest = tokens.into_iter().peekable();
    while let Some(token) = rest.next() {
        let attribute = match (is_sign(&token, '#'), rest.peek()) {
            (true, Some(TokenTree::Group(group))) => group.stream().to_string(),
            _ => {
                kept.push(token);
                continue;
            }
        };
        let words: String = attribute.split_whitespace().collect();
        if words != "cfg(test)" && !words.starts_with("cfg(all(test,") {
            kept.push(token);
            continue;
        }
        // The item ends with a semicolon, or with the braces of its body.
        for token in rest.by_ref() {
            let body = matches!(&token, TokenTree::Group(it) if it.delimiter() == Delimiter::Brace);
            if body || is_sign(&token, ';') {
                break;
            }
        }
    }
    kept
}

/// Every token, in order; groups appear as their delimiters' inner tokens between [`Flat::Open`] and [`Flat::Close`].
pub fn flat(tokens: &[TokenTree]) -> Vec<Flat> {
    let mut all = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let inner: Vec<_> = group.stream().into_iter().collect();
                all.push(Flat::Open(group.delimiter()));
                all.extend(flat(&inner));
                all.push(Flat::Close);
            }
            TokenTree::Ident(word) => all.push(Flat::Word(word.to_string())),
            TokenTree::Punct(sign) => all.push(Flat::Sign(sign.as_char())),
            TokenTree::Literal(_) => all.push(Flat::Literal),
        }
    }
    all
}

/// A token without what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flat {
    Open(Delimiter),
    Close,
    Word(String),
    Sign(char),
    Literal,
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}
