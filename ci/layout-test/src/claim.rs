//! What the bindings claim of the C side.

use std::borrow::Cow;

/// One statement about a C declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The C type it speaks of, `$` in the expression; nothing for a constant or a function.
    pub ty: Option<&'static str>,
    /// A C expression.
    pub c: Cow<'static, str>,
    /// Its value.
    pub value: Value,
}

/// What a C expression gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Any integer.
    Number(i128),
    /// Bytes, as hexadecimal digits: a string constant with its null byte, or a structure with one bit field full of
    /// ones.
    Bytes(String),
    /// The type is declared and has no definition.
    Opaque,
    /// There is a function of this name.
    Declared,
}

impl Claim {
    /// An expression of integer type.
    pub fn number(ty: Option<&'static str>, c: &'static str, value: i128) -> Self {
        Self {
            ty,
            c: c.into(),
            value: Value::Number(value),
        }
    }

    /// A macro that is a string; `bytes` with its null byte.
    pub fn text(c: &'static str, bytes: &[u8]) -> Self {
        Self {
            ty: None,
            c: c.into(),
            value: Value::Bytes(hexadecimal(bytes)),
        }
    }

    /// A bit field: the bytes of the structure when the field is full of ones and everything else zero.
    pub fn bits(ty: &'static str, field: &'static str, bytes: &[u8]) -> Self {
        Self {
            ty: Some(ty),
            c: field.into(),
            value: Value::Bytes(hexadecimal(bytes)),
        }
    }

    /// A structure without a definition.
    pub fn opaque(ty: &'static str) -> Self {
        Self {
            ty: Some(ty),
            c: "".into(),
            value: Value::Opaque,
        }
    }

    /// A function.
    pub fn symbol(name: &'static str) -> Self {
        Self {
            ty: None,
            c: name.into(),
            value: Value::Declared,
        }
    }

    /// The claim as a reader wants to see it, with the type's name in it.
    pub fn subject(&self) -> String {
        match (self.ty, &self.value) {
            (Some(ty), Value::Opaque) => ty.to_owned(),
            (Some(ty), Value::Bytes(_)) => format!("bits of {ty}.{}", self.c),
            (Some(ty), _) => self.c.replace('$', ty),
            (None, Value::Declared) => format!("{}()", self.c),
            (None, _) => self.c.clone().into_owned(),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
