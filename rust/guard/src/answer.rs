//! What a call brought, in the few bytes that the rules need: a hash and what the text says.
//!
//! Results are compared whole, as hashes, after parts that change at every call are masked: time
//! stamps, durations, uuids, process ids, addresses of objects, and the values of keys that name
//! such things. Other numbers and a plain `id` always count: a new resource is progress.
//!
//! The text is read once, word by word, and never copied: what lies between two masked parts goes
//! to the hash as it stands. There is no regex engine here; the cost is about a nanosecond a byte.

use std::fmt::Write;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use turnwarden_signature::{Token, Value};

/// What one call brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Of the masked text.
    pub hash: u64,
    marks: u8,
}

/// What an answer says, in the bits of [`Answer::marks`].
mod mark {
    pub(super) const FAILED: u8 = 1;
    pub(super) const TRANSIENT: u8 = 2;
    pub(super) const UNKNOWN_TOOL: u8 = 4;
    pub(super) const NOTHING: u8 = 8;
    pub(super) const WORDY: u8 = 16;
}

impl Answer {
    /// Reads a result: an error if its text begins with `Error` or `Traceback`.
    #[must_use]
    pub fn of_result(text: &str) -> Self {
        Self::new(text, begins_as_error(text))
    }

    /// Reads an error.
    #[must_use]
    pub fn of_error(text: &str) -> Self {
        Self::new(text, true)
    }

    fn new(text: &str, failed: bool) -> Self {
        let said = if failed {
            mark::FAILED | said_by_error(text)
        } else if says_nothing_found(text) {
            mark::NOTHING
        } else {
            0
        };
        let is_wordy = text.split_whitespace().nth(1).is_some();
        Self {
            hash: masked_hash(text),
            marks: said | if is_wordy { mark::WORDY } else { 0 },
        }
    }

    /// What it says, as bits in the order of the methods below.
    pub(crate) const fn marks(self) -> u8 {
        self.marks
    }

    /// An error was given, or the text begins as one.
    #[must_use]
    pub const fn failed(self) -> bool {
        self.marks & mark::FAILED != 0
    }

    /// An error that goes away by waiting.
    #[must_use]
    pub const fn transient(self) -> bool {
        self.marks & mark::TRANSIENT != 0
    }

    /// The tool that was asked for does not exist.
    #[must_use]
    pub const fn unknown_tool(self) -> bool {
        self.marks & mark::UNKNOWN_TOOL != 0
    }

    /// A search that found nothing.
    #[must_use]
    pub const fn nothing(self) -> bool {
        self.marks & mark::NOTHING != 0
    }

    /// More than one word, so that equal answers are no coincidence.
    #[must_use]
    pub const fn wordy(self) -> bool {
        self.marks & mark::WORDY != 0
    }
}

/// Keys whose values change at every call. Underscores, hyphens and case do not matter.
pub const VOLATILE_KEYS: &[&str] = &[
    "pid",
    "processid",
    "duration",
    "durationms",
    "elapsed",
    "elapsedms",
    "took",
    "tookms",
    "ts",
    "timestamp",
    "time",
    "date",
    "createdat",
    "updatedat",
    "sentat",
    "startedat",
    "finishedat",
    "uuid",
    "messageid",
    "requestid",
    "traceid",
    "spanid",
    "correlationid",
    "eventid",
    "sessionid",
    "idempotencykey",
    "nonce",
    "etag",
];

/// The keys among them that mean the same in running text, as in `request_id=7f3a`.
const VOLATILE_IN_TEXT: &[&str] = &[
    "pid",
    "processid",
    "durationms",
    "elapsedms",
    "tookms",
    "timestamp",
    "uuid",
    "messageid",
    "requestid",
    "traceid",
    "spanid",
    "correlationid",
    "eventid",
    "sessionid",
    "idempotencykey",
    "nonce",
    "etag",
];

/// What makes a number a duration.
pub const DURATION_UNITS: &[&str] = &[
    "ms", "s", "sec", "secs", "second", "seconds", "min", "mins", "minute", "minutes",
];

const LONGEST_KEY: usize = 24;
const LONGEST_NAME: usize = 128;
const MONTHS: &[&[u8; 3]] = &[
    b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec",
];

