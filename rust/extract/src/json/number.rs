//! What a bare token is worth: a number, a literal of some language, or text.

/// What a bare token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    /// A number of strict JSON, to be kept as written.
    Number,
    /// A number in another notation, as JSON.
    Rewritten(String),
    /// A number that no finite double holds.
    OutOfRange,
    /// A literal: what it is in JSON, and whether it was written so.
    Literal(&'static str, bool),
    /// `undefined`, NaN or an infinity.
    NonFinite,
    /// Anything else.
    Text,
}

/// Reads a trimmed bare token.
pub(super) fn scalar(token: &str) -> Scalar {
    match token.as_bytes().first() {
        Some(b'0'..=b'9' | b'-' | b'+' | b'.') => number(token),
        Some(_) => literal(token),
        None => Scalar::Text,
    }
}

fn literal(token: &str) -> Scalar {
    match token {
        "true" => Scalar::Literal("true", true),
        "false" => Scalar::Literal("false", true),
        "null" => Scalar::Literal("null", true),
        "True" | "TRUE" => Scalar::Literal("true", false),
        "False" | "FALSE" => Scalar::Literal("false", false),
        "None" | "Null" | "NULL" => Scalar::Literal("null", false),
        "undefined" | "NaN" | "nan" | "Infinity" | "inf" => Scalar::NonFinite,
        _ => Scalar::Text,
    }
}

/// Literals that a token cut off by the end of the text may have begun.
pub(super) fn is_unfinished(token: &str) -> bool {
    const LITERALS: [&str; 9] = [
        "true",
        "false",
        "null",
        "True",
        "False",
        "None",
        "undefined",
        "NaN",
        "Infinity",
    ];
    let bare = token.strip_prefix(['-', '+']).unwrap_or(token);
    if LITERALS
        .iter()
        .any(|literal| literal.len() > bare.len() && literal.starts_with(bare))
    {
        return true;
    }
    // An exponent that has not got its digits yet.
    let mantissa = bare.trim_end_matches(['+', '-']).strip_suffix(['e', 'E']);
    mantissa.is_some_and(|mantissa| matches!(number(mantissa), Scalar::Number))
}

fn number(token: &str) -> Scalar {
    if matches!(token, "-Infinity" | "+Infinity" | "-inf" | "+inf" | "-NaN") {
        return Scalar::NonFinite;
    }
    match Parts::of(token) {
        Some(parts) => parts.scalar(token),
        None => Scalar::Text,
    }
}

/// A decimal number taken apart: sign, integer digits, fraction with its dot, exponent.
struct Parts<'a> {
    sign: &'a str,
    integer: &'a str,
    fraction: &'a str,
    exponent: &'a str,
}

impl<'a> Parts<'a> {
    fn of(token: &'a str) -> Option<Self> {
        let (sign, rest) = token.split_at(usize::from(token.starts_with(['-', '+'])));
        let (integer, rest) = split_digits(rest);
        let (fraction, rest) = match rest.strip_prefix('.') {
            Some(after) => rest.split_at(1 + split_digits(after).0.len()),
            None => ("", rest),
        };
        let exponent = rest;
        if !exponent.is_empty() {
            let digits = exponent.strip_prefix(['e', 'E'])?;
            let digits = digits.strip_prefix(['-', '+']).unwrap_or(digits);
            if digits.is_empty() || !split_digits(digits).1.is_empty() {
                return None;
            }
        }
        let digits = integer.len() + fraction.len().saturating_sub(1);
        let leading_zero = integer.len() > 1 && integer.starts_with('0');
        (digits > 0 && !leading_zero).then_some(Self {
            sign,
            integer,
            fraction,
            exponent,
        })
    }

    fn scalar(&self, token: &str) -> Scalar {
        if !self.in_range(token) {
            return Scalar::OutOfRange;
        }
        let strict = self.sign != "+" && !self.integer.is_empty() && self.fraction != ".";
        if strict {
            return Scalar::Number;
        }
        let sign = if self.sign == "-" { "-" } else { "" };
        let integer = if self.integer.is_empty() {
            "0"
        } else {
            self.integer
        };
        let fraction = if self.fraction == "." {
            ".0"
        } else {
            self.fraction
        };
        Scalar::Rewritten(format!("{sign}{integer}{fraction}{}", self.exponent))
    }

    /// Integers are exact at any size; anything else must fit a double.
    fn in_range(&self, token: &str) -> bool {
        if self.exponent.is_empty() && (self.fraction.len() < 2 || self.integer.len() < 300) {
            return true;
        }
        token.parse::<f64>().is_ok_and(f64::is_finite)
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text
        .bytes()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits() {
        for token in ["0", "-0", "12", "1.5E+3", "-2e-2", "92233720368547758089"] {
            assert_eq!(scalar(token), Scalar::Number, "{token}");
        }
    }

    #[test]
    fn foreign_notations_are_rewritten() {
        for (token, json) in [
            ("+5", "5"),
            (".5", "0.5"),
            ("-.5", "-0.5"),
            ("2.", "2.0"),
            ("2.e3", "2.0e3"),
        ] {
            assert_eq!(scalar(token), Scalar::Rewritten(json.into()), "{token}");
        }
    }

    #[test]
    fn what_a_number_cannot_hold_is_text() {
        for token in [
            "01234",
            "1/3",
            "12kg",
            "1_000",
            "0x1F",
            "1.2.3",
            "-",
            ".",
            "2024-01-02",
        ] {
            assert_eq!(scalar(token), Scalar::Text, "{token}");
        }
    }

    #[test]
    fn only_numbers_without_a_finite_double_are_out_of_range() {
        assert_eq!(scalar("1e400"), Scalar::OutOfRange);
        assert_eq!(scalar("-1e400"), Scalar::OutOfRange);
        assert_eq!(scalar("1e308"), Scalar::Number);
        assert_eq!(scalar("1e-400"), Scalar::Number);
        assert_eq!(scalar(&"9".repeat(5000)), Scalar::Number);
        assert_eq!(
            scalar(&format!("{}.5", "9".repeat(400))),
            Scalar::OutOfRange
        );
    }
}
