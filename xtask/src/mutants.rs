//! `cargo xtask mutants`: whether the tests notice changes to the code that orders work.
//!
//! cargo-mutants changes one expression at a time and runs tests. Most of the time goes into building them, so each
//! file has a list of stages: the few test programs that most likely notice a change come first, and only what they
//! miss is built for the next stage. The first test that fails ends a mutant. One that survives the last stage must be
//! in the list of known survivors, with a reason, or the task fails.
//!
//! The task mutates the working tree itself, so build outputs are reused, and reverts each change afterwards. It
//! refuses a tree with uncommitted changes in these files, so that `git checkout` restores them however the task ends.
//!
//! What was caught is kept in `target/mutants` and not tried again until its file changes: an interrupted run goes on
//! where it was. Survivors are always tried again, because a new test may catch them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::setup;
use crate::workspace::{Workspace, cargo, package_of, step};

/// Files of one package that the same tests hold.
struct Group {
    package: &'static str,
    files: &'static [&'static str],
    /// Each tries what survived those before it.
    stages: &'static [Stage],
}

/// Test programs of one package.
struct Stage {
    package: &'static str,
    /// Parts of names of the library's own tests, if they belong to it.
    lib: Option<&'static [&'static str]>,
    tests: &'static [&'static str],
}

const fn lib(package: &'static str, names: &'static [&'static str]) -> Stage {
    Stage {
        package,
        lib: Some(names),
        tests: &[],
    }
}

const fn tests(package: &'static str, tests: &'static [&'static str]) -> Stage {
    Stage {
        package,
        lib: None,
        tests,
    }
}

static GROUPS: [Group; 9] = [
    Group {
        package: "interop",
        files: &[
            "crates/interop/src/access/ledger/mod.rs",
            "crates/interop/src/access/ledger/followed.rs",
            "crates/interop/src/access/ledger/hold.rs",
            "crates/interop/src/access/ledger/entry.rs",
            "crates/interop/src/access/alias/view.rs",
            "crates/interop/src/access/sides.rs",
        ],
        stages: &[
            lib("interop", &["access::ledger::", "alias::", "sides::"]),
            tests("interop", &["adopt_memory", "ledger", "parts"]),
        ],
    },
    Group {
        package: "interop",
        files: &[
            "crates/interop/src/access/ledger/user.rs",
            "crates/interop/src/memory/guard.rs",
            "crates/interop/src/memory/part.rs",
            "crates/interop/src/memory/range.rs",
        ],
        stages: &[
            lib("interop", &["access::ledger::", "memory::range::"]),
            tests("interop", &["ledger", "parts"]),
            tests("interop", &["shared", "handoff_failures"]),
        ],
    },
    Group {
        package: "interop",
        files: &[
            "crates/interop/src/access/alias/mod.rs",
            "crates/interop/src/access/outcome.rs",
            "crates/interop/src/handoff/ticket.rs",
            "crates/interop/src/handoff/wait.rs",
            "crates/interop/src/handoff/watchdog.rs",
        ],
        stages: &[
            lib("interop", &["alias::", "handoff::"]),
            tests("interop", &["adopt_memory", "grades", "handoff_failures"]),
        ],
    },
    Group {
        package: "interop",
        files: &["crates/interop/src/bridge/grades.rs", "crates/interop/src/handoff/*.rs"],
        stages: &[
            tests("interop", &["grades"]),
            tests("interop", &["handoff_failures", "ledger", "trials"]),
            lib("interop", &["grades::", "handoff::"]),
            tests("interop", &["processes"]),
        ],
    },
    Group {
        package: "clmgr",
        files: &["crates/clmgr/src/pool/*.rs"],
        stages: &[lib("clmgr", &["pool::"]), tests("clmgr", &["launch", "manager"])],
    },
    Group {
        package: "clmgr",
        files: &["crates/clmgr/src/usage.rs"],
        stages: &[
            lib("clmgr", &["usage::"]),
            tests("clmgr", &["memory", "queue_events"]),
            tests("clmgr", &["external", "launch", "transfer"]),
        ],
    },
    Group {
        package: "clmgr",
        files: &["crates/clmgr/src/event/order.rs", "crates/clmgr/src/queue.rs"],
        stages: &[
            tests("clmgr", &["launch", "queue_events"]),
            tests("clmgr", &["event", "external", "faults", "memory"]),
            tests("interop", &["ledger"]),
        ],
    },
    Group {
        package: "hip",
        files: &[
            "crates/hip/src/stream/launched.rs",
            "crates/hip/src/stream/mod.rs",
            "crates/hip/src/stream/order.rs",
            "crates/hip/src/stream/uses.rs",
        ],
        stages: &[
            lib("hip", &["stream::"]),
            tests("hip", &["ordering", "random_streams"]),
            tests("hip", &["graphs", "host_functions", "leaks", "random_lives", "threads"]),
            tests("interop", &["ledger"]),
        ],
    },
    Group {
        package: "hip",
        files: &[
            "crates/hip/src/buffer/ordered.rs",
            "crates/hip/src/buffer/pool.rs",
            "crates/hip/src/flag.rs",
            "crates/hip/src/graph/capture.rs",
            "crates/hip/src/graph/mod.rs",
            "crates/hip/src/stream/recording.rs",
        ],
        stages: &[
            tests("hip", &["flags", "graphs", "pools"]),
            tests("hip", &["leaks", "random_lives"]),
        ],
    },
];

/// Formatting code does not order work.
const WORDS: &str = r"impl (fmt::|std::fmt::)?(Debug|Display) for|::fmt ->";

/// Semaphores of both APIs: no OpenCL runtime that the tests run on shares any.
const UNREACHED: &str = "crates/interop/src/handoff/semaphore.rs";

/// Known survivors, relative to the root.
const KNOWN: &str = "xtask/mutants.txt";

const TOOL: &str = "cargo-mutants";

/// The results of earlier runs, in the folder of the task.
const KEPT: &str = "kept.txt";

/// The contents of the files that a run of cargo-mutants changes, beside what it writes.
const CONTENTS: &str = "contents.txt";

/// Which mutants to try.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// At most this many mutants of each file, the same on every run
    #[arg(long, value_name = "N")]
    most: Option<usize>,
    /// Only every Nth mutant, from the Kth (counted from 0)
    #[arg(long, value_name = "K/N", value_parser = Shard::parse)]
    shard: Option<Shard>,
    /// Packages to mutate (default: all with code that orders work)
    #[arg(value_name = "PACKAGE", value_parser = package)]
    packages: Vec<String>,
}

fn package(name: &str) -> Result<String> {
    let mut packages: Vec<_> = GROUPS.iter().map(|group| group.package).collect();
    packages.dedup();
    match packages.contains(&name) {
        true => Ok(name.to_owned()),
        false => Err(Error::Usage(format!("not one of {}", packages.join(", ")))),
    }
}

/// Every `of`th mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shard {
    place: usize,
    of: usize,
}

