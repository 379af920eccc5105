//! Calls as a name, markers, and a JSON object (or plain text) of arguments.

use crate::calls::{Arguments, Draft};
use crate::early::Open;
use crate::formats::{NamedCalls, Part};
use crate::grammars::json::{Fenced, close_fence, opens_json, past_fence};
use crate::grammars::value::is_name;
use crate::grammars::{Begin, Context, Input, Item, Read, exactly};
use crate::json::Status;
use crate::markers::{Hit, Look};
use crate::reading::Reading;
use crate::{FaultKind, Repair, Span};

/// Longest text between a call's beginning and its arguments, all its parts together.
const LONGEST_HEADER: usize = 1024;

/// A call that is being read.
#[derive(Clone, Debug)]
pub(crate) struct NamedItem {
    start: usize,
    header: Header,
    reading: Option<Reading>,
    stage: Stage,
}

#[derive(Clone, Debug)]
enum Stage {
    /// JSON in a fence of so many backticks.
    Json(usize),
    /// Plain input from here, searched up to there.
    Input(usize, usize),
    /// Behind the arguments, whose JSON ended here, in a fence of so many backticks.
    End(usize, usize),
    /// The text ended within the header.
    Cut,
    /// A call without arguments ended here.
    Nothing(usize),
    /// The call is known, its closing markers may follow.
    Close(usize),
}

/// What stands before the arguments.
#[derive(Clone, Debug, Default)]
struct Header {
    name: String,
    id: Option<String>,
}

enum Ready {
    No,
    Wait,
    /// JSON begins here, after so many backticks.
    Json(Header, usize, usize),
    /// Plain input begins here.
    Input(Header, usize),
    /// The call has no arguments; it ended here.
    Nothing(Header, usize),
    /// The text ended.
    Cut(Header),
}

impl NamedItem {
    pub(crate) fn begin(
        calls: &NamedCalls,
        context: Context<'_>,
        input: Input<'_>,
        at: usize,
    ) -> Begin {
        let mut from = at;
        if !calls.open.is_empty() {
            match context.look(input, at, |id| context.entry.inner.open.contains(&id)) {
                Look::Hit(hit) => from = hit.end,
                Look::Partial(_) => return Begin::Wait,
                Look::Nothing => return Begin::No,
            }
        }
        let mut reading = None;
        let (header, stage) = match header(calls, context, input, from) {
            Ready::No => return Begin::No,
            Ready::Wait => return Begin::Wait,
            Ready::Json(header, value, marks) => {
                reading = Some(Reading::new(
                    context.rules,
                    &context.entry.closers,
                    marks > 0,
                    value,
                ));
                (header, Stage::Json(marks))
            }
            Ready::Input(header, from) => (header, Stage::Input(from, from)),
            Ready::Nothing(header, end) => (header, Stage::Nothing(end)),
            Ready::Cut(header) => (header, Stage::Cut),
        };
        Begin::Yes(Item::Named(Box::new(Self {
            start: at,
            header,
            reading,
            stage,
        })))
    }

    /// The call, while its arguments are being read.
    pub(crate) fn open_call(&self) -> Option<(usize, Open<'_>)> {
        let Stage::Json(_) = self.stage else {
            return None;
        };
        let open = Open::Arguments {
            name: &self.header.name,
            id: self.header.id.as_deref(),
            reading: self.reading.as_ref()?,
        };
        Some((self.start, open))
    }

    pub(crate) fn repairs(&self) -> &[Repair] {
        self.reading.as_ref().map_or(&[], Reading::repairs)
    }

