//! What does not agree.

use std::collections::BTreeSet;

use crate::{Answer, Claim, Value};

/// One line for each claim that the headers do not confirm; a type that is not there is one line, not one for each
/// field.
pub fn differences(claims: &[Claim], answers: &[Answer]) -> BTreeSet<String> {
    assert_eq!(claims.len(), answers.len(), "one answer for each claim");
    claims
        .iter()
        .zip(answers)
        .filter_map(|(claim, answer)| difference(claim, answer))
        .collect()
}

fn difference(claim: &Claim, answer: &Answer) -> Option<String> {
    let subject = claim.subject();
    match answer {
        Answer::Is(value) if *value == claim.value => None,
        Answer::Is(value) => Some(format!(
            "{subject} is {}, the bindings say {}",
            words(value),
            words(&claim.value)
        )),
        Answer::Defined(true) => Some(format!("{subject} has a definition, the bindings say none")),
        Answer::Defined(false) => Some(format!(
            "{} has no definition, the bindings say one",
            claim.ty.unwrap_or(&subject)
        )),
        Answer::NoType => Some(format!("no type {}", claim.ty.unwrap_or(&subject))),
        // The size of a field goes without saying where its offset does.
        Answer::NoName if claim.c.starts_with("sizeof((($") => None,
        Answer::NoName => Some(format!("no {subject}")),
    }
}

fn words(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        Value::Bytes(digits) => format!("bytes {digits}"),
        Value::Opaque => "opaque".into(),
        Value::Declared => "declared".into(),
    }
}

#[cfg(test)]
mod tests;
