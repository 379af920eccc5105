//! Native messages: what the APIs of OpenAI, Anthropic and Gemini return, whole or streamed.
//!
//! ```text
//! View (Python object, JSON text) -> reader of the dialect -> pieces -> calls by slot, index, id
//!                                                                    -> text through the parser
//!                                                                    -> events and the reply
//! ```
//!
//! A [`View`] shows a message, whatever it is made of; a reader for each dialect says what it
//! holds in pieces (text, reasoning, parts of calls), and [`MessageStream`] makes of those what a
//! text stream gives. Cost: linear in the message, and each fragment is looked at when it comes and
//! once more when its call is over; nothing recurses on depth.

mod anthropic;
mod arguments;
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
mod passing;
mod piece;
#[cfg(test)]
mod reply_tests;
mod stream;
#[cfg(test)]
mod stream_tests;
mod view;

pub use dialect::Dialect;
pub use json_view::{JsonView, Tape};
pub use message::{Arguments, Call, Message, may_begin, read_json};
pub use stream::{MessageStream, NotAMessage, malformed, read_message};
pub use view::{Key, Kind, Unwritable, View, WriteLimits, Written};