/// Runs the mutants of every group, or of those whose packages are named.
///
/// # Errors
/// [`Error::Missing`] without cargo-mutants; [`Error::Failed`] for survivors that are not in the list, and for tests
/// that fail without any change.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let root = workspace.root();
    let groups: Vec<&Group> = GROUPS.iter().filter(|group| options.takes(group.package)).collect();
    check_tool()?;
    check_clean(root, &groups)?;
    setup::run(workspace)?;
    let known = KnownSurvivors::read(&root.join(KNOWN))?;

    let mut all = Outcomes::default();
    for (number, group) in groups.into_iter().enumerate() {
        let name = format!("{}-{number}", group.package);
        let found = step(&format!("mutants of {}", group.files.join(", ")), || {
            of_group(workspace, group, &name, options)
        })?;
        println!("{name}: {}", found.line());
        all.add(found);
    }
    println!("all: {}", all.line());
    known.judge(&all)
}

impl Options {
    fn takes(&self, package: &str) -> bool {
        self.packages.is_empty() || self.packages.iter().any(|name| name == package)
    }
}

impl Shard {
    fn parse(text: &str) -> Result<Self> {
        let numbers = text
            .split_once('/')
            .and_then(|(place, of)| Some((place.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((place, of)) if place < of => Ok(Self { place, of }),
            _ => Err(Error::Usage("not one of 0/8, 1/8, ... 7/8 and the like".into())),
        }
    }
}

fn check_tool() -> Result<()> {
    let found = Command::new(cargo()).args(["mutants", "--version"]).output();
    if found.is_ok_and(|output| output.status.success()) {
        return Ok(());
    }
    Err(Error::Missing(format!(
        "{TOOL} is not installed; run `cargo install {TOOL} --locked`"
    )))
}

/// Git restores whatever an interrupted run leaves changed.
fn check_clean(root: &Path, groups: &[&Group]) -> Result<()> {
    let output = Command::new("git")
        .args(["status", "--porcelain", "--"])
        .args(groups.iter().flat_map(|group| group.files))
        .current_dir(root)
        .output()
        .map_err(|error| Error::io("cannot start git", error))?;
    if !output.status.success() {
        return Err(Error::Missing(
            "this is not a git working tree, so changes could not be reverted; clone the repository".into(),
        ));
    }
    match String::from_utf8_lossy(&output.stdout).lines().next() {
        None => Ok(()),
        Some(line) => Err(Error::Failed(format!(
            "`{}` has uncommitted changes; commit them, or revert what an interrupted run left with `git checkout`",
            line.get(3..).unwrap_or(line)
        ))),
    }
}

fn of_group(workspace: &Workspace, group: &Group, name: &str, options: &Options) -> Result<Outcomes> {
    let folder = workspace.target().join("mutants");
    let mut chosen = options.choose(group.listed(workspace)?);
    // An interrupted run kept nothing itself.
    for number in 0..group.stages.len() {
        keep(&folder, &folder.join(name).join(number.to_string()))?;
    }
    let kept = EarlierOutcomes::read(&folder)?;
    let mut found = kept.of(&chosen, |file| content(workspace.root(), file))?;
    chosen.retain(|mutant| !found.judged().any(|judged| judged == mutant));
    for (number, stage) in group.stages.iter().enumerate() {
        if chosen.is_empty() {
            break;
        }
        let limit = stage.check(workspace)?;
        let out = folder.join(name).join(number.to_string());
        note_contents(workspace.root(), &chosen, &out)?;
        let tried = tried(workspace, &out, &chosen, stage, limit)?;
        keep(&folder, &out)?;
        chosen = tried.missed.clone();
        found.missed.clear();
        found.add(tried);
    }
    Ok(found)
}

impl Group {
    /// The arguments that select its mutants.
    fn filter(&self) -> Vec<String> {
        let mut filter: Vec<String> = Vec::new();
        for file in self.files {
            filter.extend(["--file".into(), (*file).into()]);
        }
        // Files with stages of their own.
        for other in GROUPS.iter().filter(|other| !std::ptr::eq(*other, self)) {
            for file in other.files.iter().filter(|file| !file.contains('*')) {
                filter.extend(["--exclude".into(), (*file).into()]);
            }
        }
        filter.extend(["--exclude".into(), UNREACHED.into()]);
        filter.extend(["--exclude-re".into(), WORDS.into()]);
        filter
    }

    /// The names of its mutants.
    fn listed(&self, workspace: &Workspace) -> Result<Vec<String>> {
        let output = Command::new(cargo())
            .args(["mutants", "--list", "--colors", "never"])
            .args(self.filter())
            .current_dir(workspace.root())
            .output()
            .map_err(|error| Error::io("cannot start cargo", error))?;
        match output.status.success() {
            true => Ok(lines(&String::from_utf8_lossy(&output.stdout))),
            false => Err(Error::Failed(format!(
                "{TOOL} cannot list the mutants of {}: {}",
                self.files.join(", "),
                String::from_utf8_lossy(&output.stderr).trim()
            ))),
        }
    }
}

impl Options {
    /// The mutants to try, the same on every run.
    fn choose(&self, mut listed: Vec<String>) -> Vec<String> {
        if let Some(most) = self.most {
            // Spread over the file, wherever its lines are.
            listed.sort_by_cached_key(|name| *blake3::hash(placeless(name).as_bytes()).as_bytes());
            let mut chosen: BTreeMap<String, usize> = BTreeMap::new();
            listed.retain(|name| {
                let of_file = chosen.entry(file_of(name).into()).or_default();
                *of_file += 1;
                *of_file <= most
            });
        }
        match self.shard {
            None => listed,
            // Round robin, so a shard does not hold a single file.
            Some(Shard { place, of }) => listed.into_iter().skip(place).step_by(of).collect(),
        }
    }
}

/// A number that stands for a file's content.
fn content(root: &Path, file: &str) -> Result<String> {
    let path = root.join(file);
    let bytes = fs::read(&path).map_err(|error| Error::io(path.display(), error))?;
    Ok(blake3::hash(&bytes).to_hex()[..16].to_owned())
}

/// Writes which contents the outcomes in `out` will be of.
fn note_contents(root: &Path, mutants: &[String], out: &Path) -> Result<()> {
    fs::create_dir_all(out).map_err(|error| Error::io(out.display(), error))?;
    let files: BTreeSet<&str> = mutants.iter().map(|name| file_of(name)).collect();
    let mut text = String::new();
    for file in files {
        text += &format!("{} {file}\n", content(root, file)?);
    }
    // Of other contents, maybe.
    let earlier = out.join("mutants.out");
    match fs::remove_dir_all(&earlier) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::io(earlier.display(), error));
        }
        _ => {}
    }
    let path = out.join(CONTENTS);
    fs::write(&path, text).map_err(|error| Error::io(path.display(), error))
}

