//! Workflow JSON while it is read: its content streams as text, its calls come one by one.

use crate::calls::fault;
use crate::candidate::reader_fault;
use crate::formats::JsonCalls;
use crate::grammars::Input;
use crate::grammars::json::{draft, mark_repaired, reader, value_of};
use crate::json::{Error, Kind, Reader, Status};
use crate::machine::Machine;
use crate::view::Value;
use crate::{FaultKind, Span, Workflow};

/// How far workflow JSON has been told.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The members that have been told.
    seen: usize,
    /// Up to where the string of `content` in the output has been told.
    told: usize,
    /// The content, decoded.
    content: String,
    has_content: bool,
    next: Option<usize>,
    /// A content that holds an array waits until `next` is known.
    array: Option<usize>,
}

impl Machine {
    /// Tells what has come of workflow JSON since the last time.
    pub(crate) fn tell_workflow(&mut self, progress: &mut Progress, reader: &Reader, input: Input<'_>) {
        while let Some(member) = reader.members().get(progress.seen) {
            if member.depth == 1 {
                let key = reader.output().get(member.key.clone()).unwrap_or_default();
                match (key, member.kind) {
                    ("\"content\"", Kind::String) if !progress.has_content => {
                        if !self.tell_content(progress, reader, input) {
                            return;
                        }
                    }
                    ("\"content\"", Kind::Null) => {}
                    ("\"next\"", Kind::Array) => progress.next = Some(progress.seen),
                    _ => {
                        if !member.closed {
                            return;
                        }
                        let name = key.trim_matches('"').to_owned();
                        self.markup(member.text.start);
                        self.out.fault_span(self.done, member.text.end);
                        self.done = self.done.max(member.text.end);
                        let unknown = fault(FaultKind::UnknownMember, member.text.start, Some(name));
                        self.out.fault(unknown);
                    }
                }
            } else if member.depth == 2 && member.parent == progress.next && progress.next.is_some() {
                if !member.closed {
                    return;
                }
                self.tell_item(progress.seen, reader, member.text.end, true);
            }
            progress.seen += 1;
        }
    }

    /// Makes a call of an item of `next`.
    fn tell_item(&mut self, index: usize, reader: &Reader, end: usize, complete: bool) {
        let Some(member) = reader.members().get(index) else { return };
        let Some(syntax) = self.plan().workflow else { return };
        let span = Span { start: member.text.start, end };
        let keys = JsonCalls { explicit: true, ..JsonCalls::unmarked() };
        let rules = Self::rules(&self.shared);
        let mut drafts = [draft(reader, Some(index), &keys, rules, span, complete)];
        mark_repaired(reader.repairs(), &mut drafts);
        for draft in drafts {
            self.accept(draft, syntax);
        }
    }

    /// Tells more of the content; true when all of it is told.
    fn tell_content(&mut self, progress: &mut Progress, reader: &Reader, _input: Input<'_>) -> bool {
        let Some(member) = reader.members().get(progress.seen) else { return true };
        let start = member.output.start + 1;
        let end = if member.closed { member.output.end - 1 } else { reader.settled() };
        let from = progress.told.max(start);
        self.markup(member.text.start);
        let literal = reader.output().get(from..end.max(from)).unwrap_or_default();
        let whole = if member.closed { literal.len() } else { whole_escapes(literal) };
        let piece = literal.get(..whole).unwrap_or_default();
        progress.told = from + whole;
        if !piece.is_empty() {
            let text = decoded(piece);
            self.out.content(&text, self.done, self.done);
            progress.content.push_str(&text);
        }
        if member.closed {
            progress.has_content = true;
            self.out.text_span(self.done, member.text.end);
            self.done = self.done.max(member.text.end);
        }
        member.closed
    }

    /// Workflow JSON is over.
    pub(crate) fn end_workflow(
        &mut self,
        mut progress: Progress,
        reader: &Reader,
        end: usize,
        complete: bool,
        _input: Input<'_>,
    ) {
        if let Some(member) = reader.members().get(progress.seen) {
            let item = member.depth == 2 && progress.next.is_some() && member.parent == progress.next;
            if item {
                self.tell_item(progress.seen, reader, end, false);
            }
        }
        progress.array = None;
        self.markup(end);
        self.out.repairs(reader.repairs().iter().copied());
        if complete {
            self.out.reply.workflow = Some(Workflow { content: progress.content });
        }
    }

    /// Workflow JSON that can't be read on.
    pub(crate) fn tell_workflow_fault(
        &mut self,
        progress: Progress,
        reader: &Reader,
        error: Error,
        input: Input<'_>,
    ) {
        let _ = progress;
        self.out.repairs(reader.repairs().iter().copied());
        self.out.fault(fault(reader_fault(error), error.offset, None));
        self.out.fault_span(self.done, input.text.len());
        self.done = input.text.len();
        self.scan = self.done;
    }
}

/// How much of the inside of a string literal can be decoded: no escape, and no pair, is cut.
fn whole_escapes(literal: &str) -> usize {
    let bytes = literal.as_bytes();
    let Some(last) = memchr::memrchr(b'\\', bytes) else { return literal.len() };
    // A backslash that is escaped itself begins no escape: count the run it ends.
    let run = bytes.get(..=last).unwrap_or_default().iter().rev().take_while(|b| **b == b'\\').count();
    let open = if run % 2 == 1 { last } else { return literal.len() };
    let escape = literal.get(open..).unwrap_or_default();
    let length = if escape.as_bytes().get(1) == Some(&b'u') { 6 } else { 2 };
    if escape.len() < length {
        return before_pair(literal, open);
    }
    if length == 6 && escape.len() < 12 && is_high_surrogate(escape) && (escape.len() == 6 || escape.as_bytes().get(6) == Some(&b'\\')) {
        return open;
    }
    literal.len()
}

/// An escape at `open` is cut off: the first half of a pair before it waits, too.
fn before_pair(literal: &str, open: usize) -> usize {
    let before = open.checked_sub(6).and_then(|start| literal.get(start..open));
    if before.is_some_and(|escape| escape.starts_with("\\u") && is_high_surrogate(escape)) {
        open - 6
    } else {
        open
    }
}

fn is_high_surrogate(escape: &str) -> bool {
    escape
        .get(2..6)
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
        .is_some_and(|unit| (0xd800..0xdc00).contains(&unit))
}

fn decoded(inside: &str) -> String {
    if memchr::memchr(b'\\', inside.as_bytes()).is_none() {
        return inside.to_owned();
    }
    crate::json::unescape(&format!("\"{inside}\"")).into_owned()
}

#[allow(dead_code)]
fn _unused(_: Value<'_>, _: Status) {
    let _ = (reader, value_of);
}
