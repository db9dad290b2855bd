//! Finds what a text makes a compiler read, without running the compiler.
//!
//! The texts are C, C++, OpenCL C or HIP. If compilers differ, or only macro expansion shows what is
//! read, the text is refused; a directive in a skipped part counts.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

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
}

/// The words that matter without a directive. Their first two characters are in no other word that kernels use.
const PASTED: [&str; 5] = ["__has_include", "__has_embed", "__DATE__", "__TIME__", "__TIMESTAMP__"];

/// A text without any of these reads no file and needs no closer look. Programs are scanned on every request, so what
/// begins with the first string of a row is looked for only in a text that has that string.
const SUSPICIOUS: [(&str, &[&str]); 3] = [
    (
        "",
        &[
            "include",
            "import",
            "embed",
            "incbin",
            "asm",
            "section",
            "alias",
            "weakref",
            "ifunc",
            "symver",
            "ident",
            "sccs",
            "dependency",
        ],
    ),
    ("__", &["__has", "__DATE__", "__TIME"]),
    ("\\", &["\\u", "\\U", "\\N"]),
];

/// Words, without the underscores around them, whose texts a compiler hands to an assembler as they are: GCC writes the
/// name of a section with its line breaks.
const ASSEMBLING: [&str; 6] = ["asm", "section", "alias", "weakref", "ifunc", "symver"];

/// Directives with an effect that is known. GCC hands the text of `#ident` and `#sccs` to the assembler as it is.
const KNOWN: [&str; 3] = ["pragma", "error", "warning"];

/// Directives of which every compiler splits the rest into tokens. Of others, such as `#warning` and `#pragma mark`,
/// some read it raw.
const OF_TOKENS: [&str; 11] = [
    "define", "undef", "if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif", "line",
];

impl Scan {
    /// The file names of the include directives of `text`, in order.
    ///
    /// # Errors
    ///
    /// It is unknown what the text makes a compiler read.
    pub fn text(&mut self, text: &str) -> Result<Vec<String>> {
        let text = joined(text)?;
        let mut names = Vec::new();
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
        if text.contains('"') || text.contains("%:") || has_stringizing || is_suspicious(&text) {
            self.look(&text, &mut names)?;
        } else {
            // It has no `##`, which would be a line with a second `#`.
            let mut words = text.match_indices('_').filter_map(|(at, _)| {
                let (before, rest) = text.split_at(at);
                (!before.ends_with(is_in_word)).then(|| rest.split(|c| !is_in_word(c)).next().unwrap_or_default())
            });
            let begin = words.find(|word| begins_pasted(word));
            self.begin = self.begin.take().or(begin.map(str::to_owned));
        }
        if let (true, Some(begin)) = (self.pastes, &self.begin) {
            return refused(format!("token pasting may make another word of `{begin}`"));
        }
        if let (true, Some(text)) = (self.assembles || self.pastes, &self.directs) {
            return refused(format!("{text} may begin an assembler's directive"));
        }
        Ok(names)
    }

