//! Which call a fragment belongs to, and what has come of each call.
//!
//! Blocks say it themselves, by their slots. Chat-completion fragments carry an index, an id, a
//! name, or none of them, and servers differ: they repeat ids and names on each delta, make a new
//! id for each, leave indexes out, count fragments instead of calls, or give all calls index 0.
//! What decides then is whether the arguments so far are a complete value: see [`Table::delta`].
//! Each byte is looked at once as it arrives, and once more when the call is over.

use std::collections::HashMap;

use super::partial_values::{Misplaced, PartialValues};
use super::piece::{ArgumentsPiece, CallDelta, Slot};
use super::view::{Kind, Unwritable, WriteLimits, Written};

/// How far the JSON text of arguments has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Progress {
    /// White space at most.
    #[default]
    Blank,
    /// Inside the value.
    Open,
    /// One value is closed: the offset after it.
    Complete(usize),
}

/// Follows JSON text to the end of its first object or array, or string.
#[derive(Clone, Copy, Debug, Default)]
struct Scan {
    progress: Progress,
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Whether anything stands inside the outermost brackets.
    filled: bool,
}

impl Scan {
    /// Looks at the next bytes, which begin at `offset`.
    fn read(&mut self, bytes: &[u8], offset: usize) {
        let mut position = 0;
        while let Some(rest) = bytes.get(position..).filter(|rest| !rest.is_empty()) {
            if let Progress::Complete(_) = self.progress {
                return;
            }
            position += self.step(rest);
            let closed = self.depth == 0 && !self.in_string;
            if self.progress == Progress::Open && closed {
                self.progress = Progress::Complete(offset + position);
            }
        }
    }

    /// Looks at the first byte, or skips to the one that matters; how many were taken.
    fn step(&mut self, rest: &[u8]) -> usize {
        if self.escaped {
            self.escaped = false;
            return 1;
        }
        if self.in_string {
            return match memchr::memchr2(b'"', b'\\', rest) {
                None => rest.len(),
                Some(at) => {
                    if rest.get(at) == Some(&b'"') {
                        self.in_string = false;
                    } else {
                        self.escaped = true;
                    }
                    at + 1
                }
            };
        }
        let byte = rest.first().copied().unwrap_or_default();
        match (byte, self.progress) {
            (b' ' | b'\t' | b'\n' | b'\r', _) => return 1,
            (b'"', Progress::Blank) => {
                self.in_string = true;
                self.filled = true;
            }
            (b'{' | b'[', Progress::Blank) => self.depth = 1,
            // Prose, a fence, a bare word: the healer will see; it does not end by itself.
            (_, Progress::Blank) => self.depth = usize::MAX,
            (b'}' | b']', _) => self.depth = self.depth.saturating_sub(1),
            (b'{' | b'[', _) => {
                self.depth = self.depth.saturating_add(1);
                self.filled = true;
            }
            (byte, _) => {
                self.in_string = byte == b'"';
                self.filled = true;
            }
        }
        self.progress = Progress::Open;
        1
    }
}

/// What came of a call's arguments.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// JSON text as the model wrote it.
    Json(String),
    /// An object that came as data.
    Data(Written),
    /// A plain string.
    Input(String),
    /// One value at a time.
    Values(PartialValues),
    /// Nothing that could be arguments: the reason.
    Refused(Refusal),
}

/// Why arguments were refused as they arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Data of another type.
    NotAnObject(Kind),
    /// Data that JSON cannot say.
    Unwritable(Unwritable),
    /// Longer than the limit.
    TooLong,
}

/// How a call comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// As a block or an item, of which the dialect says when it ends.
    Block,
    /// As fragments that just stop.
    Fragments,
}