/// Hash of the text without what changes at every call.
#[must_use]
pub fn masked_hash(text: &str) -> u64 {
    let mut hasher = blake3::Hasher::new();
    let bytes = text.as_bytes();
    let mut plain_from = 0;
    for_each_volatile_part(bytes, |start, end| {
        if let Some(plain) = bytes.get(plain_from..start) {
            hasher.update(plain);
        }
        hasher.update(&[0xFF]); // no byte of UTF-8
        plain_from = end;
    });
    hasher.update(bytes.get(plain_from..).unwrap_or_default());
    let mut head = [0; 8];
    hasher.finalize_xof().fill(&mut head);
    u64::from_le_bytes(head)
}

/// The text with `*` in place of each volatile part: what the hash is made of, for people.
#[must_use]
pub fn mask(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut copied = 0;
    for_each_volatile_part(text.as_bytes(), |start, end| {
        masked.push_str(text.get(copied..start).unwrap_or_default());
        masked.push('*');
        copied = end;
    });
    masked.push_str(text.get(copied..).unwrap_or_default());
    masked
}

/// The text of a result that is a value: compact JSON with keys in canonical order.
///
/// Numbers that JSON does not have are written in words.
#[must_use]
pub fn text_of_value(value: Value<'_>) -> String {
    let mut text = String::with_capacity(value.as_bytes().len());
    // A comma is due before the next value; whether it stands in an object, and as a key.
    let mut comma_due = false;
    let mut objects: Vec<bool> = Vec::new();
    let mut key = false;
    for token in value.tokens() {
        let closes = matches!(token, Token::EndArray | Token::EndObject);
        if comma_due && !closes {
            text.push(',');
        }
        comma_due = true;
        match token {
            Token::BeginArray | Token::BeginObject => {
                let object = token == Token::BeginObject;
                text.push(if object { '{' } else { '[' });
                objects.push(object);
                key = object;
                comma_due = false;
                continue;
            }
            Token::EndArray | Token::EndObject => {
                text.push(if token == Token::EndObject { '}' } else { ']' });
                objects.pop();
            }
            Token::String(bytes) if key => {
                push_string(&mut text, bytes);
                text.push(':');
                key = false;
                comma_due = false;
                continue;
            }
            Token::String(bytes) => push_string(&mut text, bytes),
            other => push_scalar(&mut text, other),
        }
        key = objects.last() == Some(&true);
    }
    text
}

fn push_scalar(text: &mut String, token: Token<'_>) {
    // Writing to a string does not fail.
    let _ = match token {
        Token::Boolean(value) => write!(text, "{value}"),
        Token::Integer(value) => write!(text, "{value}"),
        Token::Float(value) => write!(text, "{value}"),
        Token::Digits(digits) => write!(text, "{}", String::from_utf8_lossy(digits)),
        Token::BigInteger {
            negative,
            magnitude,
        } => {
            let sign = if negative { "-" } else { "" };
            let digits = magnitude.iter().rev().map(|byte| format!("{byte:02x}"));
            write!(text, "{sign}0x{}", digits.collect::<String>())
        }
        _ => write!(text, "null"),
    };
}

fn push_string(text: &mut String, bytes: &[u8]) {
    text.push('"');
    let plain = String::from_utf8_lossy(bytes);
    let mut rest = &*plain;
    while let Some(at) = rest.find(['"', '\\']) {
        let (before, after) = rest.split_at(at);
        text.push_str(before);
        text.push('\\');
        let (mark, after) = after.split_at(1);
        text.push_str(mark);
        rest = after;
    }
    text.push_str(rest);
    text.push('"');
}

/// What a byte can begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Other,
    Letter,
    Digit,
}

static CLASSES: [Class; 256] = classes();

const fn classes() -> [Class; 256] {
    let mut table = [Class::Other; 256];
    let mut byte = 0_u8;
    loop {
        if byte.is_ascii_digit() {
            table[byte as usize] = Class::Digit;
        } else if byte.is_ascii_alphabetic() || byte == b'_' {
            table[byte as usize] = Class::Letter;
        }
        if byte == 255 {
            return table;
        }
        byte += 1;
    }
}

fn class(bytes: &[u8], at: usize) -> Class {
    bytes
        .get(at)
        .map_or(Class::Other, |&byte| CLASSES[usize::from(byte)])
}

