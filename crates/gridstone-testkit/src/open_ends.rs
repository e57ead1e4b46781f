//! The same array with open ends: its domain begins empty, and grows to what it was planned to be.

use crate::dice::Dice;
use gridstone::engine::Array;
use gridstone::schema::{Evolution, Extent, Schema};

/// The schema with some ends open, one time in four; its tiles begin where they did.
pub(crate) fn opened(schema: &Schema, dice: &mut Dice) -> Option<Schema> {
    if !dice.chance(25) {
        return None;
    }
    let mut json = schema.to_stored_json();
    for dim in schema.dims() {
        let [low, high] = *dice.pick(&[[false, true], [true, false], [true, true], [false, false]]);
        if dim.word().is_some() || (!schema.sparse() && dim.extent() == Extent::Whole) || [low, high] == [false; 2] {
            continue;
        }
        let (lo, hi, _) = dim.texts();
        let head = format!(r#""name":"{}","dtype":"{}","domain":"#, dim.name(), dim.datatype());
        let end = |is_open: bool, text: &str| if is_open { "null".to_owned() } else { format!("{text:?}") };
        let (first, last) = (end(low, &lo), end(high, &hi));
        // Where the low end is open, tiles would begin at 0.
        let origin = if low && dim.extent() != Extent::Whole { format!(r#","origin":"{lo}""#) } else { String::new() };
        let (before, after) = (format!(r#"{head}["{lo}","{hi}"]"#), format!("{head}[{first},{last}]{origin}"));
        assert!(json.contains(&before), "{json}");
        json = json.replace(&before, &after);
    }
    Schema::from_stored_json(&json).ok().filter(|made| made.dims().iter().any(|dim| dim.open() != [false; 2]))
}

/// Makes the empty dimensions of a new array reach over the domain of `planned`.
pub(crate) fn reach(array: &Array, planned: &Schema) {
    let made = array.schema().unwrap();
    let empty = planned.dims().iter().zip(made.dims()).filter(|(_, made)| made.range().is_empty());
    let domains = empty.map(|(dim, _)| (dim.name().to_owned(), dim.text(dim.range().lo), dim.text(dim.range().hi)));
    array.alter(&Evolution { domains: domains.collect(), ..Evolution::default() }, None).unwrap();
}
