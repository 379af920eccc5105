//! Python calls: `f(a=1)`, in a list, on lines of their own, or alone.
//!
//! A scanner that knows strings and brackets finds where a call or list of calls ends, one byte
//! after the other; then [`literal`] turns each argument into JSON. Nothing recurses.

use crate::calls::{Arguments, Draft, PairValue};
use crate::formats::PythonCalls;
use crate::grammars::python_literal::{Failure, Literal, literal};
use crate::grammars::{Begin, Input, Item, Read};
use crate::{FaultKind, Span};

/// Longest dotted name of a function.
const LONGEST_NAME: usize = 256;
/// How much of calls is scanned before it is first tried whether they can be read so far.
const FIRST_WINDOW: usize = 64;

/// A call, or a list of calls, that is being read.
#[derive(Clone, Debug)]
pub(crate) struct PythonItem {
    start: usize,
    at: usize,
    depth: usize,
    string: Option<Quote>,
    comment: bool,
    /// How far the calls are scanned before it is tried whether they can be read so far: what
    /// can't is left soon, not when its end is found.
    window: usize,
}

/// What ends a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Quote {
    mark: u8,
    triple: bool,
}

/// Whether Python calls begin here.
pub(crate) enum Opens {
    Yes,
    No,
    Wait,
}

/// Whether a call, or a list of calls, begins at `at`.
pub(crate) fn opens_python(input: Input<'_>, at: usize) -> Opens {
    let rest = input.rest(at);
    let inner = rest.strip_prefix('[').map_or(rest, str::trim_start);
    let window = inner
        .get(..inner.floor_char_boundary(LONGEST_NAME))
        .unwrap_or(inner);
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    let length = window.find(|c| !is_name(c)).unwrap_or(window.len());
    let name = window.get(..length).unwrap_or_default();
    let after = window.get(length..).unwrap_or_default();
    let begins_well = name
        .chars()
        .next()
        .is_none_or(|c| c.is_alphabetic() || c == '_');
    match after.chars().next() {
        _ if !begins_well => Opens::No,
        Some('(') if !name.is_empty() && !name.ends_with('.') => Opens::Yes,
        Some(_) => Opens::No,
        None if input.last || window.len() < inner.len() || window.len() >= LONGEST_NAME => {
            Opens::No
        }
        None => Opens::Wait,
    }
}

impl PythonItem {
    pub(crate) fn begin(input: Input<'_>, at: usize) -> Begin {
        match opens_python(input, at) {
            Opens::Yes => Begin::Yes(Item::Python(Box::new(Self::new(at)))),
            Opens::No => Begin::No,
            Opens::Wait => Begin::Wait,
        }
    }

    pub(crate) fn new(start: usize) -> Self {
        Self {
            start,
            at: start,
            depth: 0,
            string: None,
            comment: false,
            window: FIRST_WINDOW,
        }
    }

    pub(crate) fn start(&self) -> usize {
        self.start
    }

    pub(crate) fn read(
        &mut self,
        calls: &PythonCalls,
        input: Input<'_>,
        max_depth: usize,
        drafts: &mut Vec<Draft>,
    ) -> Read {
        loop {
            let limit = input.text.len().min(self.start + self.window);
            let head = input.up_to(input.text.ceil_char_boundary(limit));
            let end = head.text.len();
            if let Some(end) = self.find_end(head) {
                return self.read_calls(calls, input.slice(0, end), true, max_depth, drafts);
            }
            if end == input.text.len() && !input.last {
                return Read::Wait;
            }
            if end == input.text.len() {
                return self.read_calls(calls, head.text, false, max_depth, drafts);
            }
            let mut unused = Vec::new();
            let tried = self.read_calls(calls, head.text, false, max_depth, &mut unused);
            if let Read::Failed(_, span) = &tried
                && is_certain(head.rest(span.end))
            {
                return tried;
            }
            self.window *= 2;
        }
    }

