//! AMD's declarations for Cython (`cyhip.pxd`) as a C header again.
//!
//! AMD makes these files from HIP's headers, and what a C compiler knows anyway is left out of them. It is put back
//! here:
//!
//! | lost | taken from |
//! |---|---|
//! | the numbers of constants and enums | the compiled bindings ([`Measured`]) |
//! | members without a name | [`UNNAMED_MEMBERS`]: where each belongs |
//! | bit fields | [`BIT_FIELDS`] |
//! | names that are macros for others | [`MACROS`] |
//!
//! Nothing is believed: the header ends with one assertion for every size and place that AMD's own header gave the
//! bindings, and the C parser that reads it fails if one does not hold. Parts of a structure have none: the bindings
//! spell those anew, without their members that have no name, so only the size of the whole is the header's.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::Result;

/// Members without a name, by the type that the bindings call them, with the field before which each one lies.
const UNNAMED_MEMBERS: [(&str, Option<&str>); 6] = [
    ("hipDevResource_st_union_0", Some("nextResource")),
    ("hipGraphNodeParams_union_0", Some("reserved2")),
    ("hipLaunchAttribute_st_union_0", None),
    ("hipMemAllocationProp_union_0", Some("location")),
    (
        "hipStreamBatchMemOpParams_union_hipStreamMemOpWaitValueParams_t_union_0",
        Some("flags"),
    ),
    (
        "hipStreamBatchMemOpParams_union_hipStreamMemOpWriteValueParams_t_union_0",
        Some("flags"),
    ),
];

/// Structures whose fields are one bit each.
const BIT_FIELDS: [&str; 1] = ["hipDeviceArch_t"];

/// What HIP's headers define as another name since ROCm 6.
const MACROS: [(&str, &str); 3] = [
    ("hipChooseDevice", "hipChooseDeviceR0600"),
    ("hipDeviceProp_t", "hipDeviceProp_tR0600"),
    ("hipGetDeviceProperties", "hipGetDevicePropertiesR0600"),
];

/// Macros with a cast, which the bindings of the `-sys` crates spell by hand.
const CASTS: [&str; 2] = ["hipCpuDeviceId", "hipInvalidDeviceId"];

/// What the compiled bindings report: see `measure.py`.
#[derive(Debug, Default)]
pub struct Measured {
    values: BTreeMap<String, i64>,
    sizes: BTreeMap<String, u64>,
    offsets: BTreeMap<(String, String), u64>,
}

impl Measured {
    pub fn parse(text: &str) -> Result<Self> {
        let mut measured = Self::default();
        for line in text.lines() {
            match line.split(' ').collect::<Vec<_>>().as_slice() {
                ["value", name, number] => {
                    measured.values.insert((*name).to_owned(), number.parse()?);
                }
                ["size", name, bytes] => {
                    measured.sizes.insert((*name).to_owned(), bytes.parse()?);
                }
                ["offset", name, field, bytes] => {
                    let place = ((*name).to_owned(), (*field).to_owned());
                    measured.offsets.insert(place, bytes.parse()?);
                }
                _ => return Err(format!("the bindings have the unknown line `{line}`").into()),
            }
        }
        Ok(measured)
    }

    pub fn value(&self, name: &str) -> Result<i64> {
        self.values
            .get(name)
            .copied()
            .ok_or_else(|| format!("the bindings know no number for `{name}`").into())
    }
}

/// One declaration of such a file.
#[derive(Debug, PartialEq, Eq)]
enum Item {
    /// A macro for a number.
    Constant(String),
    /// Another name of a type, as C has it.
    Alias(String),
    /// Its name, unless it has none, and the names of its values.
    Enum(Option<String>, Vec<String>),
    Structure(Structure),
    /// As C has it.
    Function(String),
}

#[derive(Debug, PartialEq, Eq)]
struct Structure {
    /// `struct` or `union`.
    kind: &'static str,
    name: String,
    /// Whether it is made up for a part of another structure.
    part: bool,
    /// Type and name, an array's length behind it; empty if only its name is known.
    fields: Vec<(String, String)>,
}

