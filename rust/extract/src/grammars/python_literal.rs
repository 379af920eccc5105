//! Python literals as JSON: strings in all their notations, numbers, containers, and JSON's own
//! literals, which models mix in. An explicit stack instead of recursion.

use crate::FaultKind;
use crate::calls::push_string;
use crate::grammars::python::is_apostrophe;

/// A literal that was read.
#[derive(Debug)]
pub(crate) struct Literal {
    pub(crate) json: String,
    /// One past its last byte.
    pub(crate) end: usize,
    /// Whether it was closed, rather than cut off.
    pub(crate) complete: bool,
}

/// Why a literal can't be read, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    pub(crate) kind: FaultKind,
    pub(crate) at: usize,
}

/// A container that is open.
#[derive(Clone, Copy)]
struct Frame {
    shape: Shape,
    /// Where it begins in the output.
    open: usize,
    items: usize,
    commas: bool,
    /// Where the key or value that is being written begins.
    item: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    List,
    /// A tuple, or a value in parentheses.
    Parens,
    /// Braces in which no colon has come: a dictionary or a set.
    Braces,
    /// A dictionary, before the value of a key.
    Value,
    /// A dictionary, before a key.
    Key,
    /// A dictionary, between a key and its colon.
    Colon,
    Set,
}

/// Reads the literal at `at`.
pub(crate) fn literal(text: &str, at: usize, max_depth: usize) -> Result<Literal, Failure> {
    Reader {
        text,
        at,
        json: String::new(),
        frames: Vec::new(),
        max_depth,
        complete: true,
    }
    .read()
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    json: String,
    frames: Vec<Frame>,
    max_depth: usize,
    complete: bool,
}

