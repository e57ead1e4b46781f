//! Plain words: the number of sentences of more than 40 words, and of three habits of speech, falls file by file.
//!
//! `xtask/sentences.toml` records how many of each a file has. A file may have no more than that, and no fewer either:
//! a gain must be recorded, so that it is not lost again. A file that the table does not name has none. `cargo xtask
//! tidy --record` writes the table. It refuses to if the whole tree would have more than before; counts may move
//! between files.

use crate::finding::Finding;
use crate::prose::{Sentence, sentences};
use crate::tree::{Source, Tree};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The path of the recorded counts, from the root.
pub(crate) const TABLE: &str = "xtask/sentences.toml";

const WORDS_MAX: usize = 40;
const SHOWN_MAX: usize = 4;

/// A counted habit: its name in the table, the advice, and its test.
struct Habit {
    name: &'static str,
    advice: &'static str,
    is_found: fn(&Sentence) -> bool,
}

const HABITS: [Habit; 4] = [
    Habit {
        name: "long",
        advice: "sentences of more than 40 words; one idea each, 25 words at most",
        is_found: is_long,
    },
    Habit {
        name: "who",
        advice: "sentences that begin with who, whoever or nobody; name the reader, the writer, the caller",
        is_found: |one| begins_with(one, &["Who", "Whoever", "Nobody"]),
    },
    Habit {
        name: "of",
        advice: "sentences that begin with \"Of\"; begin with the subject",
        is_found: |one| begins_with(one, &["Of"]),
    },
    Habit {
        name: "told",
        advice: "sentences in which something \"is told\"; it is reported, passed or returned",
        is_found: is_told,
    },
];

type Counts = BTreeMap<String, usize>;

/// The recorded counts, by path and by name of habit; zeros are omitted.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    files: BTreeMap<String, Counts>,
}

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let table = match recorded(tree) {
        Ok(table) => table,
        Err(message) => return vec![Finding::new(TABLE, 1, message)],
    };
    let mut found: Vec<Finding> =
        tree.files.iter().filter(|file| is_prose(file)).flat_map(|file| check_file(file, &table)).collect();
    found.extend(table.files.keys().filter(|path| !tree.get(path).is_some_and(is_prose)).map(|path| {
        Finding::new(TABLE, 1, format!("{path} is not there any more; record what is with `cargo xtask tidy --record`"))
    }));
    found
}

fn recorded(tree: &Tree) -> Result<Table, String> {
    let text = tree.get(TABLE).map_or("", |file| file.text.as_str());
    toml::from_str(text).map_err(|error| format!("the table cannot be read: {error}"))
}

/// Whether a file counts as prose. Design notes are exempt: they keep their original words.
fn is_prose(file: &Source) -> bool {
    let is_read = file.is_rust() || file.is_python() || file.extension() == "md";
    is_read && !file.path.starts_with("docs/design/")
}

fn check_file(file: &Source, table: &Table) -> Vec<Finding> {
    let all = sentences(file);
    let allowed = table.files.get(&file.path);
    HABITS.iter().filter_map(|habit| compare(file, &all, habit, allowed)).collect()
}

fn compare(file: &Source, all: &[Sentence], habit: &Habit, allowed: Option<&Counts>) -> Option<Finding> {
    let found: Vec<&Sentence> = all.iter().filter(|one| (habit.is_found)(one)).collect();
    let allowed = allowed.and_then(|counts| counts.get(habit.name)).copied().unwrap_or_default();
    let count = found.len();
    let first = found.first().map_or(1, |one| one.line);
    if count > allowed {
        let message = format!("{count} where {allowed} are recorded: {}: {}", habit.advice, shown(&found));
        return Some(Finding::new(&file.path, first, message));
    }
    let message = format!(
        "{count} where {allowed} are recorded ({}): record the lower number with `cargo xtask tidy --record`",
        habit.name
    );
    (count < allowed).then(|| Finding::new(&file.path, first, message))
}

