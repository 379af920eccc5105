//! What must hold for all arguments: signatures are equal exactly when the arguments are.

#![allow(clippy::unwrap_used, reason = "a test fails where it panics")]

use std::fmt::Write;

use proptest::prelude::*;
use serde_json::{Map, Number, Value};
use turnwarden_signature::{Canon, MAX_DEPTH, Signature, Token, compare_keys, signature_of_json};

/// Any JSON value, with keys and strings in which orders and escapes can differ.
fn value() -> impl Strategy<Value = Value> {
    let text = "[a\"\\\\/\u{1}\u{7f}é\u{fb33}😀]{0,4}|[a-z]{10,40}";
    let number = prop_oneof![
        any::<i32>().prop_map(|value| value.to_string()),
        "-?[1-9][0-9]{0,45}",
        any::<f64>()
            .prop_filter("JSON has no others", |value| value.is_finite())
            .prop_map(|value| format!("{value:e}")),
        "-?[0-9]\\.[0-9]{1,3}",
    ]
    .prop_map(|text| Value::Number(text.parse::<Number>().unwrap()));
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number,
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((text, inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// How a value is written: each choice is taken from the bytes in turn.
struct Style<'a> {
    choices: std::iter::Cycle<std::slice::Iter<'a, u8>>,
}

impl Style<'_> {
    fn choose(&mut self, options: usize) -> usize {
        usize::from(*self.choices.next().unwrap()) % options
    }

    fn space(&mut self) -> &'static str {
        ["", "", " ", "\n\t", "\r\n  "][self.choose(5)]
    }

    fn text(&mut self, text: &str) -> String {
        let mut written = String::from('"');
        for character in text.chars() {
            let must_escape = matches!(character, '"' | '\\' | '\0'..='\u{1f}');
            if must_escape || self.choose(4) == 0 {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(written, "\\u{unit:04x}").unwrap();
                }
            } else {
                written.push(character);
            }
        }
        written + "\""
    }

    fn value(&mut self, value: &Value) -> String {
        let space = self.space();
        let written = match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => {
                let items: Vec<_> = items.iter().map(|item| self.value(item)).collect();
                format!("[{}{}]", items.join(","), self.space())
            }
            Value::Object(members) => {
                let mut left: Vec<_> = members.iter().collect();
                let mut written = Vec::new();
                while !left.is_empty() {
                    let (key, value) = left.swap_remove(self.choose(left.len()));
                    let (before, key, after) = (self.space(), self.text(key), self.space());
                    written.push(format!("{before}{key}{after}:{}", self.value(value)));
                }
                format!("{{{}{}}}", written.join(","), self.space())
            }
            scalar => scalar.to_string(),
        };
        format!("{space}{written}{}", self.space())
    }
}