impl Reader<'_> {
    fn read(mut self) -> Result<Literal, Failure> {
        loop {
            self.skip_space();
            let Some(next) = self.rest().chars().next() else {
                self.cut();
                break;
            };
            match next {
                '[' => self.open(Shape::List, '[')?,
                '(' => self.open(Shape::Parens, '[')?,
                '{' => self.open(Shape::Braces, '{')?,
                ']' | ')' | '}' => {
                    if self.frames.is_empty() {
                        return Err(self.failure());
                    }
                    if self.inside() == Some(Shape::Colon) {
                        return Err(self.failure());
                    }
                    self.at += 1;
                    self.close();
                }
                ',' => {
                    self.at += 1;
                    self.comma();
                    continue;
                }
                ':' => {
                    self.at += 1;
                    self.colon()?;
                    continue;
                }
                _ => self.scalar(next)?,
            }
            if self.frames.is_empty() {
                break;
            }
            if matches!(next, '[' | '(' | '{') {
                continue;
            }
            self.item_done();
        }
        Ok(Literal {
            json: self.json,
            end: self.at,
            complete: self.complete,
        })
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn failure(&self) -> Failure {
        Failure {
            kind: FaultKind::UnreadableArguments,
            at: self.at,
        }
    }

    fn skip_space(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            let skipped = rest.len() - trimmed.len();
            let comment = if trimmed.starts_with('#') && !self.frames.is_empty() {
                trimmed.find('\n').unwrap_or(trimmed.len())
            } else {
                0
            };
            self.at += skipped + comment;
            if comment == 0 {
                return;
            }
        }
    }

    fn open(&mut self, shape: Shape, opener: char) -> Result<(), Failure> {
        if self.frames.len() >= self.max_depth {
            return Err(Failure {
                kind: FaultKind::TooDeep,
                at: self.at,
            });
        }
        self.begin_item()?;
        self.at += 1;
        let open = self.json.len();
        self.json.push(opener);
        self.frames.push(Frame {
            shape,
            open,
            items: 0,
            commas: false,
            item: open + 1,
        });
        Ok(())
    }

    fn inside(&self) -> Option<Shape> {
        self.frames.last().map(|frame| frame.shape)
    }

    /// Writes the comma before an item.
    fn begin_item(&mut self) -> Result<(), Failure> {
        let failure = self.failure();
        let length = self.json.len();
        let Some(frame) = self.frames.last_mut() else {
            return Ok(());
        };
        let after_key = match frame.shape {
            Shape::Colon => true,
            // It may be one.
            Shape::Braces => frame.items > 0,
            _ => false,
        };
        if after_key {
            return Err(failure);
        }
        if frame.items > 0 && frame.shape != Shape::Value {
            self.json.push(',');
            frame.item = length + 1;
        } else {
            frame.item = length;
        }
        Ok(())
    }

    /// A value is complete within the container that is open.
    fn item_done(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.items += 1;
            match frame.shape {
                Shape::Value => frame.shape = Shape::Key,
                Shape::Key => frame.shape = Shape::Colon,
                _ => {}
            }
        }
    }

    fn comma(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.commas = true;
            if frame.shape == Shape::Braces && frame.items > 0 {
                frame.shape = Shape::Set;
            }
        }
    }

    /// What stood before a colon is a key.
    fn colon(&mut self) -> Result<(), Failure> {
        let failure = self.failure();
        let Some(frame) = self.frames.last_mut() else {
            return Err(failure);
        };
        if !matches!(frame.shape, Shape::Braces | Shape::Colon) || frame.items == 0 {
            return Err(failure);
        }
        frame.items -= 1;
        frame.shape = Shape::Value;
        let key = self.json.split_off(frame.item);
        if key.starts_with('{') || key.starts_with('[') && key.contains("\\\"") {
            // Keys in keys would double in length with each level.
            return Err(failure);
        }
        if key.starts_with('"') {
            self.json.push_str(&key);
        } else {
            push_string(&mut self.json, &key);
        }
        self.json.push(':');
        Ok(())
    }

    fn close(&mut self) {
        let Some(frame) = self.frames.pop() else {
            return;
        };
        match frame.shape {
            Shape::List => self.json.push(']'),
            Shape::Parens if frame.items == 1 && !frame.commas => {
                self.json.remove(frame.open);
            }
            Shape::Parens => self.json.push(']'),
            Shape::Set => {
                self.json.replace_range(frame.open..=frame.open, "[");
                self.json.push(']');
            }
            Shape::Braces if frame.items > 0 => {
                self.json.replace_range(frame.open..=frame.open, "[");
                self.json.push(']');
            }
            Shape::Braces | Shape::Key => self.json.push('}'),
            Shape::Colon => {
                // A key that was cut off before its value.
                self.json.truncate(frame.item);
                if self.json.ends_with(',') {
                    self.json.pop();
                }
                self.json.push('}');
            }
            Shape::Value => {
                self.json.push_str("null}");
            }
        }
    }

    /// The text ended: closes what is open.
    fn cut(&mut self) {
        self.complete = false;
        if self.frames.is_empty() {
            self.json.push_str("null");
        }
        while !self.frames.is_empty() {
            self.close();
            self.item_done();
        }
    }

    fn scalar(&mut self, next: char) -> Result<(), Failure> {
        self.begin_item()?;
        if let Some((prefix, quote)) = string_prefix(self.rest()) {
            return self.strings(prefix, quote);
        }
        if (next.is_ascii_digit() || matches!(next, '-' | '+' | '.'))
            && let Some(length) = self.number()?
        {
            self.at += length;
            return Ok(());
        }
        self.word()
    }

    /// A string, and those that follow it without anything between.
    #[allow(
        clippy::unnecessary_wraps,
        reason = "alike to the readers of other literals"
    )]
    fn strings(&mut self, mut prefix: usize, mut quote: char) -> Result<(), Failure> {
        let mut text = String::new();
        loop {
            let raw = self
                .rest()
                .get(..prefix)
                .unwrap_or_default()
                .contains(['r', 'R']);
            self.at += prefix;
            let whole = self.string(quote, raw, &mut text);
            self.complete &= whole;
            let before = self.at;
            self.skip_space();
            match string_prefix(self.rest()) {
                Some(next) if whole => (prefix, quote) = next,
                _ => {
                    self.at = before;
                    break;
                }
            }
        }
        push_string(&mut self.json, &text);
        Ok(())
    }

    /// One string, from its quote on; false when the text ended first.
    fn string(&mut self, quote: char, raw: bool, text: &mut String) -> bool {
        let mark = quote as u8;
        let triple = self
            .rest()
            .bytes()
            .take(3)
            .filter(|byte| *byte == mark)
            .count()
            == 3;
        self.at += if triple { 3 } else { 1 };
        loop {
            let rest = self.rest();
            let Some(offset) = memchr::memchr2(mark, b'\\', rest.as_bytes()) else {
                text.push_str(rest);
                self.at = self.text.len();
                return false;
            };
            text.push_str(rest.get(..offset).unwrap_or_default());
            self.at += offset;
            let rest = self.rest();
            if rest.starts_with('\\') {
                if raw {
                    let length = 1 + rest.chars().nth(1).map_or(0, char::len_utf8);
                    text.push_str(rest.get(..length).unwrap_or_default());
                    self.at += length;
                } else {
                    self.at += escape(rest, text);
                }
                continue;
            }
            if triple {
                if rest.bytes().take(3).filter(|byte| *byte == mark).count() == 3 {
                    self.at += 3;
                    return true;
                }
                text.push(quote);
                self.at += 1;
                continue;
            }
            let bytes = self.text.as_bytes();
            match bytes.get(self.at + 1) {
                Some(next) if is_apostrophe(bytes, self.at, *next) => {
                    text.push(quote);
                    self.at += 1;
                }
                _ => {
                    self.at += 1;
                    return true;
                }
            }
        }
    }

    /// Writes a number; the answer is its length, or None when it is none.
    fn number(&mut self) -> Result<Option<usize>, Failure> {
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
        let sign = rest.len() - rest.trim_start_matches(['-', '+']).len();
        let exponent = |at: usize, c: char| {
            let before = rest.get(..at).and_then(|before| before.chars().next_back());
            matches!(c, '-' | '+') && matches!(before, Some('e' | 'E'))
        };
        let digits = rest.get(sign..).unwrap_or_default();
        let length = digits
            .char_indices()
            .find(|(at, c)| !is_part(*c) && !exponent(sign + at, *c))
            .map_or(digits.len(), |(at, _)| at);
        let digits = digits.get(..length).unwrap_or_default();
        let negative = rest.get(..sign).unwrap_or_default().matches('-').count() % 2 == 1;
        let Some(number) = plain_number(digits) else {
            return Ok(None);
        };
        if number.parse::<f64>().is_ok_and(f64::is_infinite) {
            return Err(Failure {
                kind: FaultKind::NumberOutOfRange,
                at: self.at,
            });
        }
        if negative {
            self.json.push('-');
        }
        self.json.push_str(&number);
        Ok(Some(sign + length))
    }

    /// A literal, or words without quotes.
    fn word(&mut self) -> Result<(), Failure> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let stop = |c: char| {
            matches!(
                c,
                ',' | ')' | ']' | '}' | ':' | '\n' | '(' | '[' | '{' | '"' | '\'' | '='
            )
        };
        let length = rest.find(stop).unwrap_or(rest.len());
        let word = rest.get(..length).unwrap_or_default().trim_end();
        let calls = rest
            .get(length..)
            .is_some_and(|after| after.starts_with(['(', '[', '{', '"', '\'', '=']));
        if word.is_empty() || calls {
            return Err(self.failure());
        }
        let literal = match word {
            "True" | "true" => Some("true"),
            "False" | "false" => Some("false"),
            "None" | "null" | "undefined" => Some("null"),
            _ => None,
        };
        match literal {
            Some(literal) => self.json.push_str(literal),
            None => push_string(&mut self.json, word),
        }
        self.at += word.len();
        Ok(())
    }
}