    pub(crate) fn read(
        &mut self,
        context: Context<'_>,
        input: Input<'_>,
        drafts: &mut Vec<Draft>,
    ) -> Read {
        loop {
            match self.stage {
                Stage::Json(marks) => {
                    let Some(reading) = &mut self.reading else {
                        return Read::Done(self.start);
                    };
                    match reading.read(input) {
                        Status::NeedMore => return Read::Wait,
                        Status::Failed(error) => return Read::failed(error, self.start),
                        Status::Done { end, complete } => {
                            drafts.push(self.draft_of_json(end, complete, context));
                            self.stage = Stage::End(end, marks);
                        }
                    }
                }
                Stage::Input(from, at) => {
                    if !self.input(from, at, context, input, drafts) {
                        return Read::Wait;
                    }
                }
                Stage::End(end, marks) => match close_fence(input, end, marks) {
                    Read::Done(end) => self.stage = Stage::Close(end),
                    read => return read,
                },
                Stage::Cut => {
                    let end = input.text.len();
                    drafts.push(self.draft(Arguments::Missing, end, false));
                    self.stage = Stage::Close(end);
                }
                Stage::Nothing(end) => {
                    drafts.push(self.draft(Arguments::Missing, end, true));
                    self.stage = Stage::Close(end);
                }
                Stage::Close(end) => return self.closing(end, context, input),
            }
        }
    }

    /// Reads plain input up to what closes it; false when more text is needed.
    fn input(
        &mut self,
        from: usize,
        at: usize,
        context: Context<'_>,
        input: Input<'_>,
        drafts: &mut Vec<Draft>,
    ) -> bool {
        let entry = context.entry;
        let closes = |id| entry.inner.close.contains(&id) || entry.close.contains(&id);
        let (end, complete) = match context.find(input, at, closes) {
            Look::Hit(hit) => (hit.start, true),
            Look::Partial(start) => {
                self.stage = Stage::Input(from, start);
                return false;
            }
            Look::Nothing if !input.last => {
                self.stage = Stage::Input(from, input.text.len());
                return false;
            }
            Look::Nothing => (input.text.len(), false),
        };
        let arguments = text_input(input.slice(from, end));
        drafts.push(self.draft(arguments, end, complete));
        self.stage = Stage::Close(end);
        true
    }

    /// Passes over the markers that close a call.
    fn closing(&mut self, mut end: usize, context: Context<'_>, input: Input<'_>) -> Read {
        loop {
            let at = input.after_space(end);
            if input.ends_at(at) && !input.last {
                self.stage = Stage::Close(end);
                return Read::Wait;
            }
            match exactly(
                context.look(input, at, |id| context.entry.inner.close.contains(&id)),
                at,
            ) {
                Look::Hit(hit) => end = hit.end,
                Look::Partial(_) => {
                    self.stage = Stage::Close(end);
                    return Read::Wait;
                }
                Look::Nothing => return Read::Done(end),
            }
        }
    }

    fn draft(&mut self, arguments: Arguments, end: usize, complete: bool) -> Draft {
        let name = std::mem::take(&mut self.header.name);
        Draft {
            name: Some(name),
            arguments,
            id: self.header.id.take(),
            complete,
            repaired: false,
            junk: None,
            span: Span {
                start: self.start,
                end,
            },
        }
    }

    fn draft_of_json(&mut self, end: usize, complete: bool, context: Context<'_>) -> Draft {
        let mut draft = self.draft(Arguments::Missing, end, complete);
        if let Some(reading) = &self.reading {
            context
                .rules
                .read_arguments(reading.value(None), &mut draft);
            draft.repaired |= !reading.repairs().is_empty();
            if reading.has_huge_number(draft.span) {
                draft.arguments = Arguments::Refused(FaultKind::NumberOutOfRange);
            }
        }
        draft
    }
}

/// Plain text as input: a JSON object of arguments, or one string.
pub(crate) fn text_input(text: &str) -> Arguments {
    let text = text.trim();
    match crate::tools::strict_object(text) {
        Some(json) => Arguments::Json(json),
        None if text.is_empty() => Arguments::Missing,
        None => Arguments::Text(text.to_owned()),
    }
}

