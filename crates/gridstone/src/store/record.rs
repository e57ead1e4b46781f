//! A log record: one committed version.
//!
//! ```text
//! line   {"gs":1,"commit_id":…,"version":…,"parent":…,"read_version":…,"time_us":…,"root":…,"message":…,"ops":[…]}
//! sum    newline, xxh3 of the line, newline; the line is padded so that the body starts at a multiple of 64
//! body   the inline fragments in the order of the ops, each at a multiple of 64, zeros between
//! ```
//! A record that decodes is complete: its line is intact, it has the version of its slot, and its bodies fill the file
//! exactly. Lists of features, an `ext` object and commit keys may come before the operations. The bytes of a body are verified when it is read ([`Record::body`]).

use super::commit_key::{KeyText, Keyed};
use super::extension::{Ext, Features};
use super::line::{self, FORMAT};
use super::operation::{Operation, Recorded};
use super::shape::{Hex, IdText, RootRef, RootText, Signed, Whole};
use super::wording::{BODY_ALIGNMENT, Bodies, Inline, OperationText, Place, read_operation};
use crate::base::{Error, FileRef, Id, Result, id_named_twice, limits, newer, xxh3};
use crate::fragment::Description;
use crate::schema::Schema;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::Arc;

/// One committed version, decoded from its record.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The format that it was written in.
    pub format: u64,
    /// The random id of the commit.
    pub commit_id: Id,
    /// The version that it committed.
    pub version: u64,
    /// The checksum of the previous record's line; `None` for version 1.
    pub parent: Option<u64>,
    /// The version its writer had read, 0 if none.
    pub read_version: u64,
    /// When it was committed: UTC in microseconds, later than every version before.
    pub time_us: i64,
    /// The newest manifest root its writer knew.
    pub root: Option<RootRef>,
    /// The writer's line for the history.
    pub message: Option<String>,
    /// Whether it survives a power cut, with all before it; else its writer has left syncing to the system.
    pub durable: bool,
    /// The features in force from this version on.
    pub(super) features: Features,
    /// The callers' keys of the commits that it has, each with the hash of what was given.
    pub keys: Vec<Keyed>,
    /// What it did.
    pub operations: Vec<Recorded>,
    /// The fragments in the record's body.
    pub inline: Vec<Inline>,
    /// The checksum of this record's line.
    pub xxh3: u64,
    /// Bytes of its file.
    pub len: u64,
    /// Its line with the checksum, as in its file, for [hints](super::hint); `None` of long ones.
    pub(super) head: Option<Bytes>,
}

/// The fields of a record besides its operations.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub(super) commit_id: Id,
    pub(super) version: u64,
    pub(super) parent: Option<u64>,
    pub(super) read_version: u64,
    pub(super) time_us: i64,
    pub(super) root: Option<RootRef>,
    pub(super) message: Option<String>,
    pub(super) durable: bool,
    pub(super) features: Features,
    pub(super) keys: Vec<Keyed>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordText<T> {
    gs: u64,
    commit_id: IdText,
    version: Whole,
    parent: Option<Hex>,
    read_version: Whole,
    time_us: Signed,
    root: Option<RootText>,
    message: Option<String>,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    durable: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    read: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    write: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ext: Ext,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    keys: Vec<KeyText>,
    ops: Vec<T>,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_yes(durable: &bool) -> bool {
    *durable
}

/// How much of a record's file there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    /// The line with its checksum, and any part of the bodies.
    Start,
}

