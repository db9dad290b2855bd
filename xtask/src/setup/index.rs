//! Finds the addresses of a project's files in a package index.
//!
//! Reads both forms of the "simple" API: JSON, which newer indexes return (PEP 691), and the page of links that
//! every index returns (PEP 503).

use fluent_uri::UriRef;
use serde_json::Value;

/// The accepted media types, the preferred one first.
pub const ACCEPT: &str = "application/vnd.pypi.simple.v1+json, text/html;q=0.5";

/// The address of the file with this name and digest, if the page at `page` lists it.
///
/// A digest on the page must match the expected one. A page may omit it; the caller checks the content in any case.
///
/// # Errors
/// If the page is not in the form that it claims.
pub fn find(page: &str, media_type: &str, text: &str, name: &str, sha256: &str) -> Result<Option<String>, String> {
    let files = match media_type.ends_with("json") {
        true => of_json(text)?,
        false => of_links(text),
    };
    let wanted = files
        .into_iter()
        .find(|file| file.name == name && file.sha256.as_deref().is_none_or(|digest| digest == sha256));
    wanted.map(|file| absolute(page, &file.address)).transpose()
}

/// A file as listed on a page.
#[derive(Debug, PartialEq, Eq)]
struct Listed {
    name: String,
    /// May be relative to the page.
    address: String,
    sha256: Option<String>,
}

fn of_json(text: &str) -> Result<Vec<Listed>, String> {
    let page: Value = serde_json::from_str(text).map_err(|error| format!("the index did not return JSON: {error}"))?;
    let files = page["files"].as_array().into_iter().flatten();
    Ok(files
        .filter_map(|file| {
            Some(Listed {
                name: file["filename"].as_str()?.to_owned(),
                address: file["url"].as_str()?.to_owned(),
                sha256: file["hashes"]["sha256"].as_str().map(str::to_owned),
            })
        })
        .collect())
}

/// The targets of the page's links. The digest is the fragment; the name is the last part of the path.
fn of_links(text: &str) -> Vec<Listed> {
    let mut files = Vec::new();
    for (at, _) in text.match_indices("href=") {
        let rest = &text[at + "href=".len()..];
        let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
            continue;
        };
        let Some((target, _)) = rest[1..].split_once(quote) else {
            continue;
        };
        let target = target.replace("&amp;", "&");
        let (address, fragment) = target.split_once('#').unwrap_or((&target, ""));
        let path = address.split('?').next().unwrap_or_default();
        files.push(Listed {
            name: path.rsplit('/').next().unwrap_or_default().to_owned(),
            address: address.to_owned(),
            sha256: fragment.strip_prefix("sha256=").map(str::to_owned),
        });
    }
    files
}

/// An address on the page's own host keeps the user and password of the page's address.
fn absolute(page: &str, address: &str) -> Result<String, String> {
    let wrong = |what: &str| format!("{what} is not an address");
    let base = fluent_uri::Uri::parse(page).map_err(|_| wrong(page))?;
    let reference = UriRef::parse(address).map_err(|_| wrong(address))?;
    let resolved = reference.resolve_against(&base).map_err(|_| wrong(address))?;
    Ok(resolved.into_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "https://me:secret@mirror.example/simple/tool/";
    const NAME: &str = "tool-1.0-py3-none-any.whl";

    #[test]
    fn a_file_is_found_in_the_json_form() {
        let text = format!(
            r#"{{"files": [{{"filename": "tool-0.9.whl", "url": "/old.whl", "hashes": {{}}}},
                 {{"filename": "{NAME}", "url": "https://files.example/{NAME}", "hashes": {{"sha256": "aa"}}}}]}}"#
        );
        let found = find(PAGE, "application/vnd.pypi.simple.v1+json", &text, NAME, "aa");
        assert_eq!(found, Ok(Some(format!("https://files.example/{NAME}"))));
        let other = find(PAGE, "application/vnd.pypi.simple.v1+json", &text, NAME, "bb");
        assert_eq!(other, Ok(None), "another digest is another file");
    }

    #[test]
    fn a_file_is_found_among_links() {
        let text = format!(
            "<a href='../../files/other.whl#sha256=aa'>other</a>\n\
             <a data-requires-python=\"&gt;=3\" href=\"../../files/{NAME}?a=1&amp;b=2#sha256=aa\">{NAME}</a>"
        );
        assert_eq!(
            find(PAGE, "text/html", &text, NAME, "aa"),
            Ok(Some(format!("https://me:secret@mirror.example/files/{NAME}?a=1&b=2")))
        );
        assert_eq!(find(PAGE, "text/html", &text, NAME, "bb"), Ok(None));
        assert_eq!(find(PAGE, "text/html", "<a href=", NAME, "aa"), Ok(None));
    }

    #[test]
    fn a_page_without_digests_is_matched_by_name() {
        let text = format!("<a href=\"/files/{NAME}\">");
        assert_eq!(
            find(PAGE, "text/html", &text, NAME, "aa"),
            Ok(Some(format!("https://me:secret@mirror.example/files/{NAME}")))
        );
    }

    #[test]
    fn invalid_json_is_an_error() {
        let reason = find(PAGE, "application/json", "<html>", NAME, "aa").unwrap_err();
        assert!(!reason.contains('\n'), "{reason}");
    }
}
