//! Calls as a name, followed by keys and values in elements of their own.

use crate::calls::{Arguments, Draft, PairValue};
use crate::early::Open;
use crate::grammars::json::opens_json;
use crate::grammars::value::{ValueEnd, ValueSearch, is_name, unframed};
use crate::grammars::{Begin, Context, Input, Item, Read};
use crate::json::Status;
use crate::markers::Look;
use crate::reading::Reading;
use crate::{FaultKind, Repair, Span};

/// Longest name, with the white space around it.
const LONGEST_NAME: usize = 512;

/// A call that is being read.
#[derive(Clone, Debug)]
pub(crate) struct KeyValueItem {
    start: usize,
    at: usize,
    stage: Stage,
    name: String,
    key: String,
    is_string: bool,
    pairs: Vec<(String, PairValue)>,
    body: Option<Reading>,
    junk: Option<usize>,
}

#[derive(Clone, Debug)]
enum Stage {
    /// Between keys.
    Between,
    /// In a key, searched from here.
    Key(usize),
    /// Behind a key.
    AfterKey,
    /// In the type of a value.
    Kind(usize),
    Value(ValueSearch),
    /// In a JSON object.
    Json,
    /// Text that is no part of the call, searched from here.
    Junk(usize),
}

enum Next {
    Go,
    Wait,
    Closed(usize),
    Cut,
    /// The JSON body was not closed; it ends here.
    CutAt(usize),
    Failed(Read),
}

impl KeyValueItem {
    /// `behind` is where the marker before the name ends.
    pub(crate) fn begin(context: Context<'_>, input: Input<'_>, at: usize, behind: usize) -> Begin {
        let inner = &context.entry.inner;
        let (mut from, mut name_start) = (behind, at);
        if !inner.open.is_empty() {
            match context.look(input, at, |id| inner.open.contains(&id)) {
                Look::Hit(hit) => {
                    from = hit.end;
                    name_start = input.after_space(hit.end);
                }
                Look::Partial(_) => return Begin::Wait,
                Look::Nothing => return Begin::No,
            }
        }
        let rest = input.rest(name_start);
        let window = rest
            .get(..rest.floor_char_boundary(LONGEST_NAME))
            .unwrap_or(rest);
        let stop = window.find(|c: char| c.is_whitespace() || matches!(c, '<' | '{' | '[' | ']'));
        let follows = |id| {
            inner.argument_open.contains(&id)
                || inner.parts.iter().any(|(part, _)| *part == id)
                || context.entry.bounds_calls(id)
        };
        // Markers of other characters end a name, too.
        let within = window.get(..stop.unwrap_or(window.len()));
        let mut marker = None;
        for (offset, _) in within.unwrap_or_default().char_indices().skip(1) {
            match context.look(input, name_start + offset, follows) {
                Look::Nothing => {}
                Look::Partial(_) => return Begin::Wait,
                Look::Hit(_) => {
                    marker = Some(offset);
                    break;
                }
            }
        }
        let Some(length) = marker.or(stop) else {
            let open =
                !input.last && window.len() == rest.len() && (window.is_empty() || is_name(window));
            return if open { Begin::Wait } else { Begin::No };
        };
        let name = window.get(..length).unwrap_or_default();
        if !is_name(name) {
            return Begin::No;
        }
        let after = input.after_space(name_start + length);
        if input.ends_at(after) {
            return if input.last { Begin::No } else { Begin::Wait };
        }
        let next = match context.look(input, after, follows) {
            Look::Hit(hit) if context.entry.bounds_calls(hit.id) => {
                // A name alone: only when nothing but line ends surround it.
                let around = [
                    input.slice(from, name_start),
                    input.slice(name_start + length, after),
                ];
                if around.iter().any(|space| space.contains([' ', '\t'])) {
                    return Begin::No;
                }
                hit.start
            }
            Look::Hit(hit) if inner.argument_open.contains(&hit.id) => hit.start,
            Look::Hit(hit) => hit.end,
            Look::Partial(_) => return Begin::Wait,
            Look::Nothing
                if opens_json(input.rest(after)) && input.rest(after).starts_with('{') =>
            {
                after
            }
            Look::Nothing => return Begin::No,
        };
        Begin::Yes(Item::KeyValue(Box::new(Self {
            start: at,
            at: next,
            stage: Stage::Between,
            name: name.to_owned(),
            key: String::new(),
            is_string: false,
            pairs: Vec::new(),
            body: None,
            junk: None,
        })))
    }

