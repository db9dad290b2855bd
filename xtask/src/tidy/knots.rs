//! Modules of a library: knots, whose members need each other by way of the others, and modules that have to stay apart.
//!
//! A module needs another if it names it, or what the root re-exports from it, by a path from the crate's root. Tests
//! do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::source::{self, Flat, Source};
use crate::error::Result;

/// The largest knot that a library may have.
const LARGEST: usize = 6;

/// Modules that serve one purpose each within a library: none needs another of its row, not even by way of others.
const APART: &[(&str, &str, &[&str])] = &[
    ("hipcl", "doctor", &["bench", "jobs", "pipeline"]),
    ("hipcl", "jobs", &["bench", "doctor"]),
    ("hipcl", "bench", &["doctor"]),
];

/// Modules by name, and those that each needs.
type Needs = BTreeMap<String, BTreeSet<String>>;

/// Every library of the workspace with too large a knot.
pub fn violations(metadata: &Value) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for (package, root) in libraries(metadata) {
        let sources = source::of_library(&root)?;
        let needs = needs(&sources);
        problems.extend(judge(&package, &largest(&needs)));
        problems.extend(not_apart(&package, &needs));
    }
    Ok(problems)
}

fn judge(package: &str, knot: &[String]) -> Option<String> {
    (knot.len() > LARGEST).then(|| {
        format!(
            "{package}: {} modules depend on each other in cycles, but at most {LARGEST} may: {}",
            knot.len(),
            knot.join(", ")
        )
    })
}

fn not_apart(package: &str, needs: &Needs) -> Vec<String> {
    let rows = APART.iter().filter(|(of, _, _)| *of == package);
    rows.flat_map(|(_, module, others)| {
        let reached = match needs.contains_key(*module) {
            true => reached(needs, &(*module).to_owned()),
            false => {
                return vec![format!(
                    "{package}: there is no module {module}; see APART in xtask/src/tidy/knots.rs"
                )];
            }
        };
        let met = others.iter().filter(|other| reached.iter().any(|it| it == *other));
        met.map(|other| format!("{package}: {module} must not need {other}"))
            .collect()
    })
    .collect()
}

/// The name and root file of each library.
pub fn libraries(metadata: &Value) -> Vec<(String, std::path::PathBuf)> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let of_package = |package: &Value| {
        let targets = package["targets"].as_array()?;
        let library = targets.iter().find(|target| {
            let kinds = target["kind"].as_array().into_iter().flatten();
            kinds
                .filter_map(Value::as_str)
                .any(|kind| ["lib", "cdylib", "rlib"].contains(&kind))
        })?;
        let root = Path::new(library["src_path"].as_str()?).to_path_buf();
        Some((package["name"].as_str()?.to_owned(), root))
    };
    packages.filter_map(of_package).collect()
}

fn needs(sources: &[Source]) -> Needs {
    let modules: BTreeSet<&String> = sources.iter().filter_map(|it| it.path.first()).collect();
    let root = sources.iter().find(|it| it.path.is_empty());
    let mut exported: BTreeMap<String, String> = BTreeMap::new();
    for path in root.map(|root| uses(&source::flat(&root.tokens))).into_iter().flatten() {
        let path: Vec<_> = path.into_iter().filter(|it| it != "self" && it != "crate").collect();
        if let [module, .., name] = path.as_slice()
            && modules.contains(module)
        {
            exported.insert(name.clone(), module.clone());
        }
    }
    let mut needs: Needs = modules.iter().map(|it| ((*it).clone(), BTreeSet::new())).collect();
    for source in sources {
        let Some(own) = source.path.first() else {
            continue;
        };
        for name in from_root(&source::flat(&source.tokens), source.path.len()) {
            let module = match modules.contains(&name) {
                true => Some(&name),
                false => exported.get(&name),
            };
            if let Some(module) = module.filter(|it| *it != own) {
                needs.entry(own.clone()).or_default().insert(module.clone());
            }
        }
    }
    needs
}

/// The first name of each path from the crate's root, in a file that lies so deep.
fn from_root(tokens: &[Flat], depth: usize) -> Vec<String> {
    let word = |at: usize, text: &str| matches!(tokens.get(at), Some(Flat::Word(it)) if it == text);
    let separator = |at| tokens.get(at) == Some(&Flat::Sign(':')) && tokens.get(at + 1) == Some(&Flat::Sign(':'));
    let mut names = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let mut end = at;
        let mut up = 0;
        if word(at, "crate") {
            up = depth;
            end = at + 1;
        } else {
            while word(end, "super") && (up == 0 || separator(end - 2)) {
                up += 1;
                end += if separator(end + 1) { 3 } else { 1 };
            }
            if up > 0 {
                // Back to before the last separator.
                end = end.saturating_sub(2);
            }
        }
        if up == 0 {
            at += 1;
            continue;
        }
        if up == depth && separator(end) {
            names.extend(heads(tokens, end + 2));
        }
        at = end.max(at + 1);
    }
    names
}

