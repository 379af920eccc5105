//! What the detector has to say: which calls go round in circles, and how.

use std::sync::Arc;

use turnwarden_signature::Signature;

use crate::tool::Tool;

/// How calls go round in circles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoopType {
    /// The last turns are the same.
    Exact,
    /// The last calls are nearly the same.
    Similar,
    /// Two turns alternate.
    Oscillating,
    /// A longer lap comes again and again.
    Periodic,
    /// Calls that differ and lead nowhere.
    NoProgress,
    /// A reply that repeats itself.
    Text,
}

impl LoopType {
    /// All types in the order of report.
    pub const ALL: [Self; 6] = [
        Self::Exact,
        Self::Similar,
        Self::Oscillating,
        Self::Periodic,
        Self::NoProgress,
        Self::Text,
    ];

    /// Its name in Python and in reason codes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Similar => "similar",
            Self::Oscillating => "oscillating",
            Self::Periodic => "periodic",
            Self::NoProgress => "no_progress",
            Self::Text => "text",
        }
    }
}

/// Which rule spoke: a loop type, or one of the four kinds of no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// See [`LoopType::Exact`].
    Exact,
    /// The same error from the same tool, or one refused reply after the other.
    Errors,
    /// See [`LoopType::Similar`].
    Similar,
    /// See [`LoopType::Oscillating`].
    Oscillating,
    /// See [`LoopType::Periodic`].
    Periodic,
    /// The same call with the same result, with others between and nothing written.
    Scatter,
    /// Reads that bring hardly a new line.
    Coverage,
    /// Different reads that bring nothing, or all the same.
    Lookups,
}

impl Rule {
    /// All rules in the order of report.
    pub const ALL: [Self; 8] = [
        Self::Exact,
        Self::Errors,
        Self::Similar,
        Self::Oscillating,
        Self::Periodic,
        Self::Scatter,
        Self::Coverage,
        Self::Lookups,
    ];

    /// The type that it reports.
    #[must_use]
    pub const fn loop_type(self) -> LoopType {
        match self {
            Self::Exact => LoopType::Exact,
            Self::Similar => LoopType::Similar,
            Self::Oscillating => LoopType::Oscillating,
            Self::Periodic => LoopType::Periodic,
            Self::Errors | Self::Scatter | Self::Coverage | Self::Lookups => LoopType::NoProgress,
        }
    }

    /// The kind of no progress, where it is one.
    #[must_use]
    pub const fn detail(self) -> Option<&'static str> {
        match self {
            Self::Errors => Some("errors"),
            Self::Scatter => Some("scatter"),
            Self::Coverage => Some("coverage"),
            Self::Lookups => Some("lookups"),
            Self::Exact | Self::Similar | Self::Oscillating | Self::Periodic => None,
        }
    }

    /// The stable reason code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Exact => "loop.exact",
            Self::Errors => "loop.no_progress.errors",
            Self::Similar => "loop.similar",
            Self::Oscillating => "loop.oscillating",
            Self::Periodic => "loop.periodic",
            Self::Scatter => "loop.no_progress.scatter",
            Self::Coverage => "loop.no_progress.coverage",
            Self::Lookups => "loop.no_progress.lookups",
        }
    }

    /// How sure the rule is, 0 to 1: an order of evidence, not a probability.
    #[must_use]
    pub const fn confidence(self, results_compared: bool) -> f64 {
        match (self, results_compared) {
            (Self::Exact, true) => 1.0,
            (Self::Oscillating | Self::Periodic | Self::Errors, true) => 0.95,
            (Self::Scatter, _) => 0.9,
            (Self::Similar | Self::Lookups | Self::Coverage, true) => 0.8,
            // What the calls brought is not known: it may be a poll or a retry.
            (Self::Exact | Self::Errors, false) => 0.7,
            (_, false) => 0.6,
        }
    }
}

/// A loop that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The rule that spoke.
    pub rule: Rule,
    /// Equal turns, similar calls, failing calls and so on in a row; for periods the period.
    pub length: u32,
    /// The different calls of the loop, in order.
    pub calls: Vec<(Arc<Tool>, Signature)>,
    /// Numbers of the calls, counted from 0 over all recorded calls.
    pub evidence: Vec<u64>,
    /// Whether calls were compared with their results.
    pub results_compared: bool,
}

impl Finding {
    /// The tools of the loop, each once, in order.
    #[must_use]
    pub fn tools(&self) -> Vec<&str> {
        let mut tools: Vec<&str> = Vec::new();
        for (tool, _) in &self.calls {
            if !tools.contains(&tool.name()) {
                tools.push(tool.name());
            }
        }
        tools
    }

    /// How sure the rule is, see [`Rule::confidence`].
    #[must_use]
    pub fn confidence(&self) -> f64 {
        self.rule.confidence(self.results_compared)
    }
}
