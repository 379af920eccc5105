//! Bare tokens: numbers, literals of several languages, words that lack their quotes, wrappers.
//!
//! A token ends where structure begins. In an object a comma ends it only when a key follows, so
//! that `1,250` and `call me, maybe` stay whole; in an array every comma does.

use super::ahead::{Gap, Input, Tok};
use super::closers::Match;
use super::decide::{self, Shape, Verdict};
use super::glyph::{Glyph, Quote, Seen};
use super::kinds::{ErrorKind, RepairKind};
use super::number::{Scalar, is_unfinished, scalar};
use super::reader::{Flow, Kind, Reader, State};
use super::string::control_escape;

/// Numbers beyond the range of a double that are recorded for one value.
const MAX_HUGE_NUMBERS: usize = 1 << 10;

/// Bytes of a wrapper's name, its module included.
const MAX_WRAPPER_NAME: usize = 128;

/// A bare token that is being read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bare {
    start: usize,
    /// One past its last character that is not white space.
    end: usize,
    /// What stands between `end` and `self.at`.
    gap: Sep,
    key: bool,
    /// Whether it holds what no number or literal holds.
    is_text: bool,
    /// Brackets opened inside the token.
    depth: usize,
    /// What is being looked at.
    question: Question,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Sep {
    #[default]
    None,
    Space,
    Newline,
    Comma,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Question {
    #[default]
    None,
    /// Does what follows a gap belong to the token? `whole`: it is a number or literal so far.
    Gap { whole: bool },
    /// Does a quote end the token?
    Quote,
    /// Does a parenthesis open the argument of a wrapper?
    Wrapper,
}

impl Reader {
    pub(super) fn begin_bare(&mut self, at: usize, key: bool) -> Flow {
        self.bare = Bare {
            start: at,
            end: at,
            key,
            ..Bare::default()
        };
        self.state = State::Bare;
        Flow::Go
    }

    pub(super) fn step_bare(&mut self, input: Input<'_>) -> Flow {
        match self.bare.question {
            Question::None => {}
            Question::Gap { whole } => return self.step_gap(whole, input),
            Question::Quote => return self.step_bare_quote(input),
            Question::Wrapper => return self.step_wrapper(input),
        }
        loop {
            if self.bare.gap == Sep::None {
                self.skip_word(input);
            }
            let Some(seen) = input.glyph(self.at) else {
                return Flow::More;
            };
            match seen.glyph {
                Glyph::Word | Glyph::Dot | Glyph::Plus | Glyph::Equals
                    if self.bare.gap == Sep::None
                        && !(self.bare.key && seen.glyph == Glyph::Equals) =>
                {
                    self.take_bare(seen);
                }
                Glyph::Space | Glyph::Newline => self.take_gap(seen),
                Glyph::Backslash if self.escaped => match self.escaped_space(seen, input) {
                    Flow::Go if self.state == State::Bare => {}
                    other => return other,
                },
                _ => match self.bare_mark(seen, input) {
                    Flow::Go if self.state == State::Bare => {}
                    other => return other,
                },
            }
        }
    }

    /// Takes plain letters and digits in one go.
    fn skip_word(&mut self, input: Input<'_>) {
        let rest = input.bytes().get(self.at..).unwrap_or_default();
        let length = rest
            .iter()
            .position(|byte| !byte.is_ascii_alphanumeric())
            .unwrap_or(rest.len());
        if length > 0 {
            self.at += length;
            self.bare.end = self.at;
        }
    }

    fn take_bare(&mut self, seen: Seen) {
        self.at += seen.length;
        self.bare.end = self.at;
        self.bare.gap = Sep::None;
    }

    fn take_gap(&mut self, seen: Seen) {
        let gap = match seen.glyph {
            Glyph::Newline => Sep::Newline,
            _ => Sep::Space,
        };
        self.bare.gap = self.bare.gap.max(gap);
        self.at += seen.length;
    }

    /// A backslash in a document that was escaped once: white space, most often.
    fn escaped_space(&mut self, seen: Seen, input: Input<'_>) -> Flow {
        let gap = match input.bytes().get(self.at + 1) {
            None if !input.last => return Flow::More,
            Some(b'n' | b'r') => Sep::Newline,
            Some(b't') => Sep::Space,
            _ => return self.bare_mark(seen, input),
        };
        self.bare.gap = self.bare.gap.max(gap);
        self.at += 2;
        Flow::Go
    }

    fn bare_mark(&mut self, seen: Seen, input: Input<'_>) -> Flow {
        match input.closers.at(input.bytes(), self.at, input.last) {
            Match::Yes => return self.end_bare(input),
            Match::Partial => return Flow::More,
            Match::No => {}
        }
        match seen.glyph {
            Glyph::CloseBrace | Glyph::CloseBracket | Glyph::CloseParen => {
                return self.bare_closer(seen, input);
            }
            Glyph::Comma => return self.bare_comma(seen, input),
            Glyph::Colon | Glyph::Equals if self.bare.key => return self.end_bare(input),
            _ => {}
        }
        if self.bare.gap != Sep::None && !self.bare.key {
            let whole = self.bare_is_scalar(input);
            if seen.glyph == Glyph::Word && self.bare.gap == Sep::Space && !whole {
                self.bare.gap = Sep::None;
                self.bare.is_text = true;
                return Flow::Go;
            }
            self.ahead.begin_at(self.at, Gap::Space);
            self.bare.question = Question::Gap { whole };
            return self.step_gap(whole, input);
        }
        let next = input.bytes().get(self.at + seen.length).copied();
        match seen.glyph {
            Glyph::Quote(_) => {
                self.look(self.at + seen.length);
                self.bare.question = Question::Quote;
                self.step_bare_quote(input)
            }
            Glyph::OpenParen if self.bare.gap == Sep::None && self.names_wrapper(input) => {
                self.look(self.at + seen.length);
                self.bare.question = Question::Wrapper;
                self.step_wrapper(input)
            }
            Glyph::OpenParen | Glyph::OpenBracket | Glyph::OpenBrace => {
                self.bare.depth += 1;
                self.bare.is_text = true;
                self.take_bare(seen);
                Flow::Go
            }
            Glyph::Slash if next.is_none() && !input.last => Flow::More,
            Glyph::Slash if next == Some(b'*') => self.end_bare(input),
            Glyph::Slash if next == Some(b'/') && self.bare_is_scalar(input) => {
                self.end_bare(input)
            }
            Glyph::Semicolon if self.bare_is_scalar(input) => self.end_bare(input),
            Glyph::Backslash if next.is_none() && !input.last => Flow::More,
            Glyph::Backslash
                if matches!(next, Some(b',' | b'}' | b']'))
                    && !self.bare.key
                    && self.bare_is_scalar(input) =>
            {
                self.end_bare(input)
            }
            Glyph::Backslash if self.escaped && next == Some(b'"') => {
                self.look(self.at + 2);
                self.bare.question = Question::Quote;
                self.step_bare_quote(input)
            }
            _ => {
                self.bare.is_text = true;
                self.take_bare(seen);
                Flow::Go
            }
        }
    }

    fn bare_closer(&mut self, seen: Seen, input: Input<'_>) -> Flow {
        let data = self.bare.depth > 0
            || (seen.glyph == Glyph::CloseParen && self.frames.nearest(Shape::Parens).is_none());
        if !data {
            return self.end_bare(input);
        }
        self.bare.depth = self.bare.depth.saturating_sub(1);
        self.take_bare(seen);
        Flow::Go
    }

    fn bare_comma(&mut self, seen: Seen, input: Input<'_>) -> Flow {
        let splits = self.bare.key || self.inside() != Some(Shape::Object);
        if splits && self.bare.depth == 0 {
            return self.end_bare(input);
        }
        if self.bare.gap == Sep::Comma {
            return self.end_bare(input);
        }
        self.bare.gap = Sep::Comma;
        self.at += seen.length;
        Flow::Go
    }

    fn bare_is_scalar(&self, input: Input<'_>) -> bool {
        let token = input.slice(self.bare.start, self.bare.end);
        !self.bare.is_text && scalar(token) != Scalar::Text
    }

    /// Something follows a gap: the next entry, or more of the token.
    fn step_gap(&mut self, whole: bool, input: Input<'_>) -> Flow {
        let Some(ends) = self.gap_ends(whole, input) else {
            return Flow::More;
        };
        let Some(seen) = input.glyph(self.at) else {
            return Flow::More;
        };
        self.bare.question = Question::None;
        if ends {
            return self.end_bare(input);
        }
        self.bare.gap = Sep::None;
        self.bare.is_text = true;
        match seen.glyph {
            Glyph::Quote(_) => {
                self.look(self.at + seen.length);
                self.bare.question = Question::Quote;
                return self.step_bare_quote(input);
            }
            Glyph::OpenBrace | Glyph::OpenBracket | Glyph::OpenParen => self.bare.depth += 1,
            _ => {}
        }
        self.take_bare(seen);
        Flow::Go
    }

    fn gap_ends(&mut self, whole: bool, input: Input<'_>) -> Option<bool> {
        let next = self.ahead.token(0, input)?.tok;
        if matches!(next, Tok::Closer | Tok::Comment | Tok::Ellipsis | Tok::End) {
            return Some(true);
        }
        if whole && next == Tok::Backslash {
            let after = self.ahead.token(1, input)?.tok;
            return Some(matches!(
                after,
                Tok::Comma | Tok::CloseBrace | Tok::CloseBracket | Tok::Str | Tok::End
            ));
        }
        if self.inside() == Some(Shape::Object) {
            let key = decide::begins_key(&mut self.ahead, 0, input)?;
            let quoted = matches!(next, Tok::Str | Tok::OpenStr);
            if !key && whole && self.bare.gap == Sep::Comma && quoted {
                let key = decide::stands_for_key(&mut self.ahead, input)?
                    || decide::lacks_closing_quote(&mut self.ahead, 0, input)?;
                return Some(key || (next == Tok::OpenStr && input.last));
            }
            let item = matches!(next, Tok::OpenBrace | Tok::OpenBracket)
                && self.frames.parent() == Some(Shape::Array);
            if whole && item && self.bare.gap == Sep::Comma {
                // The object was never closed.
                return Some(true);
            }
            if !key && self.bare.gap == Sep::Comma && decide::lacks_opening_quote(input, self.at)? {
                return Some(true);
            }
            return Some(match self.bare.gap {
                Sep::Comma => key || (next == Tok::OpenStr && input.last),
                Sep::Newline => key,
                _ => key && (quoted || whole),
            });
        }
        let starts = matches!(
            next,
            Tok::Str
                | Tok::OpenStr
                | Tok::OpenBrace
                | Tok::OpenBracket
                | Tok::Number
                | Tok::Literal
        );
        Some(starts && (whole || self.bare.gap == Sep::Newline))
    }

    fn step_bare_quote(&mut self, input: Input<'_>) -> Flow {
        let Some(seen) = input.glyph(self.at) else {
            return Flow::More;
        };
        let length = match seen.glyph {
            Glyph::Quote(_) => seen.length,
            _ => 2,
        };
        let token = input.slice(self.bare.start, self.at);
        if let Glyph::Quote(quote @ (Quote::Double | Quote::Single)) = seen.glyph {
            let prefix = matches!(
                token,
                "u" | "U" | "b" | "B" | "r" | "R" | "f" | "F" | "rb" | "br"
            );
            if prefix {
                self.repair(RepairKind::WrapperTranslated, self.bare.start);
                self.bare.question = Question::None;
                self.state = if self.bare.key {
                    State::Key
                } else {
                    State::Value
                };
                return self.begin_text(quote, seen.length, input);
            }
        }
        let closes = if self.bare.key {
            let Some(first) = self.ahead.token(0, input) else {
                return Flow::More;
            };
            first.tok == Tok::Colon
        } else {
            match self.judge_quote(input) {
                None => return Flow::More,
                Some(verdict) => verdict == Verdict::Close,
            }
        };
        self.bare.question = Question::None;
        if closes {
            let quote = self.at;
            let stray = !self.bare.key && self.bare_is_scalar(input);
            let unescaped = token.trim_end_matches('\\');
            let escaped = (token.len() - unescaped.len()) % 2 == 1;
            if let Glyph::Quote(mark) = seen.glyph
                && !escaped
                && memchr::memchr(b'\\', unescaped.as_bytes()).is_some()
                && !self.bare.key
                && !self.frames.is_empty()
            {
                return self.read_as_string(mark);
            }
            let flow = self.end_bare(input);
            if matches!(flow, Flow::Go | Flow::Over) {
                self.at += length;
            }
            if stray && flow == Flow::Go {
                self.repair(RepairKind::QuoteDropped, quote);
            }
            return flow;
        }
        self.bare.is_text = true;
        self.at += length;
        self.bare.end = self.at;
        Flow::Go
    }

    /// The token is a string that has lost its opening quote, and ends at the quote here: its
    /// escapes are those of a string.
    fn read_as_string(&mut self, mark: Quote) -> Flow {
        let quote = self.at;
        let start = self.bare.start;
        self.at = start;
        self.begin_item(start);
        self.open_member(Kind::String, start);
        self.repair(RepairKind::QuoteAdded, start);
        self.begin_known_text(mark, quote);
        Flow::Go
    }

    /// Whether the token so far is the name of a type that wraps a value.
    fn names_wrapper(&self, input: Input<'_>) -> bool {
        const NAMES: [&str; 16] = [
            "set",
            "frozenset",
            "tuple",
            "list",
            "array",
            "str",
            "int",
            "float",
            "bool",
            "bytes",
            "date",
            "datetime",
            "uuid",
            "deque",
            "bytearray",
            "complex",
        ];
        let token = input.slice(self.bare.start, self.bare.end);
        if self.bare.key || token.len() > MAX_WRAPPER_NAME {
            return false;
        }
        let token = token.strip_prefix("new ").unwrap_or(token);
        let name = token.rsplit('.').next().unwrap_or(token);
        let plain = token
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$'));
        let typed = name.starts_with(|first: char| first.is_ascii_uppercase());
        let numpy = token.starts_with("np.") || token.starts_with("numpy.");
        plain && (typed || numpy || NAMES.contains(&name))
    }

    fn step_wrapper(&mut self, input: Input<'_>) -> Flow {
        let Some(first) = self.ahead.token(0, input) else {
            return Flow::More;
        };
        self.bare.question = Question::None;
        let Some(seen) = input.glyph(self.at) else {
            return Flow::More;
        };
        let argument = matches!(
            first.tok,
            Tok::Str
                | Tok::OpenStr
                | Tok::Number
                | Tok::Literal
                | Tok::OpenBrace
                | Tok::OpenBracket
                | Tok::OpenParen
        );
        if !argument {
            self.bare.depth += 1;
            self.take_bare(seen);
            return Flow::Go;
        }
        self.repair(RepairKind::WrapperTranslated, self.bare.start);
        self.state = State::Value;
        self.open_parens(seen)
    }

    /// The token is over at `self.bare.end`.
    fn end_bare(&mut self, input: Input<'_>) -> Flow {
        if self.bare.key {
            return self.end_bare_key(input);
        }
        let start = self.bare.start;
        // A comma that turned out to separate is read again.
        if self.bare.gap == Sep::Comma {
            self.at = self.bare.end;
        }
        let token = input.slice(start, self.bare.end);
        let value = scalar(token);
        let kind = match value {
            Scalar::Number | Scalar::Rewritten(_) => Kind::Number,
            Scalar::OutOfRange if self.options.keep_huge_numbers => {
                if self.huge_numbers.len() < MAX_HUGE_NUMBERS {
                    self.huge_numbers.push(start);
                }
                Kind::Number
            }
            Scalar::OutOfRange => {
                return self.fail(ErrorKind::NumberOutOfRange, start);
            }
            Scalar::Literal("null", _) | Scalar::NonFinite => Kind::Null,
            Scalar::Literal(..) => Kind::Boolean,
            Scalar::Text => Kind::String,
        };
        if kind == Kind::String && self.frames.is_empty() {
            return self.fail(ErrorKind::Unreadable, start);
        }
        let resume = self.at;
        self.at = self.bare.end;
        self.begin_item(start);
        self.open_member(kind, start);
        match value {
            Scalar::Number | Scalar::OutOfRange => self.out.push_str(token),
            Scalar::Rewritten(number) => {
                self.repair(RepairKind::NumberTranslated, start);
                self.out.push_str(&number);
            }
            Scalar::Literal(literal, plain) => {
                if !plain {
                    self.repair(RepairKind::LiteralTranslated, start);
                }
                self.out.push_str(literal);
            }
            Scalar::NonFinite => {
                self.repair(RepairKind::NonFiniteTranslated, start);
                self.out.push_str("null");
            }
            Scalar::Text => {
                self.repair(RepairKind::QuoteAdded, start);
                self.write_quoted(token);
            }
        }
        self.last_string = None;
        let flow = self.scalar_done();
        if matches!(flow, Flow::Go) {
            self.at = resume.max(self.bare.end);
        }
        flow
    }

    fn end_bare_key(&mut self, input: Input<'_>) -> Flow {
        let start = self.bare.start;
        let token = input.slice(start, self.bare.end);
        if token.is_empty() {
            return self.fail(ErrorKind::Unreadable, start);
        }
        self.begin_key(start);
        self.repair(RepairKind::QuoteAdded, start);
        self.write_quoted(token);
        self.key_done();
        Flow::Go
    }

    fn write_quoted(&mut self, token: &str) {
        self.out.push('"');
        for character in token.chars() {
            match character {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\0'..' ' => {
                    let byte = u8::try_from(character).unwrap_or(0);
                    self.out.push_str(control_escape(byte));
                }
                _ => self.out.push(character),
            }
        }
        self.out.push('"');
    }

    /// The text ended inside the token.
    pub(super) fn end_bare_text(&mut self, input: Input<'_>) -> Flow {
        let token = input.slice(self.bare.start, self.bare.end);
        let cut = self.bare.end == input.text.len();
        self.bare.question = Question::None;
        if self.bare.key {
            self.repair(RepairKind::KeyDropped, self.bare.start);
            self.comma = None;
            self.state = State::Next;
            self.at = input.text.len();
            return Flow::Go;
        }
        if cut && is_unfinished(token) && !self.frames.is_empty() {
            self.repair(RepairKind::LiteralDropped, self.bare.start);
            if self.inside() == Some(Shape::Object) {
                self.drop_entry();
            }
            self.comma = None;
            self.state = State::Next;
            self.at = input.text.len();
            return Flow::Go;
        }
        self.at = input.text.len();
        self.end_bare(input)
    }

    fn open_parens(&mut self, seen: Seen) -> Flow {
        self.open(Shape::Parens, seen)
    }
}
