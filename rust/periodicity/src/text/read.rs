//! Reads a text as words, sentences, lines and paragraphs, byte by byte.
//!
//! A sentence ends with its mark and white space, or with a full stop of a script that has its own
//! (Chinese, Hindi, Arabic, ...). A line that ends without a mark is a row (a heading, a verse, an entry) unless it is long enough
//! to be wrapped. Numbers all read alike, so that counting is no news; their
//! values are summed up, so that numbers that do not count are.

use super::Patience;
use super::blocks::Blocks;
use super::line::{HEAD, LineKind, kind_of};

/// Sentences of fewer words are compared word for word,
const SHORT: usize = 5;
/// and of fewer than these not at all: "Yes." says too little.
const SHORTEST: usize = 3;
/// A sentence does not go on beyond so many bytes.
const LONGEST_SENTENCE: usize = 2000;
/// A line that is this long may be wrapped in the middle of a sentence.
const WRAPPED: usize = 60;
/// A row does not go on beyond so many bytes: then the line is text that began like a row.
const LONGEST_ROW: usize = 400;
/// The end of the text is looked at again after so many bytes, at the latest.
const LOOK_EVERY: usize = 64;
/// What any number reads as.
const NUMBER: u32 = 0x6E75_6D62;

/// What a byte is in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    Space,
    Newline,
    /// `.`, `!`, `?`
    Mark,
    /// Belongs to sentences: `,`, `:`, `'`, `"`, brackets and the like.
    Punctuation,
    Symbol,
    /// Begins a character of two to four bytes.
    Lead,
    Continuation,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Symbol; 256];
    let mut byte = 0;
    while byte < classes.len() {
        #[allow(clippy::cast_possible_truncation)]
        let class = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' => Class::Letter,
            b'0'..=b'9' => Class::Digit,
            b' ' | b'\t' | b'\r' => Class::Space,
            b'\n' => Class::Newline,
            b'.' | b'!' | b'?' => Class::Mark,
            b',' | b':' | b'\'' | b'-' | b'(' | b')' | b'"' => Class::Punctuation,
            0x80..=0xBF => Class::Continuation,
            0xC0..=0xFF => Class::Lead,
            _ => Class::Symbol,
        };
        classes[byte] = class;
        byte += 1;
    }
    classes
};

/// Whether a byte is a letter, or of a character that mostly is one.
pub(super) fn is_letter(byte: u8) -> bool {
    // 0xE2 begins dashes, quotes, arrows, boxes and blocks; their other bytes count as letters,
    // which is made up for by counting the first one as a symbol.
    byte.is_ascii_alphabetic() || byte >= 0x80 && byte != 0xE2
}

/// Whether a byte is a sign that code has and sentences hardly have.
pub(super) fn is_symbol(byte: u8) -> bool {
    byte == 0xE2 || byte == b'"' || CLASSES[usize::from(byte)] == Class::Symbol
}

/// What became of a sentence or a paragraph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// It goes on.
    Open,
    /// It is not to be compared.
    Discarded,
    /// It is a row, or has one: not to be compared, but it may begin something new.
    Row,
    /// It is over.
    Ended {
        /// Its first byte.
        start: usize,
        /// How long it is.
        bytes: usize,
        /// Its numbers, as one.
        numbers: u64,
        /// Whether it is so short that only the same words count.
        is_short: bool,
    },
}

/// What came to its end with a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) sentence: Unit,
    pub(super) paragraph: Unit,
}

/// Counts of a sentence.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    words: usize,
    letters: usize,
    digits: usize,
    symbols: usize,
    numbers: u64,
}

/// Reads bytes.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    at: usize,
    looked: usize,
    head: [u8; HEAD],
    line_length: usize,
    before: LineKind,
    /// What the line right above is, unless that is blank.
    above: Option<LineKind>,
    /// What the fence is made of in which the text stands, and its length.
    fence: Option<(u8, usize)>,
    /// Hash of what stands in the fence, without digits.
    code: u32,
    /// Hash of the word that is being read, its letters, and whether it has digits.
    word: u32,
    word_letters: usize,
    word_digits: bool,
    /// The value of its digits.
    number: u64,
    last_word: u32,
    /// The bytes of the character that is being read, and how many are missing.
    character: u32,
    missing: u8,
    /// Its length.
    width: usize,
    /// Whether a mark has come that ends the sentence if white space follows.
    is_marked: bool,
    /// Whether only marks have come since white space.
    follows_space: bool,
    sentence: Counts,
    /// Where the sentence began.
    sentence_start: Option<usize>,
    paragraph: Option<Paragraph>,
}

