//! The entry being written: its comma, its key, its place among the members, and how it is taken
//! back.

use super::ahead::Input;
use super::decide::Shape;
use super::kinds::RepairKind;
use super::number::{Scalar, scalar};
use super::reader::{Flow, Kind, Member, Reader, State, ValuelessKey};

/// Members recorded for one value; the list ends there so that hostile text cannot fill memory.
const MAX_MEMBERS: usize = 1 << 18;

/// Keys without a value that are recorded for one value.
const MAX_VALUELESS: usize = 1 << 12;

/// The entry being written, should it have to be taken back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    pub(super) mark: usize,
    pub(super) members: usize,
    pub(super) filled: bool,
    pub(super) key_start: usize,
    pub(super) key_end: usize,
    pub(super) offset: usize,
    /// One past the key in the text.
    pub(super) end: usize,
}

impl Reader {
    pub(super) fn drop_key(&mut self) {
        let entry = self.entry;
        let literal = self
            .out
            .get(entry.key_start..entry.key_end)
            .unwrap_or_default();
        if self.valueless.len() < MAX_VALUELESS {
            self.valueless.push(ValuelessKey {
                key: super::unescape(literal).into_owned(),
                depth: self.frames.len(),
                parent: self.frames.last().and_then(|frame| frame.member),
                offset: entry.offset,
            });
        }
        self.repair(RepairKind::KeyDropped, entry.offset);
        self.drop_entry();
    }

    /// Takes the entry that was begun out of the output.
    pub(super) fn drop_entry(&mut self) {
        let entry = self.entry;
        self.out.truncate(entry.mark);
        self.members.truncate(entry.members);
        if let Some(frame) = self.frames.last_mut() {
            frame.filled = entry.filled;
        }
        self.open_member = None;
    }

    /// Writes the comma before an item of an array; keys write theirs themselves.
    pub(super) fn begin_item(&mut self, at: usize) {
        if self.inside() != Some(Shape::Object) {
            self.begin_entry(at);
        }
    }

    /// Writes the comma before an entry, and remembers where the entry begins.
    pub(super) fn begin_entry(&mut self, at: usize) {
        let comma = self.comma.take();
        let Some(frame) = self.frames.last_mut() else {
            self.entry.mark = self.out.len();
            return;
        };
        let filled = frame.filled;
        frame.filled = true;
        frame.commas |= filled || comma.is_some();
        self.entry = Entry {
            mark: self.out.len(),
            members: self.members.len(),
            filled,
            key_start: 0,
            key_end: 0,
            offset: at,
            end: at,
        };
        match (filled, comma) {
            (true, None) => {
                self.out.push(',');
                self.repair(RepairKind::CommaAdded, at);
            }
            (true, Some(_)) => self.out.push(','),
            (false, Some(comma)) => self.repair(RepairKind::CommaDropped, comma),
            (false, None) => {}
        }
    }

    pub(super) fn begin_key(&mut self, at: usize) {
        self.begin_entry(at);
        self.entry.key_start = self.out.len();
    }

    pub(super) fn key_done(&mut self) {
        self.entry.key_end = self.out.len();
        self.entry.end = self.at;
        self.state = State::Colon;
    }

    pub(super) fn open_member(&mut self, kind: Kind, at: usize) -> Option<usize> {
        self.last_kind = kind;
        if self.frames.is_empty() {
            self.root_kind = Some(kind);
            return None;
        }
        if !self.records_members() {
            // What closes next is not recorded: the member opened last must stay open.
            self.open_member = None;
            return None;
        }
        let member = self.member(kind, at);
        self.members.push(member);
        let index = self.members.len() - 1;
        self.open_member = Some(index);
        Some(index)
    }

    /// Whether the next value is one of those to be recorded.
    pub(super) fn records_members(&self) -> bool {
        self.frames.len() <= self.options.member_depth && self.members.len() < MAX_MEMBERS
    }

    /// A member that begins here.
    pub(super) fn member(&self, kind: Kind, at: usize) -> Member {
        let frame = self.frames.last();
        let key = match frame.map(|frame| frame.shape) {
            Some(Shape::Object) => self.entry.key_start..self.entry.key_end,
            _ => 0..0,
        };
        Member {
            depth: self.frames.len(),
            parent: frame.and_then(|frame| frame.member),
            key,
            kind,
            output: self.out.len()..self.out.len(),
            text: at..at,
            closed: false,
        }
    }

    pub(super) fn close_member(&mut self, index: Option<usize>) {
        let (out, at) = (self.out.len(), self.at);
        if let Some(member) = index.and_then(|index| self.members.get_mut(index)) {
            member.output.end = out;
            member.text.end = at;
            member.closed = true;
        }
    }

    /// A scalar is over; `self.at` stands behind it.
    pub(super) fn scalar_done(&mut self) -> Flow {
        let member = self.open_member.take();
        self.close_member(member);
        if self.last_string.is_some() {
            // Another string may be joined to it yet.
            self.last_string_member = member;
            if let Some(member) = member.and_then(|index| self.members.get_mut(index)) {
                member.closed = false;
            }
        }
        self.value_done()
    }

    pub(super) fn value_done(&mut self) -> Flow {
        self.state = State::Next;
        if self.frames.is_empty() {
            return self.root_done(!self.cut);
        }
        Flow::Go
    }

    /// What follows shows that the last string is over.
    pub(super) fn leave_string(&mut self) {
        self.last_string = None;
        let member = self.last_string_member.take();
        if let Some(member) = member.and_then(|index| self.members.get_mut(index)) {
            member.closed = true;
        }
    }

    pub(super) fn set_kind(&mut self, member: Option<usize>, kind: Kind) {
        match member {
            Some(index) => {
                if let Some(member) = self.members.get_mut(index) {
                    member.kind = kind;
                }
            }
            None if self.frames.len() == 1 => self.root_kind = Some(kind),
            None => {}
        }
    }

    pub(super) fn entry_is_first(&self) -> bool {
        !self.entry.filled
    }

    /// The key that became an element is a member like any other.
    pub(super) fn first_of_set(&mut self) {
        let Entry {
            key_start,
            offset,
            end,
            ..
        } = self.entry;
        let kind = match self.out.as_bytes().get(key_start) {
            Some(b'"') => Kind::String,
            _ => Kind::Number,
        };
        if let Some(member) = self.open_member(kind, offset) {
            if let Some(member) = self.members.get_mut(member) {
                member.output = key_start..self.out.len();
                member.text.end = end;
                member.closed = true;
            }
            self.open_member = None;
        }
    }

    /// The first element of a set of numbers was read as a key.
    pub(super) fn unquote_number(&mut self, input: Input<'_>) {
        let digit = input
            .bytes()
            .get(self.entry.offset)
            .is_some_and(u8::is_ascii_digit);
        let key = self
            .out
            .get(self.entry.key_start + 1..self.entry.key_end.saturating_sub(1))
            .unwrap_or_default();
        if digit && scalar(key) == Scalar::Number {
            let key = key.to_owned();
            self.out.truncate(self.entry.key_start);
            self.out.push_str(&key);
        }
    }
}
