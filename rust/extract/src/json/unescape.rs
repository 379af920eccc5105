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
pub(super) fn decode(mut body: &str, text: &mut String) {
    while let Some(at) = memchr::memchr(b'\\', body.as_bytes()) {
        let (plain, rest) = body.split_at(at);
        text.push_str(plain);
        let length = match rest.as_bytes().get(1) {
            Some(b'u') => decode_unicode(rest, text),
            Some(&escape) => {
                text.push(simple(escape));
                // Only ASCII follows a backslash in valid JSON.
                2
            }
            None => 1,
        };
        body = rest.get(length..).unwrap_or_default();
    }
    text.push_str(body);
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