    /// The call, as far as it has come.
    pub(crate) fn open_call(&self) -> (usize, Open<'_>) {
        let open = Open::Pairs {
            name: &self.name,
            id: None,
            pairs: &self.pairs,
        };
        (self.start, open)
    }

    pub(crate) fn repairs(&self) -> &[Repair] {
        self.body.as_ref().map_or(&[], Reading::repairs)
    }

    pub(crate) fn read(
        &mut self,
        context: Context<'_>,
        input: Input<'_>,
        drafts: &mut Vec<Draft>,
    ) -> Read {
        loop {
            let next = match std::mem::replace(&mut self.stage, Stage::Between) {
                Stage::Between => self.between(context, input),
                Stage::Key(from) => self.read_key(from, context, input),
                Stage::AfterKey => self.after_key(context, input),
                Stage::Kind(from) => self.read_kind(from, context, input),
                Stage::Value(search) => self.read_value(search, context, input),
                Stage::Json => self.read_json(input),
                Stage::Junk(from) => self.skip_junk(from, context, input),
            };
            match next {
                Next::Go => {}
                Next::Wait => return Read::Wait,
                Next::Failed(read) => return read,
                Next::Closed(end) => {
                    drafts.push(self.draft(end, true, context));
                    return Read::Done(end);
                }
                Next::CutAt(end) => {
                    drafts.push(self.draft(end, false, context));
                    return Read::Done(end);
                }
                Next::Cut => {
                    let end = input.text.len();
                    drafts.push(self.draft(end, false, context));
                    return Read::Done(end);
                }
            }
        }
    }

    fn between(&mut self, context: Context<'_>, input: Input<'_>) -> Next {
        let at = input.after_space(self.at);
        if input.ends_at(at) {
            return if input.last { Next::Cut } else { Next::Wait };
        }
        let (entry, inner) = (context.entry, &context.entry.inner);
        let look = context.look(input, at, |id| {
            entry.bounds_calls(id)
                || inner.argument_open.contains(&id)
                || inner.argument_close.contains(&id)
                || inner.parts.iter().any(|(part, _)| *part == id)
        });
        match look {
            Look::Hit(hit) if inner.argument_open.contains(&hit.id) => {
                self.at = hit.end;
                self.stage = Stage::Key(hit.end);
                Next::Go
            }
            Look::Hit(hit) if inner.close.contains(&hit.id) => Next::Closed(hit.end),
            Look::Hit(hit) if entry.bounds_calls(hit.id) => Next::Closed(self.at),
            Look::Hit(hit) => {
                self.at = hit.end;
                Next::Go
            }
            Look::Partial(_) => Next::Wait,
            Look::Nothing
                if self.pairs.is_empty() && self.body.is_none() && opens_json(input.rest(at)) =>
            {
                self.body = Some(Reading::new(context.rules, &entry.closers, false, at));
                self.stage = Stage::Json;
                Next::Go
            }
            Look::Nothing => {
                self.junk.get_or_insert(at);
                self.stage = Stage::Junk(at);
                Next::Go
            }
        }
    }

    fn read_key(&mut self, from: usize, context: Context<'_>, input: Input<'_>) -> Next {
        let close = context.entry.inner.key_close;
        let open = context.entry.inner.value_open;
        match context.find(input, from, |id| Some(id) == close || Some(id) == open) {
            Look::Hit(hit) => {
                input
                    .slice(self.at, hit.start)
                    .trim()
                    .clone_into(&mut self.key);
                self.at = if Some(hit.id) == close {
                    hit.end
                } else {
                    hit.start
                };
                self.is_string = false;
                self.stage = Stage::AfterKey;
                Next::Go
            }
            Look::Partial(start) => {
                self.stage = Stage::Key(start);
                Next::Wait
            }
            Look::Nothing if input.last => Next::Cut,
            Look::Nothing => {
                self.stage = Stage::Key(input.text.len());
                Next::Wait
            }
        }
    }