/// Calls `found` with the start and end of each volatile part, from left to right.
fn for_each_volatile_part(bytes: &[u8], mut found: impl FnMut(usize, usize)) {
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        match class(bytes, at) {
            Class::Other => {
                at += 1;
                continue;
            }
            Class::Digit => {
                if let Some(end) = end_of_number_part(bytes, start) {
                    found(start, end);
                    at = end;
                    continue;
                }
            }
            Class::Letter => {}
        }
        while class(bytes, at) != Class::Other {
            at += 1;
        }
        if class(bytes, start) == Class::Letter {
            if let Some((from, end)) = part_after_word(bytes, start, at) {
                found(from, end);
                at = end;
            }
        }
        // Nothing in the middle of a word is volatile.
        while class(bytes, at) != Class::Other && class(bytes, at - 1) != Class::Other {
            at += 1;
        }
    }
}

// Parts that begin with a digit.

/// One past a time stamp, uuid or duration that begins at `start`.
fn end_of_number_part(bytes: &[u8], start: usize) -> Option<usize> {
    let digits = count_digits(bytes, start);
    let after = start + digits;
    match bytes.get(after) {
        Some(b'-' | b'/') if digits == 4 => end_of_dated_time(bytes, start),
        Some(b'/' | b'-' | b' ') if digits <= 2 => end_of_day_month_time(bytes, start)
            .or_else(|| end_of_duration(bytes, after))
            .or_else(|| end_of_uuid(bytes, start)),
        Some(b':') if digits <= 2 => end_of_exact_clock(bytes, start),
        Some(b'.' | b' ') => end_of_duration(bytes, after),
        Some(b'-') if digits == 8 => end_of_uuid(bytes, start),
        Some(byte) if byte.is_ascii_alphabetic() => {
            end_of_duration(bytes, after).or_else(|| end_of_uuid(bytes, start))
        }
        _ => None,
    }
}

