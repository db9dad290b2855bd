//! Gives the library the name that programs look for. Its number changes when a program must be compiled anew.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libhipcl.so.0");
    // Threads of the library and callbacks of drivers run its code until the process ends.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
