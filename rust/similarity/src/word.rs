//! Where the words of a text begin and end.
//!
//! A word is a run of letters and digits with the separators behind it. Its beginnings are found
//! 64 bytes at a time, as bits of a map; only what is longer than usual words, and text beyond
//! ASCII, is looked at byte by byte. A cut depends on a few bytes around it alone, so the words
//! away from an edit stay the same.

use crate::hash::{halves, hash, mix};
use crate::text::is_continuation;

/// The longest word, with its separators.
const LONGEST: usize = 16;

/// The most characters beyond ASCII that are one word.
const MOST_FOREIGN: usize = 4;

/// Calls `each` with the words of a text and their hashes; together they are the text. Linear.
#[inline]
pub(crate) fn for_each_word(text: &[u8], mut each: impl FnMut(&[u8], u64)) {
    let mut start = 0;
    let mut emit = |end: usize| {
        let stretch = text.get(start..end).unwrap_or_default();
        if stretch.len() <= LONGEST && stretch.first().is_none_or(u8::is_ascii) {
            each(stretch, word_hash(text, start, stretch.len()));
        } else {
            split_stretch(stretch, &mut each);
        }
        start = end;
    };
    let mut before = Classes::default();
    let mut at = 0;
    for_each_block(text, |block| {
        let classes = Classes::of(block);
        let mut beginnings = classes.beginnings_after(before);
        before = classes;
        while beginnings != 0 {
            let beginning = at + beginnings.trailing_zeros() as usize;
            beginnings &= beginnings - 1;
            if beginning > 0 {
                emit(beginning);
            }
        }
        at += BLOCK;
    });
    if !text.is_empty() {
        emit(text.len());
    }
}

/// How many bytes are looked at together: as many as a word of the processor has bits.
const BLOCK: usize = 64;

/// Calls `each` with the blocks of a text, the last one filled up with zeros.
#[inline]
fn for_each_block(text: &[u8], mut each: impl FnMut(&[u8; BLOCK])) {
    let mut rest = text;
    while let Some((block, after)) = rest.split_first_chunk() {
        each(block);
        rest = after;
    }
    if !rest.is_empty() {
        let mut block = [0; BLOCK];
        for (to, from) in block.iter_mut().zip(rest) {
            *to = *from;
        }
        each(&block);
    }
}

/// What the bytes of a block are, a bit a byte.
#[derive(Clone, Copy, Default)]
struct Classes {
    /// Letters, digits, underscores.
    word: u64,
    /// Bytes of characters beyond ASCII.
    foreign: u64,
}

impl Classes {
    #[inline]
    fn of(block: &[u8; BLOCK]) -> Self {
        let mut classes = Self::default();
        for index in 0..BLOCK / 8 {
            let eight = block.get(8 * index..).and_then(<[u8]>::first_chunk);
            let eight = eight.map_or(0, |eight| u64::from_le_bytes(*eight));
            let word = word_bytes(eight & !HIGH) & !eight;
            classes.word |= bits_of(word) << (8 * index);
            if eight & HIGH != 0 {
                classes.foreign |= bits_of(eight & HIGH) << (8 * index);
            }
        }
        classes
    }

    /// Where a run of one class begins, given the block before. Runs of separators belong to the
    /// run before them.
    #[inline]
    fn beginnings_after(self, before: Self) -> u64 {
        let beginnings = |bits: u64, before: u64| bits & !(bits << 1 | before >> 63);
        beginnings(self.word, before.word) | beginnings(self.foreign, before.foreign)
    }
}

const EACH: u64 = u64::from_le_bytes([1; 8]);
const HIGH: u64 = EACH << 7;

/// The high bit of each byte that is a letter, a digit or an underscore; all must be ASCII.
#[inline]
fn word_bytes(eight: u64) -> u64 {
    let from = |eight: u64, first: u8| eight + EACH * u64::from(0x80 - first);
    let lower = eight | (EACH * 0x20);
    let is_letter = from(lower, b'a') & !from(lower, b'z' + 1);
    let is_digit = from(eight, b'0') & !from(eight, b'9' + 1);
    let is_underscore = !((eight ^ (EACH * u64::from(b'_'))) + EACH * 0x7F);
    (is_letter | is_digit | is_underscore) & HIGH
}

