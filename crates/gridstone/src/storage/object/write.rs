//! Conditional writes, and how their outcome is determined.
//!
//! A conditional PUT that fails may have taken effect: its answer was lost, or a proxy repeated it and the second try
//! met the first. So each of these requests is sent once, by a client that retries nothing. Every call marks its object
//! with a random word in the metadata. After an ambiguous answer the object is read:
//!
//! - it has our mark: our write took effect, whatever the answer was;
//! - it has another mark: our write did not take effect, if the condition was absence;
//! - it does not exist, or is unchanged: the request is sent again, since the condition still guards it;
//! - it cannot be read, or has no mark (a store without metadata): an error, and the caller determines the outcome.
//!
//! A refusal is checked too, since a proxy may have repeated the request: it may be caused by our own success. Only if
//! the object cannot be read is a refusal of the first try accepted.
//!
//! The error reports whether any try may still take effect ([`Unwritten::in_doubt`]). A request that was never accepted
//! has no effect. A request whose answer was lost stays in doubt until the object is read, whatever the answers to
//! later tries: it may stay in flight as long as it lives.

use super::client::{Stores, fetched};
use super::failure::{Effect, effect};
use crate::storage::PutOutcome;
use bytes::Bytes;
use object_store::path::Path;
use object_store::{Attribute, AttributeValue, Attributes, GetOptions, PutMode, PutOptions, PutPayload, UpdateVersion};
use std::borrow::Cow;
use std::time::Duration;

/// The metadata name of the mark. Letters only: each store allows different other characters.
pub(super) const MARK: Attribute = Attribute::Metadata(Cow::Borrowed("gridstonewrite"));

/// How often a write whose effect is in doubt is tried.
const ATTEMPTS: u32 = 4;
/// The wait before the second try; it doubles before each further one.
const PAUSE: Duration = Duration::from_millis(100);

/// The condition of a write.
#[derive(Debug, Clone)]
pub(super) enum Condition {
    /// The object does not exist.
    Absent,
    /// The object is this version.
    Unchanged(UpdateVersion),
}

impl Condition {
    fn mode(&self) -> PutMode {
        match self {
            Self::Absent => PutMode::Create,
            Self::Unchanged(version) => PutMode::Update(version.clone()),
        }
    }
}

/// What a read finds after our write.
enum Seen {
    Ours,
    /// The condition still holds.
    Before,
    /// An object of another writer.
    Others,
    Unclear,
}

/// A write that failed.
#[derive(Debug)]
pub(super) struct Unwritten {
    pub(super) error: object_store::Error,
    /// Whether it may have taken effect, or may still do so.
    pub(super) in_doubt: bool,
}

/// Writes `bytes`, marked with `mark`, to `path` on `condition`; `Exists` if that did not hold.
pub(super) async fn write_if(
    stores: &Stores,
    path: &Path,
    bytes: Bytes,
    mark: &str,
    condition: &Condition,
) -> Result<PutOutcome, Unwritten> {
    let (mut attempt, mut in_doubt) = (0, false);
    loop {
        let error = match put_once(stores, path, bytes.clone(), mark, condition.mode()).await {
            Ok(()) if in_doubt => return Ok(PutOutcome::CreatedLate),
            Ok(()) => return Ok(PutOutcome::Created),
            Err(error) => error,
        };
        let effect = effect(&error);
        if effect == Effect::None {
            return Err(Unwritten { error, in_doubt });
        }
        // Only this try can have been refused because of its own success, so the refusal is accepted.
        let refused = effect == Effect::Refused && !in_doubt;
        in_doubt |= effect == Effect::Unknown;
        match seen(stores, path, mark, condition).await {
            Seen::Ours if attempt > 0 => return Ok(PutOutcome::CreatedLate),
            Seen::Ours => return Ok(PutOutcome::Created),
            _ if refused => return Ok(PutOutcome::Exists),
            Seen::Others if matches!(condition, Condition::Absent) => return Ok(PutOutcome::Exists),
            Seen::Before if attempt + 1 < ATTEMPTS => {}
            Seen::Before | Seen::Others | Seen::Unclear => return Err(Unwritten { error, in_doubt }),
        }
        tokio::time::sleep(PAUSE * 2u32.pow(attempt)).await;
        attempt += 1;
    }
}

/// Sends a write in `mode` once.
pub(super) async fn put_once(
    stores: &Stores,
    path: &Path,
    bytes: Bytes,
    mark: &str,
    mode: PutMode,
) -> object_store::Result<()> {
    let attributes = Attributes::from_iter([(MARK, AttributeValue::from(mark.to_owned()))]);
    let options = PutOptions { mode, attributes, ..PutOptions::default() };
    stores.once.put_opts(path, PutPayload::from_bytes(bytes), options).await.map(drop)
}

async fn seen(stores: &Stores, path: &Path, mark: &str, condition: &Condition) -> Seen {
    let options = GetOptions { head: true, ..GetOptions::default() };
    match fetched(stores.patient.as_ref(), path, options).await {
        Ok(found) if found.mark.as_deref() == Some(mark) => Seen::Ours,
        Ok(found) => match condition {
            Condition::Unchanged(version)
                if version.e_tag == found.meta.e_tag && version.version == found.meta.version =>
            {
                Seen::Before
            }
            _ if found.mark.is_some() => Seen::Others,
            _ => Seen::Unclear,
        },
        Err(object_store::Error::NotFound { .. }) if matches!(condition, Condition::Absent) => Seen::Before,
        Err(_) => Seen::Unclear,
    }
}
