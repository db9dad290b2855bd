//! What merging guarantees, on declarations as bindgen writes them.

use super::*;

/// A structure as bindgen writes it, with the assertions that tell its layout.
fn structure(name: &str, size: usize, fields: &[(&str, &str, usize)]) -> String {
    let list: String = fields
        .iter()
        .map(|(field, ty, _)| format!("pub {field}: {ty},"))
        .collect();
    let offsets: String = fields
        .iter()
        .map(|(field, _, offset)| {
            format!("[\"Offset of field: {name}::{field}\"][offset_of!({name}, {field}) - {offset}usize];")
        })
        .collect();
    format!(
        "#[repr(C)] pub struct {name} {{ {list} }}
         const _: () = {{ [\"Size of {name}\"][size_of::<{name}>() - {size}usize];
         [\"Alignment of {name}\"][align_of::<{name}>() - 8usize]; {offsets} }};"
    )
}

fn function(declaration: &str) -> String {
    format!("unsafe extern \"C\" {{ pub fn {declaration}; }}")
}

fn release(name: &'static str, source: &[String]) -> Parsed {
    Parsed::new(&source.concat(), name, &[], &[]).expect("what bindgen writes")
}

fn slots(merged: &Merged) -> Vec<&str> {
    merged.functions.iter().map(|function| function.slot.as_str()).collect()
}

fn types(merged: &Merged) -> BTreeSet<&str> {
    merged.types.iter().map(|ty| ty.name.as_str()).collect()
}

#[test]
fn constness_signedness_and_new_names_of_a_type_share_a_slot() {
    let old = release(
        "6.4",
        &[
            "pub type old_t = *mut c_void;".into(),
            function("f(a: *mut c_char, b: *mut c_int, c: old_t) -> c_int"),
        ],
    );
    let new = release(
        "7.2",
        &[
            "pub type new_t = *mut c_void;".into(),
            function("f(a: *const c_char, b: *mut c_uint, c: new_t) -> c_int"),
        ],
    );
    let merged = merge(&[old, new], &[]).expect("they agree");
    assert_eq!(slots(&merged), ["f"]);
    let spelling = merged.functions[0].function.to_token_stream().to_string();
    assert!(spelling.contains("new_t"), "the newest spelling wins: {spelling}");
    assert_eq!(merged.functions[0].declared, ["6.4", "7.2"]);
}

#[test]
fn other_arguments_make_a_slot_for_each_form() {
    let declared = |text| [function(text)];
    let old = release("5.7", &declared("f(a: c_int)"));
    let middle = release("6.4", &declared("f(a: c_int)"));
    let new = release("7.2", &declared("f(a: usize)"));
    let merged = merge(&[old, middle, new], &[]).expect("the major numbers differ");
    assert_eq!(slots(&merged), ["f", "f_until_6"]);
    let [newest, older] = merged.functions.as_slice() else {
        panic!("two slots")
    };
    assert_eq!((newest.since, newest.until), (Some(7), None));
    assert_eq!((older.since, older.until, older.next), (None, Some(6), Some(7)));
    assert_eq!(older.declared, ["5.7", "6.4"]);
    assert_eq!((newest.symbol(), older.symbol()), ("f".into(), "f".into()));
}

#[test]
fn another_layout_makes_an_older_type_and_an_older_form_of_what_takes_it() {
    let source = |field: &str, size, offset| {
        [
            structure("s", size, &[("x", field, 0), ("y", field, offset)]),
            "pub type alias = s;".to_owned(),
            structure("holder", 8, &[("inner", "*const s", 0)]),
            function("direct(a: *const alias)"),
            function("through(a: *mut holder)"),
            function("apart(a: c_int)"),
        ]
    };
    let old = release("5.7", &source("c_uint", 8, 4));
    let new = release("6.4", &source("usize", 16, 8));
    let merged = merge(&[old, new], &[]).expect("the major numbers differ");
    assert_eq!(
        slots(&merged),
        ["apart", "direct", "direct_until_5", "through", "through_until_5"]
    );
    for name in ["s", "s_until_5", "alias_until_5", "holder_until_5"] {
        assert!(types(&merged).contains(name), "{name}");
    }
    let older = &merged.functions[2].function.to_token_stream().to_string();
    assert!(older.contains("alias_until_5"), "{older}");
}

#[test]
fn a_field_that_takes_reserved_room_changes_nothing() {
    let old = structure("s", 64, &[("x", "c_int", 0), ("reserved", "[c_int; 14usize]", 8)]);
    let new = structure(
        "s",
        64,
        &[
            ("x", "c_int", 0),
            ("y", "c_int", 8),
            ("reserved", "[c_int; 12usize]", 16),
        ],
    );
    let merged = merge(&[release("5.7", &[old]), release("6.4", &[new])], &[]);
    assert_eq!(types(&merged.expect("they agree")), BTreeSet::from(["s"]));
}

#[test]
fn growth_is_accepted_where_it_is_listed_and_only_if_it_is_one() {
    let sources = || {
        let old = structure("s", 8, &[("x", "usize", 0)]);
        let new = structure("s", 16, &[("x", "usize", 0), ("y", "usize", 8)]);
        [release("5.7", &[old]), release("6.4", &[new])]
    };
    let listed = merge(&sources(), &["s"]).expect("it grew");
    assert_eq!(types(&listed), BTreeSet::from(["s"]));
    let unlisted = merge(&sources(), &[]).expect("two forms");
    assert_eq!(types(&unlisted), BTreeSet::from(["s", "s_until_5"]));
    let same = || structure("s", 8, &[("x", "usize", 0)]);
    assert!(merge(&[release("5.7", &[same()]), release("6.4", &[same()])], &["s"]).is_err());
}

#[test]
fn a_change_within_a_major_release_is_not_passed_over() {
    let old = release("7.0", &[function("f(a: c_int)")]);
    let new = release("7.2", &[function("f(a: usize)")]);
    let error = merge(&[old, new], &[]).err().expect("no name for the older form");
    assert!(error.to_string().contains("`f`"), "{error}");
}

#[test]
fn values_of_all_releases_are_kept_and_renumbered_ones_are_listed() {
    let source = |values: &str| ["pub struct e(pub c_uint);".to_owned(), format!("impl e {{ {values} }}")];
    let old = release("5.7", &source("pub const A: e = e(1); pub const GONE: e = e(9);"));
    let new = release("6.4", &source("pub const A: e = e(2); pub const NEW: e = e(1);"));
    let merged = merge(&[old, new], &[]).expect("an enum is a number");
    let values: Vec<String> = merged.types[0]
        .values
        .iter()
        .map(|value| format!("{}={}", value.name, value.number))
        .collect();
    assert_eq!(values, ["A=2", "NEW=1", "GONE=9"]);
    assert_eq!(
        merged.renumbered,
        [Renumbered {
            owner: "e".into(),
            name: "A".into(),
            numbers: vec![("5.7", "1".into()), ("6.4", "2".into())],
        }]
    );
}

#[test]
fn a_function_of_cplusplus_linkage_is_left_out() {
    let source = "unsafe extern \"C\" { #[link_name = \"_Z1fv\"] pub fn f(); pub fn g(); }";
    let merged = merge(&[release("6.4", &[source.into()])], &[]).expect("one release");
    assert_eq!(slots(&merged), ["g"]);
}

/// As [`release`], rebuilt from bindings.
fn bindings(name: &'static str, source: &[String]) -> Parsed {
    let mut parsed = release(name, source);
    parsed.rebuilt = true;
    parsed
}

#[test]
fn what_bindings_say_alike_is_spelled_as_in_real_headers() {
    let real = release(
        "7.2",
        &[
            "pub type old_t = *mut c_void;".into(),
            structure("same", 8, &[("handle", "old_t", 0)]),
            structure("grown", 16, &[("handle", "old_t", 0)]),
            function("f(a: old_t) -> c_int"),
            "pub const LIMIT: u32 = 1;".into(),
        ],
    );
    let rebuilt = bindings(
        "10.0",
        &[
            structure("same", 8, &[("handle", "*mut c_void", 0)]),
            structure(
                "grown",
                16,
                &[("handle", "*mut c_void", 0), ("added", "*mut c_void", 8)],
            ),
            structure("novel", 8, &[("handle", "*mut c_void", 0)]),
            function("f(renamed: *mut c_void) -> c_int"),
            function("g(a: *mut c_void) -> c_int"),
            "pub const LIMIT: u32 = 2;".into(),
        ],
    );
    let merged = merge(&[real, rebuilt], &[]).expect("they agree");
    assert_eq!(slots(&merged), ["f", "g"]);
    let function = merged.functions[0].function.to_token_stream().to_string();
    assert!(function.contains("a : old_t"), "{function}");
    assert_eq!(merged.functions[0].declared, ["7.2", "10.0"]);
    let definition = |name: &str| {
        let ty = merged.types.iter().find(|ty| ty.name == name);
        let definition = &ty.expect("it is there").definition;
        definition.to_token_stream().to_string()
    };
    assert!(definition("same").contains("handle : old_t"));
    assert!(definition("grown").contains("added"), "a new field counts");
    assert!(definition("novel").contains("handle"));
    // Only the spelling is the older one's.
    let limit = merged.constants[0].expr.to_token_stream().to_string();
    assert_eq!(limit, "2");
    assert_eq!(merged.renumbered.len(), 1);
}
