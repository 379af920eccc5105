//! Finds the parts of a result that change at every call.
//!
//! Each such part has a digit in it or is the value of a key, so the text is searched for digits,
//! colons and equals signs eight bytes at a time, and only what lies around one of them is looked
//! at. Nothing is copied, and every look around is bounded, so the cost is linear in any text.

use crate::config::ConfigError;

/// Keys whose values change at every call, in alphabetical order. Underscores, hyphens and case do
/// not matter.
pub const VOLATILE_KEYS: &[&str] = &[
    "correlationid",
    "createdat",
    "date",
    "duration",
    "durationms",
    "elapsed",
    "elapsedms",
    "etag",
    "eventid",
    "finishedat",
    "idempotencykey",
    "messageid",
    "nonce",
    "pid",
    "processid",
    "requestid",
    "sentat",
    "sessionid",
    "spanid",
    "startedat",
    "time",
    "timestamp",
    "took",
    "tookms",
    "traceid",
    "ts",
    "updatedat",
    "uuid",
];

/// The keys among them that mean something else in running text, as in `time: noon`.
const ONLY_WHEN_QUOTED: &[&str] = &[
    "duration",
    "elapsed",
    "took",
    "ts",
    "time",
    "date",
    "createdat",
    "updatedat",
    "sentat",
    "startedat",
    "finishedat",
];

/// What makes a number a duration.
pub const DURATION_UNITS: &[&str] = &[
    "ms", "s", "sec", "secs", "second", "seconds", "min", "mins", "minute", "minutes",
];

/// The same in Chinese, where no space has to follow. `分` alone may be a score.
const CHINESE_DURATION_UNITS: &[&str] = &["毫秒", "秒钟", "秒", "分钟"];

const MONTHS: &[&[u8; 3]] = &[
    b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec",
];

/// Longest key whose value can be volatile, in bytes.
pub const LONGEST_KEY: usize = 24;
const LONGEST_UNIT: usize = 7;
/// A value that changes at every call is short; what runs on is a text.
const LONGEST_VALUE: usize = 128;

/// The keys whose values change at every call: [`VOLATILE_KEYS`] with the user's changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolatileKeys {
    added: Vec<Box<str>>,
    removed: Vec<Box<str>>,
}

impl VolatileKeys {
    /// Adds a key or takes one out. Underscores, hyphens and case do not matter.
    ///
    /// # Errors
    /// The key, if it is empty, longer than [`LONGEST_KEY`] or not of ASCII letters, digits,
    /// underscores and hyphens: no other is recognised in a text.
    pub fn set(&mut self, key: &str, volatile: bool) -> Result<(), ConfigError> {
        let known = normal(key);
        let is_key = key.bytes().all(|byte| byte == b'-' || is_word_byte(byte));
        if known.is_empty() || key.len() > LONGEST_KEY || !is_key {
            return Err(ConfigError::new(
                "volatile_keys",
                format!("{key:?}"),
                format!("keys of 1 to {LONGEST_KEY} ASCII letters, digits, _ and -"),
            ));
        }
        let built_in = VOLATILE_KEYS.contains(&&*known);
        let changes = if built_in {
            &mut self.removed
        } else {
            &mut self.added
        };
        changes.retain(|other| *other != known);
        if volatile != built_in {
            changes.push(known);
        }
        Ok(())
    }

    /// The changes: each key with whether its values are volatile.
    pub fn changes(&self) -> impl Iterator<Item = (&str, bool)> {
        let added = self.added.iter().map(|key| (&**key, true));
        added.chain(self.removed.iter().map(|key| (&**key, false)))
    }

    /// Whether the value of this key changes at every call.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        if is_built_in(key) {
            return self.removed.is_empty() || !has_same(&self.removed, key);
        }
        !self.added.is_empty() && self.is_added(key)
    }

    fn is_added(&self, key: &[u8]) -> bool {
        key.len() <= LONGEST_KEY && has_same(&self.added, key)
    }

    /// Whether the value of this key is volatile in running text, as in `pid=42`.
    fn contains_unquoted(&self, key: &[u8]) -> bool {
        self.contains(key) && !is_among(key, ONLY_WHEN_QUOTED)
    }

    /// Whether a key can end with this byte after that one: most of those of others cannot.
    fn may_end(&self, last: u8, before: Option<u8>) -> bool {
        may_end_key(last, before)
            || (!self.added.is_empty() && (last == b'-' || is_word_byte(last)))
    }
}

