//! Calls of one tool in a row, each similar to the one before.
//!
//! Two calls are compared once both can count: without results when the second one comes, with
//! results only when both brought the same. So a run whose results differ, as most do, never pays
//! for a comparison.

use std::borrow::Cow;

use turnwarden_signature::Value;
use turnwarden_similarity::{Cursors, Sketch};

/// Arguments up to this size are kept as they are and sketched when they must be.
const SMALL: usize = 256;
/// Calls of one turn that are compared; more are never similar.
const MOST_OPEN: usize = 64;

/// What a call keeps of its arguments until the next one is compared with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Canonical bytes.
    Whole(Box<[u8]>),
    /// Their sketch.
    Sketched(Sketch),
    /// Nothing: the call is never similar to another.
    Never,
}

impl Form {
    pub(crate) fn of(arguments: Value<'_>) -> Self {
        if arguments.as_bytes().len() <= SMALL {
            Self::Whole(arguments.as_bytes().into())
        } else {
            Self::Sketched(Sketch::of(arguments))
        }
    }

    fn sketch(&self) -> Option<Cow<'_, Sketch>> {
        match self {
            Self::Whole(bytes) => Some(Cow::Owned(Sketch::of(Value::from_bytes(bytes)))),
            Self::Sketched(sketch) => Some(Cow::Borrowed(sketch)),
            Self::Never => None,
        }
    }
}

/// The run of similar calls at the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SimilarRun {
    /// The last call that was compared, and those after it, by number.
    pub(crate) open: Vec<(u64, Form)>,
    /// Calls of the run, up to the last that was compared.
    pub(crate) length: u32,
    pub(crate) cursors: Cursors,
}

impl SimilarRun {
    pub(crate) fn push(&mut self, number: u64, form: Form) {
        if self.open.len() < MOST_OPEN {
            self.open.reserve_exact(1);
            self.open.push((number, form));
        }
    }

    /// Compares the calls that were not yet, as pairs of neighbours, as far as `may_be` lets it.
    /// Returns the numbers of those that are similar to the call before them.
    pub(crate) fn settle(
        &mut self,
        threshold: f64,
        mut may_be: impl FnMut(u64, u64) -> Likeness,
    ) -> Vec<u64> {
        let mut similar = Vec::new();
        let mut settled = 0;
        while let (Some((earlier, before)), Some((number, after))) =
            (self.open.get(settled), self.open.get(settled + 1))
        {
            let likeness = may_be(*earlier, *number);
            let sketches = match likeness {
                Likeness::Waits => break,
                Likeness::Ruled(false) => None,
                Likeness::Ruled(true) | Likeness::Open => before.sketch().zip(after.sketch()),
            };
            settled += 1;
            let pair = sketches.filter(|(before, after)| {
                likeness == Likeness::Ruled(true) || before.similarity(after) >= threshold
            });
            let Some((before, after)) = pair else {
                self.length = 1;
                self.cursors.clear();
                continue;
            };
            self.cursors.advance(&before, &after);
            self.length = self.length.max(1).saturating_add(1);
            similar.push(*number);
        }
        self.open.drain(..settled);
        similar
    }
}

/// What is known of two calls without a look at their arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Likeness {
    /// They are equal, or can not be similar.
    Ruled(bool),
    /// Their arguments decide.
    Open,
    /// A result is still to come.
    Waits,
}
