//! Records calls and results, and says whether they go round in circles.
//!
//! What a rule needs is kept up while calls come: counts for each period, a mark on calls that are
//! similar to the one before, the lines that were read. So a verdict costs a look at the last few
//! turns, whatever the window, and a guard holds hashes rather than arguments and results.

use std::sync::Arc;

use turnwarden_periodicity::Periods;
use turnwarden_signature::{Signature, Value};
use turnwarden_similarity::Sketch;

use crate::answer::Answer;
use crate::config::LoopDetectorConfig;
use crate::coverage::{Coverage, Range};
use crate::finding::{Finding, Rule};
use crate::history::{CallRecord, Flags, History, MOST_CALLS_OF_A_TURN};
use crate::kind::ToolKind;
use crate::mask::VolatileKeys;
use crate::similar::{Form, Likeness, SimilarRun};
use crate::tool::{Tool, Tools};

mod rules;

/// Results of so many last turns may still come, and are taken up by every rule.
pub(crate) const REVISABLE_TURNS: u32 = 3;
/// Writes that are remembered, to tell a new one from the same again.
const MOST_WRITES: usize = 256;

/// What a detector is made with; shared by all that are made with the same.
#[derive(Debug, Default)]
pub struct DetectorSettings {
    /// The numbers.
    pub config: LoopDetectorConfig,
    /// What is known about tools.
    pub tools: Tools,
    /// Which parts of results change at every call.
    pub volatile_keys: VolatileKeys,
}

/// A call as it comes, before it runs.
#[derive(Clone, Copy, Debug)]
pub struct NewCall<'a> {
    /// The tool's name.
    pub name: &'a str,
    /// Its arguments.
    pub arguments: Value<'a>,
    /// What it is compared by, where a function has made that of the arguments.
    pub compared: Compared<'a>,
    /// The model's id of the call.
    pub id: Option<&'a str>,
    /// The signature, if it is known already and no policy reduces the arguments.
    pub signature: Option<Signature>,
    /// The arguments as JSON text, for a detector that keeps them.
    pub text: Option<&'a str>,
}

impl NewCall<'_> {
    /// The signature that the call is compared by.
    #[must_use]
    pub fn signature(&self, tool: &Tool) -> Signature {
        let name = self.name.as_bytes();
        match (self.compared, self.signature) {
            (Compared::By(key), _) => tool.signature(name, key),
            (_, Some(signature)) if !tool.reduces_arguments() => signature,
            _ => tool.signature(name, self.arguments),
        }
    }

    fn form(&self, tool: &Tool) -> Form {
        let arguments = match self.compared {
            Compared::By(key) => key,
            Compared::ByArguments | Compared::Never => self.arguments,
        };
        if tool.reduces_arguments() {
            let sketch = Sketch::of_some(arguments, |argument| tool.counts(argument));
            return Form::Sketched(sketch);
        }
        Form::of(arguments)
    }
}

/// What a call is compared by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compared<'a> {
    /// By the arguments that count.
    #[default]
    ByArguments,
    /// By this value in their place.
    By(Value<'a>),
    /// By nothing: it is no repeat of any other.
    Never,
}

/// What a result did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResultTaken {
    /// It belongs to a call that the rules look at.
    pub is_judged: bool,
    /// The call, if the same call had brought something else before.
    pub news: Option<Signature>,
}

/// Records calls and results, and says whether they go round in circles.
#[derive(Clone, Debug)]
pub struct LoopDetector {
    pub(crate) settings: Arc<DetectorSettings>,
    pub(crate) history: History,
    /// Number of the last turn with a judged call; 0 before the first.
    pub(crate) turn: u32,
    /// Whether the next call begins a reply, and the next judged one a turn.
    pub(crate) at_reply: bool,
    pub(crate) at_turn: bool,
    /// Judged calls of the last turn.
    pub(crate) turn_calls: u32,
    pub(crate) periods: Periods,
    pub(crate) results_seen: bool,
    /// Heads of the signatures of writes, oldest first from `next_write` on.
    pub(crate) writes: Vec<u32>,
    pub(crate) next_write: usize,
    pub(crate) similar: SimilarRun,
    pub(crate) extras: Option<Box<Extras>>,
}

