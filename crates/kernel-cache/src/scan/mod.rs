//! Finds what a text makes a compiler read, without running the compiler.
//!
//! The texts are C, C++, OpenCL C or HIP. If compilers differ, or only macro expansion shows what is
//! read, the text is refused; a directive in a skipped part counts.

mod joined;
mod lexer;

use std::ops::Range;

use joined::Joined;
use lexer::{Lexer, Token, is_in_word};

/// Why it is unknown what a compilation reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotUnderstood(String);

impl NotUnderstood {
    /// For this reason.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// A directive that names a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Include {
    /// The file's name.
    pub name: String,
    /// Whether the name stands in quotes, and not in angle brackets.
    pub is_quoted: bool,
    /// Whether it is `#include`, and not `#include_next` or `#import`.
    pub is_plain: bool,
    /// Its bytes in the text: from the end of what precedes it, but for blanks and comments, to the end of the name.
    pub place: Range<usize>,
}

/// What [`Scan::includes`] finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Includes {
    /// In order.
    pub directives: Vec<Include>,
    /// Whether the text may have an effect only when it is included first.
    pub once: bool,
}

type Result<T, E = NotUnderstood> = std::result::Result<T, E>;

/// Scans the texts of one compilation.
///
/// ```
/// let mut scan = kernel_cache::Scan::default();
/// let text = "/* why */ # include \"a.h\" // not <b.h>\n%:import <c.h>\n";
/// assert_eq!(scan.text(text)?, ["a.h", "c.h"]);
/// assert!(scan.text("#include FILE\n").is_err());
/// assert!(scan.text("#if __has_include(<d.h>)\n").is_err());
/// # Ok::<(), kernel_cache::NotUnderstood>(())
/// ```
#[derive(Debug, Default)]
pub struct Scan {
    /// Whether a macro pastes tokens.
    pastes: bool,
    /// The first word that token pasting could complete to one of [`PASTED`].
    begin: Option<String>,
    /// Whether there is inline assembly, or an attribute whose text reaches the assembler.
    assembles: bool,
    /// A text that could begin an assembler's directive, which may read a file.
    directs: Option<String>,
    /// One of [`OF_PLACES`].
    place: Option<String>,
}

/// The words that matter without a directive. Their first two characters are in no other word that kernels use.
const PASTED: [&str; 16] = [
    "__has_include",
    "__has_embed",
    "__DATE__",
    "__TIME__",
    "__TIMESTAMP__",
    "_Pragma",
    "__pragma",
    "__FILE__",
    "__FILE_NAME__",
    "__BASE_FILE__",
    "__LINE__",
    "__INCLUDE_LEVEL__",
    "__builtin_FILE",
    "__builtin_FILE_NAME",
    "__builtin_LINE",
    "__builtin_COLUMN",
];

/// A text without any of these reads no file and needs no closer look. Programs are scanned on every request, so what
/// begins with the first string of a row is looked for only in a text that has that string.
const SUSPICIOUS: [(&str, &[&str]); 3] = [
    (
        "",
        &[
            "include", "import", "embed", "incbin", "asm", "section", "alias", "weakref", "ifunc", "symver", "ident",
            "sccs", "ragma",
        ],
    ),
    (
        "__",
        &[
            "__has",
            "__DATE__",
            "__TIME",
            "__FILE",
            "__BASE_FILE",
            "__LINE",
            "__INCLUDE",
            "__builtin_",
        ],
    ),
    ("\\", &["\\u", "\\U", "\\N"]),
];

/// Words, without the underscores around them, whose texts a compiler hands to an assembler as they are: GCC writes the
/// name of a section with its line breaks.
const ASSEMBLING: [&str; 6] = ["asm", "section", "alias", "weakref", "ifunc", "symver"];

/// Directives with an effect that is known. GCC hands the text of `#ident` and `#sccs` to the assembler as it is.
const KNOWN: [&str; 2] = ["error", "warning"];