/// Moves the findings of cargo-mutants into the stored outcomes.
fn keep(folder: &Path, out: &Path) -> Result<()> {
    let contents = read_or_empty(&out.join(CONTENTS))?;
    let contents: BTreeMap<&str, &str> = contents
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(content, file)| (file, content))
        .collect();
    let found = Outcomes::read(&out.join("mutants.out"))?;
    let path = folder.join(KEPT);
    let mut text = read_or_empty(&path)?;
    for (outcome, names) in found.kinds() {
        for name in names {
            if let Some(content) = contents.get(file_of(name)) {
                let line = format!("{content} {outcome} {name}\n");
                if !text.contains(&line) {
                    text += &line;
                }
            }
        }
    }
    if text.is_empty() {
        return Ok(());
    }
    fs::write(&path, text).map_err(|error| Error::io(path.display(), error))
}

/// The outcomes of earlier runs, which hold while a mutant's file is the same.
#[derive(Debug, Default)]
struct EarlierOutcomes(Vec<String>);

impl EarlierOutcomes {
    fn read(folder: &Path) -> Result<Self> {
        Ok(Self(lines(&read_or_empty(&folder.join(KEPT))?)))
    }

    /// Those of these mutants.
    fn of(&self, mutants: &[String], content: impl Fn(&str) -> Result<String>) -> Result<Outcomes> {
        let mut found = Outcomes::default();
        let mut contents = BTreeMap::new();
        for name in mutants {
            let file = file_of(name);
            if !contents.contains_key(file) {
                contents.insert(file, content(file)?);
            }
            let line = |outcome: &str| format!("{} {outcome} {name}", contents[file]);
            for (outcome, names) in found.kinds_mut() {
                if self.0.contains(&line(outcome)) {
                    names.push(name.clone());
                    break;
                }
            }
        }
        Ok(found)
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// Empty for a file that does not exist.
fn read_or_empty(path: &Path) -> Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        text => text.map_err(|error| Error::io(path.display(), error)),
    }
}

