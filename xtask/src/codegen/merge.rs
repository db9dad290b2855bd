//! The declarations of several releases as one set.
//!
//! What the releases agree on is there once, as the newest spells it. Where they disagree on how a type lies in memory
//! or how a function is called, the newest form has the plain name and an older one ends in `_until_N`, N the last
//! major release that has it: AMD changes its binary interface with the major number, which is also the library's
//! SONAME.
//!
//! Declarations that were rebuilt from bindings have lost AMD's names of types. So what they say the same way as real
//! headers do is spelled as in the newest of these.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{ForeignItemFn, Item, ItemConst};

use super::Result;
use super::abi::Signature;
use super::forms::{Forms, PART, identifiers, is_part, last_major, major, opaque};
use super::layout::{Layout, leaves};
use super::parsed::{Named, Parsed, Value, rename};

#[cfg(test)]
mod tests;

/// One library's declarations of all supported releases.
pub struct Merged {
    pub types: Vec<MergedType>,
    pub constants: Vec<ItemConst>,
    pub functions: Vec<MergedFunction>,
    pub helpers: Vec<Item>,
    pub renumbered: Vec<Renumbered>,
}

/// A type in one form.
pub struct MergedType {
    pub name: String,
    /// Of an older form, the last major release that has it.
    pub until: Option<u32>,
    pub definition: Item,
    pub impls: Vec<Item>,
    pub layout: Option<Layout>,
    pub values: Vec<Value>,
}

/// A function in one form: one slot.
pub struct MergedFunction {
    /// The slot's name: that of the symbol, or with `_until_N`.
    pub slot: String,
    pub function: ForeignItemFn,
    /// The releases whose headers declare this form, oldest first.
    pub declared: Vec<&'static str>,
    /// The first major release of this form, if an older one has another.
    pub since: Option<u32>,
    /// The last major release of this form, if a newer one has another.
    pub until: Option<u32>,
    /// The first major release that has the next form.
    pub next: Option<u32>,
    /// The slot of the form before this one.
    pub older: Option<String>,
}

/// A value whose number changed.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Renumbered {
    /// Empty for a plain constant.
    pub owner: String,
    pub name: String,
    /// The number in each release that has the value, oldest first.
    pub numbers: Vec<(&'static str, String)>,
}

impl MergedFunction {
    pub fn symbol(&self) -> String {
        self.function.sig.ident.to_string()
    }
}

/// Merges releases, oldest first.
///
/// `may_grow` are structures that only grew at their end and whose callers pass one at a time, never an array: a
/// library which knows the shorter form reads or writes just its beginning, so there is no need for two forms.
pub fn merge(releases: &[Parsed], may_grow: &[&str]) -> Result<Merged> {
    let forms = Forms::of(releases, may_grow)?;
    let mut merged = Merged {
        types: Vec::new(),
        constants: Vec::new(),
        functions: functions(releases, &forms)?,
        helpers: Vec::new(),
        renumbered: Vec::new(),
    };
    let mut done = HashSet::new();
    let mut known_constants = HashSet::new();
    for (at, parsed) in best_spelled_first(releases) {
        for named in &parsed.types {
            let name = forms.emitted(at, &named.name);
            if done.insert(name.clone()) {
                let values = values(releases, &named.name, &mut merged.renumbered);
                let at = speller(releases, &forms, at, &named.name);
                let named = releases[at].named(&named.name).unwrap_or(named);
                merged.types.push(merged_type(forms.renamed(at), named, name, values));
            }
        }
        for constant in &parsed.constants {
            if known_constants.insert(constant.ident.to_string()) {
                let newest = releases.iter().rev().find_map(|parsed| {
                    let mut constants = parsed.constants.iter();
                    constants.find(|other| other.ident == constant.ident)
                });
                merged.constants.push(newest.unwrap_or(constant).clone());
                merged.renumbered.extend(renumbered_constant(releases, &constant.ident));
            }
        }
        if merged.helpers.is_empty() {
            merged.helpers.clone_from(&parsed.helpers);
        }
    }
    drop_unused_parts(&mut merged.types);
    merged.renumbered.sort();
    Ok(merged)
}

/// The releases that were read from real headers, newest first, then those that were rebuilt.
fn best_spelled_first(releases: &[Parsed]) -> impl Iterator<Item = (usize, &Parsed)> {
    let newest_first = || releases.iter().enumerate().rev();
    newest_first()
        .filter(|(_, parsed)| !parsed.rebuilt)
        .chain(newest_first().filter(|(_, parsed)| parsed.rebuilt))
}

/// Which release spells the form of a type that release `at` has: the newest one, or if that was rebuilt and has the
/// same fields as real headers, the newest of these. A part is spelled by the release that spells its owner.
fn speller(releases: &[Parsed], forms: &Forms, at: usize, name: &str) -> usize {
    let owner = name.split(PART).next().unwrap_or(name);
    let form = forms.emitted(at, owner);
    let mut of_this_form = (0..releases.len())
        .rev()
        .filter(|at| releases[*at].named(owner).is_some() && forms.emitted(*at, owner) == form);
    let Some(newest) = of_this_form.next() else {
        return at;
    };
    let real = of_this_form.find(|at| !releases[*at].rebuilt);
    match real.filter(|_| releases[newest].rebuilt) {
        Some(real) if leaves(&releases[real], owner) == leaves(&releases[newest], owner) => real,
        _ => newest,
    }
}

