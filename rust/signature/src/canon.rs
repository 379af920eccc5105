//! The canonical bytes of a value, and how they are written.
//!
//! One byte of tag, then the payload; every value says where it ends, so no two different values
//! share their bytes:
//!
//! | value | bytes |
//! |---|---|
//! | null, false, true | tag |
//! | integer | tag with sign and length (0 to 8), magnitude, lowest byte first; longer ones: tag, length, magnitude |
//! | integer of more than 4300 digits in JSON text | tag, length, digits |
//! | other finite number | tag, IEEE 754 bits |
//! | NaN, infinities | tag |
//! | string | tag with length (0 to 126), or tag and length, then WTF-8 |
//! | array, object | opening tag, items or keys and values in key order, closing tag |
//!
//! A finite float without a fraction and below 2^53 in magnitude is written as that integer (so
//! `1.0` is `1` and `-0.0` is `0`); from 2^53 on a float may stand for several integers and stays
//! a float, equal to no integer.

use std::ops::Range;

use crate::buffer::Buffer;
use crate::key_order::KeyHead;

/// Deepest nesting of arrays and objects that has a canon.
pub const MAX_DEPTH: usize = 16_384;

/// Longest run of decimal digits that is read as a number. Longer ones, which Python refuses to
/// convert by default, are known by their digits: conversion costs the square of the length.
pub const MAX_DECIMAL_DIGITS: usize = 4300;

/// Where floats stop being exact integers: 2^53.
const FIRST_INEXACT: f64 = 9_007_199_254_740_992.0;

pub(crate) mod tag {
    pub(crate) const NULL: u8 = 0x00;
    pub(crate) const FALSE: u8 = 0x01;
    pub(crate) const TRUE: u8 = 0x02;
    pub(crate) const ARRAY: u8 = 0x03;
    pub(crate) const ARRAY_END: u8 = 0x04;
    pub(crate) const OBJECT: u8 = 0x05;
    pub(crate) const OBJECT_END: u8 = 0x06;
    pub(crate) const FLOAT: u8 = 0x07;
    pub(crate) const NAN: u8 = 0x08;
    pub(crate) const INFINITY: u8 = 0x09;
    pub(crate) const NEGATIVE_INFINITY: u8 = 0x0A;
    pub(crate) const DIGITS: u8 = 0x0B;
    /// Plus the number of bytes, 0 to 8; one more for longer ones.
    pub(crate) const POSITIVE: u8 = 0x10;
    pub(crate) const NEGATIVE: u8 = 0x20;
    pub(crate) const LONG_INTEGER: u8 = 9;
    /// Plus the length, 0 to [`LONGEST_SHORT_STRING`].
    pub(crate) const STRING: u8 = 0x80;
    pub(crate) const LONG_STRING: u8 = 0xFF;
    pub(crate) const LONGEST_SHORT_STRING: u8 = 0x7E;
}

/// Canonical bytes, written value by value.
///
/// The writer trusts its caller in two things: keys come in the order of
/// [`compare_keys`](crate::compare_keys) and once each, and what is opened is closed.
///
/// ```
/// use turnwarden_signature::Canon;
///
/// let mut canon = Canon::default();
/// canon.begin_object();
/// canon.string(b"page");
/// canon.integer(2);
/// canon.end_object();
/// assert_eq!(Some(canon), Canon::from_json(r#"{ "page": 2.0 }"#));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Canon {
    bytes: Buffer,
}

impl Canon {
    /// The bytes written so far.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    /// Forgets what was written and keeps the memory, up to `max_capacity` bytes of it.
    pub fn clear(&mut self, max_capacity: usize) {
        self.bytes.clear(max_capacity);
    }

    /// Writes null.
    #[inline]
    pub fn null(&mut self) {
        self.bytes.push(tag::NULL);
    }

    /// Writes true or false.
    #[inline]
    pub fn boolean(&mut self, value: bool) {
        self.bytes.push(if value { tag::TRUE } else { tag::FALSE });
    }

