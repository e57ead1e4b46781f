//! Words, names, literals and signs of a condition's text.

use super::complaint::complaint;
use crate::base::Result;

/// Words that are names only if quoted, in any case.
const RESERVED: [&str; 14] =
    ["and", "or", "not", "in", "is", "between", "null", "none", "true", "false", "nan", "inf", "infinity", "nat"];

/// Words of a `case`. Within one they are names only if quoted; elsewhere they are names.
const OF_CASE: [&str; 5] = ["case", "when", "then", "else", "end"];

/// Whether `name` needs no quotes, wherever it stands.
pub(super) fn is_plain(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && letters.all(is_letter)
        && !RESERVED.contains(&name.to_lowercase().as_str())
        && !is_of_case(name)
}

/// Whether `name` is a word of a `case`.
pub(super) fn is_of_case(name: &str) -> bool {
    OF_CASE.iter().any(|word| name.eq_ignore_ascii_case(word))
}

fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A reserved word, in lower case.
    Word(&'static str),
    /// A name, plain (true) or quoted.
    Name(String, bool),
    Text(String),
    Bytes(Vec<u8>),
    /// Without its sign.
    Int(u128),
    Float(f64),
    /// An operator or parenthesis.
    Sign(&'static str),
    End,
}

impl Token {
    /// The token for messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Word(word) => format!("{word:?}"),
            Self::Name(name, true) if is_of_case(name) => format!("{:?}", name.to_lowercase()),
            Self::Name(name, _) => format!("the name {name}"),
            Self::Text(_) => "a text".to_owned(),
            Self::Bytes(_) => "bytes".to_owned(),
            Self::Int(_) | Self::Float(_) => "a number".to_owned(),
            Self::Sign(sign) => format!("{sign:?}"),
            Self::End => "the end".to_owned(),
        }
    }
}

/// Longer signs first. Some are synonyms.
const SIGNS: [(&str, &str); 25] = [
    ("::", "::"),
    ("//", "//"),
    ("*", "*"),
    ("/", "/"),
    ("%", "%"),
    ("==", "=="),
    ("!=", "!="),
    ("<>", "!="),
    ("<=", "<="),
    (">=", ">="),
    ("&&", "&"),
    ("||", "|"),
    ("=", "=="),
    ("<", "<"),
    (">", ">"),
    ("&", "&"),
    ("|", "|"),
    ("~", "~"),
    ("!", "~"),
    ("(", "("),
    (")", ")"),
    ("[", "["),
    ("]", "]"),
    (",", ","),
    ("+", "+"),
];

