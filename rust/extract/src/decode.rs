//! UTF-8 that comes in pieces, and that is not always UTF-8.
//!
//! [`Decoder`] joins characters that were cut between two chunks, joins surrogate pairs that came
//! as two halves, and puts U+FFFD for what is no text, telling where. Cost: linear; valid chunks
//! are copied in one go, and at most five bytes are held back.

use crate::Repair;
use crate::json::RepairKind;

/// Decodes chunks of bytes; the result does not depend on where the chunks were cut.
///
/// Surrogates in their three-byte form (`ED A0 80` to `ED BF BF`) are understood: that is how a
/// Python `str` with halves of a pair arrives.
///
/// ```
/// # use turnwarden_extract::Decoder;
/// let (mut text, mut repairs) = (String::new(), Vec::new());
/// let mut decoder = Decoder::default();
/// decoder.decode(b"\xE7\x8C", &mut text, &mut repairs);
/// assert_eq!(text, "");
/// decoder.decode(b"\xAB\xFF", &mut text, &mut repairs);
/// decoder.finish(&mut text, &mut repairs);
/// assert_eq!(text, "猫\u{FFFD}");
/// assert_eq!(repairs[0].offset, 3);
/// ```
#[derive(Debug, Default)]
pub struct Decoder {
    /// The beginning of a character, or of a surrogate pair, whose rest has not come yet.
    pending: Vec<u8>,
    /// How many bytes of text were put out so far.
    written: usize,
}

/// What stands at a place where UTF-8 ends to be valid.
enum Broken {
    /// A surrogate pair in six bytes.
    Pair(char),
    /// Bytes that stand for nothing.
    Replace { length: usize, kind: RepairKind },
    /// What may become a character with more bytes.
    Incomplete,
}

impl Decoder {
    /// Whether nothing is held back.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Account for text that was valid and did not need decoding.
    ///
    /// To be called only while [`Decoder::is_empty`]: held-back bytes stand before this text.
    pub fn skip(&mut self, text: &str) {
        self.written += text.len();
    }

    /// Decode the next chunk, appending to `text`; replacements are told in `repairs` with their
    /// offset in the whole decoded text.
    pub fn decode(&mut self, chunk: &[u8], text: &mut String, repairs: &mut Vec<Repair>) {
        if self.pending.is_empty() {
            self.run(chunk, false, text, repairs);
            return;
        }
        let mut joined = core::mem::take(&mut self.pending);
        joined.extend_from_slice(chunk);
        self.run(&joined, false, text, repairs);
    }

    /// Decode what was held back: no more will come.
    pub fn finish(&mut self, text: &mut String, repairs: &mut Vec<Repair>) {
        let rest = core::mem::take(&mut self.pending);
        self.run(&rest, true, text, repairs);
    }

    fn run(&mut self, mut rest: &[u8], last: bool, text: &mut String, repairs: &mut Vec<Repair>) {
        loop {
            let valid = match core::str::from_utf8(rest) {
                Ok(valid) => {
                    self.put(valid, text);
                    return;
                }
                Err(error) => error.valid_up_to(),
            };
            let (head, tail) = rest.split_at(valid);
            self.put(core::str::from_utf8(head).unwrap_or_default(), text);
            let skipped = match broken(tail, last) {
                Broken::Pair(joined) => {
                    self.put(joined.encode_utf8(&mut [0; 4]), text);
                    6
                }
                Broken::Replace { length, kind } => {
                    let offset = self.written;
                    repairs.push(Repair { kind, offset });
                    self.put("\u{FFFD}", text);
                    length
                }
                Broken::Incomplete => {
                    self.pending.extend_from_slice(tail);
                    return;
                }
            };
            rest = tail.get(skipped..).unwrap_or_default();
        }
    }

    fn put(&mut self, piece: &str, text: &mut String) {
        text.push_str(piece);
        self.written += piece.len();
    }
}

