//! Types and functions that have another form in older releases.
//!
//! Of those the bindings hold one form for each: the newest under the plain name, an older one as `name_until_N`, where
//! N is the last major release that has it. In C every release calls its own form by the plain name.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Claim, Value};

/// The claims that are about releases of this major number, with C's names.
pub fn of_release(claims: &[Claim], major: u32) -> Vec<Claim> {
    let mut older: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for claim in claims {
        if let (base, Some(last)) = split(name(claim)) {
            older.entry(base).or_default().insert(last);
        }
    }
    let fits = |claim: &&Claim| {
        let (base, last) = split(name(claim));
        let form = older.get(base).and_then(|majors| majors.range(major..).next().copied());
        last == form
    };
    claims.iter().filter(fits).map(in_c).collect()
}

/// What the claim's form belongs to.
fn name(claim: &Claim) -> &str {
    claim.ty.unwrap_or(&claim.c)
}

fn in_c(claim: &Claim) -> Claim {
    let mut claim = claim.clone();
    claim.ty = claim.ty.map(|ty| split(ty).0);
    if claim.value == Value::Declared {
        claim.c = split(&claim.c).0.to_owned().into();
    }
    claim
}

/// `name_until_6` is `name` and 6.
fn split(name: &str) -> (&str, Option<u32>) {
    let form = name
        .rsplit_once("_until_")
        .and_then(|(base, last)| Some((base, last.parse().ok()?)));
    match form {
        Some((base, last)) => (base, Some(last)),
        None => (name, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(major: u32) -> Vec<(String, Value)> {
        let size = |ty, bytes| Claim::number(Some(ty), "sizeof($)", bytes);
        let claims = [
            size("box_t", 30),
            size("box_t_until_6", 20),
            size("box_t_until_4", 10),
            size("lid_t", 1),
            Claim::symbol("open"),
            Claim::symbol("open_until_5"),
            Claim::number(None, "WAIT_until_idle", 7),
        ];
        let kept = of_release(&claims, major);
        kept.iter()
            .map(|claim| (claim.subject(), claim.value.clone()))
            .collect()
    }

    #[test]
    fn each_release_is_compared_with_its_own_form_only() {
        for (major, bytes) in [(3, 10), (4, 10), (5, 20), (6, 20), (7, 30)] {
            let expected = [
                ("sizeof(box_t)", Value::Number(bytes)),
                ("sizeof(lid_t)", Value::Number(1)),
                ("open()", Value::Declared),
                ("WAIT_until_idle", Value::Number(7)),
            ];
            let expected = expected.map(|(subject, value)| (subject.to_owned(), value));
            assert_eq!(kept(major), expected, "ROCm {major}");
        }
    }
}
