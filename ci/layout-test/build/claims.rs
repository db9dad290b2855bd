//! From the items of a bindings file to expressions that make a `Claim` each.

use std::collections::BTreeMap;

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::{Fields, ImplItem, Item, ItemConst, ItemStruct, Type};

use crate::fields::{self, Field, Kind};

/// The structures and unions of a file, by name.
pub type Records<'a> = BTreeMap<String, Record<'a>>;

/// One structure or union.
#[derive(Default)]
pub struct Record<'a> {
    pub fields: Vec<(String, &'a Type)>,
    /// The functions that set a bit field.
    pub setters: Vec<Ident>,
}

impl Record<'_> {
    /// Declared in C, but not defined.
    fn is_opaque(&self) -> bool {
        self.fields.iter().any(|(field, _)| field == "_unused")
    }
}

/// Every claim of these items.
pub fn of(items: &[Item]) -> Vec<TokenStream> {
    let records = records(items);
    let mut claims = Vec::new();
    for item in items {
        match item {
            Item::Struct(item) if item.generics.params.is_empty() => {
                structure(item, &records, &mut claims);
            }
            Item::Union(item) if item.generics.params.is_empty() => {
                record(&item.ident, &records, &mut claims);
            }
            Item::Type(item) if item.generics.params.is_empty() => {
                let name = item.ident.to_string();
                if records
                    .iter()
                    .any(|(record, of)| of.is_opaque() && fields::is_named(&item.ty, record))
                {
                    claims.push(quote!(Claim::opaque(#name)));
                } else {
                    size_and_alignment(&item.ident, &name, &mut claims);
                }
            }
            Item::Const(item) => constant(item, &mut claims),
            Item::Impl(item) if item.trait_.is_none() => {
                let Type::Path(ty) = &*item.self_ty else {
                    continue;
                };
                let Some(ty) = ty.path.get_ident() else {
                    continue;
                };
                for item in &item.items {
                    if let ImplItem::Const(constant) = item {
                        enum_value(ty, &constant.ident, &mut claims);
                    }
                }
            }
            _ => {}
        }
    }
    claims
}

fn records(items: &[Item]) -> Records<'_> {
    let mut records = Records::new();
    for item in items {
        let (name, fields) = match item {
            Item::Struct(ItemStruct {
                ident,
                fields: Fields::Named(fields),
                generics,
                ..
            }) if generics.params.is_empty() => (ident, fields),
            Item::Union(item) if item.generics.params.is_empty() => (&item.ident, &item.fields),
            _ => continue,
        };
        let fields = fields
            .named
            .iter()
            .filter_map(|field| Some((field.ident.as_ref()?.to_string(), &field.ty)))
            .collect();
        let setters = Vec::new();
        records.insert(name.to_string(), Record { fields, setters });
    }
    for item in items {
        let Item::Impl(item) = item else { continue };
        let owner = item.self_ty.to_token_stream().to_string();
        let Some(record) = records.get_mut(&owner) else {
            continue;
        };
        record.setters.extend(item.items.iter().filter_map(bit_setter));
    }
    records
}

/// `set_x(&mut self, …)`; its `_raw` twin works on a pointer.
fn bit_setter(item: &ImplItem) -> Option<Ident> {
    let ImplItem::Fn(function) = item else {
        return None;
    };
    let name = function.sig.ident.to_string();
    let sets = function.sig.receiver().is_some() && name.starts_with("set_");
    sets.then(|| function.sig.ident.clone())
}

fn structure(item: &ItemStruct, records: &Records, claims: &mut Vec<TokenStream>) {
    let ident = &item.ident;
    match &item.fields {
        Fields::Named(_) => record(ident, records, claims),
        // A C enum: a number in a transparent newtype.
        Fields::Unnamed(fields) if !fields::is_nameless(&ident.to_string()) => {
            size_and_alignment(ident, &ident.to_string(), claims);
            if let Some(field) = fields.unnamed.first() {
                let (ty, name) = (&field.ty, ident.to_string());
                claims.push(quote! {
                    Claim::number(Some(#name), "(($)-1 < 0)", (<#ty>::MIN != 0) as i128)
                });
            }
        }
        Fields::Unnamed(_) | Fields::Unit => {}
    }
}

fn record(ident: &Ident, records: &Records, claims: &mut Vec<TokenStream>) {
    let name = ident.to_string();
    let Some(record) = records.get(&name) else {
        return;
    };
    if record.is_opaque() {
        claims.push(quote!(Claim::opaque(#name)));
        return;
    }
    if fields::is_nameless(&name) {
        return; // C has no name for it; its owner's fields are compared through it
    }
    let fields = fields::flat(&name, records);
    let name = fields::c_type(&name, records);
    size_and_alignment(ident, name, claims);
    for field in fields {
        let ty = match &field.kind {
            Kind::Plain(ty) => *ty,
            Kind::Bits(setter) => {
                bit_field(ident, name, &field, setter, claims);
                continue;
            }
        };
        let path = &field.rust;
        let (offset, size) = (
            format!("offsetof($, {})", field.c),
            format!("sizeof((($ *)0)->{})", field.c),
        );
        claims.push(quote! {
            Claim::number(Some(#name), #offset, core::mem::offset_of!(#ident, #path) as i128)
        });
        // An array without a length is a name for the end of its structure and has no size.
        if !fields::is_flexible(ty) {
            claims.push(quote! {
                Claim::number(Some(#name), #size, size_of::<#ty>() as i128)
            });
        }
    }
}

fn size_and_alignment(ident: &Ident, name: &str, claims: &mut Vec<TokenStream>) {
    if fields::is_nameless(name) || name.starts_with("_bindgen") {
        return;
    }
    claims.push(quote! {
        Claim::number(Some(#name), "sizeof($)", size_of::<#ident>() as i128)
    });
    claims.push(quote! {
        Claim::number(Some(#name), "_Alignof($)", align_of::<#ident>() as i128)
    });
}

fn constant(item: &ItemConst, claims: &mut Vec<TokenStream>) {
    let ident = &item.ident;
    let name = ident.to_string();
    if name == "_" {
        return;
    }
    claims.push(match &*item.ty {
        Type::Reference(_) => quote!(Claim::text(#name, #ident)),
        Type::Path(path) if path.path.is_ident("hipStream_t") => {
            let address = format!("(uintptr_t)({name})");
            quote!(Claim::number(None, #address, #ident.addr() as i128))
        }
        _ => quote!(Claim::number(None, #name, #ident as i128)),
    });
}

fn enum_value(ty: &Ident, constant: &Ident, claims: &mut Vec<TokenStream>) {
    let name = constant.to_string();
    claims.push(quote!(Claim::number(None, #name, #ty::#constant.0 as i128)));
}

/// The bytes of the whole structure after a setter was given all ones.
fn bit_field(owner: &Ident, name: &str, field: &Field, setter: &Ident, claims: &mut Vec<TokenStream>) {
    let (c, holder) = (&field.c, &field.rust);
    claims.push(quote! {
        Claim::bits(#name, #c, &{
            // SAFETY: the type is plain C data, of which zero bytes are a value, whichever member of a union is meant.
            unsafe {
                let mut value: #owner = core::mem::zeroed();
                value #holder .#setter(!0);
                bytes_of(&value)
            }
        })
    });
}
