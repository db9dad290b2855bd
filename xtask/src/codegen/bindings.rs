//! What is bound from which header, and how bindgen is called.

use std::path::Path;

use xshell::{Shell, cmd};

use super::functions::{self, Marker};
use super::merge::{MergedFunction, merge};
use super::parsed::Parsed;
use super::record::GeneratedFile;
use super::releases::{Origin, RELEASES, Release};
use super::since::Lists;
use super::tables::{TABLES, Table, table_of};
use super::{Result, facts, headers, render};
use crate::symbols::list::{self, SymbolList};

/// One `-sys` crate.
struct Bound {
    /// Name of the crate and of its folder below `crates/`.
    name: &'static str,
    /// The folder of its facts below `xtask/symbols`.
    symbols: &'static str,
    /// The package that the declarations come from; named in each generated file.
    package: &'static str,
    /// The headers, as a C program includes them.
    headers: &'static [&'static str],
    /// Names (functions, types, constants) that belong to the library: a regular expression.
    names: &'static str,
    /// Declarations that another crate already has.
    reused: &'static [Reused],
    /// Values that an extension's header adds to an enum as plain numbers: prefix of their names, the enum.
    extended: &'static [(&'static str, &'static str)],
    /// Types that were renamed with ROCm 6, so their old name now means another one: old name, name since.
    renamed_before_6: &'static [(&'static str, &'static str)],
    /// Ends of enums that ROCm 6 made macros for other numbers: an old count must not pass for today's.
    counts_before_6: &'static [&'static str],
    /// Structures that may have grown, see [`merge`].
    may_grow: &'static [&'static str],
    /// Functions with C linkage in a header that only a C++ compiler reads.
    cplusplus: Option<Cplusplus>,
    /// Symbols that identify a library's major release.
    markers: &'static [Marker],
}

/// Functions of headers that are C++.
struct Cplusplus {
    headers: &'static [&'static str],
    /// Include guards of headers that are not needed for the declarations and want AMD's own compiler.
    skipped: &'static [&'static str],
    /// A regular expression.
    functions: &'static str,
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

const CRATES: [Bound; 5] = [
    Bound {
        name: "hip-sys",
        symbols: "hip",
        package: "libamdhip64-dev",
        headers: &["hip/hip_runtime_api.h", "hip/hip_deprecated.h", "hip/hiprtc.h"],
        names: "_?(hip|HIP).*",
        reused: &[],
        extended: &[],
        renamed_before_6: &[
            ("hipDeviceProp_t", "hipDeviceProp_tR0000"),
            ("hipKernelNodeAttrID", "hipLaunchAttributeID"),
            ("hipKernelNodeAttrValue", "hipLaunchAttributeValue"),
        ],
        counts_before_6: &["HIPRTC_JIT_NUM_OPTIONS", "HIPRTC_JIT_NUM_INPUT_TYPES"],
        may_grow: &[
            "hipExternalMemoryBufferDesc_st",
            "hipExternalMemoryHandleDesc_st",
            "hipExternalSemaphoreHandleDesc_st",
        ],
        cplusplus: Some(Cplusplus {
            headers: &["cstdint", "hip/hip_runtime_api.h", "hip/hip_ext.h"],
            skipped: &["HIP_INCLUDE_HIP_HIP_RUNTIME_H"],
            functions: "hipExtModuleLaunchKernel|hipHccModuleLaunchKernel|hipExtLaunchKernel",
        }),
        markers: &[
            Marker {
                major: 6,
                symbol: "hipGetDevicePropertiesR0600",
                newer: true,
            },
            Marker {
                major: 7,
                symbol: "hipLaunchKernelExC",
                newer: true,
            },
        ],
    },
    Bound {
        name: "rocblas-sys",
        symbols: "rocblas",
        package: "librocblas-dev",
        headers: &["rocblas/rocblas.h"],
        names: "_?(rocblas|ROCBLAS).*",
        reused: &[HIP],
        extended: &[],
        renamed_before_6: &[],
        counts_before_6: &[],
        may_grow: &[],
        cplusplus: None,
        // rocBLAS 4.0 (ROCm 6.0) gave `trmm` the arguments that `trmm_outofplace` had, and removed that.
        markers: &[Marker {
            major: 6,
            symbol: "rocblas_strmm_outofplace",
            newer: false,
        }],
    },
    Bound {
        name: "rocsolver-sys",
        symbols: "rocsolver",
        package: "librocsolver-dev",
        headers: &["rocsolver/rocsolver.h"],
        names: "_?(rocsolver|ROCSOLVER|rocblas).*",
        reused: &[HIP, ROCBLAS],
        extended: &[],
        renamed_before_6: &[],
        counts_before_6: &[],
        may_grow: &[],
        cplusplus: None,
        markers: &[],
    },
    Bound {
        name: "hsa-sys",
        symbols: "hsa",
        package: "libhsa-runtime-dev",
        headers: &["hsa/hsa.h", "hsa/hsa_ext_amd.h", "hsa/hsa_ext_finalize.h"],
        names: "_?(hsa|HSA).*",
        reused: &[],
        extended: &[("HSA_STATUS_", "hsa_status_t")],
        renamed_before_6: &[],
        counts_before_6: &[],
        // A table that is filled up to the length its caller gives.
        may_grow: &["hsa_ext_images_1_pfn_s"],
        cplusplus: None,
        markers: &[],
    },
    Bound {
        name: "rccl-sys",
        symbols: "rccl",
        package: "librccl-dev",
        headers: &["rccl/rccl.h"],
        // Each function has a twin for profilers whose name begins with `p`; it is left out.
        names: "(nccl|NCCL|RCCL|msccl).*",
        reused: &[HIP],
        extended: &[],
        renamed_before_6: &[],
        counts_before_6: &[],
        may_grow: &[],
        cplusplus: None,
        markers: &[],
    },
];

