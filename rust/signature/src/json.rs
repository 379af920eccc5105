//! JSON text to canonical bytes, in one pass and at most one more.
//!
//! Values are written in the order of the text. Objects whose keys turn out not to be in canonical
//! order, or not unique, are noted with their members, and a second pass copies the bytes in
//! order. So text whose keys are sorted costs one pass, any other two, whatever its depth.
//!
//! What is JSON is what Python's `json.loads` takes: RFC 8259, and `NaN`, `Infinity`, `-Infinity`.

use std::ops::Range;

use crate::canon::{Canon, MAX_DEPTH, tag};
use crate::key_order::compare_keys;
use crate::value::{Token, Value};
use crate::wtf8;

impl Canon {
    /// The canon of a JSON text; `None` when it is none, or nested deeper than [`MAX_DEPTH`].
    #[must_use]
    pub fn from_json(text: &str) -> Option<Self> {
        let mut canon = Self::default();
        canon.json(text.as_bytes()).then_some(canon)
    }

    /// The canon of arguments given as text: its JSON value; `{}` for no text and for null; the
    /// text itself as a string when it is no JSON.
    #[must_use]
    pub fn from_arguments_text(text: &str) -> Self {
        let mut canon = Self::default();
        canon.arguments_text(text.as_bytes());
        canon
    }

    /// Writes arguments given as text (WTF-8): see [`Self::from_arguments_text`].
    pub fn arguments_text(&mut self, text: &[u8]) {
        let start = self.as_bytes().len();
        let is_empty = text.iter().all(|&byte| is_white_space(byte));
        if !is_empty && !self.json(text) {
            return self.string(text);
        }
        if is_empty || self.as_bytes().get(start..) == Some(&[tag::NULL]) {
            self.truncate(start);
            self.begin_object();
            self.end_object();
        }
    }

    /// Writes the value of a JSON text (WTF-8). Nothing is written when it is none.
    pub fn json(&mut self, text: &[u8]) -> bool {
        let start = self.as_bytes().len();
        let mut reader = Reader {
            text,
            at: 0,
            canon: self,
            open: Vec::new(),
            members: Vec::new(),
            decoded: Vec::new(),
            unordered: Unordered::default(),
        };
        if reader.document().is_none() {
            self.truncate(start);
            return false;
        }
        let unordered = reader.unordered;
        if !unordered.objects.is_empty() {
            unordered.put_in_order(self, start);
        }
        true
    }
}

/// A container that is not closed yet.
enum Open {
    Array,
    Object(OpenObject),
}

/// An object that is not closed yet.
struct OpenObject {
    /// Where its opening tag stands in the canon.
    start: usize,
    /// Its first entry in the stack of members.
    first_member: usize,
    /// Whether the keys so far are in order and unique.
    in_order: bool,
}

/// A key and its value in the canon; the end is not known before the value is.
#[derive(Clone)]
struct Member {
    key: Range<usize>,
    end: usize,
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    canon: &'a mut Canon,
    open: Vec<Open>,
    /// Members of the objects that are open: a stack.
    members: Vec<Member>,
    /// The text of the string with escapes that is being read.
    decoded: Vec<u8>,
    unordered: Unordered,
}