    /// Checks the output of a preprocessor, in which no macro is left: whether its inline assembly may read a file.
    ///
    /// # Errors
    ///
    /// It may.
    pub fn preprocessed(text: &str) -> Result<()> {
        let mut lexer = Lexer {
            rest: text.chars().peekable(),
        };
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
    fn look(&mut self, text: &str, names: &mut Vec<String>) -> Result<()> {
        let mut lexer = Lexer {
            rest: text.chars().peekable(),
        };
        let mut begins_line = true;
        while let Some(token) = lexer.next()? {
            let is_first = std::mem::replace(&mut begins_line, false);
            match token {
                Token::LineEnd => begins_line = true,
                Token::Hash if is_first => {
                    if let Some(name) = self.directive(&mut lexer)? {
                        names.push(name);
                    }
                }
                Token::Paste => self.pastes = true,
                Token::Word(word) => self.word(&word)?,
                Token::Quoted(text) if text.contains(ALIAS) => return refused(RENAMED),
                Token::Quoted(text) if text.contains(DEPENDENCY) => return refused(DEPENDS),
                Token::Quoted(text) if may_direct(&text) => {
                    self.directs(&format!("the text \"{text}\""));
                }
                Token::Hash => self.directs(STRINGIZED),
                Token::Quoted(_) | Token::Open | Token::Close | Token::Other => {}
            }
        }
        Ok(())
    }

    /// The file of a directive, after its `#`.
    fn directive(&mut self, lexer: &mut Lexer<'_>) -> Result<Option<String>> {
        lexer.skip_blanks()?;
        let name = lexer.word();
        match name.as_str() {
            "include" | "include_next" | "import" => {
                lexer.skip_blanks()?;
                match lexer.file_name() {
                    Some(file) => Ok(Some(file)),
                    None => refused(format!("`#{name} {}` does not name a file", lexer.line())),
                }
            }
            "" if lexer.line().is_empty() => Ok(None),
            "" => refused(format!("`#{}` is no directive", lexer.line())),
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
        if word == ALIAS {
            return refused(RENAMED);
        }
        if word == DEPENDENCY {
            return refused(DEPENDS);
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

/// The pragma by which an include directive names another file.
const ALIAS: &str = "include_alias";
const RENAMED: &str = "`include_alias` may give a file another name";

/// The pragma by which GCC compares the times of two files.
const DEPENDENCY: &str = "dependency";
const DEPENDS: &str = "`dependency` may look at another file";

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

/// The text with its spliced lines joined. Compilers differ in whether blanks may follow the
/// backslash at the end of a line. This joins such lines, so a directive on the second line becomes
/// a token that is refused.
fn joined(text: &str) -> Result<Cow<'_, str>> {
    if text.contains("??") && (text.contains("??/") || text.contains("??=")) {
        return refused("a trigraph, which only some compilers replace");
    }
    if text.contains('\0') {
        return refused("a NUL, which some compilers ignore");
    }
    let text = match text.contains('\r') {
        true => Cow::from(text.replace("\r\n", "\n")),
        false => Cow::from(text),
    };
    if text.contains('\r') {
        return refused("a carriage return, which ends a line for some compilers only");
    }
    if !text.contains('\\') {
        return Ok(text);
    }
    let mut joined = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(at) = rest.find('\\') {
        joined.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let line_end = behind.trim_start_matches([' ', '\t', '\x0b', '\x0c']);
        rest = match line_end.strip_prefix('\n') {
            Some(next) => next,
            None => {
                joined.push('\\');
                behind
            }
        };
    }
    joined.push_str(rest);
    Ok(joined.into())
}

enum Token {
    LineEnd,
    /// `#` or `%:`.
    Hash,
    /// `##` or `%:%:`.
    Paste,
    Word(String),
    /// The text between quotes.
    Quoted(String),
    /// A round bracket.
    Open,
    Close,
    Other,
}

struct Lexer<'a> {
    rest: Peekable<Chars<'a>>,
}

impl Lexer<'_> {
    /// The next token that is neither a blank nor a comment.
    fn next(&mut self) -> Result<Option<Token>> {
        self.skip_blanks()?;
        let Some(&c) = self.rest.peek() else {
            return Ok(None);
        };
        Ok(Some(match c {
            '\n' => {
                self.rest.next();
                Token::LineEnd
            }
            '\\' => return refused("a backslash outside quotes"),
            '"' | '\'' => Token::Quoted(self.quoted(c)?),
            c if c.is_ascii_digit() => {
                self.number()?;
                Token::Other
            }
            c if is_in_word(c) => {
                let word = self.word();
                if word.ends_with('R') && self.rest.peek() == Some(&'"') {
                    return refused("a raw string");
                }
                Token::Word(word)
            }
            '#' | '%' if self.takes("##") || self.takes("%:%:") => Token::Paste,
            '#' | '%' if self.takes("#") || self.takes("%:") => Token::Hash,
            '(' => self.single(Token::Open),
            ')' => self.single(Token::Close),
            _ => self.single(Token::Other),
        }))
    }

    /// The token that the next character is.
    fn single(&mut self, token: Token) -> Token {
        self.rest.next();
        token
    }

    /// Skips to the end of the line.
    fn skip_line(&mut self) {
        while self.rest.next_if(|&c| c != '\n').is_some() {}
    }

    /// Skips blanks and comments on this line; a comment over several lines is one blank.
    fn skip_blanks(&mut self) -> Result<()> {
        while let Some(&c) = self.rest.peek() {
            match c {
                '/' if self.takes("//") => self.skip_line(),
                '/' if self.takes("/*") => {
                    while !self.takes("*/") {
                        if self.rest.next().is_none() {
                            return refused("an unterminated comment");
                        }
                    }
                }
                c if c.is_whitespace() && c != '\n' => _ = self.rest.next(),
                _ => break,
            }
        }
        Ok(())
    }

    /// Consumes these characters if they come next.
    fn takes(&mut self, characters: &str) -> bool {
        let mut ahead = self.rest.clone();
        if characters.chars().all(|c| ahead.next() == Some(c)) {
            self.rest = ahead;
            return true;
        }
        false
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self.rest.next_if(|&c| is_in_word(c)) {
            word.push(c);
        }
        word
    }

    /// A preprocessing number. What follows an apostrophe behind it is a character in C and digits in C++.
    fn number(&mut self) -> Result<()> {
        while self.rest.next_if(|&c| is_in_word(c) || c == '.').is_some() {}
        match self.rest.peek() {
            Some('\'') => refused(format!("`{}` is read differently by C and C++", self.line())),
            _ => Ok(()),
        }
    }

    fn quoted(&mut self, quote: char) -> Result<String> {
        self.rest.next();
        let mut text = String::new();
        while let Some(c) = self.rest.next_if(|&c| c != '\n') {
            match c {
                c if c == quote => return Ok(text),
                '\\' => {
                    text.push(c);
                    text.extend(self.rest.next_if(|&c| c != '\n'));
                }
                c => text.push(c),
            }
        }
        refused(format!("an unmatched {quote}"))
    }

    /// The file name of an include directive, in which comments and escapes have no meaning.
    fn file_name(&mut self) -> Option<String> {
        let end = match self.rest.next_if(|c| ['"', '<'].contains(c))? {
            '"' => '"',
            _ => '>',
        };
        let mut name = String::new();
        while let Some(c) = self.rest.next_if(|&c| c != '\n') {
            if c == end {
                return Some(name);
            }
            name.push(c);
        }
        None
    }

    /// The rest of the line.
    fn line(&self) -> String {
        self.rest.clone().take_while(|&c| c != '\n').collect()
    }
}

/// Only a word that begins with `_` can.
fn begins_pasted(word: &str) -> bool {
    !word.is_empty() && PASTED.iter().any(|pasted| pasted.starts_with(word))
}

fn is_in_word(c: char) -> bool {
    c == '_' || c == '$' || c.is_alphanumeric()
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
