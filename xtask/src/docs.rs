//! `cargo xtask docs`: the book and the API documentation as one site in `target/doc-site`.

mod api;
mod blocks;
mod links;

use std::fs;
use std::path::{Path, PathBuf};

use xshell::cmd;

use crate::error::{Error, Result};
use crate::setup::remove_folder;
use crate::workspace::{Workspace, cargo};

const MDBOOK: &str = "0.5.4";

/// Checks the links, builds both parts and combines them.
pub fn run(workspace: &Workspace) -> Result<()> {
    let root = workspace.root();
    let mut problems = links::check_book(&root.join("docs/src"));
    for page in ["README.md", "CONTRIBUTING.md"] {
        problems.extend(links::check_file(&root.join(page)));
    }
    problems.extend(blocks::check_book(root, workspace.metadata(), &|task| {
        let words = ["cargo xtask"].iter().chain(task).map(ToString::to_string);
        crate::parse(words).map(drop).map_err(|error| error.to_string())
    }));
    if !problems.is_empty() {
        return Err(Error::Failed(format!(
            "problems of the book:\n  {}",
            problems.join("\n  ")
        )));
    }

    let sh = workspace.shell()?;
    let cargo = cargo();
    let features = crate::ci::FEATURES;
    cmd!(sh, "{cargo} doc --workspace --no-deps {features...}")
        .env("RUSTDOCFLAGS", "--deny warnings")
        .run()
        .map_err(|_| Error::Failed("the API documentation has problems, see above".into()))?;

    let mdbook = mdbook(workspace)?;
    let site = workspace.target().join("doc-site");
    let linked = linked(workspace)?;
    cmd!(sh, "{mdbook} build {linked} --dest-dir {site}")
        .run()
        .map_err(|_| Error::Failed("the book does not build, see above".into()))?;
    let api = site.join("api");
    let io = |error| Error::io(api.display(), error);
    remove_folder(&api).map_err(io)?;
    copy(&workspace.target().join("doc"), &api).map_err(io)?;
    println!("site: {}", site.join("index.html").display());
    Ok(())
}

/// The book with links to the API, in `target/book`.
fn linked(workspace: &Workspace) -> Result<PathBuf> {
    let (root, folder) = (workspace.root(), workspace.target().join("book"));
    let io = |error| Error::io(folder.display(), error);
    remove_folder(&folder).map_err(io)?;
    copy(&root.join("docs"), &folder).map_err(io)?;
    let api = api::Api::read(&workspace.target().join("doc"));
    let mut stale = Vec::new();
    for entry in fs::read_dir(root.join("docs/src")).map_err(io)? {
        let entry = entry.map_err(io)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".md") || name == "SUMMARY.md" {
            continue;
        }
        let text = fs::read_to_string(entry.path()).map_err(io)?;
        // Links that are written out.
        let written = text
            .split("](api/")
            .skip(1)
            .filter_map(|rest| rest.split([')', '#']).next());
        let gone = written.filter(|page| !workspace.target().join("doc").join(page).exists());
        stale.extend(gone.map(|page| format!("docs/src/{name}: api/{page} is no page")));
        let (text, problems) = api.link(&name, &text);
        stale.extend(problems);
        // The copy lies elsewhere than the examples that it includes.
        let text = text.replace("{{#include ../../", &format!("{{{{#include {}/", root.display()));
        fs::write(folder.join("src").join(name), text).map_err(io)?;
    }
    match stale.is_empty() {
        true => Ok(folder),
        false => Err(Error::Failed(format!(
            "stale names in the book:\n  {}",
            stale.join("\n  ")
        ))),
    }
}

/// mdBook in the pinned version, installed into `target/` when it is not there; a debug build is fast enough for it.
fn mdbook(workspace: &Workspace) -> Result<PathBuf> {
    let sh = workspace.shell()?;
    // With the search; an mdBook in `tools` itself is one of before, without it.
    let tools = workspace.target().join("tools").join("search");
    let program = tools.join("bin").join("mdbook");
    let version = cmd!(sh, "{program} --version").quiet().ignore_stderr();
    if program.exists() && version.read().is_ok_and(|text| text.ends_with(MDBOOK)) {
        return Ok(program);
    }
    println!("installing mdbook {MDBOOK} into {}", tools.display());
    let cargo = cargo();
    let build = workspace.target().join("tools-build");
    cmd!(
        sh,
        "{cargo} install mdbook --version {MDBOOK} --locked --debug --no-default-features --features search --force
         --root {tools} --target-dir {build}"
    )
    .run()
    .map_err(|_| Error::Failed("cannot install mdbook, see above".into()))?;
    remove_folder(&build).map_err(|error| Error::io(build.display(), error))?;
    Ok(program)
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
