//! Long strings: a sample of their pairs of words.
//!
//! A text is the multiset of its words, each with the word before it (see [`crate::word`]). The
//! n-th occurrence of a pair is an element of its own, and each element has a hash; the sketch
//! keeps the elements with the smallest ones (bottom-k sampling: Cohen and Kaplan 2007,
//! "Summarizing data using bottom-k sketches"), each with the length of its word. The same
//! elements of two texts are in both samples or in neither, so the common share of the sampled
//! characters estimates that of all.
//!
//! From there to Indel similarity: when a share `w` of the words is alike, so is `w * w` of the
//! pairs, and words that are not alike still have letters in common.

use crate::bytes::{Bytes, count_byte, push_varint};
use crate::hash::{hash, mix};
use crate::numbers::{Number, Numbers, top_half};
use crate::text::character_count;
use crate::word::for_each_word;

/// Most elements that any sample has.
pub(crate) const MAX_SAMPLE: usize = 64;

/// Bytes of one element in a packed sample.
const ELEMENT_BYTES: usize = 3;

/// A sample of so many words goes with one number that is told apart.
const WORDS_A_NUMBER: usize = 8;

/// Set beside the count of a sample that does not hold all elements.
const IS_PARTIAL: u8 = 0x80;

/// Indel similarity of unrelated texts in per cent, as measured: of English and code 40 to 50, of
/// Chinese, where characters are many, below 10.
const UNRELATED_ASCII: usize = 40;
const UNRELATED_OTHER: usize = 10;

/// What is kept of a long string.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a> {
    /// How many characters the text has.
    characters: u64,
    /// Differs for different texts.
    identity: u32,
    /// Similarity to unrelated texts, in per cent.
    unrelated: u8,
    sample: Sample<'a>,
}

/// Elements by ascending hash.
#[derive(Clone, Copy, Debug)]
struct Sample<'a> {
    /// Whether there are more elements, all with larger hashes.
    is_partial: bool,
    /// How many leading bits of the hashes, all zero, are not kept; the next 16 are.
    shift: u8,
    /// Of each element the 16 bits, and the characters of its word.
    elements: &'a [u8],
}

/// One occurrence of a pair of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Element {
    hash: u64,
    characters: u8,
}

impl<'a> Words<'a> {
    /// Appends what is kept of a text, with a sample of at most `most` elements. Linear.
    pub(crate) fn write(text: &[u8], most: usize, bytes: &mut Vec<u8>) {
        let characters = character_count(text);
        push_varint(bytes, characters as u64);
        bytes.extend_from_slice(&top_half(hash(2, text)).to_le_bytes());
        bytes.push(count_byte(unrelated(text, characters)));
        let mut numbers = Numbers::in_text(text);
        numbers.keep(most / WORDS_A_NUMBER);
        bytes.extend_from_slice(&numbers.mask.to_le_bytes());
        bytes.push(count_byte(numbers.values.len()));
        for number in numbers.values {
            number.write_to(bytes);
        }
        write_sample(text, most.clamp(1, MAX_SAMPLE), bytes);
    }

    /// Reads what [`Self::write`] wrote, and the numbers of the text when they are wanted.
    pub(crate) fn read(bytes: &mut Bytes<'a>, mut numbers: Option<&mut Numbers>) -> Option<Self> {
        let characters = bytes.varint()?;
        let identity = bytes.u32()?;
        let unrelated = bytes.byte().filter(|&per_cent| per_cent <= 100)?;
        let mask = bytes.u32()?;
        if let Some(numbers) = numbers.as_deref_mut() {
            numbers.mask = mask;
        }
        for _ in 0..bytes.byte()? {
            let number = Number::read_from(bytes)?;
            if let Some(numbers) = numbers.as_deref_mut() {
                numbers.values.push(number);
            }
        }
        let shift = bytes.byte().filter(|&shift| shift <= 48)?;
        let count = bytes.byte()?;
        let elements = bytes.take(usize::from(count & !IS_PARTIAL) * ELEMENT_BYTES)?;
        Some(Self {
            characters,
            identity,
            unrelated,
            sample: Sample {
                is_partial: count & IS_PARTIAL != 0,
                shift,
                elements,
            },
        })
    }

    /// How many characters the text has.
    pub(crate) fn characters(&self) -> usize {
        usize::try_from(self.characters).unwrap_or(usize::MAX)
    }

    /// Estimated Indel similarity: 1 exactly for the same text, else less.
    #[allow(clippy::cast_precision_loss)] // an estimate
    pub(crate) fn similarity(&self, other: &Self) -> f64 {
        if self.identity == other.identity && self.characters == other.characters {
            return 1.0;
        }
        let shorter = self.characters.min(other.characters) as f64;
        let total = (self.characters as f64 + other.characters as f64).max(1.0);
        let unrelated = f64::from(self.unrelated.min(other.unrelated)) / 100.0;
        let words = self.sample.common_share(&other.sample).sqrt();
        let estimate = unrelated + (1.0 - unrelated) * words;
        // Neither more than if the longer text held all of the shorter, nor than one character
        // apart.
        estimate.min(2.0 * shorter / total).min(1.0 - 1.0 / total)
    }

