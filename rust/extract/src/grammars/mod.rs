//! The few grammars in which models write calls. Each reads one item (a call, or a JSON value that
//! holds calls), stops anywhere, goes on with more text, and says where the item ends.

pub(crate) mod json;

use crate::calls::{Draft, Rules};
use crate::formats::Body;
use crate::json::Error;
use crate::plan::Entry;
use crate::{Repair, Span};

/// The reply as far as it has come.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    pub(crate) text: &'a str,
    /// Whether no more will come.
    pub(crate) last: bool,
}

impl<'a> Input<'a> {
    pub(crate) fn bytes(self) -> &'a [u8] {
        self.text.as_bytes()
    }

    pub(crate) fn slice(self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// The first byte from `at` on that is no white space.
    pub(crate) fn after_space(self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        at + (rest.len() - rest.trim_start().len())
    }
}

/// Whether an item begins somewhere.
pub(crate) enum Begin {
    Yes(Item),
    No,
    /// The text so far does not tell.
    Wait,
}

/// How far the reading of an item has come.
pub(crate) enum Read {
    /// More text is needed.
    Wait,
    /// The item ended here.
    Done(usize),
    /// The item can't be read; it began here.
    Failed(Error, Span),
}

/// An item that is being read.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Json(Box<json::JsonItem>),
}

impl Item {
    /// Whether an item of `entry` begins at `at`, which is no white space.
    pub(crate) fn begin(entry: &Entry, rules: Rules<'_>, input: Input<'_>, at: usize) -> Begin {
        match &entry.syntax.body {
            Body::Json(_) => json::JsonItem::begin(entry, rules, input, at),
            Body::Workflow => Begin::No,
        }
    }

    /// What was healed in the item.
    pub(crate) fn repairs(&self) -> &[Repair] {
        match self {
            Self::Json(item) => item.repairs(),
        }
    }

    /// Reads on; calls that became known are added to `drafts`.
    pub(crate) fn read(
        &mut self,
        entry: &Entry,
        rules: Rules<'_>,
        input: Input<'_>,
        drafts: &mut Vec<Draft>,
    ) -> Read {
        match (self, &entry.syntax.body) {
            (Self::Json(item), Body::Json(keys)) => item.read(keys, rules, input, drafts),
            (Self::Json(_), Body::Workflow) => Read::Wait,
        }
    }
}