/// The high bits of eight bytes, moved together.
#[inline]
fn bits_of(high_bits: u64) -> u64 {
    // The product puts bit i of the sum of places at 56 + i, without carries.
    (high_bits >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// The hash of a word of at most sixteen bytes.
#[inline]
fn word_hash(text: &[u8], start: usize, length: usize) -> u64 {
    let from_start = text.get(start..).unwrap_or_default();
    let (low, high) = match from_start.first_chunk() {
        Some(sixteen) => halves(sixteen),
        None => halves(&padded(from_start)),
    };
    let (keep_low, keep_high) = KEPT_BITS.get(length).copied().unwrap_or_default();
    let length = (length as u64).rotate_right(4);
    mix((low & keep_low) ^ length, high & keep_high)
}

#[inline(never)]
fn padded(text: &[u8]) -> [u8; LONGEST] {
    let mut padded = [0; LONGEST];
    for (to, from) in padded.iter_mut().zip(text) {
        *to = *from;
    }
    padded
}

/// For each length the bits of that many bytes, in two words.
const KEPT_BITS: [(u64, u64); LONGEST + 1] = {
    let mut bits = [(0, 0); LONGEST + 1];
    let mut length = 1;
    while length <= LONGEST {
        bits[length] = halves(&(u128::MAX >> (8 * (LONGEST - length))).to_le_bytes());
        length += 1;
    }
    bits
};

/// The words of a stretch that is long, or not ASCII: a run of one class, then separators.
#[inline(never)]
fn split_stretch(stretch: &[u8], each: &mut impl FnMut(&[u8], u64)) {
    let mut rest = stretch;
    while !rest.is_empty() {
        let length = if rest.first().is_some_and(|byte| !byte.is_ascii()) {
            foreign_length(rest)
        } else if is_long_run(rest) {
            cut_length(rest)
        } else {
            LONGEST
        };
        let (word, after) = rest.split_at(length.clamp(1, rest.len()));
        each(word, word_hash(word, 0, word.len()));
        rest = after;
    }
}

fn is_long_run(text: &[u8]) -> bool {
    let is_word_byte = |&byte: &u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.get(..=LONGEST)
        .is_some_and(|start| start.iter().all(is_word_byte))
}

/// The first piece of a run too long for a word of a language: about five bytes, cut where its
/// content says so.
fn cut_length(text: &[u8]) -> usize {
    let is_cut = |pair: &[u8]| hash(5, pair).is_multiple_of(4);
    let cut = text.windows(2).take(LONGEST - 1).position(is_cut);
    cut.map_or(LONGEST, |at| at + 2)
}

/// A run of characters beyond ASCII, most of which are words or parts of words in scripts without
/// spaces: cut after every second one on average.
fn foreign_length(text: &[u8]) -> usize {
    let mut length = 0;
    for _ in 0..MOST_FOREIGN {
        let rest = text.get(length..).unwrap_or_default();
        if rest.first().is_none_or(|&byte| byte < 0x80) {
            break;
        }
        let more = rest.iter().skip(1).take(3);
        let more = more.take_while(|&&byte| is_continuation(byte)).count();
        let character = rest.get(..=more).unwrap_or(rest);
        length += character.len();
        if hash(4, character).is_multiple_of(2) {
            break;
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(text: &[u8]) -> Vec<(Vec<u8>, u64)> {
        let mut pieces = Vec::new();
        for_each_word(text, |word, hash| pieces.push((word.to_vec(), hash)));
        pieces
    }

    fn words(text: &str) -> Vec<String> {
        let pieces = pieces(text.as_bytes()).into_iter();
        pieces
            .map(|(word, _)| String::from_utf8(word).unwrap())
            .collect()
    }

    /// Stretches between beginnings, byte by byte.
    fn naive(text: &[u8]) -> Vec<Vec<u8>> {
        let is_word_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let class = |byte: u8| (is_word_byte(byte), byte >= 0x80);
        let mut stretches: Vec<Vec<u8>> = Vec::new();
        let mut before = (false, false);
        for &byte in text {
            let is_beginning = class(byte) != before && class(byte) != (false, false);
            match stretches.last_mut() {
                Some(stretch) if !is_beginning => stretch.push(byte),
                _ => stretches.push(vec![byte]),
            }
            before = class(byte);
        }
        let mut words = Vec::new();
        for stretch in stretches {
            split_stretch(&stretch, &mut |word: &[u8], _| words.push(word.to_vec()));
        }
        words
    }

    #[test]
    fn words_keep_what_separates_them() {
        assert_eq!(
            words("def total(rows):\n    return 0"),
            ["def ", "total(", "rows):\n    ", "return ", "0"]
        );
        assert_eq!(words("  indented"), ["  ", "indented"]);
        assert_eq!(
            words("snake_case_name, etc."),
            ["snake_case_name,", " ", "etc."]
        );
        assert_eq!(
            words(&"=".repeat(40)),
            ["=".repeat(16), "=".repeat(16), "=".repeat(8)]
        );
    }

    proptest! {
        #[test]
        fn words_are_those_found_byte_by_byte(text in "[a-zA-Z_0-9 .,(@\\[`{/:\\^\\u{0}\\u{7f}é日本😀]{0,200}") {
            let pieces = pieces(text.as_bytes()).into_iter();
            prop_assert_eq!(pieces.map(|(word, _)| word).collect::<Vec<_>>(), naive(text.as_bytes()));
        }

        #[test]
        fn any_bytes_have_words_that_are_the_whole(bytes in any::<Vec<u8>>()) {
            let pieces: Vec<_> = pieces(&bytes);
            prop_assert_eq!(pieces.iter().flat_map(|(word, _)| word).copied().collect::<Vec<_>>(), bytes);
        }

        #[test]
        fn the_hash_of_a_word_does_not_depend_on_where_it_stands(word in "[a-z_]{1,24}[ ,é]{1,3}", before in "[A-Z]{0,80} ", after in "([A-Z]{9,20})?") {
            let alone = pieces(word.as_bytes());
            let within = pieces(format!("{before}{word}{after}").as_bytes());
            prop_assert!(within.windows(alone.len()).any(|window| window == alone));
        }

        #[test]
        fn words_away_from_an_edit_stay(before in "[a-z0-9]{200}", after in "[a-z0-9]{200}", edit in "[A-Z]{1,9}") {
            let [plain, edited] = [format!("{before}{after}"), format!("{before}{edit}{after}")]
                .map(|text| words(&text));
            let same = plain.iter().rev().zip(edited.iter().rev()).take_while(|(l, r)| l == r);
            prop_assert!(same.map(|(word, _)| word.len()).sum::<usize>() > 100);
        }
    }

    #[test]
    fn words_of_different_lengths_have_different_hashes() {
        let text = [b'a'; 16];
        let zeros = [0; 16];
        let hashes =
            (1..=16).flat_map(|length| [word_hash(&text, 0, length), word_hash(&zeros, 0, length)]);
        assert_eq!(hashes.collect::<std::collections::HashSet<_>>().len(), 32);
    }
}
