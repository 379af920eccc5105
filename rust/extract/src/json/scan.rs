//! Byte scanning: where the next byte that matters stands.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Bytes of a word that are a quote, a backslash or a control character have their high bit set
/// in the result; the lowest set bit is exact.
#[inline]
const fn string_marks(word: u64) -> u64 {
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    let is_quote = quote.wrapping_sub(ONES) & !quote;
    let is_backslash = backslash.wrapping_sub(ONES) & !backslash;
    let is_control = word.wrapping_sub(ONES * 0x20) & !word;
    (is_quote | is_backslash | is_control) & HIGHS
}

/// The first quote, backslash or control character at or after `from`, or the end.
///
/// Words of eight for the short strings that calls are made of, then blocks of 32 that the
/// compiler turns into vector code.
#[inline]
pub(super) fn string_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    for _ in 0..4 {
        let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) else {
            return string_end_bytewise(bytes, at);
        };
        let marks = string_marks(u64::from_le_bytes(*word));
        if marks != 0 {
            return at + (marks.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    string_end_long(bytes, at)
}

fn string_end_long(bytes: &[u8], mut at: usize) -> usize {
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<32>) {
        let found = block.iter().fold(0u8, |found, &byte| {
            found | u8::from(byte == b'"') | u8::from(byte == b'\\') | u8::from(byte < 0x20)
        });
        if found != 0 {
            break;
        }
        at += 32;
    }
    string_end_bytewise(bytes, at)
}

fn string_end_bytewise(bytes: &[u8], mut at: usize) -> usize {
    while let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let marks = string_marks(u64::from_le_bytes(*word));
        if marks != 0 {
            return at + (marks.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while let Some(&byte) = bytes.get(at) {
        if byte == b'"' || byte == b'\\' || byte < 0x20 {
            return at;
        }
        at += 1;
    }
    at
}

/// As [`string_end`], for strings with other quotes: stops at every quote and, when `wide`, at
/// every character that is not ASCII.
pub(super) fn foreign_string_end(bytes: &[u8], from: usize, wide: bool) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let found = rest.iter().position(|&byte| match byte {
        b'"' | b'\'' | b'`' | b'\\' => true,
        0..0x20 => true,
        0x80.. => wide,
        _ => false,
    });
    found.map_or(bytes.len(), |length| from + length)
}

/// The first byte at or after `from` that is not JSON white space.
#[inline]
pub(super) fn skip_space(bytes: &[u8], mut from: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(from) {
        from += 1;
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(bytes: &[u8], from: usize) -> usize {
        (from..bytes.len())
            .find(|&at| bytes[at] == b'"' || bytes[at] == b'\\' || bytes[at] < 0x20)
            .unwrap_or(bytes.len())
    }

    proptest! {
        #[test]
        fn string_end_equals_the_naive_scan(
            bytes in proptest::collection::vec(prop_oneof![20 => 0x20u8..=255, 1 => 0u8..=255], 0..200),
            from in 0usize..200,
        ) {
            let from = from.min(bytes.len());
            prop_assert_eq!(string_end(&bytes, from), naive(&bytes, from));
        }
    }
}