/// Encodes the record of `head` and `operations`. A Conflict error if these add a fragment twice.
pub(super) fn encode(head: Head, operations: &[Operation]) -> Result<Vec<u8>> {
    let staged = operations.iter().flat_map(|operation| match operation {
        Operation::AddFragments { fragments, .. } | Operation::ReplaceFragments { fragments, .. } => &fragments[..],
        _ => &[],
    });
    if let Some(id) = id_named_twice(staged.map(|staged| staged.description.id)) {
        return Err(Error::conflict(format!("fragment {id} is there twice; it can be committed only once")));
    }
    let mut bodies = Bodies::default();
    let ops = operations.iter().map(|op| OperationText::of(op, &mut bodies)).collect::<Result<Vec<_>>>()?;
    let text = RecordText {
        gs: FORMAT,
        commit_id: IdText(head.commit_id),
        version: Whole(head.version),
        parent: head.parent.map(Hex),
        read_version: Whole(head.read_version),
        time_us: Signed(head.time_us),
        root: head.root.map(RootText::from),
        message: head.message,
        durable: head.durable,
        read: head.features.read,
        write: head.features.write,
        ext: None,
        keys: head.keys.iter().map(KeyText::of).collect(),
        ops,
    };
    let json = serde_json::to_string(&text)
        .map_err(|e| Error::input("the commit cannot be written as JSON").with_source(e))?;
    let bodies_bytes: usize =
        bodies.parts.iter().map(|body| body.len().next_multiple_of(BODY_ALIGNMENT as usize)).sum();
    if bodies_bytes > limits::RECORD_BODIES_BYTES_MAX {
        return Err(Error::input(format!(
            "the small fragments of one commit take {bodies_bytes} bytes, at most {} are allowed; commit in several steps",
            limits::RECORD_BODIES_BYTES_MAX
        )));
    }
    let mut bytes = line::seal(json, BODY_ALIGNMENT as usize)?;
    for body in bodies.parts {
        bytes.resize(bytes.len().next_multiple_of(BODY_ALIGNMENT as usize), 0);
        bytes.extend_from_slice(&body);
    }
    Ok(bytes)
}

/// Whether a record of GS0 cannot have `operation`: there is no `ext`, no feature, no base and no operation of GS1 in it.
fn is_beyond_gs0(operation: &Recorded) -> bool {
    let described = |d: &Description| {
        let says_more = !d.extra.is_empty() || !d.stats.as_bytes().is_empty() || !d.moved.is_empty();
        says_more || matches!(d.location.file, FileRef::OnBase(..))
    };
    let created = |ext: &Ext, schema: Option<&Schema>| ext.is_some() || schema.is_some_and(Schema::is_beyond_gs0);
    match operation {
        Recorded::CreateGroup { ext, .. } => created(ext, None),
        Recorded::CreateArray { ext, schema, .. } => created(ext, Some(schema)),
        Recorded::AlterArray { schema, .. } => schema.is_beyond_gs0(),
        Recorded::AddFragments { fragments, .. } | Recorded::ReplaceFragments { fragments, .. } => {
            fragments.iter().any(|d| described(d))
        }
        Recorded::CreateHidden { .. }
        | Recorded::SetFieldMetadata { .. }
        | Recorded::Grow { .. }
        | Recorded::Keep { .. }
        | Recorded::Release { .. }
        | Recorded::SetBase { .. } => true,
        _ => false,
    }
}

/// Whether the start of a record's file includes its whole line.
pub(super) fn has_line(start: &[u8]) -> bool {
    line::is_whole(start)
}

impl Record {
    /// Decodes the record in `bytes`, which must be that of `version`. Unsupported if it has another format or an
    /// unknown operation; Corruption if the bytes are damaged.
    pub fn decode(bytes: &[u8], version: u64) -> Result<Self> {
        Self::decode_as(bytes, version, Part::Whole)
    }

    /// Like [`Record::decode`], but `bytes` may end anywhere after the line with its checksum. Whether the file has all
    /// bodies is not checked.
    pub(super) fn decode_head(bytes: &[u8], version: u64) -> Result<Self> {
        Self::decode_as(bytes, version, Part::Start)
    }

    fn decode_as(bytes: &[u8], version: u64, part: Part) -> Result<Self> {
        let what = format!("the log record of version {version}");
        let line = line::open(bytes, &what)?;
        let explained = |e| line::explained::<RecordText<OperationText>>(line, &what, e);
        let text: RecordText<serde_json::Value> = line::parse(line, &what).map_err(explained)?;
        let features = Features { read: text.read, write: text.write };
        if line.format == 0 && (features != Features::default() || text.ext.is_some() || !text.keys.is_empty()) {
            return Err(newer(what, "features, an \"ext\" or commit keys"));
        }
        features.check_read(&what)?;
        if line.format == 0 && text.ops.iter().any(|op| op.get("ext").is_some()) {
            return Err(newer(what, "an operation with an \"ext\""));
        }
        let mut place = Place::new(version, line.body as u64);
        let mut read = |op| read_operation(op, &mut place).map_err(|e| explained(e.context(&what)));
        let operations = text.ops.into_iter().map(&mut read).collect::<Result<Vec<_>>>()?;
        if line.format == 0 && operations.iter().any(is_beyond_gs0) {
            return Err(newer(what, "an operation, an \"ext\" or a feature that its format does not have"));
        }
        let end = place.inline.last().map_or(line.body as u64, |i| i.range.end());
        let head = bytes.get(..line.body).filter(|head| head.len() <= limits::HINT_LINE_BYTES_MAX);
        let record = Self {
            format: line.format,
            commit_id: text.commit_id.0,
            version: text.version.0,
            parent: text.parent.map(|p| p.0),
            read_version: text.read_version.0,
            time_us: text.time_us.0,
            root: text.root.map(RootRef::from),
            message: text.message,
            durable: text.durable,
            features,
            keys: text.keys.into_iter().map(KeyText::read).collect(),
            operations,
            inline: place.inline,
            xxh3: line.xxh3,
            len: end,
            head: head.map(Bytes::copy_from_slice),
        };
        let file_len = if part == Part::Whole { bytes.len() as u64 } else { end };
        record.check(version, file_len).map_err(|e| e.context(&what))?;
        Ok(record)
    }