/// Every generated file, in a fixed order. The headers of every release lie unpacked below `work`.
pub fn generate(shell: &Shell, root: &Path, work: &Path) -> Result<Vec<GeneratedFile>> {
    let parser = Parser {
        work,
        compiler_headers: compiler_headers(shell)?,
    };
    let mut files = Vec::new();
    for bound in &CRATES {
        let mut releases = Vec::new();
        for release in &RELEASES {
            let Some((parsed, facts)) = bound.read(&parser, release)? else {
                continue;
            };
            files.push(facts);
            if release.supported {
                releases.push(parsed);
            }
        }
        println!("codegen: {} from {} releases", bound.name, releases.len());
        files.extend(bound.bindings(root, &releases)?);
    }
    Ok(files)
}

/// The facts of the releases whose headers are unpacked, without the bindings.
pub fn facts(shell: &Shell, work: &Path, prepared: &[&str]) -> Result<Vec<GeneratedFile>> {
    let parser = Parser {
        work,
        compiler_headers: compiler_headers(shell)?,
    };
    let mut files = Vec::new();
    for bound in &CRATES {
        for release in &RELEASES {
            if prepared.contains(&release.name)
                && let Some((_, facts)) = bound.read(&parser, release)?
            {
                files.push(facts);
            }
        }
    }
    Ok(files)
}

/// Input for bindgen besides the headers.
struct Parser<'a> {
    work: &'a Path,
    compiler_headers: String,
}

/// libclang's wheel brings no `stddef.h`; any C compiler's does.
pub fn compiler_headers(shell: &Shell) -> Result<String> {
    cmd!(shell, "cc -print-file-name=include")
        .quiet()
        .read()
        .map_err(|_| "no C compiler; install `gcc`".into())
}

impl Bound {
    /// The declarations of one release, and the file of facts about them; nothing if the release lacks the package.
    fn read(&self, parser: &Parser<'_>, release: &'static Release) -> Result<Option<(Parsed, GeneratedFile)>> {
        let Some(package) = release.header_package(self.package) else {
            return Ok(None);
        };
        let include = headers::folder(parser.work, release);
        let mut source = self.parse(&include, &parser.compiler_headers)?;
        // The bindings declare what C knows; the functions beyond that stay as the last real headers had them.
        if let (Some(extra), Origin::Debian(_)) = (&self.cplusplus, &release.origin) {
            source += &extra.parse(&include, &parser.compiler_headers)?;
        }
        let (renamed, counts) = if package.major() < 6 {
            (self.renamed_before_6, self.counts_before_6)
        } else {
            (&[][..], &[][..])
        };
        let mut parsed = Parsed::new(&source, package.release(), self.extended, renamed)?;
        parsed.forget_values(counts);
        parsed.rebuilt = matches!(release.origin, Origin::Python { .. });
        let facts = GeneratedFile {
            path: facts::path(self.symbols, package),
            text: facts::text(&parsed, &list::source(package)),
        };
        Ok(Some((parsed, facts)))
    }

    fn bindings(&self, root: &Path, releases: &[Parsed]) -> Result<Vec<GeneratedFile>> {
        let merged = merge(releases, self.may_grow)?;
        let header = self.file_header();
        let imports: Vec<&str> = self.reused.iter().map(|reused| reused.module).collect();
        let mut files = Vec::new();
        let mut add = |file: &str, text: String| {
            files.push(GeneratedFile {
                path: format!("crates/{}/src/{file}", self.name),
                text: format!("{header}{text}"),
            });
        };
        add("types.rs", render::types(&merged, &imports)?);
        add("names.rs", render::names(&merged));
        if let Some(layout) = render::layout(&merged) {
            add("layout.rs", layout);
        }
        for table in TABLES.iter().filter(|table| table.owner == self.name) {
            let lists = lists(root, table)?;
            for marker in self.markers {
                // Only the library that is opened can be asked for the marker.
                if marker.symbol.starts_with(table.prefixes[0]) {
                    marker.check(&lists)?;
                }
            }
            let functions: Vec<&MergedFunction> = merged
                .functions
                .iter()
                .filter(|function| table_of(self.name, &function.slot).is_some_and(|owner| owner.name == table.name))
                .collect();
            add(table.file, functions::render(table, &functions, self.markers, &lists)?);
        }
        if let Some(lost) = merged
            .functions
            .iter()
            .find(|function| table_of(self.name, &function.slot).is_none())
        {
            return Err(format!("`{}` belongs to no table", lost.slot).into());
        }
        files.push(GeneratedFile {
            path: facts::renumbered_path(self.symbols),
            text: facts::renumbered(&merged.renumbered),
        });
        Ok(files)
    }

