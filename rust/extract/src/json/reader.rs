//! The reader: a machine over the text that writes healed, compact JSON as it goes.
//!
//! One `step` function a state; every state can stop at any byte and go on with the next chunk.
//! Containers are a stack of frames, so depth costs memory, never the call stack. Strings whose
//! end was misjudged are read a second time with the right end, at most once each, which keeps the
//! whole linear.

use super::ahead::{Ahead, Gap, Input, Tok};
use super::bare::Bare;
use super::closers::{Closer, Closers, Match};
use super::decide::{self, Mismatch, Shape};
use super::glyph::{Glyph, Quote, Seen};
use super::kinds::{Error, ErrorKind, RepairKind};
use super::prose::{Document, FENCES};
use super::strict;
use super::string::Text;
use crate::Repair;
use std::sync::{Arc, LazyLock};

/// Repairs recorded for one value; the list ends there so that hostile text cannot fill memory.
const MAX_REPAIRS: usize = 1 << 16;
/// Members recorded for one value, for the same reason.
const MAX_MEMBERS: usize = 1 << 18;

/// Bytes of output to make room for at first, at most.
const FIRST_RESERVE: usize = 1 << 12;

/// How the text around the value is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Stop right after one value, as inside call markup; the text begins with it.
    Value,
    /// The value may be surrounded by prose, reasoning blocks and fences; several make a list.
    Document,
}

/// Limits and surroundings of a value.
#[derive(Clone, Debug)]
pub struct ReaderOptions {
    /// Containers open at once, 512 by default.
    pub max_depth: usize,
    /// Bytes of text, counted from where the value begins.
    pub max_bytes: usize,
    /// How the text around the value is treated.
    pub mode: Mode,
    /// Literals that end a value which is not closed, when they are met outside strings.
    ///
    /// A string runs on over such a literal as long as the next quote of its kind can end it. When
    /// that quote cannot, or none comes, the string ended before the literal, and before the
    /// closers that stand right in front of it.
    pub closers: Arc<[Closer]>,
    /// Members down to this depth are recorded; the children of the value itself have depth 1.
    pub member_depth: usize,
    /// Whether a number that no finite double holds is written as it stands and listed in
    /// [`Reader::huge_numbers`], instead of failing the whole value.
    pub keep_huge_numbers: bool,
}

static NO_CLOSERS: LazyLock<Arc<[Closer]>> = LazyLock::new(|| Arc::from([]));

impl Default for ReaderOptions {
    fn default() -> Self {
        Self {
            max_depth: 512,
            max_bytes: 64 << 20,
            mode: Mode::Value,
            closers: Arc::clone(&NO_CLOSERS),
            member_depth: 4,
            keep_huge_numbers: false,
        }
    }
}

/// How far a reader has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The value goes on.
    NeedMore,
    /// The value is over.
    Done {
        /// One past its last byte in the text.
        end: usize,
        /// Whether it was closed: by its own closer, or by one of [`ReaderOptions::closers`]
        /// outside a string. False when the text ended first, or a string was cut.
        complete: bool,
    },
    /// It cannot be read; what was read before stays.
    Failed(Error),
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `{...}`
    Object,
    /// `[...]`
    Array,
    /// `"..."`
    String,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// `null`
    Null,
}

/// A member of an object, or an item of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// 1 for the children of the value itself.
    pub depth: usize,
    /// The container's own place in the list; None for the value itself.
    pub parent: Option<usize>,
    /// The key's literal in the output, quotes included; empty for items of an array.
    pub key: std::ops::Range<usize>,
    /// What the value is.
    pub kind: Kind,
    /// The value in the output; while it is not closed, up to where it was written last.
    pub output: std::ops::Range<usize>,
    /// The value in the text; while it is not closed, the end is the start.
    pub text: std::ops::Range<usize>,
    /// Whether the value is over.
    pub closed: bool,
}

/// A key that had no value, and was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValuelessKey {
    /// The key, decoded.
    pub key: String,
    /// The depth of the member that it would have been.
    pub depth: usize,
    /// The container's place in [`Reader::members`]; None for the value itself.
    pub parent: Option<usize>,
    /// Where it stood in the text.
    pub offset: usize,
}

/// What the machine expects next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// A value.
    Value,
    /// A key, or the end of the object.
    Key,
    /// The colon after a key.
    Colon,
    /// A comma or a closer.
    Next,
    /// The rest of a string.
    Text,
    /// What a quote in a string means.
    Quote,
    /// The rest of a bare token.
    Bare,
    /// The rest of a comment.
    Comment,
    /// What a closer of the wrong kind stands for.
    Mismatch,
    /// Whether a key without a colon begins a set.
    Set,
    /// Whether a string follows that joins the last one.
    Join,
    /// Around the values of a document.
    Around,
    /// Nothing.
    Over,
}

/// What a step led to.
pub(super) enum Flow {
    Go,
    /// The text ends before the next step.
    More,
    Done {
        end: usize,
        complete: bool,
    },
    Fail(Error),
}

/// An open container.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) shape: Shape,
    /// Where its opener stands in the output.
    pub(super) open: usize,
    pub(super) filled: bool,
    /// Whether its text held a comma.
    pub(super) commas: bool,
    /// Openers too many that were dropped.
    pub(super) doubled: bool,
    pub(super) member: Option<usize>,
    /// The members and valueless keys recorded before its own.
    pub(super) first_member: usize,
    pub(super) first_valueless: usize,
    /// Whether this is the outer object whose braces are missing.
    pub(super) implicit: bool,
}

impl Frame {
    /// A container whose opener stands at `open` in the output.
    pub(super) fn new(reader: &Reader, shape: Shape, open: usize, member: Option<usize>) -> Self {
        Self {
            shape,
            open,
            filled: false,
            commas: false,
            doubled: false,
            member,
            first_member: reader.members.len(),
            first_valueless: reader.valueless.len(),
            implicit: false,
        }
    }
}

