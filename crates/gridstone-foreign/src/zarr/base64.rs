//! Base64 (RFC 4648), as fill values of bytes are written.

/// The bytes of `text`; `None` if it is no Base64 with its padding.
pub(super) fn decoded(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(4) {
        return None;
    }
    let padding = digits.iter().rev().take_while(|digit| **digit == b'=').count();
    let (digits, _) = digits.split_at_checked(digits.len() - padding)?;
    if padding > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(digits.len() / 4 * 3 + 3);
    for group in digits.chunks(4) {
        let bits =
            group.iter().try_fold(0u32, |bits, digit| Some(bits << 6 | value(*digit)?))? << (6 * (4 - group.len()));
        let bytes = bits.to_be_bytes();
        out.extend_from_slice(bytes.get(1..group.len()).unwrap_or_default());
    }
    Some(out)
}

fn value(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_rfc_4648() {
        for (text, bytes) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm9vYmE=", "fooba"),
            ("Zm9vYmFy", "foobar"),
        ] {
            assert_eq!(decoded(text).unwrap(), bytes.as_bytes());
        }
        assert_eq!(decoded("////+A==").unwrap(), [255, 255, 255, 248]);
        for wrong in ["Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Z g=", "Zm9_"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }
}
