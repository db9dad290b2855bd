//! Whether two declarations of a function can be called in the same way.

use std::collections::{BTreeSet, HashSet};

use quote::ToTokens;
use syn::{BareFnArg, FnArg, ForeignItemFn, Item, ReturnType, Type};

use super::layout::{self, leaves};
use super::parsed::Parsed;

/// How structures are named in a [`Signature`].
struct Structures<'a> {
    naming: Naming<'a>,
    /// What some release only declares: it is only passed by pointer, and what it points to is the library's own
    /// affair.
    opaque: &'a HashSet<String>,
}

#[derive(Clone, Copy)]
enum Naming<'a> {
    /// By the name that this release's form of them has in the bindings.
    Emitted(&'a dyn Fn(&str) -> String),
    /// By their fields, for a structure that only changed its name.
    Layout,
}

/// A function as the machine sees it: constness, signedness and the names of types do not matter.
pub struct Signature {
    /// With each structure in this release's form.
    by_form: String,
    /// With each structure by its plain name.
    by_name: String,
    by_layout: String,
}

impl Signature {
    /// `emitted` returns the name of a type's form in this release; `opaque` are the types that some release only
    /// declares.
    pub fn of(
        parsed: &Parsed,
        function: &ForeignItemFn,
        emitted: &dyn Fn(&str) -> String,
        opaque: &HashSet<String>,
    ) -> Self {
        let text = |naming: Naming<'_>| {
            let structures = &Structures { naming, opaque };
            let arguments = function.sig.inputs.iter().map(|argument| match argument {
                FnArg::Typed(argument) => describe(parsed, &argument.ty, structures),
                FnArg::Receiver(_) => "self".into(),
            });
            let variadic = if function.sig.variadic.is_some() { ", ..." } else { "" };
            format!(
                "({}{variadic}) -> {}",
                arguments.collect::<Vec<_>>().join(", "),
                output(parsed, &function.sig.output, structures)
            )
        };
        Self {
            by_form: text(Naming::Emitted(emitted)),
            by_name: text(Naming::Emitted(&str::to_owned)),
            by_layout: text(Naming::Layout),
        }
    }

    pub fn same(&self, other: &Self) -> bool {
        // Equal names in different forms are a difference, even if it lies behind a pointer that the layout does not
        // show.
        self.by_form == other.by_form || self.by_name != other.by_name && self.by_layout == other.by_layout
    }
}

fn output(parsed: &Parsed, output: &ReturnType, structures: &Structures<'_>) -> String {
    match output {
        ReturnType::Default => "void".into(),
        ReturnType::Type(_, ty) => describe(parsed, ty, structures),
    }
}

fn describe(parsed: &Parsed, ty: &Type, structures: &Structures<'_>) -> String {
    match ty {
        Type::Ptr(pointer) => format!("*{}", describe(parsed, &pointer.elem, structures)),
        Type::Array(array) => format!(
            "[{}; {}]",
            describe(parsed, &array.elem, structures),
            array.len.to_token_stream()
        ),
        Type::BareFn(function) => {
            let arguments = function
                .inputs
                .iter()
                .map(|BareFnArg { ty, .. }| describe(parsed, ty, structures));
            format!(
                "fn({}) -> {}",
                arguments.collect::<Vec<_>>().join(", "),
                output(parsed, &function.output, structures)
            )
        }
        Type::Path(path) => {
            if let Some(inner) = layout::option_argument(ty) {
                return describe(parsed, inner, structures);
            }
            match path.path.segments.last() {
                Some(last) => describe_named(parsed, &last.ident.to_string(), structures),
                None => ty.to_token_stream().to_string(),
            }
        }
        other => other.to_token_stream().to_string(),
    }
}

fn describe_named(parsed: &Parsed, name: &str, structures: &Structures<'_>) -> String {
    let Some(named) = parsed.named(name) else {
        return layout::primitive(name).unwrap_or(name).to_owned();
    };
    if let Item::Type(alias) = &named.definition {
        return describe(parsed, &alias.ty, structures);
    }
    if named.is_enum() {
        return "i4".into();
    }
    if structures.opaque.contains(name) {
        return "void".into();
    }
    let size = named.layout.as_ref().map_or(0, |layout| layout.size);
    match structures.naming {
        Naming::Emitted(emitted) => emitted(name),
        Naming::Layout => {
            let fields: BTreeSet<_> = leaves(parsed, name).into_values().collect();
            let fields = fields.iter().map(|leaf| format!("{}@{}", leaf.kind, leaf.offset));
            format!("{{{size}: {}}}", fields.collect::<Vec<_>>().join(" "))
        }
    }
}