/// One call as far as it has come.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The provider's id.
    pub(crate) id: Option<String>,
    /// The tool's name.
    pub(crate) name: Option<String>,
    /// Its arguments.
    pub(crate) source: Source,
    /// Whether nothing more will come for it.
    pub(crate) ended: bool,
    /// How it came.
    pub(crate) origin: Origin,
    /// How often the arguments began anew.
    pub(crate) starts: usize,
    scan: Scan,
    /// The provider's index.
    index: Option<i64>,
    /// A name came again, with nothing else, after the arguments were complete: what comes next
    /// begins another call of that name.
    restarts: bool,
    /// Whether it is among those that changed.
    touched: bool,
}

impl Call {
    fn new(origin: Origin) -> Self {
        Self {
            id: None,
            name: None,
            source: Source::Json(String::new()),
            ended: false,
            origin,
            starts: 0,
            scan: Scan::default(),
            index: None,
            restarts: false,
            touched: false,
        }
    }

    /// How far the arguments have come.
    pub(crate) fn progress(&self) -> Progress {
        match &self.source {
            Source::Json(_) => self.scan.progress,
            Source::Input(_) | Source::Values(_) => Progress::Open,
            Source::Data(_) | Source::Refused(_) => Progress::Complete(0),
        }
    }

    /// Whether the arguments say something: an empty object may still be the opening of a block
    /// whose input follows.
    pub(crate) fn is_complete(&self) -> bool {
        let says_something = match self.source {
            Source::Json(_) => self.scan.filled,
            _ => true,
        };
        says_something && matches!(self.progress(), Progress::Complete(_))
    }

    fn bytes(&self) -> usize {
        match &self.source {
            Source::Json(text) | Source::Input(text) => text.len(),
            Source::Data(written) => written.json.len(),
            Source::Values(values) => values.len(),
            Source::Refused(_) => 0,
        }
    }

    /// The arguments as JSON text, when that is how they come.
    pub(crate) fn json(&self) -> Option<&str> {
        match &self.source {
            Source::Json(text) => Some(text),
            _ => None,
        }
    }

    /// Whether an opening brace can be the next character of the arguments.
    fn may_hold_object(&self) -> bool {
        self.scan.in_string || self.text().trim_end().ends_with([':', ',', '['])
    }

    fn text(&self) -> &str {
        match &self.source {
            Source::Json(text) => text,
            _ => "",
        }
    }

    fn add(&mut self, arguments: ArgumentsPiece<'_>, limits: WriteLimits) -> Result<(), Misplaced> {
        match arguments {
            ArgumentsPiece::Absent => {}
            ArgumentsPiece::Fragment(text) => self.add_json(text, limits),
            ArgumentsPiece::Whole(text) => {
                if !is_blank(text) && self.text() != text {
                    self.restart();
                    self.add_json(text, limits);
                }
            }
            ArgumentsPiece::Data(written) => self.source = Source::Data(written),
            ArgumentsPiece::InputFragment(text) => self.add_input(text, limits),
            ArgumentsPiece::Input(text) => {
                if !text.is_empty() || !matches!(self.source, Source::Input(_)) {
                    self.source = Source::Input(String::new());
                    self.add_input(text, limits);
                }
            }
            ArgumentsPiece::Value { path, value } => return self.add_value(path, value, limits),
            ArgumentsPiece::NotAnObject(kind) => {
                self.source = Source::Refused(Refusal::NotAnObject(kind));
            }
            ArgumentsPiece::Unwritable(reason) => {
                self.source = Source::Refused(Refusal::Unwritable(reason));
            }
        }
        Ok(())
    }

    /// Forgets the arguments so far: what comes stands in their place.
    fn restart(&mut self) {
        self.source = Source::Json(String::new());
        self.scan = Scan::default();
        self.starts += 1;
    }

    fn add_json(&mut self, text: &str, limits: WriteLimits) {
        if let Source::Data(_) | Source::Input(_) | Source::Values(_) = self.source {
            // Text after data: the data was the opening of a block, the text is the input.
            if is_blank(text) {
                return;
            }
            self.restart();
        }
        let Source::Json(so_far) = &mut self.source else {
            return;
        };
        if so_far.len().saturating_add(text.len()) > limits.bytes {
            self.source = Source::Refused(Refusal::TooLong);
            return;
        }
        self.scan.read(text.as_bytes(), so_far.len());
        so_far.push_str(text);
    }

