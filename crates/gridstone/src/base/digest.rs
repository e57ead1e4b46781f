//! A 128-bit hash of framed fields, to compare two contents: XXH3-128, seed 0.
//!
//! Each field is a number, or bytes behind their number, so that fields cannot run into each other.

use xxhash_rust::xxh3::Xxh3;

/// The hash of the fields added so far.
#[derive(Clone)]
pub struct Digest {
    state: Box<Xxh3>,
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Digest")
    }
}

impl Digest {
    /// The hash of fields of the kind `kind`.
    pub fn new(kind: &str) -> Self {
        let mut digest = Self { state: Box::new(Xxh3::new()) };
        digest.bytes(kind.as_bytes());
        digest
    }

    /// Adds a number.
    pub fn number(&mut self, number: u64) {
        self.state.update(&number.to_le_bytes());
    }

    /// Adds the hash of other fields.
    pub fn hash(&mut self, hash: u128) {
        self.state.update(&hash.to_le_bytes());
    }

    /// Adds bytes, behind their number.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.state.update(bytes);
    }

    /// Adds a part of one long field, whose length another field gives.
    pub fn part(&mut self, bytes: &[u8]) {
        self.state.update(bytes);
    }

    /// The hash.
    pub fn finish(&self) -> u128 {
        self.state.digest128()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_run_into_each_other() {
        let of = |kind: &str, fields: &[&str]| {
            let mut digest = Digest::new(kind);
            fields.iter().for_each(|field| digest.bytes(field.as_bytes()));
            digest.finish()
        };
        let all = [
            of("a", &[]),
            of("", &["a"]),
            of("a", &[""]),
            of("a", &["bc", "d"]),
            of("a", &["b", "cd"]),
            of("ab", &["c", "d"]),
            of("a", &["bcd"]),
        ];
        for (place, one) in all.iter().enumerate() {
            assert!(!all[..place].contains(one), "{place}");
        }
        assert_eq!(of("a", &["b"]), of("a", &["b"]));
    }

    #[test]
    fn parts_make_one_field() {
        let whole: Vec<u8> = (0..=255u8).cycle().take(5_000).collect();
        let of = |portion: usize| {
            let mut digest = Digest::new("parts");
            whole.chunks(portion).for_each(|part| digest.part(part));
            digest.finish()
        };
        assert!([1, 7, 64, 255, 4_999].into_iter().all(|portion| of(portion) == of(whole.len())));
    }
}
