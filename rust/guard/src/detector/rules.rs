//! The rules, in the order of report.

use std::sync::Arc;

use super::{LoopDetector, likeness};
use crate::finding::{Finding, Rule};
use crate::history::CallRecord;
use crate::kind::ToolKind;
use crate::similar::Likeness;

/// Calls of one turn that scattered repeats are looked for.
const MOST_SCATTERED: usize = 32;

impl LoopDetector {
    pub(super) fn judge(&self, rule: Rule) -> Option<Finding> {
        let config = &self.settings.config;
        let on = match rule {
            Rule::Oscillating | Rule::Periodic => config.enable_pattern_detection,
            Rule::Errors => config.enable_progress_detection,
            Rule::Scatter | Rule::Coverage | Rule::Lookups => {
                config.enable_progress_detection && self.compares_results()
            }
            Rule::Exact | Rule::Similar => true,
        };
        if !on {
            return None;
        }
        match rule {
            Rule::Exact => self.exact(),
            Rule::Errors => self.same_error(),
            Rule::Similar => self.similar(),
            Rule::Oscillating | Rule::Periodic => self.lap(rule),
            Rule::Scatter => self.scattered(),
            Rule::Coverage => self.stale_reads(),
            Rule::Lookups => self.lookups(),
        }
    }

    fn finding(&self, rule: Rule, length: u32, mut evidence: Vec<(u64, &CallRecord)>) -> Finding {
        evidence.sort_unstable_by_key(|(number, _)| *number);
        let mut calls = Vec::new();
        for (_, call) in &evidence {
            let known = calls
                .iter()
                .any(|(tool, signature)| *signature == call.signature && *tool == call.tool);
            if !known {
                calls.push((Arc::clone(&call.tool), call.signature));
            }
        }
        Finding {
            rule,
            length,
            calls,
            evidence: evidence.into_iter().map(|(number, _)| number).collect(),
            results_compared: self.compares_results(),
        }
    }

    /// The judged calls of the last `turns` turns, newest first.
    fn last_turns(&self, turns: u32) -> impl Iterator<Item = (u64, &CallRecord)> {
        self.history
            .back_to(self.turn.saturating_add(1).saturating_sub(turns).max(1))
    }

    /// How often in a row the last turn may come again.
    fn budget(&self) -> u32 {
        let budgets = self.last_turn().map(|(_, call)| self.budget_of(call));
        budgets
            .min()
            .unwrap_or(self.settings.config.repeat_threshold)
    }

    /// How often in a row a call may come again.
    fn budget_of(&self, call: &CallRecord) -> u32 {
        let config = &self.settings.config;
        let own = call.tool.repeat_threshold();
        if call.flags.transient() {
            return own.unwrap_or(0).max(config.poll_threshold);
        }
        let waits = call.flags.kind() == ToolKind::Poll && !call.flags.failed();
        own.unwrap_or(if waits {
            config.poll_threshold
        } else {
            config.repeat_threshold
        })
    }

    /// The last turns are the same.
    fn exact(&self) -> Option<Finding> {
        let repeats = u32::try_from(self.periods.repeats()).unwrap_or(u32::MAX);
        // No budget is below 2, and most turns are new.
        if repeats < 2 || repeats < self.budget() {
            return None;
        }
        Some(self.finding(Rule::Exact, repeats, self.last_turns(repeats).collect()))
    }

    /// The last calls are of one tool and nearly the same, with the same answer or none.
    fn similar(&self) -> Option<Finding> {
        let config = &self.settings.config;
        if self.similar.current.length < config.repeat_threshold {
            return None;
        }
        let (_, last) = self.last_turn().next()?;
        let threshold = self.similar_budget(last);
        let calls = self.similar_calls();
        let newest = calls.get(..threshold as usize)?;
        let differ = newest
            .iter()
            .any(|(_, call)| call.signature != last.signature);
        let span_turns = newest.iter().any(|(_, call)| call.turn != last.turn);
        let is_work = self.similar.current.cursors.steps() >= threshold.saturating_sub(1);
        if !differ || !span_turns || is_work {
            return None;
        }
        let length = u32::try_from(calls.len()).unwrap_or(u32::MAX);
        Some(self.finding(Rule::Similar, length, calls))
    }

