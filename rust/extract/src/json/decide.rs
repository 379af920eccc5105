//! What an ambiguous character means, decided by the tokens that follow it.
//!
//! In valid JSON the first unescaped quote ends a string, and then a comma with a key or a value,
//! a colon, or a closer follows. Every rule here says the same for such text; the rest weighs what
//! models write when they forget to escape. Quotes inside a text come in pairs: after an odd
//! number of them the next one most likely closes the pair, after an even number the string.
//!
//! Every function returns None while the text does not reach far enough to tell.

use super::ahead::{Ahead, Gap, Input, LIMIT, Tok};

/// The place a string has in its container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Key,
    /// The value of a key.
    Value,
    /// An item of an array.
    Item,
    /// The whole text.
    Root,
}

/// What a container is written as in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Object,
    Array,
    /// A tuple, or the parentheses of a wrapper.
    Parens,
}

/// What surrounds the string in question.
#[derive(Clone, Copy, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "facts of their own, in any mixture"
)]
pub(super) struct Context {
    pub(super) role: Role,
    /// Quotes inside the string that were taken as data.
    pub(super) quotes: usize,
    /// Whether the string's own text has opened a brace or bracket that it has not closed.
    pub(super) nested: bool,
    /// Whether it is a key that seems to have run on into its value: its quote may be missing.
    pub(super) runs_on: bool,
    /// The container around the string's container.
    pub(super) parent: Option<Shape>,
    /// Whether some array, object or parenthesis is open around the string.
    pub(super) array_open: bool,
    pub(super) object_open: bool,
    pub(super) parens_open: bool,
}

impl Context {
    pub(super) fn pairs_up(self) -> bool {
        self.quotes.is_multiple_of(2)
    }
}

/// What a quote is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It ends the string.
    Close,
    /// It belongs to the string.
    Data,
}

#[allow(
    clippy::unnecessary_wraps,
    reason = "None is the answer of what calls it"
)]
pub(super) fn verdict(close: bool) -> Option<Verdict> {
    Some(if close { Verdict::Close } else { Verdict::Data })
}

/// Whether the quote before `ahead` ends the string.
pub(super) fn closing(ahead: &mut Ahead, input: Input<'_>, context: Context) -> Option<Verdict> {
    let first = ahead.token(0, input)?;
    match (first.tok, context.role) {
        (Tok::End | Tok::Closer, _) => verdict(true),
        (tok, Role::Key) if context.runs_on => verdict(tok == Tok::Colon),
        (Tok::Comment, _) => verdict(context.pairs_up()),
        (Tok::Backslash, _) => after_backslash(ahead, input, context),
        (_, Role::Key) => key(ahead, input, context),
        (_, Role::Root) => root(ahead, input, context),
        (Tok::Comma | Tok::Semicolon, Role::Value) => comma_in_object(ahead, input, context),
        (Tok::Comma, Role::Item) => comma_in_array(ahead, input, context),
        (Tok::CloseBrace | Tok::CloseBracket | Tok::CloseParen, _) => closer(ahead, input, context),
        (Tok::Str | Tok::OpenStr, _) => string(ahead, input, context),
        (Tok::Plus, _) => plus(ahead, input, context),
        (Tok::Ellipsis, _) => ellipsis(ahead, input),
        (Tok::Colon, Role::Item) => verdict(context.quotes == 0),
        (Tok::Word | Tok::Number | Tok::Literal, Role::Value) => {
            word_in_object(ahead, input, context)
        }
        (Tok::Number | Tok::Literal, Role::Item) => {
            if first.gap == Gap::None || context.quotes > 0 {
                return verdict(false);
            }
            items_follow(ahead, 1, input).and_then(verdict)
        }
        (Tok::OpenBrace | Tok::OpenBracket, Role::Item) => {
            verdict(first.gap != Gap::None && context.quotes == 0)
        }
        _ => verdict(false),
    }
}

/// What a quote may open behind a string whose own quote is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opens {
    Key,
    Item,
    KeyOrItem,
    /// The value of a key.
    Value,
}

/// Whether the quote at which `ahead` starts opens this.
pub(super) fn opens(ahead: &mut Ahead, what: Opens, input: Input<'_>) -> Option<bool> {
    match what {
        Opens::Key => opens_key(ahead, input),
        Opens::Item => opens_item(ahead, input),
        Opens::KeyOrItem => Some(opens_key(ahead, input)? || opens_item(ahead, input)?),
        Opens::Value => opens_value(ahead, input),
    }
}

