//! Guards of agent runs: how many iterations, whether calls go round in circles, and what to do.
//!
//! ```text
//! calls of a turn ──> LoopDetector ──> Finding ──> ladder ──> Verdict: continue, warn, block, stop
//! results ─────────────────^                                     ^
//! iterations, budgets ───────────────────────────────────────────┘
//! ```
//!
//! The rules compose three crates: what a call is known by (`signature`), how alike two calls are
//! (`similarity`), and what comes again in a sequence (`periodicity`). A call costs a hash of its
//! arguments and a look at the last few turns, whatever the window; nothing here recurses on, or
//! keeps, what a model wrote.

mod answer;
mod config;
mod coverage;
mod detector;
mod finding;
mod history;
mod kind;
mod ladder;
mod mask;
mod message;
mod recursion;
mod sessions;
mod similar;
mod snapshot;
mod text;
mod tool;
mod workflow;

pub use answer::{Answer, masked_hash};
pub use config::{
    Budget, ConfigError, Escalation, LONGEST_MEMORY, LONGEST_PERIOD, LoopDetectorConfig,
    MOST_TURNS, RecursionGuardConfig, allowed_whole_numbers, whole_numbers,
};
pub use detector::{Compared, DetectorSettings, LoopDetector, NewCall, ResultTaken};
pub use finding::{Finding, LoopType, Rule};
pub use history::CallRecord;
pub use kind::{Annotations, KindTables, PROGRAMS, SHELL_TOOLS, ToolKind, VERBS};
pub use ladder::GuardAction;
pub use mask::{DURATION_UNITS, LONGEST_KEY, VOLATILE_KEYS, VolatileKeys, mask};
pub use message::{
    history as history_summary, iteration as iteration_warning, iteration_guidance,
    loop_description, loop_suggestion, loop_warning, status,
};
pub use recursion::{IterationLevel, RecursionGuard};
pub use sessions::{
    Activity, Profile, Recorded, Removal, RemovedSession, SessionCounts, SessionLimits,
    SessionStore,
};
pub use snapshot::{Snapshot, SnapshotError, SnapshotKind};
pub use text::{Locale, Message, Texts, shown_name};
pub use tool::{LoopKey, REFUSED_PREFIX, Tool, ToolPolicy, Tools};
pub use turnwarden_periodicity::{TextLoop, TextLoopDetector, TextLoopKind};
pub use workflow::{BudgetCheck, GuardSettings, Spent, Verdict, WorkflowGuard, milliseconds};
