//! Calls as elements, with an element for each argument or a JSON object in their place.

use crate::calls::{Arguments, Draft, PairValue};
use crate::early::Open;
use crate::formats::{ArgumentTag, NameAt, Tag, TaggedCalls};
use crate::grammars::json::opens_json;
use crate::grammars::value::{ValueEnd, ValueSearch, is_name, unframed};
use crate::grammars::{Begin, Context, Input, Item, Read};
use crate::json::Status;
use crate::markers::{Hit, Look};
use crate::reading::Reading;
use crate::{FaultKind, Repair, Span};

/// Longest opening tag.
const LONGEST_TAG: usize = 1024;
const CDATA: &str = "<![CDATA[";
/// Most white space before it.
const CDATA_INDENT: usize = 64;

/// A call that is being read.
#[derive(Clone, Debug)]
pub(crate) struct TaggedItem {
    start: usize,
    at: usize,
    stage: Stage,
    name: Option<String>,
    id: Option<String>,
    pairs: Vec<(String, PairValue)>,
    /// A JSON object in place of arguments.
    body: Option<Reading>,
    junk: Option<usize>,
}

#[derive(Clone, Debug)]
enum Stage {
    /// The name stands in an element of its own: where it begins, searched up to there.
    Name(usize, usize),
    /// Between arguments.
    Arguments,
    /// In a value between tags.
    Value(String, Kind, ValueSearch),
    /// In a value that ends with this, searched from here.
    Until(String, Kind, String, usize),
    /// In a JSON object.
    Json,
    /// Text that is no part of the call, searched from here.
    Junk(usize),
}

/// What the tag of an argument says of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unknown,
    String,
    Json,
}

/// An opening tag.
struct Opening {
    name: Option<String>,
    attributes: Vec<(String, String)>,
    end: usize,
}

/// A tag that may not be there yet.
enum Parsed<T> {
    Yes(T),
    No,
    Wait,
}

impl TaggedItem {
    pub(crate) fn begin(context: Context<'_>, input: Input<'_>, at: usize) -> Begin {
        let crate::formats::Body::Tagged(calls) = &context.entry.syntax.body else {
            return Begin::No;
        };
        let hit = match context.look(input, at, |id| context.entry.inner.open.contains(&id)) {
            Look::Hit(hit) => hit,
            Look::Partial(_) => return Begin::Wait,
            Look::Nothing => return Begin::No,
        };
        let opening = match opening(&calls.call, input, hit.end) {
            Parsed::Yes(opening) => opening,
            Parsed::Wait => return Begin::Wait,
            Parsed::No => return Begin::No,
        };
        let id = opening.attribute(&["id", "call_id"]).cloned();
        Begin::Yes(Item::Tagged(Box::new(Self {
            start: at,
            at: opening.end,
            stage: Stage::Arguments,
            name: opening.name,
            id,
            pairs: Vec::new(),
            body: None,
            junk: None,
        })))
    }

    /// The call, as far as it has come.
    pub(crate) fn open_call(&self) -> Option<(usize, Open<'_>)> {
        let open = Open::Pairs {
            name: self.name.as_deref()?,
            id: self.id.as_deref(),
            pairs: &self.pairs,
        };
        Some((self.start, open))
    }

    pub(crate) fn repairs(&self) -> &[Repair] {
        self.body.as_ref().map_or(&[], Reading::repairs)
    }

