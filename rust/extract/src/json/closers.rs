//! Literals that end a broken value from outside: the caller knows what its markup closes with.

use std::sync::Arc;

/// A literal that ends a value that is not closed, when it is met outside strings.
///
/// ASCII letters compare without regard to case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closer {
    /// The text, such as `</tool_call>`.
    pub literal: Arc<str>,
    /// Whether it counts only at the start of a line, as a code fence does.
    pub line_start: bool,
}

impl Closer {
    /// A literal that counts anywhere.
    #[must_use]
    pub fn anywhere(literal: &str) -> Self {
        Self {
            literal: Arc::from(literal),
            line_start: false,
        }
    }

    /// A literal that counts at the start of a line only, after spaces and tabs at most.
    #[must_use]
    pub fn at_line_start(literal: &str) -> Self {
        Self {
            literal: Arc::from(literal),
            line_start: true,
        }
    }
}

/// Whether a closer stands somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    No,
    Yes,
    /// The text ends before that is decided.
    Partial,
}

/// Whether one of the closers stands at `at`.
pub(super) fn closer_at(closers: &[Closer], bytes: &[u8], at: usize, last: bool) -> Match {
    let rest = bytes.get(at..).unwrap_or_default();
    let mut found = Match::No;
    for closer in closers {
        let literal = closer.literal.as_bytes();
        let shared = rest.len().min(literal.len());
        let alike = shared > 0
            && rest
                .iter()
                .zip(literal)
                .all(|(left, right)| left.eq_ignore_ascii_case(right));
        if !alike || (closer.line_start && !starts_line(bytes, at)) {
            continue;
        }
        if shared == literal.len() {
            return Match::Yes;
        }
        if !last {
            found = Match::Partial;
        }
    }
    found
}

/// Whether only spaces and tabs stand between `at` and the start of its line.
///
/// Looks back over eight bytes at most, so that a run of spaces costs nothing.
pub(super) fn starts_line(bytes: &[u8], at: usize) -> bool {
    let before = bytes.get(..at).unwrap_or_default();
    for &byte in before.iter().rev().take(8) {
        match byte {
            b' ' | b'\t' => {}
            b'\n' | b'\r' => return true,
            _ => return false,
        }
    }
    before.len() < 8
}

/// The first closer that begins in `from..to`, wholly inside the text.
pub(super) fn find_closer(
    closers: &[Closer],
    bytes: &[u8],
    from: usize,
    to: usize,
) -> Option<usize> {
    let region = bytes.get(from..to).unwrap_or_default();
    closers
        .iter()
        .filter_map(|closer| {
            let first = *closer.literal.as_bytes().first()?;
            memchr::memchr2_iter(
                first.to_ascii_lowercase(),
                first.to_ascii_uppercase(),
                region,
            )
            .map(|found| from + found)
            .find(|&at| closer_at(std::slice::from_ref(closer), bytes, at, true) == Match::Yes)
        })
        .min()
}
