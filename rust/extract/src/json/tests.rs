//! The shared vectors, whole and in pieces, and the laws of the reader.

use super::*;
use serde_json::Value;

/// Reads `text` in the given pieces.
fn read_pieces(text: &str, options: &ReaderOptions, cuts: &[usize]) -> (Status, Reader) {
    let mut reader = Reader::new(options.clone(), 0);
    let mut settled = String::new();
    for &cut in cuts {
        let status = reader.read(&text[..cut], false);
        assert!(
            reader.output().starts_with(&settled),
            "settled output changed: {settled:?} is no prefix of {:?} in {text:?}",
            reader.output(),
        );
        settled = reader.output()[..reader.settled()].to_owned();
        if status != Status::NeedMore {
            break;
        }
    }
    let status = reader.read(text, true);
    assert!(
        reader.output().starts_with(&settled),
        "settled output changed in {text:?}"
    );
    (status, reader)
}

fn document() -> ReaderOptions {
    ReaderOptions {
        mode: Mode::Document,
        ..ReaderOptions::default()
    }
}

fn boundaries(text: &str) -> Vec<usize> {
    (1..text.len())
        .filter(|&at| text.is_char_boundary(at))
        .collect()
}

/// Compares as Python does, where `1.0 == 1` and the last of equal keys wins.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            let (left, right) = (left.to_string(), right.to_string());
            left == right
                || left.parse::<f64>().unwrap().to_bits() == right.parse::<f64>().unwrap().to_bits()
                    && (left.contains(['.', 'e', 'E']) || right.contains(['.', 'e', 'E']))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| same(l, r))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, l)| right.get(key).is_some_and(|r| same(l, r)))
        }
        _ => left == right,
    }
}

#[test]
fn vectors_heal_to_what_they_say() {
    let mut failures = Vec::new();
    for file in ["json_repair.jsonl", "json_repair_more.jsonl"] {
        let path = format!("{}/../../tests/vectors/{file}", env!("CARGO_MANIFEST_DIR"));
        let Ok(rows) = std::fs::read_to_string(&path) else {
            continue;
        };
        for row in rows.lines() {
            let row: Value = serde_json::from_str(row).unwrap();
            let input = row["input"].as_str().unwrap();
            let healed = repair(input, &ReaderOptions::default());
            let got = match &healed {
                Ok(healed) => serde_json::from_str(&healed.json).unwrap_or_else(|error| {
                    panic!("{}: invalid output {:?}: {error}", row["id"], healed.json)
                }),
                Err(_) => Value::Null,
            };
            let accepted = row["accept"].as_array().into_iter().flatten();
            if !accepted
                .chain([&row["expect"]])
                .any(|right| same(right, &got))
            {
                failures.push(format!(
                    "{}: {input:?}\n   got {healed:?}\n  want {}",
                    row["id"], row["expect"]
                ));
            }
            check_pieces(input, &healed);
        }
    }
    assert!(
        failures.is_empty(),
        "{} rows:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

fn check_pieces(input: &str, healed: &Result<Healed, Error>) {
    let all = boundaries(input);
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for round in 0..30 {
        let cuts: Vec<usize> = all
            .iter()
            .copied()
            .filter(|_| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                round == 0 || random.is_multiple_of(5)
            })
            .collect();
        let (status, reader) = read_pieces(input, &document(), &cuts);
        match (status, healed) {
            (Status::Done { complete, .. }, Ok(healed)) => {
                assert_eq!(reader.output(), healed.json, "{input:?} cut at {cuts:?}");
                assert_eq!(
                    reader.repairs(),
                    healed.repairs,
                    "{input:?} cut at {cuts:?}"
                );
                assert_eq!(complete, healed.complete, "{input:?} cut at {cuts:?}");
            }
            (Status::Failed(error), Err(expected)) => assert_eq!(error, *expected, "{input:?}"),
            other => panic!("{input:?} cut at {cuts:?}: {other:?}"),
        }
    }
}

use proptest::prelude::*;

/// Pieces of which broken JSON is made.
fn fragment() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        "\"",
        "'",
        "`",
        "```",
        "```json\n",
        "\n```\n",
        ",",
        ":",
        ";",
        " ",
        "\n",
        "\t",
        "\\",
        "\\\"",
        "\\n",
        "\\u00e9",
        "\\ud83d",
        "\\ude00",
        "\\u12",
        "\\d",
        "a",
        "key",
        "word ",
        "true",
        "None",
        "NaN",
        "nul",
        "1",
        "-2.5e3",
        "01",
        "1,250",
        "+",
        "...",
        "//",
        "/*",
        "*/",
        "#",
        "# ",
        "<think>",
        "</think>",
        "</tool_call>",
        "\u{201c}",
        "\u{201d}",
        "\u{ff0c}",
        "\u{ff1a}",
        "\u{ff5b}",
        "\u{a0}",
        "\u{feff}",
        "C:\\",
        "ObjectId(",
        "é",
        "𝄞",
        "\"a\": ",
        "\"b\": \"x\"",
        ", \"c\": 1",
        "{\"d\": ",
        "[\"e\"",
        "\u{300c}",
        "\u{300d}",
        "=",
        "\"\"\"",
        "''",
        "u'",
        ".",
        "\u{1}",
        "\r\n",
    ])
}

