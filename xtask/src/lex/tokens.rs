//! Words and signs of Rust code with blanked comments and strings, and inline modules of a file.

/// A word, `::`, a (blanked) string with its quotes, or one sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    /// Its first byte's offset in the file.
    pub(crate) at: usize,
}

impl Token<'_> {
    pub(crate) fn is_word(&self) -> bool {
        self.text.starts_with(is_word_char)
    }
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

pub(crate) fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = code.get(at..) {
        let Some(first) = rest.chars().next() else { break };
        let length = match first {
            _ if is_word_char(first) => rest.find(|c| !is_word_char(c)).unwrap_or(rest.len()),
            '"' => rest.get(1..).and_then(|body| body.find('"')).map_or(rest.len(), |length| length + 2),
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        if !first.is_whitespace() {
            found.push(Token { text: rest.get(..length).unwrap_or_default(), at });
        }
        at += length;
    }
    found
}

/// The index of the bracket that closes the one at `open`; that of the last token if none does.
pub(crate) fn matching(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return index;
        }
    }
    tokens.len().saturating_sub(1)
}

/// `mod name { … }`, as token indexes of its braces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InlineModule<'a> {
    pub(crate) name: &'a str,
    pub(crate) open: usize,
    pub(crate) close: usize,
    /// Whether only tests are compiled with it.
    pub(crate) of_tests: bool,
}

impl InlineModule<'_> {
    pub(crate) fn holds(&self, token: usize) -> bool {
        self.open < token && token < self.close
    }
}

/// Every inline module of the file, outer ones first.
pub(crate) fn inline_modules<'a>(tokens: &[Token<'a>]) -> Vec<InlineModule<'a>> {
    let module = |(index, window): (usize, &[Token<'a>])| match window {
        [keyword, name, open] if keyword.text == "mod" && name.is_word() && open.text == "{" => {
            let before: Vec<&str> =
                tokens.get(..index).unwrap_or_default().iter().rev().take(5).map(|t| t.text).collect();
            let of_tests = name.text == "tests" || before.starts_with(&["]", ")", "test", "(", "cfg"]);
            Some(InlineModule { name: name.text, open: index + 2, close: matching(tokens, index + 2), of_tests })
        }
        _ => None,
    };
    tokens.windows(3).enumerate().filter_map(module).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_paths_strings_and_signs() {
        let texts: Vec<&str> = tokens("use a_1::{b};\n\"  \"").iter().map(|token| token.text).collect();
        assert_eq!(texts, ["use", "a_1", "::", "{", "b", "}", ";", "\"  \""]);
    }

    #[test]
    fn inline_modules_know_what_they_hold() {
        let tokens = tokens("mod a; mod b { mod c { x } } y");
        let modules = inline_modules(&tokens);
        let holding = |word: &str| {
            let index = tokens.iter().position(|token| token.text == word).unwrap();
            modules.iter().filter(|module| module.holds(index)).map(|module| module.name).collect::<Vec<_>>()
        };
        assert_eq!(holding("x"), ["b", "c"]);
        assert!(holding("y").is_empty());
    }
}