/// The entry being written, should it have to be taken back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    pub(super) mark: usize,
    pub(super) members: usize,
    pub(super) filled: bool,
    pub(super) key_start: usize,
    pub(super) key_end: usize,
    pub(super) offset: usize,
    /// One past the key in the text.
    pub(super) end: usize,
}

/// Reads one JSON value, or the values of a document, healing as it goes.
///
/// The total cost over all calls is linear in the text, however it is cut into chunks, and the
/// result does not depend on the chunks. Memory: the output, and a frame for each open container.
///
/// # Examples
///
/// ```
/// use turnwarden_extract::json::{Reader, ReaderOptions, Status};
///
/// let text = r#"{"city": 'Oslo', "days": 3,}"#;
/// let mut reader = Reader::new(ReaderOptions::default(), 0);
/// assert_eq!(reader.read(&text[..12], false), Status::NeedMore);
/// assert_eq!(reader.read(text, false), Status::Done { end: 28, complete: true });
/// assert_eq!(reader.output(), r#"{"city":"Oslo","days":3}"#);
/// ```
#[derive(Clone, Debug)]
pub struct Reader {
    pub(super) options: ReaderOptions,
    closers: Closers,
    start: usize,
    pub(super) at: usize,
    pub(super) state: State,
    pub(super) frames: Vec<Frame>,
    pub(super) out: String,
    pub(super) repairs: Vec<Repair>,
    pub(super) members: Vec<Member>,
    pub(super) valueless: Vec<ValuelessKey>,
    pub(super) huge_numbers: Vec<usize>,
    pub(super) entry: Entry,
    /// A comma that has been read but not written.
    pub(super) comma: Option<usize>,
    /// The member of the scalar being read.
    open_member: Option<usize>,
    pub(super) root_kind: Option<Kind>,
    /// What the last value was.
    pub(super) last_kind: Kind,
    /// Whether the fast path may be taken.
    pub(super) strict_allowed: bool,
    pub(super) text: Text,
    pub(super) bare: Bare,
    pub(super) ahead: Ahead,
    comment: Comment,
    pub(super) document: Document,
    /// Whether the last value was a string, and where its closing quote stands in the output.
    pub(super) last_string: Option<usize>,
    last_string_member: Option<usize>,
    /// Whether quotes and white space are escaped once.
    pub(super) escaped: bool,
    /// Openers of parentheses to be taken out of the output at the end.
    pub(super) holes: Vec<usize>,
    /// Whether a string was ended by guess.
    pub(super) cut: bool,
    finished: Option<Status>,
    work: usize,
}

#[derive(Clone, Copy, Debug)]
struct Comment {
    block: bool,
    then: State,
}

impl Reader {
    /// A reader of the value that begins at `start` bytes of the text.
    #[must_use]
    pub fn new(mut options: ReaderOptions, start: usize) -> Self {
        let state = match options.mode {
            Mode::Value => State::Value,
            Mode::Document => State::Around,
        };
        if options.mode == Mode::Document && options.closers.is_empty() {
            options.closers = Arc::clone(&FENCES);
        }
        let strict_allowed = strict::is_safe(&options.closers);
        Self {
            closers: Closers::new(&options.closers),
            options,
            start,
            at: start,
            state,
            frames: Vec::new(),
            out: String::new(),
            repairs: Vec::new(),
            members: Vec::new(),
            valueless: Vec::new(),
            huge_numbers: Vec::new(),
            entry: Entry::default(),
            comma: None,
            open_member: None,
            root_kind: None,
            last_kind: Kind::Null,
            strict_allowed,
            text: Text::default(),
            bare: Bare::default(),
            ahead: Ahead::new(),
            comment: Comment {
                block: false,
                then: State::Value,
            },
            document: Document::default(),
            last_string: None,
            last_string_member: None,
            escaped: false,
            holes: Vec::new(),
            cut: false,
            finished: None,
            work: 0,
        }
    }

    /// Reads on. `text` is the whole text so far, the same as before and more; `last` says that no
    /// more will come. Bytes before the value are not looked at.
    pub fn read(&mut self, text: &str, last: bool) -> Status {
        if let Some(status) = self.finished {
            return status;
        }
        if text.len().saturating_sub(self.start) > self.options.max_bytes {
            let error = Error::new(ErrorKind::TooLong, self.start + self.options.max_bytes);
            return self.finish(Status::Failed(error));
        }
        if self.out.capacity() == 0 {
            self.make_room(text);
        }
        let closers = std::mem::take(&mut self.closers);
        let status = self.read_on(Input {
            text,
            last,
            closers: &closers,
        });
        self.closers = closers;
        status
    }

    fn read_on(&mut self, input: Input<'_>) -> Status {
        loop {
            let before = self.at;
            if matches!(self.state, State::Value | State::Key | State::Next) {
                self.strict(input);
            }
            let mut flow = self.step(input);
            self.work += self.at.abs_diff(before) + 1;
            #[cfg(test)]
            assert!(
                self.work < 400 * (input.text.len() + 10),
                "no progress in state {:?} at {} of {:?}",
                self.state,
                self.at,
                input.text,
            );
            if input.last && matches!(flow, Flow::More) {
                flow = self.end_of_text(input);
            }
            if let (Flow::Fail(error), Mode::Document) = (&flow, self.options.mode) {
                flow = self.document_failure(*error);
            }
            match flow {
                Flow::Go => {}
                Flow::More if input.last => {
                    let error = Error::new(ErrorKind::Unreadable, self.at);
                    return self.finish(Status::Failed(error));
                }
                Flow::More => {
                    self.text_pause(input);
                    return Status::NeedMore;
                }
                Flow::Done { end, complete } => {
                    return self.finish(Status::Done { end, complete });
                }
                Flow::Fail(error) => return self.finish(Status::Failed(error)),
            }
        }
    }

    /// The healed JSON so far, without white space outside strings. Complete JSON once the status
    /// is [`Status::Done`].
    #[must_use]
    pub fn output(&self) -> &str {
        &self.out
    }

