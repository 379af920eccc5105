//! The reader: a machine over the text that writes healed, compact JSON as it goes.
//!
//! One `step` function a state; every state can stop at any byte and go on with the next chunk.
//! Containers are a stack of frames, so depth costs memory, never the call stack. Strings whose
//! end was misjudged are read a second time with the right end, at most once each, which keeps the
//! whole linear.

use super::ahead::{Ahead, Gap, Input};
use super::bare::Bare;
use super::closers::{Closer, Closers};
use super::decide::Shape;
use super::entries::Entry;
use super::kinds::{Error, ErrorKind, RepairKind};
use super::noise::Comment;
use super::prose::{Document, FENCES};
use super::stack::Stack;
use super::strict;
use super::string::Text;
use crate::Repair;
use std::sync::{Arc, LazyLock};

/// Repairs recorded for one value; the list ends there so that hostile text cannot fill memory.
const MAX_REPAIRS: usize = 1 << 16;

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
    /// Whether the value stands in a code fence: only then may one end a string.
    pub in_fence: bool,
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
            in_fence: false,
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

/// How far the value was when the first repair was made, even one that was taken back since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FirstRepair {
    /// Where in the text.
    pub(crate) offset: usize,
    /// How many members had begun, and which of them were open.
    members: usize,
    open: Vec<usize>,
    settled: usize,
}

impl FirstRepair {
    /// Whether a member had begun for good by then.
    pub(crate) fn had_begun(&self, index: usize, member: &Member) -> bool {
        index < self.members && member.output.start < self.settled
    }

    /// Whether a member had ended for good by then.
    pub(crate) fn had_ended(&self, index: usize, member: &Member) -> bool {
        let ended = index < self.members && !self.open.contains(&index);
        ended && member.output.end <= self.settled
    }
}

