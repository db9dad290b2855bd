//! Where the fields of a C structure lie, and whether two releases agree on it.

use std::collections::BTreeMap;

use quote::ToTokens;
use syn::{Expr, Fields, GenericArgument, Item, ItemConst, Lit, PathArguments, Stmt, Type};

use super::parsed::Parsed;

/// Size, alignment and offsets as the C compiler sees them, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub size: usize,
    pub align: usize,
    pub offsets: BTreeMap<String, usize>,
}

/// A number, pointer or array of them inside a structure.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leaf {
    pub offset: usize,
    /// Such as `i4`, `f8`, `ptr`, `i1x64`.
    pub kind: String,
}

impl Layout {
    /// Reads bindgen's assertions: `["Size of x"][size_of::<x>() - 8usize];` and so on. Returns the type's name too.
    pub fn read(item: &ItemConst) -> Option<(String, Self)> {
        let Expr::Block(block) = &*item.expr else {
            return None;
        };
        let (mut name, mut size, mut align) = (None, None, None);
        let mut offsets = BTreeMap::new();
        for statement in &block.block.stmts {
            let (text, number) = assertion(statement)?;
            if let Some(ty) = text.strip_prefix("Size of ") {
                name = Some(ty.to_owned());
                size = Some(number);
            } else if text.starts_with("Alignment of ") {
                align = Some(number);
            } else if let Some(field) = text.strip_prefix("Offset of field: ") {
                offsets.insert(field.split_once("::")?.1.to_owned(), number);
            }
        }
        Some((
            name?,
            Self {
                size: size?,
                align: align?,
                offsets,
            },
        ))
    }
}

fn assertion(statement: &Stmt) -> Option<(String, usize)> {
    let Stmt::Expr(Expr::Index(index), _) = statement else {
        return None;
    };
    let (Expr::Array(array), Expr::Binary(difference)) = (&*index.expr, &*index.index) else {
        return None;
    };
    let Some(Expr::Lit(text)) = array.elems.first() else {
        return None;
    };
    let (Lit::Str(text), Expr::Lit(number)) = (&text.lit, &*difference.right) else {
        return None;
    };
    let Lit::Int(number) = &number.lit else {
        return None;
    };
    Some((text.value(), number.base10_parse().ok()?))
}

/// Every leaf of a type by its path, structures without a name left out of it.
pub fn leaves(parsed: &Parsed, name: &str) -> BTreeMap<String, Leaf> {
    let mut found = BTreeMap::new();
    add_named(parsed, name, 0, "", &mut found);
    found
}

fn add_named(parsed: &Parsed, name: &str, base: usize, path: &str, found: &mut BTreeMap<String, Leaf>) {
    let mut leaf = |kind: &str| {
        found.insert(
            path.to_owned(),
            Leaf {
                offset: base,
                kind: kind.to_owned(),
            },
        );
    };
    let Some(named) = parsed.named(name) else {
        return leaf(primitive(name).unwrap_or(name));
    };
    let fields = match &named.definition {
        Item::Type(alias) => return add(parsed, &alias.ty, base, path, found),
        Item::Struct(item) => match &item.fields {
            Fields::Named(fields) => fields,
            _ => return leaf("i4"),
        },
        Item::Union(item) => &item.fields,
        _ => return,
    };
    let Some(layout) = &named.layout else {
        return leaf("opaque");
    };
    for field in &fields.named {
        let Some(ident) = &field.ident else { continue };
        let field_name = ident.to_string();
        // Bit fields have no offset.
        let Some(offset) = layout.offsets.get(&field_name) else {
            continue;
        };
        let inner = match (field_name.starts_with("__bindgen_anon_"), path) {
            (true, path) => path.to_owned(),
            (false, "") => field_name,
            (false, path) => format!("{path}.{field_name}"),
        };
        add(parsed, &field.ty, base + offset, &inner, found);
    }
}

fn add(parsed: &Parsed, ty: &Type, base: usize, path: &str, found: &mut BTreeMap<String, Leaf>) {
    let mut leaf = |kind: String| {
        found.insert(path.to_owned(), Leaf { offset: base, kind });
    };
    match ty {
        Type::Ptr(_) => leaf("ptr".into()),
        Type::Array(array) => {
            let mut element = BTreeMap::new();
            add(parsed, &array.elem, 0, "", &mut element);
            let count = array.len.to_token_stream().to_string().replace("usize", "");
            let kinds: Vec<String> = element
                .values()
                .map(|leaf| format!("{}@{}", leaf.kind, leaf.offset))
                .collect();
            leaf(format!("[{}; {count}]", kinds.join(" ")));
        }
        Type::Path(path_type) => match path_type.path.segments.last() {
            Some(last) if last.ident == "Option" => leaf("ptr".into()),
            Some(last) => add_named(parsed, &last.ident.to_string(), base, path, found),
            None => {}
        },
        other => leaf(other.to_token_stream().to_string()),
    }
}

/// The machine's kind of a C or Rust number. Signedness does not affect the layout.
pub fn primitive(name: &str) -> Option<&'static str> {
    Some(match name {
        "c_char" | "c_schar" | "c_uchar" | "u8" | "i8" | "bool" => "i1",
        "c_short" | "c_ushort" | "u16" | "i16" => "i2",
        "c_int" | "c_uint" | "u32" | "i32" => "i4",
        "c_long" | "c_ulong" | "c_longlong" | "c_ulonglong" | "usize" | "isize" | "u64" | "i64" => "i8",
        "c_float" | "f32" => "f4",
        "c_double" | "f64" => "f8",
        "c_void" => "void",
        _ => return None,
    })
}

/// Whether memory of the newer type serves where the older one is expected, and the other way round.
///
/// Both must have the same size, unless `may_grow`, and every field that both name must lie at the same place. A field
/// that one of them lacks has only taken (or given up) a reserved place.
pub fn agree(older: &Parsed, newer: &Parsed, name: &str, may_grow: bool) -> bool {
    let layout = |parsed: &Parsed| parsed.named(name)?.layout.clone();
    let (Some(old), Some(new)) = (layout(older), layout(newer)) else {
        return true;
    };
    let opaque = |layout: &Layout| layout.size == 0;
    if opaque(&old) || opaque(&new) {
        // A structure that one release only declares is only passed by pointer.
        return true;
    }
    if old.align != new.align || old.size != new.size && !(may_grow && old.size < new.size) {
        return false;
    }
    let (old, new) = (leaves(older, name), leaves(newer, name));
    old.iter().all(|(path, leaf)| {
        let last = path.rsplit('.').next().unwrap_or(path);
        let filler = ["reserved", "pad", "unused"]
            .iter()
            .any(|word| last.to_ascii_lowercase().contains(word));
        filler || new.get(path).is_none_or(|other| other == leaf)
    })
}

/// The type inside `Option<…>`.
pub fn option_argument(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    match arguments.args.first()? {
        GenericArgument::Type(ty) if last.ident == "Option" => Some(ty),
        _ => None,
    }
}
