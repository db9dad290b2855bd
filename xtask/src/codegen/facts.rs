//! One release's declarations as sorted lines of text: committed, so releases can be compared without their headers.

use std::collections::BTreeSet;

use quote::ToTokens;
use syn::{FnArg, Item, ReturnType, Type};

use super::layout::leaves;
use super::merge::Renumbered;
use super::parsed::Parsed;
use super::releases::Package;

/// The lines of one release, with the package that they come from.
///
/// | line | meaning |
/// |---|---|
/// | `fn NAME(TYPES) -> TYPE` | a function |
/// | `type NAME = TYPE` | another name of a type |
/// | `struct NAME: SIZE bytes, aligned to ALIGNMENT` | a structure or union |
/// | `field NAME.PATH @ OFFSET: KIND` | where a field lies; `i4` is a number of 4 bytes, `f8` a floating-point one |
/// | `enum NAME::VALUE = NUMBER` | a value |
/// | `const NAME = NUMBER` | a number that belongs to no enum |
pub fn text(parsed: &Parsed, source: &str) -> String {
    let mut lines = BTreeSet::new();
    for (name, function) in &parsed.functions {
        let mut arguments: Vec<String> = function
            .sig
            .inputs
            .iter()
            .map(|argument| match argument {
                FnArg::Typed(argument) => spell(&argument.ty),
                FnArg::Receiver(_) => "self".into(),
            })
            .collect();
        if function.sig.variadic.is_some() {
            arguments.push("...".into());
        }
        let output = match &function.sig.output {
            ReturnType::Default => "void".into(),
            ReturnType::Type(_, ty) => spell(ty),
        };
        lines.insert(format!("fn {name}({}) -> {output}", arguments.join(", ")));
    }
    for named in &parsed.types {
        let name = &named.name;
        if let Item::Type(alias) = &named.definition {
            lines.insert(format!("type {name} = {}", spell(&alias.ty)));
        }
        if let Some(layout) = &named.layout {
            lines.insert(format!(
                "struct {name}: {} bytes, aligned to {}",
                layout.size, layout.align
            ));
            if layout.size > 0 && !name.contains("__bindgen_ty_") {
                for (path, leaf) in leaves(parsed, name) {
                    lines.insert(format!("field {name}.{path} @ {}: {}", leaf.offset, leaf.kind));
                }
            }
        }
        for value in &named.values {
            lines.insert(format!("enum {name}::{} = {}", value.name, value.number));
        }
    }
    for constant in &parsed.constants {
        lines.insert(format!(
            "const {} = {}",
            constant.ident,
            constant.expr.to_token_stream()
        ));
    }
    let mut text = format!("# {source}\n");
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// Where the facts of a package are kept.
pub fn path(library: &str, package: &Package) -> String {
    format!("xtask/symbols/{library}/{}.headers.txt", package.release())
}

/// Where the list of [`renumbered`] values is kept.
pub fn renumbered_path(library: &str) -> String {
    format!("xtask/symbols/{library}/renumbered.txt")
}

/// One line for each value whose number changed: its name, then release and number in turn.
pub fn renumbered(values: &[Renumbered]) -> String {
    let mut text = String::new();
    for value in values {
        if !value.owner.is_empty() {
            text += &format!("{}::", value.owner);
        }
        text += &value.name;
        for (release, number) in &value.numbers {
            text += &format!(" {release}={number}");
        }
        text.push('\n');
    }
    text
}

/// A type without the spaces of a token stream and the path of C's numbers.
fn spell(ty: &Type) -> String {
    ty.to_token_stream()
        .to_string()
        .replace(":: core :: ffi :: ", "")
        .replace("* mut ", "*mut ")
        .replace("* const ", "*const ")
        .replace(":: core :: option :: ", "")
        .replace(" < ", "<")
        .replace(" >", ">")
        .replace(" (", "(")
        .replace(" ,", ",")
        .replace(" :", ":")
}
