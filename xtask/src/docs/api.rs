//! Links from the book to the API: a type, method or function that the text names in code becomes a link to its page.
//!
//! | in the text | is |
//! |---|---|
//! | `` `Bridge::open` ``, `` `Shared<T>` `` | looked up in the crates of [`CRATES`]; a name that several have is no link |
//! | `` `clmgr::Engine` `` | looked up in that crate alone |
//!
//! A method that its type does not have, or a path that its crate does not have, is a problem: the book or the API is
//! stale.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The crates that the book is about.
const CRATES: &[&str] = &[
    "interop",
    "rocblas",
    "hip",
    "clmgr",
    "clmgr_fft",
    "platform",
    "hip_sys",
    "hip_host",
];

/// Chapters about one crate, whose names go before those of others.
const ABOUT: &[(&str, &[&str])] = &[("opencl.md", &["clmgr", "clmgr_fft"])];

/// Chapters with names of C++ classes that are no names of ours.
const FOREIGN: &[&str] = &["moving", "c-library"];

/// An item of a crate's documentation.
struct Item {
    /// Its path in the crate, such as `vulkan::Link`.
    path: String,
    /// Its page, relative to the crate's folder.
    page: String,
}

/// The items of all crates, and the folder with the documentation.
pub struct Api {
    folder: PathBuf,
    items: BTreeMap<&'static str, Vec<Item>>,
}

/// What a name turned out to be.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// The address below the folder of the documentation.
    Page(String),
    /// No name of ours, or one of several.
    Nothing,
    /// It begins like one of ours.
    Stale,
}

impl Api {
    /// Reads what `cargo doc` wrote into `folder`.
    pub fn read(folder: &Path) -> Self {
        let items = |name: &&'static str| {
            let all = fs::read_to_string(folder.join(name).join("all.html")).unwrap_or_default();
            (*name, entries(&all))
        };
        Self {
            folder: folder.to_owned(),
            items: CRATES.iter().map(items).collect(),
        }
    }

    /// The chapter with its links, and the names that are stale.
    pub fn link(&self, chapter: &str, text: &str) -> (String, Vec<String>) {
        let mut linked = String::with_capacity(text.len() * 2);
        let mut stale = Vec::new();
        let mut is_code = false;
        for line in text.split_inclusive('\n') {
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            if is_code || is_fence || line.starts_with('#') {
                linked.push_str(line);
                continue;
            }
            for (index, piece) in line.split('`').enumerate() {
                let is_span = index % 2 == 1;
                if !is_span {
                    linked.push_str(piece);
                    continue;
                }
                match self.find(chapter, piece) {
                    Found::Page(page) if !is_in_link(&linked) => linked.push_str(&format!("[`{piece}`](api/{page})")),
                    Found::Stale if !FOREIGN.iter().any(|start| chapter.starts_with(start)) => {
                        stale.push(format!("docs/src/{chapter}: `{piece}` names nothing in the API"));
                    }
                    _ => linked.push_str(&format!("`{piece}`")),
                }
            }
        }
        (linked, stale)
    }

    fn find(&self, chapter: &str, span: &str) -> Found {
        let name = span.split(['<', '(']).next().unwrap_or_default();
        let segments: Vec<&str> = name.split("::").collect();
        let is_word = |segment: &&str| {
            segment.starts_with(|c: char| c.is_ascii_alphabetic())
                && segment.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        // What follows the name may only be generics or empty brackets.
        let rest = &span[name.len()..];
        let is_plain = rest.is_empty() || rest == "()" || (rest.starts_with('<') && rest.ends_with('>'));
        if !is_plain || !segments.iter().all(is_word) {
            return Found::Nothing;
        }
        if segments.len() > 1 && self.items.contains_key(segments[0]) {
            return match self.within(segments[0], &segments[1..], true) {
                Some(page) => Found::Page(page),
                None => Found::Stale,
            };
        }
        let is_type = segments[0].starts_with(|c: char| c.is_ascii_uppercase());
        let is_function = segments.len() == 1 && name.contains('_');
        if !is_type && !is_function {
            return Found::Nothing;
        }
        let about = ABOUT
            .iter()
            .find(|(page, _)| *page == chapter)
            .map_or(&[][..], |(_, crates)| crates);
        for crates in [about, CRATES] {
            let pages: Vec<String> = crates
                .iter()
                .filter_map(|name| self.within(name, &segments, false))
                .collect();
            match &pages[..] {
                [page] => return Found::Page(page.clone()),
                [] => {}
                _ => return Found::Nothing,
            }
        }
        let is_ours = segments.len() == 2
            && segments[1].starts_with(|c: char| c.is_ascii_lowercase())
            && CRATES
                .iter()
                .any(|name| self.within(name, &segments[..1], false).is_some());
        match is_ours {
            true => Found::Stale,
            false => Found::Nothing,
        }
    }

    /// The page of a path in one crate: of an item, of a member of an item, or of a module.
    fn within(&self, name: &str, segments: &[&str], is_whole: bool) -> Option<String> {
        let items = self.items.get(name)?;
        // The one at the crate's root goes first: `Link` before `vulkan::Link`.
        let matching = |segments: &[&str]| {
            let path = segments.join("::");
            let ends = |item: &&Item| {
                let before = item.path.strip_suffix(&path);
                before.is_some_and(|before| before.is_empty() || (before.ends_with("::") && !is_whole))
            };
            let mut found: Vec<&Item> = items.iter().filter(ends).collect();
            found.sort_by_key(|item| item.path.len());
            found
        };
        if let Some(item) = matching(segments).first() {
            return Some(format!("{name}/{}", item.page));
        }
        let (member, owner) = segments.split_last()?;
        let owners = if owner.is_empty() { Vec::new() } else { matching(owner) };
        for item in owners {
            let page = fs::read_to_string(self.folder.join(name).join(&item.page)).unwrap_or_default();
            let kinds = [
                "method",
                "tymethod",
                "variant",
                "structfield",
                "associatedconstant",
                "associatedtype",
            ];
            let mut anchors = kinds.iter().map(|kind| format!("{kind}.{member}"));
            if let Some(anchor) = anchors.find(|anchor| page.contains(&format!("id=\"{anchor}\""))) {
                return Some(format!("{name}/{}#{anchor}", item.page));
            }
        }
        let module = format!("{name}/{}/index.html", segments.join("/"));
        (is_whole && self.folder.join(&module).exists()).then_some(module)
    }
}

