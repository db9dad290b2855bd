//! Gives the library its own name, so that programs linked with a path to it look for the name and not for the path.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libhip_host.so");
}