    fn after_key(&mut self, context: Context<'_>, input: Input<'_>) -> Next {
        let at = input.after_space(self.at);
        let inner = &context.entry.inner;
        if input.ends_at(at) && !input.last {
            self.stage = Stage::AfterKey;
            return Next::Wait;
        }
        match context.look(input, at, |id| {
            Some(id) == inner.value_open || Some(id) == inner.kind_open
        }) {
            Look::Hit(hit) if Some(hit.id) == inner.value_open => {
                self.at = hit.end;
                self.stage = Stage::Value(ValueSearch::new(hit.end));
                Next::Go
            }
            Look::Hit(hit) => {
                self.at = hit.end;
                self.stage = Stage::Kind(hit.end);
                Next::Go
            }
            Look::Partial(_) => {
                self.stage = Stage::AfterKey;
                Next::Wait
            }
            Look::Nothing if input.ends_at(at) => Next::Cut,
            Look::Nothing => {
                self.junk.get_or_insert(at);
                self.stage = Stage::Junk(at);
                Next::Go
            }
        }
    }

    fn read_kind(&mut self, from: usize, context: Context<'_>, input: Input<'_>) -> Next {
        let close = context.entry.inner.kind_close;
        match context.find(input, from, |id| Some(id) == close) {
            Look::Hit(hit) => {
                self.is_string = input.slice(self.at, hit.start).trim() == "string";
                self.at = hit.end;
                self.stage = Stage::AfterKey;
                Next::Go
            }
            Look::Partial(start) => {
                self.stage = Stage::Kind(start);
                Next::Wait
            }
            Look::Nothing if input.last => Next::Cut,
            Look::Nothing => {
                self.stage = Stage::Kind(input.text.len());
                Next::Wait
            }
        }
    }

    fn read_value(
        &mut self,
        mut search: ValueSearch,
        context: Context<'_>,
        input: Input<'_>,
    ) -> Next {
        let start = search.start();
        match search.run(context, input) {
            ValueEnd::Wait => {
                self.stage = Stage::Value(search);
                Next::Wait
            }
            ValueEnd::At { end, next } => {
                // Without a closing tag of its own, the value ends with its line.
                let unclosed = end == next;
                self.push(unframed(input.slice(start, end), unclosed));
                self.at = next;
                Next::Go
            }
            ValueEnd::Cut => {
                self.push(unframed(input.rest(start), false));
                Next::Cut
            }
        }
    }

    fn read_json(&mut self, input: Input<'_>) -> Next {
        let Some(reading) = &mut self.body else {
            return Next::Go;
        };
        match reading.read(input) {
            Status::NeedMore => {
                self.stage = Stage::Json;
                Next::Wait
            }
            Status::Failed(error) => Next::Failed(Read::failed(error, self.start)),
            Status::Done {
                end,
                complete: false,
            } => Next::CutAt(end),
            Status::Done { end, .. } => {
                self.at = end;
                Next::Go
            }
        }
    }

    fn skip_junk(&mut self, from: usize, context: Context<'_>, input: Input<'_>) -> Next {
        let (entry, inner) = (context.entry, &context.entry.inner);
        let found = context.find(input, from, |id| {
            entry.bounds_calls(id) || inner.argument_open.contains(&id)
        });
        match found {
            Look::Hit(hit) => {
                self.at = hit.start;
                Next::Go
            }
            Look::Partial(start) => {
                self.stage = Stage::Junk(start);
                Next::Wait
            }
            Look::Nothing if input.last => Next::Cut,
            Look::Nothing => {
                self.stage = Stage::Junk(input.text.len());
                Next::Wait
            }
        }
    }

    fn push(&mut self, text: &str) {
        let text = text.to_owned();
        let value = if self.is_string {
            PairValue::String(text)
        } else {
            PairValue::Text(text)
        };
        self.pairs.push((std::mem::take(&mut self.key), value));
    }

    fn draft(&mut self, end: usize, complete: bool, context: Context<'_>) -> Draft {
        let mut draft = Draft {
            name: Some(std::mem::take(&mut self.name)),
            arguments: Arguments::Missing,
            id: None,
            complete,
            repaired: false,
            junk: self.junk,
            span: Span {
                start: self.start,
                end,
            },
        };
        match &self.body {
            Some(reading) => {
                context
                    .rules
                    .read_arguments(reading.value(None), &mut draft);
                draft.repaired |= !reading.repairs().is_empty();
                if reading.has_huge_number(draft.span) {
                    draft.arguments = Arguments::Refused(FaultKind::NumberOutOfRange);
                }
            }
            None => draft.arguments = Arguments::Pairs(std::mem::take(&mut self.pairs)),
        }
        draft
    }
}
