//! The signatures of a table's functions, for the library that exports them under their C names.
//!
//! A table of slots has no names that a macro could use, so the generator writes the list once more as a macro that
//! hands every signature to a macro of the caller's. It is the list of one release, the one that the host platform is a model of.

use quote::quote;
use syn::{ReturnType, Type};

use super::Result;
use super::merge::MergedFunction;
use super::render;
use super::tables::Table;

/// The tables whose functions the host platform's C library exports, by what they are called.
const EXPORTED: [&str; 4] = ["HIP", "HIPRTC", "rocBLAS", "rocSOLVER"];

/// The release whose functions, called as it calls them, are listed.
const MODEL: &str = "6.4";

/// The name and the text of the file, if the table has one: `api.rs` yields `functions.rs` with `for_each_function!`.
pub fn render(table: &Table, functions: &[&MergedFunction]) -> Result<Option<(String, String)>> {
    if !EXPORTED.contains(&table.what) {
        return Ok(None);
    }
    let prefix = table.file.trim_end_matches("api.rs");
    let mut text = format!(
        "/// Hands each function that ROCm {MODEL} declares for [`{ty}`](crate::{ty}) to the macro `$with`: its symbol and signature there, and\n\
         /// after `=` its slot.\n\
         ///\n\
         /// The types are this crate's, and the caller must have them in scope. What Rust cannot define is left out:\n\
         /// functions with a variable number of arguments and functions that never return.\n\
         #[macro_export]\n\
         macro_rules! for_each_{prefix}function {{\n    ($with:ident) => {{\n        $with! {{\n",
        ty = table.name
    );
    for function in functions
        .iter()
        .filter(|function| function.declared.contains(&MODEL) && can_be_defined(function))
    {
        let item = &function.function;
        let declared = render::format(quote!(unsafe extern "C" { #item }))?;
        let signature: Vec<&str> = declared
            .lines()
            // Left out: the block's first and last line, and attributes.
            .filter(|line| {
                line.starts_with(char::is_whitespace) && !line.trim_start().starts_with('#')
            })
            .collect();
        let signature = signature.join("\n        ");
        let signature = signature.replacen("    pub fn ", "    fn ", 1);
        let signature = signature.trim_end_matches(';');
        text.push_str(&format!("        {signature} = {};\n", function.slot));
    }
    text.push_str("        }\n    };\n}\n");
    Ok(Some((format!("{prefix}functions.rs"), text)))
}

fn can_be_defined(function: &MergedFunction) -> bool {
    let signature = &function.function.sig;
    let returns =
        !matches!(&signature.output, ReturnType::Type(_, ty) if matches!(**ty, Type::Never(_)));
    returns && signature.variadic.is_none()
}
