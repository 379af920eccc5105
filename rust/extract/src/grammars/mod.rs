//! The few grammars in which models write calls. Each reads one item (a call, or a value that holds
//! calls), stops anywhere, goes on with more text, and says where the item ends.

pub(crate) mod braced;
pub(crate) mod json;
pub(crate) mod key_value;
pub(crate) mod named;
pub(crate) mod python;
pub(crate) mod python_literal;
pub(crate) mod tagged;
pub(crate) mod value;

use std::cell::Cell;

use crate::calls::{Draft, Rules};
use crate::early::Open;
use crate::formats::Body;
use crate::json::Error;
use crate::markers::{Hit, Look, MarkerId};
use crate::plan::{Entry, Plan};
use crate::{FaultKind, Repair, Span};

/// How far runs of white space reach that were passed over lately, so that a run that grows chunk
/// by chunk is not read again from its beginning.
#[derive(Debug, Default)]
pub(crate) struct SpaceMemo([Cell<(usize, usize)>; 4]);

/// The reply as far as it has come.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    pub(crate) text: &'a str,
    /// Whether no more will come.
    pub(crate) last: bool,
    spaces: Option<&'a SpaceMemo>,
}

impl<'a> Input<'a> {
    pub(crate) fn new(text: &'a str, last: bool, spaces: &'a SpaceMemo) -> Self {
        Self {
            text,
            last,
            spaces: Some(spaces),
        }
    }

    /// A text of its own, all of which is there.
    pub(crate) fn whole(text: &'a str) -> Self {
        Self {
            text,
            last: true,
            spaces: None,
        }
    }

    /// Only the first bytes of it.
    pub(crate) fn up_to(self, end: usize) -> Self {
        Self {
            text: self.slice(0, end),
            last: self.last && end == self.text.len(),
            ..self
        }
    }

    pub(crate) fn bytes(self) -> &'a [u8] {
        self.text.as_bytes()
    }

    pub(crate) fn slice(self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    pub(crate) fn rest(self, start: usize) -> &'a str {
        self.text.get(start..).unwrap_or_default()
    }

    /// The first byte from `at` on that is no white space.
    pub(crate) fn after_space(self, at: usize) -> usize {
        let slot = self.spaces.and_then(|memo| memo.0.get(at % 4));
        let known = slot.map(Cell::get).filter(|(start, _)| *start == at);
        let from = known.map_or(at, |(_, end)| end.min(self.text.len()));
        let rest = self.rest(from);
        let end = from + (rest.len() - rest.trim_start().len());
        if let Some(slot) = slot {
            slot.set((at, end));
        }
        end
    }

    /// Whether more text may come behind `at`, which is the end of what there is.
    pub(crate) fn ends_at(self, at: usize) -> bool {
        at >= self.text.len()
    }
}

/// What a grammar reads with.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) entry: &'a Entry,
    pub(crate) rules: Rules<'a>,
}

impl Context<'_> {
    /// The wanted marker at `at`.
    pub(crate) fn look(
        self,
        input: Input<'_>,
        at: usize,
        wanted: impl Fn(MarkerId) -> bool,
    ) -> Look {
        self.plan
            .markers
            .look_from(input.bytes(), at, input.last, wanted)
    }

    /// The first wanted marker from `from` on.
    pub(crate) fn find(
        self,
        input: Input<'_>,
        mut from: usize,
        wanted: impl Fn(MarkerId) -> bool,
    ) -> Look {
        let (text, markers) = (input.bytes(), &self.plan.markers);
        if markers.has_unanchored() {
            return self.find_any(input, from, wanted);
        }
        while let Some(at) = next_of(&self.entry.inner.anchors, text, from) {
            match markers.look(text, at, input.last, &wanted) {
                Look::Nothing => from = at + 1,
                found => return found,
            }
        }
        match markers.unfinished(text) {
            Some(start) if !input.last && start >= from => Look::Partial(start),
            _ => Look::Nothing,
        }
    }

    /// The same where markers may begin with any byte: one pass for all of them.
    fn find_any(self, input: Input<'_>, from: usize, wanted: impl Fn(MarkerId) -> bool) -> Look {
        let (text, markers) = (input.bytes(), &self.plan.markers);
        let rest = text.get(from..).unwrap_or_default();
        for (offset, byte) in rest.iter().enumerate() {
            let at = from + offset;
            if self.entry.inner.anchors.contains(byte) {
                match markers.look(text, at, input.last, &wanted) {
                    Look::Nothing => {}
                    found => return found,
                }
            }
            if markers.begins_unanchored(*byte)
                && let Look::Hit(hit) = markers.unanchored_at(text, at, true, &wanted)
            {
                return Look::Hit(hit);
            }
        }
        match markers.unfinished(text) {
            Some(start) if !input.last && start >= from => Look::Partial(start),
            _ => Look::Nothing,
        }
    }
}

