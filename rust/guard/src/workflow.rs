//! The guard of one run: iterations, loops and budgets, and what follows from them.

use std::borrow::Cow;
use std::sync::Arc;

use turnwarden_signature::Signature;

use crate::answer::Answer;
use crate::config::{Budget, Escalation, RecursionGuardConfig};
use crate::detector::{DetectorSettings, LoopDetector, NewCall};
use crate::finding::Finding;
use crate::ladder::{GuardAction, Ladder};
use crate::message;
use crate::recursion::{IterationLevel, RecursionGuard};
use crate::text::{Message, Texts};

/// What a guard is made with; shared by all that are made with the same.
#[derive(Debug, Default)]
pub struct GuardSettings {
    /// Limits of iterations.
    pub recursion: RecursionGuardConfig,
    /// Loops and tools.
    pub detection: Arc<DetectorSettings>,
    /// What the n-th verdict does.
    pub escalation: Escalation,
    /// What the run may use up.
    pub budget: Budget,
    /// Only report: never block, never stop.
    pub observe: bool,
    /// What is said, and in which language.
    pub texts: Texts,
}

/// What a run has used up, as far as the guard was told.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Calls made outside of what was recorded.
    pub calls: u64,
    /// Tokens.
    pub tokens: u64,
    /// Cost.
    pub cost: f64,
}

/// A budget that is nearly or wholly used up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetCheck {
    /// Which: `calls`, `tokens`, `seconds` or `cost`.
    pub name: &'static str,
    /// How much of it is used up.
    pub used: f64,
    /// How much there is.
    pub limit: f64,
    /// Nothing is left.
    pub exhausted: bool,
}

impl BudgetCheck {
    /// The reason codes of all budgets.
    pub const CODES: [&'static str; 4] = [
        "budget.calls",
        "budget.tokens",
        "budget.seconds",
        "budget.cost",
    ];

    /// The stable reason code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.name {
            "calls" => "budget.calls",
            "tokens" => "budget.tokens",
            "seconds" => "budget.seconds",
            _ => "budget.cost",
        }
    }
}

/// From this part of a budget on the model is warned.
const BUDGET_WARNING: f64 = 0.8;

/// What the guard says about a run as it stands. Texts are made when asked for.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub(crate) settings: Arc<GuardSettings>,
    /// Iterations begun.
    pub iteration: u32,
    /// What the loop that was found, if any, calls for.
    pub loop_action: GuardAction,
    /// The loop.
    pub finding: Option<Arc<Finding>>,
    /// The budget that is nearest to its end, once the model must know.
    pub budget: Option<BudgetCheck>,
    /// Why the run was ended from outside.
    pub terminated: Option<Arc<str>>,
}

impl Verdict {
    /// What the guard was made with.
    #[must_use]
    pub fn settings(&self) -> &Arc<GuardSettings> {
        &self.settings
    }

    /// What is to be done.
    #[must_use]
    pub fn action(&self) -> GuardAction {
        if self.terminated.is_some() {
            return GuardAction::Stop;
        }
        let iteration = match self.level() {
            IterationLevel::Free => GuardAction::Continue,
            IterationLevel::Warning | IterationLevel::SoftLimit => GuardAction::Warn,
            IterationLevel::HardLimit => GuardAction::Stop,
        };
        let budget = match self.budget {
            None => GuardAction::Continue,
            Some(BudgetCheck {
                exhausted: false, ..
            }) => GuardAction::Warn,
            Some(BudgetCheck {
                exhausted: true, ..
            }) => GuardAction::Stop,
        };
        let action = iteration.max(budget).max(self.loop_action);
        if self.settings.observe {
            action.min(GuardAction::Warn)
        } else {
            action
        }
    }

    /// How far the run has come.
    #[must_use]
    pub fn level(&self) -> IterationLevel {
        RecursionGuard::at(self.settings.recursion, self.iteration).check()
    }

    /// Whether the call of this signature may be run.
    #[must_use]
    pub fn allows(&self, signature: Signature) -> bool {
        match self.action() {
            GuardAction::Continue | GuardAction::Warn => true,
            GuardAction::Stop => false,
            GuardAction::Block => !self.finding.as_ref().is_some_and(|finding| {
                finding
                    .calls
                    .iter()
                    .any(|(_, looping)| *looping == signature)
            }),
        }
    }