fn is_among(key: &[u8], known: &[&str]) -> bool {
    known.iter().any(|known| is_same_key(key, known.as_bytes()))
}

fn has_same(keys: &[Box<str>], key: &[u8]) -> bool {
    keys.iter().any(|known| is_same_key(key, known.as_bytes()))
}

/// A key as it is compared.
fn normal(key: &str) -> Box<str> {
    let letters = key.chars().filter(|&c| c != '_' && c != '-');
    letters.map(|c| c.to_ascii_lowercase()).collect()
}

/// The text with `*` in place of each volatile part: what is compared, for people.
///
/// ```
/// use turnwarden_guard::{VolatileKeys, mask};
///
/// let mut keys = VolatileKeys::default();
/// assert_eq!(mask("4 failed in 0.31s", &keys), "4 failed in *");
/// assert_eq!(mask(r#"{"id": 7, "pid": 4012}"#, &keys), r#"{"id": 7, "pid": *}"#);
///
/// keys.set("build_number", true).unwrap();
/// assert_eq!(mask("buildNumber=17 ok", &keys), "buildNumber=* ok");
/// ```
#[must_use]
pub fn mask(text: &str, keys: &VolatileKeys) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut copied = 0;
    for (start, end) in VolatileParts::new(text.as_bytes(), keys) {
        masked.push_str(text.get(copied..start).unwrap_or_default());
        masked.push('*');
        copied = end;
    }
    masked.push_str(text.get(copied..).unwrap_or_default());
    masked
}

/// Start and end of each volatile part, from left to right.
#[derive(Clone, Debug)]
pub(crate) struct VolatileParts<'a> {
    bytes: &'a [u8],
    keys: &'a VolatileKeys,
    at: usize,
    /// End of the last part: no part begins before.
    done: usize,
}

impl<'a> VolatileParts<'a> {
    pub(crate) fn new(bytes: &'a [u8], keys: &'a VolatileKeys) -> Self {
        Self {
            bytes,
            keys,
            at: 0,
            done: 0,
        }
    }
}

impl Iterator for VolatileParts<'_> {
    type Item = (usize, usize);

    fn next(&mut self) -> Option<(usize, usize)> {
        loop {
            let at = next_anchor(self.bytes, self.at)?;
            let part = if is_digit(self.bytes, at) {
                part_at_digit(self.bytes, at)
            } else {
                part_after_delimiter(self.bytes, at, self.keys)
            };
            if let Some((start, end)) = part.filter(|part| part.0 >= self.done) {
                self.at = end;
                self.done = end;
                return Some((start, end));
            }
            // What is in the middle of a word is part of no other.
            self.at = end_of_word(self.bytes, at).max(at + 1);
        }
    }
}

/// The next digit, colon, equals sign, or one of the two signs between them.
fn next_anchor(bytes: &[u8], from: usize) -> Option<usize> {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * LOW;
    let mut at = from;
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*chunk);
        let low_bits = word & !HIGH;
        // The high bit of each byte: from '0' on, and not beyond '=', and ASCII.
        let from_zero = low_bits + (0x80 - 0x30) * LOW;
        let beyond_equals = low_bits + (0x7F - 0x3D) * LOW;
        let found = from_zero & !beyond_equals & !word & HIGH;
        if found != 0 {
            return Some(at + (found.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    let rest = bytes.get(at..)?;
    let offset = rest.iter().position(|byte| (b'0'..=b'=').contains(byte))?;
    Some(at + offset)
}

fn is_digit(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_some_and(u8::is_ascii_digit)
}

pub(crate) const fn is_word_byte(byte: u8) -> bool {
    WORD_BYTES[byte as usize]
}

/// Letters, digits and the underscore; a look-up costs a third of the comparisons.
const WORD_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 0x80 {
        table[byte as usize] = byte.is_ascii_alphanumeric() || byte == b'_';
        byte += 1;
    }
    table
};

/// Whether the byte at this place ends a word that comes before it; the end of the text does.
pub(crate) fn ends_word(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_none_or(|&byte| !is_word_byte(byte))
}

fn end_of_word(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let length = rest.iter().take_while(|&&byte| is_word_byte(byte)).count();
    at + length
}

/// Where the word begins that goes on at this place, looking back over at most so many bytes.
fn start_of_word(bytes: &[u8], at: usize, most: usize) -> usize {
    let before = bytes.get(at.saturating_sub(most)..at).unwrap_or_default();
    let length = before
        .iter()
        .rev()
        .take_while(|&&byte| is_word_byte(byte))
        .count();
    at - length
}

fn byte_before(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at.checked_sub(1)?).copied()
}