/// The header; `include` is another one that it builds on.
pub fn header(source: &str, measured: &Measured, include: Option<&str>) -> Result<String> {
    let items = items(source)?;
    let mut text = String::from("#pragma once\n#include <stddef.h>\n#include <stdint.h>\n");
    if let Some(include) = include {
        writeln!(text, "#include <{include}>")?;
    }
    for (name, real) in MACROS {
        writeln!(text, "#define {name} {real}")?;
    }
    let structures = Structures::new(&items)?;
    for structure in structures.named() {
        let Structure { kind, name, .. } = structure;
        writeln!(text, "typedef {kind} {name} {name};")?;
    }
    for item in &items {
        match item {
            Item::Constant(name) if CASTS.contains(&name.as_str()) => {}
            Item::Constant(name) => {
                // C's macros have no sign: the bindings read flags as numbers that have one.
                let number = measured.value(name)?;
                let number = u32::try_from(number)
                    .or_else(|_| i32::try_from(number).map(|negative| negative.cast_unsigned()))?;
                writeln!(text, "#define {name} {number}")?;
            }
            Item::Alias(alias) => writeln!(text, "typedef {alias};")?,
            Item::Enum(name, values) => {
                let name = name.as_deref().unwrap_or_default();
                let typedef = if name.is_empty() { "" } else { "typedef " };
                writeln!(text, "{typedef}enum {name} {{")?;
                for value in values {
                    writeln!(text, "  {value} = {},", measured.value(value)?)?;
                }
                writeln!(text, "}} {name};")?;
            }
            Item::Structure(structure) if structures.is_inlined(&structure.name) => {}
            Item::Structure(structure) => {
                if !structure.fields.is_empty() {
                    let body = structures.body(structure)?;
                    writeln!(text, "{} {} {body};", structure.kind, structure.name)?;
                }
            }
            Item::Function(function) => writeln!(text, "{function};")?,
        }
    }
    text.push_str(&structures.assertions(measured)?);
    Ok(text)
}

/// The structures of a file by name.
struct Structures<'a>(BTreeMap<&'a str, &'a Structure>);

impl<'a> Structures<'a> {
    /// Fails if a part belongs to no structure, or a name above is of none.
    fn new(items: &'a [Item]) -> Result<Self> {
        let all: BTreeMap<&str, &Structure> = items
            .iter()
            .filter_map(|item| match item {
                Item::Structure(structure) => Some((structure.name.as_str(), structure)),
                _ => None,
            })
            .collect();
        let used: BTreeSet<&str> = all
            .values()
            .flat_map(|structure| &structure.fields)
            .map(|(ty, _)| ty.as_str())
            .collect();
        let unnamed: BTreeSet<&str> = UNNAMED_MEMBERS.iter().map(|(part, _)| *part).collect();
        for structure in all.values().filter(|structure| structure.part) {
            let name = structure.name.as_str();
            if used.contains(name) == unnamed.contains(name) {
                return Err(
                    format!("`{name}` is an unnamed member; state its place in xtask/src/codegen/pxd.rs").into(),
                );
            }
        }
        Ok(Self(all))
    }

    /// Those that C knows by name.
    fn named(&self) -> impl Iterator<Item = &'a Structure> {
        self.0
            .values()
            .copied()
            .filter(|structure| !self.is_inlined(&structure.name))
    }

    /// Whether C has no name for it: `owner_union_0`. A part with a tag of its own, `owner_tag`, has one.
    fn is_inlined(&self, name: &str) -> bool {
        let numbered = |name: &str| {
            let (rest, number) = name.rsplit_once('_')?;
            let kind = rest.ends_with("_struct") || rest.ends_with("_union");
            Some(kind && number.bytes().all(|digit| digit.is_ascii_digit()))
        };
        self.0.get(name).is_some_and(|structure| structure.part) && numbered(name) == Some(true)
    }

    /// The fields in braces.
    fn body(&self, structure: &Structure) -> Result<String> {
        let mut lines = Vec::new();
        let unnamed = UNNAMED_MEMBERS.iter().find_map(|(part, before)| {
            let owner = part.rsplit_once("_union_")?.0;
            (owner == structure.name).then_some((*part, *before))
        });
        let member = |part: &str| -> Result<String> {
            let part = self.0.get(part).copied().ok_or("a part that does not exist")?;
            Ok(format!("{} {}", part.kind, self.body(part)?))
        };
        let mut placed = unnamed.is_none();
        for (ty, name) in &structure.fields {
            if let Some((part, Some(before))) = unnamed
                && before == name
            {
                lines.push(member(part)?);
                placed = true;
            }
            let ty = if self.is_inlined(ty) { member(ty)? } else { ty.clone() };
            let bits = if BIT_FIELDS.contains(&structure.name.as_str()) {
                " : 1"
            } else {
                ""
            };
            lines.push(format!("{ty} {name}{bits}"));
        }
        if let Some((part, None)) = unnamed {
            lines.push(member(part)?);
            placed = true;
        }
        if !placed {
            return Err(format!("`{}` lacks the field before its unnamed member", structure.name).into());
        }
        Ok(format!("{{ {}; }}", lines.join("; ")))
    }

    /// What the compiled bindings know of the structures that they take from AMD's header.
    fn assertions(&self, measured: &Measured) -> Result<String> {
        let mut text = String::new();
        let whole = self
            .named()
            .filter(|structure| !structure.part && !structure.fields.is_empty());
        for structure in whole {
            let name = &structure.name;
            let Some(size) = measured.sizes.get(name) else {
                return Err(format!("the bindings know no size for `{name}`").into());
            };
            writeln!(text, "_Static_assert(sizeof({name}) == {size}, \"{name}\");")?;
            if BIT_FIELDS.contains(&name.as_str()) {
                continue;
            }
            for (_, field) in &structure.fields {
                let field = field.split('[').next().unwrap_or_default();
                if let Some(at) = measured.offsets.get(&(name.clone(), field.to_owned())) {
                    writeln!(
                        text,
                        "_Static_assert(offsetof({name}, {field}) == {at}, \"{name}.{field}\");"
                    )?;
                }
            }
        }
        Ok(text)
    }
}

