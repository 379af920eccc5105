//! Finds a reply that repeats itself while it streams.
//!
//! Two views of the same text: sentences and lines as hashes, whose periods are counted, and the
//! characters of a text without either, compared with those up to 32 back. Tables, rulers and what
//! stands in code fences repeat by nature and are left out. Constant memory, linear time.

use turnwarden_periodicity::Periods;

/// The longest cycle of sentences that is found.
const MOST_SENTENCES: usize = 32;
/// The longest cycle of characters that is found.
const MOST_CHARACTERS: usize = 32;
/// How often a cycle of sentences must come.
const LAPS: usize = 4;
/// No cycle is a loop before it has filled so many bytes.
const LEAST_BYTES: usize = 200;
/// Sentences that are shorter say too little to be compared.
const SHORTEST_SENTENCE: usize = 4;
/// Sentence lengths that are remembered: those of a cycle and its laps.
const REMEMBERED: usize = MOST_SENTENCES * LAPS;

/// A repetition in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLoop {
    /// Byte of the text at which the repetition began.
    pub start: usize,
    /// Sentences of one cycle, or bytes where there are no sentences.
    pub period: usize,
}

/// Finds a text that repeats itself, chunk by chunk; any cut into chunks finds the same.
#[derive(Clone, Debug)]
pub struct TextLoopDetector {
    sentences: Periods,
    lengths: Vec<usize>,
    hasher: u128,
    sentence_bytes: usize,
    line_bytes: usize,
    line_head: [u8; 3],
    in_fence: bool,
    last: [u8; MOST_CHARACTERS],
    runs: [u32; MOST_CHARACTERS],
    at: usize,
    found: Option<TextLoop>,
}

impl Default for TextLoopDetector {
    fn default() -> Self {
        Self {
            sentences: Periods::new(MOST_SENTENCES, 1),
            lengths: Vec::new(),
            hasher: 0,
            sentence_bytes: 0,
            line_bytes: 0,
            line_head: [0; 3],
            in_fence: false,
            last: [0; MOST_CHARACTERS],
            runs: [0; MOST_CHARACTERS],
            at: 0,
            found: None,
        }
    }
}

impl TextLoopDetector {
    /// Takes the next piece of the text; returns the repetition once there is one.
    pub fn feed(&mut self, delta: &str) -> Option<TextLoop> {
        for &byte in delta.as_bytes() {
            if self.found.is_some() {
                break;
            }
            self.step(byte);
        }
        self.found
    }

    /// Bytes read so far, up to the repetition.
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    /// Begins a new text.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    fn step(&mut self, byte: u8) {
        self.at += 1;
        if byte == b'\n' {
            self.end_sentence();
            if &self.line_head == b"```" {
                self.in_fence = !self.in_fence;
            }
            self.line_bytes = 0;
            self.line_head = [0; 3];
            return;
        }
        if let Some(head) = self.line_head.get_mut(self.line_bytes) {
            *head = byte;
        }
        self.line_bytes += 1;
        if self.is_structure() {
            return;
        }
        self.compare_characters(byte);
        if !byte.is_ascii_whitespace() {
            let folded = u128::from(byte.to_ascii_lowercase());
            self.hasher =
                (self.hasher ^ folded).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013B);
            self.sentence_bytes += 1;
        }
        if matches!(byte, b'.' | b'!' | b'?') {
            self.end_sentence();
        }
    }

    /// Whether the line is of a table or of code, where repetition is form.
    fn is_structure(&self) -> bool {
        self.in_fence || self.line_head.first() == Some(&b'|')
    }

    fn end_sentence(&mut self) {
        let bytes = std::mem::take(&mut self.sentence_bytes);
        let hash = std::mem::take(&mut self.hasher);
        if bytes < SHORTEST_SENTENCE || self.is_structure() {
            return;
        }
        self.sentences.push(hash);
        if self.lengths.len() >= REMEMBERED {
            self.lengths.remove(0);
        }
        self.lengths.push(bytes);
        let period = if self.sentences.repeats() >= LAPS {
            Some(1)
        } else {
            self.sentences.shortest_period(LAPS)
        };
        let Some(period) = period else { return };
        let sentences = self.sentences.run(period) + period;
        let repeated: usize = self.lengths.iter().rev().take(sentences).sum();
        if repeated >= LEAST_BYTES {
            let start = self.at.saturating_sub(repeated);
            self.found = Some(TextLoop { start, period });
        }
    }

    fn compare_characters(&mut self, byte: u8) {
        let slot = self.at % MOST_CHARACTERS;
        for period in 1..MOST_CHARACTERS {
            let earlier = (slot + MOST_CHARACTERS - period) % MOST_CHARACTERS;
            let is_equal = self.last.get(earlier) == Some(&byte);
            if let Some(run) = self.runs.get_mut(period) {
                *run = if is_equal { run.saturating_add(1) } else { 0 };
            }
        }
        if let Some(last) = self.last.get_mut(slot) {
            *last = byte;
        }
        // Rulers such as `-----` are form; letters are not.
        if !byte.is_ascii_alphanumeric() && byte.is_ascii() {
            return;
        }
        let long = self
            .runs
            .iter()
            .position(|&run| run as usize >= LEAST_BYTES);
        if let Some(period) = long {
            let start = self.at.saturating_sub(LEAST_BYTES + period);
            self.found = Some(TextLoop { start, period });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str) -> Option<TextLoop> {
        TextLoopDetector::default().feed(text)
    }

    #[test]
    fn cycles_of_characters_and_of_sentences_are_found() {
        assert_eq!(find(&"ny".repeat(640)).map(|found| found.period), Some(2));
        let cycle = "First I look at the parser. Then I compare both of them. Now I begin. ";
        assert_eq!(find(&cycle.repeat(12)).map(|found| found.period), Some(3));
        assert!(find(&"I will do it now, and then look at what came of it. ".repeat(9)).is_some());
    }

    #[test]
    fn tables_rulers_code_and_lists_are_none() {
        assert_eq!(find(&"-".repeat(2000)), None);
        assert_eq!(find(&"| a | b |\n".repeat(200)), None);
        assert_eq!(
            find(&format!("```\n{}```\n", "x = x + 1\n".repeat(200))),
            None
        );
        let mut list = String::new();
        for item in 0..99 {
            list.push_str("- item ");
            list.push_str(&item.to_string());
            list.push_str(": set the flag to true\n");
        }
        assert_eq!(find(&list), None);
    }

    #[test]
    fn any_cut_into_chunks_finds_the_same() {
        let text = format!(
            "Some text. {}",
            "A first sentence here. And a second one. ".repeat(20)
        );
        let mut detector = TextLoopDetector::default();
        let mut chunks = text.as_bytes().chunks(3);
        let found = chunks.find_map(|chunk| detector.feed(std::str::from_utf8(chunk).unwrap()));
        assert_eq!(found, find(&text));
        assert!(found.is_some());
    }
}
