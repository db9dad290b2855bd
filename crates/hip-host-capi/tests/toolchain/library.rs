//! Where `libhip_host.so` is.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The folder of the library, which is built first: for tests cargo builds only libraries that Rust can link.
pub fn folder() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let program = std::env::current_exe().expect("this program has a path");
        // <target>/<profile>/deps/<program>
        let folder = program.ancestors().nth(2).expect("cargo's layout");
        let target = folder.parent().expect("cargo's layout");
        let profile = match folder.file_name().and_then(|name| name.to_str()) {
            Some("debug") => "dev",
            Some(profile) => profile,
            None => panic!("{}: no profile's folder", folder.display()),
        };
        let output = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", env!("CARGO_PKG_NAME")])
            .args(["--profile", profile, "--target-dir"])
            .arg(target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "libhip_host.so: {errors}");
        folder.to_path_buf()
    });
    &FOLDER
}
