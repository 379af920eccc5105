//! The fast path: strict JSON, token by token, copied in long runs.
//!
//! It takes a token only together with what follows it, so that it never takes one that the
//! healing machine would read otherwise; at anything else it stops in front of the token and
//! leaves the rest to the machine, which comes back here at the next boundary between tokens.

use super::ahead::Input;
use super::closers::Closer;
use super::decide::Shape;
use super::number::{Scalar, scalar};
use super::reader::{Entry, Frame, Kind, Member, Reader, State};
use super::scan;
use std::ops::Range;

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

/// A place in the text, and from where on the text has not been copied to the output.
struct Cursor<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    run: usize,
    /// The end of a string that was looked at from the one before it.
    known: (usize, usize),
}

/// Where a key begins and ends, and where its colon stands.
struct FoundKey {
    key: usize,
    end: usize,
    colon: usize,
}

/// Why the fast path stops: the token is not strict, or not whole yet.
struct Stop;

type Step<T> = Result<T, Stop>;

impl Cursor<'_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    fn skip(&self, at: usize) -> usize {
        scan::skip_space(self.bytes, at)
    }

    /// Where a byte of the current run will stand in the output.
    fn out(&self, reader: &Reader, at: usize) -> usize {
        reader.out.len() + (at - self.run)
    }

    /// Copies the run up to `end` and begins another at `next`.
    fn flush(&mut self, reader: &mut Reader, end: usize, next: usize) {
        if end != next {
            reader
                .out
                .push_str(self.text.get(self.run..end).unwrap_or_default());
            self.run = next;
        }
    }

    /// One past the string that begins at `at`.
    fn string(&mut self, at: usize) -> Step<usize> {
        if self.known.0 == at {
            return Ok(self.known.1);
        }
        let mut end = at + 1;
        loop {
            end = scan::string_end(self.bytes, end);
            match self.byte(end) {
                Some(b'"') => return Ok(end + 1),
                Some(b'\\') => end += self.escape(end)?,
                _ => return Err(Stop),
            }
        }
    }

    /// The key that begins behind a comma, with its colon.
    fn entry(&mut self, from: usize) -> Step<FoundKey> {
        let key = self.skip(from);
        if self.byte(key) != Some(b'"') {
            return Err(Stop);
        }
        let end = self.string(key)?;
        self.known = (key, end);
        let colon = self.skip(end);
        match self.byte(colon) {
            Some(b':') => Ok(FoundKey { key, end, colon }),
            _ => Err(Stop),
        }
    }

    /// Whether an item begins behind a comma, and is over where it seems to be.
    fn item_follows(&mut self, from: usize) -> Step<()> {
        let at = self.skip(from);
        let end = match self.byte(at) {
            Some(b'{' | b'[') => return Ok(()),
            Some(b'"') => {
                let end = self.string(at)?;
                self.known = (at, end);
                end
            }
            Some(_) => self.bare(at)?.0,
            None => return Err(Stop),
        };
        match self.byte(self.skip(end)) {
            Some(b',' | b']') => Ok(()),
            _ => Err(Stop),
        }
    }

    fn escape(&self, at: usize) -> Step<usize> {
        match self.byte(at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(2),
            Some(b'u') => match self.unit(at)? {
                0xd800..0xdc00 if self.byte(at + 6) == Some(b'\\') => {
                    match (self.byte(at + 7), self.unit(at + 6)?) {
                        (Some(b'u'), 0xdc00..0xe000) => Ok(12),
                        _ => Err(Stop),
                    }
                }
                0xd800..0xe000 => Err(Stop),
                _ => Ok(6),
            },
            _ => Err(Stop),
        }
    }

    fn unit(&self, at: usize) -> Step<u32> {
        let digits = self.bytes.get(at + 2..at + 6).ok_or(Stop)?;
        digits.iter().try_fold(0, |unit, &byte| {
            let digit = char::from(byte).to_digit(16).ok_or(Stop)?;
            Ok((unit << 4) | digit)
        })
    }

    /// One past the number or literal that begins at `at`, and its kind.
    fn bare(&self, at: usize) -> Step<(usize, Kind)> {
        let rest = self.bytes.get(at..).unwrap_or_default();
        match rest.first() {
            Some(b't') if rest.starts_with(b"true") => Ok((at + 4, Kind::Boolean)),
            Some(b'f') if rest.starts_with(b"false") => Ok((at + 5, Kind::Boolean)),
            Some(b'n') if rest.starts_with(b"null") => Ok((at + 4, Kind::Null)),
            Some(b'-' | b'0'..=b'9') => self.number(at).map(|end| (end, Kind::Number)),
            _ => Err(Stop),
        }
    }

    fn number(&self, at: usize) -> Step<usize> {
        let rest = self.bytes.get(at..).unwrap_or_default();
        let mut plain = true;
        let length = rest
            .iter()
            .position(|byte| match byte {
                b'0'..=b'9' => false,
                b'-' | b'+' | b'.' | b'e' | b'E' => {
                    plain = false;
                    false
                }
                _ => true,
            })
            .ok_or(Stop)?;
        let zero = rest.first() == Some(&b'0');
        if (plain && !zero) || length == 1 && plain {
            return Ok(at + length);
        }
        let token = self.text.get(at..at + length).ok_or(Stop)?;
        match scalar(token) {
            Scalar::Number => Ok(at + length),
            _ => Err(Stop),
        }
    }
}

