//! Copies cells of any width: loops are compiled for each common width, and one for all others.

/// Evaluates `$common` with the constant `$n` bound to `$width`, or `$other` for a width that is not common.
macro_rules! by_cell_width {
    ($width:expr, $n:ident => $common:expr, else $other:expr) => {
        by_cell_width!(@ $width, $n, $common, $other, 1 2 3 4 6 8 12 16)
    };
    (@ $width:expr, $n:ident, $common:expr, $other:expr, $($known:literal)*) => {
        match $width {
            $($known => {
                const $n: usize = $known;
                $common
            })*
            _ => $other,
        }
    };
}
pub(crate) use by_cell_width;
