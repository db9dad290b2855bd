//! The book's page about the nvidia platform lists exactly what is built.

use std::fmt::Write;
use std::path::Path;

/// Everything behind this line is made from the tables.
const MARK: &str = "<!-- made from the code: see crates/hip-cuda/tests/coverage.rs -->\n";

/// Functions whose counterpart in CUDA does less or otherwise.
const PARTIAL: &[(&str, &str)] = &[
    ("hipExtMallocWithFlags", "plain device memory only"),
    ("hipFuncGetAttribute", "the ten attributes that CUDA has too"),
    ("hipGraphInstantiate", "names no node and writes no log"),
    (
        "hipImportExternalMemory",
        "opaque descriptors only; CUDA refuses dma-bufs",
    ),
    ("hipMemAdvise", "advice about coherence has no effect"),
    ("hipMemRangeGetAttribute", "not the coherency mode"),
    ("hipMemcpy3D", "no arrays"),
    ("hipMemcpy3DAsync", "no arrays"),
    ("hipModuleLoadDataEx", "the options have no effect"),
    ("hipStreamWaitValue32", "no mask"),
    ("hipStreamWaitValue64", "no mask"),
    ("rocblas_gemm_ex", "C and D of one type; solution and flags are ignored"),
    (
        "rocblas_gemm_batched_ex",
        "C and D of one type; waits where they are two lists, and for 16-bit elements; solution and flags are ignored",
    ),
    (
        "rocblas_gemm_strided_batched_ex",
        "C and D of one type; solution and flags are ignored",
    ),
];

/// All names of a table, each with a mark whether it is built.
fn table(title: &str, all: &[&str], present: &[&str], only_built: bool) -> String {
    let mut text = format!(
        "\n## {title}\n\n{} of {} functions.\n\n| function | built |\n|---|---|\n",
        present.len(),
        all.len()
    );
    for name in all {
        let partial = PARTIAL.iter().find(|(partial, _)| partial == name);
        let state = match (present.contains(name), partial) {
            (true, Some((_, missing))) => format!("partial: {missing}"),
            (true, None) => "done".to_owned(),
            (false, _) if only_built => continue,
            (false, _) => "not: the slot is empty".to_owned(),
        };
        writeln!(text, "| `{name}` | {state} |").unwrap();
    }
    text
}

fn tables() -> String {
    let (hip, rtc) = (hip_cuda::hip_api(), hip_cuda::rtc_api());
    let (blas, solver) = (hip_cuda::rocblas_api(), hip_cuda::rocsolver_api());
    [
        table("HIP", hip_sys::Api::SYMBOLS, &hip.present().collect::<Vec<_>>(), false),
        table(
            "HIPRTC",
            hip_sys::RtcApi::SYMBOLS,
            &rtc.present().collect::<Vec<_>>(),
            false,
        ),
        table(
            "rocBLAS",
            rocblas_sys::Api::SYMBOLS,
            &blas.present().collect::<Vec<_>>(),
            true,
        ),
        table(
            "rocSOLVER",
            rocsolver_sys::Api::SYMBOLS,
            &solver.present().collect::<Vec<_>>(),
            true,
        ),
    ]
    .concat()
}

#[test]
fn the_book_lists_what_is_built() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/nvidia-functions.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (head, written) = text.split_once(MARK).unwrap();
    let tables = tables();
    if std::env::var_os("HIPCL_WRITE_TABLES").is_some() {
        std::fs::write(&page, format!("{head}{MARK}{tables}")).unwrap();
        return;
    }
    assert!(
        written == tables,
        "docs/src/nvidia-functions.md is stale: run `cargo xtask tables` and commit it"
    );
}

#[test]
fn what_is_partly_built_is_built() {
    let tables = tables();
    for (name, missing) in PARTIAL {
        assert!(tables.contains(&format!("| `{name}` | partial: {missing} |")), "{name}");
    }
}
