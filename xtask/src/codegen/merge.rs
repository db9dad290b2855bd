//! The declarations of several releases as one set.
//!
//! What the releases agree on is there once, as the newest spells it. Where they disagree on how a type lies in memory or how a
//! function is called, the newest form has the plain name and an older one ends in `_until_N`, N the last major release that has it:
//! AMD changes its binary interface with the major number, which is also the library's SONAME.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use proc_macro2::Ident;
use quote::{ToTokens, format_ident};
use syn::{ForeignItemFn, Item, ItemConst};

use super::Result;
use super::abi::Signature;
use super::layout::agree;
use super::parsed::{Named, Parsed, Value, rename, rename_with_text};

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
    pub layout: Option<Item>,
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

/// Merges releases, which are given oldest first.
///
/// `may_grow` are structures that only grew at their end and whose callers pass one at a time, never an array: a library which
/// knows the shorter form reads or writes just its beginning, so there is no need for two forms.
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
    for (at, parsed) in releases.iter().enumerate().rev() {
        for named in &parsed.types {
            let name = forms.emitted(at, &named.name);
            if done.insert(name.clone()) {
                let values = values(releases, &named.name, &mut merged.renumbered);
                merged.types.push(forms.render(at, named, name, values));
            }
        }
        for constant in &parsed.constants {
            if known_constants.insert(constant.ident.to_string()) {
                merged.constants.push(constant.clone());
                merged
                    .renumbered
                    .extend(renumbered_constant(releases, &constant.ident));
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

/// Which form of each type each release has.
struct Forms {
    /// For each release, the types whose form is not the newest one, with the name of that form.
    renamed: Vec<HashMap<String, Ident>>,
}

impl Forms {
    fn of(releases: &[Parsed], may_grow: &[&str]) -> Result<Self> {
        for name in may_grow {
            if !grows(releases, name) {
                return Err(format!("`{name}` does not grow: take it from the list").into());
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
        // The parts of an owner were compared as its fields. Where it has two forms, so has each part that is not the same.
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
    fn emitted(&self, at: usize, name: &str) -> String {
        self.renamed[at]
            .get(name)
            .map_or_else(|| name.to_owned(), ToString::to_string)
    }

    fn render(&self, at: usize, named: &Named, name: String, values: Vec<Value>) -> MergedType {
        let names = &self.renamed[at];
        let renamed = |item: Item| {
            let tokens = rename_with_text(item.into_token_stream(), names);
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
            layout: named
                .layout
                .as_ref()
                .map(|(_, assertions)| renamed(Item::Const(assertions.clone()))),
            values,
            name,
        }
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
fn last_major(name: &str, release: &str, next: Option<&str>) -> Result<u32> {
    let major = major(release);
    if next.is_some_and(|next| self::major(next) <= major) {
        return Err(format!(
            "`{name}` changed its form between ROCm {release} and {}: a change within a major release has no name yet",
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

fn functions(releases: &[Parsed], forms: &Forms) -> Result<Vec<MergedFunction>> {
    let names: BTreeSet<&String> = releases
        .iter()
        .flat_map(|parsed| parsed.functions.keys())
        .collect();
    let opaque = opaque(releases);
    let mut merged = Vec::new();
    for name in names {
        merged.extend(function(releases, forms, &opaque, name)?);
    }
    merged.sort_by(|a, b| a.slot.cmp(&b.slot));
    Ok(merged)
}

/// The forms of one function, newest first.
fn function(
    releases: &[Parsed],
    forms: &Forms,
    opaque: &HashSet<String>,
    name: &str,
) -> Result<Vec<MergedFunction>> {
    let mut found: Vec<MergedFunction> = Vec::new();
    let mut newest: Option<Signature> = None;
    for (at, parsed) in releases.iter().enumerate().rev() {
        let Some(declaration) = parsed.functions.get(name) else {
            continue;
        };
        let signature = Signature::of(parsed, declaration, &|ty| forms.emitted(at, ty), opaque);
        if let Some(current) = found.last_mut() {
            if newest.as_ref().is_some_and(|newer| newer.same(&signature)) {
                current.declared.insert(0, parsed.release);
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
                function: renamed_function(declaration, &forms.renamed[at])?,
                declared: vec![parsed.release],
                since: None,
                until: Some(until),
                next: since,
                older: None,
            });
        } else {
            found.push(MergedFunction {
                slot: name.to_owned(),
                function: renamed_function(declaration, &forms.renamed[at])?,
                declared: vec![parsed.release],
                since: None,
                until: None,
                next: None,
                older: None,
            });
        }
        newest = Some(signature);
    }
    Ok(found)
}

fn renamed_function(
    function: &ForeignItemFn,
    names: &HashMap<String, Ident>,
) -> Result<ForeignItemFn> {
    Ok(syn::parse2(rename(function.to_token_stream(), names))?)
}

/// An enum's values of all releases: the newest release's in its order, then what only older ones have.
fn values(releases: &[Parsed], name: &str, renumbered: &mut Vec<Renumbered>) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    let mut numbers: BTreeMap<String, Vec<(&'static str, String)>> = BTreeMap::new();
    for parsed in releases.iter().rev() {
        for value in parsed
            .named(name)
            .into_iter()
            .flat_map(|named| &named.values)
        {
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

/// Between the names of an owner and of a structure inside it that has no name of its own.
const PART: &str = "__bindgen_ty_";

/// Whether bindgen made the name for a structure that has none.
fn is_part(name: &str) -> bool {
    name.contains(PART)
}

fn grows(releases: &[Parsed], name: &str) -> bool {
    let sizes: Vec<usize> = releases
        .iter()
        .filter_map(|parsed| Some(parsed.named(name)?.layout.as_ref()?.0.size))
        .collect();
    sizes.is_sorted() && sizes.first() != sizes.last()
}

/// What some release declares without its fields.
fn opaque(releases: &[Parsed]) -> HashSet<String> {
    releases
        .iter()
        .flat_map(|parsed| &parsed.types)
        .filter(|named| matches!(&named.layout, Some((layout, _)) if layout.size == 0))
        .map(|named| named.name.clone())
        .collect()
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

fn identifiers(tokens: proc_macro2::TokenStream, found: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            proc_macro2::TokenTree::Ident(ident) => {
                found.insert(ident.to_string());
            }
            proc_macro2::TokenTree::Group(group) => identifiers(group.stream(), found),
            _ => {}
        }
    }
}
