//! One leaf of a sketch: how it is packed, what it weighs, how alike two are.

use std::sync::LazyLock;

use turnwarden_signature::{Token, Value};

use crate::bytes::{Bytes, count_byte, push_varint};
use crate::hash::hash;
use crate::numbers::{Number, Numbers, read_integer, tag as number_tag, top_half, write_integer};
use crate::text::{self, MAX_TEXT, character_count};
use crate::words::Words;

mod tag {
    pub(super) const NULL: u8 = 0x00;
    pub(super) const FALSE: u8 = 0x01;
    pub(super) const TRUE: u8 = 0x02;
    pub(super) const EMPTY_ARRAY: u8 = 0x03;
    pub(super) const EMPTY_OBJECT: u8 = 0x04;
    pub(super) const NAN: u8 = 0x05;
    pub(super) const INFINITY: u8 = 0x06;
    pub(super) const NEGATIVE_INFINITY: u8 = 0x07;
    pub(super) const BIG_INTEGER: u8 = 0x09;
    pub(super) const WORDS: u8 = 0x0A;
    /// Plus the length.
    pub(super) const TEXT: u8 = 0x80;
}

/// How much room strings get.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Strings up to this many bytes are kept as they are.
    pub(crate) text: usize,
    /// Of longer ones this many words are.
    pub(crate) words: usize,
}

/// Appends the packed form of the leaf that canonical bytes begin with.
pub(crate) fn write_leaf(canonical: &[u8], room: Room, bytes: &mut Vec<u8>) {
    match Value::from_bytes(canonical).first().unwrap_or(Token::Null) {
        Token::Null | Token::EndArray | Token::EndObject => bytes.push(tag::NULL),
        Token::BeginArray => bytes.push(tag::EMPTY_ARRAY),
        Token::BeginObject => bytes.push(tag::EMPTY_OBJECT),
        Token::Boolean(value) => bytes.push(if value { tag::TRUE } else { tag::FALSE }),
        Token::Integer(value) => write_integer(bytes, value),
        Token::Float(value) => write_float(bytes, value),
        Token::BigInteger {
            negative,
            magnitude,
        } => write_big_integer(bytes, negative, magnitude),
        Token::Digits(digits) => {
            bytes.push(tag::BIG_INTEGER);
            push_varint(bytes, digits.len() as u64);
            bytes.extend_from_slice(&top_half(hash(5, digits)).to_le_bytes());
            bytes.extend_from_slice(&f64::NAN.to_le_bytes());
        }
        Token::String(text) => write_string(bytes, text, room),
    }
}

fn write_float(bytes: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        bytes.push(tag::NAN);
    } else if value.is_infinite() {
        bytes.push(if value > 0.0 {
            tag::INFINITY
        } else {
            tag::NEGATIVE_INFINITY
        });
    } else {
        Number::Float(value).write_to(bytes);
    }
}

fn write_big_integer(bytes: &mut Vec<u8>, negative: bool, magnitude: &[u8]) {
    let value = magnitude
        .iter()
        .rev()
        .fold(0.0, |value, &byte| value * 256.0 + f64::from(byte));
    let digits = decimal_digits(magnitude) + usize::from(negative);
    bytes.push(tag::BIG_INTEGER);
    push_varint(bytes, digits as u64);
    let identity = top_half(hash(u64::from(negative), magnitude));
    bytes.extend_from_slice(&identity.to_le_bytes());
    let value = if negative { -value } else { value };
    bytes.extend_from_slice(&value.to_le_bytes());
}

/// About how many decimal digits a large magnitude has.
fn decimal_digits(magnitude: &[u8]) -> usize {
    let leading = magnitude
        .last()
        .map_or(0, |byte| byte.leading_zeros() as usize);
    let bits = magnitude.len() * 8 - leading;
    bits * 1233 / 4096 + 1 // log10(2) is about 1233 / 4096
}

fn write_string(bytes: &mut Vec<u8>, text: &[u8], room: Room) {
    if text.len() <= room.text.min(MAX_TEXT) {
        bytes.push(tag::TEXT | count_byte(text.len()));
        bytes.extend_from_slice(text);
    } else {
        bytes.push(tag::WORDS);
        Words::write(text, room.words, bytes);
    }
}

/// A leaf read from a sketch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Leaf<'a> {
    /// Null, a boolean, an empty container, NaN or an infinity: equal when the tags are.
    Constant(u8),
    Number(Number),
    BigInteger {
        digits: u64,
        identity: u32,
        value: f64,
    },
    Text(&'a [u8]),
    Words(Words<'a>, Bytes<'a>),
}