/// Pragmas that read no file and name none, by their first words. Others may build modules or look at files.
const PRAGMAS: [&str; 12] = [
    "OPENCL",
    "STDC",
    "once",
    "pack",
    "unroll",
    "nounroll",
    "GCC diagnostic",
    "GCC ivdep",
    "GCC unroll",
    "clang diagnostic",
    "clang fp",
    "clang loop",
];

/// Directives of which every compiler splits the rest into tokens. Of others, such as `#warning` and `#pragma mark`,
/// some read it raw.
const OF_TOKENS: [&str; 11] = [
    "define", "undef", "if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif", "line",
];

/// Words whose values depend on where they stand.
const OF_PLACES: [&str; 9] = [
    "__FILE__",
    "__FILE_NAME__",
    "__BASE_FILE__",
    "__LINE__",
    "__INCLUDE_LEVEL__",
    "__builtin_FILE",
    "__builtin_FILE_NAME",
    "__builtin_LINE",
    "__builtin_COLUMN",
];

/// What the tokens of one text tell.
#[derive(Default)]
struct Found {
    includes: Vec<Include>,
    /// Whether the word `once` occurs.
    once: bool,
    /// How many conditions are open at the end; none if one was closed that another text has to have opened.
    conditions: Option<u32>,
}

impl Scan {
    /// The file names of the include directives of `text`, in order.
    ///
    /// # Errors
    ///
    /// It is unknown what the text makes a compiler read.
    pub fn text(&mut self, text: &str) -> Result<Vec<String>> {
        let joined = Joined::of(text)?;
        let text = &*joined.text;
        let mut includes = Vec::new();
        // Quoted texts count even here: the assembly may be in another text of the compilation.
        let is_suspicious = |text: &str| {
            let mut rows = SUSPICIOUS.iter();
            rows.any(|(begin, words)| text.contains(begin) && words.iter().any(|it| text.contains(it)))
        };
        let stringizes = |line: &str| {
            let line = line.trim_start();
            line.strip_prefix('#').unwrap_or(line).contains('#')
        };
        let has_stringizing = text.contains('#') && text.lines().any(stringizes);
        if text.contains('"') || text.contains("%:") || has_stringizing || is_suspicious(text) {
            includes = self.look(text)?.includes;
        } else {
            // It has no `##`, which would be a line with a second `#`.
            let mut words = text.match_indices('_').filter_map(|(at, _)| {
                let (before, rest) = text.split_at(at);
                (!before.ends_with(is_in_word)).then(|| rest.split(|c| !is_in_word(c)).next().unwrap_or_default())
            });
            let begin = words.find(|word| begins_pasted(word));
            self.begin = self.begin.take().or(begin.map(str::to_owned));
        }
        self.check()?;
        Ok(includes.into_iter().map(|include| include.name).collect())
    }

    /// The include directives of `text`, if the texts of the files could stand in their places.
    ///
    /// # Errors
    ///
    /// It is unknown what the text makes a compiler read, or its meaning depends on where it stands.
    pub fn includes(&mut self, text: &str) -> Result<Includes> {
        let joined = Joined::of(text)?;
        let Found {
            includes,
            once,
            conditions,
        } = self.look(&joined.text)?;
        self.check()?;
        if conditions != Some(0) {
            return refused("an `#if` without its `#endif`, or the other way round");
        }
        if let Some(word) = &self.place {
            return refused(format!("`{word}` depends on where it stands"));
        }
        let mut directives = Vec::new();
        for include in includes {
            let Range { start, end } = include.place;
            let behind = joined.text[end..].lines().next().unwrap_or_default().trim_start();
            if !behind.is_empty() && !behind.starts_with("//") {
                return refused(format!("`{behind}` behind the include `{}`", include.name));
            }
            // Behind its last byte may come one that was left out.
            let place = joined.place(start)..joined.place(end - 1) + 1;
            directives.push(Include { place, ..include });
        }
        Ok(Includes { directives, once })
    }

