//! `MessageStream`: a native message as it streams.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use turnwarden_extract::native::{MessageStream, NotAMessage};

use super::functions::UNKNOWN_SHAPE;
use super::halves::Halves;
use super::view::{Look, is_mapping};
use crate::errors::Error;
use crate::parsing::events::show_event;
use crate::parsing::parser::{PyResponseParser, given_parser};
use crate::parsing::reply::{PyReply, ReplyData};

const EXPECTED: &str = "a mapping or an SDK object that holds a chunk or event of a stream of OpenAI, \
                        Anthropic or Gemini (text is for ResponseStream)";

/// What a stream is at.
enum State {
    Open(Box<Feed>),
    /// A delta is being looked at, which may run code of its objects.
    Busy,
    Finished(Py<PyReply>),
}

/// A stream of the core, with what is between it and Python.
struct Feed {
    stream: MessageStream,
    halves: Halves,
}

/// Parses a native message that arrives as deltas, to the events that a stream of text gives.
///
/// Reads the chunks of OpenAI chat completions, the events of OpenAI Responses and of Anthropic
/// messages, and the partial responses of Gemini; which it is shows in their shape. A call's
/// fragments are put together by index or id, also where servers repeat ids, leave indexes out,
/// send a whole call in one delta, or begin a second call under the same index. However the
/// message is cut, the reply is the one that `parse_message` gives for the whole.
///
/// Text deltas come at once; calls that stand in the text come when the message is over, since
/// they count only when none came natively. Argument deltas of a native call come once its
/// arguments are complete, or value by value with `ResponseParser(buffer_arguments=False)`.
///
/// Args:
///     parser: The parser for text and types; one that detects formats by default.
///
/// Example:
///     >>> stream = turnwarden.MessageStream()
///     >>> for delta in [
///     ...     {"content": "One moment."},
///     ...     {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "ping", "arguments": ""}}]},
///     ...     {"tool_calls": [{"index": 0, "function": {"arguments": '{"host": '}}]},
///     ...     {"tool_calls": [{"index": 0, "function": {"arguments": '"a"}'}}]},
///     ... ]:
///     ...     for event in stream.feed({"choices": [{"index": 0, "delta": delta}]}):
///     ...         print(event.type)
///     text_delta
///     tool_call_started
///     >>> [event.type for event in stream.finish()]
///     ['tool_call_arguments', 'tool_call_ended', 'reply_finished']
///     >>> stream.reply.tool_calls
///     (ToolCall('ping', {"host":"a"}, id='c1'),)
#[pyclass(frozen, module = "turnwarden", name = "MessageStream")]
pub(crate) struct PyMessageStream {
    state: Mutex<State>,
}

impl PyMessageStream {
    /// Work on the state. No Python code runs and no Python object is made under the lock.
    fn with_state<T>(&self, py: Python<'_>, work: impl FnOnce(&mut State) -> T) -> T {
        let locked = self.state.lock_py_attached(py);
        work(&mut locked.unwrap_or_else(PoisonError::into_inner))
    }

    /// Take the stream out for the time that Python code may run.
    fn take(&self, py: Python<'_>) -> PyResult<Box<Feed>> {
        let taken = self.with_state(py, |state| match state {
            State::Open(_) => Ok(std::mem::replace(state, State::Busy)),
            State::Busy => Err(Error::StreamBusy),
            State::Finished(_) => Err(Error::StreamFinished),
        })?;
        match taken {
            State::Open(feed) => Ok(feed),
            State::Busy | State::Finished(_) => Err(Error::StreamBusy.into()),
        }
    }
}

#[pymethods]
impl PyMessageStream {
    #[new]
    #[pyo3(signature = (parser=None))]
    fn new(parser: Option<&Bound<'_, PyResponseParser>>) -> PyResult<Self> {
        let feed = Feed {
            stream: MessageStream::new(given_parser(parser)?),
            halves: Halves::default(),
        };
        Ok(Self {
            state: Mutex::new(State::Open(Box::new(feed))),
        })
    }

    /// Take the next delta, and give the events that it brought.
    ///
    /// Args:
    ///     delta: A chunk or event as the API sends it, as a mapping or an SDK object. What makes
    ///         no sense in it becomes a `ParseFault`.
    ///
    /// Raises:
    ///     WrongTypeError: When the delta is no such thing; the stream goes on.
    ///     StreamFinishedError: After `finish`.
    ///     StreamBusyError: While another delta is being read.
    ///
    /// Cost: linear in the delta, over all deltas.
    fn feed<'py>(&self, delta: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let py = delta.py();
        let mut feed = self.take(py)?;
        let stream = &mut feed.stream;
        let mut events = Vec::new();
        let look = Look::at_delta(py, std::mem::take(&mut feed.halves));
        let read = stream.feed(&look.at(delta.clone()), &mut events);
        let (looked, halves) = look.finish();
        feed.halves = halves;
        let known = match read {
            Ok(()) => true,
            Err(NotAMessage) if is_mapping(delta) => {
                stream.note_fault(UNKNOWN_SHAPE.to_owned(), &mut events);
                true
            }
            Err(NotAMessage) => false,
        };
        for sentence in looked.iter().flatten() {
            stream.note_fault(sentence.clone(), &mut events);
        }
        self.with_state(py, |state| *state = State::Open(feed));
        looked?;
        if !known {
            return Err(Error::wrong_type("delta", EXPECTED, delta).into());
        }
        events
            .into_iter()
            .map(|event| show_event(py, event, || self.reply(py)))
            .collect()
    }

    /// Say that no more will come, and give the last events; a second time there are none.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        if self.finished(py) {
            return Ok(Vec::new());
        }
        let Feed { mut stream, halves } = *self.take(py)?;
        let mut events = Vec::new();
        if !halves.is_empty() {
            stream.note_fault("it ends in half a character".to_owned(), &mut events);
        }
        stream.finish(&mut events);
        let data = ReplyData::new(stream.into_reply(), Vec::new());
        let reply = Py::new(py, PyReply::from_data(data))?;
        self.with_state(py, |state| *state = State::Finished(reply.clone_ref(py)));
        events
            .into_iter()
            .map(|event| show_event(py, event, || Ok(reply.clone_ref(py))))
            .collect()
    }

    /// What was found so far; after `finish`, the reply. Before it, each access takes a copy.
    #[getter]
    fn reply(&self, py: Python<'_>) -> PyResult<Py<PyReply>> {
        enum Found {
            SoFar(Box<turnwarden_extract::Reply>),
            Whole(Py<PyReply>),
        }
        let found = self.with_state(py, |state| match state {
            State::Open(feed) => Ok(Found::SoFar(Box::new(feed.stream.reply()))),
            State::Busy => Err(Error::StreamBusy),
            State::Finished(reply) => Ok(Found::Whole(reply.clone_ref(py))),
        })?;
        match found {
            Found::SoFar(reply) => {
                Py::new(py, PyReply::from_data(ReplyData::new(*reply, Vec::new())))
            }
            Found::Whole(reply) => Ok(reply),
        }
    }

    /// Whether `finish` was called.
    #[getter]
    fn finished(&self, py: Python<'_>) -> bool {
        self.with_state(py, |state| matches!(state, State::Finished(_)))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let finished = if self.finished(py) {
            "finished"
        } else {
            "open"
        };
        format!("<MessageStream {finished}>")
    }
}
