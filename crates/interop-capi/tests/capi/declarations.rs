//! The functions that the header declares, read from the header itself.

use crate::toolchain::include;

/// A function of the header.
pub struct Function {
    pub name: String,
    pub returns: String,
    pub parameters: Vec<Parameter>,
    /// Its description.
    pub text: String,
}

/// A parameter of a function.
#[derive(Clone)]
pub struct Parameter {
    /// As in C, without the name: `const struct hipcl_range *`.
    pub ty: String,
    pub name: String,
    /// Whether its description says that it may be null.
    pub may_be_null: bool,
}

pub fn header() -> String {
    std::fs::read_to_string(include().join("hipcl.h")).expect("the header")
}

/// Every function, in the header's order.
pub fn functions() -> Vec<Function> {
    let header = header();
    let after = header.split("extern \"C\" {").nth(1).expect("the functions");
    let mut functions = Vec::new();
    for part in after.split("/**").skip(1) {
        let (text, code) = part.split_once("*/").expect("a description ends");
        let code = code.split(';').next().expect("a declaration");
        // Whether the result may be thrown away is no part of the type.
        let code = code.trim_start().trim_start_matches("HIPCL_CHECKED");
        let Some((head, tail)) = code.split_once('(') else {
            continue;
        };
        let text: String = text
            .lines()
            .map(|line| line.trim_start_matches([' ', '*']))
            .collect::<Vec<_>>()
            .join("\n");
        let (returns, name) = split_name(head);
        let tail = tail.trim_end().strip_suffix(')').expect("a declaration ends");
        let parameters = split_parameters(tail)
            .into_iter()
            .map(|parameter| of_parameter(&parameter, &text))
            .collect();
        functions.push(Function {
            name,
            returns,
            parameters,
            text,
        });
    }
    functions
}

/// At the commas that are not inside of a function pointer.
fn split_parameters(text: &str) -> Vec<String> {
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text == "void" {
        return Vec::new();
    }
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for letter in text.chars() {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        match letter {
            ',' if depth == 0 => parts.push(String::new()),
            _ => parts.last_mut().expect("never empty").push(letter),
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

fn of_parameter(text: &str, description: &str) -> Parameter {
    let (ty, name) = match text.split_once("(*") {
        Some((_, rest)) => {
            let name = rest.split(')').next().expect("a name").to_owned();
            (text.replacen(&name, "", 1), name)
        }
        None => split_name(text),
    };
    Parameter {
        may_be_null: about(description, &name).is_some_and(|text| text.contains("null")),
        ty,
        name,
    }
}

/// What `@param name` says.
fn about(description: &str, name: &str) -> Option<String> {
    let mut parts = description.split("@param ");
    let own = parts.find(|part| part.split_whitespace().next() == Some(name))?;
    Some(own.split("\n\n").next().unwrap_or(own).to_owned())
}

/// The identifier at the end, and what is before it.
fn split_name(text: &str) -> (String, String) {
    let text = text.trim();
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let at = text.rfind(|letter| !is_part(letter)).map_or(0, |at| at + 1);
    (text[..at].trim().to_owned(), text[at..].to_owned())
}
