//! Lookahead: the next few tokens after a place, read once however the text arrives.
//!
//! The healer decides what an ambiguous character means by what follows it. The tokens read so far
//! are kept between chunks, so a lookahead never starts again; it holds [`LIMIT`] tokens at most,
//! so every byte of the text is looked at by a bounded number of lookaheads.

use super::closers::{Closers, Match};
use super::glyph::{Glyph, Quote, Seen, glyph_at};
use super::number::{Scalar, scalar};
use super::scan;

/// How many tokens a lookahead may hold.
pub(super) const LIMIT: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tok {
    /// The end of the text, once no more will come.
    End,
    /// A literal that the caller named, or a fence at the start of a line.
    Closer,
    Comma,
    Semicolon,
    Colon,
    OpenBrace,
    CloseBrace,
    OpenBracket,
    CloseBracket,
    OpenParen,
    CloseParen,
    /// From one quote to the next of its kind.
    Str,
    /// A string that has no end.
    OpenStr,
    Number,
    Literal,
    Word,
    Comment,
    Ellipsis,
    Plus,
    Backslash,
    Other,
}

/// The white space before a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    None,
    Space,
    Newline,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) tok: Tok,
    pub(super) gap: Gap,
    pub(super) at: usize,
}

#[derive(Clone, Copy, Debug)]
enum Partial {
    None,
    Str { at: usize, quote: Quote },
    Word { at: usize },
}

/// The length from which on the end of a string is remembered.
const FAR: usize = 64;

/// A long string that was looked at: where its body begins, and the token behind it.
///
/// Whatever opens a string with the same quote inside the body finds the same end: its opener
/// would have ended the string unless it was escaped, or differs from the closer, and both leave
/// the reading of escapes in step. Without this, openers of strings that are never closed would
/// each be read to the end of the text.
#[derive(Clone, Copy, Debug)]
struct FarEnd {
    quote: Quote,
    body: usize,
    tok: Tok,
    /// Where the closing quote stands, and one past it.
    close: usize,
    end: usize,
}

/// The text as far as it is known.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub(super) text: &'a str,
    pub(super) last: bool,
    pub(super) closers: &'a Closers,
}

