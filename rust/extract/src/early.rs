//! Calls that are told before they are complete, for parsers that do not buffer arguments: each
//! value is passed on once it is closed.
//!
//! What was passed on is a prefix of the arguments that the call has in the end. Where it turns
//! out not to be (a key that comes again, say), the call is told anew when it is complete, and the
//! one that was begun never ends.

use crate::ToolCall;
use crate::calls::{PairValue, Rules};
use crate::formats::JsonCalls;
use crate::json::Kind;
use crate::reading::Reading;

/// A call that is being read.
pub(crate) enum Open<'a> {
    /// An object whose keys say what is what: the member with this number, or the value itself.
    Object {
        reading: &'a Reading,
        item: Option<usize>,
        keys: &'a JsonCalls,
    },
    /// The value is the arguments.
    Arguments {
        name: &'a str,
        id: Option<&'a str>,
        reading: &'a Reading,
    },
    /// Arguments that come one by one.
    Pairs {
        name: &'a str,
        id: Option<&'a str>,
        pairs: &'a [(String, PairValue)],
    },
}

/// How far a call has been told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Early {
    /// Where it stands in the reply.
    at: usize,
    /// The next member, or pair, to look at.
    next: usize,
    name: Option<String>,
    id: Option<String>,
    /// The member that is the arguments.
    arguments: Option<usize>,
    /// Nothing more of it is told.
    over: bool,
    /// The arguments that have been passed on.
    given: String,
    /// Its number and its id, once it was announced.
    told: Option<(usize, String)>,
}

impl Early {
    pub(crate) fn new(at: usize) -> Self {
        Self {
            at,
            ..Self::default()
        }
    }

    pub(crate) fn stands_at(&self, at: usize) -> bool {
        self.at == at
    }

    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// The id that the model gave before the arguments.
    pub(crate) fn given_id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The call's number, once it was announced.
    pub(crate) fn index(&self) -> Option<usize> {
        self.told.as_ref().map(|(index, _)| *index)
    }

    pub(crate) fn announced(&mut self, index: usize, id: String) {
        self.told = Some((index, id));
    }

    /// The values that were closed since the last time, as the next bytes of the arguments.
    pub(crate) fn advance(&mut self, open: &Open<'_>, rules: Rules<'_>) -> Option<&str> {
        if self.over {
            return None;
        }
        let before = self.given.len();
        match *open {
            Open::Object {
                reading,
                item,
                keys,
            } => self.members(reading, item, keys, rules),
            Open::Arguments { name, id, reading } => {
                self.set_name(name, rules);
                self.id = id.map(str::to_owned);
                if reading.kind() == Some(Kind::Object) {
                    self.values(reading, None, rules);
                }
            }
            Open::Pairs { name, id, pairs } => {
                self.set_name(name, rules);
                self.id = id.map(str::to_owned);
                for pair in pairs.iter().skip(self.next) {
                    let json = rules.pair(self.name(), pair);
                    self.give(&json);
                    self.next += 1;
                }
            }
        }
        self.given.get(before..).filter(|delta| !delta.is_empty())
    }

    fn set_name(&mut self, name: &str, rules: Rules<'_>) {
        if self.name.is_none() {
            let name = name.trim();
            let spelled = rules.tools.and_then(|tools| tools.spelling(name));
            self.name = Some(spelled.unwrap_or_else(|| name.to_owned()));
            self.over = name.is_empty();
        }
    }

    /// Looks for name and arguments, in this order, among the members of an object.
    fn members(
        &mut self,
        reading: &Reading,
        item: Option<usize>,
        keys: &JsonCalls,
        rules: Rules<'_>,
    ) {
        let within = item.and_then(|item| reading.member(item));
        let depth = within.map_or(1, |member| member.depth + 1);
        self.next = self.next.max(item.map_or(0, |item| item + 1));
        while self.arguments.is_none() && !self.over {
            let Some(member) = reading.member(self.next) else {
                return;
            };
            if member.depth == depth {
                let key = reading.key(member);
                let is = |known: &[String]| known.iter().any(|known| known == key);
                if is(&keys.arguments) {
                    self.over = self.name.is_none() || member.kind != Kind::Object;
                    self.arguments = Some(self.next);
                } else if key == "function" || keys.name_is_key {
                    self.over = true;
                } else if !reading.is_closed(self.next) {
                    return;
                } else if is(&keys.name) {
                    match reading.value(Some(self.next)).text() {
                        Some(name) if self.name.is_none() => self.set_name(&name, rules),
                        _ => self.over = true,
                    }
                } else if is(&keys.id) {
                    self.id = crate::calls::given_id(reading.value(Some(self.next)));
                }
            } else if member.depth < depth {
                self.over = true;
            }
            self.next += 1;
        }
        if !self.over {
            self.values(reading, self.arguments, rules);
        }
    }

    /// Passes on the members of the arguments that are closed for good.
    fn values(&mut self, reading: &Reading, arguments: Option<usize>, rules: Rules<'_>) {
        let within = arguments.and_then(|index| reading.member(index));
        let depth = within.map_or(1, |member| member.depth + 1);
        while let Some(member) = reading.member(self.next) {
            if member.depth < depth {
                self.over = true;
                return;
            }
            if member.depth == depth {
                if !reading.is_closed(self.next) {
                    return;
                }
                let json = reading.output().get(member.key.start..member.output.end);
                let json = format!("{{{}}}", json.unwrap_or_default());
                match rules.tools {
                    Some(tools) => self.give(&tools.typed(self.name(), &json).json),
                    None => self.give(&json),
                }
            }
            self.next += 1;
        }
    }

    /// Appends an object's members to the arguments.
    fn give(&mut self, object: &str) {
        let inner = object.strip_prefix('{').and_then(|o| o.strip_suffix('}'));
        self.given
            .push(if self.given.is_empty() { '{' } else { ',' });
        self.given.push_str(inner.unwrap_or_default());
    }

    /// The call is complete: its number, and what is left to pass on of its arguments, if what was
    /// told is its beginning. It gets the id that was told.
    pub(crate) fn complete(self, call: &mut ToolCall) -> Option<(usize, usize)> {
        let (index, id) = self.told?;
        if self.name.as_deref() != Some(&call.name) || !call.arguments.starts_with(&self.given) {
            return None;
        }
        if call.id_generated {
            call.id = id;
        }
        Some((index, self.given.len()))
    }
}