/// Takes the file apart. Comments, imports and what is Python's own are left out.
fn items(source: &str) -> Result<Vec<Item>> {
    let mut items: Vec<Item> = Vec::new();
    // The indentation of a declaration whose lines are being read.
    let mut block: Option<usize> = None;
    for line in source.lines() {
        let text = line.split('#').next().unwrap_or_default().trim();
        if text.is_empty() {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        if block.is_some_and(|outer| indent > outer) {
            match items.last_mut() {
                Some(Item::Enum(_, values)) => values.push(text.to_owned()),
                Some(Item::Structure(structure)) if text != "pass" => {
                    let at = text.rfind(' ').ok_or_else(|| unknown(line))?;
                    let (ty, name) = (text[..at].trim(), text[at + 1..].trim());
                    structure.fields.push((ty.to_owned(), name.to_owned()));
                }
                _ => {}
            }
            continue;
        }
        block = None;
        if text.starts_with("cdef extern from") || text == "from libc.stdint cimport *" {
            continue;
        }
        let Some(item) = item(text, indent == 0).ok_or_else(|| unknown(line))? else {
            continue;
        };
        block = text.ends_with(':').then_some(indent);
        items.push(item);
    }
    Ok(items)
}

fn unknown(line: &str) -> String {
    format!("a declaration of an unknown form: {}", line.trim())
}

/// The first line of a declaration. The outer `None`: of a form that is not known; the inner one: nothing for C.
fn item(text: &str, outermost: bool) -> Option<Option<Item>> {
    if let Some(import) = text.strip_prefix("from ") {
        let names = import.split_once(" cimport ")?.1;
        let alias = names.split_once(" as ");
        return Some(alias.map(|(old, new)| Item::Alias(format!("{old} {new}"))));
    }
    if let Some(head) = text.strip_suffix(':') {
        let words: Vec<&str> = head.split(' ').collect();
        let structure = |kind, name: &str| {
            Item::Structure(Structure {
                kind,
                name: name.to_owned(),
                part: outermost,
                fields: Vec::new(),
            })
        };
        return Some(Some(match words.as_slice() {
            ["cdef", "enum"] => Item::Enum(None, Vec::new()),
            ["cdef", "enum", name] => Item::Enum(Some((*name).to_owned()), Vec::new()),
            // The name in C is a macro's, see [`MACROS`].
            ["cdef", "struct", name, real] if MACROS.contains(&(*name, real.trim_matches('"'))) => {
                structure("struct", name)
            }
            ["cdef" | "ctypedef", "struct", name] => structure("struct", name),
            ["cdef", "union", name] => structure("union", name),
            _ => return None,
        }));
    }
    if let Some(alias) = text.strip_prefix("ctypedef ") {
        let of_python = alias.starts_with("bint ");
        return Some((!of_python).then(|| Item::Alias(alias.to_owned())));
    }
    let declaration = text.strip_prefix("cdef ")?;
    if let Some((function, _)) = declaration
        .split_once(" except? ")
        .or_else(|| declaration.split_once(" noexcept "))
    {
        // The bindings' own question whether a library has a symbol.
        let of_python = function.starts_with("bint ");
        return Some((!of_python).then(|| Item::Function(function.to_owned())));
    }
    match declaration.rsplit_once(' ')? {
        ("int", name) => Some(Some(Item::Constant(name.to_owned()))),
        // Texts, and numbers made pointers: no declaration that is bound.
        ("char *" | "size_t", _) => Some(None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
# A comment: with a colon:
from libc.stdint cimport *
ctypedef bint _Bool # Python's
from rocm.bindings.cyhip cimport hipOld as hipNew
cdef extern from \"hip/hip_runtime.h\":

    cdef int hipFlag

    cdef char * HIP_TEXT

    cdef enum:
        HIP_ONE

    cdef enum hipKind:
        hipKindA
        hipKindB

    ctypedef hipKind hipOther

    cdef struct ihipThing_t:
        pass

    ctypedef ihipThing_t * hipThing_t

cdef struct hipBox_union_0_struct_0:
    void * pointer
    int rows[3]

cdef union hipBox_union_0:
    hipBox_union_0_struct_0 wide
    unsigned long long number

cdef extern from \"hip/hip_runtime.h\":

    cdef struct hipBox:
        hipKind kind
        hipBox_union_0 in

# Documented.
cdef hipKind hipAsk(hipThing_t thing,const char *const * names) except? hipKindB nogil
cdef const char * hipName(hipBox * box) noexcept nogil
cdef bint __hip_has_symbol(const char* name) noexcept nogil
";

    fn measured() -> Measured {
        Measured::parse(
            "value hipFlag -2147483648\nvalue HIP_ONE 0\nvalue hipKindA 3\nvalue hipKindB 1055\n\
             size hipBox 32\noffset hipBox kind 0\noffset hipBox in 8\n",
        )
        .expect("well formed")
    }

    #[test]
    fn every_kind_of_declaration_becomes_c_again() {
        let header = header(SOURCE, &measured(), Some("hip/other.h")).expect("a header");
        for line in [
            "#include <hip/other.h>",
            "#define hipGetDeviceProperties hipGetDevicePropertiesR0600",
            "#define hipFlag 2147483648",
            "typedef hipOld hipNew;",
            "typedef enum hipKind {\n  hipKindA = 3,\n  hipKindB = 1055,\n} hipKind;",
            "enum  {\n  HIP_ONE = 0,\n} ;",
            "typedef struct ihipThing_t ihipThing_t;",
            "typedef ihipThing_t * hipThing_t;",
            "struct hipBox { hipKind kind; union { struct { void * pointer; int rows[3]; } wide; unsigned long long number; } in; };",
            "hipKind hipAsk(hipThing_t thing,const char *const * names);",
            "const char * hipName(hipBox * box);",
            "_Static_assert(sizeof(hipBox) == 32, \"hipBox\");",
            "_Static_assert(offsetof(hipBox, in) == 8, \"hipBox.in\");",
        ] {
            assert!(header.contains(line), "{line}\n\n{header}");
        }
        for absent in ["_Bool", "has_symbol", "HIP_TEXT", "hipBox_union_0"] {
            assert!(!header.contains(absent), "{absent}\n\n{header}");
        }
    }

    #[test]
    fn a_member_without_a_name_lies_where_the_list_says() {
        let source = "\
cdef union hipDevResource_st_union_0:
    int sm
cdef extern from \"x.h\":
    cdef struct hipDevResource_st:
        int type
        hipDevResource_st * nextResource
";
        let measured = Measured::parse("size hipDevResource_st 16\n").expect("well formed");
        let text = header(source, &measured, None).expect("a header");
        let body = "{ int type; union { int sm; }; hipDevResource_st * nextResource; }";
        assert!(text.contains(body), "{text}");

        let other = source.replace("hipDevResource_st", "hipNovelty_st");
        let error = header(&other, &measured, None).expect_err("no list says where it lies");
        assert!(error.to_string().contains("hipNovelty_st_union_0"), "{error}");
        let moved = source.replace("nextResource", "later");
        let error = header(&moved, &measured, None).expect_err("the field is gone");
        assert!(error.to_string().contains("lacks the field"), "{error}");
    }

    #[test]
    fn what_the_bindings_do_not_tell_is_an_error_and_no_guess() {
        let without = |line: &str| {
            let text = "value hipKindA 3\nsize hipBox 8\n".replace(line, "");
            let measured = Measured::parse(&text).expect("well formed");
            let source = "cdef extern from \"x.h\":\n    cdef enum hipKind:\n        hipKindA\n    cdef struct hipBox:\n        hipKind kind\n";
            header(source, &measured, None)
        };
        assert!(without("nothing").is_ok());
        for line in ["value hipKindA 3\n", "size hipBox 8\n"] {
            assert!(without(line).is_err(), "{line}");
        }
        assert!(Measured::parse("value hipKindA\n").is_err());
        assert!(header("cdef class Novelty(x)\n", &measured(), None).is_err());
    }
}