    fn add_input(&mut self, text: &str, limits: WriteLimits) {
        if let Source::Json(so_far) = &self.source {
            if !is_blank(so_far) {
                return;
            }
            self.source = Source::Input(String::new());
        }
        let Source::Input(so_far) = &mut self.source else {
            return;
        };
        if so_far.len().saturating_add(text.len()) > limits.bytes {
            self.source = Source::Refused(Refusal::TooLong);
            return;
        }
        so_far.push_str(text);
    }

    fn add_value(
        &mut self,
        path: &str,
        value: super::piece::PartialValue<'_>,
        limits: WriteLimits,
    ) -> Result<(), Misplaced> {
        if let Source::Json(so_far) = &self.source
            && is_blank(so_far)
        {
            self.source = Source::Values(PartialValues::new(limits.depth));
        }
        let Source::Values(values) = &mut self.source else {
            return Err(Misplaced::Conflict);
        };
        values.put(path, value)?;
        if values.len() > limits.bytes {
            self.source = Source::Refused(Refusal::TooLong);
        }
        Ok(())
    }

    fn name_it(&mut self, name: Option<&str>) {
        let Some(name) = name else {
            return;
        };
        match &mut self.name {
            None => self.name = Some(name.to_owned()),
            // Once the arguments begin, the name is whole.
            Some(_) if self.scan.progress != Progress::Blank => {}
            // All of it so far, once more.
            Some(so_far) if name.starts_with(so_far.as_str()) => name.clone_into(so_far),
            Some(so_far) => so_far.push_str(name),
        }
    }
}

/// What happened to a piece of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was taken.
    Taken,
    /// There are as many calls as may be.
    TooMany,
    /// A value had no place.
    Misplaced,
    /// The call was over.
    TooLate,
}

/// All calls of a message, in order.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    calls: Vec<Call>,
    by_slot: HashMap<Slot, usize>,
    by_index: HashMap<i64, usize>,
    by_id: HashMap<String, usize>,
    last: Option<usize>,
    /// Calls that changed since the last [`Table::settle`].
    touched: Vec<usize>,
    /// Bytes of the arguments of all calls.
    bytes: usize,
    limits: WriteLimits,
    max_calls: usize,
}

impl Table {
    /// An empty table.
    pub(crate) fn new(limits: WriteLimits, max_calls: usize) -> Self {
        Self {
            calls: Vec::new(),
            by_slot: HashMap::new(),
            by_index: HashMap::new(),
            by_id: HashMap::new(),
            last: None,
            touched: Vec::new(),
            bytes: 0,
            limits,
            max_calls,
        }
    }

    /// The calls so far.
    pub(crate) fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// Bytes of the arguments of all calls.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The calls, for good.
    pub(crate) fn into_calls(self) -> Vec<Call> {
        self.calls
    }

    /// How much may be written for one call.
    pub(crate) const fn limits(&self) -> WriteLimits {
        self.limits
    }

    /// Takes a piece of the call in a slot.
    pub(crate) fn piece(
        &mut self,
        slot: Slot,
        id: Option<&str>,
        name: Option<&str>,
        arguments: ArgumentsPiece<'_>,
    ) -> Outcome {
        let known = self.by_slot.get(&slot).copied();
        let Some(place) = known.or_else(|| self.begin(Origin::Block)) else {
            return Outcome::TooMany;
        };
        self.by_slot.insert(slot, place);
        self.add(place, id, name, arguments)
    }

    /// Ends the call in a slot.
    pub(crate) fn end(&mut self, slot: Slot) {
        if let Some(&place) = self.by_slot.get(&slot) {
            self.end_at(place);
        }
    }

    /// Ends every call whose arguments are complete.
    pub(crate) fn settle(&mut self) {
        for place in std::mem::take(&mut self.touched) {
            if let Some(call) = self.calls.get_mut(place) {
                call.touched = false;
                if call.is_complete() {
                    self.end_at(place);
                }
            }
        }
    }

