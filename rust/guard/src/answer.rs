//! What a call brought, in the few bytes that the rules need: a hash and what the text says.
//!
//! Results are compared whole, as hashes, after parts that change at every call are masked: time
//! stamps, durations, uuids, process ids, addresses of objects, and the values of keys that name
//! such things. Other numbers and a plain `id` always count: a new resource is progress.
//!
//! A text is never copied: what lies between two masked parts goes to the hash as it stands.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use turnwarden_signature::{Token, Value};

use crate::mask::{VolatileKeys, VolatileParts, ends_word, is_word_byte};

/// No tool's name in an error text is longer.
const LONGEST_NAME: usize = 128;

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
    pub fn of_result(text: &str, keys: &VolatileKeys) -> Self {
        Self::new(text, keys, begins_as_error(text))
    }

    /// Reads an error.
    #[must_use]
    pub fn of_error(text: &str, keys: &VolatileKeys) -> Self {
        Self::new(text, keys, true)
    }

    fn new(text: &str, keys: &VolatileKeys, failed: bool) -> Self {
        let said = if failed {
            mark::FAILED | said_by_error(text)
        } else if says_nothing_found(text, keys) {
            mark::NOTHING
        } else {
            0
        };
        Self {
            hash: masked_hash(text, keys),
            marks: said | if has_words(text) { mark::WORDY } else { 0 },
        }
    }

    /// Reads a result that is a value: no error, whatever it says.
    #[must_use]
    pub fn of_value(value: Value<'_>, keys: &VolatileKeys) -> Self {
        let masked = MaskedValue::of(value, keys);
        let mut marks = 0;
        if is_empty_value(value, keys) {
            marks |= mark::NOTHING;
        }
        if masked.has_spaces {
            marks |= mark::WORDY;
        }
        Self {
            hash: head(blake3::hash(&masked.bytes)),
            marks,
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

/// Hash of the text without what changes at every call.
#[must_use]
pub fn masked_hash(text: &str, keys: &VolatileKeys) -> u64 {
    let bytes = text.as_bytes();
    let mut parts = VolatileParts::new(bytes, keys).peekable();
    if parts.peek().is_none() {
        return head(blake3::hash(bytes));
    }
    // Small pieces are gathered: the hash is fastest on many bytes at once.
    let mut hasher = blake3::Hasher::new();
    let mut gathered = Vec::with_capacity(bytes.len().min(GATHERED));
    let mut plain_from = 0;
    for (start, end) in parts {
        let plain = bytes.get(plain_from..start).unwrap_or_default();
        if gathered.len() + plain.len() >= GATHERED {
            hasher.update(&gathered);
            gathered.clear();
            hasher.update(plain);
        } else {
            gathered.extend_from_slice(plain);
        }
        gathered.extend_from_slice(MASK);
        plain_from = end;
    }
    hasher.update(&gathered);
    hasher.update(bytes.get(plain_from..).unwrap_or_default());
    head(hasher.finalize())
}

/// Bytes that are gathered before they are hashed.
const GATHERED: usize = 16 * 1024;

/// Stands in for a volatile part: no byte of UTF-8.
const MASK: &[u8] = &[0xFF];

/// Tags that no canonical value begins with: for a value that is volatile as a whole, and for a
/// string with volatile parts, whose text ends with [`END_OF_STRING`].
const VOLATILE_VALUE: u8 = 0x0F;
const MASKED_STRING: u8 = 0x0E;
/// No byte of UTF-8.
const END_OF_STRING: u8 = 0xFE;

fn head(hash: blake3::Hash) -> u64 {
    let bytes = hash.as_bytes().first_chunk();
    bytes.map_or(0, |head| u64::from_le_bytes(*head))
}

/// The canonical bytes of a value without what changes at every call, ready to be hashed.
///
/// What does not change is copied in stretches as long as can be, over any number of values.
struct MaskedValue<'a> {
    keys: &'a VolatileKeys,
    plain: &'a [u8],
    /// How far `plain` is in `bytes`, or masked there.
    copied: usize,
    bytes: Vec<u8>,
    has_spaces: bool,
}

impl<'a> MaskedValue<'a> {
    fn of(value: Value<'a>, keys: &'a VolatileKeys) -> Self {
        let plain = value.as_bytes();
        let mut masked = Self {
            keys,
            plain,
            copied: 0,
            bytes: Vec::with_capacity(plain.len()),
            has_spaces: false,
        };
        // For each open container whether a key is due; whether the value of a volatile one is.
        let mut keys_due: Vec<Option<bool>> = Vec::new();
        let mut is_volatile = false;
        let mut tokens = value.tokens();
        loop {
            let start = plain.len() - tokens.rest().len();
            let Some(token) = tokens.next() else { break };
            let end = plain.len() - tokens.rest().len();
            if let (Token::String(key), Some(Some(due @ true))) = (token, keys_due.last_mut()) {
                is_volatile = keys.contains(key);
                *due = false;
                continue;
            }
            match token {
                Token::String(_) if is_volatile => masked.mask(start, end),
                Token::String(text) => masked.string(text, start, end),
                Token::BeginArray => keys_due.push(None),
                Token::BeginObject => keys_due.push(Some(true)),
                Token::EndArray | Token::EndObject => drop(keys_due.pop()),
                Token::Null | Token::Boolean(_) => {}
                _ if is_volatile => masked.mask(start, end),
                _ => {}
            }
            is_volatile = false;
            let opens = matches!(token, Token::BeginArray | Token::BeginObject);
            if !opens && let Some(Some(due)) = keys_due.last_mut() {
                *due = true;
            }
        }
        masked.copy_to(plain.len());
        masked
    }

    fn copy_to(&mut self, end: usize) {
        let stretch = self.plain.get(self.copied..end).unwrap_or_default();
        self.bytes.extend_from_slice(stretch);
        self.copied = end;
    }

    /// Leaves out what stands between these two places.
    fn mask(&mut self, start: usize, end: usize) {
        self.copy_to(start);
        self.bytes.push(VOLATILE_VALUE);
        self.copied = end;
    }

    fn string(&mut self, text: &[u8], start: usize, end: usize) {
        self.has_spaces = self.has_spaces || text.trim_ascii().iter().any(u8::is_ascii_whitespace);
        let mut parts = VolatileParts::new(text, self.keys).peekable();
        if parts.peek().is_none() {
            return;
        }
        // Its length in front would tell how long the parts were.
        self.copy_to(start);
        self.bytes.push(MASKED_STRING);
        let mut plain_from = 0;
        for (start, end) in parts {
            self.bytes
                .extend_from_slice(text.get(plain_from..start).unwrap_or_default());
            self.bytes.extend_from_slice(MASK);
            plain_from = end;
        }
        self.bytes
            .extend_from_slice(text.get(plain_from..).unwrap_or_default());
        self.bytes.push(END_OF_STRING);
        self.copied = end;
    }
}

// What results and errors say.

/// Whether a text has more than one word.
fn has_words(text: &str) -> bool {
    let without_spaces = || {
        let letters = text.chars().take(LOOKED_AT).filter(|&c| needs_no_spaces(c));
        letters.take(LETTERS_OF_WORDS).count() == LETTERS_OF_WORDS
    };
    text.split_whitespace().nth(1).is_some() || without_spaces()
}

/// Chinese and Japanese words are written without spaces, and most have one or two letters: so
/// many letters are more than one word.
const LETTERS_OF_WORDS: usize = 4;
/// Characters that are looked at for them.
const LOOKED_AT: usize = 256;

const fn needs_no_spaces(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}')
}