/// What few runs need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extras {
    /// Which lines were read.
    pub(crate) coverage: Coverage,
    /// Arguments by the numbers of their calls, if they are kept.
    pub(crate) arguments: Vec<(u64, Box<str>)>,
    /// The sum of the signatures of the calls of the last turn that are not followed.
    pub(crate) turn_rest: u128,
}

impl LoopDetector {
    /// A detector that has seen nothing.
    #[must_use]
    pub fn new(settings: Arc<DetectorSettings>) -> Self {
        let max_period = settings.config.max_period as usize;
        Self {
            settings,
            history: History::default(),
            turn: 0,
            at_reply: true,
            at_turn: true,
            turn_calls: 0,
            periods: Periods::new(max_period, REVISABLE_TURNS as usize),
            results_seen: false,
            writes: Vec::new(),
            next_write: 0,
            similar: SimilarRun::default(),
            extras: None,
        }
    }

    /// What it was made with.
    #[must_use]
    pub fn settings(&self) -> &Arc<DetectorSettings> {
        &self.settings
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        *self = Self::new(Arc::clone(&self.settings));
    }

    /// Calls recorded in all.
    #[must_use]
    pub fn total_calls(&self) -> u64 {
        self.history.total
    }

    /// The number of the last turn that the rules look at; 0 before the first.
    #[must_use]
    pub fn turn(&self) -> u32 {
        self.turn
    }

    /// The last calls, at most twice the window, oldest first, with their numbers.
    pub fn recent_calls(&self) -> impl Iterator<Item = (u64, &CallRecord)> {
        let skipped = self.history.calls.len().saturating_sub(self.shown_calls());
        (self.history.first_number()..)
            .zip(&self.history.calls)
            .skip(skipped)
    }

    /// The arguments of a call, if they are kept.
    #[must_use]
    pub fn arguments_of(&self, number: u64) -> Option<&str> {
        let kept = &self.extras.as_ref()?.arguments;
        let index = kept
            .binary_search_by_key(&number, |(number, _)| *number)
            .ok()?;
        kept.get(index).map(|(_, text)| &**text)
    }

    /// Whether calls are compared with their results.
    #[must_use]
    pub fn compares_results(&self) -> bool {
        self.settings
            .config
            .compare_results
            .unwrap_or(self.results_seen)
    }

    /// Whether a verdict on the last turn has to wait for results.
    #[must_use]
    pub fn awaits_results(&self) -> bool {
        self.compares_results() && self.last_turn().any(|(_, call)| !call.flags.done())
    }

    fn shown_calls(&self) -> usize {
        2 * self.settings.config.window_size as usize
    }

    /// The judged calls of the last turn, newest first.
    fn last_turn(&self) -> impl Iterator<Item = (u64, &CallRecord)> {
        self.history.back_to(self.turn.max(1))
    }

    fn oldest_remembered_turn(&self) -> u32 {
        self.turn
            .saturating_add(1)
            .saturating_sub(self.settings.config.remembered_turns())
    }

    // Recording.

    /// Begins a turn: the calls that follow are made from one reply.
    pub fn begin_turn(&mut self) {
        self.at_reply = true;
        self.at_turn = true;
    }

