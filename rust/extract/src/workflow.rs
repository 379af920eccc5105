//! Workflow JSON while it is read: its content streams as text, its calls come one by one.

use std::borrow::Cow;

use crate::calls::{Draft, fault, fault_of, parts};
use crate::candidate::holds_array;
use crate::early::Open;
use crate::formats::{LISTED, UNMARKED};
use crate::grammars::Input;
use crate::grammars::json::draft;
use crate::json::{Error, Kind, Member, Status};
use crate::machine::{Machine, State};
use crate::reading::Reading;
use crate::{Fault, FaultKind, Span, SpanKind, Workflow};

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
    /// A content that holds an array waits until `next` is known: its member, its span's number.
    array: Option<(usize, usize)>,
    calls: usize,
    /// Members without meaning, told once it is certain that this is no native message.
    unknown: Vec<Fault>,
}

impl Progress {
    /// Whether `next` has come.
    pub(crate) fn has_next(&self) -> bool {
        self.next.is_some()
    }
}

impl Machine {
    /// Tells what has come of workflow JSON since the last time.
    pub(crate) fn tell_workflow(&mut self, progress: &mut Progress, reader: &Reading) {
        while let Some(member) = reader.members().get(progress.seen) {
            if member.depth == 1 {
                let key = reader.key(member);
                match (key, member.kind) {
                    ("content", Kind::String) if !progress.has_content => {
                        if holds_array(reader, progress.seen) != Some(false) {
                            if !member.closed {
                                return;
                            }
                            self.keep_array(progress, member);
                        } else if !self.tell_content(progress, reader) {
                            return;
                        }
                    }
                    ("content", Kind::Null) => {}
                    ("next", Kind::Array) => match is_list(reader, progress.seen) {
                        None => return,
                        Some(_) => progress.next = Some(progress.seen),
                    },
                    _ => {
                        if !member.closed {
                            return;
                        }
                        let name = key.to_owned();
                        self.markup(member.text.start);
                        self.out.fault_span(self.done, member.text.end);
                        self.done = self.done.max(member.text.end);
                        let unknown =
                            fault(FaultKind::UnknownMember, member.text.start, Some(name));
                        progress.unknown.push(unknown);
                    }
                }
            } else if member.depth == 2 && member.parent == progress.next && progress.next.is_some()
            {
                if !reader.is_closed(progress.seen) {
                    if member.kind == Kind::Object && !self.shared.options.buffer_arguments {
                        let open = Open::Object {
                            reading: reader,
                            item: Some(progress.seen),
                            keys: &LISTED,
                        };
                        self.pass_on(member.text.start, &open);
                    }
                    return;
                }
                progress.calls += self.tell_item(progress.seen, reader, member.text.end, true);
            }
            if progress.next.is_some() {
                self.tell_unknown(progress);
            }
            progress.seen += 1;
        }
    }

    fn tell_unknown(&mut self, progress: &mut Progress) {
        for fault in progress.unknown.drain(..) {
            self.out.fault(fault);
        }
    }

    /// Keeps a content that may be calls until it is known whether `next` holds any.
    fn keep_array(&mut self, progress: &mut Progress, member: &Member) {
        let (start, end) = (member.text.start, member.text.end);
        self.markup(start);
        progress.has_content = true;
        progress.array = Some((progress.seen, self.out.open_span(start, end)));
        self.done = self.done.max(end);
    }

    /// Makes a call of an item of `next`; the answer is how many calls it made.
    fn tell_item(&mut self, index: usize, reader: &Reading, end: usize, complete: bool) -> usize {
        let Some(member) = reader.members().get(index) else {
            return 0;
        };
        let Some(syntax) = self.plan().workflow else {
            return 0;
        };
        let before = self.out.reply.tool_calls.len();
        let span = Span {
            start: member.text.start,
            end,
        };
        let rules = Self::rules(&self.shared);
        let draft = draft(reader, Some(index), &LISTED, rules, span, complete);
        self.accept(draft, syntax);
        self.out.reply.tool_calls.len() - before
    }

    /// Tells more of the content; true when all of it is told.
    fn tell_content(&mut self, progress: &mut Progress, reader: &Reading) -> bool {
        let Some(member) = reader.members().get(progress.seen) else {
            return true;
        };
        let start = member.output.start + 1;
        let end = if member.closed {
            member.output.end - 1
        } else {
            reader.settled()
        };
        let from = progress.told.max(start);
        self.markup(member.text.start);
        let literal = reader.output().get(from..end.max(from)).unwrap_or_default();
        let whole = if member.closed {
            literal.len()
        } else {
            whole_escapes(literal)
        };
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
        reader: &Reading,
        end: usize,
        complete: bool,
    ) {
        self.tell_unknown(&mut progress);
        if let Some(member) = reader.members().get(progress.seen) {
            let item =
                member.depth == 2 && progress.next.is_some() && member.parent == progress.next;
            if item {
                self.tell_item(progress.seen, reader, end, false);
                // It was cut off, but it is one.
                progress.calls += 1;
            }
        }
        if let Some((index, span)) = progress.array {
            self.settle_array(&mut progress, reader, index, span);
        }
        self.markup(end);
        self.out.repairs(reader.repairs().iter().copied());
        if complete {
            self.out.workflow(Workflow {
                content: progress.content,
            });
        }
    }

