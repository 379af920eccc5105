//! Values, keys, colons and commas, healed where they are missing, doubled or foreign.

use super::ahead::{Input, Tok};
use super::decide::{self, Shape};
use super::entries::Entry;
use super::glyph::{Glyph, Quote, Seen};
use super::kinds::{ErrorKind, RepairKind};
use super::reader::{Flow, Kind, Reader, State};
use super::stack::Frame;

impl Reader {
    pub(super) fn step_value(&mut self, input: Input<'_>) -> Flow {
        let Some(seen) = self.skip_space(input) else {
            return Flow::More;
        };
        let at = self.at;
        if let Glyph::Hash = seen.glyph {
            // A bare colour after a colon; a comment elsewhere.
            let next = input.bytes().get(at + 1);
            if next.is_none() && !input.last {
                return Flow::More;
            }
            if self.inside() == Some(Shape::Object) && next.is_some_and(u8::is_ascii_alphanumeric) {
                return self.begin_bare(at, false);
            }
        }
        if seen.glyph == Glyph::Dot {
            let next = input.bytes().get(at + 1);
            if next.is_none() && !input.last {
                return Flow::More;
            }
            if next.is_some_and(u8::is_ascii_digit) {
                return self.begin_bare(at, false);
            }
        }
        if let Some(flow) = self.step_noise(seen, input) {
            return flow;
        }
        self.note_punctuation(seen, at);
        match seen.glyph {
            Glyph::OpenBrace => self.open(Shape::Object, seen),
            Glyph::OpenBracket => self.open(Shape::Array, seen),
            Glyph::OpenParen => {
                self.repair(RepairKind::OpenerTranslated, at);
                self.open(Shape::Parens, seen)
            }
            Glyph::Quote(quote) => self.begin_text(quote, seen.length, input),
            Glyph::Backslash => self.begin_text(Quote::EscapedDouble, 2, input),
            Glyph::CloseBrace | Glyph::CloseBracket | Glyph::CloseParen => {
                if self.inside() == Some(Shape::Object) {
                    self.drop_key();
                }
                self.state = State::Next;
                self.close(seen, input)
            }
            Glyph::Comma | Glyph::Semicolon => self.value_comma(seen),
            Glyph::Colon => {
                self.repair(RepairKind::ColonDropped, at);
                self.at += seen.length;
                Flow::Go
            }
            _ => self.begin_bare(at, false),
        }
    }

    fn value_comma(&mut self, seen: Seen) -> Flow {
        match self.inside() {
            Some(Shape::Object) => {
                self.drop_key();
                self.comma = Some(self.at);
                self.at += seen.length;
                self.state = State::Key;
                Flow::Go
            }
            Some(_) => self.take_comma(seen),
            None => self.fail(ErrorKind::Unreadable, self.at),
        }
    }

    pub(super) fn open(&mut self, shape: Shape, seen: Seen) -> Flow {
        let at = self.at;
        if self.frames.len() >= self.options.max_depth {
            return self.fail(ErrorKind::TooDeep, at);
        }
        self.begin_item(at);
        let kind = match shape {
            Shape::Object => Kind::Object,
            Shape::Array | Shape::Parens => Kind::Array,
        };
        let member = self.open_member(kind, at);
        let mut frame = Frame::new(shape, at, self.out.len(), member);
        frame.first_member = self.members.len();
        frame.first_valueless = self.valueless.len();
        self.frames.push(frame);
        self.out.push(match shape {
            Shape::Object => '{',
            Shape::Array | Shape::Parens => '[',
        });
        self.comma = None;
        self.leave_string();
        self.at += seen.length;
        self.state = match shape {
            Shape::Object => State::Key,
            Shape::Array | Shape::Parens => State::Value,
        };
        Flow::Go
    }

    pub(super) fn step_next(&mut self, input: Input<'_>) -> Flow {
        if self.frames.is_empty() {
            return self.root_done(!self.cut);
        }
        let Some(seen) = self.skip_space(input) else {
            return Flow::More;
        };
        let at = self.at;
        if let Some(flow) = self.step_noise(seen, input) {
            return flow;
        }
        self.note_punctuation(seen, at);
        match seen.glyph {
            Glyph::Comma | Glyph::Semicolon => self.take_comma(seen),
            Glyph::CloseBrace | Glyph::CloseBracket | Glyph::CloseParen => self.close(seen, input),
            Glyph::Plus if self.last_string.is_some() => {
                self.at += seen.length;
                self.look(self.at);
                self.state = State::Join;
                Flow::Go
            }
            Glyph::Quote(_) | Glyph::Backslash if self.joins_by_place() => {
                self.look(at);
                self.state = State::Join;
                Flow::Go
            }
            Glyph::Colon => self.colon_in_array(seen),
            Glyph::OpenParen | Glyph::Other | Glyph::Equals => self.fail(ErrorKind::Unreadable, at),
            _ => self.missing_comma(),
        }
    }

