//! Around the values of a document: prose, reasoning blocks, fences, stray quotes and closers.
//!
//! The first brace or bracket that begins something like JSON begins a value. Several values make
//! a list. A reasoning block is passed over, and a closing tag alone takes back what came before.

use super::ahead::{Gap, Input, Tok};
use super::closers::Closer;
use super::decide::{self, Shape};
use super::glyph::{Glyph, Quote, Seen};
use super::kinds::{Error, ErrorKind, RepairKind};
use super::noise::FENCE_LENGTH;
use super::number::{Scalar, scalar};
use super::reader::{Flow, Kind, Mode, Reader, State, Status};
use super::stack::Frame;
use std::sync::{Arc, LazyLock};
use turnwarden_cleanup::REASONING;

/// What ends a value in a document: the fence around it.
pub(super) static FENCES: LazyLock<Arc<[Closer]>> =
    LazyLock::new(|| Arc::from([Closer::at_line_start("```"), Closer::at_line_start("~~~")]));

/// What was found so far.
#[derive(Clone, Copy, Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "facts of their own, in any mixture"
)]
pub(super) struct Document {
    /// Values written.
    values: usize,
    /// Whether nothing but white space came before, so that anything may begin a value.
    mid_line: bool,
    begun: bool,
    /// Whether prose was dropped since the last value.
    noted: bool,
    /// The tag of the reasoning block that is open, as an index.
    reasoning: Option<usize>,
    /// The first thing that might be a value if nothing better comes.
    weak: Option<usize>,
    error: Option<Error>,
    incomplete: bool,
    looking: bool,
    /// What the last value was.
    last_object: bool,
    last_string: bool,
    accept_weak: bool,
    scalar_start: Option<usize>,
    /// Where the value being read begins in the output.
    value_out: usize,
    value_members: usize,
}

impl Reader {
    pub(super) fn step_around(&mut self, input: Input<'_>) -> Flow {
        if let Some(tag) = self.document.reasoning {
            return self.step_reasoning(tag, input);
        }
        if self.document.looking {
            return self.step_candidate(input);
        }
        loop {
            let Some(seen) = input.glyph(self.at) else {
                return Flow::More;
            };
            match seen.glyph {
                Glyph::Space | Glyph::Newline => {
                    if !seen.plain {
                        self.repair(RepairKind::SpaceDropped, self.at);
                    }
                    if seen.glyph == Glyph::Newline {
                        self.document.mid_line = false;
                    }
                    self.at += seen.length;
                }
                _ => match self.around_mark(seen, input) {
                    Flow::Go
                        if self.state == State::Around
                            && !self.document.looking
                            && self.document.reasoning.is_none() => {}
                    other => return other,
                },
            }
        }
    }

    fn around_mark(&mut self, seen: Seen, input: Input<'_>) -> Flow {
        let at = self.at;
        let bytes = input.bytes();
        let rest = bytes.get(at..).unwrap_or_default();
        if let Some(flow) = self.tag(rest, input) {
            return flow;
        }
        // Another value may follow the last one.
        let in_a_row = self.document.values > 0 && !self.document.noted;
        match seen.glyph {
            Glyph::OpenBrace if rest.get(1) == Some(&b'{') => {}
            Glyph::OpenBrace | Glyph::OpenBracket => return self.look_at_candidate(),
            Glyph::OpenParen if !self.document.begun => return self.look_at_candidate(),
            Glyph::Quote(Quote::Backtick) if rest.starts_with(b"```") => {
                return self.fence(input);
            }
            Glyph::Quote(Quote::Backtick) if rest.len() < 3 && !input.last => return Flow::More,
            Glyph::Quote(_) | Glyph::Backslash if !self.document.begun => {
                return self.look_at_candidate();
            }
            Glyph::Quote(_) | Glyph::Backslash if in_a_row && self.document.last_string => {
                return self.look_at_candidate();
            }
            Glyph::Comma if in_a_row || self.document.values > 0 && self.document.last_object => {
                return self.look_at_candidate();
            }
            Glyph::CloseBrace | Glyph::CloseBracket | Glyph::CloseParen if in_a_row => {
                self.repair(RepairKind::CloserDropped, at);
                self.at += seen.length;
                return Flow::Go;
            }
            Glyph::Other if rest.starts_with(b"~~~") => return self.fence(input),
            Glyph::Slash | Glyph::Hash if !self.document.begun || self.document.values > 0 => {
                if let Some(flow) = self.around_comment(seen, input) {
                    return flow;
                }
            }
            Glyph::Word | Glyph::Dot | Glyph::Plus if !self.document.begun => {
                self.document.scalar_start = Some(at);
            }
            _ => {}
        }
        self.prose(seen);
        Flow::Go
    }

