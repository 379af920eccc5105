//! The module `turnwarden._core`: a list of what Python can see, and nothing else.

use pyo3::prelude::*;

mod borrowed_walk;
mod build_info;
mod errors;
mod guards;
mod native;
mod parsing;
mod signature;
mod string_enum;

/// The native core of turnwarden.
#[pymodule(gil_used = false)]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::build_info::build_info;
    #[pymodule_export]
    use super::guards::{
        Budget, CallRecord, Escalation, GuardCheckResult, GuardContext, LoopDetectionResult,
        LoopDetector, LoopDetectorConfig, RecursionCheckResult, RecursionGuard,
        RecursionGuardConfig, SessionGuards, TextLoopDetector, ToolPolicy, WorkflowGuard,
        WorkflowGuardConfig, guard_tables,
    };
    #[pymodule_export]
    use super::native::functions::parse_message;
    #[pymodule_export]
    use super::native::stream::PyMessageStream;
    #[pymodule_export]
    use super::signature::{ArgumentSketch, argument_similarity, call_signature};

    #[pymodule_export]
    use super::parsing::call::PyToolCall;
    #[pymodule_export]
    use super::parsing::events::{
        PyParseFault, PyReasoningDelta, PyReplyFinished, PyTextDelta, PyTextRetracted,
        PyToolCallArguments, PyToolCallEnded, PyToolCallStarted,
    };
    #[pymodule_export]
    use super::parsing::formats::{PyFormat, formats};
    #[pymodule_export]
    use super::parsing::functions::{
        clean_llm_response, create_workflow_response, extract_text_content, has_tool_calls, parse,
        parse_many, parse_tool_calls, parse_workflow_json, parse_workflow_response, repair_json,
        serialize_workflow_response,
    };
    #[pymodule_export]
    use super::parsing::kinds::{PyFault, PyRepair, PySpan};
    #[pymodule_export]
    use super::parsing::parser::PyResponseParser;
    #[pymodule_export]
    use super::parsing::reply::PyReply;
    #[pymodule_export]
    use super::parsing::stream::{PyEventIterator, PyResponseStream};
    #[pymodule_export]
    use super::parsing::workflow::{PyWorkflowJsonResponse, PyWorkflowParseResult};

    /// Add what is made at run time: exceptions and string enums.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::errors::register(module)?;
        super::parsing::register(module)
    }
}
