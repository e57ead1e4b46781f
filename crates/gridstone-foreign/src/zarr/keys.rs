//! The keys of chunks: the template that makes them, and the numbers in a name that a folder lists.

use crate::error::{Error, Result};
use std::ffi::OsStr;

/// How chunk keys are made of the numbers along each axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// `c/0/1`: a prefix, then the numbers.
    Default,
    /// `0.1`: the numbers alone.
    V2,
}

impl Encoding {
    /// The template of the keys: `{0}` stands for the number along axis 0, and so on.
    pub(super) fn template(self, axes: usize, separator: char) -> String {
        let numbers: Vec<String> = (0..axes).map(|axis| format!("{{{axis}}}")).collect();
        let numbers = numbers.join(&separator.to_string());
        match (self, axes) {
            (Self::Default, 0) => "c".to_owned(),
            (Self::Default, _) => format!("c{separator}{numbers}"),
            (Self::V2, 0) => "0".to_owned(),
            (Self::V2, _) => numbers,
        }
    }
}

/// A part of the names of one folder.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Axis(usize),
}

/// The names in one folder of those that keys lie in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Level(Vec<Piece>);

/// The levels of a template: folders, and the names of the chunks at last.
pub(super) fn levels(template: &str, axes: usize) -> Result<Vec<Level>> {
    let wrong = || Error::damaged(format!("the template {template:?} is none of keys along {axes} axes"));
    let (mut levels, mut known) = (Vec::new(), 0);
    for folder in template.split('/') {
        let (mut pieces, mut rest) = (Vec::new(), folder);
        while let Some((before, after)) = rest.split_once('{') {
            if !before.is_empty() {
                pieces.push(Piece::Literal(before.to_owned()));
            }
            let (number, after) = after.split_once('}').ok_or_else(wrong)?;
            // Each axis once, and in order: then a name has one reading.
            if number != known.to_string() {
                return Err(wrong());
            }
            pieces.push(Piece::Axis(known));
            known += 1;
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Literal(rest.to_owned()));
        }
        if pieces.is_empty() || matches!(folder, "." | "..") {
            return Err(wrong());
        }
        levels.push(Level(pieces));
    }
    if known == axes { Ok(levels) } else { Err(wrong()) }
}

impl Level {
    /// The name, if it is one only.
    pub(super) fn literal(&self) -> Option<&str> {
        match &self.0[..] {
            [Piece::Literal(name)] => Some(name),
            _ => None,
        }
    }

    /// Whether a name would be that of a chunk, or of a folder of chunks, if the keys had the other separator. `rest` are this level and
    /// those below.
    pub(super) fn is_of_other_separator(&self, name: &OsStr, rest: &[Self], is_folder: bool) -> bool {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let axes = |level: &Self| level.0.iter().filter(|piece| matches!(piece, Piece::Axis(_))).count();
        let Some(name) = name.to_str() else { return false };
        match axes(self) {
            // A folder 0 beside keys 0.0, which writers made that did not say so.
            2.. => is_folder && is_number(name),
            1 if rest.len() > 1 => {
                !is_folder && name.split('.').count() == rest.len() && name.split('.').all(is_number)
            }
            _ => false,
        }
    }

    /// The numbers in a name, in the order of the axes; `None` if the template does not make it.
    pub(super) fn numbers(&self, name: &str) -> Option<Vec<u64>> {
        let (mut rest, mut numbers) = (name, Vec::new());
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => rest = rest.strip_prefix(text.as_str())?,
                Piece::Axis(_) => {
                    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                    let (digits, after) = rest.split_at(end);
                    if digits.len() > 1 && digits.starts_with('0') {
                        return None;
                    }
                    numbers.push(digits.parse().ok()?);
                    rest = after;
                }
            }
        }
        rest.is_empty().then_some(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_those_of_the_specifications() {
        let made = |encoding: Encoding, axes, separator| encoding.template(axes, separator);
        assert_eq!(made(Encoding::Default, 2, '/'), "c/{0}/{1}");
        assert_eq!(made(Encoding::Default, 2, '.'), "c.{0}.{1}");
        assert_eq!(made(Encoding::V2, 3, '.'), "{0}.{1}.{2}");
        assert_eq!((made(Encoding::Default, 0, '/'), made(Encoding::V2, 0, '.')), ("c".into(), "0".into()));
    }

    #[test]
    fn names_are_read_in_one_way() {
        let found = levels("c.{0}.{1}", 2).unwrap();
        let [level] = &found[..] else { panic!("{found:?}") };
        assert_eq!(level.numbers("c.10.0"), Some(vec![10, 0]));
        for name in
            ["c.01.0", "c.1", "c.1.2.3", "c.1.-2", "c.1.+2", "c.1.2 ", "c..1", "d.1.2", "c.1.99999999999999999999", ""]
        {
            assert_eq!(level.numbers(name), None, "{name}");
        }
        let nested = levels("c/{0}/{1}", 2).unwrap();
        assert_eq!(
            (nested[0].literal(), nested[1].literal(), nested[2].numbers("7")),
            (Some("c"), None, Some(vec![7]))
        );
        for (template, axes) in
            [("{1}{0}", 2), ("{0}", 2), ("a//{0}", 1), ("../{0}", 1), ("{0", 1), ("{x}", 1), ("", 0)]
        {
            assert!(levels(template, axes).is_err(), "{template}");
        }
    }
}