/// Look at bytes that do not begin with a valid character.
fn broken(bytes: &[u8], last: bool) -> Broken {
    match bytes {
        [0xED, 0xA0..=0xAF, 0x80..=0xBF, rest @ ..] => high_surrogate(bytes, rest, last),
        [0xED, 0xB0..=0xBF, 0x80..=0xBF, ..] => surrogate_replaced(),
        [0xED] | [0xED, 0xA0..=0xBF] if !last => Broken::Incomplete,
        _ => match core::str::from_utf8(bytes) {
            Err(error) => match error.error_len() {
                None if !last => Broken::Incomplete,
                length => Broken::Replace {
                    length: length.unwrap_or(bytes.len()),
                    kind: RepairKind::Utf8Replaced,
                },
            },
            Ok(_) => Broken::Incomplete,
        },
    }
}

/// Look at what follows the first half of a surrogate pair.
fn high_surrogate(bytes: &[u8], rest: &[u8], last: bool) -> Broken {
    match rest {
        [0xED, 0xB0..=0xBF, 0x80..=0xBF, ..] => {
            pair(bytes).map_or_else(surrogate_replaced, Broken::Pair)
        }
        [] | [0xED] | [0xED, 0xB0..=0xBF] if !last => Broken::Incomplete,
        _ => surrogate_replaced(),
    }
}

fn surrogate_replaced() -> Broken {
    Broken::Replace {
        length: 3,
        kind: RepairKind::SurrogateReplaced,
    }
}

/// The character of two surrogates in three-byte form.
fn pair(bytes: &[u8]) -> Option<char> {
    let unit = |at: usize| {
        let second = u32::from(*bytes.get(at)?) & 0x3F;
        let third = u32::from(*bytes.get(at + 1)?) & 0x3F;
        Some(0xD000 | second << 6 | third)
    };
    let (high, low) = (unit(1)?, unit(4)?);
    char::from_u32(0x1_0000 + ((high & 0x3FF) << 10) + (low & 0x3FF))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(chunks: &[&[u8]]) -> (String, Vec<Repair>) {
        let (mut text, mut repairs) = (String::new(), Vec::new());
        let mut decoder = Decoder::default();
        for chunk in chunks {
            decoder.decode(chunk, &mut text, &mut repairs);
        }
        decoder.finish(&mut text, &mut repairs);
        (text, repairs)
    }

    #[test]
    fn surrogate_halves_are_joined_and_lone_ones_replaced() {
        let (text, repairs) = decode(&[b"a\xED\xA0\xBD", b"\xED\xB8\x80b\xED\xA0\xBDc"]);
        assert_eq!(text, "a😀b\u{FFFD}c");
        assert_eq!(
            repairs,
            [Repair {
                kind: RepairKind::SurrogateReplaced,
                offset: 6
            }]
        );
    }

    #[test]
    fn bytes_cut_at_the_end_are_replaced_once() {
        let (text, repairs) = decode(&[b"ok\xE7\x8C"]);
        assert_eq!(text, "ok\u{FFFD}");
        assert_eq!(repairs.len(), 1);
    }

    /// Bytes that hold many of the sequences that matter.
    fn messy() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(
            prop_oneof![
                any::<char>().prop_map(|c| c.to_string().into_bytes()),
                prop::collection::vec(any::<u8>(), 0..4),
                Just(vec![0xED, 0xA0, 0xBD]),
                Just(vec![0xED, 0xB8, 0x80]),
                Just(vec![0xED, 0xA0]),
                Just(vec![0xF0, 0x9F, 0x98]),
            ],
            0..12,
        )
        .prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn every_split_gives_the_same(bytes in messy(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.sort_unstable();
            let mut chunks = Vec::new();
            let mut start = 0;
            for end in at {
                chunks.push(&bytes[start..end]);
                start = end;
            }
            chunks.push(&bytes[start..]);
            prop_assert_eq!(decode(&chunks), decode(&[&bytes]));
        }

        #[test]
        fn without_surrogates_it_is_the_standard_lossy_decoding(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let has_surrogate = bytes.windows(2).any(|pair| pair[0] == 0xED && pair[1] >= 0xA0);
            prop_assume!(!has_surrogate);
            let (text, repairs) = decode(&[&bytes]);
            prop_assert_eq!(&text, &String::from_utf8_lossy(&bytes));
            for repair in repairs {
                prop_assert!(text[repair.offset..].starts_with(char::REPLACEMENT_CHARACTER));
            }
        }
    }
}
