//! Work on cells that lie in a file of another format: attaching it, writing over it, and bringing its cells home.

use super::Kind;
use super::hand::{Hand, Sort, columns, staged_cells};
use super::model::{Area, COLUMNS, Cells, EVERYWHERE, Place, ROWS, Size, Value, area, filled, places, scattered};
use super::script::Script;
use crate::support::columns::as_text;
use gridstone::base::{ByteRange, Result};
use gridstone::engine::{Array, Call, Staged, Strategy};
use gridstone::fragment::external::{
    ChunkGrid, DecodingStep, ExternalSpec, ForeignField, ForeignPage, ForeignSource, StoredValue, TextPadding,
    TilePage, ValueKind,
};
use gridstone::schema::{KeyRange, Order, Subarray};
use gridstone_testkit::Dice;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::OnceLock;

const ATTACHED: &str = "/attached";

/// The chunks of the file; those at the far edges reach beyond it.
const CHUNK: Area = ((0, 4), (0, 3));
const SIDES: [u64; 2] = [5, 4];
/// Bytes of a record: a number, then bytes of a fixed length.
const TEXT: u32 = 5;
const RECORD: u32 = 8 + TEXT;

/// The chunk that was never written, by its number.
const MISSING: u64 = 2;

pub(super) fn script() -> Script {
    Script { kinds, ..Script::new("attached") }
}

/// The folder of the file, which contexts of scripts allow.
pub(super) fn folder() -> &'static str {
    env!("CARGO_TARGET_TMPDIR")
}

/// The value in the file at a place; in the chunk that is missing, the fill.
fn value(place: Place) -> Value {
    if number_of(place) == MISSING {
        return (-7, b"never".to_vec());
    }
    let mut dice = Dice::new((place.0 * COLUMNS + place.1) as u64);
    let text = (0..TEXT).map(|_| b'a' + dice.below(26) as u8).collect();
    ((dice.word() >> 1) as i64, text)
}

/// The number of the chunk with a place.
fn number_of((y, x): Place) -> u64 {
    let along = (COLUMNS as u64).div_ceil(SIDES[1]);
    y as u64 / SIDES[0] * along + x as u64 / SIDES[1]
}

fn record(value: &Value) -> Vec<u8> {
    [value.0.to_le_bytes().as_slice(), &value.1].concat()
}

/// The chunks one after another, those at the far edges whole.
fn content() -> Vec<u8> {
    let (rows, columns) = ((ROWS as u64).div_ceil(SIDES[0]), (COLUMNS as u64).div_ceil(SIDES[1]));
    let corners = (0..rows).flat_map(|row| (0..columns).map(move |column| (row * SIDES[0], column * SIDES[1])));
    let cells = corners.flat_map(|(y, x)| places(CHUNK).map(move |place| (place.0 + y as i64, place.1 + x as i64)));
    cells.flat_map(|place| record(&value(place))).collect()
}

/// The file. All processes share one, which is never written again: its time is part of what is attached.
fn file() -> &'static PathBuf {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    FILE.get_or_init(|| {
        let (bytes, mut hasher) = (content(), DefaultHasher::new());
        bytes.hash(&mut hasher);
        let named = PathBuf::from(folder()).join(format!("attached-{:x}.bin", hasher.finish()));
        let made = named.with_extension(format!("{}", std::process::id()));
        std::fs::write(&made, &bytes).unwrap();
        let linked = std::fs::hard_link(&made, &named);
        assert!(linked.is_ok() || named.is_file(), "{linked:?}");
        std::fs::remove_file(&made).unwrap();
        named
    })
}

fn attached(area: Area) -> Cells {
    places(area).map(|place| (place, value(place))).collect()
}

fn fields() -> Vec<ForeignField> {
    let field = |attr: u32, offset: u32, kind, width, steps| ForeignField {
        attr,
        list: 0,
        offset,
        step: RECORD,
        value: StoredValue { kind, width, count: 1, big_endian: false },
        steps,
    };
    let text = vec![DecodingStep::Text { padding: TextPadding::Zeros }];
    vec![field(0, 0, ValueKind::Int, 8, Vec::new()), field(1, 8, ValueKind::Bytes, TEXT, text)]
}

/// The cells of an area, which stay in the file.
fn staged(array: &Array, area: Area) -> Result<Staged> {
    let schema = array.schema()?;
    let mut origin = Vec::new();
    let mut range = |(whole, side, along): (&KeyRange, u64, (i64, i64))| {
        origin.push(whole.lo + along.0 as u64 / side * side);
        KeyRange::new(whole.lo + along.0 as u64, whole.lo + along.1 as u64)
    };
    let domain = schema.domain();
    let along = domain.ranges().iter().zip(SIDES).zip([area.0, area.1]);
    let bounds = Subarray::new(along.map(|((whole, side), along)| range((whole, side, along))).collect());
    let grid = ChunkGrid::new(bounds, origin, SIDES.to_vec(), vec![0, 1], true)?;
    let object = array.look_at_source(&file().display().to_string())?;
    let mut tiles = (0..grid.len()).map(|tile| Ok(vec![page(&grid, &domain, tile)])).collect::<Vec<_>>();
    let fills = vec![record(&(-7, b"never".to_vec()))];
    let spec = ExternalSpec { grid, sources: vec![ForeignSource { object, keys: None }], fields: fields(), fills };
    array.stage_external(spec, &mut tiles.drain(..), &Call::default())
}

