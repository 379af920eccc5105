//! Strings: copied as written where JSON allows, escaped where it does not, ended where the text
//! around says that they end.

use super::ahead::{Input, Tok, quote_at};
use super::closers::Match;
use super::decide::{self, Context, Opens, Role, Shape, Verdict};
use super::glance::glance;
use super::glyph::{Glyph, Quote};
use super::kinds::RepairKind;
use super::path;
use super::reader::{Flow, Kind, Mode, Reader, State};
use super::scan;

/// A string that is being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text {
    role: Role,
    pub(super) quote: Quote,
    /// Where its first quote stands, and where the body begins.
    start: usize,
    body: usize,
    /// Where the body begins in the output.
    out: usize,
    /// Up to where the body has been copied.
    copied: usize,
    /// Quotes taken as data.
    quotes: usize,
    /// Open braces and brackets of the body, counted up to `counted`.
    nesting: usize,
    counted: usize,
    /// The first closer from outside in the body, searched for up to `searched`.
    closer: Option<usize>,
    searched: usize,
    /// Whether a fence was opened in the body.
    fence: InnerFence,
    /// Up to where the output surely belongs to the string: what may be a separator or a closer
    /// may belong to what follows. `fresh` since the last pause, `solid` up to it.
    fresh: usize,
    solid: usize,
    /// Where the output stops being settled because backslashes may be a path's.
    hold: Option<usize>,
    /// Where a drive letter or a share begins.
    path: Option<usize>,
    /// As above, as long as the text holds nothing but names and backslashes up to `named`.
    relative: Option<usize>,
    named: usize,
    /// Where the string ends, once that is known from a first reading.
    limit: Option<Limit>,
    /// From where on backslashes are read literally.
    literal: Option<usize>,
    /// Whether an escape that JSON does not know was met, and one that it does.
    bad_escape: bool,
    soft_escape: bool,
    any_escape: bool,
    /// Repairs recorded before the string.
    repairs: usize,
    /// What is being asked about a quote.
    asked: Asked,
}

/// Whether the body of a string has opened a code fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InnerFence {
    Open,
    Closed,
}

/// What a search for a closer came to.
enum Search {
    Found(usize),
    Nothing,
    /// The text ends too soon to tell.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
enum Asked {
    /// Does it end the string?
    Closing,
    /// Does it open this, behind a string that ended here?
    Opening(usize, Opens),
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    /// At its closing quote.
    Close(usize),
    /// Before text that belongs to what follows: the quote is missing.
    Cut(usize),
}

impl Limit {
    const fn at(self) -> usize {
        match self {
            Self::Close(at) | Self::Cut(at) => at,
        }
    }
}

impl Default for Text {
    fn default() -> Self {
        Self {
            role: Role::Root,
            quote: Quote::Double,
            start: 0,
            body: 0,
            out: 0,
            copied: 0,
            quotes: 0,
            nesting: 0,
            counted: 0,
            closer: None,
            searched: 0,
            fence: InnerFence::Closed,
            fresh: 0,
            solid: 0,
            hold: None,
            path: None,
            relative: None,
            named: 0,
            limit: None,
            literal: None,
            bad_escape: false,
            soft_escape: false,
            any_escape: false,
            repairs: 0,
            asked: Asked::Closing,
        }
    }
}

impl Reader {
    /// Begins a string at `self.at`, where a quote of `length` bytes stands.
    pub(super) fn begin_text(&mut self, quote: Quote, length: usize, input: Input<'_>) -> Flow {
        let at = self.at;
        let Some((quote, length)) = self.widen_quote(quote, length, input) else {
            return Flow::More;
        };
        if length == 0 {
            return Flow::Go;
        }
        if self.state == State::Key {
            self.begin_key(at);
        } else {
            self.begin_item(at);
            self.open_member(Kind::String, at);
        }
        let role = self.role();
        self.out.push('"');
        self.set_text(role, quote, length);
        Flow::Go
    }

    /// Goes on with another string where the last one left off.
    pub(super) fn join_text(&mut self, quote: Quote, length: usize) -> Flow {
        let role = self.role();
        self.set_text(role, quote, length);
        Flow::Go
    }

    /// Begins a string at `self.at` that has no opening quote, and ends at the quote at `close`.
    pub(super) fn begin_known_text(&mut self, quote: Quote, close: usize) {
        self.state = State::Value;
        let role = self.role();
        self.out.push('"');
        self.set_text(role, quote, 0);
        self.text.limit = Some(Limit::Close(close));
    }

