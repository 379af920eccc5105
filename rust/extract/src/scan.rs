//! Jumps over plain text: the next byte of a reply at which something may begin.

use memchr::{memchr3, memmem};

use crate::markers::{DIAMOND, Hit, Markers};

/// How far back a marker without an anchor byte may begin before the end of the text so far.
const LONGEST_UNANCHORED: usize = 256;

/// One search that goes on where it stopped.
#[derive(Clone, Debug, Default)]
struct Cursor {
    /// Where the search began that led to `at`.
    from: usize,
    /// The last hit, or how far the search has come without one.
    at: usize,
    hit: bool,
}

impl Cursor {
    fn next(&mut self, from: usize, find: impl Fn(usize) -> Result<usize, usize>) -> Option<usize> {
        if from < self.from || !self.hit && from > self.at {
            *self = Self {
                from,
                at: from,
                hit: false,
            };
        }
        if self.hit && self.at >= from {
            return Some(self.at);
        }
        let start = if self.hit { from } else { self.at.max(from) };
        if self.hit {
            self.from = from;
        }
        match find(start) {
            Ok(at) => (self.at, self.hit) = (at, true),
            Err(searched) => (self.at, self.hit) = (searched.max(start), false),
        }
        self.hit.then_some(self.at)
    }
}

/// What a byte at which something may begin is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// An anchor of markers, a brace, a backtick, a tilde, or the first byte of a diamond.
    Byte(usize),
    /// A marker without an anchor byte.
    Marker(Hit),
}

impl Stop {
    pub(crate) fn at(self) -> usize {
        match self {
            Self::Byte(at) => at,
            Self::Marker(hit) => hit.start,
        }
    }
}

/// The searches for all of them; each byte is passed by each search once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stops {
    main: Cursor,
    more: Cursor,
    diamond: Cursor,
    unanchored: Cursor,
}

fn shift(found: Option<usize>, start: usize, text: &[u8]) -> Result<usize, usize> {
    found.map(|offset| start + offset).ok_or(text.len())
}

impl Stops {
    /// The next place at or after `from`. In reasoning, braces, colons and tildes mean nothing.
    pub(crate) fn next(
        &mut self,
        markers: &Markers,
        text: &[u8],
        from: usize,
        in_reasoning: bool,
    ) -> Option<Stop> {
        let rest = |start: usize| text.get(start..).unwrap_or_default();
        let main = self.main.next(from, |at| {
            shift(memchr3(b'<', b'[', b'`', rest(at)), at, text)
        });
        let diamond = self.diamond.next(from, |at| {
            shift(memmem::find(rest(at), DIAMOND.as_bytes()), at, text)
        });
        let mut first = [main, diamond].into_iter().flatten().min();
        if !in_reasoning {
            let more = self.more.next(from, |at| {
                shift(memchr3(b'{', b':', b'~', rest(at)), at, text)
            });
            first = [first, more].into_iter().flatten().min();
        }
        if markers.has_unanchored() {
            let unanchored = self.unanchored.next(from, |at| {
                let hit = markers.next_unanchored(text, at);
                hit.map(|hit| hit.start)
                    .ok_or(text.len().saturating_sub(LONGEST_UNANCHORED))
            });
            if let Some(at) = unanchored.filter(|at| first.is_none_or(|first| *at < first)) {
                return markers.next_unanchored(text, at).map(Stop::Marker);
            }
        }
        first.map(Stop::Byte)
    }
}