    /// Reads the calls that are all of `text` from their start on.
    fn read_calls(
        &self,
        calls: &PythonCalls,
        text: &str,
        closed: bool,
        max_depth: usize,
        drafts: &mut Vec<Draft>,
    ) -> Read {
        let mut source = Source {
            input: text,
            at: self.start,
            max_depth,
            closed,
        };
        match source.calls(calls) {
            Ok(found) => {
                drafts.extend(found);
                Read::Done(text.len())
            }
            Err(Failure { kind, at }) => Read::Failed(
                kind,
                Span {
                    start: self.start,
                    end: at.max(self.start + 1),
                },
            ),
        }
    }

    /// One past the bracket that ends the calls.
    fn find_end(&mut self, input: Input<'_>) -> Option<usize> {
        let text = input.bytes();
        loop {
            if let Some(quote) = self.string {
                self.at = string_end(text, self.at, quote, input.last)
                    .map_err(|at| self.at = at)
                    .ok()?;
                self.string = None;
            } else if self.comment {
                let Some(length) = memchr::memchr(b'\n', text.get(self.at..)?) else {
                    self.at = text.len();
                    return None;
                };
                self.at += length;
                self.comment = false;
            }
            match text.get(self.at)? {
                mark @ (b'"' | b'\'') => {
                    let next = text.get(self.at + 1..self.at + 3);
                    if next.is_none() && !input.last {
                        return None;
                    }
                    let triple = next.is_some_and(|next| next.iter().all(|byte| byte == mark));
                    self.string = Some(Quote {
                        mark: *mark,
                        triple,
                    });
                    self.at += if triple { 3 } else { 1 };
                    continue;
                }
                b'#' => self.comment = true,
                b'(' | b'[' | b'{' => self.depth += 1,
                b')' | b']' | b'}' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        self.at += 1;
                        return Some(self.at);
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
    }
}

/// Whether calls that can't be read from `rest` on can't be read whatever follows: a number, and
/// nothing else, may turn out to be something else.
fn is_certain(rest: &str) -> bool {
    rest.contains(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_' | '-' | '+'))
}

/// One past the quote that ends a string; else where to look again.
fn string_end(text: &[u8], from: usize, quote: Quote, last: bool) -> Result<usize, usize> {
    let mut at = from;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let Some(offset) = memchr::memchr2(quote.mark, b'\\', rest) else {
            return Err(text.len());
        };
        at += offset;
        if text.get(at) == Some(&b'\\') {
            if at + 1 >= text.len() {
                return Err(at);
            }
            at += 2;
            continue;
        }
        if quote.triple {
            match text.get(at..at + 3) {
                Some(run) if run.iter().all(|byte| *byte == quote.mark) => return Ok(at + 3),
                Some(_) => at += 1,
                None => return Err(at),
            }
            continue;
        }
        match text.get(at + 1) {
            None if !last => return Err(at),
            Some(next) if is_apostrophe(text, at, *next) => at += 1,
            _ => return Ok(at + 1),
        }
    }
}

/// Whether the quote at `at` stands within a word, and so is no end of a string.
pub(crate) fn is_apostrophe(text: &[u8], at: usize, next: u8) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphabetic() || byte >= 0x80;
    let before = at.checked_sub(1).and_then(|before| text.get(before));
    text.get(at) == Some(&b'\'') && letter(next) && before.is_some_and(|byte| letter(*byte))
}

/// The text of calls whose end is known.
struct Source<'a> {
    input: &'a str,
    at: usize,
    max_depth: usize,
    /// Whether the calls were closed, rather than cut off.
    closed: bool,
}