/// The page of a chunk of the grid over an area.
fn page(grid: &ChunkGrid, domain: &Subarray, tile: u64) -> TilePage {
    let cells = grid.chunk_box(tile).expect("a chunk with cells");
    let at = |axis: usize| (cells.ranges()[axis].lo - domain.ranges()[axis].lo) as i64;
    let number = number_of((at(0), at(1)));
    if number == MISSING {
        return TilePage::Fill;
    }
    let length = RECORD as u64 * SIDES.iter().product::<u64>();
    let (offset, decoded) = (number * length, length as u32);
    let page = ForeignPage::new(0, ByteRange::new(offset, length), decoded);
    TilePage::Stored { page, pipeline: "none".into() }
}

impl Hand {
    fn attach(&mut self, area: Area, over: Option<&Cells>) -> Result<u64> {
        let array = self.array(ATTACHED)?;
        let mut all = vec![staged(array, area)?];
        if let Some(cells) = over {
            all.push(staged_cells(array, cells)?);
        }
        array.commit(all, Some("attached".to_owned()))
    }

    /// Attaches an area, and fills another box, in one commit.
    fn attach_beside(&mut self, area: Area, (beside, cells): (Area, &Cells)) -> Result<u64> {
        let array = self.array(ATTACHED)?;
        let columns = columns(cells);
        let data = vec![("n".to_owned(), columns[0].view()), ("v".to_owned(), columns[1].view())];
        let bounds = [as_text(beside.0), as_text(beside.1)];
        let native = array.stage_dense(Some(&bounds), &data, Order::Row, &Call::default())?;
        array.commit(vec![staged(array, area)?, native], None)
    }
}

fn kinds() -> Vec<Kind> {
    let mut all = attachments();
    all.extend(upkeep());
    all
}

fn attach_all() -> Kind {
    Kind {
        name: "attach all of a file, and a part of it again",
        act: |hand, seed| hand.attach(if seed.is_multiple_of(2) { EVERYWHERE } else { area(seed) }, None),
        mean: |model, seed| {
            let area = if seed.is_multiple_of(2) { EVERYWHERE } else { area(seed) };
            model.cells(ATTACHED).extend(attached(area));
        },
    }
}

fn attachments() -> Vec<Kind> {
    vec![
        Kind {
            name: "create an array for a file",
            act: |hand, _| hand.create(ATTACHED, Sort::Dense, true),
            mean: |model, _| model.put_array(ATTACHED, Sort::Dense),
        },
        attach_all(),
        Kind {
            name: "a box over a file",
            act: |hand, seed| hand.write_boxes(ATTACHED, &[(area(seed), filled(area(seed), Size::Large, seed))]),
            mean: |model, seed| model.cells(ATTACHED).extend(filled(area(seed), Size::Large, seed)),
        },
        Kind {
            name: "tombstones over a file",
            act: |hand, seed| hand.delete(ATTACHED, &scattered(20, Size::Small, seed).into_keys().collect()),
            mean: |model, seed| model.delete(ATTACHED, &scattered(20, Size::Small, seed).into_keys().collect()),
        },
        Kind {
            name: "a file and cells over it in one commit",
            act: |hand, seed| match seed % 2 {
                0 => hand.attach(area(seed), Some(&scattered(9, Size::Small, seed))),
                _ => {
                    let beside = area(seed + 1);
                    hand.attach_beside(area(seed), (beside, &filled(beside, Size::Small, seed)))
                }
            },
            mean: |model, seed| {
                model.cells(ATTACHED).extend(attached(area(seed)));
                let over = match seed % 2 {
                    0 => scattered(9, Size::Small, seed),
                    _ => filled(area(seed + 1), Size::Small, seed),
                };
                model.cells(ATTACHED).extend(over);
            },
        },
    ]
}

fn upkeep() -> Vec<Kind> {
    vec![
        Kind {
            name: "consolidate what lies over a file",
            act: |hand, seed| match seed % 2 {
                0 => hand.consolidate(ATTACHED, &Strategy::Updates, 1 << 30),
                _ => hand.consolidate(ATTACHED, &Strategy::Tiered, 1 << 30),
            },
            mean: |_, _| {},
        },
        Kind {
            name: "bring a box home",
            act: |hand, seed| hand.consolidate_box(ATTACHED, area(seed)),
            mean: |_, _| {},
        },
        Kind {
            name: "bring all home, and a vacuum",
            act: |hand, seed| match seed % 2 {
                0 => hand.consolidate(ATTACHED, &Strategy::All, 1 << 30),
                _ => hand.vacuum(ATTACHED, 1),
            },
            mean: |_, _| {},
        },
        attach_all(),
        Kind {
            name: "remove an array of a file, and make another",
            act: |hand, seed| match seed % 2 {
                0 => hand.remove(ATTACHED),
                _ => hand.create(ATTACHED, Sort::Dense, false),
            },
            mean: |model, seed| match seed % 2 {
                0 => model.remove(ATTACHED),
                _ => model.put_array(ATTACHED, Sort::Dense),
            },
        },
    ]
}
