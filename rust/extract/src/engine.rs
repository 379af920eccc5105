//! The public side of the engine: options, parser, stream.

use std::sync::{Arc, LazyLock};

use crate::calls::Rules;
use crate::formats::{Format, format_named, formats};
use crate::machine::Machine;
use crate::plan::Plan;
use crate::watch::Watch;
use crate::{ConfigError, Event, Reply, Tools};

/// How much a reply may hold. What goes beyond is a fault; what came before is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Containers open at once in a payload, 512 by default.
    pub max_depth: usize,
    /// Bytes of a reply, 64 MiB by default.
    pub max_reply_bytes: usize,
    /// Calls in a reply, 1024 by default.
    pub max_calls: usize,
    /// Bytes of one call's arguments, 16 MiB by default.
    pub max_argument_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_depth: 512,
            max_reply_bytes: 64 << 20,
            max_calls: 1024,
            max_argument_bytes: 16 << 20,
        }
    }
}

/// What a parser is to look for, and how.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "switches that do not depend on each other"
)]
pub struct Options {
    /// Labels of the formats to read; None: all of them, detected.
    pub formats: Option<Vec<String>>,
    /// Formats of the user's own, read before those that are built in; `formats` may name them.
    pub own_formats: Vec<Format>,
    /// The tools that the model was given.
    pub tools: Option<Tools>,
    /// Whether the chat template opened a block of reasoning, so that replies begin in it.
    pub reasoning_open: bool,
    /// Whether calls in closed blocks of reasoning are calls.
    pub calls_in_reasoning: bool,
    /// Whether arguments are passed on once all of them are there, rather than value by value.
    pub buffer_arguments: bool,
    /// Whether a reply that begins to repeat itself without end is read no further.
    pub stop_on_text_loop: bool,
    /// How much a reply may hold.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            formats: None,
            own_formats: Vec::new(),
            tools: None,
            reasoning_open: false,
            calls_in_reasoning: false,
            buffer_arguments: true,
            stop_on_text_loop: false,
            limits: Limits::default(),
        }
    }
}

/// The plan of all formats, which costs a millisecond to make: parsers are made for each request
/// where the tools differ.
static EVERYTHING: LazyLock<Arc<Plan>> = LazyLock::new(|| Arc::new(Plan::new(formats().to_vec())));

/// What all streams of a parser share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) plan: Arc<Plan>,
    pub(crate) options: Options,
}

/// Reads replies: immutable, cheap to clone, fit to be shared between threads.
///
/// # Examples
///
/// ```
/// use turnwarden_extract::{Options, Parser};
///
/// let parser = Parser::new(Options::default())?;
/// let reply = parser.parse(r#"{"content": "On it.", "next": [{"mcp": "ping", "args": {}}]}"#);
/// assert_eq!(reply.text, "On it.");
/// assert_eq!(reply.tool_calls[0].name, "ping");
/// # Ok::<(), turnwarden_extract::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Parser {
    shared: Arc<Shared>,
}

