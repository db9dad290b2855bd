//! bindgen's output for one release, taken apart by name.

use std::collections::{BTreeMap, HashMap};

use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident};
use syn::{Expr, File, ForeignItem, ForeignItemFn, ImplItem, Item, ItemConst, ItemImpl, Type, UseTree};

use super::Result;
use super::layout::Layout;

/// The declarations of one library in one release.
pub struct Parsed {
    /// The release of the package that the headers come from.
    pub release: &'static str,
    /// Whether the headers were made again from bindings, which have other names for some types.
    pub rebuilt: bool,
    /// In the order of the headers.
    pub types: Vec<Named>,
    /// Numbers that belong to no enum.
    pub constants: Vec<ItemConst>,
    pub functions: BTreeMap<String, ForeignItemFn>,
    /// What bindgen needs for bit fields and open arrays; the same in every release.
    pub helpers: Vec<Item>,
    index: HashMap<String, usize>,
}

/// A type and what belongs to it.
pub struct Named {
    pub name: String,
    pub definition: Item,
    /// `impl` blocks.
    pub impls: Vec<ItemImpl>,
    /// Sizes and offsets; absent for enums and aliases.
    pub layout: Option<Layout>,
    /// The values of an enum, in their order.
    pub values: Vec<Value>,
}

/// One value of an enum.
#[derive(Clone)]
pub struct Value {
    pub name: Ident,
    pub number: String,
}

impl Named {
    pub fn is_enum(&self) -> bool {
        matches!(&self.definition, Item::Struct(item) if matches!(item.fields, syn::Fields::Unnamed(_)))
    }
}

impl Parsed {
    /// `extended` are enums that get further values as plain numbers: prefix of their names, the enum. `renamed` are
    /// types whose older name means another type today.
    pub fn new(
        source: &str,
        release: &'static str,
        extended: &[(&str, &str)],
        renamed: &[(&str, &str)],
    ) -> Result<Self> {
        let mut file = typedef_names(syn::parse_file(source)?)?;
        let renamed = renamed
            .iter()
            .map(|(old, new)| ((*old).to_owned(), format_ident!("{new}")))
            .collect();
        file = syn::parse2(rename_with_text(file.into_token_stream(), &renamed))?;
        let mut parsed = Self {
            release,
            rebuilt: false,
            types: Vec::new(),
            constants: Vec::new(),
            functions: BTreeMap::new(),
            helpers: Vec::new(),
            index: HashMap::new(),
        };
        let (mut blocks, mut asserted) = (Vec::new(), Vec::new());
        let mut numbers: HashMap<String, Type> = HashMap::new();
        for item in file.items {
            match item {
                Item::ForeignMod(block) => parsed.add_functions(block.items),
                Item::Type(item) if is_unnamed_enum(&item.ident) => {
                    numbers.insert(item.ident.to_string(), *item.ty);
                }
                Item::Impl(block) => blocks.push(block),
                Item::Const(item) if item.ident == "_" => asserted.push(item),
                Item::Const(item) => parsed.constants.push(item),
                item => match name_of(&item) {
                    Some(name) if name.starts_with("__Bindgen") || name.starts_with("__Incomp") => {
                        parsed.helpers.push(item);
                    }
                    Some(name) => parsed.define(name, item),
                    None => return Err("the parser returned an item of an unknown kind".into()),
                },
            }
        }
        for constant in &mut parsed.constants {
            if let Some(ty) = numbers.get(&constant.ty.to_token_stream().to_string()) {
                *constant.ty = ty.clone();
            }
        }
        for block in blocks {
            parsed.add_impl(block);
        }
        for item in asserted {
            let (name, layout) = Layout::read(&item).ok_or("an assertion has an unknown form")?;
            let owner = parsed.named_mut(&name);
            owner.ok_or_else(|| format!("`{name}` has only a layout"))?.layout = Some(layout);
        }
        parsed.extend_enums(extended);
        Ok(parsed)
    }

    /// Takes these values out of their enums.
    pub fn forget_values(&mut self, names: &[&str]) {
        let kept = |ident: &Ident| !names.iter().any(|name| ident == name);
        for named in &mut self.types {
            named.values.retain(|value| kept(&value.name));
            for block in &mut named.impls {
                block
                    .items
                    .retain(|item| !matches!(item, ImplItem::Const(constant) if !kept(&constant.ident)));
            }
        }
    }

    pub fn named(&self, name: &str) -> Option<&Named> {
        self.index.get(name).map(|at| &self.types[*at])
    }

    fn named_mut(&mut self, name: &str) -> Option<&mut Named> {
        self.index.get(name).map(|at| &mut self.types[*at])
    }

