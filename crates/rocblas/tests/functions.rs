//! FUNCTIONS.md says of every C function whether it is wrapped, and is what the sources say.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Parts of names that this crate leaves out, and why.
const OUT_OF_SCOPE: &[(&str, &str)] = &[
    ("rocblas_abort", "ends the process"),
    (
        "_until_5",
        "the form of ROCm 5, which also has the form of today under another name",
    ),
    ("_set_vector", "copies: `hip` has them, ordered and checked"),
    ("_get_vector", "copies: `hip` has them, ordered and checked"),
    ("_set_matrix", "copies: `hip` has them, ordered and checked"),
    ("_get_matrix", "copies: `hip` has them, ordered and checked"),
    ("rocblas_set_stream_", "a handle keeps its stream for life"),
    (
        "rocblas_status_to_string",
        "`rocblas-sys` names a status without the library",
    ),
    (
        "rocblas_set_device_memory_size",
        "deprecated: `rocblas_set_workspace` is wrapped",
    ),
    (
        "rocblas_is_user_managing_device_memory",
        "deprecated: the handle knows whether it has a workspace",
    ),
    ("int8_type_for_hipblas", "for hipBLAS, and gone since ROCm 5.6"),
    (
        "rocblas_query_int8_layout_flag",
        "the same answer on every supported card, and gone in ROCm 6",
    ),
    ("rocblas_gemm_ext2", "gone in ROCm 6"),
    ("_kernel_name", "a diagnosis of rocBLAS itself, gone in ROCm 7.2"),
    ("_ex3", "8-bit floats of one generation, gone in ROCm 7.2"),
];

/// Where a routine's own name stands for its functions of all scalars and forms.
const DECLARED_ONCE: &str = "functions/solver/routines";

fn every_name(routine: &str) -> impl Iterator<Item = String> {
    let forms = ["", "_strided_batched", "_batched"];
    let letters = ["s", "d", "c", "z"].into_iter();
    letters.flat_map(move |letter| forms.map(|form| format!("rocsolver_{letter}{routine}{form}")))
}

/// Functions that the sources name outside of texts, each with the files that do.
fn used(sources: &Path, folder: &Path, names: &BTreeSet<&str>, found: &mut BTreeMap<String, BTreeSet<String>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            used(sources, &path, names, found);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let file = path.strip_prefix(sources).unwrap().with_extension("");
        let module = match file.file_name() {
            Some(name) if name == "mod" => file.parent().unwrap(),
            _ => &file,
        };
        let module = module.to_string_lossy().into_owned();
        for line in text.lines() {
            let line = line.trim_start();
            if line.starts_with("//") {
                continue;
            }
            // What stands between quotation marks is a message or an alias in the documentation.
            let code: String = line.split('"').step_by(2).collect();
            for word in code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
                let mut note = |name: &str| {
                    if names.contains(name) {
                        found.entry(name.to_owned()).or_default().insert(module.clone());
                    }
                };
                note(word);
                if module == DECLARED_ONCE {
                    every_name(word).for_each(|name| note(&name));
                }
            }
        }
    }
}

/// The table of one library.
fn section(library: &str, access: &str, symbols: &'static [&'static str]) -> String {
    let names: BTreeSet<&str> = symbols.iter().copied().collect();
    let mut found = BTreeMap::new();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    used(&sources, &sources, &names, &mut found);
    let (mut wrapped, mut raw, mut out) = (String::new(), String::new(), String::new());
    let mut counts = [0; 3];
    for name in names {
        let scope = OUT_OF_SCOPE.iter().find(|(part, _)| name.contains(part));
        if let Some(modules) = found.get(name) {
            counts[0] += 1;
            let modules: Vec<String> = modules.iter().map(|module| format!("`{module}`")).collect();
            writeln!(wrapped, "| `{name}` | {} |", modules.join(", ")).unwrap();
        } else if let Some((_, reason)) = scope {
            counts[2] += 1;
            writeln!(out, "| `{name}` | {reason} |").unwrap();
        } else {
            counts[1] += 1;
            writeln!(raw, "| `{name}` |").unwrap();
        }
    }
    let [wrapped_count, raw_count, out_count] = counts;
    let mut section = format!(
        "## {library}\n\n\
         | | functions |\n|---|---|\n| wrapped | {wrapped_count} |\n\
         | raw only: call them through `{access}` and `Handle::raw` | {raw_count} |\n| out of scope | {out_count} |\n\n\
         ### {library}: wrapped\n\n| function | module |\n|---|---|\n{wrapped}\n\
         ### {library}: raw only\n\n| function |\n|---|\n{raw}"
    );
    if out_count > 0 {
        write!(
            section,
            "\n### {library}: out of scope\n\n| function | reason |\n|---|---|\n{out}"
        )
        .unwrap();
    }
    section
}

fn table() -> String {
    format!(
        "# The functions of rocBLAS and rocSOLVER and this crate\n\n\
         Made by `cargo xtask tables` from the sources, do not edit by hand.\n\n\
         {}\n{}",
        section("rocBLAS", "Library::api", rocblas_sys::Api::SYMBOLS),
        section("rocSOLVER", "Library::solver_api", rocsolver_sys::Api::SYMBOLS),
    )
}

#[test]
fn the_table_of_functions_is_what_the_sources_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("FUNCTIONS.md");
    let table = table();
    if std::env::var_os("HIPCL_WRITE_TABLES").is_some() {
        fs::write(&path, &table).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == table,
        "FUNCTIONS.md differs from the sources; run `cargo xtask tables`"
    );
}

#[test]
fn known_functions_are_found_where_they_are() {
    let table = table();
    for line in [
        "| `rocblas_cgemm` | `functions/level3` |",
        "| `rocblas_cgemm_64` | `functions/level3` |",
        "| `rocblas_gemm_batched_ex` | `gemm/batched_ex` |",
        "| `rocblas_set_workspace` | `handle/workspace` |",
        "| `rocblas_strmm_until_5` | the form of ROCm 5, which also has the form of today under another name |",
        "| `rocblas_set_vector` | copies: `hip` has them, ordered and checked |",
    ] {
        assert!(table.contains(&format!("{line}\n")), "{line}");
    }
    for raw in ["rocblas_ssymm", "rocblas_saxpy_batched", "rocsolver_sgeqrf"] {
        assert!(table.contains(&format!("| `{raw}` |\n")), "{raw}");
    }
    assert!(table.contains("| `rocsolver_cpotrf` | `"));
}
