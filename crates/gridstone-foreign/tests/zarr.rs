//! Folders of Zarr, made by hand: what the index finds in them, and what it refuses.
#![allow(clippy::unwrap_used, clippy::panic)]

use gridstone_foreign::model::{
    ForeignDataset, ForeignFile, ForeignType, ForeignValue, Layout, LinkTarget, ObjectEntry,
};
use gridstone_foreign::{ErrorKind, zarr};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gridstone-zarr-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn tree(&self) -> ForeignFile {
        zarr::tree(&self.0).unwrap()
    }

    fn array(&self) -> ForeignDataset {
        self.tree().root.datasets.remove(0)
    }

    fn reason(&self) -> String {
        zarr::tree(&self.0).unwrap_err().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn version_2() -> Value {
    json!({"zarr_format": 2, "shape": [5, 4], "chunks": [2, 3], "dtype": "<i2", "fill_value": 7, "order": "C", "filters": null,
           "compressor": {"id": "zlib", "level": 1}})
}

fn version_3() -> Value {
    json!({"zarr_format": 3, "node_type": "array", "shape": [5, 4], "data_type": "int16", "fill_value": 7,
           "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
           "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
           "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "gzip", "configuration": {"level": 1}}],
           "attributes": {"a": 0.1}, "dimension_names": ["y", null]})
}

fn changed(of: &Value, key: &str, to: Value) -> Value {
    let mut made = of.clone();
    match to {
        Value::Null if key != "fill_value" => drop(made.as_object_mut().unwrap().remove(key)),
        to => made[key] = to,
    }
    made
}

fn chunks(root: &Path, dataset: &ForeignDataset) -> gridstone_foreign::Result<Vec<ObjectEntry>> {
    let mut found = Vec::new();
    zarr::for_each_chunk(root, dataset, &mut |entry| {
        found.push(entry);
        Ok(())
    })?;
    found.sort_by(|a, b| a.place.cmp(&b.place));
    Ok(found)
}

#[test]
fn both_versions_are_the_same_array() {
    let (two, three) = (Folder::new("two"), Folder::new("three"));
    two.write(".zarray", version_2().to_string());
    three.write("zarr.json", version_3().to_string());
    let (a, b) = (two.array(), three.array());
    assert_eq!((&a.shape, &a.fill, a.element_size, &a.datatype), (&b.shape, &b.fill, b.element_size, &b.datatype));
    assert_eq!(a.fill, Some(vec![7, 0]));
    assert_eq!(b.dimension_names, [Some("y".to_owned()), None]);
    assert_eq!(b.attributes[0].value, ForeignValue::Json("0.1".into()));
    for (array, key, filter) in [(a, "{0}.{1}", "deflate"), (b, "c/{0}/{1}", "gzip")] {
        let Layout::Objects { chunk, ranks, template, objects, codecs, shard, .. } = array.layout else { panic!() };
        assert_eq!((&chunk[..], &ranks[..], &objects[..]), (&[2, 3][..], &[0, 1][..], &[3, 2][..]));
        assert_eq!((template.as_str(), codecs[0].name.as_str(), shard), (key, filter, None));
    }
}

#[test]
fn groups_name_what_they_cannot_read() {
    let folder = Folder::new("groups");
    folder.write(".zgroup", r#"{"zarr_format": 2}"#);
    folder.write(".zattrs", r#"{"title": "t", "nothing": NaN}"#);
    folder.write("b/.zgroup", r#"{"zarr_format": 2}"#);
    folder.write("b/y/.zarray", changed(&changed(&version_2(), "shape", json!([5])), "chunks", json!([5])).to_string());
    folder.write("b/y/.zattrs", r#"{"_ARRAY_DIMENSIONS": ["y"]}"#);
    folder.write("b/v/.zarray", version_2().to_string());
    folder.write("b/v/.zattrs", r#"{"_ARRAY_DIMENSIONS": ["y", "x"]}"#);
    folder.write("b/bad/.zarray", "{");
    folder.write("plain/file", "x");
    folder.write("three/zarr.json", version_3().to_string());
    std::os::unix::fs::symlink(std::env::temp_dir(), folder.0.join("link")).unwrap();
    std::os::unix::fs::symlink(folder.0.join("b"), folder.0.join("same")).unwrap();
    std::os::unix::fs::symlink(&folder.0, folder.0.join("b/up")).unwrap();
    let root = folder.tree().root;
    assert_eq!(root.attributes[1].value, ForeignValue::Json("NaN".into()));
    let names: Vec<_> = root.refused.iter().map(|refused| refused.name.as_str()).collect();
    assert_eq!(names, ["link", "plain"]);
    assert!(root.refused[0].reason.contains("outside of the folder"));
    assert_eq!(root.datasets[0].name, "three");
    assert_eq!(root.links[0].target, LinkTarget::Soft { path: "/b".into() });
    let b = &root.groups[0];
    let [v, y] = &b.datasets[..] else { panic!("{b:?}") };
    assert_eq!(v.dimension_scales, [Some("/b/y".to_owned()), None]);
    assert!(y.is_scale && !v.is_scale);
    assert!(b.refused[0].name == "bad" && b.refused[0].reason.contains(".zarray is no JSON object"), "{:?}", b.refused);
}

#[test]
fn a_folder_that_is_none_says_so() {
    let folder = Folder::new("none");
    let error = zarr::tree(&folder.0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Format);
    assert_eq!(zarr::tree(&folder.0.join("missing")).unwrap_err().kind(), ErrorKind::Io);
    folder.write(".zgroup", r#"{"zarr_format": 3}"#);
    assert!(folder.reason().contains("version 3"));
    folder.write("zarr.json", r#"{"zarr_format": 3, "node_type": "link"}"#);
    assert!(folder.reason().contains("\"link\""));
}

#[test]
fn what_a_reader_has_to_know_is_refused_by_name() {
    let folder = Folder::new("refused");
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let grid = |shape: Value| json!({"name": "regular", "configuration": {"chunk_shape": shape}});
    let shard = |inner: Value, index: Value, more: Value| {
        let mut of = json!({"chunk_shape": [1, 3], "codecs": inner, "index_codecs": index});
        of.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([{"name": "sharding_indexed", "configuration": of}])
    };
    let plain = shard(json!([bytes]), json!([bytes]), json!({}));
    let cases = [
        ("codecs", json!([bytes, {"name": "zfp9"}]), "zfp9"),
        ("codecs", json!([bytes, plain[0]]), "other codecs too"),
        ("codecs", shard(plain.clone(), json!([bytes]), json!({})), "such objects again"),
        ("codecs", shard(json!([bytes]), json!([bytes, {"name": "gzip"}]), json!({})), "packed by"),
        ("codecs", shard(json!([bytes]), json!([bytes]), json!({"index_location": "middle"})), "middle"),
        ("codecs", shard(json!([bytes]), json!([bytes]), json!({"chunk_shape": [2, 2]})), "no whole number"),
        ("codecs", json!([{"name": "transpose", "configuration": {"order": [0, 0]}}, bytes]), "no permutation"),
        ("codecs", json!([{"name": "transpose", "configuration": {"order": [0, 2]}}, bytes]), "no permutation"),
        ("codecs", json!([{"name": "bytes"}]), "order of bytes"),
        ("codecs", json!([]), "no codec"),
        ("codecs", json!("bytes"), "no list"),
        ("codecs", json!([3]), "no name"),
        ("chunk_grid", json!({"name": "rectilinear", "configuration": {}}), "rectilinear"),
        ("chunk_grid", grid(json!([0, 3])), "no cells"),
        ("chunk_grid", grid(json!([2])), "not those of the shape"),
        ("chunk_grid", grid(json!([-2, 3])), "whole numbers"),
        ("chunk_key_encoding", json!({"name": "hashed"}), "hashed"),
        ("chunk_key_encoding", json!({"name": "default", "configuration": {"separator": "-"}}), "separator"),
        ("shape", json!([5, -4]), "whole numbers"),
        ("shape", json!([5, 1e300]), "whole numbers"),
        ("shape", json!([u64::MAX, 1]), "2^63"),
        ("shape", json!(vec![1; 100]), "100 dimensions"),
        ("data_type", json!("int4"), "int4"),
        ("fill_value", json!(70000), "fill value"),
        ("storage_transformers", json!([{"name": "odd"}]), "odd"),
        ("novelty", json!({"name": "n"}), "novelty"),
        ("zarr_format", json!(4), "version 4"),
        ("attributes", json!([1]), "attributes"),
    ];
    for (key, value, part) in cases {
        folder.write("zarr.json", changed(&version_3(), key, value.clone()).to_string());
        let reason = folder.reason();
        assert!(reason.contains(part), "{key} {value}: {reason}");
    }
    folder.write("zarr.json", changed(&version_3(), "novelty", json!({"must_understand": false})).to_string());
    assert_eq!(folder.array().shape, [5, 4]);
}

#[test]
fn every_key_of_the_metadata_may_be_missing_or_odd() {
    let folder = Folder::new("odd");
    for (name, whole) in [(".zarray", version_2()), ("zarr.json", version_3())] {
        for key in whole.as_object().unwrap().keys() {
            for odd in
                [json!(null), json!(-1), json!("x"), json!([]), json!({}), json!([[[]]]), json!(true), json!([1, 2, 3])]
            {
                folder.write(name, changed(&whole, key, odd).to_string());
                // No panic; what is read is read.
                let _ = zarr::tree(&folder.0).map(|tree| chunks(&folder.0, &tree.root.datasets[0]));
            }
        }
        let text = whole.to_string();
        for length in 0..text.len() {
            folder.write(name, &text[..length]);
            assert!(zarr::tree(&folder.0).is_err(), "length {length}");
        }
    }
}

#[test]
fn objects_of_version_2_have_codecs_orders_and_types() {
    let folder = Folder::new("v2");
    let made = |key: &str, value: Value| {
        folder.write(".zarray", changed(&version_2(), key, value).to_string());
        zarr::tree(&folder.0)
    };
    let by_columns = made("order", json!("F")).unwrap().root.datasets.remove(0);
    assert!(matches!(by_columns.layout, Layout::Objects { ranks, .. } if ranks == [1, 0]));
    let nested = made("dimension_separator", json!("/")).unwrap().root.datasets.remove(0);
    assert!(matches!(nested.layout, Layout::Objects { template, .. } if template == "{0}/{1}"));
    let filters = json!([{"id": "delta", "dtype": "<i2"}, {"id": "shuffle", "elementsize": 2}]);
    let packed = made("filters", filters).unwrap().root.datasets.remove(0);
    let Layout::Objects { codecs, .. } = packed.layout else { panic!() };
    assert_eq!(
        codecs.iter().map(|codec| codec.name.as_str()).collect::<Vec<_>>(),
        ["delta:<i2", "shuffle:2", "deflate"]
    );
    let mut objects = changed(&version_2(), "dtype", json!("|O"));
    objects["filters"] = json!([{"id": "vlen-utf8"}]);
    objects["fill_value"] = json!("");
    folder.write(".zarray", objects.to_string());
    assert_eq!(folder.array().datatype, ForeignType::VariableText { utf8: true });
    objects["filters"] = json!([{"id": "pickle"}]);
    folder.write(".zarray", objects.to_string());
    assert!(folder.reason().contains("pickle"));
}

#[test]
fn chunks_are_found_by_listing() {
    let folder = Folder::new("chunks");
    folder.write(".zarray", version_2().to_string());
    for (name, bytes) in [("0.0", "abc"), ("2.1", ""), ("3.0", "beyond"), ("0.01", "x"), ("1.0.tmp", "x"), ("1", "x")] {
        folder.write(name, bytes);
    }
    let array = folder.array();
    let found = chunks(&folder.0, &array).unwrap();
    let seen: Vec<_> = found.iter().map(|entry| (entry.place.clone(), entry.offset, entry.length)).collect();
    assert_eq!(seen, [(vec![0, 0], 0, 3), (vec![2, 1], 0, 0)]);
    assert!(found[0].time_us > 0 && found[0].object_size == 3);
    fs::create_dir(folder.0.join("1.1")).unwrap();
    assert!(chunks(&folder.0, &array).unwrap_err().to_string().contains("1.1"));
    fs::remove_dir(folder.0.join("1.1")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.0.join("1.1")).unwrap();
    assert_eq!(chunks(&folder.0, &array).unwrap_err().kind(), ErrorKind::Io);

    let nested = Folder::new("nested");
    nested.write("zarr.json", version_3().to_string());
    assert_eq!(chunks(&nested.0, &nested.array()).unwrap(), []);
    nested.write("c/0/1", "ab");
    nested.write("c/1", "no folder");
    nested.write("c/2/x", "no number");
    let found = chunks(&nested.0, &nested.array()).unwrap();
    assert_eq!(found.iter().map(|entry| entry.place.clone()).collect::<Vec<_>>(), [[0, 1]]);
}

#[test]
fn a_cell_alone_has_one_object() {
    let folder = Folder::new("scalar");
    let scalar = changed(&changed(&version_2(), "shape", json!([])), "chunks", json!([]));
    folder.write(".zarray", scalar.to_string());
    let array = folder.array();
    assert_eq!(chunks(&folder.0, &array).unwrap(), []);
    folder.write("0", "ab");
    assert_eq!(chunks(&folder.0, &array).unwrap()[0].length, 2);
    let list = ForeignDataset {
        shape: vec![1],
        layout: match array.layout.clone() {
            Layout::Objects { folder, version, template, codecs, shard, .. } => Layout::Objects {
                folder,
                version,
                template,
                codecs,
                shard,
                chunk: vec![1],
                ranks: vec![0],
                objects: vec![1],
            },
            other => other,
        },
        ..array
    };
    assert_eq!(chunks(&folder.0, &list).unwrap()[0].place, [0]);
}

#[test]
fn chunks_with_another_separator_are_no_fill() {
    let folder = Folder::new("separator");
    folder.write(".zarray", version_2().to_string());
    folder.write("0/1", "ab");
    let error = chunks(&folder.0, &folder.array()).unwrap_err().to_string();
    assert!(error.contains("dimension_separator is wrong or missing"), "{error}");
    folder.write(".zarray", changed(&version_2(), "dimension_separator", json!("/")).to_string());
    assert_eq!(chunks(&folder.0, &folder.array()).unwrap()[0].place, [0, 1]);
    folder.write("1.1", "ab");
    assert!(chunks(&folder.0, &folder.array()).unwrap_err().to_string().contains("1.1"));
}

/// The index of a shard of six chunks.
fn index(entries: [(u64, u64); 6], big: bool, checked: bool) -> Vec<u8> {
    let order = |word: u64| if big { word.to_be_bytes() } else { word.to_le_bytes() };
    let mut bytes: Vec<u8> = entries.iter().flat_map(|(a, b)| [order(*a), order(*b)].concat()).collect();
    if checked {
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    }
    bytes
}

fn sharded(big: bool, checked: bool, at_start: bool) -> Value {
    let endian = if big { "big" } else { "little" };
    let mut codecs = vec![json!({"name": "bytes", "configuration": {"endian": endian}})];
    if checked {
        codecs.push(json!({"name": "crc32c"}));
    }
    let of = json!({"chunk_shape": [1, 1], "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
                    "index_codecs": codecs, "index_location": if at_start { "start" } else { "end" }});
    changed(&version_3(), "codecs", json!([{"name": "sharding_indexed", "configuration": of}]))
}

const NONE: (u64, u64) = (u64::MAX, u64::MAX);

#[test]
fn shards_give_their_chunks() {
    let folder = Folder::new("shards");
    for (big, checked, at_start) in
        [(false, true, false), (true, true, true), (true, false, false), (false, false, true)]
    {
        folder.write("zarr.json", sharded(big, checked, at_start).to_string());
        let lead = if at_start { if checked { 100 } else { 96 } } else { 0 };
        let index = index([(lead, 2), NONE, (lead + 2, 2), NONE, NONE, (lead, 4)], big, checked);
        let shard = if at_start { [index, b"wxyz".to_vec()].concat() } else { [b"wxyz".to_vec(), index].concat() };
        folder.write("c/1/0", &shard);
        let found = chunks(&folder.0, &folder.array()).unwrap();
        let seen: Vec<_> = found.iter().map(|entry| (entry.place.clone(), entry.offset - lead, entry.length)).collect();
        assert_eq!(seen, [(vec![2, 0], 0, 2), (vec![2, 2], 2, 2), (vec![3, 2], 0, 4)]);
        assert!(found.iter().all(|entry| entry.object == [1, 0] && entry.object_size == shard.len() as u64));
    }
}

#[test]
fn indexes_that_point_outside_are_damage() {
    let folder = Folder::new("damage");
    folder.write("zarr.json", sharded(false, true, false).to_string());
    let array = folder.array();
    for wrong in [(0, 200), (105, 0), (u64::MAX, 1), (1, u64::MAX), (u64::MAX - 1, 2)] {
        folder.write("c/1/0", [b"wxyz".to_vec(), index([wrong, NONE, NONE, NONE, NONE, NONE], false, true)].concat());
        let error = chunks(&folder.0, &array).unwrap_err();
        assert!(error.kind() == ErrorKind::Damaged && error.to_string().contains("c/1/0"), "{wrong:?}: {error}");
    }
    let sound = [b"wxyz".to_vec(), index([(0, 4), NONE, NONE, NONE, NONE, NONE], false, true)].concat();
    for length in 0..sound.len() {
        folder.write("c/1/0", &sound[sound.len() - length..]);
        assert!(chunks(&folder.0, &array).is_err(), "length {length}");
    }
    for at in 4..sound.len() {
        let mut flipped = sound.clone();
        flipped[at] ^= 1;
        folder.write("c/1/0", flipped);
        assert!(chunks(&folder.0, &array).is_err(), "byte {at}");
    }
}

#[test]
fn a_shard_of_absurdly_many_chunks_is_no_allocation() {
    let folder = Folder::new("absurd");
    let mut made = sharded(false, true, false);
    made["shape"] = json!([1u64 << 40, 1u64 << 40]);
    made["chunk_grid"] = json!({"name": "regular", "configuration": {"chunk_shape": [1u64 << 40, 1u64 << 40]}});
    folder.write("zarr.json", made.to_string());
    folder.write("c/0/0", [0; 200]);
    let error = chunks(&folder.0, &folder.array()).unwrap_err();
    assert!(error.to_string().contains("2^24"), "{error}");
}