    /// Records a call of the turn before it runs. Calls with an empty name are not recorded.
    ///
    /// Returns the tool and the signature that it is compared by.
    pub fn record(&mut self, new: NewCall<'_>, time: u32) -> Option<(Arc<Tool>, Signature)> {
        if new.name.is_empty() {
            return None;
        }
        let settings = Arc::clone(&self.settings);
        let tool = settings.tools.get(new.name);
        let signature = new.signature(&tool);
        let (kind, shell) = tool.kind_of_call(&settings.tools.tables, new.arguments);
        let judged =
            new.compared != Compared::Never && !matches!(kind, ToolKind::Idle | ToolKind::Exempt);
        if judged {
            self.enter_turn();
        }
        let mut call = CallRecord {
            tool: Arc::clone(&tool),
            signature,
            time,
            answer: 0,
            turn: self.turn,
            id: new.id.map_or(0, hash_of_id),
            flags: Flags::of_kind(kind)
                .with_shell(shell)
                .with_starts_reply(std::mem::take(&mut self.at_reply)),
        };
        if judged {
            self.turn_calls = self.turn_calls.saturating_add(1);
            if self.turn_calls <= MOST_CALLS_OF_A_TURN {
                call.flags = call.flags.with_judged(true);
                self.watch(&mut call, &new);
            } else {
                let extras = self.extras();
                extras.turn_rest = extras.turn_rest.wrapping_add(signature.to_u128());
            }
        }
        self.remember(call, new);
        if judged {
            self.settle_new_call();
        }
        Some((tool, signature))
    }

    fn enter_turn(&mut self) {
        if !std::mem::take(&mut self.at_turn) {
            return;
        }
        self.turn = self.turn.saturating_add(1);
        self.turn_calls = 0;
        // Where a result is always on its way, there is no better time.
        if self.similar.is_filling_up() {
            self.settle_similar();
        }
        if let Some(extras) = &mut self.extras {
            extras.turn_rest = 0;
        }
    }

    fn extras(&mut self) -> &mut Extras {
        self.extras.get_or_insert_default()
    }

    /// Brings counts up to date with the call that was just recorded.
    fn settle_new_call(&mut self) {
        if self.turn_calls > 1 {
            self.revise_turn(self.turn);
        } else if let Some(call) = self.history.calls.back() {
            self.periods.push(call.signature.to_u128());
        }
        if !self.compares_results() {
            self.settle_similar();
        }
    }

    /// Compares neighbouring calls that were not compared yet.
    fn settle_similar(&mut self) {
        if self.similar.open.len() < 2 {
            return;
        }
        let with_results = self.compares_results();
        let history = &self.history;
        let oldest = self.turn.saturating_add(1).saturating_sub(REVISABLE_TURNS);
        let may_still_come = |call: &CallRecord| !call.flags.done() && call.turn >= oldest;
        let threshold = self.settings.config.similarity_threshold;
        let similar = self.similar.settle(threshold, |earlier, number| {
            match (history.get(earlier), history.get(number)) {
                (Some(before), Some(after))
                    if with_results && (may_still_come(before) || may_still_come(after)) =>
                {
                    Likeness::Waits
                }
                (Some(before), Some(after)) => likeness(before, after, with_results),
                _ => Likeness::Ruled(false),
            }
        });
        for (number, is_similar) in similar {
            if let Some(call) = self.history.get_mut(number) {
                call.flags = call.flags.with_similar(is_similar);
            }
        }
    }

    /// Marks what the rules need to know about a new call.
    fn watch(&mut self, call: &mut CallRecord, new: &NewCall<'_>) {
        let may_write = call.may_write();
        if may_write {
            call.flags = call
                .flags
                .with_first_write(self.is_first_write(call.signature));
        }
        // What a write brought is known later; a command counts as a write when it is made.
        if may_write && call.flags.shell() && call.flags.kind() == ToolKind::Unknown {
            self.remember_write(call);
        }
        let range = Range::of(call.flags.kind(), new.arguments);
        if range.is_some() || self.extras.is_some() {
            self.extras().coverage.read(range);
        }
        let number = self.history.total;
        // A write is work or a failure, and neither is judged by its arguments.
        let form = match call.flags.kind() {
            ToolKind::Write => Form::Never,
            _ => new.form(&call.tool),
        };
        self.similar.push(number, form);
    }

