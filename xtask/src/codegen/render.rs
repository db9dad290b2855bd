//! The merged types, enums and layouts as Rust source.

use std::collections::BTreeSet;

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::{Attribute, Item, ItemStruct, Meta};

use super::Result;
use super::merge::{Merged, MergedType};
use super::wrap::wrap;

/// C names that a header replaces by a macro: the symbol is the right one, readers look for the left one.
const MACRO_NAMES: [(&str, &str); 3] = [
    ("hipGetDeviceProperties", "hipGetDevicePropertiesR0600"),
    ("hipChooseDevice", "hipChooseDeviceR0600"),
    ("hipDeviceProp_t", "hipDeviceProp_tR0600"),
];

/// Types and constants.
pub fn types(merged: &Merged, imports: &[&str]) -> Result<String> {
    let imports = imports.iter().map(|module| format_ident!("{module}"));
    let helpers = &merged.helpers;
    let constants = &merged.constants;
    let types = merged.types.iter().map(one_type);
    let body = format(quote! {
        #![allow(missing_debug_implementations, missing_docs, non_camel_case_types, non_snake_case, non_upper_case_globals, unused_imports)]
        #![allow(unsafe_op_in_unsafe_fn, clippy::all, clippy::undocumented_unsafe_blocks)]
        #(use #imports::*;)*
        #(#helpers)*
        #(#constants)*
        #(#types)*
    })?;
    Ok(explain_default(&body))
}

fn one_type(ty: &MergedType) -> TokenStream {
    let name = format_ident!("{}", ty.name);
    let mut definition = ty.definition.clone();
    if let Item::Struct(item) = &mut definition {
        if !ty.values.is_empty() {
            without_debug(item);
        }
        let alias = alias(&item.ident).map(|name| syn::parse_quote!(#[doc(alias = #name)]));
        item.attrs.extend::<Option<Attribute>>(alias);
    }
    let note = ty
        .until
        .map(|major| format!(" The form up to ROCm {major}; newer releases have another."));
    let note = note.iter();
    let values = (!ty.values.is_empty()).then(|| {
        let values = ty.values.iter().map(|value| {
            let (ident, number) = (&value.name, literal(&value.number));
            quote!(pub const #ident: #name = #name(#number);)
        });
        quote!(impl #name { #(#values)* })
    });
    let impls = &ty.impls;
    quote! {
        #values
        #(#[doc = #note])*
        #definition
        #(#impls)*
    }
}

fn literal(number: &str) -> TokenStream {
    number.parse().unwrap_or_default()
}

/// The values of every enum, for `name()` and `Debug`. Of several names for one number the newest release's first one
/// counts.
pub fn names(merged: &Merged) -> String {
    let mut enums: Vec<&MergedType> = merged.types.iter().filter(|ty| !ty.values.is_empty()).collect();
    enums.sort_by(|a, b| a.name.cmp(&b.name));
    let mut text = String::from("use crate::types::*;\n\nrocm_loader::enum_names! {\n");
    for ty in enums {
        let mut numbers = BTreeSet::new();
        let values = ty.values.iter();
        let values = values
            .filter(|value| numbers.insert(&value.number))
            .map(|value| value.name.to_string());
        text += &braces(&ty.name, values);
    }
    text + "}\n"
}

/// Sizes, alignments and offsets as the C compiler sees them, if the crate has a structure of its own.
pub fn layout(merged: &Merged) -> Option<String> {
    let mut text = String::from("use crate::types::*;\n\nrocm_loader::layouts! {\n");
    let types = merged.types.iter();
    let mut layouts = types.filter_map(|ty| Some((&ty.name, ty.layout.as_ref()?))).peekable();
    layouts.peek()?;
    for (name, layout) in layouts {
        let mut fields: Vec<_> = layout.offsets.iter().collect();
        fields.sort_by_key(|(_, offset)| **offset);
        let fields = fields.into_iter().map(|(field, offset)| format!("{field}: {offset}"));
        text += &braces(
            &format!("{name}: {} bytes, aligned to {}", layout.size, layout.align),
            fields,
        );
    }
    Some(text + "}\n")
}

/// `head { part, part, ... }`
fn braces(head: &str, parts: impl Iterator<Item = String>) -> String {
    let parts: Vec<String> = parts.collect();
    let text = match parts.is_empty() {
        true => format!("{head} {{}}"),
        false => format!("{head} {{ {} }}", parts.join(", ")),
    };
    wrap(&text, 4)
}

/// Lets a reader find a symbol by the name that C programs use.
pub fn alias(symbol: &Ident) -> Option<&'static str> {
    let (name, _) = MACRO_NAMES.iter().find(|(_, renamed)| symbol == renamed)?;
    Some(name)
}

pub fn format(tokens: TokenStream) -> Result<String> {
    let file = syn::parse2(tokens).map_err(|error| format!("the generated code is not Rust: {error}"))?;
    Ok(prettyplease::unparse(&file))
}

/// The reason for the one unsafe block in bindgen's `Default` of a type that holds a pointer or a union; Rust's tokens
/// carry no comments, so it is put in afterwards.
fn explain_default(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut in_default = false;
    for line in source.lines() {
        let code = line.trim_start();
        if code.starts_with("fn ") || code.starts_with("pub ") {
            in_default = code.starts_with("fn default() -> Self");
        }
        if in_default && code == "unsafe {" {
            let indent = &line[..line.len() - code.len()];
            text.push_str(indent);
            text.push_str("// SAFETY: zero bytes are a value of this C type: numbers and nullable pointers only.\n");
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Enums print their names; the implementation is with them.
fn without_debug(item: &mut ItemStruct) {
    for attribute in &mut item.attrs {
        if let Meta::List(list) = &mut attribute.meta
            && list.path.is_ident("derive")
        {
            let derives: Vec<Ident> = list
                .tokens
                .clone()
                .into_iter()
                .filter_map(|token| match token {
                    TokenTree::Ident(name) if name != "Debug" => Some(name),
                    _ => None,
                })
                .collect();
            list.tokens = quote!(#(#derives),*);
        }
    }
}
