//! The JSON reader as the engine uses it: it knows which members were closed by the text itself,
//! and which only because the text ended.

use std::sync::Arc;

use crate::calls::Rules;
use crate::grammars::Input;
use crate::json::{Closer, FirstRepair, Kind, Member, Mode, Reader, ReaderOptions, Status};
use crate::view::Value;
use crate::{Repair, Span};

/// A JSON value that is being read.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    reader: Reader,
    start: usize,
    /// The members that were open when the text ended, and how many there were then.
    open: Option<(Vec<usize>, usize)>,
    /// Where the value ended when it was not closed.
    cut: Option<usize>,
    over: bool,
    /// Where something was healed, in order, while the reader has not ordered its own list.
    healed: Vec<usize>,
    /// The same in the order in which the reader made its repairs.
    made: Vec<usize>,
}

impl Reading {
    /// Begins to read the value at `start`; `closers` end it when it is broken.
    pub(crate) fn new(
        rules: Rules<'_>,
        closers: &Arc<[Closer]>,
        in_fence: bool,
        start: usize,
    ) -> Self {
        let options = ReaderOptions {
            max_depth: rules.limits.max_depth,
            max_bytes: rules.limits.max_reply_bytes,
            mode: Mode::Value,
            closers: Arc::clone(closers),
            in_fence,
            member_depth: if rules.passes_values { 4 } else { 3 },
            keep_huge_numbers: true,
        };
        Self {
            reader: Reader::new(options, start),
            start,
            open: None,
            cut: None,
            over: false,
            healed: Vec::new(),
            made: Vec::new(),
        }
    }

    /// Where the value begins.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Reads on.
    pub(crate) fn read(&mut self, input: Input<'_>) -> Status {
        let mut status = self.reader.read(input.text, false);
        if status == Status::NeedMore && input.last {
            let members = self.reader.members().iter().enumerate();
            let open = members
                .filter(|(_, member)| !member.closed)
                .map(|(index, _)| index);
            self.open = Some((open.collect(), self.reader.members().len()));
            status = self.reader.read(input.text, true);
        }
        if let Status::Done {
            end,
            complete: false,
        } = status
        {
            self.cut = Some(end);
        }
        self.over = status != Status::NeedMore;
        if !self.over {
            self.order_repairs();
        }
        status
    }

    /// Whether a member was closed, itself or from outside, and will not change any more.
    pub(crate) fn is_closed(&self, index: usize) -> bool {
        let Some(member) = self.member(index) else {
            return false;
        };
        let settled = self.over || member.output.end <= self.reader.settled();
        if !member.closed || !settled {
            return false;
        }
        match (self.cut, &self.open) {
            (None, _) => true,
            (Some(_), Some((open, known))) => index < *known && !open.contains(&index),
            (Some(end), None) => member.text.end < end,
        }
    }

    /// Whether nothing will change any more.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    pub(crate) fn kind(&self) -> Option<Kind> {
        self.reader.kind()
    }

    pub(crate) fn members(&self) -> &[Member] {
        self.reader.members()
    }

    pub(crate) fn member(&self, index: usize) -> Option<&Member> {
        self.reader.members().get(index)
    }

    /// The key of a member as it is written between its quotes.
    pub(crate) fn key(&self, member: &Member) -> &str {
        let literal = self
            .reader
            .output()
            .get(member.key.clone())
            .unwrap_or_default();
        literal
            .get(1..literal.len().saturating_sub(1))
            .unwrap_or_default()
    }

    pub(crate) fn output(&self) -> &str {
        self.reader.output()
    }

    /// The first repair, if any was made.
    pub(crate) fn first_repair(&self) -> Option<&FirstRepair> {
        self.reader.first_repair()
    }

    /// Whether it may still change what a member is, or where it stands in the output:
    /// parentheses around one value mean nothing, and are taken out in the end.
    pub(crate) fn is_kind_open(&self, member: &Member) -> bool {
        let in_parens = !member.closed && self.reader.in_parens();
        !self.over && (in_parens || self.reader.has_holes())
    }

    pub(crate) fn settled(&self) -> usize {
        self.reader.settled()
    }

    pub(crate) fn repairs(&self) -> &[Repair] {
        self.reader.repairs()
    }

    /// The healed JSON of a member, or of the whole value.
    pub(crate) fn value(&self, index: Option<usize>) -> Value<'_> {
        let output = self.reader.output();
        let range = index
            .and_then(|index| self.member(index))
            .map(|member| member.output.clone());
        Value::new(range.map_or(output, |range| output.get(range).unwrap_or_default()))
    }

    /// The members of the object that a member, or the value itself, is: key and value.
    pub(crate) fn entries(&self, index: Option<usize>) -> impl Iterator<Item = (&str, Value<'_>)> {
        let members = self.reader.members();
        let depth = index
            .and_then(|index| members.get(index))
            .map_or(1, |member| member.depth + 1);
        let from = index.map_or(0, |index| index + 1);
        let below = members
            .iter()
            .skip(from)
            .take_while(move |member| member.depth >= depth);
        below
            .filter(move |member| member.depth == depth)
            .map(|member| {
                let json = self
                    .reader
                    .output()
                    .get(member.output.clone())
                    .unwrap_or_default();
                (self.key(member), Value::new(json))
            })
    }

    /// Whether an object has one of these keys without a value.
    pub(crate) fn lacks_value(&self, index: Option<usize>, keys: &[String]) -> bool {
        let lost = self.reader.valueless_keys();
        let span = index
            .and_then(|index| self.member(index))
            .map_or(0..usize::MAX, |member| {
                let end = if member.closed {
                    member.text.end
                } else {
                    usize::MAX
                };
                member.text.start..end
            });
        let from = lost.partition_point(|lost| lost.offset < span.start);
        lost.iter()
            .skip(from)
            .take_while(|lost| lost.offset < span.end)
            .any(|lost| lost.parent == index && keys.contains(&lost.key))
    }

    /// Whether a number stands in `span` that no finite double holds.
    pub(crate) fn has_huge_number(&self, span: Span) -> bool {
        let huge = self.reader.huge_numbers();
        let from = huge.partition_point(|at| *at < span.start);
        huge.get(from).is_some_and(|at| *at < span.end)
    }

    /// Puts the offsets of new repairs where they belong: nearly always at the end.
    fn order_repairs(&mut self) {
        let kept = self.reader.kept_repairs().min(self.made.len());
        for taken_back in self.made.drain(kept..) {
            if let Some(at) = self.healed.iter().rposition(|at| *at == taken_back) {
                self.healed.remove(at);
            }
        }
        let new = self.reader.repairs().get(kept..).unwrap_or_default();
        for repair in new {
            self.made.push(repair.offset);
            let later = self
                .healed
                .iter()
                .rev()
                .take_while(|at| **at > repair.offset)
                .count();
            self.healed.insert(self.healed.len() - later, repair.offset);
        }
    }

    /// Whether anything was healed in `span`.
    pub(crate) fn is_repaired(&self, span: Span) -> bool {
        let first = if self.over {
            let repairs = self.reader.repairs();
            let from = repairs.partition_point(|repair| repair.offset < span.start);
            repairs.get(from).map(|repair| repair.offset)
        } else {
            let from = self.healed.partition_point(|at| *at < span.start);
            self.healed.get(from).copied()
        };
        first.is_some_and(|at| at < span.end)
    }
}