impl Reader<'_> {
    fn document(&mut self) -> Option<()> {
        loop {
            if self.value()? {
                continue;
            }
            if self.after_value()? {
                self.skip_white_space();
                return (self.at == self.text.len()).then_some(());
            }
        }
    }

    /// Reads a scalar, an empty container, or the opening of one; true when a value is due next.
    fn value(&mut self) -> Option<bool> {
        self.skip_white_space();
        match self.peek()? {
            b'"' => {
                self.at += 1;
                self.string()?;
            }
            b'{' => return self.begin_object(),
            b'[' => return self.begin_array(),
            b't' => self.literal(b"true", |canon| canon.boolean(true))?,
            b'f' => self.literal(b"false", |canon| canon.boolean(false))?,
            b'n' => self.literal(b"null", Canon::null)?,
            b'N' => self.literal(b"NaN", |canon| canon.float(f64::NAN))?,
            b'I' => self.literal(b"Infinity", |canon| canon.float(f64::INFINITY))?,
            _ => self.number()?,
        }
        Some(false)
    }

    /// Goes on behind a complete value; true at the end of the document.
    fn after_value(&mut self) -> Option<bool> {
        loop {
            let Some(open) = self.open.last() else {
                return Some(true);
            };
            let is_object = matches!(open, Open::Object(_));
            if is_object && let Some(member) = self.members.last_mut() {
                member.end = self.canon.as_bytes().len();
            }
            self.skip_white_space();
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b',' if is_object => {
                    self.key()?;
                    return Some(false);
                }
                b',' => return Some(false),
                b'}' if is_object => self.end_object(),
                b']' if !is_object => self.end_array(),
                _ => return None,
            }
        }
    }

    fn begin_object(&mut self) -> Option<bool> {
        self.at += 1;
        let start = self.canon.as_bytes().len();
        self.canon.begin_object();
        self.skip_white_space();
        if self.peek()? == b'}' {
            self.at += 1;
            self.canon.end_object();
            return Some(false);
        }
        self.push_open(Open::Object(OpenObject {
            start,
            first_member: self.members.len(),
            in_order: true,
        }))?;
        self.key()?;
        Some(true)
    }

    fn begin_array(&mut self) -> Option<bool> {
        self.at += 1;
        self.canon.begin_array();
        self.skip_white_space();
        if self.peek()? == b']' {
            self.at += 1;
            self.canon.end_array();
            return Some(false);
        }
        self.push_open(Open::Array)?;
        Some(true)
    }

    fn push_open(&mut self, open: Open) -> Option<()> {
        (self.open.len() < MAX_DEPTH).then(|| self.open.push(open))
    }

    fn end_array(&mut self) {
        self.canon.end_array();
        self.open.pop();
    }

    fn end_object(&mut self) {
        self.canon.end_object();
        let Some(Open::Object(object)) = self.open.pop() else {
            return;
        };
        if object.in_order {
            self.members.truncate(object.first_member);
        } else {
            let region = object.start..self.canon.as_bytes().len();
            let members = self.members.drain(object.first_member..);
            self.unordered.note(region, members, self.canon);
        }
    }

    /// Reads a key and its colon.
    fn key(&mut self) -> Option<()> {
        self.skip_white_space();
        self.expect(b'"')?;
        let start = self.canon.as_bytes().len();
        self.string()?;
        let key = start..self.canon.as_bytes().len();
        if let Some(Open::Object(object)) = self.open.last_mut() {
            let before = self.members.get(object.first_member..)?.last();
            if let Some(before) = before.filter(|_| object.in_order) {
                let [before, key] = [&before.key, &key].map(|key| key_text(self.canon, key));
                object.in_order = compare_keys(before, key).is_lt();
            }
        }
        self.members.push(Member { key, end: 0 });
        self.skip_white_space();
        self.expect(b':')
    }

    /// Reads a string behind its opening quote.
    fn string(&mut self) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        let plain = plain_length(rest);
        if rest.get(plain) == Some(&b'"') {
            self.canon.string(rest.get(..plain)?);
            self.at += plain + 1;
            return Some(());
        }
        self.string_with_escapes()
    }

    fn string_with_escapes(&mut self) -> Option<()> {
        self.decoded.clear();
        let mut has_surrogates = false;
        loop {
            let rest = self.text.get(self.at..)?;
            let plain = plain_length(rest);
            self.decoded.extend_from_slice(rest.get(..plain)?);
            self.at += plain;
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b'"' => break,
                b'\\' => has_surrogates |= self.escape()?,
                _ => return None, // a control character
            }
        }
        if has_surrogates {
            wtf8::join_surrogates(&mut self.decoded);
        }
        self.canon.string(&self.decoded);
        Some(())
    }

    /// Reads an escape behind its backslash; true if it stands for half of a surrogate pair.
    fn escape(&mut self) -> Option<bool> {
        let byte = self.peek()?;
        self.at += 1;
        let decoded = match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 0x08,
            b'f' => 0x0C,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.unicode_escape(),
            _ => return None,
        };
        self.decoded.push(decoded);
        Some(false)
    }

    fn unicode_escape(&mut self) -> Option<bool> {
        let digits = self.text.get(self.at..self.at + 4)?;
        let unit = digits.iter().try_fold(0_u32, |unit, &digit| {
            Some(unit << 4 | char::from(digit).to_digit(16)?)
        })?;
        self.at += 4;
        Some(wtf8::push_unit(&mut self.decoded, unit))
    }

    fn number(&mut self) -> Option<()> {
        let start = self.at;
        self.skip_if(b'-');
        if self.peek() == Some(b'I') && self.at > start {
            return self.literal(b"Infinity", |canon| canon.float(f64::NEG_INFINITY));
        }
        let first = self.peek()?;
        let integer_digits = self.skip_digits();
        if integer_digits == 0 || (first == b'0' && integer_digits > 1) {
            return None;
        }
        let mut is_integer = true;
        if self.skip_if(b'.') {
            is_integer = false;
            (self.skip_digits() > 0).then_some(())?;
        }
        if self.skip_if(b'e') || self.skip_if(b'E') {
            is_integer = false;
            let _signed = self.skip_if(b'-') || self.skip_if(b'+');
            (self.skip_digits() > 0).then_some(())?;
        }
        let text = self.text.get(start..self.at)?;
        if is_integer {
            self.canon.decimal(text);
        } else {
            self.canon
                .float(std::str::from_utf8(text).ok()?.parse().ok()?);
        }
        Some(())
    }

    fn literal(&mut self, literal: &[u8], write: impl FnOnce(&mut Canon)) -> Option<()> {
        self.text.get(self.at..)?.strip_prefix(literal)?;
        self.at += literal.len();
        write(self.canon);
        Some(())
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.skip_if(byte).then_some(())
    }

    fn skip_if(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn skip_digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn skip_white_space(&mut self) {
        while self.peek().is_some_and(is_white_space) {
            self.at += 1;
        }
    }
}

