//! The signatures of a table's functions, for the library that exports them under their C names.
//!
//! A table of slots has no names that a macro could use, so the generator writes the list once more as a macro that
//! hands every signature to a macro of the caller's.

use quote::quote;
use syn::{ForeignItemFn, ReturnType, Type};

use super::Result;
use super::table::{self, Table};

/// The tables whose functions the host platform's C library exports, by what they are called.
const EXPORTED: [&str; 4] = ["HIP", "HIPRTC", "rocBLAS", "rocSOLVER"];

/// The name and the text of the file, if the table has one: `api.rs` gives `functions.rs` with `for_each_function!`.
pub fn render(table: &Table, functions: &[ForeignItemFn]) -> Result<Option<(String, String)>> {
    if !EXPORTED.contains(&table.what) {
        return Ok(None);
    }
    let prefix = table.file.trim_end_matches("api.rs");
    let functions = functions.iter().filter(|function| can_be_defined(function));
    let declared = table::format(quote!(unsafe extern "C" { #(#functions)* }))?;
    let mut text = format!(
        "/// Hands the signature of every function of [`{ty}`](crate::{ty}) to the macro `$with`, in the order of the slots.\n\
         ///\n\
         /// The types are this crate's, and the caller must have them in scope. What Rust cannot define is left out:\n\
         /// functions with a variable number of arguments and functions that never return.\n\
         #[macro_export]\n\
         macro_rules! for_each_{prefix}function {{\n    ($with:ident) => {{\n        $with! {{\n",
        ty = table.name
    );
    for line in declared.lines() {
        // Left out: the block's first and last line, and attributes.
        if line.starts_with(|c: char| !c.is_whitespace()) || line.trim_start().starts_with('#') {
            continue;
        }
        text.push_str("        ");
        text.push_str(&line.replacen("    pub fn ", "    fn ", 1));
        text.push('\n');
    }
    text.push_str("        }\n    };\n}\n");
    Ok(Some((format!("{prefix}functions.rs"), text)))
}

fn can_be_defined(function: &ForeignItemFn) -> bool {
    let returns =
        !matches!(&function.sig.output, ReturnType::Type(_, ty) if matches!(**ty, Type::Never(_)));
    returns && function.sig.variadic.is_none()
}