    fn around_comment(&mut self, seen: Seen, input: Input<'_>) -> Option<Flow> {
        let next = input.bytes().get(self.at + 1);
        match (seen.glyph, next) {
            (_, None) if !input.last => Some(Flow::More),
            (Glyph::Slash, Some(b'/')) => Some(self.begin_comment(false, 2)),
            (Glyph::Slash, Some(b'*')) => Some(self.begin_comment(true, 2)),
            _ => None,
        }
    }

    fn prose(&mut self, seen: Seen) {
        if !self.document.noted && self.document.scalar_start.is_none() {
            self.repair(RepairKind::ProseDropped, self.at);
            self.document.noted = true;
        }
        self.document.begun = true;
        self.document.mid_line = true;
        self.at += seen.length;
    }

    fn look_at_candidate(&mut self) -> Flow {
        self.look(self.at);
        self.document.looking = true;
        Flow::Go
    }

    /// Whether what stands at `self.at` begins a value.
    fn step_candidate(&mut self, input: Input<'_>) -> Flow {
        let Some(seen) = input.glyph(self.at) else {
            return Flow::More;
        };
        let decided = match seen.glyph {
            Glyph::OpenBrace | Glyph::OpenBracket | Glyph::OpenParen => self.opener(input),
            Glyph::Comma => self.reopens(input),
            _ => self.quoted_document(input),
        };
        match decided {
            None => Flow::More,
            Some(Candidate::Value) => {
                self.document.looking = false;
                self.begin_document_value();
                Flow::Go
            }
            Some(Candidate::Entry) => {
                self.document.looking = false;
                self.reopen(input);
                Flow::Go
            }
            Some(Candidate::Prose) => {
                self.document.looking = false;
                if seen.glyph == Glyph::Comma && !self.document.noted {
                    self.at += seen.length;
                    return Flow::Go;
                }
                self.prose(seen);
                Flow::Go
            }
        }
    }

    fn opener(&mut self, input: Input<'_>) -> Option<Candidate> {
        let strong = !self.document.begun;
        let first = self.ahead.token(0, input)?.tok;
        let next = self.ahead.token(1, input)?;
        let weak = match (first, next.tok) {
            (_, Tok::Str | Tok::OpenStr | Tok::Comment) => return Some(Candidate::Value),
            (Tok::OpenBrace, Tok::Word | Tok::Number | Tok::Literal) => {
                if decide::begins_key(&mut self.ahead, 1, input)? {
                    return Some(Candidate::Value);
                }
                false
            }
            (Tok::OpenBracket | Tok::OpenParen, Tok::OpenBrace | Tok::OpenBracket) => {
                return Some(Candidate::Value);
            }
            (Tok::OpenBracket, Tok::Number | Tok::Literal) => {
                let after = self.ahead.token(2, input)?.tok;
                if after == Tok::Comma {
                    let second = self.ahead.begun(3, input)?;
                    if matches!(second, Tok::Str | Tok::OpenBrace | Tok::OpenBracket) {
                        // No citation: `[1, "a"]`.
                        return Some(Candidate::Value);
                    }
                }
                after == Tok::Comma || after == Tok::CloseBracket
            }
            (Tok::OpenBrace, Tok::CloseBrace) => true,
            (Tok::OpenBracket, Tok::CloseBracket) => next.gap == Gap::None,
            (Tok::OpenBrace, Tok::OpenBrace) => return Some(Candidate::Prose),
            _ => false,
        };
        let fenced = first == Tok::OpenBracket && next.tok == Tok::Closer;
        let code = next.tok == Tok::Other || fenced;
        let in_a_row = self.document.values > 0 && !self.document.noted;
        if (strong && !code) || (weak && (self.document.accept_weak || in_a_row)) {
            return Some(Candidate::Value);
        }
        if weak && self.document.weak.is_none() && self.document.values == 0 {
            self.document.weak = Some(self.at);
        }
        Some(Candidate::Prose)
    }

