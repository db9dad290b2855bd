//! Long lines of generated source.

/// The longest line.
const WIDTH: usize = 120;

/// Text of one line, broken after commas and semicolons where it would be too long; lines after the first are indented
/// further.
pub fn wrap(text: &str, indent: usize) -> String {
    let mut lines = String::new();
    let mut line = " ".repeat(indent);
    for part in parts(text) {
        if line.len() + part.trim_end().len() > WIDTH && !line.trim().is_empty() {
            lines += line.trim_end();
            lines.push('\n');
            line = " ".repeat(indent + 4);
        }
        line += part;
    }
    lines + line.trim_end() + "\n"
}

/// The text in pieces that end where a line may: behind `, ` and `; `, but not inside quotes.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let mut before = ' ';
    text.split_inclusive(move |this: char| {
        quoted ^= this == '"';
        let ends = this == ' ' && matches!(before, ',' | ';') && !quoted;
        before = this;
        ends
    })
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn a_line_is_broken_after_the_last_comma_that_fits() {
        let argument = "argument: usize";
        let text = format!("fn f({}), \"a, b\";", [argument; 11].join(", "));
        let wrapped = wrap(&text, 8);
        assert!(wrapped.lines().all(|line| line.len() <= 120), "{wrapped}");
        assert_eq!(wrapped.lines().count(), 2, "{wrapped}");
        let joined: Vec<&str> = wrapped.lines().map(str::trim).collect();
        assert_eq!(joined.join(" "), text);
        assert!(wrapped.starts_with("        fn f(argument"), "{wrapped}");
        assert!(wrapped.contains(",\n            argument"), "{wrapped}");
    }

    #[test]
    fn what_is_quoted_stays_whole() {
        let text = format!("\"{}\"", "word, ".repeat(30));
        assert_eq!(wrap(&text, 0).lines().count(), 1);
    }

    #[test]
    fn a_short_line_stays_as_it_is() {
        assert_eq!(wrap("fn f();", 4), "    fn f();\n");
    }
}