impl Stage {
    /// The arguments that select the tests, for the builds too.
    fn selection(&self) -> Vec<String> {
        let mut selection: Vec<String> = Vec::new();
        if self.lib.is_some() {
            selection.push("--lib".into());
        }
        selection.extend(self.tests.iter().map(|test| format!("--test={test}")));
        // Code of a feature that the tests do not have would only survive.
        if self.package == "interop" {
            selection.push("--features=hipcl-interop/vulkan".into());
        }
        // A mutant is one changed line, and most of its cost would be to compile all others again.
        for package in ["clmgr", "hip", "interop"].map(package_of) {
            selection.push(format!("--config=profile.dev.package.{package}.incremental=true"));
        }
        selection
    }

    /// Runs the tests on the unchanged tree, and returns the time that a mutant's tests may take.
    fn check(&self, workspace: &Workspace) -> Result<Duration> {
        let run = |more: &[&str]| {
            let status = Command::new(cargo())
                .args(["test", "--quiet", "--package", &package_of(self.package)])
                .args(self.selection())
                .args(more)
                .current_dir(workspace.root())
                .status()
                .map_err(|error| Error::io("cannot start cargo", error))?;
            match status.success() {
                true => Ok(()),
                false => Err(Error::Failed(format!(
                    "the tests of {} fail without a mutation, see above",
                    self.package
                ))),
            }
        };
        run(&["--no-run"])?;
        let begin = Instant::now();
        let mut names = vec!["--"];
        names.extend(self.lib.unwrap_or_default());
        run(&names)?;
        // The machine may have other work, and a mutant that only slows its tests down is not caught.
        Ok(4 * begin.elapsed() + Duration::from_secs(20))
    }
}

