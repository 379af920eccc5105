//! Sketches against a naive similarity over whole argument trees.

#![allow(clippy::unwrap_used, reason = "a test fails where it panics")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use turnwarden_signature::Canon;
use turnwarden_similarity::{MAX_SKETCH_BYTES, Sketch, cursor};

fn sketch(value: &Value) -> Sketch {
    Sketch::of(Canon::from_json(&value.to_string()).unwrap().value())
}

fn similarity(left: &Value, right: &Value) -> f64 {
    sketch(left).similarity(&sketch(right))
}

/// The definition, word by word: leaves by path, weights, Indel.
fn naive(left: &Value, right: &Value) -> f64 {
    let (left, right) = (leaves(left), leaves(right));
    let paths: std::collections::BTreeSet<_> = left.keys().chain(right.keys()).collect();
    let (mut alike, mut total) = (0.0, 0.0);
    for path in paths {
        let (l, r) = (left.get(path), right.get(path));
        let weight = [l, r].into_iter().flatten().map(weight).fold(0.0, f64::max);
        total += weight;
        if let (Some(l), Some(r)) = (l, r) {
            alike += weight * leaf_similarity(l, r);
        }
    }
    if total == 0.0 { 1.0 } else { alike / total }
}

fn leaves(value: &Value) -> BTreeMap<String, Value> {
    fn walk(path: &str, value: &Value, leaves: &mut BTreeMap<String, Value>) {
        match value {
            Value::Object(members) if !members.is_empty() => members
                .iter()
                .for_each(|(key, value)| walk(&format!("{path}/{key:?}"), value, leaves)),
            Value::Array(items) if !items.is_empty() => items
                .iter()
                .enumerate()
                .for_each(|(index, value)| walk(&format!("{path}/{index}"), value, leaves)),
            leaf => {
                leaves.insert(path.to_owned(), leaf.clone());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk("", value, &mut found);
    found
}

#[allow(clippy::cast_precision_loss)]
fn weight(leaf: &Value) -> f64 {
    let length = match leaf {
        Value::String(text) => text.chars().count(),
        other => other.to_string().len(),
    };
    (2.0 + length as f64).log2()
}

fn leaf_similarity(left: &Value, right: &Value) -> f64 {
    match (left, right) {
        (Value::String(left), Value::String(right)) => indel(left, right),
        _ => f64::from(u8::from(left == right)),
    }
}

/// `1 - Indel distance / total length` by the table of dynamic programming.
#[allow(clippy::cast_precision_loss)]
fn indel(left: &str, right: &str) -> f64 {
    let right: Vec<char> = right.chars().collect();
    let mut row = vec![0_usize; right.len() + 1];
    for l in left.chars() {
        let mut diagonal = 0;
        for (at, &r) in right.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if l == r {
                diagonal + 1
            } else {
                above.max(row[at])
            };
            diagonal = above;
        }
    }
    let total = left.chars().count() + right.len();
    if total == 0 {
        1.0
    } else {
        2.0 * row[right.len()] as f64 / total as f64
    }
}

/// Trees of up to a few leaves with short strings: all of them are kept whole.
fn small_tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-20_i64..2000).prop_map(Value::from),
        (0_u8..4).prop_map(|quarters| json!(0.25 + f64::from(quarters))),
        "[ab é0-9]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map("[abc]", inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Trees of any size: many leaves, long strings.
fn large_tree() -> impl Strategy<Value = Value> {
    let text = proptest::collection::vec("[a-f]{1,5}|[0-9]{1,3}|日本", 0..200)
        .prop_map(|words| Value::from(words.join(" ")));
    let leaf = prop_oneof![small_tree(), text];
    proptest::collection::btree_map("[a-z]{1,2}", leaf, 0..60)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

proptest! {
    #[test]
    fn small_trees_have_the_similarity_of_the_definition(left in small_tree(), right in small_tree()) {
        let found = similarity(&left, &right);
        prop_assert!((found - naive(&left, &right)).abs() < 1e-9, "{found}");
    }

    #[test]
    fn similarity_is_symmetric_and_within_bounds(left in large_tree(), right in large_tree()) {
        let (one, other) = (sketch(&left), sketch(&right));
        let found = one.similarity(&other);
        prop_assert!((0.0..=1.0).contains(&found));
        prop_assert!((found - other.similarity(&one)).abs() < 1e-12);
        prop_assert!(one.as_bytes().len() <= MAX_SKETCH_BYTES);
    }

    #[test]
    fn similarity_is_one_exactly_for_equal_trees(left in large_tree(), right in large_tree()) {
        prop_assert!(similarity(&left, &left.clone()) >= 1.0);
        prop_assert_eq!(similarity(&left, &right) >= 1.0, left == right);
    }

    #[test]
    fn a_sketch_survives_its_bytes(tree in large_tree()) {
        let original = sketch(&tree);
        prop_assert_eq!(Sketch::from_bytes(original.as_bytes()), Some(original));
    }

    #[test]
    fn damaged_bytes_are_refused_or_read(tree in large_tree(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let original = sketch(&tree);
        let mut bytes = original.as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Some(damaged) = Sketch::from_bytes(&bytes) {
            prop_assert!((0.0..=1.0).contains(&damaged.similarity(&original)));
            let _moves = cursor(&[&damaged, &original]);
        }
    }
}