    fn remember(&mut self, call: CallRecord, new: NewCall<'_>) {
        if let Some(text) = new.text.filter(|_| self.settings.config.keep_arguments) {
            let (number, first) = (self.history.total, self.history.first_number());
            let kept = &mut self.extras().arguments;
            kept.push((number, text.into()));
            if kept.first().is_some_and(|(oldest, _)| *oldest < first) {
                kept.retain(|(number, _)| *number >= first);
            }
        }
        let (shown, oldest) = (self.shown_calls(), self.oldest_remembered_turn());
        self.history.push(call, shown, oldest);
    }

    /// Brings the element of a turn up to date.
    fn revise_turn(&mut self, turn: u32) {
        let back = self.turn.saturating_sub(turn) as usize;
        let with_results = self.settings.config.compare_results != Some(false);
        let calls = self.history.back_to(turn);
        let rest = match &self.extras {
            Some(extras) if turn == self.turn => extras.turn_rest,
            _ => 0,
        };
        let element = calls
            .filter(|(_, call)| call.turn == turn)
            .map(|(_, call)| call.element(with_results))
            .fold(rest, u128::wrapping_add);
        self.periods.revise(back, element);
    }

    /// Records what a call brought.
    ///
    /// Without an id it is the first call of the last turn that waits for its result, else of the
    /// turns before. A result that no call waits for changes nothing.
    pub fn record_result(&mut self, answer: Answer, id: Option<&str>) -> ResultTaken {
        let Some(number) = self.waiting_call(id) else {
            return ResultTaken::default();
        };
        self.results_seen = true;
        let Some(call) = self.history.get_mut(number) else {
            return ResultTaken::default();
        };
        call.set_answer(answer);
        let call = call.clone();
        if !call.flags.judged() {
            return ResultTaken::default();
        }
        if call.flags.kind() == ToolKind::Write && !call.flags.failed() {
            self.remember_write(&call);
        }
        self.revise_turn(call.turn);
        if !self.awaits_results() {
            self.settle_similar();
        }
        ResultTaken {
            is_judged: true,
            news: self.is_news(number, &call).then_some(call.signature),
        }
    }

    /// The number of the call that a result belongs to.
    fn waiting_call(&self, id: Option<&str>) -> Option<u64> {
        let Some(id) = id else {
            return self.first_waiting(|_| true);
        };
        let id = hash_of_id(id);
        // Ids are unique within a turn; the same id in a later turn is another call.
        self.first_waiting(|call| call.id == id)
            .or_else(|| self.first_waiting(|call| call.id == 0))
    }

    /// The first call that fits and waits, of the last reply that has one.
    fn first_waiting(&self, fits: impl Fn(&CallRecord) -> bool) -> Option<u64> {
        let oldest = self.oldest_remembered_turn();
        let mut first = None;
        for (number, call) in self.history.newest_first() {
            if call.turn < oldest {
                break;
            }
            if call.awaits_result() && fits(call) {
                first = Some(number);
            }
            if call.flags.starts_reply() && first.is_some() {
                break;
            }
        }
        first
    }

    /// Whether the same call brought something else the last time.
    fn is_news(&self, number: u64, call: &CallRecord) -> bool {
        let earlier = self.history.back_to(self.oldest_remembered_turn());
        let mut same_call = earlier.filter(|(other, earlier)| {
            *other < number && earlier.signature == call.signature && earlier.flags.done()
        });
        same_call
            .next()
            .is_some_and(|(_, earlier)| !earlier.same_answer(call))
    }

    fn is_first_write(&self, signature: Signature) -> bool {
        !self.writes.contains(&head(signature))
    }

