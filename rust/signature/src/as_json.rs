//! Canonical values as JSON text, for people: keys in canonical order.

use std::fmt::Write;

use crate::canon::MAX_DECIMAL_DIGITS;
use crate::value::{Token, Value};

/// Bytes of a magnitude that may have more than [`MAX_DECIMAL_DIGITS`] digits: 2.408 digits each.
const MAX_DECIMAL_BYTES: usize = MAX_DECIMAL_DIGITS * 1000 / 2409;

/// Decimal digits that are split off a magnitude at a time.
const CHUNK_DIGITS: usize = 9;
const CHUNK: u64 = 1_000_000_000;

impl Value<'_> {
    /// The value as JSON text, in linear time and without recursion.
    ///
    /// Lone surrogates are escaped, NaN and the infinities written as Python's `json` does, and
    /// an integer of more digits than Python reads back is a text in hexadecimal.
    ///
    /// ```
    /// use turnwarden_signature::Canon;
    ///
    /// let canon = Canon::from_json(r#"{"b": [1.0, "x\ty"], "a": {}}"#).unwrap_or_default();
    /// assert_eq!(canon.value().to_json(), r#"{"a":{},"b":[1,"x\u0009y"]}"#);
    /// ```
    #[must_use]
    pub fn to_json(self) -> String {
        let mut text = String::with_capacity(self.as_bytes().len());
        let mut open: Vec<Container> = Vec::new();
        for token in self.tokens() {
            if matches!(token, Token::EndArray | Token::EndObject) {
                text.push(if token == Token::EndArray { ']' } else { '}' });
                open.pop();
                continue;
            }
            if let Some(container) = open.last_mut() {
                text.push_str(container.separator());
            }
            match token {
                Token::BeginArray => open.push(Container::of(false)),
                Token::BeginObject => open.push(Container::of(true)),
                _ => {}
            }
            write_token(&mut text, &token);
        }
        text
    }
}

/// An array or object that is not closed yet.
struct Container {
    is_object: bool,
    /// Keys and values written so far.
    written: usize,
}

impl Container {
    fn of(is_object: bool) -> Self {
        Self {
            is_object,
            written: 0,
        }
    }

    /// What stands before the next key or value.
    fn separator(&mut self) -> &'static str {
        self.written += 1;
        match self.written {
            1 => "",
            written if self.is_object && written % 2 == 0 => ":",
            _ => ",",
        }
    }
}

fn write_token(text: &mut String, token: &Token<'_>) {
    match token {
        Token::Null => text.push_str("null"),
        Token::Boolean(value) => text.push_str(if *value { "true" } else { "false" }),
        // Writing to a string does not fail.
        Token::Integer(value) => drop(write!(text, "{value}")),
        Token::BigInteger {
            negative,
            magnitude,
        } => write_big(text, *negative, magnitude),
        Token::Digits(digits) => text.push_str(&String::from_utf8_lossy(digits)),
        Token::Float(value) if value.is_nan() => text.push_str("NaN"),
        Token::Float(value) if value.is_infinite() => {
            text.push_str(if *value > 0.0 {
                "Infinity"
            } else {
                "-Infinity"
            });
        }
        Token::Float(value) => drop(write!(text, "{value:?}")),
        Token::String(bytes) => write_string(text, bytes),
        Token::BeginArray => text.push('['),
        Token::BeginObject => text.push('{'),
        Token::EndArray | Token::EndObject => {}
    }
}

fn write_big(text: &mut String, negative: bool, magnitude: &[u8]) {
    let sign = if negative { "-" } else { "" };
    if magnitude.len() > MAX_DECIMAL_BYTES {
        let _ = write!(text, "\"{sign}0x");
        for byte in magnitude.iter().rev() {
            let _ = write!(text, "{byte:02x}");
        }
        text.push('"');
        return;
    }
    text.push_str(sign);
    text.push_str(&decimal(magnitude));
}

/// The decimal digits of a magnitude of few bytes, lowest byte first.
fn decimal(magnitude: &[u8]) -> String {
    let mut words: Vec<u64> = magnitude
        .chunks(4)
        .map(|chunk| {
            let bytes = chunk.iter().rev();
            bytes.fold(0, |word, &byte| word << 8 | u64::from(byte))
        })
        .collect();
    let mut chunks = Vec::new();
    while !words.is_empty() {
        let mut rest = 0;
        for word in words.iter_mut().rev() {
            let value = rest << 32 | *word;
            *word = value / CHUNK;
            rest = value % CHUNK;
        }
        chunks.push(rest);
        while words.last() == Some(&0) {
            words.pop();
        }
    }
    let mut digits = chunks.pop().unwrap_or(0).to_string();
    for chunk in chunks.iter().rev() {
        let _ = write!(digits, "{chunk:0CHUNK_DIGITS$}");
    }
    digits
}

/// A string, which may hold surrogates (WTF-8).
fn write_string(text: &mut String, bytes: &[u8]) {
    text.push('"');
    let mut rest = bytes;
    while !rest.is_empty() {
        let valid = match std::str::from_utf8(rest) {
            Ok(valid) => valid,
            Err(error) => {
                let valid = rest.get(..error.valid_up_to()).unwrap_or_default();
                std::str::from_utf8(valid).unwrap_or_default()
            }
        };
        write_escaped(text, valid);
        rest = rest.get(valid.len()..).unwrap_or_default();
        if let Some((&[_, second, third], after)) = rest.split_first_chunk::<3>() {
            let unit = 0xd000 | u32::from(second & 0x3f) << 6 | u32::from(third & 0x3f);
            let _ = write!(text, "\\u{unit:04x}");
            rest = after;
        } else {
            break;
        }
    }
    text.push('"');
}

fn write_escaped(text: &mut String, plain: &str) {
    for c in plain.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            c if c < ' ' => drop(write!(text, "\\u{:04x}", u32::from(c))),
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::canon::Canon;

    #[test]
    fn text_and_canon_carry_the_same_value() {
        for json in [
            "null",
            "[]",
            "{}",
            r#"{"a":[],"b":{"c":[true,false,null]},"d":""}"#,
            r"[0,-1,9223372036854775807,-9223372036854775808,0.1,-2.5e-7,1e300]",
            r"[18446744073709551616,-340282366920938463463374607431768211456]",
            r#"["\"\\/ é 工 𝕀","\ud800x","\udc00"]"#,
            "[NaN,Infinity,-Infinity]",
        ] {
            let canon = Canon::from_json(json).unwrap_or_default();
            let text = canon.value().to_json();
            let again = Canon::from_json(&text).unwrap_or_default();
            assert_eq!(again.as_bytes(), canon.as_bytes(), "{json} became {text}");
            assert!(!text.is_empty());
        }
    }

    #[test]
    fn integers_of_any_size_are_written() {
        let digits = "123456789".repeat(400);
        let canon = Canon::from_json(&digits).unwrap_or_default();
        assert_eq!(canon.value().to_json(), digits);
        let mut huge = Canon::default();
        huge.big_integer(true, &[0xab; 2000]);
        assert_eq!(
            huge.value().to_json(),
            format!("\"-0x{}\"", "ab".repeat(2000))
        );
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = "[".repeat(10_000) + &"]".repeat(10_000);
        let canon = Canon::from_json(&deep).unwrap_or_default();
        assert_eq!(canon.value().to_json(), deep);
    }
}
