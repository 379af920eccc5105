//! Formats compiled for reading: one set of markers, and what each of them means.

use std::sync::Arc;

use turnwarden_cleanup::{CHANNEL_TOKENS, ChannelToken, END_OF_TURN, REASONING, WRAPPERS};

use crate::formats::{
    ArgumentTag, Body, ChannelCalls, Format, NameAt, Part, Place, ReactCalls, Syntax, Tag,
};
use crate::json::Closer;
use crate::markers::{MarkerId, Markers};

/// Languages of fences in which workflow JSON may stand.
const WORKFLOW_LANGUAGES: &[&str] = &["", "json", "jsonc", "json5", "tool_call"];

/// The number of a syntax within [`Plan`].
pub(crate) type SyntaxId = usize;

/// What a marker means outside payloads; one marker may mean several things.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roles {
    /// Begins calls of these syntaxes.
    pub(crate) opens: Vec<SyntaxId>,
    /// Opens the reasoning block that this marker closes.
    pub(crate) opens_reasoning: Option<MarkerId>,
    pub(crate) closes_reasoning: bool,
    /// Opens the wrapper of an answer that this marker closes, and whether it always counts.
    pub(crate) opens_wrapper: Option<(MarkerId, bool)>,
    /// Closes the wrapper of an answer; true for a special token.
    pub(crate) closes_wrapper: Option<bool>,
    pub(crate) ends_turn: bool,
    /// Ends calls of some syntax.
    pub(crate) closes_calls: bool,
    /// Belongs to messages on channels.
    pub(crate) channel: Option<ChannelToken>,
    /// Begins a line of a `ReAct` transcript.
    pub(crate) react: Option<ReactLabel>,
}

/// What begins a line of a `ReAct` transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReactLabel {
    Thought,
    Action,
    Observation,
    Answer,
}

impl Roles {
    /// Whether the marker means anything outside payloads.
    pub(crate) fn counts(&self) -> bool {
        !self.opens.is_empty()
            || self.opens_reasoning.is_some()
            || self.closes_reasoning
            || self.opens_wrapper.is_some()
            || self.closes_wrapper.is_some()
            || self.ends_turn
            || self.closes_calls
            || self.channel.is_some()
            || self.react.is_some()
    }
}

/// A syntax with its markers compiled.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The place of its format in [`Plan::formats`].
    pub(crate) format: usize,
    pub(crate) syntax: Syntax,
    pub(crate) open: Vec<MarkerId>,
    pub(crate) close: Vec<MarkerId>,
    /// What ends broken JSON inside.
    pub(crate) closers: Arc<[Closer]>,
    /// The markers of single calls.
    pub(crate) inner: Inner,
}

/// The markers of single calls and of their parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inner {
    /// They open a call.
    pub(crate) open: Vec<MarkerId>,
    /// They close it.
    pub(crate) close: Vec<MarkerId>,
    /// They follow the name, with what stands behind them.
    pub(crate) parts: Vec<(MarkerId, Part)>,
    /// They open an argument: its element, or its key.
    pub(crate) argument_open: Vec<MarkerId>,
    /// They close its element, or its value.
    pub(crate) argument_close: Vec<MarkerId>,
    /// What closes a key, what opens a value.
    pub(crate) key_close: Option<MarkerId>,
    pub(crate) value_open: Option<MarkerId>,
    pub(crate) kind_open: Option<MarkerId>,
    pub(crate) kind_close: Option<MarkerId>,
    /// They mean nothing.
    pub(crate) around: Vec<MarkerId>,
    pub(crate) name_element: Option<(MarkerId, MarkerId)>,
    /// The bytes that all of these, and those of the section, are anchored at.
    pub(crate) anchors: Vec<u8>,
}

impl Entry {
    /// Whether its sections begin with a word that may stand in any prose, such as `functools[`,
    /// and nothing closes them.
    pub(crate) fn is_in_words(&self) -> bool {
        let Place::Markers { open, close } = &self.syntax.place else {
            return matches!(self.syntax.body, Body::React(_));
        };
        let is_word = |marker: &String| {
            let marker = marker.trim_start();
            marker.starts_with(char::is_alphabetic) && !marker.contains(['<', '|'])
        };
        close.is_empty() && open.iter().all(is_word)
    }

