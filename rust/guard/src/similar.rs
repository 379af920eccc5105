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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SimilarRun {
    /// Calls from the last one that is settled for good, by number.
    pub(crate) open: Vec<(u64, Form)>,
    /// The run up to the first of them, where it is not the current one.
    pub(crate) settled: Option<Box<Run>>,
    /// The run up to the last of them, as far as results are in.
    pub(crate) current: Run,
}

/// How long calls have been similar, and how their numbers moved meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) length: u32,
    pub(crate) cursors: Cursors,
}

impl SimilarRun {
    /// Whether calls will soon have to be left out, unless some are compared.
    pub(crate) fn is_filling_up(&self) -> bool {
        self.open.len() > MOST_OPEN / 2
    }

    pub(crate) fn push(&mut self, number: u64, form: Form) {
        if self.open.len() >= MOST_OPEN {
            // The last call stays the last; with a gap before it, it is similar to none.
            self.open.pop();
            self.open.push((number, Form::Never));
            return;
        }
        self.open.reserve_exact(1);
        self.open.push((number, form));
    }

    /// Compares the calls that are not settled, as pairs of neighbours, as far as `may_be` lets it.
    /// Returns their numbers, and whether each is similar to the call before it.
    pub(crate) fn settle(
        &mut self,
        threshold: f64,
        mut may_be: impl FnMut(u64, u64) -> Likeness,
    ) -> Vec<(u64, bool)> {
        let mut similar = Vec::with_capacity(1);
        let current = std::mem::take(&mut self.current);
        let mut run = self.settled.take().map_or(current, |settled| *settled);
        // Pairs before the first one that waits are settled for good.
        let mut settled = 0;
        let mut waits = false;
        let mut sketch_of_last = None;
        for (index, pair) in self.open.windows(2).enumerate() {
            let [(earlier, before), (number, after)] = pair else {
                break;
            };
            let likeness = may_be(*earlier, *number);
            if likeness == Likeness::Waits && !waits {
                waits = true;
                self.settled = Some(Box::new(run.clone()));
            }
            sketch_of_last = run.extend(before, after, likeness, threshold);
            similar.push((*number, sketch_of_last.is_some()));
            if !waits {
                settled = index + 1;
            }
        }
        self.current = run;
        self.open.drain(..settled);
        // The next call will be compared with this one.
        if let (Some((_, form)), Some(sketch)) = (self.open.last_mut(), sketch_of_last) {
            *form = Form::Sketched(sketch);
        }
        similar
    }
}

impl Run {
    /// Takes up the next call; returns its sketch if it is similar to the one before.
    fn extend(
        &mut self,
        before: &Form,
        after: &Form,
        likeness: Likeness,
        threshold: f64,
    ) -> Option<Sketch> {
        let sketches = match likeness {
            Likeness::Waits | Likeness::Ruled(false) => None,
            Likeness::Ruled(true) | Likeness::Open => before.sketch().zip(after.sketch()),
        };
        let pair = sketches.filter(|(before, after)| {
            likeness == Likeness::Ruled(true) || before.similarity(after) >= threshold
        });
        let Some((before, after)) = pair else {
            self.length = 1;
            self.cursors.clear();
            return None;
        };
        self.cursors.advance(&before, &after);
        self.length = self.length.max(1).saturating_add(1);
        Some(after.into_owned())
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
