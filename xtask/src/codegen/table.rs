//! bindgen's output, taken apart: types, layout assertions, and the foreign functions as tables of optional slots.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::CString;

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{
    Attribute, File, FnArg, ForeignItem, ForeignItemFn, ImplItem, Item, ItemConst, ItemImpl,
    ItemStruct, LitCStr, Meta, Pat, ReturnType, UseTree,
};

use super::Result;

/// One table of function pointers.
pub struct Table {
    /// The file it is written to.
    pub file: &'static str,
    /// The Rust type.
    pub name: &'static str,
    /// A function belongs to the first table of its crate that lists a prefix of its name.
    pub prefixes: &'static [&'static str],
    /// The library, as a reader calls it.
    pub what: &'static str,
}

/// C names that a header replaces by a macro: the symbol is the right one, readers look for the left one.
const MACRO_NAMES: [(&str, &str); 3] = [
    ("hipGetDeviceProperties", "hipGetDevicePropertiesR0600"),
    ("hipChooseDevice", "hipChooseDeviceR0600"),
    ("hipDeviceProp_t", "hipDeviceProp_tR0600"),
];

/// The parts of one crate's bindings.
pub struct Split {
    types: Vec<Item>,
    layout: Vec<Item>,
    pub tables: Vec<(&'static Table, Vec<ForeignItemFn>)>,
}

impl Split {
    pub fn new(source: &str, extended: &[(&str, &str)], tables: &'static [Table]) -> Result<Self> {
        let file = typedef_names(syn::parse_file(source)?)?;
        let mut split = Self {
            types: Vec::new(),
            layout: Vec::new(),
            tables: tables.iter().map(|table| (table, Vec::new())).collect(),
        };
        for item in file.items {
            match item {
                Item::ForeignMod(block) => {
                    for item in block.items {
                        if let ForeignItem::Fn(function) = item {
                            split.add_function(function)?;
                        }
                    }
                }
                Item::Const(constant) if constant.ident == "_" => {
                    split.layout.push(Item::Const(constant))
                }
                Item::Const(constant) => split.types.push(enum_value(constant, extended)),
                other => split.types.push(other),
            }
        }
        let enums = split.enums();
        for item in &mut split.types {
            let Item::Struct(item) = item else { continue };
            if enums.contains_key(&item.ident.to_string()) {
                without_debug(item);
            }
            item.attrs.extend(alias(&item.ident));
        }
        for (_, functions) in &mut split.tables {
            functions.sort_by_key(|function| function.sig.ident.to_string());
            functions.dedup_by_key(|function| function.sig.ident.to_string());
        }
        Ok(split)
    }

    fn add_function(&mut self, function: ForeignItemFn) -> Result<()> {
        let name = function.sig.ident.to_string();
        let table = self
            .tables
            .iter_mut()
            .find(|(table, _)| table.prefixes.iter().any(|prefix| name.starts_with(prefix)))
            .ok_or_else(|| format!("`{name}` belongs to no table"))?;
        table.1.push(function);
        Ok(())
    }

    /// Types and constants.
    pub fn types(&self, imports: &[&str]) -> Result<String> {
        let items = &self.types;
        let imports = imports.iter().map(|module| format_ident!("{module}"));
        let body = format(quote! {
            #![allow(missing_docs, non_camel_case_types, non_snake_case, non_upper_case_globals, unused_imports)]
            #![allow(unsafe_op_in_unsafe_fn, clippy::all, clippy::undocumented_unsafe_blocks)]
            #(use #imports::*;)*
            #(#items)*
        })?;
        Ok(explain_default(&body))
    }

    /// `name()` and `Debug` of every enum.
    pub fn names(&self) -> Result<String> {
        let impls = self.enums().into_iter().map(|(ty, constants)| {
            let name = &ty;
            let ty = format_ident!("{ty}");
            let arms = constants.iter().map(|name| {
                let constant = format_ident!("{name}");
                quote!(Self::#constant => #name,)
            });
            quote! {
                impl #ty {
                    /// The C name of this value; `None` for a value that the headers of this release do not know.
                    pub const fn name(self) -> Option<&'static str> {
                        Some(match self { #(#arms)* _ => return None })
                    }
                }
                impl core::fmt::Debug for #ty {
                    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                        rocm_loader::table::debug_enum(f, #name, self.name(), &self.0)
                    }
                }
            }
        });
        format(quote! {
            use crate::types::*;
            #(#impls)*
        })
    }

    /// The enums with the names of their values; of several names for one value the first.
    fn enums(&self) -> BTreeMap<String, Vec<String>> {
        let mut enums: BTreeMap<String, (BTreeSet<String>, Vec<String>)> = BTreeMap::new();
        for item in &self.types {
            let Item::Impl(ItemImpl {
                self_ty,
                items,
                trait_: None,
                ..
            }) = item
            else {
                continue;
            };
            let ty = self_ty.to_token_stream().to_string();
            for item in items {
                let ImplItem::Const(constant) = item else {
                    continue;
                };
                let syn::Expr::Call(call) = &constant.expr else {
                    continue;
                };
                let Some(value) = call.args.first() else {
                    continue;
                };
                let (values, names) = enums.entry(ty.clone()).or_default();
                if values.insert(value.to_token_stream().to_string()) {
                    names.push(constant.ident.to_string());
                }
            }
        }
        enums
            .into_iter()
            .map(|(ty, (_, names))| (ty, names))
            .collect()
    }