    fn note_punctuation(&mut self, seen: Seen, at: usize) {
        let structure = !matches!(seen.glyph, Glyph::Quote(_) | Glyph::Word | Glyph::Other);
        if !(structure && seen.length > 1 || seen.glyph == Glyph::Semicolon) {
            return;
        }
        // A step that waits for more text is taken again.
        if self.noted != Some(at) {
            self.noted = Some(at);
            self.repair(RepairKind::PunctuationTranslated, at);
        }
    }

    /// A string as the value of a key, where the next thing is a string: the two are one, unless
    /// the second is a key.
    fn joins_by_place(&self) -> bool {
        self.last_string.is_some() && self.inside() == Some(Shape::Object)
    }

    fn missing_comma(&mut self) -> Flow {
        self.leave_string();
        self.state = match self.inside() {
            Some(Shape::Object) => State::Key,
            _ => State::Value,
        };
        Flow::Go
    }

    fn take_comma(&mut self, seen: Seen) -> Flow {
        if self.comma.is_some() {
            self.repair(RepairKind::CommaDropped, self.at);
        } else {
            self.comma = Some(self.at);
        }
        self.leave_string();
        self.at += seen.length;
        self.state = match self.inside() {
            Some(Shape::Object) => State::Key,
            _ => State::Value,
        };
        Flow::Go
    }

    /// A colon behind an item of an array: the item is a key.
    fn colon_in_array(&mut self, seen: Seen) -> Flow {
        let key = self.last_string.is_some() && self.inside() == Some(Shape::Array);
        if key && self.entry_is_first() {
            return self.reopen_as_object(seen);
        }
        if key && self.frames.nearest(Shape::Object) > self.frames.nearest(Shape::Parens) {
            return self.close_before_key(seen);
        }
        self.fail(ErrorKind::Unreadable, self.at)
    }

    /// An object that was opened with a bracket.
    fn reopen_as_object(&mut self, seen: Seen) -> Flow {
        let Some(&Frame {
            at, open, member, ..
        }) = self.frames.last()
        else {
            return self.fail(ErrorKind::Unreadable, self.at);
        };
        self.frames.reshape(Shape::Object);
        self.out.replace_range(open..=open, "{");
        self.set_kind(member, Kind::Object);
        self.repair(RepairKind::OpenerTranslated, at);
        self.members.truncate(self.entry.members);
        self.entry.key_start = open + 1;
        self.entry.key_end = self.out.len();
        self.begin_member_value(seen);
        Flow::Go
    }

    /// The arrays around the last item were never closed: it is a key of the object around them.
    fn close_before_key(&mut self, seen: Seen) -> Flow {
        let Entry { mark, offset, .. } = self.entry;
        let key = self.out.split_off(mark);
        let key = key.trim_start_matches(',');
        self.last_string = None;
        self.last_string_member = None;
        self.drop_entry();
        let colon = std::mem::replace(&mut self.at, offset);
        while self.inside() == Some(Shape::Array) {
            self.repair(RepairKind::CloserAdded, offset);
            self.close_frame();
        }
        // Where a comma was missing, that is noted already.
        self.comma = Some(offset);
        self.begin_key(offset);
        self.out.push_str(key);
        self.at = colon;
        self.key_done();
        self.begin_member_value(seen);
        Flow::Go
    }

    /// The colon at `self.at` stands behind a key.
    fn begin_member_value(&mut self, seen: Seen) {
        self.out.push(':');
        self.last_string = None;
        self.at += seen.length;
        self.state = State::Value;
    }

    pub(super) fn step_join(&mut self, input: Input<'_>) -> Flow {
        let plus = input.bytes().get(self.at.wrapping_sub(1)) == Some(&b'+');
        let Some(first) = self.ahead.token(0, input) else {
            return Flow::More;
        };
        if !matches!(first.tok, Tok::Str | Tok::OpenStr) {
            if first.tok == Tok::End {
                self.at = first.at;
                self.state = State::Next;
                return Flow::Go;
            }
            return self.fail(ErrorKind::Unreadable, self.at);
        }
        if !plus {
            let Some(second) = self.ahead.token(1, input) else {
                return Flow::More;
            };
            if second.tok == Tok::Colon || first.tok == Tok::OpenStr {
                return self.missing_comma();
            }
        }
        let (quote, length) = match input.glyph(first.at) {
            Some(Seen {
                glyph: Glyph::Quote(quote),
                length,
                ..
            }) => (quote, length),
            _ => (Quote::EscapedDouble, 2),
        };
        self.repair(RepairKind::StringsJoined, first.at);
        self.at = first.at;
        self.out.pop();
        self.last_string = None;
        self.open_member = self.last_string_member.take();
        self.join_text(quote, length)
    }