impl Reader {
    /// Reads strict JSON as far as it goes.
    pub(super) fn strict(&mut self, input: Input<'_>) {
        if self.comma.is_some() || !self.strict_allowed {
            return;
        }
        let mut cursor = Cursor {
            text: input.text,
            bytes: input.bytes(),
            at: self.at,
            run: self.at,
            known: (usize::MAX, 0),
        };
        let state = loop {
            let step = match self.state {
                State::Value => self.strict_value(&mut cursor),
                State::Key => self.strict_key(&mut cursor),
                State::Next => self.strict_next(&mut cursor),
                _ => Err(Stop),
            };
            match step {
                Ok(state) => self.state = state,
                Err(Stop) => break self.state,
            }
            if self.frames.is_empty() {
                break State::Next;
            }
        };
        self.state = state;
        self.out.push_str(input.slice(cursor.run, cursor.at));
        self.at = cursor.at;
    }

    /// A value: after a colon, the first of an array, or the root.
    fn strict_value(&mut self, cursor: &mut Cursor<'_>) -> Step<State> {
        let at = cursor.skip(cursor.at);
        match self.inside() {
            Some(Shape::Array) if !self.unfilled() => Err(Stop),
            Some(Shape::Array) if cursor.byte(at) == Some(b']') => self.strict_close(cursor, at),
            Some(Shape::Parens) => Err(Stop),
            _ => self.strict_begin_value(cursor, None, at),
        }
    }

    /// A value at `at`, with the comma before it if it is an item.
    fn strict_begin_value(
        &mut self,
        cursor: &mut Cursor<'_>,
        comma: Option<usize>,
        at: usize,
    ) -> Step<State> {
        match (cursor.byte(at), self.inside()) {
            (Some(b'{'), _) => self.strict_open(cursor, comma, at, Shape::Object),
            (Some(b'['), _) => self.strict_open(cursor, comma, at, Shape::Array),
            (Some(b'"'), Some(shape)) => {
                let end = cursor.string(at)?;
                self.strict_scalar(cursor, comma, at..end, Kind::String, shape)
            }
            (Some(_), Some(shape)) => {
                let (end, kind) = cursor.bare(at)?;
                self.strict_scalar(cursor, comma, at..end, kind, shape)
            }
            _ => Err(Stop),
        }
    }

    fn unfilled(&self) -> bool {
        self.frames.last().is_some_and(|frame| !frame.filled)
    }

    /// Takes a scalar, if what follows shows that it is over.
    fn strict_scalar(
        &mut self,
        cursor: &mut Cursor<'_>,
        comma: Option<usize>,
        span: Range<usize>,
        kind: Kind,
        shape: Shape,
    ) -> Step<State> {
        let next = cursor.skip(span.end);
        match (shape, cursor.byte(next)) {
            (Shape::Object, Some(b'}')) | (Shape::Array, Some(b']')) => {}
            (Shape::Object, Some(b',')) => {
                cursor.entry(next + 1)?;
            }
            (Shape::Array, Some(b',')) => cursor.item_follows(next + 1)?,
            _ => return Err(Stop),
        }
        self.strict_begin(cursor, comma, span.start);
        let out = cursor.out(self, span.start);
        self.last_kind = kind;
        if self.records_members() {
            let member = self.member(kind, span.start);
            self.members.push(Member {
                output: out..out + span.len(),
                text: span.clone(),
                closed: true,
                ..member
            });
        }
        cursor.at = span.end;
        Ok(State::Next)
    }

