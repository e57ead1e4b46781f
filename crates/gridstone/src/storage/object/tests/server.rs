//! The same tests against a real server, if `GRIDSTONE_TEST_BUCKET` names a bucket of one: `cargo xtask s3 -- COMMAND`
//! starts one, `azure` another. `GRIDSTONE_TEST_BUCKET_OPTIONS` has the storage options that reach it;
//! `GRIDSTONE_TEST_BUCKET_WRONG` has those that differ for a stranger.

use super::*;
use crate::base::NeverCancel;
use crate::runtime::Pool;
use std::env::var;

/// A bucket of a server.
struct Bucket {
    scheme: String,
    name: String,
    options: Vec<(String, String)>,
}

/// `name=value` pairs with a space between them.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |pair: &str| pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())).unwrap();
    text.split_whitespace().map(pair).collect()
}

impl Bucket {
    /// The bucket of the tests; `None`: there is no server.
    fn of_tests() -> Option<Self> {
        let Ok(uri) = var("GRIDSTONE_TEST_BUCKET") else {
            println!("skipped: GRIDSTONE_TEST_BUCKET names no bucket; cargo xtask s3 -- COMMAND starts a server");
            return None;
        };
        let (scheme, name) = uri.split_once("://").unwrap();
        let options = pairs(&var("GRIDSTONE_TEST_BUCKET_OPTIONS").unwrap());
        Some(Self { scheme: scheme.to_owned(), name: name.to_owned(), options })
    }

    /// The same bucket with some options replaced.
    fn with(&self, others: &[(String, String)]) -> Self {
        let mut all: std::collections::BTreeMap<_, _> = self.options.iter().cloned().collect();
        all.extend(others.iter().cloned());
        Self { scheme: self.scheme.clone(), name: self.name.clone(), options: all.into_iter().collect() }
    }

    fn uri(&self) -> String {
        format!("{}://{}", self.scheme, self.name)
    }

    /// A new place for a store.
    fn place(&self) -> String {
        format!("{}/rust/{}", self.name, SystemEntropy.id())
    }

    fn at(&self, place: &str) -> ObjectStorage {
        let options = StorageOptions::new(self.options.clone()).unwrap();
        ObjectStorage::at(&format!("{}://{place}", self.scheme), &self.scheme, place, &options).unwrap()
    }

    fn anywhere(&self) -> ObjectStorage {
        self.at(&self.place())
    }
}

#[test]
fn a_server_conforms() {
    let Some(bucket) = Bucket::of_tests() else { return };
    conformance::check(&|| Arc::new(bucket.anywhere()));
}

/// The basis of all commits: of sixteen threads that create each of a thousand names, one succeeds.
#[test]
fn a_server_creates_once() {
    let Some(bucket) = Bucket::of_tests() else { return };
    let place = bucket.place();
    let storage = bucket.at(&place);
    let names: Vec<String> = (1..=1_000).map(log_name).collect();
    let wins = |writer: u8| {
        // A client of its own: half of the writers do not even share connections.
        let own = bucket.at(&place);
        let storage = if writer.is_multiple_of(2) { &own } else { &storage };
        let content = vec![writer; 100];
        Ok(names
            .iter()
            .map(|name| storage.put_if_absent(name, &content).unwrap() == PutOutcome::Created)
            .collect::<Vec<_>>())
    };
    let wins = Pool::new(Some(16)).unwrap().map((0..16).collect(), &NeverCancel, wins).unwrap();
    for (i, name) in names.iter().enumerate() {
        let winners: Vec<u8> = (0..16).filter(|writer| wins[usize::from(*writer)][i]).collect();
        assert_eq!(winners.len(), 1, "{name}: {winners:?}");
        assert_eq!(storage.read_all(name).unwrap(), vec![winners[0]; 100]);
    }
    storage.remove_everything().unwrap();
}