    pub(super) fn step_key(&mut self, input: Input<'_>) -> Flow {
        let Some(seen) = self.skip_space(input) else {
            return Flow::More;
        };
        let at = self.at;
        if let Some(flow) = self.step_noise(seen, input) {
            return flow;
        }
        self.note_punctuation(seen, at);
        match seen.glyph {
            Glyph::Quote(quote) => self.begin_text(quote, seen.length, input),
            Glyph::Backslash => self.begin_text(Quote::EscapedDouble, 2, input),
            Glyph::CloseBrace | Glyph::CloseBracket => self.close(seen, input),
            Glyph::Comma | Glyph::Semicolon => self.take_comma(seen),
            Glyph::OpenBrace if self.frames.last().is_some_and(|frame| !frame.filled) => {
                self.double_opener(seen)
            }
            Glyph::OpenBrace => self.item_for_key(),
            Glyph::OpenBracket => {
                self.look(at);
                self.state = State::Bracket;
                Flow::Go
            }
            Glyph::OpenParen | Glyph::CloseParen | Glyph::Colon => {
                self.fail(ErrorKind::Unreadable, at)
            }
            _ => self.begin_bare(at, true),
        }
    }

    /// A bracket where a key belongs: a stray one right before a key, else the next item.
    pub(super) fn step_bracket(&mut self, input: Input<'_>) -> Flow {
        let Some(key) = decide::begins_key(&mut self.ahead, 1, input) else {
            return Flow::More;
        };
        self.state = State::Key;
        if !key {
            return self.item_for_key();
        }
        self.repair(RepairKind::OpenerDropped, self.at);
        self.at += input.glyph(self.at).map_or(1, |seen| seen.length);
        Flow::Go
    }

    fn double_opener(&mut self, seen: Seen) -> Flow {
        if let Some(frame) = self.frames.last_mut() {
            frame.doubled = true;
        }
        self.repair(RepairKind::OpenerDropped, self.at);
        self.at += seen.length;
        Flow::Go
    }

    /// A container where a key belongs: the next item behind an object that was never closed.
    fn item_for_key(&mut self) -> Flow {
        let filled = self.frames.last().is_some_and(|frame| frame.filled);
        if !filled || self.frames.parent() != Some(Shape::Array) {
            return self.fail(ErrorKind::Unreadable, self.at);
        }
        let comma = self.comma.take();
        self.repair(RepairKind::CloserAdded, self.at);
        self.close_frame();
        self.comma = comma;
        self.state = State::Value;
        Flow::Go
    }

    pub(super) fn step_colon(&mut self, input: Input<'_>) -> Flow {
        let Some(seen) = self.skip_space(input) else {
            return Flow::More;
        };
        let at = self.at;
        if let Some(flow) = self.step_noise(seen, input) {
            return flow;
        }
        match seen.glyph {
            Glyph::Colon => {
                self.note_punctuation(seen, at);
                self.out.push(':');
                self.at += seen.length;
                self.state = State::Value;
                Flow::Go
            }
            Glyph::Equals => {
                let next = input.bytes().get(at + 1);
                if next.is_none() && !input.last {
                    return Flow::More;
                }
                self.repair(RepairKind::PunctuationTranslated, at);
                self.out.push(':');
                self.at += if next == Some(&b'>') { 2 } else { 1 };
                self.state = State::Value;
                Flow::Go
            }
            Glyph::Comma | Glyph::CloseBrace | Glyph::Semicolon => {
                self.look(at);
                self.state = State::Set;
                Flow::Go
            }
            Glyph::CloseBracket | Glyph::CloseParen => {
                self.drop_key();
                self.state = State::Next;
                Flow::Go
            }
            _ => {
                self.repair(RepairKind::ColonAdded, at);
                self.out.push(':');
                self.state = State::Value;
                Flow::Go
            }
        }
    }

    /// A key without a colon: an element of a set when it is the first of its object and no key
    /// with a colon follows, else a key without a value.
    pub(super) fn step_set(&mut self, input: Input<'_>) -> Flow {
        let quoted = input.glyph(self.entry.offset).is_some_and(|seen| {
            matches!(seen.glyph, Glyph::Quote(_) | Glyph::Backslash)
                || input
                    .bytes()
                    .get(self.entry.offset)
                    .is_some_and(u8::is_ascii_digit)
        });
        let first =
            self.entry_is_first() && self.frames.last().is_some_and(|frame| !frame.implicit);
        let Some(token) = self.ahead.token(0, input) else {
            return Flow::More;
        };
        let mut set = quoted && first;
        if set && token.tok == Tok::Comma {
            let Some(key) = decide::begins_key(&mut self.ahead, 1, input) else {
                return Flow::More;
            };
            set = !key;
        }
        if !set {
            if !quoted {
                return self.fail(ErrorKind::Unreadable, self.entry.offset);
            }
            self.drop_key();
            self.state = State::Next;
            return Flow::Go;
        }
        let Some(&Frame {
            at, open, member, ..
        }) = self.frames.last()
        else {
            return self.fail(ErrorKind::Unreadable, self.at);
        };
        self.frames.reshape(Shape::Array);
        self.out.replace_range(open..=open, "[");
        self.repair(RepairKind::OpenerTranslated, at);
        self.set_kind(member, Kind::Array);
        self.unquote_number(input);
        self.first_of_set();
        self.state = State::Next;
        Flow::Go
    }
}
