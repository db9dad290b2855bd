//! `cargo xtask pictures`: every picture of the README and the book.

use std::fs;
use std::path::Path;
use std::process::Command;

use xshell::cmd;

use crate::error::{Error, Result};
use crate::workspace::{Workspace, cargo, step};
use crate::{setup, test};

/// How a picture is made; the file's name follows the words.
enum Made {
    /// The command `hipcl`, which draws what it finds on this machine.
    Hipcl(&'static [&'static str]),
    /// An example of `interop`.
    Example(&'static str, &'static [&'static str]),
    /// A copy of another picture.
    Copy(&'static str),
    /// A person.
    ByHand,
}
use Made::{ByHand, Copy, Example, Hipcl};

/// Every committed picture.
const PICTURES: [(&str, Made); 11] = [
    ("docs/src/pictures/radar.png", Hipcl(&["pipeline", "radar", "--plot"])),
    ("docs/radar.png", Copy("docs/src/pictures/radar.png")),
    (
        "docs/src/pictures/gps.png",
        Hipcl(&["pipeline", "gps", "--generate", "--plot"]),
    ),
    ("docs/src/pictures/capon.png", Hipcl(&["pipeline", "capon", "--plot"])),
    ("docs/src/pictures/note.png", Hipcl(&["pipeline", "note", "--plot"])),
    ("docs/src/pictures/doctor.svg", Hipcl(&["doctor", "--plot"])),
    ("docs/src/pictures/bench.svg", Hipcl(&["bench", "launch", "--plot"])),
    ("docs/src/pictures/tutorial.svg", Example("17_your_own_job", &[])),
    ("docs/src/pictures/decision.svg", ByHand),
    ("docs/src/pictures/layers.svg", ByHand),
    ("docs/src/pictures/memory.svg", ByHand),
];

/// Builds what draws, and draws.
pub fn run(workspace: &Workspace) -> Result<()> {
    setup::run(workspace)?;
    let (sh, cargo) = (workspace.shell()?, cargo());
    let examples = PICTURES.iter().filter_map(|(_, made)| match made {
        Example(name, _) => Some(["--example", *name]),
        _ => None,
    });
    let examples: Vec<&str> = examples.flatten().collect();
    step("build what draws", || {
        // With the tests' features, as `cargo xtask demo` does.
        let crates = test::CRATES;
        cmd!(sh, "{cargo} build {crates...} --bin hipcl {examples...}")
            .run()
            .map_err(|_| Error::Failed("hipcl does not build, see above".into()))
    })?;
    for (picture, made) in &PICTURES {
        make(workspace, picture, made)?;
    }
    Ok(())
}

fn make(workspace: &Workspace, picture: &str, made: &Made) -> Result<()> {
    let (root, built) = (workspace.root(), workspace.target().join("debug"));
    let (program, words) = match made {
        ByHand => return Ok(()),
        Copy(from) => {
            return fs::copy(root.join(from), root.join(picture))
                .map(drop)
                .map_err(|error| Error::io(picture, error));
        }
        Hipcl(words) => (built.join("hipcl"), words),
        Example(name, words) => (built.join("examples").join(name), words),
    };
    step(picture, || draw(&program, words, &root.join(picture)))
}

fn draw(program: &Path, words: &[&str], picture: &Path) -> Result<()> {
    let status = Command::new(program).args(words).arg(picture).status();
    match status.map_err(|error| Error::io(program.display(), error))? {
        status if status.success() => Ok(()),
        status => Err(Error::Failed(format!(
            "`{} {} {}` ended with {status}, see above",
            program.display(),
            words.join(" "),
            picture.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_committed_picture_is_in_the_table_and_shown_somewhere() {
        let workspace = Workspace::discover().unwrap();
        let root = workspace.root();
        let listed: BTreeSet<String> = PICTURES.iter().map(|(picture, _)| (*picture).to_owned()).collect();
        let names = |folder: &str| -> Vec<String> {
            let entries = fs::read_dir(root.join(folder)).unwrap();
            entries
                .map(|entry| format!("{folder}/{}", entry.unwrap().file_name().to_string_lossy()))
                .collect()
        };
        let there = [names("docs/src/pictures"), names("docs")].concat();
        let is_picture = |name: &String| name.ends_with(".svg") || name.ends_with(".png");
        assert_eq!(listed, there.into_iter().filter(is_picture).collect());

        let pages = names("docs/src").into_iter().filter(|name| name.ends_with(".md"));
        let pages = pages.chain(["README.md".to_owned()]);
        let text: String = pages.map(|page| fs::read_to_string(root.join(page)).unwrap()).collect();
        for picture in &listed {
            let link = picture.trim_start_matches("docs/src/");
            assert!(text.contains(&format!("]({link})")), "no page shows {picture}");
        }
    }
}