fn starts_with(bytes: &[u8], at: usize, prefix: &[u8]) -> bool {
    bytes.get(at..).is_some_and(|rest| rest.starts_with(prefix))
}

// Parts with a digit.

fn part_at_digit(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let before = byte_before(bytes, at).unwrap_or(b'\n');
    if is_word_byte(before) {
        // Letters before the first digit: of all parts only a uuid begins so.
        if !before.is_ascii_hexdigit() {
            return None;
        }
        let start = start_of_word(bytes, at, 8);
        let end = end_of_uuid(bytes, start)?;
        return ends_word_before(bytes, start).then_some((start, end));
    }
    let digits = count_digits(bytes, at);
    if let Some(end) = end_of_number_part(bytes, at, digits) {
        return Some((at, end));
    }
    match before {
        b' ' => part_after_space(bytes, at, digits),
        // The first group of a uuid may be letters alone.
        b'-' if digits <= 4 => {
            let start = at.checked_sub(9)?;
            let end = end_of_uuid(bytes, start)?;
            ends_word_before(bytes, start).then_some((start, end))
        }
        _ => None,
    }
}

fn ends_word_before(bytes: &[u8], start: usize) -> bool {
    byte_before(bytes, start).is_none_or(|byte| !is_word_byte(byte))
}

/// One past a time stamp, uuid or duration that begins with the digit at `start`.
fn end_of_number_part(bytes: &[u8], start: usize, digits: usize) -> Option<usize> {
    let after = start + digits;
    match bytes.get(after)? {
        b'-' | b'/' if digits == 4 => end_of_dated_time(bytes, start),
        b'-' if digits == 8 => end_of_uuid(bytes, start),
        b'/' | b'-' | b' ' if digits <= 2 => {
            end_of_day_month_time(bytes, start, after).or_else(|| end_of_duration(bytes, after))
        }
        b':' if digits <= 2 => end_of_exact_clock(bytes, start),
        b'.' | b' ' => end_of_duration(bytes, after),
        0xE5..=0xE7 if digits == 4 => {
            end_of_chinese_time(bytes, after).or_else(|| end_of_duration(bytes, after))
        }
        0xE5..=0xE7 => end_of_duration(bytes, after),
        byte if byte.is_ascii_lowercase() => {
            end_of_duration(bytes, after).or_else(|| end_of_uuid(bytes, start))
        }
        b'A'..=b'F' => end_of_uuid(bytes, start),
        _ => None,
    }
}

/// A number that a word before it makes volatile: `pid 42`, `at 0x7f3a2b4c`, `Jan  5 10:20:30`.
fn part_after_space(bytes: &[u8], at: usize, digits: usize) -> Option<(usize, usize)> {
    let spaces = 1 + usize::from(byte_before(bytes, at - 1) == Some(b' '));
    let word_end = at - spaces;
    // The last letters of `pid`, `at` and the months.
    let last = byte_before(bytes, word_end)?.to_ascii_lowercase();
    if !b"dtnbrylgpvc".contains(&last) {
        return None;
    }
    let word_start = start_of_word(bytes, word_end, 4);
    let word = bytes.get(word_start..word_end)?;
    if word.eq_ignore_ascii_case(b"pid") {
        return Some((at, at + digits));
    }
    if word == b"at" && starts_with(bytes, at, b"0x") {
        let address = bytes.get(at + 2..)?;
        let length = address
            .iter()
            .take(17)
            .take_while(|byte| byte.is_ascii_hexdigit())
            .count();
        return (6..=16).contains(&length).then_some((at, at + 2 + length));
    }
    let is_date = digits <= 2 && is_month(bytes, word_start) && word.len() == 3;
    let end = is_date.then(|| end_of_month_time(bytes, at + digits))??;
    Some((word_start, end))
}

