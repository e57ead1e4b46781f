//! The paths in Rust code, with `use` trees expanded: `use a::{b, c::d}` names `a::b` and `a::c::d`.

use super::Token;
use super::tokens::matching;

/// One path; a glob ends in `*`, an imported module itself may end in `self`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsedPath<'a> {
    pub(crate) segments: Vec<&'a str>,
    /// Index of the token of its last segment.
    pub(crate) token: usize,
}

/// Every path of at least two segments, and every single name after `use`.
pub(crate) fn used_paths<'a>(tokens: &[Token<'a>]) -> Vec<UsedPath<'a>> {
    let mut found = Vec::new();
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        let after_use = index.checked_sub(1).and_then(|before| tokens.get(before)).is_some_and(|t| t.text == "use");
        let leads_path = token.is_word() && tokens.get(index + 1).is_some_and(|next| next.text == "::");
        if leads_path || (after_use && token.is_word()) {
            index = branch(tokens, index, &[], &mut found);
        } else {
            index += 1;
        }
    }
    found
}

/// Follows one branch of a `use` tree, or a plain path, from the segment at `index`; returns the index after it.
fn branch<'a>(tokens: &[Token<'a>], mut index: usize, prefix: &[&'a str], found: &mut Vec<UsedPath<'a>>) -> usize {
    let mut segments = prefix.to_vec();
    while let Some(token) = tokens.get(index) {
        if token.text == "{" {
            return group(tokens, index, &segments, found);
        }
        if !token.is_word() && token.text != "*" {
            return index;
        }
        segments.push(token.text);
        let goes_on = tokens.get(index + 1).is_some_and(|next| next.text == "::")
            && tokens.get(index + 2).is_some_and(|next| next.is_word() || matches!(next.text, "{" | "*"));
        if !goes_on {
            found.push(UsedPath { segments, token: index });
            return index + 1;
        }
        index += 2;
    }
    index
}

/// Follows every branch of the group that opens at `open`; returns the index after the group.
fn group<'a>(tokens: &[Token<'a>], open: usize, prefix: &[&'a str], found: &mut Vec<UsedPath<'a>>) -> usize {
    let close = matching(tokens, open);
    let mut index = open + 1;
    while index < close {
        index = branch(tokens, index, prefix, found);
        while index < close && tokens.get(index).is_some_and(|token| token.text != ",") {
            index += 1;
        }
        index += 1;
    }
    close + 1
}

#[cfg(test)]
mod tests {
    use super::super::tokens;
    use super::*;

    fn paths(code: &str) -> Vec<String> {
        used_paths(&tokens(code)).iter().map(|path| path.segments.join("::")).collect()
    }

    #[test]
    fn use_trees_are_written_out() {
        let code = "use crate::{base::{self, Id as I}, codec::*, tile};";
        assert_eq!(paths(code), ["crate::base::self", "crate::base::Id", "crate::codec::*", "crate::tile"]);
        assert_eq!(paths("use getrandom;"), ["getrandom"]);
    }

    #[test]
    fn paths_in_expressions_and_types() {
        let code = "let x: Vec<crate::base::Id> = Vec::<std::fs::File>::new(); S { a: b }";
        assert_eq!(paths(code), ["crate::base::Id", "Vec", "std::fs::File"]);
        assert_eq!(paths("::std::thread::spawn(f); pub(crate) fn f() {}"), ["std::thread::spawn"]);
        assert_eq!(paths("super::super::codec::Filter { id: 1 }"), ["super::super::codec::Filter"]);
    }
}
