//! Guards as bytes.
//!
//! ```text
//! "twgd" | version | kind | configuration (length, bytes) | state | checksum (8 bytes of BLAKE3)
//! ```
//!
//! The configuration is the caller's: this crate carries it and does not look into it. Reading
//! checks the sum first, so damage of any kind is refused before anything is made of it; the state
//! is then read with every length and range checked all the same.

use std::fmt;
use std::sync::Arc;

use turnwarden_periodicity::Periods;
use turnwarden_signature::Signature;
use turnwarden_similarity::{Cursors, Sketch};

use crate::config::LONGEST_PERIOD;
use crate::coverage::{Coverage, FileLines};
use crate::detector::{DetectorSettings, Extras, LoopDetector, REVISABLE_TURNS};
use crate::finding::{Finding, Rule};
use crate::history::{CallRecord, Flags, History};
use crate::ladder::{GuardAction, Ladder};
use crate::similar::{Form, Run, SimilarRun};
use crate::tool::Tool;
use crate::workflow::{Events, GuardSettings, Spent, WorkflowGuard};

const MAGIC: &[u8; 4] = b"twgd";
const VERSION: u8 = 1;
const CHECKSUM: usize = 8;

/// Which guard a snapshot is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotKind {
    /// A [`WorkflowGuard`].
    WorkflowGuard,
    /// A [`LoopDetector`].
    LoopDetector,
}

impl SnapshotKind {
    const fn code(self) -> u8 {
        match self {
            Self::WorkflowGuard => 1,
            Self::LoopDetector => 2,
        }
    }
}

/// Why bytes are no snapshot that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotError {
    /// They do not begin as one.
    NoSnapshot,
    /// A later version wrote them.
    UnknownVersion(u8),
    /// They are of another guard.
    OtherKind,
    /// They were cut off or changed.
    Damaged,
    /// Their configuration cannot be read.
    Configuration,
    /// They hold, at this byte, what no guard writes.
    Invalid {
        /// Where, counted from the first byte.
        offset: usize,
    },
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSnapshot => f.write_str("these bytes are no snapshot of a guard"),
            Self::UnknownVersion(version) => write!(
                f,
                "this snapshot has version {version}, and this release reads version {VERSION}: \
                 update the package that reads it"
            ),
            Self::OtherKind => f.write_str(
                "this snapshot is of another kind of guard: read it with the class that wrote it",
            ),
            Self::Damaged => f.write_str(
                "this snapshot was cut off or changed: its checksum does not fit its content",
            ),
            Self::Configuration => f.write_str(
                "the configuration in this snapshot is no JSON object: give the one that the \
                 guard was made with as config=",
            ),
            Self::Invalid { offset } => write!(
                f,
                "this snapshot holds a value at byte {offset} that no guard writes"
            ),
        }
    }
}

impl std::error::Error for SnapshotError {}

/// A snapshot whose checksum fits: the caller's configuration and the state.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// What was given to [`WorkflowGuard::to_bytes`] as configuration.
    pub configuration: &'a [u8],
    state: &'a [u8],
    state_offset: usize,
}

impl<'a> Snapshot<'a> {
    /// Checks bytes and takes them apart.
    ///
    /// # Errors
    /// Says what is wrong with them.
    pub fn open(kind: SnapshotKind, bytes: &'a [u8]) -> Result<Self, SnapshotError> {
        let content = bytes.strip_prefix(MAGIC).ok_or(SnapshotError::NoSnapshot)?;
        let (&version, content) = content.split_first().ok_or(SnapshotError::Damaged)?;
        if version != VERSION {
            return Err(SnapshotError::UnknownVersion(version));
        }
        let end = bytes.len().saturating_sub(CHECKSUM);
        let (signed, sum) = bytes.split_at(end);
        if checksum(signed) != *sum {
            return Err(SnapshotError::Damaged);
        }
        let (&code, _) = content.split_first().ok_or(SnapshotError::Damaged)?;
        if code != kind.code() {
            return Err(SnapshotError::OtherKind);
        }
        let mut reader = Reader::new(signed, MAGIC.len() + 2);
        let configuration = reader.bytes().ok_or_else(|| reader.error())?;
        Ok(Self {
            configuration,
            state: reader.rest,
            state_offset: reader.offset(),
        })
    }