    fn check(&self) -> Result<()> {
        if let (true, Some(begin)) = (self.pastes, &self.begin) {
            return refused(format!("token pasting may make another word of `{begin}`"));
        }
        if let (true, Some(text)) = (self.assembles || self.pastes, &self.directs) {
            return refused(format!("{text} may begin an assembler's directive"));
        }
        Ok(())
    }

    /// Checks the output of a preprocessor, in which no macro is left: whether its inline assembly may read a file.
    ///
    /// # Errors
    ///
    /// It may.
    pub fn preprocessed(text: &str) -> Result<()> {
        let mut lexer = Lexer::new(text);
        // Parentheses that are open since an assembling word.
        let (mut expects, mut open) = (false, 0_u32);
        let mut begins_line = true;
        while let Some(token) = lexer.next()? {
            let is_first = std::mem::replace(&mut begins_line, false);
            match token {
                Token::LineEnd => begins_line = true,
                Token::Hash if is_first => {
                    lexer.skip_blanks()?;
                    let line = lexer.line();
                    // A line's number, which begins one of a preprocessor's own.
                    if !(line.starts_with(|c: char| c.is_ascii_digit()) || line.starts_with("pragma")) {
                        return refused(format!("`#{line}` may have an effect on the assembler"));
                    }
                    lexer.skip_line();
                }
                Token::Word(word) if open == 0 => expects |= is_assembling(&word),
                Token::Open if expects || open > 0 => {
                    (expects, open) = (false, open + 1);
                }
                Token::Close => open = open.saturating_sub(1),
                Token::Quoted(text) if (expects || open > 0) && may_direct(&text) => {
                    return refused(format!("the text \"{text}\" may begin a directive"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Splits the text into tokens.
    fn look(&mut self, text: &str) -> Result<Found> {
        let mut lexer = Lexer::new(text);
        let mut found = Found {
            conditions: Some(0),
            ..Found::default()
        };
        let mut begins_line = true;
        loop {
            let begin = text.len() - lexer.left();
            let Some(token) = lexer.next()? else {
                return Ok(found);
            };
            let is_first = std::mem::replace(&mut begins_line, false);
            match token {
                Token::LineEnd => begins_line = true,
                Token::Hash if is_first => {
                    if let Some(include) = self.directive(&mut lexer, &mut found.conditions)? {
                        let place = begin..text.len() - lexer.left();
                        found.includes.push(Include { place, ..include });
                    }
                }
                Token::Paste => self.pastes = true,
                Token::Word(word) if word == "_Pragma" => lexer.pragma()?,
                Token::Word(word) => {
                    self.word(&word)?;
                    found.once |= word == "once";
                }
                Token::Quoted(text) if may_direct(&text) => {
                    self.directs(&format!("the text \"{text}\""));
                }
                Token::Hash => self.directs(STRINGIZED),
                Token::Quoted(_) | Token::Open | Token::Close | Token::Other => {}
            }
        }
    }

    /// What a directive includes, after its `#`. Counts those that are open.
    fn directive(&mut self, lexer: &mut Lexer<'_>, conditions: &mut Option<u32>) -> Result<Option<Include>> {
        lexer.skip_blanks()?;
        let name = lexer.word();
        match name.as_str() {
            "if" | "ifdef" | "ifndef" => *conditions = conditions.map(|open| open + 1),
            "endif" => *conditions = conditions.and_then(|open| open.checked_sub(1)),
            "elif" | "elifdef" | "elifndef" | "else" => *conditions = conditions.filter(|open| *open > 0),
            _ => {}
        }
        match name.as_str() {
            "include" | "include_next" | "import" => {
                lexer.skip_blanks()?;
                match lexer.file_name() {
                    Some((file, is_quoted)) => Ok(Some(Include {
                        name: file,
                        is_quoted,
                        is_plain: name == "include",
                        place: 0..0,
                    })),
                    None => refused(format!("`#{name} {}` does not name a file", lexer.line())),
                }
            }
            "" if lexer.line().is_empty() => Ok(None),
            "" => refused(format!("`#{}` is no directive", lexer.line())),
            "pragma" => {
                check_pragma(&lexer.line())?;
                Ok(None)
            }
            name if !OF_TOKENS.contains(&name) && lexer.line().contains("/*") => {
                refused(format!("`/*` after `#{name}` begins a comment for some compilers only"))
            }
            name if !OF_TOKENS.contains(&name) && !KNOWN.contains(&name) => {
                refused(format!("the effect of `#{name}` is not known"))
            }
            name => self.word(name).map(|()| None),
        }
    }

    fn word(&mut self, word: &str) -> Result<()> {
        if begins_pasted(word) {
            self.begin.get_or_insert_with(|| word.to_owned());
        }
        self.assembles |= is_assembling(word);
        let reads = word.starts_with("__has_include")
            || word.starts_with("__has_embed")
            || matches!(word, "include" | "include_next" | "import" | "embed");
        if reads {
            return refused(format!("`{word}` may test for files"));
        }
        if OF_PLACES.contains(&word) {
            self.place.get_or_insert_with(|| word.to_owned());
        }
        if word == "__pragma" {
            return refused("a `__pragma`, which only some compilers know");
        }
        if matches!(word, "__DATE__" | "__TIME__" | "__TIMESTAMP__") {
            return refused(format!("`{word}` expands differently each time"));
        }
        Ok(())
    }

    fn directs(&mut self, what: &str) {
        self.directs.get_or_insert_with(|| what.to_owned());
    }
}

/// Whether what follows `pragma` has an effect that is known.
fn check_pragma(text: &str) -> Result<()> {
    let words: Vec<&str> = text.split(|c| !is_in_word(c)).filter(|word| !word.is_empty()).collect();
    let is = |known: &&str| {
        known
            .split(' ')
            .enumerate()
            .all(|(at, word)| words.get(at) == Some(&word))
    };
    match PRAGMAS.iter().any(is) && !text.contains("/*") {
        true => Ok(()),
        false => refused(format!("the effect of `#pragma {}` is not known", text.trim())),
    }
}

const STRINGIZED: &str = "a text that a macro makes of its argument";

/// Whether a word's text reaches the assembler.
fn is_assembling(word: &str) -> bool {
    ASSEMBLING.contains(&word.trim_matches('_'))
}

/// Whether a text could hold or complete a directive. Each begins with a dot, and assemblers know many ways to put the
/// rest of its name together: macros, dialects, operands, neighbouring texts.
fn may_direct(text: &str) -> bool {
    text.contains('.') || has_coded_character(text)
}

/// Whether an escape stands for a character by its number.
fn has_coded_character(text: &str) -> bool {
    if !text.contains('\\') {
        return false;
    }
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c == '\\' && matches!(characters.next(), Some('0'..='7' | 'x' | 'u' | 'U' | 'N' | 'o')) {
            return true;
        }
    }
    false
}

fn refused<T>(reason: impl Into<String>) -> Result<T> {
    Err(NotUnderstood::new(reason))
}

/// Only a word that begins with `_` can.
fn begins_pasted(word: &str) -> bool {
    !word.is_empty() && PASTED.iter().any(|pasted| pasted.starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Result<Vec<String>> {
        Scan::default().text(text)
    }

    #[test]
    fn every_spelling_of_a_directive_is_found() {
        for directive in [
            "#include \"a.h\"",
            "  #\t include <a.h>// why",
            "/* */ #include \"a.h\"",
            "/* one\n * two */#/**/include/**/<a.h>",
            "%:include \"a.h\"",
            "#import \"a.h\"",
            "#include_next <a.h>",
            "#inc\\\nlude \"a.h\"",
            "#include \\\n \"a.h\"",
            "#if 0\n#include \"a.h\"\n#endif",
            "#include <a.h> /* \" */",
            "// it's \"\n#include \"a.h\"",
            "int n = 1000; char c = '\\'', d = '.';\n#include \"a.h\"",
            "#define X /* one\ntwo */ 1 // */\n#include \"a.h\"",
            "#define CONCAT(a, b) a##b\n#include \"a.h\"\n",
        ] {
            assert_eq!(names(directive).unwrap(), ["a.h"], "{directive}");
            let windows = directive.replace('\n', "\r\n");
            assert_eq!(names(&windows).unwrap(), ["a.h"], "{directive}");
        }
        assert_eq!(names("#include </*a.h>\n#include <b.h>").unwrap(), ["/*a.h", "b.h"]);
    }

    #[test]
    fn text_outside_directives_names_no_file() {
        for text in [
            "",
            "// #include \"a.h\", which includes and imports",
            "/*\n#include \"a.h\"\n*/",
            "const char *text = \"#include <a.h>\";",
            "int included, importance, _include; #define X includes",
            "#pragma unroll\n#error it broke\n#\n#line 3 \"a.h\"",
            "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n_Pragma(\"clang loop unroll(full)\") for (;;);",
            "x = a % b; y = a ? b : c;",
            "asm volatile(\"s_mov_b32 %0, 1\\n\\tv_nop\" : \"=s\"(x));",
            "printf(\"done.\"); printf(\"\\x1b[0m\"); char *s = STR(x);",
        ] {
            assert_eq!(names(text).unwrap(), [""; 0], "{text}");
        }
    }

    #[test]
    fn what_only_a_compiler_can_resolve_is_refused() {
        for text in [
            "#include FILE",
            "#include \"a.h",
            "#include",
            "#embed \"a.bin\"",
            "#if __has_include(<a.h>)",
            "#if defined __has_include",
            "#if __has_include_next(<a.h>)",
            "#if __has_embed(\"a.bin\")",
            "#define ASK __has_include",
            "#if __has_\\\ninclude(<a.h>)",
            "#define CAT(a, b) a##b\n#if CAT(__has_inc, lude)(<a.h>)",
            "#define CAT(a, b) a%:%:b\n#if CAT(__has_inc, lude)(<a.h>)",
            "#\0include \"a.h\"",
            "int x; // \0\n",
            "#@include \"a.h\"",
            "#ident \"a\\\"\\n.incbin \\\"f\\\"\\n.ident \\\"b\"",
            "# /* */ sccs TEXT",
            "#ident TEXT",
            "#pragma GCC dependency <f>",
            "_Pragma(\"GCC dependency \\\"f\\\"\")",
            "#pragma include_alias(\"a.h\", \"b.h\")\n#include \"a.h\"",
            "_Pragma(\"include_alias(<a.h>, <b.h>)\")\n#include <a.h>",
            "#pragma clang module build M\nmodule M { header \"a.h\" }\n#pragma clang module endbuild",
            "_Pragma(\"clang module import M\")",
            "_Pragma /* why */ ( \"clang module import M\" )",
            "#define DO(x) _Pragma(#x)\nDO(clang module import M)",
            "#define DO _Pragma\nDO(\"clang module import M\")",
            "#define CAT(a, b) a##b\nCAT(_Pra, gma)(\"clang module import M\")",
            "_Pragma(L\"clang module import M\")",
            "__pragma(clang module import M)",
            "_Pragma(\"once\")",
            "#pragma GCC pch_preprocess \"a.pch\"",
            "#pragma clang loop /* \n */",
            "import a;",
            "??=include \"a.h\"",
            "int x; ??/\n",
            "R\"x(\" /* )x\"\n#include \"a.h\"\n// */",
            "int x; \\ \n#include \"a.h\"",
            "// one\r#include \"a.h\"",
            "don't /* \n#include \"a.h\"\n */",
            "/* \n#include \"a.h\"\n",
            "asm(\".incbin \\\"a\\\"\");",
            "asm(\".inc\" \"bin a\");",
            "asm(\".\" B);",
            "__asm__(\"nop; .includ\" \"e a\");",
            "__asm(\"\\x2eincb\" \"in a\");",
            "asm(\"\\56in\" \"cbin a\");",
            "asm(\".macro m a\\n.inc\\\\a f\\n.endm\\nm bin\");",
            "#define TEXT(x) #x\nasm(TEXT(.inc) TEXT(bin a));",
            "#define DAY(x) __DA##x\nconst char *at = DAY(TE__);",
            "#define CAT(a, b) a##b\nconst char *at = CAT(__TI, ME__);",
            "#define CAT(a, b) a##b\n#if CAT(__has_emb, ed)(<a.h>)",
            "#define X 0'1/*'\n#include \"a.h\"\n// */",
            "int n = 1'000; // '\n#include \"a.h\"",
            "#if !SECOND(1'a ', __has_include(<F>), 'c 1'a)\n#endif",
            "#define CAT(a, b) a##b\nCAT(as, m)(\"\\n.inc\" \"lude a\");",
            "#define CAT(a, b) a##b\n__attribute__((CAT(sec, tion)(\".data\\n.INCLUDE a\"))) int x;",
            "asm(\"\\n.INCLUDE a\");",
            "asm(\"\\n.IRP x,lude\\n.inc\\\\x a\\n.ENDR\");",
            "void f() { asm volatile(\"\\n.inc{lude|x} a\" ::: \"memory\"); }",
            "asm(\"\\n.in\\clude a\");",
            "#warning /*\n#include \"a.h\"\n// */",
            "#pragma mark /*\n#include \"a.h\"\n// */",
            "__attribute__((section(\".data,\\\"aw\\\"\\n.inc\" \"lude \\\"a\\\"\\n#\"))) int x;",
            "[[gnu::__symver__(\"f,\\n.inc\" \"bin a\")]] void f();",
            "const char *at = __TIME__;",
            "const char *at = __DATE__;",
            "const char *at = __TIMESTAMP__;",
            "\\u0069nclude",
        ] {
            assert!(names(text).is_err(), "{text}");
        }
    }

    #[test]
    fn pasting_is_detected_across_texts() {
        let mut scan = Scan::default();
        assert!(scan.text("#define BEGIN __has_\n").is_ok());
        assert!(scan.text("#define CAT(a, b) a##b\n").is_err());
        // Also when no other word triggers a full scan.
        let mut scan = Scan::default();
        assert!(scan.text("#define CAT(a, b) a##b\n").is_ok());
        assert!(scan.text("#define A _A\n#define B C__\n").is_ok());
        assert!(scan.text("#define BEGIN __h\n").is_err());
    }

    #[test]
    fn assembly_is_detected_across_texts() {
        let assembly = "void f() { asm(TEXT); }";
        for other in [
            "#define TEXT \".inc\" \"bin a\"",
            "#define TEXT \"\\x2eincb\" \"in a\"",
            "#define TO(x) #x",
        ] {
            for texts in [[assembly, other], [other, assembly]] {
                let mut scan = Scan::default();
                assert!(scan.text(texts[0]).is_ok(), "{texts:?}");
                assert!(scan.text(texts[1]).is_err(), "{texts:?}");
            }
        }
        let mut scan = Scan::default();
        for text in [assembly, "#define TEXT \"s_nop 0\\n\"\n  # define TWO 2"] {
            assert!(scan.text(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn only_the_texts_of_assembly_count_after_the_preprocessor() {
        for text in [
            "# 1 \"/usr/include/stdio.h\" 1 3\nint f(int) __asm__ (\"\" \"__f\") __attribute__((noreturn));\n",
            "void g() { printf(\"done.\"); asm volatile(\"s_nop 0\" :: \"r\"(h(\"x\"))); }",
            "[[deprecated(\"Use h.\")]] void g();",
            "#pragma GCC unroll 4\n# 7\nint x;",
        ] {
            Scan::preprocessed(text).expect(text);
        }
        for text in [
            "asm(\"\\n.inc\" \"lude a\");",
            "void g() { __asm__ volatile(\"x\" : : \"r\"((h)(1)), \"\\x2e\"); }",
            "__attribute__((section(\"a\\n.INCLUDE b\"))) int x;",
            "# 1 \"a.h\"\n #ident \"a\"\n",
            "#sccs \"a\"\n",
        ] {
            Scan::preprocessed(text).expect_err(text);
        }
    }
}