/// The tokens of a text, one after the other.
#[derive(Debug, Clone)]
pub(super) struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next token and the byte at which it starts.
    pub(super) fn next(&mut self) -> Result<(Token, usize)> {
        self.at += self.rest().len() - self.rest().trim_start().len();
        let start = self.at;
        let rest = self.rest();
        let mut letters = rest.chars();
        let (first, second) = (letters.next(), letters.next());
        let token = match (first, second) {
            (None, _) => Token::End,
            (Some('b' | 'B'), Some('\'')) => Token::Bytes(self.escaped_bytes(start)?),
            (Some('x' | 'X'), Some('\'')) => Token::Bytes(self.hex_bytes(start)?),
            (Some('\''), _) => Token::Text(self.quoted('\'', "text")?),
            (Some('"'), _) => Token::Name(self.quoted('"', "name")?, false),
            (Some('`'), _) => Token::Name(self.quoted('`', "name")?, false),
            (Some(c), _) if c.is_ascii_digit() => self.number()?,
            (Some('.'), Some(c)) if c.is_ascii_digit() => self.number()?,
            (Some(c), _) if c.is_alphabetic() || c == '_' => self.word(),
            _ => self.sign()?,
        };
        Ok((token, start))
    }

    fn word(&mut self) -> Token {
        let rest = self.rest();
        let len = rest.find(|c| !is_letter(c)).unwrap_or(rest.len());
        self.at += len;
        let word = rest.get(..len).unwrap_or_default();
        let lower = word.to_lowercase();
        match RESERVED.iter().find(|r| **r == lower) {
            Some(reserved) => Token::Word(reserved),
            None => Token::Name(word.to_owned(), true),
        }
    }

    fn sign(&mut self) -> Result<Token> {
        let rest = self.rest();
        if let Some((written, meant)) = SIGNS.iter().find(|(written, _)| rest.starts_with(written)) {
            self.at += written.len();
            return Ok(Token::Sign(meant));
        }
        if rest.starts_with(['-', '−']) {
            self.at += rest.chars().next().map_or(0, char::len_utf8);
            return Ok(Token::Sign("-"));
        }
        let found = rest.chars().next().unwrap_or(' ');
        Err(complaint(self.text, self.at, format!("{found:?} has no meaning in a condition")))
    }

    /// The text between two quotes; a quote itself is written twice.
    fn quoted(&mut self, quote: char, what: &str) -> Result<String> {
        let start = self.at;
        let mut found = String::new();
        self.at += 1;
        loop {
            let rest = self.rest();
            let Some(end) = rest.find(quote) else {
                return Err(complaint(self.text, start, format!("this {what} has no closing {quote}")));
            };
            found.push_str(rest.get(..end).unwrap_or_default());
            self.at += end + 1;
            if !self.rest().starts_with(quote) {
                return Ok(found);
            }
            found.push(quote);
            self.at += 1;
        }
    }

    /// `x'00ff'`.
    fn hex_bytes(&mut self, start: usize) -> Result<Vec<u8>> {
        self.at += 1;
        let digits = self.quoted('\'', "run of bytes")?;
        let bytes = crate::schema::text_to_bytes(crate::schema::Datatype::Bytes, &digits);
        bytes.map_err(|_| complaint(self.text, start, "bytes as x'…' are pairs of hexadecimal digits"))
    }

    /// `b'ab\x00\n'`, with Python's escapes.
    fn escaped_bytes(&mut self, start: usize) -> Result<Vec<u8>> {
        self.at += 2;
        let mut bytes = Vec::new();
        let mut letters = self.rest().char_indices();
        let wrong = |message: &str| complaint(self.text, start, message);
        while let Some((place, letter)) = letters.next() {
            match letter {
                '\'' => {
                    self.at += place + 1;
                    return Ok(bytes);
                }
                '\\' => match letters.next().map(|(_, c)| c) {
                    Some('x') => {
                        let mut digit = || letters.next().and_then(|(_, c)| c.to_digit(16));
                        let (Some(high), Some(low)) = (digit(), digit()) else {
                            return Err(wrong("\\x in bytes takes two hexadecimal digits"));
                        };
                        bytes.push((high * 16 + low) as u8);
                    }
                    Some('n') => bytes.push(b'\n'),
                    Some('r') => bytes.push(b'\r'),
                    Some('t') => bytes.push(b'\t'),
                    Some('0') => bytes.push(0),
                    Some(c @ ('\\' | '\'' | '"')) => bytes.push(c as u8),
                    _ => return Err(wrong("bytes know the escapes \\xNN \\n \\r \\t \\0 \\\\ \\' \\\"")),
                },
                c if c.is_ascii() => bytes.push(c as u8),
                _ => return Err(wrong("bytes as b'…' hold ASCII and escapes; write \\xNN for others")),
            }
        }
        Err(wrong("these bytes have no closing '"))
    }

    fn number(&mut self) -> Result<Token> {
        let start = self.at;
        let rest = self.rest();
        let hex = rest.get(..2).is_some_and(|p| p.eq_ignore_ascii_case("0x"));
        let mut end = if hex { 2 } else { 0 };
        let mut last = ' ';
        for c in rest.get(end..).unwrap_or_default().chars() {
            let after_exponent = !hex && matches!(last, 'e' | 'E') && matches!(c, '+' | '-');
            if !(is_letter(c) || (!hex && c == '.') || after_exponent) {
                break;
            }
            end += c.len_utf8();
            last = c;
        }
        self.at += end;
        let written = rest.get(..end).unwrap_or_default();
        read_number(written, hex)
            .ok_or_else(|| complaint(self.text, start, format!("{written:?} is no number that a condition can hold")))
    }
}

/// An integer of 128 bits or a float; `0.1f32` is the float32 next to 0.1.
fn read_number(written: &str, hex: bool) -> Option<Token> {
    if written.contains("__") || written.ends_with('_') {
        return None;
    }
    let plain = written.replace('_', "");
    if hex {
        return u128::from_str_radix(plain.get(2..)?, 16).ok().map(Token::Int);
    }
    let is_number = |text: &str| text.chars().all(|c| c.is_ascii_digit() || ".eE+-".contains(c));
    if let Some(single) = plain.strip_suffix("f32") {
        return is_number(single).then(|| single.parse::<f32>().ok().map(|v| Token::Float(f64::from(v))))?;
    }
    if plain.chars().all(|c| c.is_ascii_digit()) {
        return plain.parse().ok().map(Token::Int);
    }
    is_number(&plain).then(|| plain.parse().ok().map(Token::Float))?
}
