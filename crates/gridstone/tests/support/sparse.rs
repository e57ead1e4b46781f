//! A sparse array of one long dimension, whose values do not compress.

use super::columns::longs;
use super::dense::noise;
use gridstone::engine::{Array, Call, CellData, Dedup, Staged};
use gridstone::schema::Schema;

pub(crate) fn line(capacity: u64) -> Schema {
    Schema::from_json(&format!(
        r#"{{"sparse":true,"capacity":{capacity},"dims":[{{"name":"x","dtype":"int64","domain":["0","99999999"],"tile":"1000"}}],
        "attrs":[{{"name":"v","dtype":"int64"}}]}}"#
    ))
    .unwrap()
}

pub(crate) fn stage(array: &Array, xs: &[i64], value: i64) -> Staged {
    let (x, v) = (longs(xs.iter().copied()), longs(xs.iter().map(|x| noise(value * 7 + x))));
    let attrs = vec![("v".to_owned(), v.view())];
    let data = CellData { dims: vec![x.view()], attrs, sorted: false, dedup: Dedup::Error };
    array.stage_cells(data, &Call::default()).unwrap()
}

pub(crate) fn write(array: &Array, xs: &[i64], value: i64) -> u64 {
    array.commit(vec![stage(array, xs, value)], None).unwrap()
}

pub(crate) fn delete(array: &Array, xs: &[i64]) {
    let x = longs(xs.iter().copied());
    array.commit(vec![array.stage_delete(&[x.view()], &Call::default()).unwrap()], None).unwrap();
}
