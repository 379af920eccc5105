//! Passes arguments on value by value, while they arrive, for parsers that do not buffer them.
//!
//! A reader of its own goes over the text as it grows; each member that is closed and will not
//! change any more is brought to its declared type and passed on. What was passed on is a prefix
//! of the arguments that are made when the call is over.

use crate::calls::Rules;
use crate::json::{Mode, Reader, ReaderOptions, Status};

use super::calls::Call;

/// The arguments of one call as far as they were passed on.
#[derive(Debug)]
pub(crate) struct Passing {
    reader: Reader,
    /// How many members were passed on.
    members: usize,
    /// What was passed on.
    given: String,
    /// Which beginning of the arguments is read: those that replace them are not.
    start: usize,
    over: bool,
}

impl Passing {
    /// Nothing passed on yet.
    pub(crate) fn new(rules: &Rules<'_>, start: usize) -> Self {
        let options = ReaderOptions {
            max_depth: rules.limits.max_depth,
            mode: Mode::Value,
            member_depth: 1,
            ..ReaderOptions::default()
        };
        Self {
            reader: Reader::new(options, 0),
            members: 0,
            given: String::new(),
            start,
            over: false,
        }
    }

    /// The members of a call that were closed since the last time.
    pub(crate) fn next(&mut self, rules: &Rules<'_>, call: &Call) -> Option<String> {
        let (name, text) = (call.name.as_ref()?, call.json()?);
        self.over |= self.start != call.starts;
        if self.over {
            return None;
        }
        self.over = !matches!(self.reader.read(text, false), Status::NeedMore);
        let output = self.reader.output();
        if !output.starts_with('{') {
            return None;
        }
        let settled = self.reader.settled();
        let before = self.given.len();
        let members = self.reader.members().iter().skip(self.members);
        for member in members.take_while(|member| member.closed && member.output.end <= settled) {
            let text = output.get(member.key.start..member.output.end)?;
            let json = format!("{{{text}}}");
            let typed = match rules.tools {
                Some(tools) => tools.typed(name, &json).json,
                None => json.as_str().into(),
            };
            let inner = typed.strip_prefix('{')?.strip_suffix('}')?;
            self.given.push(if self.members == 0 { '{' } else { ',' });
            self.given.push_str(inner);
            self.members += 1;
        }
        let delta = self.given.get(before..).filter(|delta| !delta.is_empty())?;
        Some(delta.to_owned())
    }

    /// What is left to pass on of the arguments; `None` when others were passed on.
    pub(crate) fn rest<'a>(&self, arguments: &'a str) -> Option<&'a str> {
        arguments.strip_prefix(self.given.as_str())
    }
}
