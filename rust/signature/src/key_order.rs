//! The order of object keys in RFC 8785 (section 3.2.3): by UTF-16 code units.
//!
//! UTF-8 bytes sort alike except where a character beyond U+FFFF meets one from U+D800 up: only
//! those are decoded.

use std::cmp::Ordering;

use crate::canon::tag;

/// First byte of U+D000 and up, the range in which UTF-8 and UTF-16 disagree.
const FIRST_DISPUTED_BYTE: u8 = 0xED;

/// Compares two keys by their UTF-16 code units.
///
/// Keys are UTF-8, with lone surrogates as three bytes each (WTF-8). Linear in the common prefix,
/// without allocation. Bytes that are no WTF-8 are ordered too, in some fixed way.
///
/// ```
/// use std::cmp::Ordering;
/// use turnwarden_signature::compare_keys;
///
/// assert_eq!(compare_keys(b"10", b"9"), Ordering::Less);
/// assert_eq!(compare_keys("😀".as_bytes(), "\u{FB33}".as_bytes()), Ordering::Less);
/// ```
#[inline]
#[must_use]
pub fn compare_keys(left: &[u8], right: &[u8]) -> Ordering {
    let by_bytes = left.cmp(right);
    if by_bytes == Ordering::Equal || (is_plain(left) && is_plain(right)) {
        return by_bytes;
    }
    compare_from_first_difference(left, right).unwrap_or(by_bytes)
}

/// A key of up to fifteen bytes as it stands in the canon, in one word; of a longer one the first
/// eight bytes.
///
/// The lowest byte is the tag of the string, which says its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHead(u128);

impl KeyHead {
    const MOST_BYTES: usize = 15;

    /// The head of a key (WTF-8): loaded from both of its ends, whatever its length.
    #[inline]
    #[must_use]
    pub fn of(key: &[u8]) -> Self {
        let length = key.len();
        let text = match length {
            0..=3 => {
                let byte = |index: usize| key.get(index).map_or(0, |&byte| u128::from(byte));
                byte(0) | byte(1) << 8 | byte(2) << 16
            }
            4..=7 => {
                let word = |bytes: Option<&[u8; 4]>| bytes.map_or(0, |b| u32::from_le_bytes(*b));
                let (first, last) = (word(key.first_chunk()), word(key.last_chunk()));
                u128::from(u64::from(first) | u64::from(last) << (8 * (length - 4)))
            }
            _ => {
                let word = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |b| u64::from_le_bytes(*b));
                let first = u128::from(word(key.first_chunk()));
                if length > Self::MOST_BYTES {
                    return Self(first << 8 | u128::from(tag::LONG_STRING));
                }
                first | u128::from(word(key.last_chunk())) << (8 * (length - 8))
            }
        };
        Self(text << 8 | u128::from(tag::STRING) | length as u128)
    }

    /// Whether all of the key is in it.
    #[inline]
    pub(crate) fn is_whole(self) -> bool {
        self.0 & 0xFF != u128::from(tag::LONG_STRING)
    }

    /// Tag and text, lowest byte first.
    #[inline]
    pub(crate) fn tagged(self) -> u128 {
        self.0
    }

    /// The first eight bytes of the key.
    #[inline]
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // the others are not wanted
    pub fn prefix(self) -> KeyPrefix {
        KeyPrefix(((self.0 >> 8) as u64).swap_bytes())
    }
}

/// The first eight bytes of a key, which decide most comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPrefix(u64);

impl KeyPrefix {
    /// The prefix as a number that sorts as the key does, if it is ASCII.
    #[inline]
    #[must_use]
    pub fn as_ascii(self) -> Option<u64> {
        const HIGH_BITS: u64 = u64::from_le_bytes([0x80; 8]);
        (self.0 & HIGH_BITS == 0).then_some(self.0)
    }

    /// How the keys compare, where their prefixes decide it.
    #[inline]
    #[must_use]
    pub fn compare(self, other: Self) -> Option<Ordering> {
        Self(self.0 | other.0).as_ascii()?;
        (self != other).then(|| self.0.cmp(&other.0))
    }
}

/// Which of a few keys comes at each place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranking([u8; Ranking::MOST_KEYS]);

impl Ranking {
    /// More keys are better sorted.
    pub const MOST_KEYS: usize = 16;

    /// Ranks keys whose prefixes are ASCII and tell them apart; `None` for any others.
    ///
    /// Each is compared with each, without a branch that depends on the outcome: a sort would
    /// guess every second branch wrong.
    #[inline]
    #[must_use]
    pub fn of(keys: impl ExactSizeIterator<Item = KeyPrefix>) -> Option<Self> {
        let count = keys.len();
        let mut prefixes = [0; Self::MOST_KEYS];
        if count > prefixes.len() {
            return None;
        }
        for (prefix, key) in prefixes.iter_mut().zip(keys) {
            *prefix = key.as_ascii()?;
        }
        let prefixes = prefixes.get(..count).unwrap_or(&prefixes);
        let mut ranking = Self([0; Self::MOST_KEYS]);
        let mut taken = 0_u32;
        for (index, prefix) in (0..).zip(prefixes) {
            let smaller = prefixes.iter().map(|other| usize::from(other < prefix));
            let place = smaller.sum::<usize>() % Self::MOST_KEYS;
            ranking.0[place] = index;
            taken |= 1 << place;
        }
        (taken.count_ones() as usize == count).then_some(ranking)
    }