    pub(crate) fn read(
        &mut self,
        calls: &TaggedCalls,
        context: Context<'_>,
        input: Input<'_>,
        drafts: &mut Vec<Draft>,
    ) -> Read {
        loop {
            let stage = std::mem::replace(&mut self.stage, Stage::Arguments);
            let next = match stage {
                Stage::Name(from, at) => self.read_name(from, at, context, input),
                Stage::Arguments => self.between(calls, context, input),
                Stage::Value(key, kind, search) => {
                    self.read_value(key, kind, search, calls, context, input)
                }
                Stage::Until(key, kind, end, from) => {
                    self.read_until(key, kind, end, from, calls, input)
                }
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

    fn read_name(
        &mut self,
        from: usize,
        at: usize,
        context: Context<'_>,
        input: Input<'_>,
    ) -> Next {
        let close = context.entry.inner.name_element.map(|(_, close)| close);
        let searched = match context.find(input, at, |id| Some(id) == close) {
            Look::Hit(hit) => {
                let name = input.slice(from, hit.start).trim();
                self.name = Some(name.to_owned());
                self.at = hit.end;
                return Next::Go;
            }
            _ if input.last => return Next::Cut,
            Look::Partial(start) => start,
            Look::Nothing => input.text.len(),
        };
        self.stage = Stage::Name(from, searched);
        Next::Wait
    }

    /// What stands between two arguments.
    fn between(&mut self, calls: &TaggedCalls, context: Context<'_>, input: Input<'_>) -> Next {
        let at = input.after_space(self.at);
        if input.ends_at(at) {
            return if input.last { Next::Cut } else { Next::Wait };
        }
        let (entry, inner) = (context.entry, &context.entry.inner);
        let look = context.look(input, at, |id| {
            entry.bounds_calls(id)
                || inner.argument_open.contains(&id)
                || inner.argument_close.contains(&id)
                || inner.around.contains(&id)
                || inner.name_element.is_some_and(|(open, _)| open == id)
        });
        match look {
            Look::Hit(hit) if inner.argument_open.contains(&hit.id) => {
                return self.open_argument(hit, calls, input);
            }
            Look::Hit(hit) if inner.close.contains(&hit.id) => return Next::Closed(hit.end),
            Look::Hit(hit) if entry.bounds_calls(hit.id) => return Next::Closed(self.at),
            Look::Hit(hit) if inner.name_element.is_some_and(|(open, _)| open == hit.id) => {
                self.stage = Stage::Name(hit.end, hit.end);
                return Next::Go;
            }
            Look::Hit(hit) => {
                self.at = hit.end;
                return Next::Go;
            }
            Look::Partial(_) => return Next::Wait,
            Look::Nothing => {}
        }
        if self.pairs.is_empty() && self.body.is_none() && opens_json(input.rest(at)) {
            self.body = Some(Reading::new(context.rules, &entry.closers, false, at));
            self.stage = Stage::Json;
            return Next::Go;
        }
        if let ArgumentTag::Element {
            open, end, close, ..
        } = &calls.argument
        {
            match element(input, at, open, end) {
                Parsed::Wait => return Next::Wait,
                Parsed::Yes((key, from)) => {
                    let until = format!("{close}{key}{end}");
                    self.stage = Stage::Until(key, Kind::Unknown, until, from);
                    self.at = from;
                    return Next::Go;
                }
                Parsed::No => {}
            }
        }
        self.junk.get_or_insert(at);
        self.stage = Stage::Junk(at);
        Next::Go
    }

    fn open_argument(&mut self, hit: Hit, calls: &TaggedCalls, input: Input<'_>) -> Next {
        let ArgumentTag::Keyed(tag) = &calls.argument else {
            return Next::Go;
        };
        match opening(tag, input, hit.end) {
            Parsed::Wait => Next::Wait,
            Parsed::No => {
                self.junk.get_or_insert(hit.start);
                self.stage = Stage::Junk(hit.end);
                Next::Go
            }
            Parsed::Yes(opening) => {
                let kind = opening.kind();
                let key = opening.name.unwrap_or_default();
                self.at = opening.end;
                self.begin_value(key, kind, calls, input)
            }
        }
    }

    /// Begins a value at `self.at`.
    fn begin_value(
        &mut self,
        key: String,
        kind: Kind,
        calls: &TaggedCalls,
        input: Input<'_>,
    ) -> Next {
        if calls.cdata {
            let at = input.after_space(self.at).min(self.at + CDATA_INDENT);
            let rest = input.rest(at);
            if rest.starts_with(CDATA) {
                let from = at + CDATA.len();
                self.at = from;
                self.stage = Stage::Until(key, Kind::String, "]]>".to_owned(), from);
                return Next::Go;
            }
            if CDATA.starts_with(rest) && !input.last {
                self.stage = Stage::Value(key, kind, ValueSearch::new(self.at));
                return Next::Wait;
            }
        }
        self.stage = Stage::Value(key, kind, ValueSearch::new(self.at));
        Next::Go
    }

    fn read_value(
        &mut self,
        key: String,
        kind: Kind,
        mut search: ValueSearch,
        calls: &TaggedCalls,
        context: Context<'_>,
        input: Input<'_>,
    ) -> Next {
        let start = search.start();
        if calls.cdata && search.is_fresh() {
            let at = input.after_space(start).min(start + CDATA_INDENT);
            let rest = input.rest(at);
            if rest.starts_with(CDATA) || CDATA.starts_with(rest) && !input.last {
                self.at = start;
                return self.begin_value(key, kind, calls, input);
            }
        }
        match search.run(context, input) {
            ValueEnd::Wait => {
                self.stage = Stage::Value(key, kind, search);
                Next::Wait
            }
            ValueEnd::At { end, next } => {
                // Without a closing tag of its own, the value ends with its line.
                let framed = calls.framed || end == next;
                self.push(key, kind, unframed(input.slice(start, end), framed));
                self.at = next;
                Next::Go
            }
            ValueEnd::Cut => {
                self.push(key, kind, unframed(input.rest(start), calls.framed));
                Next::Cut
            }
        }
    }

    fn read_until(
        &mut self,
        key: String,
        kind: Kind,
        end: String,
        from: usize,
        calls: &TaggedCalls,
        input: Input<'_>,
    ) -> Next {
        let found = memchr::memmem::find(input.rest(from).as_bytes(), end.as_bytes());
        match found {
            Some(offset) => {
                let value = input.slice(self.at, from + offset);
                let value = if end == "]]>" {
                    value
                } else {
                    unframed(value, calls.framed)
                };
                self.push(key, kind, value);
                self.at = from + offset + end.len();
                Next::Go
            }
            None if input.last => {
                self.push(key, kind, unframed(input.rest(self.at), calls.framed));
                Next::Cut
            }
            None => {
                let back = input.text.len().saturating_sub(end.len());
                let from = input.text.floor_char_boundary(back).max(from);
                self.stage = Stage::Until(key, kind, end, from);
                Next::Wait
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

    fn push(&mut self, key: String, kind: Kind, text: &str) {
        let value = match kind {
            Kind::String => PairValue::String(text.to_owned()),
            Kind::Unknown => PairValue::Text(text.to_owned()),
            Kind::Json => match crate::tools::strict_value(text.trim()) {
                Some(json) => PairValue::Json(json),
                None => PairValue::Text(text.to_owned()),
            },
        };
        self.pairs.push((key, value));
    }

    fn draft(&mut self, end: usize, complete: bool, context: Context<'_>) -> Draft {
        let mut draft = Draft {
            name: self.name.take(),
            arguments: Arguments::Missing,
            id: self.id.take(),
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

/// What a stage led to.
enum Next {
    Go,
    Wait,
    /// The call ended here.
    Closed(usize),
    /// The text ended first.
    Cut,
    /// The JSON body was not closed; it ends here.
    CutAt(usize),
    Failed(Read),
}

impl Opening {
    fn attribute(&self, names: &[&str]) -> Option<&String> {
        let known = self
            .attributes
            .iter()
            .find(|(name, _)| names.contains(&name.as_str()));
        known.map(|(_, value)| value)
    }

    fn kind(&self) -> Kind {
        if let Some(string) = self.attribute(&["string"]) {
            return if string.eq_ignore_ascii_case("true") {
                Kind::String
            } else {
                Kind::Json
            };
        }
        match self.attribute(&["type"]).map(String::as_str) {
            Some("string" | "str") => Kind::String,
            Some(_) => Kind::Json,
            None => Kind::Unknown,
        }
    }
}

/// Reads the rest of an opening tag, from behind its `open` on.
fn opening(tag: &Tag, input: Input<'_>, from: usize) -> Parsed<Opening> {
    let rest = input.rest(from);
    let window = rest
        .get(..rest.floor_char_boundary(LONGEST_TAG))
        .unwrap_or(rest);
    let (attributes, length) = match &tag.name {
        NameAt::Inline => (None, inline_end(window, &tag.end)),
        NameAt::Attribute { .. } => {
            let (attributes, length) = attributes(window, &tag.end);
            (Some(attributes), length)
        }
    };
    let length = match length {
        TagEnd::At(length) => length,
        TagEnd::Open if window.len() == rest.len() && !input.last => return Parsed::Wait,
        TagEnd::Open | TagEnd::Never => return Parsed::No,
    };
    let end = from + length + tag.end.len();
    if let (NameAt::Attribute { names, element }, Some(attributes)) = (&tag.name, attributes) {
        let known = attributes.iter().find(|(name, _)| names.contains(name));
        let name = known.map(|(_, value)| value.clone());
        if name.is_none() && element.is_none() {
            return Parsed::No;
        }
        Parsed::Yes(Opening {
            name,
            attributes,
            end,
        })
    } else {
        let name = window.get(..length).unwrap_or_default().trim();
        let name = name.trim_matches(['"', '\'']);
        if name.is_empty() {
            return Parsed::No;
        }
        Parsed::Yes(Opening {
            name: Some(name.to_owned()),
            attributes: Vec::new(),
            end,
        })
    }
}

/// Where an opening tag ends.
enum TagEnd {
    At(usize),
    /// Not in what has come.
    Open,
    /// What has come is no tag.
    Never,
}

/// The end of a tag that holds a name and nothing else: neither a line end nor another tag.
fn inline_end(text: &str, end: &str) -> TagEnd {
    let stop = memchr::memchr2(b'\n', b'<', text.as_bytes());
    let within = stop.map_or(text.len(), |stop| text.len().min(stop + end.len()));
    let found = memchr::memmem::find(
        text.as_bytes().get(..within).unwrap_or_default(),
        end.as_bytes(),
    );
    match (found, stop) {
        (Some(length), stop) if stop.is_none_or(|stop| length <= stop) => TagEnd::At(length),
        (_, Some(stop)) if end.starts_with(text.get(stop..).unwrap_or_default()) => TagEnd::Open,
        (_, Some(_)) => TagEnd::Never,
        (_, None) => TagEnd::Open,
    }
}

/// Reads attributes up to `end`. Another tag before it means that this is none.
fn attributes(text: &str, end: &str) -> (Vec<(String, String)>, TagEnd) {
    let mut attributes = Vec::new();
    let mut at = 0;
    if end.is_empty() {
        // The opening marker is the whole tag.
        return (attributes, TagEnd::At(0));
    }
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let trimmed = rest.trim_start();
        at += rest.len() - trimmed.len();
        if trimmed.starts_with(end) {
            return (attributes, TagEnd::At(at));
        }
        if trimmed.starts_with('<') {
            let open = end.starts_with(trimmed);
            return (attributes, if open { TagEnd::Open } else { TagEnd::Never });
        }
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
        let name_end = trimmed.find(|c| !is_name(c)).unwrap_or(trimmed.len());
        let name = trimmed.get(..name_end).unwrap_or_default();
        let after = trimmed.get(name_end..).unwrap_or_default().trim_start();
        let Some(value) = after.strip_prefix('=') else {
            // A word that is no attribute, or the text ends: pass over one character.
            let Some(next) = trimmed.chars().next() else {
                return (attributes, TagEnd::Open);
            };
            at += if name_end > 0 {
                name_end
            } else {
                next.len_utf8()
            };
            continue;
        };
        let value = value.trim_start();
        let begun = text.len() - value.len();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let (value, length) = if let Some(quote) = quote {
            let inner = value.get(1..).unwrap_or_default();
            let Some(close) = inner.find(quote) else {
                return (attributes, TagEnd::Open);
            };
            (inner.get(..close).unwrap_or_default(), close + 2)
        } else {
            let stop = value.find(end).unwrap_or(value.len());
            let bare = value.get(..stop).unwrap_or_default();
            let bare = bare.split(char::is_whitespace).next().unwrap_or_default();
            (bare, bare.len())
        };
        attributes.push((name.to_owned(), value.to_owned()));
        at = begun + length;
    }
}

/// An opening tag whose name is a key: the key, and where the value begins.
fn element(input: Input<'_>, at: usize, open: &str, end: &str) -> Parsed<(String, usize)> {
    let rest = input.rest(at);
    let window = rest
        .get(..rest.floor_char_boundary(LONGEST_TAG))
        .unwrap_or(rest);
    let Some(inner) = window.strip_prefix(open) else {
        return if open.starts_with(window) && !input.last {
            Parsed::Wait
        } else {
            Parsed::No
        };
    };
    match inner.find(end) {
        Some(length) => {
            let key = inner.get(..length).unwrap_or_default();
            if !is_name(key) || key.starts_with('/') {
                return Parsed::No;
            }
            Parsed::Yes((key.to_owned(), at + open.len() + length + end.len()))
        }
        None if input.last || window.len() < rest.len() || inner.contains(char::is_whitespace) => {
            Parsed::No
        }
        None => Parsed::Wait,
    }
}
