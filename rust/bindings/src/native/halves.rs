//! Halves of surrogate pairs: providers that cut text in UTF-16 send one half of a character in
//! one delta and the other in the next, and a Python `str` holds either. They are joined here.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use turnwarden_extract::Decoder;
use turnwarden_extract::native::Key;

/// U+FFFD in UTF-8.
const REPLACEMENT: &[u8] = "\u{FFFD}".as_bytes();

/// First halves whose second half may still come, each with the member that it stood in.
#[derive(Debug, Default)]
pub(super) struct Halves {
    waiting: Vec<(Key, [u8; 3])>,
}

impl Halves {
    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn take(&mut self, key: Key) -> Option<[u8; 3]> {
        let place = self.waiting.iter().position(|(known, _)| *known == key)?;
        Some(self.waiting.swap_remove(place).1)
    }

    /// The text of the next `str` in the member `key`. A half at its end waits for the next one;
    /// any other half becomes U+FFFD.
    pub(super) fn join(&mut self, key: Key, text: &Bound<'_, PyString>) -> PyResult<String> {
        let encoded = encode(text)?;
        let mut bytes = Cow::Borrowed(encoded.as_bytes());
        if bytes.is_empty() {
            return Ok(String::new());
        }
        if let Some(first) = self.take(key) {
            let second = matches!(*bytes, [0xED, 0xB0..=0xBF, ..]);
            let before = if second {
                first.as_slice()
            } else {
                REPLACEMENT
            };
            bytes = Cow::Owned([before, &bytes].concat());
        }
        if let [.., 0xED, middle @ 0xA0..=0xAF, last] = *bytes {
            self.waiting.push((key, [0xED, middle, last]));
            let length = bytes.len() - 3;
            bytes.to_mut().truncate(length);
        }
        Ok(decode(&bytes))
    }
}

/// The text of a `str` that stands alone: halves become U+FFFD.
pub(super) fn replaced(text: &Bound<'_, PyString>) -> PyResult<String> {
    Ok(decode(encode(text)?.as_bytes()))
}

fn encode<'py>(text: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyBytes>> {
    let encoded = text.call_method1("encode", ("utf-8", "surrogatepass"))?;
    Ok(encoded.cast_into::<PyBytes>()?)
}

fn decode(bytes: &[u8]) -> String {
    let (mut text, mut replaced) = (String::new(), Vec::new());
    let mut decoder = Decoder::default();
    decoder.decode(bytes, &mut text, &mut replaced);
    decoder.finish(&mut text, &mut replaced);
    text
}
