//! Bytes that are appended in small pieces.
//!
//! All memory is initialised beforehand, so a piece of up to sixteen bytes is one store of sixteen
//! at the end and an addition to the length; `Vec` would call a copy of unknown length each time.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;

/// A growing byte string.
#[derive(Clone, Default)]
pub(crate) struct Buffer {
    /// Initialised memory; what is behind `end` has no meaning.
    bytes: Vec<u8>,
    end: usize,
}

const WORD_BYTES: usize = 16;

impl Buffer {
    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.end).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.end
    }

    /// Appends a byte.
    #[inline]
    pub(crate) fn push(&mut self, byte: u8) {
        match self.bytes.get_mut(self.end) {
            Some(free) => {
                *free = byte;
                self.end += 1;
            }
            None => self.extend_and_grow(&[byte]),
        }
    }

    /// Appends the first `length` of sixteen bytes, lowest first.
    #[inline]
    pub(crate) fn push_word(&mut self, word: u128, length: usize) {
        let word = word.to_le_bytes();
        let room = self.bytes.get_mut(self.end..);
        match room.and_then(<[u8]>::first_chunk_mut) {
            Some(room) => {
                *room = word;
                self.end += length.min(WORD_BYTES);
            }
            None => self.extend_and_grow(word.get(..length).unwrap_or(&word)),
        }
    }

    /// Appends bytes.
    #[inline]
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        let end = self.end + bytes.len();
        match self.bytes.get_mut(self.end..end) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.end = end;
            }
            None => self.extend_and_grow(bytes),
        }
    }

    /// Appends a stretch of other bytes.
    #[inline]
    pub(crate) fn extend_from(&mut self, source: &[u8], range: Range<usize>) {
        let from_start = source.get(range.start..).unwrap_or_default();
        let length = range.len();
        match from_start.first_chunk() {
            Some(word) if length <= WORD_BYTES => {
                self.push_word(u128::from_le_bytes(*word), length);
            }
            _ => self.extend(from_start.get(..length).unwrap_or(from_start)),
        }
    }

    #[cold]
    fn extend_and_grow(&mut self, bytes: &[u8]) {
        self.bytes.truncate(self.end);
        self.bytes.extend_from_slice(bytes);
        self.end = self.bytes.len();
        self.bytes.reserve(4 * WORD_BYTES);
        self.bytes.resize(self.bytes.capacity(), 0);
    }

    /// Forgets the bytes beyond this length.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.end = self.end.min(length);
    }

    /// Forgets all bytes and keeps so much memory at most.
    #[inline]
    pub(crate) fn clear(&mut self, kept: usize) {
        self.end = 0;
        if self.bytes.len() > kept {
            self.bytes.truncate(kept);
            self.bytes.shrink_to_fit();
        }
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Buffer {}

impl Hash for Buffer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Push(u8),
        Word(u128, usize),
        Extend(Vec<u8>),
        From(Vec<u8>, usize),
        Truncate(usize),
        Clear(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            any::<u8>().prop_map(Step::Push),
            (any::<u128>(), 0_usize..=16).prop_map(|(word, length)| Step::Word(word, length)),
            proptest::collection::vec(any::<u8>(), 0..300).prop_map(Step::Extend),
            (proptest::collection::vec(any::<u8>(), 0..50), 0_usize..50)
                .prop_map(|(source, start)| Step::From(source, start)),
            (0_usize..400).prop_map(Step::Truncate),
            (0_usize..400).prop_map(Step::Clear),
        ]
    }

    proptest! {
        #[test]
        fn a_buffer_is_what_was_appended(steps in proptest::collection::vec(step(), 0..60)) {
            let mut buffer = Buffer::default();
            let mut expected = Vec::new();
            for step in steps {
                match step {
                    Step::Push(byte) => {
                        buffer.push(byte);
                        expected.push(byte);
                    }
                    Step::Word(word, length) => {
                        buffer.push_word(word, length);
                        expected.extend_from_slice(&word.to_le_bytes()[..length]);
                    }
                    Step::Extend(bytes) => {
                        buffer.extend(&bytes);
                        expected.extend_from_slice(&bytes);
                    }
                    Step::From(source, start) => {
                        let start = start.min(source.len());
                        let end = source.len() - start / 3;
                        buffer.extend_from(&source, start..end.max(start));
                        expected.extend_from_slice(&source[start..end.max(start)]);
                    }
                    Step::Truncate(length) => {
                        buffer.truncate(length);
                        expected.truncate(length);
                    }
                    Step::Clear(kept) => {
                        buffer.clear(kept);
                        expected.clear();
                    }
                }
                prop_assert_eq!(buffer.as_slice(), expected.as_slice());
                prop_assert_eq!(buffer.len(), expected.len());
            }
        }
    }
}
