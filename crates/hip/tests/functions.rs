//! `FUNCTIONS.md` tells of each C function whether this crate wraps it; it is made from the sources, and compared here.
//!
//! After a change: `cargo xtask tables`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

macro_rules! names {
    ($(fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $(-> $result:ty)? = $slot:ident;)*) => {
        /// Every function that Rust can define; see `hip_sys::for_each_function`.
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}
hip_sys::for_each_function!(names);

macro_rules! rtc_names {
    ($(fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $(-> $result:ty)? = $slot:ident;)*) => {
        const RTC_NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}
hip_sys::for_each_rtc_function!(rtc_names);

/// What is deliberately not wrapped, by a part of the name, and why. The first that fits counts.
const OUT_OF_SCOPE: &[(&str, &str)] = &[
    ("hipGraphics", "OpenGL: textures and windows are another trade"),
    ("GL", "OpenGL: textures and windows are another trade"),
    ("Texture", "textures: no use for linear algebra and signals"),
    ("TexRef", "textures: no use for linear algebra and signals"),
    ("TexObject", "textures: no use for linear algebra and signals"),
    ("Surface", "surfaces: no use for linear algebra and signals"),
    ("Mipmap", "mipmapped arrays: no use for linear algebra and signals"),
    ("MipMap", "mipmapped arrays: no use for linear algebra and signals"),
    ("Array", "arrays of textures: no use for linear algebra and signals"),
    (
        "FromSymbol",
        "variables of code linked into the program: code is loaded as modules here",
    ),
    (
        "ToSymbol",
        "variables of code linked into the program: code is loaded as modules here",
    ),
    (
        "Symbol",
        "variables of code linked into the program: code is loaded as modules here",
    ),
    ("hipCtx", "contexts: deprecated by HIP, devices are what counts"),
    ("PrimaryCtx", "contexts: deprecated by HIP, devices are what counts"),
    (
        "_spt",
        "a second default stream for each thread: the null stream is not used here",
    ),
    (
        "hipLaunchByPtr",
        "kernels linked into the program: code is loaded as modules here",
    ),
    (
        "hipLaunchKernel",
        "kernels linked into the program: code is loaded as modules here",
    ),
    (
        "hipConfigureCall",
        "kernels linked into the program: code is loaded as modules here",
    ),
    (
        "hipSetupArgument",
        "kernels linked into the program: code is loaded as modules here",
    ),
    ("hipRegister", "what a compiler calls, not a program"),
    ("__hip", "what a compiler calls, not a program"),
    ("Profiler", "no effect on AMD: use rocprof"),
];

/// Functions that the sources name outside of texts, each with the files that do.
fn used(sources: &Path, folder: &Path, found: &mut BTreeMap<String, BTreeSet<String>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            used(sources, &path, found);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        // What tests replace is not wrapped there.
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
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
                if NAMES.contains(&word) || RTC_NAMES.contains(&word) {
                    found.entry(word.to_owned()).or_default().insert(module.clone());
                }
            }
        }
    }
}

fn table() -> String {
    let mut found = BTreeMap::new();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    used(&sources, &sources, &mut found);
    let (mut wrapped, mut raw, mut out) = (String::new(), String::new(), String::new());
    let mut counts = [0; 3];
    let mut names: Vec<&str> = NAMES.iter().chain(RTC_NAMES).copied().collect();
    names.sort_unstable();
    names.dedup();
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
    format!(
        "# HIP's functions and this crate\n\n\
         Made by `cargo xtask tables` from the sources, do not edit by hand.\n\n\
         | | functions |\n|---|---|\n| wrapped | {} |\n| raw only: call them through `Runtime::api` | {} |\n| out of scope | {} |\n\n\
         ## Wrapped\n\n| function | module |\n|---|---|\n{wrapped}\n\
         ## Raw only\n\n| function |\n|---|\n{raw}\n\
         ## Out of scope\n\n| function | reason |\n|---|---|\n{out}",
        counts[0], counts[1], counts[2]
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
        "| `hipMalloc` | `buffer` |",
        "| `hipModuleLaunchKernel` | `kernel/module` |",
        "| `hiprtcCompileProgram` | `rtc/compilation` |",
        "| `hipGraphLaunch` | `graph` |",
        "| `hipMemcpyToSymbol` | variables of code linked into the program: code is loaded as modules here |",
    ] {
        assert!(table.contains(line), "{line}");
    }
    assert!(table.contains("| `hipMemset` |\n"));
}
