//! Reading healed output as values, without building any and without recursion.

use super::scan;
use super::unescape::unescape;
use std::borrow::Cow;
use std::fmt;

/// Receives the values of a JSON text in order.
pub trait Visitor {
    /// What stops the visit.
    type Error;

    /// `null`
    ///
    /// # Errors
    ///
    /// Whatever the visitor stops for; so for all methods.
    fn null(&mut self) -> Result<(), Self::Error>;
    /// `true` or `false`
    ///
    /// # Errors
    ///
    /// See [`Visitor::null`].
    fn boolean(&mut self, value: bool) -> Result<(), Self::Error>;
    /// An integer of any size, as its digits with an optional minus sign.
    ///
    /// # Errors
    ///
    /// See [`Visitor::null`].
    fn integer(&mut self, digits: &str) -> Result<(), Self::Error>;
    /// A number with a fraction or an exponent: its value and how it was written.
    ///
    /// # Errors
    ///
    /// See [`Visitor::null`].
    fn float(&mut self, value: f64, written: &str) -> Result<(), Self::Error>;
    /// A string, decoded.
    ///
    /// # Errors
    ///
    /// See [`Visitor::null`].
    fn string(&mut self, text: Cow<'_, str>) -> Result<(), Self::Error>;
    /// A key of the innermost object, decoded; its value comes next.
    ///
    /// # Errors
    ///
    /// See [`Visitor::null`].
    fn key(&mut self, text: Cow<'_, str>) -> Result<(), Self::Error>;
    /// `{`
    ///
    /// # Errors
    ///
    /// See [`Visitor::null`].
    fn begin_object(&mut self) -> Result<(), Self::Error>;
    /// `}`
    ///
    /// # Errors
    ///
    /// See [`Visitor::null`].
    fn end_object(&mut self) -> Result<(), Self::Error>;
    /// `[`
    ///
    /// # Errors
    ///
    /// See [`Visitor::null`].
    fn begin_array(&mut self) -> Result<(), Self::Error>;
    /// `]`
    ///
    /// # Errors
    ///
    /// See [`Visitor::null`].
    fn end_array(&mut self) -> Result<(), Self::Error>;
}

/// Why a visit ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisitError<E> {
    /// The visitor stopped.
    Stopped(E),
    /// The text is no JSON from this byte on.
    Malformed(usize),
}

impl<E> From<E> for VisitError<E> {
    fn from(error: E) -> Self {
        Self::Stopped(error)
    }
}

impl<E: fmt::Display> fmt::Display for VisitError<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped(error) => error.fmt(formatter),
            Self::Malformed(offset) => write!(formatter, "no valid JSON at byte {offset}"),
        }
    }
}

/// Walks over one JSON value, such as a reader's output. Linear; containers are kept on a stack of
/// one byte each.
///
/// # Errors
///
/// The visitor's own, or [`VisitError::Malformed`] for a text that is no JSON.
pub fn visit<V: Visitor>(json: &str, visitor: &mut V) -> Result<(), VisitError<V::Error>> {
    let mut walk = Walk {
        json,
        at: scan::skip_space(json.as_bytes(), 0),
        open: Vec::new(),
    };
    loop {
        walk.value(visitor)?;
        if !walk.next(visitor)? {
            return Ok(());
        }
    }
}

struct Walk<'a> {
    json: &'a str,
    at: usize,
    /// Whether each open container is an object.
    open: Vec<bool>,
}

impl<'a> Walk<'a> {
    fn byte(&self) -> Option<u8> {
        self.json.as_bytes().get(self.at).copied()
    }

    fn malformed<T, E>(&self) -> Result<T, VisitError<E>> {
        Err(VisitError::Malformed(self.at))
    }

    /// Reads a value, or the opener of one that is not empty with its first key.
    fn value<V: Visitor>(&mut self, visitor: &mut V) -> Result<(), VisitError<V::Error>> {
        loop {
            match self.byte() {
                Some(b'"') => {
                    let literal = self.literal()?;
                    visitor.string(unescape(literal))?;
                    return Ok(());
                }
                Some(b'{') => {
                    visitor.begin_object()?;
                    self.advance(1);
                    if self.byte() == Some(b'}') {
                        self.advance(1);
                        visitor.end_object()?;
                        return Ok(());
                    }
                    self.open.push(true);
                    self.key(visitor)?;
                }
                Some(b'[') => {
                    visitor.begin_array()?;
                    self.advance(1);
                    if self.byte() == Some(b']') {
                        self.advance(1);
                        visitor.end_array()?;
                        return Ok(());
                    }
                    self.open.push(false);
                }
                Some(b'-' | b'0'..=b'9') => return self.number(visitor),
                Some(b't') => return self.word("true", |v: &mut V| v.boolean(true), visitor),
                Some(b'f') => return self.word("false", |v: &mut V| v.boolean(false), visitor),
                Some(b'n') => return self.word("null", V::null, visitor),
                _ => return self.malformed(),
            }
        }
    }