    fn read<T>(&self, read: impl FnOnce(&mut Reader<'a>) -> Option<T>) -> Result<T, SnapshotError> {
        let mut reader = Reader {
            rest: self.state,
            end: self.state_offset + self.state.len(),
        };
        match read(&mut reader) {
            Some(value) if reader.rest.is_empty() => Ok(value),
            _ => Err(reader.error()),
        }
    }
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    let hash = blake3::hash(bytes);
    hash.as_bytes().first_chunk().copied().unwrap_or_default()
}

fn seal(kind: SnapshotKind, configuration: &[u8], write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer { bytes: Vec::new() };
    writer.bytes.extend_from_slice(MAGIC);
    writer.bytes.extend_from_slice(&[VERSION, kind.code()]);
    writer.bytes(configuration);
    write(&mut writer);
    let sum = checksum(&writer.bytes);
    writer.bytes.extend_from_slice(&sum);
    writer.bytes
}

impl WorkflowGuard {
    /// The guard as bytes, with the caller's own description of its configuration.
    #[must_use]
    pub fn to_bytes(&self, configuration: &[u8]) -> Vec<u8> {
        seal(SnapshotKind::WorkflowGuard, configuration, |writer| {
            writer.guard(self);
        })
    }

    /// The guard that wrote a snapshot, from now on with these settings.
    ///
    /// # Errors
    /// Says where the state holds what no guard writes.
    pub fn from_snapshot(
        snapshot: &Snapshot<'_>,
        settings: Arc<GuardSettings>,
    ) -> Result<Self, SnapshotError> {
        snapshot.read(|reader| reader.guard(settings))
    }
}

impl WorkflowGuard {
    /// The guard's state alone, for the memory of this process: no header, no checksum, no
    /// configuration.
    pub(crate) fn freeze(&self) -> Box<[u8]> {
        let mut writer = Writer { bytes: Vec::new() };
        writer.guard(self);
        writer.bytes.into_boxed_slice()
    }

    /// The guard that was frozen with these settings; None when the bytes are no such guard.
    pub(crate) fn thaw(bytes: &[u8], settings: Arc<GuardSettings>) -> Option<Self> {
        let mut reader = Reader::new(bytes, 0);
        reader.guard(settings).filter(|_| reader.rest.is_empty())
    }
}

impl LoopDetector {
    /// The detector as bytes, with the caller's own description of its configuration and when it
    /// was made.
    #[must_use]
    pub fn to_bytes(&self, configuration: &[u8], start: f64) -> Vec<u8> {
        seal(SnapshotKind::LoopDetector, configuration, |writer| {
            writer.float(start);
            writer.detector(self);
        })
    }

    /// The detector that wrote a snapshot, from now on with these settings, and when it was made.
    ///
    /// # Errors
    /// Says where the state holds what no detector writes.
    pub fn from_snapshot(
        snapshot: &Snapshot<'_>,
        settings: Arc<DetectorSettings>,
    ) -> Result<(Self, f64), SnapshotError> {
        snapshot.read(|reader| {
            let start = reader.float()?;
            Some((reader.detector(settings)?, start))
        })
    }
}

struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    fn byte(&mut self, value: u8) {
        self.bytes.push(value);
    }

    fn flag(&mut self, value: bool) {
        self.byte(u8::from(value));
    }

    /// Seven bits a byte, lowest first: most numbers here are small.
    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.byte(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.byte(value.to_le_bytes()[0]);
    }

    fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    fn word(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    fn signed(&mut self, value: i64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    fn float(&mut self, value: f64) {
        self.word(value.to_bits());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    fn guard(&mut self, guard: &WorkflowGuard) {
        self.word(guard.identity);
        self.number(guard.iteration.into());
        self.float(guard.start);
        self.number(guard.last_activity.into());
        self.flag(guard.events.is_some());
        if let Some(events) = &guard.events {
            self.events(events);
        }
        self.byte(action_code(guard.loop_action));
        self.flag(guard.finding.is_some());
        if let Some(finding) = &guard.finding {
            self.finding(finding);
        }
        self.detector(&guard.detector);
    }

    fn events(&mut self, events: &Events) {
        self.number(events.spent.calls);
        self.number(events.spent.tokens);
        self.float(events.spent.cost);
        self.flag(events.terminated.is_some());
        if let Some(reason) = &events.terminated {
            self.bytes(reason.as_bytes());
        }
        self.ladder(&events.ladder);
    }

    fn ladder(&mut self, ladder: &Ladder) {
        self.number(ladder.verdicts.into());
        self.number(ladder.quiet_turns.into());
        self.number(ladder.counted_turn.into());
        for marks in [&ladder.current, &ladder.past] {
            self.count(marks.len());
            for mark in marks {
                self.bytes.extend_from_slice(&mark.to_le_bytes());
            }
        }
    }

    fn finding(&mut self, finding: &Finding) {
        let index = Rule::ALL.iter().position(|&rule| rule == finding.rule);
        self.count(index.unwrap_or(0));
        self.number(finding.length.into());
        self.flag(finding.results_compared);
        self.count(finding.calls.len());
        for (tool, signature) in &finding.calls {
            self.bytes(tool.name().as_bytes());
            self.bytes.extend_from_slice(&signature.to_bytes());
        }
        self.count(finding.evidence.len());
        for &number in &finding.evidence {
            self.number(number);
        }
    }

    fn detector(&mut self, detector: &LoopDetector) {
        self.number(detector.turn.into());
        self.flag(detector.at_reply);
        self.flag(detector.at_turn);
        self.flag(detector.results_seen);
        self.number(detector.turn_calls.into());
        self.count(detector.periods.max_period());
        detector.periods.write_to(&mut self.bytes);
        self.count(detector.next_write);
        self.count(detector.writes.len());
        for &write in &detector.writes {
            self.bytes.extend_from_slice(&write.to_le_bytes());
        }
        self.similar(&detector.similar);
        self.history(&detector.history);
        self.flag(detector.extras.is_some());
        if let Some(extras) = &detector.extras {
            self.extras(extras);
        }
    }

    fn extras(&mut self, extras: &Extras) {
        self.coverage(&extras.coverage);
        self.count(extras.arguments.len());
        for (number, text) in &extras.arguments {
            self.number(*number);
            self.bytes(text.as_bytes());
        }
        self.bytes
            .extend_from_slice(&extras.turn_rest.to_le_bytes());
    }

    fn coverage(&mut self, coverage: &Coverage) {
        self.number(coverage.stale_reads.into());
        self.count(coverage.files.len());
        for file in &coverage.files {
            self.word(file.path);
            self.count(file.stretches.len());
            for &(start, end) in &file.stretches {
                self.signed(start);
                self.signed(end);
            }
        }
    }

    fn similar(&mut self, similar: &SimilarRun) {
        self.count(similar.open.len());
        for (number, form) in &similar.open {
            self.number(*number);
            match form {
                Form::Never => self.byte(0),
                Form::Whole(bytes) => {
                    self.byte(1);
                    self.bytes(bytes);
                }
                Form::Sketched(sketch) => {
                    self.byte(2);
                    self.bytes(sketch.as_bytes());
                }
            }
        }
        self.run(&similar.current);
        self.flag(similar.settled.is_some());
        if let Some(run) = &similar.settled {
            self.run(run);
        }
    }

    fn run(&mut self, run: &Run) {
        self.number(run.length.into());
        run.cursors.write_to(&mut self.bytes);
    }

    fn history(&mut self, history: &History) {
        let mut tools: Vec<&Arc<Tool>> = Vec::new();
        let indices: Vec<usize> = history
            .calls
            .iter()
            .map(|call| {
                let known = tools.iter().position(|tool| **tool == call.tool);
                known.unwrap_or_else(|| {
                    tools.push(&call.tool);
                    tools.len() - 1
                })
            })
            .collect();
        self.count(tools.len());
        for tool in &tools {
            self.bytes(tool.name().as_bytes());
        }
        self.number(history.total);
        self.count(history.calls.len());
        for (call, tool) in history.calls.iter().zip(indices) {
            self.count(tool);
            self.bytes.extend_from_slice(&call.signature.to_bytes());
            self.word(call.answer);
            self.number(call.time.into());
            self.number(call.turn.into());
            self.bytes.extend_from_slice(&call.id.to_le_bytes());
            self.number(call.flags.0.into());
        }
    }
}

fn action_code(action: GuardAction) -> u8 {
    let index = GuardAction::ALL.iter().position(|&known| known == action);
    index.and_then(|index| index.try_into().ok()).unwrap_or(0)
}

/// Reads from the front; every method is `None` when the bytes end early or make no sense.
struct Reader<'a> {
    rest: &'a [u8],
    /// Offset of the end of `rest` in the snapshot.
    end: usize,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8], start: usize) -> Self {
        Self {
            rest: bytes.get(start..).unwrap_or_default(),
            end: bytes.len(),
        }
    }

