//! A finished vector: the files of a store, and what it should hold.

use gridstone::base::Result;
use gridstone::storage::Storage;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A finished vector.
pub(crate) struct Case {
    /// The folder's name.
    pub(crate) name: &'static str,
    storage: Arc<dyn Storage>,
    expect: Value,
}

impl Case {
    /// The vector of a store at these versions.
    pub(crate) fn new(name: &'static str, storage: Arc<dyn Storage>, expect: Value) -> Self {
        Self { name, storage, expect }
    }

    /// All files of the vector by their names in its folder.
    pub(crate) fn files(&self) -> Result<BTreeMap<String, Vec<u8>>> {
        let mut files = BTreeMap::new();
        for folder in ["_log", "_manifest", "_data"] {
            for name in self.storage.list(folder)? {
                files.insert(format!("store/{name}"), self.storage.read_all(&name)?.to_vec());
            }
        }
        files.insert("expect.json".to_owned(), layout(&self.expect));
        Ok(files)
    }
}

/// JSON with its outer levels on lines of their own: columns stay on one line.
fn layout(expect: &Value) -> Vec<u8> {
    fn write(value: &Value, depth: usize, out: &mut String) {
        let indent = |n: usize| format!("\n{}", " ".repeat(n));
        match value {
            Value::Object(map) if depth < 8 => {
                out.push('{');
                for (i, (key, value)) in map.iter().enumerate() {
                    out.push_str(&format!("{}{}{}: ", if i > 0 { "," } else { "" }, indent(depth + 1), json!(key)));
                    let flat = matches!(key.as_str(), "schema" | "metadata" | "box");
                    write(value, if flat { 9 } else { depth + 1 }, out);
                }
                out.push_str(&indent(depth));
                out.push('}');
            }
            Value::Array(list) if depth < 8 && list.iter().any(Value::is_object) => {
                out.push('[');
                for (i, value) in list.iter().enumerate() {
                    out.push_str(&format!("{}{}", if i > 0 { "," } else { "" }, indent(depth + 1)));
                    write(value, depth + 1, out);
                }
                out.push_str(&indent(depth));
                out.push(']');
            }
            flat => out.push_str(&flat.to_string()),
        }
    }
    let mut out = String::new();
    write(expect, 0, &mut out);
    out.push('\n');
    out.into_bytes()
}
