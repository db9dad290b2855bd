//! The link line of HIP and HIPRTC, for the feature `linked`. Without it nothing is linked and this does nothing.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "linked")]
    {
        // HIPRTC comes first: up to ROCm 6 its functions are in HIP's own library too.
        rocm_loader::build::link(&["hiprtc", "amdhip64"]);
    }
}
