//! In which types a kernel holds its global index.
//!
//! `const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;` multiplies in 64 bits and holds 64;
//! `int i = blockIdx.x * blockDim.x + threadIdx.x;` multiplies in 32 bits without a sign. The loop over threads walks
//! the index in the same types (`kernels/prelude.hpp`), which lets the compiler cut it at the kernel's bound. A wrong
//! guess costs that only.

use super::scan::{Class, Token};

/// C++ types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexTypes {
    /// Of the index.
    pub(crate) index: &'static str,
    /// Of the product of block and size.
    pub(crate) product: &'static str,
}

impl Default for IndexTypes {
    fn default() -> Self {
        Self {
            index: INT,
            product: UNSIGNED,
        }
    }
}

const INT: &str = "int";
const UNSIGNED: &str = "unsigned int";
const LONG: &str = "long";
const UNSIGNED_LONG: &str = "unsigned long";

/// The whole-number type that type names among the tokens make up.
fn whole_number(tokens: &[Token<'_>]) -> Option<&'static str> {
    let has = |names: &[&str]| tokens.iter().any(|token| names.contains(&token.text));
    let wide = has(&["long", "int64_t", "ptrdiff_t", "intptr_t"]);
    let bare = has(&["unsigned"]);
    if has(&["size_t", "uint64_t", "uintptr_t"]) || (wide && bare) {
        Some(UNSIGNED_LONG)
    } else if wide {
        Some(LONG)
    } else if bare || has(&["uint32_t"]) {
        Some(UNSIGNED)
    } else if has(&["int", "int32_t"]) {
        Some(INT)
    } else {
        None
    }
}

fn is_wide(name: &str) -> bool {
    name == LONG || name == UNSIGNED_LONG
}

/// The types that the statement around the token at `at` computes a global index in, if that is what it does.
pub(super) fn of_statement(all: &[Token<'_>], at: usize) -> Option<IndexTypes> {
    let ends = |token: &Token<'_>| token.class == Class::Mark && [";", "{", "}"].iter().any(|mark| token.is(mark));
    let from = all[..at].iter().rposition(ends).map_or(0, |last| last + 1);
    let to = all[at..].iter().position(ends).map_or(all.len(), |n| at + n);
    let statement = &all[from..to];
    if !["blockIdx", "threadIdx"]
        .iter()
        .all(|name| statement.iter().any(|token| token.is(name)))
    {
        return None;
    }
    let Some(equals) = statement[..at - from].iter().rposition(|token| token.is("=")) else {
        // Used where it is computed.
        let product = whole_number(statement).filter(|name| is_wide(name));
        let product = product.unwrap_or(UNSIGNED);
        return Some(IndexTypes {
            index: product,
            product,
        });
    };
    let (declaration, value) = statement.split_at(equals);
    let product = whole_number(value).filter(|name| is_wide(name)).unwrap_or(UNSIGNED);
    // `auto`, or an earlier declaration.
    let index = whole_number(declaration).unwrap_or(product);
    Some(IndexTypes { index, product })
}