/// A type in the form that this release has; `names` are the release's older forms.
fn merged_type(names: &HashMap<String, Ident>, named: &Named, name: String, values: Vec<Value>) -> MergedType {
    let renamed = |item: Item| {
        let tokens = rename(item.into_token_stream(), names);
        syn::parse2(tokens).unwrap_or(Item::Verbatim(Default::default()))
    };
    let until = (name != named.name)
        .then(|| name.rsplit('_').next()?.parse().ok())
        .flatten();
    MergedType {
        until,
        definition: renamed(named.definition.clone()),
        impls: named
            .impls
            .iter()
            .map(|block| renamed(Item::Impl(block.clone())))
            .collect(),
        layout: named.layout.clone(),
        values,
        name,
    }
}

fn functions(releases: &[Parsed], forms: &Forms) -> Result<Vec<MergedFunction>> {
    let names: BTreeSet<&String> = releases.iter().flat_map(|parsed| parsed.functions.keys()).collect();
    let opaque = opaque(releases);
    let mut merged = Vec::new();
    for name in names {
        merged.extend(function(releases, forms, &opaque, name)?);
    }
    merged.sort_by(|a, b| a.slot.cmp(&b.slot));
    Ok(merged)
}

/// The forms of one function, newest first.
fn function(releases: &[Parsed], forms: &Forms, opaque: &HashSet<String>, name: &str) -> Result<Vec<MergedFunction>> {
    let mut found: Vec<MergedFunction> = Vec::new();
    let mut newest: Option<Signature> = None;
    // Whether the last form is spelled as bindings have it.
    let mut rebuilt = false;
    for (at, parsed) in releases.iter().enumerate().rev() {
        let Some(declaration) = parsed.functions.get(name) else {
            continue;
        };
        let signature = Signature::of(parsed, declaration, &|ty| forms.emitted(at, ty), opaque);
        if let Some(current) = found.last_mut() {
            if newest.as_ref().is_some_and(|newer| newer.same(&signature)) {
                current.declared.insert(0, parsed.release);
                if rebuilt && !parsed.rebuilt {
                    current.function = renamed_function(declaration, forms.renamed(at))?;
                    rebuilt = false;
                }
                continue;
            }
            let next = current.declared.first().copied();
            let until = last_major(name, parsed.release, next)?;
            let since = next.map(major);
            let slot = format!("{name}_until_{until}");
            current.since = since;
            current.older = Some(slot.clone());
            found.push(MergedFunction {
                slot,
                function: renamed_function(declaration, forms.renamed(at))?,
                declared: vec![parsed.release],
                since: None,
                until: Some(until),
                next: since,
                older: None,
            });
        } else {
            found.push(MergedFunction {
                slot: name.to_owned(),
                function: renamed_function(declaration, forms.renamed(at))?,
                declared: vec![parsed.release],
                since: None,
                until: None,
                next: None,
                older: None,
            });
        }
        newest = Some(signature);
        rebuilt = parsed.rebuilt;
    }
    Ok(found)
}

fn renamed_function(function: &ForeignItemFn, names: &HashMap<String, Ident>) -> Result<ForeignItemFn> {
    Ok(syn::parse2(rename(function.to_token_stream(), names))?)
}

/// An enum's values of all releases: the newest release's in its order, then what only older ones have.
fn values(releases: &[Parsed], name: &str, renumbered: &mut Vec<Renumbered>) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    let mut numbers: BTreeMap<String, Vec<(&'static str, String)>> = BTreeMap::new();
    for parsed in releases.iter().rev() {
        for value in parsed.named(name).into_iter().flat_map(|named| &named.values) {
            if !merged.iter().any(|known| known.name == value.name) {
                merged.push(value.clone());
            }
            numbers
                .entry(value.name.to_string())
                .or_default()
                .insert(0, (parsed.release, value.number.clone()));
        }
    }
    renumbered.extend(
        numbers
            .into_iter()
            .filter(|(_, numbers)| differ(numbers))
            .map(|(value, numbers)| Renumbered {
                owner: name.to_owned(),
                name: value,
                numbers,
            }),
    );
    merged
}

fn renumbered_constant(releases: &[Parsed], name: &Ident) -> Option<Renumbered> {
    let numbers: Vec<_> = releases
        .iter()
        .filter_map(|parsed| {
            let constant = parsed.constants.iter().find(|other| other.ident == *name)?;
            Some((parsed.release, constant.expr.to_token_stream().to_string()))
        })
        .collect();
    differ(&numbers).then(|| Renumbered {
        owner: String::new(),
        name: name.to_string(),
        numbers,
    })
}

fn differ(numbers: &[(&'static str, String)]) -> bool {
    numbers.windows(2).any(|pair| pair[0].1 != pair[1].1)
}

/// Removes structures without a name of their own whose owner was taken from another release.
fn drop_unused_parts(types: &mut Vec<MergedType>) {
    loop {
        let mut used = BTreeSet::new();
        for ty in types.iter() {
            let mut mentioned = BTreeSet::new();
            identifiers(ty.definition.to_token_stream(), &mut mentioned);
            mentioned.remove(&ty.name);
            used.extend(mentioned);
        }
        let before = types.len();
        types.retain(|ty| !is_part(&ty.name) || used.contains(&ty.name));
        if types.len() == before {
            return;
        }
    }
}
