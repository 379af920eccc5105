//! The guards as Python sees them.
//!
//! Every class here is the class that Python uses: no wrapper stands between. Python objects are
//! turned into canonical bytes before a guard's lock is taken, and none is touched while it is
//! held, so a guard can be shared by any number of threads.

mod call;
mod clock;
mod config;
mod detector;
mod enums;
mod fields;
mod policy;
mod recursion;
mod result;
mod sessions;
mod tables;
mod text_loop;
mod workflow;

pub(crate) use config::{
    Budget, Escalation, LoopDetectorConfig, RecursionGuardConfig, WorkflowGuardConfig,
};
pub(crate) use detector::{CallRecord, LoopDetector};
pub(crate) use policy::ToolPolicy;
pub(crate) use recursion::RecursionGuard;
pub(crate) use result::{GuardCheckResult, LoopDetectionResult, RecursionCheckResult};
pub(crate) use sessions::SessionGuards;
pub(crate) use tables::guard_tables;
pub(crate) use text_loop::TextLoopDetector;
pub(crate) use workflow::{GuardContext, WorkflowGuard};