    /// How many similar calls make a loop.
    fn similar_budget(&self, call: &CallRecord) -> u32 {
        let config = &self.settings.config;
        let usual = match call.flags.kind() {
            // What is not known to be a read may be a write, and then each call is work.
            ToolKind::Unknown if self.compares_results() => {
                config.repeat_threshold.saturating_mul(2)
            }
            // A poll that waits for longer or shorter than before is still one.
            ToolKind::Poll => config.poll_threshold,
            _ => config.repeat_threshold,
        };
        let own = call.tool.repeat_threshold();
        own.map_or(usual, |own| own.max(usual))
    }

    /// The last calls of the window, newest first, as long as each is similar to the next.
    fn similar_calls(&self) -> Vec<(u64, &CallRecord)> {
        let with_results = self.compares_results();
        let mut calls: Vec<(u64, &CallRecord)> = Vec::new();
        for (number, call) in self.last_turns(self.settings.config.window_size) {
            let goes_on = calls.last().is_none_or(|(_, later)| {
                let may_be = likeness(call, later, with_results) != Likeness::Ruled(false);
                later.flags.similar() && may_be
            });
            if !goes_on {
                break;
            }
            calls.push((number, call));
        }
        calls
    }

    /// A lap of two or more turns, not all the same, again and again.
    fn lap(&self, rule: Rule) -> Option<Finding> {
        let with_results = self.compares_results();
        let laps = self
            .settings
            .config
            .pattern_laps
            .unwrap_or(if with_results { 3 } else { 2 });
        let period = self.periods.shortest_period(laps as usize)?;
        if (period == 2) != (rule == Rule::Oscillating) {
            return None;
        }
        let period = u32::try_from(period).unwrap_or(u32::MAX);
        Some(self.finding(rule, period, self.last_turns(period).collect()))
    }

    /// The same error from the same tool without a success of it or another new write between, or
    /// one refused reply after the other.
    fn same_error(&self) -> Option<Finding> {
        let (_, last) = self.last_turn().next()?;
        if !last.lasting_failure() {
            return None;
        }
        let mut streak: Vec<(u64, &CallRecord)> = Vec::new();
        for turn in self.turns_back() {
            if !last.refused() && is_beside(&turn, last) {
                continue;
            }
            match failure_in(&turn, last) {
                Some(failure) => streak.push(failure),
                None => break,
            }
        }
        let config = &self.settings.config;
        let alike = streak
            .iter()
            .take_while(|(_, call)| call.tool == last.tool && call.same_answer(last))
            .count();
        let refused = streak.iter().take_while(|(_, call)| call.refused()).count();
        let unknown = streak
            .iter()
            .take_while(|(_, call)| call.flags.unknown_tool())
            .count();
        let length = alike.max(refused);
        let enough = |count: usize, threshold: u32| count >= threshold as usize;
        if !enough(length, config.error_streak)
            && !enough(length.min(unknown), config.unknown_tool_streak)
        {
            return None;
        }
        streak.truncate(length);
        let count = u32::try_from(length).unwrap_or(u32::MAX);
        Some(self.finding(Rule::Errors, count, streak))
    }

    /// The remembered turns, newest first, each with its calls, newest first.
    fn turns_back(&self) -> impl Iterator<Item = Vec<(u64, &CallRecord)>> {
        let mut calls = self
            .history
            .back_to(self.oldest_remembered_turn())
            .peekable();
        std::iter::from_fn(move || {
            let first = calls.next()?;
            let turn = first.1.turn;
            let mut all = vec![first];
            while let Some(call) = calls.next_if(|(_, call)| call.turn == turn) {
                all.push(call);
            }
            Some(all)
        })
    }

    /// A call of the last turn that came again and again, with no new write between.
    fn scattered(&self) -> Option<Finding> {
        let config = &self.settings.config;
        let extra = self.budget().saturating_sub(config.repeat_threshold);
        let threshold = config.scatter_threshold.saturating_add(extra);
        let mut calls = self.last_turn().take(MOST_SCATTERED);
        let (_, call) =
            calls.find(|(_, call)| self.times_seen(call).count() >= threshold as usize)?;
        let seen: Vec<_> = self.times_seen(call).collect();
        let length = u32::try_from(seen.len()).unwrap_or(u32::MAX);
        Some(self.finding(Rule::Scatter, length, seen))
    }

