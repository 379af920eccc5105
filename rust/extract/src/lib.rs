//! Reads what a model replied: tool calls, visible text and reasoning.
//!
//! One engine ([`Stream`]) walks over the reply once, however it is cut into chunks; formats are
//! declarations that it reads, over a few grammars. [`Parser::parse`] is one `feed` and one
//! `finish`. Cost: linear in the reply, no recursion on its depth.

pub mod formats;
pub mod json;
pub mod native;

mod batch;
mod block;
mod calls;
mod candidate;
mod decode;
mod early;
mod engine;
mod grammars;
mod ids;
mod machine;
mod markers;
mod models;
mod output;
mod plan;
mod prose;
mod reading;
mod reply;
mod scan;
mod template;
mod tools;
mod transcript;
mod view;
mod watch;
mod workflow;

pub use batch::parse_many;
pub use decode::Decoder;
pub use engine::{Limits, Options, Parser, Stream};
pub use formats::{Format, format_named, formats};
pub use ids::{call_id, forked};
pub use models::{ModelFormats, formats_for_model, similar_models};

pub use reply::{Event, Fault, FaultKind, Repair, Reply, Span, SpanKind, ToolCall, Workflow};
pub use tools::{ConfigError, Tools};
