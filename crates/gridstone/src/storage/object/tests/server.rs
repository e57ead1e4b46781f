//! The same against a real server, if `GRIDSTONE_TEST_S3` names one; `cargo xtask s3` starts it. The variables are
//! `GRIDSTONE_TEST_S3` (its address), `GRIDSTONE_TEST_S3_BUCKET`, `GRIDSTONE_TEST_S3_KEY` and `GRIDSTONE_TEST_S3_SECRET`.

use super::*;
use crate::base::NeverCancel;
use crate::runtime::Pool;
use std::env::var;

/// The options of the server, with others in place of some; `None`: there is no server.
fn options(others: &[(&str, &str)]) -> Option<StorageOptions> {
    let Ok(address) = var("GRIDSTONE_TEST_S3") else {
        println!("skipped: GRIDSTONE_TEST_S3 names no server; cargo xtask s3 -- COMMAND starts one");
        return None;
    };
    let given = |name: &str| var(format!("GRIDSTONE_TEST_S3_{name}")).unwrap();
    let usual = [("endpoint_url", address), ("key", given("KEY")), ("secret", given("SECRET"))];
    let mut all: std::collections::BTreeMap<_, _> = usual.map(|(name, value)| (name.to_owned(), value)).into();
    all.extend(others.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    Some(StorageOptions::new(all).unwrap())
}

fn at(place: &str, options: &StorageOptions) -> ObjectStorage {
    ObjectStorage::at(&format!("s3://{place}"), "s3", place, options).unwrap()
}

/// A new place for a store.
fn place() -> String {
    format!("{}/rust/{}", var("GRIDSTONE_TEST_S3_BUCKET").unwrap(), SystemEntropy.id())
}

#[test]
fn a_server_conforms() {
    let Some(options) = options(&[]) else { return };
    conformance::check(&|| Arc::new(at(&place(), &options)));
}

/// What all commits rest on: of sixteen threads that want each of a thousand names, one gets it.
#[test]
fn a_server_creates_once() {
    let Some(options) = options(&[]) else { return };
    let place = place();
    let storage = at(&place, &options);
    let names: Vec<String> = (1..=1_000).map(log_name).collect();
    let wins = |writer: u8| {
        // A client of its own: half of the writers do not even share connections.
        let own = at(&place, &options);
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
    let Some(options) = options(&[]) else { return };
    let storage = at(&place(), &options);
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
fn a_server_refuses_strangers_and_names_what_is_missing() {
    let Some(wrong) = options(&[("secret", "wrong")]) else { return };
    let error = at(&place(), &wrong).put("_log/1", b"x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Access);
    let bucket = var("GRIDSTONE_TEST_S3_BUCKET").unwrap();
    assert!(error.message().contains(&format!("access to s3://{bucket} was refused")), "{error}");
    assert_eq!(at(&place(), &wrong).exists("_log/1").unwrap_err().kind(), ErrorKind::Access);

    let nowhere = at("no-such-bucket/a", &options(&[]).unwrap());
    let error = nowhere.put_if_absent("_data/1", b"x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("there is no s3://no-such-bucket"), "{error}");

    let unreachable = options(&[("endpoint_url", "http://127.0.0.1:9"), ("retries", "1")]).unwrap();
    let error = at(&place(), &unreachable).read_all("_log/1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Storage);
    assert!(error.message().contains("check endpoint_url"), "{error}");
}
