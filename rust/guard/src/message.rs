//! Fills the templates of [`crate::text`] with what was found.

use std::borrow::Cow;

use turnwarden_signature::Signature;

use crate::config::RecursionGuardConfig;
use crate::finding::{Finding, Rule};
use crate::recursion::{IterationLevel, RecursionGuard};
use crate::text::{Locale, Message, Texts, bar, percent, shown_name};
use crate::tool::Tool;
use crate::workflow::{BudgetCheck, WorkflowGuard};

type Field<'a> = (&'a str, Cow<'a, str>);

/// Calls that a description names at most.
const SHOWN_CALLS: usize = 8;

fn iteration_fields<'a>(config: RecursionGuardConfig, current: u32) -> [Field<'a>; 5] {
    let limit = config.hard_limit;
    [
        ("current", current.to_string().into()),
        ("limit", limit.to_string().into()),
        ("percent", percent(current, limit).to_string().into()),
        (
            "remaining",
            limit.saturating_sub(current).to_string().into(),
        ),
        ("bar", bar(current, limit).into()),
    ]
}

/// The status line: bar, count and percentage.
#[must_use]
pub fn status(texts: &Texts, config: RecursionGuardConfig, current: u32) -> String {
    texts.render(Message::Status, &iteration_fields(config, current))
}

/// The warning of the level that an iteration has reached, if any.
#[must_use]
pub fn iteration(texts: &Texts, config: RecursionGuardConfig, current: u32) -> Option<String> {
    let is_last = current.saturating_add(1) == config.hard_limit;
    let message = match RecursionGuard::at(config, current).check() {
        IterationLevel::HardLimit => Message::IterationHardLimit,
        IterationLevel::Free => return None,
        _ if is_last => Message::IterationLast,
        IterationLevel::SoftLimit => Message::IterationSoftLimit,
        IterationLevel::Warning => Message::IterationWarning,
    };
    Some(texts.render(message, &iteration_fields(config, current)))
}

/// What a prompt is told of the iterations alone, if anything.
#[must_use]
pub fn iteration_guidance(
    texts: &Texts,
    config: RecursionGuardConfig,
    current: u32,
) -> Option<String> {
    let warning = iteration(texts, config, current)?;
    Some(format!("{}\n{warning}", status(texts, config, current)))
}

fn loop_fields<'a>(texts: &Texts, finding: &'a Finding) -> [Field<'a>; 3] {
    let tools: Vec<_> = finding.tools().into_iter().map(shown_name).collect();
    [
        ("count", finding.length.to_string().into()),
        ("tools", shortened(texts, &tools).into()),
        ("calls", shortened(texts, &shown_calls(finding)).into()),
    ]
}

/// The calls by their tools, told apart by their signatures where the tool is the same.
fn shown_calls(finding: &Finding) -> Vec<Cow<'_, str>> {
    let shown = finding.calls.iter().map(|(tool, signature)| {
        let is_alone = finding
            .calls
            .iter()
            .filter(|(other, _)| other == tool)
            .count()
            == 1;
        let name = shown_name(tool.name());
        if is_alone {
            name
        } else {
            Cow::Owned(format!("{name}#{}", short(*signature)))
        }
    });
    shown.collect()
}

fn short(signature: Signature) -> String {
    signature.to_string().chars().take(8).collect()
}

fn shortened(texts: &Texts, names: &[Cow<'_, str>]) -> String {
    match names.get(..SHOWN_CALLS) {
        Some(first) if names.len() > SHOWN_CALLS => texts.join(first) + "…",
        _ => texts.join(names),
    }
}

/// What was seen, in one sentence.
#[must_use]
pub fn loop_description(texts: &Texts, finding: &Finding) -> String {
    let message = match finding.rule {
        Rule::Exact => Message::LoopExact,
        Rule::Similar => Message::LoopSimilar,
        Rule::Oscillating => Message::LoopOscillating,
        Rule::Periodic => Message::LoopPeriodic,
        Rule::Errors => Message::LoopErrors,
        Rule::Scatter => Message::LoopScatter,
        Rule::Coverage => Message::LoopCoverage,
        Rule::Lookups => Message::LoopLookups,
    };
    texts.render(message, &loop_fields(texts, finding))
}

/// What to do about it, in one sentence.
#[must_use]
pub fn loop_suggestion(texts: &Texts, finding: &Finding) -> String {
    let message = match finding.rule {
        Rule::Exact => Message::SuggestExact,
        Rule::Similar => Message::SuggestSimilar,
        Rule::Oscillating => Message::SuggestOscillating,
        Rule::Periodic => Message::SuggestPeriodic,
        Rule::Errors => Message::SuggestErrors,
        Rule::Scatter => Message::SuggestScatter,
        Rule::Coverage => Message::SuggestCoverage,
        Rule::Lookups => Message::SuggestLookups,
    };
    texts.render(message, &loop_fields(texts, finding))
}

/// The whole warning: what was seen, by which tools, and the ways out.
#[must_use]
pub fn loop_warning(texts: &Texts, finding: &Finding) -> String {
    let [count, tools, _] = loop_fields(texts, finding);
    let fields = [
        count,
        tools,
        ("type", finding.rule.loop_type().as_str().into()),
        ("description", loop_description(texts, finding).into()),
        ("suggestion", loop_suggestion(texts, finding).into()),
    ];
    texts.render(Message::LoopWarning, &fields)
}

/// The warning about a budget.
pub(crate) fn budget(texts: &Texts, check: &BudgetCheck) -> String {
    let message = if check.exhausted {
        Message::BudgetExhausted
    } else {
        Message::BudgetWarning
    };
    let name = match (texts.locale, check.name) {
        (Locale::English, "calls") => "tool calls",
        (Locale::Chinese, "calls") => "工具调用次数",
        (Locale::Chinese, "tokens") => "令牌",
        (Locale::Chinese, "seconds") => "时间（秒）",
        (Locale::Chinese, "cost") => "费用",
        (_, name) => name,
    };
    let part = (100.0 * check.used / check.limit).floor();
    let fields = [
        ("name", name.into()),
        ("used", number(check.used).into()),
        ("limit", number(check.limit).into()),
        ("percent", number(part).into()),
    ];
    texts.render(message, &fields)
}

/// At most two decimals, none where they are zero.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What was done in a run.
pub(crate) fn summary(guard: &WorkflowGuard, now: f64) -> String {
    let texts = &guard.settings().texts;
    let verdict = guard.check(now);
    let outcome = match verdict.stop_reason() {
        Some(reason) => texts.render(Message::OutcomeEnded, &[("reason", reason.into())]),
        None => texts.render(Message::OutcomeRunning, &[]),
    };
    let seconds = (guard.elapsed(now) + 0.5).floor();
    let fields = [
        ("iterations", guard.current_iteration().to_string().into()),
        (
            "limit",
            guard.settings().recursion.hard_limit.to_string().into(),
        ),
        ("calls", guard.detector().total_calls().to_string().into()),
        ("seconds", number(seconds).into()),
        ("outcome", outcome.into()),
    ];
    texts.render(Message::Summary, &fields)
}

/// The last calls, one a line: number, tool and hash.
#[must_use]
pub fn history<'a>(calls: impl Iterator<Item = (&'a Tool, Signature)>) -> String {
    let lines = calls.enumerate().map(|(index, (tool, signature))| {
        format!("{}. {}({signature})", index + 1, shown_name(tool.name()))
    });
    lines.collect::<Vec<_>>().join("\n")
}