    /// Closes what ends, and goes to the next value; false at the end of the text.
    fn next<V: Visitor>(&mut self, visitor: &mut V) -> Result<bool, VisitError<V::Error>> {
        loop {
            self.advance(0);
            let Some(&object) = self.open.last() else {
                return match self.byte() {
                    None => Ok(false),
                    Some(_) => self.malformed(),
                };
            };
            match (self.byte(), object) {
                (Some(b','), true) => {
                    self.advance(1);
                    self.key(visitor)?;
                    return Ok(true);
                }
                (Some(b','), false) => {
                    self.advance(1);
                    return Ok(true);
                }
                (Some(b'}'), true) => visitor.end_object()?,
                (Some(b']'), false) => visitor.end_array()?,
                _ => return self.malformed(),
            }
            self.open.pop();
            self.advance(1);
        }
    }

    fn key<V: Visitor>(&mut self, visitor: &mut V) -> Result<(), VisitError<V::Error>> {
        if self.byte() != Some(b'"') {
            return self.malformed();
        }
        let literal = self.literal()?;
        visitor.key(unescape(literal))?;
        self.advance(0);
        if self.byte() != Some(b':') {
            return self.malformed();
        }
        self.advance(1);
        Ok(())
    }

    fn advance(&mut self, bytes: usize) {
        self.at = scan::skip_space(self.json.as_bytes(), self.at + bytes);
    }

    fn literal<E>(&mut self) -> Result<&'a str, VisitError<E>> {
        let end = literal_end(self.json.as_bytes(), self.at);
        match end.and_then(|end| self.json.get(self.at..end)) {
            Some(literal) => {
                self.at += literal.len();
                Ok(literal)
            }
            None => self.malformed(),
        }
    }

    fn number<V: Visitor>(&mut self, visitor: &mut V) -> Result<(), VisitError<V::Error>> {
        let start = self.at;
        let mut integer = true;
        while let Some(byte) = self.byte() {
            match byte {
                b'0'..=b'9' | b'-' => {}
                b'.' | b'e' | b'E' | b'+' => integer = false,
                _ => break,
            }
            self.at += 1;
        }
        let written = self.json.get(start..self.at).unwrap_or_default();
        if integer {
            visitor.integer(written)?;
            return Ok(());
        }
        match written.parse() {
            Ok(value) => visitor.float(value, written)?,
            Err(_) => return Err(VisitError::Malformed(start)),
        }
        Ok(())
    }

    fn word<V: Visitor>(
        &mut self,
        word: &str,
        visited: impl FnOnce(&mut V) -> Result<(), V::Error>,
        visitor: &mut V,
    ) -> Result<(), VisitError<V::Error>> {
        let rest = self.json.get(self.at..).unwrap_or_default();
        if !rest.starts_with(word) {
            return self.malformed();
        }
        self.at += word.len();
        visited(visitor)?;
        Ok(())
    }
}

/// One past the closing quote of the literal that begins at `at`.
fn literal_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at = scan::string_end(bytes, at);
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// A key and its value, or an item, as slices of the JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The key's literal, quotes included; empty for an item of an array.
    pub key: &'a str,
    /// The value.
    pub value: &'a str,
}

/// The members of an object or the items of an array, one level deep, without building values.
///
/// For valid JSON such as a reader's output; anything else ends the iteration. Linear in the text.
///
/// # Examples
///
/// ```
/// use turnwarden_extract::json::entries;
///
/// let all: Vec<_> = entries(r#"{"a":{"b":1},"c":[2]}"#).map(|entry| (entry.key, entry.value)).collect();
/// assert_eq!(all, [("\"a\"", r#"{"b":1}"#), ("\"c\"", "[2]")]);
/// ```
#[must_use]
pub fn entries(json: &str) -> Entries<'_> {
    let at = scan::skip_space(json.as_bytes(), 0);
    Entries {
        json,
        object: json.as_bytes().get(at) == Some(&b'{'),
        at: match json.as_bytes().get(at) {
            Some(b'{' | b'[') => at + 1,
            _ => json.len(),
        },
    }
}

/// See [`entries`].
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    json: &'a str,
    object: bool,
    at: usize,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let bytes = self.json.as_bytes();
        self.at = scan::skip_space(bytes, self.at);
        if bytes.get(self.at) == Some(&b',') {
            self.at = scan::skip_space(bytes, self.at + 1);
        }
        let mut key = "";
        if self.object {
            if bytes.get(self.at) != Some(&b'"') {
                return None;
            }
            let end = literal_end(bytes, self.at)?;
            key = self.json.get(self.at..end)?;
            let colon = scan::skip_space(bytes, end);
            self.at = scan::skip_space(bytes, colon + 1);
        }
        let end = value_end(bytes, self.at)?;
        let value = self.json.get(self.at..end)?;
        self.at = end;
        Some(Entry { key, value })
    }
}

/// One past the value that begins at `at`.
fn value_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = at;
    match bytes.get(at)? {
        b'"' => return literal_end(bytes, at),
        b'{' | b'[' => {}
        b'}' | b']' => return None,
        _ => {
            let rest = bytes.get(at..)?;
            let length = rest
                .iter()
                .position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'));
            return Some(at + length.unwrap_or(rest.len()));
        }
    }
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = literal_end(bytes, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}
