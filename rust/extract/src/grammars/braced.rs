//! Gemma's calls: `call:name{key:value}`, with tokens on both sides of strings.

use crate::calls::{Arguments, Draft, push_string};
use crate::formats::BracedCalls;
use crate::grammars::value::is_name;
use crate::grammars::{Begin, Input, Item, Read};
use crate::{FaultKind, Span};

/// Longest name of a tool.
const LONGEST_NAME: usize = 256;

/// A call that is being read.
#[derive(Clone, Debug)]
pub(crate) struct BracedItem {
    start: usize,
    /// Where the braces begin.
    body: usize,
    name: String,
    at: usize,
    depth: usize,
    /// The quote token that ends the string being read.
    quote: Option<String>,
}

impl BracedItem {
    pub(crate) fn begin(calls: &BracedCalls, input: Input<'_>, at: usize) -> Begin {
        let rest = input.rest(at);
        let Some(inner) = rest.strip_prefix(calls.prefix.as_str()) else {
            let open = calls.prefix.starts_with(rest) && !input.last;
            return if open { Begin::Wait } else { Begin::No };
        };
        let window = inner
            .get(..inner.floor_char_boundary(LONGEST_NAME))
            .unwrap_or(inner);
        let Some(length) = window.find('{') else {
            let open = !input.last
                && window.len() == inner.len()
                && (window.trim().is_empty() || is_name(window.trim()));
            return if open { Begin::Wait } else { Begin::No };
        };
        let name = window.get(..length).unwrap_or_default().trim();
        if !is_name(name) {
            return Begin::No;
        }
        let body = at + calls.prefix.len() + length;
        Begin::Yes(Item::Braced(Box::new(Self {
            start: at,
            body,
            name: name.to_owned(),
            at: body,
            depth: 0,
            quote: None,
        })))
    }

    pub(crate) fn read(
        &mut self,
        calls: &BracedCalls,
        input: Input<'_>,
        max_depth: usize,
        drafts: &mut Vec<Draft>,
    ) -> Read {
        let (end, complete) = match self.find_end(calls, input) {
            Some(end) => (end, true),
            None if input.last => (input.text.len(), false),
            None => return Read::Wait,
        };
        let arguments = match object(input.slice(self.body, end), calls, max_depth) {
            Ok(json) => Arguments::Json(json),
            Err(kind) => Arguments::Refused(kind),
        };
        drafts.push(Draft {
            name: Some(std::mem::take(&mut self.name)),
            arguments,
            id: None,
            complete,
            repaired: false,
            junk: None,
            span: Span {
                start: self.start,
                end,
            },
        });
        Read::Done(end)
    }

    /// One past the brace that closes the call.
    fn find_end(&mut self, calls: &BracedCalls, input: Input<'_>) -> Option<usize> {
        let text = input.bytes();
        loop {
            if let Some(quote) = &self.quote {
                let rest = text.get(self.at..)?;
                let Some(offset) = memchr::memmem::find(rest, quote.as_bytes()) else {
                    let back = input.text.len().saturating_sub(quote.len());
                    self.at = self.at.max(input.text.floor_char_boundary(back));
                    return None;
                };
                self.at += offset + quote.len();
                self.quote = None;
            }
            let byte = *text.get(self.at)?;
            if byte == b'<' {
                let rest = input.rest(self.at);
                if let Some(quote) = calls.quotes.iter().find(|quote| rest.starts_with(*quote)) {
                    self.at += quote.len();
                    self.quote = Some(quote.clone());
                    continue;
                }
                if !input.last && calls.quotes.iter().any(|quote| quote.starts_with(rest)) {
                    return None;
                }
            }
            self.at += 1;
            match byte {
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(self.at);
                    }
                }
                _ => {}
            }
        }
    }
}

