//! What a caller may give as text: `str` and UTF-8 `bytes`.
//!
//! A reply must never be lost over its encoding: lone surrogates of a `str` and invalid UTF-8 in
//! `bytes` become U+FFFD, and each such place is recorded as a repair. The usual case borrows the
//! text from the Python object.

use core::convert::Infallible;
use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use turnwarden_extract::{Decoder, Repair};

use crate::errors::Error;

/// The text of an argument.
pub(crate) enum Text<'a> {
    /// As it stands in the Python object.
    Borrowed(&'a str),
    /// Decoded, with what was replaced.
    Decoded(String, Vec<Repair>),
}

impl Text<'_> {
    /// The text itself.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Decoded(text, _) => text,
        }
    }

    /// The text itself, owned.
    pub(crate) fn into_string(self) -> String {
        match self {
            Text::Borrowed(text) => text.to_owned(),
            Text::Decoded(text, _) => text,
        }
    }

    /// What was replaced.
    pub(crate) fn into_repairs(self) -> Vec<Repair> {
        match self {
            Text::Borrowed(_) => Vec::new(),
            Text::Decoded(_, repairs) => repairs,
        }
    }
}

/// A `str` that was given as an argument: a name, a label, a piece of text. Lone surrogates become
/// U+FFFD, as they do in a reply.
#[derive(Clone)]
pub(crate) struct Utf8(pub(crate) String);

impl From<&str> for Utf8 {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl<'py> FromPyObject<'_, 'py> for Utf8 {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let text = value.cast::<PyString>()?.to_owned();
        let text = read_text(text.as_any(), "text")?.into_string();
        Ok(Self(text))
    }
}

impl<'py> IntoPyObject<'py> for &Utf8 {
    type Target = PyString;
    type Output = Bound<'py, PyString>;
    type Error = Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Infallible> {
        Ok(PyString::new(py, &self.0))
    }
}

/// Read an argument that must be `str` or `bytes`; `what` names it in the error.
pub(crate) fn read_text<'a>(
    value: &'a Bound<'_, PyAny>,
    what: impl Into<Cow<'static, str>>,
) -> PyResult<Text<'a>> {
    let bytes = match read_valid(value, what)? {
        Chunk::Valid(text) => return Ok(Text::Borrowed(text)),
        Chunk::Bytes(bytes) => bytes,
    };
    let (mut text, mut repairs) = (String::with_capacity(bytes.as_ref().len()), Vec::new());
    let mut decoder = Decoder::default();
    decoder.decode(bytes.as_ref(), &mut text, &mut repairs);
    decoder.finish(&mut text, &mut repairs);
    Ok(Text::Decoded(text, repairs))
}

/// A piece of text before decoding.
pub(crate) enum Chunk<'a> {
    /// Text without any doubt.
    Valid(&'a str),
    /// UTF-8 that may be cut or invalid, or a `str` with lone surrogates in UTF-8 form.
    Bytes(Bytes<'a>),
}

/// Bytes of a Python object, or made from one.
pub(crate) enum Bytes<'a> {
    Borrowed(&'a [u8]),
    Encoded(Vec<u8>),
}

impl AsRef<[u8]> for Bytes<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Bytes::Borrowed(bytes) => bytes,
            Bytes::Encoded(bytes) => bytes,
        }
    }
}

/// Look at an argument that must be `str` or `bytes`, without decoding what needs it.
pub(crate) fn read_valid<'a>(
    value: &'a Bound<'_, PyAny>,
    what: impl Into<Cow<'static, str>>,
) -> PyResult<Chunk<'a>> {
    if let Ok(text) = value.cast::<PyString>() {
        return match text.to_str() {
            Ok(text) => Ok(Chunk::Valid(text)),
            Err(_) => Ok(Chunk::Bytes(Bytes::Encoded(encode_surrogates(text)?))),
        };
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        let bytes = bytes.as_bytes();
        return Ok(
            core::str::from_utf8(bytes).map_or(Chunk::Bytes(Bytes::Borrowed(bytes)), Chunk::Valid)
        );
    }
    Err(Error::wrong_type(what, "str or bytes", value).into())
}

#[cold]
fn encode_surrogates(text: &Bound<'_, PyString>) -> PyResult<Vec<u8>> {
    let encoded = text.call_method1("encode", ("utf-8", "surrogatepass"))?;
    Ok(encoded.cast_into::<PyBytes>()?.as_bytes().to_vec())
}