/// A paragraph that is being read.
#[derive(Clone, Copy, Debug)]
struct Paragraph {
    start: usize,
    sentences: usize,
    numbers: u64,
    /// Whether all of it is sentences.
    is_prose: bool,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            at: 0,
            looked: 0,
            head: [0; HEAD],
            line_length: 0,
            before: LineKind::default(),
            above: None,
            fence: None,
            code: 0,
            word: 0,
            word_letters: 0,
            word_digits: false,
            number: 0,
            last_word: 0,
            character: 0,
            missing: 0,
            width: 1,
            is_marked: false,
            follows_space: true,
            sentence: Counts::default(),
            sentence_start: None,
            paragraph: None,
        }
    }
}

impl Reader {
    /// How much patience the current line asks for.
    pub(super) fn patience(&self) -> Patience {
        if self.fence.is_some() {
            return Patience::Most;
        }
        let kind = match self.line_length {
            0 => self.before,
            _ => self.line_kind(),
        };
        match kind {
            LineKind::Prose => Patience::Little,
            LineKind::Item | LineKind::Row => Patience::More,
            LineKind::Form | LineKind::Fence(..) => Patience::Most,
        }
    }

    /// Takes a byte; says what ended with it, or that it is time to look.
    #[inline]
    pub(super) fn step(
        &mut self,
        byte: u8,
        sentences: &mut Blocks,
        paragraphs: &mut Blocks,
    ) -> Option<Ended> {
        self.at += 1;
        if byte == b'\n' {
            return Some(self.end_line(sentences, paragraphs));
        }
        if let Some(place) = self.head.get_mut(self.line_length) {
            *place = byte;
        }
        self.line_length += 1;
        if self.fence.is_some() {
            if !byte.is_ascii_digit() {
                self.code = (self.code ^ u32::from(byte)).wrapping_mul(0x0100_0193);
            }
        } else if let Some(ended) = self.read(byte, sentences, paragraphs) {
            return Some(ended);
        }
        let is_whole = byte < 0x80 || (self.missing == 0 && self.fence.is_none());
        (is_whole && self.at - self.looked >= LOOK_EVERY).then(|| self.time_to_look())
    }

    fn time_to_look(&mut self) -> Ended {
        self.looked = self.at;
        let too_long = self
            .sentence_start
            .is_some_and(|start| self.at - start > LONGEST_SENTENCE);
        let sentence = if too_long {
            self.discard_sentence()
        } else {
            Unit::Open
        };
        Ended {
            sentence,
            paragraph: Unit::Open,
        }
    }

    fn read(&mut self, byte: u8, sentences: &mut Blocks, paragraphs: &mut Blocks) -> Option<Ended> {
        match CLASSES[usize::from(byte)] {
            Class::Letter => self.letter(u32::from(byte | 0x20)),
            Class::Digit => self.digit(u32::from(byte & 0xF)),
            Class::Space => {
                self.follows_space = true;
                self.end_word(sentences, paragraphs);
                if self.is_marked {
                    return Some(self.end_sentence());
                }
            }
            Class::Newline => {}
            Class::Mark => self.mark(byte, sentences, paragraphs),
            // An apostrophe does not end a word, nor a closing quote a sentence that is over.
            Class::Punctuation => {
                self.begin();
                if byte != b'\'' {
                    self.end_word(sentences, paragraphs);
                }
                self.is_marked &= matches!(byte, b'"' | b'\'' | b')');
            }
            Class::Symbol => {
                self.begin();
                self.end_word(sentences, paragraphs);
                self.is_marked &= matches!(byte, b'*' | b'_' | b']');
                self.sentence.symbols += 1;
            }
            Class::Lead => {
                self.character = u32::from(byte);
                self.missing = match byte {
                    0xC0..=0xDF => 1,
                    0xE0..=0xEF => 2,
                    _ => 3,
                };
                self.width = usize::from(self.missing) + 1;
            }
            Class::Continuation => {
                self.character = self.character << 8 | u32::from(byte);
                self.missing = self.missing.saturating_sub(1);
                if self.missing == 0 {
                    let ended = self.read_character(sentences, paragraphs);
                    self.width = 1;
                    return ended;
                }
            }
        }
        None
    }

    /// A full stop ends a sentence when it follows a word; `... ok` begins none.
    fn mark(&mut self, byte: u8, sentences: &mut Blocks, paragraphs: &mut Blocks) {
        let follows_word = self.word_letters > 0 || self.word_digits || self.is_marked;
        self.end_word(sentences, paragraphs);
        let is_open = self.sentence_start.is_some();
        self.is_marked = is_open && (follows_word || byte != b'.' || !self.follows_space);
    }