    /// The checksum of the line of the record of `version`; nothing else of it is checked.
    ///
    /// # Errors
    /// Corruption or Unsupported, as [`Record::decode`].
    pub(super) fn checksum(bytes: &[u8], version: u64) -> Result<u64> {
        line::open(bytes, &format!("the log record of version {version}")).map(|line| line.xxh3)
    }

    fn check(&self, version: u64, file_len: u64) -> Result<()> {
        let wrong = |why: String| Err(Error::corruption(why));
        if self.version != version {
            return wrong(format!("it says that it is version {}", self.version));
        }
        if (version == 1) != self.parent.is_none() {
            return wrong("version 1 has no parent, every other version has one; this is the other way round".into());
        }
        if self.read_version >= version {
            return wrong(format!("it read version {}, which came later", self.read_version));
        }
        if let Some(root) = self.root.filter(|r| r.version == 0 || r.version >= version) {
            return wrong(format!("it names a manifest root of version {}", root.version));
        }
        if let Some(id) = id_named_twice(self.added().map(|d| d.id)) {
            return wrong(format!("it adds the fragment {id} twice"));
        }
        let mut keys = HashSet::new();
        if let Some(twice) = self.keys.iter().find(|keyed| !keys.insert(&keyed.key)) {
            return wrong(format!("it has the commit key {} twice", twice.key));
        }
        if self.len != file_len {
            return wrong(format!("its file has {file_len} bytes, its line and bodies take {}", self.len));
        }
        Ok(())
    }

    /// The data files of the fragments that it adds, and the files that it keeps.
    pub fn data(&self) -> impl Iterator<Item = Id> {
        let kept = self.operations.iter().flat_map(|operation| match operation {
            Recorded::Keep { kept, .. } => kept.files.as_slice(),
            _ => &[],
        });
        let added = self.added().filter_map(|d| match d.location.file {
            FileRef::Data(id) => Some(id),
            _ => None,
        });
        added.chain(kept.map(|file| file.id))
    }

    /// The fragments that it adds, including replacements.
    pub(super) fn added(&self) -> impl Iterator<Item = &Arc<Description>> {
        self.operations.iter().flat_map(|operation| match operation {
            Recorded::AddFragments { fragments, .. } | Recorded::ReplaceFragments { fragments, .. } => {
                fragments.as_slice()
            }
            _ => &[],
        })
    }

    /// Whether it has one of these commit keys.
    pub(super) fn has_key_of(&self, keys: &[Keyed]) -> bool {
        self.keys.iter().any(|keyed| keys.iter().any(|wanted| wanted.key == keyed.key))
    }

    /// Whether it changed the node `id` itself.
    pub fn touches(&self, id: Id) -> bool {
        self.operations.iter().any(|operation| operation.node() == Some(id))
    }

    /// The bytes of an inline fragment, from the whole `file` of this record. Corruption if they are damaged.
    pub fn body(&self, inline: &Inline, file: &Bytes) -> Result<Bytes> {
        let range = inline.range;
        let body = (range.end() <= file.len() as u64).then(|| file.slice(range.offset as usize..range.end() as usize));
        body.filter(|body| xxh3(body) == inline.xxh3).ok_or_else(|| {
            Error::corruption(format!(
                "fragment {} in the log record of version {} is damaged: its bytes do not match their checksum",
                inline.id, self.version
            ))
        })
    }
}
