//! Builds the programs of the suite.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::plan;
use crate::error::{Error, Result};
use crate::executables;
use crate::workspace::{Workspace, cargo, package_of, step};

/// One test program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub package: String,
    /// The test's name; the package's own for its unit tests.
    pub name: String,
    pub path: PathBuf,
}

/// Everything to run.
#[derive(Debug, Default)]
pub struct Suite {
    pub programs: Vec<Program>,
    /// Each with its name; cargo's file may have more in its own.
    pub examples: Vec<(String, PathBuf)>,
    /// The command `hipcl`, with which jobs run.
    pub command: PathBuf,
    /// Whether the jobs are left out.
    pub no_jobs: bool,
    /// The packages that were asked for by name.
    pub named: Vec<String>,
}

impl Suite {
    /// What belongs to these packages; all if none is named. The jobs belong to `hipcl`.
    pub fn only(mut self, packages: &[String]) -> Self {
        if !packages.is_empty() {
            self.programs.retain(|it| packages.contains(&it.package));
            self.no_jobs = !packages.iter().any(|it| it == "hipcl");
            self.named = packages.to_vec();
        }
        self
    }
}

/// Builds tests, examples and the command with every platform compiled in.
pub fn build(workspace: &Workspace) -> Result<Suite> {
    let text = step("build the suite", || {
        let tests = messages(workspace, &["test", "--no-run", "--tests", "--bins", "--lib"])?;
        // `cargo test` would make tests of them.
        let examples = messages(workspace, &["build", "--examples"])?;
        Ok(tests + &examples)
    })?;
    let suite = collected(&text);
    if suite.programs.is_empty() || suite.command.as_os_str().is_empty() {
        return Err(Error::Failed("cargo did not build a test program or `hipcl`".into()));
    }
    Ok(suite)
}

/// Cargo's messages about the files it has built.
fn messages(workspace: &Workspace, args: &[&str]) -> Result<String> {
    let packages = plan::PACKAGES.iter().chain(&["hipcl"]);
    let output = Command::new(cargo())
        .args(args)
        .args(["--message-format", "json-render-diagnostics"])
        .args(packages.flat_map(|name| ["--package".to_owned(), package_of(name)]))
        .args(["--features", "hipcl/nvidia"])
        .current_dir(workspace.root())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Error::io("cannot start cargo", error))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(Error::Failed("the suite does not build, see above".into())),
    }
}

/// Sorts what cargo has built.
fn collected(messages: &str) -> Suite {
    let mut suite = Suite::default();
    for built in executables::read(messages) {
        let package = built.crate_name();
        match (built.kind.as_str(), built.is_test) {
            ("example", false) => suite.examples.push((built.name, built.path)),
            ("bin", false) if built.name == "hipcl" => suite.command = built.path,
            ("test" | "lib", true) if plan::PACKAGES.contains(&package.as_str()) => {
                suite.programs.push(Program {
                    package,
                    name: built.name,
                    path: built.path,
                });
            }
            _ => {}
        }
    }
    suite
        .programs
        .sort_by(|a, b| (&a.package, &a.name).cmp(&(&b.package, &b.name)));
    suite
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_that_is_not_named_is_left_out_and_the_jobs_with_hipcl() {
        let program = |package: &str| Program {
            package: package.into(),
            name: "memory".into(),
            path: PathBuf::new(),
        };
        let kept = |packages: &[&str]| {
            let suite = Suite {
                programs: vec![program("hip"), program("clmgr")],
                ..Suite::default()
            };
            let packages: Vec<String> = packages.iter().map(|it| it.to_string()).collect();
            let suite = suite.only(&packages);
            let programs = suite.programs.into_iter().map(|it| it.package);
            (programs.collect::<Vec<_>>().join(" "), suite.no_jobs)
        };
        assert_eq!(kept(&[]), ("hip clmgr".into(), false));
        assert_eq!(kept(&["hip"]), ("hip".into(), true));
        assert_eq!(kept(&["clmgr", "hipcl"]), ("clmgr".into(), false));
    }

    #[test]
    fn tests_examples_and_the_command_are_told_apart() {
        let line = |package: &str, name: &str, kind: &str, test: bool| {
            serde_json::json!({
                "executable": format!("out/{name}"),
                "manifest_path": format!("src/{package}/Cargo.toml"),
                "target": {"name": name, "kind": [kind]},
                "profile": {"test": test},
            })
            .to_string()
        };
        let messages = [
            line("hip", "memory", "test", true),
            line("hip", "01_simple_add", "example", false),
            line("hip", "02_matrix_mul", "example", true),
            line("hipcl", "hipcl", "bin", false),
            line("hipcl", "doctor", "test", true),
            "not JSON".to_owned(),
        ]
        .join("\n");
        let suite = collected(&messages);
        assert_eq!(suite.programs.len(), 1);
        assert_eq!(
            (suite.programs[0].package.as_str(), suite.programs[0].name.as_str()),
            ("hip", "memory")
        );
        let example = ("01_simple_add".to_owned(), PathBuf::from("out/01_simple_add"));
        assert_eq!(suite.examples, [example]);
        assert_eq!(suite.command, PathBuf::from("out/hipcl"));
    }
}
