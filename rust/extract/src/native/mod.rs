//! Native messages: what the APIs of OpenAI, Anthropic and Gemini return, whole or streamed.
//!
//! A [`View`] shows a message, whatever it is made of; a reader for each dialect turns it into
//! pieces (text, reasoning, parts of calls).

#![allow(
    dead_code,
    reason = "the stream over these readers comes with the engine"
)]

mod anthropic;
mod blocks;
mod calls;
mod dialect;
mod gemini;
mod joints;
mod json_view;
mod message;
mod openai_chat;
mod openai_responses;
mod partial_values;
mod piece;
#[cfg(test)]
mod stream_tests;
mod view;
mod write;

pub use dialect::Dialect;
pub use message::{Arguments, Call, Message, may_begin, read_json};
pub use view::{Key, Kind, Unwritable, View, WriteLimits, Written};
pub use write::push_string;