impl<'a> Input<'a> {
    pub(super) fn bytes(self) -> &'a [u8] {
        self.text.as_bytes()
    }

    pub(super) fn slice(self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or_default()
    }

    pub(super) fn glyph(self, at: usize) -> Option<Seen> {
        glyph_at(self.text, at)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Ahead {
    tokens: [Token; LIMIT],
    count: usize,
    at: usize,
    gap: Gap,
    /// Whether white space is escaped, as in a document that was escaped once.
    pub(super) escaped: bool,
    partial: Partial,
    /// One for each quote at most.
    far: Vec<FarEnd>,
    /// Bytes read by all lookaheads, for the tests of their cost.
    pub(super) work: usize,
}

impl Ahead {
    pub(super) const fn new() -> Self {
        let empty = Token {
            tok: Tok::End,
            gap: Gap::None,
            at: 0,
        };
        Self {
            tokens: [empty; LIMIT],
            count: 0,
            at: 0,
            gap: Gap::None,
            escaped: false,
            partial: Partial::None,
            far: Vec::new(),
            work: 0,
        }
    }

    /// Looks from `at` on, behind white space of this kind.
    pub(super) fn begin_at(&mut self, at: usize, gap: Gap) {
        self.count = 0;
        self.at = at;
        self.gap = gap;
        self.partial = Partial::None;
    }

    /// The token with this index, or None while the text does not reach so far.
    pub(super) fn token(&mut self, index: usize, input: Input<'_>) -> Option<Token> {
        while self.count <= index {
            if !self.advance(input) {
                return None;
            }
        }
        self.tokens.get(index).copied()
    }

    /// What begins at this index: a string or word need not have ended for that.
    pub(super) fn begun(&mut self, index: usize, input: Input<'_>) -> Option<Tok> {
        if let Some(token) = self.token(index, input) {
            return Some(token.tok);
        }
        match self.partial {
            Partial::Str { .. } if self.count == index => Some(Tok::Str),
            Partial::Word { .. } if self.count == index => Some(Tok::Word),
            _ => None,
        }
    }

    fn push(&mut self, tok: Tok, at: usize, end: usize) -> bool {
        if let Some(slot) = self.tokens.get_mut(self.count) {
            *slot = Token {
                tok,
                gap: self.gap,
                at,
            };
        }
        self.count += 1;
        self.at = end;
        self.gap = Gap::None;
        self.partial = Partial::None;
        true
    }

    /// Reads one more token; false when the text ends before that.
    fn advance(&mut self, input: Input<'_>) -> bool {
        let before = self.at;
        let read = match self.partial {
            Partial::None => self.begin(input),
            Partial::Str { at, quote } => self.string(at, quote, input),
            Partial::Word { at } => self.word(at, input),
        };
        self.work = self.work.wrapping_add(self.at.saturating_sub(before) + 1);
        read
    }

    fn begin(&mut self, input: Input<'_>) -> bool {
        loop {
            let Some(seen) = input.glyph(self.at) else {
                return input.last && self.push(Tok::End, self.at, self.at);
            };
            match seen.glyph {
                Glyph::Space => self.gap = self.gap.max(Gap::Space),
                Glyph::Newline => self.gap = Gap::Newline,
                Glyph::Backslash if self.escaped => match input.bytes().get(self.at + 1) {
                    Some(b'n' | b'r') => {
                        self.gap = Gap::Newline;
                        self.at += 1;
                    }
                    Some(b't') => {
                        self.gap = self.gap.max(Gap::Space);
                        self.at += 1;
                    }
                    _ => return self.lex(seen, input),
                },
                _ => return self.lex(seen, input),
            }
            self.at += seen.length;
        }
    }

    fn lex(&mut self, seen: Seen, input: Input<'_>) -> bool {
        let at = self.at;
        let end = at + seen.length;
        match self.closer(input) {
            Match::Yes => return self.push(Tok::Closer, at, at),
            Match::Partial => return false,
            Match::No => {}
        }
        match seen.glyph {
            Glyph::Comma => self.push(Tok::Comma, at, end),
            Glyph::Semicolon => self.push(Tok::Semicolon, at, end),
            Glyph::Colon => self.push(Tok::Colon, at, end),
            Glyph::OpenBrace => self.push(Tok::OpenBrace, at, end),
            Glyph::CloseBrace => self.push(Tok::CloseBrace, at, end),
            Glyph::OpenBracket => self.push(Tok::OpenBracket, at, end),
            Glyph::CloseBracket => self.push(Tok::CloseBracket, at, end),
            Glyph::OpenParen => self.push(Tok::OpenParen, at, end),
            Glyph::CloseParen => self.push(Tok::CloseParen, at, end),
            Glyph::Quote(Quote::Backtick) => self.backtick(at, end, input),
            Glyph::Quote(quote) => self.open_string(at, end, quote, input),
            Glyph::Backslash => self.backslash(at, input),
            Glyph::Slash => self.slash(at, input),
            Glyph::Hash if self.gap == Gap::None => self.push(Tok::Other, at, end),
            Glyph::Hash => self.push(Tok::Comment, at, end),
            Glyph::Dot if seen.length > 1 => self.push(Tok::Ellipsis, at, end),
            Glyph::Word | Glyph::Dot | Glyph::Plus => self.word(at, input),
            _ => self.push(Tok::Other, at, end),
        }
    }

    fn closer(&self, input: Input<'_>) -> Match {
        input.closers.at(input.bytes(), self.at, input.last)
    }

    fn open_string(&mut self, at: usize, end: usize, quote: Quote, input: Input<'_>) -> bool {
        self.at = end;
        self.partial = Partial::Str { at, quote };
        let known = self.far.iter().find(|far| far.quote == quote);
        if let Some(far) = known.filter(|far| (far.body..=far.close).contains(&end)) {
            let far = *far;
            // The work of a jump is that of one token.
            self.work = self.work.wrapping_sub(far.end - end);
            return self.push(far.tok, at, far.end);
        }
        self.string(at, quote, input)
    }

    /// Ends the string that was opened at `at`.
    fn push_string(&mut self, tok: Tok, at: usize, quote: Quote, close: usize, end: usize) -> bool {
        if close.saturating_sub(at) >= FAR {
            let far = FarEnd {
                quote,
                body: at + 1,
                tok,
                close,
                end,
            };
            match self.far.iter_mut().find(|far| far.quote == quote) {
                Some(known) => *known = far,
                None => self.far.push(far),
            }
        }
        self.push(tok, at, end)
    }

    /// Three backticks are a fence and no quote.
    fn backtick(&mut self, at: usize, end: usize, input: Input<'_>) -> bool {
        let rest = input.bytes().get(at..).unwrap_or_default();
        if rest.starts_with(b"```") {
            return self.push(Tok::Other, at, end);
        }
        if rest.len() < 3 && b"```".starts_with(rest) && !input.last {
            return false;
        }
        self.open_string(at, end, Quote::Backtick, input)
    }

    fn backslash(&mut self, at: usize, input: Input<'_>) -> bool {
        match input.bytes().get(at + 1) {
            None if !input.last => false,
            Some(b'"') => self.open_string(at, at + 2, Quote::EscapedDouble, input),
            _ => self.push(Tok::Backslash, at, at + 1),
        }
    }

    fn slash(&mut self, at: usize, input: Input<'_>) -> bool {
        match input.bytes().get(at + 1) {
            None if !input.last => false,
            Some(b'/' | b'*') => self.push(Tok::Comment, at, at + 2),
            _ => self.push(Tok::Other, at, at + 1),
        }
    }

    fn string(&mut self, at: usize, quote: Quote, input: Input<'_>) -> bool {
        let bytes = input.bytes();
        loop {
            self.at = match quote {
                Quote::Double => scan::string_end(bytes, self.at),
                _ => scan::foreign_string_end(bytes, self.at, true),
            };
            let Some(&byte) = bytes.get(self.at) else {
                let end = self.at;
                return input.last && self.push_string(Tok::OpenStr, at, quote, end, end);
            };
            if byte == b'"' && quote == Quote::Double {
                let close = self.at;
                return self.push_string(Tok::Str, at, quote, close, close + 1);
            }
            if byte < 0x20 {
                self.at += 1;
                continue;
            }
            let escaped = byte == b'\\' && quote != Quote::EscapedDouble;
            if escaped {
                match input
                    .text
                    .get(self.at + 1..)
                    .and_then(|rest| rest.chars().next())
                {
                    Some(next) => self.at += 1 + next.len_utf8(),
                    None if input.last => self.at += 1,
                    None => return false,
                }
                continue;
            }
            let rest = bytes.get(self.at..).unwrap_or_default();
            if quote == Quote::EscapedDouble && rest.starts_with(b"\\\\") {
                // A backslash, which escapes what follows it.
                self.at += match (rest.get(2), rest.get(3)) {
                    (Some(b'\\'), Some(b'\\' | b'"')) => 4,
                    (Some(b'\\'), None) | (None, _) if !input.last => return false,
                    _ => 2,
                };
                continue;
            }
            match quote_at(input, self.at, quote) {
                Ok(0) => self.at += input.glyph(self.at).map_or(1, |seen| seen.length),
                Ok(length) => {
                    let close = self.at;
                    return self.push_string(Tok::Str, at, quote, close, close + length);
                }
                Err(()) => return false,
            }
        }
    }

    fn word(&mut self, at: usize, input: Input<'_>) -> bool {
        self.partial = Partial::Word { at };
        loop {
            let Some(seen) = input.glyph(self.at) else {
                return input.last && self.push(word_kind(input.slice(at, self.at)), at, self.at);
            };
            match seen.glyph {
                Glyph::Word | Glyph::Plus => self.at += seen.length,
                Glyph::Dot if seen.length == 1 => self.at += 1,
                _ => return self.push(word_kind(input.slice(at, self.at)), at, self.at),
            }
        }
    }
}

fn word_kind(word: &str) -> Tok {
    match word {
        "+" => return Tok::Plus,
        "..." | ".." => return Tok::Ellipsis,
        "." => return Tok::Other,
        _ => {}
    }
    match scalar(word) {
        Scalar::Literal(..) | Scalar::NonFinite => Tok::Literal,
        Scalar::Number | Scalar::Rewritten(_) | Scalar::OutOfRange => Tok::Number,
        Scalar::Text if word.starts_with(|first: char| first.is_ascii_digit()) => Tok::Number,
        Scalar::Text => Tok::Word,
    }
}

/// The length of a quote at `at` that ends a string of this kind, 0 when there is none there, or
/// an error when the text ends too soon to tell.
#[inline]
pub(super) fn quote_at(input: Input<'_>, at: usize, quote: Quote) -> Result<usize, ()> {
    match quote {
        Quote::Double => Ok(usize::from(input.bytes().get(at) == Some(&b'"'))),
        Quote::Single => Ok(usize::from(input.bytes().get(at) == Some(&b'\''))),
        _ => foreign_quote_at(input, at, quote),
    }
}

fn foreign_quote_at(input: Input<'_>, at: usize, quote: Quote) -> Result<usize, ()> {
    let bytes = input.bytes();
    let literal: &[u8] = match quote {
        Quote::EscapedDouble => b"\\\"",
        Quote::TripleDouble => b"\"\"\"",
        Quote::TripleSingle => b"'''",
        Quote::Doubled => b"\"\"",
        Quote::Paired(closer) => {
            let here = input.text.get(at..).and_then(|rest| rest.chars().next());
            return Ok(if here == Some(closer) {
                closer.len_utf8()
            } else {
                0
            });
        }
        Quote::CurlyDouble | Quote::CurlySingle => {
            let plain = match quote {
                Quote::CurlyDouble => Quote::Double,
                _ => Quote::Single,
            };
            return Ok(match input.glyph(at) {
                Some(Seen {
                    glyph: Glyph::Quote(found),
                    length,
                    ..
                }) if found == quote || found == plain => length,
                _ => 0,
            });
        }
        _ => {
            return Ok(match input.glyph(at) {
                Some(seen) if seen.glyph == Glyph::Quote(quote) => seen.length,
                _ => 0,
            });
        }
    };
    let rest = bytes.get(at..).unwrap_or_default();
    if rest.starts_with(literal) {
        return Ok(literal.len());
    }
    if !input.last && rest.len() < literal.len() && literal.starts_with(rest) {
        return Err(());
    }
    Ok(0)
}
