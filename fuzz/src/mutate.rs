//! Changes of bytes that a decoder may stumble over.

use gridstone_testkit::Dice;

/// Words that JSON and the names in it are made of.
const WORDS: [&str; 22] = [
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    ",",
    ":",
    "-1",
    "0",
    "1e309",
    "18446744073709551615",
    "\"18446744073709551616\"",
    "9007199254740993",
    "\"ffffffffffffffff\"",
    "\"0000000000000000\"",
    "\"nan\"",
    "\"-0.0\"",
    "\\u0000",
    "\"/../a\"",
    "\"float32\"",
    "\"string\"",
    "\"auto\"",
];

/// Lengths and counts that are on the edge of something.
fn edge(dice: &mut Dice, len: usize) -> u64 {
    let near = len as u64;
    *dice.pick(&[
        0,
        1,
        2,
        7,
        8,
        9,
        near,
        near + 1,
        near.wrapping_sub(1),
        1 << 20,
        1 << 31,
        u64::MAX,
        u64::MAX - 7,
        1 << 62,
    ])
}

/// Changes `bytes` in a few places; `other` is another input, to take pieces from.
pub fn mutate(bytes: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    for _ in 0..1 << dice.below(4) {
        once(bytes, other, dice);
    }
}

fn once(bytes: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    if bytes.is_empty() {
        bytes.extend_from_slice(&dice.word().to_le_bytes());
    }
    let at = dice.below(bytes.len());
    let rest = bytes.len() - at;
    match dice.below(13) {
        0..=2 => bytes[at] ^= 1 << dice.below(8),
        3 => bytes[at] = *dice.pick(&[0, 1, 0x7f, 0x80, 0xff, b'"', b'{', b'0', b'9', b' ']),
        4 => {
            let width = rest.min(*dice.pick(&[1, 2, 4, 8]));
            let value = edge(dice, bytes.len()).to_le_bytes();
            bytes[at..at + width].copy_from_slice(&value[..width]);
        }
        5 => {
            let step = dice.between(-16, 16) as u8;
            bytes[at] = bytes[at].wrapping_add(step);
        }
        6 if dice.chance(40) => bytes.truncate(at),
        7 => drop(bytes.drain(at..at + 1 + dice.below(rest.min(16)))),
        8 => {
            let piece = bytes[at..at + 1 + dice.below(rest.min(64))].to_vec();
            let to = dice.below(bytes.len());
            bytes.splice(to..to, piece);
        }
        9 if !other.is_empty() => {
            let from = dice.below(other.len());
            let piece = other[from..from + 1 + dice.below((other.len() - from).min(200))].to_vec();
            let end = if dice.chance(50) { at } else { bytes.len().min(at + piece.len()) };
            bytes.splice(at..end, piece);
        }
        10 => insert_word(bytes, dice),
        11 => change_number(bytes, at, dice),
        _ => {
            let len = 1 + dice.below(rest.min(8));
            bytes[at..at + len].fill(dice.word() as u8);
        }
    }
}

/// Puts a word of JSON in the place of a value, or anywhere.
fn insert_word(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let colons: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b':').collect();
    let word = dice.pick(&WORDS).bytes();
    if colons.is_empty() || dice.chance(20) {
        let at = dice.below(bytes.len() + 1);
        bytes.splice(at..at, word);
        return;
    }
    let at = dice.pick(&colons) + 1;
    let ends = |b: &u8| matches!(b, b',' | b'}' | b']');
    let end = bytes[at..].iter().position(ends).map_or(bytes.len(), |n| at + n);
    bytes.splice(at..end, word);
}

/// Puts another number in the place of one written in digits, after `at`.
fn change_number(bytes: &mut Vec<u8>, at: usize, dice: &mut Dice) {
    let Some(from) = bytes[at..].iter().position(u8::is_ascii_digit).map(|n| at + n) else { return };
    let end = bytes[from..].iter().position(|b| !b.is_ascii_digit()).map_or(bytes.len(), |n| from + n);
    let number = if dice.chance(50) { edge(dice, bytes.len()) } else { dice.word() >> dice.below(64) };
    bytes.splice(from..end, number.to_string().bytes());
}
