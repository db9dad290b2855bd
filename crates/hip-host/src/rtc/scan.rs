//! Reads preprocessed C++ for what the host platform must know: the kernels, who may wait at a barrier, and where
//! shared memory is declared.
//!
//! This is no C++ parser. It follows braces and names, which preprocessed text shows plainly, and errs on the side of
//! "may wait", which only costs speed.

use std::collections::{HashMap, HashSet};

use super::index::{self, IndexTypes};

/// A kernel definition found in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// With its namespaces.
    pub(crate) qualified: String,
    pub(crate) traits: Traits,
}

/// What the launching code must know of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Traits {
    pub(crate) may_wait: bool,
    pub(crate) index: IndexTypes,
}

/// What the scan found.
pub(crate) struct Scan {
    /// The text with our markers replaced by C++.
    pub(crate) text: String,
    /// Kernels that can be named without template arguments.
    pub(crate) kernels: Vec<Kernel>,
    waiting: BarrierNames,
    /// By the name of the function that computes a global index.
    indices: HashMap<String, IndexTypes>,
}

/// Names whose call may end at a barrier.
struct BarrierNames {
    everything: bool,
    known: HashSet<String>,
    names: HashSet<String>,
}

impl BarrierNames {
    fn may_wait(&self, name: &str) -> bool {
        self.everything || self.names.contains(name) || !self.known.contains(name)
    }
}

impl Scan {
    /// What is known of the kernel that a name expression denotes.
    pub(crate) fn traits_of_expression(&self, expression: &str) -> Traits {
        let path = expression.split('<').next().unwrap_or(expression);
        let name = path.rsplit("::").next().unwrap_or(path);
        let name = name.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
        Traits {
            may_wait: self.waiting.may_wait(name),
            index: self.indices.get(name).copied().unwrap_or_default(),
        }
    }
}

/// The function of the prelude in which all waiting ends.
const ROOT: &str = "__hipcl_stop";
const GLOBAL: &str = "__hipcl_global";
const SHARED: &str = "__hipcl_shared";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    Word,
    Number,
    Literal,
    Mark,
}

#[derive(Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) class: Class,
    pub(super) text: &'a str,
    start: usize,
}

impl Token<'_> {
    pub(super) fn is(&self, text: &str) -> bool {
        self.text == text
    }

    fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    let mut line_start = true;
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    while at < bytes.len() {
        let start = at;
        let byte = bytes[at];
        if byte == b'\n' {
            line_start = true;
            at += 1;
            continue;
        }
        if byte.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        if byte == b'#' && line_start {
            // A line marker or a pragma.
            at += bytes[at..].iter().position(|&b| b == b'\n').unwrap_or(bytes.len() - at);
            continue;
        }
        line_start = false;
        let class = if byte.is_ascii_digit() {
            while at < bytes.len() && (word(bytes[at]) || bytes[at] == b'.' || bytes[at] == b'\'') {
                at += 1;
            }
            Class::Number
        } else if word(byte) {
            while at < bytes.len() && word(bytes[at]) {
                at += 1;
            }
            if bytes.get(at) == Some(&b'"') && text[start..at].ends_with('R') {
                at = raw_literal_end(bytes, at);
                Class::Literal
            } else {
                Class::Word
            }
        } else if byte == b'"' || byte == b'\'' {
            at += 1;
            while at < bytes.len() && bytes[at] != byte && bytes[at] != b'\n' {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            at = (at + 1).min(bytes.len());
            Class::Literal
        } else {
            at += 1;
            Class::Mark
        };
        // Only whole characters are stepped over: every byte of a multi-byte one counts as a word's.
        found.push(Token {
            class,
            text: &text[start..at],
            start,
        });
    }
    found
}

fn raw_literal_end(bytes: &[u8], quote: usize) -> usize {
    let Some(paren) = bytes[quote..].iter().position(|&b| b == b'(') else {
        return bytes.len();
    };
    let mut closing = vec![b')'];
    closing.extend(&bytes[quote + 1..quote + paren]);
    closing.push(b'"');
    let body = quote + paren + 1;
    bytes[body..]
        .windows(closing.len())
        .position(|window| window == closing)
        .map_or(bytes.len(), |n| body + n + closing.len())
}

/// What an open brace belongs to.
enum Scope {
    /// A namespace, or a linkage block (no name).
    Names(Option<String>),
    Class,
    /// A function's body, or an initialiser: not looked into for declarations.
    Body,
}