    /// Whether the marker belongs to a section of this syntax.
    pub(crate) fn bounds_section(&self, id: MarkerId) -> bool {
        self.close.contains(&id) || self.open.contains(&id)
    }

    /// Whether the marker opens or closes a call, or a section of calls.
    pub(crate) fn bounds_calls(&self, id: MarkerId) -> bool {
        self.bounds_section(id) || self.inner.open.contains(&id) || self.inner.close.contains(&id)
    }
}

/// The formats of one parser, compiled.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) formats: Vec<Arc<Format>>,
    pub(crate) syntaxes: Vec<Entry>,
    pub(crate) markers: Markers,
    roles: Vec<Roles>,
    /// Languages of fences and the syntaxes that may stand in them.
    pub(crate) fences: Vec<(String, SyntaxId)>,
    /// Syntaxes whose JSON calls are the whole reply.
    pub(crate) whole_json: Vec<SyntaxId>,
    /// Syntaxes whose Python calls are the whole reply.
    pub(crate) whole_python: Vec<SyntaxId>,
    pub(crate) workflow: Option<SyntaxId>,
    /// Syntaxes of native messages.
    pub(crate) native: Vec<SyntaxId>,
    pub(crate) channels: Option<(SyntaxId, ChannelCalls)>,
    pub(crate) react: Option<(SyntaxId, ReactCalls)>,
    pub(crate) fence_closers: Arc<[Closer]>,
    pub(crate) no_closers: Arc<[Closer]>,
    pub(crate) channel_closers: Arc<[Closer]>,
    pub(crate) react_closers: Arc<[Closer]>,
}

impl Plan {
    pub(crate) fn new(formats: Vec<Arc<Format>>) -> Self {
        let mut plan = Self {
            formats: Vec::new(),
            syntaxes: Vec::new(),
            markers: Markers::new(),
            roles: Vec::new(),
            fences: Vec::new(),
            whole_json: Vec::new(),
            whole_python: Vec::new(),
            workflow: None,
            native: Vec::new(),
            channels: None,
            react: None,
            fence_closers: Arc::from([Closer::anywhere("```"), Closer::anywhere("~~~")]),
            no_closers: Arc::from([]),
            channel_closers: CHANNEL_TOKENS
                .iter()
                .map(|(text, _)| Closer::anywhere(text))
                .collect(),
            react_closers: Arc::from([]),
        };
        plan.add_cleanup();
        for (index, format) in formats.iter().enumerate() {
            for (open, close) in &format.reasoning {
                plan.add_reasoning(open, close);
            }
            for (open, close) in &format.wrappers {
                plan.add_wrapper(open, close);
            }
            for token in &format.end_of_turn {
                let id = plan.marker(token);
                plan.role(id, |roles| roles.ends_turn = true);
            }
            for syntax in &format.syntaxes {
                plan.add_syntax(index, syntax);
            }
        }
        plan.formats = formats;
        plan
    }

    fn marker(&mut self, text: &str) -> MarkerId {
        let id = self.markers.add(text);
        self.roles.resize_with(self.markers.len(), Roles::default);
        id
    }

    fn role(&mut self, id: MarkerId, change: impl FnOnce(&mut Roles)) {
        if let Some(roles) = self.roles.get_mut(usize::from(id)) {
            change(roles);
        }
    }

    fn add_cleanup(&mut self) {
        for tags in REASONING {
            self.add_reasoning(tags.open, tags.close);
        }
        for wrapper in WRAPPERS {
            let close = self.marker(wrapper.close);
            let open = self.marker(wrapper.open);
            self.role(open, |roles| {
                roles.opens_wrapper = Some((close, wrapper.always));
            });
            self.role(close, |roles| roles.closes_wrapper = Some(wrapper.always));
        }
        for (text, token) in CHANNEL_TOKENS {
            let id = self.marker(text);
            self.role(id, |roles| roles.channel = Some(*token));
        }
        for token in END_OF_TURN {
            let id = self.marker(token);
            self.role(id, |roles| roles.ends_turn = true);
        }
    }

