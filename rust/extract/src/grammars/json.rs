//! Calls as JSON objects or arrays of them, with or without a fence around.

use crate::calls::{Arguments, Draft, Rules};
use crate::early::Open;
use crate::formats::JsonCalls;
use crate::grammars::{Begin, Context, Input, Item, Read};
use crate::json::{Kind, Status};
use crate::reading::Reading;
use crate::{FaultKind, Repair, Span};

/// Whether a JSON object or array begins with this text.
pub(crate) fn opens_json(text: &str) -> bool {
    text.starts_with(['{', '[', '｛', '［'])
}

/// A JSON value whose objects are calls.
#[derive(Clone, Debug)]
pub(crate) struct JsonItem {
    reading: Reading,
    /// The members that have been looked at.
    seen: usize,
    /// Objects that say nothing of a call, as long as none that does came with them.
    doubtful: Vec<Draft>,
    /// Whether it holds a call.
    is_call: bool,
    /// The length of the run of backticks that opened a fence before the value.
    fence: usize,
    ended: Option<usize>,
}

impl JsonItem {
    pub(crate) fn begin(context: Context<'_>, input: Input<'_>, at: usize) -> Begin {
        match past_fence(input, at) {
            Fenced::Wait => Begin::Wait,
            Fenced::At { value, marks } if opens_json(input.rest(value)) => {
                Begin::Yes(Item::Json(Box::new(Self {
                    reading: Reading::new(context.rules, &context.entry.closers, marks > 0, value),
                    seen: 0,
                    doubtful: Vec::new(),
                    is_call: false,
                    fence: marks,
                    ended: None,
                })))
            }
            Fenced::At { .. } => Begin::No,
        }
    }

    /// The item that begins at `at`, perhaps in a fence.
    pub(crate) fn at(context: Context<'_>, input: Input<'_>, at: usize) -> Option<Self> {
        match Self::begin(context, input, at) {
            Begin::Yes(Item::Json(item)) => Some(*item),
            _ => None,
        }
    }

    /// The same item where it is known that calls stand: every object in it is meant as one.
    pub(crate) fn among_calls(self) -> Self {
        Self {
            is_call: true,
            ..self
        }
    }

    pub(crate) fn read(
        &mut self,
        keys: &JsonCalls,
        context: Context<'_>,
        input: Input<'_>,
        drafts: &mut Vec<Draft>,
    ) -> Read {
        let rules = context.rules;
        if let Some(end) = self.ended {
            return close_fence(input, end, self.fence);
        }
        let status = self.reading.read(input);
        if context.entry.close.is_empty()
            && let Some(end) = self.end_of_no_call()
        {
            let start = self.reading.start();
            return Read::Text(Span { start, end });
        }
        self.closed_items(keys, rules, drafts);
        self.hold(context, drafts);
        match status {
            Status::NeedMore => Read::Wait,
            Status::Failed(error) => Read::failed(error, self.reading.start()),
            Status::Done { end, complete } => {
                self.ended = Some(end);
                match self.reading.kind() {
                    Some(Kind::Object) => {
                        let span = Span {
                            start: self.reading.start(),
                            end,
                        };
                        drafts.push(draft(&self.reading, None, keys, rules, span, complete));
                    }
                    Some(Kind::Array) => self.open_item(keys, rules, end, drafts),
                    _ => {}
                }
                self.hold(context, drafts);
                if !self.doubtful.is_empty() {
                    let start = self.reading.start();
                    return Read::Text(Span { start, end });
                }
                close_fence(input, end, self.fence)
            }
        }
    }

