//! What a guard is told: numbers with their defaults and ranges, the ladder, budgets.
//!
//! Every struct here is plain data. `validate` names the first field that is out of its range.

use std::fmt;

/// A field of a configuration that holds a wrong value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Path of the field, such as `loop_detection.window_size`.
    pub field: String,
    /// The value as it was given.
    pub value: String,
    /// What the field may hold.
    pub allowed: String,
}

impl ConfigError {
    /// An error about one field.
    pub fn new(
        field: impl Into<String>,
        value: impl fmt::Display,
        allowed: impl Into<String>,
    ) -> Self {
        Self {
            field: field.into(),
            value: value.to_string(),
            allowed: allowed.into(),
        }
    }

    /// The same error as seen from the configuration that holds this one.
    #[must_use]
    pub fn inside(mut self, outer: &str) -> Self {
        self.field = format!("{outer}.{}", self.field);
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            field,
            value,
            allowed,
        } = self;
        write!(f, "{field} is {value}; allowed: {allowed}")
    }
}

impl std::error::Error for ConfigError {}

/// The least and the greatest value of a field that is a whole number.
///
/// ```
/// use turnwarden_guard::whole_numbers;
///
/// assert_eq!(whole_numbers("max_period"), (2, 64));
/// ```
#[must_use]
pub fn whole_numbers(field: &str) -> (u64, u64) {
    match field {
        "window_size" => (1, MOST_TURNS.into()),
        "repeat_threshold" | "poll_threshold" | "pattern_laps" => (2, MOST_TURNS.into()),
        "max_period" => (2, LONGEST_PERIOD.into()),
        "error_streak"
        | "unknown_tool_streak"
        | "scatter_threshold"
        | "coverage_threshold"
        | "lookup_threshold"
        | "memory_turns" => (2, LONGEST_MEMORY.into()),
        "max_calls" | "max_tokens" => (1, u64::MAX),
        "calls" | "tokens" => (0, u64::MAX),
        _ => (1, u32::MAX.into()),
    }
}

/// The range of a whole number in words.
#[must_use]
pub fn allowed_whole_numbers(field: &str) -> String {
    let (least, most) = whole_numbers(field);
    format!("an integer from {least} to {most}")
}

fn check_whole(field: &str, value: u64) -> Result<(), ConfigError> {
    let (least, most) = whole_numbers(field);
    let allowed = allowed_whole_numbers(field);
    check((least..=most).contains(&value), field, value, &allowed)
}

fn check(
    ok: bool,
    field: &str,
    value: impl fmt::Display,
    allowed: &str,
) -> Result<(), ConfigError> {
    if ok {
        return Ok(());
    }
    Err(ConfigError::new(field, value, allowed))
}

/// How many iterations a run may take, and when to say so.
///
/// The iteration that reaches the hard limit is refused, so `hard_limit - 1` run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecursionGuardConfig {
    /// From this iteration on a warning goes to the model.
    pub warning_threshold: u32,
    /// From this iteration on it is told to finish.
    pub soft_limit: u32,
    /// This iteration is refused.
    pub hard_limit: u32,
}

impl Default for RecursionGuardConfig {
    fn default() -> Self {
        Self {
            warning_threshold: 10,
            soft_limit: 15,
            hard_limit: 20,
        }
    }
}

impl RecursionGuardConfig {
    /// Limits from those that were given; the others keep their defaults as far as these allow.
    ///
    /// # Errors
    /// A limit of 0, or limits that are given but not in order.
    pub fn from_given(
        warning_threshold: Option<u32>,
        soft_limit: Option<u32>,
        hard_limit: Option<u32>,
    ) -> Result<Self, ConfigError> {
        let given = [
            ("warning_threshold", warning_threshold),
            ("soft_limit", soft_limit),
            ("hard_limit", hard_limit),
        ];
        let mut before: Option<(&str, u32)> = None;
        for (name, limit) in given {
            let Some(limit) = limit else { continue };
            check_whole(name, limit.into())?;
            if let Some((lower, least)) = before {
                let allowed = format!("{least} or more, since {lower} is {least}");
                check(limit >= least, name, limit, &allowed)?;
            }
            before = Some((name, limit));
        }
        let default = Self::default();
        let above = |limits: [Option<u32>; 2]| limits.into_iter().flatten().next();
        let hard = hard_limit.unwrap_or_else(|| {
            let least = soft_limit.max(warning_threshold);
            default.hard_limit.max(least.unwrap_or(0))
        });
        let soft = soft_limit.unwrap_or_else(|| {
            default
                .soft_limit
                .max(warning_threshold.unwrap_or(0))
                .min(hard)
        });
        let most = above([soft_limit, hard_limit]).unwrap_or(soft);
        Ok(Self {
            warning_threshold: warning_threshold.unwrap_or(default.warning_threshold.min(most)),
            soft_limit: soft,
            hard_limit: hard,
        })
    }
}