/// What the machine expects next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// A value.
    Value,
    /// A key, or the end of the object.
    Key,
    /// What a bracket before a key stands for.
    Bracket,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Go,
    /// The text ends before the next step.
    More,
    /// The outcome is known.
    Over,
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
    pub(super) frames: Stack,
    pub(super) out: String,
    pub(super) repairs: Vec<Repair>,
    /// How many of them have stood all along since they were last looked at.
    pub(super) kept_repairs: usize,
    pub(super) members: Vec<Member>,
    pub(super) valueless: Vec<ValuelessKey>,
    pub(super) huge_numbers: Vec<usize>,
    pub(super) entry: Entry,
    /// A comma that has been read but not written.
    pub(super) comma: Option<usize>,
    /// Where punctuation was last noted as translated.
    pub(super) noted: Option<usize>,
    /// The member of the scalar being read.
    pub(super) open_member: Option<usize>,
    pub(super) root_kind: Option<Kind>,
    /// What the last value was.
    pub(super) last_kind: Kind,
    /// Whether the fast path may be taken.
    pub(super) strict_allowed: bool,
    pub(super) text: Text,
    pub(super) bare: Bare,
    pub(super) ahead: Ahead,
    pub(super) comment: Comment,
    pub(super) document: Document,
    /// Whether the last value was a string, and where its closing quote stands in the output.
    pub(super) last_string: Option<usize>,
    pub(super) last_string_member: Option<usize>,
    /// Whether quotes and white space are escaped once.
    pub(super) escaped: bool,
    /// Openers of parentheses to be taken out of the output at the end.
    pub(super) holes: Vec<usize>,
    /// Whether a string was ended by guess.
    pub(super) cut: bool,
    /// What the last step that led somewhere led to.
    pub(super) outcome: Status,
    /// Where the first repair was made.
    doubt: Option<usize>,
    first_repair: Option<FirstRepair>,
    work: usize,
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
            frames: Stack::default(),
            out: String::new(),
            repairs: Vec::new(),
            kept_repairs: 0,
            members: Vec::new(),
            valueless: Vec::new(),
            huge_numbers: Vec::new(),
            entry: Entry::default(),
            comma: None,
            noted: None,
            open_member: None,
            root_kind: None,
            last_kind: Kind::Null,
            strict_allowed,
            text: Text::default(),
            bare: Bare::default(),
            ahead: Ahead::new(),
            comment: Comment::default(),
            document: Document::default(),
            last_string: None,
            last_string_member: None,
            escaped: false,
            holes: Vec::new(),
            cut: false,
            outcome: Status::NeedMore,
            doubt: None,
            first_repair: None,
            work: 0,
        }
    }

    /// Reads on. `text` is the whole text so far, the same as before and more; `last` says that no
    /// more will come. Bytes before the value are not looked at.
    pub fn read(&mut self, text: &str, last: bool) -> Status {
        if self.state == State::Over {
            return self.outcome;
        }
        if text.len().saturating_sub(self.start) > self.options.max_bytes {
            self.fail(ErrorKind::TooLong, self.start + self.options.max_bytes);
            return self.finish();
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
            if flow == Flow::More && input.last {
                flow = self.end_of_text(input);
            }
            if let Some(offset) = self.doubt
                && self.first_repair.is_none()
            {
                self.note_first_repair(offset);
            }
            match flow {
                Flow::Go => {}
                Flow::More if input.last => {
                    self.fail(ErrorKind::Unreadable, self.at);
                    return self.finish();
                }
                Flow::More => {
                    self.text_pause(input);
                    return Status::NeedMore;
                }
                Flow::Over if self.resumes_as_prose() => {}
                Flow::Over => return self.finish(),
            }
        }
    }

    /// The value is over at `self.at`.
    pub(super) fn done(&mut self, complete: bool) -> Flow {
        self.outcome = Status::Done {
            end: self.at,
            complete,
        };
        Flow::Over
    }

    pub(super) fn fail(&mut self, kind: ErrorKind, offset: usize) -> Flow {
        // What was read before stays, as it stands.
        self.leave_string();
        self.outcome = Status::Failed(Error::new(kind, offset));
        Flow::Over
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
        if matches!(self.outcome, Status::Done { .. }) {
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
            State::Key | State::Bracket | State::Next => self.out.len(),
            State::Value | State::Bare if self.inside() != Some(Shape::Object) => self.out.len(),
            _ => self.entry.mark.min(self.out.len()),
        };
        let mut settled = limit;
        if let Some(quote) = self.last_string {
            // Another string may be joined to the last one, or it is a key behind an array that
            // was never closed.
            settled = settled.min(quote);
            if self.inside() == Some(Shape::Array) {
                settled = settled.min(self.entry.mark);
            }
        }
        if let Some(frame) = self.frames.last() {
            let before_colon = match frame.shape {
                Shape::Object => !frame.filled || self.entry.key_end <= self.entry.key_start,
                _ => !frame.filled || self.last_string.is_some() || self.in_string(),
            };
            let first = !frame.filled || (!self.entry.filled && before_colon);
            // A first key that is dropped may yet be followed by the elements of a set.
            let after_key = match state {
                State::Colon | State::Set => true,
                State::Value | State::Bare => frame.shape == Shape::Object,
                _ => false,
            };
            if first || after_key && !self.entry.filled {
                settled = settled.min(frame.open);
            }
        }
        if self.frames.nearest(Shape::Parens).is_some() {
            let mut frames = self.frames.iter();
            let parens = frames.find(|frame| frame.shape == Shape::Parens);
            settled = parens.map_or(settled, |frame| frame.open.min(settled));
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

    /// Steps taken and bytes passed so far: what the linearity tests count.
    #[doc(hidden)]
    #[must_use]
    pub fn work(&self) -> usize {
        self.work + self.ahead.work
    }

    fn finish(&mut self) -> Status {
        self.fill_holes();
        self.repairs.sort_by_key(|repair| repair.offset);
        self.state = State::Over;
        self.outcome
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
            State::Bracket => self.step_bracket(input),
            State::Set => self.step_set(input),
            State::Join => self.step_join(input),
            State::Around => self.step_around(input),
            State::Over => Flow::More,
        }
    }

    #[cold]
    fn note_first_repair(&mut self, offset: usize) {
        let members = self.members.iter().enumerate();
        let open = members.filter(|(_, member)| !member.closed);
        self.first_repair = Some(FirstRepair {
            offset,
            members: self.members.len(),
            open: open.map(|(index, _)| index).collect(),
            settled: self.settled(),
        });
    }

    /// How many repairs have stood all along since this was last asked.
    pub(crate) fn kept_repairs(&mut self) -> usize {
        std::mem::replace(&mut self.kept_repairs, self.repairs.len())
    }

    /// The first repair, if any was made.
    pub(crate) fn first_repair(&self) -> Option<&FirstRepair> {
        self.first_repair.as_ref()
    }

    /// Whether parentheses are open, which may turn out to be no list.
    pub(crate) fn in_parens(&self) -> bool {
        self.frames.nearest(Shape::Parens).is_some()
    }

    /// Whether openers are still to be taken out of the output: what follows them will move.
    pub(crate) fn has_holes(&self) -> bool {
        !self.holes.is_empty()
    }

    pub(super) fn repair(&mut self, kind: RepairKind, offset: usize) {
        self.doubt.get_or_insert(offset);
        if self.repairs.len() < MAX_REPAIRS {
            self.repairs.push(Repair { kind, offset });
        }
    }

    pub(super) fn look(&mut self, at: usize) {
        self.ahead.begin_at(at, Gap::None);
    }

    /// The shape of the innermost container.
    #[inline]
    pub(super) fn inside(&self) -> Option<Shape> {
        self.frames.inside()
    }

    /// Room for the first things of each kind, so that small values do not grow step by step.
    #[cold]
    fn make_room(&mut self, text: &str) {
        let rest = text.len().saturating_sub(self.at);
        self.out.reserve(rest.clamp(16, FIRST_RESERVE));
        self.frames.reserve(4);
        if self.options.member_depth > 0 {
            // Less than a kilobyte: the allocator has small blocks at hand.
            self.members.reserve((rest / 16).clamp(4, 12));
        }
    }

    pub(super) fn root_done(&mut self, complete: bool) -> Flow {
        match self.options.mode {
            Mode::Value => self.done(complete),
            Mode::Document => self.document_value(complete),
        }
    }

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
                Mode::Value => self.fail(ErrorKind::NoValue, self.at),
                Mode::Document => {
                    self.state = State::Around;
                    Flow::Go
                }
            },
            _ => {
                self.at = input.text.len();
                self.close_all();
                self.root_done(false)
            }
        }
    }
}
