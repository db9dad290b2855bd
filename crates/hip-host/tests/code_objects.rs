//! Code objects that loading refuses, no matter what made them.

mod common;

use std::process::Command;
use std::ptr::null_mut;

use common::*;
use hip_sys::hipError_t;

/// A code object whose library is replaced by another one, with a digest to match.
fn with_library(code: &[u8], library: &[u8]) -> Vec<u8> {
    // The header begins with eight bytes of magic, eight of the length, and the digest of all that follows.
    let start = code.windows(4).position(|bytes| bytes == b"\x7fELF").unwrap();
    let rest = [&code[48..start], library].concat();
    let length = (library.len() as u64).to_le_bytes();
    [&code[..8], &length, blake3::hash(&rest).as_bytes(), &rest].concat()
}

#[test]
fn a_library_that_would_run_code_when_it_is_loaded_is_refused_before() {
    let folder = tempfile::tempdir().unwrap();
    let [source, library, witness] = ["ran.c", "ran.so", "witness"].map(|name| folder.path().join(name));
    let text = format!(
        "#include <stdio.h>\n__attribute__((constructor)) static void ran(void) {{ fclose(fopen(\"{}\", \"w\")); }}\n",
        witness.display()
    );
    std::fs::write(&source, text).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).args([&library, &source]);
    assert!(compiler.status().unwrap().success());

    let genuine = compile("extern \"C\" __global__ void f() {}");
    let own = genuine.windows(4).position(|bytes| bytes == b"\x7fELF").unwrap();
    let same = with_library(&genuine, &genuine[own..]);
    assert_eq!(same, genuine, "the header is not what this test takes it for");
    ok!(hipModuleUnload(load(&genuine)));

    let forged = with_library(&genuine, &std::fs::read(library).unwrap());
    let mut module = null_mut();
    let answer = hip!(hipModuleLoadData(&mut module, forged.as_ptr().cast()));
    assert!(!witness.exists(), "its constructor ran");
    assert_eq!(answer, hipError_t::hipErrorInvalidImage);
}
