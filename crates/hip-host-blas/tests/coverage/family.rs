//! Names of functions that differ by element type and form only, written as one with braces.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The types in BLAS' and LAPACK's names, alone or as a pair of result and operand, and with the `i` of an index.
const TYPES: &[&str] = &[
    "h", "bf", "s", "d", "c", "z", "sc", "dz", "cs", "zd", "is", "id", "ic", "iz",
];

const FORMS: &[&str] = &["_strided_batched", "_batched"];

/// A name as the library's prefix, type and rest.
fn splits(name: &str) -> Vec<(&str, &str, &str)> {
    let at = name.find('_').map_or(0, |at| at + 1);
    let (prefix, rest) = name.split_at(at);
    TYPES
        .iter()
        .filter_map(|ty| rest.strip_prefix(ty).map(|rest| (prefix, *ty, rest)))
        .filter(|(_, _, rest)| !rest.is_empty() && !rest.starts_with('_'))
        .collect()
}

/// The name without its form, and the form.
fn form(name: &str) -> (&str, String) {
    let (short, wide) = match name.strip_suffix("_64") {
        Some(short) => (short, "_64"),
        None => (name, ""),
    };
    for form in FORMS {
        if let Some(base) = short.strip_suffix(form) {
            return (base, format!("{form}{wide}"));
        }
    }
    (short, wide.to_owned())
}

/// The alternatives in braces, or the only one without.
fn braces(alternatives: &[String]) -> String {
    match alternatives {
        [only] => only.clone(),
        several => format!("{{{}}}", several.join(",")),
    }
}

/// Families in the order of their names without types, each with what holds for all of its functions.
pub fn collapse(names: &[(&str, String)]) -> Vec<(String, String)> {
    let mut sizes = HashMap::<_, usize>::new();
    for (name, _) in names {
        for (prefix, _, rest) in splits(form(name).0) {
            *sizes.entry((prefix, rest)).or_default() += 1;
        }
    }
    // First the types that share a rest, a form and a state; a name alone with its rest has no type in it.
    let mut typed = BTreeMap::<_, Vec<&str>>::new();
    for (name, state) in names {
        let (base, form) = form(name);
        let size = |prefix, rest| sizes[&(prefix, rest)];
        let best = splits(base)
            .into_iter()
            .filter(|&(prefix, _, rest)| size(prefix, rest) > 1)
            .max_by_key(|&(prefix, ty, rest)| (size(prefix, rest), ty.len()));
        let at = base.find('_').map_or(0, |at| at + 1);
        let (prefix, ty, rest) = best.unwrap_or((&base[..at], "", &base[at..]));
        let key = (rest, prefix, form, state.as_str());
        typed.entry(key).or_default().push(ty);
    }
    // Then the forms that share all the rest, types included.
    let mut families = BTreeMap::<_, BTreeSet<String>>::new();
    for ((rest, prefix, form, state), mut types) in typed {
        types.sort_by_key(|ty| TYPES.iter().position(|known| known == ty));
        let types: Vec<_> = types.into_iter().map(str::to_owned).collect();
        let key = (rest, prefix, braces(&types), state);
        families.entry(key).or_default().insert(form);
    }
    families
        .into_iter()
        .map(|((rest, prefix, types, state), forms)| {
            let forms: Vec<_> = forms.into_iter().collect();
            (format!("{prefix}{types}{rest}{}", braces(&forms)), state.to_owned())
        })
        .collect()
}

/// The names a family stands for.
pub fn expand(family: &str) -> Vec<String> {
    let Some((before, rest)) = family.split_once('{') else {
        return vec![family.to_owned()];
    };
    let (alternatives, after) = rest.split_once('}').expect("every brace is closed");
    let ends = expand(after);
    alternatives
        .split(',')
        .flat_map(|one| ends.iter().map(move |end| format!("{before}{one}{end}")))
        .collect()
}
