//! `ResponseStream` and the iterator over its events.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyByteArray, PyBytes, PyIterator};
use turnwarden_extract::{Decoder, Event, Parser, Repair, Stream};

use super::events::show_event;
use super::reply::{PyReply, ReplyData};
use super::text::{Chunk, read_valid};
use crate::errors::Error;

/// What a stream is at.
enum State {
    Open(Box<Feed>),
    Finished { reply: Py<PyReply>, stopped: bool },
}

/// A stream of the core, with what is between it and Python.
struct Feed {
    stream: Stream,
    decoder: Decoder,
    replaced: Vec<Repair>,
}

impl Feed {
    fn feed(&mut self, chunk: &Chunk<'_>, events: &mut Vec<Event>) {
        match chunk {
            Chunk::Valid(text) if self.decoder.is_empty() => {
                self.decoder.skip(text);
                self.stream.feed(text, events);
            }
            Chunk::Valid(text) => self.decode(text.as_bytes(), events),
            Chunk::Bytes(bytes) => self.decode(bytes.as_ref(), events),
        }
    }

    fn decode(&mut self, bytes: &[u8], events: &mut Vec<Event>) {
        let mut text = String::with_capacity(bytes.len());
        self.decoder.decode(bytes, &mut text, &mut self.replaced);
        self.stream.feed(&text, events);
    }

    fn finish(&mut self, events: &mut Vec<Event>) {
        let mut rest = String::new();
        self.decoder.finish(&mut rest, &mut self.replaced);
        if !rest.is_empty() {
            self.stream.feed(&rest, events);
        }
        self.stream.finish(events);
    }
}

/// Parses a reply that arrives in chunks.
///
/// Made by `ResponseParser.stream()`. However the reply is cut, the final reply is the same as for
/// the whole text. Chunks may come from several threads, one at a time.
///
/// Example:
///     >>> stream = turnwarden.ResponseParser().stream()
///     >>> stream.feed('<tool_call>{"name": "ping", "argu')
///     []
///     >>> for event in stream.feed('ments": {}}</tool_call>') + stream.finish():
///     ...     print(event.type)
///     tool_call_started
///     tool_call_arguments
///     tool_call_ended
///     reply_finished
///     >>> stream.reply.tool_calls[0].name
///     'ping'
#[pyclass(frozen, module = "turnwarden", name = "ResponseStream")]
pub(crate) struct PyResponseStream {
    state: Mutex<State>,
}

impl PyResponseStream {
    pub(crate) fn new(parser: &Parser) -> Self {
        Self {
            state: Mutex::new(State::Open(Box::new(Feed {
                stream: parser.stream(),
                decoder: Decoder::default(),
                replaced: Vec::new(),
            }))),
        }
    }