/// Reads a header from `from` on.
fn header(calls: &NamedCalls, context: Context<'_>, input: Input<'_>, from: usize) -> Ready {
    let inner = &context.entry.inner;
    let wanted =
        |id| context.entry.bounds_calls(id) || inner.parts.iter().any(|(part, _)| *part == id);
    // A name alone is one only between markers of its own, and where no other marker leads to it.
    let named = calls.parts.iter().any(|(_, part)| *part == Part::Name);
    let bare = !calls.open.is_empty() && !named;
    let mut header = Header::default();
    let mut part = Part::Name;
    let mut at = from;
    loop {
        let rest = input.rest(at);
        let left = (from + LONGEST_HEADER).saturating_sub(at);
        let window = rest.get(..rest.floor_char_boundary(left)).unwrap_or(rest);
        let mut head = input.up_to(at + window.len());
        head.last |= window.len() < rest.len();
        let marker = context.find(head, at, wanted);
        let before_marker = match marker {
            Look::Hit(Hit { start, .. }) | Look::Partial(start) => input.slice(at, start),
            Look::Nothing => window,
        };
        let payload = payload_in(before_marker).map(|offset| at + offset);
        let before = |start: usize| payload.is_none_or(|payload| start < payload);
        let stop = match marker {
            Look::Hit(hit) if before(hit.start) => Some(hit),
            Look::Partial(start) if before(start) => return Ready::Wait,
            _ => None,
        };
        let end = stop.map(|hit| hit.start).or(payload);
        let Some(end) = end else {
            if window.len() < rest.len() || window.len() >= left {
                return Ready::No;
            }
            if !input.last {
                return if may_go_on(rest, part) {
                    Ready::Wait
                } else {
                    Ready::No
                };
            }
            let done = header.take(part, rest.trim(), calls);
            return if done && from != at && !header.name.is_empty() {
                Ready::Cut(header)
            } else {
                Ready::No
            };
        };
        if !header.take(part, input.slice(at, end).trim(), calls) {
            return Ready::No;
        }
        let Some(hit) = stop else {
            if header.name.is_empty() {
                return Ready::No;
            }
            return match past_fence(input, end) {
                Fenced::Wait => Ready::Wait,
                Fenced::At { value, marks } if opens_json(input.rest(value)) => {
                    Ready::Json(header, value, marks)
                }
                Fenced::At { .. } => Ready::No,
            };
        };
        match inner.parts.iter().find(|(id, _)| *id == hit.id) {
            None if header.name.is_empty() => return Ready::No,
            None if at == from && !(bare && inner.close.contains(&hit.id)) => return Ready::No,
            None => return Ready::Nothing(header, hit.start),
            Some((_, Part::Input)) => return Ready::Input(header, hit.end),
            Some((_, next)) => {
                part = *next;
                at = hit.end;
            }
        }
    }
}

/// Where a payload, or a fence around one, begins.
fn payload_in(text: &str) -> Option<usize> {
    let ascii = memchr::memchr2(b'{', b'`', text.as_bytes());
    let before = text.get(..ascii.unwrap_or(text.len())).unwrap_or_default();
    before.find('｛').or(ascii)
}

/// Whether a header may still become one.
fn may_go_on(text: &str, part: Part) -> bool {
    let words = text.split_whitespace().count();
    words <= 1 || matches!(part, Part::Input | Part::Ignored)
}

impl Header {
    /// Takes the text of a part; false when that can't be.
    fn take(&mut self, part: Part, text: &str, calls: &NamedCalls) -> bool {
        match part {
            Part::Name if text.is_empty() => true,
            Part::Name => {
                if !is_name(text) {
                    return false;
                }
                self.name = self.named(text, calls);
                true
            }
            // More than one word is no id, but text.
            Part::Id if text.contains(char::is_whitespace) => false,
            Part::Id => {
                self.id = Some(text.to_owned()).filter(|id| !id.is_empty());
                true
            }
            Part::Arguments => text.is_empty(),
            Part::Input | Part::Ignored => true,
        }
    }

    fn named(&mut self, text: &str, calls: &NamedCalls) -> String {
        let mut name = text;
        if calls.indexed
            && let Some((before, index)) = text.rsplit_once(':')
            && !index.is_empty()
            && index.bytes().all(|byte| byte.is_ascii_digit())
        {
            name = before;
            self.id = Some(text.to_owned());
        }
        name.strip_prefix(calls.prefix.as_str())
            .unwrap_or(name)
            .to_owned()
    }
}