/// The list of a crate's items: every `href="PAGE">PATH</a>` to an item.
fn entries(all: &str) -> Vec<Item> {
    let links = all.split("<a href=\"").skip(1);
    links
        .filter_map(|link| {
            let (page, rest) = link.split_once("\">")?;
            let (path, _) = rest.split_once("</a>")?;
            let file = page.rsplit('/').next()?;
            let kinds = ["struct.", "enum.", "trait.", "fn.", "type.", "constant.", "union."];
            kinds.iter().any(|kind| file.starts_with(kind)).then(|| Item {
                path: path.to_owned(),
                page: page.to_owned(),
            })
        })
        .collect()
}

/// Whether the text so far is inside `[...]`.
fn is_in_link(before: &str) -> bool {
    let line = before.rsplit("\n\n").next().unwrap_or_default();
    line.rfind('[') > line.rfind(']')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api() -> (tempfile::TempDir, Api) {
        let folder = tempfile::tempdir().unwrap();
        for (name, file, text) in [
            (
                "interop",
                "all.html",
                "<li><a href=\"struct.Bridge.html\">Bridge</a></li><a href=\"vulkan/struct.Link.html\">vulkan::Link</a>",
            ),
            ("interop", "struct.Bridge.html", "<section id=\"method.open\">"),
            ("interop", "vulkan/index.html", ""),
            ("interop", "vulkan/struct.Link.html", "<section id=\"method.enqueue\">"),
            (
                "clmgr",
                "all.html",
                "<a href=\"struct.Device.html\">Device</a><a href=\"enum.Kind.html\">Kind</a>",
            ),
            ("clmgr", "enum.Kind.html", "<section id=\"variant.Regular\">"),
            ("hip", "all.html", "<a href=\"struct.Device.html\">Device</a>"),
            (
                "rocblas",
                "all.html",
                "<a href=\"solver/fn.general_inverse.html\">solver::general_inverse</a>",
            ),
        ] {
            let path = folder.path().join(name).join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let api = Api::read(folder.path());
        (folder, api)
    }

    #[test]
    fn names_become_links_where_they_are_clear() {
        let (_folder, api) = api();
        for (span, page) in [
            ("Bridge", Some("interop/struct.Bridge.html")),
            ("Bridge<T>", Some("interop/struct.Bridge.html")),
            ("Bridge::open", Some("interop/struct.Bridge.html#method.open")),
            ("interop::vulkan", Some("interop/vulkan/index.html")),
            ("interop::vulkan::Link", Some("interop/vulkan/struct.Link.html")),
            ("Link::enqueue", Some("interop/vulkan/struct.Link.html#method.enqueue")),
            ("Kind::Regular", Some("clmgr/enum.Kind.html#variant.Regular")),
            ("general_inverse", Some("rocblas/solver/fn.general_inverse.html")),
            ("clmgr::Device", Some("clmgr/struct.Device.html")),
            ("Device", None),
            ("Bridge::open(&x)", None),
            ("hipMalloc", None),
            ("--route", None),
        ] {
            let expected = page.map_or(Found::Nothing, |page| Found::Page(page.into()));
            assert_eq!(api.find("a.md", span), expected, "{span}");
        }
        assert_eq!(
            api.find("opencl.md", "Device"),
            Found::Page("clmgr/struct.Device.html".into())
        );
    }

    #[test]
    fn code_headings_and_links_stay_and_stale_names_are_told() {
        let (_folder, api) = api();
        let text = "# `Bridge`\n```rust\nlet a = `Bridge`;\n```\n[the `Bridge`](x.md) and `Bridge`\n";
        let (linked, stale) = api.link("a.md", text);
        let expected = text.replace("and `Bridge`", "and [`Bridge`](api/interop/struct.Bridge.html)");
        assert_eq!((linked, stale), (expected, Vec::new()));
        let (_, stale) = api.link("a.md", "`Bridge::close` `clmgr::Gone` `Unknown::thing`\n");
        assert_eq!(stale.len(), 2, "{stale:?}");
        assert_eq!(api.link("moving.md", "`Bridge::close`\n").1, Vec::<String>::new());
    }
}
