//! Strings for the keys of argument dicts, made once and used again.
//!
//! The keys of arguments come from a few tool schemas, so the same ones return in call after call.
//! Each thread keeps a small direct-mapped table of them: a hit saves making the string and hashing
//! it (measured: a quarter of the time that building small arguments takes), and dicts that are
//! kept share their keys.

use std::cell::RefCell;

use pyo3::prelude::*;
use pyo3::types::PyString;

/// Longer keys are not kept: they would be data rather than names.
const MAX_LENGTH: usize = 32;

/// Slots of a thread's table, a power of two.
const SLOTS: usize = 256;

/// A key that was made before.
struct Slot {
    length: u8,
    bytes: [u8; MAX_LENGTH],
    string: Py<PyString>,
}

thread_local! {
    static TABLE: RefCell<Vec<Option<Slot>>> = RefCell::new((0..SLOTS).map(|_| None).collect());
}

/// The Python string of a key.
pub(crate) fn key<'py>(py: Python<'py>, text: &str) -> Bound<'py, PyString> {
    if text.len() > MAX_LENGTH {
        return PyString::new(py, text);
    }
    let mut bytes = [0; MAX_LENGTH];
    if let Some(start) = bytes.get_mut(..text.len()) {
        start.copy_from_slice(text.as_bytes());
    }
    TABLE
        .try_with(|table| {
            let mut table = table.try_borrow_mut().ok()?;
            let slot = table.get_mut(slot_of(&bytes, text.len()))?;
            #[expect(clippy::cast_possible_truncation, reason = "at most MAX_LENGTH")]
            let length = text.len() as u8;
            if let Some(known) = slot
                && known.length == length
                && known.bytes == bytes
            {
                return Some(known.string.bind(py).clone());
            }
            let string = PyString::new(py, text);
            *slot = Some(Slot {
                length,
                bytes,
                string: string.clone().unbind(),
            });
            Some(string)
        })
        .ok()
        .flatten()
        .unwrap_or_else(|| PyString::new(py, text))
}

/// Where a key's slot is: its bytes, eight at a time, folded and mixed.
fn slot_of(bytes: &[u8; MAX_LENGTH], length: usize) -> usize {
    let words = bytes.chunks_exact(8).map(|word| {
        word.iter()
            .rev()
            .fold(0_u64, |value, byte| value << 8 | u64::from(*byte))
    });
    let mixed = words.fold(length as u64, |hash, word| {
        (hash.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    });
    usize::try_from(mixed >> 32).unwrap_or(0) % SLOTS
}
