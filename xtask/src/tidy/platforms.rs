//! Code decides by what is true of a platform (`Platform::facts`), never by its name: otherwise a new platform has to be
//! added wherever the others are compared.

use proc_macro2::TokenTree;
use serde_json::Value;

use super::knots::libraries;
use super::source::{self, Flat, Source};
use crate::error::{Error, Result};

/// The one library that may name a platform.
const OWNER: &str = "platform";

/// Every other library that names one outside its tests.
pub fn violations(metadata: &Value) -> Result<Vec<String>> {
    let libraries = libraries(metadata);
    let owner = libraries.iter().find(|(package, _)| package == OWNER);
    let (_, root) = owner.ok_or_else(|| Error::Failed(format!("there is no library {OWNER}")))?;
    let names = declared(&source::of_library(root)?);
    if names.is_empty() {
        return Err(Error::Failed(format!("{OWNER} declares no platform with `platforms!`")));
    }
    let mut problems = Vec::new();
    for (package, root) in libraries.iter().filter(|(package, _)| package != OWNER) {
        for source in source::of_library(root)? {
            problems.extend(judge(package, &source, &names));
        }
    }
    Ok(problems)
}

/// What stands before each arrow of `platforms!`.
fn declared(sources: &[Source]) -> Vec<String> {
    let in_module = sources.iter().filter(|source| source.path == ["platforms"]);
    let tokens = in_module.flat_map(|source| source.tokens.clone()).collect::<Vec<_>>();
    let list = tokens.windows(3).find_map(|it| match it {
        [TokenTree::Ident(name), TokenTree::Punct(sign), TokenTree::Group(list)]
            if name == "platforms" && sign.as_char() == '!' =>
        {
            Some(list.stream())
        }
        _ => None,
    });
    let list: Vec<TokenTree> = list.into_iter().flatten().collect();
    list.windows(2)
        .filter_map(|it| match it {
            [TokenTree::Ident(name), TokenTree::Punct(sign)] if sign.as_char() == '=' => Some(name.to_string()),
            _ => None,
        })
        .collect()
}

fn judge(package: &str, source: &Source, names: &[String]) -> Vec<String> {
    let module = match source.path.is_empty() {
        true => "its root".to_owned(),
        false => source.path.join("::"),
    };
    let tokens = source::flat(&source.tokens);
    let named = tokens.windows(4).filter_map(|it| match it {
        [Flat::Word(of), Flat::Sign(':'), Flat::Sign(':'), Flat::Word(name)] if of == "Platform" => Some(name),
        _ => None,
    });
    named
        .filter(|name| names.contains(name))
        .map(|name| {
            format!("{package}: {module} names `Platform::{name}`; decide by a fact from `Platform::facts` instead")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &[&str], text: &str) -> Source {
        let tokens: proc_macro2::TokenStream = text.parse().unwrap();
        Source {
            path: path.iter().map(|it| it.to_string()).collect(),
            tokens: tokens.into_iter().collect(),
        }
    }

    #[test]
    fn a_platform_is_named_in_its_own_library_only() {
        let owner = "macro_rules! platforms { ($($n:ident => $f:ident,)*) => {} } \
            platforms! { /// One. \n A => a, B => b, } fn other() { match 1 { C => d, } }";
        let names = declared(&[source(&["platforms"], owner)]);
        assert_eq!(names, ["A", "B"]);
        let named = source(&["m", "n"], "fn f(p: Platform) -> bool { p == platform::Platform::B }");
        let told = judge("x", &named, &names);
        assert_eq!(told.len(), 1);
        assert!(told[0].starts_with("x: m::n names `Platform::B`"), "{told:?}");
        let by_fact = source(
            &[],
            "fn f(p: Platform) -> bool { Platform::ALL.contains(&p) && p.facts().is_model }",
        );
        assert!(judge("x", &by_fact, &names).is_empty());
    }
}