    /// Takes the healed JSON out of the reader.
    #[must_use]
    pub fn into_output(self) -> String {
        self.out
    }

    /// `output()[..settled()]` will not change any more.
    #[must_use]
    pub fn settled(&self) -> usize {
        if matches!(self.finished, Some(Status::Done { .. })) {
            return self.out.len();
        }
        if self.options.mode == Mode::Document {
            return 0;
        }
        let state = match self.state {
            State::Comment => self.comment.then,
            state => state,
        };
        let limit = match state {
            State::Text | State::Quote => self.text_settled(self.entry.mark),
            State::Key | State::Next => self.out.len(),
            State::Value | State::Bare if self.inside() != Some(Shape::Object) => self.out.len(),
            _ => self.entry.mark.min(self.out.len()),
        };
        let mut settled = limit;
        if let Some(quote) = self.last_string {
            // Another string may be joined to the last one.
            settled = settled.min(quote);
        }
        if let Some(frame) = self.frames.last() {
            let before_colon = match frame.shape {
                Shape::Object => !frame.filled || self.entry.key_end <= self.entry.key_start,
                _ => !frame.filled || self.last_string.is_some() || self.in_string(),
            };
            let first = !frame.filled || (!self.entry.filled && before_colon);
            if first || matches!(state, State::Colon | State::Set) {
                settled = settled.min(frame.open);
            }
        }
        let parens = self
            .frames
            .iter()
            .find(|frame| frame.shape == Shape::Parens);
        if let Some(frame) = parens {
            settled = settled.min(frame.open);
        }
        self.holes
            .first()
            .map_or(settled, |&hole| hole.min(settled))
    }

    /// What was healed, in the order in which it was decided.
    #[must_use]
    pub fn repairs(&self) -> &[Repair] {
        &self.repairs
    }

    /// The members of the value down to [`ReaderOptions::member_depth`], in the order in which
    /// they begin.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Keys that had no value and were dropped.
    #[must_use]
    pub fn valueless_keys(&self) -> &[ValuelessKey] {
        &self.valueless
    }

    /// Where in the text numbers stand that no finite double holds; see
    /// [`ReaderOptions::keep_huge_numbers`].
    #[must_use]
    pub fn huge_numbers(&self) -> &[usize] {
        &self.huge_numbers
    }