/// The braces of a call as a JSON object.
fn object(text: &str, calls: &BracedCalls, max_depth: usize) -> Result<String, FaultKind> {
    let mut json = String::with_capacity(text.len());
    // For each open container: whether it is an object, and whether it holds anything.
    let mut open: Vec<(bool, bool)> = Vec::new();
    let mut at = 0;
    let mut before_value = false;
    while let Some(next) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = text.get(at..).unwrap_or_default();
        if next.is_whitespace() || next == ',' {
            at += next.len_utf8();
            continue;
        }
        match next {
            '}' | ']' => {
                if before_value {
                    json.push_str("null");
                    before_value = false;
                }
                let Some((is_object, _)) = open.pop() else {
                    break;
                };
                json.push(if is_object { '}' } else { ']' });
                at += 1;
                if open.is_empty() {
                    return Ok(json);
                }
                continue;
            }
            ':' => {
                at += 1;
                continue;
            }
            _ => {}
        }
        let in_object = open.last().is_some_and(|(is_object, _)| *is_object);
        if let Some((_, filled)) = open.last_mut() {
            if *filled && !before_value {
                json.push(',');
            }
            *filled = true;
        }
        if matches!(next, '{' | '[') {
            if open.len() >= max_depth {
                return Err(FaultKind::TooDeep);
            }
            if in_object && !before_value {
                return Err(FaultKind::UnreadableArguments);
            }
            json.push(next);
            open.push((next == '{', false));
            before_value = false;
            at += 1;
            continue;
        }
        let (value, length) = scalar(rest, calls, in_object && !before_value);
        at += length.max(1);
        match value {
            Scalar::Text(value) => push_string(&mut json, value),
            Scalar::Json(value) => json.push_str(&value),
        }
        if in_object && !before_value {
            json.push(':');
            before_value = true;
        } else {
            before_value = false;
        }
    }
    if before_value {
        json.push_str("null");
    }
    while let Some((is_object, _)) = open.pop() {
        json.push(if is_object { '}' } else { ']' });
    }
    Ok(json)
}

enum Scalar<'a> {
    Text(&'a str),
    Json(String),
}

/// A string between tokens or quotes, a key, or a bare value; and its length.
fn scalar<'a>(text: &'a str, calls: &BracedCalls, is_key: bool) -> (Scalar<'a>, usize) {
    for quote in &calls.quotes {
        if let Some(inner) = text.strip_prefix(quote.as_str()) {
            let end = inner.find(quote.as_str());
            let value = inner.get(..end.unwrap_or(inner.len())).unwrap_or_default();
            let close = end.map_or(0, |_| quote.len());
            return (Scalar::Text(value), quote.len() + value.len() + close);
        }
    }
    let ends: &[char] = if is_key {
        &[':', '}', ',']
    } else {
        &[',', '}', ']']
    };
    let length = text.find(ends).unwrap_or(text.len());
    let word = text.get(..length).unwrap_or_default().trim();
    if is_key {
        return (Scalar::Text(word.trim_matches('"')), length);
    }
    match crate::tools::strict_value(word) {
        Some(json) => (Scalar::Json(json), length),
        None => (Scalar::Text(word), length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> String {
        let quotes = vec!["<|\"|>".to_owned(), "<escape>".to_owned()];
        let calls = BracedCalls {
            prefix: "call:".to_owned(),
            quotes,
        };
        object(text, &calls, 512).unwrap()
    }

    #[test]
    fn braces_become_an_object() {
        assert_eq!(
            json("{city:<|\"|>Oslo, {NO}<|\"|>,days:3}"),
            r#"{"city":"Oslo, {NO}","days":3}"#
        );
        assert_eq!(json("{}"), "{}");
        assert_eq!(
            json("{a:{b:[1,<escape>x<escape>,true]},c:null}"),
            r#"{"a":{"b":[1,"x",true]},"c":null}"#
        );
        assert_eq!(json("{w:two words}"), r#"{"w":"two words"}"#);
    }
}