fn count_digits(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// `2026-01-05T10:20:30.123Z`, `2026/01/05 10:20`
fn end_of_dated_time(bytes: &[u8], start: usize) -> Option<usize> {
    let separator = bytes.get(start + 4)?;
    let is_date = count_digits(bytes, start + 5) == 2
        && bytes.get(start + 7) == Some(separator)
        && count_digits(bytes, start + 8) == 2
        && matches!(bytes.get(start + 10), Some(b'T' | b't' | b' ' | b'_'));
    is_date.then(|| end_of_clock(bytes, start + 11)).flatten()
}

/// `05/Jan/2026:10:20:30 +0000`, `05 Jan 2026 10:20:30 GMT`, `05-Jan-2026 10:20`
fn end_of_day_month_time(bytes: &[u8], start: usize) -> Option<usize> {
    let month = start + count_digits(bytes, start) + 1;
    if !is_month(bytes, month) {
        return None;
    }
    let year = month + 4;
    let digits = count_digits(bytes, year);
    if digits != 4 || !matches!(bytes.get(year + 4), Some(b':' | b' ')) {
        return None;
    }
    end_of_clock(bytes, year + 5)
}

/// A time of day with its zone: `10:20`, `10:20:30.123+02:00`
fn end_of_clock(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    if !(count_digits(bytes, at) == 2 && bytes.get(at + 2) == Some(&b':')) {
        return None;
    }
    at += 3;
    if count_digits(bytes, at) != 2 {
        return None;
    }
    at += 2;
    if bytes.get(at) == Some(&b':') && count_digits(bytes, at + 1) == 2 {
        at += 3;
    }
    if matches!(bytes.get(at), Some(b'.' | b',')) {
        let fraction = count_digits(bytes, at + 1);
        at += if fraction > 0 { fraction + 1 } else { 0 };
    }
    Some(end_of_zone(bytes, at))
}

/// One past `Z`, `+02:00`, ` +0000`, ` GMT` or nothing.
fn end_of_zone(bytes: &[u8], at: usize) -> usize {
    if matches!(bytes.get(at), Some(b'Z' | b'z')) {
        return at + 1;
    }
    let named: [&[u8]; 2] = [b" GMT", b" UTC"];
    if let Some(name) = named.iter().find(|name| starts_with(bytes, at, name)) {
        return at + name.len();
    }
    let sign = at + usize::from(bytes.get(at) == Some(&b' '));
    if !matches!(bytes.get(sign), Some(b'+' | b'-')) {
        return at;
    }
    match (count_digits(bytes, sign + 1), bytes.get(sign + 3)) {
        (4, _) => sign + 5,
        (2, Some(b':')) if count_digits(bytes, sign + 4) == 2 => sign + 6,
        _ => at,
    }
}

/// A time of day alone is volatile only where logs write it: with a fraction of a second, or in
/// brackets. `06:00:00` may be when a train leaves.
fn end_of_exact_clock(bytes: &[u8], start: usize) -> Option<usize> {
    let end = end_of_clock(bytes, start)?;
    let text = bytes.get(start..end)?;
    let to_the_second = text.iter().skip(3).any(|&byte| byte == b':');
    let fraction = text.iter().any(|byte| matches!(byte, b'.' | b','));
    let before = start.checked_sub(1).and_then(|at| bytes.get(at));
    let bracketed = before == Some(&b'[') && bytes.get(end) == Some(&b']');
    (to_the_second && (fraction || bracketed)).then_some(end)
}

fn end_of_uuid(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    for (group, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if group > 0 {
            if bytes.get(at) != Some(&b'-') {
                return None;
            }
            at += 1;
        }
        if !bytes
            .get(at..at + length)?
            .iter()
            .all(u8::is_ascii_hexdigit)
        {
            return None;
        }
        at += length;
    }
    (class(bytes, at) == Class::Other).then_some(at)
}

/// The rest of a number and a unit of time: `.25s`, ` ms`, `seconds`
fn end_of_duration(bytes: &[u8], after_digits: usize) -> Option<usize> {
    let mut at = after_digits;
    if bytes.get(at) == Some(&b'.') {
        let fraction = count_digits(bytes, at + 1);
        if fraction == 0 {
            return None;
        }
        at += 1 + fraction;
    }
    at += usize::from(bytes.get(at) == Some(&b' '));
    let unit = bytes.get(at..)?;
    let length = unit
        .iter()
        .take(8)
        .take_while(|byte| byte.is_ascii_alphabetic())
        .count();
    let name = unit.get(..length)?;
    let is_unit = DURATION_UNITS.iter().any(|known| known.as_bytes() == name);
    (is_unit && class(bytes, at + length) == Class::Other).then_some(at + length)
}

// Parts that begin with a letter.

/// The volatile part that a word is or that it announces, if there is one.
fn part_after_word(bytes: &[u8], start: usize, end: usize) -> Option<(usize, usize)> {
    let word = bytes.get(start..end)?;
    match bytes.get(end) {
        Some(b'"' | b'\'' | b':' | b'=') => part_after_key(bytes, start, end),
        Some(b'-') if word.len() == 8 => Some((start, end_of_uuid(bytes, start)?)),
        Some(b' ') if word.len() == 3 && is_month(bytes, start) => {
            Some((start, end_of_month_time(bytes, end)?))
        }
        Some(b' ') if word.eq_ignore_ascii_case(b"pid") => {
            let digits = count_digits(bytes, end + 1);
            (digits > 0).then_some((end + 1, end + 1 + digits))
        }
        Some(b' ') if word == b"at" && starts_with(bytes, end + 1, b"0x") => {
            let address = bytes.get(end + 3..)?;
            let digits = address
                .iter()
                .take(17)
                .take_while(|byte| byte.is_ascii_hexdigit())
                .count();
            (6..=16)
                .contains(&digits)
                .then_some((end + 1, end + 3 + digits))
        }
        _ => None,
    }
}

/// `Jan  5 10:20:30`, `Jan 5, 2026 10:20`: from the space after the month.
fn end_of_month_time(bytes: &[u8], after_month: usize) -> Option<usize> {
    let mut at = skip_spaces(bytes, after_month);
    let day = count_digits(bytes, at);
    if !(1..=2).contains(&day) {
        return None;
    }
    at += day + usize::from(bytes.get(at + day) == Some(&b','));
    at = skip_spaces(bytes, at);
    if count_digits(bytes, at) == 4 {
        at = skip_spaces(bytes, at + 4);
    }
    end_of_clock(bytes, at)
}

fn skip_spaces(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest
        .iter()
        .take(3)
        .take_while(|&&byte| byte == b' ')
        .count()
}

/// The value of a volatile key: `"pid": 17`, `'took' : 3.5`, `request_id=7f3a`.
fn part_after_key(bytes: &[u8], start: usize, end: usize) -> Option<(usize, usize)> {
    let quote = bytes
        .get(end)
        .copied()
        .filter(|byte| matches!(byte, b'"' | b'\''));
    let mut at = end + usize::from(quote.is_some());
    at = skip_spaces(bytes, at);
    if !matches!(bytes.get(at), Some(b':' | b'=')) {
        return None;
    }
    let keys = if quote.is_some() {
        VOLATILE_KEYS
    } else {
        VOLATILE_IN_TEXT
    };
    if !is_key_among(key_ending_at(bytes, start, end), keys) {
        return None;
    }
    at = skip_spaces(bytes, at + 1);
    let value_end = match bytes.get(at)? {
        quote @ (b'"' | b'\'') => end_of_string(bytes, at, *quote)?,
        _ if quote.is_some() => end_of_plain_number(bytes, at)?,
        _ => end_of_number_part(bytes, at).or_else(|| end_of_token(bytes, at))?,
    };
    Some((at, value_end))
}

/// The key whose last word stands at `start..end`, with the words before it as in `x-request-id`.
fn key_ending_at(bytes: &[u8], start: usize, end: usize) -> &[u8] {
    let before = bytes.get(end.saturating_sub(LONGEST_KEY)..start);
    let more = before
        .unwrap_or_default()
        .iter()
        .rev()
        .take_while(|&&byte| byte == b'-' || CLASSES[usize::from(byte)] != Class::Other)
        .count();
    let key = bytes.get(start - more..end).unwrap_or_default();
    let unofficial = key.strip_prefix(b"x-").or_else(|| key.strip_prefix(b"X-"));
    unofficial.unwrap_or(key)
}

fn is_key_among(word: &[u8], keys: &[&str]) -> bool {
    if word.len() > LONGEST_KEY {
        return false;
    }
    let letters = || {
        let kept = word.iter().filter(|&&byte| byte != b'_' && byte != b'-');
        kept.map(u8::to_ascii_lowercase)
    };
    keys.iter().any(|key| letters().eq(key.bytes()))
}

fn end_of_string(bytes: &[u8], start: usize, quote: u8) -> Option<usize> {
    let mut escaped = false;
    for (at, &byte) in bytes.iter().enumerate().skip(start + 1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            _ if byte == quote => return Some(at + 1),
            // A value that changes at every call is short; what runs on is a text.
            _ if at - start > 256 => return None,
            _ => {}
        }
    }
    None
}

