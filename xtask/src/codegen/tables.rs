//! The tables of function pointers: which library each one is for, and which functions belong to it.

/// One table.
#[derive(Debug)]
pub struct Table {
    /// The crate that has it.
    pub owner: &'static str,
    /// The file with its functions, in the crate's `src`.
    pub file: &'static str,
    /// The Rust type.
    #[cfg_attr(not(feature = "codegen"), expect(dead_code, reason = "only the generator names it"))]
    pub name: &'static str,
    /// A function belongs to the first table of its crate that lists a prefix of its name.
    pub prefixes: &'static [&'static str],
    /// The library, as a reader calls it.
    pub what: &'static str,
    /// The package with its headers.
    pub package: &'static str,
    /// The folder of the facts about its headers below `xtask/symbols`.
    pub headers: &'static str,
    /// The folders of the library's symbol lists there; of several the first that has the release.
    pub libraries: &'static [&'static str],
    /// The release whose functions, called as it calls them, a visitor gets: the one that the host platform models.
    #[cfg_attr(
        not(feature = "codegen"),
        expect(dead_code, reason = "only the generator marks them")
    )]
    pub model: &'static str,
}

/// Of one crate's tables, a function's comes first.
pub const TABLES: [Table; 6] = [
    Table {
        owner: "hip-sys",
        file: "rtc_functions.rs",
        name: "RtcApi",
        prefixes: &["hiprtc"],
        what: "HIPRTC",
        package: "libamdhip64-dev",
        headers: "hip",
        // Releases before 6 have it inside HIP's library only.
        libraries: &["hiprtc", "hip"],
        model: "6.4",
    },
    Table {
        owner: "hip-sys",
        file: "functions.rs",
        name: "Api",
        prefixes: &["hip", "__hip"],
        what: "HIP",
        package: "libamdhip64-dev",
        headers: "hip",
        libraries: &["hip"],
        model: "6.4",
    },
    Table {
        owner: "rocblas-sys",
        file: "functions.rs",
        name: "Api",
        prefixes: &["rocblas_"],
        what: "rocBLAS",
        package: "librocblas-dev",
        headers: "rocblas",
        libraries: &["rocblas"],
        model: "6.4",
    },
    Table {
        owner: "rocsolver-sys",
        file: "functions.rs",
        name: "Api",
        prefixes: &["rocsolver_", "rocblas_"],
        what: "rocSOLVER",
        package: "librocsolver-dev",
        headers: "rocsolver",
        libraries: &["rocsolver"],
        model: "6.4",
    },
    Table {
        owner: "hsa-sys",
        file: "functions.rs",
        name: "Api",
        prefixes: &["hsa_"],
        what: "the HSA runtime",
        package: "libhsa-runtime-dev",
        headers: "hsa",
        libraries: &["hsa"],
        model: "6.4",
    },
    Table {
        owner: "rccl-sys",
        file: "functions.rs",
        name: "Api",
        prefixes: &["nccl", "msccl"],
        what: "RCCL",
        package: "librccl-dev",
        headers: "rccl",
        libraries: &["rccl"],
        // No suite of Debian has the RCCL of 6.4.
        model: "7.2",
    },
];

/// The table of a crate that a function belongs to.
pub fn table_of(owner: &str, function: &str) -> Option<&'static Table> {
    TABLES
        .iter()
        .filter(|table| table.owner == owner)
        .find(|table| table.prefixes.iter().any(|prefix| function.starts_with(prefix)))
}
