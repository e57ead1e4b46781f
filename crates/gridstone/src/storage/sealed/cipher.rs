//! The cryptography of sealed objects: one key per object, one nonce per segment.
//!
//! ```text
//! key id      first 16 bytes of HKDF-SHA256(key, no salt, "gridstone key id")
//! object key  HKDF-SHA256(key, salt of the object, "gridstone seal v0" | header[8..32] | name)
//! nonce       u64 number of the segment | 3 zeros | 1 if it is the last, else 0
//! ```
//!
//! No two objects share a key, since their salts differ; no two segments of an object share a nonce. A segment is bound
//! to its object by the key (name and header), and to its position by the nonce (number, and whether it is the last).

use super::header::Header;
use crate::base::{Error, Key, KeyId, Result};
use aes_gcm::aead::inout::InOutBuf;
use aes_gcm::aead::{AeadInOut, KeyInit};
use aes_gcm::{Aes256Gcm, Nonce, Tag};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

/// How much longer a sealed segment is.
pub(super) const TAG_BYTES: usize = 16;

const KEY_ID_LABEL: &[u8] = b"gridstone key id";
const OBJECT_LABEL: &[u8] = b"gridstone seal v0";

/// A key with its id.
#[derive(Debug)]
pub(super) struct MasterKey {
    key: Key,
    pub(super) id: KeyId,
}

impl MasterKey {
    pub(super) fn new(key: Key) -> Result<Self> {
        let id = key_id(&key)?;
        Ok(Self { key, id })
    }

    /// The cipher of the object `name` whose header is `header`.
    pub(super) fn object(&self, header: &Header, name: &str) -> Result<ObjectCipher> {
        let mut object_key = Zeroizing::new([0; 32]);
        let info = [OBJECT_LABEL, &header.bound(), name.as_bytes()];
        Hkdf::<Sha256>::new(Some(&header.salt), self.key.bytes())
            .expand_multi_info(&info, object_key.as_mut_slice())
            .map_err(underivable)?;
        Ok(ObjectCipher(Aes256Gcm::new((&*object_key).into())))
    }
}

/// The id of a key. It identifies the key and reveals nothing about it.
///
/// # Errors
/// None that can be provoked.
pub fn key_id(key: &Key) -> Result<KeyId> {
    let mut id = [0; 16];
    Hkdf::<Sha256>::new(None, key.bytes()).expand(KEY_ID_LABEL, &mut id).map_err(underivable)?;
    Ok(KeyId(id))
}

fn underivable(error: hkdf::InvalidLength) -> Error {
    Error::unsupported(format!("no key could be derived: {error}"))
}

/// Encrypts and decrypts the segments of one object.
pub(super) struct ObjectCipher(Aes256Gcm);

impl std::fmt::Debug for ObjectCipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ObjectCipher")
    }
}

fn nonce(number: u64, last: bool) -> [u8; 12] {
    let mut nonce = [0; 12];
    let (place, flag) = nonce.split_at_mut(8);
    place.copy_from_slice(&number.to_le_bytes());
    flag.copy_from_slice(&[0, 0, 0, u8::from(last)]);
    nonce
}

impl ObjectCipher {
    /// Encrypts segment `number` and appends it to `out`.
    pub(super) fn seal(&self, number: u64, last: bool, plain: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        out.resize(start + plain.len(), 0);
        let target = out.get_mut(start..).unwrap_or_default();
        let failed = || Error::unsupported("a segment could not be sealed");
        let buffer = InOutBuf::new(plain, target).map_err(|_| failed())?;
        let nonce: Nonce<_> = nonce(number, last).into();
        let tag = self.0.encrypt_inout_detached(&nonce, &[], buffer).map_err(|_| failed())?;
        out.extend_from_slice(&tag);
        Ok(())
    }

    /// Decrypts segment `number` into `out`, which has its plain length. Returns false, and leaves `out` untouched, if
    /// its tag does not match.
    pub(super) fn open(&self, number: u64, last: bool, sealed: &[u8], out: &mut [u8]) -> bool {
        let Some((text, tag)) = sealed.split_last_chunk::<TAG_BYTES>() else { return false };
        let Ok(buffer) = InOutBuf::new(text, out) else { return false };
        let (nonce, tag): (Nonce<_>, Tag) = (nonce(number, last).into(), (*tag).into());
        self.0.decrypt_inout_detached(&nonce, &[], buffer, &tag).is_ok()
    }
}
