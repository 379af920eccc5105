//! Long strings: a sample of their words.
//!
//! A text is the multiset of its words (runs of letters and digits with what separates them from
//! the next; long runs and text without spaces are cut where their content says so). Its n-th
//! "the" is an element of its own, and each element has a hash; the sketch keeps the elements with
//! the smallest ones (bottom-k sampling: Cohen and Kaplan 2007, "Summarizing data using bottom-k
//! sketches"), each with its length in characters. The same elements of two texts are in both
//! samples or in none, so the share of the characters sampled in both estimates
//! `2 * common / total` without bias, and up to k words it is no estimate.

use crate::bytes::{Bytes, count_byte, push_varint};
use crate::hash::{hash, mix};
use crate::numbers::{Number, Numbers, top_half};
use crate::text::{character_count, is_continuation};

/// Most elements that any sample has.
pub(crate) const MAX_SAMPLE: usize = 64;

/// Bytes of one element in a packed sample.
const ELEMENT_BYTES: usize = 3;

/// A sample of so many words goes with one number that is told apart.
const WORDS_A_NUMBER: usize = 8;

/// Set beside the count of a sample that does not hold all elements.
const IS_PARTIAL: u8 = 0x80;

/// What is kept of a long string.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a> {
    /// How many characters the text has.
    characters: u64,
    /// Differs for different texts.
    identity: u32,
    sample: Sample<'a>,
}

/// Elements by ascending hash.
#[derive(Clone, Copy, Debug)]
struct Sample<'a> {
    /// Whether there are more elements, all with larger hashes.
    is_partial: bool,
    /// How many leading bits of the hashes, all zero, are not kept; the next 16 are.
    shift: u8,
    /// Of each element the 16 bits and its length in characters.
    elements: &'a [u8],
}

/// One element of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Element {
    hash: u64,
    characters: u8,
}

impl<'a> Words<'a> {
    /// Appends what is kept of a text, with a sample of at most `most` elements. Linear.
    pub(crate) fn write(text: &[u8], most: usize, bytes: &mut Vec<u8>) {
        push_varint(bytes, character_count(text) as u64);
        bytes.extend_from_slice(&identity(text).to_le_bytes());
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
        let sample = Sample {
            is_partial: count & IS_PARTIAL != 0,
            shift,
            elements,
        };
        sample.is_sorted().then_some(Self {
            characters,
            identity,
            sample,
        })
    }

    /// Estimated similarity: 1 exactly for the same text, else less.
    #[allow(clippy::cast_precision_loss)] // an estimate
    pub(crate) fn similarity(&self, other: &Self) -> f64 {
        let (short, long) = (
            self.characters.min(other.characters) as f64,
            self.characters.max(other.characters) as f64,
        );
        if self.identity == other.identity && self.characters == other.characters {
            return 1.0;
        }
        let total = (short + long).max(1.0);
        let one_apart = 1.0 - 1.0 / total;
        let all_of_the_shorter = 2.0 * short / total;
        let estimate = self.sample.similarity(&other.sample);
        estimate.min(all_of_the_shorter).min(one_apart)
    }
}

impl Words<'_> {
    /// How many characters the text has.
    pub(crate) fn characters(&self) -> usize {
        usize::try_from(self.characters).unwrap_or(usize::MAX)
    }

    /// The same for a text that was kept as it is.
    pub(crate) fn similarity_to_text(&self, text: &[u8]) -> f64 {
        let mut packed = Vec::new();
        Words::write(text, MAX_SAMPLE, &mut packed);
        Words::read(&mut Bytes(&packed), None).map_or(0.0, |words| self.similarity(&words))
    }
}

/// Differs for different texts.
fn identity(text: &[u8]) -> u32 {
    top_half(hash(2, text))
}