/// The length of a string's prefix (`r`, `b`, `f`, `u`) and its quote.
fn string_prefix(text: &str) -> Option<(usize, char)> {
    let prefix = text
        .bytes()
        .take(2)
        .take_while(|byte| b"rRbBuUfF".contains(byte))
        .count();
    let quote = text.get(prefix..)?.chars().next()?;
    matches!(quote, '"' | '\'').then_some((prefix, quote))
}

/// A number in JSON's notation.
fn plain_number(digits: &str) -> Option<String> {
    let digits = digits.replace('_', "");
    let radix = match digits.get(..2) {
        Some("0x" | "0X") => 16,
        Some("0o" | "0O") => 8,
        Some("0b" | "0B") => 2,
        _ => 10,
    };
    if radix != 10 {
        return u128::from_str_radix(digits.get(2..)?, radix)
            .ok()
            .map(|value| value.to_string());
    }
    let (mantissa, exponent) = match digits.find(['e', 'E']) {
        Some(at) => digits.split_at(at),
        None => (digits.as_str(), ""),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let power = exponent.get(1..).unwrap_or_default();
    let power_digits = power.strip_prefix(['-', '+']).unwrap_or(power);
    let valid = all_digits(whole)
        && all_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && (exponent.is_empty() || !power_digits.is_empty() && all_digits(power_digits))
        && (whole.len() < 2 || !whole.starts_with('0'));
    if !valid {
        return None;
    }
    let mut number = if whole.is_empty() {
        "0".to_owned()
    } else {
        whole.to_owned()
    };
    if mantissa.contains('.') {
        number.push('.');
        number.push_str(if fraction.is_empty() { "0" } else { fraction });
    }
    number.push_str(exponent);
    Some(number)
}

/// Decodes the escape that `text` begins with; the answer is its length.
fn escape(text: &str, out: &mut String) -> usize {
    let Some(kind) = text.chars().nth(1) else {
        out.push('\\');
        return 1;
    };
    let simple = match kind {
        'n' => Some('\n'),
        't' => Some('\t'),
        'r' => Some('\r'),
        'a' => Some('\u{7}'),
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        'v' => Some('\u{b}'),
        '\\' | '\'' | '"' => Some(kind),
        _ => None,
    };
    if let Some(character) = simple {
        out.push(character);
        return 2;
    }
    let digits = match kind {
        '\n' => return 2,
        'x' => 2,
        'u' => 4,
        'U' => 8,
        '0'..='7' => return octal(text, out),
        _ => {
            out.push('\\');
            out.push(kind);
            return 1 + kind.len_utf8();
        }
    };
    let Some(value) = hex(text.get(2..2 + digits)) else {
        out.push('\\');
        out.push(kind);
        return 2;
    };
    let low = || hex(text.get(6..12)?.strip_prefix("\\u"));
    if digits == 4
        && (0xd800..0xdc00).contains(&value)
        && let Some(low) = low().filter(|low| (0xdc00..0xe000).contains(low))
    {
        let joined = 0x10000 + ((value - 0xd800) << 10) + (low - 0xdc00);
        out.push(char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER));
        return 12;
    }
    out.push(char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER));
    2 + digits
}

