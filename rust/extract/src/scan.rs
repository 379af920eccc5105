//! Jumps over plain text: the next byte of a reply at which something may begin.

use memchr::{memchr3, memmem};

use crate::markers::{DIAMOND, Hit, Markers};

/// How far back a marker without an anchor byte may begin before the end of the text so far.
const LONGEST_UNANCHORED: usize = 256;

/// One search that goes on where it stopped.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    /// Where the search began that led to `at`.
    from: usize,
    /// The last hit, or how far the search has come without one.
    at: usize,
    hit: bool,
    /// How long the text was that was searched in vain.
    length: usize,
}

impl Cursor {
    /// The first hit at or after `from`. `find` searches a stretch of the text, and tells up to
    /// where nothing begins when it finds nothing.
    #[inline]
    fn next(
        &mut self,
        text: &[u8],
        from: usize,
        find: impl Fn(&[u8], usize) -> Result<usize, usize>,
    ) -> Option<usize> {
        if from >= self.from {
            if self.hit && self.at >= from {
                return Some(self.at);
            }
            if !self.hit && self.length == text.len() {
                return None;
            }
        }
        self.search(text, from, find)
    }

    fn search(
        &mut self,
        text: &[u8],
        from: usize,
        find: impl Fn(&[u8], usize) -> Result<usize, usize>,
    ) -> Option<usize> {
        if from < self.from {
            // What lies behind is known: only the stretch before it is searched.
            let end = text.len().min(self.from + LONGEST_UNANCHORED);
            match find(text.get(..end).unwrap_or_default(), from) {
                Ok(at) if at < self.from => (self.at, self.hit, self.length) = (at, true, 0),
                Ok(_) | Err(_) => {}
            }
        } else if self.at < from {
            self.at = from;
            self.hit = false;
        }
        self.from = from;
        if self.hit {
            return Some(self.at);
        }
        if self.length == text.len() {
            return None;
        }
        match find(text, self.at) {
            Ok(at) => (self.at, self.hit, self.length) = (at, true, 0),
            Err(searched) => {
                self.at = searched.max(self.at);
                self.length = text.len();
            }
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

/// A hit in the stretch from `start` on as a place in `text`.
fn shift(found: Option<usize>, start: usize, text: &[u8]) -> Result<usize, usize> {
    found.map(|offset| start + offset).ok_or(text.len())
}

fn rest(text: &[u8], start: usize) -> &[u8] {
    text.get(start..).unwrap_or_default()
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
        let main = self.main.next(text, from, |text, at| {
            shift(memchr3(b'<', b'[', b'`', rest(text, at)), at, text)
        });
        let diamond = self.diamond.next(text, from, |text, at| {
            let found = memmem::find(rest(text, at), DIAMOND.as_bytes());
            let searched = text.len().saturating_sub(DIAMOND.len() - 1);
            found.map(|offset| at + offset).ok_or(searched)
        });
        let mut first = [main, diamond].into_iter().flatten().min();
        if !in_reasoning {
            let more = self.more.next(text, from, |text, at| {
                shift(memchr3(b'{', b':', b'~', rest(text, at)), at, text)
            });
            first = [first, more].into_iter().flatten().min();
        }
        if markers.has_unanchored() {
            let unanchored = self.unanchored.next(text, from, |text, at| {
                let hit = markers.next_unanchored(text, at);
                hit.map(|hit| hit.start)
                    .ok_or(text.len().saturating_sub(LONGEST_UNANCHORED))
            });
            if let Some(at) = unanchored.filter(|at| first.is_none_or(|first| *at <= first)) {
                return markers.next_unanchored(text, at).map(Stop::Marker);
            }
        }
        first.map(Stop::Byte)
    }
}