/// The first few sentences, each with its line and beginning.
fn shown(found: &[&Sentence]) -> String {
    let mut parts: Vec<String> = found.iter().take(SHOWN_MAX).map(|one| shown_one(one)).collect();
    if found.len() > SHOWN_MAX {
        parts.push(format!("and {} more", found.len() - SHOWN_MAX));
    }
    parts.join("; ")
}

fn shown_one(one: &Sentence) -> String {
    let words: Vec<&str> = one.text.split_whitespace().take(8).collect();
    format!("line {}: \"{} …\"", one.line, words.join(" "))
}

fn is_long(one: &Sentence) -> bool {
    one.words() > WORDS_MAX && !one.is_list_of_links()
}

/// Questions may begin so.
fn begins_with(one: &Sentence, words: &[&str]) -> bool {
    let text = one.text.trim_start_matches(['*', '_', '"', '(', '[']);
    let first = text.split(|sign: char| !sign.is_alphanumeric()).next().unwrap_or_default();
    words.contains(&first) && !text.ends_with('?') && text.len() > first.len()
}

/// Quoted words, which mention the habit, do not count.
fn is_told(one: &Sentence) -> bool {
    let text = one.text.to_lowercase();
    let words: Vec<&str> =
        text.split_whitespace().map(|word| word.trim_end_matches(|s: char| !s.is_alphanumeric())).collect();
    words.windows(2).any(|pair| matches!(pair, ["is" | "are" | "was" | "were", "told"]))
}

/// The table with the current counts.
///
/// # Errors
///
/// More in the whole tree than is recorded, unless `may_rise` allows it: the counts, and the files that have more.
pub(crate) fn record(tree: &Tree, may_rise: bool) -> Result<String, String> {
    let before = recorded(tree)?;
    let now = Table { files: tree.files.iter().filter(|file| is_prose(file)).filter_map(counts).collect() };
    let risen: Vec<String> = HABITS.iter().filter_map(|habit| risen(habit.name, &before, &now)).collect();
    match tree.get(TABLE).is_none() || may_rise || risen.is_empty() {
        true => Ok(written(&now)),
        false => Err(format!("{}\nmend them, or allow it with `--raise`", risen.join("\n"))),
    }
}

fn counts(file: &Source) -> Option<(String, Counts)> {
    let all = sentences(file);
    let count = |habit: &Habit| all.iter().filter(|one| (habit.is_found)(one)).count();
    let counts: Counts =
        HABITS.iter().map(|habit| (habit.name.to_owned(), count(habit))).filter(|(_, count)| *count > 0).collect();
    (!counts.is_empty()).then(|| (file.path.clone(), counts))
}

/// The message if the tree has more of a habit than is recorded.
fn risen(name: &str, before: &Table, now: &Table) -> Option<String> {
    let of =
        |table: &Table, path: &str| table.files.get(path).and_then(|counts| counts.get(name)).copied().unwrap_or(0);
    let total = |table: &Table| table.files.keys().map(|path| of(table, path)).sum::<usize>();
    let more: Vec<&str> =
        now.files.keys().filter(|path| of(now, path) > of(before, path)).map(String::as_str).collect();
    (total(now) > total(before))
        .then(|| format!("{name}: {} in all where {} are recorded, in {}", total(now), total(before), more.join(", ")))
}