    fn role(&self) -> Role {
        match (self.state, self.inside()) {
            (State::Key, _) => Role::Key,
            (_, Some(Shape::Object)) => Role::Value,
            (_, Some(_)) => Role::Item,
            (_, None) => Role::Root,
        }
    }

    fn set_text(&mut self, role: Role, quote: Quote, length: usize) {
        let at = self.at;
        let body = at + length;
        self.text = Text {
            role,
            quote,
            start: at,
            body,
            out: self.out.len(),
            copied: body,
            counted: body,
            searched: body,
            fresh: self.out.len(),
            solid: self.out.len(),
            repairs: self.repairs.len(),
            ..Text::default()
        };
        if quote == Quote::EscapedDouble {
            if !self.escaped {
                self.repair(RepairKind::DocumentUnescaped, at);
            }
            self.escaped = true;
            self.ahead.escaped = true;
        } else if quote != Quote::Double {
            self.repair(RepairKind::QuoteTranslated, at);
        }
        self.at = body;
        self.state = State::Text;
    }

    /// Tripled and doubled quotes; None when the text ends too soon to tell.
    fn widen_quote(&self, quote: Quote, length: usize, input: Input<'_>) -> Option<(Quote, usize)> {
        let (mark, triple) = match quote {
            Quote::Double => (b'"', Quote::TripleDouble),
            Quote::Single => (b'\'', Quote::TripleSingle),
            _ => return Some((quote, length)),
        };
        let rest = input.bytes().get(self.at..).unwrap_or_default();
        let run = rest
            .iter()
            .take(3)
            .take_while(|&&byte| byte == mark)
            .count();
        if run == 1 && rest.len() > 1 {
            return Some((quote, length));
        }
        if rest.len() <= run && run < 3 && !input.last {
            return None;
        }
        if run == 3 {
            return Some((triple, 3));
        }
        if run == 2 && mark == b'"' && self.state == State::Key {
            // `""key"":`, unlike the empty key `"":`.
            let next = rest.get(2)?;
            if next.is_ascii_alphanumeric() || *next >= 0x80 || *next == b'_' {
                return Some((Quote::Doubled, 2));
            }
        }
        Some((quote, length))
    }

    pub(super) fn step_text(&mut self, input: Input<'_>) -> Flow {
        let bytes = input.bytes();
        loop {
            let mut stop = match self.text.quote {
                Quote::Double => scan::string_end(bytes, self.at),
                Quote::Single | Quote::TripleDouble | Quote::TripleSingle | Quote::Doubled => {
                    scan::foreign_string_end(bytes, self.at, false)
                }
                _ => scan::foreign_string_end(bytes, self.at, true),
            };
            if let Some(limit) = self.text.limit
                && stop >= limit.at()
            {
                return self.end_at_limit(limit, input);
            }
            let Some(&byte) = bytes.get(stop) else {
                stop = bytes.len();
                self.at = stop;
                return Flow::More;
            };
            self.at = stop;
            let flow = match byte {
                b'\\' if self.text.quote == Quote::EscapedDouble => self.escaped_escape(input),
                b'\\' => self.escape(input),
                0..0x20 => {
                    self.control(byte, input);
                    continue;
                }
                _ => self.mark(input),
            };
            match flow {
                Flow::Go if self.state == State::Text => {}
                other => return other,
            }
        }
    }

    /// Copies the body up to `to`.
    fn copy(&mut self, input: Input<'_>, to: usize) {
        if to == self.text.copied {
            return;
        }
        let segment = input.slice(self.text.copied, to);
        let kept = segment.trim_end_matches(may_be_outside);
        if !kept.is_empty() {
            self.text.fresh = self.out.len() + kept.len();
        }
        self.out.push_str(segment);
        self.text.copied = to;
    }

    /// Copies up to `self.at` and writes `replacement` for the next `length` bytes.
    fn replace(&mut self, input: Input<'_>, length: usize, replacement: &str) {
        self.copy(input, self.at);
        self.out.push_str(replacement);
        if !matches!(replacement, "\\n" | "\\r" | "\\t" | "") {
            self.text.fresh = self.out.len();
        }
        self.at += length;
        self.text.copied = self.at;
    }

    fn control(&mut self, byte: u8, input: Input<'_>) {
        self.repair(RepairKind::EscapeAdded, self.at);
        self.replace(input, 1, control_escape(byte));
    }

