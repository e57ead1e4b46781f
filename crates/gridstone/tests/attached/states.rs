//! Attached files that change, and what is read of them.

use super::world::World;
use gridstone::base::ErrorKind;
use gridstone::engine::{Call, ReadOrder};

#[test]
fn a_file_that_changed_is_named_and_nothing_is_read_as_fill() {
    let world = World::new(5);
    assert!(world.chunks > 0, "some chunk lies in the file");
    let mut bytes = std::fs::read(world.file()).unwrap();
    bytes.push(0);
    std::fs::write(world.file(), &bytes).unwrap();
    let read = || world.array.read(None, None, ReadOrder::Row, &Call::default()).map(drop).unwrap_err();
    let error = read();
    assert!(error.kind() == ErrorKind::SourceChanged && error.to_string().contains("cells.bin"), "{error}");
    let sources = world.array.sources(&Call::default()).unwrap();
    let problem = sources[0].problem.as_ref().unwrap();
    assert!(problem.to_string().contains("its size was"), "{problem}");
    let damage = world.array.verify(&Call::default()).unwrap().damage;
    let columns = 3 / world.lists as u64;
    assert_eq!(damage.len() as u64, world.chunks * columns, "one per chunk in the file and column that it holds");
    assert!(damage[0].message.contains("has changed"), "{}", damage[0].message);
    std::fs::remove_file(world.file()).unwrap();
    let error = read();
    assert!(error.kind() == ErrorKind::SourceChanged && error.to_string().contains("is gone"), "{error}");
}

#[test]
fn flipped_bytes_of_checked_chunks_are_errors() {
    // The state of the file stays as it was: only what the chunks say of themselves is left.
    for round in 0..40 {
        let world = World::new(900 + round);
        let bytes = std::fs::read(world.file()).unwrap();
        let time = std::fs::metadata(world.file()).unwrap().modified().unwrap();
        let flipped: Vec<u8> = bytes.iter().map(|byte| byte ^ 0x55).collect();
        std::fs::write(world.file(), &flipped).unwrap();
        std::fs::File::options().write(true).open(world.file()).unwrap().set_modified(time).unwrap();
        match world.array.read(None, None, ReadOrder::Row, &Call::default()) {
            Ok(_) => {}
            Err(e) => assert!(matches!(e.kind(), ErrorKind::Corruption | ErrorKind::Input), "{e}"),
        }
    }
}