fn begins_as_error(text: &str) -> bool {
    let text = text.trim_start().as_bytes();
    [&b"error"[..], b"traceback"].iter().any(|word| {
        text.get(..word.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(word))
            && text.get(word.len()).is_none_or(|&byte| !is_word_byte(byte))
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
    "超时",
    "请求过于频繁",
    "请求过多",
    "频率限制",
    "速率限制",
    "限流",
    "连接被拒绝",
    "拒绝连接",
    "暂时不可用",
    "系统繁忙",
    "服务繁忙",
];
const UNKNOWN_TOOL: &[&str] = &["unknown tool", "no such tool", "未知工具", "工具不存在"];
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
        let begins_word = before.is_none_or(|at| ends_word(bytes, at));
        let phrase = found.pattern().as_usize();
        if phrase < TRANSIENT.len() {
            let name = TRANSIENT.get(phrase).copied().unwrap_or_default();
            // `rate limits`, `ECONNRESET` and the like run on; Chinese has no ends of words
            let runs_on = ["rate", "econn"].iter().any(|open| name.starts_with(open));
            let ends_word = runs_on || ends_word(bytes, found.end());
            if !name.is_ascii() || begins_word && ends_word {
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
const NOTHING_AND_WHY: &[&str] = &[
    "nothing found",
    "nothing matched",
    "could not find",
    "未找到",
    "没有找到",
    "找不到",
    "未查到",
    "没有查到",
    "未搜索到",
    "没有匹配",
    "没有结果",
    "没有相关",
    "无匹配",
    "无结果",
    "查无",
    "暂无结果",
    "共 0 条",
    "共0条",
];
/// What a number of nothing is said with: `no matches`, `0 results`, `found no pages`.
const NONE_OF: &[&str] = &["no ", "0 ", "found no ", "found 0 "];
/// What is looked for.
const NOTHINGS: &[&str] = &[
    "matches",
    "match",
    "matching",
    "results",
    "result",
    "hits",
    "hit",
    "files",
    "file",
    "documents",
    "document",
    "pages",
    "page",
    "records",
    "record",
    "rows",
    "row",
];

fn says_nothing_found(text: &str, keys: &VolatileKeys) -> bool {
    let line = text.trim();
    if is_empty_json(line, keys) {
        return true;
    }
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
    let Some(rest) = NONE_OF.iter().find_map(|head| says(head)) else {
        return false;
    };
    let word = rest.split(|c: char| !c.is_ascii_alphanumeric()).next();
    word.is_some_and(|word| {
        NOTHINGS
            .iter()
            .any(|known| known.eq_ignore_ascii_case(word))
    })
}

/// Whether a value holds nothing: null, zero, or a list or object without anything but that, as
/// in `{"results": [], "total": 0}`. A zero that stands beside no empty place is a number; what is
/// volatile, such as `"took_ms": 3`, does not count.
fn is_empty_value(value: Value<'_>, volatile: &VolatileKeys) -> bool {
    match value.first() {
        Some(Token::Null | Token::Integer(0)) => return true,
        Some(Token::BeginArray | Token::BeginObject) => {}
        _ => return false,
    }
    let mut empties = 0;
    // For each open container whether a key is due.
    let mut keys_due: Vec<Option<bool>> = Vec::new();
    let mut before = None;
    let mut is_volatile = false;
    for token in value.tokens() {
        if let (Token::String(key), Some(Some(due @ true))) = (&token, keys_due.last_mut()) {
            *due = false;
            is_volatile = volatile.contains(key);
            before = Some(token);
            continue;
        }
        let is_container = matches!(token, Token::BeginArray | Token::BeginObject);
        let is_passed = std::mem::take(&mut is_volatile) && !is_container;
        match token {
            Token::BeginArray => keys_due.push(None),
            Token::BeginObject => keys_due.push(Some(true)),
            Token::EndArray | Token::EndObject => {
                keys_due.pop();
                let was_empty = matches!(before, Some(Token::BeginArray | Token::BeginObject));
                empties += usize::from(was_empty);
            }
            _ if is_passed => {}
            Token::Null => empties += 1,
            Token::Integer(0) => {}
            Token::String([]) => {}
            _ => return false,
        }
        if !is_container && let Some(Some(due)) = keys_due.last_mut() {
            *due = true;
        }
        before = Some(token);
    }
    empties > 0
}

/// The same for JSON text; it ends with the first thing that is something.
fn is_empty_json(text: &str, volatile: &VolatileKeys) -> bool {
    let bytes = text.as_bytes();
    if !matches!(bytes.first(), Some(b'{' | b'[')) {
        return false;
    }
    let mut empties = 0;
    let mut at = 0;
    let mut before = b' ';
    while let Some(&byte) = bytes.get(at) {
        let rest = bytes.get(at..).unwrap_or_default();
        at += match byte {
            b'"' => match length_of_empty_or_key(rest) {
                Some(length) => length + length_of_volatile(rest, length, volatile),
                None => return false,
            },
            b'n' if rest.starts_with(b"null") => {
                empties += 1;
                4
            }
            b'0' => match rest.get(1) {
                Some(b'.' | b'0'..=b'9' | b'e' | b'E' | b'x') => return false,
                _ => 1,
            },
            b'{' | b'[' | b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' => 1,
            b'}' | b']' => {
                empties += usize::from(matches!(before, b'{' | b'['));
                1
            }
            _ => return false,
        };
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
    }
    empties > 0
}

/// The length of a string that is empty or a key, with its quotes.
fn length_of_empty_or_key(rest: &[u8]) -> Option<usize> {
    let length = length_of_string(rest)?;
    let after = rest.get(length..).unwrap_or_default();
    let is_key = after.trim_ascii_start().first() == Some(&b':');
    (is_key || length == 2).then_some(length)
}

/// The length of a string that begins with its quote, with both quotes.
fn length_of_string(rest: &[u8]) -> Option<usize> {
    let mut escaped = false;
    let inside = rest.iter().skip(1).position(|&byte| match byte {
        _ if escaped => {
            escaped = false;
            false
        }
        b'\\' => {
            escaped = true;
            false
        }
        _ => byte == b'"',
    })?;
    Some(inside + 2)
}

/// How long the value is that follows a volatile key of this length, with its colon; 0 for another
/// key and for a value that is no scalar.
fn length_of_volatile(rest: &[u8], key: usize, volatile: &VolatileKeys) -> usize {
    let name = rest.get(1..key - 1).unwrap_or_default();
    let after = rest.get(key..).unwrap_or_default();
    let colon = after.iter().take_while(|byte| byte.is_ascii_whitespace());
    let colon = colon.count() + 1;
    let value = after.get(colon..).unwrap_or_default();
    let spaces = value.iter().take_while(|byte| byte.is_ascii_whitespace());
    let spaces = spaces.count();
    let value = value.get(spaces..).unwrap_or_default();
    let length = match value.first() {
        Some(b'"') => length_of_string(value).unwrap_or(0),
        Some(b'{' | b'[') | None => 0,
        Some(_) => {
            let scalar = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
            value.iter().take_while(scalar).count()
        }
    };
    if length > 0 && volatile.contains(name) {
        colon + spaces + length
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Answer {
        let canon = turnwarden_signature::Canon::from_json(json).unwrap();
        Answer::of_value(canon.value(), &VolatileKeys::default())
    }

    fn result(text: &str) -> Answer {
        Answer::of_result(text, &VolatileKeys::default())
    }

    fn error(text: &str) -> Answer {
        Answer::of_error(text, &VolatileKeys::default())
    }

    fn masked_hash(text: &str) -> u64 {
        super::masked_hash(text, &VolatileKeys::default())
    }

    #[test]
    fn values_are_compared_without_their_volatile_parts() {
        let one =
            value(r#"{"id": 7, "pid": 4, "log": [{"at": "took 3 ms", "time": "x"}], "n": 1}"#);
        let same =
            value(r#"{"n": 1, "id": 7, "pid": 5, "log": [{"time": "y", "at": "took 9 ms"}]}"#);
        assert_eq!(one, same);
        for other in [
            r#"{"id": 8, "pid": 4, "log": [{"at": "took 3 ms", "time": "x"}], "n": 1}"#,
            r#"{"id": 7, "pid": 4, "log": [{"at": "took 3 ms", "time": null}], "n": 1}"#,
            r#"{"id": 7, "pid": 4, "log": [{"at": "took ms", "time": "x"}], "n": 1}"#,
            r#"{"id": 7, "pid": null, "log": [{"at": "took 3 ms", "time": "x"}], "n": 1}"#,
            r#"{"id": 7, "pid": [4], "log": [{"at": "took 3 ms", "time": "x"}], "n": 1}"#,
        ] {
            assert_ne!(one, value(other), "{other}");
        }
        assert_ne!(value(r#"["a", "b"]"#), value(r#"["a\u0001b"]"#));
        assert!(value("[]").nothing() && value("null").nothing() && value("0").nothing());
        assert!(!value("[0]").nothing() && !value("{\"a\": 1}").nothing());
        for (json, is_nothing) in EMPTY_OR_NOT {
            assert_eq!(value(json).nothing(), *is_nothing, "{json}");
            assert_eq!(result(json).nothing(), *is_nothing, "{json} as text");
        }
        assert!(value(r#"["two words"]"#).wordy() && !value(r#"["word"]"#).wordy());
    }

    const EMPTY_OR_NOT: &[(&str, bool)] = &[
        (r#"{"results":[],"total":0}"#, true),
        (
            r#"{ "data" : { "items" : [ ] , "next" : null }, "q": "" }"#,
            true,
        ),
        ("{\n  \"results\": [],\n  \"total\": 0\n}", true),
        (r#"{"user":null}"#, true),
        ("[[], {}]", true),
        (r#"{"a\"b":[]}"#, true),
        (r#"{"results":[],"took_ms":31}"#, true),
        (
            r#"{"took" : 3.5e2, "timestamp": "2026-12-01T10:00:00Z", "items": [], "request_id":"r\"7"}"#,
            true,
        ),
        (r#"{"items":[{"duration":3}]}"#, false),
        (r#"{"took_ms":["a"],"items":[]}"#, false),
        (r#"{"took_ms":31}"#, false),
        (r#"{"total":0}"#, false),
        ("[0]", false),
        (r#"{"ok":true,"items":[]}"#, false),
        (r#"{"items":[],"q":"tea"}"#, false),
        (r#"{"items":["x"]}"#, false),
        (r#"["a", []]"#, false),
        (r#"{"items":[],"total":10}"#, false),
        (r#"{"id":7,"tags":[]}"#, false),
        (r#"{"items":[],"score":0.5}"#, false),
    ];

    #[test]
    fn more_than_one_word_needs_no_space_in_chinese_and_japanese() {
        for text in ["two words", "没有结果", "見つかりません", "结果：没有"] {
            assert!(result(text).wordy(), "{text}");
        }
        for text in ["False", "否", "不可用", "已售罄", "12", ""] {
            assert!(!result(text).wordy(), "{text}");
        }
    }

    #[test]
    fn what_errors_say_is_understood_in_chinese() {
        for text in [
            "请求超时，请稍后重试",
            "错误 429：请求过于频繁",
            "系统繁忙",
            "连接被拒绝",
        ] {
            assert!(error(text).transient(), "{text}");
        }
        assert!(!error("权限不足").transient());
        assert!(error("未知工具：搜索").unknown_tool());
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
            assert!(result(text).failed(), "{text:?}");
        }
        for text in ["errors: 0", "no Error", "error_count 0", "exit 1", ""] {
            assert!(!result(text).failed(), "{text:?}");
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
            assert!(error(text).transient(), "{text:?}");
        }
        for text in ["404", "4290", "timeouts_total", "not found", "x429"] {
            assert!(!error(text).transient(), "{text:?}");
        }
        assert!(!result("429 rows").transient());
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
            assert!(error(text).unknown_tool(), "{text:?}");
        }
        assert!(!error("tool x failed: file not found").unknown_tool());
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
            "No documents found for \"x\"",
            "Found 0 pages",
            "found no matching records",
            "未找到与“x”相关的结果",
            "共 0 条结果",
        ] {
            assert!(result(text).nothing(), "{text:?}");
        }
        for text in [
            "no news",
            "0x",
            "10 results",
            "No matches\nbut this",
            "none left",
            "No errors found",
            "Found 01 pages",
            "没有问题",
        ] {
            assert!(!result(text).nothing(), "{text:?}");
        }
        assert!(!error("not found").nothing());
    }
}