    /// The same for a text that was kept as it is.
    pub(crate) fn similarity_to_text(&self, text: &[u8]) -> f64 {
        let mut packed = Vec::new();
        Words::write(text, MAX_SAMPLE, &mut packed);
        Words::read(&mut Bytes(&packed), None).map_or(0.0, |words| self.similarity(&words))
    }
}

/// Similarity to unrelated texts, in per cent.
fn unrelated(text: &[u8], characters: usize) -> usize {
    let continuations = text.len() - characters;
    // Characters beyond ASCII have one continuation byte or more.
    let ascii = characters.saturating_sub(continuations);
    (UNRELATED_ASCII * ascii + UNRELATED_OTHER * (characters - ascii)) / characters.max(1)
}

impl Sample<'_> {
    /// The elements as numbers, their kept bits less the last `coarser` above the characters of
    /// their words; the largest number behind the last.
    fn elements(&self, coarser: u32) -> [u32; MAX_SAMPLE + 1] {
        let mut elements = [u32::MAX; MAX_SAMPLE + 1];
        let mut packed = self.elements;
        for element in elements.iter_mut().take(MAX_SAMPLE) {
            let Some((&[low, high, characters], rest)) = packed.split_first_chunk() else {
                break;
            };
            let bits = u32::from(u16::from_le_bytes([low, high])) >> coarser;
            *element = bits << 8 | u32::from(characters);
            packed = rest;
        }
        elements
    }

    /// Where knowledge ends: elements from this one on may be missing.
    fn end(&self, coarser: u32) -> u32 {
        match self.elements.last_chunk::<ELEMENT_BYTES>() {
            Some(&[low, high, _]) if self.is_partial => {
                let last = u32::from(u16::from_le_bytes([low, high]));
                (last >> coarser) << 8
            }
            _ => u32::MAX,
        }
    }

    /// The share of the characters that is in common elements, among those that both samples
    /// would hold.
    fn common_share(&self, other: &Self) -> f64 {
        // The sample with the larger shift keeps bits that the other does not have.
        let left_coarser = u32::from(self.shift.saturating_sub(other.shift).min(16));
        let right_coarser = u32::from(other.shift.saturating_sub(self.shift).min(16));
        let end = self.end(left_coarser).min(other.end(right_coarser));
        let left = self.elements(left_coarser);
        let right = other.elements(right_coarser);
        let (mut common, mut total) = (0, 0);
        let (mut at, mut right_at) = (0, 0);
        // No step depends on a guess which side is ahead.
        while let (Some(&l), Some(&r)) = (left.get(at), right.get(right_at))
            && l.min(r) < end
        {
            let least = l.min(r);
            let characters = least & 0xFF;
            let (is_left, is_right) = (l == least, r == least);
            let sides = u32::from(is_left) + u32::from(is_right);
            total += characters * sides;
            common += characters * (sides & 2);
            at += usize::from(is_left);
            right_at += usize::from(is_right);
        }
        f64::from(common) / f64::from(total.max(1))
    }
}

fn write_sample(text: &[u8], most: usize, bytes: &mut Vec<u8>) {
    let mut sampler = Sampler::new(most);
    let mut occurrences = Occurrences::new(text.len());
    let mut before = 0_u64;
    for_each_word(text, |word, word_hash| {
        let pair = before.rotate_left(29).wrapping_add(word_hash);
        before = word_hash;
        let hash = match occurrences.count(pair) {
            0 => pair,
            more => mix(pair, u64::from(more)),
        };
        sampler.add(hash, word);
    });
    let is_partial = sampler.finish();
    let largest = sampler.elements.last().map_or(0, |element| element.hash);
    let shift = if is_partial {
        largest.leading_zeros().min(48)
    } else {
        0
    };
    bytes.push((shift & 0x3F) as u8);
    let partial = if is_partial { IS_PARTIAL } else { 0 };
    bytes.push(count_byte(sampler.elements.len()) | partial);
    for element in &sampler.elements {
        let kept = (element.hash >> (48 - shift) & 0xFFFF) as u16;
        bytes.extend_from_slice(&kept.to_le_bytes());
        bytes.push(element.characters);
    }
}

/// How often each pair was met so far.
///
/// Open addressing; a pair that finds no slot near its own, in a text with very many, counts as
/// met for the first time.
struct Occurrences {
    /// Half a word of the pair's hash, then how often it was met; 0 is free.
    slots: Vec<u32>,
}

impl Occurrences {
    const MOST_SLOTS: usize = 1 << 14;
    const NEAR: usize = 8;

    fn new(text_length: usize) -> Self {
        // A text of that length has about two thirds as many words.
        let slots = (text_length / 4).next_power_of_two();
        Self {
            slots: vec![0; slots.clamp(64, Self::MOST_SLOTS)],
        }
    }