fn end_of_plain_number(bytes: &[u8], start: usize) -> Option<usize> {
    let rest = bytes.get(start..)?;
    let length = rest
        .iter()
        .take_while(|byte| {
            byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
        })
        .count();
    (length > 0).then_some(start + length)
}

fn end_of_token(bytes: &[u8], start: usize) -> Option<usize> {
    let rest = bytes.get(start..)?;
    let length = rest
        .iter()
        .take(129)
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        .count();
    (1..=128).contains(&length).then_some(start + length)
}

fn is_month(bytes: &[u8], at: usize) -> bool {
    let Some(name) = bytes.get(at..at + 3) else {
        return false;
    };
    class(bytes, at + 3) == Class::Other
        && MONTHS.iter().any(|month| name.eq_ignore_ascii_case(*month))
}

fn starts_with(bytes: &[u8], at: usize, prefix: &[u8]) -> bool {
    bytes.get(at..).is_some_and(|rest| rest.starts_with(prefix))
}

// What results and errors say.

fn begins_as_error(text: &str) -> bool {
    let text = text.trim_start().as_bytes();
    [&b"error"[..], b"traceback"].iter().any(|word| {
        text.get(..word.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(word))
            && class(text, word.len()) == Class::Other
    })
}

/// What an error text can say, as phrases; they begin and end at the ends of words.
const TRANSIENT: &[&str] = &[
    "429",
    "502",
    "503",
    "504",
    "rate limit",
    "rate-limit",
    "rate_limit",
    "ratelimit",
    "too many requests",
    "overloaded",
    "timed out",
    "timedout",
    "time out",
    "timeout",
    "time-out",
    "econn",
    "etimedout",
    "connection refused",
    "temporarily unavailable",
];
const UNKNOWN_TOOL: &[&str] = &["unknown tool", "no such tool"];
/// Words that say the same when they follow `tool NAME`.
const TOOL_IS: &[&str] = &["not found", "not available", "does not exist", "unknown"];

