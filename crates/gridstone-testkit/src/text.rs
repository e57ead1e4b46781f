//! Random text dimensions: texts with common prefixes, of lengths around the eight bytes that the engine processes at
//! once.

use crate::Dice;
use crate::coord::Coord;
use gridstone::schema::Dimension;

/// In the order of their code points, which is not that of their lengths.
const LETTERS: [&str; 10] = ["\u{1}", "'", "a", "b", "z", "\u{7f}", "é", "漢", "😀", "\u{10ffff}"];
const LONGEST: [usize; 12] = [1, 2, 5, 8, 9, 12, 16, 17, 24, 40, 64, 256];

/// A text dimension with at most `axes` axes, and about `width` texts of it.
pub(crate) fn text_dimension(name: &str, width: usize, axes: usize, dice: &mut Dice) -> (Vec<Dimension>, Vec<Coord>) {
    let most = LONGEST.iter().filter(|bytes| bytes.div_ceil(8) <= axes).count();
    let max_bytes = LONGEST[dice.below(most)];
    let mut coords: Vec<Coord> = (0..width).map(|number| a_text(number, width, max_bytes, dice)).collect();
    coords.sort();
    coords.dedup();
    (Dimension::text_axes(name, max_bytes).unwrap(), coords)
}

fn a_letter(dice: &mut Dice) -> &'static str {
    LETTERS[dice.below(LETTERS.len())]
}

fn a_text(number: usize, width: usize, max_bytes: usize, dice: &mut Dice) -> Coord {
    let mut text = "a".repeat(*dice.pick(&[0, 0, 1, 6, 7, 8, 15, 16, 24]));
    if width > 40 {
        text.push_str(&number.to_string());
    }
    (0..dice.below(4)).for_each(|_| text.push_str(a_letter(dice)));
    let fits = (0..=max_bytes).rev().find(|end| text.is_char_boundary(*end) || *end >= text.len());
    text.truncate(fits.unwrap().min(text.len()));
    Coord::of_text(&text)
}

/// A text near `text`: a little longer, perhaps longer than any of the dimension, or a little shorter, or itself.
pub(crate) fn near(text: &str, dice: &mut Dice) -> Coord {
    let mut near = text.to_owned();
    match dice.below(5) {
        0 => near.push_str(a_letter(dice)),
        1 => near.push_str(&a_letter(dice).repeat(9)),
        2 => drop(near.pop()),
        _ => {}
    }
    Coord::of_text(&near)
}
