//! Warn first, then block, then stop.
//!
//! An episode begins with the first verdict on a loop and ends when the loop has been left: after
//! some turns that are no loop, or with a new result. A loop that comes back is not warned again.

use turnwarden_signature::Signature;

use crate::config::Escalation;
use crate::finding::{Finding, Rule};

/// What the guard does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GuardAction {
    /// Nothing stands against going on.
    #[default]
    Continue,
    /// Go on, and tell the model.
    Warn,
    /// Answer this call with the warning instead of running it.
    Block,
    /// End the run.
    Stop,
}

impl GuardAction {
    /// All actions, mildest first.
    pub const ALL: [Self; 4] = [Self::Continue, Self::Warn, Self::Block, Self::Stop];

    /// Its name in Python.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Warn => "warn",
            Self::Block => "block",
            Self::Stop => "stop",
        }
    }
}

/// Loops of which it is remembered that they were warned of.
const MOST_PAST: usize = 8;

/// Where a guard stands with the loop that it is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ladder {
    /// Verdicts of this episode.
    pub(crate) verdicts: u32,
    /// Turns without a verdict since the last one.
    pub(crate) quiet_turns: u32,
    /// The turn that was counted last.
    pub(crate) counted_turn: u32,
    /// What the episode is about, see [`marks`].
    pub(crate) current: Vec<u32>,
    /// What earlier episodes were about.
    pub(crate) past: Vec<u32>,
}

impl Ladder {
    /// Whether a loop that is only foreseen is to be blocked: it goes on with the one that this
    /// episode is about, and has been warned of enough.
    pub(crate) fn blocks_ahead(&self, steps: Escalation, finding: &Finding) -> bool {
        let goes_on = || marks(finding).any(|mark| self.current.contains(&mark));
        let next = action(steps, self.verdicts.saturating_add(1));
        self.verdicts > 0 && next >= GuardAction::Block && goes_on()
    }

    fn next_count(&self, steps: Escalation, finding: &Finding) -> u32 {
        let comes_back = || marks(finding).any(|mark| self.past.contains(&mark));
        if self.verdicts == 0 && comes_back() {
            return steps.block;
        }
        self.verdicts.saturating_add(1)
    }

    /// Counts a verdict on a turn, once for each turn.
    pub(crate) fn count(&mut self, steps: Escalation, finding: &Finding, turn: u32) -> GuardAction {
        if self.counted_turn != turn || self.verdicts == 0 {
            self.verdicts = self.next_count(steps, finding);
            self.counted_turn = turn;
            self.quiet_turns = 0;
            for mark in marks(finding).take(MOST_PAST) {
                remember(&mut self.current, mark);
            }
        }
        action(steps, self.verdicts)
    }

    /// A turn is over; `quiet_limit` turns without a verdict end the episode.
    pub(crate) fn end_turn(&mut self, turn: u32, quiet_limit: u32) {
        if self.verdicts == 0 || self.counted_turn == turn {
            return;
        }
        self.quiet_turns = self.quiet_turns.saturating_add(1);
        if self.quiet_turns >= quiet_limit {
            self.end_episode();
        }
    }

    /// A call brought something that it had not brought before.
    pub(crate) fn take_news(&mut self, signature: Signature) {
        if self.verdicts > 0 && self.current.contains(&mark(signature.to_u128())) {
            self.end_episode();
        }
    }

    fn end_episode(&mut self) {
        self.verdicts = 0;
        self.quiet_turns = 0;
        for mark in std::mem::take(&mut self.current) {
            remember(&mut self.past, mark);
        }
    }
}

/// Adds a mark to the newest ones.
fn remember(marks: &mut Vec<u32>, mark: u32) {
    if marks.contains(&mark) {
        return;
    }
    if marks.len() >= MOST_PAST {
        marks.remove(0);
    }
    marks.push(mark);
}

fn action(steps: Escalation, verdicts: u32) -> GuardAction {
    match verdicts {
        n if n >= steps.stop => GuardAction::Stop,
        n if n >= steps.block => GuardAction::Block,
        n if n >= steps.warn => GuardAction::Warn,
        _ => GuardAction::Continue,
    }
}

/// What a loop is known by when it comes back: its calls, or its tool where the calls differ.
fn marks(finding: &Finding) -> impl Iterator<Item = u32> {
    let by_call = matches!(
        finding.rule,
        Rule::Exact | Rule::Oscillating | Rule::Periodic | Rule::Scatter
    );
    finding.calls.iter().map(move |(tool, signature)| {
        if by_call {
            mark(signature.to_u128())
        } else {
            mark(Signature::of_bytes(tool.name().as_bytes(), &[]).to_u128())
        }
    })
}

/// 32 bits tell a handful of loops apart.
fn mark(hash: u128) -> u32 {
    u32::try_from(hash >> 96).unwrap_or(0)
}
