//! The programs of `examples/rust` run, on stores in memory and in a folder. They check their own results.

use crate::support::child::Folder;

#[expect(dead_code, reason = "`main` takes the arguments of a program")]
#[path = "../../../examples/rust/dense_image.rs"]
mod dense_image;
#[expect(dead_code, reason = "`main` takes the arguments of a program")]
#[path = "../../../examples/rust/question.rs"]
mod question;
#[expect(dead_code, reason = "`main` takes the arguments of a program")]
#[path = "../../../examples/rust/sparse_points.rs"]
mod sparse_points;
#[expect(dead_code, reason = "`main` takes the arguments of a program")]
#[path = "../../../examples/rust/time_travel.rs"]
mod time_travel;

/// Runs a program on a store in memory and on one in a folder, which it leaves there.
fn run(name: &str, program: fn(&str) -> gridstone::Result<()>) {
    program(&format!("mem://example-{name}")).unwrap();
    let folder = Folder::new(name);
    let store = folder.0.join("store.gs");
    program(store.to_str().unwrap()).unwrap();
    assert!(store.join("_log").is_dir());
    // A store that is there is not written over.
    let again = program(store.to_str().unwrap()).map_err(|e| e.kind());
    assert!(matches!(again, Err(gridstone::ErrorKind::Exists)), "{again:?}");
}

#[test]
fn dense_image_runs() {
    run("dense_image", dense_image::run);
}

#[test]
fn question_runs() {
    run("question", question::run);
}

#[test]
fn sparse_points_runs() {
    run("sparse_points", sparse_points::run);
}

#[test]
fn time_travel_runs() {
    run("time_travel", time_travel::run);
}
