//! The tokens of C, as far as it matters what a compiler reads.

use std::str::Chars;

use super::{Result, check_pragma, refused};

pub(super) enum Token {
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

pub(super) struct Lexer<'a> {
    rest: Chars<'a>,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text.chars() }
    }

    /// How many bytes are left.
    pub(super) fn left(&self) -> usize {
        self.rest.as_str().len()
    }

    fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    fn next_if(&mut self, takes: impl FnOnce(&char) -> bool) -> Option<char> {
        let next = self.peek().filter(takes)?;
        self.rest.next();
        Some(next)
    }

    /// The next token that is neither a blank nor a comment.
    pub(super) fn next(&mut self) -> Result<Option<Token>> {
        self.skip_blanks()?;
        let Some(c) = self.peek() else {
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
                if word.ends_with('R') && self.peek() == Some('"') {
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
    pub(super) fn skip_line(&mut self) {
        while self.next_if(|&c| c != '\n').is_some() {}
    }

    /// Skips blanks and comments on this line; a comment over several lines is one blank.
    pub(super) fn skip_blanks(&mut self) -> Result<()> {
        while let Some(c) = self.peek() {
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

    pub(super) fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self.next_if(|&c| is_in_word(c)) {
            word.push(c);
        }
        word
    }

    /// A preprocessing number. What follows an apostrophe behind it is a character in C and digits in C++.
    fn number(&mut self) -> Result<()> {
        while self.next_if(|&c| is_in_word(c) || c == '.').is_some() {}
        match self.peek() {
            Some('\'') => refused(format!("`{}` is read differently by C and C++", self.line())),
            _ => Ok(()),
        }
    }

    fn quoted(&mut self, quote: char) -> Result<String> {
        self.rest.next();
        let mut text = String::new();
        while let Some(c) = self.next_if(|&c| c != '\n') {
            match c {
                c if c == quote => return Ok(text),
                '\\' => {
                    text.push(c);
                    text.extend(self.next_if(|&c| c != '\n'));
                }
                c => text.push(c),
            }
        }
        refused(format!("an unmatched {quote}"))
    }

    /// The file name of an include directive, in which comments and escapes have no meaning, and whether it is quoted.
    pub(super) fn file_name(&mut self) -> Option<(String, bool)> {
        let end = match self.next_if(|c| ['"', '<'].contains(c))? {
            '"' => '"',
            _ => '>',
        };
        let mut name = String::new();
        while let Some(c) = self.next_if(|&c| c != '\n') {
            if c == end {
                return Some((name, end == '"'));
            }
            name.push(c);
        }
        None
    }

    /// What follows `_Pragma`: a text in brackets, whose effect is known.
    pub(super) fn pragma(&mut self) -> Result<()> {
        let text = match (self.next()?, self.next()?, self.next()?) {
            (Some(Token::Open), Some(Token::Quoted(text)), Some(Token::Close)) => text,
            _ => return refused("a `_Pragma` without a plain text"),
        };
        if text.contains("once") {
            return refused("a `_Pragma` of `once`");
        }
        check_pragma(&text)
    }

    /// The rest of the line.
    pub(super) fn line(&self) -> String {
        self.rest.clone().take_while(|&c| c != '\n').collect()
    }
}

pub(super) fn is_in_word(c: char) -> bool {
    c == '_' || c == '$' || c.is_alphanumeric()
}