/// Has cargo-mutants run the tests of a stage on these mutants.
fn tried(workspace: &Workspace, out: &Path, mutants: &[String], stage: &Stage, limit: Duration) -> Result<Outcomes> {
    let files: BTreeSet<&str> = mutants.iter().map(|name| file_of(name)).collect();
    let selection = stage.selection();
    let status = Command::new(cargo())
        .args(["mutants", "--in-place", "--no-shuffle", "--colors", "never"])
        // `check` was it.
        .args(["--baseline", "skip"])
        .args(["--timeout", &limit.as_secs().to_string()])
        .args(["--test-package", &package_of(stage.package)])
        .arg("--output")
        .arg(out)
        .args(files.iter().map(|file| format!("--file={file}")))
        .args(mutants.iter().map(|name| format!("--re=^{}$", escaped(name))))
        // Arguments after `--` only reach the tests, and every test of the package would be built.
        .args(selection.iter().map(|arg| format!("--cargo-arg={arg}")))
        .args(["--", "--"])
        .args(stage.lib.unwrap_or_default())
        .current_dir(workspace.root())
        .status()
        .map_err(|error| Error::io("cannot start cargo", error))?;
    match status.code() {
        // All caught; some missed; some timed out.
        Some(0 | 2 | 3) => Outcomes::read(&out.join("mutants.out")),
        _ => Err(Error::Failed(format!("{TOOL} ended with {status}, see above"))),
    }
}

/// A pattern that matches exactly this text.
fn escaped(text: &str) -> String {
    let mut pattern = String::new();
    for c in text.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// The outcomes of the mutants, by name.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcomes {
    caught: Vec<String>,
    /// The tests timed out, which a person would have noticed.
    late: Vec<String>,
    missed: Vec<String>,
    /// They did not compile.
    unviable: Vec<String>,
}

impl Outcomes {
    /// What cargo-mutants wrote; each file comes with the first mutant of its kind.
    fn read(folder: &Path) -> Result<Self> {
        let lines = |name: &str| read_or_empty(&folder.join(name)).map(|text| lines(&text));
        Ok(Self {
            caught: lines("caught.txt")?,
            late: lines("timeout.txt")?,
            missed: lines("missed.txt")?,
            unviable: lines("unviable.txt")?,
        })
    }

    /// What need not be tried again, with a word for each kind.
    fn kinds(&self) -> [(&'static str, &Vec<String>); 3] {
        [
            ("caught", &self.caught),
            ("late", &self.late),
            ("unviable", &self.unviable),
        ]
    }

    fn kinds_mut(&mut self) -> [(&'static str, &mut Vec<String>); 3] {
        [
            ("caught", &mut self.caught),
            ("late", &mut self.late),
            ("unviable", &mut self.unviable),
        ]
    }

    fn judged(&self) -> impl Iterator<Item = &String> {
        self.kinds().into_iter().flat_map(|(_, names)| names)
    }

    fn add(&mut self, other: Self) {
        self.caught.extend(other.caught);
        self.late.extend(other.late);
        self.missed.extend(other.missed);
        self.unviable.extend(other.unviable);
    }

    fn line(&self) -> String {
        let (noticed, missed) = (self.caught.len() + self.late.len(), self.missed.len());
        let score = match noticed + missed {
            0 => "nothing to try".to_owned(),
            all => format!("{:.1} % caught", 100.0 * noticed as f64 / all as f64),
        };
        format!(
            "{} tried, {} caught, {} timed out, {missed} survived, {} did not compile: {score}",
            noticed + missed,
            self.caught.len(),
            self.late.len(),
            self.unviable.len()
        )
    }
}

/// Survivors, with the reason why no test has to notice them.
#[derive(Debug, Default, PartialEq, Eq)]
struct KnownSurvivors(BTreeMap<String, String>);

impl KnownSurvivors {
    fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|error| Error::io(path.display(), error))?;
        Self::parse(&text)
    }

