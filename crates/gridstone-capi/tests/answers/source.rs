//! Files of other formats.

use super::fixture::*;
use gridstone_capi::*;
use std::ptr::{null, null_mut};

/// A file of eight little-endian int32 from 0 on, an array that may read it, and what attaches it.
fn attachable(name: &str) -> (std::path::PathBuf, Handle, String) {
    let folder = std::env::temp_dir().join(format!("gridstone-capi-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("numbers.bin");
    std::fs::write(&file, (0..8i32).flat_map(i32::to_le_bytes).collect::<Vec<u8>>()).unwrap();
    let (sources, store) = (c(folder.to_str().unwrap()), c(folder.join("store.gs").to_str().unwrap()));
    let list = [sources.as_ptr()];
    let mut options: gridstone_context_options = unsafe { std::mem::zeroed() };
    (options.size, options.sources, options.source_count) = (size_of_val(&options), list.as_ptr(), 1);
    let context = made(|out| unsafe { gridstone_context_create(&options, out) });
    let schema = c(
        r#"{"dims":[{"name":"i","dtype":"int64","domain":["10","17"],"tile":"4"}],"attrs":[{"name":"v","dtype":"int32"}]}"#,
    );
    let schema = made(|out| unsafe { gridstone_schema_from_json(schema.as_ptr(), out) });
    let array = made(|out| unsafe { gridstone_array_create(context.0, store.as_ptr(), null(), schema.0, 0, out) });
    let uri = c(file.to_str().unwrap());
    let state = told(|out| unsafe { gridstone_array_look_at_source(array.0, uri.as_ptr(), out) });
    let spec = format!(
        r#"{{"position":[2],"shape":[6],"lead":[0],"sides":[3],"ranks":[0],"padded":false,"sources":[{state}],
        "attrs":["v"],"fields":[{{"attr":0,"list":0,"offset":0,"step":4,"value":{{"kind":"int","width":4,"count":1}}}}],
        "fills":["00000000"],"lists":[{{"kind":"strided","source":0,"offset":8,"strides":[4],"step":4,"record":4}}]}}"#
    );
    (folder, array, spec)
}

#[test]
fn attached_cells_are_read_where_they_lie() {
    let (folder, array, spec) = attachable("read");
    let (spec, mut version) = (c(&spec), 0);
    ok(unsafe { gridstone_array_attach(array.0, spec.as_ptr(), null(), &mut version) });
    assert_eq!(version, 2);
    let found = columns(&read_all(&array));
    let values: Vec<i32> = found[1].values.as_chunks::<4>().0.iter().map(|b| i32::from_ne_bytes(*b)).collect();
    assert_eq!(&values[2..], [2, 3, 4, 5, 6, 7]);
    let text = told(|out| unsafe { gridstone_array_sources(array.0, null(), out) });
    let sources: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&sources[0]["size"], &sources[0]["cells"]), (&32.into(), &6.into()));
    assert!(sources[0]["problem"].is_null());
    let text = told(|out| unsafe { gridstone_array_attached(array.0, null(), out) });
    let boxes: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(boxes[0]["position"], serde_json::json!([2]));
    assert_eq!((&boxes[0]["shape"], &boxes[0]["attrs"]), (&serde_json::json!([6]), &serde_json::json!(["v"])));
    // The same file again, in the place of what was attached.
    let staged = made(|out| unsafe { gridstone_stage_attached(array.0, spec.as_ptr(), null(), out) });
    let (id, unknown) = (c(boxes[0]["id"].as_str().unwrap()), c("00000000000000000000000000000001"));
    let (handles, ids, unknown) = ([staged.0], [id.as_ptr()], [unknown.as_ptr()]);
    unsafe {
        let bad = c("xyz");
        let bad = [bad.as_ptr()];
        let replace = |ids: &[*const std::ffi::c_char], out: *mut u64| {
            gridstone_array_replace_attached(array.0, handles.as_ptr(), 1, ids.as_ptr(), ids.len(), out)
        };
        fails(replace(&bad, null_mut()), GRIDSTONE_ERROR_INPUT, "xyz");
        ok(replace(&ids, &mut version));
        assert_eq!(version, 3);
        fails(replace(&unknown, null_mut()), GRIDSTONE_ERROR_HANDLE, "staged");
    }
    std::fs::write(folder.join("numbers.bin"), b"short").unwrap();
    let text = told(|out| unsafe { gridstone_array_sources(array.0, null(), out) });
    assert!(text.contains("size"), "{text}");
    let status = unsafe { gridstone_array_read_all(array.0, null(), null(), &mut 0) };
    fails(status, GRIDSTONE_ERROR_SOURCE_CHANGED, "numbers.bin");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_cannot_be_attached_is_named() {
    let (folder, array, spec) = attachable("wrong");
    let (bad, other, missing) = (c("{"), c(&spec.replace("\"v\"", "\"w\"")), c("/nowhere/at/all.h5"));
    unsafe {
        fails(gridstone_array_attach(array.0, bad.as_ptr(), null(), null_mut()), GRIDSTONE_ERROR_INPUT, "JSON");
        fails(gridstone_array_attach(array.0, null(), null(), null_mut()), GRIDSTONE_ERROR_INPUT, "spec");
        fails(gridstone_stage_attached(array.0, other.as_ptr(), null(), &mut 0), GRIDSTONE_ERROR_INPUT, "\"w\"");
        fails(gridstone_tree(missing.as_ptr(), &mut 0), GRIDSTONE_ERROR_STORAGE, "all.h5");
        fails(gridstone_tree(null(), &mut 0), GRIDSTONE_ERROR_INPUT, "path");
        fails(
            gridstone_array_look_at_source(array.0, missing.as_ptr(), &mut 0),
            GRIDSTONE_ERROR_SOURCE_CHANGED,
            "gone",
        );
    }
    assert_eq!(told(|out| unsafe { gridstone_array_sources(array.0, null(), out) }), "[]");
    assert_eq!(told(|out| unsafe { gridstone_array_attached(array.0, null(), out) }), "[]");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_tree_of_a_file_of_numpy_is_told() {
    let path = std::env::temp_dir().join(format!("gridstone-capi-{}.npy", std::process::id()));
    let header = format!("{:<117}\n", "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend((0..6i32).flat_map(i32::to_le_bytes));
    std::fs::write(&path, bytes).unwrap();
    let name = c(path.to_str().unwrap());
    let tree = told(|out| unsafe { gridstone_tree(name.as_ptr(), out) });
    let tree: serde_json::Value = serde_json::from_str(&tree).unwrap();
    assert_eq!((&tree["format"], &tree["root"]["datasets"][0]["shape"]), (&"npy".into(), &serde_json::json!([2, 3])));
    std::fs::remove_file(path).unwrap();
}
