//! The imports of a Python file, wherever the statement is: at the top, in a function, or for type checkers only.

use super::{Token, tokens};

/// One imported name: `from .base import html` is level 1, module `base`, name `html`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PythonImport {
    /// The dots in front; 0 if the import is absolute.
    pub(crate) level: usize,
    /// The dotted module behind the dots; empty if there is none.
    pub(crate) module: String,
    /// The name after `import`, which may be a module too; `None` for `import module`.
    pub(crate) name: Option<String>,
    /// The statement's first byte.
    pub(crate) at: usize,
}

/// The imports of a file, from its text and its code, whose comments and strings are blanked.
///
/// `importlib.import_module("…")` and `__import__("…")` with a literal text count; computed ones are unknown.
pub(crate) fn python_imports(text: &str, code: &str) -> Vec<PythonImport> {
    let tokens: Vec<Token<'_>> = tokens(code).into_iter().filter(|token| token.text != "\\").collect();
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        match token.text {
            "from" => from_import(&tokens, index, &mut found),
            "import" if begins_statement(code, token.at) => plain_import(&tokens, index, &mut found),
            "import_module" | "__import__" => found.extend(by_text(text, &tokens, index)),
            _ => {}
        }
    }
    found
}

/// Whether only a `;` or a `:` precedes `at` in its line.
fn begins_statement(code: &str, at: usize) -> bool {
    let line = code.get(..at).unwrap_or_default().rsplit('\n').next().unwrap_or_default().trim_end();
    line.is_empty() || line.ends_with([';', ':'])
}

/// `from … import a, b as c`, in parentheses or not. Another `from` has no `import` behind its module.
fn from_import(tokens: &[Token<'_>], start: usize, found: &mut Vec<PythonImport>) {
    let at = tokens.get(start).map_or(0, |token| token.at);
    let text = |index: usize| tokens.get(index).map_or("", |token| token.text);
    let level = (start + 1..).take_while(|index| text(*index) == ".").count();
    let (module, mut index) = dotted(tokens, start + 1 + level);
    if text(index) != "import" || (level == 0 && module.is_empty()) {
        return;
    }
    index += 1;
    if text(index) == "(" {
        index += 1;
    }
    loop {
        let name = text(index).to_owned();
        found.push(PythonImport { level, module: module.clone(), name: Some(name), at });
        index += if text(index + 1) == "as" { 3 } else { 1 };
        // A comma at the end of a list in parentheses is followed by nothing.
        if text(index) != "," || text(index + 1) == ")" {
            return;
        }
        index += 1;
    }
}

/// `import a.b, c as d`.
fn plain_import(tokens: &[Token<'_>], start: usize, found: &mut Vec<PythonImport>) {
    let at = tokens.get(start).map_or(0, |token| token.at);
    let text = |index: usize| tokens.get(index).map_or("", |token| token.text);
    let mut index = start + 1;
    loop {
        let (module, end) = dotted(tokens, index);
        if module.is_empty() {
            return;
        }
        found.push(PythonImport { level: 0, module, name: None, at });
        index = if text(end) == "as" { end + 2 } else { end };
        if text(index) != "," {
            return;
        }
        index += 1;
    }
}

/// The dotted name at `start`, and the index behind it.
fn dotted(tokens: &[Token<'_>], start: usize) -> (String, usize) {
    let mut name = String::new();
    let mut index = start;
    while let Some(word) = tokens.get(index).filter(|token| token.is_word() && token.text != "import") {
        name.push_str(word.text);
        index += 1;
        if tokens.get(index).is_none_or(|token| token.text != ".") {
            break;
        }
        name.push('.');
        index += 1;
    }
    (name, index)
}

/// `import_module("a.b")`: the module in the text.
fn by_text(text: &str, tokens: &[Token<'_>], start: usize) -> Option<PythonImport> {
    let [call, open, literal] = tokens.get(start..start + 3)? else { return None };
    if open.text != "(" || !literal.text.starts_with('"') {
        return None;
    }
    let quoted = text.get(literal.at..literal.at + literal.text.len())?;
    let name = quoted.trim_matches(['"', '\'']);
    let module = name.trim_start_matches('.');
    Some(PythonImport { level: name.len() - module.len(), module: module.to_owned(), name: None, at: call.at })
}

#[cfg(test)]
mod tests {
    use super::super::{Language, spans};
    use super::*;

    /// The imports as `dots module name`, read as `tree::Source` reads them.
    fn imports(text: &str) -> Vec<String> {
        let mut code = text.as_bytes().to_vec();
        for span in spans(Language::Python, text) {
            for byte in &mut code[span.start..span.end] {
                *byte = if *byte == b'\n' { b'\n' } else { b' ' };
            }
            code[span.start] = b'"';
            code[span.end - 1] = b'"';
        }
        let code = String::from_utf8(code).unwrap();
        python_imports(text, &code)
            .into_iter()
            .map(|found| format!("{}{} {}", ".".repeat(found.level), found.module, found.name.unwrap_or_default()))
            .collect()
    }

    #[test]
    fn every_statement_that_imports_is_read() {
        assert_eq!(imports("from . import a, b as c\n"), [". a", ". b"]);
        assert_eq!(
            imports("from ..base.html import (\n    escape,\n    table as t,\n)\n"),
            ["..base.html escape", "..base.html table"]
        );
        assert_eq!(imports("import gridstone.io as io, os.path\nx = 1\n"), ["gridstone.io ", "os.path "]);
        assert_eq!(imports("def f():\n    from .x import y\n"), [".x y"]);
        assert_eq!(imports("if TYPE_CHECKING: from .x import y\n"), [".x y"]);
        assert_eq!(imports("a = 1; import b\n"), ["b "]);
        assert_eq!(imports("from .x import *\n"), [".x *"]);
        assert_eq!(imports("from .x import a, \\\n    b\n"), [".x a", ".x b"]);
    }

    #[test]
    fn imports_by_text_count_where_the_text_is_plain() {
        assert_eq!(imports("importlib.import_module(\"gridstone.io\")\n"), ["gridstone.io "]);
        assert_eq!(imports("import_module('.x', __name__)\n"), [".x "]);
        assert!(imports("importlib.import_module(name)\n").is_empty());
    }

    #[test]
    fn other_words_import_nothing() {
        assert!(imports("raise A from error\nyield from b\nx.import_(1)\n").is_empty());
        assert!(imports("# from .x import y\n\"\"\"from .x import y\"\"\"\n").is_empty());
    }
}
