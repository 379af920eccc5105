//! The fast path: strict JSON, token by token, copied in long runs.
//!
//! It takes a token only together with what follows it, so that it never takes one that the
//! healing machine would read otherwise; at anything else it stops in front of the token and
//! leaves the rest to the machine, which comes back here at the next boundary between tokens.

use super::ahead::Input;
use super::closers::Closer;
use super::decide::Shape;
use super::entries::Entry;
use super::number::{Scalar, scalar};
use super::reader::{Kind, Member, Reader, State};
use super::scan;
use super::stack::Frame;

/// Whether no closer from outside begins like a token of JSON.
pub(super) fn is_safe(closers: &[Closer]) -> bool {
    closers.iter().all(|closer| {
        !matches!(
            closer.literal.as_bytes().first(),
            None | Some(
                b'{' | b'}' | b'[' | b']' | b',' | b':' | b'"' | b'-' | b'0'
                    ..=b'9'
                        | b't'
                        | b'T'
                        | b'f'
                        | b'F'
                        | b'n'
                        | b'N'
                        | b' '
                        | b'\n'
                        | b'\r'
                        | b'\t'
            )
        )
    })
}

/// Whether strict JSON can go on with this byte.
fn may_go_on(state: State, byte: u8) -> bool {
    match byte {
        b' ' | b'\n' | b'\r' | b'\t' => true,
        b'"' => state != State::Next,
        b'}' => state != State::Value,
        b',' => state == State::Next,
        b']' => state != State::Key,
        b'{' | b'[' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => state == State::Value,
        _ => false,
    }
}

/// A place in the text, with what the reader's stack says about it.
struct Fast<'a> {
    reader: &'a mut Reader,
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// From here on the text has not been copied to the output.
    run: usize,
    /// The innermost container, and whether it holds anything.
    shape: Option<Shape>,
    filled: bool,
    /// Where the token behind the one taken last begins and ends, if it was looked at.
    known: usize,
    known_end: usize,
}

impl Reader {
    /// Reads strict JSON as far as it goes.
    pub(super) fn strict(&mut self, input: Input<'_>) {
        if self.comma.is_some() || !self.strict_allowed {
            return;
        }
        let Some(&byte) = input.bytes().get(self.at) else {
            return;
        };
        if !may_go_on(self.state, byte) {
            return;
        }
        let mut state = self.state;
        let frame = self.frames.last();
        let mut fast = Fast {
            shape: frame.map(|frame| frame.shape),
            filled: frame.is_some_and(|frame| frame.filled),
            text: input.text,
            bytes: input.bytes(),
            at: self.at,
            run: self.at,
            known: usize::MAX,
            known_end: 0,
            reader: self,
        };
        let read = loop {
            let step = match state {
                State::Value => fast.value(),
                State::Key => fast.first_key(),
                _ => fast.next(),
            };
            match step {
                Some(next) => state = next,
                None => break state,
            }
            if fast.shape.is_none() {
                break State::Next;
            }
        };
        fast.leave();
        self.state = read;
    }
}