    /// Codes of all that the guard has to say, the weightiest first.
    #[must_use]
    pub fn reasons(&self) -> Vec<&str> {
        let level = self.level();
        let hard = (level == IterationLevel::HardLimit)
            .then(|| level.code())
            .flatten();
        let soft = (level != IterationLevel::HardLimit)
            .then(|| level.code())
            .flatten();
        let exhausted = |yes| self.budget.filter(move |budget| budget.exhausted == yes);
        let found = self.finding.as_ref().map(|finding| finding.rule.code());
        [
            self.terminated.as_deref(),
            hard,
            exhausted(true).map(|budget| budget.code()),
            found,
            soft,
            exhausted(false).map(|budget| budget.code()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Why the run is to end, if it is.
    #[must_use]
    pub fn stop_reason(&self) -> Option<&str> {
        if self.action() != GuardAction::Stop {
            return None;
        }
        self.reasons().first().copied()
    }

    /// The warning of the iteration level.
    #[must_use]
    pub fn iteration_message(&self) -> Option<String> {
        message::iteration(
            &self.settings.texts,
            self.settings.recursion,
            self.iteration,
        )
    }

    /// The warning about the loop, with what is done about it.
    #[must_use]
    pub fn loop_message(&self) -> Option<String> {
        let finding = self.finding.as_ref()?;
        let texts = &self.settings.texts;
        let warning = message::loop_warning(texts, finding);
        let head = match self.action().min(self.loop_action) {
            GuardAction::Block => texts.render(Message::Blocked, &[]),
            GuardAction::Stop => texts.render(Message::Stopped, &[]),
            GuardAction::Continue | GuardAction::Warn => return Some(warning),
        };
        Some(format!("{head}\n{warning}"))
    }

    /// All that the model is to be told, if anything.
    #[must_use]
    pub fn message(&self) -> Option<String> {
        if self.action() == GuardAction::Continue {
            return None;
        }
        let parts: Vec<String> = self.messages().collect();
        (!parts.is_empty()).then(|| parts.join("\n\n"))
    }

    fn messages(&self) -> impl Iterator<Item = String> {
        let texts = &self.settings.texts;
        let terminated = self
            .terminated
            .as_deref()
            .map(|reason| texts.render(Message::Terminated, &[("reason", Cow::Borrowed(reason))]));
        let budget = self.budget.map(|budget| message::budget(texts, &budget));
        let of_loop = (self.loop_action != GuardAction::Continue)
            .then(|| self.loop_message())
            .flatten();
        [terminated, self.iteration_message(), budget, of_loop]
            .into_iter()
            .flatten()
    }

    /// The text for the next prompt: status, warnings, ways out. None when all is well.
    #[must_use]
    pub fn guidance(&self) -> Option<String> {
        let warnings = self.message()?;
        if self.iteration == 0 {
            return Some(warnings);
        }
        let status = message::status(
            &self.settings.texts,
            self.settings.recursion,
            self.iteration,
        );
        Some(format!("{status}\n{warnings}"))
    }
}

/// What befalls few runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Events {
    pub(crate) ladder: Ladder,
    pub(crate) spent: Spent,
    pub(crate) terminated: Option<Arc<str>>,
}

/// The guard of one run.
///
/// Times are seconds of any clock that the caller keeps to; one that steps back stands still.
#[derive(Clone, Debug)]
pub struct WorkflowGuard {
    pub(crate) settings: Arc<GuardSettings>,
    pub(crate) identity: u64,
    pub(crate) iteration: u32,
    pub(crate) detector: LoopDetector,
    pub(crate) finding: Option<Arc<Finding>>,
    pub(crate) loop_action: GuardAction,
    pub(crate) events: Option<Box<Events>>,
    pub(crate) start: f64,
    /// Milliseconds from the start to the last activity.
    pub(crate) last_activity: u32,
}

impl WorkflowGuard {
    /// A guard before the first iteration of a run that starts now. `identity` is the caller's
    /// own number for the run.
    #[must_use]
    pub fn new(settings: Arc<GuardSettings>, identity: u64, now: f64) -> Self {
        let detector = LoopDetector::new(Arc::clone(&settings.detection));
        Self {
            settings,
            identity,
            iteration: 0,
            detector,
            finding: None,
            loop_action: GuardAction::Continue,
            events: None,
            start: now,
            last_activity: 0,
        }
    }

    /// What it was made with.
    #[must_use]
    pub fn settings(&self) -> &Arc<GuardSettings> {
        &self.settings
    }

    /// The caller's number for the run.
    #[must_use]
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// The calls of the run.
    #[must_use]
    pub fn detector(&self) -> &LoopDetector {
        &self.detector
    }

    /// Iterations begun.
    #[must_use]
    pub fn current_iteration(&self) -> u32 {
        self.iteration
    }

    /// When the run started, by the caller's clock.
    #[must_use]
    pub fn start_time(&self) -> f64 {
        self.start
    }

    /// When the guard was last told something.
    #[must_use]
    pub fn last_activity_time(&self) -> f64 {
        self.start + f64::from(self.last_activity) / 1000.0
    }

    /// What was spent, as far as the guard was told.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.events
            .as_ref()
            .map_or_else(Spent::default, |events| events.spent)
    }

    /// Why the run was ended from outside.
    #[must_use]
    pub fn termination_reason(&self) -> Option<&str> {
        self.events.as_ref()?.terminated.as_deref()
    }

    /// Begins anew.
    pub fn reset(&mut self, now: f64) {
        *self = Self::new(Arc::clone(&self.settings), self.identity, now);
    }

    /// Begins an iteration. The run may go on when the verdict does not say stop.
    pub fn start_iteration(&mut self, now: f64) -> Verdict {
        self.touch(now);
        if self.termination_reason().is_none() {
            self.iteration = self.iteration.saturating_add(1);
        }
        self.check(now)
    }

    /// Records the calls of one turn before they run.
    pub fn record_turn<'a>(
        &mut self,
        calls: impl IntoIterator<Item = NewCall<'a>>,
        now: f64,
    ) -> Verdict {
        let time = self.touch(now);
        let turn_before = self.detector.turn();
        self.detector.begin_turn();
        for call in calls {
            self.detector.record(call, time);
        }
        if self.detector.turn() != turn_before {
            let quiet_limit = self.settings.detection.config.repeat_threshold;
            if let Some(events) = &mut self.events {
                events.ladder.end_turn(turn_before, quiet_limit);
            }
            self.judge();
        }
        self.check(now)
    }