    /// The line format is `FILE: CHANGE | REASON`.
    fn parse(text: &str) -> Result<Self> {
        let mut known = BTreeMap::new();
        let lines = text.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (name, reason) = line
                .rsplit_once(" | ")
                .filter(|(_, reason)| !reason.trim().is_empty())
                .ok_or_else(|| {
                    Error::Failed(format!("{KNOWN}: no reason in {line:?}; write `FILE: CHANGE | REASON`"))
                })?;
            known.insert(name.trim().to_owned(), reason.trim().to_owned());
        }
        Ok(Self(known))
    }

    fn judge(&self, found: &Outcomes) -> Result<()> {
        let noticed: Vec<String> = found.caught.iter().chain(&found.late).map(placeless).collect();
        let missed: Vec<String> = found.missed.iter().map(placeless).collect();
        for name in self.0.keys() {
            if noticed.contains(name) && !missed.contains(name) {
                println!("{KNOWN}: {name} is caught now; remove it");
            }
        }
        let new: Vec<&String> = found
            .missed
            .iter()
            .filter(|name| !self.0.contains_key(&placeless(name)))
            .collect();
        for name in &new {
            println!("survived: {name}");
        }
        match new.len() {
            0 => Ok(()),
            n => Err(Error::Failed(format!(
                "{n} surviving mutants are not in {KNOWN}; write tests that catch them, or add them with a reason"
            ))),
        }
    }
}

/// The name without line and column, which change with every edit: `FILE: CHANGE`.
fn placeless(name: impl AsRef<str>) -> String {
    let name = name.as_ref();
    let Some((_, change)) = name.split_once(": ") else {
        return name.to_owned();
    };
    format!("{}: {change}", file_of(name))
}

