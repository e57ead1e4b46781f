//! Enumerated attributes: random categories, codes, and conditions on them with the oracle's results.

use crate::Dice;
use gridstone::schema::{Attribute, Categories, Datatype};
use std::cmp::Ordering;

/// The result of a condition for a code.
pub(crate) type Test = Box<dyn Fn(&[u8]) -> bool>;

/// Categories that no random list has.
const STRANGERS: [&str; 2] = ["'Z'", "'aa'"];

/// Random categories, texts or numbers, in no order.
pub(crate) fn categories(dice: &mut Dice) -> Categories {
    let ordered = dice.chance(40);
    if dice.chance(30) {
        let mut numbers: Vec<i64> = (0..1 + dice.below(5) as i64).map(|i| 7 * i - 9).collect();
        shuffle(&mut numbers, dice);
        let texts: Vec<String> = numbers.iter().map(i64::to_string).collect();
        return Categories::new(Datatype::Int64, &texts, ordered).unwrap();
    }
    let mut texts = vec!["b", "", "a", "é", "zz", "漢字", "c'"];
    shuffle(&mut texts, dice);
    texts.truncate(1 + dice.below(7));
    Categories::new(Datatype::String, &texts, ordered).unwrap()
}

fn shuffle<T>(items: &mut [T], dice: &mut Dice) {
    for i in (1..items.len()).rev() {
        items.swap(i, dice.below(i + 1));
    }
}

/// The text of a category that does not exist yet.
pub(crate) fn another(categories: &Categories) -> String {
    match categories.datatype() {
        Datatype::Int64 => (1_000 + categories.len()).to_string(),
        _ => format!("new{}", categories.len()),
    }
}

/// The bytes of a code derived from `word`.
pub(crate) fn code(categories: &Categories, width: usize, word: u64) -> Vec<u8> {
    (word % categories.len() as u64).to_le_bytes()[..width].to_vec()
}

fn place(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |code, byte| code << 8 | usize::from(*byte))
}

/// A comparison with a category, or with a non-category where that is allowed; and its result for a code.
pub(crate) fn comparison(attr: &Attribute, categories: &Categories, dice: &mut Dice) -> (String, Test) {
    let (texts, ordered, number) = (categories.texts(), categories.ordered(), categories.datatype() == Datatype::Int64);
    let sign = *dice.pick(&["==", "!=", "<", "<=", ">", ">="]);
    let limit = dice.below(texts.len());
    let stranger = !number && (!ordered || matches!(sign, "==" | "!=")) && dice.chance(20);
    let literal = match stranger {
        true => dice.pick(&STRANGERS).to_string(),
        false if number => texts[limit].clone(),
        false => format!("'{}'", texts[limit].replace('\'', "''")),
    };
    let wanted = if stranger { literal.trim_matches('\'').to_owned() } else { texts[limit].clone() };
    let by_value = move |code: usize| -> Ordering {
        if number {
            let value = |text: &str| text.parse::<i64>().unwrap();
            return value(&texts[code]).cmp(&value(&wanted));
        }
        texts[code].as_bytes().cmp(wanted.as_bytes())
    };
    let test = move |bytes: &[u8]| {
        let code = place(bytes);
        let order = by_value(code);
        let order = if ordered && !order.is_eq() && !stranger { code.cmp(&limit) } else { order };
        match sign {
            "==" => order.is_eq(),
            "!=" => order.is_ne(),
            "<" => order.is_lt(),
            "<=" => order.is_le(),
            ">" => order.is_gt(),
            _ => order.is_ge(),
        }
    };
    (format!("{} {sign} {literal}", attr.name()), Box::new(test))
}