    /// Records what a call brought, see [`LoopDetector::record_result`].
    pub fn record_result(&mut self, answer: Answer, id: Option<&str>, now: f64) -> Verdict {
        self.touch(now);
        let taken = self.detector.record_result(answer, id);
        if let (Some(signature), Some(events)) = (taken.news, &mut self.events) {
            events.ladder.take_news(signature);
        }
        if taken.is_judged && !self.detector.awaits_results() {
            self.judge();
        }
        self.check(now)
    }

    /// Judges the last turn and counts what is found, once for each turn.
    fn judge(&mut self) {
        let steps = self.settings.escalation;
        let finding = if self.detector.awaits_results() {
            let ladder = self.events.as_ref().map(|events| &events.ladder);
            ladder.and_then(|ladder| {
                self.detector
                    .predict(|finding| ladder.blocks_ahead(steps, finding))
            })
        } else {
            self.detector.detect()
        };
        self.loop_action = match &finding {
            Some(finding) => {
                let turn = self.detector.turn();
                self.events().ladder.count(steps, finding, turn)
            }
            None => GuardAction::Continue,
        };
        self.finding = finding.map(Arc::new);
    }

    /// How the run stands. Changes nothing.
    #[must_use]
    pub fn check(&self, now: f64) -> Verdict {
        Verdict {
            settings: Arc::clone(&self.settings),
            iteration: self.iteration,
            loop_action: self.loop_action,
            finding: self.finding.clone(),
            budget: self.check_budget(now),
            terminated: self
                .events
                .as_ref()
                .and_then(|events| events.terminated.clone()),
        }
    }

    /// Ends the run: later iterations are refused with this reason.
    pub fn terminate(&mut self, reason: &str) {
        self.events().terminated = Some(reason.into());
    }

    /// Takes note of what the run used up.
    pub fn spend(&mut self, more: Spent) {
        let spent = &mut self.events().spent;
        spent.calls = spent.calls.saturating_add(more.calls);
        spent.tokens = spent.tokens.saturating_add(more.tokens);
        spent.cost += more.cost;
    }

    fn events(&mut self) -> &mut Events {
        self.events.get_or_insert_default()
    }

    /// The budget that is nearest to its end, if that is near.
    #[must_use]
    pub fn check_budget(&self, now: f64) -> Option<BudgetCheck> {
        let Budget {
            max_calls,
            max_tokens,
            max_seconds,
            max_cost,
        } = self.settings.budget;
        if self.settings.budget == Budget::default() {
            return None;
        }
        #[allow(clippy::cast_precision_loss)] // beyond 2^53 one more or less does not matter
        let count = |limit: Option<u64>| limit.map(|limit| limit as f64);
        let spent = self.spent();
        let calls = self.detector.total_calls().saturating_add(spent.calls);
        let used = [
            ("calls", count(Some(calls)), count(max_calls)),
            ("tokens", count(Some(spent.tokens)), count(max_tokens)),
            ("seconds", Some(self.elapsed(now)), max_seconds),
            ("cost", Some(spent.cost), max_cost),
        ];
        let checks = used.into_iter().filter_map(|(name, used, limit)| {
            let (used, limit) = (used?, limit?);
            // The last call that is paid for may still be made.
            let exhausted = if name == "calls" {
                used > limit
            } else {
                used >= limit
            };
            Some(BudgetCheck {
                name,
                used,
                limit,
                exhausted,
            })
        });
        checks
            .filter(|check| check.used >= BUDGET_WARNING * check.limit)
            .max_by(|one, other| {
                let part = |check: &BudgetCheck| (check.exhausted, check.used / check.limit);
                part(one)
                    .partial_cmp(&part(other))
                    .unwrap_or(std::cmp::Ordering::Equal)
            })
    }

    /// Seconds since the start; never negative.
    #[must_use]
    pub fn elapsed(&self, now: f64) -> f64 {
        (now - self.start).max(f64::from(self.last_activity) / 1000.0)
    }

    /// What was done in the run, for a report.
    #[must_use]
    pub fn summary(&self, now: f64) -> String {
        message::summary(self, now)
    }

    /// Notes that something happened; returns milliseconds since the start.
    fn touch(&mut self, now: f64) -> u32 {
        self.last_activity = self.last_activity.max(milliseconds(now - self.start));
        self.last_activity
    }
}

/// Seconds as milliseconds, the nearest number that fits.
#[must_use]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // casts of floats saturate
pub fn milliseconds(seconds: f64) -> u32 {
    (seconds * 1000.0) as u32
}