static PHRASES: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostFirst)
        .build(TRANSIENT.iter().chain(UNKNOWN_TOOL).chain(&["tool "]))
        .ok()
});

/// What an error says, as marks.
fn said_by_error(text: &str) -> u8 {
    let mut said = 0;
    let Some(phrases) = PHRASES.as_ref() else {
        return said;
    };
    let bytes = text.as_bytes();
    for found in phrases.find_iter(text) {
        let before = found.start().checked_sub(1);
        let begins_word = before.is_none_or(|at| class(bytes, at) == Class::Other);
        let phrase = found.pattern().as_usize();
        if phrase < TRANSIENT.len() {
            // `rate limits`, `ECONNRESET` and the like run on
            let runs_on = ["rate", "econn"].iter().any(|open| {
                TRANSIENT
                    .get(phrase)
                    .is_some_and(|name| name.starts_with(open))
            });
            let ends_word = runs_on || class(bytes, found.end()) == Class::Other;
            if begins_word && ends_word {
                said |= mark::TRANSIENT;
            }
        } else {
            let says_all = phrase < TRANSIENT.len() + UNKNOWN_TOOL.len();
            if says_all || text.get(found.end()..).is_some_and(says_tool_is_unknown) {
                said |= mark::UNKNOWN_TOOL;
            }
        }
    }
    said
}

/// Whether what follows `tool ` is a name and then that there is no such tool.
fn says_tool_is_unknown(text: &str) -> bool {
    let bytes = text.as_bytes();
    let name = bytes
        .iter()
        .take(LONGEST_NAME)
        .position(u8::is_ascii_whitespace)
        .unwrap_or_default();
    let Some(rest) = bytes.get(name + 1..).filter(|_| name > 0) else {
        return false;
    };
    let rest = rest.strip_prefix(b"is ").unwrap_or(rest);
    TOOL_IS.iter().any(|says| {
        rest.get(..says.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(says.as_bytes()))
    })
}

/// What a search that found nothing says, all of it.
const NOTHING: &[&str] = &["", "[]", "{}", "null", "none", "0", "not found"];
/// What a line that begins so goes on to say does not matter.
const NOTHING_AND_WHY: &[&str] = &["nothing found", "could not find"];
/// `no matches`, `0 results`
const NOTHINGS: &[&str] = &[
    "matches", "match", "matching", "results", "result", "hits", "hit", "files", "file",
];

