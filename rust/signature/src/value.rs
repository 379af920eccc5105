//! Reading canonical bytes back.
//!
//! Bytes that no [`Canon`] wrote end the reading early; they never make it fail.

use crate::canon::{Canon, tag};

/// One step through canonical bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Token<'a> {
    /// null
    Null,
    /// true or false
    Boolean(bool),
    /// An integer that an `i64` holds.
    Integer(i64),
    /// A larger integer: sign and magnitude, lowest byte first.
    BigInteger {
        /// Below zero.
        negative: bool,
        /// Without leading zero bytes (they would be last here).
        magnitude: &'a [u8],
    },
    /// An integer of more than [`MAX_DECIMAL_DIGITS`](crate::MAX_DECIMAL_DIGITS) digits, as text.
    Digits(&'a [u8]),
    /// Any other number, NaN and infinities too.
    Float(f64),
    /// A string, or a key where one is due: WTF-8.
    String(&'a [u8]),
    /// An array begins.
    BeginArray,
    /// An array ends.
    EndArray,
    /// An object begins; keys and values alternate.
    BeginObject,
    /// An object ends.
    EndObject,
}

/// The tokens of canonical bytes, in order.
#[derive(Clone, Debug)]
pub struct Tokens<'a> {
    rest: &'a [u8],
}

impl<'a> Tokens<'a> {
    /// The bytes not read yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn take_word(&mut self) -> Option<u64> {
        let (word, rest) = self.rest.split_first_chunk::<8>()?;
        self.rest = rest;
        Some(u64::from_le_bytes(*word))
    }

    fn take_counted(&mut self) -> Option<&'a [u8]> {
        let length = self.take_word()?;
        self.take(usize::try_from(length).ok()?)
    }

    fn integer(&mut self, negative: bool, length: u8) -> Option<Token<'a>> {
        let magnitude = match length {
            0..=8 => self.take(usize::from(length))?,
            _ => self.take_counted()?,
        };
        let big = Token::BigInteger {
            negative,
            magnitude,
        };
        if magnitude.len() > 8 {
            return Some(big);
        }
        let word = magnitude
            .iter()
            .rev()
            .fold(0_u64, |word, &byte| word << 8 | u64::from(byte));
        let value = if negative {
            0_i64.checked_sub_unsigned(word)
        } else {
            i64::try_from(word).ok()
        };
        Some(value.map_or(big, Token::Integer))
    }

    /// Steps over what is left of a value whose first token was just read.
    fn skip_after(&mut self, first: Token<'_>) -> Option<()> {
        let mut open = usize::from(matches!(first, Token::BeginArray | Token::BeginObject));
        while open > 0 {
            match self.next()? {
                Token::BeginArray | Token::BeginObject => open += 1,
                Token::EndArray | Token::EndObject => open -= 1,
                _ => {}
            }
        }
        Some(())
    }

    /// The next whole value; `None` at the end of its container.
    fn next_value(&mut self) -> Option<Value<'a>> {
        let start = self.rest;
        let first = self.next()?;
        if matches!(first, Token::EndArray | Token::EndObject) {
            return None;
        }
        self.skip_after(first)?;
        let length = start.len() - self.rest.len();
        start.get(..length).map(|bytes| Value { bytes })
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    #[inline]
    fn next(&mut self) -> Option<Token<'a>> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(match first {
            tag::NULL => Token::Null,
            tag::FALSE => Token::Boolean(false),
            tag::TRUE => Token::Boolean(true),
            tag::ARRAY => Token::BeginArray,
            tag::ARRAY_END => Token::EndArray,
            tag::OBJECT => Token::BeginObject,
            tag::OBJECT_END => Token::EndObject,
            tag::FLOAT => Token::Float(f64::from_bits(self.take_word()?)),
            tag::NAN => Token::Float(f64::NAN),
            tag::INFINITY => Token::Float(f64::INFINITY),
            tag::NEGATIVE_INFINITY => Token::Float(f64::NEG_INFINITY),
            tag::DIGITS => Token::Digits(self.take_counted()?),
            tag::POSITIVE..tag::NEGATIVE => self.integer(false, first - tag::POSITIVE)?,
            tag::NEGATIVE..0x30 => self.integer(true, first - tag::NEGATIVE)?,
            tag::LONG_STRING => Token::String(self.take_counted()?),
            tag::STRING.. => Token::String(self.take(usize::from(first - tag::STRING))?),
            _ => return None,
        })
    }
}

/// One canonical value.
///
/// ```
/// use turnwarden_signature::Canon;
///
/// let canon = Canon::from_json(r#"{"path": "a.py", "offset": 40}"#).unwrap_or_default();
/// let arguments = canon.value();
/// assert_eq!(arguments.get("path").and_then(|path| path.as_str()), Some("a.py"));
/// assert_eq!(arguments.get("offset").and_then(|offset| offset.as_i64()), Some(40));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value<'a> {
    bytes: &'a [u8],
}

impl<'a> Value<'a> {
    /// The value that these canonical bytes hold.
    #[must_use]
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Its canonical bytes: equal exactly for equal values.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Its tokens, depth first.
    #[must_use]
    pub fn tokens(self) -> Tokens<'a> {
        Tokens { rest: self.bytes }
    }

    /// Its first token: all of it unless it is an array or object.
    #[must_use]
    pub fn first(self) -> Option<Token<'a>> {
        self.tokens().next()
    }

    /// Whether it is an object.
    #[must_use]
    pub fn is_object(self) -> bool {
        self.first() == Some(Token::BeginObject)
    }

    /// Whether it is null.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.first() == Some(Token::Null)
    }

    /// The text of a string without lone surrogates.
    #[must_use]
    pub fn as_str(self) -> Option<&'a str> {
        match self.first()? {
            Token::String(text) => std::str::from_utf8(text).ok(),
            _ => None,
        }
    }

    /// The integer, if it is one and an `i64` holds it.
    #[must_use]
    pub fn as_i64(self) -> Option<i64> {
        match self.first()? {
            Token::Integer(value) => Some(value),
            _ => None,
        }
    }

    /// The members of an object in key order; none for any other value.
    ///
    /// Each step costs the size of one value.
    #[must_use]
    pub fn members(self) -> Members<'a> {
        let mut tokens = self.tokens();
        if tokens.next() != Some(Token::BeginObject) {
            tokens = Tokens { rest: &[] };
        }
        Members { tokens }
    }

    /// The items of an array; none for any other value.
    #[must_use]
    pub fn items(self) -> Items<'a> {
        let mut tokens = self.tokens();
        if tokens.next() != Some(Token::BeginArray) {
            tokens = Tokens { rest: &[] };
        }
        Items { tokens }
    }

    /// The member with this key. Costs the size of the members before it.
    #[must_use]
    pub fn get(self, key: &str) -> Option<Value<'a>> {
        self.members()
            .find_map(|(name, value)| (name == key.as_bytes()).then_some(value))
    }
}

/// The members of an object: key (WTF-8) and value.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    tokens: Tokens<'a>,
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let Some(Token::String(key)) = self.tokens.next() else {
            self.tokens = Tokens { rest: &[] };
            return None;
        };
        Some((key, self.tokens.next_value()?))
    }
}

/// The items of an array.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    tokens: Tokens<'a>,
}

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.tokens.next_value();
        if item.is_none() {
            self.tokens = Tokens { rest: &[] };
        }
        item
    }
}

impl Canon {
    /// What was written, for reading.
    #[must_use]
    pub fn value(&self) -> Value<'_> {
        Value::from_bytes(self.as_bytes())
    }
}