fn is_white_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// How many bytes stand before the first quote, backslash or control character.
fn plain_length(text: &[u8]) -> usize {
    const STEP: usize = 16; // compared at once by vector instructions
    let is_special = |&byte: &u8| byte == b'"' || byte == b'\\' || byte < b' ';
    let plain_steps = text
        .chunks_exact(STEP)
        .take_while(|chunk| !chunk.iter().fold(false, |any, byte| any | is_special(byte)))
        .count();
    let start = plain_steps * STEP;
    let rest = text.get(start..).unwrap_or_default();
    start + rest.iter().position(is_special).unwrap_or(rest.len())
}

fn key_text<'a>(canon: &'a Canon, key: &Range<usize>) -> &'a [u8] {
    let bytes = canon.as_bytes().get(key.clone()).unwrap_or_default();
    match Value::from_bytes(bytes).first() {
        Some(Token::String(text)) => text,
        _ => &[],
    }
}

/// The objects whose members do not stand in canonical order.
#[derive(Default)]
struct Unordered {
    objects: Vec<UnorderedObject>,
    /// Their members, those of one object together and in canonical order.
    members: Vec<Range<usize>>,
}

struct UnorderedObject {
    /// From its opening tag to behind its closing one.
    region: Range<usize>,
    members: Range<usize>,
}

/// What is left to copy.
enum Pending {
    /// A stretch of bytes.
    Region(Range<usize>),
    /// Members of an object, then its closing tag.
    Members(Range<usize>),
}

impl Unordered {
    /// Notes an object that was just closed.
    fn note(&mut self, region: Range<usize>, members: impl Iterator<Item = Member>, canon: &Canon) {
        let mut members: Vec<Member> = members.collect();
        let key = |member: &Member| key_text(canon, &member.key);
        members.sort_by(|left, right| compare_keys(key(left), key(right)));
        let first = self.members.len();
        for (index, member) in members.iter().enumerate() {
            let next = members.get(index + 1);
            if next.is_none_or(|next| key(next) != key(member)) {
                self.members.push(member.key.start..member.end); // the last of equal keys wins
            }
        }
        self.objects.push(UnorderedObject {
            region,
            members: first..self.members.len(),
        });
    }

    /// Rewrites the canon from `start` on with all members in order.
    fn put_in_order(mut self, canon: &mut Canon, start: usize) {
        self.objects
            .sort_unstable_by_key(|object| object.region.start);
        let bytes = canon.as_bytes().get(start..).unwrap_or_default().to_vec();
        let source = |region: Range<usize>| {
            bytes
                .get(region.start - start..region.end - start)
                .unwrap_or_default()
        };
        let mut pending = vec![Pending::Region(start..canon.as_bytes().len())];
        canon.truncate(start);
        while let Some(next) = pending.pop() {
            match next {
                Pending::Region(region) => match self.first_object_in(&region) {
                    None => canon.extend(source(region)),
                    Some(object) => {
                        canon.extend(source(region.start..object.region.start));
                        canon.begin_object();
                        pending.push(Pending::Region(object.region.end..region.end));
                        pending.push(Pending::Members(object.members.clone()));
                    }
                },
                Pending::Members(members) => match self.members.get(members.start) {
                    Some(member) if !members.is_empty() => {
                        pending.push(Pending::Members(members.start + 1..members.end));
                        pending.push(Pending::Region(member.clone()));
                    }
                    _ => canon.end_object(),
                },
            }
        }
    }

    fn first_object_in(&self, region: &Range<usize>) -> Option<&UnorderedObject> {
        let index = self
            .objects
            .partition_point(|object| object.region.start < region.start);
        self.objects
            .get(index)
            .filter(|object| object.region.start < region.end)
    }
}