fn opens_value(ahead: &mut Ahead, input: Input<'_>) -> Option<bool> {
    if ahead.token(0, input)?.tok != Tok::Str {
        return Some(false);
    }
    Some(match ahead.token(1, input)?.tok {
        Tok::CloseBrace | Tok::End | Tok::Closer => true,
        Tok::Comma => {
            let key = begins_key(ahead, 2, input)?;
            key || ends_item(ahead, 2, input)?
        }
        _ => false,
    })
}

/// Whether the quote at which `ahead` starts opens a key: a string and a colon.
fn opens_key(ahead: &mut Ahead, input: Input<'_>) -> Option<bool> {
    if ahead.token(0, input)?.tok != Tok::Str {
        return Some(false);
    }
    Some(ahead.token(1, input)?.tok == Tok::Colon)
}

/// Whether the quote at which `ahead` starts opens the next item of an array.
fn opens_item(ahead: &mut Ahead, input: Input<'_>) -> Option<bool> {
    if ahead.token(0, input)?.tok != Tok::Str {
        return Some(false);
    }
    match ahead.token(1, input)?.tok {
        Tok::CloseBracket => Some(true),
        Tok::Comma => match ahead.token(2, input)?.tok {
            Tok::Str | Tok::OpenBrace | Tok::OpenBracket | Tok::CloseBracket => Some(true),
            Tok::Number | Tok::Literal => ends_item(ahead, 3, input),
            _ => Some(false),
        },
        _ => Some(false),
    }
}

/// Whether a key and its colon begin at the token with this index.
pub(super) fn begins_key(ahead: &mut Ahead, index: usize, input: Input<'_>) -> Option<bool> {
    match ahead.token(index, input)?.tok {
        Tok::Str => Some(ahead.begun(index + 1, input)? == Tok::Colon),
        Tok::Word | Tok::Number | Tok::Literal => {
            if ahead.begun(index + 1, input)? != Tok::Colon {
                return Some(false);
            }
            // `std::string` and `http://` are no keys.
            let next = ahead.token(index + 2, input)?;
            Some(next.gap != Gap::None || !matches!(next.tok, Tok::Colon | Tok::Comment))
        }
        _ => Some(false),
    }
}

fn after_backslash(ahead: &mut Ahead, input: Input<'_>, context: Context) -> Option<Verdict> {
    let next = ahead.token(1, input)?.tok;
    let structure = matches!(
        next,
        Tok::Comma | Tok::Colon | Tok::CloseBrace | Tok::CloseBracket | Tok::End
    );
    verdict(structure && context.pairs_up())
}

fn key(ahead: &mut Ahead, input: Input<'_>, context: Context) -> Option<Verdict> {
    let first = ahead.token(0, input)?;
    match first.tok {
        Tok::Colon => verdict(true),
        Tok::Comma | Tok::CloseBrace | Tok::CloseBracket => verdict(context.quotes == 0),
        Tok::Number | Tok::Literal | Tok::OpenBrace | Tok::OpenBracket | Tok::Str
            if first.gap != Gap::None =>
        {
            verdict(context.pairs_up())
        }
        Tok::Other => verdict(input.bytes().get(first.at) == Some(&b'=')),
        _ => verdict(false),
    }
}

fn root(ahead: &mut Ahead, input: Input<'_>, context: Context) -> Option<Verdict> {
    let first = ahead.token(0, input)?;
    match first.tok {
        Tok::Colon => verdict(context.quotes == 0),
        Tok::Comma => {
            let next = ahead.token(1, input)?.tok;
            verdict(context.quotes == 0 && matches!(next, Tok::Str | Tok::OpenBrace | Tok::End))
        }
        Tok::Plus => plus(ahead, input, context),
        Tok::Str => verdict(context.quotes == 0 && first.gap != Gap::None),
        _ => verdict(false),
    }
}