    /// Writes an integer.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        let magnitude = value.unsigned_abs();
        let length = 8 - magnitude.leading_zeros() / 8;
        let sign = if value < 0 {
            tag::NEGATIVE
        } else {
            tag::POSITIVE
        };
        let word = u128::from(magnitude) << 8 | u128::from(u32::from(sign) + length);
        self.bytes.push_word(word, length as usize + 1);
    }

    /// Writes an integer of any size: its sign and its magnitude, lowest byte first.
    pub fn big_integer(&mut self, negative: bool, magnitude: &[u8]) {
        let zeros = magnitude
            .iter()
            .rev()
            .take_while(|&&byte| byte == 0)
            .count();
        let magnitude = magnitude
            .get(..magnitude.len() - zeros)
            .unwrap_or(magnitude);
        let negative = negative && !magnitude.is_empty();
        let sign = if negative {
            tag::NEGATIVE
        } else {
            tag::POSITIVE
        };
        if let Ok(length @ 0..=8) = u8::try_from(magnitude.len()) {
            self.bytes.push(sign + length);
        } else {
            self.bytes.push(sign + tag::LONG_INTEGER);
            self.length(magnitude.len());
        }
        self.bytes.extend(magnitude);
    }

    /// Writes a float: as an integer where it is exactly one, else by its bits.
    #[inline]
    pub fn float(&mut self, value: f64) {
        if value.abs() < FIRST_INEXACT && value.fract() == 0.0 {
            #[allow(clippy::cast_possible_truncation)] // below 2^53
            return self.integer(value as i64);
        }
        if value.is_finite() {
            self.bytes.push(tag::FLOAT);
            self.bytes.extend(&value.to_bits().to_le_bytes());
        } else if value.is_nan() {
            self.bytes.push(tag::NAN);
        } else if value > 0.0 {
            self.bytes.push(tag::INFINITY);
        } else {
            self.bytes.push(tag::NEGATIVE_INFINITY);
        }
    }

    /// Writes an integer in decimal: a minus sign or not, then digits without leading zeros.
    ///
    /// Up to [`MAX_DECIMAL_DIGITS`] digits it is that integer; beyond, only equal to itself.
    pub fn decimal(&mut self, text: &[u8]) {
        let (negative, digits) = match text.split_first() {
            Some((b'-', digits)) => (true, digits),
            _ => (false, text),
        };
        if digits.len() <= 18 {
            let magnitude = digits
                .iter()
                .fold(0_i64, |value, digit| value * 10 + i64::from(digit & 0xF));
            return self.integer(if negative { -magnitude } else { magnitude });
        }
        if digits.len() > MAX_DECIMAL_DIGITS {
            self.bytes.push(tag::DIGITS);
            self.length(text.len());
            return self.bytes.extend(text);
        }
        self.big_integer(negative, &magnitude_of(digits));
    }

    /// Writes a string, or a key: UTF-8, lone surrogates as in WTF-8.
    #[inline]
    pub fn string(&mut self, text: &[u8]) {
        let head = KeyHead::of(text);
        if head.is_whole() {
            return self.bytes.push_word(head.tagged(), text.len() + 1);
        }
        if let Ok(length @ 0..=tag::LONGEST_SHORT_STRING) = u8::try_from(text.len()) {
            self.bytes.push(tag::STRING + length);
        } else {
            self.bytes.push(tag::LONG_STRING);
            self.length(text.len());
        }
        self.bytes.extend(text);
    }

    /// Writes a key whose head is at hand.
    #[inline]
    pub fn key(&mut self, head: KeyHead, text: &[u8]) {
        if head.is_whole() {
            self.bytes.push_word(head.tagged(), text.len() + 1);
        } else {
            self.string(text);
        }
    }

    /// How many bytes were written.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == 0
    }

    /// Opens an array.
    #[inline]
    pub fn begin_array(&mut self) {
        self.bytes.push(tag::ARRAY);
    }

    /// Closes an array.
    #[inline]
    pub fn end_array(&mut self) {
        self.bytes.push(tag::ARRAY_END);
    }

    /// Opens an object.
    #[inline]
    pub fn begin_object(&mut self) {
        self.bytes.push(tag::OBJECT);
    }

    /// Closes an object.
    #[inline]
    pub fn end_object(&mut self) {
        self.bytes.push(tag::OBJECT_END);
    }

    /// Appends bytes that are canonical already.
    pub(crate) fn extend(&mut self, canonical: &[u8]) {
        self.bytes.extend(canonical);
    }

    /// Appends a stretch of bytes that are canonical already.
    #[inline]
    pub(crate) fn extend_from(&mut self, source: &[u8], range: Range<usize>) {
        self.bytes.extend_from(source, range);
    }

    /// Forgets what was written beyond this length.
    pub fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    pub(crate) fn push_raw(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    fn length(&mut self, length: usize) {
        self.bytes.extend(&(length as u64).to_le_bytes());
    }
}

/// The magnitude of decimal digits, lowest byte first. Quadratic in their number.
fn magnitude_of(digits: &[u8]) -> Vec<u8> {
    const DIGITS_A_STEP: usize = 18;
    let mut limbs: Vec<u64> = Vec::with_capacity(digits.len() / 19 + 1);
    let head = digits.len() % DIGITS_A_STEP;
    let (head, rest) = digits.split_at(head);
    for chunk in std::iter::once(head).chain(rest.chunks(DIGITS_A_STEP)) {
        let (factor, addend) = chunk.iter().fold((1_u64, 0_u64), |(factor, value), digit| {
            (factor * 10, value * 10 + u64::from(digit & 0xF))
        });
        multiply_add(&mut limbs, factor, addend);
    }
    limbs.iter().flat_map(|limb| limb.to_le_bytes()).collect()
}

/// `limbs = limbs * factor + addend`, lowest limb first.
fn multiply_add(limbs: &mut Vec<u64>, factor: u64, addend: u64) {
    let mut carry = addend;
    for limb in limbs.iter_mut() {
        let product = u128::from(*limb) * u128::from(factor) + u128::from(carry);
        *limb = low_word(product);
        carry = low_word(product >> 64);
    }
    if carry > 0 {
        limbs.push(carry);
    }
}

#[allow(clippy::cast_possible_truncation)] // that is what it is for
fn low_word(value: u128) -> u64 {
    value as u64
}
