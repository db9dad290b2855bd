//! A wrong claim fails. The headers here are the tests' own, so only a C compiler is needed.

use std::collections::BTreeSet;

use super::*;
use crate::{Compiler, ask};

const HEADER: &str = "
typedef struct point_s { char tag; double x; union { int type; float ratio; }; struct { short low, high; } pair; } point_t;
struct bits { unsigned one : 1; unsigned three : 3; };
struct hidden;
typedef struct hidden *hidden_t;
enum colour { COLOUR_RED = 3, COLOUR_NONE = -1 };
typedef enum { SHADE_LIGHT, SHADE_FULL = 0xffffffff } shade_t;
#define LIMIT 17
#define HUGE 0x8000000000000000ull
#define NAME \"probe\"
#define SELF ((hidden_t)2)
int paint(point_t *where);
";

/// What is true of that header.
fn truth() -> Vec<Claim> {
    let point = Some("point_t");
    vec![
        Claim::number(point, "sizeof($)", 24),
        Claim::number(point, "_Alignof($)", 8),
        Claim::number(point, "offsetof($, x)", 8),
        Claim::number(point, "sizeof((($ *)0)->x)", 8),
        Claim::number(point, "offsetof($, ratio)", 16),
        Claim::number(point, "offsetof($, pair.high)", 22),
        Claim::number(Some("point_s"), "sizeof($)", 24),
        Claim::bits("bits", "three", &[0x0e, 0, 0, 0]),
        Claim::opaque("hidden"),
        Claim::number(Some("hidden_t"), "sizeof($)", 8),
        Claim::number(Some("colour"), "(($)-1 < 0)", 1),
        Claim::number(Some("shade_t"), "(($)-1 < 0)", 0),
        Claim::number(None, "COLOUR_RED", 3),
        Claim::number(None, "COLOUR_NONE", -1),
        Claim::number(None, "SHADE_FULL", 0xffff_ffff),
        Claim::number(None, "LIMIT", 17),
        Claim::number(None, "HUGE", 1 << 63),
        Claim::number(None, "(uintptr_t)(SELF)", 2),
        Claim::text("NAME", b"probe\0"),
        Claim::symbol("paint"),
    ]
}

fn differences_from_header(claims: &[Claim]) -> BTreeSet<String> {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("probe_test.h"), HEADER).expect("a header");
    let compiler = Compiler::find().expect("this test needs a C compiler");
    let answers = ask(&compiler, Some(folder.path()), &["probe_test.h"], claims);
    differences(claims, &answers.expect("the compiler answers"))
}

fn only(claim: Claim) -> String {
    let lines: Vec<String> = differences_from_header(&[claim]).into_iter().collect();
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    line.clone()
}

#[test]
fn true_claims_of_every_kind_have_no_difference() {
    assert_eq!(differences_from_header(&truth()), BTreeSet::new());
}

#[test]
fn each_single_wrong_value_is_exactly_one_difference() {
    for at in 0..truth().len() {
        let mut claims = truth();
        claims[at].value = match &claims[at].value {
            Value::Number(number) => Value::Number(number + 1),
            Value::Bytes(digits) => Value::Bytes(format!("{digits}00")),
            Value::Opaque | Value::Declared => continue,
        };
        let lines = differences_from_header(&claims);
        assert_eq!(lines.len(), 1, "{:?}: {lines:?}", claims[at]);
        let line = lines.first().expect("one line");
        assert!(line.contains(&claims[at].subject()), "{line}");
    }
}

#[test]
fn a_wrong_offset_tells_both_numbers() {
    let claim = Claim::number(Some("point_t"), "offsetof($, x)", 4);
    assert_eq!(only(claim), "offsetof(point_t, x) is 8, the bindings say 4");
}

#[test]
fn a_wrong_constant_tells_both_numbers() {
    assert_eq!(
        only(Claim::number(None, "COLOUR_NONE", 0xffff_ffff)),
        "COLOUR_NONE is -1, the bindings say 4294967295"
    );
}

#[test]
fn a_name_that_the_headers_do_not_have_is_a_difference() {
    assert_eq!(only(Claim::symbol("pain")), "no pain()");
    assert_eq!(only(Claim::number(None, "LIMITS", 17)), "no LIMITS");
    assert_eq!(
        only(Claim::number(Some("point_t"), "offsetof($, y)", 8)),
        "no offsetof(point_t, y)"
    );
    assert_eq!(only(Claim::number(Some("pont_t"), "sizeof($)", 24)), "no type pont_t");
    assert_eq!(only(Claim::opaque("hiden")), "no type hiden");
}

#[test]
fn a_definition_where_the_bindings_have_none_is_a_difference_and_the_reverse() {
    assert_eq!(
        only(Claim::opaque("bits")),
        "bits has a definition, the bindings say none"
    );
    assert_eq!(
        only(Claim::number(Some("hidden"), "sizeof($)", 8)),
        "hidden has no definition, the bindings say one"
    );
}

#[test]
fn a_header_that_does_not_compile_is_an_error_and_not_a_list_of_absent_names() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("probe_test.h"), "struct {").expect("a header");
    let compiler = Compiler::find().expect("this test needs a C compiler");
    assert!(ask(&compiler, Some(folder.path()), &["probe_test.h"], &truth()).is_err());
    assert!(ask(&compiler, Some(folder.path()), &["absent.h"], &truth()).is_err());
}