fn count_digits(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Whether exactly two digits stand here.
fn two_digits(bytes: &[u8], at: usize) -> bool {
    is_digit(bytes, at) && is_digit(bytes, at + 1) && !is_digit(bytes, at + 2)
}

/// `2026-01-05T10:20:30.123Z`, `2026/01/05 10:20`
fn end_of_dated_time(bytes: &[u8], start: usize) -> Option<usize> {
    let separator = bytes.get(start + 4)?;
    let is_date = two_digits(bytes, start + 5)
        && bytes.get(start + 7) == Some(separator)
        && two_digits(bytes, start + 8)
        && matches!(bytes.get(start + 10), Some(b'T' | b't' | b' ' | b'_'));
    is_date.then(|| end_of_clock(bytes, start + 11)).flatten()
}

/// `05/Jan/2026:10:20:30 +0000`, `05 Jan 2026 10:20:30 GMT`, `05-Jan-2026 10:20`
fn end_of_day_month_time(bytes: &[u8], start: usize, after_day: usize) -> Option<usize> {
    let month = after_day + 1;
    if !is_month(bytes, month) || start + 2 < after_day {
        return None;
    }
    let year = month + 4;
    if count_digits(bytes, year) != 4 || !matches!(bytes.get(year + 4), Some(b':' | b' ')) {
        return None;
    }
    end_of_clock(bytes, year + 5)
}

/// What follows the day in `Jan  5 10:20:30`, `Jan 5, 2026 10:20`.
fn end_of_month_time(bytes: &[u8], after_day: usize) -> Option<usize> {
    let mut at = after_day + usize::from(bytes.get(after_day) == Some(&b','));
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

fn is_month(bytes: &[u8], at: usize) -> bool {
    let Some(name) = bytes.get(at..at + 3) else {
        return false;
    };
    ends_word(bytes, at + 3) && MONTHS.iter().any(|month| name.eq_ignore_ascii_case(*month))
}

/// A time of day with its zone: `10:20`, `10:20:30.123+02:00`
fn end_of_clock(bytes: &[u8], start: usize) -> Option<usize> {
    let has_minutes = two_digits(bytes, start)
        && bytes.get(start + 2) == Some(&b':')
        && two_digits(bytes, start + 3);
    if !has_minutes {
        return None;
    }
    let mut at = start + 5;
    if bytes.get(at) == Some(&b':') && two_digits(bytes, at + 1) {
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
        (2, Some(b':')) if two_digits(bytes, sign + 4) => sign + 6,
        _ => at,
    }
}

/// A time of day alone is volatile only where logs write it: with a fraction of a second, or in
/// brackets. `06:00:00` may be when a train leaves.
fn end_of_exact_clock(bytes: &[u8], start: usize) -> Option<usize> {
    let end = end_of_clock(bytes, start)?;
    let text = bytes.get(start + 5..end)?;
    let to_the_second = text.first() == Some(&b':');
    let fraction = text.iter().any(|byte| matches!(byte, b'.' | b','));
    let bracketed = byte_before(bytes, start) == Some(b'[') && bytes.get(end) == Some(&b']');
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
    ends_word(bytes, at).then_some(at)
}

/// What follows the year in `2026年1月5日 10:20:30`, `2026年1月5日10时20分`
fn end_of_chinese_time(bytes: &[u8], after_year: usize) -> Option<usize> {
    let month = after_sign(bytes, after_year, "年")?;
    let day = after_sign(bytes, after_number(bytes, month)?, "月")?;
    let hour = skip_spaces(bytes, after_sign(bytes, after_number(bytes, day)?, "日")?);
    if let Some(end) = end_of_clock(bytes, hour) {
        return Some(end);
    }
    let minute = after_sign(bytes, after_number(bytes, hour)?, "时")?;
    let end = after_sign(bytes, after_number(bytes, minute)?, "分")?;
    let second = after_number(bytes, end).and_then(|at| after_sign(bytes, at, "秒"));
    Some(second.unwrap_or(end))
}

/// One past a number of one or two digits.
fn after_number(bytes: &[u8], at: usize) -> Option<usize> {
    let digits = count_digits(bytes, at);
    (1..=2).contains(&digits).then_some(at + digits)
}

fn after_sign(bytes: &[u8], at: usize, sign: &str) -> Option<usize> {
    starts_with(bytes, at, sign.as_bytes()).then_some(at + sign.len())
}

/// The rest of a number and a unit of time: `.25s`, ` ms`, `seconds`, `毫秒`
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
    // Both units and what begins like them are rare.
    match bytes.get(at)? {
        b'm' | b's' => {}
        0xE5..=0xE7 => {
            let mut units = CHINESE_DURATION_UNITS.iter();
            return units.find_map(|unit| after_sign(bytes, at, unit));
        }
        _ => return None,
    }
    let unit = bytes.get(at..)?;
    let length = unit
        .iter()
        .take(LONGEST_UNIT + 1)
        .take_while(|byte| byte.is_ascii_alphabetic())
        .count();
    let name = unit.get(..length)?;
    let is_unit = DURATION_UNITS.iter().any(|known| known.as_bytes() == name);
    (is_unit && ends_word(bytes, at + length)).then_some(at + length)
}

// Values of keys.

/// The value after a colon or equals sign whose key is volatile: `"pid": 17`, `request_id=7f3a`.
fn part_after_delimiter(bytes: &[u8], at: usize, keys: &VolatileKeys) -> Option<(usize, usize)> {
    if !matches!(bytes.get(at), Some(b':' | b'=')) {
        return None;
    }
    let mut end = at;
    while end + 3 > at && byte_before(bytes, end) == Some(b' ') {
        end -= 1;
    }
    let is_quoted = matches!(byte_before(bytes, end)?, b'"' | b'\'');
    let end = end - usize::from(is_quoted);
    if !keys.may_end(byte_before(bytes, end)?, byte_before(bytes, end - 1)) {
        return None;
    }
    let key = key_ending_at(bytes, end);
    let is_volatile = if is_quoted {
        keys.contains(key)
    } else {
        keys.contains_unquoted(key)
    };
    if !is_volatile {
        return None;
    }
    let value = skip_spaces(bytes, at + 1);
    let value_end = match bytes.get(value)? {
        quote @ (b'"' | b'\'') => end_of_string(bytes, value, *quote)?,
        _ if is_quoted => end_of_plain_number(bytes, value)?,
        _ => {
            let digits = count_digits(bytes, value);
            end_of_number_part(bytes, value, digits).or_else(|| end_of_token(bytes, value))?
        }
    };
    Some((value, value_end))
}

/// Whether one of [`VOLATILE_KEYS`] can end with this byte after that one.
fn may_end_key(last: u8, before: Option<u8>) -> bool {
    let Some(&befores) = ENDINGS.get(letter(last)) else {
        return false;
    };
    match before {
        Some(b'_' | b'-') => befores != 0,
        Some(before) => letter(before) < 26 && befores & 1 << letter(before) != 0,
        None => false,
    }
}

/// The number of a letter, from 0; 26 or more for any other byte.
const fn letter(byte: u8) -> usize {
    (byte | 0x20).wrapping_sub(b'a') as usize
}

/// For each last letter the letters that come before it in [`VOLATILE_KEYS`], as bits.
const ENDINGS: [u32; 26] = {
    let mut endings = [0; 26];
    let mut at = 0;
    while at < VOLATILE_KEYS.len() {
        let key = VOLATILE_KEYS[at].as_bytes();
        endings[letter(key[key.len() - 1])] |= 1 << letter(key[key.len() - 2]);
        at += 1;
    }
    endings
};

/// The key that ends here, with the words before it as in `x-request-id`.
fn key_ending_at(bytes: &[u8], end: usize) -> &[u8] {
    let before = bytes.get(end.saturating_sub(LONGEST_KEY + 1)..end);
    let before = before.unwrap_or_default();
    let length = before
        .iter()
        .rev()
        .take_while(|&&byte| byte == b'-' || is_word_byte(byte))
        .count();
    let key = before.get(before.len() - length..).unwrap_or_default();
    let unofficial = key.strip_prefix(b"x-").or_else(|| key.strip_prefix(b"X-"));
    unofficial.unwrap_or(key)
}

/// Whether a key is one of [`VOLATILE_KEYS`]; only those with its first letter are looked at.
fn is_built_in(key: &[u8]) -> bool {
    // The shortest key has two letters; most keys of others are told apart by their ends.
    let [first, .., last] = key else {
        return false;
    };
    let before = byte_before(key, key.len() - 1);
    if key.len() > LONGEST_KEY || !may_end_key(*last, before) {
        return false;
    }
    let Some(&(start, end)) = BY_LETTER.get(letter(*first)) else {
        return false;
    };
    let same_letter = VOLATILE_KEYS.get(start..end).unwrap_or_default();
    same_letter
        .iter()
        .any(|known| is_same_key(key, known.as_bytes()))
}

/// Where the keys with each first letter stand in [`VOLATILE_KEYS`].
const BY_LETTER: [(usize, usize); 26] = {
    let mut ranges = [(0, 0); 26];
    let mut at = 0;
    while at < VOLATILE_KEYS.len() {
        let first = letter(VOLATILE_KEYS[at].as_bytes()[0]);
        if ranges[first].1 == 0 {
            ranges[first].0 = at;
        }
        at += 1;
        ranges[first].1 = at;
    }
    ranges
};

/// Whether a key is the known one but for case, underscores and hyphens.
fn is_same_key(key: &[u8], known: &[u8]) -> bool {
    if key.len() < known.len() {
        return false;
    }
    let letters = key.iter().filter(|&&byte| byte != b'_' && byte != b'-');
    letters
        .map(u8::to_ascii_lowercase)
        .eq(known.iter().copied())
}

fn end_of_string(bytes: &[u8], start: usize, quote: u8) -> Option<usize> {
    let rest = bytes.get(start + 1..)?;
    let mut escaped = false;
    for (offset, &byte) in rest.iter().take(LONGEST_VALUE).enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            _ if byte == quote => return Some(start + 1 + offset + 1),
            _ => {}
        }
    }
    None
}

