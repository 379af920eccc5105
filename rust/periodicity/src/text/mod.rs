//! Finds a text that repeats itself while it streams.
//!
//! ```text
//! bytes ──> Cycles: does the end of the text go round, byte for byte?
//!   │
//!   └─> words ──> sentences, paragraphs ──> Blocks: do they say what was said before?
//! ```
//!
//! What repeats by nature is judged with more patience: rows of lists and tables, code, and what
//! has hardly a letter. Memory is constant (about 50 KB) and the cost linear: a few operations a
//! byte, whatever the length of the cycle. Any cut into chunks finds the same at the same byte.

mod blocks;
mod cycle;
mod line;
mod read;

use self::blocks::{Blocks, Repetition, Shape};
use self::cycle::{Cycles, Stretch};
use self::read::{Ended, Reader, Unit};

/// How a text repeats itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextLoopKind {
    /// The same bytes again and again.
    Cycle,
    /// Sentences that are the same but for few words or numbers.
    Sentences,
    /// Paragraphs that are the same but for few words or numbers.
    Paragraphs,
}

impl TextLoopKind {
    /// The kind's name in snake case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cycle => "cycle",
            Self::Sentences => "sentences",
            Self::Paragraphs => "paragraphs",
        }
    }
}

/// A repetition in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextLoop {
    /// How the text repeats itself.
    pub kind: TextLoopKind,
    /// Byte of the text at which the repetition began: the first byte of what is said again.
    pub start: usize,
    /// Bytes of one lap; between near-duplicates, how far the last one is from its like.
    pub period: usize,
    /// Byte of the text at which the repetition was found.
    pub end: usize,
}

impl TextLoop {
    /// Whether it goes on for so long that it would be a loop in a table or in code, too.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        let stretch = Stretch {
            start: self.start,
            period: self.period,
            length: self.end - self.start,
        };
        self.kind == TextLoopKind::Cycle && Patience::Most.ends_with(stretch)
    }
}

/// Sentences: a dozen that say nothing new.
const SENTENCES: Shape = Shape {
    window: 32,
    most: 96,
    least_blocks: 12,
    least_bytes: 700,
};
/// Paragraphs: fewer, since they are longer.
const PARAGRAPHS: Shape = Shape {
    window: 16,
    most: 250,
    least_blocks: 5,
    least_bytes: 1000,
};

/// How much patience there is with what repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Patience {
    /// With text in sentences.
    Little,
    /// With items of lists and short rows.
    More,
    /// With tables, code, rulers, and what the caller knows to be data.
    Most,
}

impl Patience {
    /// Whether a stretch is a loop.
    fn ends_with(self, stretch: Stretch) -> bool {
        let Stretch { period, length, .. } = stretch;
        let laps = length / period.max(1);
        match self {
            // The longer the lap, the less it takes: nobody says a thousand bytes three times.
            Self::Little => match period {
                1024.. => laps >= 3,
                256.. => laps >= 4,
                _ => laps >= 5 && length >= 240,
            },
            Self::More => laps >= 12 && length >= 600,
            Self::Most if period >= 160 => laps >= 12 && length >= 6 << 10,
            Self::Most => length >= 16 << 10,
        }
    }
}

/// Finds a text that repeats itself, chunk by chunk; any cut into chunks finds the same.
///
/// # Examples
///
/// ```
/// use turnwarden_periodicity::TextLoopDetector;
///
/// let mut detector = TextLoopDetector::default();
/// assert!(detector.feed("So, to begin with:\n").is_none());
/// let found = (0..100).find_map(|_| detector.feed("I will look at the file again. "));
/// assert_eq!(found.map(|found| (found.start, found.period)), Some((19, 31)));
/// ```
#[derive(Clone, Debug)]
pub struct TextLoopDetector {
    cycles: Cycles,
    reader: Reader,
    sentences: Blocks,
    paragraphs: Blocks,
    /// The stretch that was last looked at, by its period and a byte before its beginning, and
    /// the patience that its content asks for.
    judged: Option<(usize, usize, Patience)>,
    found: Option<TextLoop>,
}

impl Default for TextLoopDetector {
    fn default() -> Self {
        Self {
            cycles: Cycles::default(),
            reader: Reader::default(),
            sentences: Blocks::new(SENTENCES),
            paragraphs: Blocks::new(PARAGRAPHS),
            judged: None,
            found: None,
        }
    }
}

