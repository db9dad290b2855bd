//! The merged functions of a library as one list of declarations, which `rocm_loader` makes a table of slots of.
//!
//! The list is a macro that hands its declarations to another one; `rocm_loader::function_table!` documents their form.
//! It also marks the functions of one release, the one that the host platform is a model of.

use quote::quote;
use syn::{ReturnType, Type};

use super::Result;
use super::forms::major;
use super::merge::MergedFunction;
use super::render::{alias, format};
use super::since::Lists;
use super::tables::Table;
use super::wrap::wrap;

/// A symbol that distinguishes the releases from `major` on from older ones, however the library was found.
pub struct Marker {
    pub major: u32,
    pub symbol: &'static str,
    /// Whether the newer releases have it, or the older ones.
    pub newer: bool,
}

impl Marker {
    /// Fails unless every symbol list agrees with the marker.
    pub fn check(&self, lists: &Lists) -> Result<()> {
        for (release, list) in &lists.0 {
            let expected = (major(release) >= self.major) == self.newer;
            if list.functions.contains_key(self.symbol) != expected {
                return Err(format!(
                    "`{}` does not mark ROCm {}: the library of {release} {} it",
                    self.symbol,
                    self.major,
                    if expected { "lacks" } else { "has" }
                )
                .into());
            }
        }
        Ok(())
    }
}

/// The list as a macro: `functions.rs` has `for_each_function!`.
pub fn render(table: &Table, functions: &[&MergedFunction], markers: &[Marker], lists: &Lists) -> Result<String> {
    let prefix = table.file.trim_end_matches("functions.rs");
    let model = table.model;
    let (ty, list) = (table.name, format!("for_each_{prefix}function"));
    let mut text = format!(
        "/// Hands each function that ROCm {model} declares for [`{ty}`](crate::{ty}) to the macro `$with`: its symbol and\n\
         /// signature there, and after `=` its slot.\n\
         ///\n\
         /// The types are this crate's, and the caller must have them in scope. What Rust cannot define is left out:\n\
         /// functions with a variable number of arguments and functions that never return.\n\
         ///\n\
         /// The second arm is for the macros of `rocm_loader`, which read the whole list.\n\
         #[macro_export]\n\
         macro_rules! {list} {{\n    ($with:ident) => {{\n        \
         $crate::{list}! {{ $crate::model_functions, $with; }}\n    }};\n    \
         ($($with:ident)::+, $($first:tt)*) => {{\n        $($with)::+! {{ $($first)*\n",
    );
    for function in functions {
        if let Some(name) = alias(&function.function.sig.ident) {
            text += &format!("            #[doc(alias = {name:?})]\n");
        }
        let keywords = match is_of_the_model(function, model) {
            true => "pub",
            false => "pub other",
        };
        let mut declaration = signature(function)?;
        if let Some(note) = note(function, lists) {
            declaration += &format!(", {note:?}");
        }
        text += &match form(function, markers)? {
            None => wrap(&format!("{keywords} {declaration};"), 12),
            Some(form) => wrap(&format!("{keywords} {form}"), 12) + &wrap(&format!("{declaration};"), 16),
        };
    }
    text.push_str("        }\n    };\n}\n");
    Ok(text)
}

/// Of a function with several forms, its symbol and when this slot may be filled: the marker of its own first release
/// is met, that of the next form is not.
fn form(function: &MergedFunction, markers: &[Marker]) -> Result<Option<String>> {
    if function.since.is_none() && function.until.is_none() {
        return Ok(None);
    }
    let symbol = function.symbol();
    let own = function.since.map(|major| (major, true));
    let next = function.next.map(|major| (major, false));
    let mut conditions = Vec::new();
    for (major, met) in own.into_iter().chain(next) {
        let marker = markers.iter().find(|marker| marker.major == major);
        let marker = marker.ok_or_else(|| format!("`{symbol}` has two forms, but no symbol marks ROCm {major}"))?;
        conditions.push(format!("(c{:?}, {})", marker.symbol, marker.newer == met));
    }
    Ok(Some(format!("form {symbol} if [{}]", conditions.join(", "))))
}

/// The declaration in one line, under the slot's name.
fn signature(function: &MergedFunction) -> Result<String> {
    let mut signature = function.function.sig.clone();
    signature.ident = quote::format_ident!("{}", function.slot);
    if let ReturnType::Default = signature.output {
        signature.output = syn::parse_quote!(-> ());
    }
    let lines = format(quote!(unsafe extern "C" { #signature; }))?;
    let mut line: String = lines
        .lines()
        // Left out: the block's first and last line.
        .filter(|line| line.starts_with(char::is_whitespace))
        .flat_map(|line| [line.trim(), " "])
        .collect();
    for (broken, joined) in [("( ", "("), (", )", ")"), ("< ", "<"), (", >", ">")] {
        line = line.replace(broken, joined);
    }
    Ok(line.trim_end().trim_end_matches(';').to_owned())
}

fn is_of_the_model(function: &MergedFunction, model: &str) -> bool {
    let signature = &function.function.sig;
    let returns = !matches!(&signature.output, ReturnType::Type(_, ty) if matches!(**ty, Type::Never(_)));
    function.declared.contains(&model) && returns && signature.variadic.is_none()
}

fn note(function: &MergedFunction, lists: &Lists) -> Option<String> {
    let mut notes = Vec::new();
    if let (Some(since), Some(older)) = (function.since, &function.older) {
        notes.push(format!("as called from ROCm {since} on, empty before: see `{older}`"));
    }
    if let Some(until) = function.until {
        notes.push(format!("as called up to ROCm {until}, empty later"));
    }
    notes.extend(lists.describe(&function.symbol(), &function.declared));
    (!notes.is_empty()).then(|| notes.join("; "))
}