    /// The same call with the same result, once for each turn, back to a new write.
    fn times_seen<'a>(
        &'a self,
        last: &'a CallRecord,
    ) -> impl Iterator<Item = (u64, &'a CallRecord)> {
        let mut counted_turn = None;
        let mut turn_of_write = None;
        self.history
            .back_to(self.oldest_remembered_turn())
            .take_while(move |(_, call)| {
                let goes_on = turn_of_write.is_none_or(|turn| turn == call.turn);
                let writes = call.signature != last.signature && call.new_write();
                if writes && call.turn != self.turn {
                    turn_of_write = Some(call.turn);
                }
                goes_on
            })
            .filter(move |(_, call)| {
                let is_same = call.signature == last.signature && call.same_answer(last);
                let is_counted = is_same && counted_turn != Some(call.turn);
                if is_counted {
                    counted_turn = Some(call.turn);
                }
                is_counted
            })
    }

    /// Reads in a row that brought hardly a new line.
    fn stale_reads(&self) -> Option<Finding> {
        let count = self.extras.as_ref()?.coverage.stale_reads;
        if count < self.settings.config.coverage_threshold {
            return None;
        }
        let reads = self.last_calls(count as usize).collect();
        Some(self.finding(Rule::Coverage, count, reads))
    }

    /// Different reads in a row that find nothing, or all bring the same answer.
    fn lookups(&self) -> Option<Finding> {
        let threshold = self.settings.config.lookup_threshold as usize;
        let (_, last) = self.last_turn().next()?;
        let same = |call: &CallRecord| {
            call.flags.wordy() && call.tool == last.tool && call.same_answer(last)
        };
        let nothing = self.single_reads(|call| call.flags.nothing()).count();
        let length = nothing.max(self.single_reads(same).count());
        if length < threshold {
            return None;
        }
        let reads: Vec<_> = self.last_calls(length).collect();
        let differ = |(_, call): &(u64, &CallRecord)| call.signature != last.signature;
        if !reads.iter().take(threshold).any(differ) {
            return None;
        }
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        Some(self.finding(Rule::Lookups, length, reads))
    }

    /// The last judged calls, newest first.
    fn last_calls(&self, count: usize) -> impl Iterator<Item = (u64, &CallRecord)> {
        self.history.back_to(1).take(count)
    }

    /// The last turns as long as each is one finished read that fits, newest first.
    fn single_reads(&self, fits: impl Fn(&CallRecord) -> bool) -> impl Iterator<Item = u64> {
        let oldest = self.oldest_remembered_turn();
        let mut calls = self.history.back_to(oldest).peekable();
        std::iter::from_fn(move || {
            let (number, call) = calls.next()?;
            let is_single = calls.peek().is_none_or(|(_, next)| next.turn != call.turn);
            let is_read = call.flags.kind() == ToolKind::Read;
            let is_answered = call.flags.done() && !call.flags.failed();
            (is_single && is_read && is_answered && fits(call)).then_some(number)
        })
        .fuse()
    }
}

/// Whether a turn has nothing to do with this tool's errors and wrote nothing new.
fn is_beside(turn: &[(u64, &CallRecord)], failing: &CallRecord) -> bool {
    turn.iter()
        .all(|(_, call)| call.tool != failing.tool && !call.new_write())
}

/// The failure of the turn, if all its calls of that tool failed for good and none wrote.
fn failure_in<'a>(
    turn: &[(u64, &'a CallRecord)],
    failing: &CallRecord,
) -> Option<(u64, &'a CallRecord)> {
    let mut found = None;
    for &(number, call) in turn {
        let concerns = call.tool == failing.tool || (failing.refused() && call.refused());
        if concerns && !call.lasting_failure() || !concerns && call.new_write() {
            return None;
        }
        if concerns && found.is_none() {
            found = Some((number, call));
        }
    }
    found
}
