//! Lists what the raw bindings claim, by reading their source: the claims' values are filled in by the Rust compiler,
//! from the very types that users of the bindings get.

#[path = "build/claims.rs"]
mod claims;
#[path = "build/fields.rs"]
mod fields;

use std::path::{Path, PathBuf};

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// The crates, and the files of each that declare types and constants.
const CRATES: [(&str, &[&str]); 5] = [
    ("hip-sys", &["types.rs", "constants.rs"]),
    ("rocblas-sys", &["types.rs"]),
    ("rocsolver-sys", &["types.rs"]),
    ("hsa-sys", &["types.rs"]),
    ("rccl-sys", &["types.rs"]),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    match generate() {
        Ok(()) => {}
        Err(problem) => println!("cargo::error={problem}"),
    }
}

fn generate() -> Result<(), String> {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("../../crates");
    let mut all = TokenStream::new();
    for (name, files) in CRATES {
        let mut items = Vec::new();
        for file in files {
            let path = root.join(name).join("src").join(file);
            println!("cargo::rerun-if-changed={}", path.display());
            items.extend(parse(&path)?.items);
        }
        let (function, module) = (ident(name), ident(name));
        let claims = claims::of(&items);
        all.extend(quote! {
            #[allow(unused_imports, clippy::all, clippy::undocumented_unsafe_blocks)]
            fn #function() -> Vec<Claim> {
                use #module::*;
                let mut claims = Vec::new();
                #(claims.push(#claims);)*
                claims
            }
        });
    }
    let output = Path::new(&variable("OUT_DIR")?).join("claims.rs");
    std::fs::write(&output, all.to_string()).map_err(|error| format!("can't write {}: {error}", output.display()))
}

fn parse(path: &Path) -> Result<syn::File, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("can't read {}: {error}", path.display()))?;
    syn::parse_file(&text).map_err(|error| format!("{} is no Rust: {error}", path.display()))
}

fn ident(name: &str) -> proc_macro2::Ident {
    format_ident!("{}", name.replace('-', "_"))
}

fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|error| format!("{name}: {error}"))
}