    /// The object that is being read, which may be a call.
    pub(crate) fn open_call<'a>(&'a self, keys: &'a JsonCalls) -> Option<(usize, Open<'a>)> {
        let reading = &self.reading;
        let (at, item) = match reading.kind()? {
            Kind::Object => (reading.start(), None),
            Kind::Array => {
                let member = reading.member(self.seen)?;
                let is_item = member.depth == 1 && member.kind == Kind::Object;
                (member.text.start, is_item.then_some(Some(self.seen))?)
            }
            _ => return None,
        };
        let open = Open::Object {
            reading,
            item,
            keys,
        };
        self.ended.is_none().then_some((at, open))
    }

    /// The value's repairs.
    pub(crate) fn repairs(&self) -> &[Repair] {
        self.reading.repairs()
    }

    /// Where the first item of an array ends, if that is no object. Only a closing marker makes
    /// such a list a section: `functools[1]` stands in prose.
    fn end_of_no_call(&self) -> Option<usize> {
        let array = self.seen == 0 && self.reading.kind() == Some(Kind::Array);
        let first = self.reading.member(0).filter(|_| array)?;
        let none = first.kind != Kind::Object && self.reading.is_closed(0);
        none.then_some(first.text.end)
    }

    /// Holds back objects that say nothing of a call, behind a marker that is a word of prose: only
    /// a call beside them makes faults of them. `functools[{"a": 1}]` stands in prose too.
    fn hold(&mut self, context: Context<'_>, drafts: &mut Vec<Draft>) {
        if self.is_call || !context.entry.is_in_words() {
            return;
        }
        self.is_call = drafts.iter().any(Draft::says_call);
        self.doubtful.append(drafts);
        if self.is_call {
            drafts.append(&mut self.doubtful);
        }
    }

    /// Drafts of the items of an array that are closed.
    fn closed_items(&mut self, keys: &JsonCalls, rules: Rules<'_>, drafts: &mut Vec<Draft>) {
        if self.reading.kind() != Some(Kind::Array) {
            return;
        }
        while let Some(member) = self.reading.member(self.seen) {
            if member.depth == 1 {
                if !self.reading.is_closed(self.seen) {
                    return;
                }
                let span = Span {
                    start: member.text.start,
                    end: member.text.end,
                };
                drafts.push(draft(
                    &self.reading,
                    Some(self.seen),
                    keys,
                    rules,
                    span,
                    true,
                ));
            }
            self.seen += 1;
        }
    }

    /// The draft of an item that was cut off.
    fn open_item(
        &mut self,
        keys: &JsonCalls,
        rules: Rules<'_>,
        end: usize,
        drafts: &mut Vec<Draft>,
    ) {
        if let Some(member) = self.reading.member(self.seen) {
            let span = Span {
                start: member.text.start,
                end,
            };
            drafts.push(draft(
                &self.reading,
                Some(self.seen),
                keys,
                rules,
                span,
                false,
            ));
            self.seen = self.reading.members().len();
        }
    }
}

/// Where a payload begins that may stand in a fence.
pub(crate) enum Fenced {
    At { value: usize, marks: usize },
    Wait,
}

/// Passes over the opening of a fence at `at`, if there is one.
pub(crate) fn past_fence(input: Input<'_>, at: usize) -> Fenced {
    let rest = input.bytes().get(at..).unwrap_or_default();
    let marks = rest
        .iter()
        .take(64)
        .take_while(|byte| **byte == b'`')
        .count();
    if marks == 0 {
        return Fenced::At { value: at, marks };
    }
    let rest = rest.get(marks..).unwrap_or_default();
    let word = rest
        .iter()
        .take(64)
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_');
    let value = input.after_space(at + marks + word.count());
    if value == input.text.len() && !input.last {
        return Fenced::Wait;
    }
    if marks < 3 {
        Fenced::At {
            value: at,
            marks: 0,
        }
    } else {
        Fenced::At { value, marks }
    }
}

/// Passes over the end of the fence around a payload that ended at `end`.
pub(crate) fn close_fence(input: Input<'_>, end: usize, marks: usize) -> Read {
    if marks == 0 {
        return Read::Done(end);
    }
    let at = input.after_space(end);
    let rest = input.bytes().get(at..).unwrap_or_default();
    let run = rest
        .iter()
        .take(marks)
        .take_while(|byte| **byte == b'`')
        .count();
    if run == marks {
        return Read::Done(at + run);
    }
    if at + run == input.text.len() && !input.last {
        Read::Wait
    } else {
        Read::Done(end)
    }
}

/// The draft that a value is: the member with this number, or the value itself.
pub(crate) fn draft(
    reading: &Reading,
    index: Option<usize>,
    keys: &JsonCalls,
    rules: Rules<'_>,
    span: Span,
    complete: bool,
) -> Draft {
    let parts = crate::calls::parts(reading.entries(index), keys);
    let mut draft = rules.draft(&parts, span);
    draft.complete &= complete;
    draft.repaired |= match index {
        Some(_) => reading.is_repaired(span),
        None => !reading.repairs().is_empty(),
    };
    if reading.has_huge_number(span) {
        draft.arguments = Arguments::Refused(FaultKind::NumberOutOfRange);
    }
    let missing = matches!(draft.arguments, Arguments::Missing);
    if missing && complete && reading.lacks_value(index, &keys.arguments) {
        draft.arguments = Arguments::Refused(FaultKind::MissingArguments);
    }
    draft
}
