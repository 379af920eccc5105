//! What a call is known by: canonical arguments and their 128-bit hash.
//!
//! A source of arguments (JSON text here, Python objects in the bindings) writes them once into a
//! [`Canon`]: flat tagged bytes, equal exactly when the arguments are. [`Signature`] is a BLAKE3
//! hash of the tool's name and those bytes; everything else that wants to know the arguments
//! (similarity, the guard's tables) reads the same bytes as [`Token`]s or as a [`Value`].
//!
//! Cost: one walk over the arguments, n log n in the keys of one object, no recursion on depth.

mod as_json;
mod buffer;
mod canon;
mod json;
mod key_order;
mod signature;
mod value;
mod wtf8;

pub use canon::{Canon, MAX_DECIMAL_DIGITS, MAX_DEPTH};
pub use key_order::{KeyHead, KeyPrefix, Ranking, compare_keys};
pub use signature::{Signature, signature_of_json, with_scratch};
pub use value::{Items, Members, Token, Tokens, Value};
pub use wtf8::join_surrogates;