fn comma_in_object(ahead: &mut Ahead, input: Input<'_>, context: Context) -> Option<Verdict> {
    let next = ahead.token(1, input)?;
    match next.tok {
        Tok::CloseBrace | Tok::CloseBracket | Tok::Comma | Tok::Ellipsis => {
            verdict(context.pairs_up() || !context.nested)
        }
        Tok::Comment | Tok::End | Tok::Closer => verdict(true),
        Tok::OpenStr => verdict(context.pairs_up()),
        Tok::Str if context.quotes > 0 => match ahead.begun(2, input)? {
            Tok::Colon => verdict(context.pairs_up() || !context.nested),
            tok => verdict(tok == Tok::End),
        },
        Tok::Str => match ahead.token(2, input)?.tok {
            Tok::Colon | Tok::End => verdict(true),
            _ if lacks_closing_quote(ahead, 1, input)? => verdict(true),
            Tok::Number | Tok::OpenBrace | Tok::OpenBracket | Tok::Str => verdict(true),
            Tok::Literal => {
                let after = ahead.token(3, input)?.tok;
                verdict(matches!(after, Tok::Comma | Tok::CloseBrace | Tok::End))
            }
            _ => verdict(false),
        },
        Tok::Word | Tok::Number | Tok::Literal => {
            if !context.pairs_up() {
                return verdict(false);
            }
            let key = begins_key(ahead, 1, input)?;
            let broken = !key && context.quotes == 0 && lacks_opening_quote(input, next.at)?;
            verdict(key || broken)
        }
        Tok::OpenBrace | Tok::OpenBracket => verdict(context.quotes == 0),
        _ => verdict(false),
    }
}

fn comma_in_array(ahead: &mut Ahead, input: Input<'_>, context: Context) -> Option<Verdict> {
    let next = ahead.token(1, input)?;
    let balanced = context.pairs_up() || !context.nested;
    match next.tok {
        Tok::CloseBrace | Tok::CloseBracket | Tok::CloseParen | Tok::Comma | Tok::Ellipsis => {
            verdict(balanced)
        }
        Tok::Comment | Tok::End | Tok::Closer => verdict(true),
        Tok::OpenBrace | Tok::OpenBracket | Tok::OpenParen | Tok::OpenStr => {
            verdict(context.pairs_up())
        }
        Tok::Str => match ahead.begun(2, input)? {
            Tok::Word => verdict(ahead.token(2, input)?.tok != Tok::Word && balanced),
            Tok::Other => verdict(false),
            Tok::Colon => verdict(context.quotes == 0),
            _ => verdict(balanced),
        },
        Tok::Number | Tok::Literal => {
            let ends = ends_item(ahead, 2, input)?;
            verdict(ends || context.quotes == 0 && lacks_comma(ahead, 2, input)?)
        }
        Tok::Word => verdict(context.quotes == 0),
        _ => verdict(false),
    }
}

/// Whether the tokens from this index on are items of an array that lack their commas, up to
/// what ends one or as far as is looked.
fn items_follow(ahead: &mut Ahead, from: usize, input: Input<'_>) -> Option<bool> {
    for index in from..LIMIT {
        if ends_item(ahead, index, input)? {
            return Some(true);
        }
        let item = ahead.token(index, input)?;
        let scalar = matches!(item.tok, Tok::Str | Tok::Number | Tok::Literal);
        if item.gap == Gap::None || !scalar {
            return Some(false);
        }
    }
    Some(true)
}

/// Whether the token with this index is an item of an array whose comma before it is missing.
fn lacks_comma(ahead: &mut Ahead, index: usize, input: Input<'_>) -> Option<bool> {
    let item = ahead.token(index, input)?;
    let scalar = matches!(item.tok, Tok::Str | Tok::Number | Tok::Literal);
    if item.gap == Gap::None || !scalar {
        return Some(false);
    }
    ends_item(ahead, index + 1, input)
}

/// Whether the string at which `ahead` starts is a key though no colon follows it: its colon is
/// missing, or its value too.
pub(super) fn stands_for_key(ahead: &mut Ahead, input: Input<'_>) -> Option<bool> {
    if ahead.token(0, input)?.tok != Tok::Str {
        return Some(false);
    }
    let next = ahead.token(1, input)?;
    Some(match next.tok {
        Tok::End | Tok::Closer | Tok::CloseBrace => true,
        Tok::Str | Tok::Number | Tok::Literal | Tok::OpenBrace | Tok::OpenBracket => {
            next.gap != Gap::None
        }
        Tok::Comma => {
            let after = ahead.token(2, input)?.tok;
            matches!(after, Tok::CloseBrace | Tok::End) || begins_key(ahead, 2, input)?
        }
        _ => false,
    })
}