    /// A content that is an array: calls if `next` holds none, else text.
    fn settle_array(
        &mut self,
        progress: &mut Progress,
        reader: &Reading,
        index: usize,
        span: usize,
    ) {
        let content = reader.value(Some(index)).text().unwrap_or_default();
        let Some(member) = reader.members().get(index) else {
            return;
        };
        let place = Span {
            start: member.text.start,
            end: member.text.end,
        };
        let drafts = if progress.calls == 0 {
            self.drafts_in(&content, place)
        } else {
            Vec::new()
        };
        if drafts.is_empty() {
            self.out.set_span(span, SpanKind::Text);
            self.out.content(&content, place.start, place.start);
            progress.content.push_str(&content);
            return;
        }
        self.out.set_span(span, SpanKind::Call);
        let done = self.done;
        for draft in drafts {
            if let Some(syntax) = self.plan().workflow {
                self.accept(draft, syntax);
            }
        }
        self.done = done;
    }

    /// The calls in a string that holds a JSON array of them; none if it holds anything else.
    fn drafts_in(&self, content: &str, place: Span) -> Vec<Draft> {
        let rules = Self::rules(&self.shared);
        let start = content.len() - content.trim_start().len();
        let mut reading = Reading::new(rules, &self.plan().no_closers, false, start);
        let status = reading.read(Input::whole(content));
        let Status::Done {
            end,
            complete: true,
        } = status
        else {
            return Vec::new();
        };
        let rest = content.get(end..).unwrap_or_default();
        let calls = reading.value(None).items();
        if !rest.trim().is_empty()
            || !calls
                .clone()
                .any(|item| parts(item.members(), &UNMARKED).has_name())
        {
            return Vec::new();
        }
        let span = Span {
            start: place.start,
            end: place.start,
        };
        calls
            .map(|item| rules.draft(&parts(item.members(), &UNMARKED), span))
            .collect()
    }

    /// Workflow JSON that can't be read on.
    pub(crate) fn tell_workflow_fault(
        &mut self,
        mut progress: Progress,
        reader: &Reading,
        error: Error,
    ) {
        self.tell_unknown(&mut progress);
        self.out.repairs(reader.repairs().iter().copied());
        self.out.fault(fault(fault_of(error), error.offset, None));
        self.state = State::Unreadable;
    }
}

/// Whether a member is a list beyond doubt: until its first item is known, what looks like one may
/// turn out to be an object whose brace is wrong. None: the text so far does not tell.
pub(crate) fn is_list(reading: &Reading, index: usize) -> Option<bool> {
    let member = reading.member(index)?;
    if member.kind != Kind::Array {
        return Some(false);
    }
    let known = reading.is_over() || member.output.start < reading.settled();
    known.then_some(true)
}

/// How much of the inside of a string literal can be decoded: no escape, and no pair, is cut.
fn whole_escapes(literal: &str) -> usize {
    let bytes = literal.as_bytes();
    let Some(last) = memchr::memrchr(b'\\', bytes) else {
        return literal.len();
    };
    // A backslash that is escaped itself begins no escape: count the run it ends.
    let run = bytes
        .get(..=last)
        .unwrap_or_default()
        .iter()
        .rev()
        .take_while(|b| **b == b'\\')
        .count();
    let open = if run % 2 == 1 {
        last
    } else {
        return literal.len();
    };
    let escape = literal.get(open..).unwrap_or_default();
    let length = if escape.as_bytes().get(1) == Some(&b'u') {
        6
    } else {
        2
    };
    if escape.len() < length {
        return before_pair(literal, open);
    }
    if length == 6
        && escape.len() < 12
        && is_high_surrogate(escape)
        && (escape.len() == 6 || escape.as_bytes().get(6) == Some(&b'\\'))
    {
        return open;
    }
    literal.len()
}

/// An escape at `open` is cut off: the first half of a pair before it waits, too.
fn before_pair(literal: &str, open: usize) -> usize {
    let before = open
        .checked_sub(6)
        .and_then(|start| literal.get(start..open));
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

fn decoded(inside: &str) -> Cow<'_, str> {
    if memchr::memchr(b'\\', inside.as_bytes()).is_none() {
        return Cow::Borrowed(inside);
    }
    Cow::Owned(crate::json::unescape(&format!("\"{inside}\"")).into_owned())
}