    /// Work on the state. No Python code runs and no Python object is made under the lock.
    fn with_state<T>(&self, py: Python<'_>, work: impl FnOnce(&mut State) -> T) -> T {
        let locked = self.state.lock_py_attached(py);
        work(&mut locked.unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl PyResponseStream {
    /// Take the next chunk of the reply, and give the events that it brought.
    ///
    /// Args:
    ///     chunk: `str` or `bytes`; bytes may be cut inside a character.
    ///
    /// Raises:
    ///     WrongTypeError: When the chunk is neither.
    ///     StreamFinishedError: After `finish`.
    ///
    /// Chunks that come after the reply was stopped (see `stopped`) bring none.
    ///
    /// Cost: linear in the chunk, over all chunks.
    pub(crate) fn feed<'py>(&self, chunk: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let py = chunk.py();
        let text = read_valid(chunk, "a chunk")?;
        let mut events = Vec::new();
        let open = self.with_state(py, |state| match state {
            State::Open(feed) => {
                feed.feed(&text, &mut events);
                true
            }
            State::Finished { .. } => false,
        });
        if !open {
            return Err(Error::StreamFinished.into());
        }
        events
            .into_iter()
            .map(|event| show_event(py, event, || self.reply(py)))
            .collect()
    }

    /// Say that no more will come, and give the last events; a second time there are none.
    pub(crate) fn finish<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut events = Vec::new();
        let last = self.with_state(py, |state| match state {
            State::Open(feed) => {
                feed.finish(&mut events);
                let replaced = feed.replaced.clone();
                let data = ReplyData::new(feed.stream.reply().clone(), replaced);
                Some((data, feed.stream.is_stopped()))
            }
            State::Finished { .. } => None,
        });
        let Some((last, stopped)) = last else {
            return Ok(Vec::new());
        };
        let reply = Py::new(py, PyReply::from_data(last))?;
        let kept = reply.clone_ref(py);
        self.with_state(py, |state| {
            *state = State::Finished {
                reply: kept,
                stopped,
            };
        });
        events
            .into_iter()
            .map(|event| show_event(py, event, || Ok(reply.clone_ref(py))))
            .collect()
    }

    /// What was found so far; after `finish`, the reply. Before it, each access takes a copy.
    #[getter]
    pub(crate) fn reply(&self, py: Python<'_>) -> PyResult<Py<PyReply>> {
        enum Found {
            SoFar(Box<ReplyData>),
            Whole(Py<PyReply>),
        }
        let found = self.with_state(py, |state| match state {
            State::Open(feed) => Found::SoFar(Box::new(ReplyData::new(
                feed.stream.reply().clone(),
                feed.replaced.clone(),
            ))),
            State::Finished { reply, .. } => Found::Whole(reply.clone_ref(py)),
        });
        match found {
            Found::SoFar(data) => Py::new(py, PyReply::from_data(*data)),
            Found::Whole(reply) => Ok(reply),
        }
    }

    /// Whether the reply was found to repeat itself (`stop_on_text_loop`): it ends there, chunks
    /// that still come are ignored, and the model need not be listened to any longer.
    #[getter]
    fn stopped(&self, py: Python<'_>) -> bool {
        self.with_state(py, |state| match state {
            State::Open(feed) => feed.stream.is_stopped(),
            State::Finished { stopped, .. } => *stopped,
        })
    }

    /// Whether `finish` was called.
    #[getter]
    fn finished(&self, py: Python<'_>) -> bool {
        self.with_state(py, |state| matches!(state, State::Finished { .. }))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let finished = if self.finished(py) {
            "finished"
        } else {
            "open"
        };
        format!("<ResponseStream {finished}>")
    }
}

/// Gives the events of a reply while its chunks arrive. Made by `ResponseParser.iter`.
///
/// Attributes:
///     reply (Reply): What was found so far, also when the source of the chunks raised.
#[pyclass(frozen, module = "turnwarden", name = "EventIterator")]
pub(crate) struct PyEventIterator {
    stream: PyResponseStream,
    chunks: Py<PyIterator>,
    waiting: Mutex<VecDeque<Py<PyAny>>>,
}

impl PyEventIterator {
    pub(crate) fn new(stream: PyResponseStream, chunks: &Bound<'_, PyAny>) -> PyResult<Self> {
        const EXPECTED: &str = "an iterable of str or bytes";
        if chunks.is_instance_of::<PyBytes>() || chunks.is_instance_of::<PyByteArray>() {
            // Its items are numbers.
            return Err(Error::wrong_type("chunks", EXPECTED, chunks).into());
        }
        let Ok(iterator) = chunks.try_iter() else {
            return Err(Error::wrong_type("chunks", EXPECTED, chunks).into());
        };
        Ok(Self {
            stream,
            chunks: iterator.unbind(),
            waiting: Mutex::default(),
        })
    }

    fn with_waiting<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut VecDeque<Py<PyAny>>) -> T,
    ) -> T {
        let locked = self.waiting.lock_py_attached(py);
        work(&mut locked.unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl PyEventIterator {
    #[getter]
    fn reply(&self, py: Python<'_>) -> PyResult<Py<PyReply>> {
        self.stream.reply(py)
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        loop {
            if let Some(event) = self.with_waiting(py, VecDeque::pop_front) {
                return Ok(Some(event));
            }
            if self.stream.finished(py) {
                return Ok(None);
            }
            let next = if self.stream.stopped(py) {
                None
            } else {
                self.chunks.bind(py).clone().next()
            };
            let events = match next {
                Some(chunk) => self.stream.feed(&chunk?)?,
                None => self.stream.finish(py)?,
            };
            let events = events.into_iter().map(Bound::unbind);
            self.with_waiting(py, |waiting| waiting.extend(events));
        }
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let finished = if self.stream.finished(py) {
            "finished"
        } else {
            "open"
        };
        format!("<EventIterator {finished}>")
    }
}