/// The next of some bytes from `from` on.
fn next_of(bytes: &[u8], text: &[u8], from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let found = match *bytes {
        [] => None,
        [a] => memchr::memchr(a, rest),
        [a, b] => memchr::memchr2(a, b, rest),
        [a, b, c] => memchr::memchr3(a, b, c, rest),
        _ => rest.iter().position(|byte| bytes.contains(byte)),
    };
    found.map(|offset| from + offset)
}

/// Whether an item begins somewhere.
pub(crate) enum Begin {
    Yes(Item),
    No,
    /// The text so far does not tell.
    Wait,
}

/// How far the reading of an item has come.
pub(crate) enum Read {
    /// More text is needed.
    Wait,
    /// The item ended here.
    Done(usize),
    /// The item can't be read; why, where it stood, and where reading stopped.
    Failed(FaultKind, Span),
    /// What stands here is no call and no list of calls: the marker before it is text.
    Text(Span),
}

impl Read {
    pub(crate) fn failed(error: Error, start: usize) -> Self {
        Self::Failed(
            crate::calls::fault_of(error),
            Span {
                start,
                end: error.offset,
            },
        )
    }
}

/// An item that is being read.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Json(Box<json::JsonItem>),
    Named(Box<named::NamedItem>),
    Tagged(Box<tagged::TaggedItem>),
    KeyValue(Box<key_value::KeyValueItem>),
    Python(Box<python::PythonItem>),
    Braced(Box<braced::BracedItem>),
}

impl Item {
    /// Whether an item begins at `at`, which is no white space; `behind` is where the marker
    /// before it ends.
    pub(crate) fn begin(context: Context<'_>, input: Input<'_>, at: usize, behind: usize) -> Begin {
        match &context.entry.syntax.body {
            Body::Json(_) => json::JsonItem::begin(context, input, at),
            Body::Named(calls) => named::NamedItem::begin(calls, context, input, at),
            Body::Tagged(_) => tagged::TaggedItem::begin(context, input, at),
            Body::KeyValue(_) => key_value::KeyValueItem::begin(context, input, at, behind),
            Body::Python(_) => python::PythonItem::begin(input, at),
            Body::Braced(calls) => braced::BracedItem::begin(calls, input, at),
            Body::Workflow | Body::Channels(_) | Body::React(_) | Body::Native => Begin::No,
        }
    }

    /// What was healed in the item.
    pub(crate) fn repairs(&self) -> &[Repair] {
        match self {
            Self::Json(item) => item.repairs(),
            Self::Named(item) => item.repairs(),
            Self::Tagged(item) => item.repairs(),
            Self::KeyValue(item) => item.repairs(),
            Self::Python(_) | Self::Braced(_) => &[],
        }
    }

    /// The call that is being read, and where it stands, if its values come one by one.
    pub(crate) fn open_call<'a>(&'a self, body: &'a Body) -> Option<(usize, Open<'a>)> {
        match (self, body) {
            (Self::Json(item), Body::Json(keys)) => item.open_call(keys),
            (Self::Named(item), _) => item.open_call(),
            (Self::Tagged(item), _) => item.open_call(),
            (Self::KeyValue(item), _) => Some(item.open_call()),
            _ => None,
        }
    }

    /// Reads on; calls that became known are added to `drafts`.
    pub(crate) fn read(
        &mut self,
        context: Context<'_>,
        input: Input<'_>,
        drafts: &mut Vec<Draft>,
    ) -> Read {
        let depth = context.rules.limits.max_depth;
        match (self, &context.entry.syntax.body) {
            (Self::Json(item), Body::Json(keys)) => item.read(keys, context, input, drafts),
            (Self::Named(item), Body::Named(_)) => item.read(context, input, drafts),
            (Self::Tagged(item), Body::Tagged(calls)) => item.read(calls, context, input, drafts),
            (Self::KeyValue(item), Body::KeyValue(_)) => item.read(context, input, drafts),
            (Self::Python(item), Body::Python(calls)) => item.read(calls, input, depth, drafts),
            (Self::Braced(item), Body::Braced(calls)) => item.read(calls, input, depth, drafts),
            _ => Read::Done(input.text.len()),
        }
    }
}

/// The marker of a found or unfinished one that begins exactly at `at`.
pub(crate) fn exactly(look: Look, at: usize) -> Look {
    match look {
        Look::Hit(Hit { start, .. }) | Look::Partial(start) if start != at => Look::Nothing,
        look => look,
    }
}
