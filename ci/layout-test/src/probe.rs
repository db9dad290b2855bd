//! Asks a C compiler what a set of headers says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use crate::source::{FORMS, Source, body};
use crate::{Claim, Compiler, Value};

/// What the headers say to a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The same expression, computed by the C compiler.
    Is(Value),
    /// The type has a definition, or none, unlike the claim.
    Defined(bool),
    /// There is no such type.
    NoType,
    /// There is no such field, constant or function.
    NoName,
}

/// One answer for each claim, in their order. `include` is the folder of the headers; headers that it lacks are left
/// out.
///
/// # Errors
/// The headers or the program can't be compiled for a reason that is not a claim's.
pub fn ask(
    compiler: &Compiler,
    include: Option<&Path>,
    headers: &[&str],
    claims: &[Claim],
) -> Result<Vec<Answer>, String> {
    let headers: Vec<String> = headers
        .iter()
        .filter(|header| include.is_none_or(|folder| folder.join(header).exists()))
        .map(|header| header.to_string())
        .collect();
    if headers.is_empty() {
        return Err("none of the headers is there".into());
    }
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let probe = Probe {
        compiler,
        include,
        headers: &headers,
        folder: folder.path(),
    };
    let types = probe.spellings(claims)?;
    probe.values(claims, &types)
}

/// What became of a type's name.
#[derive(Clone, Copy)]
enum Spelling {
    Form(&'static str),
    /// Declared, not defined.
    Opaque,
    Absent,
}

struct Probe<'a> {
    compiler: &'a Compiler,
    include: Option<&'a Path>,
    headers: &'a [String],
    folder: &'a Path,
}

impl Probe<'_> {
    /// Tries every spelling of every type.
    fn spellings<'c>(&self, claims: &'c [Claim]) -> Result<BTreeMap<&'c str, Spelling>, String> {
        let names: BTreeSet<&str> = claims.iter().filter_map(|claim| claim.ty).collect();
        let mut source = Source::new(self.headers);
        let mut tried = Vec::new();
        for name in &names {
            for form in FORMS {
                let line = source.line(format!(
                    "static size_t size_{}(void) {{ return sizeof({form}{name}); }}",
                    tried.len()
                ));
                tried.push((line, *name, form));
            }
        }
        // Two signs of a declaration without a definition: a pointer to the type is allowed, or its tag is taken.
        let declared: Vec<(usize, usize, &str)> = names
            .iter()
            .enumerate()
            .map(|(i, name)| {
                let pointer = source.line(format!("static {name} *pointer_{i};"));
                (pointer, source.line(format!("union {name};")), *name)
            })
            .collect();
        let wrong: BTreeSet<usize> = self
            .errors(&source.text(&[]), None)?
            .into_iter()
            .map(|(line, _)| line)
            .collect();
        let mut spellings = BTreeMap::new();
        for (pointer, tag, name) in declared {
            let spelling = if !wrong.contains(&pointer) || wrong.contains(&tag) {
                Spelling::Opaque
            } else {
                Spelling::Absent
            };
            spellings.insert(name, spelling);
        }
        for (line, name, form) in tried.into_iter().rev() {
            if !wrong.contains(&line) {
                spellings.insert(name, Spelling::Form(form));
            }
        }
        Ok(spellings)
    }

    /// Drops the claims that do not compile, then runs the rest.
    fn values(&self, claims: &[Claim], types: &BTreeMap<&str, Spelling>) -> Result<Vec<Answer>, String> {
        let mut answers = vec![Answer::NoName; claims.len()];
        let mut open = Vec::new();
        for (i, claim) in claims.iter().enumerate() {
            match (claim.ty.map(|ty| types[ty]), &claim.value) {
                (Some(Spelling::Absent), _) => answers[i] = Answer::NoType,
                (Some(Spelling::Opaque), Value::Opaque) => answers[i] = Answer::Is(Value::Opaque),
                (Some(Spelling::Opaque), _) => answers[i] = Answer::Defined(false),
                (Some(Spelling::Form(_)), Value::Opaque) => answers[i] = Answer::Defined(true),
                _ => open.push(i),
            }
        }
        let program = self.folder.join("probe");
        loop {
            let mut source = Source::new(self.headers);
            let mut owner = BTreeMap::new();
            for &i in &open {
                let spelling = claims[i].ty.map(|ty| match types[ty] {
                    Spelling::Form(form) => format!("{form}{ty}"),
                    Spelling::Opaque | Spelling::Absent => ty.to_owned(),
                });
                owner.insert(source.line(body(i, &claims[i], spelling.as_deref())), i);
            }
            let errors = self.errors(&source.text(&open), Some(&program))?;
            let Some((line, message)) = errors.first() else {
                break;
            };
            let absent: BTreeSet<usize> = errors.iter().filter_map(|(line, _)| owner.get(line).copied()).collect();
            if absent.is_empty() {
                return Err(format!("line {line} of the probe: {message}"));
            }
            open.retain(|i| !absent.contains(i));
        }
        for line in run(&program)?.lines() {
            let (i, value) = read(line).ok_or_else(|| format!("the probe printed {line:?}"))?;
            answers[i] = Answer::Is(match claims[i].value {
                Value::Declared => Value::Declared,
                _ => value,
            });
        }
        Ok(answers)
    }

    fn errors(&self, text: &str, program: Option<&Path>) -> Result<Vec<(usize, String)>, String> {
        let path = self.folder.join("probe.c");
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        self.compiler.errors(&path, self.include, program)
    }
}

fn run(program: &Path) -> Result<String, String> {
    let output = Command::new(program)
        .output()
        .map_err(|error| format!("can't run the probe: {error}"))?;
    if !output.status.success() {
        return Err(format!("the probe ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}

/// `<claim> <negative> <64 bits>` or `<claim> b <bytes>`.
fn read(line: &str) -> Option<(usize, Value)> {
    let mut words = line.split(' ');
    let (claim, kind, digits) = (words.next()?, words.next()?, words.next()?);
    let value = match kind {
        "b" => Value::Bytes(digits.to_owned()),
        negative => {
            let bits = u64::from_str_radix(digits, 16).ok()?;
            Value::Number(match negative {
                "0" => i128::from(bits),
                _ => i128::from(bits.cast_signed()),
            })
        }
    };
    Some((claim.parse().ok()?, value))
}
