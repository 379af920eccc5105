//! Exact Indel similarity of short strings.
//!
//! Indel distance counts the characters to delete and to insert: `length a + length b - 2 LCS`.
//! The longest common subsequence (LCS) is found a whole column at a time in the bits of one
//! word (Hyyrö 2004, "Bit-parallel LCS-length computation revisited").

/// The longest text, in bytes, that is compared exactly.
pub(crate) const MAX_TEXT: usize = 127;

/// `1 - Indel distance / total length`, by characters; 1 for two empty strings.
///
/// Both texts must be at most [`MAX_TEXT`] bytes of WTF-8; what is beyond is not looked at.
pub(crate) fn similarity(left: &[u8], right: &[u8]) -> f64 {
    if left.is_ascii() && right.is_ascii() {
        return of_symbols(left, right, |&byte| u32::from(byte));
    }
    let (mut left_buffer, mut right_buffer) = ([0; MAX_TEXT], [0; MAX_TEXT]);
    let left = decode(left, &mut left_buffer);
    let right = decode(right, &mut right_buffer);
    of_symbols(left, right, |&character| character)
}

/// How many characters a text (WTF-8) has.
pub(crate) fn character_count(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| !is_continuation(byte)).count()
}

pub(crate) fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

fn decode<'a>(text: &[u8], buffer: &'a mut [u32; MAX_TEXT]) -> &'a [u32] {
    let mut length = 0;
    for &byte in text {
        if is_continuation(byte) {
            // Each character is the number that its bytes spell: all that equality needs.
            if let Some(character) = buffer.get_mut(length.max(1) - 1) {
                *character = *character << 8 | u32::from(byte);
            }
        } else if let Some(character) = buffer.get_mut(length) {
            *character = u32::from(byte);
            length += 1;
        }
    }
    buffer.get(..length).unwrap_or_default()
}

#[allow(clippy::cast_precision_loss)] // short lengths
fn of_symbols<T: PartialEq>(left: &[T], right: &[T], code: impl Fn(&T) -> u32 + Copy) -> f64 {
    let total = left.len() + right.len();
    if total == 0 {
        return 1.0;
    }
    let common = common_subsequence(left, right, code);
    (2 * common) as f64 / total as f64
}

fn common_subsequence<T: PartialEq>(
    left: &[T],
    right: &[T],
    code: impl Fn(&T) -> u32 + Copy,
) -> usize {
    let prefix = left.iter().zip(right).take_while(|(l, r)| l == r).count();
    let left = left.get(prefix..).unwrap_or_default();
    let right = right.get(prefix..).unwrap_or_default();
    let pairs_from_end = left.iter().rev().zip(right.iter().rev());
    let suffix = pairs_from_end.take_while(|(l, r)| l == r).count();
    let left = left.get(..left.len() - suffix).unwrap_or_default();
    let right = right.get(..right.len() - suffix).unwrap_or_default();
    let (short, long) = if left.len() <= right.len() {
        (left, right)
    } else {
        (right, left)
    };
    let middle = match short.len() {
        0 => 0,
        1..=64 => in_one_word(short, long, code),
        _ => in_two_words(short, long, code),
    };
    prefix + suffix + middle
}

/// Where each symbol of a text stands: a bit a place. Symbols share slots by open addressing.
struct Places<W> {
    codes: [u32; SLOTS],
    places: [W; SLOTS],
}

/// More than twice the distinct symbols of the longest text.
const SLOTS: usize = 256;

/// No symbol's code: WTF-8 has no byte 0xFF.
const FREE: u32 = u32::MAX;

impl<W: Copy + Default> Places<W> {
    fn new() -> Self {
        Self {
            codes: [FREE; SLOTS],
            places: [W::default(); SLOTS],
        }
    }

    /// The slot of a symbol, or the free one where it belongs.
    fn slot(&self, code: u32) -> usize {
        let mut slot = (code.wrapping_mul(0x9E37_79B9) >> 24) as usize;
        for _ in 0..SLOTS {
            let found = self.codes.get(slot).copied().unwrap_or(FREE);
            if found == code || found == FREE {
                break;
            }
            slot = (slot + 1) % SLOTS;
        }
        slot
    }

    fn places_of(&self, code: u32) -> W {
        self.places
            .get(self.slot(code))
            .copied()
            .unwrap_or_default()
    }

    fn place_mut(&mut self, code: u32) -> Option<&mut W> {
        let slot = self.slot(code);
        if let Some(found) = self.codes.get_mut(slot) {
            *found = code;
        }
        self.places.get_mut(slot)
    }
}

fn in_one_word<T>(short: &[T], long: &[T], code: impl Fn(&T) -> u32) -> usize {
    let mut places = Places::<u64>::new();
    for (place, symbol) in short.iter().enumerate() {
        if let Some(bits) = places.place_mut(code(symbol)) {
            *bits |= 1 << place;
        }
    }
    let unmatched = long.iter().fold(u64::MAX, |row, symbol| {
        let matches = row & places.places_of(code(symbol));
        row.wrapping_add(matches) | (row - matches)
    });
    unmatched.count_zeros() as usize
}

fn in_two_words<T>(short: &[T], long: &[T], code: impl Fn(&T) -> u32) -> usize {
    let mut places = Places::<u128>::new();
    for (place, symbol) in short.iter().enumerate() {
        if let Some(bits) = places.place_mut(code(symbol)) {
            *bits |= 1 << place;
        }
    }
    let unmatched = long.iter().fold(u128::MAX, |row, symbol| {
        let matches = row & places.places_of(code(symbol));
        row.wrapping_add(matches) | (row - matches)
    });
    unmatched.count_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Indel similarity by the table of dynamic programming.
    #[allow(clippy::cast_precision_loss)] // short lengths
    fn naive(left: &str, right: &str) -> f64 {
        let (left, right): (Vec<char>, Vec<char>) =
            (left.chars().collect(), right.chars().collect());
        let mut row = vec![0_usize; right.len() + 1];
        for l in &left {
            let mut diagonal = 0;
            for (at, r) in right.iter().enumerate() {
                let above = row[at + 1];
                row[at + 1] = if l == r {
                    diagonal + 1
                } else {
                    above.max(row[at])
                };
                diagonal = above;
            }
        }
        let total = left.len() + right.len();
        if total == 0 {
            1.0
        } else {
            2.0 * row[right.len()] as f64 / total as f64
        }
    }

    proptest! {
        #[test]
        fn similarity_equals_the_naive_table(left in "[abc é😀]{0,31}", right in "[abc é😀]{0,31}") {
            let found = similarity(left.as_bytes(), right.as_bytes());
            prop_assert!((found - naive(&left, &right)).abs() < 1e-12);
        }

        #[test]
        fn long_texts_equal_the_naive_table(left in "[a-h]{60,127}", right in "[a-h]{60,127}") {
            let found = similarity(left.as_bytes(), right.as_bytes());
            prop_assert!((found - naive(&left, &right)).abs() < 1e-12);
        }

        #[test]
        fn any_bytes_have_a_similarity(left in any::<[u8; 32]>(), right in any::<[u8; 32]>()) {
            let found = similarity(&left, &right);
            prop_assert!((0.0..=1.0).contains(&found));
            prop_assert!((found - similarity(&right, &left)).abs() < 1e-12);
        }
    }
}
