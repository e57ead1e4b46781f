//! A lease keeps a version alive until it expires.
//!
//! A checksummed line without a body: `{"gs":0,"version":V,"written_us":…,"expires_us":…}`, both times by the reader's
//! clock. A lease holds for their difference, counted from the time at which the storage says that it was written. So
//! neither the reader's clock nor the vacuum's matters. Safety does not depend on leases: a reader whose lease was not
//! honoured gets a SnapshotExpired error.

use super::line;
use super::shape::{Signed, Whole};
use crate::base::{Error, Result};
use serde::{Deserialize, Serialize};

/// A reader's request to keep a version until some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The version.
    pub version: u64,
    /// When the lease was written: UTC in microseconds.
    pub written_us: i64,
    /// When it expires: UTC in microseconds.
    pub expires_us: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LeaseText {
    gs: u64,
    version: Whole,
    written_us: Signed,
    expires_us: Signed,
}

impl Lease {
    /// The format version of leases, which readers and vacuums of all releases honour.
    const FORMAT: u64 = 0;

    /// The time in microseconds that a lease holds beyond its expiry: a renewal may be under way.
    pub const SLACK_US: i64 = 60_000_000;

    /// Whether it holds at `now_us`, given that it was written at `modified_us`, both by the storage's clock.
    pub fn holds(&self, modified_us: i64, now_us: i64) -> bool {
        let term_us = self.expires_us.saturating_sub(self.written_us).saturating_add(Self::SLACK_US);
        modified_us.saturating_add(term_us) > now_us
    }

    /// Its bytes.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let (written_us, expires_us) = (Signed(self.written_us), Signed(self.expires_us));
        let text = LeaseText { gs: Self::FORMAT, version: Whole(self.version), written_us, expires_us };
        let json = serde_json::to_string(&text)
            .map_err(|e| Error::input("a lease cannot be written as JSON").with_source(e))?;
        line::seal(json, 1)
    }

    /// Decodes what [`Lease::encode`] wrote. Unsupported if it has another format; Corruption if the bytes are damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        const WHAT: &str = "a lease";
        let line = line::open(bytes, WHAT)?;
        let text: LeaseText = line::parse(line, WHAT)?;
        let (version, written_us, expires_us) = (text.version.0, text.written_us.0, text.expires_us.0);
        if line.body != bytes.len() || version == 0 || expires_us < written_us {
            return Err(Error::corruption("a lease is cut, names no version, or ends before it begins"));
        }
        Ok(Self { version, written_us, expires_us })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_survives_and_no_damage_passes() {
        let lease = Lease { version: 7, written_us: 1_000, expires_us: 5_000_000 };
        let bytes = lease.encode().unwrap();
        assert_eq!(Lease::decode(&bytes).unwrap(), lease);
        for cut in 0..bytes.len() {
            Lease::decode(&bytes[..cut]).unwrap_err();
        }
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            Lease::decode(&bad).unwrap_err();
        }
    }

    #[test]
    fn a_lease_holds_a_little_longer_than_it_says() {
        // The lease of a reader whose clock is a year behind.
        let lease = Lease { version: 7, written_us: 0, expires_us: 5_000_000 };
        let written_us = 31_536_000_000_000;
        assert!(lease.holds(written_us, written_us + 5_000_000 + Lease::SLACK_US - 1));
        assert!(!lease.holds(written_us, written_us + 5_000_000 + Lease::SLACK_US));
    }
}