    /// A quote, or a character that may be one.
    fn mark(&mut self, input: Input<'_>) -> Flow {
        let Ok(length) = quote_at(input, self.at, self.text.quote) else {
            return if input.last { Flow::Go } else { Flow::More };
        };
        if length == 0 {
            self.plain_mark(input);
            return Flow::Go;
        }
        let value_over = self.text.role == Role::Root
            && self.options.mode == Mode::Value
            && self.text.quotes == 0;
        if value_over {
            return self.close_text(self.at, length, input);
        }
        if self.text.limit.is_some() {
            // The first reading took every quote before the limit as data.
            self.quote_is_data(length, input);
            return Flow::Go;
        }
        // Most quotes inside a text stand right before a letter, or beside another.
        let rest = input.bytes().get(self.at + length..).unwrap_or_default();
        let goes_on = match rest {
            [b'"', ..] | [b'\\', b'"', ..] => self.text.quotes > 0,
            [next, ..] => next.is_ascii_alphanumeric(),
            [] => false,
        };
        let goes_on = goes_on && !input.closers.may_begin(rest.first().copied().unwrap_or(0));
        if goes_on {
            return self.no_end(length, input);
        }
        let context = self.context(input);
        let seen = match self.text.quote {
            Quote::Double => glance(input, self.at + length, context),
            _ => None,
        };
        match seen {
            Some(Verdict::Close) => self.close_text(self.at, length, input),
            Some(Verdict::Data) => self.no_end(length, input),
            None => {
                self.look(self.at + length);
                self.text.asked = Asked::Closing;
                self.state = State::Quote;
                self.step_quote(input)
            }
        }
    }

    /// What surrounds the quote at `self.at`.
    fn context(&mut self, input: Input<'_>) -> Context {
        if self.text.quotes % 2 == 1 {
            self.count_nesting(input);
        }
        Context {
            role: self.text.role,
            quotes: self.text.quotes,
            nested: self.text.nesting > 0,
            runs_on: self.runs_on(input),
            parent: self.frames.parent(),
            array_open: self.frames.nearest(Shape::Array).is_some(),
            object_open: self.frames.nearest(Shape::Object).is_some(),
            parens_open: self.frames.nearest(Shape::Parens).is_some(),
        }
    }

    /// A mark that has no meaning for this kind of string.
    fn plain_mark(&mut self, input: Input<'_>) {
        let length = input.glyph(self.at).map_or(1, |seen| seen.length);
        if input.bytes().get(self.at) == Some(&b'"') {
            self.replace(input, 1, "\\\"");
        } else {
            self.at += length;
        }
    }

    fn quote_is_data(&mut self, length: usize, input: Input<'_>) {
        self.text.quotes += 1;
        if input.bytes().get(self.at) == Some(&b'"') {
            self.repair(RepairKind::EscapeAdded, self.at);
            self.copy(input, self.at);
            for _ in 0..length {
                self.out.push_str("\\\"");
            }
            self.text.fresh = self.out.len();
            self.at += length;
            self.text.copied = self.at;
        } else if self.text.quote == Quote::EscapedDouble {
            self.repair(RepairKind::EscapeAdded, self.at);
            self.at += length;
        } else {
            self.at += length;
        }
    }

    pub(super) fn step_quote(&mut self, input: Input<'_>) -> Flow {
        let Ok(length) = quote_at(input, self.at, self.text.quote) else {
            return Flow::More;
        };
        if let Asked::Opening(end, what) = self.text.asked {
            return self.step_opening(end, what, length, input);
        }
        let context = self.context(input);
        match decide::closing(&mut self.ahead, input, context) {
            None => Flow::More,
            Some(Verdict::Close) => self.close_text(self.at, length, input),
            Some(Verdict::Data) => self.no_end(length, input),
        }
    }

    /// The quote at `self.at` does not end the string: it is data, unless the string has ended
    /// before it.
    fn no_end(&mut self, length: usize, input: Input<'_>) -> Flow {
        if let Some(closer) = self.closer_before(self.at, input) {
            return self.reread(Limit::Cut(closer));
        }
        if self.text.quotes == 0
            && let Some((end, what)) = self.end_before(input)
        {
            self.look(self.at);
            self.text.asked = Asked::Opening(end, what);
            self.state = State::Quote;
            return self.step_opening(end, what, length, input);
        }
        self.state = State::Text;
        self.quote_is_data(length, input);
        Flow::Go
    }

