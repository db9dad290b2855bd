//! The merged functions of a library as a table of optional slots.

use std::ffi::CString;

use proc_macro2::Span;
use quote::{ToTokens, format_ident, quote};
use syn::{FnArg, LitCStr, Pat, ReturnType};

use super::Result;
use super::forms::major;
use super::merge::MergedFunction;
use super::render::{alias, format};
use super::since::Lists;
use super::tables::Table;

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

/// The table type and the list of its symbols.
pub fn render(
    table: &Table,
    functions: &[&MergedFunction],
    markers: &[Marker],
    lists: &Lists,
    imports: &[&str],
) -> Result<String> {
    let name = format_ident!("{}", table.name);
    let imports = imports.iter().map(|module| format_ident!("{module}"));
    let doc = format!(
        " The functions of {}: one slot each, empty where the library has none. A slot without a note is in every supported release.",
        table.what
    );
    let slots = functions.iter().map(|function| slot(function, lists));
    let symbols = functions
        .iter()
        .map(|function| c_string(&function.symbol()))
        .collect::<Result<Vec<_>>>()?;
    let count = functions.len();
    let forms = functions
        .iter()
        .enumerate()
        .filter(|(_, function)| function.since.is_some() || function.until.is_some())
        .map(|(at, function)| form(at, function, markers))
        .collect::<Result<Vec<_>>>()?;
    format(quote! {
        #![allow(non_snake_case, clippy::type_complexity)]
        #[allow(unused_imports)]
        use crate::types::*;
        #(#[allow(unused_imports)] use #imports::*;)*
        #[doc = #doc]
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub struct #name { #(#slots)* }
        impl #name {
            /// The symbols, in the order of the slots.
            pub(crate) const C_SYMBOLS: [&'static core::ffi::CStr; #count] = [#(#symbols),*];
            /// The slots of functions that are called differently from release to release.
            pub(crate) const FORMS: &'static [rocm_loader::table::Form] = &[#(#forms),*];
        }
    })
}

/// When a slot may be filled: the marker of its own first release is met, that of the next form is not.
fn form(at: usize, function: &MergedFunction, markers: &[Marker]) -> Result<impl ToTokens> {
    let condition = |major: u32, met: bool| {
        let marker = markers
            .iter()
            .find(|marker| marker.major == major)
            .ok_or_else(|| {
                format!(
                    "`{}` has two forms, but no symbol marks ROCm {major}",
                    function.symbol()
                )
            })?;
        let (symbol, present) = (c_string(marker.symbol)?, marker.newer == met);
        Ok::<_, Box<dyn std::error::Error>>(quote!((#symbol, #present)))
    };
    let mut conditions = Vec::new();
    if let Some(since) = function.since {
        conditions.push(condition(since, true)?);
    }
    if let Some(next) = function.next {
        conditions.push(condition(next, false)?);
    }
    let name = &function.slot;
    Ok(quote!(rocm_loader::table::Form { slot: #at, name: #name, conditions: &[#(#conditions),*] }))
}

fn c_string(name: &str) -> Result<LitCStr> {
    Ok(LitCStr::new(&CString::new(name)?, Span::call_site()))
}

fn slot(function: &MergedFunction, lists: &Lists) -> impl ToTokens {
    let ident = format_ident!("{}", function.slot);
    let signature = &function.function.sig;
    let mut names = Vec::new();
    let arguments = signature
        .inputs
        .iter()
        .filter_map(|argument| match argument {
            FnArg::Typed(argument) => Some(argument),
            FnArg::Receiver(_) => None,
        });
    let arguments: Vec<_> = arguments
        .map(|argument| {
            let Pat::Ident(name) = &*argument.pat else {
                return quote!(#argument);
            };
            names.push(name.ident.to_string());
            let (name, ty) = (&name.ident, &argument.ty);
            quote!(#name: #ty)
        })
        .collect();
    let variadic = signature.variadic.as_ref().map(|_| {
        names.push("...".into());
        quote!(, ...)
    });
    let mut doc = format!(" `{}({})`", signature.ident, names.join(", "));
    for note in notes(function, lists) {
        doc.push_str("; ");
        doc.push_str(&note);
    }
    let alias = alias(&signature.ident);
    let output = match &signature.output {
        ReturnType::Default => quote!(),
        output => quote!(#output),
    };
    quote! {
        #[doc = #doc]
        #alias
        pub #ident: Option<unsafe extern "C" fn(#(#arguments),* #variadic) #output>,
    }
}

fn notes(function: &MergedFunction, lists: &Lists) -> Vec<String> {
    let symbol = function.symbol();
    let mut notes = Vec::new();
    if let (Some(since), Some(older)) = (function.since, &function.older) {
        notes.push(format!(
            "as called from ROCm {since} on, empty before: see `{older}`"
        ));
    }
    if let Some(until) = function.until {
        notes.push(format!("as called up to ROCm {until}, empty later"));
    }
    notes.extend(lists.describe(&symbol, &function.declared));
    notes
}
