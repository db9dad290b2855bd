//! The link line of RCCL, for the feature `linked`. Without it nothing is linked and this does nothing.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "linked")]
    rocm_loader::build::link(&["rccl"]);
}
