//! The code of the book as documentation tests: each chapter is the documentation of a module.
//!
//! `cargo xtask docs` fails if a chapter with Rust code is missing here.

#[cfg(doctest)]
macro_rules! chapters {
    ($($chapter:ident: $file:literal;)+) => {$(
        #[doc = include_str!($file)]
        mod $chapter {}
    )+};
}
#[cfg(doctest)]
chapters! {
    concepts: "src/concepts.md";
    one_stream: "src/one-stream.md";
    opencl: "src/opencl.md";
    processes: "src/processes.md";
    ranks: "src/ranks.md";
    raw_bindings: "src/raw-bindings.md";
    vulkan: "src/vulkan.md";
}
