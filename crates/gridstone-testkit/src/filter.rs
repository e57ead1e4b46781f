//! Random conditions on dimensions and attributes together, as text and as the oracle evaluates them, in three-valued
//! logic.

use crate::Dice;
use crate::coord::{Coord, Place};
use crate::enumeration;
use crate::plan::Plan;
use crate::value::{Value, random};
use gridstone::schema::{Attribute, Datatype, Sorting};

/// The result of a condition for a cell; `None`: unknown.
type Judge = Box<dyn Fn(&Place, &[Value]) -> Option<bool>>;

/// A condition.
pub(crate) struct Filter {
    /// Its text, as a user writes it.
    pub(crate) text: String,
    judge: Judge,
}

impl Filter {
    /// Up to four comparisons, joined.
    pub(crate) fn random(plan: &Plan, dice: &mut Dice) -> Self {
        Self::of_depth(plan, dice, 2)
    }

    /// Whether it is true for a cell with these values, one per attribute of the schema.
    pub(crate) fn takes(&self, place: &Place, values: &[Value]) -> bool {
        (self.judge)(place, values) == Some(true)
    }

    fn of_depth(plan: &Plan, dice: &mut Dice, depth: usize) -> Self {
        if depth > 0 && dice.chance(15) {
            let Self { text, judge } = Self::of_depth(plan, dice, depth - 1);
            return Self { text: format!("not ({text})"), judge: Box::new(move |p, v| judge(p, v).map(|t| !t)) };
        }
        if depth > 0 && dice.chance(40) {
            let (a, b) = (Self::of_depth(plan, dice, depth - 1), Self::of_depth(plan, dice, depth - 1));
            let all = dice.chance(60);
            let text = format!("({}) {} ({})", a.text, if all { "and" } else { "or" }, b.text);
            let judge = move |p: &Place, v: &[Value]| match ((a.judge)(p, v), (b.judge)(p, v)) {
                (Some(x), _) | (_, Some(x)) if x != all => Some(x),
                (Some(_), Some(_)) => Some(all),
                _ => None,
            };
            return Self { text, judge: Box::new(judge) };
        }
        if dice.chance(25) { Self::of_dimension(plan, dice) } else { Self::of_attribute(plan, dice) }
    }

    fn of_dimension(plan: &Plan, dice: &mut Dice) -> Self {
        let d = dice.below(plan.used.len());
        let dim = plan.schema.coordinates().nth(d).unwrap();
        let limit = *dice.pick(&plan.used[d]);
        let (least, equal) = (dice.chance(50), dice.chance(15));
        let number = match limit {
            Coord::Int(v) if !dim.datatype().is_time() => v.to_string(),
            Coord::Float(v) => format!("{v:?}"),
            Coord::Text(text) => format!("'{}'", text.replace('\'', "''")),
            // Times have their own text form; all coordinates have a value.
            Coord::Int(_) => return Self::constant(format!("{} is not null", dim.name()), true),
        };
        let sign = if equal {
            "=="
        } else if least {
            ">="
        } else {
            "<"
        };
        let judge = move |place: &Place, _: &[Value]| {
            Some(if equal { place[d] == limit } else { (place[d] >= limit) == least })
        };
        Self { text: format!("{} {sign} {number}", dim.name()), judge: Box::new(judge) }
    }

    fn constant(text: String, value: bool) -> Self {
        Self { text, judge: Box::new(move |_, _| Some(value)) }
    }

    fn of_attribute(plan: &Plan, dice: &mut Dice) -> Self {
        let a = dice.below(plan.schema.attrs().len());
        let attr = &plan.schema.attrs()[a];
        // Values of several numbers can only be tested for null.
        let compared = !matches!(attr.datatype().sorting(), Sorting::None);
        if !compared || dice.chance(15) {
            let text = format!("{} is null", attr.name());
            return Self { text, judge: Box::new(move |_, values| Some(values[a].is_none())) };
        }
        let (text, test) = match attr.categories() {
            Some(categories) => enumeration::comparison(attr, categories, dice),
            None => comparison(attr, dice),
        };
        Self { text, judge: Box::new(move |_, values| values[a].as_deref().map(&test)) }
    }
}

/// A little-endian integer.
fn integer(bytes: &[u8], unsigned: bool) -> i128 {
    let negative = !unsigned && bytes.last().is_some_and(|byte| byte >> 7 == 1);
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(wide)
}

type Test = Box<dyn Fn(&[u8]) -> bool>;

fn comparison(attr: &Attribute, dice: &mut Dice) -> (String, Test) {
    let name = attr.name();
    // The fill, which many cells of a dense array have, or a value like those written.
    let limit = if dice.chance(25) { None } else { random(attr, 1, dice).pop().flatten() };
    let limit = limit.unwrap_or_else(|| attr.fill().to_vec());
    let sign = *dice.pick(&["==", "!=", "<", "<=", ">", ">="]);
    match attr.datatype() {
        Datatype::Bool => (name.to_owned(), Box::new(|bytes| bytes == [1])),
        Datatype::String => {
            let text = format!("{name} {sign} '{}'", String::from_utf8(limit.clone()).unwrap());
            (text, Box::new(move |bytes| holds(sign, Some(bytes.cmp(&limit)))))
        }
        Datatype::Bytes | Datatype::FixedBytes(_) => {
            let hex: String = limit.iter().map(|byte| format!("{byte:02x}")).collect();
            (format!("{name} {sign} x'{hex}'"), Box::new(move |bytes| holds(sign, Some(bytes.cmp(&limit)))))
        }
        datatype if datatype.is_float() => {
            let limit = float(&limit);
            (format!("{name} {sign} {limit:?}"), Box::new(move |bytes| holds(sign, float(bytes).partial_cmp(&limit))))
        }
        datatype if datatype.is_time() => (format!("{name} is nan"), Box::new(|bytes| bytes == i64::MIN.to_le_bytes())),
        datatype => {
            let unsigned = datatype.to_string().starts_with("uint");
            let limit = integer(&limit, unsigned);
            let test = move |bytes: &[u8]| holds(sign, Some(integer(bytes, unsigned).cmp(&limit)));
            (format!("{name} {sign} {limit}"), Box::new(test))
        }
    }
}

fn float(bytes: &[u8]) -> f64 {
    if let Ok(half) = bytes.try_into() {
        return half_to_double(u16::from_le_bytes(half));
    }
    match bytes.try_into() {
        Ok(single) => f64::from(f32::from_le_bytes(single)),
        Err(_) => f64::from_le_bytes(bytes.try_into().unwrap()),
    }
}

/// A number of IEEE 754's binary16 by its definition.
fn half_to_double(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let size = match exponent {
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        0 => fraction * 2f64.powi(-24),
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    };
    if bits >> 15 == 1 { -size } else { size }
}

fn holds(sign: &str, order: Option<std::cmp::Ordering>) -> bool {
    match sign {
        "==" => order.is_some_and(|o| o.is_eq()),
        "!=" => order.is_none_or(|o| o.is_ne()),
        "<" => order.is_some_and(|o| o.is_lt()),
        "<=" => order.is_some_and(|o| o.is_le()),
        ">" => order.is_some_and(|o| o.is_gt()),
        _ => order.is_some_and(|o| o.is_ge()),
    }
}
