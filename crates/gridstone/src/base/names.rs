//! Names chosen by users: which characters a new name must not contain, and how texts with such characters are printed.

use std::borrow::Cow;
use std::fmt::Write;

/// The advice for a name with a character that [`is_unprintable`].
pub const PRINTABLE: &str =
    "a name holds no control characters, line separators or marks that turn the direction of text";

/// Whether `c` acts on the display instead of being shown: a control character, a line or paragraph separator, or a
/// mark that changes the direction of the text after it.
pub fn is_unprintable(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `text` in printable form: characters that are [`is_unprintable`] become `\u{1b}` and the like.
pub fn printable(text: &str) -> Cow<'_, str> {
    // In ASCII they are the bytes below the space, and one above; all others start with one of two bytes.
    if !text.bytes().any(|b| b < b' ' || matches!(b, 0x7f | 0xc2 | 0xe2)) || !text.contains(is_unprintable) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_unprintable(c) {
            let _ = write!(shown, "{}", c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_act_on_a_terminal_is_shown_as_what_it_is() {
        for (text, shown) in [
            ("/city/r\u{e4}in \u{2013} 7\u{a0}mm", "/city/r\u{e4}in \u{2013} 7\u{a0}mm"),
            ("a\0b\u{1b}[2J\n\u{7f}", "a\\u{0}b\\u{1b}[2J\\n\\u{7f}"),
            ("\u{85}\u{2028}\u{202e}\u{2066}", "\\u{85}\\u{2028}\\u{202e}\\u{2066}"),
        ] {
            assert_eq!(printable(text), shown);
        }
        assert!(!"a/b \u{e4}\u{2027}\u{202f}\u{206a}\u{a0}".contains(is_unprintable));
    }
}
