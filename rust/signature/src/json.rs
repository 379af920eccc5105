//! JSON text to canonical bytes, in one pass and at most one more.
//!
//! Values are written in the order of the text. Objects whose keys turn out not to be in canonical
//! order, or not unique, are noted with their members, and a second pass copies the bytes in
//! order. So text whose keys are sorted costs one pass, any other two, whatever its depth.
//!
//! What is JSON is what Python's `json.loads` takes: RFC 8259, and `NaN`, `Infinity`, `-Infinity`.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::ops::Range;

use memchr::memchr2;

use crate::canon::{Canon, MAX_DEPTH, tag};
use crate::key_order::{KeyHead, KeyPrefix, Ranking, compare_keys};
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
        let start = self.len();
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
        let start = self.len();
        let is_json = with_workspace(|work| {
            let mut reader = Reader {
                text,
                at: 0,
                canon: self,
                work,
            };
            reader.document()?;
            if !work.unordered.objects.is_empty() {
                work.unordered.put_in_order(self, start);
            }
            Some(())
        });
        if is_json.is_none() {
            self.truncate(start);
        }
        is_json.is_some()
    }
}

/// What a thread keeps between texts, so that reading one allocates nothing.
#[derive(Default)]
struct Workspace {
    open: Vec<Open>,
    /// Members of the objects that are open: a stack.
    members: Vec<Member>,
    /// The text of the string with escapes that is being read.
    decoded: Vec<u8>,
    unordered: Unordered,
}

impl Workspace {
    /// Forgets the last text and keeps a bounded amount of memory.
    fn clear(&mut self) {
        clear(&mut self.open);
        clear(&mut self.members);
        clear(&mut self.decoded);
        clear(&mut self.unordered.objects);
        clear(&mut self.unordered.members);
        clear(&mut self.unordered.source);
        clear(&mut self.unordered.pending);
    }
}

fn clear<T>(items: &mut Vec<T>) {
    const KEPT_BYTES: usize = 64 * 1024;
    items.clear();
    items.shrink_to(KEPT_BYTES / size_of::<T>());
}

