//! The generated files on disk, and the committed list of their digests.

use std::fs;
use std::path::Path;

use super::{COMMAND, Result};

/// Digests of the generated files, for machines that cannot regenerate them.
const DIGESTS: &str = "xtask/src/codegen/generated.b3";

/// One file that the generator owns.
#[cfg(feature = "codegen")]
pub struct GeneratedFile {
    /// Relative to the workspace's root.
    pub path: String,
    pub text: String,
}

/// Writes the files and their digests.
#[cfg(feature = "codegen")]
pub fn write(root: &Path, files: &[GeneratedFile]) -> Result<()> {
    let mut written = 0;
    for file in files {
        let path = root.join(&file.path);
        if fs::read_to_string(&path).is_ok_and(|text| text == file.text) {
            continue;
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, &file.text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        written += 1;
    }
    fs::write(root.join(DIGESTS), digests(files))?;
    println!("codegen: {} files, {written} of them changed", files.len());
    Ok(())
}

/// Writes one file and its digest; the other digests stay.
#[cfg(feature = "codegen")]
pub fn update(root: &Path, file: &GeneratedFile) -> Result<()> {
    let list = fs::read_to_string(root.join(DIGESTS)).map_err(|error| format!("cannot read {DIGESTS}: {error}"))?;
    let others = list.lines().filter(|line| !line.ends_with(&format!("  {}", file.path)));
    let others: String = others.map(|line| format!("{line}\n")).collect();
    let path = root.join(&file.path);
    fs::write(&path, &file.text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    fs::write(root.join(DIGESTS), others + &digests(std::slice::from_ref(file)))?;
    println!("codegen: wrote {}", file.path);
    Ok(())
}

/// Fails unless the files on disk and the committed digests are what was just generated.
#[cfg(feature = "codegen")]
pub fn compare(root: &Path, work: &Path, files: &[GeneratedFile]) -> Result<()> {
    compare_some(root, work, files)?;
    if fs::read_to_string(root.join(DIGESTS)).is_ok_and(|text| text == digests(files)) {
        println!("codegen: {} generated files are up to date", files.len());
        return Ok(());
    }
    Err(format!("{DIGESTS} does not match the generated files; run `{COMMAND}` and commit the result").into())
}

/// Fails unless these files on disk are what was just generated.
#[cfg(feature = "codegen")]
pub fn compare_some(root: &Path, work: &Path, files: &[GeneratedFile]) -> Result<()> {
    for file in files {
        if fs::read_to_string(root.join(&file.path)).is_ok_and(|text| text == file.text) {
            continue;
        }
        let fresh = work.join("fresh").join(&file.path);
        if let Some(folder) = fresh.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&fresh, &file.text)?;
        return Err(format!(
            "{} does not match the headers (compare it with {}); run `{COMMAND}` and commit the result",
            file.path,
            fresh.display()
        )
        .into());
    }
    Ok(())
}

#[cfg(feature = "codegen")]
fn digests(files: &[GeneratedFile]) -> String {
    files
        .iter()
        .map(|file| format!("{}  {}\n", blake3::hash(file.text.as_bytes()), file.path))
        .collect()
}

/// Compares the files on disk with the committed digests; returns their number.
pub fn verify(root: &Path) -> Result<usize> {
    let list = fs::read_to_string(root.join(DIGESTS)).map_err(|error| format!("cannot read {DIGESTS}: {error}"))?;
    let mut files = 0;
    for line in list.lines() {
        let (digest, path) = line
            .split_once("  ")
            .ok_or_else(|| format!("{DIGESTS} has a malformed line: {line}"))?;
        let bytes =
            fs::read(root.join(path)).map_err(|error| format!("cannot read {path}: {error}; run `{COMMAND}`"))?;
        if blake3::hash(&bytes).to_string() != digest {
            return Err(format!("{path} was edited by hand or is stale; run `{COMMAND}` and commit the result").into());
        }
        files += 1;
    }
    if files == 0 {
        return Err(format!("{DIGESTS} lists no files; run `{COMMAND}`").into());
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace with one generated file and its digest.
    fn workspace(text: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        let list = root.path().join(DIGESTS);
        fs::create_dir_all(list.parent().expect("it lies in a folder")).expect("folders");
        fs::write(root.path().join("api.rs"), text).expect("a file");
        let digest = blake3::hash(b"generated");
        fs::write(list, format!("{digest}  api.rs\n")).expect("a list");
        root
    }

    #[test]
    fn a_hand_edit_is_detected_without_the_headers() {
        assert_eq!(verify(workspace("generated").path()).expect("unchanged"), 1);
        let error = verify(workspace("generated ").path()).expect_err("edited");
        assert!(error.to_string().starts_with("api.rs was edited by hand"), "{error}");
        assert!(error.to_string().contains(COMMAND), "{error}");
    }

    #[test]
    fn a_missing_file_or_list_is_no_agreement() {
        let root = workspace("generated");
        fs::remove_file(root.path().join("api.rs")).expect("the file");
        assert!(verify(root.path()).is_err());
        fs::write(root.path().join(DIGESTS), "").expect("the list");
        assert!(verify(root.path()).is_err());
        fs::remove_file(root.path().join(DIGESTS)).expect("the list");
        assert!(verify(root.path()).is_err());
    }

    #[test]
    fn the_checked_in_bindings_are_those_that_were_generated() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        assert!(verify(root).expect("no generated file was edited") >= 34);
    }
}