    /// What the value is, once it has begun.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        self.root_kind
    }

    /// Whether a string is being read at the moment.
    #[must_use]
    pub fn in_string(&self) -> bool {
        matches!(self.state, State::Text | State::Quote)
    }

    /// Scratch.
    #[doc(hidden)]
    #[must_use]
    pub fn state_name(&self) -> String {
        format!("{:?} cut {} at {}", self.state, self.cut, self.at)
    }

    /// Steps taken and bytes passed so far: what the linearity tests count.
    #[doc(hidden)]
    #[must_use]
    pub fn work(&self) -> usize {
        self.work + self.ahead.work
    }

    fn finish(&mut self, status: Status) -> Status {
        self.fill_holes();
        self.repairs.sort_by_key(|repair| repair.offset);
        self.state = State::Over;
        self.finished = Some(status);
        status
    }

    fn step(&mut self, input: Input<'_>) -> Flow {
        match self.state {
            State::Value => self.step_value(input),
            State::Key => self.step_key(input),
            State::Colon => self.step_colon(input),
            State::Next => self.step_next(input),
            State::Text => self.step_text(input),
            State::Quote => self.step_quote(input),
            State::Bare => self.step_bare(input),
            State::Comment => self.step_comment(input),
            State::Mismatch => self.step_mismatch(input),
            State::Set => self.step_set(input),
            State::Join => self.step_join(input),
            State::Around => self.step_around(input),
            State::Over => Flow::More,
        }
    }

    pub(super) fn repair(&mut self, kind: RepairKind, offset: usize) {
        if self.repairs.len() < MAX_REPAIRS {
            self.repairs.push(Repair { kind, offset });
        }
    }

    pub(super) fn look(&mut self, at: usize) {
        self.ahead.begin_at(at, Gap::None);
    }

    /// Passes over white space; None at the end of the text.
    pub(super) fn skip_space(&mut self, input: Input<'_>) -> Option<Seen> {
        loop {
            let seen = input.glyph(self.at)?;
            match seen.glyph {
                Glyph::Space | Glyph::Newline => {
                    if !seen.plain {
                        self.repair(RepairKind::SpaceDropped, self.at);
                    }
                    self.at += seen.length;
                }
                _ => return Some(seen),
            }
        }
    }

    /// What may stand between any two tokens: comments, ellipses, stray backslashes, closers from
    /// outside. None when the character is something else.
    fn step_noise(&mut self, seen: Seen, input: Input<'_>) -> Option<Flow> {
        match input.closers.at(input.bytes(), self.at, input.last) {
            Match::Yes => return Some(self.end_at_closer(input)),
            Match::Partial => return Some(Flow::More),
            Match::No => {}
        }
        let bytes = input.bytes();
        let next = bytes.get(self.at + 1).copied();
        if next.is_none() && !input.last {
            let undecided = matches!(
                seen.glyph,
                Glyph::Slash | Glyph::Backslash | Glyph::Quote(Quote::Backtick)
            );
            if undecided {
                return Some(Flow::More);
            }
        }
        match (seen.glyph, next) {
            (Glyph::Slash, Some(b'/')) => Some(self.begin_comment(false, 2)),
            (Glyph::Slash, Some(b'*')) => Some(self.begin_comment(true, 2)),
            (Glyph::Hash, _) => Some(self.begin_comment(false, 1)),
            (Glyph::Dot, _) => {
                let goes_on = self.at > 0 && bytes.get(self.at - 1) == Some(&b'.');
                if !goes_on {
                    self.repair(RepairKind::EllipsisDropped, self.at);
                }
                self.at += seen.length;
                Some(Flow::Go)
            }
            (Glyph::Backslash, Some(b'n' | b't' | b'r')) => {
                self.repair(RepairKind::BackslashDropped, self.at);
                self.at += 2;
                Some(Flow::Go)
            }
            (Glyph::Quote(Quote::Backtick), Some(b'`')) => self.step_inner_fence(input),
            (Glyph::Backslash, Some(b'"')) => None,
            (Glyph::Backslash, _) => {
                self.repair(RepairKind::BackslashDropped, self.at);
                self.at += 1;
                Some(Flow::Go)
            }
            _ => None,
        }
    }

    /// A fence between tokens, with the name of its language.
    fn step_inner_fence(&mut self, input: Input<'_>) -> Option<Flow> {
        let rest = input.bytes().get(self.at..).unwrap_or_default();
        if rest.len() < 3 {
            return (!input.last).then_some(Flow::More);
        }
        if !rest.starts_with(b"```") {
            return None;
        }
        let length = rest
            .iter()
            .position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'`');
        let Some(length) = length.or(input.last.then_some(rest.len())) else {
            return Some(Flow::More);
        };
        self.repair(RepairKind::FenceDropped, self.at);
        self.at += length;
        Some(Flow::Go)
    }

    pub(super) fn begin_comment(&mut self, block: bool, length: usize) -> Flow {
        self.repair(RepairKind::CommentDropped, self.at);
        self.comment = Comment {
            block,
            then: self.state,
        };
        self.at += length;
        self.state = State::Comment;
        Flow::Go
    }

    fn step_comment(&mut self, input: Input<'_>) -> Flow {
        let bytes = input.bytes();
        let rest = bytes.get(self.at..).unwrap_or_default();
        let end = if self.comment.block {
            memchr::memmem::find(rest, b"*/").map(|found| self.at + found + 2)
        } else {
            memchr::memchr(b'\n', rest).map(|found| self.at + found)
        };
        let limit = end.unwrap_or(bytes.len());
        if let Some(closer) = input.closers.find(bytes, self.at, limit) {
            self.at = closer;
            self.state = self.comment.then;
            return Flow::Go;
        }
        if let Some(end) = end {
            self.at = end;
            self.state = self.comment.then;
            return Flow::Go;
        }
        if input.last {
            self.at = bytes.len();
            self.state = self.comment.then;
            return Flow::More;
        }
        // The end of the text may hold the beginning of an end.
        let tail = input.closers.longest().max(2);
        self.at = self.at.max(bytes.len().saturating_sub(tail));
        Flow::More
    }

    pub(super) fn parent(&self) -> Option<Frame> {
        self.frames
            .len()
            .checked_sub(2)
            .and_then(|below| self.frames.get(below))
            .copied()
    }

    pub(super) fn push_frame(&mut self, frame: Frame) {
        self.frames.push(frame);
    }

    pub(super) fn pop_frame(&mut self) -> Option<Frame> {
        self.frames.pop()
    }

    pub(super) fn inside(&self) -> Option<Shape> {
        self.frames.last().map(|frame| frame.shape)
    }

    // Values.

    fn step_value(&mut self, input: Input<'_>) -> Flow {
        let Some(seen) = self.skip_space(input) else {
            return Flow::More;
        };
        let at = self.at;
        if let Glyph::Hash = seen.glyph {
            // A bare colour after a colon; a comment elsewhere.
            let next = input.bytes().get(at + 1);
            if next.is_none() && !input.last {
                return Flow::More;
            }
            if self.inside() == Some(Shape::Object) && next.is_some_and(u8::is_ascii_alphanumeric) {
                return self.begin_bare(at, false);
            }
        }
        if seen.glyph == Glyph::Dot {
            let next = input.bytes().get(at + 1);
            if next.is_none() && !input.last {
                return Flow::More;
            }
            if next.is_some_and(u8::is_ascii_digit) {
                return self.begin_bare(at, false);
            }
        }
        if let Some(flow) = self.step_noise(seen, input) {
            return flow;
        }
        if !seen.plain && seen.length > 1 && seen.glyph != Glyph::Other {
            self.note_translated(seen, at);
        }
        match seen.glyph {
            Glyph::OpenBrace => self.open(Shape::Object, seen),
            Glyph::OpenBracket => self.open(Shape::Array, seen),
            Glyph::OpenParen => {
                self.repair(RepairKind::OpenerTranslated, at);
                self.open(Shape::Parens, seen)
            }
            Glyph::Quote(quote) => self.begin_text(quote, seen.length, input),
            Glyph::Backslash => self.begin_text(Quote::EscapedDouble, 2, input),
            Glyph::CloseBrace | Glyph::CloseBracket | Glyph::CloseParen => {
                if self.inside() == Some(Shape::Object) {
                    self.drop_key();
                }
                self.state = State::Next;
                self.close(seen, input)
            }
            Glyph::Comma | Glyph::Semicolon => self.value_comma(seen),
            Glyph::Colon => {
                self.repair(RepairKind::ColonDropped, at);
                self.at += seen.length;
                Flow::Go
            }
            _ => self.begin_bare(at, false),
        }
    }

    fn note_translated(&mut self, seen: Seen, at: usize) {
        if !matches!(seen.glyph, Glyph::Quote(_) | Glyph::Word) {
            self.repair(RepairKind::PunctuationTranslated, at);
        }
    }

    fn value_comma(&mut self, seen: Seen) -> Flow {
        match self.inside() {
            Some(Shape::Object) => {
                self.drop_key();
                self.comma = Some(self.at);
                self.at += seen.length;
                self.state = State::Key;
                Flow::Go
            }
            Some(_) => self.take_comma(seen),
            None => Flow::Fail(Error::new(ErrorKind::Unreadable, self.at)),
        }
    }

    fn drop_key(&mut self) {
        let entry = self.entry;
        let literal = self
            .out
            .get(entry.key_start..entry.key_end)
            .unwrap_or_default();
        self.valueless.push(ValuelessKey {
            key: super::unescape(literal).into_owned(),
            depth: self.frames.len(),
            parent: self.frames.last().and_then(|frame| frame.member),
            offset: entry.offset,
        });
        self.repair(RepairKind::KeyDropped, entry.offset);
        self.drop_entry();
    }

    /// Takes the entry that was begun out of the output.
    pub(super) fn drop_entry(&mut self) {
        let entry = self.entry;
        self.out.truncate(entry.mark);
        self.members.truncate(entry.members);
        if let Some(frame) = self.frames.last_mut() {
            frame.filled = entry.filled;
        }
        self.open_member = None;
    }

    pub(super) fn open(&mut self, shape: Shape, seen: Seen) -> Flow {
        let at = self.at;
        if self.frames.len() >= self.options.max_depth {
            return Flow::Fail(Error::new(ErrorKind::TooDeep, at));
        }
        self.begin_item(at);
        let kind = match shape {
            Shape::Object => Kind::Object,
            Shape::Array | Shape::Parens => Kind::Array,
        };
        let member = self.open_member(kind, at);
        let frame = Frame::new(self, shape, self.out.len(), member);
        self.push_frame(frame);
        self.out.push(match shape {
            Shape::Object => '{',
            Shape::Array | Shape::Parens => '[',
        });
        self.comma = None;
        self.leave_string();
        self.at += seen.length;
        self.state = match shape {
            Shape::Object => State::Key,
            Shape::Array | Shape::Parens => State::Value,
        };
        Flow::Go
    }

    /// Writes the comma before an item of an array; keys write theirs themselves.
    pub(super) fn begin_item(&mut self, at: usize) {
        if self.inside() != Some(Shape::Object) {
            self.begin_entry(at);
        }
    }

    /// Writes the comma before an entry, and remembers where the entry begins.
    pub(super) fn begin_entry(&mut self, at: usize) {
        let comma = self.comma.take();
        let Some(frame) = self.frames.last_mut() else {
            self.entry.mark = self.out.len();
            return;
        };
        let filled = frame.filled;
        frame.filled = true;
        frame.commas |= filled || comma.is_some();
        self.entry = Entry {
            mark: self.out.len(),
            members: self.members.len(),
            filled,
            key_start: 0,
            key_end: 0,
            offset: at,
            end: at,
        };
        match (filled, comma) {
            (true, None) => {
                self.out.push(',');
                self.repair(RepairKind::CommaAdded, at);
            }
            (true, Some(_)) => self.out.push(','),
            (false, Some(comma)) => self.repair(RepairKind::CommaDropped, comma),
            (false, None) => {}
        }
    }

    pub(super) fn begin_key(&mut self, at: usize) {
        self.begin_entry(at);
        self.entry.key_start = self.out.len();
    }

    pub(super) fn key_done(&mut self) {
        self.entry.key_end = self.out.len();
        self.entry.end = self.at;
        self.state = State::Colon;
    }

    pub(super) fn open_member(&mut self, kind: Kind, at: usize) -> Option<usize> {
        self.last_kind = kind;
        if self.frames.is_empty() {
            self.root_kind = Some(kind);
            return None;
        }
        if !self.records_members() {
            // What closes next is not recorded: the member opened last must stay open.
            self.open_member = None;
            return None;
        }
        let member = self.member(kind, at);
        self.members.push(member);
        let index = self.members.len() - 1;
        self.open_member = Some(index);
        Some(index)
    }

    /// Whether the next value is one of those to be recorded.
    pub(super) fn records_members(&self) -> bool {
        self.frames.len() <= self.options.member_depth && self.members.len() < MAX_MEMBERS
    }

    /// Room for the first things of each kind, so that small values do not grow step by step.
    #[cold]
    fn make_room(&mut self, text: &str) {
        let rest = text.len().saturating_sub(self.at);
        self.out.reserve(rest.clamp(16, FIRST_RESERVE));
        self.frames.reserve(8);
        if self.options.member_depth > 0 {
            self.members.reserve((rest / 16).clamp(4, 64));
        }
    }

    /// A member that begins here.
    pub(super) fn member(&self, kind: Kind, at: usize) -> Member {
        let frame = self.frames.last();
        let key = match frame.map(|frame| frame.shape) {
            Some(Shape::Object) => self.entry.key_start..self.entry.key_end,
            _ => 0..0,
        };
        Member {
            depth: self.frames.len(),
            parent: frame.and_then(|frame| frame.member),
            key,
            kind,
            output: self.out.len()..self.out.len(),
            text: at..at,
            closed: false,
        }
    }

    fn close_member(&mut self, index: Option<usize>) {
        let (out, at) = (self.out.len(), self.at);
        if let Some(member) = index.and_then(|index| self.members.get_mut(index)) {
            member.output.end = out;
            member.text.end = at;
            member.closed = true;
        }
    }

    /// A scalar is over; `self.at` stands behind it.
    pub(super) fn scalar_done(&mut self) -> Flow {
        let member = self.open_member.take();
        self.close_member(member);
        if self.last_string.is_some() {
            // Another string may be joined to it yet.
            self.last_string_member = member;
            if let Some(member) = member.and_then(|index| self.members.get_mut(index)) {
                member.closed = false;
            }
        }
        self.value_done()
    }

    fn value_done(&mut self) -> Flow {
        self.state = State::Next;
        if self.frames.is_empty() {
            return self.root_done(!self.cut);
        }
        Flow::Go
    }

    fn root_done(&mut self, complete: bool) -> Flow {
        match self.options.mode {
            Mode::Value => Flow::Done {
                end: self.at,
                complete,
            },
            Mode::Document => self.document_value(complete),
        }
    }

    // Between values.

    fn step_next(&mut self, input: Input<'_>) -> Flow {
        if self.frames.is_empty() {
            return self.step_root_next(input);
        }
        let Some(seen) = self.skip_space(input) else {
            return Flow::More;
        };
        let at = self.at;
        if let Some(flow) = self.step_noise(seen, input) {
            return flow;
        }
        self.note_punctuation(seen, at);
        match seen.glyph {
            Glyph::Comma | Glyph::Semicolon => self.take_comma(seen),
            Glyph::CloseBrace | Glyph::CloseBracket | Glyph::CloseParen => self.close(seen, input),
            Glyph::Plus if self.last_string.is_some() => {
                self.at += seen.length;
                self.look(self.at);
                self.state = State::Join;
                Flow::Go
            }
            Glyph::Quote(_) | Glyph::Backslash if self.joins_by_place() => {
                self.look(at);
                self.state = State::Join;
                Flow::Go
            }
            Glyph::Colon => self.colon_in_array(seen),
            Glyph::OpenParen | Glyph::Other | Glyph::Equals => {
                Flow::Fail(Error::new(ErrorKind::Unreadable, at))
            }
            _ => self.missing_comma(),
        }
    }

    /// A root value that is not over: only strings that may be joined come here.
    fn step_root_next(&mut self, _input: Input<'_>) -> Flow {
        self.root_done(!self.cut)
    }

    fn note_punctuation(&mut self, seen: Seen, at: usize) {
        let structure = !matches!(seen.glyph, Glyph::Quote(_) | Glyph::Word | Glyph::Other);
        if (structure && seen.length > 1) || seen.glyph == Glyph::Semicolon {
            self.repair(RepairKind::PunctuationTranslated, at);
        }
    }

    /// A string as the value of a key, where the next thing is a string: the two are one, unless
    /// the second is a key.
    fn joins_by_place(&self) -> bool {
        self.last_string.is_some() && self.inside() == Some(Shape::Object)
    }

    /// What follows shows that the last string is over.
    pub(super) fn leave_string(&mut self) {
        self.last_string = None;
        let member = self.last_string_member.take();
        if let Some(member) = member.and_then(|index| self.members.get_mut(index)) {
            member.closed = true;
        }
    }

    fn missing_comma(&mut self) -> Flow {
        self.leave_string();
        self.state = match self.inside() {
            Some(Shape::Object) => State::Key,
            _ => State::Value,
        };
        Flow::Go
    }

    fn take_comma(&mut self, seen: Seen) -> Flow {
        if self.comma.is_some() {
            self.repair(RepairKind::CommaDropped, self.at);
        } else {
            self.comma = Some(self.at);
        }
        self.leave_string();
        self.at += seen.length;
        self.state = match self.inside() {
            Some(Shape::Object) => State::Key,
            _ => State::Value,
        };
        Flow::Go
    }

    fn colon_in_array(&mut self, seen: Seen) -> Flow {
        let at = self.at;
        let first = self.last_string.is_some() && self.entry_is_first();
        let Some(frame) = self
            .frames
            .last_mut()
            .filter(|frame| first && frame.shape == Shape::Array)
        else {
            return Flow::Fail(Error::new(ErrorKind::Unreadable, at));
        };
        // An object that was opened with a bracket.
        frame.shape = Shape::Object;
        let (open, member) = (frame.open, frame.member);
        self.out.replace_range(open..=open, "{");
        self.set_kind(member, Kind::Object);
        self.repair(RepairKind::OpenerTranslated, open);
        self.members.truncate(self.entry.members);
        self.entry.key_start = open + 1;
        self.entry.key_end = self.out.len();
        self.out.push(':');
        self.last_string = None;
        self.at += seen.length;
        self.state = State::Value;
        Flow::Go
    }

    fn entry_is_first(&self) -> bool {
        !self.entry.filled
    }

    fn set_kind(&mut self, member: Option<usize>, kind: Kind) {
        match member {
            Some(index) => {
                if let Some(member) = self.members.get_mut(index) {
                    member.kind = kind;
                }
            }
            None if self.frames.len() == 1 => self.root_kind = Some(kind),
            None => {}
        }
    }

    fn step_join(&mut self, input: Input<'_>) -> Flow {
        let plus = input.bytes().get(self.at.wrapping_sub(1)) == Some(&b'+');
        let Some(first) = self.ahead.token(0, input) else {
            return Flow::More;
        };
        if !matches!(first.tok, Tok::Str | Tok::OpenStr) {
            if first.tok == Tok::End {
                self.at = first.at;
                self.state = State::Next;
                return Flow::Go;
            }
            return Flow::Fail(Error::new(ErrorKind::Unreadable, self.at));
        }
        if !plus {
            let Some(second) = self.ahead.token(1, input) else {
                return Flow::More;
            };
            if second.tok == Tok::Colon || first.tok == Tok::OpenStr {
                return self.missing_comma();
            }
        }
        let (quote, length) = match input.glyph(first.at) {
            Some(Seen {
                glyph: Glyph::Quote(quote),
                length,
                ..
            }) => (quote, length),
            _ => (Quote::EscapedDouble, 2),
        };
        self.repair(RepairKind::StringsJoined, first.at);
        self.at = first.at;
        self.out.pop();
        self.last_string = None;
        self.open_member = self.last_string_member.take();
        self.join_text(quote, length)
    }

    // Closers.

    pub(super) fn close(&mut self, seen: Seen, input: Input<'_>) -> Flow {
        let Some(frame) = self.frames.last() else {
            return Flow::Fail(Error::new(ErrorKind::Unreadable, self.at));
        };
        let matches = matches!(
            (seen.glyph, frame.shape),
            (Glyph::CloseBrace, Shape::Object)
                | (Glyph::CloseBracket, Shape::Array)
                | (Glyph::CloseParen, Shape::Parens)
        );
        if !matches {
            self.look(self.at + seen.length);
            self.state = State::Mismatch;
            return Flow::Go;
        }
        let doubled = frame.doubled;
        if doubled && seen.glyph == Glyph::CloseBrace {
            match input.glyph(self.at + seen.length) {
                None if !input.last => return Flow::More,
                Some(next) if next.glyph == Glyph::CloseBrace => {
                    self.repair(RepairKind::CloserDropped, self.at);
                    self.at += seen.length;
                    if let Some(frame) = self.frames.last_mut() {
                        frame.doubled = false;
                    }
                    self.state = State::Next;
                    return Flow::Go;
                }
                _ => {}
            }
        }
        self.at += seen.length;
        self.close_frame();
        self.value_done()
    }

    /// Writes the closer of the innermost container.
    pub(super) fn close_frame(&mut self) {
        if let Some(comma) = self.comma.take() {
            self.repair(RepairKind::CommaDropped, comma);
            if let Some(frame) = self.frames.last_mut() {
                frame.commas = true;
            }
        }
        self.leave_string();
        let Some(frame) = self.pop_frame() else {
            return;
        };
        match frame.shape {
            Shape::Object => self.out.push('}'),
            Shape::Parens if frame.filled && !frame.commas => {
                self.holes.push(frame.open);
                self.close_member(frame.member);
                self.unwrap_members(&frame);
                return;
            }
            Shape::Array | Shape::Parens => self.out.push(']'),
        }
        self.last_kind = match frame.shape {
            Shape::Object => Kind::Object,
            Shape::Array | Shape::Parens => Kind::Array,
        };
        self.close_member(frame.member);
    }

    /// The only child of parentheses takes their place among the members.
    fn unwrap_members(&mut self, frame: &Frame) {
        let kind = self.last_kind;
        if self.frames.is_empty() {
            self.root_kind = Some(kind);
        }
        if let Some(member) = frame.member.and_then(|index| self.members.get_mut(index)) {
            member.kind = kind;
        }
        let child = frame.first_member;
        let depth = self.frames.len() + 1;
        if self
            .members
            .get(child)
            .is_none_or(|member| member.depth != depth)
        {
            return;
        }
        self.members.remove(child);
        let moved = |parent: &mut Option<usize>, depth: &mut usize| {
            *depth -= 1;
            *parent = match *parent {
                Some(index) if index == child => frame.member,
                Some(index) if index > child => Some(index - 1),
                other => other,
            };
        };
        for member in self.members.iter_mut().skip(child) {
            moved(&mut member.parent, &mut member.depth);
        }
        for key in self.valueless.iter_mut().skip(frame.first_valueless) {
            moved(&mut key.parent, &mut key.depth);
        }
    }

    fn step_mismatch(&mut self, input: Input<'_>) -> Flow {
        let Some(seen) = input.glyph(self.at) else {
            return Flow::More;
        };
        let wanted = match seen.glyph {
            Glyph::CloseBrace => Shape::Object,
            Glyph::CloseBracket => Shape::Array,
            _ => Shape::Parens,
        };
        let Some(inner) = self.inside() else {
            return Flow::Fail(Error::new(ErrorKind::Unreadable, self.at));
        };
        let shape_at = |frames: &[Frame], index: usize| frames.get(index).map(|frame| frame.shape);
        let parent = self.parent().map(|frame| frame.shape);
        let opener = self.frames.iter().rposition(|frame| frame.shape == wanted);
        let outer = opener.map(|index| {
            index
                .checked_sub(1)
                .and_then(|below| shape_at(&self.frames, below))
        });
        let Some(verdict) = decide::mismatch(&mut self.ahead, input, outer, parent, inner) else {
            return Flow::More;
        };
        match verdict {
            Mismatch::Missing => {
                let keep = opener.unwrap_or(0);
                while self.frames.len() > keep + 1 {
                    self.repair(RepairKind::CloserAdded, self.at);
                    self.close_frame();
                }
            }
            Mismatch::Wrong => self.repair(RepairKind::CloserTranslated, self.at),
            Mismatch::Stray => {
                self.repair(RepairKind::CloserDropped, self.at);
                self.at += seen.length;
                self.state = State::Next;
                return Flow::Go;
            }
        }
        self.at += seen.length;
        self.close_frame();
        self.value_done()
    }

    /// A literal from outside ends the value.
    fn end_at_closer(&mut self, input: Input<'_>) -> Flow {
        if self.frames.is_empty() && self.state == State::Value {
            return Flow::Fail(Error::new(ErrorKind::NoValue, self.at));
        }
        let complete = !self.cut && !matches!(self.state, State::Colon | State::Value);
        let complete = complete || (self.inside() != Some(Shape::Object) && !self.cut);
        self.close_all(input);
        self.root_done(complete)
    }

    /// Closes every container that is open.
    fn close_all(&mut self, _input: Input<'_>) {
        match self.state {
            State::Value if self.inside() == Some(Shape::Object) => self.drop_key(),
            State::Colon | State::Set => self.drop_key(),
            _ => {}
        }
        while let Some(frame) = self.frames.last() {
            if !frame.implicit {
                self.repair(RepairKind::CloserAdded, self.at);
            }
            self.close_frame();
        }
        self.state = State::Next;
    }

    // Keys.

    fn step_key(&mut self, input: Input<'_>) -> Flow {
        let Some(seen) = self.skip_space(input) else {
            return Flow::More;
        };
        let at = self.at;
        if let Some(flow) = self.step_noise(seen, input) {
            return flow;
        }
        self.note_punctuation(seen, at);
        match seen.glyph {
            Glyph::Quote(quote) => self.begin_text(quote, seen.length, input),
            Glyph::Backslash => self.begin_text(Quote::EscapedDouble, 2, input),
            Glyph::CloseBrace | Glyph::CloseBracket => self.close(seen, input),
            Glyph::Comma | Glyph::Semicolon => self.take_comma(seen),
            Glyph::OpenBrace => {
                let Some(frame) = self.frames.last_mut().filter(|frame| !frame.filled) else {
                    return Flow::Fail(Error::new(ErrorKind::Unreadable, at));
                };
                frame.doubled = true;
                self.repair(RepairKind::OpenerDropped, at);
                self.at += seen.length;
                Flow::Go
            }
            Glyph::OpenBracket | Glyph::OpenParen | Glyph::CloseParen | Glyph::Colon => {
                Flow::Fail(Error::new(ErrorKind::Unreadable, at))
            }
            _ => self.begin_bare(at, true),
        }
    }

    fn step_colon(&mut self, input: Input<'_>) -> Flow {
        let Some(seen) = self.skip_space(input) else {
            return Flow::More;
        };
        let at = self.at;
        if let Some(flow) = self.step_noise(seen, input) {
            return flow;
        }
        match seen.glyph {
            Glyph::Colon => {
                self.note_punctuation(seen, at);
                self.out.push(':');
                self.at += seen.length;
                self.state = State::Value;
                Flow::Go
            }
            Glyph::Equals => {
                let next = input.bytes().get(at + 1);
                if next.is_none() && !input.last {
                    return Flow::More;
                }
                self.repair(RepairKind::PunctuationTranslated, at);
                self.out.push(':');
                self.at += if next == Some(&b'>') { 2 } else { 1 };
                self.state = State::Value;
                Flow::Go
            }
            Glyph::Comma | Glyph::CloseBrace | Glyph::Semicolon => {
                self.look(at);
                self.state = State::Set;
                Flow::Go
            }
            Glyph::CloseBracket | Glyph::CloseParen => {
                self.drop_key();
                self.state = State::Next;
                Flow::Go
            }
            _ => {
                self.repair(RepairKind::ColonAdded, at);
                self.out.push(':');
                self.state = State::Value;
                Flow::Go
            }
        }
    }

    /// A key without a colon: an element of a set when it is the first of its object and no key
    /// with a colon follows, else a key without a value.
    fn step_set(&mut self, input: Input<'_>) -> Flow {
        let quoted = input.glyph(self.entry.offset).is_some_and(|seen| {
            matches!(seen.glyph, Glyph::Quote(_) | Glyph::Backslash)
                || input
                    .bytes()
                    .get(self.entry.offset)
                    .is_some_and(u8::is_ascii_digit)
        });
        let first =
            self.entry_is_first() && self.frames.last().is_some_and(|frame| !frame.implicit);
        let Some(token) = self.ahead.token(0, input) else {
            return Flow::More;
        };
        let mut set = quoted && first;
        if set && token.tok == Tok::Comma {
            let Some(key) = decide::begins_key(&mut self.ahead, 1, input) else {
                return Flow::More;
            };
            set = !key;
        }
        if !set {
            if !quoted {
                return Flow::Fail(Error::new(ErrorKind::Unreadable, self.entry.offset));
            }
            self.drop_key();
            self.state = State::Next;
            return Flow::Go;
        }
        let Some(frame) = self.frames.last_mut() else {
            return Flow::Fail(Error::new(ErrorKind::Unreadable, self.at));
        };
        frame.shape = Shape::Array;
        let (open, member) = (frame.open, frame.member);
        self.out.replace_range(open..=open, "[");
        self.repair(RepairKind::OpenerTranslated, self.entry.offset);
        self.set_kind(member, Kind::Array);
        self.unquote_number(input);
        self.first_of_set();
        self.state = State::Next;
        Flow::Go
    }

    /// The key that became an element is a member like any other.
    fn first_of_set(&mut self) {
        let Entry {
            key_start,
            offset,
            end,
            ..
        } = self.entry;
        let kind = match self.out.as_bytes().get(key_start) {
            Some(b'"') => Kind::String,
            _ => Kind::Number,
        };
        if let Some(member) = self.open_member(kind, offset) {
            if let Some(member) = self.members.get_mut(member) {
                member.output = key_start..self.out.len();
                member.text.end = end;
                member.closed = true;
            }
            self.open_member = None;
        }
    }

    /// The first element of a set of numbers was read as a key.
    fn unquote_number(&mut self, input: Input<'_>) {
        let digit = input
            .bytes()
            .get(self.entry.offset)
            .is_some_and(u8::is_ascii_digit);
        let key = self
            .out
            .get(self.entry.key_start + 1..self.entry.key_end.saturating_sub(1))
            .unwrap_or_default();
        if digit && super::number::scalar(key) == super::number::Scalar::Number {
            let key = key.to_owned();
            self.out.truncate(self.entry.key_start);
            self.out.push_str(&key);
        }
    }

    // The end of the text.

    fn end_of_text(&mut self, input: Input<'_>) -> Flow {
        match self.state {
            State::Text | State::Quote => self.end_text(input),
            State::Bare => self.end_bare_text(input),
            State::Around => self.end_around(input),
            State::Comment => {
                self.state = self.comment.then;
                Flow::Go
            }
            _ if self.frames.is_empty() => match self.options.mode {
                Mode::Value => Flow::Fail(Error::new(ErrorKind::NoValue, self.at)),
                Mode::Document => {
                    self.state = State::Around;
                    Flow::Go
                }
            },
            _ => {
                self.at = input.text.len();
                self.close_all(input);
                self.root_done(false)
            }
        }
    }

    /// Takes the openers of parentheses around single values out of the output.
    fn fill_holes(&mut self) {
        if self.holes.is_empty() {
            return;
        }
        let mut holes = std::mem::take(&mut self.holes);
        holes.sort_unstable();
        let mut kept = String::with_capacity(self.out.len());
        let mut from = 0;
        for &hole in &holes {
            kept.push_str(self.out.get(from..hole).unwrap_or_default());
            from = hole + 1;
        }
        kept.push_str(self.out.get(from..).unwrap_or_default());
        self.out = kept;
        let shift = |place: &mut usize| *place -= holes.partition_point(|&hole| hole < *place);
        for member in &mut self.members {
            shift(&mut member.key.start);
            shift(&mut member.key.end);
            shift(&mut member.output.start);
            shift(&mut member.output.end);
        }
    }
}