/// Bytes of a key that has lost a quote.
const MAX_BARE_KEY: usize = 64;

/// How long the name is that the text begins with, if it is one.
fn name_length(text: &[u8]) -> Option<usize> {
    let in_name =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"_-$. ".contains(byte) || *byte > 0x7f;
    let name = text.iter().take(MAX_BARE_KEY + 1);
    let length = name.take_while(|byte| in_name(byte)).count();
    (1..=MAX_BARE_KEY).contains(&length).then_some(length)
}

/// Whether a key stands at `at` that has lost its opening quote: a name, a quote and a colon.
pub(super) fn lacks_opening_quote(input: Input<'_>, at: usize) -> Option<bool> {
    let rest = input.bytes().get(at..).unwrap_or_default();
    let Some(name) = name_length(rest) else {
        return Some(false);
    };
    match (rest.get(name), rest.get(name + 1)) {
        (Some(b'"' | b'\''), Some(next)) => Some(*next == b':'),
        (Some(b'"' | b'\'') | None, None) if !input.last => None,
        _ => Some(false),
    }
}

/// Whether the string that begins at the token with this index is a key that has lost its closing
/// quote, and runs on to the first quote of its value: `"key: "`, `"key: ["`, `"key: [1, "`.
pub(super) fn lacks_closing_quote(
    ahead: &mut Ahead,
    index: usize,
    input: Input<'_>,
) -> Option<bool> {
    let key = ahead.token(index, input)?;
    if key.tok != Tok::Str {
        return Some(false);
    }
    let next = ahead.token(index + 1, input)?;
    let text = input.slice(key.at + 1, next.at).trim_end();
    let text = text.strip_suffix(['"', '\'']).unwrap_or_default();
    let Some(name) = name_length(text.as_bytes()) else {
        return Some(false);
    };
    let value = text.get(name..).and_then(|value| value.strip_prefix(':'));
    Some(value.is_some_and(|value| {
        let value = value.trim();
        value.is_empty() || value.starts_with(['[', '{']) && value.ends_with(['[', '{', ','])
    }))
}

/// Whether the token with this index can follow an item of an array.
fn ends_item(ahead: &mut Ahead, index: usize, input: Input<'_>) -> Option<bool> {
    Some(matches!(
        ahead.token(index, input)?.tok,
        Tok::Comma
            | Tok::CloseBracket
            | Tok::CloseBrace
            | Tok::CloseParen
            | Tok::Comment
            | Tok::Closer
            | Tok::End
    ))
}

fn closer(ahead: &mut Ahead, input: Input<'_>, context: Context) -> Option<Verdict> {
    let tok = ahead.token(0, input)?.tok;
    let (fits, open) = match (tok, context.role) {
        (Tok::CloseBrace, role) => (role == Role::Value, context.object_open),
        (Tok::CloseParen, _) => (false, context.parens_open),
        (_, role) => (role == Role::Item, context.array_open),
    };
    if tok == Tok::CloseParen && !open {
        return verdict(false);
    }
    if fits && context.quotes == 0 {
        return verdict(true);
    }
    if context.nested && !context.pairs_up() {
        return verdict(false);
    }
    let next = ahead.token(1, input)?;
    let follows = match next.tok {
        Tok::End
        | Tok::Closer
        | Tok::CloseBrace
        | Tok::CloseBracket
        | Tok::CloseParen
        | Tok::Comment => true,
        Tok::Comma => comma_after_closer(ahead, input, context)?,
        Tok::Colon => false,
        Tok::Str | Tok::OpenStr | Tok::OpenBrace | Tok::OpenBracket => {
            next.gap == Gap::Newline || (context.pairs_up() && next.gap != Gap::None)
        }
        _ => next.gap == Gap::Newline || (context.pairs_up() && context.parent.is_none()),
    };
    verdict(follows && (fits || open || context.pairs_up()))
}

fn comma_after_closer(ahead: &mut Ahead, input: Input<'_>, context: Context) -> Option<bool> {
    let next = ahead.token(2, input)?.tok;
    if context.parent == Some(Shape::Object) {
        return begins_key(ahead, 2, input)
            .map(|key| key || matches!(next, Tok::End | Tok::CloseBrace | Tok::CloseBracket));
    }
    Some(!matches!(next, Tok::Word | Tok::Other) || context.quotes == 0)
}

