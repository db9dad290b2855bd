//! Which form of each type each release has.

use std::collections::{BTreeSet, HashMap, HashSet};

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident};

use super::Result;
use super::layout::agree;
use super::parsed::Parsed;

/// Which form of each type each release has.
pub struct Forms {
    /// For each release, the types whose form is not the newest one, with the name of that form.
    renamed: Vec<HashMap<String, Ident>>,
}

impl Forms {
    pub fn of(releases: &[Parsed], may_grow: &[&str]) -> Result<Self> {
        for name in may_grow {
            if !grows(releases, name) {
                return Err(format!("`{name}` does not grow; remove it from the list").into());
            }
        }
        // `apart[i]`: the types that release i and the next one that has them disagree on.
        let mut apart: Vec<HashSet<String>> = vec![HashSet::new(); releases.len()];
        for (at, parsed) in releases.iter().enumerate() {
            for named in &parsed.types {
                let Some((_, newer)) = next_with(releases, at, &named.name) else {
                    continue;
                };
                let may_grow = may_grow.contains(&named.name.as_str());
                if !is_part(&named.name) && !agree(parsed, newer, &named.name, may_grow) {
                    apart[at].insert(named.name.clone());
                }
            }
        }
        // What holds or points to a type of two forms has two forms itself.
        loop {
            let mut more = Vec::new();
            for (at, parsed) in releases.iter().enumerate() {
                for named in &parsed.types {
                    if is_part(&named.name)
                        || apart[at].contains(&named.name)
                        || next_with(releases, at, &named.name).is_none()
                    {
                        continue;
                    }
                    let mut mentioned = BTreeSet::new();
                    identifiers(named.definition.to_token_stream(), &mut mentioned);
                    if mentioned.iter().any(|name| apart[at].contains(name)) {
                        more.push((at, named.name.clone()));
                    }
                }
            }
            if more.is_empty() {
                break;
            }
            for (at, name) in more {
                apart[at].insert(name);
            }
        }
        // The parts of an owner were compared as its fields. Where it has two forms, so has each part that is not the
        // same.
        for (at, parsed) in releases.iter().enumerate() {
            for named in parsed.types.iter().filter(|named| is_part(&named.name)) {
                let owner = named.name.split(PART).next().unwrap_or_default();
                let Some((_, newer)) = next_with(releases, at, &named.name) else {
                    continue;
                };
                let text = |parsed: &Parsed| {
                    let named = parsed.named(&named.name)?;
                    Some(named.definition.to_token_stream().to_string())
                };
                if apart[at].contains(owner) && text(parsed) != text(newer) {
                    apart[at].insert(named.name.clone());
                }
            }
        }
        let mut renamed: Vec<HashMap<String, Ident>> = vec![HashMap::new(); releases.len()];
        for name in apart.iter().flatten() {
            // Walks from the newest release to the oldest; the suffix changes where two disagree.
            let mut suffix = None;
            for at in (0..releases.len()).rev() {
                if releases[at].named(name).is_none() {
                    continue;
                }
                if apart[at].contains(name) {
                    let next = next_with(releases, at, name).map(|(_, newer)| newer.release);
                    suffix = Some(last_major(name, releases[at].release, next)?);
                }
                if let Some(major) = suffix {
                    renamed[at].insert(name.clone(), format_ident!("{name}_until_{major}"));
                }
            }
        }
        Ok(Self { renamed })
    }

    /// The name in the bindings of the form that this release has.
    pub fn emitted(&self, at: usize, name: &str) -> String {
        self.renamed[at]
            .get(name)
            .map_or_else(|| name.to_owned(), ToString::to_string)
    }

    /// The older forms of this release, with the names that they have in the bindings.
    pub fn renamed(&self, at: usize) -> &HashMap<String, Ident> {
        &self.renamed[at]
    }
}

/// The next newer release that has the type.
fn next_with<'a>(releases: &'a [Parsed], at: usize, name: &str) -> Option<(usize, &'a Parsed)> {
    releases
        .iter()
        .enumerate()
        .skip(at + 1)
        .find(|(_, parsed)| parsed.named(name).is_some())
}

/// The major number of a release, if the next release with another form is of a newer major.
pub fn last_major(name: &str, release: &str, next: Option<&str>) -> Result<u32> {
    let major = major(release);
    if next.is_some_and(|next| self::major(next) <= major) {
        return Err(format!(
            "`{name}` changed its signature between ROCm {release} and {}; changes within a major release are not supported yet",
            next.unwrap_or_default()
        )
        .into());
    }
    Ok(major)
}

pub fn major(release: &str) -> u32 {
    release
        .split('.')
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// Between the names of an owner and of a structure inside it that has no name of its own.
pub const PART: &str = "__bindgen_ty_";

/// Whether bindgen made the name for a structure that has none.
pub fn is_part(name: &str) -> bool {
    name.contains(PART)
}

fn grows(releases: &[Parsed], name: &str) -> bool {
    let sizes: Vec<usize> = releases
        .iter()
        .filter_map(|parsed| Some(parsed.named(name)?.layout.as_ref()?.size))
        .collect();
    sizes.is_sorted() && sizes.first() != sizes.last()
}

/// What some release declares without its fields.
pub fn opaque(releases: &[Parsed]) -> HashSet<String> {
    releases
        .iter()
        .flat_map(|parsed| &parsed.types)
        .filter(|named| matches!(&named.layout, Some(layout) if layout.size == 0))
        .map(|named| named.name.clone())
        .collect()
}

/// Every identifier among the tokens.
pub fn identifiers(tokens: TokenStream, found: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                found.insert(ident.to_string());
            }
            TokenTree::Group(group) => identifiers(group.stream(), found),
            _ => {}
        }
    }
}