    /// Takes a chat-completion fragment.
    pub(crate) fn delta(&mut self, delta: CallDelta<'_>) -> Outcome {
        let place = match self.candidate(&delta) {
            Some(place) if self.continues(place, &delta) => Some(place),
            other => {
                let name = other
                    .and_then(|place| self.calls.get(place))
                    .filter(|call| call.restarts && delta.name.is_none())
                    .and_then(|call| call.name.clone());
                let begun = self.begin(Origin::Fragments);
                if let Some(call) = begun.and_then(|place| self.calls.get_mut(place)) {
                    call.name = name;
                }
                begun
            }
        };
        let Some(place) = place else {
            return Outcome::TooMany;
        };
        self.know(place, &delta);
        if self.repeats(place, &delta) {
            return Outcome::Taken;
        }
        self.add(place, delta.id, delta.name, delta.arguments)
    }

    /// The call that a fragment most likely continues.
    fn candidate(&self, delta: &CallDelta<'_>) -> Option<usize> {
        let of_id = delta.id.and_then(|id| self.by_id.get(id).copied());
        let of_id = of_id.filter(|&place| {
            let index = self.calls.get(place).and_then(|call| call.index);
            index.is_none() || delta.index.is_none() || index == delta.index
        });
        if of_id.is_some() {
            return of_id;
        }
        if let Some(index) = delta.index {
            let known = self.by_index.get(&index).copied();
            return known.or_else(|| self.stray(delta));
        }
        if delta.id.is_none()
            && delta.name.is_none()
            && let Some(position) = delta.position.filter(|&place| self.is_open(place))
        {
            return Some(position);
        }
        self.last
    }

    /// The call of a fragment whose index is unknown and that says nothing else of itself.
    fn stray(&self, delta: &CallDelta<'_>) -> Option<usize> {
        if delta.id.is_some() || delta.name.is_some() {
            return None;
        }
        let last = self.last.and_then(|place| self.calls.get(place))?;
        let continued = match last.progress() {
            Progress::Blank => last.name.is_some() && !last.ended,
            Progress::Open => {
                !last.ended && (!begins_object(&delta.arguments) || last.may_hold_object())
            }
            // White space behind the arguments begins nothing.
            Progress::Complete(_) => is_nothing(&delta.arguments),
        };
        continued.then_some(self.last).flatten()
    }

    /// Whether arguments of the call at `place` may still come.
    fn is_open(&self, place: usize) -> bool {
        let call = self.calls.get(place);
        call.is_some_and(|call| !call.ended && !matches!(call.progress(), Progress::Complete(_)))
    }

    /// Whether a fragment continues that call rather than begin another.
    fn continues(&self, place: usize, delta: &CallDelta<'_>) -> bool {
        let Some(call) = self.calls.get(place) else {
            return false;
        };
        let same_id = delta.id.is_some() && delta.id == call.id.as_deref();
        let other_id = delta.id.is_some() && call.id.is_some() && !same_id;
        let other_name = match (delta.name, call.name.as_deref()) {
            (Some(new), Some(old)) => new != old,
            _ => false,
        };
        let named_again = delta.name.is_some() && call.name.is_some();
        let says_nothing = is_nothing(&delta.arguments);
        match call.progress() {
            // A new id alone does not make a call where an index or a name is expected to.
            Progress::Blank if !named_again => !(other_id && delta.index.is_none()),
            // Names in parts have an index or an id to hold them together.
            Progress::Blank => {
                !other_id && (delta.index.is_some() || same_id || !other_name && !says_nothing)
            }
            Progress::Open if !named_again => {
                !(other_id && delta.index.is_none() && begins_object(&delta.arguments))
            }
            Progress::Open if other_name => false,
            Progress::Open => !other_id || !says_nothing && !begins_object(&delta.arguments),
            Progress::Complete(_) if says_nothing => {
                !(other_name || other_id && delta.name.is_some())
            }
            Progress::Complete(_) if call.restarts => false,
            Progress::Complete(_) if delta.name.is_some() => {
                call.name.is_none() || same_id && repeats(call, &delta.arguments)
            }
            Progress::Complete(_) => !(other_id && begins_object(&delta.arguments)),
        }
    }