fn string(ahead: &mut Ahead, input: Input<'_>, context: Context) -> Option<Verdict> {
    let first = ahead.token(0, input)?;
    if first.tok == Tok::OpenStr {
        return verdict(first.gap != Gap::None && context.quotes == 0);
    }
    if first.gap == Gap::None && context.quotes > 0 {
        return verdict(false);
    }
    let next = ahead.begun(1, input)?;
    if context.role == Role::Value && next == Tok::Colon {
        return verdict(first.gap != Gap::None || context.quotes == 0);
    }
    let ends = matches!(
        next,
        Tok::Comma
            | Tok::CloseBrace
            | Tok::CloseBracket
            | Tok::CloseParen
            | Tok::End
            | Tok::Closer
            | Tok::Comment
    );
    let more = matches!(next, Tok::Str | Tok::OpenStr);
    match context.role {
        // Strings in a row are joined.
        Role::Value => verdict(context.quotes == 0 && first.gap != Gap::None && (ends || more)),
        Role::Item if context.quotes == 0 && first.gap != Gap::None && !ends && !more => {
            items_follow(ahead, 1, input).and_then(verdict)
        }
        _ => verdict(context.pairs_up() && (ends || (more && context.quotes == 0))),
    }
}

fn plus(ahead: &mut Ahead, input: Input<'_>, context: Context) -> Option<Verdict> {
    let next = ahead.token(1, input)?.tok;
    verdict(context.pairs_up() && matches!(next, Tok::Str | Tok::OpenStr | Tok::End))
}

fn ellipsis(ahead: &mut Ahead, input: Input<'_>) -> Option<Verdict> {
    let next = ahead.token(1, input)?.tok;
    verdict(matches!(
        next,
        Tok::CloseBrace | Tok::CloseBracket | Tok::End
    ))
}

/// A bare word after a string that may be a value: a key whose comma is missing, or text.
fn word_in_object(ahead: &mut Ahead, input: Input<'_>, context: Context) -> Option<Verdict> {
    let first = ahead.token(0, input)?;
    if first.gap == Gap::None || !context.pairs_up() {
        return verdict(false);
    }
    let key = begins_key(ahead, 0, input)?;
    verdict(key && (first.gap == Gap::Newline || context.quotes == 0))
}

/// What a closer that does not match the innermost container stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mismatch {
    /// The closers of the containers inside are missing.
    Missing,
    /// It stands for the closer of the innermost container.
    Wrong,
    /// It is one too many.
    Stray,
}

/// The containers around a closer that does not match.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    pub(super) inner: Shape,
    /// Around the innermost; None: the value is over with it.
    pub(super) parent: Option<Shape>,
    /// Whether there is an opener that matches, and what is around that.
    pub(super) opened: bool,
    pub(super) outer: Option<Shape>,
}

/// Decides what a closer stands for by what follows it.
pub(super) fn mismatch(ahead: &mut Ahead, input: Input<'_>, around: Around) -> Option<Mismatch> {
    if around.opened && fits(ahead, input, around.outer)? {
        return Some(Mismatch::Missing);
    }
    let wrong = fits(ahead, input, around.parent)?;
    if wrong && (around.parent.is_some() || !around.opened) {
        return Some(Mismatch::Wrong);
    }
    if !around.opened && fits(ahead, input, Some(around.inner))? {
        return Some(Mismatch::Stray);
    }
    Some(if around.opened {
        Mismatch::Missing
    } else {
        Mismatch::Wrong
    })
}

/// Whether what follows can stand in this container, after a value.
fn fits(ahead: &mut Ahead, input: Input<'_>, container: Option<Shape>) -> Option<bool> {
    let first = ahead.token(0, input)?.tok;
    let comma = first == Tok::Comma;
    let key = comma && begins_key(ahead, 1, input)?;
    Some(match container {
        None => !matches!(first, Tok::Comma | Tok::CloseBrace | Tok::CloseBracket),
        Some(Shape::Object) => {
            key || matches!(first, Tok::CloseBrace | Tok::End | Tok::Closer)
                || (comma && ends_item(ahead, 1, input)?)
        }
        Some(Shape::Array | Shape::Parens) => {
            (comma && !key) || matches!(first, Tok::CloseBracket | Tok::End | Tok::Closer)
        }
    })
}