    /// The index of the key that comes at this place.
    #[inline]
    #[must_use]
    pub fn at(&self, place: usize) -> usize {
        usize::from(self.0[place % Self::MOST_KEYS])
    }
}

/// Whether no byte of the key can make the two orders differ.
fn is_plain(key: &[u8]) -> bool {
    key.iter().all(|&byte| byte < FIRST_DISPUTED_BYTE)
}

/// `None` where the order of the bytes is right.
fn compare_from_first_difference(left: &[u8], right: &[u8]) -> Option<Ordering> {
    let same = left.iter().zip(right).take_while(|(l, r)| l == r).count();
    // The bytes before are equal, so both characters start at the same place.
    let start = (0..=same)
        .rev()
        .find(|&index| left.get(index).is_some_and(|&byte| !is_continuation(byte)))?;
    let left_units = Units::new(left.get(start..)?);
    let right_units = Units::new(right.get(start..)?);
    match left_units.cmp(right_units) {
        Ordering::Equal => None,
        order => Some(order),
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

/// The UTF-16 code units of WTF-8 text.
struct Units<'a> {
    rest: &'a [u8],
    low_surrogate: Option<u16>,
}

impl<'a> Units<'a> {
    fn new(rest: &'a [u8]) -> Self {
        Self {
            rest,
            low_surrogate: None,
        }
    }
}

impl Iterator for Units<'_> {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        if let Some(low) = self.low_surrogate.take() {
            return Some(low);
        }
        let (&first, mut rest) = self.rest.split_first()?;
        let (mut code_point, continuations) = match first {
            0..=0xBF => (u32::from(first), 0),
            0xC0..=0xDF => (u32::from(first & 0x1F), 1),
            0xE0..=0xEF => (u32::from(first & 0x0F), 2),
            0xF0..=0xFF => (u32::from(first & 0x07), 3),
        };
        for _ in 0..continuations {
            let Some((&next, after)) = rest.split_first() else {
                break;
            };
            code_point = code_point << 6 | u32::from(next & 0x3F);
            rest = after;
        }
        self.rest = rest;
        let Some(beyond) = code_point.checked_sub(0x1_0000) else {
            return Some(low_half(code_point));
        };
        self.low_surrogate = Some(0xDC00 | low_half(beyond & 0x3FF));
        Some(0xD800 | low_half(beyond >> 10 & 0x3FF))
    }
}

fn low_half(value: u32) -> u16 {
    (value & 0xFFFF) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(left: &str, right: &str) -> Ordering {
        left.encode_utf16().cmp(right.encode_utf16())
    }

    proptest! {
        #[test]
        fn keys_sort_by_utf16_units(left in "[a\u{7f}é\u{d7ff}\u{e000}\u{ffff}😀\u{10ffff}]{0,4}",
                                    right in "[a\u{7f}é\u{d7ff}\u{e000}\u{ffff}😀\u{10ffff}]{0,4}") {
            prop_assert_eq!(compare_keys(left.as_bytes(), right.as_bytes()), naive(&left, &right));
        }

        #[test]
        fn prefixes_decide_as_the_keys_do(left in "[a-c\u{0}é\u{ffff}😀]{0,10}", right in "[a-c\u{0}é\u{ffff}😀]{0,10}") {
            let order = KeyHead::of(left.as_bytes()).prefix().compare(KeyHead::of(right.as_bytes()).prefix());
            prop_assert!(order.is_none_or(|order| order == naive(&left, &right)));
        }

        #[test]
        fn a_ranking_is_the_order_of_the_keys(keys in proptest::collection::vec("[a-c]{1,4}|[a-z]{9}é?", 0..20)) {
            let prefixes = keys.iter().map(|key| KeyHead::of(key.as_bytes()).prefix());
            let ranking = Ranking::of(prefixes);
            let mut sorted = keys.clone();
            sorted.sort_by(|left, right| naive(left, right));
            if let Some(ranking) = ranking {
                let ranked: Vec<_> = (0..keys.len()).map(|place| keys[ranking.at(place)].clone()).collect();
                prop_assert_eq!(ranked, sorted);
            } else {
                let mut prefixes: Vec<_> = keys.iter().map(|key| key.get(..8).unwrap_or(key)).collect();
                prefixes.sort_unstable();
                prefixes.dedup();
                prop_assert!(keys.len() > Ranking::MOST_KEYS || prefixes.len() < keys.len());
            }
        }

        #[test]
        fn any_bytes_have_an_order(left in any::<Vec<u8>>(), right in any::<Vec<u8>>()) {
            let order = compare_keys(&left, &right);
            prop_assert_eq!(order == Ordering::Equal, left == right);
        }
    }

    #[test]
    fn lone_surrogates_sort_as_their_units() {
        let lone_low = b"\xED\xB0\x80"; // U+DC00
        assert_eq!(compare_keys("😀".as_bytes(), lone_low), Ordering::Less);
        assert_eq!(
            compare_keys(lone_low, "\u{e000}".as_bytes()),
            Ordering::Less
        );
    }
}
