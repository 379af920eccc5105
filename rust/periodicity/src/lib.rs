//! Repeats, oscillation and periods in a sequence of turns, counted as the turns come; and texts
//! that repeat themselves.
//!
//! For each period `p` up to a maximum, [`Periods`] keeps how many elements in a row equal the one
//! `p` back. That number says everything: a run of `n` means that the last `n + p` elements repeat
//! with period `p`, for however many laps, while only the last `p` elements are kept. A push costs
//! one comparison a period.
//!
//! ```text
//! elements   A B C A B C A
//! run of 3   0 0 0 1 2 3 4     the last 4 + 3 elements go round A B C
//! ```
//!
//! [`TextLoopDetector`] looks for the same in the text of one reply while it streams.

mod periods;
mod text;

pub use periods::{Periods, turn_element};
pub use text::{TextLoop, TextLoopDetector, TextLoopKind};