    /// Whether a fragment only says again what is there.
    fn repeats(&mut self, place: usize, delta: &CallDelta<'_>) -> bool {
        let Some(call) = self.calls.get_mut(place) else {
            return false;
        };
        if !matches!(call.progress(), Progress::Complete(_)) {
            return false;
        }
        if is_nothing(&delta.arguments) {
            let unmarked = delta.id.is_none();
            call.restarts |= unmarked && delta.name.is_some() && call.name.is_some();
            return false;
        }
        repeats(call, &delta.arguments)
    }

    /// Remembers by what a call goes.
    fn know(&mut self, place: usize, delta: &CallDelta<'_>) {
        let Some(call) = self.calls.get_mut(place) else {
            return;
        };
        if let Some(index) = delta.index {
            // A fragment with nothing but an index of its own continues the last call without
            // taking that index from whoever comes by it.
            if *call.index.get_or_insert(index) == index {
                self.by_index.insert(index, place);
            }
        }
        if let Some(id) = delta.id
            && self.by_id.get(id) != Some(&place)
        {
            self.by_id.insert(id.to_owned(), place);
        }
    }

    fn begin(&mut self, origin: Origin) -> Option<usize> {
        if self.calls.len() >= self.max_calls {
            return None;
        }
        if origin == Origin::Fragments {
            // Another call began: this one is over when it can be.
            if let Some(last) = self.last {
                let progress = self.calls.get(last).map(Call::progress);
                if matches!(progress, Some(Progress::Complete(_))) {
                    self.end_at(last);
                }
            }
        }
        let place = self.calls.len();
        self.calls.push(Call::new(origin));
        self.last = Some(place);
        Some(place)
    }

    fn add(
        &mut self,
        place: usize,
        id: Option<&str>,
        name: Option<&str>,
        arguments: ArgumentsPiece<'_>,
    ) -> Outcome {
        self.last = Some(place);
        let limits = self.limits;
        let Some(call) = self.calls.get_mut(place) else {
            return Outcome::Taken;
        };
        if call.ended {
            return if is_nothing(&arguments) {
                Outcome::Taken
            } else {
                Outcome::TooLate
            };
        }
        if !call.touched {
            call.touched = true;
            self.touched.push(place);
        }
        if call.id.is_none() {
            call.id = id.map(str::to_owned);
        }
        call.name_it(name);
        let before = call.bytes();
        let added = call.add(arguments, limits);
        self.bytes = self
            .bytes
            .saturating_sub(before)
            .saturating_add(call.bytes());
        match added {
            Ok(()) => Outcome::Taken,
            Err(_) => Outcome::Misplaced,
        }
    }

    fn end_at(&mut self, place: usize) {
        if let Some(call) = self.calls.get_mut(place) {
            call.ended = true;
        }
    }
}

/// Whether arguments are exactly those that a call has already.
fn repeats(call: &Call, arguments: &ArgumentsPiece<'_>) -> bool {
    match (arguments, &call.source) {
        (ArgumentsPiece::Fragment(new), Source::Json(old)) => call.scan.filled && new == old,
        (ArgumentsPiece::Data(new), Source::Data(old)) => new == old,
        _ => false,
    }
}

fn is_nothing(arguments: &ArgumentsPiece<'_>) -> bool {
    match arguments {
        ArgumentsPiece::Absent => true,
        ArgumentsPiece::Fragment(text) | ArgumentsPiece::Whole(text) => is_blank(text),
        _ => false,
    }
}

fn begins_object(arguments: &ArgumentsPiece<'_>) -> bool {
    match arguments {
        ArgumentsPiece::Fragment(text) | ArgumentsPiece::Whole(text) => {
            text.trim_start().starts_with('{')
        }
        ArgumentsPiece::Data(_) => true,
        _ => false,
    }
}

fn is_blank(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_whitespace())
}
