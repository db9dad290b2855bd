//! The text of a C program with one function on each line, so that a compiler error names the claim it belongs to.

use crate::{Claim, Value};

/// How C may have to spell a type.
pub const FORMS: [&str; 4] = ["", "struct ", "union ", "enum "];

/// A C file that grows by lines.
pub struct Source {
    lines: Vec<String>,
}

impl Source {
    /// With the standard headers it needs and these.
    pub fn new(headers: &[String]) -> Self {
        let mut lines: Vec<String> = ["stddef.h", "stdint.h", "stdio.h", "string.h"]
            .iter()
            .map(|header| format!("#include <{header}>"))
            .collect();
        lines.extend(headers.iter().map(|header| format!("#include <{header}>")));
        for helper in [
            // The sign apart, because a C integer may be either of two 64-bit types.
            "#define NUMBER(i, e) printf(\"%d %d %llx\\n\", i, (e) < 0, (unsigned long long)(e))",
            "static void bytes(int i, const void *p, size_t n) { printf(\"%d b \", i); \
             while (n--) { printf(\"%02x\", *(const unsigned char *)p); p = (const char *)p + 1; } puts(\"\"); }",
        ] {
            lines.push(helper.to_owned());
        }
        Self { lines }
    }

    /// Adds a line; gives its number as the compiler counts.
    pub fn line(&mut self, text: String) -> usize {
        self.lines.push(text);
        self.lines.len()
    }

    /// The file with a `main` that runs these bodies.
    pub fn text(&self, bodies: &[usize]) -> String {
        let calls: Vec<String> = bodies.iter().map(|i| format!("claim_{i}();")).collect();
        format!(
            "{}\nint main(void) {{\n{}\nreturn 0; }}\n",
            self.lines.join("\n"),
            calls.join("\n")
        )
    }
}

/// The function that computes claim number `i`; `spelling` is the C name of its type.
pub fn body(i: usize, claim: &Claim, spelling: Option<&str>) -> String {
    let ty = spelling.unwrap_or_default();
    let c = claim.c.replace('$', ty);
    let statements = match (&claim.value, spelling) {
        (Value::Number(_), _) => format!("NUMBER({i}, {c});"),
        (Value::Bytes(_), Some(_)) => {
            format!("{ty} value; memset(&value, 0, sizeof value); value.{c} = ~0; bytes({i}, &value, sizeof value);")
        }
        (Value::Bytes(_), None) => format!("bytes({i}, {c}, sizeof({c}));"),
        // A function's address has a size whether or not a library is there to link with; a macro of that name has
        // none.
        (Value::Declared, _) => format!("NUMBER({i}, sizeof(&{c}));"),
        (Value::Opaque, _) => String::new(),
    };
    format!("static void claim_{i}(void) {{ {statements} }}")
}