    /// Reads a character beyond ASCII: a letter of a word, a word of its own, or punctuation.
    fn read_character(&mut self, sentences: &mut Blocks, paragraphs: &mut Blocks) -> Option<Ended> {
        let character = self.character;
        match character {
            // The full stop, exclamation and question marks of Chinese and Japanese; those of
            // Indian scripts, Arabic and Urdu, Armenian, Ethiopic, Khmer and Burmese.
            0xE3_80_82 | 0xEF_BC_81 | 0xEF_BC_9F | 0xEF_BD_A1 | 0xE0_A5_A4 | 0xE0_A5_A5
            | 0xD8_9F | 0xDB_94 | 0xD6_89 | 0xE1_8D_A2 | 0xE1_9F_94 | 0xE1_81_8B => {
                self.end_word(sentences, paragraphs);
                return self.sentence_start.map(|_| self.end_sentence());
            }
            // A wide full stop, unless it parts digits.
            0xEF_BC_8E if !self.word_digits => {
                self.end_word(sentences, paragraphs);
                return self.sentence_start.map(|_| self.end_sentence());
            }
            // An ellipsis.
            0xE2_80_A6 | 0xEF_BC_8E => {
                self.end_word(sentences, paragraphs);
                self.is_marked = self.sentence_start.is_some();
            }
            0xC2_00..=0xC2_FF
            | 0xE2_00_00..=0xE2_FF_FF
            | 0xE3_80_00..=0xE3_80_FF
            | 0xEE_00_00..=0xEE_FF_FF
            | 0xEF_BC_00..=0xEF_BD_FF => {
                self.begin();
                self.end_word(sentences, paragraphs);
            }
            0xC3_00..=0xDF_FF | 0xE0_00_00..=0xE1_FF_FF => match digit_of(character) {
                Some(value) => self.digit(value),
                None => self.letter(character),
            },
            _ => {
                self.end_word(sentences, paragraphs);
                self.letter(character);
                self.end_word(sentences, paragraphs);
            }
        }
        None
    }

    /// A sentence begins with the byte or the character that was just read, unless one is open.
    fn begin(&mut self) {
        self.follows_space = false;
        if self.sentence_start.is_some() {
            return;
        }
        let start = self.at - self.width;
        self.sentence_start = Some(start);
        self.paragraph.get_or_insert(Paragraph {
            start,
            sentences: 0,
            numbers: 0,
            is_prose: true,
        });
    }

    #[inline]
    fn digit(&mut self, value: u32) {
        self.begin();
        self.is_marked = false;
        self.word_digits = true;
        self.number = self.number.wrapping_mul(10).wrapping_add(u64::from(value));
        self.sentence.digits += 1;
    }

    #[inline]
    fn letter(&mut self, letter: u32) {
        self.begin();
        self.is_marked = false;
        self.word = (self.word ^ letter).wrapping_mul(0x0100_0193);
        self.word_letters += 1;
        self.sentence.letters += 1;
    }

    fn end_word(&mut self, sentences: &mut Blocks, paragraphs: &mut Blocks) {
        let letters = std::mem::take(&mut self.word_letters);
        let has_digits = std::mem::take(&mut self.word_digits);
        let hash = std::mem::take(&mut self.word);
        let word = match (letters, has_digits) {
            (0, false) => return,
            (0, true) => NUMBER,
            _ => mixed(hash),
        };
        if has_digits {
            let number = std::mem::take(&mut self.number);
            let numbers = &mut self.sentence.numbers;
            *numbers = with_number(*numbers, number);
            if let Some(Paragraph { numbers, .. }) = &mut self.paragraph {
                *numbers = with_number(*numbers, number);
            }
        }
        let before = std::mem::replace(&mut self.last_word, word);
        if word == NUMBER && before == NUMBER {
            return;
        }
        self.sentence.words += 1;
        let pair = mixed(word ^ before.rotate_left(15));
        for blocks in [sentences, paragraphs] {
            blocks.add(word.wrapping_mul(0x9E37_79B1), word != NUMBER);
            blocks.add(pair, false);
        }
    }

    fn discard_sentence(&mut self) -> Unit {
        self.sentence_start = None;
        self.sentence = Counts::default();
        self.is_marked = false;
        self.last_word = 0;
        Unit::Discarded
    }