    /// Where the string has ended, should the quote at `self.at` open what follows it, and what
    /// that is.
    fn end_before(&self, input: Input<'_>) -> Option<(usize, Opens)> {
        let opens = match self.text.role {
            Role::Root => return None,
            Role::Key => return self.key_end_before(input),
            Role::Value => Opens::Key,
            Role::Item => Opens::Item,
        };
        let separator = self.separator_before(input)?;
        let end = match self.own_closer(separator, input) {
            Some(closer) => (closer, Opens::KeyOrItem),
            None => (separator, opens),
        };
        Some(end)
    }

    /// The key has run on into its value: `{"a: 1, "b": 2}`, `{"a: "b"}`, `{"a: ["b"]}`.
    fn key_end_before(&self, input: Input<'_>) -> Option<(usize, Opens)> {
        let colon = self.colon_in_key(self.at, input)?;
        let value = input.slice(colon + 1, self.at).trim();
        let opens = match (value.chars().next(), value.chars().next_back()) {
            (None, _) => Opens::Value,
            (Some('{'), Some('{' | ',')) => Opens::Key,
            (Some('['), Some('[')) => Opens::Item,
            (Some('['), Some(',')) => Opens::KeyOrItem,
            (Some('['), Some('{')) => Opens::Key,
            _ => {
                self.separator_before(input)?;
                Opens::Key
            }
        };
        Some((colon, opens))
    }

    /// Does the quote open what follows a string without an end?
    fn step_opening(&mut self, end: usize, what: Opens, length: usize, input: Input<'_>) -> Flow {
        match decide::opens(&mut self.ahead, what, input) {
            None => Flow::More,
            Some(true) => self.reread(Limit::Cut(end)),
            Some(false) => {
                self.state = State::Text;
                self.quote_is_data(length, input);
                Flow::Go
            }
        }
    }

    fn colon_in_key(&self, to: usize, input: Input<'_>) -> Option<usize> {
        let body = input.slice(self.text.body, to);
        memchr::memchr(b':', body.as_bytes()).map(|found| self.text.body + found)
    }

    /// Whether the text is a key that seems to have run on into its value.
    fn runs_on(&self, input: Input<'_>) -> bool {
        let key = self.text.role == Role::Key && self.text.quotes == 0;
        key && self.key_end_before(input).is_some()
    }

    /// Where the string has ended if a closer of its container stands before `to`, with nothing
    /// but closers, commas and space behind it, and the text has not opened it.
    fn own_closer(&self, to: usize, input: Input<'_>) -> Option<usize> {
        let (opener, closer) = match self.inside()? {
            Shape::Object => (b'{', b'}'),
            Shape::Array => (b'[', b']'),
            Shape::Parens => return None,
        };
        let body = input.slice(self.text.body, to);
        let tail = body.trim_end_matches(may_be_outside).len();
        let mut open = 0_usize;
        for found in memchr::memchr2_iter(opener, closer, body.as_bytes()) {
            if body.as_bytes().get(found) == Some(&opener) {
                open += 1;
            } else if open > 0 {
                open -= 1;
            } else if found >= tail {
                let text = body.get(..found).unwrap_or_default();
                return Some(self.text.body + text.trim_end().len());
            }
        }
        None
    }

    /// Where the string ends if a comma or a line break right before `self.at` is no part of it.
    fn separator_before(&self, input: Input<'_>) -> Option<usize> {
        let body = input.slice(self.text.body, self.at);
        let trimmed = body.trim_end();
        let gap = body.get(trimmed.len()..).unwrap_or_default();
        if let Some(before) = trimmed.strip_suffix([',', '\u{ff0c}']) {
            return Some(self.text.body + before.trim_end().len());
        }
        (gap.contains('\n') && !trimmed.is_empty()).then_some(self.text.body + trimmed.len())
    }

    fn count_nesting(&mut self, input: Input<'_>) {
        for byte in input.slice(self.text.counted, self.at).bytes() {
            match byte {
                b'{' | b'[' => self.text.nesting += 1,
                b'}' | b']' => self.text.nesting = self.text.nesting.saturating_sub(1),
                _ => {}
            }
        }
        self.text.counted = self.at;
    }

    /// The place before the first closer from outside in the body, and before the closers of the
    /// open containers that stand right in front of it.
    fn closer_before(&mut self, to: usize, input: Input<'_>) -> Option<usize> {
        self.search_closer(to, input);
        let closer = self.text.closer.filter(|&closer| closer < to)?;
        Some(self.own_closers_before(closer, input).unwrap_or_else(|| {
            let body = input.slice(self.text.body, closer);
            self.text.body + body.trim_end().len()
        }))
    }

