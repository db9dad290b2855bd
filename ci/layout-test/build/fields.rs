//! The fields of a structure as C can name them.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::Type;

use crate::claims::{Record, Records};

/// One field, reached through any structures and unions without a name.
pub struct Field<'a> {
    /// `__bindgen_anon_1.type_`; for a bit field what its setter is called on, `.__bindgen_anon_1`, or nothing.
    pub rust: TokenStream,
    /// `type`
    pub c: String,
    pub kind: Kind<'a>,
}

/// A bit field has no address and no type in Rust.
pub enum Kind<'a> {
    Plain(&'a Type),
    Bits(Ident),
}

/// What the generator calls a structure that has no name in C.
pub fn is_nameless(ty: &str) -> bool {
    ty.contains("__bindgen_ty_")
}

/// The tag of a structure that is declared inside of another: the generator puts the outer one's name before it.
pub fn c_type<'n>(ty: &'n str, records: &Records) -> &'n str {
    let declares = |outer: &Record| outer.fields.iter().any(|(_, field)| is_named(field, ty));
    records
        .iter()
        .filter(|(_, outer)| declares(outer))
        .find_map(|(outer, _)| ty.strip_prefix(outer.as_str())?.strip_prefix('_'))
        .unwrap_or(ty)
}

/// Whether this is the type of that name.
pub fn is_named(ty: &Type, name: &str) -> bool {
    matches!(ty, Type::Path(path) if path.path.is_ident(name))
}

/// The name of a field that is a keyword of Rust ends with `_`.
pub fn c_name(field: &str) -> &str {
    const KEYWORDS: [&str; 8] = ["type", "move", "ref", "in", "fn", "match", "mod", "use"];
    match field.strip_suffix('_') {
        Some(keyword) if KEYWORDS.contains(&keyword) => keyword,
        _ => field,
    }
}

/// The fields of a structure and of the nameless ones in it.
pub fn flat<'a>(ty: &str, records: &Records<'a>) -> Vec<Field<'a>> {
    let mut all = Vec::new();
    collect(ty, records, &[], "", &mut all);
    all
}

fn collect<'a>(ty: &str, records: &Records<'a>, rust: &[String], c: &str, all: &mut Vec<Field<'a>>) {
    let Some(record) = records.get(ty) else {
        return;
    };
    for setter in &record.setters {
        let name = setter.to_string();
        let holder = rust.iter().map(|part| format_ident!("{part}"));
        all.push(Field {
            rust: quote!(#(.#holder)*),
            c: format!("{c}{}", c_name(name.trim_start_matches("set_"))),
            kind: Kind::Bits(setter.clone()),
        });
    }
    for (name, field_type) in &record.fields {
        // The generator's own: storage of bit fields, padding, alignment.
        if ["_bitfield_", "__bindgen_padding_", "_bindgen_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
        {
            continue;
        }
        let mut path = rust.to_vec();
        path.push(name.clone());
        let without_name = name.starts_with("__bindgen_anon_");
        let c_path = if without_name {
            c.to_owned()
        } else {
            format!("{c}{}", c_name(name))
        };
        if !without_name {
            let parts = path.iter().map(|part| format_ident!("{part}"));
            all.push(Field {
                rust: quote!(#(#parts).*),
                c: c_path.clone(),
                kind: Kind::Plain(field_type),
            });
        }
        if let Some(inner) = nameless(field_type) {
            let prefix = if without_name { c_path } else { format!("{c_path}.") };
            collect(&inner, records, &path, &prefix, all);
        }
    }
}

/// The name of the type, if it is one that C has no name for.
fn nameless(ty: &Type) -> Option<String> {
    let Type::Path(path) = ty else { return None };
    let name = path.path.get_ident()?.to_string();
    is_nameless(&name).then_some(name)
}

/// `T x[];` in C.
pub fn is_flexible(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    let last = path.path.segments.last();
    last.is_some_and(|segment| segment.ident == "__IncompleteArrayField")
}