impl TextLoopDetector {
    /// Takes the next piece of the text; returns the repetition once there is one. What comes
    /// after it is not looked at.
    pub fn feed(&mut self, delta: &str) -> Option<TextLoop> {
        for &byte in delta.as_bytes() {
            if self.found.is_some() {
                break;
            }
            self.step(byte);
        }
        self.found
    }

    /// The repetition, once it was found.
    #[must_use]
    pub fn found(&self) -> Option<TextLoop> {
        self.found
    }

    /// Bytes read so far, up to the repetition.
    #[must_use]
    pub fn position(&self) -> usize {
        self.cycles.at()
    }

    /// Begins a new text.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Goes on after a repetition that the caller knows to be data, such as the content of a file
    /// in a call: it is then judged with the patience that code has.
    pub fn excuse(&mut self) {
        self.found = None;
        self.sentences.begin_anew();
        self.paragraphs.begin_anew();
        if let Some(stretch) = self.cycles.stretch() {
            self.judged = Some((stretch.period, stretch.start, Patience::Most));
        }
    }

    fn step(&mut self, byte: u8) {
        self.cycles.push(byte);
        let ended = self
            .reader
            .step(byte, &mut self.sentences, &mut self.paragraphs);
        if let Some(ended) = ended {
            self.look(ended);
        }
    }

    fn look(&mut self, ended: Ended) {
        self.found = self.look_for_cycle();
        if self.found.is_some() {
            return;
        }
        let sentence = self.end_unit(ended.sentence, TextLoopKind::Sentences);
        let paragraph = self.end_unit(ended.paragraph, TextLoopKind::Paragraphs);
        self.found = sentence.or(paragraph);
    }

    fn end_unit(&mut self, unit: Unit, kind: TextLoopKind) -> Option<TextLoop> {
        let blocks = match kind {
            TextLoopKind::Cycle => return None,
            TextLoopKind::Sentences => &mut self.sentences,
            TextLoopKind::Paragraphs => &mut self.paragraphs,
        };
        let repetition = match unit {
            Unit::Open => None,
            Unit::Discarded => {
                blocks.discard();
                None
            }
            Unit::Row => {
                blocks.end_row();
                None
            }
            Unit::Ended {
                start,
                bytes,
                numbers,
                is_short,
            } => blocks.end(start, bytes, numbers, is_short),
        };
        let Repetition { start, period } = repetition?;
        Some(TextLoop {
            kind,
            start,
            period,
            end: self.cycles.at(),
        })
    }

    fn look_for_cycle(&mut self) -> Option<TextLoop> {
        let stretch = self.cycles.stretch()?;
        if !Patience::Little.ends_with(stretch) {
            return None;
        }
        // A lap is looked at once for all its repeats, so that the cost stays linear.
        let known = self.judged.filter(|&(period, start, _)| {
            period == stretch.period && stretch.start <= start + period
        });
        let of_content = match known {
            Some((_, _, patience)) => patience,
            None => of_content(self.cycles.lap()),
        };
        self.judged = Some((stretch.period, stretch.start, of_content));
        if !of_content.max(self.reader.patience()).ends_with(stretch) {
            return None;
        }
        let Stretch { start, period, .. } = self.cycles.whole_stretch()?;
        Some(TextLoop {
            kind: TextLoopKind::Cycle,
            start,
            period,
            end: self.cycles.at(),
        })
    }
}

/// The patience that the bytes of a lap ask for: rulers and numbers, code, rows.
fn of_content(lap: impl Iterator<Item = u8>) -> Patience {
    let (mut letters, mut symbols, mut spaces, mut lines, mut all) = (0, 0, 0, 0, 0_usize);
    for byte in lap {
        all += 1;
        match byte {
            b' ' => spaces += 1,
            b'\n' | b'\r' | b'\t' => lines += 1,
            _ if read::is_letter(byte) => letters += 1,
            _ if read::is_symbol(byte) => symbols += 1,
            _ => {}
        }
    }
    let visible: usize = all - spaces - lines;
    if letters * 3 < visible || visible == 0 || symbols * 100 >= visible * 15 {
        return Patience::Most;
    }
    if spaces == 0 && lines > 0 {
        return Patience::More;
    }
    Patience::Little
}