impl Parser {
    /// A parser with these options.
    ///
    /// # Errors
    ///
    /// [`ConfigError::UnknownFormat`] for a label that no format has.
    pub fn new(options: Options) -> Result<Self, ConfigError> {
        let own: Vec<Arc<Format>> = options.own_formats.iter().cloned().map(Arc::new).collect();
        let plan = match &options.formats {
            None if own.is_empty() => Arc::clone(&EVERYTHING),
            None => Arc::new(Plan::new(own.iter().chain(formats()).cloned().collect())),
            Some(labels) => Arc::new(Plan::new(chosen(labels, &own)?)),
        };
        let shared = Shared { plan, options };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Reads a whole reply. Cost: linear in the reply.
    #[must_use]
    pub fn parse(&self, text: &str) -> Reply {
        if self.shared.options.stop_on_text_loop {
            let mut stream = self.stream_over(Machine::new(Arc::clone(&self.shared), false));
            stream.feed(text, &mut Vec::new());
            stream.finish(&mut Vec::new());
            return stream.into_reply();
        }
        let limit = self.shared.options.limits.max_reply_bytes;
        let head = head(text, limit);
        let mut machine = Machine::new(Arc::clone(&self.shared), false);
        machine.advance(head, true);
        machine.finish(head, text.len() - head.len());
        machine.into_reply()
    }

    /// Begins to read a reply that comes in chunks.
    #[must_use]
    pub fn stream(&self) -> Stream {
        self.stream_over(Machine::new(Arc::clone(&self.shared), true))
    }

    /// Begins to read a reply whose reasoning came apart from it.
    pub(crate) fn stream_of_answer(&self) -> Stream {
        self.stream_over(Machine::of_answer(Arc::clone(&self.shared), true))
    }

    fn stream_over(&self, machine: Machine) -> Stream {
        let watch = self.shared.options.stop_on_text_loop;
        Stream {
            machine,
            text: String::new(),
            unread: 0,
            over: false,
            watch: watch.then(Box::default),
        }
    }

    /// The rules for calls that the options make.
    pub(crate) fn rules(&self) -> Rules<'_> {
        Machine::rules(&self.shared)
    }

    /// The options that the parser was made with.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.shared.options
    }
}

/// As much of `text` as fits into `limit` bytes.
pub(crate) fn head(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

fn chosen(labels: &[String], own: &[Arc<Format>]) -> Result<Vec<Arc<Format>>, ConfigError> {
    let find = |label: &String| {
        let mine = own.iter().find(|format| &format.label == label);
        let format = mine.or_else(|| format_named(label)).cloned();
        format.ok_or_else(|| ConfigError::UnknownFormat {
            label: label.clone(),
        })
    };
    labels.iter().map(find).collect()
}

/// A reply that is being read. The same reply comes out however it is cut into chunks.
///
/// # Examples
///
/// ```
/// use turnwarden_extract::{Options, Parser};
///
/// let mut stream = Parser::new(Options::default())?.stream();
/// let mut events = Vec::new();
/// stream.feed("<think>hm</thi", &mut events);
/// stream.feed("nk>Hello.", &mut events);
/// stream.finish(&mut events);
/// assert_eq!(stream.reply().text, "Hello.");
/// # Ok::<(), turnwarden_extract::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct Stream {
    machine: Machine,
    text: String,
    /// How many bytes beyond the limit have come.
    unread: usize,
    over: bool,
    /// Looks whether the reply repeats itself, where that is wanted.
    watch: Option<Box<Watch>>,
}

impl Stream {
    /// Reads the next chunk; what it brings about is added to `events`. After
    /// [`finish`](Self::finish) chunks are ignored.
    pub fn feed(&mut self, chunk: &str, events: &mut Vec<Event>) {
        if self.over || chunk.is_empty() || self.is_stopped() {
            return;
        }
        let limit = self.machine.shared.options.limits.max_reply_bytes;
        let room = if self.unread == 0 {
            limit - self.text.len()
        } else {
            0
        };
        let head = head(chunk, room);
        if let Some(watch) = &mut self.watch
            && watch.read(head, &mut self.text, &mut self.machine)
        {
            return self.machine.take_events(events);
        }
        if self.watch.is_none() {
            self.text.push_str(head);
        }
        self.unread += chunk.len() - head.len();
        self.machine.advance(&self.text, self.unread > 0);
        self.machine.take_events(events);
    }

    /// Says that no more will come. A second time it does nothing.
    pub fn finish(&mut self, events: &mut Vec<Event>) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        self.machine.advance(&self.text, true);
        self.machine.finish(&self.text, self.unread);
        self.machine.take_events(events);
    }

    /// Whether the reply was found to repeat itself: it ends there, and more chunks are ignored.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.has_found())
    }

    /// The reply as far as it is known; all of it after [`finish`](Self::finish).
    #[must_use]
    pub fn reply(&self) -> &Reply {
        self.machine.reply()
    }

    /// The reply, for good.
    #[must_use]
    pub fn into_reply(self) -> Reply {
        self.machine.into_reply()
    }
}
