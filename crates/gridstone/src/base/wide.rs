//! Loops over values compiled twice: for every processor, and for those with AVX2, chosen at run time.
//!
//! The package is built for processors of 2003, whose vectors neither compare nor shift 64-bit words individually.
//! Finding the least value of a column of int64 takes ten times as long that way.

/// Defines a function that runs the body of another one, which has to be `#[inline(always)]`, compiled for the
/// processor at hand.
///
/// ```text
/// wide! {
///     /// The least value.
///     pub fn least(values: &[u64]) -> u64 { least_any }
/// }
/// ```
macro_rules! wide {
    ($(#[$about:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $out:ty)? { $any:ident }) => {
        $(#[$about])*
        $vis fn $name($($arg: $type),*) $(-> $out)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn with_avx2($($arg: $type),*) $(-> $out)? {
                    $any($($arg),*)
                }
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has what the function is compiled for; it is safe in all other respects.
                    return unsafe { with_avx2($($arg),*) };
                }
            }
            $any($($arg),*)
        }
    };
}
pub(crate) use wide;

#[cfg(test)]
mod tests {
    wide! {
        /// The least and the greatest value.
        fn extremes(values: &[i64]) -> (i64, i64) { extremes_any }
    }

    #[inline(always)]
    fn extremes_any(values: &[i64]) -> (i64, i64) {
        values.iter().fold((i64::MAX, i64::MIN), |(low, high), value| (low.min(*value), high.max(*value)))
    }

    #[test]
    fn both_give_the_same() {
        for count in 0..70 {
            let value = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) as i64;
            let values: Vec<i64> = (0..count).map(value).collect();
            assert_eq!(extremes(&values), extremes_any(&values));
        }
    }
}
