//! `TextLoopDetector`.

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use turnwarden_guard as core;

use crate::errors::Error;

/// While a text of so many bytes is read, other threads may run.
const LONG: usize = 1 << 16;

/// Finds a text that repeats itself while it streams.
///
/// Three kinds are found: cycles (the same bytes again and again, up to 4,096 of them),
/// near-duplicate sentences and near-duplicate paragraphs (the same but for few words or for
/// numbers). Rows of lists and tables, code in fences or indented, rulers and white space are
/// alike by nature and are a loop only when they go on for pages. Any cut into chunks finds the
/// same at the same byte.
///
/// Offsets are bytes of the text as UTF-8. What comes after the repetition is not looked at.
///
/// Cost: linear in the text, about 50 KB of memory whatever its length. Cycles are found by a
/// rolling hash and then compared byte by byte; near-duplicates by the Dice coefficient of their
/// words and pairs of words (Dice, 1945) with those of the last 32 sentences or 16 paragraphs.
///
/// Example:
///     >>> detector = turnwarden.TextLoopDetector()
///     >>> detector.feed("Well. "), detector.feed("ny" * 50), detector.feed("ny" * 500)
///     (False, False, True)
///     >>> detector.kind, detector.start, detector.period
///     ('cycle', 6, 2)
#[pyclass(frozen, module = "turnwarden._core")]
pub(crate) struct TextLoopDetector {
    detector: Mutex<core::TextLoopDetector>,
}

#[pymethods]
impl TextLoopDetector {
    #[new]
    fn new() -> Self {
        Self {
            detector: Mutex::default(),
        }
    }

    /// Take the next piece of the text; return whether the text repeats itself.
    ///
    /// Args:
    ///     delta: The next characters (str), any number of them. A lone surrogate reads as U+FFFD.
    ///
    /// Raises:
    ///     WrongTypeError: The delta is no str.
    fn feed(&self, delta: &Bound<'_, PyAny>) -> PyResult<bool> {
        let text = delta.cast::<PyString>();
        let text = text.map_err(|_| Error::wrong_type("a delta", "a str", delta))?;
        let text = match text.to_str() {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => Cow::Owned(without_surrogates(text)?),
        };
        let feed = || self.lock().feed(&text).is_some();
        Ok(if text.len() < LONG {
            feed()
        } else {
            delta.py().detach(feed)
        })
    }

    /// Begin a new text.
    fn reset(&self) {
        self.lock().reset();
    }

    /// Whether the text repeats itself.
    #[getter]
    fn loop_detected(&self) -> bool {
        self.lock().found().is_some()
    }

    /// How it does: "cycle", "sentences" or "paragraphs"; None while it does not.
    #[getter]
    fn kind(&self) -> Option<&'static str> {
        Some(self.lock().found()?.kind.as_str())
    }

    /// The byte at which the repetition began: the first of what is said again; None without one.
    #[getter]
    fn start(&self) -> Option<usize> {
        Some(self.lock().found()?.start)
    }

    /// Bytes of one lap; between near-duplicates, how far the last is from its like.
    #[getter]
    fn period(&self) -> Option<usize> {
        Some(self.lock().found()?.period)
    }

    /// Bytes read: all of the text, or those up to where the repetition was found.
    #[getter]
    fn position(&self) -> usize {
        self.lock().position()
    }

    fn __repr__(&self) -> String {
        let detector = self.lock();
        match detector.found() {
            None => format!("<TextLoopDetector after {} bytes>", detector.position()),
            Some(core::TextLoop { kind, start, .. }) => format!(
                "<TextLoopDetector: {} repeated from byte {start}>",
                kind.as_str()
            ),
        }
    }
}

impl TextLoopDetector {
    fn lock(&self) -> MutexGuard<'_, core::TextLoopDetector> {
        self.detector.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The text with U+FFFD for each lone surrogate.
#[cold]
fn without_surrogates(text: &Bound<'_, PyString>) -> PyResult<String> {
    let encoded = text.call_method1("encode", ("utf-16-le", "surrogatepass"))?;
    let encoded = encoded.cast_into::<PyBytes>()?;
    let units = encoded.as_bytes().chunks_exact(2);
    let units = units.map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
    let replaced = char::decode_utf16(units);
    Ok(replaced
        .map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect())
}
