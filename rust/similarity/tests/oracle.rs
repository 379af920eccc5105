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
    let text = proptest::collection::vec("[a-f]{1,5}|[0-9]{1,3}|日本", 0..80)
        .prop_map(|words| Value::from(words.join(" ")));
    let leaf = prop_oneof![small_tree(), text];
    proptest::collection::btree_map("[a-z]{1,2}", leaf, 0..40)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

proptest! {
    #[test]
    fn small_trees_have_the_similarity_of_the_definition(left in small_tree(), right in small_tree()) {
        let found = similarity(&left, &right);
        prop_assert!((found - naive(&left, &right)).abs() < 1e-9, "{found}");
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

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

/// A prompt as image models get them.
const PROMPT: &str = "a portrait of an old fisherman in heavy rain, holding a lantern, warm light, \
    cinematic mood, oil painting, muted colours, soft shadows, harbour in the background";

#[test]
fn prompts_one_word_apart_are_similar() {
    let words: Vec<&str> = PROMPT.split(' ').collect();
    for place in 0..words.len() {
        let mut other = words.clone();
        other[place] = "children";
        for length in [10, 14, 20, words.len()]
            .into_iter()
            .filter(|&length| length > place)
        {
            let prompts = [&words, &other].map(|words| words[..length].join(" "));
            let is_long = prompts[0].len() > 100;
            let [one, two] = prompts.map(|prompt| json!({"prompt": prompt, "n": 1}));
            let found = similarity(&one, &two);
            assert!(found >= if is_long { 0.9 } else { 0.8 }, "{found} {two}");
        }
    }
}

#[test]
fn other_prompts_are_not_similar() {
    let other = "three red apples on a wooden table beside a window, morning sun, still life, \
        photograph with shallow depth of field, high contrast, no people, plain background";
    assert!(similarity(&json!({"prompt": PROMPT}), &json!({"prompt": other})) < 0.6);
}

#[test]
fn long_strings_have_about_the_similarity_of_their_characters() {
    let words = |from: u64| {
        let numbers = (0..300_u64).map(move |index| (index + from) * 2_654_435_761 % 9_973);
        numbers
            .map(|number| format!("word{number:x} "))
            .collect::<Vec<_>>()
    };
    for changes in [0, 3, 10, 30, 60] {
        let one = words(1);
        let mut other = one.clone();
        for change in 0..changes {
            other[change * 5] = format!("other{change} ");
        }
        let [one, other] = [one.concat(), other.concat()];
        let found = similarity(&json!({"text": one}), &json!({"text": other}));
        let exact = indel(&one, &other);
        assert!((found - exact).abs() < 0.08, "{found} for {exact}");
    }
}

#[test]
fn texts_around_the_limit_of_exact_comparison_are_compared_alike() {
    let text = PROMPT.repeat(2);
    let [exact, estimated] =
        [126, 130].map(|length| similarity(&json!(text[..length]), &json!(text[4..length])));
    let across = similarity(&json!(text[..130]), &json!(text[4..126]));
    assert!((exact - estimated).abs() < 0.05, "{exact} {estimated}");
    assert!((across - exact).abs() < 0.05, "{across} {exact}");
}

#[test]
fn a_leaf_of_the_top_level_counts_among_many_deep_ones() {
    let rows: Vec<Value> = (0..500)
        .map(|row| json!({"id": row, "name": format!("row {row}")}))
        .collect();
    let call = |page: i64| json!({"rows": rows, "page": page});
    let (one, two) = (sketch(&call(1)), sketch(&call(2)));
    assert!(one.similarity(&two) > 0.99 && one.similarity(&two) < 1.0);
    assert!(cursor(&[&one, &two, &sketch(&call(3))]));
}

#[test]
fn half_of_many_leaves_is_about_half() {
    let call = |changed: usize| {
        let rows: Vec<Value> = (0..1000)
            .map(|row| {
                json!(if row < changed {
                    row + 5000
                } else {
                    row + 1000
                })
            })
            .collect();
        json!({"rows": rows})
    };
    let found = similarity(&call(0), &call(500));
    assert!((found - 0.5).abs() < 0.25, "{found}");
}

#[test]
fn cursors_are_numbers_that_move_one_way() {
    let is_cursor = |calls: &[Value]| {
        let sketches: Vec<Sketch> = calls.iter().map(sketch).collect();
        cursor(&sketches.iter().collect::<Vec<_>>())
    };
    let long = |number: i32| json!({"sql": format!("{PROMPT} OFFSET {number}")});
    for moving in [
        [1, 2, 3].map(|page| json!({"q": "tea", "page": page})),
        [30, 20, 10].map(|left| json!({"q": "tea", "left": left})),
        [1, 2, 3].map(|page| json!({"url": format!("/items?page={page}&size=50")})),
        [0.5, 0.25, 0.125].map(|rate| json!({"rate": rate})),
        [98, 99, 100].map(long),
        [7, 8, 9].map(|last| json!({"id": 1_234_567_890_123_456_700_i64 + last})),
        ["2024-05-01T10:59", "2024-05-01T11:00", "2024-05-01T11:01"]
            .map(|at| json!([{"since": at}])),
    ] {
        assert!(is_cursor(&moving), "{moving:?}");
    }
    for still in [
        [1, 1, 1].map(|page| json!({"q": "tea", "page": page})),
        [1, 2, 1].map(|page| json!({"q": "tea", "page": page})),
        [1, 2, 2].map(|page| json!({"q": "tea", "page": page})),
        ["1", "2", "three"].map(|page| json!({"page": page})),
        [json!({"a": 1}), json!({"b": 2}), json!({"c": 3})],
        [1, 2, 1].map(long),
        ["a 1", "b 2", "c 3"].map(|text| json!({"text": text})),
        ["10:59", "11:00", "10:58"].map(|text| json!({"text": text})),
    ] {
        assert!(!is_cursor(&still), "{still:?}");
    }
    assert!(!is_cursor(&[json!({"page": 1})]));
}

#[test]
fn small_arguments_have_small_sketches() {
    for (arguments, most) in [
        (json!({}), 8),
        (json!({"query": "weather in Oslo", "page": 2}), 32),
        (
            json!({"path": "src/main.rs", "offset": 100, "limit": 50}),
            48,
        ),
        (json!({"prompt": PROMPT.repeat(100)}), 260),
    ] {
        let size = sketch(&arguments).as_bytes().len();
        assert!(size <= most, "{size} bytes for {arguments}");
    }
}