    fn search_closer(&mut self, to: usize, input: Input<'_>) {
        if self.text.closer.is_some() || input.closers.is_empty() {
            return;
        }
        match self.find_closer(to, input) {
            Search::Found(closer) => self.text.closer = Some(closer),
            Search::Unknown => {}
            Search::Nothing => {
                // One that the text ends in may be whole the next time.
                let whole = to + input.closers.longest() <= input.text.len();
                let back = to.saturating_sub(input.closers.longest());
                self.text.searched = if whole {
                    to
                } else {
                    back.max(self.text.searched)
                };
            }
        }
    }

    /// The first closer before `to`; of fences one that closes the fence around the value, not one
    /// of a fence inside the string.
    fn find_closer(&mut self, to: usize, input: Input<'_>) -> Search {
        let bytes = input.bytes();
        loop {
            let Some(at) = input.closers.find(bytes, self.text.searched, to) else {
                return Search::Nothing;
            };
            let mark = bytes
                .get(at)
                .filter(|mark| matches!(mark, b'`' | b'~'))
                .copied();
            let Some(mark) = mark else {
                return Search::Found(at);
            };
            let rest = bytes.get(at..).unwrap_or_default();
            let run = rest.iter().take_while(|byte| **byte == mark).count();
            if run == rest.len() && !input.last {
                // A language may follow.
                self.text.searched = at;
                return Search::Unknown;
            }
            let has_language = rest.get(run).is_some_and(u8::is_ascii_alphanumeric);
            if self.options.in_fence {
                let begins = input.slice(self.text.body, at).trim().is_empty();
                let open = self.text.fence == InnerFence::Open;
                if !has_language && !open && !begins {
                    return Search::Found(at);
                }
                self.text.fence = if has_language || !open {
                    InnerFence::Open
                } else {
                    InnerFence::Closed
                };
            }
            self.text.searched = at + run;
        }
    }

    /// Where the closers of all open containers begin that stand right before `end`.
    fn own_closers_before(&self, end: usize, input: Input<'_>) -> Option<usize> {
        let mut body = input.slice(self.text.body, end).trim_end();
        for frame in self.frames.iter() {
            let closer = match frame.shape {
                Shape::Object => '}',
                Shape::Array => ']',
                Shape::Parens => ')',
            };
            body = body.strip_suffix(closer)?.trim_end();
        }
        (!self.frames.is_empty()).then_some(self.text.body + body.len())
    }

    /// Reads the string again, with its end known.
    fn reread(&mut self, limit: Limit) -> Flow {
        self.text.limit = Some(limit);
        self.restart();
        Flow::Go
    }

    fn restart(&mut self) {
        self.out.truncate(self.text.out);
        self.repairs.truncate(self.text.repairs);
        self.kept_repairs = self.kept_repairs.min(self.text.repairs);
        self.text.copied = self.text.body;
        self.text.quotes = 0;
        self.text.nesting = 0;
        self.text.counted = self.text.body;
        self.at = self.text.body;
        self.state = State::Text;
    }

    fn end_at_limit(&mut self, limit: Limit, input: Input<'_>) -> Flow {
        match limit {
            Limit::Close(at) => {
                self.at = at;
                let length = quote_at(input, at, self.text.quote).unwrap_or(0);
                self.finish_text(at, length, input)
            }
            Limit::Cut(at) => {
                self.at = at;
                self.repair(RepairKind::QuoteAdded, at);
                self.finish_text(at, 0, input)
            }
        }
    }

    fn close_text(&mut self, at: usize, length: usize, input: Input<'_>) -> Flow {
        let text = &self.text;
        let relative = text.bad_escape && text.soft_escape && text.literal.is_none();
        if relative && path::is_relative(input.slice(text.body, at)) {
            self.text.literal = Some(self.text.body);
            return self.reread(Limit::Close(at));
        }
        self.finish_text(at, length, input)
    }

    fn finish_text(&mut self, at: usize, length: usize, input: Input<'_>) -> Flow {
        self.copy(input, at);
        if self.text.literal.is_some() {
            self.repair(RepairKind::PathRead, self.text.start);
        }
        self.last_string = None;
        let quote = self.out.len();
        self.out.push('"');
        self.at = at + length;
        if self.text.role == Role::Key {
            self.key_done();
            return Flow::Go;
        }
        self.last_string = Some(quote);
        self.scalar_done()
    }

    // Escapes.