    /// Ends what may be a sentence, in a line of this kind.
    fn close_sentence(&mut self, kind: LineKind) -> Unit {
        let counts = self.sentence;
        let start = self.sentence_start;
        let discarded = self.discard_sentence();
        let (Some(start), Some(paragraph)) = (start, &mut self.paragraph) else {
            return discarded;
        };
        let signs = counts.letters + counts.digits + counts.symbols;
        let is_text = counts.letters * 100 >= signs * 75 && counts.symbols * 100 <= signs * 8;
        if kind != LineKind::Prose || !is_text {
            paragraph.is_prose = false;
            return Unit::Row;
        }
        paragraph.sentences += 1;
        if counts.words < SHORTEST {
            return discarded;
        }
        Unit::Ended {
            start,
            bytes: self.at - start,
            numbers: counts.numbers,
            is_short: counts.words < SHORT,
        }
    }

    fn end_sentence(&mut self) -> Ended {
        self.looked = self.at;
        Ended {
            sentence: self.close_sentence(self.line_kind()),
            paragraph: Unit::Open,
        }
    }

    fn end_line(&mut self, sentences: &mut Blocks, paragraphs: &mut Blocks) -> Ended {
        self.looked = self.at;
        let kind = self.line_kind();
        let length = self.line_length;
        let is_blank = self.head().trim_ascii().is_empty();
        let mut ended = Ended {
            sentence: Unit::Open,
            paragraph: Unit::Open,
        };
        if let Some((of, length)) = self.fence {
            let closes = matches!(kind, LineKind::Fence(by, long) if by == of && long >= length);
            if closes && self.is_bare_fence() {
                self.fence = None;
                sentences.end_code(self.code);
                paragraphs.end_code(self.code);
            }
            self.before = LineKind::Form;
        } else {
            self.end_word(sentences, paragraphs);
            ended.sentence = self.end_sentence_with_line(kind, is_blank || length < WRAPPED);
            if let LineKind::Fence(of, length) = kind {
                self.fence = Some((of, length));
                self.code = 0;
            }
            if is_blank || self.fence.is_some() {
                ended.paragraph = self.close_paragraph();
            }
            self.above = (!is_blank).then_some(kind);
            if !is_blank {
                self.before = kind;
            }
        }
        self.line_length = 0;
        ended
    }

    /// Ends the sentence with its line, unless the line is wrapped.
    fn end_sentence_with_line(&mut self, kind: LineKind, is_row: bool) -> Unit {
        if self.sentence_start.is_none() {
            return Unit::Open;
        }
        if self.is_marked {
            return self.close_sentence(kind);
        }
        if !is_row && kind == LineKind::Prose {
            return Unit::Open;
        }
        if let Some(paragraph) = &mut self.paragraph {
            paragraph.is_prose = false;
        }
        self.discard_sentence();
        Unit::Row
    }

    fn close_paragraph(&mut self) -> Unit {
        match self.paragraph.take() {
            Some(Paragraph {
                start,
                sentences: 2..,
                numbers,
                is_prose: true,
            }) => Unit::Ended {
                start,
                bytes: self.at - start,
                numbers,
                is_short: false,
            },
            Some(Paragraph {
                is_prose: false, ..
            }) => Unit::Row,
            _ => Unit::Discarded,
        }
    }

    /// Whether the line is a fence and nothing else, so that it ends one.
    fn is_bare_fence(&self) -> bool {
        let is_other = |byte: &&u8| !matches!(byte, b'`' | b'~' | b' ' | b'\t' | b'\r');
        self.line_length <= HEAD && !self.head().iter().any(|byte| is_other(&byte))
    }

    fn head(&self) -> &[u8] {
        self.head
            .get(..self.line_length.min(HEAD))
            .unwrap_or_default()
    }

    fn line_kind(&self) -> LineKind {
        match kind_of(self.head(), self.before) {
            LineKind::Item | LineKind::Row if self.line_length > LONGEST_ROW => LineKind::Prose,
            // It goes on with the item above it, as in Markdown.
            LineKind::Prose if self.above == Some(LineKind::Item) => LineKind::Row,
            kind => kind,
        }
    }
}

/// Numbers and one more, as one: it moves steadily when all of them do.
fn with_number(numbers: u64, number: u64) -> u64 {
    numbers
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add(number)
}

/// The value of a digit beyond ASCII: Arabic, Persian, Devanagari, Bengali, Thai.
fn digit_of(character: u32) -> Option<u32> {
    const NOUGHTS: [u32; 5] = [0xD9_A0, 0xDB_B0, 0xE0_A5_A6, 0xE0_A7_A6, 0xE0_B9_90];
    let values = NOUGHTS.iter().map(|nought| character.wrapping_sub(*nought));
    values.into_iter().find(|value| *value < 10)
}

/// Spreads the bits of a hash (the finaliser of `MurmurHash3`, by Austin Appleby).
fn mixed(mut hash: u32) -> u32 {
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85EB_CA6B);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xC2B2_AE35);
    hash ^ hash >> 16
}
