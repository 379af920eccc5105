//! Where the value of an argument ends that stands between tags.
//!
//! Tags in a value are data: the value ends with the last of its closing tags before the next tag
//! that can follow one. A value whose closing tag is missing ends where the next argument begins
//! on a line of its own, or where its call ends. Each byte is passed once.

use crate::grammars::{Context, Input};
use crate::markers::{Hit, Look};

/// A search for the end of a value.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValueSearch {
    start: usize,
    at: usize,
    /// The last closing tag of the value.
    closer: Option<(usize, usize)>,
    /// The first end of a call that came before any closing tag.
    fallback: Option<usize>,
    /// Whether the opening of a call stood in the value: arguments behind it are data.
    in_example: bool,
    /// Arguments that such an example opened.
    nested: usize,
}

/// How a search went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueEnd {
    Wait,
    /// The value ends at `end`; reading goes on at `next`.
    At {
        end: usize,
        next: usize,
    },
    /// The text ended first.
    Cut,
}

impl ValueSearch {
    pub(crate) fn new(start: usize) -> Self {
        Self {
            start,
            at: start,
            ..Self::default()
        }
    }

    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Whether nothing of the value has been looked at.
    pub(crate) fn is_fresh(&self) -> bool {
        self.at == self.start && self.closer.is_none()
    }

    pub(crate) fn run(&mut self, context: Context<'_>, input: Input<'_>) -> ValueEnd {
        let entry = context.entry;
        let wanted = |id| {
            entry.bounds_calls(id)
                || entry.inner.argument_open.contains(&id)
                || entry.inner.argument_close.contains(&id)
        };
        loop {
            match context.find(input, self.at, wanted) {
                Look::Hit(hit) => {
                    if let Some(end) = self.take(hit, context, input) {
                        return end;
                    }
                    self.at = hit.end;
                }
                Look::Partial(start) => {
                    self.at = start;
                    return ValueEnd::Wait;
                }
                Look::Nothing if !input.last => {
                    self.at = input.text.len();
                    return ValueEnd::Wait;
                }
                Look::Nothing => return self.at_end(),
            }
        }
    }

    /// What a tag in the value means; None: data.
    fn take(&mut self, hit: Hit, context: Context<'_>, input: Input<'_>) -> Option<ValueEnd> {
        let inner = &context.entry.inner;
        if inner.argument_close.contains(&hit.id) {
            if self.nested > 0 {
                self.nested -= 1;
            } else {
                self.closer = Some((hit.start, hit.end));
            }
            return None;
        }
        let closes = inner.close.contains(&hit.id) || context.entry.close.contains(&hit.id);
        if let Some((end, next)) = self.closer {
            let follows = input.slice(next, hit.start).trim().is_empty();
            let can_follow = closes || inner.argument_open.contains(&hit.id);
            return (follows || can_follow).then_some(ValueEnd::At { end, next });
        }
        if inner.argument_open.contains(&hit.id) {
            if self.in_example {
                self.nested += 1;
                return None;
            }
            let own_line = turnwarden_cleanup::at_line_start(input.bytes(), hit.start);
            let ends = own_line && hit.start > self.start;
            return ends.then_some(ValueEnd::At {
                end: hit.start,
                next: hit.start,
            });
        }
        if closes {
            self.fallback.get_or_insert(hit.start);
            return None;
        }
        if let Some(end) = self.fallback {
            return Some(ValueEnd::At { end, next: end });
        }
        self.in_example |= inner.open.contains(&hit.id);
        None
    }

    fn at_end(&self) -> ValueEnd {
        match (self.closer, self.fallback) {
            (Some((end, next)), _) => ValueEnd::At { end, next },
            (None, Some(end)) => ValueEnd::At { end, next: end },
            (None, None) => ValueEnd::Cut,
        }
    }
}

/// A value without the line ends that frame it: one on each side, or, if it is not known to be
/// framed, one on both sides.
pub(crate) fn unframed(value: &str, framed: bool) -> &str {
    let lead = value
        .strip_prefix("\r\n")
        .or_else(|| value.strip_prefix('\n'));
    let trail = |text: &'_ str| {
        text.strip_suffix("\r\n")
            .or_else(|| text.strip_suffix('\n'))
            .map(str::len)
    };
    match (lead, framed) {
        (Some(inner), _) => match trail(inner) {
            Some(end) => inner.get(..end).unwrap_or_default(),
            None if framed => inner,
            None if inner.is_empty() => inner,
            None => value,
        },
        (None, true) => trail(value)
            .and_then(|end| value.get(..end))
            .unwrap_or(value),
        (None, false) => value,
    }
}

/// Whether a text can be the name of a tool.
pub(crate) fn is_name(text: &str) -> bool {
    let part =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/' | '$' | '@');
    !text.is_empty() && text.len() <= 256 && text.chars().all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_framing_line_end_is_taken_off_each_side() {
        assert_eq!(unframed("\nOslo\n", true), "Oslo");
        assert_eq!(unframed("\n  x\n\n", true), "  x\n");
        assert_eq!(unframed("Oslo\n", true), "Oslo");
        assert_eq!(unframed("Oslo\n", false), "Oslo\n");
        assert_eq!(unframed("\nOslo\n", false), "Oslo");
        assert_eq!(unframed("\n", true), "");
    }
}
