//! Messages of the engine in the words of C: functions and options in the place of arguments and calls of Python.

/// What a message says, and what C calls it. Where the first has an end, all up to it is meant: `alter(labels={"x": None})`.
const WORDS: &[(&str, Option<&str>, &str)] = &[
    ("alter(labels={", Some("})"), "gridstone_array_alter"),
    ("Context(sources=[", Some("])"), "gridstone_context_options.sources"),
    ("(stream=True)", None, "(gridstone_answers_create)"),
    ("(to=)", None, "(gridstone_array_reduce)"),
    ("(limit=, having=)", None, "(limit, having)"),
    ("(limit=)", None, "(limit)"),
    ("order= out", None, "order out"),
    ("with labels=", None, "as labels"),
    ("labels= out", None, "labels out"),
    ("with decode=False for the stored numbers", None, "into an attribute of the stored type"),
    ("another target_path", None, "another path"),
    ("mode \"r\"", None, "GRIDSTONE_OPEN_READ"),
    ("with \"r+\"", None, "with GRIDSTONE_OPEN_WRITE"),
    ("mode \"r+\"", None, "GRIDSTONE_OPEN_WRITE"),
    ("dedup=\"first\" or \"last\"", None, "GRIDSTONE_DEDUP_FIRST or _LAST"),
    ("overwrite=True", None, "overwrite = 1"),
    ("replace=True", None, "replace = 1"),
    ("sparse=True", None, "sparse = 1"),
    ("duplicates=True", None, "duplicates = 1"),
    ("sorted=True", None, "sorted = 1"),
    ("anon=True", None, "anon = \"true\""),
    ("grow=True", None, "GRIDSTONE_CALL_GROW"),
    ("cell_order=\"row\" or \"col\"", None, "GRIDSTONE_ORDER_ROW or _COLUMN"),
    ("stream them with scan()", None, "read them in portions (gridstone_read_create)"),
    ("stream it with scan()", None, "read it in portions (gridstone_read_create)"),
    ("aggregate()", None, "gridstone_array_aggregate"),
    ("partial()", None, "gridstone_array_aggregate"),
    ("gs.delete(uri)", None, "gridstone_store_delete"),
    ("gs.upgrade(uri)", None, "gridstone_store_upgrade"),
    ("write(commit=False)", None, "gridstone_receipt"),
];

/// A message in the words of C. What stands in quotes, in a path or in a URI is the caller's, and stays.
pub(crate) fn in_c(message: &str) -> String {
    let mut text = message.to_owned();
    for &(begin, end, instead) in WORDS {
        let mut from = 0;
        while let Some(found) = text.get(from..).and_then(|rest| rest.find(begin)).map(|found| from + found) {
            let after = found + begin.len();
            let whole = match end {
                None => Some(after),
                Some(end) => text.get(after..).and_then(|rest| rest.find(end)).map(|place| after + place + end.len()),
            };
            match whole.filter(|whole| is_own(&text, found, *whole)) {
                Some(whole) => {
                    text.replace_range(found..whole, instead);
                    from = found + instead.len();
                }
                None => from = after,
            }
        }
    }
    text
}

/// Whether a part of a message is the message's own: it is a word, and not in quotes.
fn is_own(text: &str, from: usize, to: usize) -> bool {
    let (before, after) = (text.get(..from).unwrap_or_default(), text.get(to..).unwrap_or_default());
    let quotes = before.replace("\\\"", "").matches('"').count();
    let begins = before.is_empty() || before.ends_with([' ', '(']);
    let ends = after.is_empty() || after.starts_with([' ', ',', ';', '.', ':', ')', '`']);
    quotes.is_multiple_of(2) && begins && ends
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use std::fs;
    use std::path::{Path, PathBuf};

    #[test]
    fn messages_name_what_c_has() {
        let told = [
            ("/a exists in mem://x; open it, or pass overwrite=True to replace it", "overwrite = 1 to"),
            ("take them away with alter(labels={\"x\": None})", "away with gridstone_array_alter"),
            (
                "allow its folder: Context(sources=[\"/data\"]), --source \"/data\"",
                "gridstone_context_options.sources, --",
            ),
            ("let it grow with the write (grow=True), or", "(GRIDSTONE_CALL_GROW), or"),
            ("the tag \"grow=True\" names version 3", "the tag \"grow=True\" names"),
            ("/year=2024/grow=True/v exists in mem://h", "/year=2024/grow=True/v exists"),
            ("there is no store in /tmp/sorted=True/x.gs", "/tmp/sorted=True/x.gs"),
            ("there is no array \"a\\\"b\"; say sparse=True", "sparse = 1"),
            ("it is open for reading; open it with mode \"r+\" to write", "with GRIDSTONE_OPEN_WRITE to write"),
            ("an end alter(labels={ that never comes", "alter(labels={ that"),
        ];
        for (message, part) in told {
            let found = in_c(message);
            assert!(found.contains(part), "{found}");
        }
    }

    /// Files of Rust below a folder.
    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("tests") {
                sources(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push(path);
            }
        }
    }

    /// The texts in quotes of a file, without its tests and comments.
    fn texts(source: &str) -> Vec<String> {
        let code: Vec<&str> = source.split("#[cfg(test)]").next().unwrap_or_default().lines().collect();
        let code: Vec<&str> = code.into_iter().filter(|line| !line.trim_start().starts_with("//")).collect();
        // A backslash at the end of a line joins it with the next.
        let joined: String = code.join("\n").split("\\\n").map(str::trim_start).collect();
        let joined = joined.replace("'\"'", "").replace("\\\"", "\u{1}");
        joined.split('"').skip(1).step_by(2).map(|text| text.replace('\u{1}', "\"")).collect()
    }

    /// Whether a text names an argument of Python by its value, or one of its functions.
    fn speaks_python(text: &str) -> bool {
        let values = ["=True", "=False", "=None", "=…", "= out", "=)", "=, ", "=\"", "()", "=["];
        let is_word = |place: usize| text[..place].ends_with(|c: char| c.is_ascii_lowercase());
        values.iter().any(|value| text.match_indices(value).any(|(place, _)| is_word(place)))
            || ["gs.", "(labels=", "(sources=", "(commit=", "\"r+\""].iter().any(|call| text.contains(call))
    }

    #[test]
    fn no_message_of_the_engine_names_arguments_of_python() {
        let mut files = Vec::new();
        for part in ["gridstone", "gridstone-attach", "gridstone-foreign"] {
            sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(part).join("src"), &mut files);
        }
        let mut seen = 0;
        for file in files {
            for text in texts(&fs::read_to_string(&file).unwrap()) {
                // One message says what it is in Python and what in Rust.
                if !speaks_python(&text) || text.contains("in Python gridstone.") {
                    continue;
                }
                seen += 1;
                let found = in_c(&text);
                assert!(!speaks_python(&found), "{}: {found}", file.display());
            }
        }
        assert!(seen > 15, "{seen} messages were looked at");
    }
}