/// Equal for equal values: the definition of the canon, on values.
fn naive(value: &Value) -> Value {
    match value {
        Value::Number(number) => {
            Value::String(format!("number {}", naive_number(&number.to_string())))
        }
        Value::Array(items) => items.iter().map(naive).collect(),
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|(left, _), (right, _)| left.encode_utf16().cmp(right.encode_utf16()));
            Value::Object(
                members
                    .into_iter()
                    .map(|(key, value)| (key.clone(), naive(value)))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}

fn naive_number(text: &str) -> String {
    if !text.contains(['.', 'e', 'E']) {
        return if text == "-0" {
            "0".to_owned()
        } else {
            text.to_owned()
        };
    }
    let float: f64 = text.parse().unwrap();
    if float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0 {
        return format!("{}", float + 0.0); // no negative zero
    }
    format!("float {:x}", float.to_bits())
}

fn signature(text: &str) -> Signature {
    signature_of_json("tool", text)
}

proptest! {
    #[test]
    fn formatting_and_key_order_do_not_count(
        value in value(),
        one in proptest::collection::vec(any::<u8>(), 1..50),
        other in proptest::collection::vec(any::<u8>(), 1..50),
    ) {
        let [one, other] = [&one, &other].map(|choices| {
            Style { choices: choices.iter().cycle() }.value(&value)
        });
        prop_assert_eq!(signature(&one), signature(&other), "{} {}", one, other);
    }

    #[test]
    fn signatures_are_equal_exactly_when_values_are(left in value(), right in value()) {
        // A small change is more telling than two unrelated values.
        let changed = change(&left);
        for other in [&right, &changed] {
            let is_equal = naive(&left) == naive(other);
            // In a list: null alone would be no arguments.
            let [one, two] = [&left, other].map(|value| signature(&format!("[{value}]")));
            prop_assert_eq!(one == two, is_equal, "{} {}", left, other);
        }
    }

    #[test]
    fn the_canon_reads_back_as_what_was_written(value in value()) {
        let canon = Canon::from_json(&value.to_string()).unwrap();
        let mut copy = Canon::default();
        for token in canon.value().tokens() {
            match token {
                Token::Null => copy.null(),
                Token::Boolean(value) => copy.boolean(value),
                Token::Integer(value) => copy.integer(value),
                Token::BigInteger { negative, magnitude } => copy.big_integer(negative, magnitude),
                Token::Digits(text) => copy.decimal(text),
                Token::Float(value) => copy.float(value),
                Token::String(text) => copy.string(text),
                Token::BeginArray => copy.begin_array(),
                Token::EndArray => copy.end_array(),
                Token::BeginObject => copy.begin_object(),
                Token::EndObject => copy.end_object(),
            }
        }
        prop_assert_eq!(canon, copy);
    }

    #[test]
    fn members_come_in_key_order_and_are_found_by_key(members in proptest::collection::vec(("[ab😀\u{fb33}]{0,9}", any::<i64>()), 0..40)) {
        let object: Map<String, Value> = members.into_iter().map(|(key, value)| (key, value.into())).collect();
        let canon = Canon::from_json(&Value::Object(object.clone()).to_string()).unwrap();
        let keys: Vec<_> = canon.value().members().map(|(key, _)| key).collect();
        prop_assert!(keys.is_sorted_by(|left, right| compare_keys(left, right).is_lt()));
        prop_assert_eq!(keys.len(), object.len());
        for (key, value) in &object {
            let found = canon.value().get(key).and_then(turnwarden_signature::Value::as_i64);
            prop_assert_eq!(found, value.as_i64());
        }
    }

    #[test]
    fn any_text_has_a_signature(text in "[\\[\\]{}\",:0-9eE.+\\-\\\\u trufalsn]{0,60}|\\PC{0,40}") {
        let is_json = Canon::from_json(&text).is_some();
        let by_serde = serde_json::from_str::<Value>(&text).is_ok();
        prop_assert!(!by_serde || is_json, "{}", text);
        prop_assert_eq!(signature(&text), signature(&text));
    }

    #[test]
    fn damaged_canons_are_read_without_harm(value in value(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = Canon::from_json(&value.to_string()).unwrap().as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let damaged = turnwarden_signature::Value::from_bytes(&bytes);
        prop_assert!(damaged.tokens().count() <= bytes.len());
        prop_assert!(damaged.members().count() <= bytes.len());
        prop_assert!(damaged.items().count() <= bytes.len());
    }

    #[test]
    fn ignored_arguments_do_not_count(value in value(), nonce in any::<u32>()) {
        let with = |nonce: Option<u32>| {
            let mut object = Map::new();
            object.insert("a".to_owned(), value.clone());
            object.extend(nonce.map(|nonce| ("nonce".to_owned(), nonce.into())));
            Canon::from_json(&Value::Object(object).to_string()).unwrap()
        };
        let masked = Signature::of_some(b"tool", with(Some(nonce)).value(), |key| key != b"nonce");
        prop_assert_eq!(masked, Signature::of("tool", &with(None)));
        prop_assert_ne!(masked, Signature::of("tool", &with(Some(nonce))));
    }
}

/// The value with one leaf changed, where it has any.
fn change(value: &Value) -> Value {
    match value {
        Value::Null => Value::from(0),
        Value::Bool(value) => Value::from(!value),
        Value::Number(_) => Value::from("1"),
        Value::String(text) => Value::from(format!("{text}!")),
        Value::Array(items) => match items.split_last() {
            Some((last, rest)) => rest.iter().cloned().chain([change(last)]).collect(),
            None => Value::Object(Map::new()),
        },
        Value::Object(members) => {
            let mut changed = members.clone();
            match changed.values_mut().last() {
                Some(last) => *last = change(last),
                None => return Value::Array(Vec::new()),
            }
            Value::Object(changed)
        }
    }
}

#[test]
fn display_and_digits_agree() {
    let signature = signature_of_json("tool", "{}");
    let digits = signature.to_hex();
    assert_eq!(signature.to_string().as_bytes(), digits);
    assert_eq!(Signature::from_bytes(signature.to_bytes()), signature);
    let all = Signature::from_bytes([
        0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xf0, 0x9a, 0xaf, 0, 1, 2, 3, 255,
    ]);
    assert_eq!(&all.to_hex(), b"0123456789abcdeff09aaf00010203ff");
}

#[test]
fn nesting_has_a_limit_and_no_recursion() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(Canon::from_json(&nested(MAX_DEPTH)).is_some());
    assert!(Canon::from_json(&nested(MAX_DEPTH + 1)).is_none());
    let too_deep = nested(1_000_000);
    let mut as_string = Canon::default();
    as_string.string(too_deep.as_bytes());
    assert_eq!(Canon::from_arguments_text(&too_deep), as_string);
}

#[test]
fn unordered_objects_at_every_depth_are_put_in_order() {
    let depth = 10_000;
    let unordered = "{\"b\":".repeat(depth) + "0" + &",\"a\":0}".repeat(depth);
    let ordered = "{\"a\":0,\"b\":".repeat(depth) + "0" + &"}".repeat(depth);
    assert_eq!(signature(&unordered), signature(&ordered));
}

#[test]
fn integers_of_any_length_are_told_apart() {
    for digits in [18, 19, 20, 40, 4300, 4301, 100_000] {
        let number = "7".repeat(digits);
        let neighbour = format!("{}6", &number[1..]);
        assert_ne!(signature(&number), signature(&neighbour), "{digits} digits");
        assert_ne!(signature(&number), signature(&format!("-{number}")));
        assert_eq!(signature(&number), signature(&format!(" {number} ")));
    }
}
