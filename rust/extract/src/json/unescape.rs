//! Decoding JSON string literals.

use std::borrow::Cow;

/// Decodes a string literal of healed output: without its quotes, escapes replaced, surrogate
/// pairs joined. Half a pair becomes U+FFFD.
///
/// Linear in the literal; borrows when it holds no escape.
///
/// # Examples
///
/// ```
/// use turnwarden_extract::json::unescape;
///
/// assert_eq!(unescape(r#""a\tb \ud83d\ude00""#), "a\tb \u{1f600}");
/// ```
#[must_use]
pub fn unescape(literal: &str) -> Cow<'_, str> {
    let body = literal.strip_prefix('"').unwrap_or(literal);
    let body = body.strip_suffix('"').unwrap_or(body);
    let Some(first) = memchr::memchr(b'\\', body.as_bytes()) else {
        return Cow::Borrowed(body);
    };
    let mut text = String::with_capacity(body.len());
    text.push_str(body.get(..first).unwrap_or_default());
    decode(body.get(first..).unwrap_or_default(), &mut text);
    Cow::Owned(text)
}

/// Appends the decoded body of a literal; `body` may begin anywhere outside an escape.
///
/// An escaped quote, backslash or slash stands for itself, so the run of plain text after such an
/// escape begins with it: code in a string is copied once an escape, not twice.
pub(super) fn decode(body: &str, text: &mut String) {
    let bytes = body.as_bytes();
    let (mut run, mut from) = (0, 0);
    while let Some(at) = next_backslash(bytes, from) {
        text.push_str(body.get(run..at).unwrap_or_default());
        (run, from) = match bytes.get(at + 1) {
            Some(b'"' | b'\\' | b'/') => (at + 1, at + 2),
            Some(b'u') => {
                let rest = body.get(at..).unwrap_or_default();
                let end = at + decode_unicode(rest, text);
                (end, end)
            }
            Some(&escape) => {
                text.push(simple(escape));
                // Only ASCII follows a backslash in valid JSON.
                (at + 2, at + 2)
            }
            None => (at + 1, at + 1),
        };
    }
    text.push_str(body.get(run..).unwrap_or_default());
}

/// The first backslash at or after `from`.
///
/// In text with escapes the next one is seldom far: a few words are looked at here before memchr,
/// whose start costs more than they do.
fn next_backslash(bytes: &[u8], from: usize) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let mut at = from;
    for _ in 0..6 {
        let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) else {
            break;
        };
        let word = u64::from_le_bytes(*word) ^ (ONES * u64::from(b'\\'));
        let found = word.wrapping_sub(ONES) & !word & HIGHS;
        if found != 0 {
            return Some(at + (found.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    let rest = bytes.get(at..)?;
    memchr::memchr(b'\\', rest).map(|found| at + found)
}

fn simple(escape: u8) -> char {
    match escape {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        other => char::from(other),
    }
}

fn decode_unicode(rest: &str, text: &mut String) -> usize {
    let first = unit(rest);
    let second = rest
        .get(6..)
        .filter(|next| next.starts_with("\\u"))
        .map_or(0, unit);
    let pair = char::decode_utf16([first, second]).next();
    if let (0xd800..0xdc00, Some(Ok(character))) = (first, pair) {
        text.push(character);
        12
    } else {
        text.push(char::from_u32(u32::from(first)).unwrap_or(char::REPLACEMENT_CHARACTER));
        6
    }
}

fn unit(escape: &str) -> u16 {
    escape
        .get(2..6)
        .and_then(|digits| u16::from_str_radix(digits, 16).ok())
        .unwrap_or(0xfffd)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::unescape;

    proptest! {
        #[test]
        fn literals_are_read_as_another_reader_reads_them(
            text in r#"([a-z]{0,40}|["\\/]{0,3}|[\n\t\x08\x0c\x01]|\PC){0,12}"#,
            escape_slashes: bool,
        ) {
            let mut literal = serde_json::to_string(&text).unwrap();
            if escape_slashes {
                literal = literal.replace('/', "\\/");
            }
            prop_assert_eq!(unescape(&literal), text);
        }
    }
}
