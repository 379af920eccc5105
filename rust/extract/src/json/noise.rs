//! What may stand between any two tokens: white space, comments, ellipses, stray backslashes,
//! fences, and the closers from outside that end a value.

use super::ahead::Input;
use super::closers::Match;
use super::glyph::{Glyph, Quote, Seen};
use super::kinds::RepairKind;
use super::reader::{Flow, Reader, State};

/// The longest fence, with the name of its language.
pub(super) const FENCE_LENGTH: usize = 64;

/// A comment that is being passed over, and what was expected before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comment {
    pub(super) block: bool,
    pub(super) then: State,
}

impl Default for Comment {
    fn default() -> Self {
        Self {
            block: false,
            then: State::Value,
        }
    }
}

impl Reader {
    /// Passes over white space; None at the end of the text.
    pub(super) fn skip_space(&mut self, input: Input<'_>) -> Option<Seen> {
        loop {
            let seen = input.glyph(self.at)?;
            match seen.glyph {
                Glyph::Space | Glyph::Newline => {
                    if !seen.plain {
                        self.repair(RepairKind::SpaceDropped, self.at);
                    }
                    self.at += seen.length;
                }
                _ => return Some(seen),
            }
        }
    }

    /// What may stand between any two tokens: comments, ellipses, stray backslashes, closers from
    /// outside. None when the character is something else.
    pub(super) fn step_noise(&mut self, seen: Seen, input: Input<'_>) -> Option<Flow> {
        match input.closers.at(input.bytes(), self.at, input.last) {
            Match::Yes => return Some(self.end_at_closer()),
            Match::Partial => return Some(Flow::More),
            Match::No => {}
        }
        let bytes = input.bytes();
        let next = bytes.get(self.at + 1).copied();
        if next.is_none() && !input.last {
            let undecided = matches!(
                seen.glyph,
                Glyph::Slash | Glyph::Backslash | Glyph::Quote(Quote::Backtick)
            );
            if undecided {
                return Some(Flow::More);
            }
        }
        match (seen.glyph, next) {
            (Glyph::Slash, Some(b'/')) => Some(self.begin_comment(false, 2)),
            (Glyph::Slash, Some(b'*')) => Some(self.begin_comment(true, 2)),
            (Glyph::Hash, _) => Some(self.begin_comment(false, 1)),
            (Glyph::Dot, _) => {
                let goes_on = self.at > 0 && bytes.get(self.at - 1) == Some(&b'.');
                if !goes_on {
                    self.repair(RepairKind::EllipsisDropped, self.at);
                }
                self.at += seen.length;
                Some(Flow::Go)
            }
            (Glyph::Backslash, Some(b'n' | b't' | b'r')) => {
                if !self.escaped {
                    self.repair(RepairKind::BackslashDropped, self.at);
                }
                self.at += 2;
                Some(Flow::Go)
            }
            (Glyph::Quote(Quote::Backtick), Some(b'`')) => self.step_inner_fence(input),
            (Glyph::Backslash, Some(b'"')) => None,
            (Glyph::Backslash, _) => {
                self.repair(RepairKind::BackslashDropped, self.at);
                self.at += 1;
                Some(Flow::Go)
            }
            _ => None,
        }
    }

    /// A fence between tokens, with the name of its language.
    fn step_inner_fence(&mut self, input: Input<'_>) -> Option<Flow> {
        let rest = input.bytes().get(self.at..).unwrap_or_default();
        if rest.len() < 3 {
            return (!input.last).then_some(Flow::More);
        }
        if !rest.starts_with(b"```") {
            return None;
        }
        let head = rest.get(..FENCE_LENGTH).unwrap_or(rest);
        let length = head
            .iter()
            .position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'`');
        let length = match length {
            Some(length) => length,
            None if head.len() == FENCE_LENGTH => 3,
            None if input.last => rest.len(),
            None => return Some(Flow::More),
        };
        self.repair(RepairKind::FenceDropped, self.at);
        self.at += length;
        Some(Flow::Go)
    }

    pub(super) fn begin_comment(&mut self, block: bool, length: usize) -> Flow {
        self.repair(RepairKind::CommentDropped, self.at);
        self.comment = Comment {
            block,
            then: self.state,
        };
        self.at += length;
        self.state = State::Comment;
        Flow::Go
    }

    pub(super) fn step_comment(&mut self, input: Input<'_>) -> Flow {
        let bytes = input.bytes();
        let rest = bytes.get(self.at..).unwrap_or_default();
        let end = if self.comment.block {
            memchr::memmem::find(rest, b"*/").map(|found| self.at + found + 2)
        } else {
            memchr::memchr(b'\n', rest).map(|found| self.at + found)
        };
        let limit = end.unwrap_or(bytes.len());
        if let Some(closer) = input.closers.find(bytes, self.at, limit) {
            self.at = closer;
            self.state = self.comment.then;
            return Flow::Go;
        }
        if let Some(end) = end {
            self.at = end;
            self.state = self.comment.then;
            return Flow::Go;
        }
        if input.last {
            self.at = bytes.len();
            self.state = self.comment.then;
            return Flow::More;
        }
        // The end of the text may hold the beginning of an end.
        let tail = input.closers.longest().max(2);
        self.at = self.at.max(bytes.len().saturating_sub(tail));
        Flow::More
    }
}