    fn offset(&self) -> usize {
        self.end - self.rest.len()
    }

    fn error(&self) -> SnapshotError {
        SnapshotError::Invalid {
            offset: self.offset(),
        }
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn number_to<T: TryFrom<u64>>(&mut self) -> Option<T> {
        self.number()?.try_into().ok()
    }

    /// A count of things that take at least one byte each, so that no forged count takes memory.
    fn count(&mut self) -> Option<usize> {
        let count = self.number_to()?;
        (count <= self.rest.len()).then_some(count)
    }

    fn word(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn float(&mut self) -> Option<f64> {
        let value = f64::from_bits(self.word()?);
        value.is_finite().then_some(value)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.count()?;
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    fn signature(&mut self) -> Option<Signature> {
        self.array().map(Signature::from_bytes)
    }

    fn many<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.count()?;
        (0..count).map(|_| read(self)).collect()
    }

    /// Reads something if it is there.
    fn optional<T>(
        &mut self,
        into: &mut Option<T>,
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<()> {
        if self.flag()? {
            *into = Some(read(self)?);
        }
        Some(())
    }

    fn guard(&mut self, settings: Arc<GuardSettings>) -> Option<WorkflowGuard> {
        let identity = self.word()?;
        let iteration = self.number_to()?;
        let start = self.float()?;
        let last_activity = self.number_to()?;
        let mut events = None;
        self.optional(&mut events, |reader| reader.events().map(Box::new))?;
        let loop_action = *GuardAction::ALL.get(usize::from(self.byte()?))?;
        let mut finding = None;
        self.optional(&mut finding, |reader| {
            reader.finding(&settings.detection).map(Arc::new)
        })?;
        let detector = self.detector(Arc::clone(&settings.detection))?;
        Some(WorkflowGuard {
            settings,
            identity,
            iteration,
            detector,
            finding,
            loop_action,
            events,
            start,
            last_activity,
        })
    }

    fn events(&mut self) -> Option<Events> {
        let spent = Spent {
            calls: self.number()?,
            tokens: self.number()?,
            cost: self.float()?,
        };
        let mut terminated = None;
        self.optional(&mut terminated, |reader| reader.text().map(Arc::from))?;
        Some(Events {
            ladder: self.ladder()?,
            spent,
            terminated,
        })
    }

    fn ladder(&mut self) -> Option<Ladder> {
        Some(Ladder {
            verdicts: self.number_to()?,
            quiet_turns: self.number_to()?,
            counted_turn: self.number_to()?,
            current: self.many(|reader| reader.array().map(u32::from_le_bytes))?,
            past: self.many(|reader| reader.array().map(u32::from_le_bytes))?,
        })
    }

    fn finding(&mut self, settings: &DetectorSettings) -> Option<Finding> {
        Some(Finding {
            rule: *Rule::ALL.get(self.number_to::<usize>()?)?,
            length: self.number_to()?,
            results_compared: self.flag()?,
            calls: self.many(|reader| {
                let tool = settings.tools.get(reader.text()?);
                Some((tool, reader.signature()?))
            })?,
            evidence: self.many(Self::number)?,
        })
    }

    fn detector(&mut self, settings: Arc<DetectorSettings>) -> Option<LoopDetector> {
        let turn = self.number_to()?;
        let at_reply = self.flag()?;
        let at_turn = self.flag()?;
        let results_seen = self.flag()?;
        let turn_calls = self.number_to()?;
        let periods = self.periods(&settings)?;
        let next_write = self.number_to()?;
        let writes = self.many(|reader| reader.array().map(u32::from_le_bytes))?;
        let similar = self.similar()?;
        let history = self.history(&settings, turn)?;
        let mut extras = None;
        self.optional(&mut extras, |reader| reader.extras().map(Box::new))?;
        Some(LoopDetector {
            settings,
            history,
            turn,
            at_reply,
            at_turn,
            turn_calls,
            periods,
            results_seen,
            writes,
            next_write,
            similar,
            extras,
        })
    }

    fn extras(&mut self) -> Option<Extras> {
        Some(Extras {
            coverage: self.coverage()?,
            arguments: self.many(|reader| Some((reader.number()?, reader.text()?.into())))?,
            turn_rest: u128::from_le_bytes(self.array()?),
        })
    }

    /// The periods, counted anew if the longest one is another now.
    fn periods(&mut self, settings: &DetectorSettings) -> Option<Periods> {
        let written: u32 = self.number_to()?;
        if !(1..=LONGEST_PERIOD).contains(&written) {
            return None;
        }
        let revisable = REVISABLE_TURNS as usize;
        let periods = Periods::read_from(written as usize, revisable, &mut self.rest)?;
        let max_period = settings.config.max_period as usize;
        if periods.max_period() == max_period {
            return Some(periods);
        }
        let mut counted = Periods::new(max_period, revisable);
        for &element in periods.elements() {
            counted.push(element);
        }
        Some(counted)
    }

    fn coverage(&mut self) -> Option<Coverage> {
        Some(Coverage {
            stale_reads: self.number_to()?,
            files: self.many(|reader| {
                let path = reader.word()?;
                let stretches = reader.many(Self::stretch)?;
                let apart = stretches.windows(2).all(|pair| match pair {
                    [(_, end), (start, _)] => end < start,
                    _ => true,
                });
                apart.then_some(FileLines { path, stretches })
            })?,
        })
    }

    fn stretch(&mut self) -> Option<(i64, i64)> {
        let start = i64::from_le_bytes(self.array()?);
        let end = i64::from_le_bytes(self.array()?);
        (start < end).then_some((start, end))
    }

    fn similar(&mut self) -> Option<SimilarRun> {
        let open = self.many(|reader| Some((reader.number()?, reader.form()?)))?;
        let current = self.run()?;
        let mut settled = None;
        self.optional(&mut settled, |reader| reader.run().map(Box::new))?;
        Some(SimilarRun {
            open,
            settled,
            current,
        })
    }

    fn form(&mut self) -> Option<Form> {
        match self.byte()? {
            0 => Some(Form::Never),
            1 => Some(Form::Whole(self.bytes()?.into())),
            2 => Sketch::from_bytes(self.bytes()?).map(Form::Sketched),
            _ => None,
        }
    }

    fn run(&mut self) -> Option<Run> {
        Some(Run {
            length: self.number_to()?,
            cursors: Cursors::read_from(&mut self.rest)?,
        })
    }

    fn history(&mut self, settings: &DetectorSettings, turn: u32) -> Option<History> {
        let tools = self.many(|reader| Some(settings.tools.get(reader.text()?)))?;
        let total = self.number()?;
        let calls = self.many(|reader| {
            let tool = tools.get(reader.number_to::<usize>()?)?;
            let call = CallRecord {
                tool: Arc::clone(tool),
                signature: reader.signature()?,
                answer: reader.word()?,
                time: reader.number_to()?,
                turn: reader.number_to()?,
                id: u32::from_le_bytes(reader.array()?),
                flags: Flags(reader.number_to()?),
            };
            (call.turn <= turn).then_some(call)
        })?;
        let in_order = calls.windows(2).all(|pair| match pair {
            [before, after] => before.turn <= after.turn,
            _ => true,
        });
        let is_whole = in_order && calls.len() as u64 <= total;
        is_whole.then(|| History {
            calls: calls.into(),
            total,
        })
    }
}
