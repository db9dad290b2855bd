//! A target that is excluded from `cargo test`, to avoid building it twice, must not contain tests.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Every file with a test that never runs.
pub fn violations(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    targets.flat_map(of_target).collect()
}

fn of_target(target: &Value) -> Vec<String> {
    let kinds = target["kind"].as_array().into_iter().flatten();
    let is = |names: &[&str]| {
        let mut kinds = kinds.clone().filter_map(Value::as_str);
        kinds.any(|kind| names.contains(&kind))
    };
    let Some(root) = target["src_path"].as_str().map(Path::new) else {
        return Vec::new();
    };
    let mut left_out = Vec::new();
    if is(&["lib", "bin"]) && target["test"] == false {
        left_out.push(("test = false", "#[test]"));
    }
    if is(&["lib"]) && target["doctest"] == false {
        left_out.extend([("doctest = false", "/// ```"), ("doctest = false", "//! ```")]);
    }
    if left_out.is_empty() {
        return Vec::new();
    }
    // Next to a library, a program is only its root file.
    let files = match is(&["lib"]) {
        true => sources(root.parent().unwrap_or(root)),
        false => vec![root.to_path_buf()],
    };
    let mut problems = Vec::new();
    for file in files {
        let Ok(text) = std::fs::read_to_string(&file) else {
            continue;
        };
        for (setting, mark) in &left_out {
            if text.lines().any(|line| line.trim_start().starts_with(mark)) {
                problems.push(format!("{}: a test that `{setting}` excludes", file.display()));
            }
        }
    }
    problems
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.flatten().map(|entry| entry.path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => sources(&path),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_tests_that_never_run_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let (root, deep) = (folder.path().join("lib.rs"), folder.path().join("deep/file.rs"));
        std::fs::create_dir(folder.path().join("deep")).unwrap();
        std::fs::write(&root, "//! ```\n//! example();\n//! ```\n").unwrap();
        std::fs::write(&deep, "mod tests {\n    #[test]\n    fn x() {}\n}\n").unwrap();
        let found = |test: bool, doctest: bool| {
            let target = json!({ "kind": ["lib"], "src_path": root, "test": test, "doctest": doctest });
            violations(&json!({ "packages": [{ "targets": [target] }] })).len()
        };
        assert_eq!(found(true, true), 0);
        assert_eq!(found(false, true), 1);
        assert_eq!(found(true, false), 1);
        assert_eq!(found(false, false), 2);
    }
}
