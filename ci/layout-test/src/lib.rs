//! The raw bindings against ROCm's headers, with a C compiler as the judge.
//!
//! | file | what |
//! |---|---|
//! | `build.rs` | reads the bindings' source and lists what they claim: sizes, alignments, offsets, bit fields, enum values, constants |
//! | `claim.rs` | one claim; its value comes from the Rust compiler |
//! | `forms.rs` | which claims are about which release |
//! | `source.rs` | the C program that computes the same values |
//! | `probe.rs` | compiles and runs it against one set of headers |
//! | `compare.rs` | what does not agree |
//! | `differences/` | for each release, everything in which its headers are not what the bindings say |
//!
//! bindgen wrote the bindings by means of clang; here another compiler reads the same headers, and headers of other
//! releases too. A name that a release does not have is a difference like any other, so a misspelt one can't pass.

mod claim;
mod compare;
mod compiler;
mod forms;
mod probe;
mod source;

pub use claim::{Claim, Value};
pub use compare::differences;
pub use compiler::Compiler;
pub use forms::of_release;
pub use probe::{Answer, ask};

/// One `-sys` crate.
#[derive(Debug)]
pub struct Bindings {
    /// Its name.
    pub name: &'static str,
    /// The headers that declare what it binds, as a C program includes them. Some releases lack some.
    pub headers: &'static [&'static str],
    /// What it claims.
    pub claims: Vec<Claim>,
}

/// Every `-sys` crate with all its claims.
pub fn all() -> Vec<Bindings> {
    let with_symbols = |mut claims: Vec<Claim>, tables: &[&'static [&'static str]]| {
        let symbols = tables.iter().flat_map(|table| table.iter());
        claims.extend(symbols.map(|symbol| Claim::symbol(symbol)));
        claims
    };
    vec![
        Bindings {
            name: "hip-sys",
            headers: &[
                "hip/hip_runtime_api.h",
                "hip/hip_deprecated.h",
                "hip/hiprtc.h",
                "hip/hip_gl_interop.h",
            ],
            claims: with_symbols(hip_sys(), &[hip_sys::Api::SYMBOLS, hip_sys::RtcApi::SYMBOLS]),
        },
        Bindings {
            name: "rocblas-sys",
            headers: &["rocblas/rocblas.h"],
            claims: with_symbols(rocblas_sys(), &[rocblas_sys::Api::SYMBOLS]),
        },
        Bindings {
            name: "rocsolver-sys",
            headers: &["rocsolver/rocsolver.h"],
            claims: with_symbols(rocsolver_sys(), &[rocsolver_sys::Api::SYMBOLS]),
        },
        Bindings {
            name: "hsa-sys",
            headers: &["hsa/hsa.h", "hsa/hsa_ext_amd.h", "hsa/hsa_ext_finalize.h"],
            claims: with_symbols(hsa_sys(), &[hsa_sys::Api::SYMBOLS]),
        },
        Bindings {
            name: "rccl-sys",
            headers: &["rccl/rccl.h"],
            claims: with_symbols(rccl_sys(), &[rccl_sys::Api::SYMBOLS]),
        },
    ]
}

/// The bytes of plain C data without padding.
fn bytes_of<T: Copy>(value: &T) -> Vec<u8> {
    let start = core::ptr::from_ref(value).cast::<u8>();
    // SAFETY: the value is `size_of::<T>()` bytes long; it began as zero bytes, so none of them is uninitialised.
    (0..size_of::<T>()).map(|at| unsafe { start.add(at).read() }).collect()
}

include!(concat!(env!("OUT_DIR"), "/claims.rs"));