/// The numbers of the loop rules.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopDetectorConfig {
    /// Turns that similarity looks at; the history shows twice as many calls.
    pub window_size: u32,
    /// Equal or similar turns in a row that make a loop.
    pub repeat_threshold: u32,
    /// From here on two calls of one tool are similar, 0 to 1.
    pub similarity_threshold: f64,
    /// Whether oscillating and periodic loops are looked for.
    pub enable_pattern_detection: bool,
    /// Whether errors, scattered repeats, stale reads and empty lookups are looked for.
    pub enable_progress_detection: bool,
    /// The longest period that is found.
    pub max_period: u32,
    /// Laps that make a period; by default 2 without results, 3 with.
    pub pattern_laps: Option<u32>,
    /// Equal turns in a row that make a loop when a tool is a poll or its error transient.
    pub poll_threshold: u32,
    /// Times that the same error of one tool makes a loop.
    pub error_streak: u32,
    /// The same for a tool that does not exist.
    pub unknown_tool_streak: u32,
    /// Times that the same call with the same result makes a loop, with other calls between.
    pub scatter_threshold: u32,
    /// Reads in a row that bring hardly a new line.
    pub coverage_threshold: u32,
    /// Different reads in a row that bring nothing, or all the same.
    pub lookup_threshold: u32,
    /// Turns that errors, scattered repeats and lookups look back (more if one of their thresholds
    /// needs more).
    pub memory_turns: u32,
    /// Whether calls are compared with their results; by default from the first result on.
    pub compare_results: Option<bool>,
    /// Whether the history keeps the arguments.
    pub keep_arguments: bool,
}

impl Default for LoopDetectorConfig {
    fn default() -> Self {
        Self {
            window_size: 10,
            repeat_threshold: 3,
            similarity_threshold: 0.9,
            enable_pattern_detection: true,
            enable_progress_detection: true,
            max_period: 8,
            pattern_laps: None,
            poll_threshold: 6,
            error_streak: 4,
            unknown_tool_streak: 3,
            scatter_threshold: 4,
            coverage_threshold: 4,
            lookup_threshold: 5,
            memory_turns: 16,
            compare_results: None,
            keep_arguments: false,
        }
    }
}

/// No threshold beyond this makes sense, and it keeps the memory of a guard bounded.
pub const MOST_TURNS: u32 = 1_000_000;
/// The longest period that can be asked for; each turn costs a comparison a period.
pub const LONGEST_PERIOD: u32 = 64;
/// The longest memory of errors and scattered repeats.
pub const LONGEST_MEMORY: u32 = 256;

impl LoopDetectorConfig {
    /// Names the first field that is out of its range.
    ///
    /// # Errors
    /// That field, its value and its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        for (field, value) in [
            ("window_size", self.window_size),
            ("repeat_threshold", self.repeat_threshold),
            ("poll_threshold", self.poll_threshold),
            ("pattern_laps", self.pattern_laps.unwrap_or(2)),
            ("max_period", self.max_period),
            ("error_streak", self.error_streak),
            ("unknown_tool_streak", self.unknown_tool_streak),
            ("scatter_threshold", self.scatter_threshold),
            ("coverage_threshold", self.coverage_threshold),
            ("lookup_threshold", self.lookup_threshold),
            ("memory_turns", self.memory_turns),
        ] {
            check_whole(field, value.into())?;
        }
        check(
            (0.0..=1.0).contains(&self.similarity_threshold),
            "similarity_threshold",
            self.similarity_threshold,
            "a number from 0 to 1",
        )
    }
}

impl LoopDetectorConfig {
    /// Turns that a detector remembers: none of its rules looks back further.
    #[must_use]
    pub fn remembered_turns(&self) -> u32 {
        [
            self.error_streak,
            self.unknown_tool_streak,
            self.scatter_threshold,
            self.lookup_threshold,
        ]
        .into_iter()
        .fold(self.memory_turns, u32::max)
    }
}