    /// A quote at the very beginning: a string, an object without braces, or stray.
    fn quoted_document(&mut self, input: Input<'_>) -> Option<Candidate> {
        let first = self.ahead.token(0, input)?;
        if self.document.values > 0 && first.tok != Tok::Str {
            // The stray quote of one that was around the last value.
            return Some(Candidate::Prose);
        }
        let second = self.ahead.token(1, input)?;
        match (first.tok, second.tok) {
            (Tok::Str, Tok::Colon) => return Some(Candidate::Entry),
            (Tok::Str | Tok::OpenStr, Tok::End) => return Some(Candidate::Value),
            (Tok::Str, Tok::Comma) => {
                let third = self.ahead.token(2, input)?.tok;
                let listed = matches!(third, Tok::Str | Tok::OpenStr | Tok::End);
                return Some(if listed {
                    Candidate::Value
                } else {
                    Candidate::Prose
                });
            }
            (Tok::Str, Tok::Plus | Tok::Str | Tok::OpenStr) => return Some(Candidate::Value),
            _ => {}
        }
        Some(Candidate::Prose)
    }

    /// Whether a key follows the comma: the object was closed too early.
    fn reopens(&mut self, input: Input<'_>) -> Option<Candidate> {
        let key = self.document.last_object
            && self.ahead.token(1, input)?.tok == Tok::Str
            && self.ahead.token(2, input)?.tok == Tok::Colon;
        Some(if key {
            Candidate::Entry
        } else {
            Candidate::Prose
        })
    }

    fn begin_document_value(&mut self) {
        self.document.begun = true;
        self.document.noted = false;
        self.document.scalar_start = None;
        self.document.value_out = self.out.len();
        self.document.value_members = self.members.len();
        if self.document.values > 0 {
            self.out.push(',');
        }
        self.state = State::Value;
    }

    /// Goes on with an object whose braces are missing, or were closed too early.
    fn reopen(&mut self, input: Input<'_>) {
        let again = self.document.values > 0 && self.document.last_object;
        self.document.begun = true;
        self.document.noted = false;
        if again {
            self.repair(RepairKind::CloserDropped, self.at);
            self.document.values -= 1;
            self.out.pop();
        } else {
            self.repair(RepairKind::OpenerAdded, self.at);
            self.document.value_out = self.out.len();
            self.document.value_members = self.members.len();
            if self.document.values > 0 {
                self.out.push(',');
            }
            self.out.push('{');
            self.open_member(Kind::Object, self.at);
        }
        let comma = usize::from(self.document.values > 0);
        let open = self.document.value_out + comma;
        let mut frame = Frame::new(Shape::Object, self.at, open, None);
        frame.filled = again && !self.out.ends_with('{');
        self.frames.push(frame);
        self.comma = None;
        self.state = State::Key;
        if again {
            self.comma = Some(self.at);
            self.at += input.glyph(self.at).map_or(1, |seen| seen.length);
        }
    }

    /// A value of the document is over.
    pub(super) fn document_value(&mut self, complete: bool) -> Flow {
        self.document.values += 1;
        self.document.last_object = self.out.ends_with('}');
        self.document.last_string = self.out.ends_with('"');
        self.document.incomplete |= !complete;
        self.document.mid_line = true;
        self.escaped = false;
        self.ahead.escaped = false;
        self.cut = false;
        self.state = State::Around;
        self.last_string = None;
        Flow::Go
    }

