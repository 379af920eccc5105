//! The ends of containers: closers that match, that do not, that are missing.

use super::ahead::Input;
use super::decide::{self, Mismatch, Shape};
use super::glyph::{Glyph, Seen};
use super::kinds::{ErrorKind, RepairKind};
use super::reader::{Flow, Kind, Reader, State};
use super::stack::Frame;

impl Reader {
    pub(super) fn close(&mut self, seen: Seen, input: Input<'_>) -> Flow {
        let Some(frame) = self.frames.last() else {
            return self.fail(ErrorKind::Unreadable, self.at);
        };
        let matches = matches!(
            (seen.glyph, frame.shape),
            (Glyph::CloseBrace, Shape::Object)
                | (Glyph::CloseBracket, Shape::Array)
                | (Glyph::CloseParen, Shape::Parens)
        );
        if !matches {
            self.look(self.at + seen.length);
            self.state = State::Mismatch;
            return Flow::Go;
        }
        let doubled = frame.doubled;
        if doubled && seen.glyph == Glyph::CloseBrace {
            match input.glyph(self.at + seen.length) {
                None if !input.last => return Flow::More,
                Some(next) if next.glyph == Glyph::CloseBrace => {
                    self.repair(RepairKind::CloserDropped, self.at);
                    self.at += seen.length;
                    if let Some(frame) = self.frames.last_mut() {
                        frame.doubled = false;
                    }
                    self.state = State::Next;
                    return Flow::Go;
                }
                _ => {}
            }
        }
        self.at += seen.length;
        self.close_frame();
        self.value_done()
    }

    /// Writes the closer of the innermost container.
    pub(super) fn close_frame(&mut self) {
        if let Some(comma) = self.comma.take() {
            self.repair(RepairKind::CommaDropped, comma);
            if let Some(frame) = self.frames.last_mut() {
                frame.commas = true;
            }
        }
        self.leave_string();
        let Some(frame) = self.frames.pop() else {
            return;
        };
        match frame.shape {
            Shape::Object => self.out.push('}'),
            Shape::Parens if frame.filled && !frame.commas => {
                self.holes.push(frame.open);
                self.close_member(frame.member);
                self.unwrap_members(&frame);
                return;
            }
            Shape::Array | Shape::Parens => self.out.push(']'),
        }
        self.last_kind = match frame.shape {
            Shape::Object => Kind::Object,
            Shape::Array | Shape::Parens => Kind::Array,
        };
        self.close_member(frame.member);
    }

    /// The only child of parentheses takes their place among the members.
    fn unwrap_members(&mut self, frame: &Frame) {
        let kind = self.last_kind;
        if self.frames.is_empty() {
            self.root_kind = Some(kind);
        }
        if let Some(member) = frame.member.and_then(|index| self.members.get_mut(index)) {
            member.kind = kind;
        }
        let child = frame.first_member;
        let depth = self.frames.len() + 1;
        if self
            .members
            .get(child)
            .is_none_or(|member| member.depth != depth)
        {
            return;
        }
        self.members.remove(child);
        let moved = |parent: &mut Option<usize>, depth: &mut usize| {
            *depth -= 1;
            *parent = match *parent {
                Some(index) if index == child => frame.member,
                Some(index) if index > child => Some(index - 1),
                other => other,
            };
        };
        for member in self.members.iter_mut().skip(child) {
            moved(&mut member.parent, &mut member.depth);
        }
        for key in self.valueless.iter_mut().skip(frame.first_valueless) {
            moved(&mut key.parent, &mut key.depth);
        }
    }

    pub(super) fn step_mismatch(&mut self, input: Input<'_>) -> Flow {
        let Some(seen) = input.glyph(self.at) else {
            return Flow::More;
        };
        let wanted = match seen.glyph {
            Glyph::CloseBrace => Shape::Object,
            Glyph::CloseBracket => Shape::Array,
            _ => Shape::Parens,
        };
        let Some(inner) = self.inside() else {
            return self.fail(ErrorKind::Unreadable, self.at);
        };
        let opener = self.frames.nearest(wanted);
        let around = decide::Around {
            inner,
            parent: self.frames.parent(),
            opened: opener.is_some(),
            outer: opener
                .and_then(|place| place.checked_sub(1))
                .and_then(|below| self.frames.shape_at(below)),
        };
        let Some(verdict) = decide::mismatch(&mut self.ahead, input, around) else {
            return Flow::More;
        };
        match verdict {
            Mismatch::Missing => {
                let keep = opener.unwrap_or(0);
                while self.frames.len() > keep + 1 {
                    self.repair(RepairKind::CloserAdded, self.at);
                    self.close_frame();
                }
            }
            Mismatch::Wrong => self.repair(RepairKind::CloserTranslated, self.at),
            Mismatch::Stray => {
                self.repair(RepairKind::CloserDropped, self.at);
                self.at += seen.length;
                self.state = State::Next;
                return Flow::Go;
            }
        }
        self.at += seen.length;
        self.close_frame();
        self.value_done()
    }

    /// A literal from outside ends the value.
    pub(super) fn end_at_closer(&mut self) -> Flow {
        if self.frames.is_empty() && self.state == State::Value {
            return self.fail(ErrorKind::NoValue, self.at);
        }
        let complete = !self.cut && !matches!(self.state, State::Colon | State::Value);
        let complete = complete || (self.inside() != Some(Shape::Object) && !self.cut);
        self.close_all();
        self.root_done(complete)
    }

    /// Closes every container that is open.
    pub(super) fn close_all(&mut self) {
        match self.state {
            State::Value if self.inside() == Some(Shape::Object) => self.drop_key(),
            State::Colon | State::Set => self.drop_key(),
            _ => {}
        }
        while let Some(frame) = self.frames.last() {
            if !frame.implicit {
                self.repair(RepairKind::CloserAdded, self.at);
            }
            self.close_frame();
        }
        self.state = State::Next;
    }

    /// Takes the openers of parentheses around single values out of the output.
    pub(super) fn fill_holes(&mut self) {
        if self.holes.is_empty() {
            return;
        }
        let mut holes = std::mem::take(&mut self.holes);
        holes.sort_unstable();
        let mut kept = String::with_capacity(self.out.len());
        let mut from = 0;
        for &hole in &holes {
            kept.push_str(self.out.get(from..hole).unwrap_or_default());
            from = hole + 1;
        }
        kept.push_str(self.out.get(from..).unwrap_or_default());
        self.out = kept;
        let shift = |place: &mut usize| *place -= holes.partition_point(|&hole| hole < *place);
        for member in &mut self.members {
            shift(&mut member.key.start);
            shift(&mut member.key.end);
            shift(&mut member.output.start);
            shift(&mut member.output.end);
        }
    }
}
