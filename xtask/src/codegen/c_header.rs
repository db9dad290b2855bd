//! `hipcl.h`, the header of the C library, from the sources of the crate `interop-capi`.

use std::path::Path;

use super::Result;
use super::record::GeneratedFile;

/// Where the crate is, relative to the workspace's root.
const CRATE: &str = "crates/interop-capi";

/// The modules that export something, in the order in which a reader wants them.
const MODULES: [&str; 13] = [
    "status", "values", "text", "bridge", "queue", "event", "buffer", "transfer", "access", "program", "blas", "fft",
    "doctor",
];

/// Makes the header; neither headers of other projects nor a network is needed.
pub fn generate(root: &Path) -> Result<GeneratedFile> {
    let folder = root.join(CRATE);
    let config = folder.join("cbindgen.toml");
    let config = cbindgen::Config::from_file(&config).map_err(|error| format!("{}: {error}", config.display()))?;
    let mut builder = cbindgen::Builder::new().with_config(config);
    for module in MODULES {
        builder = builder.with_src(folder.join("src").join(module).with_extension("rs"));
    }
    let bindings = builder.generate().map_err(|error| format!("{CRATE}: {error}"))?;
    let mut text = Vec::new();
    bindings.write(&mut text);
    Ok(GeneratedFile {
        path: format!("{CRATE}/include/hipcl.h"),
        text: String::from_utf8(text)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_declares_what_every_module_exports() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let header = generate(root).expect("a header").text;
        let mut exported = 0;
        let mut paths = vec![root.join(CRATE).join("src")];
        while let Some(path) = paths.pop() {
            if path.is_dir() {
                let entries = std::fs::read_dir(&path).expect("the sources");
                paths.extend(entries.map(|entry| entry.expect("a file").path()));
                continue;
            }
            let source = std::fs::read_to_string(path).expect("a source");
            let after = source.split("#[unsafe(no_mangle)]").skip(1);
            for name in after.filter_map(|text| text.split("fn ").nth(1)?.split('(').next()) {
                assert!(header.contains(&format!("{name}(")), "{name} is not in the header");
                exported += 1;
            }
        }
        assert!(exported > 40, "{exported} functions");
    }
}