fn fragments() -> impl Strategy<Value = String> {
    proptest::collection::vec(fragment(), 0..24).prop_map(|parts| parts.concat())
}

fn value_options() -> ReaderOptions {
    ReaderOptions {
        in_fence: true,
        closers: std::sync::Arc::from([
            Closer::anywhere("</tool_call>"),
            Closer::at_line_start("```"),
        ]),
        ..ReaderOptions::default()
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("finite", |f| f.is_finite())
            .prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        fragments().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((fragments(), inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// Writes valid JSON with white space and escapes chosen by `seed`, and what must come back.
fn write_json(value: &Value, seed: &mut u64, text: &mut String, compact: &mut String) {
    let mut dice = |sides: u64| {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*seed >> 33) % sides
    };
    let spaces = ["", "", " ", "\n", "\t ", "\r\n  "];
    let mut space = || spaces[usize::try_from(dice(6)).unwrap()];
    let both = |text: &mut String, compact: &mut String, piece: &str| {
        text.push_str(piece);
        compact.push_str(piece);
    };
    text.push_str(space());
    match value {
        Value::Array(items) => {
            both(text, compact, "[");
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    both(text, compact, ",");
                }
                write_json(item, seed, text, compact);
            }
            both(text, compact, "]");
        }
        Value::Object(entries) => {
            both(text, compact, "{");
            for (index, (key, item)) in entries.iter().enumerate() {
                if index > 0 {
                    both(text, compact, ",");
                }
                write_json(&Value::from(key.as_str()), seed, text, compact);
                both(text, compact, ":");
                write_json(item, seed, text, compact);
            }
            both(text, compact, "}");
        }
        Value::String(string) => {
            let mut literal = serde_json::to_string(string).unwrap();
            if space() == " " {
                literal = literal
                    .replace('/', "\\/")
                    .replace('é', "\\u00E9")
                    .replace('𝄞', "\\ud834\\udd1e");
            }
            both(text, compact, &literal);
        }
        scalar => both(text, compact, &scalar.to_string()),
    }
    let mut dice = |sides: u64| {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*seed >> 33) % sides
    };
    text.push_str(spaces[usize::try_from(dice(6)).unwrap()]);
}

