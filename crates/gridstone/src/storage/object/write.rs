//! Writes that happen only on a condition, and finding out whether they did.
//!
//! A conditional PUT that fails may have happened: its answer was lost, or a proxy repeated it and the second try met the
//! first. So these requests are sent once each, by a client that repeats nothing; every call marks what it writes with a
//! random word of its own in the object's metadata; and after an answer that leaves doubt the object is looked at:
//!
//! - it has our mark: it was us, whatever the answer said;
//! - it has another's: it was not, if the condition was that nothing be there;
//! - it is not there, or as it was: the request is sent again, since the condition still guards it;
//! - nothing can be seen, or there is no mark (a store that keeps no metadata): an error, and who asked finds out.
//!
//! A refusal is looked into as well, since whatever lies between may have repeated the request: it may be of our own success.
//! Only if nothing can be seen then is a refusal of the first try believed.
//!
//! The error says whether any try may still take effect ([`Unwritten::in_doubt`]). A request that was never taken up has none. One whose
//! answer was lost stays in doubt until the object is seen, whatever later tries are told: it may be on its way for as long as it lives.

use super::client::{Stores, fetched};
use super::failure::{Effect, effect};
use crate::storage::PutOutcome;
use bytes::Bytes;
use object_store::path::Path;
use object_store::{Attribute, AttributeValue, Attributes, GetOptions, PutMode, PutOptions, PutPayload, UpdateVersion};
use std::borrow::Cow;
use std::time::Duration;

/// The name under which a mark is kept. Letters only: each store has its own idea of what else is allowed.
pub(super) const MARK: Attribute = Attribute::Metadata(Cow::Borrowed("gridstonewrite"));

/// How often a write is tried whose effect is in doubt.
const ATTEMPTS: u32 = 4;
/// How long to wait before the second try; twice as long before each further one.
const PAUSE: Duration = Duration::from_millis(100);

/// On which condition an object is written.
#[derive(Debug, Clone)]
pub(super) enum Condition {
    /// It is not there.
    Absent,
    /// It is this version of itself.
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

/// What is found where we have written, or not.
enum Seen {
    Ours,
    /// The condition still holds.
    Before,
    /// Somebody else's object.
    Others,
    Unclear,
}

/// A write that failed.
#[derive(Debug)]
pub(super) struct Unwritten {
    pub(super) error: object_store::Error,
    /// Whether it may have happened, or may come to happen.
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
        // Nothing but this try can have been refused for its own success, so it is believed.
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

/// Sends a write in `mode` a single time.
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
