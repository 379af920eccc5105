//! Formats compiled for reading: one set of markers, and what each of them means.

use std::sync::Arc;

use turnwarden_cleanup::{END_OF_TURN, REASONING, WRAPPERS};

use crate::formats::{Body, Format, Place, Syntax};
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
    pub(crate) workflow: Option<SyntaxId>,
    pub(crate) fence_closers: Arc<[Closer]>,
    pub(crate) no_closers: Arc<[Closer]>,
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
            workflow: None,
            fence_closers: Arc::from([Closer::anywhere("```"), Closer::anywhere("~~~")]),
            no_closers: Arc::from([]),
        };
        plan.add_cleanup();
        for (index, format) in formats.iter().enumerate() {
            for (open, close) in &format.reasoning {
                plan.add_reasoning(open, close);
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
                roles.opens_wrapper = Some((close, wrapper.always))
            });
            self.role(close, |roles| roles.closes_wrapper = Some(wrapper.always));
        }
        for token in END_OF_TURN {
            let id = self.marker(token);
            self.role(id, |roles| roles.ends_turn = true);
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
                let literals = close.iter().chain(open).map(String::as_str);
                let fences = ["```", "~~~"];
                entry.closers = literals.chain(fences).map(Closer::anywhere).collect();
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
            },
        }
        self.syntaxes.push(entry);
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
        };
        self.roles.get(usize::from(id)).unwrap_or(&NONE)
    }

    pub(crate) fn entry(&self, syntax: SyntaxId) -> Option<&Entry> {
        self.syntaxes.get(syntax)
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
