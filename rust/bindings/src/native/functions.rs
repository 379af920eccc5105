//! `parse_message`: one native message in, one reply out.

use pyo3::prelude::*;
use turnwarden_extract::Reply;
use turnwarden_extract::native::{malformed, read_message};

use super::view::{Look, is_mapping, is_sequence};
use crate::errors::Error;
use crate::parsing::parser::{PyResponseParser, given_parser};
use crate::parsing::reply::{PyReply, ReplyData};

/// What a message may be.
const EXPECTED: &str = "a mapping, a list or an SDK object that holds a native message of OpenAI, \
                        Anthropic or Gemini (text is for parse())";

/// What is said of a mapping or a list that is none.
pub(super) const UNKNOWN_SHAPE: &str = "nothing in it is known from native messages of OpenAI, \
                                        Anthropic or Gemini";

/// Parse a native message: calls, visible text, reasoning.
///
/// Reads what the APIs return, whole or their parts: OpenAI chat completions (response, choice,
/// message, list of tool calls, the older `function_call`, and the reasoning fields of servers of
/// open models), OpenAI Responses (response or output items), Anthropic messages (message or
/// content blocks) and Gemini (response, candidate, content or parts). Which it is shows in its
/// shape. Of several choices or candidates the first is read.
///
/// Argument strings are healed and typed, arguments that came as data are taken as they are, and
/// the ids of the message are kept. Calls that stand in the text count when the message has none
/// natively. Tools that the provider ran itself are no calls.
///
/// Args:
///     message: The message, as mappings and lists or as SDK objects with the same attributes.
///     parser: The parser for text and types; one that detects formats by default.
///
/// Returns:
///     A reply as `parse` gives it. Offsets count in the message's text, or in the argument
///     string concerned. What makes no sense in the message is among `faults`.
///
/// Raises:
///     WrongTypeError: When `message` is no such thing.
///
/// Cost: linear in the message.
///
/// Example:
///     >>> reply = turnwarden.parse_message({
///     ...     "role": "assistant",
///     ...     "content": "One moment.",
///     ...     "tool_calls": [{
///     ...         "id": "call_1",
///     ...         "type": "function",
///     ...         "function": {"name": "get_weather", "arguments": '{"city": "Oslo",}'},
///     ...     }],
///     ... })
///     >>> reply.text, reply.tool_calls[0].id, reply.tool_calls[0].arguments
///     ('One moment.', 'call_1', {'city': 'Oslo'})
#[pyfunction]
#[pyo3(signature = (message, parser=None))]
pub(crate) fn parse_message(
    message: &Bound<'_, PyAny>,
    parser: Option<&Bound<'_, PyResponseParser>>,
) -> PyResult<PyReply> {
    let parser = given_parser(parser)?;
    let look = Look::new(message.py());
    let view = look.at(message.clone());
    let read = read_message(parser, &view);
    let raised = look.finish().0?;
    let mut reply = match read {
        Ok(reply) => reply,
        Err(_) if is_mapping(message) || is_sequence(message) => Reply {
            faults: vec![malformed(UNKNOWN_SHAPE.to_owned())],
            ..Reply::default()
        },
        Err(_) => return Err(Error::wrong_type("message", EXPECTED, message).into()),
    };
    reply.faults.extend(raised.into_iter().map(malformed));
    Ok(PyReply::from_data(ReplyData::new(reply, Vec::new())))
}