/// What stands after a separator: one name, or those that a group begins with.
fn heads(tokens: &[Flat], at: usize) -> Vec<String> {
    match tokens.get(at) {
        Some(Flat::Word(name)) => vec![name.clone()],
        Some(Flat::Open(_)) => {
            let mut depth = 1;
            let mut begins = true;
            let mut names = Vec::new();
            for token in &tokens[at + 1..] {
                match token {
                    Flat::Open(_) => depth += 1,
                    Flat::Close => depth -= 1,
                    Flat::Sign(',') if depth == 1 => {
                        begins = true;
                        continue;
                    }
                    Flat::Word(name) if begins && depth == 1 => names.push(name.clone()),
                    _ => {}
                }
                begins = false;
                if depth == 0 {
                    break;
                }
            }
            names
        }
        _ => Vec::new(),
    }
}

/// Every path of every `use` declaration, written out.
fn uses(tokens: &[Flat]) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    let mut rest = tokens.iter().peekable();
    while let Some(token) = rest.next() {
        if *token != Flat::Word("use".into()) {
            continue;
        }
        let mut open: Vec<usize> = Vec::new();
        let mut path: Vec<String> = Vec::new();
        let mut ended = false;
        for token in rest.by_ref() {
            match token {
                Flat::Word(name) => {
                    path.push(name.clone());
                    ended = true;
                }
                Flat::Open(_) => {
                    open.push(path.len());
                    ended = false;
                }
                Flat::Sign(',') | Flat::Close | Flat::Sign(';') => {
                    if std::mem::take(&mut ended) {
                        all.push(path.clone());
                    }
                    path.truncate(open.last().copied().unwrap_or_default());
                    if *token == Flat::Close {
                        open.pop();
                    }
                    if *token == Flat::Sign(';') {
                        break;
                    }
                }
                _ => {}
            }
        }
    }
    all
}

/// The largest set of modules that all need each other; a module that needs no other with it has a set of its own.
fn largest(needs: &Needs) -> Vec<String> {
    let reached: BTreeMap<&String, BTreeSet<&String>> = needs.keys().map(|it| (it, reached(needs, it))).collect();
    let knot_of = |module: &String| -> Vec<String> {
        let mutual = reached[module].iter().filter(|it| reached[*it].contains(module));
        mutual.map(|it| (*it).clone()).collect()
    };
    needs.keys().map(knot_of).max_by_key(Vec::len).unwrap_or_default()
}

/// All that a module needs, itself if the way leads back.
fn reached<'a>(needs: &'a Needs, from: &String) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&String> = needs[from].iter().collect();
    while let Some(module) = next.pop() {
        if found.insert(module) {
            next.extend(&needs[module]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &[&str], text: &str) -> Source {
        let stream: proc_macro2::TokenStream = text.parse().unwrap();
        Source {
            path: path.iter().map(|it| (*it).to_owned()).collect(),
            tokens: stream.into_iter().collect(),
        }
    }

    #[test]
    fn a_way_back_by_a_reexport_or_a_parent_is_a_knot() {
        let sources = [
            source(
                &[],
                "mod a; mod b; mod c; mod d; pub use c::{deep::Thing as Other, Plain};",
            ),
            source(&["a"], "use crate::b::X; fn f() { g(super::d::Y) }"),
            source(&["b"], "use crate::{Plain, std_like::a};"),
            source(&["c"], "mod deep;"),
            source(
                &["c", "deep"],
                "use super::super::a; use super::b; macro_rules! m { () => { $crate::c } }",
            ),
            source(&["d"], "use super::a::Z as b;"),
        ];
        let needs = needs(&sources);
        let of = |name: &str| needs[name].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(
            (of("a"), of("b"), of("c"), of("d")),
            (vec!["b", "d"], vec!["c"], vec!["a"], vec!["a"])
        );
        assert_eq!(largest(&needs), ["a", "b", "c", "d"]);
        let modules = |count: usize| vec!["m".to_owned(); count];
        assert_eq!(judge("p", &modules(LARGEST)), None);
        let told = judge("p", &modules(LARGEST + 1)).expect("one too many");
        assert!(told.starts_with("p: 7 modules"), "{told}");
    }

    #[test]
    fn a_need_by_way_of_a_third_module_is_found() {
        let needs_of = |doctor: &str| {
            needs(&[
                source(&[], "mod doctor; mod bench; mod jobs; mod pipeline; mod output;"),
                source(&["doctor"], doctor),
                source(&["bench"], "use crate::jobs::X;"),
                source(&["jobs"], "use crate::output::X;"),
                source(&["pipeline"], "use crate::jobs::X;"),
                source(&["output"], ""),
            ])
        };
        assert_eq!(
            not_apart("hipcl", &needs_of("use crate::output::X;")),
            Vec::<String>::new()
        );
        let told = not_apart("hipcl", &needs_of("use crate::pipeline::X;"));
        assert_eq!(
            told,
            [
                "hipcl: doctor must not need jobs",
                "hipcl: doctor must not need pipeline"
            ]
        );
        assert!(not_apart("another", &needs_of("use crate::pipeline::X;")).is_empty());
    }

    #[test]
    fn modules_in_layers_are_no_knot() {
        let sources = [
            source(&[], "mod high; mod low;"),
            source(&["high"], "use crate::low::X; use crate::high::Y;"),
            source(&["low"], "use other::high;"),
        ];
        assert!(largest(&needs(&sources)).is_empty());
    }
}
