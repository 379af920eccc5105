//! Counts iterations against limits.

use crate::config::RecursionGuardConfig;

/// How far a run has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum IterationLevel {
    /// Below all limits.
    #[default]
    Free,
    /// From the warning threshold on.
    Warning,
    /// From the soft limit on.
    SoftLimit,
    /// The hard limit is reached: this iteration is refused.
    HardLimit,
}

impl IterationLevel {
    /// All levels, the mildest first.
    pub const ALL: [Self; 4] = [Self::Free, Self::Warning, Self::SoftLimit, Self::HardLimit];

    /// The stable reason code, if there is a reason.
    #[must_use]
    pub const fn code(self) -> Option<&'static str> {
        match self {
            Self::Free => None,
            Self::Warning => Some("recursion.warning"),
            Self::SoftLimit => Some("recursion.soft_limit"),
            Self::HardLimit => Some("recursion.hard_limit"),
        }
    }
}

/// Counts iterations against limits.
///
/// ```
/// use turnwarden_guard::{IterationLevel, RecursionGuard};
///
/// let mut guard = RecursionGuard::default();
/// let runs = (0..100).take_while(|_| guard.increment() < IterationLevel::HardLimit).count();
/// assert_eq!(runs, 19);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecursionGuard {
    /// The limits.
    pub config: RecursionGuardConfig,
    current: u32,
}

impl RecursionGuard {
    /// A guard before its first iteration.
    #[must_use]
    pub const fn new(config: RecursionGuardConfig) -> Self {
        Self { config, current: 0 }
    }

    /// A guard in the middle of a run.
    #[must_use]
    pub const fn at(config: RecursionGuardConfig, current: u32) -> Self {
        Self { config, current }
    }

    /// Begins an iteration.
    pub fn increment(&mut self) -> IterationLevel {
        self.current = self.current.saturating_add(1);
        self.check()
    }

    /// Where the run stands.
    #[must_use]
    pub const fn check(&self) -> IterationLevel {
        let RecursionGuardConfig {
            warning_threshold,
            soft_limit,
            hard_limit,
        } = self.config;
        match self.current {
            n if n >= hard_limit => IterationLevel::HardLimit,
            n if n >= soft_limit => IterationLevel::SoftLimit,
            n if n >= warning_threshold => IterationLevel::Warning,
            _ => IterationLevel::Free,
        }
    }

    /// Begins anew.
    pub fn reset(&mut self) {
        self.current = 0;
    }

    /// Iterations begun.
    #[must_use]
    pub const fn current_iteration(&self) -> u32 {
        self.current
    }

    /// Iterations up to the hard limit, which is itself refused.
    #[must_use]
    pub const fn remaining_iterations(&self) -> u32 {
        self.config.hard_limit.saturating_sub(self.current)
    }
}
