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
        return of_symbols(left, right, &mut AsciiPlaces::default());
    }
    let (mut left_buffer, mut right_buffer) = ([0; MAX_TEXT], [0; MAX_TEXT]);
    let left = decode(left, &mut left_buffer);
    let right = decode(right, &mut right_buffer);
    of_symbols(left, right, &mut CharacterPlaces::default())
}

/// How many characters a text (WTF-8) has.
pub(crate) fn character_count(text: &[u8]) -> usize {
    if text.is_ascii() {
        return text.len();
    }
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
fn of_symbols<T: Copy + PartialEq>(left: &[T], right: &[T], places: &mut impl Places<T>) -> f64 {
    let total = left.len() + right.len();
    if total == 0 {
        return 1.0;
    }
    let common = common_subsequence(left, right, places);
    (2 * common) as f64 / total as f64
}

/// The length of the longest common subsequence: what is common at both ends is part of one.
fn common_subsequence<T: Copy + PartialEq>(
    left: &[T],
    right: &[T],
    places: &mut impl Places<T>,
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
    let first = short.get(..WORD).unwrap_or(short);
    let second = short.get(WORD..).unwrap_or_default();
    let middle = match (first, second) {
        ([], _) => 0,
        (_, []) => in_one_word(first, long, places),
        _ => in_two_words(first, second, long, places),
    };
    prefix + suffix + middle
}

/// Symbols to a word of the processor, a bit each.
const WORD: usize = 64;

/// The column of bits after the one before: a 0 stays where a match is counted.
#[inline]
fn next_column(column: u64, matches: u64) -> u64 {
    let matches = column & matches;
    column.wrapping_add(matches) | (column - matches)
}

fn in_one_word<T: Copy>(short: &[T], long: &[T], places: &mut impl Places<T>) -> usize {
    places.mark(short);
    let unmatched = long.iter().fold(u64::MAX, |column, &symbol| {
        next_column(column, places.of(symbol))
    });
    unmatched.count_zeros() as usize
}

/// The same for a longer text: what the first word carries goes into the second. The places of
/// both are looked up in turn, over two passes.
fn in_two_words<T: Copy>(
    first: &[T],
    second: &[T],
    long: &[T],
    places: &mut impl Places<T>,
) -> usize {
    let mut first_matches = [0; MAX_TEXT];
    places.mark(first);
    for (matches, &symbol) in first_matches.iter_mut().zip(long) {
        *matches = places.of(symbol);
    }
    places.clear(first);
    places.mark(second);
    let columns = long.iter().zip(&first_matches);
    let (low, high) = columns.fold((u64::MAX, u64::MAX), |(low, high), (&symbol, &matches)| {
        let low_matches = low & matches;
        let (sum, carries) = low.overflowing_add(low_matches);
        let high_matches = high & places.of(symbol);
        let high_sum = high.wrapping_add(high_matches);
        (
            sum | (low - low_matches),
            high_sum.wrapping_add(u64::from(carries)) | (high - high_matches),
        )
    });
    (low.count_zeros() + high.count_zeros()) as usize
}

/// Where each symbol stands in up to 64 symbols: a bit a place.
trait Places<T: Copy> {
    fn mark(&mut self, symbols: &[T]);
    fn clear(&mut self, symbols: &[T]);
    fn of(&self, symbol: T) -> u64;
}

struct AsciiPlaces([u64; 128]);

impl Default for AsciiPlaces {
    fn default() -> Self {
        Self([0; 128])
    }
}

impl Places<u8> for AsciiPlaces {
    #[inline]
    fn mark(&mut self, symbols: &[u8]) {
        for (place, &symbol) in symbols.iter().enumerate() {
            self.0[usize::from(symbol & 0x7F)] |= 1 << (place % WORD);
        }
    }

    #[inline]
    fn clear(&mut self, symbols: &[u8]) {
        for &symbol in symbols {
            self.0[usize::from(symbol & 0x7F)] = 0;
        }
    }

    #[inline]
    fn of(&self, symbol: u8) -> u64 {
        self.0[usize::from(symbol & 0x7F)]
    }
}

/// Slots by open addressing, more than twice as many as there are symbols.
struct CharacterPlaces {
    characters: [u32; SLOTS],
    places: [u64; SLOTS],
}

const SLOTS: usize = 256;

/// No character has this number: WTF-8 has no byte 0xFF.
const FREE: u32 = u32::MAX;

impl Default for CharacterPlaces {
    fn default() -> Self {
        Self {
            characters: [FREE; SLOTS],
            places: [0; SLOTS],
        }
    }
}

impl CharacterPlaces {
    /// The slot of a character, or the free one where it belongs.
    fn slot(&self, character: u32) -> usize {
        let mut slot = (character.wrapping_mul(0x9E37_79B9) >> 24) as usize % SLOTS;
        for _ in 0..SLOTS {
            let found = self.characters[slot];
            if found == character || found == FREE {
                break;
            }
            slot = (slot + 1) % SLOTS;
        }
        slot
    }
}

impl Places<u32> for CharacterPlaces {
    fn mark(&mut self, symbols: &[u32]) {
        for (place, &symbol) in symbols.iter().enumerate() {
            let slot = self.slot(symbol);
            self.characters[slot] = symbol;
            self.places[slot] |= 1 << (place % WORD);
        }
    }

    fn clear(&mut self, symbols: &[u32]) {
        for &symbol in symbols {
            self.places[self.slot(symbol)] = 0;
        }
    }

    fn of(&self, symbol: u32) -> u64 {
        self.places[self.slot(symbol)]
    }
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