/// What the n-th verdict of a loop episode does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Escalation {
    /// From this verdict on the model is warned.
    pub warn: u32,
    /// From this one on the call is answered with the warning instead of being run.
    pub block: u32,
    /// From this one on the run is stopped.
    pub stop: u32,
}

impl Default for Escalation {
    fn default() -> Self {
        Self {
            warn: 1,
            block: 2,
            stop: 3,
        }
    }
}

impl Escalation {
    /// Stops at the first verdict.
    #[must_use]
    pub const fn strict() -> Self {
        Self {
            warn: 1,
            block: 1,
            stop: 1,
        }
    }

    /// Names the first step that is out of order.
    ///
    /// # Errors
    /// That step, its value and its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_whole("warn", self.warn.into())?;
        let from = |least: u32, name: &str| format!("{least} or more, since {name} is {least}");
        check(
            self.block >= self.warn,
            "block",
            self.block,
            &from(self.warn, "warn"),
        )?;
        check(
            self.stop >= self.block,
            "stop",
            self.stop,
            &from(self.block, "block"),
        )
    }
}

/// What a run may use up. A warning comes at four fifths, the stop when it is used up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    /// Tool calls; the call that would exceed them is refused.
    pub max_calls: Option<u64>,
    /// Tokens, as told by `spend`.
    pub max_tokens: Option<u64>,
    /// Seconds since the guard was made or reset.
    pub max_seconds: Option<f64>,
    /// Cost in whatever unit `spend` is given.
    pub max_cost: Option<f64>,
}

impl Budget {
    /// Names the first limit that is no positive number.
    ///
    /// # Errors
    /// That limit, its value and its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        for (field, value) in [
            ("max_calls", self.max_calls),
            ("max_tokens", self.max_tokens),
        ] {
            check_whole(field, value.unwrap_or(1))?;
        }
        for (field, value) in [
            ("max_seconds", self.max_seconds),
            ("max_cost", self.max_cost),
        ] {
            let value = value.unwrap_or(1.0);
            check(
                value > 0.0 && value.is_finite(),
                field,
                value,
                "a finite number above 0",
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(
        warning: Option<u32>,
        soft: Option<u32>,
        hard: Option<u32>,
    ) -> Result<(u32, u32, u32), ConfigError> {
        let config = RecursionGuardConfig::from_given(warning, soft, hard)?;
        Ok((
            config.warning_threshold,
            config.soft_limit,
            config.hard_limit,
        ))
    }

    #[test]
    fn limits_not_given_make_room_for_those_given() {
        assert_eq!(limits(None, None, None), Ok((10, 15, 20)));
        assert_eq!(limits(None, None, Some(2)), Ok((2, 2, 2)));
        assert_eq!(limits(None, Some(12), None), Ok((10, 12, 20)));
        assert_eq!(limits(None, Some(5), Some(30)), Ok((5, 5, 30)));
        assert_eq!(limits(Some(17), None, None), Ok((17, 17, 20)));
        assert_eq!(limits(Some(25), None, None), Ok((25, 25, 25)));
        assert_eq!(limits(Some(3), None, Some(4)), Ok((3, 4, 4)));
    }

    #[test]
    fn limits_given_must_be_in_order() {
        let error = limits(Some(10), Some(5), None).map_err(|error| error.to_string());
        assert_eq!(
            error,
            Err("soft_limit is 5; allowed: 10 or more, since warning_threshold is 10".into())
        );
        assert!(limits(Some(10), None, Some(5)).is_err());
        assert!(limits(None, None, Some(0)).is_err());
    }

    #[test]
    fn wrong_values_are_named_with_their_range() {
        let config = LoopDetectorConfig {
            repeat_threshold: 1,
            ..LoopDetectorConfig::default()
        };
        let error = config.validate().map_err(|error| error.to_string());
        assert_eq!(
            error,
            Err("repeat_threshold is 1; allowed: an integer from 2 to 1000000".into())
        );
        let config = LoopDetectorConfig {
            similarity_threshold: f64::NAN,
            ..LoopDetectorConfig::default()
        };
        assert!(config.validate().is_err());
        assert_eq!(LoopDetectorConfig::default().validate(), Ok(()));
    }

    #[test]
    fn the_ladder_only_climbs() {
        assert_eq!(Escalation::default().validate(), Ok(()));
        assert_eq!(Escalation::strict().validate(), Ok(()));
        let falling = Escalation {
            warn: 2,
            block: 1,
            stop: 3,
        };
        assert!(falling.validate().is_err());
    }
}