    /// Markers around the answer that a format declares; those known already stay as they are.
    fn add_wrapper(&mut self, open: &str, close: &str) {
        let close = self.marker(close);
        let open = self.marker(open);
        self.role(open, |roles| {
            roles.opens_wrapper.get_or_insert((close, true));
        });
        self.role(close, |roles| {
            roles.closes_wrapper.get_or_insert(true);
        });
    }

    fn add_react(&mut self, calls: &ReactCalls) {
        let labels = [
            (&calls.thought, ReactLabel::Thought),
            (&calls.action, ReactLabel::Action),
            (&calls.observation, ReactLabel::Observation),
            (&calls.answer, ReactLabel::Answer),
        ];
        let lines = [
            &calls.observation,
            &calls.thought,
            &calls.answer,
            &calls.action,
        ];
        let closers = lines.into_iter().map(|line| Closer::at_line_start(line));
        self.react_closers = closers.chain([Closer::anywhere("```")]).collect();
        for (text, label) in labels {
            let id = self.marker(&format!("\n{text}"));
            self.role(id, |roles| roles.react = Some(label));
        }
    }

    fn add_reasoning(&mut self, open: &str, close: &str) {
        let close = self.marker(close);
        let open = self.marker(open);
        self.role(open, |roles| roles.opens_reasoning = Some(close));
        self.role(close, |roles| roles.closes_reasoning = true);
    }

    fn add_syntax(&mut self, format: usize, syntax: &Syntax) {
        let number = self.syntaxes.len();
        let mut entry = Entry {
            format,
            syntax: syntax.clone(),
            open: Vec::new(),
            close: Vec::new(),
            closers: Arc::clone(&self.no_closers),
            inner: self.inner(&syntax.body),
        };
        match &syntax.place {
            Place::Markers { open, close } => {
                for marker in open {
                    let id = self.marker(marker);
                    self.role(id, |roles| roles.opens.push(number));
                    entry.open.push(id);
                }
                for marker in close {
                    let id = self.marker(marker);
                    self.role(id, |roles| roles.closes_calls = true);
                    entry.close.push(id);
                }
                let inner = syntax.body.call_markers();
                let literals = close.iter().chain(open).map(String::as_str).chain(inner);
                let fences = ["```", "~~~"];
                entry.closers = literals.chain(fences).map(Closer::anywhere).collect();
                for id in entry.open.iter().chain(&entry.close) {
                    self.markers.anchors_of(*id, &mut entry.inner.anchors);
                }
            }
            Place::Fence { languages } => {
                for language in languages {
                    self.fences.push((language.clone(), number));
                }
                entry.closers = Arc::clone(&self.fence_closers);
            }
            Place::Whole => match &syntax.body {
                Body::Json(_) => self.whole_json.push(number),
                Body::Workflow => self.workflow = Some(number),
                Body::Python(_) => self.whole_python.push(number),
                Body::Channels(calls) => self.channels = Some((number, calls.clone())),
                Body::React(calls) => {
                    self.add_react(calls);
                    self.react = Some((number, calls.clone()));
                }
                Body::Native => self.native.push(number),
                Body::Named(_) | Body::Tagged(_) | Body::KeyValue(_) | Body::Braced(_) => {}
            },
        }
        self.syntaxes.push(entry);
    }

    fn ids(&mut self, texts: &[String]) -> Vec<MarkerId> {
        texts.iter().map(|text| self.marker(text)).collect()
    }

