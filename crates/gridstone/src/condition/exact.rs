//! Compares numbers of different types by their exact values, without rounding.

use std::cmp::Ordering;

/// A number of any type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Int(i128),
    Float(f64),
}

/// The order of two numbers; `None` if one is NaN.
pub(super) fn compare(a: Number, b: Number) -> Option<Ordering> {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => Some(a.cmp(&b)),
        (Number::Float(a), Number::Float(b)) => a.partial_cmp(&b),
        (Number::Int(a), Number::Float(b)) => integer_with_float(a, b),
        (Number::Float(a), Number::Int(b)) => integer_with_float(b, a).map(Ordering::reverse),
    }
}

/// 2^127, beyond every integer.
const BEYOND: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;

fn integer_with_float(a: i128, b: f64) -> Option<Ordering> {
    if b.is_nan() {
        return None;
    }
    if b >= BEYOND {
        return Some(Ordering::Less);
    }
    if b < -BEYOND {
        return Some(Ordering::Greater);
    }
    // Exact: the whole part of a float within the range of i128 is an i128.
    let whole = b.trunc();
    let ordering = a.cmp(&(whole as i128));
    Some(ordering.then_with(|| 0.0f64.partial_cmp(&(b - whole)).unwrap_or(Ordering::Equal)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_as_numbers() {
        use Number::{Float, Int};
        let order = |a, b| compare(a, b).unwrap();
        assert_eq!(order(Int(3), Float(3.5)), Ordering::Less);
        assert_eq!(order(Int(-3), Float(-3.5)), Ordering::Greater);
        assert_eq!(order(Int((1 << 53) + 1), Float(9_007_199_254_740_992.0)), Ordering::Greater);
        assert_eq!(order(Int(i128::MAX), Float(BEYOND)), Ordering::Less);
        assert_eq!(order(Int(i128::MIN), Float(-BEYOND)), Ordering::Equal);
        assert_eq!(order(Float(f64::NEG_INFINITY), Int(i128::MIN)), Ordering::Less);
        assert_eq!(order(Int(0), Float(-0.0)), Ordering::Equal);
        assert_eq!(order(Float(f64::from(0.1f32)), Float(0.1)), Ordering::Greater);
        assert_eq!(compare(Int(0), Float(f64::NAN)), None);
    }
}