    fn escape(&mut self, input: Input<'_>) -> Flow {
        let at = self.at;
        let Some(&next) = input.bytes().get(at + 1) else {
            if input.last {
                self.repair(RepairKind::EscapeDropped, at);
                self.replace(input, 1, "");
                return Flow::Go;
            }
            return Flow::More;
        };
        self.note_path(next, input);
        if self.text.literal.is_some_and(|from| at >= from) {
            return self.literal_backslash(next, input);
        }
        match next {
            b'"' | b'\\' | b'/' => self.at += 2,
            b'b' | b'f' | b'n' | b'r' | b't' => {
                self.text.soft_escape = true;
                self.at += 2;
            }
            b'\'' => {
                self.repair(RepairKind::EscapeTranslated, at);
                self.replace(input, 1, "");
                self.at += 1;
            }
            b'u' => return self.unicode_escape(input),
            _ => return self.bad_escape(input),
        }
        Flow::Go
    }

    /// An escape that JSON does not know stays as written.
    fn bad_escape(&mut self, input: Input<'_>) -> Flow {
        let at = self.at;
        self.text.bad_escape = true;
        if let Some(drive) = self.path_begins(input) {
            self.text.literal = Some(drive);
            self.restart();
            return Flow::Go;
        }
        let next = input.glyph(at + 1);
        let quote = next.filter(|seen| seen.glyph == Glyph::Quote(self.text.quote));
        if let Some(seen) = quote {
            self.repair(RepairKind::EscapeTranslated, at);
            self.replace(input, 1, "");
            self.at += seen.length;
            return Flow::Go;
        }
        self.repair(RepairKind::EscapeAdded, at);
        self.replace(input, 1, "\\\\");
        Flow::Go
    }

    fn literal_backslash(&mut self, next: u8, input: Input<'_>) -> Flow {
        let at = self.at;
        match next {
            b'\\' if at == self.text.body => {
                self.replace(input, 2, "\\\\\\\\");
            }
            b'\\' => self.at += 2,
            b'"' if self.text.quote == Quote::Double => self.at += 2,
            _ => self.replace(input, 1, "\\\\"),
        }
        Flow::Go
    }

    /// Notes where a path may begin. From there on the output is not settled: an escape that JSON
    /// does not know may still show that the backslashes are a path's.
    fn note_path(&mut self, next: u8, input: Input<'_>) {
        let at = self.at;
        if self.text.path.is_some() || self.text.quote == Quote::EscapedDouble {
            return;
        }
        let drive = input.bytes().get(at.wrapping_sub(1)) == Some(&b':');
        if !drive && self.text.any_escape {
            return;
        }
        let body = input.slice(self.text.body, at + 1);
        if path::ends_in_drive(body) {
            self.copy(input, at);
            self.text.path = Some(at - 2);
            self.text.hold = Some(self.out.len().saturating_sub(2));
        } else if at == self.text.body {
            if next == b'\\' {
                self.text.path = Some(at);
                self.text.hold = Some(self.text.out);
            }
        } else if !self.text.any_escape {
            self.text.named = at;
            self.text.relative = path::begins(body).then_some(self.text.out);
        }
        self.text.any_escape = true;
    }

    /// Where the path begins whose backslashes are to be read literally.
    fn path_begins(&self, input: Input<'_>) -> Option<usize> {
        let start = self.text.path.filter(|_| self.text.literal.is_none())?;
        let drive = input.bytes().get(start) != Some(&b'\\');
        (drive || path::is_share(input.slice(start, self.at))).then_some(start)
    }

    fn unicode_escape(&mut self, input: Input<'_>) -> Flow {
        let at = self.at;
        let rest = input.bytes().get(at..).unwrap_or_default();
        match Escape::read(rest, input.last) {
            Escape::Pending => Flow::More,
            Escape::Unfinished => {
                self.repair(RepairKind::EscapeDropped, at);
                self.replace(input, rest.len(), "");
                Flow::Go
            }
            Escape::Bad => self.bad_escape(input),
            Escape::Character(length) => {
                self.at += length;
                Flow::Go
            }
            Escape::Lone => {
                self.repair(RepairKind::SurrogateReplaced, at);
                self.replace(input, 6, "\\ufffd");
                Flow::Go
            }
        }
    }

