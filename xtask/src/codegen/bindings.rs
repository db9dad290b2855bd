//! What is bound from which header, and how bindgen is asked for it.

use std::path::Path;

use xshell::{Shell, cmd};

use super::record::GeneratedFile;
use super::table::{self, Split, Table};
use super::{Result, functions, headers};

/// One `-sys` crate.
struct Bound {
    /// Name of the crate and of its folder below `crates/`.
    name: &'static str,
    /// The packages that the declarations come from; named in each generated file.
    packages: &'static [&'static str],
    /// The headers, as a C program includes them.
    headers: &'static [&'static str],
    /// Names (functions, types, constants) that belong to the library: a regular expression.
    names: &'static str,
    /// Declarations that another crate already has.
    reused: &'static [Reused],
    /// Values that an extension's header adds to an enum as plain numbers: prefix of their names, the enum.
    extended: &'static [(&'static str, &'static str)],
    tables: &'static [Table],
}

/// Declarations of another `-sys` crate.
struct Reused {
    module: &'static str,
    /// Everything in this header folder,
    folder: &'static str,
    /// and what other headers declare again: a regular expression.
    names: &'static str,
}

const HIP: Reused = Reused {
    module: "hip_sys",
    folder: "hip",
    names: "i?hip.*",
};
const ROCBLAS: Reused = Reused {
    module: "rocblas_sys",
    folder: "rocblas",
    names: "_?rocblas_handle",
};

const CRATES: [Bound; 4] = [
    Bound {
        name: "hip-sys",
        packages: &["libamdhip64-dev"],
        headers: &[
            "hip/hip_runtime_api.h",
            "hip/hip_deprecated.h",
            "hip/hiprtc.h",
        ],
        names: "_?(hip|HIP).*",
        reused: &[],
        extended: &[],
        tables: &[
            Table {
                file: "rtc_api.rs",
                name: "RtcApi",
                prefixes: &["hiprtc"],
                what: "HIPRTC",
            },
            Table {
                file: "api.rs",
                name: "Api",
                prefixes: &["hip", "__hip"],
                what: "HIP",
            },
        ],
    },
    Bound {
        name: "rocblas-sys",
        packages: &["librocblas-dev"],
        headers: &["rocblas/rocblas.h"],
        names: "_?(rocblas|ROCBLAS).*",
        reused: &[HIP],
        extended: &[],
        tables: &[Table {
            file: "api.rs",
            name: "Api",
            prefixes: &["rocblas_"],
            what: "rocBLAS",
        }],
    },
    Bound {
        name: "rocsolver-sys",
        packages: &["librocsolver-dev"],
        headers: &["rocsolver/rocsolver.h"],
        names: "_?(rocsolver|ROCSOLVER|rocblas).*",
        reused: &[HIP, ROCBLAS],
        extended: &[],
        tables: &[Table {
            file: "api.rs",
            name: "Api",
            prefixes: &["rocsolver_", "rocblas_"],
            what: "rocSOLVER",
        }],
    },
    Bound {
        name: "hsa-sys",
        packages: &["libhsa-runtime-dev"],
        headers: &["hsa/hsa.h", "hsa/hsa_ext_amd.h"],
        names: "_?(hsa|HSA).*",
        reused: &[],
        extended: &[("HSA_STATUS_", "hsa_status_t")],
        tables: &[Table {
            file: "api.rs",
            name: "Api",
            prefixes: &["hsa_"],
            what: "the HSA runtime",
        }],
    },
];

/// Every generated file, in a fixed order.
pub fn generate(shell: &Shell, include: &Path) -> Result<Vec<GeneratedFile>> {
    let compiler_headers = compiler_headers(shell)?;
    let mut files = Vec::new();
    for bound in &CRATES {
        println!("codegen: {}", bound.name);
        let source = bound.parse(include, &compiler_headers)?;
        let split = Split::new(&source, bound.extended, bound.tables)?;
        let header = bound.file_header();
        let imports: Vec<&str> = bound.reused.iter().map(|reused| reused.module).collect();
        let mut add = |file: &str, text: String| {
            files.push(GeneratedFile {
                path: format!("crates/{}/src/{file}", bound.name),
                text: format!("{header}{text}"),
            });
        };
        add("types.rs", split.types(&imports)?);
        add("names.rs", split.names()?);
        if let Some(layout) = split.layout()? {
            add("layout.rs", layout);
        }
        for (table, functions) in &split.tables {
            add(
                table.file,
                table::render(table, functions, headers::RELEASE, &imports)?,
            );
            if let Some((file, text)) = functions::render(table, functions)? {
                add(&file, text);
            }
        }
    }
    Ok(files)
}

/// libclang's wheel brings no `stddef.h`; any C compiler's does.
fn compiler_headers(shell: &Shell) -> Result<String> {
    cmd!(shell, "cc -print-file-name=include")
        .quiet()
        .read()
        .map_err(|_| "no C compiler: install `gcc`".into())
}

impl Bound {
    fn parse(&self, include: &Path, compiler_headers: &str) -> Result<String> {
        let wrapper: String = self
            .headers
            .iter()
            .map(|header| format!("#include <{header}>\n"))
            .collect();
        let mut builder = bindgen::Builder::default()
            .header_contents("wrapper.h", &wrapper)
            .clang_args([
                "-x",
                "c",
                "-std=c11",
                "-D__HIP_PLATFORM_AMD__",
                "--target=x86_64-unknown-linux-gnu",
            ])
            .clang_arg(format!("-I{}", include.display()))
            .clang_args(["-isystem", compiler_headers])
            .allowlist_function(self.names)
            .allowlist_type(self.names)
            .allowlist_var(self.names)
            .default_enum_style(bindgen::EnumVariation::NewType {
                is_bitfield: false,
                is_global: false,
            })
            // A C enum without a name only defines numbers.
            .constified_enum("_bindgen_ty_.*")
            .prepend_enum_name(false)
            .must_use_type("hipError_t|hiprtcResult|rocblas_status_?|hsa_status_t")
            .derive_default(true)
            .generate_comments(false)
            .layout_tests(true)
            .use_core()
            .ctypes_prefix("::core::ffi")
            .rust_target(bindgen::RustTarget::stable(85, 0).map_err(|error| error.to_string())?)
            .rust_edition(bindgen::RustEdition::Edition2024)
            .formatter(bindgen::Formatter::None)
            .disable_header_comment();
        for reused in self.reused {
            builder = builder
                .blocklist_file(format!(".*/include/{}/.*", reused.folder))
                .blocklist_item(reused.names);
        }
        Ok(builder.generate()?.to_string())
    }

    fn file_header(&self) -> String {
        let sources: Vec<String> = headers::PACKAGES
            .iter()
            .filter(|package| self.packages.contains(&package.name))
            .map(|package| format!("{} {}", package.name, package.version))
            .collect();
        format!(
            "// Generated by `{}`, do not edit by hand.\n// From the headers of {}; their copyright notice is in NOTICE.\n\n",
            super::COMMAND,
            sources.join(", ")
        )
    }
}