fn cuts_of(text: &str, places: &[prop::sample::Index]) -> Vec<usize> {
    let all = boundaries(text);
    if all.is_empty() {
        return Vec::new();
    }
    let mut cuts: Vec<usize> = places.iter().map(|place| *place.get(&all)).collect();
    cuts.sort_unstable();
    cuts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn valid_json_comes_back_as_written(value in json_value(), seed in any::<u64>()) {
        let (mut text, mut compact) = (String::new(), String::new());
        write_json(&value, &mut seed.clone(), &mut text, &mut compact);
        prop_assert!(serde_json::from_str::<Value>(&text).is_ok());
        let healed = repair(&text, &ReaderOptions::default()).unwrap();
        prop_assert_eq!(&healed.json, &compact);
        prop_assert_eq!(healed.repairs, vec![]);
        let mut reader = Reader::new(value_options(), 0);
        let status = reader.read(&text, true);
        prop_assert!(matches!(status, Status::Done { complete: true, .. }), "{:?}", status);
        prop_assert_eq!(reader.output(), &compact);
        prop_assert_eq!(reader.repairs(), &[]);
    }

    #[test]
    fn every_split_of_a_document_equals_the_whole(
        text in fragments(),
        places in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let healed = repair(&text, &ReaderOptions::default());
        for cuts in [cuts_of(&text, &places), boundaries(&text)] {
            let (status, reader) = read_pieces(&text, &document(), &cuts);
            match (status, &healed) {
                (Status::Done { complete, .. }, Ok(healed)) => {
                    prop_assert_eq!(reader.output(), &healed.json);
                    prop_assert_eq!(reader.repairs(), &healed.repairs);
                    prop_assert_eq!(complete, healed.complete);
                }
                (Status::Failed(error), Err(expected)) => prop_assert_eq!(error, *expected),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn every_split_of_a_value_equals_the_whole(
        text in fragments(),
        places in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let (status, whole) = read_pieces(&text, &value_options(), &[]);
        for cuts in [cuts_of(&text, &places), boundaries(&text)] {
            let (pieces_status, pieces) = read_pieces(&text, &value_options(), &cuts);
            prop_assert_eq!(status, pieces_status);
            if matches!(status, Status::Done { .. }) {
                prop_assert_eq!(whole.output(), pieces.output());
                prop_assert_eq!(whole.repairs(), pieces.repairs());
                prop_assert_eq!(whole.members(), pieces.members());
                prop_assert_eq!(whole.valueless_keys(), pieces.valueless_keys());
            }
        }
    }

    #[test]
    fn output_is_valid_and_stays_as_it_is_when_healed_again(text in fragments()) {
        if let Ok(healed) = repair(&text, &ReaderOptions::default()) {
            let parsed = serde_json::from_str::<Value>(&healed.json);
            prop_assert!(parsed.is_ok(), "{:?}", healed.json);
            let again = repair(&healed.json, &ReaderOptions::default()).unwrap();
            prop_assert_eq!(&again.json, &healed.json);
            prop_assert_eq!(again.repairs, vec![]);
        }
        let (status, reader) = read_pieces(&text, &value_options(), &[]);
        if let Status::Done { end, .. } = status {
            prop_assert!(end <= text.len());
            let parsed = serde_json::from_str::<Value>(reader.output());
            prop_assert!(parsed.is_ok(), "{:?}", reader.output());
        }
    }

    #[test]
    fn members_are_the_values_at_their_spans(text in fragments()) {
        let (status, reader) = read_pieces(&text, &value_options(), &[]);
        if matches!(status, Status::Done { .. }) {
            check_members(&reader, &text);
        }
    }
}

/// Every member's span holds a JSON value of its kind, and the count at depth 1 is right.
fn check_members(reader: &Reader, text: &str) {
    let root = reader.output();
    for member in reader.members() {
        assert!(member.closed, "{member:?} of {root:?} from {text:?}");
        let value: Value = serde_json::from_str(&root[member.output.clone()])
            .unwrap_or_else(|error| panic!("{member:?} of {root:?} from {text:?}: {error}"));
        let kind = match value {
            Value::Null => Kind::Null,
            Value::Bool(_) => Kind::Boolean,
            Value::Number(_) => Kind::Number,
            Value::String(_) => Kind::String,
            Value::Array(_) => Kind::Array,
            Value::Object(_) => Kind::Object,
        };
        assert_eq!(kind, member.kind, "{root:?} from {text:?}");
        assert!(member.text.start <= member.text.end && member.text.end <= text.len());
        if !member.key.is_empty() {
            serde_json::from_str::<String>(&root[member.key.clone()]).unwrap();
        }
    }
    let children = entries(root).count();
    let recorded = reader
        .members()
        .iter()
        .filter(|member| member.depth == 1)
        .count();
    assert_eq!(children, recorded, "{root:?} from {text:?}");
    let top = reader.members().iter().filter(|member| member.depth == 1);
    for (entry, member) in entries(root).zip(top) {
        assert_eq!(entry.key, &root[member.key.clone()]);
        assert_eq!(entry.value, &root[member.output.clone()]);
    }
}

/// What the repairs of the document are called.
fn kinds(text: &str) -> Vec<&'static str> {
    let healed = repair(text, &ReaderOptions::default()).unwrap();
    healed
        .repairs
        .iter()
        .map(|repair| repair.kind.as_str())
        .collect()
}

#[test]
fn the_examples_of_the_documentation_record_their_kind() {
    let path = format!("{}/../../docs/parsing.md", env!("CARGO_MANIFEST_DIR"));
    let documentation = std::fs::read_to_string(path).unwrap();
    let mut seen = 0;
    for kind in RepairKind::ALL {
        let start = format!("| `{kind}` | ");
        let row = documentation
            .lines()
            .find(|row| row.starts_with(&start))
            .unwrap();
        let text = row.rsplit(" | `").nth(1).unwrap();
        let python = text.strip_suffix('`').unwrap();
        if python.starts_with('b') {
            // Bytes are brought to text before they get here.
            continue;
        }
        let json = crate::grammars::python_literal::literal(python, 0, 1)
            .unwrap()
            .json;
        let text: String = serde_json::from_str(&json).unwrap();
        assert!(
            kinds(&text).contains(&kind.as_str()),
            "{kind}: {text:?} {:?}",
            kinds(&text)
        );
        seen += 1;
    }
    assert_eq!(seen, RepairKind::ALL.len() - 1);
}

#[test]
fn stray_marks_behind_scalars_are_dropped_and_recorded() {
    for (text, json, kind) in [
        (r#"{"a": 1", "b": 2}"#, r#"{"a":1,"b":2}"#, "quote_dropped"),
        (r#"{"a": true"}"#, r#"{"a":true}"#, "quote_dropped"),
        (r#"{"a": 1 \ }"#, r#"{"a":1}"#, "backslash_dropped"),
        (r"[1\, 2]", "[1,2]", "backslash_dropped"),
        (r"[1 \, 2]", "[1,2]", "backslash_dropped"),
    ] {
        let healed = repair(text, &ReaderOptions::default()).unwrap();
        assert_eq!(healed.json, json, "{text}");
        assert_eq!(kinds(text), [kind], "{text}");
    }
}

/// More cases when asked for, as in `PROPTEST_CASES=100000`.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(256)
}