    // Fences and reasoning.

    fn fence(&mut self, input: Input<'_>) -> Flow {
        let rest = input.bytes().get(self.at..).unwrap_or_default();
        // A longer one is several: what is looked at again with every chunk is bounded.
        let rest = rest.get(..FENCE_LENGTH).unwrap_or(rest);
        let mark = rest.first().copied().unwrap_or(b'`');
        let run = rest.iter().take_while(|&&byte| byte == mark).count();
        let info = rest.get(run..).unwrap_or_default();
        let word = info
            .iter()
            .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+')))
            .unwrap_or(info.len());
        if run + word == rest.len() && rest.len() < FENCE_LENGTH && !input.last {
            return Flow::More;
        }
        self.repair(RepairKind::FenceDropped, self.at);
        self.at += run + word;
        self.options.in_fence = !self.options.in_fence;
        if self.document.values == 0 {
            // Whatever a fence holds may begin a value.
            self.document.begun = false;
            self.document.scalar_start = None;
        }
        Flow::Go
    }

    /// A tag at `self.at` that opens or closes reasoning.
    fn tag(&mut self, rest: &[u8], input: Input<'_>) -> Option<Flow> {
        if !matches!(rest.first(), Some(b'<' | b'[' | 0xe2)) {
            return None;
        }
        let mut may_begin = false;
        for (index, tags) in REASONING.iter().enumerate() {
            for (tag, closes) in [(tags.open, false), (tags.close, true)] {
                match begins_with(rest, tag) {
                    Some(true) => {}
                    Some(false) => continue,
                    None => {
                        may_begin = true;
                        continue;
                    }
                }
                self.repair(RepairKind::ReasoningDropped, self.at);
                self.at += tag.len();
                if closes {
                    self.forget();
                } else {
                    self.document.reasoning = Some(index);
                }
                return Some(Flow::Go);
            }
        }
        (may_begin && !input.last).then_some(Flow::More)
    }

    /// A closing tag alone: all that came before was reasoning.
    fn forget(&mut self) {
        self.out.clear();
        self.members.clear();
        self.holes.clear();
        self.document = Document {
            error: self.document.error,
            ..Document::default()
        };
    }

    fn step_reasoning(&mut self, block: usize, input: Input<'_>) -> Flow {
        let close = REASONING.get(block).map_or("", |tags| tags.close);
        let bytes = input.bytes();
        let rest = bytes.get(self.at..).unwrap_or_default();
        let first = close.bytes().next().unwrap_or_default();
        for found in memchr::memchr_iter(first, rest) {
            match begins_with(rest.get(found..).unwrap_or_default(), close) {
                Some(false) => {}
                None if input.last => {}
                None => {
                    self.at += found;
                    return Flow::More;
                }
                Some(true) => {
                    self.at += found + close.len();
                    self.document.reasoning = None;
                    if self.document.values == 0 {
                        self.document.begun = false;
                        self.document.scalar_start = None;
                    }
                    return Flow::Go;
                }
            }
        }
        self.at = bytes.len();
        Flow::More
    }

    /// The end of the document.
    pub(super) fn end_around(&mut self, input: Input<'_>) -> Flow {
        let end = input.text.len();
        let none = self.document.values == 0;
        if none && self.document.reasoning.is_none() {
            if let Some(start) = self.document.scalar_start.take()
                && let Some(flow) = self.scalar_document(start, input)
            {
                return flow;
            }
            if let Some(weak) = self.document.weak.take() {
                self.document.accept_weak = true;
                self.at = weak;
                self.state = State::Around;
                return Flow::Go;
            }
        }
        if none {
            let error = self.document.error;
            let error = error.unwrap_or(Error::new(ErrorKind::NoValue, end));
            return self.fail(error.kind, error.offset);
        }
        if self.document.values > 1 {
            self.repair(RepairKind::ValuesCollected, end);
            self.out.insert(0, '[');
            self.out.push(']');
            for hole in &mut self.holes {
                *hole += 1;
            }
        }
        self.at = end;
        self.done(!self.document.incomplete)
    }