    /// How often the pair was met before.
    #[inline]
    fn count(&mut self, pair: u64) -> u32 {
        const COUNT: u32 = 0xFFFF;
        let tag = (pair & 0xFFFF_0000) as u32;
        let mask = self.slots.len() - 1;
        let mut index = (pair & 0xFFFF) as usize & mask;
        for _ in 0..Self::NEAR {
            let Some(slot) = self.slots.get_mut(index) else {
                break;
            };
            if *slot == 0 {
                *slot = tag | 1;
                return 0;
            }
            if *slot & !COUNT == tag {
                let count = *slot & COUNT;
                *slot = tag | (count + 1).min(COUNT);
                return count;
            }
            index = (index + 1) & mask;
        }
        0
    }
}

/// Keeps the elements with the smallest hashes.
struct Sampler {
    most: usize,
    /// Up to twice `most`, then cut back to it.
    elements: Vec<Element>,
    /// Elements from this hash on are not among the smallest.
    end: u64,
    has_dropped: bool,
}

impl Sampler {
    fn new(most: usize) -> Self {
        Self {
            most,
            elements: Vec::with_capacity(2 * most),
            end: u64::MAX,
            has_dropped: false,
        }
    }

    #[inline]
    fn add(&mut self, hash: u64, word: &[u8]) {
        if hash >= self.end {
            self.has_dropped = true;
            return;
        }
        self.elements.push(Element {
            hash,
            characters: count_byte(character_count(word)),
        });
        if self.elements.len() == 2 * self.most {
            self.cut_back();
        }
    }

    fn cut_back(&mut self) {
        if self.elements.len() <= self.most {
            return;
        }
        let (_, first_dropped, _) = self.elements.select_nth_unstable(self.most);
        self.end = first_dropped.hash;
        self.has_dropped = true;
        self.elements.truncate(self.most);
    }

    /// Sorts what is kept; true if it is not all.
    fn finish(&mut self) -> bool {
        self.cut_back();
        self.elements.sort_unstable();
        self.has_dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn packed(text: &str, most: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        Words::write(text.as_bytes(), most, &mut bytes);
        bytes
    }

    fn share(one: &[u8], other: &[u8]) -> f64 {
        let [one, other] = [one, other].map(|bytes| Words::read(&mut Bytes(bytes), None).unwrap());
        one.sample.common_share(&other.sample)
    }

    /// The share over all pairs of words, counted.
    #[allow(clippy::cast_precision_loss)] // short texts
    fn naive_share(one: &str, other: &str) -> f64 {
        let [one, other] = [one, other].map(|text| {
            let mut pairs: HashMap<(String, String), usize> = HashMap::new();
            let mut before = String::new();
            for_each_word(text.as_bytes(), |word, _| {
                let word = String::from_utf8(word.to_vec()).unwrap();
                let before = std::mem::replace(&mut before, word.clone());
                *pairs.entry((before, word)).or_default() += 1;
            });
            pairs
        });
        let length = |pair: &(String, String)| pair.1.chars().count();
        let size = |pairs: &HashMap<(String, String), usize>| -> usize {
            pairs.iter().map(|(pair, count)| length(pair) * count).sum()
        };
        let common: usize = one
            .iter()
            .map(|(pair, count)| length(pair) * count.min(other.get(pair).unwrap_or(&0)))
            .sum();
        2.0 * common as f64 / (size(&one) + size(&other)).max(1) as f64
    }

    proptest! {
        #[test]
        fn texts_of_few_words_are_compared_whole(one in "([a-c]{1,3} ){20,31}", other in "([a-c]{1,3} ){20,31}") {
            let found = share(&packed(&one, 64), &packed(&other, 64));
            // Once in a hundred times two of the 16-bit hashes are the same.
            prop_assert!((found - naive_share(&one, &other)).abs() < 0.15);
        }

        #[test]
        fn a_sample_estimates_the_whole(
            text in proptest::collection::vec("[a-z]{3,8}", 400..900),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), "[A-Z]{3,8}"), 0..200),
        ) {
            let mut changed = text.clone();
            for (at, word) in changes {
                *at.get_mut(&mut changed) = word;
            }
            let [text, changed] = [text, changed].map(|words| words.join(" "));
            let found = share(&packed(&text, 64), &packed(&changed, 64));
            // Four standard deviations of a share of 64 elements.
            prop_assert!((found - naive_share(&text, &changed)).abs() < 0.25);
            let coarse = share(&packed(&text, 16), &packed(&changed, 64));
            prop_assert!((coarse - naive_share(&text, &changed)).abs() < 0.5);
        }
    }

    #[test]
    fn the_same_words_many_times_are_counted() {
        let [one, other] = [8000, 10_000].map(|count| packed(&"again and ".repeat(count), 64));
        assert!((share(&one, &other) - 0.889).abs() < 0.1);
    }

    #[test]
    fn texts_of_very_different_length_are_compared_without_harm() {
        let short = packed("a few words, no more than a few", 64);
        let long = packed(&"many words that are not a few ".repeat(5000), 64);
        assert!(share(&short, &long) < 0.3);
    }

    #[test]
    fn unrelated_texts_share_letters_and_no_characters_of_chinese() {
        assert_eq!(unrelated(b"plain text", 10), 40);
        assert_eq!(unrelated("天地玄黄".as_bytes(), 4), 10);
        assert_eq!(unrelated(b"", 0), 0);
    }
}
