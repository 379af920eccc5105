//! Reads what a model replied: tool calls, visible text and reasoning.
//!
//! One engine ([`Stream`]) walks over the reply once, however it is cut into chunks; formats are
//! declarations that it reads, over a few grammars. [`Parser::parse`] is one `feed` and one
//! `finish`. Cost: linear in the reply, no recursion on its depth.

pub mod json;
pub mod native;

mod reply;

pub use reply::{Event, Fault, FaultKind, Repair, Reply, Span, SpanKind, ToolCall, Workflow};
