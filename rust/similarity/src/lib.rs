//! How alike the arguments of two calls are, from 0 to 1.
//!
//! Each call keeps a [`Sketch`]: a few bytes made once from its canonical arguments, in which the
//! leaves (values that are no container) stand by path. Short strings are in it as they are, long
//! ones as a sample of their words, so a comparison costs about a microsecond whatever the size
//! of the arguments, and memory is capped. [`cursor`] tells whether a number in the arguments
//! moves one way, call after call.
//!
//! ```
//! use turnwarden_signature::Canon;
//! use turnwarden_similarity::Sketch;
//!
//! let sketch = |text| Sketch::of(Canon::from_arguments_text(text).value());
//! let one = sketch(r#"{"prompt": "a red fox in the snow, oil painting, warm light", "n": 1}"#);
//! let two = sketch(r#"{"prompt": "a red fox in the rain, oil painting, warm light", "n": 1}"#);
//! assert!(one.similarity(&two) > 0.9);
//! assert_eq!(one.similarity(&one), 1.0);
//! ```

mod bytes;
mod cursor;
mod hash;
mod leaf;
mod leaves;
mod numbers;
mod sketch;
mod text;
mod word;
mod words;

pub use cursor::{Cursors, cursor};
pub use sketch::{MAX_SKETCH_BYTES, Sketch};