    /// Copies up to the value that begins at `at`, less white space, and notes where an item
    /// begins; keys do so themselves.
    fn strict_begin(&mut self, cursor: &mut Cursor<'_>, comma: Option<usize>, at: usize) {
        let before = cursor.at;
        let mark = comma.unwrap_or(at);
        cursor.flush(self, before, mark);
        let mark_out = cursor.out(self, mark);
        if comma.is_some() {
            cursor.flush(self, mark + 1, at);
        }
        let members = self.members.len();
        if let Some(frame) = self.frames.last_mut() {
            if frame.shape == Shape::Array {
                self.entry = Entry {
                    mark: mark_out,
                    members,
                    filled: frame.filled,
                    offset: at,
                    ..Entry::default()
                };
                frame.filled = true;
            }
        }
    }

    fn strict_open(
        &mut self,
        cursor: &mut Cursor<'_>,
        comma: Option<usize>,
        at: usize,
        shape: Shape,
    ) -> Step<State> {
        if self.frames.len() >= self.options.max_depth {
            return Err(Stop);
        }
        self.strict_begin(cursor, comma, at);
        let open = cursor.out(self, at);
        let kind = match shape {
            Shape::Object => Kind::Object,
            _ => Kind::Array,
        };
        let mut index = None;
        if self.frames.is_empty() {
            self.root_kind = Some(kind);
        } else if self.records_members() {
            let member = self.member(kind, at);
            self.members.push(Member {
                output: open..open,
                ..member
            });
            index = Some(self.members.len() - 1);
        }
        self.push_frame(Frame {
            shape,
            open,
            filled: false,
            commas: false,
            doubled: false,
            member: index,
            first_member: self.members.len(),
            first_valueless: self.valueless.len(),
            implicit: false,
        });
        cursor.at = at + 1;
        Ok(match shape {
            Shape::Object => State::Key,
            _ => State::Value,
        })
    }

    /// After the opener of an object.
    fn strict_key(&mut self, cursor: &mut Cursor<'_>) -> Step<State> {
        if !self.unfilled() {
            return Err(Stop);
        }
        let at = cursor.skip(cursor.at);
        if cursor.byte(at) == Some(b'}') {
            return self.strict_close(cursor, at);
        }
        let entry = cursor.entry(at)?;
        Ok(self.strict_write_key(cursor, at, &entry))
    }

    /// Takes the comma at `mark`, if the key does not stand there, the key and its colon.
    fn strict_write_key(
        &mut self,
        cursor: &mut Cursor<'_>,
        mark: usize,
        found: &FoundKey,
    ) -> State {
        let before = cursor.at;
        cursor.flush(self, before, mark);
        let mark_out = cursor.out(self, mark);
        if mark != found.key {
            cursor.flush(self, mark + 1, found.key);
        }
        let key_start = cursor.out(self, found.key);
        let members = self.members.len();
        if let Some(frame) = self.frames.last_mut() {
            self.entry = Entry {
                mark: mark_out,
                members,
                filled: frame.filled,
                key_start,
                key_end: key_start + (found.end - found.key),
                offset: found.key,
                end: found.end,
            };
            frame.filled = true;
        }
        cursor.flush(self, found.end, found.colon);
        cursor.at = found.colon + 1;
        State::Value
    }

    fn strict_close(&mut self, cursor: &mut Cursor<'_>, at: usize) -> Step<State> {
        let Some(frame) = self.frames.last().filter(|frame| !frame.doubled) else {
            return Err(Stop);
        };
        self.last_kind = match frame.shape {
            Shape::Object => Kind::Object,
            _ => Kind::Array,
        };
        let member = frame.member;
        self.pop_frame();
        let before = cursor.at;
        cursor.flush(self, before, at);
        cursor.at = at + 1;
        let out = cursor.out(self, at + 1);
        if let Some(member) = member.and_then(|index| self.members.get_mut(index)) {
            member.output.end = out;
            member.text.end = at + 1;
            member.closed = true;
        }
        Ok(State::Next)
    }

    /// After a container, or a scalar that the healing machine read.
    fn strict_next(&mut self, cursor: &mut Cursor<'_>) -> Step<State> {
        let next = cursor.skip(cursor.at);
        let state = match (self.inside(), cursor.byte(next)) {
            (Some(Shape::Object), Some(b'}')) | (Some(Shape::Array), Some(b']')) => {
                self.strict_close(cursor, next)
            }
            (Some(Shape::Object), Some(b',')) => {
                let entry = cursor.entry(next + 1)?;
                Ok(self.strict_write_key(cursor, next, &entry))
            }
            (Some(Shape::Array), Some(b',')) => {
                let at = cursor.skip(next + 1);
                self.strict_begin_value(cursor, Some(next), at)
            }
            _ => Err(Stop),
        }?;
        if self.last_string.is_some() {
            self.leave_string();
        }
        Ok(state)
    }
}