    /// A backslash in a document that was escaped once.
    fn escaped_escape(&mut self, input: Input<'_>) -> Flow {
        let at = self.at;
        let rest = input.bytes().get(at..).unwrap_or_default();
        match (rest.get(1), rest.get(2)) {
            (Some(b'"'), _) => self.mark(input),
            (Some(b'\\'), Some(b'\\')) if rest.get(3) == Some(&b'\\') => {
                self.replace(input, 4, "\\\\");
                Flow::Go
            }
            (Some(b'\\'), Some(b'\\')) => match rest.get(3) {
                Some(b'"') => {
                    self.replace(input, 4, "\\\"");
                    Flow::Go
                }
                None if !input.last => Flow::More,
                _ => {
                    self.replace(input, 3, "\\\\");
                    Flow::Go
                }
            },
            (Some(b'\\'), Some(b'"' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')) => {
                self.copy(input, at);
                self.text.copied = at + 1;
                self.at += 3;
                Flow::Go
            }
            (Some(b'\\'), Some(b'u')) => {
                // The escape itself is plain from the second backslash on.
                self.copy(input, at);
                self.text.copied = at + 1;
                self.at += 1;
                let flow = self.unicode_escape(input);
                if matches!(flow, Flow::More) {
                    self.at = at;
                    self.text.copied = at;
                }
                flow
            }
            (Some(b'\\'), Some(_)) => {
                self.replace(input, 2, "\\\\");
                Flow::Go
            }
            (Some(b'n' | b't' | b'r' | b'b' | b'f' | b'/'), _) => {
                self.at += 2;
                Flow::Go
            }
            (Some(b'u'), _) => self.unicode_escape(input),
            (Some(b'\''), _) => {
                self.replace(input, 1, "");
                self.at += 1;
                Flow::Go
            }
            (None, _) | (Some(b'\\'), None) if !input.last => Flow::More,
            (None, _) => {
                self.repair(RepairKind::EscapeDropped, at);
                self.replace(input, 1, "");
                Flow::Go
            }
            (Some(b'\\'), None) => {
                self.repair(RepairKind::EscapeDropped, at);
                self.replace(input, 2, "");
                Flow::Go
            }
            _ => {
                self.repair(RepairKind::EscapeAdded, at);
                self.replace(input, 1, "\\\\");
                Flow::Go
            }
        }
    }

    // The end of the text.

    /// The text ended inside the string.
    pub(super) fn end_text(&mut self, input: Input<'_>) -> Flow {
        let end = input.text.len();
        if self.text.limit.is_some() {
            return self.finish_text(end, 0, input);
        }
        self.state = State::Text;
        if let Some(cut) = self.structural_end(end, input) {
            return self.reread(Limit::Cut(cut));
        }
        if self.text.role == Role::Key {
            self.repair(RepairKind::KeyDropped, self.text.start);
            self.drop_entry();
            self.at = end;
            self.comma = None;
            self.state = State::Next;
            return Flow::Go;
        }
        self.cut = true;
        self.repair(RepairKind::QuoteAdded, end);
        self.finish_text(end, 0, input)
    }

    /// Where a string that nothing ends must have ended, if the text says so clearly: before the
    /// closers of all open containers, at a closer from outside or the end.
    fn structural_end(&mut self, end: usize, input: Input<'_>) -> Option<usize> {
        if self.text.role == Role::Key {
            return self.structural_end_of_key(end, input);
        }
        self.search_closer(end, input);
        if let Some(closer) = self.text.closer {
            if let Some(cut) = self.own_closers_before(closer, input) {
                return Some(cut);
            }
            let starts_line = super::closers::starts_line(input.bytes(), closer);
            if starts_line {
                self.cut = true;
                return self.closer_before(end, input);
            }
            return None;
        }
        if self.text.quotes > 0 {
            return None;
        }
        let cut = self.own_closers_before(end, input)?;
        self.cut = true;
        Some(cut)
    }

    /// The colon in a key that nothing ends, where all that is open is closed in the end.
    fn structural_end_of_key(&mut self, end: usize, input: Input<'_>) -> Option<usize> {
        if self.text.quotes > 0 {
            return None;
        }
        self.search_closer(end, input);
        let end = self.text.closer.unwrap_or(end);
        self.own_closers_before(end, input)?;
        self.colon_in_key(end, input)
    }

    /// Writes what is known of the string before a pause, and notes how much of it is settled.
    pub(super) fn text_pause(&mut self, input: Input<'_>) {
        if !matches!(self.state, State::Text | State::Quote) {
            return;
        }
        self.copy(input, self.at);
        self.search_closer(self.at, input);
        if self.text.closer.is_some() {
            self.text.hold.get_or_insert(self.text.solid);
        } else if !self.closer_may_have_begun(input) {
            self.text.solid = self.text.fresh;
        }
        let named = input.slice(self.text.named, self.at);
        if self.text.relative.is_some() && !path::may_go_on(named) {
            self.text.relative = None;
        }
        self.text.named = self.text.named.max(self.at);
    }

    fn closer_may_have_begun(&self, input: Input<'_>) -> bool {
        let longest = input.closers.longest();
        let from = self.at.saturating_sub(longest).max(self.text.body);
        (from..self.at).any(|at| input.closers.at(input.bytes(), at, false) != Match::No)
    }

    /// How much of the output is settled while a string is being read.
    pub(super) fn text_settled(&self, entry: usize) -> usize {
        if matches!(self.text.role, Role::Key | Role::Item) {
            // An item is a key if the array around it was never closed.
            return entry;
        }
        let held = self.text.hold.unwrap_or(self.text.solid);
        self.text
            .relative
            .unwrap_or(held)
            .min(held)
            .min(self.text.solid)
    }

    /// What follows a bare token's quote, for [`super::bare`].
    pub(super) fn judge_quote(&mut self, input: Input<'_>) -> Option<Verdict> {
        let context = Context {
            role: self.role(),
            quotes: 0,
            nested: false,
            runs_on: false,
            parent: self.frames.parent(),
            array_open: self.frames.nearest(Shape::Array).is_some(),
            object_open: self.frames.nearest(Shape::Object).is_some(),
            parens_open: self.frames.nearest(Shape::Parens).is_some(),
        };
        let first = self.ahead.token(0, input)?;
        if first.tok == Tok::Word && first.at == self.at {
            return Some(Verdict::Data);
        }
        decide::closing(&mut self.ahead, input, context)
    }
}

/// Whether a character at the end of what was read may belong to what follows the string.
fn may_be_outside(character: char) -> bool {
    matches!(character, ',' | '\u{ff0c}' | '}' | ']' | ')') || character.is_whitespace()
}

/// How JSON escapes a control character.
pub(super) fn control_escape(byte: u8) -> &'static str {
    const ESCAPES: [&str; 32] = [
        "\\u0000", "\\u0001", "\\u0002", "\\u0003", "\\u0004", "\\u0005", "\\u0006", "\\u0007",
        "\\b", "\\t", "\\n", "\\u000b", "\\f", "\\r", "\\u000e", "\\u000f", "\\u0010", "\\u0011",
        "\\u0012", "\\u0013", "\\u0014", "\\u0015", "\\u0016", "\\u0017", "\\u0018", "\\u0019",
        "\\u001a", "\\u001b", "\\u001c", "\\u001d", "\\u001e", "\\u001f",
    ];
    ESCAPES.get(usize::from(byte)).copied().unwrap_or_default()
}

/// What a `\u` escape is.
enum Escape {
    /// The text ends inside it, and more may come.
    Pending,
    /// The text ends inside it.
    Unfinished,
    Bad,
    /// A character, or a pair of surrogates, of this many bytes.
    Character(usize),
    /// Half a pair.
    Lone,
}

impl Escape {
    fn read(rest: &[u8], last: bool) -> Self {
        let first = match hex(rest) {
            Ok(unit) => unit,
            Err(true) => {
                return if last {
                    Self::Unfinished
                } else {
                    Self::Pending
                };
            }
            Err(false) => return Self::Bad,
        };
        match first {
            0xd800..0xdc00 => Self::pair(rest.get(6..).unwrap_or_default(), last),
            0xdc00..0xe000 => Self::Lone,
            _ => Self::Character(6),
        }
    }

    fn pair(rest: &[u8], last: bool) -> Self {
        match (rest.first(), hex(rest)) {
            (_, Ok(0xdc00..0xe000)) => Self::Character(12),
            (None, _) | (Some(b'\\'), Err(true)) if !last => Self::Pending,
            (None, _) | (Some(b'\\'), Err(true)) => Self::Unfinished,
            _ => Self::Lone,
        }
    }
}

/// The code unit of a `\u` escape; the error says whether the text ends inside it.
fn hex(rest: &[u8]) -> Result<u16, bool> {
    let mut unit: u16 = 0;
    for (index, &byte) in rest.iter().take(6).enumerate() {
        let digit = match (index, byte) {
            (0, b'\\') | (1, b'u') => continue,
            (2.., _) => char::from(byte).to_digit(16).ok_or(false)?,
            _ => return Err(false),
        };
        unit = (unit << 4) | u16::try_from(digit).unwrap_or(0);
    }
    if rest.len() < 6 { Err(true) } else { Ok(unit) }
}