impl<'a> Source<'a> {
    fn skip_space(&mut self) {
        loop {
            let rest = self.input.get(self.at..).unwrap_or_default();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with('#') {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    fn peek(&self) -> Option<char> {
        self.input.get(self.at..)?.chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn failure(&self, kind: FaultKind) -> Failure {
        Failure { kind, at: self.at }
    }

    fn calls(&mut self, calls: &PythonCalls) -> Result<Vec<Draft>, Failure> {
        let mut drafts = Vec::new();
        if !self.take('[') {
            drafts.push(self.call(calls)?);
            return Ok(drafts);
        }
        loop {
            self.skip_space();
            match self.peek() {
                None | Some(']') => return Ok(drafts),
                Some(',') => self.at += 1,
                Some(_) => drafts.push(self.call(calls)?),
            }
        }
    }

    fn name(&mut self) -> &'a str {
        let rest = self.input.get(self.at..).unwrap_or_default();
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
        let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    fn call(&mut self, calls: &PythonCalls) -> Result<Draft, Failure> {
        let start = self.at;
        let mut name = self.name();
        if name.is_empty() {
            return Err(self.failure(FaultKind::UnreadableArguments));
        }
        if !self.take('(') {
            let cut = self.peek().is_none() && !self.closed;
            return if cut {
                Ok(draft(
                    name,
                    Vec::new(),
                    Vec::new(),
                    Span {
                        start,
                        end: self.at,
                    },
                    false,
                ))
            } else {
                Err(self.failure(FaultKind::UnreadableArguments))
            };
        }
        self.skip_space();
        let printed = name == "print"
            && self.peek() != Some('[')
            && matches!(opens_python(self.as_input(), self.at), Opens::Yes);
        if printed {
            name = self.name();
            self.take('(');
            self.skip_space();
        }
        name = name.strip_suffix(calls.suffix.as_str()).unwrap_or(name);
        let (mut positional, mut pairs) = (Vec::new(), Vec::new());
        let mut complete = true;
        loop {
            self.skip_space();
            match self.peek() {
                None => {
                    complete = false;
                    break;
                }
                Some(')') => {
                    self.at += 1;
                    break;
                }
                Some(',') => {
                    self.at += 1;
                    continue;
                }
                Some(_) => {}
            }
            let key = self.keyword();
            if key.is_some() {
                self.skip_space();
                if self.peek().is_none() {
                    complete = false;
                    break;
                }
            }
            let Literal {
                json,
                end,
                complete: whole,
            } = literal(self.input, self.at, self.max_depth)?;
            self.at = end;
            complete &= whole;
            match key {
                Some(key) => pairs.push((key.to_owned(), PairValue::Json(json))),
                None => positional.push(json),
            }
        }
        if printed {
            self.skip_space();
            complete &= self.take(')');
        }
        Ok(draft(
            name,
            positional,
            pairs,
            Span {
                start,
                end: self.at,
            },
            complete,
        ))
    }

    fn as_input(&self) -> Input<'a> {
        Input::whole(self.input)
    }

    /// The keyword before an argument, with its `=`.
    fn keyword(&mut self) -> Option<&'a str> {
        let before = self.at;
        // Numbers are made of the same characters.
        if self
            .peek()
            .is_some_and(|c| c.is_ascii_digit() || matches!(c, '-' | '.'))
        {
            return None;
        }
        let key = self.name();
        self.skip_space();
        let rest = self.input.get(self.at..).unwrap_or_default();
        if key.is_empty() || !rest.starts_with('=') || rest.starts_with("==") {
            self.at = before;
            return None;
        }
        self.at += 1;
        Some(key)
    }
}

fn draft(
    name: &str,
    positional: Vec<String>,
    pairs: Vec<(String, PairValue)>,
    span: Span,
    complete: bool,
) -> Draft {
    let arguments = if positional.is_empty() {
        Arguments::Pairs(pairs)
    } else {
        Arguments::Positional(positional, pairs)
    };
    Draft {
        name: Some(name.to_owned()),
        arguments,
        id: None,
        complete,
        repaired: false,
        junk: None,
        span,
    }
}