    fn parse(&self, include: &Path, compiler_headers: &str) -> Result<String> {
        // A header that a release does not have yet, or no longer, is passed over.
        let wrapper: String = self
            .headers
            .iter()
            .map(|header| format!("#if __has_include(<{header}>)\n#include <{header}>\n#endif\n"))
            .collect();
        let mut builder = builder(include)?
            .header_contents("wrapper.h", &wrapper)
            .clang_args(["-x", "c", "-std=c11"])
            .clang_args(["-isystem", compiler_headers])
            .allowlist_function(self.names)
            .allowlist_type(self.names)
            .allowlist_var(self.names)
            // The version of the headers says nothing about the library that is loaded.
            .blocklist_item(".*_(INTERFACE_)?VERSION(_.*)?")
            // Of its version too; and what no structure of RCCL uses.
            .blocklist_item("NCCL_(MAJOR|MINOR|PATCH|SUFFIX|UNDEF_FLOAT)")
            .blocklist_item("HIP_DEPRECATED_MSG");
        for reused in self.reused {
            builder = builder
                .blocklist_file(format!(".*/include/{}/.*", reused.folder))
                .blocklist_item(reused.names);
        }
        Ok(builder.generate()?.to_string())
    }

    fn file_header(&self) -> String {
        let packages = RELEASES
            .iter()
            .filter(|release| release.supported)
            .filter_map(|release| release.header_package(self.package));
        let (headers, bindings): (Vec<_>, Vec<_>) = packages.partition(|package| package.name == self.package);
        let versions: Vec<&str> = headers.iter().map(|package| package.version).collect();
        let mut sources = format!("the headers of {} {}", self.package, versions.join(", "));
        for package in bindings {
            sources += &format!(" and the declarations of {}", list::source(package));
        }
        format!(
            "// Generated by `{}`, do not edit by hand.\n// From {sources}; their copyright notice is in NOTICE.\n\n",
            super::COMMAND,
        )
    }
}

impl Cplusplus {
    fn parse(&self, include: &Path, compiler_headers: &str) -> Result<String> {
        let wrapper: String = self
            .skipped
            .iter()
            .map(|guard| format!("#define {guard}\n"))
            .chain(self.headers.iter().map(|header| format!("#include <{header}>\n")))
            .collect();
        let bindings = builder(include)?
            .header_contents("wrapper.hpp", &wrapper)
            .clang_args(["-x", "c++", "-std=c++20"])
            // The C++ library's own headers come first: they wrap the compiler's.
            .clang_args(["-idirafter", compiler_headers])
            .allowlist_function(self.functions)
            .allowlist_recursively(false)
            .generate()?;
        Ok(bindings.to_string())
    }
}

/// What all headers have in common.
fn builder(include: &Path) -> Result<bindgen::Builder> {
    Ok(bindgen::Builder::default()
        .clang_args([
            "-D__HIP_PLATFORM_AMD__",
            // Functions that rocBLAS exports without promising to keep them.
            "-DROCBLAS_BETA_FEATURES_API",
            "--target=x86_64-unknown-linux-gnu",
        ])
        .clang_arg(format!("-I{}", include.display()))
        .default_enum_style(bindgen::EnumVariation::NewType {
            is_bitfield: false,
            is_global: false,
        })
        // A C enum without a name only defines numbers.
        .constified_enum("_bindgen_ty_.*")
        .prepend_enum_name(false)
        .must_use_type("hipError_t|hiprtcResult|rocblas_status_?|hsa_status_t|ncclResult_t")
        .derive_default(true)
        .generate_comments(false)
        .layout_tests(true)
        .use_core()
        .ctypes_prefix("::core::ffi")
        .rust_target(bindgen::RustTarget::stable(85, 0).map_err(|error| error.to_string())?)
        .rust_edition(bindgen::RustEdition::Edition2024)
        .formatter(bindgen::Formatter::None)
        .disable_header_comment())
}

/// The symbol lists of a table's library, oldest first.
fn lists(root: &Path, table: &Table) -> Result<Lists> {
    let mut lists = Vec::new();
    for release in &RELEASES {
        if let Some(library) = release.library(table) {
            let list = SymbolList::read(root, library.name, &library.package)?;
            lists.push((library.package.release(), list));
        }
    }
    Ok(Lists(lists))
}