fn end_of_plain_number(bytes: &[u8], start: usize) -> Option<usize> {
    let rest = bytes.get(start..)?;
    let length = rest
        .iter()
        .take(LONGEST_VALUE)
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
        .take(LONGEST_VALUE + 1)
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        .count();
    (1..=LONGEST_VALUE)
        .contains(&length)
        .then_some(start + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(text: &str) -> String {
        super::mask(text, &VolatileKeys::default())
    }

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
            ("(Jan 5, 2026 10:20)", "(*)"),
            ("[10:20:30] up", "[*] up"),
            ("10:20:30.125 up", "* up"),
            ("leaves 06:00:00", "leaves 06:00:00"),
            ("due 2026-01-05", "due 2026-01-05"),
            ("4 failed in 0.31s", "4 failed in *"),
            ("waited 120 seconds, 3 min", "waited *, *"),
            ("3 mice 5sx 5.s", "3 mice 5sx 5.s"),
            ("id 123e4567-e89b-12d3-a456-426614174000.", "id *."),
            ("ab3e4567-e89b-12d3-a456-426614174000", "*"),
            ("abcdefab-1234-12d3-a456-426614174000", "*"),
            ("12345678-e89b-12D3-A456-426614174000", "*"),
            ("1234567-e89b", "1234567-e89b"),
            (
                "x12345678-e89b-12d3-a456-426614174000",
                "x12345678-e89b-12d3-a456-426614174000",
            ),
            ("pid 42, PID: 7, pid=9", "pid *, PID: *, pid=*"),
            ("rapid 42", "rapid 42"),
            ("<A object at 0x7f3a2b4c5d6e>", "<A object at *>"),
            (
                r#"{"id": 7, "requestId": "a\"b", "duration_ms":12.5, "n": 3}"#,
                r#"{"id": 7, "requestId": *, "duration_ms":*, "n": 3}"#,
            ),
            (
                "{'trace_id': 'x', 'time' : 3}",
                "{'trace_id': *, 'time' : *}",
            ),
            ("request_id=7f-3a failed", "request_id=* failed"),
            ("X-Request-Id: 9f3", "X-Request-Id: *"),
            ("timestamp: 2026-01-05T10:20:30Z", "timestamp: *"),
            ("time: noon", "time: noon"),
            ("bytes 8192-16384", "bytes 8192-16384"),
            ("耗时35ms。", "耗时*。"),
            ("耗时 320 毫秒，等待3秒，共2.5秒钟", "耗时 *，等待*，共*"),
            ("得了5分，第3名，12秘", "得了5分，第3名，12秘"),
            ("2026年1月5日 10:20:30 完成", "* 完成"),
            ("2026年01月05日10时20分30秒完成", "*完成"),
            ("截止2026年1月5日", "截止2026年1月5日"),
            ("2026年1月", "2026年1月"),
            ("order_id=5 v1.2.3", "order_id=5 v1.2.3"),
            ("", ""),
            ("7", "7"),
        ] {
            assert_eq!(mask(text), masked, "{text:?}");
        }
    }

    #[test]
    fn keys_stand_in_order_so_that_each_is_found_by_its_letter() {
        assert!(VOLATILE_KEYS.is_sorted());
        for key in VOLATILE_KEYS {
            assert!(is_built_in(key.as_bytes()) && is_built_in(key.to_uppercase().as_bytes()));
        }
        for key in ["", "i", "id", "name", "tags", "pids", "zed", "{d"] {
            assert!(!is_built_in(key.as_bytes()), "{key}");
        }
    }

    #[test]
    fn every_volatile_key_is_recognised_in_json() {
        for key in VOLATILE_KEYS {
            assert_eq!(mask(&format!("\"{key}\": \"x\"")), format!("\"{key}\": *"));
        }
        for key in ONLY_WHEN_QUOTED {
            assert!(VOLATILE_KEYS.contains(key));
            assert_eq!(mask(&format!("{key}: x")), format!("{key}: x"));
        }
    }

    #[test]
    fn parts_are_in_order_and_do_not_overlap() {
        let alphabet = "0123:=-Z T.\"pidmsecJan/[]x";
        let mut text = String::new();
        let mut state = 1_u64;
        for _ in 0..200_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let index = usize::try_from(state >> 40).unwrap() % alphabet.len();
            text.push_str(&alphabet[index..=index]);
        }
        let mut last = 0;
        for (start, end) in VolatileParts::new(text.as_bytes(), &VolatileKeys::default()) {
            assert!(last <= start && start < end && end <= text.len());
            last = end;
        }
        assert!(last > 0);
    }

    #[test]
    fn keys_can_be_added_and_taken_out() {
        let mut keys = VolatileKeys::default();
        for (key, volatile) in [("build-id", true), ("Date", false), ("request_id", false)] {
            assert_eq!(keys.set(key, volatile), Ok(()));
        }
        for (text, masked) in [
            (
                r#"{"buildId": 7, "date": "x"}"#,
                r#"{"buildId": *, "date": "x"}"#,
            ),
            (
                "BUILD_ID=7 request_id=8 pid=9",
                "BUILD_ID=* request_id=8 pid=*",
            ),
        ] {
            assert_eq!(super::mask(text, &keys), masked);
        }
        let changes: Vec<_> = keys.changes().collect();
        assert_eq!(
            changes,
            [("buildid", true), ("date", false), ("requestid", false)]
        );
        assert_eq!(keys.set("DATE", true), Ok(()));
        assert_eq!(keys.set("build_id", false), Ok(()));
        assert_eq!(keys.changes().collect::<Vec<_>>(), [("requestid", false)]);
        for key in ["", "_-", "a b", "schlüssel", "a_key_that_is_far_too_long"] {
            assert!(keys.set(key, true).is_err(), "{key}");
        }
    }
}