    /// A document of bare scalars: one, or one on each line.
    fn scalar_document(&mut self, start: usize, input: Input<'_>) -> Option<Flow> {
        let text = input.slice(start, input.text.len());
        let mut lines = text.split('\n').map(str::trim);
        if lines.any(|line| !line.is_empty() && scalar(line) == Scalar::Text) {
            return None;
        }
        let mut at = start;
        for line in text.split('\n') {
            let token = line.trim();
            let offset = at + line.len() - line.trim_start().len();
            at += line.len() + 1;
            let (json, kind) = match scalar(token) {
                // An empty line.
                Scalar::Text => continue,
                Scalar::OutOfRange => {
                    return Some(self.fail(ErrorKind::NumberOutOfRange, offset));
                }
                Scalar::Number => (token.to_owned(), None),
                Scalar::Rewritten(number) => (number, Some(RepairKind::NumberTranslated)),
                Scalar::Literal(json, true) => (json.to_owned(), None),
                Scalar::Literal(json, false) => {
                    (json.to_owned(), Some(RepairKind::LiteralTranslated))
                }
                Scalar::NonFinite => ("null".to_owned(), Some(RepairKind::NonFiniteTranslated)),
            };
            if let Some(kind) = kind {
                self.repair(kind, offset);
            }
            if self.document.values > 0 {
                self.out.push(',');
            }
            self.out.push_str(&json);
            self.document.values += 1;
        }
        Some(Flow::Go)
    }

    /// Whether the value being read is JSON for sure, and no prose in braces: an object past its
    /// first colon, or an array past an item that no prose begins with.
    fn is_surely_json(&self) -> bool {
        let Some(root) = self.frames.iter().next() else {
            return false;
        };
        let written = self.out.get(root.open + 1..).unwrap_or_default();
        let past_first = self.frames.len() > 1 || self.entry.filled;
        match root.shape {
            Shape::Object => past_first || self.out.len() > self.entry.key_end.max(root.open + 1),
            Shape::Array | Shape::Parens => past_first && written.starts_with(['"', '{', '[']),
        }
    }

    /// Whether a value of a document could not be read, so that what follows is prose again.
    pub(super) fn resumes_as_prose(&mut self) -> bool {
        let Status::Failed(error) = self.outcome else {
            return false;
        };
        let fatal = !matches!(error.kind, ErrorKind::Unreadable | ErrorKind::NoValue);
        if fatal || self.options.mode != Mode::Document || self.state == State::Around {
            return false;
        }
        if self.is_surely_json() {
            // Something inside it would be given as the whole.
            return false;
        }
        self.document.error.get_or_insert(error);
        self.out.truncate(self.document.value_out);
        // Those of earlier values stand before.
        let from = self.document.value_out;
        while self.holes.pop_if(|hole| *hole >= from).is_some() {}
        self.members.truncate(self.document.value_members);
        self.valueless.clear();
        self.frames.clear();
        self.comma = None;
        self.last_string = None;
        self.cut = false;
        self.document.mid_line = true;
        self.state = State::Around;
        true
    }
}

/// Whether the text begins with this, in any case; None: it is too short to tell.
fn begins_with(text: &[u8], tag: &str) -> Option<bool> {
    let tag = tag.as_bytes();
    let shared = text.len().min(tag.len());
    let alike = text.get(..shared).is_some_and(|text| {
        tag.get(..shared)
            .is_some_and(|tag| text.eq_ignore_ascii_case(tag))
    });
    if alike && shared < tag.len() {
        return None;
    }
    Some(alike)
}

enum Candidate {
    Value,
    /// A key of an object that has no opener.
    Entry,
    Prose,
}