fn says_nothing_found(text: &str) -> bool {
    let line = text.trim();
    if line.contains('\n') {
        return false;
    }
    let says = |prefix: &str| {
        line.get(..prefix.len())
            .filter(|head| head.eq_ignore_ascii_case(prefix))
            .and_then(|_| line.get(prefix.len()..))
    };
    if NOTHING
        .iter()
        .any(|all| says(all.trim()) == Some("") || says(all) == Some("."))
    {
        return true;
    }
    if NOTHING_AND_WHY.iter().any(|head| says(head).is_some()) {
        return true;
    }
    let Some(rest) = says("no ").or_else(|| says("0 ")) else {
        return false;
    };
    let word = rest.split(|c: char| !c.is_ascii_alphanumeric()).next();
    word.is_some_and(|word| {
        NOTHINGS
            .iter()
            .any(|known| known.eq_ignore_ascii_case(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volatile_parts_are_masked_and_nothing_else() {
        for (text, masked) in [
            ("exit 1 at 2026-01-01T00:00:01Z", "exit 1 at *"),
            ("2026-01-05 10:20 ok", "* ok"),
            ("2026-01-05 10:20:30,123 INFO x", "* INFO x"),
            ("2026/01/05 10:20:30 x", "* x"),
            ("[05/Jan/2026:10:20:30 +0000] GET", "[*] GET"),
            ("Mon, 05 Jan 2026 10:20:30 GMT", "Mon, *"),
            ("Jan  5 10:20:30 host", "* host"),
            ("[10:20:30] up", "[*] up"),
            ("10:20:30.125 up", "* up"),
            ("leaves 06:00:00", "leaves 06:00:00"),
            ("due 2026-01-05", "due 2026-01-05"),
            ("4 failed in 0.31s", "4 failed in *"),
            ("waited 120 seconds, 3 min", "waited *, *"),
            ("3 mice 5sx 5.s", "3 mice 5sx 5.s"),
            ("id 123e4567-e89b-12d3-a456-426614174000.", "id *."),
            ("ab3e4567-e89b-12d3-a456-426614174000", "*"),
            ("1234567-e89b", "1234567-e89b"),
            ("pid 42, PID: 7, pid=9", "pid *, PID: *, pid=*"),
            ("<A object at 0x7f3a2b4c5d6e>", "<A object at *>"),
            (
                r#"{"id": 7, "requestId": "a\"b", "duration_ms":12.5, "n": 3}"#,
                r#"{"id": 7, "requestId": *, "duration_ms":*, "n": 3}"#,
            ),
            ("{'trace_id': 'x', 'time': 3}", "{'trace_id': *, 'time': *}"),
            ("request_id=7f-3a failed", "request_id=* failed"),
            ("X-Request-Id: 9f3", "X-Request-Id: *"),
            ("timestamp: 2026-01-05T10:20:30Z", "timestamp: *"),
            ("time: noon", "time: noon"),
            ("bytes 8192-16384", "bytes 8192-16384"),
            ("耗时35ms。", "耗时*。"),
            ("order_id=5 v1.2.3", "order_id=5 v1.2.3"),
            ("", ""),
        ] {
            assert_eq!(mask(text), masked, "{text:?}");
        }
    }

    #[test]
    fn values_read_as_compact_json() {
        let json = r#"{"a":[1,{},[],"x\"\\y",null],"b":{"c":true},"d":-2.5}"#;
        let canon = turnwarden_signature::Canon::from_json(json).unwrap_or_default();
        assert_eq!(text_of_value(canon.value()), json);
    }

    #[test]
    fn hashes_differ_where_masked_texts_do() {
        assert_eq!(masked_hash("took 3 ms"), masked_hash("took 4 ms"));
        assert_ne!(masked_hash("took 3 ms"), masked_hash("took  ms"));
        assert_ne!(masked_hash("step 3"), masked_hash("step 4"));
    }

    #[test]
    fn errors_begin_as_errors() {
        for text in [
            "Error: x",
            " error",
            "ERROR\n",
            "Traceback (most recent call last):",
        ] {
            assert!(Answer::of_result(text).failed(), "{text:?}");
        }
        for text in ["errors: 0", "no Error", "error_count 0", "exit 1", ""] {
            assert!(!Answer::of_result(text).failed(), "{text:?}");
        }
    }

    #[test]
    fn transient_errors_are_those_that_waiting_helps() {
        for text in [
            "429 rate limited, retry after 2s",
            "HTTP 503",
            "ECONNRESET",
            "Rate limits exceeded",
            "request timed out",
            "read timeout=3",
            "Connection refused",
        ] {
            assert!(Answer::of_error(text).transient(), "{text:?}");
        }
        for text in ["404", "4290", "timeouts_total", "not found", "x429"] {
            assert!(!Answer::of_error(text).transient(), "{text:?}");
        }
        assert!(!Answer::of_result("429 rows").transient());
    }

    #[test]
    fn unknown_tools_are_told_in_many_words() {
        for text in [
            "Unknown tool: x",
            "no such tool",
            "Tool x is not found",
            "tool `x` does not exist",
            "Error: Tool x not available here",
        ] {
            assert!(Answer::of_error(text).unknown_tool(), "{text:?}");
        }
        assert!(!Answer::of_error("tool x failed: file not found").unknown_tool());
    }

    #[test]
    fn nothing_found_is_said_in_one_line() {
        for text in [
            "",
            " \n",
            "[]",
            "No matches found",
            "no match",
            "0 results",
            "Not found.",
            "Could not find [x]. Similar: y",
            "null",
        ] {
            assert!(Answer::of_result(text).nothing(), "{text:?}");
        }
        for text in [
            "no news",
            "0x",
            "10 results",
            "No matches\nbut this",
            "none left",
        ] {
            assert!(!Answer::of_result(text).nothing(), "{text:?}");
        }
        assert!(!Answer::of_error("not found").nothing());
    }
}