#[test]
fn a_server_takes_parts_gives_ranges_and_keeps_marks() {
    let Some(bucket) = Bucket::of_tests() else { return };
    let storage = bucket.anywhere();
    let content: Vec<u8> = (0..(2 * sink::PART_BYTES + 100) as u32).map(|i| (i % 253) as u8).collect();
    let mut sink = storage.create("_data/a.frag").unwrap();
    sink.write(&content).unwrap();
    sink.finish().unwrap();
    let source = storage.open("_data/a.frag").unwrap();
    assert_eq!(source.len(), content.len() as u64);
    let asked = [(0, 10), (9_000_000, 1_000_000), (16_777_300, 16)];
    let ranges = asked.map(|(offset, len)| ByteRange::new(offset, len));
    for (range, bytes) in ranges.iter().zip(source.read(&ranges).unwrap()) {
        assert!(bytes == content[range.offset as usize..range.end() as usize], "{range:?}");
    }
    assert!(storage.client.head("_data/a.frag").unwrap().unwrap().mark.is_some());
    // The same bytes again are another object.
    storage.put("_data/a.frag", &content[1..]).unwrap();
    assert_eq!(source.read(&ranges[..1]).unwrap_err().kind(), ErrorKind::Corruption);
    storage.delete("_data/a.frag").unwrap();
    assert_eq!(source.read(&ranges[..1]).unwrap_err().kind(), ErrorKind::NotFound);
    drop(storage.create("_data/b.frag").map(|mut sink| sink.write(&content)));
    assert!(storage.list("_data").unwrap().is_empty());
}

#[test]
fn a_server_is_proved_dates_and_gives_pieces() {
    let Some(bucket) = Bucket::of_tests() else { return };
    let storage = bucket.anywhere();
    storage.prove_exclusive(SystemEntropy.id()).unwrap();
    let now = storage.now_us().unwrap();
    storage.put("_log/1", b"").unwrap();
    let mut dated = Vec::new();
    storage.survey("_log", &mut |listed| dated.push(listed.modified_us)).unwrap();
    assert!(dated.len() == 1 && (now..now + 60_000_000).contains(&dated[0]), "{now}: {dated:?}");
    assert!(storage.read_all("_log/1").unwrap().is_empty() && storage.read_start("_log/1", 10).unwrap().is_empty());
    let content: Vec<u8> = (0..(2 * content::PIECE_BYTES + 5) as u32).map(|i| (i % 253) as u8).collect();
    storage.put("_data/a.frag", &content).unwrap();
    assert!(storage.read_all("_data/a.frag").unwrap() == content);
    assert_eq!(storage.read_start("_data/a.frag", 100).unwrap(), content[..100]);
    storage.client.put(LATEST, &[b'1'; 300_000]).unwrap();
    assert_eq!(storage.read_all(LATEST).unwrap_err().kind(), ErrorKind::Corruption);
    storage.remove_everything().unwrap();
}

#[test]
fn a_server_refuses_strangers() {
    let Some(bucket) = Bucket::of_tests() else { return };
    let wrong = pairs(&var("GRIDSTONE_TEST_BUCKET_WRONG").unwrap());
    assert!(!wrong.is_empty(), "no server of tests takes everybody");
    let stranger = bucket.with(&wrong);
    let error = stranger.anywhere().put("_log/1", b"x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Access);
    assert!(error.message().contains(&format!("access to {} was refused", bucket.uri())), "{error}");
    assert_eq!(stranger.anywhere().exists("_log/1").unwrap_err().kind(), ErrorKind::Access);
}

#[test]
fn a_server_names_what_is_missing() {
    let Some(bucket) = Bucket::of_tests() else { return };
    let error = bucket.at("no-such-bucket/a").put_if_absent("_data/1", b"x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(error.message().contains(&format!("there is no {}://no-such-bucket", bucket.scheme)), "{error}");

    let nowhere = pairs("endpoint_url=http://127.0.0.1:9 retries=1");
    let error = bucket.with(&nowhere).anywhere().read_all("_log/1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Storage);
    assert!(error.message().contains("check endpoint_url"), "{error}");
}
