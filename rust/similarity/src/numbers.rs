//! Numbers, as values of their own and inside strings.

use std::cmp::Ordering;

use crate::bytes::Bytes;
use crate::hash::{hash, mix};

/// How many numbers of one string are told apart; those beyond count by their sum.
pub(crate) const MAX_NUMBERS: usize = 8;

/// The place that stands for all numbers of a string.
const ALL_NUMBERS: u8 = u8::MAX;

/// A finite number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Integer(i64),
    Float(f64),
}

impl Number {
    /// Which way the number moved; `None` if it did not.
    pub(crate) fn step_to(self, next: Self) -> Option<Ordering> {
        let order = match (self, next) {
            (Self::Integer(before), Self::Integer(after)) => before.cmp(&after),
            _ => self.as_f64().partial_cmp(&next.as_f64())?,
        };
        order.is_ne().then_some(order)
    }

    #[allow(clippy::cast_precision_loss)] // only to compare with a float
    pub(crate) fn as_f64(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Integer(left), Self::Integer(right)) => left
                .checked_add(right)
                .map_or(Self::Float(self.as_f64() + other.as_f64()), Self::Integer),
            _ => Self::Float(self.as_f64() + other.as_f64()),
        }
    }

    pub(crate) fn write_to(self, bytes: &mut Vec<u8>) {
        match self {
            Self::Integer(value) => write_integer(bytes, value),
            Self::Float(value) => {
                bytes.push(tag::FLOAT);
                bytes.extend_from_slice(&value.to_le_bytes());
            }
        }
    }

    pub(crate) fn read_from(bytes: &mut Bytes<'_>) -> Option<Self> {
        match bytes.byte()? {
            tag::FLOAT => bytes.f64().map(Self::Float),
            first => read_integer(first, bytes).map(Self::Integer),
        }
    }
}

pub(crate) mod tag {
    pub(crate) const FLOAT: u8 = 0x08;
    /// Plus the number of bytes of the magnitude, 0 to 8.
    pub(crate) const POSITIVE: u8 = 0x10;
    pub(crate) const NEGATIVE: u8 = 0x20;
    pub(crate) const NEGATIVE_END: u8 = 0x28;
}

/// Appends an integer: a byte of sign and length, then the magnitude, lowest byte first.
pub(crate) fn write_integer(bytes: &mut Vec<u8>, value: i64) {
    let magnitude = value.unsigned_abs();
    let length = 8 - magnitude.leading_zeros() / 8;
    let sign = if value < 0 {
        tag::NEGATIVE
    } else {
        tag::POSITIVE
    };
    bytes.push(sign + (length & 0xF) as u8);
    bytes.extend(magnitude.to_le_bytes().iter().take(length as usize));
}

/// Reads an integer behind its first byte; `None` when that is no integer's.
pub(crate) fn read_integer(first: u8, bytes: &mut Bytes<'_>) -> Option<i64> {
    let (negative, length) = match first {
        tag::POSITIVE..tag::NEGATIVE => (false, first - tag::POSITIVE),
        tag::NEGATIVE..=tag::NEGATIVE_END => (true, first - tag::NEGATIVE),
        _ => return None,
    };
    if length > 8 {
        return None;
    }
    let magnitude = bytes
        .take(usize::from(length))?
        .iter()
        .rev()
        .fold(0_u64, |value, &byte| value << 8 | u64::from(byte));
    if negative {
        0_i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    }
}

/// The numbers of a string, and a hash of what stands around them.
///
/// Two strings with equal `mask` are the same but for their numbers, and have as many of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Numbers {
    pub(crate) mask: u32,
    pub(crate) values: Vec<Number>,
}

impl Numbers {
    /// A numeric value.
    pub(crate) fn alone(number: Number) -> Self {
        Self {
            mask: 0,
            values: vec![number],
        }
    }

    /// Which numbers moved on the way to the other string: their place, and `Less` for growth.
    /// None if the strings differ in more than their numbers.
    ///
    /// All numbers together, the first weighing most, count as one more: so a time of day moves
    /// on where the minute starts again.
    pub(crate) fn steps_to(mut self, mut next: Self) -> Vec<(u8, Ordering)> {
        if self.mask != next.mask {
            return Vec::new();
        }
        let most = self.values.len().min(next.values.len());
        self.keep(most);
        next.keep(most);
        let pairs = (0..).zip(self.values.iter().zip(&next.values));
        let steps =
            pairs.filter_map(|(place, (before, after))| Some((place, before.step_to(*after)?)));
        let mut steps: Vec<_> = steps.collect();
        let together = steps.first().map(|&(_, step)| (ALL_NUMBERS, step));
        steps.extend(together);
        steps
    }

