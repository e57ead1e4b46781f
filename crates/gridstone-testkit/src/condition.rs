//! Random conditions on one attribute, as text and as the oracle judges them.

use crate::Dice;
use crate::enumeration;
use crate::value::{Value, random};
use gridstone::schema::Attribute;

/// What a condition takes of an attribute's values.
pub(crate) type Selects = Box<dyn Fn(&Value) -> bool>;

/// A comparison with a number where the attribute holds integers, else a test for null.
pub(crate) fn condition(attr: &Attribute, dice: &mut Dice) -> (String, Selects) {
    if let Some(categories) = attr.categories() {
        let (text, test) = enumeration::comparison(attr, categories, dice);
        return (text, Box::new(move |value| value.as_deref().is_some_and(&test)));
    }
    let datatype = attr.datatype().to_string();
    let unsigned = datatype.starts_with("uint");
    let limit = random(attr, 1, dice).pop().flatten();
    let is_integer = (unsigned || datatype.starts_with("int")) && !datatype.ends_with(']');
    match limit.filter(|_| is_integer) {
        Some(limit) => {
            let number = move |bytes: &[u8]| integer(bytes, unsigned);
            let limit = number(&limit);
            let least = dice.chance(50);
            let takes = move |v: i128| if least { v <= limit } else { v > limit };
            let text = format!("{} {} {limit}", attr.name(), if least { "<=" } else { ">" });
            (text, Box::new(move |value| value.as_deref().is_some_and(|bytes| takes(number(bytes)))))
        }
        None => (format!("{} is null", attr.name()), Box::new(Option::is_none)),
    }
}

/// A little-endian integer.
pub(crate) fn integer(bytes: &[u8], unsigned: bool) -> i128 {
    let negative = !unsigned && bytes.last().is_some_and(|byte| byte >> 7 == 1);
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(wide)
}