fn written(table: &Table) -> String {
    let mut text = String::from(
        "# How many sentences of each file are too long, or have a habit that goes (xtask/src/rules/sentences.rs).\n\
         # Written by `cargo xtask tidy --record`; the counts only fall.\n\n[files]\n",
    );
    for (path, counts) in &table.files {
        let inner: Vec<String> = counts.iter().map(|(name, count)| format!("{name} = {count}")).collect();
        text.push_str(&format!("\"{path}\" = {{ {} }}\n", inner.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    fn long(words: usize) -> String {
        format!("A{}.", " word".repeat(words - 1))
    }

    #[test]
    fn plain_sentences_pass() {
        assert!(lines(check, "a.md", &format!("{} {}\n", long(40), long(40))).is_empty());
        assert!(
            lines(check, "a.md", "A reader is served. Whose? Offers of it. Who reads it? No \"is told\".\n").is_empty()
        );
        assert!(lines(check, "docs/design/001-x.md", &long(41)).is_empty());
        assert!(lines(check, "a.toml", &long(41)).is_empty());
    }

    #[test]
    fn planted_sentences_are_found_with_their_lines() {
        assert_eq!(lines(check, "a.md", &format!("Short.\n\n{}\n", long(41))), [3]);
        assert_eq!(lines(check, "a/b.rs", "//! Doc.\n\n/// Fine. Whoever reads\n/// waits.\nfn f() {}\n"), [3]);
        assert_eq!(lines(check, "a/b.rs", "//! Doc.\n// Of these one.\nfn f() {}\n"), [2]);
        assert_eq!(lines(check, "a/b.py", "\"\"\"Doc.\n\nNobody waits. It was\ntold.\n\"\"\"\n"), [3, 3]);
        assert_eq!(lines(check, "a.md", "**Who** reads waits.\n"), [1]);
    }

    #[test]
    fn strings_code_and_tables_are_no_prose() {
        assert!(lines(check, "a/b.rs", "//! Doc.\nfn f() { g(\"Of it. Who is told.\"); }\n").is_empty());
        assert!(lines(check, "a.md", "```sh\nOf it.\n```\n\n| Who is told | b |\n\n## Of it\n").is_empty());
    }

    #[test]
    fn counts_neither_rise_nor_fall_unrecorded() {
        let found = |counts: &str, text: &str| {
            let table = format!("[files]\n\"a.md\" = {{ {counts} }}\n");
            check(&Tree::of(&[("a.md", text), (TABLE, &table)])).into_iter().map(|one| one.message).collect::<Vec<_>>()
        };
        let text = "Of it.\n\nOf that.\n";
        assert!(found("of = 2", text).is_empty());
        let more = found("of = 1", text).join("");
        assert!(more.contains("2 where 1") && more.contains("line 3: \"Of that. …\""), "{more}");
        let fewer = found("of = 3", text).join("");
        assert!(fewer.contains("2 where 3") && fewer.contains("--record"), "{fewer}");
        assert!(found("of = none", text).join("").contains("cannot be read"));
    }

    #[test]
    fn a_file_that_is_gone_is_named() {
        let table = "[files]\n\"b.md\" = { of = 2 }\n";
        let found = check(&Tree::of(&[(TABLE, table)]));
        assert_eq!(found.iter().map(|one| one.path.as_str()).collect::<Vec<_>>(), [TABLE]);
        assert!(found[0].message.contains("b.md"));
    }

    #[test]
    fn what_is_recorded_is_what_is_checked() {
        let files = [("a.md", "Of it. It is told.\n"), ("c.md", "Fine.\n")];
        let first = record(&Tree::of(&files), false).unwrap();
        assert!(first.ends_with("[files]\n\"a.md\" = { of = 1, told = 1 }\n"), "{first}");
        assert!(check(&Tree::of(&[files[0], files[1], (TABLE, &first)])).is_empty());
    }

    #[test]
    fn the_record_lets_files_move_but_nothing_rise() {
        let table = "[files]\n\"a.md\" = { of = 1 }\n";
        let moved = record(&Tree::of(&[("b/c.md", "Of it.\n"), (TABLE, table)]), false).unwrap();
        assert!(moved.contains("\"b/c.md\" = { of = 1 }"));
        let more = Tree::of(&[("a.md", "Of it.\n"), ("b.md", "Of it.\n"), (TABLE, table)]);
        let refused = record(&more, false).unwrap_err();
        assert!(refused.contains("of: 2 in all where 1") && refused.contains("b.md"), "{refused}");
        assert!(record(&more, true).unwrap().contains("\"b.md\""));
    }
}