fn hex(digits: Option<&str>) -> Option<u32> {
    let digits = digits?;
    let all = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if all {
        u32::from_str_radix(digits, 16).ok()
    } else {
        None
    }
}

fn octal(text: &str, out: &mut String) -> usize {
    let digits = text
        .bytes()
        .skip(1)
        .take(3)
        .take_while(|byte| (b'0'..b'8').contains(byte))
        .count();
    let value = text
        .get(1..=digits)
        .and_then(|digits| u32::from_str_radix(digits, 8).ok());
    out.push(
        value
            .and_then(char::from_u32)
            .unwrap_or(char::REPLACEMENT_CHARACTER),
    );
    1 + digits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> String {
        let literal = literal(text, 0, 512).unwrap();
        assert!(literal.complete, "{text}");
        literal.json
    }

    #[test]
    fn literals_become_json() {
        for (python, expected) in [
            ("'it\\'s 5\" wide'", r#""it's 5\" wide""#),
            ("'it's'", r#""it's""#),
            ("{(1, 2): 3}", r#"{"[1,2]":3}"#),
            ("{('a', 2): 3}", r#"{"[\"a\",2]":3}"#),
            (
                "{'k': {'z': None}, 1: True}",
                r#"{"k":{"z":null},"1":true}"#,
            ),
            ("(1, 2)", "[1,2]"),
            ("(1)", "1"),
            ("(1,)", "[1]"),
            ("{1, 2}", "[1,2]"),
            ("{}", "{}"),
            ("()", "[]"),
            ("[[], [1.5, -0.5, .5, 2.]]", "[[],[1.5,-0.5,0.5,2.0]]"),
            ("0x1F", "31"),
            ("1_000", "1000"),
            ("r'\\d+'", r#""\\d+""#),
            ("'a' \"b\"", r#""ab""#),
            ("'''a\n'b'\n'''", r#""a\n'b'\n""#),
            ("'\\u00e9\\x41\\101'", "\"éAA\""),
            ("'\\ud83d\\ude00'", "\"😀\""),
            ("007", r#""007""#),
            ("[true, null]", "[true,null]"),
            ("[1, 2,]", "[1,2]"),
        ] {
            assert_eq!(json(python), expected, "{python}");
        }
    }

    #[test]
    fn what_is_cut_off_is_closed() {
        for (python, expected) in [
            ("'abc", r#""abc""#),
            ("[1, {'a': 'b", r#"[1,{"a":"b"}]"#),
            ("{'a': ", r#"{"a":null}"#),
            ("{'a': 1, 'b", r#"{"a":1}"#),
            ("{'a': {'x': 1, 'b'", r#"{"a":{"x":1}}"#),
            ("{'a': 'x, ', 'b", r#"{"a":"x, "}"#),
        ] {
            let literal = literal(python, 0, 512).unwrap();
            assert_eq!(literal.json, expected);
            assert!(!literal.complete);
        }
    }

    #[test]
    fn what_is_no_literal_is_refused() {
        for python in [
            "f(x)",
            "1e999",
            "]",
            ": 1",
            "{{'a': 1}: 2}",
            "{'a': 1, 'b'}",
            "{'a': 1, 'b', 'c': 2}",
            "{'a': b: 2}",
            "{'a': b:",
            "{1 2: 3}",
            "{1 2}",
            "{(('a',), {('b',): 1}): 2}",
        ] {
            assert!(literal(python, 0, 512).is_err(), "{python}");
        }
        assert!(literal(&"[".repeat(600), 0, 512).is_err());
    }
}
