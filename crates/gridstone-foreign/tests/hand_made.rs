//! A small file made by hand: a root group with one chunked dataset. It is read, then damaged in every byte and cut
//! at every length.
//!
//! ```text
//! 0    superblock of version 0
//! 96   object header of the root: a link "d"
//! 160  object header of "d": shape, type, layout
//! 320  B-tree of version 1 with two chunks
//! 480  the chunks, 8 bytes each
//! ```

use gridstone_foreign::model::{ChunkEntry, ForeignType, Layout};
use gridstone_foreign::{Error, ErrorKind, Hdf5File, Result};
use std::sync::Arc;

const ROOT: u64 = 96;
const DATASET: u64 = 160;
const TREE: u64 = 320;
const CHUNKS: u64 = 480;
const END: usize = 496;

fn put(file: &mut [u8], at: u64, parts: &[&[u8]]) {
    let bytes = parts.concat();
    file[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes);
}

/// An object header of version 1 with `messages`.
fn header(messages: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (kind, message) in messages {
        let mut message = message.clone();
        message.resize(message.len().next_multiple_of(8), 0);
        body.extend_from_slice(&kind.to_le_bytes());
        body.extend_from_slice(&(message.len() as u16).to_le_bytes());
        body.extend_from_slice(&[0; 4]);
        body.extend_from_slice(&message);
    }
    let mut whole = vec![1, 0, messages.len() as u8, 0, 1, 0, 0, 0];
    whole.extend_from_slice(&(body.len() as u64).to_le_bytes());
    whole.extend_from_slice(&body);
    whole
}

/// The key and the address of a chunk of 8 bytes that begins at cell `first`.
fn chunk(first: u64, address: u64) -> Vec<u8> {
    [&8u32.to_le_bytes()[..], &[0; 4], &first.to_le_bytes(), &[0; 8], &address.to_le_bytes()].concat()
}

fn file() -> Vec<u8> {
    let mut file = vec![0; END];
    let undefined = u64::MAX.to_le_bytes();
    put(&mut file, 0, &[b"\x89HDF\r\n\x1a\n", &[0, 0, 0, 0, 0, 8, 8, 0, 4, 0, 16, 0, 0, 0, 0, 0]]);
    put(&mut file, 24, &[&0u64.to_le_bytes(), &undefined, &(END as u64).to_le_bytes(), &undefined]);
    put(&mut file, 64, &[&ROOT.to_le_bytes()]);
    let link = [&[1, 0, 1, b'd'][..], &DATASET.to_le_bytes()].concat();
    put(&mut file, ROOT, &[&header(&[(0x06, link)])]);
    let shape = [&[1, 1, 0, 0, 0, 0, 0, 0][..], &7u64.to_le_bytes()].concat();
    let datatype = vec![0x10, 0x08, 0, 0, 2, 0, 0, 0, 0, 0, 16, 0];
    let layout = [&[3, 2, 2][..], &TREE.to_le_bytes(), &4u32.to_le_bytes(), &2u32.to_le_bytes()].concat();
    put(&mut file, DATASET, &[&header(&[(0x01, shape), (0x03, datatype), (0x08, layout)])]);
    let entries = [chunk(0, CHUNKS), chunk(4, CHUNKS + 8)].concat();
    put(&mut file, TREE, &[b"TREE\x01\x00\x02\x00", &undefined, &undefined, &entries]);
    file
}

/// The tree as JSON, and the chunks of all datasets of the root.
fn index(file: Vec<u8>) -> Result<(String, Vec<ChunkEntry>)> {
    let file = Hdf5File::open(Arc::new(file))?;
    let tree = file.tree()?;
    let mut chunks = Vec::new();
    for dataset in tree.root.datasets.iter().filter(|dataset| matches!(dataset.layout, Layout::Chunked { .. })) {
        file.for_each_chunk(dataset, &mut |chunk| {
            chunks.push(chunk);
            Ok(())
        })?;
    }
    let json = serde_json::to_string(&tree).map_err(|error| Error::caller(Box::new(error)))?;
    Ok((json, chunks))
}

#[test]
fn the_dataset_and_its_chunks_are_found() {
    let found = Hdf5File::open(Arc::new(file())).unwrap().tree().unwrap();
    let [dataset] = &found.root.datasets[..] else { panic!("{found:?}") };
    assert_eq!((dataset.name.as_str(), &dataset.shape[..], dataset.element_size), ("d", &[7][..], 2));
    assert_eq!(dataset.datatype, ForeignType::Integer { width: 2, signed: true, big_endian: false, bits: None });
    let entry = |place, offset| ChunkEntry { place: vec![place], offset, length: 8, filter_mask: 0 };
    assert_eq!(index(file()).unwrap().1, [entry(0, CHUNKS), entry(1, CHUNKS + 8)]);
}

#[test]
fn offsets_count_a_user_block() {
    let mut behind = vec![0; 512];
    behind.extend_from_slice(&file());
    let offsets: Vec<u64> = index(behind).unwrap().1.iter().map(|chunk| chunk.offset).collect();
    assert_eq!(offsets, [512 + CHUNKS, 520 + CHUNKS]);
}

#[test]
fn the_tree_survives_its_json_form() {
    let json = index(file()).unwrap().0;
    let tree: gridstone_foreign::model::ForeignFile = serde_json::from_str(&json).unwrap();
    assert_eq!(serde_json::to_string(&tree).unwrap(), json);
}

#[test]
fn an_error_of_the_caller_ends_the_walk() {
    let file = Hdf5File::open(Arc::new(file())).unwrap();
    let tree = file.tree().unwrap();
    let mut calls = 0;
    let error = file.for_each_chunk(&tree.root.datasets[0], &mut |_| {
        calls += 1;
        Err(Error::caller("enough".into()))
    });
    assert_eq!((error.unwrap_err().kind(), calls), (ErrorKind::Caller, 1));
}

#[test]
fn a_b_tree_that_is_its_own_child_has_an_end() {
    let mut circular = file();
    circular[TREE as usize + 5] = 1;
    put(&mut circular, TREE + 48, &[&TREE.to_le_bytes()]);
    assert_eq!(index(circular).unwrap_err().message(), "a node of a B-tree has the wrong level 1");
}

#[test]
fn chunks_behind_the_end_of_the_file_are_refused() {
    let mut beyond = file();
    put(&mut beyond, TREE + 48, &[&1_000_000u64.to_le_bytes()]);
    let error = index(beyond).unwrap_err();
    assert_eq!(error.message(), "the chunk should have 8 bytes at address 1000000, the file ends at byte 496");
}

#[test]
fn every_changed_byte_and_every_length_gives_an_answer_within_the_file() {
    let whole = file();
    let sound = index(whole.clone()).unwrap();
    let mut differing = 0;
    for at in 0..whole.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            let Ok(found) = index(bytes) else {
                differing += 1;
                continue;
            };
            assert!(found.1.iter().all(|chunk| chunk.offset + chunk.length <= END as u64), "byte {at} = {value}");
            differing += usize::from(found != sound);
        }
    }
    assert!(differing > 300, "only {differing} changes were noticed");
    for length in 0..CHUNKS as usize {
        let complete = index(whole[..length].to_vec()).is_ok_and(|found| found == sound);
        assert!(!complete, "length {length}");
    }
}