    /// Sizes, alignments and offsets as the C compiler sees them, if the crate has a structure of its own.
    pub fn layout(&self) -> Result<Option<String>> {
        let items = &self.layout;
        let file = quote! {
            #![allow(clippy::all)]
            use crate::types::*;
            #(#items)*
        };
        (!items.is_empty()).then(|| format(file)).transpose()
    }
}

/// The reason for the one unsafe block in bindgen's `Default` of a type that holds a pointer or a union; Rust's tokens carry
/// no comments, so it is put in afterwards.
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

/// A C enum with a tag and a typedef (`typedef enum x_ { … } x;`) becomes one type under the typedef's name; another name
/// for a type of a crate below becomes a type alias.
fn typedef_names(mut file: File) -> Result<File> {
    let mut tags = HashMap::new();
    let mut aliases = Vec::new();
    file.items.retain(|item| {
        let Some((old, new)) = renaming_use(item) else {
            return true;
        };
        if old == format_ident!("{new}_") {
            tags.insert(old.to_string(), new);
        } else {
            aliases.push(syn::parse_quote!(pub type #new = #old;));
        }
        false
    });
    file.items.extend(aliases);
    Ok(syn::parse2(rename(file.into_token_stream(), &tags))?)
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

/// A plain number that an extension adds to an enum becomes a constant of that enum.
fn enum_value(constant: ItemConst, extended: &[(&str, &str)]) -> Item {
    let ident = &constant.ident;
    let name = ident.to_string();
    match extended.iter().find(|(prefix, _)| name.starts_with(prefix)) {
        Some((_, owner)) => {
            let (owner, value) = (format_ident!("{owner}"), &constant.expr);
            syn::parse_quote!(impl #owner { pub const #ident: #owner = #owner(#value); })
        }
        None => Item::Const(constant),
    }
}

/// The names of `pub use self::old as new;`.
fn renaming_use(item: &Item) -> Option<(Ident, Ident)> {
    let Item::Use(item) = item else { return None };
    let UseTree::Path(path) = &item.tree else {
        return None;
    };
    let UseTree::Rename(rename) = &*path.tree else {
        return None;
    };
    (path.ident == "self").then(|| (rename.ident.clone(), rename.rename.clone()))
}

fn rename(tokens: TokenStream, names: &HashMap<String, Ident>) -> TokenStream {
    let map = |token| match token {
        TokenTree::Ident(ident) => {
            TokenTree::Ident(names.get(&ident.to_string()).cloned().unwrap_or(ident))
        }
        TokenTree::Group(group) => {
            TokenTree::Group(Group::new(group.delimiter(), rename(group.stream(), names)))
        }
        other => other,
    };
    tokens.into_iter().map(map).collect()
}

/// The table type and the list of its symbols.
pub fn render(
    table: &Table,
    functions: &[ForeignItemFn],
    release: &str,
    imports: &[&str],
) -> Result<String> {
    let name = format_ident!("{}", table.name);
    let imports = imports.iter().map(|module| format_ident!("{module}"));
    let doc = format!(
        " The functions of {}: one slot each, empty where the library has none. Declared by the headers of ROCm {release}.",
        table.what
    );
    let slots = functions.iter().map(slot);
    let symbols = functions
        .iter()
        .map(|function| c_string(&function.sig.ident))
        .collect::<Result<Vec<_>>>()?;
    let count = functions.len();
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
        }
    })
}

fn c_string(name: &Ident) -> Result<LitCStr> {
    Ok(LitCStr::new(
        &CString::new(name.to_string())?,
        Span::call_site(),
    ))
}

/// Lets a reader find a symbol by the name that C programs use.
fn alias(symbol: &Ident) -> Option<Attribute> {
    let (name, _) = MACRO_NAMES.iter().find(|(_, renamed)| symbol == renamed)?;
    Some(syn::parse_quote!(#[doc(alias = #name)]))
}

fn slot(function: &ForeignItemFn) -> impl ToTokens {
    let ident = &function.sig.ident;
    let mut names = Vec::new();
    let arguments = function
        .sig
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
    let variadic = function.sig.variadic.as_ref().map(|_| {
        names.push("...".into());
        quote!(, ...)
    });
    let doc = format!(" `{ident}({})`", names.join(", "));
    let alias = alias(ident);
    let output = match &function.sig.output {
        ReturnType::Default => quote!(),
        output => quote!(#output),
    };
    quote! {
        #[doc = #doc]
        #alias
        pub #ident: Option<unsafe extern "C" fn(#(#arguments),* #variadic) #output>,
    }
}

/// Source text of generated code.
pub fn format(tokens: TokenStream) -> Result<String> {
    let file =
        syn::parse2(tokens).map_err(|error| format!("the generated code is no Rust: {error}"))?;
    Ok(prettyplease::unparse(&file))
}
