//! What a registry shows of a package, and whether the program in its README is compiled somewhere.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::workspace::{Workspace, package_of};

/// Categories that the registry knows; it refuses others.
const CATEGORIES: [&str; 17] = [
    "algorithms",
    "api-bindings",
    "caching",
    "command-line-utilities",
    "concurrency",
    "development-tools::ffi",
    "development-tools::testing",
    "emulators",
    "external-ffi-bindings",
    "filesystem",
    "hardware-support",
    "mathematics",
    "memory-management",
    "no-std",
    "rendering::graphics-api",
    "science",
    "simulation",
];

/// What the registry's limits are.
const MOST: usize = 5;
const LONGEST_KEYWORD: usize = 20;

/// Everything that the manifests and READMEs lack.
pub fn violations(workspace: &Workspace, packages: &[&Value]) -> Vec<String> {
    let mut found = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let said = of_manifest(package)
            .into_iter()
            .chain(of_readme(workspace.root(), name));
        found.extend(said.map(|problem| format!("{}: {problem}", package_of(name))));
    }
    found
}

fn of_manifest(package: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for field in [
        "description",
        "license",
        "repository",
        "homepage",
        "documentation",
        "readme",
        "rust_version",
    ] {
        if package[field].as_str().unwrap_or_default().is_empty() {
            found.push(format!("no {field}"));
        }
    }
    let list = |field: &str| -> Vec<String> {
        let values = package[field].as_array().into_iter().flatten();
        values.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    for (field, of_the_registry) in [
        ("keywords", is_keyword as fn(&str) -> bool),
        ("categories", |it| CATEGORIES.contains(&it)),
    ] {
        let values = list(field);
        if values.is_empty() || values.len() > MOST {
            found.push(format!("{} {field}; the registry takes up to {MOST}", values.len()));
        }
        let wrong = values.iter().filter(|value| !of_the_registry(value));
        found.extend(wrong.map(|value| format!("the registry does not take {value:?} in {field}")));
    }
    found
}

fn is_keyword(word: &str) -> bool {
    let begins = word.starts_with(|c: char| c.is_ascii_alphanumeric());
    let rest = word.chars().all(|c| c.is_ascii_alphanumeric() || "-_+".contains(c));
    begins && rest && word.len() <= LONGEST_KEYWORD
}

/// A program in a README is a documentation test, or the crate's consumer in `ci/consumers`.
fn of_readme(root: &Path, name: &str) -> Vec<String> {
    let folder = root.join("crates").join(name);
    let Ok(readme) = fs::read_to_string(folder.join("README.md")) else {
        return vec!["no README.md".into()];
    };
    let mut found = Vec::new();
    if readme.contains("](../") {
        found.push("a link of the README leads out of the package".into());
    }
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let examples = [root.join("examples/c/covariance.c"), folder.join("tests/c/readme.cpp")].map(|path| read(&path));
    let is_example = |block: &&str| examples.iter().any(|example| example.contains(*block));
    if !blocks(&readme, "c").iter().all(is_example) {
        found
            .push("the program in the README is part of neither examples/c/covariance.c nor tests/c/readme.cpp".into());
    }
    if blocks(&readme, "rust").is_empty() && blocks(&readme, "c").is_empty() {
        found.push("the README has no program".into());
    }
    let is_tested = read(&folder.join("src/lib.rs")).contains("#[doc = include_str!(\"../README.md\")]");
    let consumer = read(&root.join("ci/consumers").join(name).join("src/main.rs"));
    let compiled = |program: &&str| is_tested || (!program.is_empty() && consumer.ends_with(program));
    if !blocks(&readme, "rust").iter().all(compiled) {
        found.push(format!(
            "the program in the README is not that of ci/consumers/{name}, and src/lib.rs does not test the README"
        ));
    }
    found
}

/// The blocks of code in this language.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    let behind = text.split(fence.as_str()).skip(1);
    behind.filter_map(|block| block.split("```").next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_has_what_the_registry_shows() {
        let workspace = Workspace::discover().unwrap();
        let packages = super::super::published(workspace.metadata());
        assert_eq!(violations(&workspace, &packages), Vec::<String>::new());
    }

    #[test]
    fn the_projects_readme_shows_the_tested_program_of_interop() {
        let workspace = Workspace::discover().unwrap();
        let read = |path: &str| fs::read_to_string(workspace.root().join(path)).unwrap();
        let (project, interop) = (read("README.md"), read("crates/interop/README.md"));
        assert_eq!(blocks(&project, "rust").len(), 1);
        assert_eq!(blocks(&project, "rust"), blocks(&interop, "rust"));
    }

    #[test]
    fn what_a_manifest_lacks_is_named() {
        let bare = serde_json::json!({"name": "x", "keywords": ["a b", "ok"], "categories": ["gpu"]});
        let found = of_manifest(&bare).join("\n");
        for part in ["no description", "no license", "no readme", "\"a b\"", "\"gpu\""] {
            assert!(found.contains(part), "{found}");
        }
        assert!(!found.contains("\"ok\""));
    }

    #[test]
    fn a_program_in_a_readme_that_nothing_compiles_is_reported() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("crates/x");
        fs::create_dir_all(folder.join("src")).unwrap();
        fs::write(folder.join("README.md"), "# x\n\n```rust\nfn main() {}\n```\n").unwrap();
        assert_eq!(of_readme(root.path(), "x").len(), 1);
        fs::write(folder.join("README.md"), "# x\n\nWords.\n").unwrap();
        assert_eq!(of_readme(root.path(), "x"), ["the README has no program"]);
        fs::write(folder.join("README.md"), "# x\n\n```rust\nfn main() {}\n```\n").unwrap();
        let consumer = root.path().join("ci/consumers/x/src");
        fs::create_dir_all(&consumer).unwrap();
        fs::write(consumer.join("main.rs"), "//! Does nothing.\n\nfn main() {}\n").unwrap();
        assert_eq!(of_readme(root.path(), "x"), Vec::<String>::new());
    }
}
