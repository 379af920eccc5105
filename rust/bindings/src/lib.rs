//! The module `turnwarden._core`: a list of what Python can see, and nothing else.

use pyo3::prelude::*;

mod borrowed_walk;
mod build_info;
mod guards;
mod signature;

/// The native core of turnwarden.
#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use super::build_info::build_info;
    #[pymodule_export]
    use super::guards::{
        Budget, CallRecord, Escalation, GuardCheckResult, GuardContext, LoopDetectionResult,
        LoopDetector, LoopDetectorConfig, RecursionCheckResult, RecursionGuard,
        RecursionGuardConfig, ToolPolicy, WorkflowGuard, WorkflowGuardConfig,
    };
    #[pymodule_export]
    use super::signature::{argument_similarity, call_signature};
}
