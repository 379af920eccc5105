//! Numbers that move steadily one way, call after call: an offset, a page, an id.

use std::cmp::Ordering;

use crate::sketch::Sketch;

/// Whether a number in the arguments moves one way over all these calls, oldest first.
///
/// The number is a numeric leaf that all calls have, or one inside a string that is the same in
/// all calls but for its numbers (or all of these together, as in a time); it grows at every
/// step, or shrinks at every step. False for fewer than two calls.
///
/// ```
/// use turnwarden_signature::Canon;
/// use turnwarden_similarity::{Sketch, cursor};
///
/// let pages = ["url?page=1", "url?page=2", "url?page=3"].map(|text| {
///     Sketch::of(Canon::from_arguments_text(text).value())
/// });
/// let [one, two, three] = &pages;
/// assert!(cursor(&[one, two, three]));
/// assert!(!cursor(&[one, two, one]));
/// ```
#[must_use]
pub fn cursor(calls: &[&Sketch]) -> bool {
    let mut cursors = Cursors::default();
    for pair in calls.windows(2) {
        if let [before, after] = pair {
            cursors.advance(before, after);
        }
    }
    let steps = calls.len().saturating_sub(1);
    steps > 0 && cursors.steps() as usize == steps
}

/// The same, followed call by call: for each number how long it has moved one way.
///
/// Only numbers that moved at the last step are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursors {
    moving: Vec<Moving>,
}

/// A number that moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moving {
    /// Which leaf, and which number in it.
    path: u32,
    index: u8,
    grows: bool,
    steps: u32,
}

impl Cursors {
    /// Takes the step from one call to the next one.
    pub fn advance(&mut self, before: &Sketch, after: &Sketch) {
        let mut moving = moves(before, after);
        for number in &mut moving {
            let earlier = self.moving.iter().find(|earlier| {
                (earlier.path, earlier.index, earlier.grows)
                    == (number.path, number.index, number.grows)
            });
            number.steps = earlier.map_or(0, |earlier| earlier.steps).saturating_add(1);
        }
        self.moving = moving;
    }

    /// How many steps in a row, up to the last, some number has moved one way.
    #[must_use]
    pub fn steps(&self) -> u32 {
        let steps = self.moving.iter().map(|number| number.steps);
        steps.max().unwrap_or(0)
    }

    /// Forgets all steps.
    pub fn clear(&mut self) {
        self.moving.clear();
    }

    /// Appends the state as bytes, for [`Self::read_from`].
    pub fn write_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&(self.moving.len() as u64).to_le_bytes());
        for number in &self.moving {
            bytes.extend_from_slice(&number.path.to_le_bytes());
            bytes.extend_from_slice(&[number.index, u8::from(number.grows)]);
            bytes.extend_from_slice(&number.steps.to_le_bytes());
        }
    }

    /// Reads what [`Self::write_to`] wrote from the front of `bytes`, and steps over it.
    ///
    /// `None` when the bytes end early.
    pub fn read_from(bytes: &mut &[u8]) -> Option<Self> {
        let count = u64::from_le_bytes(take(bytes)?);
        let mut moving = Vec::new();
        for _ in 0..count {
            let path = u32::from_le_bytes(take(bytes)?);
            let [index, grows] = take(bytes)?;
            moving.push(Moving {
                path,
                index,
                grows: grows != 0,
                steps: u32::from_le_bytes(take(bytes)?),
            });
        }
        Some(Self { moving })
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}

/// The numbers that differ between two calls alike but for them.
fn moves(before: &Sketch, after: &Sketch) -> Vec<Moving> {
    let mut moving = Vec::new();
    let mut later = after.leaves().peekable();
    for (path, leaf) in before.leaves() {
        while later.next_if(|(other, _)| *other < path).is_some() {}
        let Some((_, next)) = later.next_if(|(other, _)| *other == path) else {
            continue;
        };
        let (Some(numbers), Some(next_numbers)) = (leaf.numbers(), next.numbers()) else {
            continue;
        };
        for (index, step) in numbers.steps_to(next_numbers) {
            moving.push(Moving {
                path,
                index,
                grows: step == Ordering::Less,
                steps: 0,
            });
        }
    }
    moving
}