impl Fast<'_> {
    /// Writes what was taken, and hands the place back.
    fn leave(self) {
        let run = self.text.get(self.run..self.at).unwrap_or_default();
        if let Some(frame) = self.reader.frames.last_mut() {
            frame.filled = self.filled;
        }
        if self.at > self.reader.at && self.reader.last_string.is_some() {
            self.reader.leave_string();
        }
        self.reader.out.push_str(run);
        self.reader.at = self.at;
    }

    #[inline]
    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    #[inline]
    fn skip(&self, at: usize) -> usize {
        scan::skip_space(self.bytes, at)
    }

    /// Where a byte of the current run will stand in the output.
    #[inline]
    fn out(&self, at: usize) -> usize {
        self.reader.out.len() + (at - self.run)
    }

    /// Leaves out the white space between `end` and `next`.
    #[inline]
    fn leave_out(&mut self, end: usize, next: usize) {
        if end != next {
            let run = self.text.get(self.run..end).unwrap_or_default();
            self.reader.out.push_str(run);
            self.run = next;
        }
    }

    // Tokens.

    /// One past the string that begins at `at`. None: it is not strict, or not whole yet; so for
    /// all tokens.
    #[inline]
    fn string(&self, at: usize) -> Option<usize> {
        let mut end = at + 1;
        loop {
            end = scan::string_end(self.bytes, end);
            match self.byte(end)? {
                b'"' => return Some(end + 1),
                b'\\' => end += self.escape(end)?,
                _ => return None,
            }
        }
    }

    #[inline]
    fn escape(&self, at: usize) -> Option<usize> {
        match self.byte(at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Some(2),
            Some(b'u') => self.unicode(at),
            _ => None,
        }
    }

    fn unicode(&self, at: usize) -> Option<usize> {
        match self.unit(at)? {
            0xd800..0xdc00 if self.byte(at + 6) == Some(b'\\') => {
                match (self.byte(at + 7), self.unit(at + 6)?) {
                    (Some(b'u'), 0xdc00..0xe000) => Some(12),
                    _ => None,
                }
            }
            0xd800..0xe000 => None,
            _ => Some(6),
        }
    }

    fn unit(&self, at: usize) -> Option<u32> {
        let digits = self.bytes.get(at + 2..at + 6)?;
        digits.iter().try_fold(0, |unit: u32, &byte| {
            let digit = char::from(byte).to_digit(16)?;
            Some((unit << 4) | digit)
        })
    }

    /// One past the string, number or literal that begins at `at`.
    #[inline]
    fn scalar(&self, at: usize) -> Option<usize> {
        if self.known == at {
            return Some(self.known_end);
        }
        let rest = self.bytes.get(at..)?;
        match rest.first()? {
            b'"' => self.string(at),
            b'-' | b'0'..=b'9' => self.number(at),
            b't' if rest.starts_with(b"true") => Some(at + 4),
            b'f' if rest.starts_with(b"false") => Some(at + 5),
            b'n' if rest.starts_with(b"null") => Some(at + 4),
            _ => None,
        }
    }

    /// One past the number that begins at `at`.
    #[inline]
    fn number(&self, at: usize) -> Option<usize> {
        let mut end = at;
        while let Some(b'0'..=b'9') = self.bytes.get(end) {
            end += 1;
        }
        match self.byte(end)? {
            b'-' | b'+' | b'.' | b'e' | b'E' => self.long_number(at),
            _ if end > at + 1 && self.byte(at) == Some(b'0') => None,
            _ => Some(end),
        }
    }

    fn long_number(&self, at: usize) -> Option<usize> {
        let rest = self.bytes.get(at..)?;
        let length = rest
            .iter()
            .position(|byte| !matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))?;
        let token = self.text.get(at..at + length)?;
        (scalar(token) == Scalar::Number).then_some(at + length)
    }

    /// Where the colon behind the key at `at` stands; the key's end is `known_end` then.
    #[inline]
    fn key(&mut self, at: usize) -> Option<usize> {
        if self.known != at {
            if self.byte(at)? != b'"' {
                return None;
            }
            self.known_end = self.string(at)?;
            self.known = at;
        }
        let colon = self.skip(self.known_end);
        (self.byte(colon)? == b':').then_some(colon)
    }

    // Values.

    /// A value: after a colon, the first of an array, or the root.
    #[inline]
    fn value(&mut self) -> Option<State> {
        let at = self.skip(self.at);
        match self.shape {
            Some(Shape::Object) => self.begin_value(None, at),
            Some(Shape::Array) if self.filled => None,
            Some(Shape::Array) if self.byte(at) == Some(b']') => self.close(at),
            Some(Shape::Parens) => None,
            _ => self.begin_value(None, at),
        }
    }

    /// A value at `at`, with the comma before it if it is an item of an array.
    #[inline]
    fn begin_value(&mut self, comma: Option<usize>, at: usize) -> Option<State> {
        match (self.byte(at), self.shape) {
            (Some(b'{'), _) => self.open(comma, at, Shape::Object),
            (Some(b'['), _) => self.open(comma, at, Shape::Array),
            (Some(_), Some(shape)) => self.take_scalar(comma, at, shape),
            _ => None,
        }
    }

    /// Takes a scalar, if what follows shows that it is over.
    #[inline]
    fn take_scalar(&mut self, comma: Option<usize>, at: usize, shape: Shape) -> Option<State> {
        let end = self.scalar(at)?;
        let next = self.skip(end);
        match (shape, self.byte(next)?) {
            (Shape::Object, b'}') | (Shape::Array, b']') => {}
            (Shape::Object, b',') => {
                self.key(self.skip(next + 1))?;
            }
            (Shape::Array, b',') => self.item_follows(self.skip(next + 1))?,
            _ => return None,
        }
        self.copy_up_to(comma, at);
        self.filled = true;
        let kind = kind_of(self.byte(at)?);
        self.reader.last_kind = kind;
        if self.reader.records_members() {
            let out = self.out(at);
            let member = self.reader.member(kind, at);
            self.reader.members.push(Member {
                output: out..out + (end - at),
                text: at..end,
                closed: true,
                ..member
            });
        }
        self.at = end;
        Some(State::Next)
    }

    /// Whether an item begins at `at`, and is over where it seems to be.
    #[inline]
    fn item_follows(&mut self, at: usize) -> Option<()> {
        if let b'{' | b'[' = self.byte(at)? {
            return Some(());
        }
        self.known_end = self.scalar(at)?;
        self.known = at;
        matches!(self.byte(self.skip(self.known_end))?, b',' | b']').then_some(())
    }

    /// Copies up to a token at `at`, less white space.
    #[inline]
    fn copy_up_to(&mut self, comma: Option<usize>, at: usize) {
        let before = self.at;
        match comma {
            Some(comma) => {
                self.leave_out(before, comma);
                self.leave_out(comma + 1, at);
            }
            None => self.leave_out(before, at),
        }
    }

    fn open(&mut self, comma: Option<usize>, at: usize, shape: Shape) -> Option<State> {
        if self.reader.frames.len() >= self.reader.options.max_depth {
            return None;
        }
        self.copy_up_to(comma, at);
        let open = self.out(at);
        let (kind, state) = match shape {
            Shape::Object => (Kind::Object, State::Key),
            _ => (Kind::Array, State::Value),
        };
        let mut index = None;
        match self.reader.frames.last_mut() {
            None => self.reader.root_kind = Some(kind),
            Some(frame) => {
                frame.filled = true;
                if self.reader.records_members() {
                    let mut member = self.reader.member(kind, at);
                    member.output = open..open;
                    index = Some(self.reader.members.len());
                    self.reader.members.push(member);
                }
            }
        }
        let mut frame = Frame::new(shape, at, open, index);
        frame.first_member = self.reader.members.len();
        frame.first_valueless = self.reader.valueless.len();
        self.reader.frames.push(frame);
        self.shape = Some(shape);
        self.filled = false;
        self.at = at + 1;
        Some(state)
    }

    /// After the opener of an object.
    #[inline]
    fn first_key(&mut self) -> Option<State> {
        if self.filled {
            return None;
        }
        let at = self.skip(self.at);
        if self.byte(at) == Some(b'}') {
            return self.close(at);
        }
        let colon = self.key(at)?;
        let before = self.at;
        self.leave_out(before, at);
        Some(self.take_key(at, colon, self.out(at)))
    }

    /// Takes a key and its colon; the entry begins at `mark` in the output.
    #[inline]
    fn take_key(&mut self, at: usize, colon: usize, mark: usize) -> State {
        let end = self.known_end;
        let key_start = self.out(at);
        self.reader.entry = Entry {
            mark,
            members: self.reader.members.len(),
            filled: self.filled,
            key_start,
            key_end: key_start + (end - at),
            offset: at,
            end,
        };
        self.filled = true;
        self.leave_out(end, colon);
        self.at = colon + 1;
        State::Value
    }

    fn close(&mut self, at: usize) -> Option<State> {
        let frame = self.reader.frames.last().filter(|frame| !frame.doubled)?;
        self.reader.last_kind = match frame.shape {
            Shape::Object => Kind::Object,
            _ => Kind::Array,
        };
        let member = frame.member;
        self.reader.frames.pop();
        let before = self.at;
        self.leave_out(before, at);
        self.at = at + 1;
        let out = self.out(at + 1);
        if let Some(member) = member.and_then(|index| self.reader.members.get_mut(index)) {
            member.output.end = out;
            member.text.end = at + 1;
            member.closed = true;
        }
        // The container around holds at least the one that was closed.
        self.shape = self.reader.inside();
        self.filled = true;
        Some(State::Next)
    }

    /// After a value.
    #[inline]
    fn next(&mut self) -> Option<State> {
        if !self.filled {
            // An entry was taken back.
            return None;
        }
        let next = self.skip(self.at);
        match (self.shape, self.byte(next)) {
            (Some(Shape::Object), Some(b'}')) | (Some(Shape::Array), Some(b']')) => {
                self.close(next)
            }
            (Some(Shape::Object), Some(b',')) => {
                let at = self.skip(next + 1);
                let colon = self.key(at)?;
                let before = self.at;
                self.leave_out(before, next);
                let mark = self.out(next);
                self.leave_out(next + 1, at);
                Some(self.take_key(at, colon, mark))
            }
            (Some(Shape::Array), Some(b',')) => {
                let at = self.skip(next + 1);
                self.begin_value(Some(next), at)
            }
            _ => None,
        }
    }
}

fn kind_of(first: u8) -> Kind {
    match first {
        b'"' => Kind::String,
        b't' | b'f' => Kind::Boolean,
        b'n' => Kind::Null,
        _ => Kind::Number,
    }
}