    fn define(&mut self, name: String, definition: Item) {
        self.index.insert(name.clone(), self.types.len());
        self.types.push(Named {
            name,
            definition,
            impls: Vec::new(),
            layout: None,
            values: Vec::new(),
        });
    }

    fn add_functions(&mut self, items: Vec<ForeignItem>) {
        for item in items {
            let ForeignItem::Fn(function) = item else {
                continue;
            };
            // Another linkage name means that the header declares it as a C++ function.
            let plain = !function
                .attrs
                .iter()
                .any(|attribute| attribute.path().is_ident("link_name"));
            if plain {
                let name = function.sig.ident.to_string();
                self.functions.insert(name, function);
            }
        }
    }

    fn add_impl(&mut self, block: ItemImpl) {
        let owner = match &*block.self_ty {
            Type::Path(path) => path.path.segments.last().map(|part| part.ident.to_string()),
            _ => None,
        };
        let Some(owner) = owner.and_then(|owner| self.named_mut(&owner)) else {
            self.helpers.push(Item::Impl(block));
            return;
        };
        let only_values = block.trait_.is_none() && block.items.iter().all(|item| matches!(item, ImplItem::Const(_)));
        if !only_values {
            owner.impls.push(block);
            return;
        }
        owner.values.extend(block.items.into_iter().filter_map(|item| {
            let ImplItem::Const(constant) = item else {
                return None;
            };
            let Expr::Call(call) = &constant.expr else {
                return None;
            };
            Some(Value {
                name: constant.ident,
                number: number(call.args.first()?),
            })
        }));
    }

    /// A plain number that an extension adds to an enum becomes a value of that enum.
    fn extend_enums(&mut self, extended: &[(&str, &str)]) {
        let constants = std::mem::take(&mut self.constants);
        for constant in constants {
            let name = constant.ident.to_string();
            let owner = extended
                .iter()
                .find(|(prefix, _)| name.starts_with(prefix))
                .and_then(|(_, owner)| self.named_mut(owner));
            match owner {
                Some(owner) => owner.values.push(Value {
                    name: constant.ident,
                    number: number(&constant.expr),
                }),
                None => self.constants.push(constant),
            }
        }
    }
}

/// A number as it is written: a token stream has a space behind the sign.
fn number(expression: &Expr) -> String {
    expression.to_token_stream().to_string().replace("- ", "-")
}

/// A C enum without a name has a number for one, which differs between releases.
fn is_unnamed_enum(name: &Ident) -> bool {
    name.to_string().starts_with("_bindgen_ty_")
}

fn name_of(item: &Item) -> Option<String> {
    Some(match item {
        Item::Struct(item) => item.ident.to_string(),
        Item::Union(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        _ => return None,
    })
}

/// A C enum with a tag and a typedef (`typedef enum x_ { … } x;`) becomes one type under the typedef's name; another
/// name for a type of a crate below becomes a type alias.
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

/// Replaces identifiers.
pub fn rename(tokens: TokenStream, names: &HashMap<String, Ident>) -> TokenStream {
    let map = |token| match token {
        TokenTree::Ident(ident) => TokenTree::Ident(names.get(&ident.to_string()).cloned().unwrap_or(ident)),
        TokenTree::Group(group) => TokenTree::Group(Group::new(group.delimiter(), rename(group.stream(), names))),
        other => other,
    };
    tokens.into_iter().map(map).collect()
}

/// As [`rename`], also in the texts of layout assertions, such as `"Size of x"`.
fn rename_with_text(tokens: TokenStream, names: &HashMap<String, Ident>) -> TokenStream {
    let map = |token| match token {
        TokenTree::Group(group) => {
            TokenTree::Group(Group::new(group.delimiter(), rename_with_text(group.stream(), names)))
        }
        TokenTree::Literal(literal) => {
            let text = literal.to_string();
            let words = text
                .split_inclusive([' ', ':', '"'])
                .map(|word| {
                    let bare = word.trim_end_matches([' ', ':', '"']);
                    match names.get(bare) {
                        Some(new) => format!("{new}{}", &word[bare.len()..]),
                        None => word.to_owned(),
                    }
                })
                .collect::<String>();
            match words.parse() {
                Ok(literal) if words != text => TokenTree::Literal(literal),
                _ => TokenTree::Literal(literal),
            }
        }
        TokenTree::Ident(ident) => TokenTree::Ident(names.get(&ident.to_string()).cloned().unwrap_or(ident)),
        other => other,
    };
    tokens.into_iter().map(map).collect()
}