/// Words that take parentheses without being a function's name.
const NOT_NAMES: &[&str] = &[
    "alignas",
    "__attribute__",
    "__attribute",
    "__declspec",
    "decltype",
    "noexcept",
    "throw",
    "requires",
    "explicit",
    "__asm__",
    "asm",
];

/// The name before the first parameter list of a declaration.
fn function_name<'a>(header: &[Token<'a>]) -> Option<&'a str> {
    let mut index = 0;
    while index < header.len() {
        let token = header[index];
        if token.is("operator") {
            return Some("operator");
        }
        if token.class == Class::Word && header.get(index + 1).is_some_and(|next| next.is("(")) {
            if !NOT_NAMES.contains(&token.text) {
                return Some(token.text);
            }
            index = closing(header, index + 1);
        }
        index += 1;
    }
    None
}

/// The index of the parenthesis that closes the one at `open`, or the last index.
fn closing(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        if token.is("(") {
            depth += 1;
        } else if token.is(")") {
            depth -= 1;
            if depth == 0 {
                return index;
            }
        }
    }
    tokens.len().saturating_sub(1)
}

fn scope_of(header: &[Token<'_>]) -> Scope {
    let has = |word: &str| header.iter().any(|token| token.is(word));
    let named_by_paren = function_name(header).is_some();
    if header.iter().any(|token| token.is("namespace")) && !has("using") {
        let name = header
            .iter()
            .rev()
            .find(|token| token.class == Class::Word && !token.is("namespace") && !token.is("inline"));
        return Scope::Names(name.map(|token| token.text.to_owned()));
    }
    if !named_by_paren && header.len() == 2 && header[0].is("extern") && header[1].class == Class::Literal {
        return Scope::Names(None);
    }
    if !named_by_paren && !has("=") && ["class", "struct", "union"].iter().any(|word| has(word)) {
        return Scope::Class;
    }
    Scope::Body
}

/// Scans preprocessed text.
pub(crate) fn scan(text: &str) -> Scan {
    let all = tokens(text);
    let mut uses: HashMap<&str, HashSet<&str>> = HashMap::new();
    let mut kernels: Vec<(String, String)> = Vec::new();
    let mut indices: HashMap<String, IndexTypes> = HashMap::new();
    let mut edits: Vec<(usize, usize, String)> = Vec::new();
    let mut scopes: Vec<Scope> = Vec::new();
    // The function whose body we are in, and how deep its first brace is.
    let mut body: Option<(&str, usize)> = None;
    let mut header_from = 0;
    let mut index = 0;
    while index < all.len() {
        let token = all[index];
        if token.is(GLOBAL) {
            edits.push((
                token.start,
                token.end(),
                "__attribute__((visibility(\"default\")))".to_owned(),
            ));
        }
        if token.is(SHARED) {
            index = shared(&all, index, body.is_some(), text, &mut edits);
            continue;
        }
        if token.class == Class::Word
            && let Some((name, _)) = body
        {
            uses.entry(name).or_default().insert(token.text);
            if token.is("threadIdx")
                && !indices.contains_key(name)
                && let Some(types) = index::of_statement(&all, index)
            {
                indices.insert(name.to_owned(), types);
            }
        }
        if token.is("{") {
            let header = &all[header_from..index];
            if body.is_some() {
                scopes.push(Scope::Body);
            } else {
                let scope = scope_of(header);
                if matches!(scope, Scope::Body) {
                    let name = function_name(header).unwrap_or("");
                    body = Some((name, scopes.len()));
                    let entry = uses.entry(name).or_default();
                    // Initialiser lists and default arguments call too. The declared name itself does not.
                    entry.extend(
                        header
                            .iter()
                            .filter(|t| t.class == Class::Word && !t.is(name))
                            .map(|t| t.text),
                    );
                    if let Some(kernel) = kernel(header, &scopes) {
                        kernels.push((name.to_owned(), kernel));
                    }
                }
                scopes.push(scope);
            }
            header_from = index + 1;
        } else if token.is("}") {
            scopes.pop();
            if body.is_some_and(|(_, depth)| scopes.len() <= depth) {
                body = None;
            }
            header_from = index + 1;
        } else if token.is(";") {
            header_from = index + 1;
        }
        index += 1;
    }
    let waiting = waiting(&uses);
    let count = |qualified: &str| kernels.iter().filter(|(_, other)| other == qualified).count();
    let named = kernels.iter().filter(|(_, qualified)| count(qualified) == 1);
    let kernels = named
        .map(|(name, qualified)| Kernel {
            qualified: qualified.clone(),
            traits: Traits {
                may_wait: waiting.may_wait(name),
                index: indices.get(name).copied().unwrap_or_default(),
            },
        })
        .collect();
    Scan {
        text: edited(text, edits),
        kernels,
        waiting,
        indices,
    }
}

/// The qualified name of the kernel that `header` begins, if it is one that can be named plainly.
fn kernel(header: &[Token<'_>], scopes: &[Scope]) -> Option<String> {
    let marked = header.iter().position(|token| token.is(GLOBAL))?;
    if header.iter().any(|token| token.is("template") || token.is("static")) {
        return None;
    }
    let name = function_name(&header[marked..]).or_else(|| function_name(header))?;
    let mut path = Vec::new();
    for scope in scopes {
        match scope {
            Scope::Names(name) => path.extend(name.clone()),
            Scope::Class | Scope::Body => return None,
        }
    }
    path.push(name.to_owned());
    Some(path.join("::"))
}

/// Follows who calls whom, by name. Overloads count as one function.
fn waiting(uses: &HashMap<&str, HashSet<&str>>) -> BarrierNames {
    let mut names: HashSet<String> = HashSet::from([ROOT.to_owned()]);
    loop {
        let more: Vec<String> = uses
            .iter()
            .filter(|(name, _)| !names.contains(**name))
            .filter(|(_, used)| used.iter().any(|word| names.contains(*word)))
            .map(|(name, _)| (*name).to_owned())
            .collect();
        if more.is_empty() {
            break;
        }
        names.extend(more);
    }
    // A body without a name to call it by (an operator, a lambda, what the scan did not understand): anyone might.
    let everything = names.contains("") || names.contains("operator");
    BarrierNames {
        everything,
        known: uses.keys().map(|name| (*name).to_owned()).collect(),
        names,
    }
}

/// Rewrites the declaration of shared memory that begins at or just before `index`; the index to go on from.
fn shared(
    all: &[Token<'_>],
    index: usize,
    in_function: bool,
    text: &str,
    edits: &mut Vec<(usize, usize, String)>,
) -> usize {
    let marker = all[index];
    let before = index.checked_sub(1).map(|i| all[i]);
    let end = all[index..]
        .iter()
        .position(|token| token.is(";"))
        .map_or(all.len(), |n| index + n);
    let declaration = &all[index + 1..end];
    let leading = before.filter(|token| token.is("extern"));
    let inner = declaration.iter().position(|token| token.is("extern"));
    if leading.is_none() && inner.is_none() {
        let storage = if before.is_some_and(|token| token.is("static")) {
            "thread_local"
        } else {
            "static thread_local"
        };
        edits.push((marker.start, marker.end(), storage.to_owned()));
        return index + 1;
    }
    // `extern __shared__ T name[];`: the dynamic shared memory.
    let mut kept: Vec<&str> = Vec::new();
    let mut at = 0;
    while at < declaration.len() {
        let token = declaration[at];
        if NOT_NAMES.contains(&token.text) && declaration.get(at + 1).is_some_and(|next| next.is("(")) {
            at = closing(declaration, at + 1) + 1;
            continue;
        }
        if !token.is("extern") {
            kept.push(token.text);
        }
        at += 1;
    }
    let [element @ .., name, "[", "]"] = kept.as_slice() else {
        return index + 1;
    };
    let element = element.join(" ");
    let start = leading.map_or(marker.start, |token| token.start);
    let stop = all.get(end).map_or(text.len(), |token| token.end());
    let lines = "\n".repeat(text[start..stop].matches('\n').count());
    let replacement = if in_function {
        format!("{element}* const {name} = ({element}*)__hipcl_dynamic_shared();{lines}")
    } else {
        format!("static const __hipcl_shared_array<{element}> {name}{{}};{lines}")
    };
    edits.push((start, stop, replacement));
    end
}

fn edited(text: &str, edits: Vec<(usize, usize, String)>) -> String {
    let mut result = String::with_capacity(text.len() + 64 * edits.len());
    let mut at = 0;
    for (start, end, replacement) in edits {
        result.push_str(&text[at..start]);
        result.push_str(&replacement);
        at = end;
    }
    result.push_str(&text[at..]);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRELUDE: &str =
        "static inline void __hipcl_stop(unsigned k) { }\nstatic inline void __syncthreads() { __hipcl_stop(0); }\n";

    fn kernels(source: &str) -> Vec<(String, bool)> {
        scan(&format!("{PRELUDE}{source}"))
            .kernels
            .into_iter()
            .map(|k| (k.qualified, k.traits.may_wait))
            .collect()
    }

    #[test]
    fn a_kernel_may_wait_if_anything_it_reaches_does() {
        let source = r#"
            static float deep(float x) { __syncthreads(); return x; }
            static float middle(float x) { return deep(x); }
            static float other(float x) { return x; }
            extern "C" __hipcl_global void waits(float* p) { p[0] = middle(p[0]); }
            extern "C" __hipcl_global void runs(float* p) { p[0] = other(p[0]); const char* s = "__syncthreads()"; }
        "#;
        assert_eq!(
            kernels(source),
            [("waits".to_owned(), true), ("runs".to_owned(), false)]
        );
    }

    #[test]
    fn the_types_of_the_global_index_are_those_of_its_declaration() {
        let types = |statement: &str| {
            let source = format!("__hipcl_global void k(long n) {{ unsigned t = 0; {statement} }}");
            let IndexTypes { index, product } = scan(&source).kernels[0].traits.index;
            (index, product)
        };
        let sum = "blockIdx.x * blockDim.x + threadIdx.x";
        let wide = "(size_t)blockIdx.x * blockDim.x + threadIdx.x";
        for (statement, expected) in [
            (format!("int i = {sum};"), ("int", "unsigned int")),
            (format!("const unsigned i = {sum};"), ("unsigned int", "unsigned int")),
            (format!("auto i = {sum};"), ("unsigned int", "unsigned int")),
            (format!("if ({sum} >= n) return;"), ("unsigned int", "unsigned int")),
            (
                format!("for (int i = {sum}; i < n; i += 8) {{}}"),
                ("int", "unsigned int"),
            ),
            (format!("size_t i = {sum};"), ("unsigned long", "unsigned int")),
            (format!("auto i = {wide};"), ("unsigned long", "unsigned long")),
            (format!("long i = (long){sum};"), ("long", "long")),
            // No global index, or one that is computed elsewhere: the usual one.
            ("unsigned i = threadIdx.x;".to_owned(), ("int", "unsigned int")),
            ("int i = global_index();".to_owned(), ("int", "unsigned int")),
        ] {
            assert_eq!(types(&statement), expected, "{statement}");
        }
    }

    #[test]
    fn kernels_are_named_with_their_namespaces() {
        let source = r#"
            namespace a { namespace { __hipcl_global void hidden() {} } inline namespace v { __hipcl_global void f(int (*g)(int)) {} } }
            extern "C" { __hipcl_global __attribute__((aligned(4))) void plain(struct S* s) {} }
            extern "C" __hipcl_global void declared();
            template <class T> __hipcl_global void generic(T* p) {}
            static __hipcl_global void inner() {}
            __hipcl_global void twice(int) {} __hipcl_global void twice(float) {}
        "#;
        let names: Vec<String> = kernels(source).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a::hidden", "a::v::f", "plain"]);
    }

    #[test]
    fn a_body_that_cannot_be_called_by_name_taints_all() {
        let source = "struct F { void operator()() const { __syncthreads(); } }; __hipcl_global void k() { F()(); }";
        assert_eq!(kernels(source), [("k".to_owned(), true)]);
    }

    #[test]
    fn shared_memory_becomes_thread_local() {
        let source = "__hipcl_global void k() { __hipcl_shared float tile[16][17]; extern __hipcl_shared __attribute__((aligned(16)))\n unsigned char raw[]; }\nextern __hipcl_shared float2 all[];\n";
        let text = scan(source).text;
        assert!(text.contains("static thread_local float tile[16][17];"), "{text}");
        assert!(
            text.contains("unsigned char* const raw = (unsigned char*)__hipcl_dynamic_shared();\n"),
            "{text}"
        );
        assert!(
            text.contains("static const __hipcl_shared_array<float2> all{};"),
            "{text}"
        );
        assert_eq!(text.matches('\n').count(), source.matches('\n').count());
    }

    #[test]
    fn markers_in_literals_are_left_alone() {
        let source =
            r##"const char* a = "__hipcl_global {"; const char* b = R"x(}{ __hipcl_shared )")x"; char c = '{';"##;
        assert_eq!(scan(source).text, source);
    }
}