impl<'a> Leaf<'a> {
    pub(crate) fn read_from(bytes: &mut Bytes<'a>) -> Option<Self> {
        let first = bytes.byte()?;
        Some(match first {
            tag::NULL..=tag::NEGATIVE_INFINITY => Self::Constant(first),
            number_tag::FLOAT => Self::Number(Number::Float(bytes.f64()?)),
            tag::BIG_INTEGER => Self::BigInteger {
                digits: bytes.varint()?,
                identity: bytes.u32()?,
                value: bytes.f64()?,
            },
            tag::WORDS => {
                let packed = *bytes;
                Self::Words(Words::read(bytes, None)?, packed)
            }
            tag::TEXT.. => Self::Text(bytes.take(usize::from(first & !tag::TEXT))?),
            _ => Self::Number(Number::Integer(read_integer(first, bytes)?)),
        })
    }

    /// The information that the leaf carries: the logarithm of its length.
    #[allow(clippy::cast_precision_loss)] // lengths
    pub(crate) fn weight(&self) -> f64 {
        let length = match self {
            Self::Constant(tag) => constant_length(*tag),
            Self::Number(Number::Integer(value)) => integer_length(*value),
            Self::Number(Number::Float(value)) => float_length(*value),
            Self::BigInteger { digits, .. } => usize::try_from(*digits).unwrap_or(usize::MAX),
            Self::Text(text) => character_count(text),
            Self::Words(words, _) => words.characters(),
        };
        WEIGHTS
            .get(length)
            .copied()
            .unwrap_or_else(|| (length as f64 + 2.0).log2())
    }

    /// How alike two leaves are: strings by their characters, anything else is equal or not.
    pub(crate) fn similarity(&self, other: &Self) -> f64 {
        let is_equal = match (self, other) {
            (Self::Text(left), Self::Text(right)) => return text::similarity(left, right),
            (Self::Words(left, _), Self::Words(right, _)) => return left.similarity(right),
            (Self::Words(words, _), Self::Text(text))
            | (Self::Text(text), Self::Words(words, _)) => return words.similarity_to_text(text),
            (Self::Constant(left), Self::Constant(right)) => left == right,
            (Self::Number(left), Self::Number(right)) => left == right,
            (
                Self::BigInteger {
                    digits, identity, ..
                },
                Self::BigInteger {
                    digits: other_digits,
                    identity: other_identity,
                    ..
                },
            ) => digits == other_digits && identity == other_identity,
            _ => false,
        };
        f64::from(u8::from(is_equal))
    }

    /// The numbers that may be a cursor: a numeric leaf, or those inside a string. Leaves whose
    /// masks differ have nothing in common but their numbers.
    pub(crate) fn numbers(&self) -> Option<Numbers> {
        match self {
            Self::Constant(_) => None,
            Self::Number(number) => Some(Numbers::alone(*number)),
            Self::BigInteger { value, .. } => Some(Numbers::alone(Number::Float(*value))),
            Self::Text(text) => Some(Numbers::in_text(text)),
            Self::Words(_, packed) => {
                let mut numbers = Numbers::default();
                Words::read(&mut packed.clone(), Some(&mut numbers))?;
                Some(numbers)
            }
        }
    }
}

/// The weights of lengths up to 255.
#[allow(clippy::cast_precision_loss)] // small lengths
static WEIGHTS: LazyLock<[f64; 256]> =
    LazyLock::new(|| std::array::from_fn(|length| (length as f64 + 2.0).log2()));

fn constant_length(tag: u8) -> usize {
    match tag {
        tag::NULL | tag::TRUE => 4,
        tag::FALSE => 5,
        tag::EMPTY_ARRAY | tag::EMPTY_OBJECT => 2,
        tag::NAN => 3,
        tag::INFINITY => 8,
        _ => 9,
    }
}

fn integer_length(value: i64) -> usize {
    let digits = value.unsigned_abs().checked_ilog10().unwrap_or(0) as usize + 1;
    digits + usize::from(value < 0)
}

/// The length of a float as JavaScript and Python write it, exponents apart.
fn float_length(value: f64) -> usize {
    let shortest = format!("{value:e}");
    let exponent = shortest.rfind('e').and_then(|at| shortest.get(at + 1..));
    match exponent.and_then(|exponent| exponent.parse::<i32>().ok()) {
        Some(-4..16) => format!("{value}").len(),
        Some(-9..0 | 16..) => shortest.len() + 1, // a zero or a sign before the exponent
        _ => shortest.len(),
    }
}