    /// Keeps this many numbers: those beyond are added to the last.
    pub(crate) fn keep(&mut self, most: usize) {
        fold(&mut self.values, most);
    }

    /// A number is a run of ASCII digits, with or without a point and more digits. Linear.
    pub(crate) fn in_text(text: &[u8]) -> Self {
        let mut mask = 0;
        let mut values: Vec<Number> = Vec::new();
        let mut rest = text;
        loop {
            let (before, from_number) = rest.split_at(next_digit(rest));
            mask = mix(mask, hash(1, before));
            if from_number.is_empty() {
                break;
            }
            let (number, after) = from_number.split_at(number_length(from_number));
            values.push(parse(number));
            fold(&mut values, MAX_NUMBERS);
            rest = after;
        }
        Self {
            mask: top_half(mask),
            values,
        }
    }
}

/// Adds up the numbers from the last of `most` on.
fn fold(values: &mut Vec<Number>, most: usize) {
    while values.len() > most.max(1)
        && let (Some(last), Some(before)) = (values.pop(), values.last_mut())
    {
        *before = before.plus(last);
    }
}

pub(crate) fn top_half(value: u64) -> u32 {
    (value >> 32) as u32
}

/// Where the next digit stands, or the end.
fn next_digit(text: &[u8]) -> usize {
    const STEP: usize = 32; // compared at once by vector instructions
    let is_digit = |byte: u8| byte.wrapping_sub(b'0') < 10;
    let mut rest = text;
    while let Some((chunk, after)) = rest.split_first_chunk::<STEP>() {
        let any = chunk
            .iter()
            .fold(0, |any, &byte| any | u8::from(is_digit(byte)));
        if any != 0 {
            break;
        }
        rest = after;
    }
    let digit = rest.iter().position(|&byte| is_digit(byte));
    text.len() - rest.len() + digit.unwrap_or(rest.len())
}

fn number_length(text: &[u8]) -> usize {
    let whole = digits(text);
    let Some((b'.', fraction)) = text.get(whole..).and_then(<[u8]>::split_first) else {
        return whole;
    };
    match digits(fraction) {
        0 => whole,
        length => whole + 1 + length,
    }
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn parse(number: &[u8]) -> Number {
    let is_small = number.len() <= 18 && !number.contains(&b'.');
    if is_small {
        let value = number.iter().fold(0, |value, digit| {
            value * 10 + i64::from(digit.wrapping_sub(b'0'))
        });
        return Number::Integer(value);
    }
    let value = std::str::from_utf8(number)
        .ok()
        .and_then(|text| text.parse().ok());
    Number::Float(value.unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_equal_but_for_their_numbers_share_a_mask() {
        let one = Numbers::in_text(b"page 1 of 20.5, v3.");
        let two = Numbers::in_text(b"page 12 of 7, v3.");
        assert_eq!(one.mask, two.mask);
        assert_eq!(
            one.values,
            [Number::Integer(1), Number::Float(20.5), Number::Integer(3)]
        );
        assert_ne!(one.mask, Numbers::in_text(b"page 1 of 20.5, w3.").mask);
        assert_ne!(one.mask, Numbers::in_text(b"page 1 of 20.5, v.").mask);
    }

    #[test]
    fn numbers_beyond_the_last_count_by_their_sum() {
        let numbers = Numbers::in_text(b"1 2 3 4 5 6 7 8 9 10");
        assert_eq!(numbers.values.len(), MAX_NUMBERS);
        assert_eq!(numbers.values.last(), Some(&Number::Integer(27)));
    }

    #[test]
    fn integers_are_packed_and_read_back() {
        for value in [0, 1, -1, 255, 256, -70_000, i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            Number::Integer(value).write_to(&mut bytes);
            assert_eq!(
                Number::read_from(&mut Bytes(&bytes)),
                Some(Number::Integer(value))
            );
        }
    }

    #[test]
    fn large_integers_move_by_one() {
        let before = Number::Integer(1_234_567_890_123_456_788);
        let after = Number::Integer(1_234_567_890_123_456_789);
        assert_eq!(before.step_to(after), Some(Ordering::Less));
        assert_eq!(after.step_to(after), None);
    }
}
