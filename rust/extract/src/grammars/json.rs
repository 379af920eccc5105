//! Calls as JSON objects or arrays of them, with or without a fence around.

use std::sync::Arc;

use crate::Span;
use crate::calls::{Arguments, Draft, Parts, Rules};
use crate::formats::JsonCalls;
use crate::grammars::{Begin, Input, Item, Read};
use crate::json::{Closer, Kind, Member, Mode, Reader, ReaderOptions, Status};
use crate::plan::Entry;
use crate::view::Value;
use crate::{FaultKind, Repair};

/// How a reader of calls is set up.
pub(crate) fn reader(rules: Rules<'_>, closers: &Arc<[Closer]>, start: usize) -> Reader {
    let options = ReaderOptions {
        max_depth: rules.limits.max_depth,
        max_bytes: rules.limits.max_reply_bytes,
        mode: Mode::Value,
        closers: Arc::clone(closers),
        member_depth: 3,
    };
    Reader::new(options, start)
}

/// Whether a JSON object or array begins with this text.
pub(crate) fn opens_json(text: &str) -> bool {
    text.starts_with(['{', '[', '｛', '［'])
}

/// A JSON value whose objects are calls.
#[derive(Clone, Debug)]
pub(crate) struct JsonItem {
    start: usize,
    reader: Reader,
    /// The members that have been looked at.
    seen: usize,
    /// The length of the run of backticks that opened a fence before the value.
    fence: usize,
    ended: Option<usize>,
}

impl JsonItem {
    pub(crate) fn begin(entry: &Entry, rules: Rules<'_>, input: Input<'_>, at: usize) -> Begin {
        let rest = input.slice(at, input.text.len());
        let marks = rest.bytes().take_while(|byte| *byte == b'`').count();
        let value = if marks == 0 { at } else { after_fence(input, at + marks) };
        if value == input.text.len() || marks > 0 && marks < 3 {
            return if marks == 0 || input.last { Begin::No } else { Begin::Wait };
        }
        if !opens_json(input.slice(value, input.text.len())) {
            return Begin::No;
        }
        Begin::Yes(Item::Json(Box::new(Self {
            start: value,
            reader: reader(rules, &entry.closers, value),
            seen: 0,
            fence: marks,
            ended: None,
        })))
    }

    pub(crate) fn read(
        &mut self,
        keys: &JsonCalls,
        rules: Rules<'_>,
        input: Input<'_>,
        drafts: &mut Vec<Draft>,
    ) -> Read {
        if let Some(end) = self.ended {
            return self.close_fence(input, end);
        }
        let status = self.reader.read(input.text, input.last);
        let from = drafts.len();
        self.closed_items(keys, rules, drafts);
        let read = match status {
            Status::NeedMore => Read::Wait,
            Status::Failed(error) => {
                return Read::Failed(error, Span { start: self.start, end: error.offset });
            }
            Status::Done { end, complete } => {
                self.ended = Some(end);
                match self.reader.kind() {
                    Some(Kind::Object) => {
                        let span = Span { start: self.start, end };
                        drafts.push(draft(&self.reader, None, keys, rules, span, complete));
                    }
                    Some(Kind::Array) => self.open_item(keys, rules, end, drafts),
                    _ => {}
                }
                self.close_fence(input, end)
            }
        };
        mark_repaired(self.reader.repairs(), drafts.get_mut(from..).unwrap_or_default());
        read
    }

    /// The value's repairs.
    pub(crate) fn repairs(&self) -> &[Repair] {
        self.reader.repairs()
    }

    /// Drafts of the items of an array that are closed.
    fn closed_items(&mut self, keys: &JsonCalls, rules: Rules<'_>, drafts: &mut Vec<Draft>) {
        if self.reader.kind() != Some(Kind::Array) {
            return;
        }
        while let Some(member) = self.reader.members().get(self.seen) {
            if member.depth == 1 {
                if !member.closed {
                    return;
                }
                let span = Span { start: member.text.start, end: member.text.end };
                drafts.push(draft(&self.reader, Some(self.seen), keys, rules, span, true));
            }
            self.seen += 1;
        }
    }

    /// The draft of an item that was cut off.
    fn open_item(&mut self, keys: &JsonCalls, rules: Rules<'_>, end: usize, drafts: &mut Vec<Draft>) {
        if let Some(member) = self.reader.members().get(self.seen) {
            let span = Span { start: member.text.start, end };
            drafts.push(draft(&self.reader, Some(self.seen), keys, rules, span, false));
            self.seen = self.reader.members().len();
        }
    }

    /// Passes over the end of the fence around the value.
    fn close_fence(&self, input: Input<'_>, end: usize) -> Read {
        if self.fence == 0 {
            return Read::Done(end);
        }
        let at = input.after_space(end);
        let rest = input.bytes().get(at..).unwrap_or_default();
        let marks = rest.iter().take(self.fence).take_while(|byte| **byte == b'`').count();
        if marks == self.fence {
            return Read::Done(at + marks);
        }
        if at + marks == input.text.len() && !input.last { Read::Wait } else { Read::Done(end) }
    }
}

/// Marks the drafts in whose text something was healed.
pub(crate) fn mark_repaired(repairs: &[Repair], drafts: &mut [Draft]) {
    if repairs.is_empty() {
        return;
    }
    for draft in drafts {
        let span = draft.span;
        draft.repaired |=
            repairs.iter().any(|repair| (span.start..=span.end).contains(&repair.offset));
    }
}

/// Passes over the language of a fence and the white space after it.
fn after_fence(input: Input<'_>, at: usize) -> usize {
    let rest = input.bytes().get(at..).unwrap_or_default();
    let word = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_');
    input.after_space(at + word.count())
}

/// The draft that a value of `reader` is: the member with this number, or the value itself.
pub(crate) fn draft(
    reader: &Reader,
    index: Option<usize>,
    keys: &JsonCalls,
    rules: Rules<'_>,
    span: Span,
    complete: bool,
) -> Draft {
    let value = value_of(reader, index);
    let mut draft = rules.draft(value, keys, span);
    draft.complete &= complete;
    if matches!(draft.arguments, Arguments::Missing) && lacks_arguments(reader, index, keys) {
        if complete {
            draft.arguments = Arguments::Refused(FaultKind::MissingArguments);
        }
    }
    draft
}

/// The healed JSON of a member, or of the whole value.
pub(crate) fn value_of(reader: &Reader, index: Option<usize>) -> Value<'_> {
    let output = reader.output();
    let json = match index.and_then(|index| reader.members().get(index)) {
        Some(Member { output: range, .. }) => output.get(range.clone()).unwrap_or_default(),
        None => output,
    };
    Value::new(json)
}

/// Whether an object has a key of arguments, but no value there.
fn lacks_arguments(reader: &Reader, index: Option<usize>, keys: &JsonCalls) -> bool {
    let keys_here = reader.valueless_keys().iter().filter(|lost| lost.parent == index);
    keys_here.into_iter().any(|lost| keys.arguments.contains(&lost.key))
}

/// The parts of a value of `reader`.
pub(crate) fn parts_of<'a>(reader: &'a Reader, index: Option<usize>, keys: &JsonCalls) -> Parts<'a> {
    crate::calls::parts(value_of(reader, index), keys)
}