    /// Compiles the markers of single calls.
    fn inner(&mut self, body: &Body) -> Inner {
        let mut inner = Inner::default();
        match body {
            Body::Json(_)
            | Body::Workflow
            | Body::Python(_)
            | Body::Braced(_)
            | Body::Channels(_)
            | Body::React(_)
            | Body::Native => {}
            Body::Named(named) => {
                inner.open = self.ids(&named.open);
                inner.close = self.ids(&named.close);
                inner.parts = named
                    .parts
                    .iter()
                    .map(|(text, part)| (self.marker(text), *part))
                    .collect();
            }
            Body::Tagged(tagged) => {
                inner.open = self.ids(&tagged.call.open);
                inner.close = self.ids(&tagged.call.close);
                if let NameAt::Attribute {
                    element: Some((open, close)),
                    ..
                } = &tagged.call.name
                {
                    inner.name_element = Some((self.marker(open), self.marker(close)));
                }
                match &tagged.argument {
                    ArgumentTag::Keyed(Tag { open, close, .. }) => {
                        inner.argument_open = self.ids(open);
                        inner.argument_close = self.ids(close);
                    }
                    ArgumentTag::Element { around, .. } => inner.around = self.ids(around),
                }
            }
            Body::KeyValue(pairs) => {
                inner.open = self.ids(&pairs.open);
                inner.close = self.ids(&pairs.close);
                inner.parts = self
                    .ids(&pairs.name_end)
                    .into_iter()
                    .map(|id| (id, Part::Ignored))
                    .collect();
                inner.argument_open = vec![self.marker(&pairs.key.0)];
                inner.key_close = Some(self.marker(&pairs.key.1));
                inner.value_open = Some(self.marker(&pairs.value.0));
                inner.argument_close = vec![self.marker(&pairs.value.1)];
                inner.kind_open = pairs.kind.as_ref().map(|kind| self.marker(&kind.0));
                inner.kind_close = pairs.kind.as_ref().map(|kind| self.marker(&kind.1));
            }
        }
        let parts: Vec<MarkerId> = inner.parts.iter().map(|(id, _)| *id).collect();
        let lists = [
            &inner.open,
            &inner.close,
            &parts,
            &inner.argument_open,
            &inner.argument_close,
            &inner.around,
        ];
        let mut ids: Vec<MarkerId> = lists.into_iter().flatten().copied().collect();
        ids.extend(
            [
                inner.key_close,
                inner.value_open,
                inner.kind_open,
                inner.kind_close,
            ]
            .into_iter()
            .flatten(),
        );
        ids.extend(
            inner
                .name_element
                .into_iter()
                .flat_map(|(open, close)| [open, close]),
        );
        for id in ids {
            self.markers.anchors_of(id, &mut inner.anchors);
        }
        inner
    }

    pub(crate) fn roles(&self, id: MarkerId) -> &Roles {
        static NONE: Roles = Roles {
            opens: Vec::new(),
            opens_reasoning: None,
            closes_reasoning: false,
            opens_wrapper: None,
            closes_wrapper: None,
            ends_turn: false,
            closes_calls: false,
            channel: None,
            react: None,
        };
        self.roles.get(usize::from(id)).unwrap_or(&NONE)
    }

    pub(crate) fn entry(&self, syntax: SyntaxId) -> Option<&Entry> {
        self.syntaxes.get(syntax)
    }

    /// The label of a syntax's format.
    pub(crate) fn label(&self, syntax: SyntaxId) -> Option<&str> {
        let format = self
            .entry(syntax)
            .and_then(|entry| self.formats.get(entry.format));
        format.map(|format| format.label.as_str())
    }

    /// The syntax of Python calls in fenced code of this language.
    pub(crate) fn python_in_fence(&self, language: &[u8]) -> Option<SyntaxId> {
        let python = |syntax: &SyntaxId| {
            let body = self.entry(*syntax).map(|entry| &entry.syntax.body);
            matches!(body, Some(Body::Python(_)))
        };
        let fences = self.fences.iter();
        let here = fences.filter(|(known, _)| known.as_bytes().eq_ignore_ascii_case(language));
        here.map(|(_, syntax)| *syntax).find(python)
    }

    /// The syntax of JSON calls in fenced code of this language.
    pub(crate) fn json_in_fence(
        &self,
        language: &str,
        counts: impl Fn(SyntaxId) -> bool,
    ) -> Option<SyntaxId> {
        let json = |syntax: &SyntaxId| {
            counts(*syntax)
                && self
                    .entry(*syntax)
                    .is_some_and(|entry| matches!(entry.syntax.body, Body::Json(_)))
        };
        let fences = self.fences.iter().filter(|(known, _)| known == language);
        fences.map(|(_, syntax)| *syntax).find(json)
    }

    /// Whether fenced code of this language may hold a payload.
    pub(crate) fn is_payload_language(&self, word: &[u8]) -> bool {
        if self.workflow.is_some()
            && WORKFLOW_LANGUAGES
                .iter()
                .any(|w| w.as_bytes().eq_ignore_ascii_case(word))
        {
            return true;
        }
        self.fences
            .iter()
            .any(|(language, _)| language.as_bytes().eq_ignore_ascii_case(word))
    }
}