impl Sample<'_> {
    fn is_sorted(&self) -> bool {
        self.iter(0).is_sorted_by_key(|(hash, _)| hash)
    }

    /// The elements' kept bits less the last `coarser`, and their lengths.
    fn iter(&self, coarser: u32) -> impl Iterator<Item = (u16, u8)> {
        self.elements
            .chunks_exact(ELEMENT_BYTES)
            .map(move |element| match *element {
                [low, high, characters] => {
                    let bits = u16::from_le_bytes([low, high]);
                    (bits.checked_shr(coarser).unwrap_or(0), characters)
                }
                _ => (0, 0),
            })
    }

    /// Where knowledge ends: elements from this hash on may be missing.
    fn end(&self, coarser: u32) -> u32 {
        match self.iter(coarser).last() {
            Some((last, _)) if self.is_partial => u32::from(last),
            _ => u32::MAX,
        }
    }

    /// The characters of common elements, twice, by those of all: among the elements that both
    /// samples would hold.
    fn similarity(&self, other: &Self) -> f64 {
        // The sample with the larger shift keeps bits that the other does not have.
        let left_coarser = u32::from(self.shift.saturating_sub(other.shift));
        let right_coarser = u32::from(other.shift.saturating_sub(self.shift));
        let end = self.end(left_coarser).min(other.end(right_coarser));
        let is_known = |(hash, _): &(u16, u8)| u32::from(*hash) < end;
        let mut left = self.iter(left_coarser).take_while(is_known).peekable();
        let mut right = other.iter(right_coarser).take_while(is_known).peekable();
        let (mut common, mut total) = (0_u32, 0_u32);
        loop {
            match (left.peek().copied(), right.peek().copied()) {
                (None, None) => break,
                (Some(l), Some(r)) if l == r => {
                    common += u32::from(l.1);
                    total += 2 * u32::from(l.1);
                    left.next();
                    right.next();
                }
                (Some(l), r) if r.is_none_or(|r| l < r) => {
                    total += u32::from(l.1);
                    left.next();
                }
                (_, r) => {
                    total += r.map_or(0, |(_, characters)| u32::from(characters));
                    right.next();
                }
            }
        }
        if total == 0 {
            return 0.0;
        }
        f64::from(2 * common) / f64::from(total)
    }
}

fn write_sample(text: &[u8], most: usize, bytes: &mut Vec<u8>) {
    let mut sampler = Sampler::new(text.len(), most);
    let mut rest = text;
    while !rest.is_empty() {
        let (word, after) = rest.split_at(word_length(rest).clamp(1, rest.len()));
        sampler.add(word);
        rest = after;
    }
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

/// Keeps the elements with the smallest hashes.
struct Sampler {
    most: usize,
    /// Up to twice `most`, then cut back to it.
    elements: Vec<Element>,
    /// Elements from this hash on are not among the smallest.
    end: u64,
    has_dropped: bool,
    /// How often words were met; words that share a slot are counted together.
    occurrences: Vec<u16>,
}

impl Sampler {
    fn new(text_length: usize, most: usize) -> Self {
        // Twice as many slots as a text of that length usually has words.
        let slots = (text_length / 3).next_power_of_two().clamp(64, 1 << 16);
        Self {
            most,
            elements: Vec::with_capacity(2 * most),
            end: u64::MAX,
            has_dropped: false,
            occurrences: vec![0; slots],
        }
    }

    #[inline]
    fn add(&mut self, word: &[u8]) {
        let word_hash = hash(3, word);
        let slot = (word_hash >> 48) as usize & (self.occurrences.len() - 1);
        let Some(occurrence) = self.occurrences.get_mut(slot) else {
            return;
        };
        let hash = mix(word_hash, u64::from(*occurrence));
        *occurrence = occurrence.wrapping_add(1);
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

/// The longest run of letters and digits that is one word.
const LONGEST_RUN: usize = 16;

/// The most separators that belong to the word before them.
const MOST_SEPARATORS: usize = 8;

/// How long the first word of a text is, in bytes: at most 32.
fn word_length(text: &[u8]) -> usize {
    let run = match text.first() {
        Some(&first) if is_word_byte(first) => run_length(text),
        Some(&first) if first >= 0x80 => foreign_length(text),
        _ => 0,
    };
    let separators = text
        .iter()
        .skip(run)
        .take(MOST_SEPARATORS)
        .take_while(|&&byte| !is_word_byte(byte) && byte < 0x80)
        .count();
    run + separators
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// A run of letters and digits, cut where its content says so if it is long.
fn run_length(text: &[u8]) -> usize {
    let run = text
        .iter()
        .take(LONGEST_RUN + 1)
        .take_while(|&&byte| is_word_byte(byte))
        .count();
    if run <= LONGEST_RUN {
        return run;
    }
    let cut = text.windows(2).take(LONGEST_RUN - 1).position(|pair| {
        mix(
            pair.iter()
                .fold(0, |bits, &byte| bits << 8 | u64::from(byte)),
            0,
        ) % 8
            == 0
    });
    cut.map_or(LONGEST_RUN, |at| at + 2)
}

/// A run of other characters than ASCII, most of which are words or parts of words in scripts
/// without spaces: cut after every second one on average.
fn foreign_length(text: &[u8]) -> usize {
    const MOST_CHARACTERS: usize = 4;
    let mut length = 0;
    for _ in 0..MOST_CHARACTERS {
        let rest = text.get(length..).unwrap_or_default();
        if rest.first().is_none_or(|&byte| byte < 0x80) {
            break;
        }
        let more = rest
            .iter()
            .skip(1)
            .take(3)
            .take_while(|&&byte| is_continuation(byte))
            .count();
        let character = rest.get(..=more).unwrap_or(rest);
        length += character.len();
        if hash(4, character) % 2 == 0 {
            break;
        }
    }
    length
}