fn with_workspace<T>(work: impl FnOnce(&mut Workspace) -> T) -> T {
    thread_local! {
        static WORKSPACE: RefCell<Workspace> = RefCell::default();
    }
    WORKSPACE.with_borrow_mut(|workspace| {
        workspace.clear();
        work(workspace)
    })
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

/// A key and its value in the canon.
#[derive(Clone, Copy)]
struct Member {
    prefix: KeyPrefix,
    /// Where the key begins.
    start: usize,
    /// Where the value ends; known once it is read.
    end: usize,
    /// The unordered objects in the value: a range of those noted.
    first_object: usize,
    end_object: usize,
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    canon: &'a mut Canon,
    work: &'a mut Workspace,
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
            let Some(open) = self.work.open.last() else {
                return Some(true);
            };
            let is_object = matches!(open, Open::Object(_));
            if is_object && let Some(member) = self.work.members.last_mut() {
                member.end = self.canon.len();
                member.end_object = self.work.unordered.objects.len();
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
        self.check_depth()?;
        self.at += 1;
        let start = self.canon.len();
        self.canon.begin_object();
        self.skip_white_space();
        if self.peek()? == b'}' {
            self.at += 1;
            self.canon.end_object();
            return Some(false);
        }
        self.work.open.push(Open::Object(OpenObject {
            start,
            first_member: self.work.members.len(),
            in_order: true,
        }));
        self.key()?;
        Some(true)
    }

    fn begin_array(&mut self) -> Option<bool> {
        self.check_depth()?;
        self.at += 1;
        self.canon.begin_array();
        self.skip_white_space();
        if self.peek()? == b']' {
            self.at += 1;
            self.canon.end_array();
            return Some(false);
        }
        self.work.open.push(Open::Array);
        Some(true)
    }

    fn check_depth(&self) -> Option<()> {
        (self.work.open.len() < MAX_DEPTH).then_some(())
    }

    fn end_array(&mut self) {
        self.canon.end_array();
        self.work.open.pop();
    }

    fn end_object(&mut self) {
        self.canon.end_object();
        let Some(Open::Object(object)) = self.work.open.pop() else {
            return;
        };
        if !object.in_order {
            let region = object.start..self.canon.len();
            let members = self.work.members.get_mut(object.first_member..);
            self.work
                .unordered
                .note(region, members.unwrap_or_default(), self.canon);
        }
        self.work.members.truncate(object.first_member);
    }

    /// Reads a key and its colon.
    fn key(&mut self) -> Option<()> {
        self.skip_white_space();
        self.expect(b'"')?;
        let start = self.canon.len();
        let rest = self.text.get(self.at..)?;
        let text = rest.get(..plain_length(rest))?;
        let prefix = if rest.get(text.len()) == Some(&b'"') {
            let head = KeyHead::of(text);
            self.canon.key(head, text);
            self.at += text.len() + 1;
            head.prefix()
        } else {
            self.string_with_escapes()?;
            KeyHead::of(&self.work.decoded).prefix()
        };
        self.push_member(start, prefix)?;
        self.skip_white_space();
        self.expect(b':')
    }

    /// Notes the member whose key was just written.
    fn push_member(&mut self, start: usize, prefix: KeyPrefix) -> Option<()> {
        let member = Member {
            prefix,
            start,
            end: start,
            first_object: self.work.unordered.objects.len(),
            end_object: 0,
        };
        if let Some(Open::Object(object)) = self.work.open.last_mut()
            && object.in_order
            && let Some(before) = self.work.members.get(object.first_member..)?.last()
        {
            object.in_order = compare_members(before, &member, self.canon).is_lt();
        }
        self.work.members.push(member);
        Some(())
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
        self.work.decoded.clear();
        let mut has_surrogates = false;
        loop {
            let rest = self.text.get(self.at..)?;
            let plain = plain_length(rest);
            self.work.decoded.extend_from_slice(rest.get(..plain)?);
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
            wtf8::join_surrogates(&mut self.work.decoded);
        }
        self.canon.string(&self.work.decoded);
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
        self.work.decoded.push(decoded);
        Some(false)
    }

    fn unicode_escape(&mut self) -> Option<bool> {
        let digits = self.text.get(self.at..self.at + 4)?;
        let unit = digits.iter().try_fold(0_u32, |unit, &digit| {
            Some(unit << 4 | char::from(digit).to_digit(16)?)
        })?;
        self.at += 4;
        Some(wtf8::push_unit(&mut self.work.decoded, unit))
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
#[inline]
fn plain_length(text: &[u8]) -> usize {
    const SHORT: usize = 32;
    // Most strings are short: a few words of eight bytes each.
    let mut length = 0;
    while length < SHORT
        && let Some(word) = text.get(length..).and_then(<[u8]>::first_chunk)
    {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return length + special.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    let rest = text.get(length..).unwrap_or_default();
    length + long_plain_length(rest)
}

fn long_plain_length(text: &[u8]) -> usize {
    let plain = memchr2(b'"', b'\\', text).unwrap_or(text.len());
    let text = text.get(..plain).unwrap_or(text);
    let smallest = text.iter().fold(u8::MAX, |least, &byte| least.min(byte));
    if smallest >= b' ' {
        return plain;
    }
    let control = text.iter().position(|&byte| byte < b' ');
    control.unwrap_or(plain)
}

/// The high bit of each byte of the word that is special; bytes after the first may be wrong.
#[inline]
fn special_bytes(word: u64) -> u64 {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = EACH << 7;
    let is_zero = |word: u64| word.wrapping_sub(EACH) & !word;
    let is_control = word.wrapping_sub(EACH * 0x20) & !word;
    let is_quote = is_zero(word ^ (EACH * 0x22));
    let is_backslash = is_zero(word ^ (EACH * 0x5C));
    (is_control | is_quote | is_backslash) & HIGH
}

/// The text of the key that begins here.
fn key_at(canon: &Canon, start: usize) -> &[u8] {
    let bytes = canon.as_bytes().get(start..).unwrap_or_default();
    match Value::from_bytes(bytes).first() {
        Some(Token::String(text)) => text,
        _ => &[],
    }
}

fn compare_members(left: &Member, right: &Member, canon: &Canon) -> Ordering {
    left.prefix
        .compare(right.prefix)
        .unwrap_or_else(|| compare_keys(key_at(canon, left.start), key_at(canon, right.start)))
}

/// The objects whose members do not stand in canonical order.
///
/// They are noted as they are closed: those inside an object just before it.
#[derive(Default)]
struct Unordered {
    objects: Vec<UnorderedObject>,
    /// Their members, those of one object together and in canonical order.
    members: Vec<Member>,
    /// The canon as it was written, and what is left to copy of it.
    source: Vec<u8>,
    pending: Vec<Pending>,
}

struct UnorderedObject {
    /// From its opening tag to behind its closing one.
    region: Range<usize>,
    members: Range<usize>,
    /// The first of the unordered objects inside it, or itself.
    first_object: usize,
}

/// What is left to copy.
enum Pending {
    /// A stretch of bytes without unordered objects.
    Bytes(Range<usize>),
    /// Members of an object, then its closing tag.
    Members(Range<usize>),
}

impl Unordered {
    /// Notes an object that was just closed.
    fn note(&mut self, region: Range<usize>, members: &mut [Member], canon: &Canon) {
        let first = self.members.len();
        let first_object = members.iter().map(|member| member.first_object).min();
        if let Some(ranking) = Ranking::of(members.iter().map(|member| member.prefix)) {
            let in_order = (0..members.len()).map(|place| ranking.at(place));
            let in_order = in_order.filter_map(|index| members.get(index));
            self.members.extend(in_order.copied());
        } else {
            self.note_sorted(members, canon);
        }
        self.objects.push(UnorderedObject {
            region,
            members: first..self.members.len(),
            first_object: first_object.unwrap_or(self.objects.len()),
        });
    }

    /// Notes members whose order the first bytes of their keys do not tell.
    fn note_sorted(&mut self, members: &mut [Member], canon: &Canon) {
        members.sort_unstable_by(|left, right| {
            compare_members(left, right, canon).then(left.start.cmp(&right.start))
        });
        for (index, member) in members.iter().enumerate() {
            let next = members.get(index + 1);
            let is_last = next.is_none_or(|next| compare_members(member, next, canon).is_ne());
            if is_last {
                self.members.push(*member); // the last of equal keys wins
            }
        }
    }

    /// Rewrites the canon from `start` on with all members in order.
    fn put_in_order(&mut self, canon: &mut Canon, start: usize) {
        let mut source = std::mem::take(&mut self.source);
        let mut pending = std::mem::take(&mut self.pending);
        source.extend_from_slice(canon.as_bytes());
        canon.truncate(start);
        self.split(start..source.len(), 0..self.objects.len(), &mut pending);
        while let Some(next) = pending.pop() {
            match next {
                Pending::Bytes(range) => canon.extend_from(&source, range),
                Pending::Members(members) => {
                    self.copy_members(members, &source, canon, &mut pending);
                }
            }
        }
        self.source = source;
        self.pending = pending;
    }

    /// Copies members up to one that holds unordered objects; that and the rest are left to do.
    fn copy_members(
        &self,
        mut members: Range<usize>,
        source: &[u8],
        canon: &mut Canon,
        pending: &mut Vec<Pending>,
    ) {
        while let Some(member) = members.next().and_then(|index| self.members.get(index)) {
            if member.first_object < member.end_object {
                pending.push(Pending::Members(members));
                let objects = member.first_object..member.end_object;
                return self.split(member.start..member.end, objects, pending);
            }
            canon.extend_from(source, member.start..member.end);
        }
        canon.end_object();
    }

    /// Puts a stretch of bytes on the stack in pieces, the first on top: the unordered objects
    /// in it, and what stands around them.
    fn split(&self, region: Range<usize>, objects: Range<usize>, pending: &mut Vec<Pending>) {
        let mut end = region.end;
        let mut next = objects.end;
        while next > objects.start
            && let Some(object) = self.objects.get(next - 1)
        {
            pending.push(Pending::Bytes(object.region.end..end));
            pending.push(Pending::Members(object.members.clone()));
            end = object.region.start + 1; // its opening tag is copied with what is before
            next = object.first_object;
        }
        pending.push(Pending::Bytes(region.start..end));
    }
}