    /// Notes a write that was made; a new one is progress.
    fn remember_write(&mut self, call: &CallRecord) {
        if call.new_write()
            && let Some(extras) = &mut self.extras
        {
            extras.coverage.forget();
        }
        let head = head(call.signature);
        if self.writes.contains(&head) {
            return;
        }
        if self.writes.len() < MOST_WRITES {
            if self.writes.len() == self.writes.capacity() {
                self.writes.reserve_exact((self.writes.len() / 2).max(2));
            }
            self.writes.push(head);
        } else if let Some(oldest) = self.writes.get_mut(self.next_write) {
            *oldest = head;
            self.next_write = (self.next_write + 1) % MOST_WRITES;
        }
    }

    // Looking ahead.

    /// What would be found if the calls of the last turn, which have not run, brought what the
    /// same calls brought before. They are taken to have done so if `accept` says yes.
    pub fn predict(&mut self, accept: impl FnOnce(&Finding) -> bool) -> Option<Finding> {
        let waiting: Vec<u64> = self
            .last_turn()
            .filter(|(_, call)| !call.flags.done())
            .map(|(number, _)| number)
            .collect();
        if waiting.is_empty() || !self.assume_answers(&waiting) {
            return None;
        }
        self.revise_turn(self.turn);
        let finding = self.detect();
        if let Some(finding) = finding
            && accept(&finding)
        {
            return Some(finding);
        }
        self.forget_answers(&waiting);
        self.revise_turn(self.turn);
        None
    }

    fn assume_answers(&mut self, waiting: &[u64]) -> bool {
        for (done, &number) in waiting.iter().enumerate() {
            let Some(equal) = self.last_equal_call(number) else {
                self.forget_answers(waiting.get(..done).unwrap_or_default());
                return false;
            };
            if let Some(call) = self.history.get_mut(number) {
                call.assume_answer_of(&equal);
            }
        }
        true
    }

    fn last_equal_call(&self, number: u64) -> Option<CallRecord> {
        let mut calls = self.history.back_to(self.oldest_remembered_turn());
        let (_, call) = calls.by_ref().find(|(other, _)| *other == number)?;
        let signature = call.signature;
        let turn = call.turn;
        calls
            .filter(|(_, earlier)| earlier.turn != turn)
            .find(|(_, earlier)| earlier.signature == signature && earlier.flags.done())
            .map(|(_, earlier)| earlier.clone())
    }

    fn forget_answers(&mut self, numbers: &[u64]) {
        for &number in numbers {
            if let Some(call) = self.history.get_mut(number) {
                call.forget_answer();
            }
        }
    }

    // Judging.

    /// The first rule that speaks on the last turn; none while its results are awaited.
    #[must_use]
    pub fn detect(&self) -> Option<Finding> {
        if self.turn == 0 || self.awaits_results() {
            return None;
        }
        Rule::ALL.into_iter().find_map(|rule| self.judge(rule))
    }
}

/// What two neighbouring calls can be to each other.
fn likeness(before: &CallRecord, after: &CallRecord, with_results: bool) -> Likeness {
    let is_work = |call: &CallRecord| {
        let is_write = call.flags.kind() == ToolKind::Write;
        if with_results {
            call.flags.failed() || (is_write && call.flags.done())
        } else {
            is_write || call.flags.shell()
        }
    };
    if before.tool != after.tool || !before.same_answer(after) || is_work(before) || is_work(after)
    {
        return Likeness::Ruled(false);
    }
    if before.signature == after.signature {
        return Likeness::Ruled(true);
    }
    Likeness::Open
}

/// 32 bits tell a few hundred writes apart; one taken for another is one progress less.
fn head(signature: Signature) -> u32 {
    let bytes = signature.to_bytes();
    bytes
        .first_chunk()
        .map_or(0, |head| u32::from_le_bytes(*head))
}

/// Ids are few, and one turn's: 32 bits keep them apart. Never 0, which stands for none.
fn hash_of_id(id: &str) -> u32 {
    let hash = blake3::hash(id.as_bytes());
    let bytes = hash.as_bytes().first_chunk();
    bytes.map_or(1, |head| u32::from_le_bytes(*head)).max(1)
}