fn file_of(mutant: &str) -> &str {
    mutant.split(':').next().unwrap_or(mutant)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(list: &[&str]) -> Vec<String> {
        list.iter().map(|arg| arg.to_string()).collect()
    }

    fn found(caught: &[&str], missed: &[&str]) -> Outcomes {
        Outcomes {
            caught: args(caught),
            missed: args(missed),
            ..Outcomes::default()
        }
    }

    #[test]
    fn a_package_that_is_not_named_is_left_out_unless_none_is() {
        let some = |packages: &[&str]| Options {
            most: None,
            shard: None,
            packages: args(packages),
        };
        assert!(some(&["hip"]).takes("hip") && !some(&["hip"]).takes("clmgr"));
        assert!(some(&[]).takes("clmgr"));
        let shard = Shard::parse("3/8").unwrap();
        assert_eq!(shard, Shard { place: 3, of: 8 });
    }

    #[test]
    fn a_survivor_is_known_by_its_file_and_change_wherever_its_line_is() {
        let known = KnownSurvivors::parse("# why\n\na.rs: replace x -> u8 with 0 | it is 0 anyway\n").unwrap();
        let moved = found(&[], &["a.rs:77:5: replace x -> u8 with 0"]);
        assert!(known.judge(&moved).is_ok());
        let new = found(&["a.rs:77:5: replace x -> u8 with 0"], &["b.rs:1:1: delete ! in y"]);
        let error = known.judge(&new).unwrap_err().to_string();
        assert!(error.starts_with("1 surviving mutants"), "{error}");
        for line in ["a.rs: delete ! in y", "a.rs: delete ! in y | "] {
            assert!(KnownSurvivors::parse(line).is_err(), "{line:?}");
        }
    }

    #[test]
    fn timeouts_count_as_caught_and_build_failures_do_not_count() {
        let mut all = found(&["a", "b"], &["c"]);
        all.add(Outcomes {
            late: args(&["d"]),
            unviable: vec!["e".into(); 9],
            ..Outcomes::default()
        });
        assert_eq!(
            all.line(),
            "4 tried, 2 caught, 1 timed out, 1 survived, 9 did not compile: 75.0 % caught"
        );
        assert!(Outcomes::default().line().ends_with("nothing to try"));
    }

    #[test]
    fn a_number_of_mutants_is_chosen_of_each_file_and_a_shard_of_those() {
        let names = |file: char| (0..40).map(move |n| format!("{file}.rs:{n}:1: delete {n}"));
        let listed: Vec<String> = names('a').chain(names('b')).collect();
        let choose = |most, shard| {
            let options = Options {
                most,
                shard,
                packages: Vec::new(),
            };
            options.choose(listed.clone())
        };
        assert_eq!(choose(None, None), listed);
        let some = choose(Some(8), None);
        for file in ["a.rs", "b.rs"] {
            assert_eq!(some.iter().filter(|name| file_of(name) == file).count(), 8);
        }
        assert_eq!(choose(Some(8), None), some, "the same every time");
        let mut shards: Vec<String> = Vec::new();
        for place in 0..3 {
            shards.extend(choose(Some(8), Some(Shard { place, of: 3 })));
        }
        shards.sort_unstable();
        let mut all = some;
        all.sort_unstable();
        assert_eq!(shards, all);
    }

    #[test]
    fn what_was_caught_is_kept_until_its_file_changes_and_survivors_are_not() {
        let target = tempfile::tempdir().unwrap();
        let out = target.path().join("some-0").join("0");
        let found = out.join("mutants.out");
        fs::create_dir_all(&found).unwrap();
        fs::write(out.join(CONTENTS), "one a.rs\ntwo b.rs\n").unwrap();
        fs::write(found.join("caught.txt"), "a.rs:1:1: delete ! in x\n").unwrap();
        fs::write(found.join("missed.txt"), "a.rs:2:1: delete ! in y\n").unwrap();
        fs::write(found.join("unviable.txt"), "b.rs:3:1: delete ! in z\n").unwrap();
        let asked = args(&[
            "a.rs:1:1: delete ! in x",
            "a.rs:2:1: delete ! in y",
            "b.rs:3:1: delete ! in z",
        ]);
        let now = |a: &str| {
            // Twice: an interrupted run is found again.
            for _ in 0..2 {
                keep(target.path(), &out).unwrap();
            }
            let content = |file: &str| Ok(if file == "a.rs" { a } else { "two" }.to_owned());
            let kept = EarlierOutcomes::read(target.path()).unwrap();
            kept.of(&asked, content).unwrap()
        };
        let same = now("one");
        assert_eq!((same.caught.as_slice(), same.missed.len()), (&asked[..1], 0));
        assert_eq!(same.unviable, asked[2..]);
        assert_eq!(now("changed").judged().collect::<Vec<_>>(), [&asked[2]]);
    }

    #[test]
    fn an_escaped_name_matches_only_itself() {
        assert_eq!(
            escaped("a.rs:1:2: replace | with ^ in X<T>::y"),
            r"a\.rs:1:2: replace \| with \^ in X<T>::y"
        );
    }

    #[test]
    fn every_listed_file_and_test_exists() {
        let workspace = Workspace::discover().unwrap();
        let root = workspace.root();
        for group in &GROUPS {
            for file in group.files {
                let path = root.join(file.trim_end_matches("/*.rs"));
                assert!(path.exists(), "{file}");
            }
            for stage in group.stages {
                let tests = root.join("crates").join(stage.package).join("tests");
                for test in stage.tests {
                    let one = tests.join(format!("{test}.rs")).exists();
                    assert!(one || tests.join(test).join("main.rs").exists(), "{test}");
                }
            }
        }
        KnownSurvivors::read(&root.join(KNOWN)).unwrap();
    }
}
