//! Objects of the manifest taken apart and put together again, with right checksums.

use gridstone::base::xxh3;

const HEAD: usize = 24;

/// A row of a page: key, flags, value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) key: Vec<u8>,
    pub(crate) flags: u32,
    pub(crate) value: Vec<u8>,
}

/// A manifest root.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    pub(crate) line: String,
    pub(crate) rows: Vec<Row>,
}

/// The content of a page of rows or a value.
pub(crate) fn content(object: &[u8]) -> Vec<u8> {
    let len = u64::from_le_bytes(object[16..HEAD].try_into().unwrap()) as usize;
    let coded = &object[HEAD..object.len() - 8];
    match object[12] {
        0 => coded.to_vec(),
        _ => zstd::bulk::decompress(coded, len).unwrap(),
    }
}

/// An object with this content, as it is.
pub(crate) fn framed(magic: &[u8; 8], content: &[u8]) -> Vec<u8> {
    let mut bytes =
        [&magic[..], &1u32.to_le_bytes(), &0u32.to_le_bytes(), &(content.len() as u64).to_le_bytes()].concat();
    bytes.extend_from_slice(content);
    let sum = xxh3(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

pub(crate) fn rows(mut content: &[u8]) -> Vec<Row> {
    let mut found = Vec::new();
    while !content.is_empty() {
        let word = |at: usize| u32::from_le_bytes(content[at..at + 4].try_into().unwrap()) as usize;
        let (key, value, flags) = (12 + word(0), 12 + word(0) + word(4), word(8) as u32);
        found.push(Row { key: content[12..key].to_vec(), flags, value: content[key..value].to_vec() });
        content = &content[value..];
    }
    found
}

pub(crate) fn encoded(rows: &[Row]) -> Vec<u8> {
    let mut content = Vec::new();
    for Row { key, flags, value } in rows {
        for word in [key.len() as u32, value.len() as u32, *flags] {
            content.extend_from_slice(&word.to_le_bytes());
        }
        content.extend_from_slice(key);
        content.extend_from_slice(value);
    }
    content
}

impl Root {
    pub(crate) fn of(object: &[u8]) -> Self {
        let end = object.iter().position(|b| *b == b'\n').unwrap();
        let line = String::from_utf8(object[..end].to_vec()).unwrap();
        Self { line, rows: rows(&content(&object[end + 18..])) }
    }

    /// The bytes of the root; its line names the checksum of the rows.
    pub(crate) fn object(&self) -> Vec<u8> {
        let content = encoded(&self.rows);
        let (before, after) = self.line.split_once("\"rows\":\"").unwrap();
        let line = format!("{before}\"rows\":\"{:016x}{}", xxh3(&content), &after[16..]);
        let mut bytes = format!("{line}\n{:016x}\n", xxh3(line.as_bytes())).into_bytes();
        bytes.extend(framed(b"GSROWS\0\0", &content));
        bytes
    }

    /// The checksum by which other objects name it.
    pub(crate) fn sum(object: &[u8]) -> u64 {
        let end = object.iter().position(|b| *b == b'\n').unwrap();
        xxh3(&object[..end])
    }
}
