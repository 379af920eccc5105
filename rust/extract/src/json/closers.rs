//! Literals that end a broken value from outside: the caller knows what its markup closes with.

use std::sync::Arc;

/// A literal that ends a value that is not closed, when it is met outside strings.
///
/// ASCII letters compare without regard to case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closer {
    /// The text, such as `</tool_call>`.
    pub literal: Arc<str>,
    /// Whether it counts only at the start of a line, as a code fence does.
    pub line_start: bool,
}

impl Closer {
    /// A literal that counts anywhere.
    #[must_use]
    pub fn anywhere(literal: &str) -> Self {
        Self {
            literal: Arc::from(literal),
            line_start: false,
        }
    }

    /// A literal that counts at the start of a line only, after spaces and tabs at most.
    #[must_use]
    pub fn at_line_start(literal: &str) -> Self {
        Self {
            literal: Arc::from(literal),
            line_start: true,
        }
    }
}

/// Whether a closer stands somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    No,
    Yes,
    /// The text ends before that is decided.
    Partial,
}

/// Closers with what finds them quickly.
#[derive(Clone, Debug, Default)]
pub(super) struct Closers {
    all: Arc<[Closer]>,
    /// The bytes that one of them may begin with, as a set of bits.
    first: [u64; 4],
    /// These bytes, where they are no letters and two at most.
    pair: Option<(u8, u8)>,
    longest: usize,
}

impl Closers {
    pub(super) fn new(all: &Arc<[Closer]>) -> Self {
        let mut first = [0; 4];
        for byte in all
            .iter()
            .filter_map(|closer| closer.literal.bytes().next())
        {
            for byte in [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()] {
                if let Some(bits) = first.get_mut(usize::from(byte >> 6)) {
                    *bits |= 1 << (byte & 63);
                }
            }
        }
        Self {
            all: Arc::clone(all),
            first,
            pair: pair(all),
            longest: all
                .iter()
                .map(|closer| closer.literal.len())
                .max()
                .unwrap_or(0),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.longest == 0
    }

    /// The length of the longest.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Whether one may begin with this byte.
    #[inline]
    pub(super) fn may_begin(&self, byte: u8) -> bool {
        let [low, ascii, high, higher] = self.first;
        let bits = match byte >> 6 {
            0 => low,
            1 => ascii,
            2 => high,
            _ => higher,
        };
        bits >> (byte & 63) & 1 == 1
    }

    /// Whether one stands at `at`.
    #[inline]
    pub(super) fn at(&self, bytes: &[u8], at: usize, last: bool) -> Match {
        match bytes.get(at) {
            Some(&byte) if self.may_begin(byte) => self.compare(bytes, at, last),
            _ => Match::No,
        }
    }

    fn compare(&self, bytes: &[u8], at: usize, last: bool) -> Match {
        let rest = bytes.get(at..).unwrap_or_default();
        let mut found = Match::No;
        for closer in self.all.iter() {
            let literal = closer.literal.as_bytes();
            let shared = rest.len().min(literal.len());
            let alike = rest
                .iter()
                .zip(literal)
                .all(|(left, right)| left.eq_ignore_ascii_case(right));
            if !alike || shared == 0 || (closer.line_start && !starts_line(bytes, at)) {
                continue;
            }
            if shared == literal.len() {
                return Match::Yes;
            }
            if !last {
                found = Match::Partial;
            }
        }
        found
    }

    /// The first one that begins in `from..to`, wholly inside the text.
    pub(super) fn find(&self, bytes: &[u8], from: usize, to: usize) -> Option<usize> {
        let region = bytes.get(from..to).unwrap_or_default();
        if let Some((one, other)) = self.pair {
            return memchr::memchr2_iter(one, other, region)
                .map(|found| from + found)
                .find(|&at| self.compare(bytes, at, true) == Match::Yes);
        }
        (from..)
            .zip(region)
            .find(|&(at, &byte)| {
                self.may_begin(byte) && self.compare(bytes, at, true) == Match::Yes
            })
            .map(|(at, _)| at)
    }
}

/// The first bytes of all, if they are no letters and two at most.
fn pair(all: &[Closer]) -> Option<(u8, u8)> {
    let mut firsts = all
        .iter()
        .filter_map(|closer| closer.literal.bytes().next());
    let one = firsts.next()?;
    let other = firsts.clone().find(|&byte| byte != one).unwrap_or(one);
    let fits = |byte: u8| !byte.is_ascii_alphabetic() && (byte == one || byte == other);
    (fits(one) && firsts.all(fits)).then_some((one, other))
}

/// Whether only spaces and tabs stand between `at` and the start of its line.
///
/// Looks back over eight bytes at most, so that a run of spaces costs nothing.
pub(super) fn starts_line(bytes: &[u8], at: usize) -> bool {
    let before = bytes.get(..at).unwrap_or_default();
    for &byte in before.iter().rev().take(8) {
        match byte {
            b' ' | b'\t' => {}
            b'\n' | b'\r' => return true,
            _ => return false,
        }
    }
    before.len() < 8
}
